//! A replay that starts from another version than the log.
use ir::Function;
use ir::edit::{ActionLog, Replayer};

fn forge(function: Function, log: &ActionLog) -> Replayer<'_> {
    Replayer { function, actions: log.actions().iter().enumerate() }
}

fn main() {}
