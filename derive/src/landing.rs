//! Landings: the code of a base behind a point, as a function of its own, and versions of that code
//! that assume.
//!
//! A run is in the middle of a hot loop, and the loop is fast under an assumption. No entry leads
//! behind an assumption that the run has not made ([`mod@crate::speculate`]). So the code behind
//! the loop header becomes a function of its own, whose parameters are the values live there
//! ([`LandingCode`]). A version of *this* function may assume at its start, which is in front of
//! the loop, and in each round ([`LandingCode::row`]):
//!
//! ```text
//! base --landing--> code behind it --speculate--> assuming --optimize--> row
//!   ^                                                                     |
//!   +------------- where an assumption fails: one composed entry --------+
//! ```
//!
//! The run enters the row at its start. The checker judges the pairs of versions as always, and the
//! two steps across the landing ([`check::enter_continuation`], [`check::leave_continuation`]).
//! Source: landing tables and their rows generalize contextual dispatch and deoptless (Flückiger,
//! *Just-in-time compilation for dynamic languages*, chapters 3 and 4).

pub use crate::handover::handover;
use crate::speculate::{Assumption, Exit, Plan, SpeculateError, Speculative, speculate};
use check::{Checked, CheckedEntry, RestFault, RestOf};
use ir::{FrameStateError, Func, Function, Inst, Module, Point, Value};
use osr::VersionTree;
use resume::{Continuation, ContinuationError};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use transition::VersionKey;
use transition::copy::InlinedSites;
use transition::mapping::Mapping;

/// Why there is no code behind a point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LandingError {
    /// No run reaches the point, or the base lacks it.
    NeverReached(Point),
    /// The code behind the point is no function.
    NoContinuation(ContinuationError),
    /// The checker refuses a step across the landing. A bug of ours.
    Refused(RestFault),
    /// A row cannot make its assumptions.
    Speculate(SpeculateError),
    /// An assumption of the base itself would lose its exit.
    LosesExit(Inst),
    /// The code lacks a value that a way out of it requires. A bug of ours.
    States(FrameStateError),
}

impl fmt::Display for LandingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LandingError::NeverReached(point) => write!(f, "no run reaches {}", point.inst()),
            LandingError::NoContinuation(error) => error.fmt(f),
            LandingError::Refused(fault) => fault.fmt(f),
            LandingError::Speculate(error) => error.fmt(f),
            LandingError::States(error) => error.fmt(f),
            LandingError::LosesExit(inst) => {
                write!(f, "the assumption {inst} of the base loses its exit")
            }
        }
    }
}

impl std::error::Error for LandingError {}

/// The code of a base behind a point. All rows of a landing are versions of it.
#[derive(Clone, Debug)]
pub struct LandingCode {
    at: Point,
    /// The entry of the base at the point, which lands there.
    stay: Checked<Mapping>,
    code: Continuation,
    /// The values of the base that the code defines: what they hold at the landing is not what they
    /// hold in later rounds.
    defined: BTreeSet<Value>,
    /// By instruction of the base: its copies in the code.
    copies: BTreeMap<Inst, Vec<Inst>>,
    /// The way out of the base to the frames of an embedder's interpreter.
    handover: Option<Arc<Checked<Mapping>>>,
}

/// A version of the code behind a landing.
#[derive(Clone, Debug)]
pub struct LandingRow {
    /// The optimized code. Its parameters are the values live at the landing.
    pub function: Function,
    /// The assumptions that it makes, each with its instruction and an entry in
    /// [`LandingRow::back`].
    pub exits: Vec<RowExit>,
    /// The assumptions, in terms of the base, that it does not make, since it has no place for
    /// them, no exit, or proves them.
    pub left_out: Vec<Assumption>,
    /// From the landing in the base to the start of the row.
    pub enter: Checked<Mapping>,
    /// From the row to the base.
    pub back: Checked<Mapping>,
    /// From the row to frame states of the base, behind [`LandingCode::leaving`]. It requires a
    /// part of the values that [`LandingRow::back`] requires.
    pub hand: Option<Checked<Mapping>>,
    /// By instruction of the row: the instruction of the base that it is a copy of.
    pub copied: BTreeMap<Inst, Inst>,
    /// Instructions of the row, each with the instruction of the base that it is a copy of. A run
    /// of the row executes them in the order in which the base, from the landing on, executes these
    /// originals. Judges align runs by them.
    pub events: BTreeMap<Inst, Inst>,
}

