//! The exact output of the command.
//!
//! `tests/cli/golden/*.trycmd` are sessions. `TRYCMD=overwrite cargo test --test cli golden`
//! replaces the expected outputs by the current ones, for review.

#[test]
fn sessions_print_what_they_did() {
    // Without this count, a pattern that matches no file would pass.
    let files = std::fs::read_dir("tests/cli/golden").expect("the folder is there");
    let is_session = |path: &std::path::PathBuf| path.extension().is_some_and(|e| e == "trycmd");
    assert!(files.filter(|file| is_session(&file.as_ref().expect("readable").path())).count() >= 5);
    let cases = trycmd::TestCases::new();
    cases.default_bin_path(env!("CARGO_BIN_EXE_osier")).case("tests/cli/golden/*.trycmd");
    cases.run();
}
