//! The search for the rewrites to give up.
//!
//! A prefix of the rewrites leads to a version, too: the fuel stops the pipeline there. The empty
//! prefix leads to the base, whose entries are all proved. So some rewrite in between is the first
//! to drop entries. Bisection finds such a rewrite. The search then omits the rewrite and treats
//! the later rewrites in the same way.
//!
//! Often a later pass finds the same equality again, a few rewrites further on. So the next search
//! begins with short steps. If single rewrites do not suffice, each further round omits twice as
//! many.

use super::{GivenUp, Retry, numbers};
use crate::driver::{Derived, NoObserver, Proved, Vigilance, derive_within};
use check::verdict::{Check, Verdict};
use ir::edit::Fuel;
use ir::{Function, Module, Point, Value};
use passes::Pipeline;
use std::collections::BTreeSet;

/// The question that a probe asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::driver) enum ProbeScope {
    /// Is the pair proved as a whole? The probe makes no mappings.
    Pair,
    /// Which entries does the checker drop?
    Entries,
}

/// The verdicts on one version.
#[derive(Clone, Debug, Default)]
pub(in crate::driver) struct Answer {
    /// The source points of dropped entries: of the base, and of the version.
    dropped: [BTreeSet<Point>; 2],
    /// The number of reachable points without an accepted entry.
    missing: usize,
    /// The number of accepted entries.
    held: usize,
    /// Whether the pair as a whole is not proved, as far as its entries show.
    is_unrelated: bool,
    /// The first failed check.
    check: Option<Check>,
}

impl Answer {
    pub(super) fn of_pair(related: Result<(), Verdict>) -> Answer {
        let check = related.err().and_then(|verdict| verdict.finding()).map(|f| f.check);
        Answer { is_unrelated: related.is_err(), check, ..Answer::default() }
    }

    /// The answer for the highest level. An empty answer without a level.
    pub(super) fn of(proved: &Proved) -> Answer {
        let Some((_, made)) = proved.levels.last() else { return Answer::default() };
        let sides = [&made.before, &made.after];
        let mut verdicts = sides.iter().flat_map(|m| m.missing.lost()).map(|(_, verdict)| verdict);
        let first = verdicts.next();
        let is_unrelated = first.is_some_and(|first| verdicts.all(|verdict| verdict == first))
            && sides.iter().all(|m| m.mapping.is_empty());
        Answer {
            dropped: sides.map(|m| m.missing.lost().map(|(point, _)| point).collect()),
            missing: sides
                .iter()
                .map(|m| m.missing.lost().count() + m.missing.obstacles().count())
                .sum(),
            held: sides.iter().map(|m| m.mapping.len()).sum(),
            is_unrelated,
            check: first.and_then(|verdict| verdict.finding()).map(|finding| finding.check),
        }
    }

    /// The answer for these points without an accepted entry: of the base, and of the version.
    pub(in crate::driver) fn of_points(dropped: [BTreeSet<Point>; 2], held: usize) -> Answer {
        let missing = dropped.iter().map(BTreeSet::len).sum();
        Answer { dropped, missing, held, ..Answer::default() }
    }

    /// The number of reachable points without an accepted entry.
    pub(super) fn missing(&self) -> usize {
        self.missing
    }

    /// Whether an entry is dropped that a run may need.
    pub(in crate::driver) fn drops(&self) -> bool {
        self.is_unrelated || self.dropped.iter().any(|points| !points.is_empty())
    }

    /// Whether the answer is about the pair without mappings.
    fn is_pair_alone(&self) -> bool {
        self.is_unrelated && self.missing == 0
    }

    /// Whether an entry is dropped at a point at which the other answer drops one.
    fn shares_a_drop(&self, other: &Answer) -> bool {
        let pairs = self.dropped.iter().zip(&other.dropped);
        self.is_unrelated || pairs.into_iter().any(|(mine, theirs)| !mine.is_disjoint(theirs))
    }
}

/// Judges a version against the base.
pub(in crate::driver) type Ask<'a> = dyn Fn(&Function, &Derived, ProbeScope) -> Answer + 'a;