/// An assumption of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowExit {
    /// The instruction of the row.
    pub inst: Inst,
    /// The assumption, in terms of the base.
    pub of: Assumption,
    /// Whether the row tests it at its start: it belongs to the *context* of the row.
    pub is_context: bool,
}

impl LandingCode {
    /// The code of a base behind a point. Cost: linear in the base.
    ///
    /// # Errors
    /// [`LandingError::NeverReached`] and [`LandingError::NoContinuation`].
    pub fn new(module: &Module, base: &Function, at: Point) -> Result<LandingCode, LandingError> {
        LandingCode::behind(module, base, at, None)
    }

    /// As [`LandingCode::new`], for runs that leave to an interpreter of the embedder's own. The
    /// mapping has the ways out of the base ([`handover`]). Assumptions of rows
    /// are made at its source points alone, and the code keeps the values that its entries require.
    ///
    /// # Errors
    /// As [`LandingCode::new`].
    pub fn leaving(
        module: &Module,
        base: &Function,
        at: Point,
        handover: Arc<Checked<Mapping>>,
    ) -> Result<LandingCode, LandingError> {
        LandingCode::behind(module, base, at, Some(handover))
    }

    fn behind(
        module: &Module,
        base: &Function,
        at: Point,
        handover: Option<Arc<Checked<Mapping>>>,
    ) -> Result<LandingCode, LandingError> {
        let stay = check::stay_armed(module, base, &BTreeSet::from([at]), &armed(&handover));
        let entry = stay.checked_entry(at).ok_or(LandingError::NeverReached(at))?;
        let name = format!("{}.at.{}", base.name(), at.inst());
        let code = match &handover {
            Some(out) => resume::continuation_leaving(&name, base, base, entry, out),
            None => resume::continuation(&name, base, &[base], entry),
        };
        let code = code.map_err(LandingError::NoContinuation)?;
        let (defined, copies) = (defined(base, &code), code.copies());
        Ok(LandingCode { at, stay, code, defined, copies, handover })
    }

    /// The point of the base.
    pub fn at(&self) -> Point {
        self.at
    }

    /// The code, as a function of its own.
    pub fn function(&self) -> &Function {
        &self.code.function
    }

