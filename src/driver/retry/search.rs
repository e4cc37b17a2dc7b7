//! The search for the rewrites to give up.
//!
//! A prefix of the rewrites leads to a version too: the fuel stops the pipeline there. The prefix
//! of no rewrites leads to the base, of which every entry is proved. So between it and the whole
//! there is a rewrite after which entries are dropped, and before which they are not. Bisection
//! finds one. The rewrites behind it are then searched in the same way, without it.

use super::{GivenUp, Retry};
use crate::driver::{
    CertifiedLevel, CertifiedMapping, Derived, NoObserver, Vigilance, derive_within,
};
use check::verdict::{Check, Verdict};
use ir::edit::Fuel;
use ir::{Function, Module, Point};
use passes::Pipeline;
use std::collections::BTreeSet;

/// The question that a probe asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Scope {
    /// Whether the pair is proved as a whole, without mappings.
    Pair,
    /// Which entries are dropped.
    Entries,
}

/// The verdicts on one version.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    /// The source points of dropped entries: of the base, and of the version.
    dropped: [BTreeSet<Point>; 2],
    /// The number of reachable points without an accepted entry.
    missing: usize,
    /// Whether the pair as a whole is not proved, as far as one can tell from its entries.
    is_unrelated: bool,
    /// The first failed check.
    check: Option<Check>,
}

impl Answer {
    pub(super) fn of_pair(related: Result<(), Verdict>) -> Answer {
        let check = related.err().and_then(|verdict| verdict.finding()).map(|f| f.check);
        Answer { is_unrelated: related.is_err(), check, ..Answer::default() }
    }

    pub(super) fn of_level(made: &CertifiedLevel) -> Answer {
        let sides = [&made.forward, &made.backward];
        let mut verdicts = sides.iter().flat_map(|m| lost(m)).map(|(_, verdict)| verdict);
        let first = verdicts.next();
        let is_unrelated = first.is_some_and(|first| verdicts.all(|verdict| verdict == first))
            && sides.iter().all(|m| m.mapping.is_empty());
        Answer {
            dropped: sides.map(|m| lost(m).map(|(point, _)| point).collect()),
            missing: sides.iter().map(|m| lost(m).count() + m.unmapped.len()).sum(),
            is_unrelated,
            check: first.and_then(|verdict| verdict.finding()).map(|finding| finding.check),
        }
    }

    /// The number of reachable points without an accepted entry.
    pub(super) fn missing(&self) -> usize {
        self.missing
    }

    /// Whether an entry is dropped that a run may need.
    pub(super) fn drops(&self) -> bool {
        self.is_unrelated || self.dropped.iter().any(|points| !points.is_empty())
    }

    /// Whether an entry is dropped at a point at which the other answer drops one.
    fn shares_a_drop(&self, other: &Answer) -> bool {
        let pairs = self.dropped.iter().zip(&other.dropped);
        self.is_unrelated || pairs.into_iter().any(|(mine, theirs)| !mine.is_disjoint(theirs))
    }
}

/// The dropped entries of a mapping. An entry at a point that the checker finds unreachable is not
/// lost: no run asks for it (`entries_that_no_run_needs_cost_nothing`).
fn lost(made: &CertifiedMapping) -> impl Iterator<Item = (Point, Verdict)> {
    let is_lost = |verdict: &Verdict| {
        verdict.finding().is_some_and(|finding| finding.check != Check::SourceReached)
    };
    made.rejected.iter().copied().filter(move |(_, verdict)| is_lost(verdict))
}

/// Judges a version against the base.
pub(super) type Ask<'a> = dyn Fn(&Function, &Derived, Scope) -> Answer + 'a;

/// The bounds of the search have been reached.
struct Exhausted;

