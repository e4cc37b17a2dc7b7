//! The bits of an integer that may be set.

use ir::rules::{Operand, possible_bits};
use ir::{Function, Value};
use smallvec::SmallVec;

/// The number of levels of definitions that the search follows: a bound on cost. A smaller bound
/// gives a larger mask, which is still correct.
const DEPTH: u32 = 4;

/// A mask of every bit that the value may have set. Cost: bounded by [`DEPTH`].
pub(super) fn possible(function: &Function, value: Value) -> u64 {
    within(function, value, DEPTH)
}

fn within(function: &Function, value: Value, depth: u32) -> u64 {
    let ty = function.value_type(value);
    let Some(data) = function.defining_inst(value).map(|i| function.inst(i)) else {
        return ty.mask();
    };
    if let Some(bits) = data.constant() {
        return bits;
    }
    let of = |arg: &Value| Operand {
        possible: match depth.checked_sub(1) {
            Some(depth) => within(function, *arg, depth),
            None => function.value_type(*arg).mask(),
        },
        constant: function.constant(*arg),
    };
    let operands: SmallVec<[Operand; 3]> = data.args.iter().map(of).collect();
    possible_bits(data.opcode, data.ty, ty, &operands)
}
