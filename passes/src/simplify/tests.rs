//! Tests of every rule against the evaluator of operations.

use super::try_rule;
use cranelift_entity::EntityRef;
use ir::edit::{Editor, Fuel, Pass, apply};
use ir::eval::eval;
use ir::rules::{Guard, Pat, RULES, Rule};
use ir::{Function, FunctionBuilder, Imm, InstSpec, Opcode, Shape, Signature, Type, Value};
use smallvec::SmallVec;

/// Applies one rule to every instruction that it fits.
struct OneRule(&'static Rule);

impl Pass for OneRule {
    fn name(&self) -> &'static str {
        self.0.name
    }

    fn run(&self, ed: &mut Editor<'_>) {
        let insts: Vec<_> = ed.func().all_insts().collect();
        for inst in insts {
            let fits = ed.func().inst(inst).opcode == self.0.opcode;
            if let Some(rewrite) = fits.then(|| try_rule(ed.func(), inst, self.0)).flatten() {
                assert!(ed.plan(rewrite.rule));
                rewrite.apply(ed, inst);
            }
        }
    }
}

/// Builds the left side of a rule as a function of `X` and `Y`, both of type `ty`.
struct Instance {
    builder: FunctionBuilder,
    ty: Type,
    x: Value,
    y: Value,
    c: u64,
    d: u64,
}

impl Instance {
    fn of(rule: &Rule, ty: Type, c: u64, d: u64) -> Option<Function> {
        let mut builder = FunctionBuilder::new(rule.name, Signature::new(&[ty, ty], &[]));
        let entry = builder.create_block();
        let (mut x, y) = (builder.append_param(entry, ty), builder.append_param(entry, ty));
        builder.switch_to(entry);
        let mask = match rule.guard {
            Guard::Always => None,
            Guard::XIsBool => Some(1),
            Guard::CCoversX => Some(c & ty.mask()),
            // The constant that this guard is about has a type of twice the width.
            Guard::CAboveX if c & ty.mask() != 0 => return None,
            Guard::CAboveX => None,
            Guard::XMissesD => Some(!d & ty.mask()),
            Guard::XWithin(bits) => Some(bits & ty.mask()),
            Guard::CCovers(bits) if bits & !c != 0 => return None,
            Guard::CWithin(bits) if c & ty.mask() & !bits != 0 => return None,
            Guard::CCovers(_) | Guard::CWithin(_) => None,
            Guard::XBelowD => Some((1 << (d % u64::from(ty.bits()))) - 1),
        };
        if let Some(mask) = mask {
            let mask = builder.constant(ty, mask);
            x = builder.op(Opcode::And, ty, &[x, mask]);
        }
        let mut instance = Instance { builder, ty, x, y, c, d };
        let result = instance.op(rule.opcode, rule.operands)?;
        instance.builder.ret(&[result]);
        instance.builder.finish().ok().map(|finished| finished.function)
    }

    fn op(&mut self, opcode: Opcode, pats: &[Pat]) -> Option<Value> {
        // Non-constant operands first: they determine the type of the constants.
        let built: Vec<Option<Value>> = pats.iter().map(|p| self.variable(*p)).collect();
        let type_of = |s: &Self, v: Option<Value>| v.map(|v| s.builder.function().value_type(v));
        let operand = type_of(self, built.iter().copied().flatten().last()).unwrap_or(self.ty);
        let ty = match opcode.shape() {
            Shape::Extend if operand == Type::I8 => Type::I16,
            Shape::Extend => Type::I64,
            Shape::Wrap => self.ty,
            _ => operand,
        };
        let mut args = Vec::new();
        for (pat, value) in pats.iter().zip(built) {
            args.push(match value {
                Some(value) => value,
                None => {
                    let bits = self.constant(*pat, operand)?;
                    self.builder.constant(operand, bits)
                }
            });
        }
        // Nothing extends a value to its own type.
        let is_wider = opcode.shape() != Shape::Extend || operand.bits() < ty.bits();
        let fits = opcode.allows_type(ty) && is_wider;
        fits.then(|| self.builder.insert_value(InstSpec::new(opcode, ty, Imm::None, &args)))
    }

    fn variable(&mut self, pat: Pat) -> Option<Value> {
        match pat {
            Pat::X => Some(self.x),
            Pat::Y => Some(self.y),
            Pat::Op(opcode, pats) => self.op(opcode, pats),
            _ => None,
        }
    }

    fn constant(&self, pat: Pat, ty: Type) -> Option<u64> {
        match pat {
            Pat::Zero => Some(0),
            Pat::One => Some(1),
            Pat::Ones => Some(ty.mask()),
            Pat::NonZero => Some(self.c & ty.mask()).filter(|c| *c != 0),
            Pat::Bits(bits) => Some(bits).filter(|b| b & !ty.mask() == 0),
            Pat::C => Some(self.c & ty.mask()),
            Pat::D => Some(self.d & ty.mask()),
            Pat::X | Pat::Y | Pat::Op(..) => None,
        }
    }
}

