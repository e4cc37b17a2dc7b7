//! An action of a pass that names a different pass as its origin.
use ir::edit::Origin;

fn forge(from: Origin) -> Origin {
    Origin { pass: "gvn", rule: "equal", site: from.site() }
}

fn main() {}
