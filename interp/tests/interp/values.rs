//! The interpreter computes every operation on values as `eval` does.

use super::support::{define, returned, run};
use ir::eval::{eval, is_evaluated};
use ir::{Imm, InstSpec, Module, Opcode, Shape, TrapKind, Type};

/// All lists of operand types that an operation allows at a controlling type.
fn operand_types(op: Opcode, ty: Type) -> Vec<Vec<Type>> {
    let sources = |fits: &dyn Fn(Type) -> bool| {
        Type::ALL.into_iter().filter(|s| fits(*s)).map(|s| vec![s]).collect()
    };
    match op.shape() {
        Shape::IntUnary | Shape::IntTest | Shape::FloatUnary | Shape::RefTest => vec![vec![ty]],
        Shape::IntBinary | Shape::IntCompare | Shape::FloatBinary | Shape::FloatCompare => {
            vec![vec![ty, ty]]
        }
        Shape::RefCompare => vec![vec![Type::Ref; 2]],
        Shape::Extend => sources(&|s| s.is_int() && s.bits() < ty.bits()),
        Shape::Wrap => sources(&|s| s.is_int() && s.bits() > ty.bits()),
        Shape::IntToFloat => sources(&|s| matches!(s, Type::I32 | Type::I64)),
        Shape::FloatToInt => sources(&|s| s.is_float()),
        Shape::Promote => vec![vec![Type::F32]],
        Shape::Demote => vec![vec![Type::F64]],
        Shape::Bitcast => {
            sources(&|s| s.bits() == ty.bits() && s.is_number() && s.is_int() != ty.is_int())
        }
        Shape::Select => {
            Type::ALL.into_iter().filter(|c| c.is_int()).map(|c| vec![c, ty, ty]).collect()
        }
        shape => panic!("{shape:?} is not evaluated"),
    }
}

/// Operands with varied bits: small numbers, all ones, sign bits, and ordinary, infinite and NaN
/// floats.
fn samples(ty: Type) -> [u64; 12] {
    let float32 = [0x3f80_0000, 0xbfc0_0000, 0x7f80_0000, 0x7fc0_0000];
    let float64 = [0x3ff0 << 48, 0xbff8 << 48, 0x7ff0 << 48, 0x7ff8 << 48];
    let [f, g, h, i] = if ty.bits() == 32 { float32 } else { float64 };
    let sign = 1 << (ty.bits() - 1);
    [0, 1, 2, 7, 0x80, u64::MAX, sign, 0x0123_4567_89ab_cdef, f, g, h, i].map(|x| x & ty.mask())
}

#[test]
fn every_operation_at_every_type() {
    let mut checked = 0;
    for op in Opcode::ALL.iter().copied().filter(|op| is_evaluated(*op)) {
        for ty in Type::ALL.into_iter().filter(|ty| op.allows_type(*ty)) {
            for operands in operand_types(op, ty) {
                check(op, ty, &operands);
                checked += 1;
            }
        }
    }
    // If the opcode table lost operations, the loop above would test little. The bound was set
    // after a count of the rows.
    assert!(checked > 200, "only {checked} operations");
}

fn check(op: Opcode, ty: Type, operands: &[Type]) {
    let result = op.result_type(ty).expect("an operation on values has a result");
    let mut module = Module::new();
    let func = define(&mut module, "f", operands, &[result], |b, args| {
        let value = b.insert_value(InstSpec::new(op, ty, Imm::None, args));
        b.ret(&[value]);
    });
    for x in samples(operands[0]) {
        for y in samples(*operands.get(1).unwrap_or(&Type::I8)) {
            let args = &[x, y, 3][..operands.len()];
            let outcome = run(&module, func, args);
            match eval(op, ty, operands[0], args) {
                Ok(bits) => assert_eq!(
                    outcome,
                    returned(&[bits]),
                    "{}.{ty} of {operands:?} {args:x?}",
                    op.name()
                ),
                Err(kind) => assert_eq!(
                    outcome.trap(),
                    Some(kind),
                    "{}.{ty} of {operands:?} {args:x?}",
                    op.name()
                ),
            }
        }
        if operands.len() == 1 {
            assert!(eval(op, ty, operands[0], &[x]).is_ok() || op.can_trap());
        }
    }
}

#[test]
fn constants_keep_all_their_bits() {
    for ty in Type::ALL {
        let mut module = Module::new();
        let func = define(&mut module, "f", &[], &[ty], |b, _| {
            let value = b.constant(ty, 0xfedc_ba98_7654_3210);
            b.ret(&[value]);
        });
        assert_eq!(run(&module, func, &[]), returned(&[0xfedc_ba98_7654_3210 & ty.mask()]));
    }
}

#[test]
fn arguments_lose_bits_outside_their_type() {
    let mut module = Module::new();
    let func =
        define(&mut module, "f", &[Type::I8, Type::I64], &[Type::I8, Type::I64], |b, args| {
            b.ret(args);
        });
    assert_eq!(run(&module, func, &[0x1ff, u64::MAX]), returned(&[0xff, u64::MAX]));
}

#[test]
fn a_trap_names_function_and_instruction() {
    let mut module = Module::new();
    let mut division = None;
    let func = define(&mut module, "quotient", &[Type::I32], &[Type::I32], |b, args| {
        let zero = b.constant(Type::I32, 0);
        let value = b.op(Opcode::Udiv, Type::I32, &[args[0], zero]);
        division = b.function().defining_inst(value);
        b.ret(&[value]);
    });
    let outcome = run(&module, func, &[1]);
    assert_eq!(outcome.trap(), Some(TrapKind::DivisionByZero));
    let inst = division.expect("the division was made");
    assert_eq!(outcome.to_string(), format!("trap division_by_zero in @quotient at {inst}"));
}
