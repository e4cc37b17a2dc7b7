//! Algebraic simplification of integer operations.
//!
//! *Does*: replaces an operation by an operand, a constant or one simpler operation, by the rules in
//! [`ir::rules`], which hold for all inputs.
//!
//! *Does not*: touch floating point; look further than an operation and the definitions of its operands
//! (further only for which bits of a value may be set).
//!
//! *Needs on entry*: nothing.
//!
//! *Holds on exit*: no rule fits an operation, but where an inner result has other uses.
//!
//! *Actions emitted*: `add`, `replace_all`, `delete`.
//!
//! *Effect on mappings*: links the old result with an operand, a constant or the new result. A new operation
//! has a new id: no id changes what it computes.
//!
//! *Why correct*: each rule is an equation in the integers modulo two to the width. Solvers prove each for all values
//! at every width (`provers`); a test applies each and evaluates both sides on all 8-bit values of its variables. An operation that may trap is left in place when the rule
//! does not show that it cannot.
//!
//! *Cost*: linear in instructions, times the rules of one opcode.

mod bits;
#[cfg(test)]
mod tests;

use ir::cfg::Cfg;
use ir::edit::{Editor, Pass};
use ir::eval::eval;
use ir::rules::{Const, Guard, Pat, RULES, Rule, Term};
use ir::seeded::{Bug, seeded};
use ir::{Function, Imm, Inst, InstSpec, Opcode, Type, Value};

/// The pass. See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct Simplify;

impl Pass for Simplify {
    fn name(&self) -> &'static str {
        "simplify"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        let by_opcode = rules_by_opcode();
        // Definitions first, so that an operation sees what became of its operands.
        let cfg = Cfg::new(ed.func());
        let insts: Vec<Inst> = cfg.rpo().iter().flat_map(|b| ed.func().block_insts(*b)).collect();
        for inst in insts {
            let mut next = Some(inst);
            while let Some(inst) = next {
                let rules = &by_opcode[ed.func().inst(inst).opcode as usize];
                let Some(rewrite) = rules.iter().find_map(|r| try_rule(ed.func(), inst, r)) else { break };
                if !ed.plan(rewrite.rule) {
                    return;
                }
                // A new operation may be fit for another rule.
                next = rewrite.apply(ed, inst);
            }
        }
    }
}

/// By opcode, in the order of the table.
fn rules_by_opcode() -> Vec<Vec<&'static Rule>> {
    let mut lists = vec![Vec::new(); Opcode::ALL.len()];
    RULES.iter().for_each(|r| lists[r.opcode as usize].push(r));
    lists
}

/// What the variables of a rule stand for.
#[derive(Clone, Copy, Default, Debug)]
struct Bindings {
    x: Option<Value>,
    y: Option<Value>,
    c: Option<u64>,
    d: Option<u64>,
}

/// What replaces a result.
enum Outcome {
    Value(Value),
    Constant(u64),
    Unary(Opcode, Value),
    Binary(Opcode, Value, Value),
    WithConstant(Opcode, Value, u64),
}

struct Rewrite {
    rule: &'static str,
    outcome: Outcome,
}

/// What a rule makes of an instruction, if it fits.
fn try_rule(function: &Function, inst: Inst, rule: &Rule) -> Option<Rewrite> {
    let data = function.inst(inst);
    let result = data.result()?;
    if rule.ty.is_some_and(|t| t != data.ty) || function.users(result).is_empty() {
        return None;
    }
    let bindings = matches(function, data.opcode, &data.args, rule.operands, Bindings::default())?;
    if !guard_holds(function, rule.guard, bindings) {
        return None;
    }
    let outcome = outcome(function, inst, rule.result, bindings)?;
    // A new operation earns something only if the one it looks through goes.
    let is_new = !matches!(outcome, Outcome::Value(_) | Outcome::Constant(_));
    let looks_through = rule.operands.iter().any(|p| matches!(p, Pat::Op(..)));
    let is_shared = |v: &Value| function.constant(*v).is_none() && function.users(*v).len() > 1;
    let inner_stays = looks_through && data.args.iter().any(is_shared);
    (!is_new || !inner_stays).then_some(Rewrite { rule: rule.name, outcome })
}

/// Matches operands in order, or in the other order if the operation is commutative.
fn matches(f: &Function, opcode: Opcode, args: &[Value], pats: &[Pat], known: Bindings) -> Option<Bindings> {
    let in_order = |order: &[Value]| {
        let mut pairs = order.iter().zip(pats);
        pairs.try_fold(known, |known, (arg, pat)| matches_one(f, *arg, *pat, known))
    };
    match args {
        [a, b] if opcode.is_commutative() || seeded(Bug::SimplifyCommutesAll) => {
            in_order(&[*a, *b]).or_else(|| in_order(&[*b, *a]))
        }
        _ => in_order(args),
    }
}

