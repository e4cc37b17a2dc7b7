//! Words: prose that names its subjects, and names of types that a search finds once.

use crate::tree::{files, sources};
use crate::{prose, report, types};

#[test]
#[expect(clippy::print_stdout, reason = "the counts are figures that people ask for")]
fn prose_names_its_subjects() {
    let folders = [
        "ir",
        "transition",
        "number",
        "passes",
        "osr",
        "certify",
        "check",
        "interp",
        "resume",
        "jit",
        "verify",
        "wasm",
        "system",
        "profile",
        "derive",
        "exchange",
        "tiers",
        "report",
        "fuzz",
        "fuzz-targets",
        "src",
        "benches",
        "cli",
        "proof",
        "provers",
        "judges",
        "examples",
        "tests",
        "docs",
    ];
    let mut counts: std::collections::BTreeMap<&str, prose::Counts> = Default::default();
    for (path, text) in files().iter().filter(|(p, _)| p.ends_with(".rs") || p.ends_with(".md")) {
        let top = path.split_once('/').map_or("docs", |(top, _)| top);
        let folder = folders.iter().find(|f| **f == top);
        let folder = folder.unwrap_or_else(|| panic!("{path}: add its folder to this test"));
        counts.entry(folder).or_default().add(path, text);
    }
    for (folder, counts) in &counts {
        let prose::Counts { words, whats, headless, sentences, riddles } = counts;
        let (headless, riddles) = (headless.len(), riddles.len());
        println!(
            "{folder}: {words} words, {whats} what, {headless} headless; {riddles} riddles of \
             {sentences}"
        );
    }
    let findings = counts.iter().flat_map(|(folder, counts)| counts.findings(folder)).collect();
    report(counts.len(), findings);
}

/// The most type names of 100 that may stand for several types.
const SHARED_TYPES: usize = 5;

/// Type names that several types share on purpose: parallel designs, each with its reason.
const PARALLEL_TYPES: &[(&str, &str)] = &[
    ("Action", "`ir` records primitive actions; `jit` has the action of an OSR point"),
    ("Args", "the arguments of each subcommand of the command, for clap"),
    ("Continuation", "`resume` builds its function, `jit` its code"),
    ("Edge", "of the control flow; of a version graph, in `osr`; of a graph of hops, in `verify`"),
    ("Finding", "of the verifier; of the checker"),
    ("Limits", "`interp::Limits` bounds runs, and is a part of `osier::Limits`"),
    ("NoObserver", "the observer that does nothing, beside each `Observer`"),
    ("Observer", "of a run, of the driver's steps, and of compilation"),
    ("Operand", "of a rewrite rule; of compensation code"),
    ("Options", "of the checker; of the interpreter"),
    ("Place", "of a finding of the checker; in memory"),
    ("Program", "that the interpreter runs; that the generator makes"),
    ("Report", "of the command, with its schema; of the state oracle"),
    ("Rule", "a rewrite rule; a rule of the verifier"),
    ("Step", "of the driver; of compensation code"),
    ("Term", "of a rewrite rule; of a certificate"),
    ("Version", "`osr::Version` names a version of a tree, `jit::Version` is its code"),
];

#[test]
#[expect(clippy::print_stdout, reason = "the counts are figures that people ask for")]
fn a_search_for_a_type_finds_one_thing() {
    let declared = types::declared(&sources());
    let shared: Vec<_> = declared.iter().filter(|(_, files)| files.len() > 1).collect();
    let all: usize = declared.values().map(Vec::len).sum();
    let sharing: usize = shared.iter().map(|(_, files)| files.len()).sum();
    println!("{all} types, {sharing} of them share a name");
    let mut findings = Vec::new();
    for (name, files) in &shared {
        if !PARALLEL_TYPES.iter().any(|(parallel, _)| parallel == name) {
            findings.push(format!("{name} is declared in {}", files.join(", ")));
        }
    }
    for (name, _) in PARALLEL_TYPES.iter().filter(|(n, _)| !shared.iter().any(|(s, _)| s == n)) {
        findings.push(format!("{name} is listed as a parallel design and is unique or gone"));
    }
    if 100 * sharing > SHARED_TYPES * all {
        findings.push(format!("{sharing} of {all} types share a name"));
    }
    report(all, findings);
}
