//! Properties of the sources themselves: sizes, headers, forbidden words, existing paths.
//!
//! Where it matters, the tests read sources as tokens, so that a word in a comment or a string is
//! no finding. Every check also fails if it had nothing to check.

#[path = "tidy/functions.rs"]
mod functions;
#[path = "tidy/names.rs"]
mod names;
#[path = "tidy/prose.rs"]
mod prose;
#[path = "tidy/tree.rs"]
mod tree;
#[path = "tidy/types.rs"]
mod types;
#[path = "tidy/unsafe_blocks.rs"]
mod unsafe_blocks;

use proc_macro2::{TokenStream, TokenTree};
use std::fs;
use std::path::Path;
use tree::{Source, files, sources};

/// The number of lines a module should not exceed, and the number it must not reach. Tables and
/// tests are exempt.
const MODULE_LINES: usize = 600;
const MODULE_LINES_AT_MOST: usize = 1000;

/// Modules longer than [`MODULE_LINES`], each with the reason why it is not split.
const LONG_MODULES: &[(&str, &str)] = &[];

/// The number of lines a function must not exceed outside tests.
const FUNCTION_LINES: usize = 100;

/// Functions longer than [`FUNCTION_LINES`], by file and name, each with the reason.
const LONG_FUNCTIONS: &[(&str, &str, &str)] = &[
    (
        "interp/src/exec.rs",
        "run_loop",
        "the interpreter's dispatch: one short arm for each operation, sharing the registers of the loop",
    ),
    ("interp/src/fast/exec.rs", "run_loop", "the dispatch of the fast tier, for the same reason"),
];

/// Library crates: no input or output, no clock, no global state.
const LIBRARIES: &[&str] = &[
    "ir/",
    "transition/",
    "passes/",
    "osr/",
    "certify/",
    "check/",
    "interp/",
    "resume/",
    "verify/",
    "wasm/",
];

/// Fails with all findings at once, and if nothing was checked.
fn report(checked: usize, findings: Vec<String>) {
    assert!(checked > 0, "nothing was checked");
    assert!(findings.is_empty(), "{} of {checked}:\n{}", findings.len(), findings.join("\n"));
}

#[test]
fn every_module_opens_with_its_documentation() {
    let sources = sources();
    let bare = sources.iter().filter(|s| !s.text.starts_with("//! "));
    report(sources.len(), bare.map(|s| format!("{} does not open with `//!`", s.path)).collect());
}

#[test]
fn modules_are_short() {
    let sources: Vec<Source> = sources().into_iter().filter(|s| !s.is_test()).collect();
    let mut findings = Vec::new();
    for source in &sources {
        let lines = source.text.lines().count();
        let excused = LONG_MODULES.iter().any(|(path, _)| *path == source.path);
        if lines > MODULE_LINES_AT_MOST || (lines > MODULE_LINES && !excused) {
            findings.push(format!("{} has {lines} lines", source.path));
        }
        if lines <= MODULE_LINES && excused {
            findings.push(format!("{} has {lines} lines and needs no excuse", source.path));
        }
    }
    for (path, _) in
        LONG_MODULES.iter().filter(|(path, _)| !sources.iter().any(|s| s.path == *path))
    {
        findings.push(format!("{path} is excused and does not exist"));
    }
    report(sources.len(), findings);
}

/// The columns of a line of code, of a comment, or of a manual.
const COLUMNS: usize = 100;

#[test]
fn lines_fit_side_by_side() {
    let files: Vec<(String, String)> =
        files().into_iter().filter(|(p, _)| p.ends_with(".rs") || p.ends_with(".md")).collect();
    let mut findings = Vec::new();
    // The list of unsafe code is written by a test, a line for each use.
    for (path, text) in files.iter().filter(|(path, _)| path != "jit/UNSAFE.md") {
        let is_manual = path.ends_with(".md");
        let mut in_code = false;
        for (line, number) in text.lines().zip(1..) {
            in_code ^= is_manual && line.trim_start().starts_with("```");
            // A table, printed output and a literal keep their lines: breaking one changes it.
            let is_literal = line.contains('"') || line.contains("\\n");
            let is_row = line.trim_start_matches(['/', '!', ' ']).starts_with('|');
            let is_whole = in_code || is_row || is_literal || is_link(line);
            if line.chars().count() > COLUMNS && !is_whole {
                findings.push(format!("{path}:{number} has {} columns", line.chars().count()));
            }
        }
    }
    report(files.len(), findings);
}

