//! Inlining: versions with the code of other functions, and the mappings into the versions and out
//! of them.
//!
//! Example: `@f` calls `@g`. [`inline()`] makes a version of `@f` that has the body of `@g` in the
//! place of the call, and optimizes it. Then it proves two mappings: from the base of `@f` into the
//! version, and from the version out into *frames*. At a point of the inlined body, the run
//! continues in two activations: the base of `@g` in the middle, and the base of `@f` within its
//! call.
//!
//! Each inlining adds three versions to a tree:
//!
//! ```text
//! base --first passes--> cleaned --inline--> copy --last passes--> optimized
//! ```
//!
//! Two of the steps are ordinary pairs, proved like all others. The step between is a copy, which
//! the checker judges as such ([`check::copy`]). The ways in and out are composed of the three
//! ([`check::enter_copy`], [`check::leave_copy`]). `docs/osr.md` has a worked example.
//!
//! A plan may assume. Assumptions about the function itself come before the first passes: a call
//! whose target is assumed may then be inlined. Assumptions about an inlined function come behind
//! the inlining, in each of its instances:
//!
//! ```text
//! base --assume, first passes--> cleaned --inline--> copy --assume, last passes--> optimized
//! ```
//!
//! Where one fails, the run leaves as at any other point, into frames of bases.
//!
//! Where the checker drops entries, rewrites are given up, before and behind the inlining, as
//! [`crate::driver::derive_proved`] does ([`InlinePlan::retry`]).
//!
//! A function may be inlined into itself. Frames of its base then land with all values that are
//! live+ there, including inner frames. The run may go up again from any of them, by the mapping
//! that was accepted together with the exits. Frames of other functions land with the live values
//! alone ([`CalleeLandings`]).

mod assumed;
mod attempt;
mod exits;
mod landings;
mod objects;
mod plan;
mod retry;
mod row;
mod ways;

use crate::driver::{
    CheckCounts, MissingPoints, Observer, ProvedMapping, StatePointError, Vigilance, derive_within,
};
use crate::speculate::{SpeculateError, SpeculationSearch};
use assumed::CopiedAssumptions;
pub use assumed::{InlinedAssumptions, InlinedExit, PlacedAssumption};
use attempt::{InliningAttempt, LastPasses};
use check::{Checked, CheckedEntry, Copies, FrameLanding, LivePoints};
use exits::{check_places, has_places};
use ir::cfg::Cfg;
use ir::edit::Fuel;
use ir::{FrameStateError, Func, Function, Inst, Module, Point};
pub use landings::CalleeLandings;
use osr::{Version, VersionTree};
use passes::Callers;
pub use plan::{InlinePlan, InlinedModule, ModuleSites, O3, PassPlan, StatePlaces};
pub use retry::{InlinedRetry, LeftOut};
use row::InliningRow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use transition::copy::{CopyInstance, InstanceId};
use transition::mapping::Mapping;
use transition::{Pair, VersionKey};

/// A version with inlined code, and the mappings into the version and out of the version.
#[derive(Clone, Debug)]
pub struct Inlined {
    /// The versions: the base, then each derived from the version before it.
    pub tree: VersionTree,
    /// The version after the first passes, which was inlined into.
    pub cleaned: Version,
    /// The copy with the inlined code.
    pub copy: Version,
    /// The optimized copy.
    pub optimized: Version,
    /// The accepted claim of the copy.
    pub copies: Checked<Copies>,
    /// From the base to the optimized version. With places of the plan, at the entrances alone.
    pub up: Checked<Mapping>,
    /// From the optimized version to frames of bases.
    pub down: Checked<Mapping>,
    /// The steps that these are composed of: between the base and the cleaned version, and between
    /// the copy and the optimized one. The forward mapping leaves the version before. No entry
    /// leaves the copy from a point in inlined code, and such points are not missing.
    pub pairs: [Pair<ProvedMapping>; 2],
    /// The points of [`Inlined::points`] without an entry.
    pub missing: [MissingPoints; 2],
    /// The reachable points of the base, and of the optimized version. With places of the plan: the
    /// entrances, and the exits of the plan and of assumptions.
    pub points: [Vec<Point>; 2],
    /// The points of both that are unreachable, as the checker has proved. They need no entry.
    pub unreachable: [BTreeSet<Point>; 2],
    /// Synchronization points: instructions of the optimized version that its run and the base run
    /// both execute, in the same order.
    pub events: BTreeSet<Inst>,
    /// The exits of the plan that runs of the optimized version reach. Those without an entry in
    /// [`Inlined::down`] are among the missing points: do not install a version with one.
    pub exits: BTreeSet<Point>,
    /// The calls removed that make objects ([`InlinePlan::objects`]).
    pub removed_objects: usize,
    /// The assumptions of the plan. Each that the optimized version makes has an entry in
    /// [`Inlined::down`].
    pub assumptions: InlinedAssumptions,
    /// Counts of the verdicts on the entries of the pairs.
    pub checked: CheckCounts,
    /// The rewrites that the versions lack for the sake of entries. With places of the plan, their
    /// number alone.
    pub retried: InlinedRetry,
}

