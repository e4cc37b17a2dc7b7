//! A true action of one log, appended to another.
use ir::edit::{Action, ActionLog};

fn forge(log: &mut ActionLog, action: &Action) {
    log.push(action.clone());
}

fn main() {}
