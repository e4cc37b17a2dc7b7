//! The mutations below the editor, called without the editor.
use ir::{Function, Inst};

fn forge(function: &mut Function, inst: Inst) {
    function.remove_inst(inst);
}

fn main() {}
