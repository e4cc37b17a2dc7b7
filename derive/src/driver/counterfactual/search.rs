//! The search for a smallest set of rewrites without which points have entries.
//!
//! 1. Runs omit one suspect of the log each; the suspect of most points comes first. One run
//!    answers for all points.
//! 2. If no single suspect suffices, the first suspect of a point stays omitted, the next run names
//!    new suspects, and so on. If a run has no suspect, bisection finds the rewrite that loses the
//!    entry of the point. Points that need the same set share the runs.
//! 3. Finally, the search removes each rewrite from the set whose omission is unnecessary.

use super::{
    Counterfactual, Derived, Fate, PipelineRun, RewriteName, SearchBound, SourcePoint, distinct,
};
use ir::Function;
use ir::edit::{ActionKind, ActionLog};
use osr::Level;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The bounds of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CulpritEffort {
    /// The most suspects of a point that runs omit alone.
    pub single: usize,
    /// The most rewrites of a set.
    pub set: usize,
    /// The most work, in instructions of both versions, summed over all runs.
    pub work: u64,
}

impl Default for CulpritEffort {
    fn default() -> CulpritEffort {
        CulpritEffort { single: 8, set: 16, work: 2_000_000 }
    }
}

/// A rewrite to blame.
#[derive(Clone, Debug)]
pub struct Culprit {
    /// The index in the log of the action that represents the rewrite.
    pub action: usize,
    /// The base and the version of the run that makes the rewrite. `None` if the version itself has
    /// the rewrite; otherwise a pass makes it in place of an earlier, omitted culprit.
    pub run: Option<Arc<(Function, Derived)>>,
}

/// The answer of a search.
#[derive(Clone, Debug)]
pub enum Culprits {
    /// The point has an entry if the pipeline omits all of these rewrites. Unless the search
    /// reached its bound on work, no rewrite of the set can be spared.
    Found {
        /// The rewrites, in the order in which they were found.
        culprits: Vec<Culprit>,
        /// The numbers of the omitted rewrites, repetitions by later passes included. An argument
        /// for [`super::super::derive_without`].
        left_out: Vec<u64>,
    },
    /// The search reached this bound.
    NotFound(SearchBound),
}

/// An answer, and its points, by index in the question.
#[derive(Clone, Debug)]
pub struct SharedCulprits {
    /// The points, ascending.
    pub points: Vec<usize>,
    /// The answer.
    pub culprits: Culprits,
}

impl Counterfactual<'_> {
    /// Searches a smallest set of rewrites whose omission gives a point an entry. Cost: bounded by
    /// the effort.
    ///
    /// # Panics
    /// Like [`super::super::derive()`].
    pub fn culprits(&mut self, at: SourcePoint, level: Level, effort: CulpritEffort) -> Culprits {
        self.culprits_of(&[at], level, effort).remove(0).culprits
    }

    /// Like [`Counterfactual::culprits`], for several points at once: one run answers for all
    /// points. Each point has one answer. Cost: the effort bounds the work for all points together.
    ///
    /// # Panics
    /// Like [`super::super::derive()`].
    pub fn culprits_of(
        &mut self,
        points: &[SourcePoint],
        level: Level,
        effort: CulpritEffort,
    ) -> Vec<SharedCulprits> {
        let end = self.work.saturating_add(effort.work);
        let end = std::mem::replace(&mut self.end, end);
        let mut search = CulpritSearch::new(self, points, level, effort);
        let bound = search.all().err();
        let answers = search.answers(bound.unwrap_or(SearchBound::Suspects));
        self.end = end;
        answers
    }
}

/// The names of rewrites, in the order in which they were found.
type Set = Vec<RewriteName>;

/// A point without an entry, by number, with the rewrites to suspect, the likeliest first.
struct SuspectingPoint {
    point: usize,
    suspects: Set,
}

