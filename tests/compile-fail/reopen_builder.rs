//! A builder on a function that exists already.
use ir::{Function, FunctionBuilder};

fn forge(builder: &mut FunctionBuilder, function: Function) {
    builder.function = function;
}

fn main() {}
