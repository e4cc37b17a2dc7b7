//! What the command prints, word for word.
//!
//! `tests/cli/golden/*.trycmd` are sessions; `TRYCMD=overwrite cargo test --test cli golden` writes
//! what is printed now into them, for review.

#[test]
fn sessions_print_what_they_did() {
    // A pattern that matches nothing would pass.
    let files = std::fs::read_dir("tests/cli/golden").expect("the folder is there");
    let is_session = |path: &std::path::PathBuf| path.extension().is_some_and(|e| e == "trycmd");
    assert!(files.filter(|file| is_session(&file.as_ref().expect("readable").path())).count() >= 5);
    let cases = trycmd::TestCases::new();
    cases.default_bin_path(env!("CARGO_BIN_EXE_osier")).case("tests/cli/golden/*.trycmd");
    cases.run();
}