struct CulpritSearch<'s, 'a> {
    test: &'s mut Counterfactual<'a>,
    points: &'s [SourcePoint],
    level: Level,
    effort: CulpritEffort,
    /// By set of omitted rewrites: the points that then have an entry.
    found: BTreeMap<Set, Vec<usize>>,
    /// The numbers of the omitted rewrites, by set.
    left_out: BTreeMap<Set, Vec<u64>>,
    /// The points whose search reached a bound, except the bound on work.
    not_found: BTreeMap<usize, SearchBound>,
    /// For each suspected rewrite: the suspected action in the version's own log.
    suspected: BTreeMap<RewriteName, usize>,
    /// The rewrites that only other runs make, not the version itself.
    foreign: BTreeMap<RewriteName, Culprit>,
}

impl<'s, 'a> CulpritSearch<'s, 'a> {
    fn new(
        test: &'s mut Counterfactual<'a>,
        points: &'s [SourcePoint],
        level: Level,
        effort: CulpritEffort,
    ) -> CulpritSearch<'s, 'a> {
        CulpritSearch {
            test,
            points,
            level,
            effort,
            found: BTreeMap::new(),
            left_out: BTreeMap::new(),
            not_found: BTreeMap::new(),
            suspected: BTreeMap::new(),
            foreign: BTreeMap::new(),
        }
    }

    /// Searches for all points. The error is the bound that ended the search; points in neither
    /// `found` nor `not_found` then have no answer.
    fn all(&mut self) -> Result<(), SearchBound> {
        let run = self.without(&Set::new())?;
        let all: Vec<usize> = (0..self.points.len()).collect();
        let mut lacking = Vec::new();
        for (point, fate) in self.fates(&run, all) {
            let Fate::Lacks { suspects, .. } = &fate else {
                self.found.entry(Set::new()).or_default().push(point);
                continue;
            };
            // This run has the log of the version itself.
            for action in suspects {
                if let Some(name) = run.name_of(*action) {
                    self.suspected.entry(name).or_insert(*action);
                }
            }
            lacking.push(SuspectingPoint { point, suspects: self.suspects(&run, &fate) });
        }
        let lacking = self.singles(lacking)?;
        let mut gathered = BTreeMap::new();
        let ended = self.gather(lacking, &mut gathered);
        gathered.into_iter().for_each(|(set, points)| self.reduce(set, points));
        ended
    }

    /// The run that omits a set.
    fn without(&mut self, set: &Set) -> Result<PipelineRun, SearchBound> {
        let (run, left_out) = self.test.without(set)?;
        self.left_out.insert(set.clone(), left_out);
        Ok(run)
    }

    /// Each point with its fate in a run.
    fn fates(&self, run: &PipelineRun, points: Vec<usize>) -> Vec<(usize, Fate)> {
        let at: Vec<SourcePoint> = points.iter().map(|point| self.points[*point]).collect();
        points.into_iter().zip(self.test.fates(run, self.level, &at)).collect()
    }

    /// The names of the rewrites that a fate suspects.
    fn suspects(&mut self, run: &PipelineRun, fate: &Fate) -> Set {
        let Fate::Lacks { suspects, .. } = fate else { return Set::new() };
        let names = suspects.iter().filter_map(|action| run.name_of(*action));
        let names = distinct(names).collect();
        self.remember_maker(run, &names);
        names
    }

    fn remember_maker(&mut self, run: &PipelineRun, names: &Set) {
        for name in names {
            if self.test.names.rewrite(name, 0).is_some() || self.foreign.contains_key(name) {
                continue;
            }
            let made = run.names.rewrite(name, 0);
            if let Some(action) = made.and_then(|made| main_action(&run.made.1.log, made, None)) {
                let run = Some(Arc::clone(&run.made));
                self.foreign.insert(*name, Culprit { action, run });
            }
        }
    }

