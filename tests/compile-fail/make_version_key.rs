//! A mapping that claims to belong to versions it was not synthesized for.
use transition::VersionKey;

fn forge() -> VersionKey {
    VersionKey { stamp: 0, history: 0 }
}

fn main() {}
