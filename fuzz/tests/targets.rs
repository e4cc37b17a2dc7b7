//! The bodies of the fuzz targets, on seeds and on mutations of them. The inputs are the same in
//! every run. `OSIER_TARGET_ROUNDS` multiplies their number.

use osier_fuzz::targets::{FuzzTarget, TARGETS};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use verify::prng::Prng;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package is a folder of the root")
}

/// The files of a folder and of the folders in it with this extension, sorted.
fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let (mut found, mut pending) = (Vec::new(), vec![root().join(folder)]);
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => pending.push(path),
                false if path.extension().is_some_and(|e| e == extension) => found.push(path),
                false => {}
            }
        }
    }
    found.sort();
    found
}

/// The seeds of a target: its own, and files of this repository.
fn seeds(target: &FuzzTarget) -> Vec<Vec<u8>> {
    let paths = match target.name {
        "module_bytes" => files("tests/corpus", "wasm"),
        "oir_text" => files("tests/oir", "oir"),
        _ => Vec::new(),
    };
    let read = |path: &PathBuf| fs::read(path).expect("readable");
    (target.seeds)().into_iter().chain(paths.iter().map(read)).collect()
}

/// The bytes of a seed with a few changes. `other` gives bytes for splices.
fn mutated(seed: &[u8], other: &[u8], words: &[Vec<u8>], prng: &mut Prng) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=prng.below(3) {
        let at = prng.index(bytes.len() + 1);
        let end = (at + 1 + prng.index(12)).min(bytes.len()).max(at);
        match prng.below(8) {
            0 if at < bytes.len() => bytes[at] ^= 1 << prng.below(8),
            1 if at < bytes.len() => bytes[at] = prng.below(256) as u8,
            // Another digit keeps a text readable.
            2 | 3 if at < bytes.len() => {
                if let Some(digit) = bytes[at..].iter_mut().find(|byte| byte.is_ascii_digit()) {
                    *digit = b'0' + prng.below(10) as u8;
                }
            }
            4 if !words.is_empty() => {
                let word = &words[prng.index(words.len())];
                drop(bytes.splice(at..at, word.iter().copied()));
            }
            5 => drop(bytes.drain(at..end)),
            6 => {
                let copy = bytes[at..end].to_vec();
                drop(bytes.splice(at..at, copy));
            }
            _ if !other.is_empty() => {
                let from = prng.index(other.len());
                let to = (from + 1 + prng.index(40)).min(other.len());
                drop(bytes.splice(at..end, other[from..to].iter().copied()));
            }
            _ => {}
        }
    }
    bytes
}

/// Runs a target on its seeds, and then on so many mutations.
fn run(name: &str, mutations: u32) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target");
    let (seeds, words) = (seeds(target), (target.words)());
    let mut prng = Prng::new(u64::from(mutations));
    let rounds = std::env::var("OSIER_TARGET_ROUNDS").map_or(1, |n| n.parse().expect("a number"));
    seeds.iter().for_each(|seed| (target.run)(seed));
    for _ in 0..mutations * rounds {
        let [seed, other] = [0, 1].map(|_| &seeds[prng.index(seeds.len())]);
        (target.run)(&mutated(seed, other, &words, &mut prng));
    }
}

/// A test for each target. The numbers of mutations take about a second each.
macro_rules! targets {
    ($($name:ident $mutations:literal,)+) => {
        $(#[test]
        fn $name() {
            run(stringify!($name), $mutations);
        })+

        /// The targets that have a test.
        const TESTED: &[&str] = &[$(stringify!($name),)+];
    };
}

targets! {
    continuations 60,
    debug_info 2000,
    mapping_files 200,
    module_bytes 400,
    oir_text 600,
    past_reports 400,
    pipelines 20,
    profiles 1000,
    wat_text 1000,
}