    /// Omits suspects one at a time. Returns the points that no single omission gives an entry.
    fn singles(
        &mut self,
        mut lacking: Vec<SuspectingPoint>,
    ) -> Result<Vec<SuspectingPoint>, SearchBound> {
        let mut tried = BTreeSet::new();
        while let Some(name) = self.most_suspected(&lacking, &tried) {
            tried.insert(name);
            let run = match self.without(&vec![name]) {
                Err(SearchBound::Work) => return Err(SearchBound::Work),
                Err(_) => continue,
                Ok(run) => run,
            };
            let points = lacking.iter().map(|lacking| lacking.point).collect();
            let fates: BTreeMap<usize, Fate> = self.fates(&run, points).into_iter().collect();
            let found = self.found.entry(vec![name]).or_default();
            lacking.retain(|SuspectingPoint { point, suspects }| {
                // If the omission of another rewrite removes the point, this does not explain the
                // missing entry.
                let is_mended = match &fates[point] {
                    Fate::Entry => true,
                    Fate::Gone => suspects.contains(&name),
                    Fate::Lacks { .. } => false,
                };
                found.extend(is_mended.then_some(*point));
                !is_mended
            });
        }
        Ok(lacking)
    }

    /// The untried rewrite that most points suspect. Of several such rewrites, the likeliest.
    fn most_suspected(
        &self,
        lacking: &[SuspectingPoint],
        tried: &BTreeSet<RewriteName>,
    ) -> Option<RewriteName> {
        let mut counts: BTreeMap<RewriteName, (usize, usize)> = BTreeMap::new();
        for SuspectingPoint { suspects, .. } in lacking {
            let untried = suspects.iter().take(self.effort.single).enumerate();
            for (rank, name) in untried.filter(|(_, name)| !tried.contains(*name)) {
                let (count, ranks) = counts.entry(*name).or_default();
                (*count, *ranks) = (*count + 1, *ranks + rank);
            }
        }
        let least = |(name, (count, ranks)): (RewriteName, (usize, usize))| {
            ((std::cmp::Reverse(count), ranks), name)
        };
        counts.into_iter().map(least).min().map(|(_, name)| name)
    }

    /// Gathers sets of rewrites whose omission gives points entries. Sets found before the bound on
    /// work is reached count.
    fn gather(
        &mut self,
        lacking: Vec<SuspectingPoint>,
        gathered: &mut BTreeMap<Set, Vec<usize>>,
    ) -> Result<(), SearchBound> {
        let mut open: BTreeMap<Set, Vec<usize>> = BTreeMap::new();
        for SuspectingPoint { point, suspects } in lacking {
            open.entry(suspects.into_iter().take(1).collect()).or_default().push(point);
        }
        while let Some((set, points)) = open.pop_first() {
            let run = match self.without(&set) {
                Err(SearchBound::Work) => return Err(SearchBound::Work),
                Err(bound) => {
                    self.not_found.extend(points.into_iter().map(|point| (point, bound)));
                    continue;
                }
                Ok(run) => run,
            };
            for (point, fate) in self.fates(&run, points) {
                if fate.is_mended() {
                    gathered.entry(set.clone()).or_default().push(point);
                    continue;
                }
                match self.next(&run, &set, point, &fate) {
                    Err(SearchBound::Work) => return Err(SearchBound::Work),
                    Err(bound) => {
                        self.not_found.insert(point, bound);
                    }
                    Ok(next) => {
                        let more = set.iter().copied().chain([next]).collect();
                        open.entry(more).or_default().push(point);
                    }
                }
            }
        }
        Ok(())
    }

    /// The rewrite to omit next, for a point that has no entry although `set` is omitted.
    fn next(
        &mut self,
        run: &PipelineRun,
        set: &Set,
        point: usize,
        fate: &Fate,
    ) -> Result<RewriteName, SearchBound> {
        if set.len() == self.effort.set {
            return Err(SearchBound::Set);
        }
        let suspects = self.suspects(run, fate);
        if let Some(next) = suspects.into_iter().find(|name| !set.contains(name)) {
            return Ok(next);
        }
        let next = self.bisect(run, &self.left_out[set].clone(), point)?;
        let next = next.filter(|name| !set.contains(name)).ok_or(SearchBound::Suspects)?;
        self.remember_maker(run, &vec![next]);
        Ok(next)
    }

