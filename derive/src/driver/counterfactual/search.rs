//! The search for a smallest set of rewrites without which points have entries.
//!
//! 1. Suspects of the log are left out alone, the one that most points suspect first. One run
//!    answers for all points.
//! 2. Where none suffices, the first suspect of a point stays left out, the next run names suspects
//!    of its own, and so on. Where a run has no suspect, bisection finds a rewrite: the point has
//!    an entry before it, and none after it. Points that need the same set share the runs.
//! 3. Each rewrite of a set is then tried again: what the set can spare goes.

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
    /// The most suspects of a point that are left out alone.
    pub single: usize,
    /// The most rewrites of a set.
    pub set: usize,
    /// The most work, in instructions of both versions of each run.
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
    /// The index in the log of the action that stands for it.
    pub action: usize,
    /// The base and the version of the run that makes it. `None` if it is the version itself; else
    /// a pass makes it in the place of an earlier culprit.
    pub run: Option<Arc<(Function, Derived)>>,
}

/// The answer of a search.
#[derive(Clone, Debug)]
pub enum Culprits {
    /// Without these rewrites together the point has an entry. If the bound on work was not
    /// reached, it has none without all but one of them.
    Found {
        /// The rewrites, in the order in which they were found.
        culprits: Vec<Culprit>,
        /// The numbers of the rewrites left out, those that a later pass makes again included
        /// ([`super::super::derive_without`]).
        left_out: Vec<u64>,
    },
    /// This bound was reached.
    NotFound(SearchBound),
}

/// An answer, and the points that it is for, by number in the question.
#[derive(Clone, Debug)]
pub struct SharedCulprits {
    /// The points, ascending.
    pub points: Vec<usize>,
    /// The answer.
    pub culprits: Culprits,
}

impl Counterfactual<'_> {
    /// Searches a smallest set of rewrites without which a point has an entry. Cost: bounded by the
    /// effort.
    ///
    /// # Panics
    /// Like [`super::super::derive()`].
    pub fn culprits(&mut self, at: SourcePoint, level: Level, effort: CulpritEffort) -> Culprits {
        self.culprits_of(&[at], level, effort).remove(0).culprits
    }

    /// As [`Counterfactual::culprits`], for several points at once: a run without a rewrite answers
    /// for all of them. Each point has one answer. Cost: bounded by the effort, which is that of
    /// all points together.
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
        let mut search = CulpritSearch::new(self, (points, level), effort);
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
    /// The points by the set without which they have an entry.
    found: BTreeMap<Set, Vec<usize>>,
    /// The numbers of the rewrites left out, by set.
    left_out: BTreeMap<Set, Vec<u64>>,
    /// The points for which a bound other than that on work was reached.
    not_found: BTreeMap<usize, SearchBound>,
    /// The action of the version's own log that a point suspects because of each rewrite.
    suspected: BTreeMap<RewriteName, usize>,
    /// Each rewrite that another run makes, and the version itself does not.
    foreign: BTreeMap<RewriteName, Culprit>,
}

impl<'s, 'a> CulpritSearch<'s, 'a> {
    fn new(
        test: &'s mut Counterfactual<'a>,
        (points, level): (&'s [SourcePoint], Level),
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

    /// Searches for all points. The error is the bound at which those that are neither found nor
    /// not found have no answer.
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

    /// The run without a set.
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

    /// Leaves suspects out alone. Returns the points that have no entry without any.
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
                // That another rewrite removes a point does not say why it has no entry.
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

    /// The untried rewrite that most points suspect. Of several, it is the likeliest.
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

    /// Gathers sets of rewrites without which points have entries. Those found before the bound on
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
                match self.next(&run, &set, (point, &fate)) {
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

    /// The rewrite to leave out next, for a point that has no entry without the set.
    fn next(
        &mut self,
        run: &PipelineRun,
        set: &Set,
        (point, fate): (usize, &Fate),
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

    /// A rewrite of a run such that the point has an entry before it, and none after it.
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

    /// Finds points without every rewrite that their set can spare. Where a bound is reached, the
    /// set stands as it is.
    fn reduce(&mut self, set: Set, points: Vec<usize>) {
        // The last one found was needed: without the others, the point has no entry.
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

    /// The answers. Points without any have reached a bound.
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

    /// The culprit of a name. `None` for one that no run makes.
    fn described(&self, name: &RewriteName) -> Option<Culprit> {
        if let Some(own) = self.test.names.rewrite(name, 0) {
            let suspected = self.suspected.get(name).copied();
            let action = main_action(&self.test.derived.log, own, suspected)?;
            return Some(Culprit { action, run: None });
        }
        self.foreign.get(name).cloned()
    }
}

/// The action that says most about a rewrite: the replacement of a value, or else the one that is
/// suspected, or else the last move. A move of a division is preceded by those of its operands.
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
