//! Derives a version and makes its mappings together. Where the checker drops entries, the driver
//! finds the rewrite to blame, omits the rewrite, and derives and maps again.
//!
//! A version without a few rewrites is a little slower than the best version. A version without
//! entries cannot be entered in the middle, or cannot be left where an assumption fails.

mod search;

use super::prove::prove_pair;
use super::{
    CheckCounts, Derived, NoObserver, Observer, Proved, Step, Vigilance, derive_within, prove,
    prove_at,
};
use ir::edit::Fuel;
use ir::{Function, Module, Point, Value};
use osr::{Level, VersionPair};
use passes::Pipeline;
use search::ProbeScope;
pub(super) use search::{Answer, RewriteSearch};
use std::collections::BTreeSet;
use std::ops::Range;
use transition::Pair;

/// The bounds of the search for rewrites to give up. All bounds are counts, so that every run gives
/// up the same rewrites.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retry {
    /// The most single rewrites that a function gives up.
    pub rewrites: usize,
    /// Whether the driver may give up stretches of rewrites if single rewrites do not suffice.
    pub stretches: bool,
    /// The most work of the probes for one function, in instructions of both versions. A probe
    /// makes a version, its mappings, and the verdicts on them. A probe of a pair that is not
    /// proved as a whole makes no mappings, and counts a quarter.
    pub work: u64,
    /// The most work of the probes, as a multiple of the work of one probe of the base. This bound
    /// is at least [`Retry::SMALL`].
    pub times: u64,
}

impl Retry {
    /// No rewrite is given up.
    pub const OFF: Retry = Retry { rewrites: 0, stretches: false, work: 0, times: 0 };

    /// For a program that waits: the search takes about as long as the mappings of a function of
    /// 20,000 instructions.
    pub const BRIEF: Retry = Retry { rewrites: 2, stretches: false, work: 40_000, times: 8 };

    /// The work that every function may spend if [`Retry::work`] allows it: about a tenth of a
    /// second.
    pub const SMALL: u64 = 4_000;

    /// The most work for a function. The last probe may exceed it.
    pub fn most(&self, base: &Function) -> u64 {
        let mappings = 2 * base.inst_count() as u64;
        self.work.min(mappings.saturating_mul(self.times).max(Retry::SMALL))
    }
}

impl Default for Retry {
    /// Eight single rewrites, and then stretches. The work is bounded by 24 mappings of the
    /// function, and by about half a minute.
    fn default() -> Retry {
        Retry { rewrites: 8, stretches: true, work: 500_000, times: 24 }
    }
}

/// A rewrite, or a stretch of rewrites, that the driver omitted so that entries hold.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct GivenUp {
    /// The number of the first rewrite among all announced rewrites, omitted ones included
    /// ([`Fuel`]).
    pub plan: u64,
    /// The number of rewrites: 1, or an upper bound for a stretch. The fields below describe the
    /// first rewrite.
    pub count: u64,
    /// The pass.
    pub pass: &'static str,
    /// The rule under which the pass announces the rewrite.
    pub rule: &'static str,
    /// The number of its first action in the log that ends with the rewrite.
    pub action: usize,
    /// The action in the words of logs.
    pub text: String,
    /// The name of the check that failed after the rewrite.
    pub check: &'static str,
}

impl GivenUp {
    /// The numbers of the rewrites.
    pub fn numbers(&self) -> Range<u64> {
        self.plan..self.plan.saturating_add(self.count)
    }
}

/// The numbers of all these rewrites.
pub(crate) fn numbers(given_up: &[GivenUp]) -> impl Iterator<Item = Range<u64>> {
    given_up.iter().map(GivenUp::numbers)
}

/// The work of the search for rewrites to give up.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Retried<G = Vec<GivenUp>> {
    /// The rewrites that the version lacks, by number. Empty if no entry was dropped. Around an
    /// inlining, those of the passes before it, and of the passes behind it.
    pub given_up: G,
    /// The values of the base that count as used in the version, because a frame state alone names
    /// them ([`super::derive_with_states`]).
    pub kept: BTreeSet<Value>,
    /// The number of announced rewrites that the driver omitted.
    pub refused: u64,
    /// The number of rewrites that the passes of the whole pipeline announced.
    pub announced: u64,
    /// The verdicts on the entries of the whole pipeline's version. `None` if the retry is off.
    pub without: Option<CheckCounts>,
    /// The number of versions that the search made and judged.
    pub probes: u64,
    /// The work of these probes, as [`Retry::work`] counts it.
    pub work: u64,
}