/// Whether a line is one word, such as an address, that cannot be broken.
fn is_link(line: &str) -> bool {
    line.trim_start_matches(['/', '!', ' ', '-']).split_whitespace().count() == 1
}

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
        "fuzz",
        "src",
        "cli",
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
        let prose::Counts { words, whats, long, heavy } = counts;
        println!("{folder}: {words} words, {whats} what, {long} long, {} heavy", heavy.len());
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

#[test]
fn passes_and_pipelines_are_listed() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/passes.md"))
        .expect("the list of passes");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| `")).collect();
    let mut findings = Vec::new();
    for pass in osier::passes::registry::PASSES {
        let count =
            rows.iter().filter(|row| row.starts_with(&format!("| `{}` |", pass.name()))).count();
        if count != 1 {
            findings.push(format!("docs/passes.md has {count} rows for {}", pass.name()));
        }
    }
    for name in ["O0", "O1", "O2", "canonical"] {
        let passes = osier::passes::parse(name).expect("a pipeline").names().join(", ");
        let passes = if passes.is_empty() { "none".to_owned() } else { passes };
        let is_right = |row: &&str| {
            row.starts_with(&format!("| `{name}`")) && row.ends_with(&format!("| {passes} |"))
        };
        if !rows.iter().any(is_right) {
            findings.push(format!("docs/passes.md does not say that {name} is {passes}"));
        }
    }
    report(rows.len(), findings);
}

/// The most lines of code, without comments, blank lines and tests, of the modules of the checker
/// that decide acceptance. A reader must go through these lines to trust the checker. The other
/// modules of the crate word verdicts and tell refuted entries from undecided ones.
const ACCEPTANCE_LINES: usize = 2493;

/// Where those modules are.
const ACCEPTANCE: &str = "check/src/accept/";

/// The most lines of code of the files below the checker that acceptance rests on, too.
const FOUNDATION_LINES: usize = 4019;

/// The files of `transition` and `ir` that the modules of acceptance use: what composes and what is
/// well-typed; versions and their parts; the table and the meaning of operations; the rewrite
/// rules; and the verifier, with the graph and the dominators that it uses. Where a path ends with
/// `/`, all files of the folder count.
const FOUNDATION: &[&str] = &[
    "transition/src/certificate.rs",
    "transition/src/compose.rs",
    "transition/src/demand.rs",
    "transition/src/mapping.rs",
    "transition/src/side.rs",
    "transition/src/version.rs",
    "ir/src/cfg.rs",
    "ir/src/dom.rs",
    "ir/src/entity.rs",
    "ir/src/eval/",
    "ir/src/function.rs",
    "ir/src/inst.rs",
    "ir/src/layout.rs",
    "ir/src/module.rs",
    "ir/src/opcode.rs",
    "ir/src/place.rs",
    "ir/src/rules/",
    "ir/src/trap.rs",
    "ir/src/types.rs",
    "ir/src/verifier/",
];

/// The lines of code of a file, without comments, blank lines and the tests at its end.
fn code_lines(source: &Source) -> usize {
    let code = source.text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

/// Prints the two figures of the trusted base, which `README.md` gives:
/// `cargo test --test tidy the_checker_is_small`.
#[test]
fn the_checker_is_small() {
    let all = sources();
    let is_of = |path: &str, place: &str| match place.ends_with('/') {
        true => path.starts_with(place),
        false => path == place,
    };
    let code: Vec<&Source> = all.iter().filter(|s| !s.is_test()).collect();
    let mut findings = Vec::new();
    let mut count = |places: &[&str], most: usize, what: &str| {
        let mut lines = 0;
        for place in places {
            let found: Vec<_> = code.iter().filter(|s| is_of(&s.path, place)).collect();
            if found.is_empty() {
                findings.push(format!("there is no {place}"));
            }
            lines += found.iter().map(|s| code_lines(s)).sum::<usize>();
        }
        let text = format!("{what}: {lines} lines of code, {most} at most");
        // To the handle itself, because the test harness captures `print!`.
        std::io::Write::write_all(&mut std::io::stdout(), format!("{text}\n").as_bytes())
            .expect("standard output can be written");
        if lines > most {
            findings.push(text);
        }
    };
    count(&[ACCEPTANCE], ACCEPTANCE_LINES, "what decides acceptance in the checker");
    count(FOUNDATION, FOUNDATION_LINES, "what it uses of transition and ir");
    // Acceptance uses no other module of its crate. What words verdicts cannot make an entry hold.
    let inside = code.iter().filter(|s| is_of(&s.path, ACCEPTANCE));
    for source in inside {
        for (number, line) in source.text.lines().enumerate() {
            let line = line.trim();
            let outside = ["crate::judge", "crate::verdict"].iter().any(|m| line.contains(m));
            if outside && !line.starts_with("//") {
                findings.push(format!("{}:{}: {line}", source.path, number + 1));
            }
        }
    }
    report(code.len(), findings);
}

#[test]
fn functions_are_short() {
    let mut checked = 0;
    let mut findings = Vec::new();
    let mut excused = Vec::new();
    for source in sources().iter().filter(|s| !s.is_test()) {
        for function in functions::functions(source) {
            checked += 1;
            if function.lines <= FUNCTION_LINES {
                continue;
            }
            match LONG_FUNCTIONS
                .iter()
                .position(|(path, name, _)| *path == source.path && *name == function.name)
            {
                Some(row) => excused.push(row),
                None => findings.push(format!(
                    "{}: {} has {} lines",
                    source.path, function.name, function.lines
                )),
            }
        }
    }
    for (row, (path, name, _)) in LONG_FUNCTIONS.iter().enumerate() {
        if !excused.contains(&row) {
            findings.push(format!("{path}: {name} is excused and is short or gone"));
        }
    }
    report(checked, findings);
}

/// Every identifier of a token stream with its line, including those in arguments of macros.
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

fn identifiers_of(source: &Source) -> Vec<(String, usize)> {
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
            let allowed = word == "unsafe" && source.path.starts_with("jit/");
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
    let names = [
        "fs",
        "net",
        "process",
        "env",
        "time",
        "SystemTime",
        "Instant",
        "stdin",
        "stdout",
        "stderr",
    ];
    let state = ["thread_local", "OnceLock", "LazyLock", "lazy_static", "once_cell"];
    let mut findings = Vec::new();
    let mut checked = 0;
    let libraries = |s: &Source| LIBRARIES.iter().any(|l| s.path.starts_with(l)) && !s.is_test();
    for source in sources().iter().filter(|s| libraries(s)) {
        checked += 1;
        let tokens: Vec<(String, usize)> = identifiers_of(source);
        for pair in tokens.windows(2) {
            let (first, second) = (pair[0].0.as_str(), pair[1].0.as_str());
            if (first == "std" && names.contains(&second)) || (first == "static" && second == "mut")
            {
                findings.push(format!("{}:{}: `{first}` `{second}`", source.path, pair[1].1));
            }
        }
        let kept = tokens.iter().filter(|(word, _)| state.contains(&word.as_str()));
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
        let found = identifiers_of(source).into_iter();
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
    let loose =
        manifests.iter().filter(|(path, text)| !path.starts_with("jit/") && !text.contains(LINTS));
    report(
        manifests.len(),
        loose.map(|(path, _)| format!("{path} has lints of its own")).collect(),
    );
}

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

#[test]
fn architecture_names_what_exists() {
    let tree = names::Tree::read();
    let text = tree.text("ARCHITECTURE.md");
    assert!(text.lines().count() <= 250, "ARCHITECTURE.md has {} lines", text.lines().count());
    let quoted = names::backticked(&text);
    assert!(quoted.len() > 40, "only {} names in ARCHITECTURE.md", quoted.len());
    let gone = quoted.iter().filter(|(name, _)| !tree.has(name));
    report(
        quoted.len(),
        gone.map(|(name, line)| format!("ARCHITECTURE.md:{line}: `{name}` does not exist"))
            .collect(),
    );
}

#[test]
fn names_that_are_gone_are_found() {
    let tree = names::Tree::read();
    for name in [
        "ir",
        "ir::edit",
        "ir::edit::apply",
        "ir::Function",
        "ir/src/lib.rs",
        "tests/oir/",
        "Editor",
        "add",
    ] {
        assert!(tree.has(name), "{name}");
    }
    let sides = [
        "ir::nothing",
        "ir::edit::applied_twice",
        "ir/src/no.rs",
        "tests/no/",
        "Editor9",
        "osier-nothing",
    ];
    for name in sides {
        assert!(!tree.has(name), "{name}");
    }
}

/// The headings of the header of every pass, in this order.
const PASS_HEADINGS: &[&str] = &[
    "Does",
    "Does not",
    "Needs on entry",
    "Holds on exit",
    "Actions emitted",
    "Effect on mappings",
    "Why correct",
    "Cost",
];

/// Whether a header has every heading of a pass, each written `*Side*:`, in order.
fn missing_heading(header: &str) -> Option<&'static str> {
    let mut rest = header;
    for heading in PASS_HEADINGS {
        match rest.split_once(&format!("//! *{heading}*")) {
            Some((_, after)) => rest = after,
            None => return Some(heading),
        }
    }
    None
}

#[test]
fn every_pass_says_what_it_does_and_why_it_may() {
    let sources = sources();
    let registry = sources
        .iter()
        .find(|s| s.path == "passes/src/registry.rs")
        .expect("the registry of passes");
    let passes = sources
        .iter()
        .filter(|s| s.path.starts_with("passes/src/") && s.text.contains("impl Pass for "));
    let mut findings = Vec::new();
    let mut checked = 0;
    for source in passes.filter(|s| !s.is_test()) {
        checked += 1;
        let header: String = source
            .text
            .lines()
            .take_while(|l| l.starts_with("//!"))
            .map(|l| format!("{l}\n"))
            .collect();
        if let Some(heading) = missing_heading(&header) {
            findings.push(format!("{}: no *{heading}*, or not where it belongs", source.path));
        }
        let rest = source.text.split("impl Pass for ").nth(1).expect("the implementation");
        let name = rest.split(|c: char| !c.is_alphanumeric()).next().expect("the name of the pass");
        if !registry.text.contains(name) {
            findings.push(format!("{}: {name} is not in the registry", source.path));
        }
    }
    report(checked, findings);
}

#[test]
fn oir_files_lie_where_they_are_run() {
    let files: Vec<(String, String)> =
        files().into_iter().filter(|(path, _)| path.ends_with(".oir")).collect();
    // Sessions name the files in `cli/tests/cli/`, their inputs. Manuals show the files in
    // `docs/examples/`: `manuals_show_what_is_printed` runs the command on them.
    let run = ["tests/oir/", "cli/tests/cli/", "docs/examples/"];
    let astray =
        files.iter().filter(|(path, _)| !run.iter().any(|folder| path.starts_with(folder)));
    report(files.len(), astray.map(|(path, _)| format!("{path} is run by nobody")).collect());
}

#[test]
fn the_readme_has_its_two_commands() {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md"))
        .expect("README.md");
    let start = text.find("```sh\n").expect("the block of commands") + "```sh\n".len();
    let block = &text[start..start + text[start..].find("```").expect("its end")];
    let commands: Vec<&str> = block.lines().filter(|l| l.starts_with("cargo ")).collect();
    assert_eq!(commands.len(), 2, "commands from clone to report and green tests: {commands:?}");
    assert!(
        commands[0].starts_with("cargo run --release -- report tests/corpus/"),
        "{}",
        commands[0]
    );
    assert_eq!(commands[1], "cargo test");
    let module = commands[0].split_whitespace().last().expect("a file");
    assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(module).exists(), "{module}");
}
