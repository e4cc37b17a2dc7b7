//! The exact output of the command.
//!
//! `golden/*.trycmd` are sessions. `TRYCMD=overwrite cargo test -p osier-cli golden` replaces the
//! expected outputs by the current ones, for review.

use crate::harness::{DEADLINE, root};

#[test]
fn sessions_print_expected_output() {
    let folder = root().join("cli/tests/cli/golden");
    // Without this count, a pattern that matches no file would pass.
    let files = std::fs::read_dir(&folder).expect("the folder is there");
    let is_session = |path: &std::path::PathBuf| path.extension().is_some_and(|e| e == "trycmd");
    assert!(files.filter(|file| is_session(&file.as_ref().expect("readable").path())).count() >= 5);
    // `trycmd` runs sessions in the current directory of the test; all other tests name paths from
    // the root.
    std::env::set_current_dir(root()).expect("the root is a folder");
    let cases = trycmd::TestCases::new();
    cases.default_bin_path(env!("CARGO_BIN_EXE_osier")).timeout(DEADLINE);
    cases.case(folder.join("*.trycmd"));
    cases.run();
}
