//! Pages: documentation that names existing things, and headers in their form.

use crate::tree::{files, sources};
use crate::{names, report};
use std::fs;
use std::path::Path;

#[test]
fn every_module_opens_with_its_documentation() {
    let sources = sources();
    let bare = sources.iter().filter(|s| !s.text.starts_with("//! "));
    report(sources.len(), bare.map(|s| format!("{} does not open with `//!`", s.path)).collect());
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

/// A new reason fails here until the manual explains it.
#[test]
fn every_reason_is_in_the_manual() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/osr.md"))
        .expect("the manual of mappings");
    let (_, table) =
        text.split_once("\n| reason | why the point has no entry |").expect("the table of reasons");
    let rows: Vec<&str> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    let cells: String = rows.iter().filter_map(|row| row.split('|').nth(1)).collect();
    let reasons = osier::osr::Reason::ALL;
    let missing = reasons.iter().filter(|reason| !cells.contains(&format!("`{}`", reason.name())));
    let findings = missing.map(|reason| format!("docs/osr.md has no row for {}", reason.name()));
    report(rows.len(), findings.collect());
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

/// The recipes name files and tests. A path may lack the folders that its row begins with, and
/// `NAME` stands for a name to choose. Names with three underscores are tests.
#[test]
fn recipes_name_what_exists() {
    let tree = names::Tree::read();
    let quoted = names::backticked(&tree.text("CONTRIBUTING.md"));
    let is_chosen = |name: &str| name.contains("NAME") || name.contains(' ');
    let (mut checked, mut findings) = (0, Vec::new());
    for (name, line) in quoted.iter().filter(|(name, _)| !is_chosen(name)) {
        let is_file = name.ends_with(".rs") || name.ends_with(".trycmd") || name.contains('/');
        let is_test = name.matches('_').count() >= 3;
        checked += usize::from(is_file || is_test);
        if (is_file && !tree.has_end(name)) || (!is_file && is_test && !tree.has_function(name)) {
            findings.push(format!("CONTRIBUTING.md:{line}: `{name}` does not exist"));
        }
    }
    assert!(checked > 150, "only {checked} files and tests in CONTRIBUTING.md");
    report(checked, findings);
}

#[test]
fn names_that_are_gone_are_found() {
    let tree = names::Tree::read();
    assert!(tree.has_end("state_oracle/plan.rs") && !tree.has_end("oracle/plan.rs"));
    assert!(tree.has_function("recipes_name_what_exists") && !tree.has_function("recipes_name"));
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
    let gone = [
        "ir::nothing",
        "ir::edit::applied_twice",
        "ir/src/no.rs",
        "tests/no/",
        "Editor9",
        "osier-nothing",
    ];
    for name in gone {
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

/// The first heading of a pass that a header lacks or has out of order. Headings are written
/// `*Does*:`.
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
    // `docs/examples/`: `manuals_show_real_output` runs the command on them. Tests of the suite
    // read the files beside them.
    let beside = ["tests/blame/", "tests/certified/", "tests/objects/"];
    let run = ["tests/oir/", "cli/tests/cli/", "docs/examples/"].into_iter().chain(beside);
    let run: Vec<&str> = run.collect();
    let astray =
        files.iter().filter(|(path, _)| !run.iter().any(|folder| path.starts_with(folder)));
    report(files.len(), astray.map(|(path, _)| format!("{path} is run by nobody")).collect());
}

/// Packages that name their test binaries run a file only if one of the binaries names it.
#[test]
fn every_test_file_has_a_suite() {
    let files = files();
    let text = |path: &str| files.iter().find(|(p, _)| p == path).map(|(_, text)| text.as_str());
    let (mut checked, mut findings) = (0, Vec::new());
    let manifests = files.iter().filter(|(_, text)| text.contains("\nautotests = false"));
    for (path, manifest) in manifests.filter(|(path, _)| path.ends_with("Cargo.toml")) {
        let package = path.strip_suffix("Cargo.toml").expect("its name");
        let is_binary = |name: &str| manifest.contains(&format!("[[test]]\nname = \"{name}\""));
        let folder = format!("{package}tests/");
        let names: Vec<&str> = files
            .iter()
            .filter_map(|(path, _)| path.strip_prefix(&folder))
            .filter_map(|path| path.strip_suffix("/mod.rs").or_else(|| path.strip_suffix(".rs")))
            .filter(|name| !name.contains('/'))
            .collect();
        let roots: String = names
            .iter()
            .filter(|n| is_binary(n))
            .filter_map(|n| text(&format!("{folder}{n}.rs")))
            .collect();
        checked += names.len();
        let astray =
            names.iter().filter(|n| !is_binary(n) && !roots.contains(&format!("mod {n};")));
        findings.extend(astray.map(|name| format!("{folder}{name} is in no test binary")));
    }
    report(checked, findings);
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
        commands[0]
            .starts_with("cargo run -p osier-cli --no-default-features -- report tests/corpus/"),
        "{}",
        commands[0]
    );
    assert_eq!(commands[1], "cargo test");
    let module = commands[0].split_whitespace().last().expect("a file");
    assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(module).exists(), "{module}");
}
