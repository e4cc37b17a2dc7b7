//! Entries from a version to itself: those by which runs enter native code of the base.

use ir::edit::ActionLog;
use osier::driver::{Derived, Format, NoObserver, certify_at, load};
use osr::Level;
use std::collections::BTreeSet;
use std::path::Path;
use transition::certificate::By;
use transition::{Pair, Side};

/// The certificate is made in one round without rewriting, and the checker accepts the entry at
/// each loop header all the same.
#[test]
fn loops_of_kernels_enter_themselves_without_reasons() {
    let mut held = 0;
    for name in ["sort", "mixed.o2", "vm", "edit.o2", "words", "calls.o2"] {
        let file = Path::new("tests/corpus").join(format!("{name}.wasm"));
        let bytes = std::fs::read(&file).expect("a kernel");
        let module = load(Format::Wasm, &bytes).expect("a module");
        for (_, base) in module.defined() {
            let same = Derived { function: base.clone(), log: ActionLog::empty_for(base) };
            let asked = |pair: &osr::VersionPair<'_>| {
                Pair::new(pair.loop_headers(Side::Before), BTreeSet::new())
            };
            let made = certify_at(&module, base, &same, Level::Avail, asked, &mut NoObserver);
            let mut terms = made.certificate.terms.iter();
            assert!(terms.all(|term| term.by == By::Itself), "{name}: {}", base.name());
            let up = &made.entries.forward;
            assert!(up.rejected.is_empty(), "{name}: {}: {:?}", base.name(), up.rejected);
            assert_eq!(up.mapping.len() + up.unreachable, up.points, "{name}: {}", base.name());
            held += up.mapping.len();
        }
    }
    assert!(held > 100, "{held}");
}
