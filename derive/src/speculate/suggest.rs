//! Which assumptions a profile suggests, and their expected worth.
//!
//! The worth of an assumption is the number of instructions that the profiled runs would have
//! saved, less the cost of its tests in instructions. The model is coarse, and only orders
//! suggestions:
//!
//! - An assumption costs [`COST`] instructions at each visit: a comparison and a branch.
//! - A value assumed constant saves each instruction that then computes a constant, and a branch on
//!   a constant, as often as its block was visited. An address that becomes constant, a block
//!   parameter, and arguments of calls save nothing.
//! - A branch side that was never taken saves the branch at each visit, and [`JOIN`] more if code
//!   behind that side joins visited code again: facts are no longer lost there. If that code has
//!   calls or stores, it saves [`SPOILED`] more: memory stays known.
//! - An indirect call of one target saves [`DIRECT`] instructions at each visit where the table
//!   cannot change, so that the call can become direct. Where it may change, a constant index saves
//!   one.

use super::{Assumption, Expected, MAX_ASSUMPTIONS};
use cranelift_entity::EntityRef;
use interp::CallTarget;
use ir::cfg::Cfg;
use ir::eval::{is_evaluated, is_nan};
use ir::{Block, Func, Function, Imm, Inst, Module, Opcode, Point, Shape, Value, reference};
use profile::{FunctionProfile, Profile};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt;

/// Instructions of a test.
pub const COST: i64 = 2;
/// Instructions saved where a join goes.
pub const JOIN: i64 = 2;
/// Instructions saved where code with calls or stores no longer joins.
pub const SPOILED: i64 = 2;
/// Instructions saved by a direct call: the test of the index, the load of the entry, and the test
/// of its signature.
pub const DIRECT: i64 = 6;

/// The most instructions examined for one value, and blocks for one branch side. An assumption with
/// more consequences has a worth that is too low, but high enough.
const REACH: usize = 256;

/// Which assumptions to suggest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SuggestOptions {
    /// The least visits of a place for a suggestion. Default: 1,000.
    pub visits: u64,
    /// The most suggestions for one function, at most [`MAX_ASSUMPTIONS`]. Default: 64.
    pub most: usize,
    /// Whether the worth decides. If false, suggests every branch side never taken and every
    /// indirect call of one target, and nothing else. Default: true.
    pub by_worth: bool,
}

impl Default for SuggestOptions {
    fn default() -> SuggestOptions {
        SuggestOptions { visits: 1000, most: 64, by_worth: true }
    }
}

/// The observation behind a suggestion.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Observed {
    /// The `br_if` never took a side.
    NeverTaken {
        /// The side: 0 for a true condition.
        side: usize,
    },
    /// The `switch` took one side, which is not its default.
    OneSide {
        /// The side.
        side: usize,
    },
    /// The indirect call had one target.
    OneTarget {
        /// The function called.
        func: Func,
        /// Whether no instruction can write the table, so that the index decides the function.
        fixed: bool,
    },
    /// The argument was equal in all calls.
    Argument,
    /// The load gave one value.
    Load,
    /// The global had one value.
    Global,
}

impl Observed {
    /// The names of all kinds, in the order of reports.
    pub const KINDS: [&'static str; 6] = [
        "branch side never taken",
        "switch with one side",
        "call of one target",
        "argument",
        "load",
        "global",
    ];

    /// The index of the kind in [`Observed::KINDS`].
    pub fn kind(self) -> usize {
        match self {
            Observed::NeverTaken { .. } => 0,
            Observed::OneSide { .. } => 1,
            Observed::OneTarget { .. } => 2,
            Observed::Argument => 3,
            Observed::Load => 4,
            Observed::Global => 5,
        }
    }
}

impl fmt::Display for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Observed::KINDS[self.kind()])
    }
}

/// An assumption that a profile suggests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Suggestion {
    /// The assumption. Its reason is the index of the observation's kind.
    pub assumption: Assumption,
    /// The observation.
    pub observed: Observed,
    /// The visits of the place in the profiled runs.
    pub visits: u64,
    /// The expected worth: see the module documentation.
    pub worth: i64,
}

/// The assumptions that a profile suggests for a function: see [`Suggester::of`]. A [`Suggester`]
/// serves many functions of one module better.
///
/// # Panics
/// As [`Suggester::of`].
pub fn suggest(
    module: &Module,
    func: Func,
    profile: &Profile,
    options: &SuggestOptions,
) -> Vec<Suggestion> {
    Suggester::new(module, profile, *options).of(func)
}

/// Suggests assumptions for the functions of a module.
#[derive(Clone, Debug)]
pub struct Suggester<'a> {
    module: &'a Module,
    profile: &'a Profile,
    options: SuggestOptions,
}

