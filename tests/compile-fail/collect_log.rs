//! A log put together from chosen actions.
use ir::edit::ActionLog;

fn forge(log: &ActionLog) -> ActionLog {
    log.actions().iter().rev().cloned().collect()
}

fn main() {}
