//! Attempts to change a function behind the editor's back, or to forge what its log says: none
//! compiles.
//!
//! Each file of `tests/compile-fail` is one attempt, with the message it must fail with beside it.
//! The toolchain is pinned, so messages do not drift; after a change of toolchain run with
//! `TRYBUILD=overwrite` and review the difference.

use std::path::Path;

/// An attempt that is deleted by mistake would otherwise go unnoticed.
const ATTEMPTS: usize = 20;

fn files_with(extension: &str) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compile-fail");
    let entries = std::fs::read_dir(&folder).expect("the folder of attempts");
    let paths = entries.map(|entry| entry.expect("an entry of the folder").path());
    paths.filter(|path| path.extension().is_some_and(|e| e == extension)).count()
}

#[test]
fn no_forgery_compiles() {
    assert_eq!(files_with("rs"), ATTEMPTS, "attempts");
    trybuild::TestCases::new().compile_fail("tests/compile-fail/*.rs");
    // Without an expected message any message would do.
    assert_eq!(files_with("stderr"), ATTEMPTS, "expected messages");
}