impl<'a> Suggester<'a> {
    /// Cost: constant.
    pub fn new(module: &'a Module, profile: &'a Profile, options: SuggestOptions) -> Suggester<'a> {
        Suggester { module, profile, options }
    }

    /// The assumptions for a function, by descending worth; assumptions of equal worth are in the
    /// order of the text. Empty if the function was never called. Cost: linear in the function,
    /// plus a bounded search for each place.
    ///
    /// # Panics
    /// If the module lacks the body, or the profile is of another module (`Profile::read` rejects
    /// one).
    pub fn of(&self, func: Func) -> Vec<Suggestion> {
        let base = self.module.body(func).expect("the module has the function");
        let Some(profile) = self.profile.functions.get(&func) else { return Vec::new() };
        let (visits, cfg) = (profile.visits(base), Cfg::new(base));
        let (module, least) = (self.module, self.options.visits);
        let search = PlaceSearch { module, base, profile, visits, cfg, least };
        let mut all = search.branches_and_calls();
        if self.options.by_worth {
            all.extend(search.arguments());
            all.extend(search.loads());
            all.retain(|suggestion| suggestion.worth > 0);
            // Stable: equal worth keeps the order of the text.
            all.sort_by_key(|suggestion| Reverse(suggestion.worth));
        }
        all.truncate(self.options.most.min(MAX_ASSUMPTIONS));
        all
    }
}

/// The search for suggestions in one function.
struct PlaceSearch<'a> {
    module: &'a Module,
    base: &'a Function,
    profile: &'a FunctionProfile,
    /// By index of a block.
    visits: Vec<u64>,
    cfg: Cfg,
    /// The least visits of a place for a suggestion.
    least: u64,
}

