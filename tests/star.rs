//! Which crate may depend on which: data at the bottom, makers and judges apart above it, and all
//! of them together in the library alone.
//!
//! The code that makes mappings and the code that judges them share data types, which live in `ir`
//! and `transition`. Development dependencies have a column of their own. A test of a judge that
//! used a maker could repeat the maker's mistakes, so each such dependency needs an entry here.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// A crate of the workspace: its name, the workspace crates that it may depend on, and further
/// crates that only its tests may depend on.
type Row = (&'static str, &'static [&'static str], &'static [&'static str]);

/// Every crate of the workspace. A missing edge is an absent edge; a missing crate does not exist.
const ALLOWED: &[Row] = &[
    ("ir", &[], &[]),
    ("transition", &["ir"], &[]),
    ("number", &["ir"], &[]),
    ("passes", &["ir", "number"], &[]),
    ("osr", &["ir", "transition"], &[]),
    ("certify", &["ir", "number", "transition"], &["osr"]),
    ("check", &["ir", "transition"], &["check"]),
    ("interp", &["check", "ir", "transition"], &[]),
    ("resume", &["check", "ir", "transition"], &["interp", "osr"]),
    ("jit", &["check", "interp", "ir", "resume", "transition"], &[]),
    ("verify", &["check", "interp", "ir", "transition"], &[]),
    ("wasm", &["interp", "ir"], &["system"]),
    ("system", &["wasm"], &[]),
    ("provers", &["ir"], &[]),
    ("mutants", &[], &[]),
    ("profile", &["interp", "ir", "passes"], &[]),
    (
        "derive",
        &["certify", "check", "interp", "ir", "osr", "passes", "profile", "resume", "transition"],
        &[],
    ),
    ("exchange", &["certify", "check", "derive", "ir", "osr", "transition"], &[]),
    (
        "tiers",
        &["check", "derive", "interp", "ir", "jit", "osr", "passes", "profile", "transition"],
        &[],
    ),
    (
        "report",
        &["check", "derive", "exchange", "ir", "osr", "passes", "profile", "transition", "wasm"],
        &[],
    ),
    ("osier", LIBRARY, &["fuzz", "mutants", "verify"]),
    ("fuzz", EVERYTHING, &[]),
    ("cli", EVERYTHING, &[]),
    ("seal", &["check", "interp", "ir", "jit", "osier", "resume", "transition"], &[]),
    ("judges", EVERYTHING, &[]),
    ("csmith", &[], &[]),
    ("lang", &["osier"], &[]),
    ("ebpf", &["osier"], &[]),
];

/// The crates that embedders link.
const LIBRARY: &[&str] = &[
    "certify",
    "check",
    "derive",
    "exchange",
    "interp",
    "ir",
    "jit",
    "osr",
    "passes",
    "profile",
    "report",
    "resume",
    "tiers",
    "transition",
    "wasm",
];

/// The crates that the command and the campaigns link.
const EVERYTHING: &[&str] = &[
    "certify",
    "check",
    "fuzz",
    "interp",
    "ir",
    "jit",
    "osier",
    "osr",
    "passes",
    "resume",
    "system",
    "transition",
    "verify",
    "wasm",
];

/// The crates that may enable the feature `unproved` of `check` outside tests: the oracles, which
/// look for wrong entries by firing them, and the command, which has the oracles. Without them
/// (`--no-default-features`), the command keeps the feature: its build serves the tests, and it
/// seals nothing (`the_command_seals_nothing`).
const ORACLES: &[&str] = &["cli", "fuzz", "verify"];

/// The output of `cargo metadata` about the workspace, without outside dependencies.
pub(super) fn metadata() -> Value {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--no-deps", "--offline"]);
    let output = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo runs");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

pub(super) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_else(|| panic!("`{key}` is a string in {value}"))
}

pub(super) fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("`{key}` is a list in {value}"))
}

/// A dependency of a crate on another of the workspace.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Dependency {
    on: String,
    is_development: bool,
    features: BTreeSet<String>,
}

