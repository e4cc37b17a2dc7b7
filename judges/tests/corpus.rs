//! The reports on a corpus with a wrong program.

use osier_judges::{CorpusArguments, SpeedArguments, speed};
use std::fs;
use std::path::Path;

/// A corpus of one program in a separate folder. The program ends without printing `OK`.
fn silent(folder: &Path) -> CorpusArguments {
    fs::create_dir_all(folder.join("kernels")).expect("the folder is writable");
    fs::write(folder.join("kernels/sieve.c"), "").expect("the folder is writable");
    let module =
        wat::parse_str("(module (memory (export \"memory\") 1) (func (export \"_start\")))")
            .expect("a module");
    fs::write(folder.join("sieve.wasm"), module).expect("the folder is writable");
    CorpusArguments {
        programs: folder.into(),
        kernels: folder.into(),
        runs: 1,
        only: "sieve.m2r".to_owned(),
    }
}

/// A folder for one test, emptied.
fn folder(name: &str) -> std::path::PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("the test created the folder");
    }
    folder
}

#[test]
fn a_wrong_program_is_reported_and_is_no_error() {
    let arguments = SpeedArguments { corpus: silent(&folder("speed")), pipeline: None };
    let mut out = Vec::new();
    assert_eq!(speed::run(&arguments, &mut out), Ok(false));
    let said = String::from_utf8(out).expect("text");
    assert!(
        said.contains("sieve.m2r: the engines disagree, or the program found a mistake"),
        "{said}"
    );
}

#[cfg(feature = "native")]
#[test]
fn a_wrong_program_is_reported_natively_and_is_no_error() {
    use osier_judges::{NativeArguments, TableFormat, native};
    let corpus = silent(&folder("native"));
    let arguments = NativeArguments {
        corpus,
        pipeline: "O1".to_owned(),
        checked: false,
        canonical: false,
        format: TableFormat::Text,
    };
    let mut out = Vec::new();
    assert_eq!(native::run(&arguments, &mut out), Ok(false));
    let said = String::from_utf8(out).expect("text");
    assert!(
        said.contains("sieve.m2r: the engines disagree, or the program found a mistake"),
        "{said}"
    );
}
