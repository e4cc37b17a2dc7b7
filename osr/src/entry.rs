//! The derivation of one entry, its cost and its code.

use crate::derive::Deriver;
use crate::goal::{DerivationCost, EntryGoal, LostValues};
use crate::keep::{forced_values, kept_values};
use crate::node::Expr;
use crate::reason::{Obstacle, Reason};
use crate::scratch::Scratch;
use crate::source::SourcePoint;
use ir::{Opcode, Type, Value};
use smallvec::SmallVec;
use std::collections::BTreeSet;
use transition::mapping::{Assign, EntryParts, Operand, Replay, Step};

/// One expression for each value of [`EntryGoal::wanted`], in that order.
pub(crate) type Derivation = Vec<u32>;

/// Derives every value that an entry needs, without keeping any. `derived` receives the derivation.
/// The error is a lost value; with `is_blamed`, the first lost value in the order of the goal.
pub(crate) fn derive(
    deriver: &mut Deriver<'_, '_>,
    here: &SourcePoint,
    goal: &EntryGoal<'_>,
    is_blamed: bool,
    derived: &mut Derivation,
) -> Result<(), Value> {
    derived.clear();
    derived.reserve(goal.odd().len());
    let (q, lost) = (deriver.q.f, |deriver: &Deriver<'_, '_>, v: &Value| deriver.is_lost(*v));
    // Deriving the values before one that is known to be lost would cost a search whose result
    // nobody reads. But which values are known depends on the source points before, and the points
    // searched at each level are others (`reasons_are_those_of_the_level_alone`).
    if !is_blamed && let Some(value) = goal.wanted(q).find(|v| lost(deriver, v)) {
        return Err(value);
    }
    for value in goal.wanted(q) {
        derived.push(deriver.derive(here, value).ok_or(value)?);
    }
    Ok(())
}

/// The search for kept values at one landing point. The next landing point often loses the same
/// values.
#[derive(Debug, Default)]
pub(crate) struct LastKept {
    /// The lost values; `None` before the first landing point.
    lost: Option<LostValues>,
    /// The nodes that the search has looked at.
    nodes: usize,
}

impl LastKept {
    /// Whether a landing point that costs as much as the last landing point needs no search, and is
    /// no better. `least` is the cost of the best entry. Takes the nodes of the search from the
    /// budget, as [`derive_keeping`] does.
    pub(crate) fn is_no_better(
        &self,
        deriver: &mut Deriver<'_, '_>,
        keeper: &Deriver<'_, '_>,
        here: &SourcePoint,
        goal: &EntryGoal<'_>,
        least: Option<DerivationCost>,
    ) -> bool {
        let Some(lost) = &self.lost else { return false };
        least.is_some_and(|least| least <= least_keeping_cost(deriver, here, goal, lost))
            || (!keeper.is_cut_off() && deriver.spend_all(self.nodes))
    }
}

/// The values that an entry needs and that cannot be had without keeping a value.
pub(crate) fn lost_values(
    deriver: &mut Deriver<'_, '_>,
    here: &SourcePoint,
    goal: &EntryGoal<'_>,
) -> LostValues {
    goal.wanted(deriver.q.f).filter(|v| deriver.derive(here, *v).is_none()).collect()
}

/// A lower bound for the cost of entries that keep values to provide the lost values.
pub(crate) fn least_keeping_cost(
    deriver: &mut Deriver<'_, '_>,
    here: &SourcePoint,
    goal: &EntryGoal<'_>,
    lost: &LostValues,
) -> DerivationCost {
    let forced = forced_values(deriver, here, lost).len();
    // A kept value may be provided under its own id, at no further cost.
    let least = goal.least_cost();
    DerivationCost { kept: forced, size: least.size.saturating_sub(forced), ..least }
}

/// Like [`least_keeping_cost`], given a known entry from the same source point, its cost, and the
/// lost values for which it keeps values. If this goal loses all of these too, it takes as many
/// kept values. A set that gives all values gives some, and from one source point both searches
/// choose the same ways to compute a value.
pub(crate) fn least_cost_of_more(
    goal: &EntryGoal<'_>,
    lost: &[Value],
    known: DerivationCost,
    fewer: &[Value],
) -> DerivationCost {
    let is_more = !fewer.is_empty() && fewer.iter().all(|value| lost.contains(value));
    let kept = if is_more { known.kept } else { 0 };
    let least = goal.least_cost();
    DerivationCost { kept, size: least.size.saturating_sub(kept), ..least }
}