/// The result of a function of one block. `values` is scratch space for its values, by index.
fn run(function: &Function, args: [u64; 2], values: &mut Vec<u64>) -> u64 {
    values.resize(function.value_bound(), 0);
    for (value, bits) in function.arguments().iter().zip(args) {
        values[value.index()] = bits;
    }
    for inst in function.all_insts() {
        let data = function.inst(inst);
        let operands: SmallVec<[u64; 3]> = data.args.iter().map(|v| values[v.index()]).collect();
        if data.opcode == Opcode::Return {
            return operands[0];
        }
        let result = data.constant().unwrap_or_else(|| {
            let source = function.value_type(data.args[0]);
            eval(data.opcode, data.ty, source, &operands)
                .expect("no rule is about an operation that traps here")
        });
        values[data.result().expect("one result").index()] = result;
    }
    panic!("{} does not return", function.name());
}

/// Every 8-bit integer, or the boundary values of a wider type.
fn inputs(ty: Type) -> Vec<u64> {
    if ty == Type::I8 {
        return (0..256).collect();
    }
    let edges = [
        0,
        1,
        2,
        3,
        0x7f,
        0x80,
        0xff,
        0x100,
        0x7fff,
        0x8000,
        0xffff,
        0x1_0000,
        0x8000_0000,
        0xdead_beef,
    ];
    let edges = edges.into_iter().chain([
        0x1234_5678_9abc_def0,
        ty.mask() >> 1,
        ty.mask() / 2 + 1,
        ty.mask() - 1,
    ]);
    edges.chain([ty.mask()]).map(|b| b & ty.mask()).collect()
}

#[test]
fn every_rule_holds_for_all_inputs() {
    let constants =
        [1, 0, 2, 7, 0x55, 0x7f, 0x80, 0xfe, 0xff, 0xff00, 0xffff_ff80, 0xfff9 << 48, u64::MAX];
    let values = &mut Vec::new();
    for rule in RULES {
        let mut fired = 0;
        for ty in [Type::I8, Type::I32, Type::I64] {
            let choices =
                |is_used: bool| if is_used { constants.as_slice() } else { &constants[..1] };
            let cs = choices(
                rule.guard == Guard::CCoversX
                    || uses(rule.operands, &|p| matches!(p, Pat::C | Pat::NonZero)),
            );
            let ds = choices(uses(rule.operands, &|p| matches!(p, Pat::D)));
            for (c, d) in cs.iter().flat_map(|c| ds.iter().map(move |d| (*c, *d))) {
                let Some(before) = Instance::of(rule, ty, c, d) else {
                    continue;
                };
                let (after, log) =
                    apply(&before, &OneRule(rule), &mut Fuel::UNLIMITED.clone()).into_parts();
                if log.is_empty() {
                    continue;
                }
                fired += 1;
                let ys = inputs(ty)
                    .into_iter()
                    .step_by(if uses(rule.operands, &|p| matches!(p, Pat::Y)) { 1 } else { 1000 });
                let cases = ys.flat_map(|y| inputs(ty).into_iter().map(move |x| [x, y]));
                for case in cases {
                    assert_eq!(
                        run(&before, case, values),
                        run(&after, case, values),
                        "{} on {case:x?}, {c:x}, {d:x}",
                        rule.name
                    );
                }
            }
        }
        assert!(fired > 0, "{} never fits", rule.name);
    }
}

fn uses(pats: &[Pat], which: &dyn Fn(&Pat) -> bool) -> bool {
    pats.iter().any(|p| which(p) || matches!(p, Pat::Op(_, pats) if uses(pats, which)))
}

#[test]
fn names_of_rules_are_unique() {
    let mut names: Vec<&str> = RULES.iter().map(|r| r.name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}

/// A wrong rule must fail the comparison of the test above.
#[test]
fn a_wrong_rule_is_noticed() {
    static WRONG: Rule = Rule {
        name: "wrong",
        opcode: Opcode::Sub,
        ty: None,
        operands: &[Pat::Zero, Pat::X],
        guard: Guard::Always,
        result: ir::rules::Term::X,
    };
    let before = Instance::of(&WRONG, Type::I8, 0, 0).expect("a function");
    let values = &mut Vec::new();
    let after = apply(&before, &OneRule(&WRONG), &mut Fuel::UNLIMITED.clone()).into_parts().0;
    assert!(
        inputs(Type::I8)
            .into_iter()
            .any(|x| run(&before, [x, 0], values) != run(&after, [x, 0], values))
    );
}
