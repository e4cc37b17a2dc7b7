//! The licenses and the origins of all crates of others, by `deny.toml`.
//!
//! `cargo deny check` judges these, too, and advisories. It is a tool that not every machine has.

use super::report;
use super::star::{list, text};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// The output of `cargo metadata` about the workspace and all its dependencies, those of features
/// included. Cargo may have to download some: a build of the tests needs no judges, and no crates
/// for other systems.
pub(super) fn whole_metadata() -> Value {
    let output = |option: &[&str]| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["metadata", "--format-version", "1", "--locked", "--all-features"]);
        cargo.args(option);
        cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo runs")
    };
    let offline = output(&["--offline"]);
    let output = if offline.status.success() { offline } else { output(&[]) };
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

/// The text of a file in the root of the repository.
fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The licenses that `deny.toml` allows for all crates, and those for one crate, by its name.
fn allowed() -> (BTreeSet<String>, BTreeMap<String, BTreeSet<String>>) {
    let config = file("deny.toml");
    let (_, section) = config.split_once("\n[licenses]\n").expect("a section of licenses");
    let section = section.split("\n[").next().expect("its end");
    let list = |key: &str| {
        let (_, rows) = section.split_once(&format!("\n{key} = [")).expect("a list");
        rows.split("\n]").next().expect("its end").to_owned()
    };
    let strings = |text: &str| -> Vec<String> {
        text.split('"').skip(1).step_by(2).map(Into::into).collect()
    };
    let exceptions = list("exceptions");
    let exceptions = exceptions.lines().filter(|l| l.contains('{')).map(|row| {
        let mut words = strings(row);
        (words.remove(0), words.into_iter().collect())
    });
    (strings(&list("allow")).into_iter().collect(), exceptions.collect())
}

#[test]
fn every_dependency_has_an_allowed_license() {
    let (metadata, (allowed, exceptions)) = (whole_metadata(), allowed());
    let (mut checked, mut findings, mut used) = (BTreeSet::new(), Vec::new(), BTreeSet::new());
    for package in list(&metadata, "packages") {
        let expression = package["license"].as_str().unwrap_or("");
        let (name, version) = (text(package, "name"), text(package, "version"));
        let all = match exceptions.get(name) {
            Some(more) => &allowed | more,
            None => allowed.clone(),
        };
        match chosen(expression, &all) {
            Some(licenses) => used.extend(licenses),
            None => findings.push(format!("{name} {version}: `{expression}`")),
        }
        checked.insert(format!("{name} {version}"));
    }
    let of_one = exceptions.into_values().flatten().collect();
    findings.extend((&allowed | &of_one).difference(&used).map(|l| format!("nothing needs {l}")));
    // A package that metadata leaves out was not judged.
    let locked = locked();
    findings.extend(locked.symmetric_difference(&checked).map(|one| format!("not judged: {one}")));
    report(checked.len(), findings);
}

/// The packages of `Cargo.lock`, each with its version.
fn locked() -> BTreeSet<String> {
    let lock = file("Cargo.lock");
    let packages = lock.split("\n[[package]]\n").skip(1);
    let field = |package: &str, key: &str| {
        let line = package.lines().find_map(|line| line.strip_prefix(&format!("{key} = \"")));
        line.and_then(|rest| rest.strip_suffix('"')).expect("a name and a version").to_owned()
    };
    packages.map(|one| format!("{} {}", field(one, "name"), field(one, "version"))).collect()
}

#[test]
fn every_dependency_is_from_the_registry() {
    let lock = file("Cargo.lock");
    // Packages of the workspace have no source.
    let sources: Vec<&str> = lock.lines().filter_map(|l| l.strip_prefix("source = ")).collect();
    let registries: BTreeSet<&str> = sources.iter().copied().collect();
    let astray = registries.iter().filter(|source| !source.starts_with("\"registry+"));
    report(sources.len(), astray.map(|source| format!("a dependency from {source}")).collect());
    assert_eq!(registries.len(), 1, "registries");
}

/// The allowed licenses of the alternative of an expression that asks for the fewest: `None` if
/// each alternative asks for another license, or the expression is empty.
///
/// Alternatives are divided by `OR`, or by `/` in old packages. The parts of an alternative are
/// divided by `AND`, and `AND` binds more than `OR` except for parentheses.
fn chosen(expression: &str, allowed: &BTreeSet<String>) -> Option<BTreeSet<String>> {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut reader = Reader { words: &words, allowed };
    let found = reader.alternatives();
    reader.words.is_empty().then_some(found).flatten()
}

/// The rest of an expression.
struct Reader<'a> {
    words: &'a [&'a str],
    allowed: &'a BTreeSet<String>,
}

impl Reader<'_> {
    /// Whether the next word is this one, which is then read.
    fn takes(&mut self, word: &str) -> bool {
        let is_next = self.words.first() == Some(&word);
        if is_next {
            self.words = &self.words[1..];
        }
        is_next
    }

    fn alternatives(&mut self) -> Option<BTreeSet<String>> {
        let mut all = vec![self.parts()];
        while self.takes("OR") {
            all.push(self.parts());
        }
        all.into_iter().flatten().min_by_key(BTreeSet::len)
    }

    fn parts(&mut self) -> Option<BTreeSet<String>> {
        let mut all = self.license();
        while self.takes("AND") {
            let next = self.license();
            all = all.zip(next).map(|(all, next)| &all | &next);
        }
        all
    }

    fn license(&mut self) -> Option<BTreeSet<String>> {
        if self.takes("(") {
            let inner = self.alternatives();
            return if self.takes(")") { inner } else { None };
        }
        let (name, rest) = self.words.split_first()?;
        self.words = rest;
        let mut license = (*name).to_owned();
        if self.takes("WITH") {
            let (exception, rest) = self.words.split_first()?;
            self.words = rest;
            license = format!("{license} WITH {exception}");
        }
        self.allowed.contains(&license).then(|| BTreeSet::from([license]))
    }
}

#[test]
fn expressions_of_licenses_are_read() {
    let allowed = BTreeSet::from(["A".to_owned(), "B".to_owned(), "A WITH x".to_owned()]);
    let is_allowed = |expression: &str| chosen(expression, &allowed).is_some();
    for expression in
        ["A", "C OR A", "C/A", "A AND B", "(A OR C) AND B", "C AND D OR A", "A WITH x"]
    {
        assert!(is_allowed(expression), "{expression}");
    }
    for expression in ["", "C", "A AND C", "(A OR C) AND D", "C OR D", "A WITH y", "(A", "A B"] {
        assert!(!is_allowed(expression), "{expression}");
    }
}