/// Why a function has no version with inlined code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotInlined {
    /// The function has no call, or only calls that the policy rejects. If the plan removes
    /// objects, each object of the function is needed.
    NoCall,
    /// The checker does not accept the version as a copy. A bug of ours.
    NoCopy(check::CopyError),
    /// The frame states of the plan for the function do not fit it.
    States {
        /// The function.
        func: Func,
        /// The reason.
        error: FrameStateError,
    },
    /// The places of the plan for the function do not fit it.
    Places {
        /// The function.
        func: Func,
        /// The reason.
        error: StatePointError,
    },
    /// The assumptions of the plan about a function do not fit it.
    Refused {
        /// The function.
        func: Func,
        /// The reason.
        error: SpeculateError,
    },
}

impl fmt::Display for NotInlined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotInlined::NoCall => f.write_str("the policy inlines no call of the function"),
            NotInlined::NoCopy(error) => write!(f, "the version is no copy: {error}"),
            NotInlined::States { func, error } => write!(f, "{func}: {error}"),
            NotInlined::Places { func, error } => write!(f, "{func}: {error}"),
            NotInlined::Refused { func, error } => write!(f, "the plan about {func}: {error}"),
        }
    }
}

impl std::error::Error for NotInlined {}

/// Inlines calls of a function and optimizes it, and proves the mappings into the version and out
/// of the version. An assumption without an exit pins the values that the exit lacks, or is left
/// out, as by [`crate::speculate::speculate()`]. Cost: the pairs of versions; with assumptions,
/// times the turns, at most nineteen, within [`InlinePlan::work`]. If the checker drops entries of
/// a function that assumes nothing, the search for rewrites to give up comes on top
/// ([`InlinePlan::retry`]).
///
/// # Errors
/// [`NotInlined`].
///
/// # Panics
/// As [`crate::driver::derive`], and if the function has no body.
pub fn inline(
    module: &Module,
    func: Func,
    plan: &InlinePlan,
    landings: &CalleeLandings<'_>,
    observer: &mut dyn Observer,
) -> Result<Inlined, NotInlined> {
    let none = LeftOut::default();
    let made = inline_without(module, func, plan, &none, landings, observer)?;
    Ok(retry::improved(module, func, plan, landings, made, observer))
}

/// Makes the version without some rewrites.
fn inline_without(
    module: &Module,
    func: Func,
    plan: &InlinePlan,
    left_out: &LeftOut,
    landings: &CalleeLandings<'_>,
    observer: &mut dyn Observer,
) -> Result<Inlined, NotInlined> {
    let base = module.body(func).expect("the function has a body").clone();
    let callers = plan.callers(landings.callers());
    let mut row = InliningRow::new(&callers, func, base, plan, left_out, observer)?;
    let mut copies = row.judged(module)?;
    check_places(module, &copies, plan)?;
    if plan.removes_objects() {
        row.removed = row.remove_objects(module, &copies, plan);
        match row.removed {
            0 if copies.instances().len() == 1 => return Err(NotInlined::NoCall),
            _ => copies = row.judged(module)?,
        }
    }
    row.land_at_states(module, &copies, plan);
    let copied = CopiedAssumptions::new(module, [row.inlined_into(), row.copy()], &copies, plan)?;
    let refused = |error| NotInlined::Refused { func, error };
    let mut search = SpeculationSearch::new(row.copy(), &copied.list(), plan.pins, plan.work);
    search.afford(row.copy().inst_count() as u64);
    let mut passes = &plan.last;
    let nothing = passes::Pipeline::of(Vec::new());
    for turn in 0.. {
        let last = LastPasses { made: &search.made, passes, left_out };
        let attempt = InliningAttempt::new(module, &row, &copies, plan, last, landings, observer);
        search.spend(attempt.work());
        if attempt.without_exit().is_empty() {
            return Ok(attempt.publish(&row, copies, &copied, search));
        }
        match search.amend(row.copy(), attempt.without_exit(), turn) {
            Ok(()) => search.afford(attempt.work()),
            // An assumption made before the inlining has lost its exit for good. It keeps the exit
            // if nothing behind is optimized.
            Err(_) if !std::ptr::eq(passes, &nothing) => passes = &nothing,
            Err(error) => return Err(refused(error)),
        }
    }
    unreachable!("a version without assumptions of its own lacks no exit of them")
}

