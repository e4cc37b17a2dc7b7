//! Which bits of an integer may be set.

use ir::{Function, Opcode, Value, ValueDef};

/// How many definitions deep the question is followed: bounds the cost, not what is right.
const DEPTH: u32 = 4;

/// A mask with every bit that the value can have set. Cost: bounded.
pub(super) fn possible(function: &Function, value: Value) -> u64 {
    within(function, value, DEPTH)
}

fn within(function: &Function, value: Value, depth: u32) -> u64 {
    let all = function.value_type(value).mask();
    let ValueDef::Result(inst, _) = function.value_def(value) else { return all };
    let data = function.inst(inst);
    if let Some(bits) = data.constant() {
        return bits;
    }
    let Some(depth) = depth.checked_sub(1) else { return all & narrowest(data.opcode) };
    let of = |index: usize| within(function, data.args[index], depth);
    let shift = || function.constant(data.args[1]).map(|k| (k % u64::from(data.ty.bits())) as u32);
    let found = match data.opcode {
        Opcode::And => of(0) & of(1),
        Opcode::Or | Opcode::Xor => of(0) | of(1),
        Opcode::Select => of(1) | of(2),
        Opcode::Uextend | Opcode::Wrap => of(0),
        Opcode::Ushr => shift().map_or(all, |k| of(0) >> k),
        Opcode::Shl => shift().map_or(all, |k| of(0) << k),
        opcode => narrowest(opcode),
    };
    found & all
}

/// The bits an operation can set whatever its operands are.
fn narrowest(opcode: Opcode) -> u64 {
    use ir::Shape;
    match opcode.shape() {
        Shape::IntTest | Shape::IntCompare | Shape::FloatCompare => 1,
        _ => match opcode {
            Opcode::Uload8 => 0xff,
            Opcode::Uload16 => 0xffff,
            Opcode::Uload32 => 0xffff_ffff,
            _ => u64::MAX,
        },
    }
}
