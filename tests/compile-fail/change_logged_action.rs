//! An action changed after the editor recorded it.
use ir::edit::{Action, ActionLog};

fn forge(log: &mut ActionLog, other: &Action) {
    log.actions()[0] = other.clone();
}

fn main() {}
