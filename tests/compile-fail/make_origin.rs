//! An action of one pass that names another pass as its origin.
use ir::edit::Origin;

fn forge(from: Origin) -> Origin {
    Origin { pass: "gvn", rule: "equal", site: from.site() }
}

fn main() {}
