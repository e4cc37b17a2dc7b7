//! A version paired with the log of another version.
use ir::edit::{ActionLog, Applied};

fn forge(one: &Applied, other: ActionLog) -> Applied {
    Applied { function: one.function().clone(), log: other }
}

fn main() {}