impl InlinePlan {
    /// The versions of a function that [`inline()`] proves mappings between, without any proof and
    /// thus without assumptions: the base, the cleaned version, the copy and the optimized one.
    /// They lack the rewrites that [`inline()`] gave up. `None` if the plan inlines no call of the
    /// function. With places, [`inline()`] makes other versions, which keep values, and a plan that
    /// removes objects has copies without these. Cost: the passes, twice if rewrites are left out.
    ///
    /// # Panics
    /// As [`inline()`].
    pub fn versions(
        &self,
        callers: &Callers<'_>,
        func: Func,
        left_out: &LeftOut,
        observer: &mut dyn Observer,
    ) -> Option<[Function; 4]> {
        let (assume, places) = (BTreeMap::new(), BTreeMap::new());
        let plan = InlinePlan { assume, places, objects: false, ..self.clone() };
        let callers = &plan.callers(callers);
        let mut made = |left_out: &LeftOut| {
            let base = callers.module().body(func).expect("the function has a body").clone();
            let row = InliningRow::new(callers, func, base, &plan, left_out, observer).ok()?;
            let mut fuel = Fuel::UNLIMITED.without(left_out.behind.iter().cloned());
            let (module, vigilance) = (callers.module(), Vigilance::default());
            let passes = &plan.last;
            let last = derive_within(module, row.copy(), passes, vigilance, &mut fuel, observer);
            let base = row.tree.function(VersionTree::BASE);
            let [base, cleaned, copy] = [base, row.inlined_into(), row.copy()].map(Function::clone);
            Some([base, cleaned, copy, last.function])
        };
        let whole = made(&LeftOut::default())?;
        // The ids of the versions of the whole pipelines are taken in both cases.
        if left_out.is_empty() { Some(whole) } else { made(left_out) }
    }
}

/// The points of the base where frames may wait or land: the points behind the inlined calls, and
/// all points if the function is inlined into itself.
#[doc(hidden)]
pub fn landing_points(base: &Function, instances: &[CopyInstance]) -> BTreeSet<Point> {
    let func = instances.first().map(|own| own.func);
    if instances.iter().skip(1).any(|one| Some(one.func) == func) {
        return base.all_insts().map(Point::before).collect();
    }
    let calls = instances.iter().filter_map(|one| one.caller);
    let calls = calls.filter(|(id, call)| *id == 0 && base.has_inst(*call));
    calls.filter_map(|(_, call)| base.next_inst(call)).map(Point::before).collect()
}

/// Where frames of the function itself land: in its base. `on` leads there from the version that
/// was inlined into. A frame of the function inlined into itself is in its base already. Both
/// landings have all values that are live+ there, since the run may go up again.
#[doc(hidden)]
pub fn own_landing<'a>(
    base: &'a Function,
    live: &'a Checked<LivePoints>,
    on: &'a Checked<Mapping>,
    key: VersionKey,
) -> Option<FrameLanding<'a>> {
    let leads = on.source() == key;
    let is_base = VersionKey::of(base) == key;
    (leads || is_base).then_some(FrameLanding { on: leads.then_some(on), version: base, live })
}

impl Inlined {
    /// The instance that a point of the optimized version belongs to, and the instruction of its
    /// original. They belong to the first instruction from the point on, in its block, that the
    /// copy has.
    pub fn origin(&self, point: Point) -> Option<(InstanceId, Inst)> {
        let f = self.tree.function(self.optimized);
        let mut from = std::iter::successors(Some(point.inst()), |inst| f.next_inst(*inst));
        from.find_map(|inst| self.copies.origin(inst))
    }

    /// The frames that a run leaves to when the assumption of this instruction fails. `None` if the
    /// optimized version makes no such assumption.
    pub fn exit(&self, inst: Inst) -> Option<CheckedEntry<'_>> {
        let exit = self.assumptions.exits.iter().find(|exit| exit.inst == inst)?;
        self.down.checked_entry(Point::before(exit.inst))
    }

    /// Counts of the verdicts on the entries of the two pairs, and of the entries across the copy,
    /// which the checker has composed.
    pub fn all_checked(&self) -> CheckCounts {
        let mut counts = self.checked.clone();
        counts.points += self.points.iter().map(|points| points.len() as u64).sum::<u64>();
        counts.held += (self.up.len() + self.down.len()) as u64;
        counts
    }

    /// The instructions of the version that the first passes made, and of the optimized version:
    /// the difference is the growth of the code.
    pub fn growth(&self) -> (usize, usize) {
        let count = |version| {
            let f = self.tree.function(version);
            let cfg = Cfg::new(f);
            cfg.rpo().iter().map(|block| f.block_insts(*block).count()).sum()
        };
        (count(self.cleaned), count(self.optimized))
    }
}