/// The choices of [`derive_proved`].
#[derive(Clone, Copy, Debug)]
pub struct Recipe<'a> {
    /// The passes.
    pub pipeline: &'a Pipeline,
    /// Whether each version is verified and each log replayed.
    pub vigilance: Vigilance,
    /// The levels of the mappings, lowest first. The retry judges the entries of the last level.
    pub levels: &'a [Level],
    /// The bounds of the retry.
    pub retry: Retry,
}

impl<'a> Recipe<'a> {
    /// A recipe that verifies versions, replays logs, and has the default bounds of the retry.
    pub fn new(pipeline: &'a Pipeline, levels: &'a [Level]) -> Recipe<'a> {
        Recipe { pipeline, vigilance: Vigilance::On, levels, retry: Retry::default() }
    }
}

/// A version and its proved mappings.
#[derive(Clone, Debug)]
pub struct Secured<P = Proved> {
    /// The version.
    pub derived: Derived,
    /// The mappings between the base and the version.
    pub proved: P,
    /// The rewrites that the version lacks for the sake of entries.
    pub retried: Retried,
}

impl<P> Secured<P> {
    /// The version without the rewrites that a search gives up, if `lost` is less then. Otherwise
    /// the version as it is.
    pub(super) fn or_without(
        self,
        retried: Retried,
        without: impl FnOnce(&[GivenUp]) -> Secured<P>,
        lost: impl Fn(&P) -> usize,
    ) -> Secured<P> {
        if retried.given_up.is_empty() {
            return Secured { retried, ..self };
        }
        let fewer = without(&retried.given_up);
        if lost(&fewer.proved) < lost(&self.proved) {
            let refused = fewer.retried.refused;
            return Secured { retried: Retried { refused, ..retried }, ..fewer };
        }
        Secured { retried: Retried { given_up: Vec::new(), ..retried }, ..self }
    }
}

/// Runs a pipeline over one function and makes the mappings between the base and the version, as
/// [`super::derive()`] and [`prove()`] do. If the checker drops entries of the highest level, the
/// driver searches for the rewrite that makes the checker drop them, and omits the rewrite. It
/// repeats this until the checker drops no entry. If [`Retry::rewrites`] single rewrites do not
/// suffice, it omits stretches of growing length. The result is the version with the fewest
/// reachable points without an entry; of equal versions, the first one. If the search reaches a
/// bound and most points of this version have no entry, the driver omits the whole rest of the
/// pipeline behind the last prefix known to drop no entry. The result never has more points without
/// an entry than the version of the whole pipeline.
///
/// Cost: nothing more if the checker drops no entry. If it does, the first given-up rewrite takes a
/// number of probes logarithmic in the number of all rewrites, and each later rewrite a number
/// logarithmic in its distance from the rewrite before. The total is at most [`Retry::times`] the
/// cost of one mapping, except for small functions.
///
/// # Panics
/// Like [`super::derive()`].
pub fn derive_proved(
    module: &Module,
    base: &Function,
    recipe: &Recipe<'_>,
    observer: &mut dyn Observer,
) -> Secured {
    let Recipe { pipeline, vigilance, levels, retry } = *recipe;
    let make = |given_up: &[GivenUp], observer: &mut dyn Observer| {
        let mut fuel = Fuel::UNLIMITED.without(numbers(given_up));
        let derived = derive_within(module, base, pipeline, vigilance, &mut fuel, observer);
        let proved = prove(module, base, &derived, levels, observer);
        let (announced, refused) = (fuel.planned(), fuel.refused());
        Secured { derived, proved, retried: Retried { announced, refused, ..Retried::default() } }
    };
    let mut made = make(&[], observer);
    made.retried.without = (retry.rewrites > 0).then(|| made.proved.checked());
    let first = levels.last().map(|level| (*level, Answer::of(&made.proved)));
    let lossy = first.filter(|(_, answer)| answer.drops() && retry.rewrites > 0);
    let Some((level, first)) = lossy else { return made };
    observer.begin(Some(Step::Retry));
    let ask =
        question(module, |made, derived| prove(module, made, derived, &[level], &mut NoObserver));
    let mut search = RewriteSearch::new(module, base, pipeline, retry, &ask);
    let given_up = search.run(first, made.retried.announced);
    let (probes, work) = (search.probes(), search.work());
    let retried = Retried { given_up, probes, work, ..made.retried.clone() };
    observer.begin(None);
    // The search judges the highest level alone, and `make` the lower levels, too.
    let lost = |proved: &Proved| Answer::of(proved).missing();
    made.or_without(retried, |given_up| make(given_up, observer), lost)
}

