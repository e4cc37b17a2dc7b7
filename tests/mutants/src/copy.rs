//! The copy of the workspace in which every mutant can be switched on.

use crate::apply::{apply, sources};
use crate::switch::IS_COPY;
use crate::table::Table;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of this workspace.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a crate in tests/mutants")
}

/// The build folder of the workspace. The copy is built there too: crates of the copy have other
/// paths, and so other names of artifacts, and both share the dependencies.
fn target() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    target.unwrap_or_else(|| root().join("target"))
}

/// The folder that holds the copy and its programs: `target/mutants`.
pub fn folder() -> PathBuf {
    target().join("mutants")
}

/// Makes the copy of the workspace, builds one of its examples there, and returns its path.
/// Unchanged files keep their time, so that cargo rebuilds only the dependents of a change.
///
/// # Errors
/// The findings about the table, a file that cannot be read or written, or a build that fails.
pub fn build(example: &str) -> Result<PathBuf, String> {
    if IS_COPY {
        return Err("this is the copy already".to_owned());
    }
    let folder = folder();
    let workspace = folder.join("workspace");
    let table = Table::read().map_err(|malformed| malformed.to_string())?;
    let files = mutated(&table)?;
    write(&files, &workspace).map_err(|e| format!("{}: {e}", workspace.display()))?;
    let name = format!("{example}{}", std::env::consts::EXE_SUFFIX);
    let (program, own) = (target().join("release/examples").join(&name), folder.join(name));
    let in_place = |e: io::Error| format!("{}: {e}", program.display());
    let kept = program.exists().then(|| own.with_extension("kept"));
    if let Some(kept) = &kept {
        fs::copy(&program, kept).map_err(in_place)?;
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut build = Command::new(cargo);
    build.args(["build", "--release", "--offline", "--example", example]);
    build.args(["--features", SHARED_FEATURES]);
    build.current_dir(&workspace).env("CARGO_TARGET_DIR", target());
    let status = build.status().map_err(|e| format!("cargo does not start: {e}"))?;
    if !status.success() {
        return Err(format!("the mutated copy in {} does not build", workspace.display()));
    }
    take_out(&program, kept, &own).map_err(in_place)?;
    Ok(own)
}

/// The features with which `.ci/run` builds examples. Equal features make equal dependencies, which
/// cargo then does not compile again for the copy.
const SHARED_FEATURES: &str = "osier-cli/smith";

/// A program out of the copy takes the place of the workspace's in the shared build folder. This
/// moves it to a place of its own, and puts the workspace's program back.
fn take_out(program: &Path, kept: Option<PathBuf>, own: &Path) -> io::Result<()> {
    fs::rename(program, own)?;
    kept.map_or(Ok(()), |kept| fs::rename(kept, program))
}

/// The files of the copy, by path from the root.
type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Every file of the workspace, as the copy has it.
fn mutated(table: &Table) -> Result<Files, String> {
    let mut files = Files::new();
    let text =
        |path: &Path| fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()));
    let manifest = text(&root().join("Cargo.toml"))?;
    for entry in top(&manifest)? {
        read(Path::new(&entry), &mut files).map_err(|e| format!("{entry}: {e}"))?;
    }
    let changed = apply(table, &sources(table, root())).map_err(|found| found.join("\n"))?;
    let mut crates: BTreeSet<PathBuf> = BTreeSet::new();
    for (name, text) in changed {
        let ancestors = Path::new(&name).ancestors().skip(1);
        let home = ancestors.into_iter().find(|a| files.contains_key(&a.join("Cargo.toml")));
        crates.insert(home.ok_or_else(|| format!("{name} is in no crate"))?.to_owned());
        files.insert(name.into(), text.into_bytes());
    }
    for home in crates {
        let depth = home.components().count();
        let path = format!("{}tests/mutants", "../".repeat(depth));
        let row = format!(
            "[dependencies]\nmutants = {{ package = \"osier-mutants\", path = \"{path}\" }}\n"
        );
        replace(&mut files, &home.join("Cargo.toml"), "[dependencies]\n", &row)?;
    }
    // Conditions make some code unreachable and some imports unused: the warnings say nothing.
    for (path, table) in LINTS {
        let quiet = format!("{table}warnings = {{ level = \"allow\", priority = 100 }}\n");
        replace(&mut files, Path::new(path), table, &quiet)?;
    }
    // A build script of the copy depends on this crate. Its test dependencies would give features
    // to all macros, and cargo would compile the dependents of macros again.
    replace(&mut files, Path::new("tests/mutants/Cargo.toml"), TEST_DEPENDENCIES, "")?;
    let switch = Path::new("tests/mutants/src/switch.rs");
    replace(
        &mut files,
        switch,
        "pub const IS_COPY: bool = false;",
        "pub const IS_COPY: bool = true;",
    )?;
    Ok(files)
}