/// Every crate of the workspace, without the prefix of its package, and its dependencies.
fn dependencies() -> BTreeMap<String, Vec<Dependency>> {
    let short = |name: &str| name.strip_prefix("osier-").unwrap_or(name).to_owned();
    let metadata = metadata();
    let packages = list(&metadata, "packages");
    let members: BTreeSet<&str> = packages.iter().map(|p| text(p, "name")).collect();
    let of = |package: &Value| {
        let inside = list(package, "dependencies").iter();
        let inside = inside.filter(|d| members.contains(text(d, "name")));
        let dependency = |d: &Value| Dependency {
            on: short(text(d, "name")),
            is_development: d["kind"].as_str() == Some("dev"),
            features: list(d, "features")
                .iter()
                .filter_map(Value::as_str)
                .map(Into::into)
                .collect(),
        };
        inside.map(dependency).collect()
    };
    packages.iter().map(|p| (short(text(p, "name")), of(p))).collect()
}

#[test]
fn no_edge_but_the_listed_ones() {
    let dependencies = dependencies();
    for (package, edges) in &dependencies {
        let row = ALLOWED.iter().find(|(name, ..)| name == package);
        let (_, allowed, in_tests) =
            row.unwrap_or_else(|| panic!("{package} has no row in this test: say where it stands"));
        for edge in edges {
            let is_allowed = allowed.contains(&edge.on.as_str())
                || (edge.is_development && in_tests.contains(&edge.on.as_str()));
            assert!(is_allowed, "{package} must not depend on {}: {edge:?}", edge.on);
        }
    }
    let absent: Vec<&str> =
        ALLOWED.iter().map(|(name, ..)| *name).filter(|n| !dependencies.contains_key(*n)).collect();
    assert_eq!(absent, Vec::<&str>::new(), "rows of crates that do not exist");
}

#[test]
fn the_floor_stands_on_ir_alone() {
    let dependencies = dependencies();
    let below = |name: &str| -> BTreeSet<&str> {
        dependencies[name].iter().filter(|d| !d.is_development).map(|d| d.on.as_str()).collect()
    };
    assert_eq!(below("ir"), BTreeSet::new());
    assert_eq!(below("transition"), BTreeSet::from(["ir"]));
    assert_eq!(below("check"), BTreeSet::from(["ir", "transition"]), "the checker");
}

#[test]
fn oracles_and_tests_alone_enable_unproved() {
    let dependencies = dependencies();
    let mut enabled = BTreeSet::new();
    for (package, edges) in &dependencies {
        let opens = |d: &&Dependency| d.on == "check" && d.features.contains("unproved");
        for edge in edges.iter().filter(opens).filter(|edge| !edge.is_development) {
            assert!(ORACLES.contains(&package.as_str()), "{package} enables `unproved`: {edge:?}");
            enabled.insert(package.as_str());
        }
    }
    assert_eq!(enabled, BTreeSet::from_iter(ORACLES.iter().copied()), "the oracles need the door");
    // No crate that an embedder links enables the feature.
    for oracle in ORACLES {
        assert!(!LIBRARY.contains(oracle), "embedders do not link {oracle}");
    }
}

#[test]
fn the_command_seals_nothing() {
    // What `check` has with the feature alone. `explain::unproved` is of reports.
    let door = ["::unproved(", "Unproved::claim", "compose_without", ".without("];
    let files = super::tree::files();
    let opens = |folder: &str, name: &str| -> Vec<&str> {
        let inside = files.iter().filter(|(p, _)| p.starts_with(folder) && p.ends_with(".rs"));
        let opens = |text: &str| text.replace("explain::unproved(", "").contains(name);
        inside.filter(|(_, text)| opens(text)).map(|(path, _)| path.as_str()).collect()
    };
    for name in door {
        assert_eq!(opens("cli/src/", name), Vec::<&str>::new(), "{name}");
        assert!(!opens("", name).is_empty(), "nobody uses {name}");
    }
}

#[test]
fn no_crate_forwards_the_feature() {
    let metadata = metadata();
    for package in list(&metadata, "packages") {
        let name = text(package, "name");
        let features = package["features"].as_object().expect("features are a table");
        for (feature, enables) in features {
            let forwards = enables.as_array().into_iter().flatten().filter_map(Value::as_str);
            let forwards: Vec<&str> = forwards.filter(|e| e.contains("unproved")).collect();
            assert_eq!(forwards, Vec::<&str>::new(), "feature {feature} of {name}");
            assert!(feature != "unproved" || name == "osier-check", "{name} has its own {feature}");
        }
    }
}
