//! The packages of the workspace: each can be published, or says that it is not.
//!
//! `cargo package` finds most of these faults only for a crate that somebody packs, and the
//! registry finds the others at publication. `.ci/run` packs every crate.

use super::star::{list, metadata, text};
use super::{report, tree};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The packages that are not published: tests, judges, provers and examples.
const UNPUBLISHED: &[&str] = &[
    "osier-csmith",
    "osier-ebpf",
    "osier-judges",
    "osier-lang",
    "osier-mutants",
    "osier-provers",
    "osier-seal",
];

/// The categories of the registry that packages name; the registry drops unknown ones.
const CATEGORIES: &[&str] = &[
    "command-line-utilities",
    "compilers",
    "development-tools::profiling",
    "development-tools::testing",
    "emulators",
    "filesystem",
    "wasm",
];

/// The registry takes at most this many keywords and categories of a package.
const MOST_WORDS: usize = 5;

/// The registry takes keywords of at most this many bytes.
const KEYWORD_BYTES: usize = 20;

/// Whether `cargo publish` takes a package.
fn is_published(package: &Value) -> bool {
    package["publish"].as_array().is_none_or(|registries| !registries.is_empty())
}

/// The packages of the workspace that are published.
fn published(metadata: &Value) -> Vec<&Value> {
    list(metadata, "packages").iter().filter(|p| is_published(p)).collect()
}

#[test]
fn a_package_is_published_or_listed() {
    let metadata = metadata();
    let packages = list(&metadata, "packages");
    let kept: BTreeSet<&str> =
        packages.iter().filter(|p| !is_published(p)).map(|p| text(p, "name")).collect();
    assert_eq!(kept, UNPUBLISHED.iter().copied().collect(), "packages with `publish = false`");
    assert!(packages.len() > kept.len() + 15, "the library and the command are published");
}

#[test]
fn published_packages_describe_themselves() {
    let metadata = metadata();
    let published = published(&metadata);
    let findings = published.iter().flat_map(|package| undescribed(package)).collect();
    report(published.len(), findings);
}

/// The parts of the description that a package lacks.
fn undescribed(package: &Value) -> Vec<String> {
    let name = text(package, "name");
    let words =
        |key: &str| -> Vec<&str> { list(package, key).iter().filter_map(Value::as_str).collect() };
    let (keywords, categories) = (words("keywords"), words("categories"));
    let holds = [
        (!package["description"].as_str().unwrap_or("").is_empty(), "no description"),
        (package["license"] == "MIT OR Apache-2.0", "no license, or another one"),
        (package["rust_version"].is_string(), "no rust-version"),
        ((1..=MOST_WORDS).contains(&keywords.len()), "no keyword, or too many"),
        (keywords.iter().all(|word| is_keyword(word)), "a keyword that the registry rejects"),
        ((1..=MOST_WORDS).contains(&categories.len()), "no category, or too many"),
        (categories.iter().all(|one| CATEGORIES.contains(one)), "an unknown category"),
        (has_own_readme(package), "no README.md that begins with the name of the package"),
        (has_licenses(package), "no link to the license files of the root"),
    ];
    holds.iter().filter(|(holds, _)| !holds).map(|(_, what)| format!("{name}: {what}")).collect()
}

/// Whether the registry takes a keyword.
fn is_keyword(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphanumeric())
        && word.len() <= KEYWORD_BYTES
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-+".contains(c))
}

/// The folder of a package.
fn folder(package: &Value) -> &Path {
    Path::new(text(package, "manifest_path")).parent().expect("a manifest is in a folder")
}

fn has_own_readme(package: &Value) -> bool {
    let heading = match text(package, "name") {
        "osier" => "# Osier".to_owned(),
        name => format!("# {name}"),
    };
    package["readme"] == "README.md"
        && fs::read_to_string(folder(package).join("README.md"))
            .is_ok_and(|readme| readme.lines().next() == Some(&heading))
}

/// A package contains both licenses. They are links, so that they cannot differ from the root's.
fn has_licenses(package: &Value) -> bool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    ["LICENSE-MIT", "LICENSE-APACHE"].iter().all(|name| {
        let of_root = fs::read(root.join(name)).expect("a license of the root");
        fs::read(folder(package).join(name)).is_ok_and(|own| own == of_root)
    })
}

/// A published package needs its siblings at exactly its own version: items that siblings alone
/// need may change in any release. A version on a development dependency would close a circle, and
/// no crate of a circle can be published first.
#[test]
fn packages_need_published_crates_alone() {
    let metadata = metadata();
    let packages = list(&metadata, "packages");
    let versions: BTreeMap<&str, &str> =
        packages.iter().map(|p| (text(p, "name"), text(p, "version"))).collect();
    let (mut checked, mut findings) = (0, Vec::new());
    for package in packages {
        let own = list(package, "dependencies").iter();
        for edge in own.filter(|d| versions.contains_key(text(d, "name"))) {
            let (name, on) = (text(package, "name"), text(edge, "name"));
            let is_development = edge["kind"].as_str() == Some("dev");
            let wanted = match is_development {
                true => "*".to_owned(),
                false => format!("={}", versions[on]),
            };
            if text(edge, "req") != wanted {
                findings.push(format!("{name} needs {on} {}, not {wanted}", text(edge, "req")));
            }
            // Unpublished packages, too: `cargo package --workspace` packs them.
            if !is_development && UNPUBLISHED.contains(&on) {
                findings.push(format!("{name} needs {on}, which is not published"));
            }
            checked += 1;
        }
    }
    report(checked, findings);
}