/// The bounds of the search have been reached.
struct Exhausted;

/// A search on one function.
pub(in crate::driver) struct RewriteSearch<'a> {
    module: &'a Module,
    base: &'a Function,
    pipeline: &'a Pipeline,
    retry: Retry,
    ask: &'a Ask<'a>,
    work: u64,
    /// The most work.
    most: u64,
    probes: u64,
    /// The scope of the last search, and a rewrite: the rewrites before it drop no entry of this
    /// scope if the given-up rewrites are omitted.
    from: (ProbeScope, u64),
    /// The values that count as used in every version.
    kept: BTreeSet<Value>,
}

/// The most rounds that give up a stretch: each round doubles its length.
const STRETCHES: usize = 32;

/// The length of a stretch that reaches the end of the pipeline.
const REST: u64 = 1 << 32;

impl<'a> RewriteSearch<'a> {
    pub(in crate::driver) fn new(
        module: &'a Module,
        base: &'a Function,
        pipeline: &'a Pipeline,
        retry: Retry,
        ask: &'a Ask<'a>,
    ) -> RewriteSearch<'a> {
        let from = (ProbeScope::Pair, 0);
        let kept = BTreeSet::new();
        let most = retry.most(base);
        RewriteSearch { module, base, pipeline, retry, ask, work: 0, most, probes: 0, from, kept }
    }

    /// The work of the probes so far.
    pub(super) fn work(&self) -> u64 {
        self.work
    }

    /// The same search among versions in which these values count as used.
    pub(in crate::driver) fn keeping(self, kept: BTreeSet<Value>) -> RewriteSearch<'a> {
        RewriteSearch { kept, ..self }
    }

    pub(in crate::driver) fn probes(&self) -> u64 {
        self.probes
    }

    /// Like [`RewriteSearch::run`], for a version that has not been judged yet.
    pub(super) fn run_whole(&mut self) -> Vec<GivenUp> {
        let Ok((answer, planned)) = self.probe(u64::MAX, &[], ProbeScope::Entries) else {
            return Vec::new();
        };
        self.run(answer, planned)
    }

    /// The rewrites to give up, given the verdicts on the version of all `planned` rewrites. Of the
    /// tried sets, the search returns the set that leaves the fewest points without an entry. Empty
    /// if every set is worse than or as good as none.
    pub(in crate::driver) fn run(&mut self, whole: Answer, planned: u64) -> Vec<GivenUp> {
        let mut best: (Answer, Vec<GivenUp>) = (whole.clone(), Vec::new());
        let mut given_up: Vec<GivenUp> = Vec::new();
        let (mut now, mut end) = (whole, planned);
        let stretches = if self.retry.stretches { STRETCHES } else { 0 };
        for round in 0..self.retry.rewrites + stretches {
            if !now.drops() {
                break;
            }
            let Ok(found) = self.first_to_blame(end, &now, &given_up) else {
                // A bound is reached. If most points have no entry, give up the rest of the
                // pipeline.
                let is_without = self.retry.stretches && best.0.missing > best.0.held;
                return if is_without { self.tail(given_up, &best.0) } else { best.1 };
            };
            // Later rewrites were numbered in a pipeline that makes this rewrite: omitting it
            // shifts them.
            given_up.retain(|earlier| earlier.plan < found.plan);
            let count = 1 << (round + 1).saturating_sub(self.retry.rewrites);
            self.from.1 = found.plan + count;
            given_up.push(GivenUp { count, ..found });
            let Ok((answer, planned)) = self.judge(&now, &given_up) else { continue };
            (now, end) = (answer, planned);
            if now.missing < best.0.missing && !now.is_pair_alone() {
                best = (now.clone(), given_up.clone());
            }
        }
        best.1
    }

    /// Judges the version without the given-up rewrites. If the pair as a whole was not proved
    /// before, judges the pair first: a probe without mappings is several times cheaper.
    fn judge(&mut self, before: &Answer, given_up: &[GivenUp]) -> Result<(Answer, u64), Exhausted> {
        if before.is_unrelated && self.from.0 == ProbeScope::Pair {
            let (answer, planned) = self.probe(u64::MAX, given_up, ProbeScope::Pair)?;
            if answer.is_unrelated {
                return Ok((answer, planned));
            }
        }
        self.probe(u64::MAX, given_up, ProbeScope::Entries)
    }

    /// Gives up all rewrites behind the last prefix known to drop no entry.
    fn tail(&self, mut given_up: Vec<GivenUp>, best: &Answer) -> Vec<GivenUp> {
        let plan = self.from.1;
        given_up.retain(|earlier| earlier.plan < plan);
        let named = self.named(plan, plan + 1, &given_up, best.check);
        given_up.extend(named.map(|named| GivenUp { count: REST, ..named }));
        given_up
    }

    /// Finds a rewrite that makes the checker drop entries.
    fn first_to_blame(
        &mut self,
        end: u64,
        whole: &Answer,
        given_up: &[GivenUp],
    ) -> Result<GivenUp, Exhausted> {
        let is_pair = whole.is_unrelated
            && (whole.is_pair_alone()
                || self.probe(end, given_up, ProbeScope::Pair)?.0.is_unrelated);
        let scope = if is_pair { ProbeScope::Pair } else { ProbeScope::Entries };
        if self.from.0 != scope {
            self.from = (scope, 0);
        }
        let mut step = if self.from.1 > 0 { 1 } else { u64::MAX };
        let (mut bad, mut check) = (end, whole.check);
        while bad.saturating_sub(self.from.1) > 1 {
            let middle = self.from.1 + step.min((bad - self.from.1) / 2);
            let (answer, _) = self.probe(middle, given_up, scope)?;
            if answer.shares_a_drop(whole) {
                (bad, check, step) = (middle, answer.check, u64::MAX);
            } else {
                (self.from.1, step) = (middle, step.saturating_mul(4));
            }
        }
        self.named(self.from.1, bad, given_up, check).ok_or(Exhausted)
    }

    /// The rewrite between the prefixes of `good` and `bad` rewrites. `None` if it has no action. A
    /// rewrite to blame has an action, since equal logs make equal versions.
    fn named(
        &self,
        good: u64,
        bad: u64,
        given_up: &[GivenUp],
        check: Option<Check>,
    ) -> Option<GivenUp> {
        let [before, after] = [good, bad].map(|limit| self.derive(limit, given_up).0);
        let actions = after.log.actions();
        let same = before.log.actions().iter().zip(actions).take_while(|(a, b)| a == b).count();
        let action = actions.get(same)?;
        Some(GivenUp {
            plan: good,
            count: 1,
            pass: action.origin().pass(),
            rule: action.origin().rule(),
            action: same,
            text: action.kind().to_string(),
            check: check.map_or("none", Check::name),
        })
    }

    /// Judges the version of the first `limit` rewrites without the given-up ones. Also returns the
    /// number of announced rewrites.
    fn probe(
        &mut self,
        limit: u64,
        given_up: &[GivenUp],
        scope: ProbeScope,
    ) -> Result<(Answer, u64), Exhausted> {
        if self.work >= self.most {
            return Err(Exhausted);
        }
        let (derived, planned) = self.derive(limit, given_up);
        let size = (self.base.inst_count() + derived.function.inst_count()) as u64;
        self.work += if scope == ProbeScope::Pair { size.div_ceil(4) } else { size };
        self.probes += 1;
        Ok(((self.ask)(self.base, &derived, scope), planned))
    }

    /// Makes the version of the first `limit` rewrites without the given-up ones. The version has a
    /// family of its own, so the ids of versions neither depend on the number of probes nor grow
    /// with it.
    fn derive(&self, limit: u64, given_up: &[GivenUp]) -> (Derived, u64) {
        let base = self.base.fork();
        let fuel = Fuel::rewrites(limit).without(numbers(given_up));
        let mut fuel = fuel.keeping(self.kept.clone());
        let (off, observer) = (Vigilance::Off, &mut NoObserver);
        let derived = derive_within(self.module, &base, self.pipeline, off, &mut fuel, observer);
        (derived, fuel.planned())
    }
}
