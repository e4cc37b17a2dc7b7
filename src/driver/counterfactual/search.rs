//! The search for a smallest set of rewrites without which a point has an entry.
//!
//! 1. Each suspect of the log is left out alone.
//! 2. If none suffices, the first suspect stays left out, the next run names suspects of its own,
//!    and so on. Where a run has no suspect, bisection finds a rewrite before which the point has
//!    an entry and after which it has none.
//! 3. Each rewrite of the set is then tried again: what the set can spare goes.

use super::{Counterfactual, Derived, Fate, PipelineRun, RewriteName, SourcePoint};
use ir::Function;
use ir::edit::{ActionKind, ActionLog};
use osr::Level;

/// The bounds of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CulpritEffort {
    /// The most suspects that are left out alone.
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
    pub run: Option<Box<(Function, Derived)>>,
}

/// The answer of a search.
#[derive(Clone, Debug)]
pub enum Culprits {
    /// Without these rewrites together the point has an entry. If a bound was not reached, it has
    /// none without all but one of them.
    Found {
        /// The rewrites, in the order in which they were found.
        culprits: Vec<Culprit>,
        /// The numbers of the rewrites left out, those that a later pass makes again included
        /// ([`super::super::derive_without`]).
        left_out: Vec<u64>,
    },
    /// A bound was reached.
    NotFound,
}

/// The question of a search, and the amount of work at which it ends.
#[derive(Clone, Copy)]
struct Sought {
    at: SourcePoint,
    level: Level,
    end: u64,
}

impl Counterfactual<'_> {
    /// Searches a smallest set of rewrites without which a point has an entry. Cost: bounded by the
    /// effort.
    ///
    /// # Panics
    /// Like [`super::super::derive()`].
    pub fn culprits(&mut self, at: SourcePoint, level: Level, effort: CulpritEffort) -> Culprits {
        let sought = Sought { at, level, end: self.work.saturating_add(effort.work) };
        let (run, _) = self.without(&[]);
        let Fate::Lacks { suspects, .. } = self.fate(&run, sought) else {
            return Culprits::Found { culprits: Vec::new(), left_out: Vec::new() };
        };
        for suspect in suspects.iter().take(effort.single) {
            let Some(name) = run.names.name(*suspect) else { continue };
            if self.work < sought.end && self.is_mended_without(&[name], sought) {
                return self.found(&[name]);
            }
        }
        match self.gather(run, sought, effort.set) {
            Some(set) => {
                let set = self.reduce(set, sought);
                self.found(&set)
            }
            None => Culprits::NotFound,
        }
    }

    fn fate(&self, run: &PipelineRun, sought: Sought) -> Fate {
        self.fates(run, sought.level, &[sought.at]).remove(0)
    }

    fn is_mended_without(&mut self, names: &[RewriteName], sought: Sought) -> bool {
        let (run, _) = self.without(names);
        self.fate(&run, sought).is_mended()
    }

    /// A set of rewrites without which the point has an entry, in the order in which they were
    /// found. `run` makes them all.
    fn gather(
        &mut self,
        mut run: PipelineRun,
        sought: Sought,
        most: usize,
    ) -> Option<Vec<RewriteName>> {
        let (mut set, mut left_out) = (Vec::new(), Vec::new());
        loop {
            let Fate::Lacks { suspects, .. } = self.fate(&run, sought) else { return Some(set) };
            if set.len() == most || self.work >= sought.end {
                return None;
            }
            let suspect = suspects.iter().find_map(|suspect| run.names.name(*suspect));
            let next = suspect.filter(|name| !set.contains(name));
            set.push(match next {
                Some(next) => next,
                None => self.bisect(&run, &left_out, sought).filter(|n| !set.contains(n))?,
            });
            (run, left_out) = self.without(&set);
        }
    }

    /// The set without every rewrite that it can spare.
    fn reduce(&mut self, mut set: Vec<RewriteName>, sought: Sought) -> Vec<RewriteName> {
        // The last one found was needed: without the others, the point has no entry.
        for place in (0..set.len().saturating_sub(1)).rev() {
            if self.work >= sought.end {
                break;
            }
            let mut fewer = set.clone();
            fewer.remove(place);
            if self.is_mended_without(&fewer, sought) {
                set = fewer;
            }
        }
        set
    }

    /// A rewrite of a run such that the point has an entry before it, and none after it.
    fn bisect(
        &mut self,
        whole: &PipelineRun,
        left_out: &[u64],
        sought: Sought,
    ) -> Option<RewriteName> {
        let (mut good, mut bad) = (0, whole.names.last()? + 1);
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            let run = self.run(middle, left_out);
            match self.fate(&run, sought).is_mended() {
                true => good = middle,
                false => bad = middle,
            }
        }
        whole.names.name(good)
    }

    fn found(&mut self, names: &[RewriteName]) -> Culprits {
        let (_, left_out) = self.without(names);
        Culprits::Found { culprits: self.described(names), left_out }
    }

    /// The culprits of these names.
    fn described(&mut self, names: &[RewriteName]) -> Vec<Culprit> {
        let mut culprits = Vec::new();
        for (count, name) in names.iter().enumerate() {
            let own = self.names.rewrite(name, 0);
            if let Some(action) = own.and_then(|own| main_action(&self.derived.log, own)) {
                culprits.push(Culprit { action, run: None });
                continue;
            }
            let (run, _) = self.without(&names[..count]);
            let made = run.names.rewrite(name, 0);
            if let Some(action) = made.and_then(|made| main_action(&run.derived.log, made)) {
                let run = Some(Box::new((run.base, run.derived)));
                culprits.push(Culprit { action, run });
            }
        }
        culprits
    }
}

/// The action that says most about a rewrite: the replacement of a value, or else the first.
fn main_action(log: &ActionLog, rewrite: u64) -> Option<usize> {
    let actions = log.actions();
    let of_rewrite = |at: &usize| actions[*at].origin().rewrite() == rewrite;
    let replaces = |at: &usize| matches!(actions[*at].kind(), ActionKind::ReplaceAll { .. });
    let mut all = (0..actions.len()).filter(of_rewrite);
    all.clone().find(replaces).or_else(|| all.next())
}
