//! A log assembled from selected actions.
use ir::edit::ActionLog;

fn forge(log: &ActionLog) -> ActionLog {
    log.actions().iter().rev().cloned().collect()
}

fn main() {}