impl PlaceSearch<'_> {
    fn visits(&self, block: Block) -> u64 {
        self.visits[block.index()]
    }

    /// `count` instructions, saved at each of these visits.
    fn saved(visits: u64, count: i64) -> i64 {
        i64::try_from(visits).unwrap_or(i64::MAX).saturating_mul(count)
    }

    fn suggestion(
        &self,
        at: Inst,
        value: Value,
        expected: Expected,
        observed: Observed,
        saved: i64,
    ) -> Suggestion {
        let visits = self.visits(self.base.inst_block(at));
        let reason = observed.kind() as u32;
        let worth = saved.saturating_sub(Self::saved(visits, COST));
        let assumption = Assumption { at: Point::before(at), value, expected, reason };
        Suggestion { assumption, observed, visits, worth }
    }

    /// The suggestions of branches and indirect calls, in the order of the text.
    fn branches_and_calls(&self) -> Vec<Suggestion> {
        let mut all = Vec::new();
        for block in self.base.blocks() {
            if self.visits(block) < self.least || !self.cfg.is_reachable(block) {
                continue;
            }
            for inst in self.base.block_insts(block) {
                if let Some(targets) = self.profile.targets.get(&inst)
                    && let ([target], 0) = (targets.targets.as_slice(), targets.others)
                {
                    all.extend(self.one_target(inst, *target));
                }
                if let Some(sides) = self.profile.branches.get(&inst) {
                    all.extend(self.never_taken(inst, sides));
                }
            }
        }
        all
    }

    fn one_target(&self, call: Inst, target: CallTarget) -> Option<Suggestion> {
        let data = self.base.inst(call);
        let index = *data.args.last().expect("an indirect call has an index");
        let is_fixed = |table| self.module.tables[table].fixed;
        let fixed = matches!(data.imm, Imm::Indirect(_, table) if is_fixed(table));
        let visits = self.visits(self.base.inst_block(call));
        let saved = Self::saved(visits, if fixed { DIRECT } else { 1 });
        let observed = Observed::OneTarget { func: target.func, fixed };
        // A constant index needs no assumption.
        let is_known = self.base.constant(index).is_some();
        let expected = Expected::Is(target.index);
        (!is_known).then(|| self.suggestion(call, index, expected, observed, saved))
    }

    /// The suggestion of the sides of a branch. `None` if a `switch` took its default alone: the
    /// default has no single index.
    fn never_taken(&self, branch: Inst, sides: &[u64]) -> Option<Suggestion> {
        let data = self.base.inst(branch);
        let value = data.args[0];
        if sides.iter().all(|visits| *visits == 0) {
            return None;
        }
        let (expected, observed, untaken) = match (data.opcode, sides) {
            (Opcode::BrIf, [0, _]) => (Expected::Is(0), Observed::NeverTaken { side: 0 }, vec![0]),
            (Opcode::BrIf, [_, 0]) => {
                let expected =
                    if self.is_truth(value) { Expected::Is(1) } else { Expected::IsNot(0) };
                (expected, Observed::NeverTaken { side: 1 }, vec![1])
            }
            (Opcode::Switch, [cases @ .., 0]) => {
                let side = cases.iter().position(|visits| *visits > 0)?;
                let others: Vec<usize> = (0..sides.len()).filter(|other| *other != side).collect();
                if others.iter().any(|other| sides[*other] > 0) {
                    return None;
                }
                (Expected::Is(side as u64), Observed::OneSide { side }, others)
            }
            _ => return None,
        };
        if self.base.constant(value).is_some() {
            return None; // folded without an assumption
        }
        let gain = 1 + self.join(branch, &untaken);
        let saved = Self::saved(self.visits(self.base.inst_block(branch)), gain);
        Some(self.suggestion(branch, value, expected, observed, saved))
    }

    /// Whether a value is 0 or 1 for all operands.
    fn is_truth(&self, value: Value) -> bool {
        let shape = self.base.defining_inst(value).map(|inst| self.base.inst(inst).opcode.shape());
        matches!(
            shape,
            Some(
                Shape::IntCompare
                    | Shape::IntTest
                    | Shape::FloatCompare
                    | Shape::RefTest
                    | Shape::RefCompare
            )
        )
    }

    /// The instructions that a visit of a branch saves because untaken code no longer joins visited
    /// code. Cost: up to [`REACH`] blocks.
    fn join(&self, branch: Inst, untaken: &[usize]) -> i64 {
        let targets = &self.base.inst(branch).targets;
        let mut work: Vec<Block> = untaken.iter().map(|side| targets[*side].block).collect();
        let mut seen: BTreeSet<Block> = BTreeSet::new();
        let (mut joins, mut spoils) = (false, false);
        while let Some(block) = work.pop() {
            if self.visits(block) > 0 {
                joins = true;
            } else if seen.len() < REACH && seen.insert(block) {
                spoils |= self.base.block_insts(block).any(|inst| {
                    matches!(
                        self.base.inst(inst).opcode.shape(),
                        Shape::Store(_) | Shape::Call | Shape::CallIndirect | Shape::GlobalSet
                    )
                });
                work.extend(self.base.successors(block).iter().map(|target| target.block));
            }
        }
        match (joins, spoils) {
            (false, _) => 0,
            (true, false) => JOIN,
            (true, true) => JOIN + SPOILED,
        }
    }

    /// Whether a value may be assumed to have these bits. References to entities of the host are no
    /// constants (`a_reference_of_the_host_is_not_suggested`). Neither are NaNs: native code may
    /// hold a NaN with other bits (`jit::Nans::Platform`). Of references that move, only zero is a
    /// constant: any other profiled word is out of date.
    fn may_be(&self, value: Value, bits: u64) -> bool {
        let ty = self.base.value_type(value);
        !is_nan(ty, bits)
            && (ty.is_number() || reference::is_constant(self.module.funcs.len(), ty, bits))
    }

    fn arguments(&self) -> Vec<Suggestion> {
        let (base, profile) = (self.base, self.profile);
        if profile.calls < self.least {
            return Vec::new();
        }
        let first = base.first_inst(base.entry());
        let all = base.arguments().iter().zip(&profile.arguments);
        let constant = all.filter_map(|(value, bits)| Some((*value, (*bits)?)));
        let constant = constant.filter(|(value, bits)| self.may_be(*value, *bits));
        let suggestion = |(value, bits)| {
            self.suggestion(
                first,
                value,
                Expected::Is(bits),
                Observed::Argument,
                self.folded(value),
            )
        };
        constant.map(suggestion).collect()
    }

    fn loads(&self) -> Vec<Suggestion> {
        let base = self.base;
        let hot = self.profile.values.iter().filter(|(load, _)| {
            let block = base.inst_block(**load);
            self.visits(block) >= self.least && self.cfg.is_reachable(block)
        });
        let suggestion = |(load, bits): (&Inst, &u64)| {
            let data = base.inst(*load);
            let observed = match data.opcode {
                Opcode::GlobalGet => Observed::Global,
                _ => Observed::Load,
            };
            let (value, next) = (data.result()?, base.next_inst(*load)?);
            self.may_be(value, *bits).then_some(())?;
            Some(self.suggestion(next, value, Expected::Is(*bits), observed, self.folded(value)))
        };
        hot.filter_map(suggestion).collect()
    }

    /// The instructions that a constant value saves: instructions that become constant, and
    /// branches on constants. Cost: up to [`REACH`] users.
    fn folded(&self, value: Value) -> i64 {
        let mut known = BTreeSet::from([value]);
        let mut work = vec![value];
        let (mut saved, mut left) = (0i64, REACH);
        while let Some(value) = work.pop() {
            for user in self.base.users(value) {
                let Some(rest) = left.checked_sub(1) else { return saved };
                left = rest;
                let data = self.base.inst(*user);
                let is_known =
                    |arg: &Value| known.contains(arg) || self.base.constant(*arg).is_some();
                let is_folded = match data.opcode {
                    Opcode::BrIf | Opcode::Switch => data.args[0] == value,
                    opcode => is_evaluated(opcode) && data.args.iter().all(is_known),
                };
                let result = data.result();
                if !is_folded || result.is_some_and(|result| !known.insert(result)) {
                    continue;
                }
                work.extend(result);
                let visits = self.visits(self.base.inst_block(*user));
                saved = saved.saturating_add(Self::saved(visits, 1));
            }
        }
        saved
    }
}
