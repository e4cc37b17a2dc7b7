//! An entry made by hand, compiled into a native transition.
use ir::Function;
use jit::{Engine, Version};
use std::sync::Arc;
use transition::mapping::Entry;

fn forge(engine: &Engine, source: &Function, entry: &Entry, target: &Arc<Version>) {
    engine.continuation(source, entry, target);
}

fn main() {}
