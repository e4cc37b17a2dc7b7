//! Runs the tests of the runtime itself over this back end.
//!
//! The published package of the runtime has its tests. A package made for the occasion has a copy
//! of them, and this crate under the name of the runtime ([`crate::api`]).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The root of this workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder of the runtime's package, as `cargo metadata` names it.
fn package() -> Result<PathBuf, String> {
    let mut metadata = cargo();
    metadata.args(["metadata", "--format-version", "1", "--locked"]).current_dir(root());
    let output = metadata.output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let paths =
        text.split("\"manifest_path\":\"").skip(1).filter_map(|rest| rest.split('"').next());
    let is_of_runtime = |path: &&str| path.contains("/rbpf-");
    let path = paths.into_iter().find(is_of_runtime).ok_or("cargo metadata names no `rbpf`")?;
    Ok(Path::new(path).parent().unwrap_or(Path::new("/")).to_owned())
}

/// Writes the package with the tests into a folder.
fn write(to: &Path, tests: &Path) -> io::Result<()> {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to.join("tests"))?;
    fs::create_dir_all(to.join("src"))?;
    fs::write(to.join("src/lib.rs"), "")?;
    for entry in fs::read_dir(tests)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join("tests").join(entry.file_name()))?;
    }
    let workspace = fs::read_to_string(root().join("Cargo.toml"))?;
    // The profiles of the workspace: without optimization, the tests would take minutes.
    let profiles = workspace.find("[profile.dev]").map_or("", |at| &workspace[at..]);
    let here = env!("CARGO_MANIFEST_DIR");
    let text = format!(
        "[package]\nname = \"runtime-tests\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [features]\ndefault = [\"std\", \"cranelift\"]\nstd = []\ncranelift = []\n\n\
         [dependencies]\nrbpf = {{ package = \"osier-ebpf\", path = {here:?} }}\nlibc = \"0.2\"\n\n\
         [workspace]\n\n{profiles}"
    );
    fs::write(to.join("Cargo.toml"), text)?;
    fs::copy(root().join("Cargo.lock"), to.join("Cargo.lock"))?;
    Ok(())
}

/// Runs the tests, and counts.
///
/// # Errors
/// If the package could not be made, or a test fails.
pub fn run() -> Result<(), String> {
    let to = std::env::temp_dir().join(format!("osier-ebpf-tests-{}", std::process::id()));
    let tests = package()?.join("tests");
    write(&to, &tests).map_err(|error| format!("{}: {error}", to.display()))?;
    let mut test = cargo();
    test.args(["test", "--offline", "--no-fail-fast", "--tests"]).current_dir(&to);
    let output = test.output().map_err(|error| error.to_string())?;
    let _ = fs::remove_dir_all(&to);
    let text = String::from_utf8_lossy(&output.stdout);
    let (mut passed, mut failed) = (0_u32, 0_u32);
    for line in text.lines() {
        if line.starts_with("test ") && line.ends_with("FAILED") {
            println!("{line}");
        }
        let Some(counts) = line.strip_prefix("test result: ") else { continue };
        let words: Vec<&str> =
            counts.split([' ', ';', '.']).filter(|word| !word.is_empty()).collect();
        for pair in words.windows(2) {
            let count = pair[0].parse::<u32>().unwrap_or(0);
            match pair[1] {
                "passed" => passed += count,
                "failed" => failed += count,
                _ => {}
            }
        }
    }
    println!("{passed} tests of the runtime pass, {failed} fail");
    if passed == 0 {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    if failed == 0 { Ok(()) } else { Err(format!("{failed} tests fail")) }
}
