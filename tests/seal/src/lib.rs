//! Attempts to change a function without the editor, to forge a log, or to fire an unproved
//! transition. None of them compiles.
//!
//! Each file of `tests/compile-fail` is one attempt; the file beside it holds the expected compiler
//! message. The attempts are a crate of their own because the tests of other crates enable the
//! oracles' door, the feature `unproved` of `check`. Here it stays shut, as it does for embedders.
//! The toolchain is pinned, so messages do not drift. After a change of toolchain, run the test
//! with `TRYBUILD=overwrite` and review the difference.

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// The number of attempts, so that the test fails if a file is deleted by mistake.
    const ATTEMPTS: usize = 36;

    fn files_with(extension: &str) -> usize {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compile-fail");
        let entries = std::fs::read_dir(&folder).expect("the folder of attempts");
        let paths = entries.map(|entry| entry.expect("an entry of the folder").path());
        paths.filter(|path| path.extension().is_some_and(|e| e == extension)).count()
    }

    #[test]
    fn no_forgery_compiles() {
        assert_eq!(files_with("rs"), ATTEMPTS, "attempts");
        trybuild::TestCases::new().compile_fail("../compile-fail/*.rs");
        // Without an expected message, `trybuild` accepts any.
        assert_eq!(files_with("stderr"), ATTEMPTS, "expected messages");
    }
}
