//! A log with some of its actions left out.
use ir::edit::ActionLog;

fn forge(log: &ActionLog) -> ActionLog {
    ActionLog { start: log.start(), actions: log.actions()[1..].to_vec() }
}

fn main() {}
