//! `wicker bench DIRECTORY`: the programs of a directory in the interpreter, natively, and in Lua.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Rounds; in each, every way runs every program once.
const ROUNDS: usize = 5;
/// The command of PUC Lua, Debian package `lua5.4`.
const LUA: &str = "lua5.4";

/// Runs the programs, and prints a line for each: the medians of whole processes, and the medians
/// of the ratios within rounds. The last line has the geometric means of the ratios.
///
/// # Errors
/// If a program cannot be run or fails.
pub(crate) fn run(directory: &Path) -> Result<(), String> {
    let listed = std::fs::read_dir(directory).map_err(|e| format!("{}: {e}", directory.display()));
    let mut files: Vec<PathBuf> = listed?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "wk"));
    files.sort();
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let print = |line: String| writeln!(io::stdout(), "{line}").map_err(|e| e.to_string());
    let columns = ["interpreter", "native", "lua", "interpreter/native", "lua/native"];
    let [a, b, c, d, e] = columns;
    print(format!("{:10} {a:>12} {b:>9} {c:>9} {d:>19} {e:>11}", "program, ms"))?;
    let mut logarithms = [0.0, 0.0];
    for file in &files {
        let mut rounds = [const { Vec::new() }; 5];
        for _ in 0..ROUNDS {
            let slow = timed(Command::new(&own).arg(file))?;
            let fast = timed(Command::new(&own).arg("--jit").arg(file))?;
            let lua = timed(Command::new(LUA).arg(file.with_extension("lua")))?;
            let [slow, fast, lua] = [slow, fast, lua].map(|time| time.as_secs_f64() * 1e3);
            let all = [slow, fast, lua, slow / fast, lua / fast];
            rounds.iter_mut().zip(all).for_each(|(list, time)| list.push(time));
        }
        let [slow, fast, lua, gain, beside] = rounds.map(median);
        logarithms[0] += gain.ln();
        logarithms[1] += beside.ln();
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        print(format!("{name:10} {slow:12.0} {fast:9.0} {lua:9.0} {gain:19.1} {beside:11.2}"))?;
    }
    let [gain, beside] = logarithms.map(|sum: f64| (sum / files.len().max(1) as f64).exp());
    print(format!("{:10} {:>12} {:>9} {:>9} {gain:19.1} {beside:11.2}", "mean", "", "", ""))
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn timed(command: &mut Command) -> Result<Duration, String> {
    let begun = Instant::now();
    let ended = command.stdout(Stdio::null()).status();
    let time = begun.elapsed();
    match ended {
        Ok(status) if status.success() => Ok(time),
        Ok(status) => Err(format!("{command:?} ended with {status}")),
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}
