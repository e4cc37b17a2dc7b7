//! An action that the editor never performed.
use ir::edit::{Action, ActionKind, Origin};

fn forge(kind: ActionKind, origin: Origin) -> Action {
    Action { kind, stamp: 0, origin }
}

fn main() {}
