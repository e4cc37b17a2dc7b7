//! An action that was never carried out.
use ir::edit::{Action, ActionKind, Origin};

fn forge(kind: ActionKind, origin: Origin) -> Action {
    Action { kind, stamp: 0, origin }
}

fn main() {}
