//! The mutations below the editor, called past it.
use ir::{Function, Inst};

fn forge(function: &mut Function, inst: Inst) {
    function.remove_inst(inst);
}

fn main() {}
