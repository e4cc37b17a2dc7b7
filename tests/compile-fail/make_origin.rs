//! An action of one pass that says another did it.
use ir::edit::Origin;

fn forge(from: Origin) -> Origin {
    Origin { pass: "gvn", rule: "equal", site: from.site() }
}

fn main() {}
