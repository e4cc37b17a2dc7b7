//! A function changed through its fields.
use ir::Function;

fn forge(function: &mut Function) {
    function.layout.clear();
}

fn main() {}
