//! Code: no stub, no state, no input and output in libraries, no trace of mutants.

use crate::report;
use crate::tree::{Source, files, sources};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

/// Library crates: no input or output, no clock, no global state.
const LIBRARIES: &[&str] = &[
    "ir/",
    "transition/",
    "number/",
    "passes/",
    "osr/",
    "certify/",
    "check/",
    "interp/src/", // its build script writes the tables of operations
    "resume/",
    "verify/",
    "wasm/",
    "profile/",
    "derive/",
    "exchange/",
    "tiers/",
    "report/",
    "src/",
];

/// Every identifier of a token stream with its line, including identifiers in arguments of macros.
fn identifiers(tokens: TokenStream, found: &mut Vec<(String, usize)>) {
    let mut pending = vec![tokens];
    while let Some(tokens) = pending.pop() {
        for token in tokens {
            match token {
                TokenTree::Group(group) => pending.push(group.stream()),
                TokenTree::Ident(ident) => {
                    found.push((ident.to_string(), ident.span().start().line))
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }
}

/// The identifiers of all sources with their lines, by path: several tests read them.
static IDENTIFIERS: LazyLock<BTreeMap<String, Vec<(String, usize)>>> =
    LazyLock::new(|| sources().iter().map(|s| (s.path.clone(), identifiers_in(s))).collect());

/// The identifiers of a source of the repository with their lines.
pub(crate) fn identifiers_of(source: &Source) -> &'static [(String, usize)] {
    &IDENTIFIERS[&source.path]
}

fn identifiers_in(source: &Source) -> Vec<(String, usize)> {
    let tokens = source.text.parse().unwrap_or_else(|e| panic!("{} is not Rust: {e}", source.path));
    let mut found = Vec::new();
    identifiers(tokens, &mut found);
    found
}

#[test]
fn no_stub_no_skipped_test_no_unsafe() {
    // This file holds the words as string literals, which are no identifiers.
    let words = ["todo", "unimplemented", "ignore", "unsafe"];
    let mut findings = Vec::new();
    let sources = sources();
    for source in &sources {
        for (word, line) in identifiers_of(source) {
            let allowed = word == "unsafe" && HAS_UNSAFE.iter().any(|p| source.path.starts_with(p));
            // `unsafe_code` is another identifier (a lint); `ignore` is an attribute here.
            if words.contains(&word.as_str()) && !allowed {
                findings.push(format!("{}:{line}: `{word}`", source.path));
            }
        }
    }
    report(sources.len(), findings);
}

#[test]
fn libraries_do_no_io_and_keep_no_state() {
    let names = ["fs", "net", "process", "env", "time"];
    let streams = ["stdin", "stdout", "stderr"];
    let clocks = ["Instant", "SystemTime"];
    let state = ["thread_local", "LazyLock", "lazy_static", "once_cell"];
    let mut findings = Vec::new();
    let mut checked = 0;
    let libraries = |s: &Source| LIBRARIES.iter().any(|l| s.path.starts_with(l)) && !s.is_test();
    for source in sources().iter().filter(|s| libraries(s)) {
        checked += 1;
        let tokens = identifiers_of(source);
        for pair in tokens.windows(2) {
            let (first, second) = (pair[0].0.as_str(), pair[1].0.as_str());
            let is_io = (first == "std" && names.contains(&second))
                || (first == "io" && streams.contains(&second));
            if is_io || (first == "static" && second == "mut") {
                findings.push(format!("{}:{}: `{first}` `{second}`", source.path, pair[1].1));
            }
        }
        // A cell that is filled once may be a field. In a static it is global.
        let globals = tokens.windows(3).filter(|w| w[0].0 == "static" && w[2].0 == "OnceLock");
        findings.extend(globals.map(|w| format!("{}:{}: `OnceLock`", source.path, w[2].1)));
        let is_kept = |word: &str| state.contains(&word) || clocks.contains(&word);
        let kept = tokens.iter().filter(|(word, _)| is_kept(word.as_str()));
        findings.extend(kept.map(|(word, line)| format!("{}:{line}: `{word}`", source.path)));
    }
    report(checked, findings);
}

/// Folders whose sources may name mutants; everything else is production code.
const TRIALS: &[&str] = &["tests/", "examples/"];

#[test]
fn production_code_has_no_mutants() {
    let words = ["seeded", "mutant", "mutants", "osier_mutants"];
    let is_production = |s: &Source| !TRIALS.iter().any(|folder| s.path.starts_with(folder));
    let mut findings = Vec::new();
    let sources: Vec<Source> = sources().into_iter().filter(is_production).collect();
    for source in &sources {
        let found = identifiers_of(source).iter();
        let named = found.filter(|(word, _)| words.contains(&word.as_str()));
        findings.extend(named.map(|(word, line)| format!("{}:{line}: `{word}`", source.path)));
    }
    // `tests/star.rs` holds the other crates to this.
    let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
    let manifest = manifest.expect("the root manifest");
    let (_, rest) = manifest.split_once("\n[dependencies]\n").expect("dependencies");
    let dependencies = rest.split("\n[").next().expect("rows");
    if dependencies.contains("osier-mutants") {
        findings.push("Cargo.toml: the root package depends on osier-mutants".to_owned());
    }
    report(sources.len(), findings);
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    let manifests: Vec<(String, String)> =
        files().into_iter().filter(|(p, _)| p.ends_with("Cargo.toml")).collect();
    let loose = manifests.iter().filter(|(path, text)| {
        !HAS_UNSAFE.iter().any(|place| path.starts_with(place)) && !text.contains(LINTS)
    });
    report(
        manifests.len(),
        loose.map(|(path, _)| format!("{path} has lints of its own")).collect(),
    );
}

/// The folders with unsafe code. The client of `examples/ebpf` has memory of its own, whose safety
/// is its promise.
pub(crate) const HAS_UNSAFE: [&str; 2] = ["jit/", "examples/ebpf/"];

const LINTS: &str = "[lints]\nworkspace = true\n";

#[test]
fn no_leftover_mark_and_no_path_of_a_machine() {
    // In halves, so that this file does not contain the marks.
    let marks = [concat!("FIX", "ME"), concat!("TO", "DO"), concat!("XX", "X")];
    let places = [
        concat!("/ho", "me/"),
        concat!("/ro", "ot/"),
        concat!("/Us", "ers/"),
        concat!("/wo", "rk/"),
    ];
    let files = files();
    let mut findings = Vec::new();
    for (path, text) in &files {
        for (number, line) in text.lines().enumerate() {
            for word in marks.iter().chain(&places).filter(|w| contains_word(line, w)) {
                findings.push(format!("{path}:{}: {word}", number + 1));
            }
        }
    }
    report(files.len(), findings);
}

/// Whether a line contains a word, not preceded by a letter, a digit or a part of a longer path.
fn contains_word(line: &str, word: &str) -> bool {
    let starts = line.match_indices(word).map(|(at, _)| at);
    let free =
        |at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-$".contains(c));
    let ends = |at: usize| {
        word.ends_with('/') || !line[at + word.len()..].starts_with(|c: char| c.is_alphanumeric())
    };
    starts.into_iter().any(|at| free(at) && ends(at))
}

#[test]
fn marks_and_paths_are_found() {
    let mark = concat!("FIX", "ME");
    assert!(contains_word(&format!("// {mark}: later"), mark));
    assert!(!contains_word(&format!("{mark}D"), mark));
    let place = concat!("/ho", "me/");
    assert!(contains_word(&format!("at {place}somebody"), place));
    assert!(!contains_word(&format!("at the{place}page"), place));
}
