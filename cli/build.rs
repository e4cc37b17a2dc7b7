//! Tells the command its version: that of the package, and the commit, if the sources are in a
//! repository of git. Reads the repository's files, so that a build needs no git. Without a
//! repository, or with one in another form, the version has no commit. The script runs again when
//! the head of the repository moves, and not otherwise.

use std::fs;
use std::path::{Path, PathBuf};

/// The digits of a commit that the version has.
const DIGITS: usize = 9;

fn main() {
    let package = std::env::var("CARGO_PKG_VERSION").expect("cargo sets the version");
    println!("cargo::rerun-if-changed=build.rs");
    let version = match commit(Path::new("../.git")) {
        Some(commit) => format!("{package} ({commit})"),
        None => package,
    };
    println!("cargo::rustc-env=OSIER_VERSION={version}");
}

/// The beginning of the commit at the head of a repository.
fn commit(git: &Path) -> Option<String> {
    let git = folder(git)?;
    let head = watched(&git.join("HEAD"))?;
    let Some(name) = head.strip_prefix("ref: ") else { return digits(&head) };
    // A worktree has its own head, and shares references with the repository.
    let common = fs::read_to_string(git.join("commondir")).ok();
    let shared = common.map_or_else(|| git.clone(), |path| git.join(path.trim()));
    if let Some(commit) = watched(&shared.join(name)) {
        return digits(&commit);
    }
    let packed = watched(&shared.join("packed-refs"))?;
    let mut lines = packed.lines();
    lines.find_map(|line| line.strip_suffix(name)?.strip_suffix(' ')).and_then(digits)
}

/// The folder of a repository. In a worktree, `.git` is a file that names it.
fn folder(git: &Path) -> Option<PathBuf> {
    if git.is_dir() {
        return Some(git.to_owned());
    }
    let text = fs::read_to_string(git).ok()?;
    Some(git.parent()?.join(text.strip_prefix("gitdir: ")?.trim()))
}

/// The text of a file, without blanks at its end. The script runs again when the file changes. A
/// file that is missing is not watched: cargo would run the script at every build.
fn watched(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    println!("cargo::rerun-if-changed={}", path.display());
    Some(text.trim_end().to_owned())
}

fn digits(commit: &str) -> Option<String> {
    let is_commit = commit.len() >= DIGITS && commit.bytes().all(|b| b.is_ascii_hexdigit());
    is_commit.then(|| commit[..DIGITS].to_owned())
}
