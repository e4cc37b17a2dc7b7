//! The commands that the manuals print. Those of `osier` with files of the repository run as they
//! are printed; long ones are read by the command line alone; cargo's name packages, targets and
//! features that exist. The rest is listed, each with the reason why no test runs it.

use crate::harness::{self, root, scratch};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

/// The manuals, besides all pages of `docs/`.
const MANUALS: [&str; 2] = ["README.md", "CONTRIBUTING.md"];

/// The beginnings of commands that no test runs, and why. A file among them must exist.
const NOT_RUN: [(&str, &str); 15] = [
    (".ci/run", "these tests are a part of it"),
    ("cargo clippy", "the gate has it"),
    ("cargo fmt", "the gate has it"),
    ("cargo fuzz", "a tool of nightly Rust"),
    ("clang-19", "a tool that not every machine has; the repository has what it makes"),
    ("fuzz-targets/run", "minutes of a fuzzer"),
    ("git", "it shows a change of the reader's"),
    ("osier-csmith", "Csmith and a C compiler, which not every machine has"),
    ("osier-judges", "a build of other engines"),
    ("perf", "a tool that not every machine has"),
    ("proof/", "Coq, which not every machine has"),
    ("provers/install", "it installs solvers"),
    ("tests/browser/", "a browser, which not every machine has"),
    ("tests/corpus/build", "it downloads sources and compiles them"),
    ("../osier/.github/action/run.sh", "the tests of the action run it"),
];

/// The beginnings of lines outside of shell blocks that are commands.
const STARTS: [&str; 7] =
    ["osier ", "cargo ", "target/release/", "tests/", "provers/", "proof/", "fuzz-targets/"];

/// The module in place of the reader's, which manuals call FILE, and its file of mappings, M.
const FILE: &str = "docs/examples/window.oir";

/// The commands of a manual in order, without comments: the lines of its shell blocks, and indented
/// lines that begin with a command.
fn commands(text: &str) -> Vec<String> {
    let (mut found, mut fence) = (Vec::new(), None);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(kind) = line.strip_prefix("```") {
            fence = if fence.is_some() { None } else { Some(kind) };
            continue;
        }
        let indented = line.strip_prefix("    ").filter(|_| fence.is_none());
        let is_command = |line: &&str| STARTS.iter().any(|start| line.starts_with(start));
        let Some(line) = indented.filter(is_command).or((fence == Some("sh")).then_some(line))
        else {
            continue;
        };
        let mut whole = line.to_owned();
        while let Some(begun) = whole.strip_suffix('\\') {
            whole = format!("{begun} {}", lines.next().expect("the rest of a command").trim());
        }
        let whole = whole.split(" #").next().unwrap_or("").trim();
        found.extend(whole.split(" && ").map(str::to_owned).filter(|one| !one.is_empty()));
    }
    found
}

/// The words of a command as a shell reads them, without variables in front. Quotes group, and
/// `$(...)` is a number.
fn words(command: &str) -> Vec<String> {
    let (mut all, mut quote) = (vec![String::new()], None);
    for c in command.chars() {
        match c {
            '\'' | '"' if quote == Some(c) => quote = None,
            '\'' | '"' if quote.is_none() => quote = Some(c),
            ' ' if quote.is_none() => all.push(String::new()),
            c => all.last_mut().expect("it has one").push(c),
        }
    }
    let mut all: Vec<String> = all.into_iter().filter(|word| !word.is_empty()).collect();
    for word in all.iter_mut().filter(|word| word.contains("$(")) {
        let (before, rest) = word.split_once("$(").expect("just seen");
        *word = format!("{before}1{}", rest.split_once(')').map_or("", |(_, after)| after));
    }
    let is_variable = |word: &&String| {
        word.split_once('=')
            .is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
    };
    let variables = all.iter().take_while(is_variable).count();
    all.split_off(variables)
}

/// The packages of the workspace with their targets and features.
fn packages() -> Vec<Value> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--no-deps", "--offline", "--locked"]);
    let output = cargo.current_dir(root()).output().expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    metadata["packages"].as_array().expect("packages").clone()
}

/// What is wrong with a command of cargo: a package, target or feature that does not exist.
fn wrong_cargo(words: &[String], packages: &[Value]) -> Option<String> {
    let options: Vec<&str> = words.iter().map(String::as_str).take_while(|w| *w != "--").collect();
    let value = |option: &str| {
        let at = options.iter().position(|word| *word == option)?;
        options.get(at + 1).copied()
    };
    let named = |name: &str| packages.iter().find(|package| package["name"] == name);
    let of = match value("-p") {
        Some(name) => vec![named(name)],
        None => packages.iter().map(Some).collect(),
    };
    let Some(of) = of.into_iter().collect::<Option<Vec<&Value>>>() else {
        return Some("no such package".to_owned());
    };
    let has_target = |kind: &str, name: &str| {
        let mut targets =
            of.iter().flat_map(|package| package["targets"].as_array().expect("targets"));
        targets.any(|t| {
            t["name"] == name && t["kind"].as_array().expect("kinds").contains(&kind.into())
        })
    };
    for (option, kind) in
        [("--example", "example"), ("--test", "test"), ("--bench", "bench"), ("--bin", "bin")]
    {
        if value(option).is_some_and(|name| !has_target(kind, name)) {
            return Some(format!("no such {kind}"));
        }
    }
    for feature in value("--features").iter().flat_map(|all| all.split(',')) {
        let (package, feature) = feature.split_once('/').unwrap_or(("", feature));
        let mut of = of.iter().filter(|one| package.is_empty() || one["name"] == package);
        if !of.any(|one| one["features"].get(feature).is_some()) {
            return Some(format!("no feature {feature}"));
        }
    }
    // Cargo does not choose between the binaries of several packages.
    let selects = ["-p", "--example", "--bin"].into_iter().any(|option| value(option).is_some());
    (options[1] == "run" && !selects).then(|| "no binary is selected".to_owned())
}