/// Derives every value that an entry needs. `deriver` keeps nothing and has found the values that
/// are lost; `keeper` then reads the values that have to be kept. `last` describes the last landing
/// point tried from the same source point.
pub(crate) fn derive_keeping(
    deriver: &mut Deriver<'_, '_>,
    keeper: &mut Deriver<'_, '_>,
    here: &SourcePoint,
    last: &mut LastKept,
    goal: &EntryGoal<'_>,
    lost: LostValues,
    derived: &mut Derivation,
) -> Result<(), Obstacle> {
    derived.clear();
    let q = deriver.q.f;
    // For the same lost values the search would look at the same nodes and find the same set, if
    // its budget suffices. An outcome of a keeper that was cut off depends on earlier questions.
    let is_same = last.lost.as_ref() == Some(&lost) && !keeper.is_cut_off();
    if !is_same || !deriver.spend_all(last.nodes) {
        last.lost = None;
        let (nodes, given_up) = (deriver.nodes_left(), deriver.all_given_up.len());
        let kept = match lost.is_empty() {
            true => BTreeSet::new(),
            false => match deriver.kept_again(&lost) {
                Some(kept) => kept,
                None => {
                    let found = kept_values(deriver, here, &lost);
                    let kept = found.ok_or_else(|| unkeepable(deriver, here, &lost))?;
                    deriver.carry_kept(&lost, &kept, nodes, given_up);
                    kept
                }
            },
        };
        keeper.come_to_keeping(here, &kept);
        *last = LastKept { nodes: nodes - deriver.nodes_left(), lost: Some(lost) };
    }
    for value in goal.wanted(q) {
        derived.push(keeper.derive(here, value).ok_or_else(|| keeper.explain(here, value))?);
    }
    Ok(())
}

/// Why [`kept_values`] gave lost values up: explains the first that no set of kept values gives.
/// Without such a value, the search was too long.
fn unkeepable(deriver: &Deriver<'_, '_>, here: &SourcePoint, lost: &[Value]) -> Obstacle {
    match lost.iter().find(|value| deriver.is_hopeless(**value)) {
        Some(value) => deriver.explain_hopeless(here, *value),
        None => {
            let value = lost.iter().copied().find(|value| deriver.is_given_up(*value));
            Obstacle { value, ..Obstacle::new(Reason::TooLong) }
        }
    }
}

/// The cost of an entry at its source point, as [`assemble`] would make it.
pub(crate) fn cost(
    deriver: &mut Deriver<'_, '_>,
    here: &SourcePoint,
    goal: &EntryGoal<'_>,
    derived: &Derivation,
) -> DerivationCost {
    let copies = changed(deriver, goal, derived).count();
    // `tally` lists a value once for each expression that reads it; a kept value costs once.
    let (steps, mut kept) = deriver.tally(here, derived);
    kept.sort_unstable();
    kept.dedup();
    let arguments = kept.iter().filter(|v| deriver.p.is_argument(**v)).count();
    let size = steps + goal.replays.len() + copies;
    DerivationCost { kept: kept.len() - arguments, arguments, size }
}

/// The values provided from anything but the same id of the source version.
pub(crate) fn changed<'d>(
    deriver: &'d Deriver<'_, '_>,
    goal: &'d EntryGoal<'_>,
    derived: &'d Derivation,
) -> impl Iterator<Item = Value> + 'd {
    let is_itself = |value: Value, expr: u32| match deriver.exprs[expr as usize] {
        Expr::Source(source) => source == value,
        Expr::Constant { .. } | Expr::Op { .. } => false,
    };
    goal.odd()
        .iter()
        .zip(derived)
        .filter(move |(value, expr)| !is_itself(**value, **expr))
        .map(|(value, _)| *value)
}

