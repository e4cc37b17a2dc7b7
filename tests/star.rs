//! Dependencies form a star: every crate depends on `ir`, and no crate of the ring depends on
//! another.
//!
//! The crates that synthesize mappings and those that judge them share the data types of `ir`, and
//! nothing else. Development dependencies count too: a test of a judge that used `osr` would share
//! the errors of `osr`.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Every crate of the workspace with the workspace crates it may depend on. An edge that is not
/// listed must be absent, and a crate that is not listed must not exist.
const ALLOWED: &[(&str, &[&str])] = &[
    ("osier-ir", &[]),
    ("osier-passes", &["osier-ir"]),
    ("osier-osr", &["osier-ir"]),
    ("osier-verify", &["osier-ir"]),
    ("osier-wasm", &["osier-ir"]),
    ("osier-jit", &["osier-ir", "osier-osr"]),
    ("osier-provers", &["osier-ir"]),
    (
        "osier-judges",
        &["osier", "osier-ir", "osier-jit", "osier-passes", "osier-verify", "osier-wasm"],
    ),
    (
        "osier",
        &["osier-ir", "osier-passes", "osier-osr", "osier-verify", "osier-wasm", "osier-jit"],
    ),
];

/// The description of the workspace by `cargo metadata`, without external dependencies.
fn metadata() -> Value {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--no-deps", "--offline"]);
    let output = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo runs");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_else(|| panic!("`{key}` is a string in {value}"))
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("`{key}` is a list in {value}"))
}

/// Every crate of the workspace with the workspace crates it depends on, of all kinds of
/// dependencies.
fn edges() -> BTreeMap<String, BTreeSet<String>> {
    let metadata = metadata();
    let packages = list(&metadata, "packages");
    let members: BTreeSet<&str> = packages.iter().map(|p| text(p, "name")).collect();
    let mut edges = BTreeMap::new();
    for package in packages {
        let names = list(package, "dependencies").iter().map(|d| text(d, "name"));
        let inside = names.filter(|n| members.contains(n)).map(str::to_owned).collect();
        edges.insert(text(package, "name").to_owned(), inside);
    }
    edges
}

#[test]
fn no_edge_but_those_of_the_star() {
    let edges = edges();
    let mut checked = 0;
    for (package, dependencies) in &edges {
        let row = ALLOWED.iter().find(|(name, _)| name == package);
        let (_, allowed) =
            row.unwrap_or_else(|| panic!("{package} has no row in this test: say where it stands"));
        for other in edges.keys().filter(|other| !allowed.contains(&other.as_str())) {
            assert!(!dependencies.contains(other), "{package} must not depend on {other}");
            checked += 1;
        }
    }
    assert_eq!(edges.len(), ALLOWED.len(), "crates in the workspace and rows in this test");
    assert!(checked > edges.len(), "{checked} absent edges were checked");
}

#[test]
fn every_crate_of_the_ring_stands_on_ir() {
    let edges = edges();
    for name in ["osier-passes", "osier-osr", "osier-verify", "osier-wasm", "osier-provers"] {
        assert_eq!(edges[name], BTreeSet::from(["osier-ir".to_owned()]), "what {name} depends on");
    }
    assert!(edges["osier-ir"].is_empty(), "ir depends on {:?}", edges["osier-ir"]);
}