/// How a command of `osier` was tried.
#[derive(PartialEq, Eq)]
enum Tried {
    Run,
    Read,
}

/// Runs a command of `osier` in a folder, or lets the command line read it.
///
/// # Panics
/// If it fails.
fn try_osier(words: &[String], folder: &Path) -> Tried {
    let words: Vec<&str> = words
        .iter()
        .map(|word| match word.as_str() {
            "FILE" => FILE,
            word => word,
        })
        .collect();
    // A campaign takes its time, and another word in capital letters names a file of the reader's.
    let is_blank = |word: &&str| {
        let stem = word.split('.').next().unwrap_or_default();
        stem.len() > 1 && stem.chars().all(|c| c.is_ascii_uppercase()) && !word.contains('=')
    };
    let (words, output) = match words.iter().position(|word| word.starts_with('>')) {
        Some(at) => (&words[..at], Some(words[at].trim_start_matches('>'))),
        None => (&words[..], None),
    };
    let (tried, words) = match words[0] == "fuzz" || words.iter().any(is_blank) {
        true => (Tried::Read, [words, &["--help"]].concat()),
        false => (Tried::Run, words.to_vec()),
    };
    let mut command = harness::command(&words);
    command.current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    let ended = harness::output(&mut command);
    assert!(ended.status.success(), "osier {}: {ended:?}", words.join(" "));
    if let Some(output) = output {
        fs::write(folder.join(output), ended.stdout).expect("the folder is writable");
    }
    tried
}

#[test]
fn commands_of_the_manuals_run_as_they_are_printed() {
    let packages = packages();
    let mut manuals: Vec<_> = MANUALS.iter().map(|name| root().join(name)).collect();
    let pages = fs::read_dir(root().join("docs")).expect("a folder");
    let pages = pages.map(|page| page.expect("an entry").path());
    manuals.extend(pages.filter(|path| path.extension().is_some_and(|e| e == "md")));
    let (mut run, mut read, mut cargo, mut left) = (0, 0, 0, BTreeSet::new());
    for manual in manuals {
        let name = manual.display();
        let folder = scratch();
        for name in ["cli", "docs", "tests", "wasm"] {
            symlink(root().join(name), folder.path().join(name)).expect("a link");
        }
        for command in commands(&fs::read_to_string(&manual).expect("a manual")) {
            let mut words = words(&command);
            let first = words[0].strip_prefix("target/release/").unwrap_or(&words[0]).to_owned();
            words[0] = first;
            let plain = words.join(" ");
            // These end with a command of osier, which is tried instead.
            let inner = ["perf record ", "gdb --args "].iter().any(|tool| plain.starts_with(tool));
            if let Some(at) = words.iter().position(|w| w == "osier").filter(|at| *at == 0 || inner)
            {
                match try_osier(&words[at + 1..], folder.path()) {
                    Tried::Run => run += 1,
                    Tried::Read => read += 1,
                }
                continue;
            }
            if words[0] == "cp" {
                let copied =
                    Command::new("cp").args(&words[1..]).current_dir(folder.path()).status();
                assert!(copied.expect("cp runs").success(), "{name}: {command}");
                continue;
            }
            if let Some(row) = NOT_RUN.iter().position(|(start, _)| plain.starts_with(start)) {
                left.insert(row);
                let path = root().join(words[0].trim_start_matches("../osier/"));
                if words[0].contains('/') && !words[0].starts_with("proof/target/") {
                    let mode = fs::metadata(&path).map(|file| file.permissions().mode());
                    assert!(mode.is_ok_and(|mode| mode & 0o111 != 0), "{name}: {command}");
                }
                continue;
            }
            assert_eq!(words[0], "cargo", "{name}: what is `{command}`?");
            assert_eq!(wrong_cargo(&words, &packages), None, "{name}: {command}");
            cargo += 1;
        }
    }
    let stale = (0..NOT_RUN.len()).filter(|row| !left.contains(row)).map(|row| NOT_RUN[row].0);
    assert_eq!(stale.collect::<Vec<_>>(), [""; 0], "no manual has these");
    let counts = format!("{run} run, {read} read, {cargo} of cargo");
    assert!(run >= 25 && read >= 14 && cargo >= 20, "{counts}");
}

#[test]
fn commands_are_split_as_a_shell_splits_them() {
    let text = "```sh\nA=1 osier run 'a b' \"$(date +%s)0\" # note\ncargo a && git b\n```\n\n    \
                osier x \\\n      y\n    no command\n\n```text\nosier no\n```\n";
    let found = commands(text);
    assert_eq!(found.len(), 4, "{found:?}");
    assert_eq!(words(&found[0]), ["osier", "run", "a b", "10"]);
    assert_eq!(words(&found[3]), ["osier", "x", "y"]);
}