/// The rewrites to omit in one of several steps, after the checker has dropped entries of the step,
/// and the number of versions that the search made and judged. `base` is the version before the
/// step, `pipeline` the passes of the step. No rewrites if the checker drops no entry, or if the
/// search finds no better version within its bounds.
pub(crate) fn rewrites_to_omit(
    module: &Module,
    base: &Function,
    pipeline: &Pipeline,
    retry: Retry,
) -> (Vec<GivenUp>, u64) {
    let ask = question(module, |made, derived| {
        prove(module, made, derived, &[Level::Avail], &mut NoObserver)
    });
    let mut search = RewriteSearch::new(module, base, pipeline, retry, &ask);
    (search.run_whole(), search.probes())
}

/// Runs a pipeline over one function and omits some rewrites, given by number. This repeats the
/// version of a [`derive_proved`] that gave up these rewrites. Both versions have the same ids
/// if the base was the family's only version before each call. Without numbers, equal to
/// [`super::derive()`].
///
/// # Panics
/// Like [`super::derive()`].
pub fn derive_without(
    module: &Module,
    base: &Function,
    pipeline: &Pipeline,
    left_out: &[Range<u64>],
    observer: &mut dyn Observer,
) -> Derived {
    let whole = super::derive(module, base, pipeline, Vigilance::On, observer);
    if left_out.is_empty() {
        return whole;
    }
    // `derive_proved` also made the whole pipeline's version first: its ids are taken in both.
    let mut fuel = Fuel::UNLIMITED.without(left_out.iter().cloned());
    derive_within(module, base, pipeline, Vigilance::On, &mut fuel, observer)
}

/// Makes a version with an accepted entry at one point of the base, after the checker has dropped
/// this entry for the whole pipeline's version. `None` if the search finds no such version within
/// its bounds. The result and each probe have the entry at this point alone ([`prove_at`]).
///
/// # Panics
/// Like [`super::derive()`].
pub fn derive_proved_at(
    module: &Module,
    base: &Function,
    recipe: &Recipe<'_>,
    at: Point,
    observer: &mut dyn Observer,
) -> Option<Secured> {
    let Recipe { pipeline, vigilance, levels, retry } = *recipe;
    let level = *levels.last()?;
    let asked = |_: &VersionPair<'_>| Pair::new(BTreeSet::from([at]), BTreeSet::new());
    observer.begin(Some(Step::Retry));
    let ask = question(module, |made, derived| {
        prove_at(module, made, derived, level, asked, &mut NoObserver)
    });
    let mut search = RewriteSearch::new(module, base, pipeline, retry, &ask);
    let given_up = search.run_whole();
    let (probes, work) = (search.probes(), search.work());
    observer.begin(None);
    if given_up.is_empty() {
        return None;
    }
    let mut fuel = Fuel::UNLIMITED.without(numbers(&given_up));
    let derived = derive_within(module, base, pipeline, vigilance, &mut fuel, observer);
    let proved = prove_at(module, base, &derived, level, asked, observer);
    proved.highest().before.mapping.entry(at)?;
    let refused = fuel.refused();
    let retried = Retried { given_up, refused, probes, work, ..Retried::default() };
    Some(Secured { derived, proved, retried })
}

/// The question of a search: whether the pair as a whole is proved, or which entries the checker
/// drops of the ones that `prove` makes.
fn question<'a>(
    module: &'a Module,
    prove: impl Fn(&Function, &Derived) -> Proved + 'a,
) -> impl Fn(&Function, &Derived, ProbeScope) -> Answer + 'a {
    move |made, derived, scope| match scope {
        ProbeScope::Pair => Answer::of_pair(prove_pair(module, made, derived)),
        ProbeScope::Entries => Answer::of(&prove(made, derived)),
    }
}
