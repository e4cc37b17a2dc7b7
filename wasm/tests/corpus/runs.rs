//! Compares the output of the corpus in the interpreter with the output of other engines.

use crate::corpus::{corpus, import, modules};
use interp::{Limits, Machine, NoObserver, Outcome};
use std::fs;
use std::path::Path;
use wasm::wasi::Wasi;

/// Runs `_start` and returns the outcome and the contents of standard output.
fn run(file: &Path, args: &[&str], stdin: &[u8]) -> (Outcome, Vec<u8>) {
    let module = import(file);
    let mut machine = Machine::new(&module, Limits { fuel: u64::MAX, ..Limits::default() })
        .expect("instantiable");
    let start = module.lookup("_start").expect("a program");
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let name = file.file_name().expect("a file").to_string_lossy();
    let args = [name.as_ref()].into_iter().chain(args.iter().copied()).map(str::to_owned).collect();
    let mut wasi = Wasi::new(args, stdin, &mut stdout, &mut stderr);
    let outcome = machine.invoke(start, &[], &mut wasi, &mut NoObserver);
    drop(wasi);
    assert!(stderr.is_empty(), "{name}: {}", String::from_utf8_lossy(&stderr));
    (outcome, stdout)
}

/// Runs every module at its small size, which the file `sizes` lists.
#[test]
fn modules_print_what_other_engines_print() {
    let sizes = fs::read_to_string(corpus().join("sizes")).expect("the list of sizes");
    let sizes: Vec<(&str, &str)> =
        sizes.lines().filter(|l| !l.starts_with('#')).filter_map(|l| l.split_once(' ')).collect();
    let mut ran = 0;
    for (label, file) in modules() {
        let name = label.split('.').next().expect("a name");
        let (_, size) = sizes
            .iter()
            .find(|(n, _)| *n == name)
            .unwrap_or_else(|| panic!("{name} has no small size"));
        let expected = fs::read(corpus().join(format!("expected/{name}.{size}.txt")))
            .expect("an expected output");
        // Most programs read nothing, and have no such file.
        let input = corpus().join(format!("expected/{name}.in"));
        let stdin = if input.exists() { fs::read(input).expect("the input") } else { Vec::new() };
        let (outcome, stdout) = run(&file, &[size], &stdin);
        assert!(matches!(outcome, Outcome::Exited(0) | Outcome::Returned(_)), "{label}: {outcome}");
        assert_eq!(String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&expected), "{label}");
        ran += 1;
    }
    // Four entries of `sizes` are programs, which are present only where they were built.
    assert!(ran >= 2 * (sizes.len() - 4), "only {ran} modules ran");
}