/// Files that sources of published packages include are inside of the package.
#[test]
fn sources_include_nothing_from_outside() {
    let metadata = metadata();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders: Vec<String> = published(&metadata)
        .iter()
        .map(|package| folder(package).join("src"))
        .map(|path| path.strip_prefix(root).expect("below the root").display().to_string() + "/")
        .collect();
    let sources = tree::sources();
    let packed: Vec<_> =
        sources.iter().filter(|s| folders.iter().any(|f| s.path.starts_with(f))).collect();
    let mut findings = Vec::new();
    for source in &packed {
        let depth = folders
            .iter()
            .filter_map(|f| source.path.strip_prefix(f.as_str()))
            .map(|below| below.matches('/').count())
            .max()
            .expect("in a package");
        // From a file at this depth, so many `../` lead out of `src`.
        let out = "../".repeat(depth + 1);
        let includes = ["include_str!(\"", "include_bytes!(\"", "include!(\"", "#[path = \""];
        let starts = includes.iter().map(|include| format!("{include}{out}"));
        let leaving = starts.filter(|start| source.text.contains(start));
        findings.extend(leaving.map(|start| format!("{}: {start}", source.path)));
    }
    report(packed.len(), findings);
}

/// The package `osier` contains examples. Packages lack the development dependencies that the other
/// examples need.
#[test]
fn packed_examples_need_osier_alone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("the root manifest");
    let (_, names) = manifest.split_once("\"/examples/{").expect("the examples of the package");
    let (names, _) = names.split_once("}.rs\"").expect("the end of their list");
    let (mut checked, mut findings) = (0, Vec::new());
    for name in names.split(',') {
        let path = root.join("examples").join(name).with_extension("rs");
        let source = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{name}: {e}"));
        let used = source.lines().filter_map(|line| line.strip_prefix("use "));
        // Paths that begin with an enumeration of the example are its own.
        let is_own = |path: &str| path.starts_with(char::is_uppercase);
        let foreign = used
            .filter(|path| !path.starts_with("osier") && !path.starts_with("std") && !is_own(path));
        findings.extend(foreign.map(|path| format!("examples/{name}.rs uses {path}")));
        checked += 1;
    }
    report(checked, findings);
}

/// The least Rust version is Cranelift's, on whose tables of entities every crate stands. The
/// pinned toolchain has this version, so each build and test tries it.
#[test]
fn the_least_rust_is_the_pinned_one_and_cranelifts() {
    let metadata = metadata();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pinned = fs::read_to_string(root.join("rust-toolchain.toml")).expect("the toolchain");
    let all = super::licenses::whole_metadata();
    let cranelift = list(&all, "packages")
        .iter()
        .filter(|p| text(p, "name") == "cranelift-entity")
        .filter_map(|p| p["rust_version"].as_str())
        .max_by_key(|version| parts(version))
        .expect("cranelift-entity says its least Rust");
    let published = published(&metadata);
    let mut findings = Vec::new();
    for package in &published {
        let (name, least) = (text(package, "name"), text(package, "rust_version"));
        if parts(least) != parts(cranelift) {
            findings.push(format!("{name} needs Rust {least}, cranelift-entity {cranelift}"));
        }
        if !pinned.contains(&format!("channel = \"{least}")) {
            findings.push(format!("{name} needs Rust {least}, which is not the pinned one"));
        }
    }
    report(published.len(), findings);
}

/// The first two numbers of a version.
fn parts(version: &str) -> Vec<u32> {
    version.split('.').take(2).map(|part| part.parse().expect("a number")).collect()
}

/// A target without tests of its own is not compiled a second time for them, and says so. Nothing
/// would run a test that somebody adds there.
#[test]
fn a_target_without_a_test_build_has_no_test() {
    let metadata = metadata();
    let packages = list(&metadata, "packages").iter();
    let targets = packages.flat_map(|package| list(package, "targets"));
    let is_left_out = |target: &&Value| target["test"] == false && !has_kind(target, OTHERS);
    let folders: Vec<&Path> = targets.filter(is_left_out).map(folder_of).collect();
    let sources = tree::sources();
    let below = sources
        .iter()
        .filter(|source| folders.iter().any(|folder| Path::new(&source.path).starts_with(folder)));
    let tests = below.filter(|source| MARKS.iter().any(|mark| source.text.contains(mark)));
    let findings = tests.map(|source| format!("no command runs the tests of {}", source.path));
    report(folders.len(), findings.collect());
}

/// What a source with tests contains.
const MARKS: [&str; 3] = ["#[test]", "#[cfg(test)]", "proptest!"];

/// The kinds of targets that no test build is expected of.
const OTHERS: &[&str] = &["bench", "custom-build", "example", "test"];

/// Whether a target is of one of these kinds.
fn has_kind(target: &Value, kinds: &[&str]) -> bool {
    list(target, "kind").iter().any(|kind| kinds.contains(&kind.as_str().unwrap_or_default()))
}

/// The folder of a target's sources, from the root.
fn folder_of(target: &Value) -> &Path {
    let file = Path::new(text(target, "src_path"));
    let folder = file.parent().expect("a file has a folder");
    folder.strip_prefix(env!("CARGO_MANIFEST_DIR")).expect("packages lie in the workspace")
}
