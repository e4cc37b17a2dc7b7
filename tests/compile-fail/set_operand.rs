//! An operand changed through the accessor that shows it.
use ir::{Function, Inst, Value};

fn forge(function: &mut Function, inst: Inst, value: Value) {
    function.inst(inst).args[0] = value;
}

fn main() {}
