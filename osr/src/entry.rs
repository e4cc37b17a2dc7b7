//! One entry: for one source point and one landing point.

use crate::derive::{Deriver, Expr};
use crate::keep::kept_values;
use crate::reason::Obstacle;
use crate::source::SourcePoint;
use ir::mapping::{Assign, Entry, Operand, Replay, Step};
use ir::{Function, Inst, Opcode, Point, Type, Value};
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// What an entry costs: kept values that are no arguments, kept arguments, size of the compensation
/// code.
pub(crate) type Cost = (usize, usize, usize);

/// What an entry is to do.
#[derive(Clone, Copy)]
pub(crate) struct Goal<'g> {
    pub(crate) target: Point,
    /// What it provides, exactly.
    pub(crate) needed: &'g [Value],
    /// The writes of the target version that it executes.
    pub(crate) replays: &'g [Inst],
}

impl Goal<'_> {
    /// Whether the entry of nothing to do does: the source point has everything under the same id,
    /// live.
    pub(crate) fn is_met_as_is(&self, deriver: &Deriver<'_, '_>, here: &SourcePoint) -> bool {
        self.replays.is_empty() && self.needed.iter().all(|v| deriver.reads_itself(here, *v))
    }

    /// The entry of nothing to do.
    pub(crate) fn as_is(&self) -> Entry {
        let assigns =
            self.needed.iter().map(|v| Assign { value: *v, from: Operand::Source(*v) }).collect();
        let (target, requires) = (self.target, self.needed.to_vec());
        Entry {
            target,
            steps: Vec::new(),
            replays: Vec::new(),
            assigns,
            requires,
            kept: Vec::new(),
        }
    }

    /// What it provides, and then what its writes read.
    fn wanted(&self, q: &Function) -> SmallVec<[Value; 16]> {
        let written = self.replays.iter().flat_map(|i| q.inst(*i).args.iter().copied());
        self.needed.iter().copied().chain(written).collect()
    }
}

/// An expression for each value that an entry provides and each that its writes read.
pub(crate) type Derived = SmallVec<[u32; 16]>;

/// Derives what an entry needs without keeping anything.
///
/// # Errors
/// A value that cannot be had: one of which that is known already, or else the first.
pub(crate) fn derive(
    deriver: &mut Deriver<'_, '_>,
    here: &SourcePoint,
    goal: &Goal<'_>,
) -> Result<Derived, Value> {
    let wanted = goal.wanted(deriver.q.f);
    match wanted.iter().find(|v| deriver.is_lost(**v)) {
        Some(value) => Err(*value),
        None => wanted.into_iter().map(|value| deriver.derive(here, value).ok_or(value)).collect(),
    }
}

/// Derives what an entry needs with `keeper`, which keeps what has to be; `deriver` keeps nothing.
///
/// # Errors
/// What stands in the way whatever is kept.
pub(crate) fn derive_keeping(
    (deriver, keeper): (&mut Deriver<'_, '_>, &mut Deriver<'_, '_>),
    here: &SourcePoint,
    goal: &Goal<'_>,
) -> Result<Derived, Obstacle> {
    let wanted = goal.wanted(deriver.q.f);
    let lost: SmallVec<[Value; 8]> =
        wanted.iter().copied().filter(|v| deriver.derive(here, *v).is_none()).collect();
    let kept = match lost.is_empty() {
        true => BTreeSet::new(),
        false => {
            kept_values(deriver, here, &lost).ok_or_else(|| unkeepable(deriver, here, &lost))?
        }
    };
    keeper.restart();
    kept.iter().for_each(|v| keeper.keep(*v));
    let derived =
        wanted.into_iter().map(|v| keeper.derive(here, v).ok_or_else(|| keeper.explain(here, v)));
    derived.collect()
}

/// Why lost values cannot be had: the first of them that cannot whatever is kept.
fn unkeepable(deriver: &mut Deriver<'_, '_>, here: &SourcePoint, lost: &[Value]) -> Obstacle {
    let alone = |value: &&Value| kept_values(deriver, here, std::slice::from_ref(*value)).is_none();
    let value = *lost.iter().find(alone).unwrap_or(&lost[0]);
    deriver.explain(here, value)
}