/// Each target has a test, and a file for libFuzzer that runs its body and nothing else.
#[test]
fn every_target_is_tested_and_has_its_file() {
    let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(names, TESTED);
    let manifest = fs::read_to_string(root().join("fuzz-targets/Cargo.toml")).expect("a manifest");
    for name in names {
        let path = format!("fuzz-targets/fuzz_targets/{name}.rs");
        let text = fs::read_to_string(root().join(&path)).expect(&path);
        let body = format!("target::run(\"{name}\", data)");
        assert!(text.contains(&body), "{path} runs another body");
        let entry = format!("name = \"{name}\"\npath = \"fuzz_targets/{name}.rs\"\n");
        assert!(manifest.contains(&entry), "fuzz-targets/Cargo.toml lacks {name}");
    }
    let files = files("fuzz-targets/fuzz_targets", "rs");
    assert_eq!(files.len(), TARGETS.len(), "a file without a target: {files:?}");
}

/// The dictionaries in the repository are those of the targets; `OIR_BLESS=1` writes them.
#[test]
fn dictionaries_have_the_words_of_the_targets() {
    let mut checked = BTreeSet::new();
    for target in TARGETS.iter().filter(|target| !(target.words)().is_empty()) {
        let path = root().join(format!("fuzz-targets/dictionaries/{}.dict", target.name));
        let text = target.dictionary();
        if std::env::var_os("OIR_BLESS").is_some() {
            fs::write(&path, &text).expect("the repository is writable");
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(found, text, "{} is old: OIR_BLESS=1", path.display());
        checked.insert(target.name);
    }
    assert!(checked.len() >= 4, "{checked:?}");
}

/// Stands in for the tools of a service's machine: `cargo fuzz build`, the example `seeds`, `zip`
/// and `rustc`.
const TOOL: &str = r#"#!/bin/sh
set -e
case "$(basename "$0") $*" in
  "cargo fuzz build -O --debug-assertions --fuzz-dir fuzz-targets")
    mkdir -p fuzz-targets/target/here/release
    for source in fuzz-targets/fuzz_targets/*.rs; do
      touch "fuzz-targets/target/here/release/$(basename "$source" .rs)"
    done ;;
  "cargo run --quiet --locked -p osier-fuzz --example seeds -- "*)
    for folder; do :; done
    for source in fuzz-targets/fuzz_targets/*.rs; do
      mkdir -p "$folder/$(basename "$source" .rs)"
    done ;;
  "zip -q -r "*) ls >"$3" ;;
  "rustc -vV") echo "host: here" ;;
  *) echo "$0 $*" >&2; exit 1 ;;
esac
"#;

/// The script of OSS-Fuzz and ClusterFuzzLite gives each target, with its seeds and words.
#[test]
fn a_service_gets_each_target_with_its_seeds_and_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    for name in ["bin", "out", "src/osier/fuzz-targets"] {
        fs::create_dir_all(path(name)).expect("a folder");
    }
    for name in ["cargo", "zip", "rustc"] {
        fs::write(path("bin").join(name), TOOL).expect("a tool");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(path("bin").join(name), mode).expect("an executable");
    }
    for name in
        ["tests", "fuzz-targets/corpora", "fuzz-targets/fuzz_targets", "fuzz-targets/dictionaries"]
    {
        std::os::unix::fs::symlink(root().join(name), path("src/osier").join(name))
            .expect("a link");
    }
    let tools = format!("{}:/usr/bin:/bin", path("bin").display());
    let ended = std::process::Command::new(root().join(".clusterfuzzlite/build.sh"))
        .env("PATH", tools)
        .env("SRC", path("src"))
        .env("OUT", path("out"))
        .output()
        .expect("the script runs");
    assert!(ended.status.success(), "{ended:?}");
    for target in TARGETS {
        let out = |end: &str| path("out").join(format!("{}{end}", target.name));
        assert!(out("").exists() && out("_seed_corpus.zip").exists(), "{}", target.name);
        assert_eq!(out(".dict").exists(), !(target.words)().is_empty(), "{}", target.name);
    }
    let seeds = |name: &str| fs::read_to_string(path("out").join(name)).expect("seeds");
    assert!(seeds("module_bytes_seed_corpus.zip").contains("sort.wasm"));
    assert!(seeds("oir_text_seed_corpus.zip").contains("tests-oir-ops-assume.oir"));
}