    /// The rewrite of a run that loses the entry of the point, by bisection.
    fn bisect(
        &mut self,
        whole: &PipelineRun,
        left_out: &[u64],
        point: usize,
    ) -> Result<Option<RewriteName>, SearchBound> {
        let Some(last) = whole.names.last() else { return Ok(None) };
        let (mut good, mut bad) = (0, last + 1);
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            let run = self.test.run(middle, left_out)?;
            match self.test.fates(&run, self.level, &[self.points[point]])[0].is_mended() {
                true => good = middle,
                false => bad = middle,
            }
        }
        Ok(whole.names.name(good))
    }

    /// Removes from the set of each point the rewrites that it can spare. If the search reaches a
    /// bound, the set stays as it is.
    fn reduce(&mut self, set: Set, points: Vec<usize>) {
        // The last rewrite was needed: with only the others omitted, the point had no entry.
        let last = set.len().saturating_sub(1);
        let mut open = vec![(set, last, points)];
        while let Some((set, place, points)) = open.pop() {
            let Some(place) = place.checked_sub(1) else {
                self.found.entry(set).or_default().extend(points);
                continue;
            };
            let mut fewer = set.clone();
            fewer.remove(place);
            let Ok(run) = self.without(&fewer) else {
                self.found.entry(set).or_default().extend(points);
                continue;
            };
            let fates = self.fates(&run, points);
            let (mended, others): (Vec<_>, Vec<_>) =
                fates.into_iter().partition(|(_, fate)| fate.is_mended());
            for (set, fates) in [(fewer, mended), (set, others)] {
                if !fates.is_empty() {
                    open.push((set, place, fates.into_iter().map(|(point, _)| point).collect()));
                }
            }
        }
    }

    /// The answers. Points without a set have reached a bound.
    fn answers(mut self, bound: SearchBound) -> Vec<SharedCulprits> {
        let mut answers = Vec::new();
        let mut without: BTreeSet<usize> = (0..self.points.len()).collect();
        for (set, mut points) in std::mem::take(&mut self.found) {
            points.sort_unstable();
            points.iter().for_each(|point| {
                without.remove(point);
            });
            if !points.is_empty() {
                let culprits = set.iter().filter_map(|name| self.described(name)).collect();
                let left_out = self.left_out.get(&set).cloned().unwrap_or_default();
                answers.push(SharedCulprits {
                    points,
                    culprits: Culprits::Found { culprits, left_out },
                });
            }
        }
        let mut bounds: BTreeMap<SearchBound, Vec<usize>> = BTreeMap::new();
        for point in without {
            let bound = self.not_found.get(&point).copied().unwrap_or(bound);
            bounds.entry(bound).or_default().push(point);
        }
        answers.extend(
            bounds.into_iter().map(|(bound, points)| SharedCulprits {
                points,
                culprits: Culprits::NotFound(bound),
            }),
        );
        answers
    }

    /// The culprit of a name. `None` if no run makes the rewrite.
    fn described(&self, name: &RewriteName) -> Option<Culprit> {
        if let Some(own) = self.test.names.rewrite(name, 0) {
            let suspected = self.suspected.get(name).copied();
            let action = main_action(&self.test.derived.log, own, suspected)?;
            return Some(Culprit { action, run: None });
        }
        self.foreign.get(name).cloned()
    }
}

/// The action that says most about a rewrite: the replacement of a value, or else the suspected
/// action, or else the last move. The last move counts because moves of a division's operands
/// precede the move of the division.
fn main_action(log: &ActionLog, rewrite: u64, suspected: Option<usize>) -> Option<usize> {
    let actions = log.actions();
    let of_rewrite = |at: &usize| actions[*at].origin().rewrite() == rewrite;
    let all: Vec<usize> = (0..actions.len()).filter(of_rewrite).collect();
    let replaces = |at: &&usize| matches!(actions[**at].kind(), ActionKind::ReplaceAll { .. });
    let moves = |at: &&usize| {
        matches!(actions[**at].kind(), ActionKind::Hoist { .. } | ActionKind::Sink { .. })
    };
    let replacement = all.iter().find(replaces).copied();
    let replacement = replacement.or(suspected.filter(|at| all.contains(at)));
    replacement.or_else(|| all.iter().rfind(moves).or(all.first()).copied())
}