    /// The entry of the base at the point, which lands there.
    pub fn stay(&self) -> CheckedEntry<'_> {
        self.stay.checked_entry(self.at).expect("the landing has an entry")
    }

    fn rest<'a>(&'a self, base: &'a Function) -> RestOf<'a> {
        let (entry, claim) = (self.stay(), &self.code.claim);
        RestOf { function: &self.code.function, source: base, target: base, entry, claim }
    }

    /// A version of the code that makes these assumptions, as far as it can. The plan is in terms
    /// of `base`, the base of the landing. An assumption about the landing is made at the start
    /// ([`LandingCode::is_about_landing`]), and wherever the code comes to its place with other
    /// contents of the value. Exits land where the base makes the assumption, if they can. Cost: as
    /// [`speculate`], once more for each turn that drops assumptions without an exit to the base,
    /// within the work of the plan together. Behind that, the row makes no assumptions.
    ///
    /// # Errors
    /// [`LandingError::Refused`], [`LandingError::Speculate`], and [`LandingError::LosesExit`].
    pub fn row(
        &self,
        module: &Module,
        base: &Function,
        plan: &Plan<'_>,
    ) -> Result<LandingRow, LandingError> {
        if VersionKey::of(base) != self.stay.source() {
            return Err(LandingError::Refused(RestFault::OtherVersions));
        }
        let mut made: Vec<LandingAssumption> = Vec::new();
        for of in plan.assume {
            let is_of_base = base.has_inst(of.at.inst()) && base.has_value(of.value);
            made.extend(self.places(base, of).into_iter().filter(|_| is_of_base));
        }
        let mut work = plan.work;
        loop {
            let attempt = self.attempt(module, base, &Plan { work, ..*plan }, &made)?;
            let dropped = self.to_drop(&attempt, &made);
            if dropped.is_empty() {
                return Ok(self.finish(plan.assume, attempt, &made));
            }
            work = work.saturating_sub(attempt.speculative.work);
            // Each turn drops at least one assumption.
            made.retain(|placed| !dropped.contains(&placed.here));
        }
    }

    /// The assumptions that the next turn must leave out: those without an exit to the base, and
    /// those of later rounds at the landing itself whose test at the start was left out. Without
    /// that test, a run could come back to the landing by its exit, in the first round, for ever.
    fn to_drop(&self, attempt: &RowAttempt, made: &[LandingAssumption]) -> BTreeSet<Assumption> {
        let Speculative { exits, settled, .. } = &attempt.speculative;
        let kept: BTreeSet<Assumption> = exits
            .iter()
            .filter_map(|exit| exit.assumption)
            .chain(settled.iter().copied())
            .collect();
        let is_tested = |of: &Assumption| {
            let mut own = made.iter().filter(|placed| placed.of == *of && placed.is_context);
            own.any(|placed| kept.contains(&placed.here))
        };
        let is_loose = |placed: &&LandingAssumption| {
            !placed.is_context && placed.of.at == self.at && kept.contains(&placed.here)
        };
        let loose = made.iter().filter(is_loose).filter(|placed| !is_tested(&placed.of));
        attempt.without_exit.iter().copied().chain(loose.map(|placed| placed.here)).collect()
    }

    /// Whether an assumption is about what a value of the base holds at the landing: the value is
    /// live there, and the place of the assumption is the landing, or the code never defines the
    /// value anew.
    pub fn is_about_landing(&self, of: &Assumption) -> bool {
        let is_live = self.stay().entry().requires.contains(&of.value);
        is_live && (of.at == self.at || !self.defined.contains(&of.value))
    }

    /// Where the code makes an assumption about the base.
    fn places(&self, base: &Function, of: &Assumption) -> Vec<LandingAssumption> {
        let function = &self.code.function;
        let (start, requires) = (function.entry(), &self.stay().entry().requires);
        let param = requires.iter().position(|value| *value == of.value);
        let placed = |at, value, is_context| {
            let here = Assumption { at: Point::before(at), value, ..*of };
            LandingAssumption { here, of: *of, is_context }
        };
        let mut places = Vec::new();
        if let Some(index) = param.filter(|_| self.is_about_landing(of)) {
            // Behind the compensation code, so that the exit needs none of its results.
            let steps = self.code.claim.steps.len();
            let at = function.block_insts(start).nth(steps);
            let at = at.expect("a jump or a copy follows the compensation code");
            places.push(placed(at, function.block_params(start)[index], true));
        }
        // A run that comes back to the landing has other contents of a value that it defines anew.
        if places.is_empty() || self.defined.contains(&of.value) {
            let copies = self.copies.get(&of.at.inst()).into_iter().flatten();
            let rounds = copies.filter_map(|copy| {
                let held = self.code.held_before(base, *copy, of.value)?;
                Some(placed(*copy, held, false))
            });
            places.extend(rounds);
        }
        places
    }

    fn attempt(
        &self,
        module: &Module,
        base: &Function,
        plan: &Plan<'_>,
        made: &[LandingAssumption],
    ) -> Result<RowAttempt, LandingError> {
        let assume: BTreeSet<Assumption> = made.iter().map(|placed| placed.here).collect();
        let assume: Vec<Assumption> = assume.into_iter().collect();
        let plan = Plan { assume: &assume, states: None, ..*plan };
        let mut tree = VersionTree::new(self.code.function.clone());
        tree.land_in_place(VersionTree::BASE);
        if self.handover.is_some() {
            let armed = tree.arm_states(VersionTree::BASE, &self.code.taken_out);
            armed.map_err(LandingError::States)?;
        }
        let speculative = speculate(module, &mut tree, VersionTree::BASE, &plan);
        let speculative = speculative.map_err(LandingError::Speculate)?;
        let function = tree.function(speculative.optimized).clone();
        let rest = self.rest(base);
        let enter = check::enter_continuation(&rest, &function);
        let first = &speculative.backward[&VersionTree::BASE];
        let landings = first.entries().map(|(_, entry)| entry.target);
        let places = check::places_in_target(&rest, landings).map_err(LandingError::Refused)?;
        let stay = check::stay_armed(module, base, &places, &armed(&self.handover));
        let back = check::leave_continuation(first, &rest, &stay);
        let (enter, back) = (enter.map_err(LandingError::Refused)?, back);
        let back = back.map_err(LandingError::Refused)?.mapping;
        let hand = self.handover.as_ref().map(|out| check::compose(&back, out));
        let hand = hand.transpose().map_err(|_| LandingError::Refused(RestFault::OtherVersions))?;
        let hand = hand.map(|composed| composed.mapping);
        let lacks = |exit: &&Exit| {
            let at = Point::before(exit.inst);
            !back.has_entry(at) || hand.as_ref().is_some_and(|hand| !hand.has_entry(at))
        };
        let of_plan = |exit: &Exit| exit.assumption.ok_or(LandingError::LosesExit(exit.inst));
        let without_exit = speculative.exits.iter().filter(lacks).map(of_plan);
        let without_exit = without_exit.collect::<Result<_, _>>()?;
        Ok(RowAttempt { speculative, function, enter, back, hand, without_exit })
    }

    fn finish(
        &self,
        assume: &[Assumption],
        attempt: RowAttempt,
        made: &[LandingAssumption],
    ) -> LandingRow {
        let RowAttempt { speculative, function, enter, back, hand, .. } = attempt;
        // Several assumptions of a list may have one place.
        let placed = |here: Assumption| made.iter().filter(move |placed| placed.here == here);
        let exit = |exit: &Exit| {
            let LandingAssumption { of, is_context, .. } = *placed(exit.assumption?).next()?;
            Some(RowExit { inst: exit.inst, of, is_context })
        };
        let exits: Vec<RowExit> = speculative.exits.iter().filter_map(exit).collect();
        let here = speculative.exits.iter().filter_map(|exit| exit.assumption);
        let kept: BTreeSet<Assumption> = here.flat_map(placed).map(|placed| placed.of).collect();
        let left_out = assume.iter().copied().filter(|of| !kept.contains(of)).collect();
        let copied = self.code.copied.iter().map(|(inst, (_, of))| (*inst, *of)).collect();
        let events = self.events(&speculative.events);
        LandingRow { function, exits, left_out, enter, back, hand, copied, events }
    }

    /// Maps anchors that a row shares with the code to instructions of the base. An instruction of
    /// which the row lacks a copy is left out: the row has not all of its visits.
    fn events(&self, shared: &BTreeSet<Inst>) -> BTreeMap<Inst, Inst> {
        let whole = self.copies.iter().filter(|(_, all)| all.iter().all(|i| shared.contains(i)));
        whole.flat_map(|(of, all)| all.iter().map(|copy| (*copy, *of))).collect()
    }
}

