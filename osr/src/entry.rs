//! One entry: for one source point and one landing point.

use crate::derive::{Deriver, Expr};
use crate::keep::kept_values;
use crate::level::Level;
use crate::pair::Side;
use crate::reason::{Obstacle, Reason};
use crate::source::SourcePoint;
use ir::mapping::{Assign, Entry, Operand, Replay, Step};
use ir::seeded::{Bug, seeded};
use ir::{Inst, Opcode, Point, Type, Value};
use smallvec::SmallVec;

/// What an entry costs: kept values that are no arguments, kept arguments, size of the compensation code.
pub(crate) type Cost = (usize, usize, usize);

/// The entry from the source point to `target` that provides exactly `needed`, and executes the writes `replays` of
/// the target version.
///
/// # Errors
/// What stands in the way, when there is none at this level.
pub(crate) fn build(
    deriver: &mut Deriver<'_, '_>,
    here: &SourcePoint,
    target: Point,
    needed: &[Value],
    replays: &[Inst],
) -> Result<Entry, Obstacle> {
    let written = replays.iter().flat_map(|i| deriver.q.f.inst(*i).args.iter().copied());
    let wanted: SmallVec<[Value; 16]> = needed.iter().copied().chain(written).collect();
    let goal = Goal { target, needed, wanted: &wanted, replays };
    let mut results: Vec<u32> = Vec::with_capacity(needed.len());
    let mut lost: Vec<Value> = Vec::new();
    let mut obstacle = None;
    for &value in goal.wanted {
        match deriver.derive(here, value) {
            Ok(expr) => results.push(expr),
            Err(why) => {
                lost.push(value);
                obstacle.get_or_insert(why);
            }
        }
    }
    if let Some(why) = obstacle {
        if deriver.level < Level::Avail {
            return Err(why);
        }
        let Some(kept) = kept_values(deriver, here, &lost) else { return Err(unkeepable(deriver, here, &lost, why)) };
        deriver.restart();
        kept.iter().for_each(|v| deriver.keep(*v));
        let rebuilt: Result<Vec<u32>, Obstacle> = wanted.iter().map(|v| deriver.derive(here, *v)).collect();
        let entry = rebuilt.map(|results| assemble(deriver, here, &goal, &results));
        // What was derived from kept values must not be met by the next landing point.
        deriver.restart();
        return entry;
    }
    let entry = assemble(deriver, here, &goal, &results);
    if deriver.level == Level::Empty && !entry.is_empty() {
        let changed = entry.assigns.iter().find(|a| !a.is_identity()).map(|a| a.value);
        return Err(Obstacle { value: changed, ..Obstacle::new(Reason::NotLive) });
    }
    Ok(entry)
}

/// The first of the lost values that cannot be derived whatever is kept.
fn unkeepable(deriver: &mut Deriver<'_, '_>, here: &SourcePoint, lost: &[Value], first: Obstacle) -> Obstacle {
    for value in lost {
        if kept_values(deriver, here, std::slice::from_ref(value)).is_none()
            && let Err(why) = deriver.derive(here, *value)
        {
            return why;
        }
    }
    first
}

/// What an entry costs at its source point.
pub(crate) fn cost(entry: &Entry, p: &Side<'_>) -> Cost {
    let kept_args = entry.kept.iter().filter(|v| p.is_argument(**v)).count();
    (entry.kept.len() - kept_args, kept_args, entry.size())
}

/// What an entry is to do.
struct Goal<'g> {
    target: Point,
    /// What it provides.
    needed: &'g [Value],
    /// That, and then what the writes read.
    wanted: &'g [Value],
    replays: &'g [Inst],
}

fn assemble(deriver: &Deriver<'_, '_>, here: &SourcePoint, goal: &Goal<'_>, results: &[u32]) -> Entry {
    let Goal { target, needed, replays, .. } = *goal;
    let done = vec![None; deriver.exprs.len()];
    let mut emitter = Emitter { deriver, done, steps: Vec::new(), requires: Vec::new() };
    let assigns =
        needed.iter().zip(results).map(|(value, expr)| Assign { value: *value, from: emitter.emit(*expr) }).collect();
    let mut read = results[needed.len()..].iter();
    let replays = replays.iter().map(|inst| {
        let data = deriver.q.f.inst(*inst);
        let args = read.by_ref().take(data.args.len()).map(|expr| emitter.emit(*expr)).collect();
        Replay { inst: *inst, opcode: data.opcode, ty: data.ty, imm: data.imm, args }
    });
    let replays = replays.collect();
    let Emitter { steps, mut requires, .. } = emitter;
    requires.sort_unstable();
    requires.dedup();
    let is_kept = |v: &Value| !here.is_live(*v) && !seeded(Bug::KeptNotListed);
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
                    let mask = if seeded(Bug::ConstantTooNarrow) { 0xff } else { u64::MAX };
                    let (ty, bits, opcode) = (*ty, *bits & mask, Opcode::Const);
                    self.push(expr, Step { opcode, ty, operand_ty: ty, bits, args: SmallVec::new() });
                }
                Expr::Op { args, .. } => match args.iter().find(|a| self.done[**a as usize].is_none()) {
                    Some(first) => stack.push(*first),
                    None => {
                        let step = self.step(expr);
                        self.push(expr, step);
                    }
                },
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
        let operand_ty = if seeded(Bug::StepOperandType) { data.ty } else { operand_ty };
        let mut args: SmallVec<[Operand; 2]> =
            args.iter().map(|a| self.done[*a as usize].expect("operands come first")).collect();
        if seeded(Bug::StepOperandsSwapped) {
            args.reverse();
        }
        Step { opcode: data.opcode, ty: data.ty, operand_ty, bits: data.constant().unwrap_or(0), args }
    }
}
