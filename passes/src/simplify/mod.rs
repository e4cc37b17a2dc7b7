//! Algebraic simplification of integer operations.
//!
//! *Does*: replaces an operation by an operand, a constant or one simpler operation, according to
//! the rules in [`ir::rules`], which hold for all inputs, and the rules that the embedder declares
//! (`declared`).
//!
//! *Does not*: touch floating point; look further than an operation and the definitions of its
//! operands (the analysis of possible bits follows a few more levels).
//!
//! *Needs on entry*: nothing.
//!
//! *Holds on exit*: no rule fits an operation, unless an inner result of the pattern has other
//! uses.
//!
//! *Actions emitted*: `add`, `replace_all`, `delete`.
//!
//! *Effect on mappings*: links the old result with an operand, a constant or the new result. A new
//! operation has a new id, so no id changes its meaning.
//!
//! *Why correct*: each rule is an equation in the integers modulo a power of two. Solvers prove
//! each for all values at every width (`provers`). A test applies each and evaluates both sides on
//! all 8-bit values of its variables. An operation that may trap stays in place unless the rule
//! implies that it cannot.
//!
//! *Cost*: linear in instructions, times the rules of one opcode.

mod bits;
mod declared;
#[cfg(test)]
mod tests;

use declared::DeclaredRewrite;
use ir::cfg::Cfg;
use ir::edit::{Editor, Pass};
use ir::rules::{Pat, Rule};
use ir::{Function, Imm, Inst, InstSpec, Opcode, Type, Value};
use number::{Operands, RightSide, RuleIndex};
use smallvec::SmallVec;

/// The pass. See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct Simplify;

impl Pass for Simplify {
    fn name(&self) -> &'static str {
        "simplify"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        let rules = RuleIndex::default();
        // Definitions before uses, so that the rules see the simplified operands.
        let cfg = Cfg::new(ed.func());
        let insts: Vec<Inst> = cfg.rpo().iter().flat_map(|b| ed.func().block_insts(*b)).collect();
        for inst in insts {
            let mut next = Some(inst);
            while let Some(inst) = next {
                let mut about = rules.of(ed.func().inst(inst).opcode).map(|at| rules.get(at).1);
                let found = about.find_map(|rule| try_rule(ed.func(), inst, rule));
                // A new operation may match another rule.
                next = match found {
                    Some(rewrite) if ed.plan(rewrite.rule) => rewrite.apply(ed, inst),
                    Some(_) => None,
                    None => match DeclaredRewrite::find(ed.func(), inst) {
                        Some(rewrite) if ed.plan("declared") => rewrite.apply(ed, inst),
                        _ => None,
                    },
                };
            }
        }
    }
}

struct Rewrite {
    rule: &'static str,
    right: RightSide<Value>,
}

/// A function as the matcher sees it: at most one operation computes a value.
struct SimplifiedValues<'f>(&'f Function);

impl Operands for SimplifiedValues<'_> {
    type Id = Value;

    fn constant(&self, value: Value) -> Option<u64> {
        self.0.constant(value)
    }

    fn ty(&self, value: Value) -> Option<Type> {
        Some(self.0.value_type(value))
    }

    fn possible(&self, value: Value) -> u64 {
        bits::possible(self.0, value)
    }

    fn operations(
        &self,
        value: Value,
        opcode: Opcode,
    ) -> impl Iterator<Item = (Value, SmallVec<[Value; 3]>)> {
        let data = self.0.defining_inst(value).map(|inst| self.0.inst(inst));
        data.filter(|data| data.opcode == opcode)
            .map(|data| (value, data.args.iter().copied().collect()))
            .into_iter()
    }

    fn typed(&self, value: Value) -> Option<(Type, Imm)> {
        self.0.defining_inst(value).map(|inst| (self.0.inst(inst).ty, self.0.inst(inst).imm))
    }
}

/// Applies a rule to an instruction; `None` if the rule does not fit or does not pay.
fn try_rule(function: &Function, inst: Inst, rule: &Rule) -> Option<Rewrite> {
    let data = function.inst(inst);
    let result = data.result()?;
    if function.users(result).is_empty() {
        return None;
    }
    let (on, ty) = (SimplifiedValues(function), function.value_type(result));
    let right = number::apply(&on, rule, data.ty, &data.args, ty)?.right;
    // A new operation pays only if the inner operation of the pattern becomes dead.
    let is_new = !matches!(right, RightSide::Operand(_) | RightSide::Constant(_));
    let looks_through = rule.operands.iter().any(|p| matches!(p, Pat::Op(..)));
    let is_shared = |v: &Value| function.constant(*v).is_none() && function.users(*v).len() > 1;
    let inner_stays = looks_through && data.args.iter().any(is_shared);
    (!is_new || !inner_stays).then_some(Rewrite { rule: rule.name, right })
}

impl Rewrite {
    /// Replaces the result of `inst`. Returns the new operation, if one was made.
    fn apply(&self, ed: &mut Editor<'_>, inst: Inst) -> Option<Inst> {
        let result =
            ed.func().inst(inst).result().expect("a simplified instruction has one result");
        let ty_of = |ed: &Editor<'_>, v: Value| ed.func().value_type(v);
        let op = |ed: &Editor<'_>, opcode, args: &[Value]| {
            InstSpec::new(opcode, ty_of(ed, args[0]), Imm::None, args)
        };
        let (after, new) = match &self.right {
            RightSide::Operand(value) => (*value, false),
            RightSide::Constant(bits) => {
                (ed.add_value(InstSpec::constant(ty_of(ed, result), *bits), inst), false)
            }
            RightSide::Operation(opcode, args) => (ed.add_value(op(ed, *opcode, args), inst), true),
            RightSide::WithConstant(opcode, x, bits) => {
                let constant = ed.add_value(InstSpec::constant(ty_of(ed, *x), *bits), inst);
                (ed.add_value(op(ed, *opcode, &[*x, constant]), inst), true)
            }
        };
        ed.replace_all(result, after);
        if !ed.func().may_trap(inst) {
            ed.delete(inst);
        }
        ed.func().defining_inst(after).filter(|_| new)
    }
}
