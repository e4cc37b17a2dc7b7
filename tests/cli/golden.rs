//! What the command prints, word for word.
//!
//! `tests/cli/golden/*.trycmd` are sessions; `TRYCMD=overwrite cargo test --test cli golden` writes what
//! is printed now into them, for review.

#[test]
fn sessions_print_what_they_did() {
    let cases = trycmd::TestCases::new();
    cases.default_bin_path(env!("CARGO_BIN_EXE_osier")).case("tests/cli/golden/*.trycmd");
    cases.run();
}
