//! Runs the tests of the runtime itself over this back end.
//!
//! The published package of the runtime has its tests. Each file of them is compiled by `rustc`
//! with this crate under the name of the runtime ([`crate::api`]), and run.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the runtime's package, as `cargo metadata` names it.
fn package() -> Result<PathBuf, String> {
    let mut metadata = Command::new("cargo");
    metadata.args(["metadata", "--format-version", "1", "--locked"]);
    metadata.current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = metadata.output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let paths = text.split("\"manifest_path\":\"").skip(1);
    let mut paths = paths.filter_map(|rest| rest.split('"').next());
    let path = paths.find(|path| path.contains("/rbpf-")).ok_or("cargo metadata has no `rbpf`")?;
    Ok(Path::new(path).parent().unwrap_or(Path::new("/")).to_owned())
}

/// Compiles a file of tests against the library beside this command.
fn compile(file: &Path, to: &Path) -> Result<(), String> {
    let here = std::env::current_exe().map_err(|error| error.to_string())?;
    let here = here.parent().unwrap_or(Path::new("/"));
    let mut rustc = Command::new("rustc");
    rustc.args(["--test", "--edition", "2024", "--cap-lints", "allow"]);
    for feature in ["std", "cranelift"] {
        rustc.args(["--cfg".to_owned(), format!("feature=\"{feature}\"")]);
    }
    let library = here.join("libosier_ebpf.rlib");
    rustc.args(["--extern", &format!("rbpf={}", library.display())]);
    rustc.args(["-L", &format!("dependency={}", here.join("deps").display())]);
    rustc.arg(file).arg("-o").arg(to);
    let output = rustc.output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// The tests of one program that passed and failed; names those that failed.
fn count(program: &Path) -> Result<(u32, u32), String> {
    let output = Command::new(program).output().map_err(|error| error.to_string())?;
    let (mut passed, mut failed) = (0, 0);
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Some(test) = line.strip_prefix("test ") else { continue };
        passed += u32::from(test.ends_with("... ok"));
        if test.ends_with("... FAILED") {
            failed += 1;
            println!("{test}");
        }
    }
    Ok((passed, failed))
}

/// Runs the tests, and counts.
///
/// # Errors
/// If a file cannot be compiled, or a test fails.
pub fn run() -> Result<(), String> {
    let tests = package()?.join("tests");
    let to = std::env::temp_dir().join(format!("osier-ebpf-tests-{}", std::process::id()));
    fs::create_dir_all(&to).map_err(|error| error.to_string())?;
    let entries = fs::read_dir(&tests).map_err(|error| error.to_string())?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    let mut all = (0, 0);
    for file in files.iter().filter(|file| file.file_stem() != Some(OsStr::new("common"))) {
        let program = to.join(file.file_stem().unwrap_or_default());
        compile(file, &program)?;
        let (passed, failed) = count(&program)?;
        println!(
            "{}: {passed} pass, {failed} fail",
            file.file_name().unwrap_or_default().display()
        );
        all = (all.0 + passed, all.1 + failed);
    }
    fs::remove_dir_all(&to).map_err(|error| error.to_string())?;
    println!("{} tests of the runtime pass, {} fail", all.0, all.1);
    if all.1 == 0 { Ok(()) } else { Err(format!("{} tests fail", all.1)) }
}