/// A search on one function.
pub(super) struct Search<'a> {
    module: &'a Module,
    base: &'a Function,
    pipeline: &'a Pipeline,
    retry: Retry,
    ask: &'a Ask<'a>,
    work: u64,
    probes: u64,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        module: &'a Module,
        base: &'a Function,
        pipeline: &'a Pipeline,
        retry: Retry,
        ask: &'a Ask<'a>,
    ) -> Search<'a> {
        Search { module, base, pipeline, retry, ask, work: 0, probes: 0 }
    }

    pub(super) fn probes(&self) -> u64 {
        self.probes
    }

    /// Like [`Search::run`], for a version that has not been judged yet.
    pub(super) fn run_whole(&mut self) -> Vec<GivenUp> {
        let Ok((answer, planned)) = self.probe(u64::MAX, &[], Scope::Entries) else {
            return Vec::new();
        };
        self.run(answer, planned)
    }

    /// The rewrites to give up, given the verdicts on the version of all `planned` rewrites. Of the
    /// sets of rewrites that the search tries, it is the one that leaves the fewest points without
    /// an entry. Empty if no set is better than giving up nothing.
    pub(super) fn run(&mut self, whole: Answer, planned: u64) -> Vec<GivenUp> {
        let mut best: (usize, Vec<GivenUp>) = (whole.missing, Vec::new());
        let mut given_up: Vec<GivenUp> = Vec::new();
        let (mut now, mut end) = (whole, planned);
        // The rewrites before this one drop no entry of the kind that was searched last.
        let mut from = (Scope::Pair, 0);
        // A search that starts anew may find one rewrite again, so the rounds are bounded too.
        for _ in 0..2 * self.retry.rewrites {
            if !now.drops() || given_up.len() >= self.retry.rewrites {
                break;
            }
            let Ok(found) = self.first_to_blame(&mut from, end, &now, &given_up) else { break };
            from.1 = found.plan + 1;
            // The numbers of later rewrites are those of a pipeline that makes this one.
            given_up.retain(|earlier| earlier.plan < found.plan);
            given_up.push(found);
            let Ok((answer, planned)) = self.probe(u64::MAX, &given_up, Scope::Entries) else {
                break;
            };
            (now, end) = (answer, planned);
            if now.missing < best.0 {
                best = (now.missing, given_up.clone());
            }
        }
        best.1
    }

    /// Finds a rewrite after which entries are dropped, and before which they are not.
    fn first_to_blame(
        &mut self,
        from: &mut (Scope, u64),
        end: u64,
        whole: &Answer,
        given_up: &[GivenUp],
    ) -> Result<GivenUp, Exhausted> {
        // Without mappings, probes are several times cheaper.
        let is_pair = whole.is_unrelated && self.probe(end, given_up, Scope::Pair)?.0.is_unrelated;
        let scope = if is_pair { Scope::Pair } else { Scope::Entries };
        if from.0 != scope {
            *from = (scope, 0);
        }
        let (mut good, mut bad) = (from.1, end);
        let mut check = whole.check;
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            let (answer, _) = self.probe(middle, given_up, scope)?;
            if answer.shares_a_drop(whole) {
                (bad, check) = (middle, answer.check);
            } else {
                good = middle;
            }
        }
        let [before, after] = [good, bad].map(|limit| self.derive(limit, given_up).0);
        let actions = after.log.actions();
        let same = before.log.actions().iter().zip(actions).take_while(|(a, b)| a == b).count();
        // Equal logs make equal versions, of which not one alone drops entries.
        let action = actions.get(same).ok_or(Exhausted)?;
        Ok(GivenUp {
            plan: good,
            pass: action.origin().pass(),
            rule: action.origin().rule(),
            action: same,
            text: action.kind().to_string(),
            check: check.map_or("none", Check::name),
        })
    }

    /// Judges the version of the first rewrites without those given up. Returns the number of
    /// rewrites too.
    fn probe(
        &mut self,
        limit: u64,
        given_up: &[GivenUp],
        scope: Scope,
    ) -> Result<(Answer, u64), Exhausted> {
        if self.work >= self.retry.work {
            return Err(Exhausted);
        }
        let (derived, planned) = self.derive(limit, given_up);
        let size = (self.base.inst_count() + derived.function.inst_count()) as u64;
        self.work += if scope == Scope::Pair { size.div_ceil(4) } else { size };
        self.probes += 1;
        Ok(((self.ask)(self.base, &derived, scope), planned))
    }

    /// Makes the version of the first rewrites without those given up, in a family of its own: the
    /// ids of versions do not depend on the number of probes, and do not grow with it.
    fn derive(&self, limit: u64, given_up: &[GivenUp]) -> (Derived, u64) {
        let base = self.base.fork();
        let left_out: BTreeSet<u64> = given_up.iter().map(|g| g.plan).collect();
        let mut fuel = Fuel::rewrites(limit).without(left_out);
        let (off, observer) = (Vigilance::Off, &mut NoObserver);
        let derived = derive_within(self.module, &base, self.pipeline, off, &mut fuel, observer);
        (derived, fuel.planned())
    }
}