/// An assumption of the code, and the assumption about the base that it stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct LandingAssumption {
    here: Assumption,
    of: Assumption,
    /// Whether the code tests it at its start.
    is_context: bool,
}

/// The values of a base that the code behind a landing defines: results of its instructions, and
/// values that its block parameters hold.
fn defined(base: &Function, code: &Continuation) -> BTreeSet<Value> {
    let results = code.claim.insts.values().flat_map(|of| &base.inst(*of).results).copied();
    let merged = code.claim.blocks.iter().flat_map(|(block, claimed)| {
        let params = code.function.block_params(*block);
        let is_param = |(_, held): &(&(usize, Value), &Value)| params.contains(*held);
        claimed.values.iter().filter(is_param).map(|((_, of), _)| *of)
    });
    results.chain(merged).collect()
}

/// The mappings that are armed in a base.
fn armed(handover: &Option<Arc<Checked<Mapping>>>) -> Vec<&Checked<Mapping>> {
    handover.iter().map(|mapping| &**mapping).collect()
}

/// A try to make a row.
struct RowAttempt {
    speculative: Speculative,
    function: Function,
    enter: Checked<Mapping>,
    back: Checked<Mapping>,
    hand: Option<Checked<Mapping>>,
    /// The assumptions, in terms of the code, from which no entry leads to the base.
    without_exit: BTreeSet<Assumption>,
}

impl LandingRow {
    /// The sites of the row's instructions, for messages that name the base: `func` is its
    /// function. An instruction without an original, such as an assumption, has the site of the
    /// next one in its block that has one, else of the last, else of the landing. Linear in the
    /// row.
    pub fn sites(&self, func: Func) -> InlinedSites {
        let landing = self.enter.entries().next().map(|(at, _)| at.inst());
        let mut sites = InlinedSites::new();
        for block in self.function.blocks() {
            let insts: Vec<Inst> = self.function.block_insts(block).collect();
            let of = |inst: &Inst| self.copied.get(inst).copied();
            let mut site = insts.iter().rev().find_map(of).or(landing);
            for inst in insts.iter().rev() {
                site = of(inst).or(site);
                sites.extend(site.map(|site| (*inst, (func, site))));
            }
        }
        sites
    }

    /// The assumption of an instruction of the row.
    pub fn exit(&self, inst: Inst) -> Option<&RowExit> {
        self.exits.iter().find(|exit| exit.inst == inst)
    }
}