/// What an entry would cost at its source point, as [`assemble`] would make it.
pub(crate) fn cost(
    deriver: &mut Deriver<'_, '_>,
    here: &SourcePoint,
    goal: &Goal<'_>,
    derived: &Derived,
) -> Cost {
    let copies = changed(deriver, goal, derived).count();
    let (steps, read) = deriver.tally(derived);
    let mut kept: SmallVec<[Value; 8]> = read.into_iter().filter(|v| !here.is_live(*v)).collect();
    kept.sort_unstable();
    kept.dedup();
    let arguments = kept.iter().filter(|v| deriver.p.is_argument(**v)).count();
    (kept.len() - arguments, arguments, steps + goal.replays.len() + copies)
}

/// The values provided that are not read under their own id.
pub(crate) fn changed<'d>(
    deriver: &'d Deriver<'_, '_>,
    goal: &Goal<'d>,
    derived: &'d Derived,
) -> impl Iterator<Item = Value> + 'd {
    let is_itself = |value: Value, expr: u32| matches!(deriver.exprs[expr as usize], Expr::Source(v) if v == value);
    goal.needed
        .iter()
        .zip(derived)
        .filter(move |(value, expr)| !is_itself(**value, **expr))
        .map(|(value, _)| *value)
}

/// The entry that does what was derived.
pub(crate) fn assemble(
    deriver: &Deriver<'_, '_>,
    here: &SourcePoint,
    goal: &Goal<'_>,
    derived: &Derived,
) -> Entry {
    let Goal { target, needed, replays } = *goal;
    let done = vec![None; deriver.exprs.len()];
    let mut emitter = Emitter { deriver, done, steps: Vec::new(), requires: Vec::new() };
    let assigns = needed
        .iter()
        .zip(derived)
        .map(|(value, expr)| Assign { value: *value, from: emitter.emit(*expr) })
        .collect();
    let mut read = derived[needed.len()..].iter();
    let replays = replays.iter().map(|inst| {
        let data = deriver.q.f.inst(*inst);
        let args = read.by_ref().take(data.args.len()).map(|expr| emitter.emit(*expr)).collect();
        Replay { inst: *inst, opcode: data.opcode, ty: data.ty, imm: data.imm, args }
    });
    let replays = replays.collect();
    let Emitter { steps, mut requires, .. } = emitter;
    requires.sort_unstable();
    requires.dedup();
    let is_kept = |v: &Value| !here.is_live(*v);
    let kept = requires.iter().copied().filter(is_kept).collect();
    Entry { target, steps, replays, assigns, requires, kept }
}

/// Turns expressions into steps, each once.
struct Emitter<'a, 'b, 'v> {
    deriver: &'a Deriver<'b, 'v>,
    /// By expression.
    done: Vec<Option<Operand>>,
    steps: Vec<Step>,
    requires: Vec<Value>,
}

impl Emitter<'_, '_, '_> {
    fn emit(&mut self, root: u32) -> Operand {
        let mut stack: SmallVec<[u32; 8]> = SmallVec::from_iter([root]);
        while let Some(&expr) = stack.last() {
            if self.done[expr as usize].is_some() {
                stack.pop();
                continue;
            }
            match &self.deriver.exprs[expr as usize] {
                Expr::Source(value) => {
                    self.requires.push(*value);
                    self.done[expr as usize] = Some(Operand::Source(*value));
                }
                Expr::Constant { ty, bits } => {
                    let (ty, bits, opcode) = (*ty, *bits, Opcode::Const);
                    self.push(
                        expr,
                        Step { opcode, ty, operand_ty: ty, bits, args: SmallVec::new() },
                    );
                }
                Expr::Op { args, .. } => {
                    match args.iter().find(|a| self.done[**a as usize].is_none()) {
                        Some(first) => stack.push(*first),
                        None => {
                            let step = self.step(expr);
                            self.push(expr, step);
                        }
                    }
                }
            }
        }
        self.done[root as usize].expect("the loop ends when the root is done")
    }

    fn push(&mut self, expr: u32, step: Step) {
        self.done[expr as usize] = Some(Operand::Step(self.steps.len() as u32));
        self.steps.push(step);
    }

    fn step(&self, expr: u32) -> Step {
        let Expr::Op { inst, in_source, args } = &self.deriver.exprs[expr as usize] else {
            unreachable!("only operations become steps")
        };
        let f = if *in_source { self.deriver.p.f } else { self.deriver.q.f };
        let data = f.inst(*inst);
        let operand_ty: Type = data.args.first().map_or(data.ty, |v| f.value_type(*v));
        let args: SmallVec<[Operand; 2]> =
            args.iter().map(|a| self.done[*a as usize].expect("operands come first")).collect();
        Step {
            opcode: data.opcode,
            ty: data.ty,
            operand_ty,
            bits: data.constant().unwrap_or(0),
            args,
        }
    }
}