/// Makes the entry of a derivation with this cost.
pub(crate) fn assemble<'g>(
    deriver: &mut Deriver<'_, '_>,
    here: &SourcePoint,
    goal: &EntryGoal<'g>,
    size: usize,
    derived: &Derivation,
) -> EntryParts<'g> {
    let EntryGoal { target, needed, replays, .. } = goal;
    let odd = goal.odd();
    // Expressions carry over from point to point: a new table would cost all of them.
    let mut done = std::mem::take(&mut deriver.emitted);
    done.clear();
    let copies = changed(deriver, goal, derived).count();
    let steps = Vec::with_capacity(size.saturating_sub(replays.len() + copies));
    let mut emitter = StepEmitter { deriver, done, steps, requires: SmallVec::new() };
    let assigns = odd.iter().zip(derived);
    let assigns = assigns.map(|(value, expr)| Assign { value: *value, from: emitter.emit(*expr) });
    let changed = assigns.filter(|assign| !assign.is_identity()).collect();
    // Behind the odd values, `derived` lists the operands of the writes, one write after the other
    // ([`EntryGoal::wanted`]). So each write takes one entry of `derived` for each operand.
    let mut read = derived[odd.len()..].iter();
    let replays = replays.iter().map(|inst| {
        let data = deriver.q.f.inst(*inst);
        let args = read.by_ref().take(data.args.len()).map(|expr| emitter.emit(*expr)).collect();
        Replay { inst: *inst, opcode: data.opcode, ty: data.ty, imm: data.imm, args }
    });
    let replays = replays.collect();
    let StepEmitter { steps, requires: mut read, done, .. } = emitter;
    deriver.emitted = done;
    read.sort_unstable();
    read.dedup();
    // An entry keeps every value that it reads and that is not live, whichever rule chose the
    // value. Arguments that `live_e` reads are among them. Values copied to their own ids are live.
    let is_kept = |v: &Value| !here.is_live(*v);
    let kept = read.iter().copied().filter(is_kept).collect();
    let (target, read) = (*target, read.into_vec());
    EntryParts { target, steps, replays, provided: needed, changed, read, kept }
}

/// Turns expressions into steps. A shared expression becomes one step.
struct StepEmitter<'a, 'b, 'v> {
    deriver: &'a Deriver<'b, 'v>,
    /// By expression: the operand that holds its result, once emitted.
    done: Scratch<Option<Operand>>,
    steps: Vec<Step>,
    requires: SmallVec<[Value; 16]>,
}

impl StepEmitter<'_, '_, '_> {
    fn emit(&mut self, root: u32) -> Operand {
        // The usual case first and apart: it spares the stack.
        if let Expr::Source(value) = self.deriver.exprs[root as usize] {
            self.requires.push(value);
            return Operand::Source(value);
        }
        // An explicit stack: a chain of operations may be as long as the function, and recursion
        // would overflow.
        let mut stack: SmallVec<[u32; 8]> = SmallVec::from_iter([root]);
        while let Some(&expr) = stack.last() {
            if self.done(expr).is_some() {
                stack.pop();
                continue;
            }
            match &self.deriver.exprs[expr as usize] {
                Expr::Source(value) => {
                    self.requires.push(*value);
                    self.done.set(expr as usize, Some(Operand::Source(*value)));
                }
                Expr::Constant { ty, bits } => {
                    let (ty, bits, opcode) = (*ty, *bits, Opcode::Const);
                    self.push(
                        expr,
                        Step { opcode, ty, operand_ty: ty, bits, args: SmallVec::new() },
                    );
                }
                Expr::Op { args, .. } => {
                    // One missing operand at a time: the expression stays on the stack below it and
                    // is looked at again. Steps thus come after the steps they read.
                    match args.iter().find(|a| self.done(**a).is_none()) {
                        Some(first) => stack.push(*first),
                        None => {
                            let step = self.step(expr);
                            self.push(expr, step);
                        }
                    }
                }
            }
        }
        self.done(root).expect("the loop ends when the root is done")
    }

    fn done(&self, expr: u32) -> Option<Operand> {
        self.done.get(expr as usize).flatten()
    }

    fn push(&mut self, expr: u32, step: Step) {
        self.done.set(expr as usize, Some(Operand::Step(self.steps.len() as u32)));
        self.steps.push(step);
    }

    fn step(&self, expr: u32) -> Step {
        let Expr::Op { inst, in_source, args } = &self.deriver.exprs[expr as usize] else {
            unreachable!("only operations become steps")
        };
        let f = if *in_source { self.deriver.p.f } else { self.deriver.q.f };
        // A conversion has an operand of another type than its own. Only the version that has the
        // instruction knows that type.
        let data = f.inst(*inst);
        let operand_ty: Type = data.args.first().map_or(data.ty, |v| f.value_type(*v));
        let args: SmallVec<[Operand; 2]> =
            args.iter().map(|a| self.done(*a).expect("operands come first")).collect();
        Step {
            opcode: data.opcode,
            ty: data.ty,
            operand_ty,
            bits: data.constant().unwrap_or(0),
            args,
        }
    }
}