fn matches_one(f: &Function, arg: Value, pat: Pat, mut known: Bindings) -> Option<Bindings> {
    let constant = f.constant(arg);
    let fits = match pat {
        Pat::X => *known.x.get_or_insert(arg) == arg || seeded(Bug::SimplifyForgetsRepeats),
        Pat::Y => *known.y.get_or_insert(arg) == arg,
        Pat::Zero => constant == Some(0),
        Pat::One if seeded(Bug::SimplifyOneIsNonZero) => constant.is_some_and(|b| b != 0),
        Pat::One => constant == Some(1),
        Pat::Ones if seeded(Bug::SimplifyOnesTooNarrow) => constant == Some(u64::from(u32::MAX)),
        Pat::Ones => constant == Some(f.value_type(arg).mask()),
        Pat::NonZero => constant.is_some_and(|b| b != 0),
        Pat::Bits(bits) => constant == Some(bits),
        Pat::C => constant.is_some_and(|b| *known.c.get_or_insert(b) == b),
        Pat::D => constant.is_some_and(|b| *known.d.get_or_insert(b) == b),
        Pat::Op(opcode, pats) => {
            let data = f.inst(f.defining_inst(arg)?);
            return (data.opcode == opcode).then(|| matches(f, opcode, &data.args, pats, known)).flatten();
        }
    };
    fits.then_some(known)
}

fn guard_holds(function: &Function, guard: Guard, bindings: Bindings) -> bool {
    let possible = || bindings.x.map_or(u64::MAX, |x| bits::possible(function, x));
    match guard {
        Guard::Always => true,
        _ if seeded(Bug::SimplifyIgnoresGuard) => true,
        Guard::XIsBool => possible() & !1 == 0,
        Guard::CCoversX => bindings.c.is_some_and(|c| possible() & !c == 0),
    }
}

/// What a rule makes of what it matched; `None` when the types do not agree.
fn outcome(function: &Function, inst: Inst, term: Term, b: Bindings) -> Option<Outcome> {
    let data = function.inst(inst);
    let ty = function.value_type(data.result()?);
    let value = |v: Option<Value>| v.filter(|v| function.value_type(*v) == ty).map(Outcome::Value);
    match term {
        Term::X => value(b.x),
        Term::Y if seeded(Bug::SimplifyTakesOtherArm) => value(b.x),
        Term::Y => value(b.y),
        Term::Operand(index) => value(data.args.get(index).copied()),
        Term::Zero => Some(Outcome::Constant(0)),
        Term::One => Some(Outcome::Constant(1)),
        Term::Ones => Some(Outcome::Constant(ty.mask())),
        Term::Unary(opcode) => Some(Outcome::Unary(opcode, b.x?)),
        Term::Binary(opcode) if seeded(Bug::SimplifyOperandsSwapped) => Some(Outcome::Binary(opcode, b.y?, b.x?)),
        Term::Binary(opcode) => Some(Outcome::Binary(opcode, b.x?, b.y?)),
        Term::WithConstant(opcode, constant) => {
            let bits = fold(constant, function.value_type(b.x?), b)?;
            Some(Outcome::WithConstant(opcode, b.x?, bits))
        }
    }
}

/// The bits of a constant made from those matched.
fn fold(constant: Const, ty: Type, b: Bindings) -> Option<u64> {
    match constant {
        Const::Bits(bits) => Some(bits),
        Const::CthenD(opcode) if seeded(Bug::SimplifyConstantsSwapped) => eval(opcode, ty, ty, &[b.d?, b.c?]).ok(),
        Const::DthenC(opcode) if seeded(Bug::SimplifyConstantsSwapped) => eval(opcode, ty, ty, &[b.c?, b.d?]).ok(),
        Const::CthenD(opcode) => eval(opcode, ty, ty, &[b.c?, b.d?]).ok(),
        Const::DthenC(opcode) => eval(opcode, ty, ty, &[b.d?, b.c?]).ok(),
    }
}

impl Rewrite {
    /// Replaces the result of `inst`. Returns the new operation, if one was made.
    fn apply(&self, ed: &mut Editor<'_>, inst: Inst) -> Option<Inst> {
        let result = ed.func().inst(inst).result().expect("a simplified instruction has one result");
        let (result_ty, ty_of) = (ed.func().value_type(result), |ed: &Editor<'_>, x| ed.func().value_type(x));
        let op = |opcode, ty, args: &[Value]| InstSpec::new(opcode, ty, Imm::None, args);
        let (after, new) = match self.outcome {
            Outcome::Value(value) => (value, false),
            Outcome::Constant(bits) => (ed.add_value(InstSpec::constant(result_ty, bits), inst), false),
            Outcome::Unary(opcode, x) => (ed.add_value(op(opcode, ty_of(ed, x), &[x]), inst), true),
            Outcome::Binary(opcode, x, y) => (ed.add_value(op(opcode, ty_of(ed, x), &[x, y]), inst), true),
            Outcome::WithConstant(opcode, x, bits) => {
                let constant = ed.add_value(InstSpec::constant(ty_of(ed, x), bits), inst);
                (ed.add_value(op(opcode, ty_of(ed, x), &[x, constant]), inst), true)
            }
        };
        ed.replace_all(result, after);
        if !ed.func().may_trap(inst) {
            ed.delete(inst);
        }
        ed.func().defining_inst(after).filter(|_| new)
    }
}