/// The manifests with tables of lints, and the heading of the table.
const LINTS: [(&str, &str); 2] =
    [("Cargo.toml", "[workspace.lints.rust]\n"), ("jit/Cargo.toml", "[lints.rust]\n")];

/// The dependencies of the tests of this crate, in its manifest.
const TEST_DEPENDENCIES: &str =
    "[dev-dependencies]\nproc-macro2 = { workspace = true }\nsyn = { workspace = true }\n";

fn replace(files: &mut Files, path: &Path, before: &str, after: &str) -> Result<(), String> {
    let text = files.get(path).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let text = text.filter(|text| text.matches(before).count() == 1);
    let text = text.ok_or_else(|| format!("{} does not have `{before}` once", path.display()))?;
    files.insert(path.to_owned(), text.replace(before, after).into_bytes());
    Ok(())
}

/// The names at the root that the copy needs: files, the folders of members, and the folders of the
/// root package.
fn top(manifest: &str) -> Result<BTreeSet<String>, String> {
    let rest = manifest.split_once("members = [").ok_or("the root manifest lists no members")?.1;
    let list = rest.split_once(']').ok_or("the list of members has no end")?.0;
    let members = list.split('"').skip(1).step_by(2);
    let folders = members.chain(["src", "tests", "examples", "benches"]);
    let mut names: BTreeSet<String> =
        folders.filter_map(|path| path.split('/').next()).map(str::to_owned).collect();
    names.retain(|name| root().join(name).is_dir());
    for entry in fs::read_dir(root()).map_err(|e| format!("{}: {e}", root().display()))? {
        let entry = entry.map_err(|e| e.to_string())?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_file() && !name.starts_with('.') {
            names.insert(name);
        }
    }
    Ok(names)
}

/// Reads a file, or every file in a folder, except hidden files and build output.
fn read(relative: &Path, files: &mut Files) -> io::Result<()> {
    let path = root().join(relative);
    if path.is_file() {
        files.insert(relative.to_owned(), fs::read(path)?);
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        let is_left_out = name == "target" || name.to_string_lossy().starts_with('.');
        if !is_left_out {
            read(&relative.join(name), files)?;
        }
    }
    Ok(())
}

/// Makes a folder hold these files and no others.
fn write(files: &Files, to: &Path) -> io::Result<()> {
    remove_others(files, to, Path::new(""))?;
    for (relative, bytes) in files {
        let path = to.join(relative);
        if fs::read(&path).is_ok_and(|there| there == *bytes) {
            continue;
        }
        fs::create_dir_all(path.parent().expect("a file is in a folder"))?;
        fs::write(path, bytes)?;
    }
    Ok(())
}

fn remove_others(files: &Files, to: &Path, relative: &Path) -> io::Result<()> {
    let folder = to.join(relative);
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let relative = relative.join(entry.file_name());
        if entry.path().is_dir() {
            remove_others(files, to, &relative)?;
        } else if !files.contains_key(&relative) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
