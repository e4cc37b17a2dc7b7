//! `wicker bench DIRECTORY`: the programs of a directory beside the same programs in Lua.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Rounds, in each of which every program runs once in either language.
const ROUNDS: usize = 5;
/// The command of Lua, Debian package `lua5.4`.
const LUA: &str = "lua5.4";

/// Runs the programs, and prints a line for each: the medians, and the median of the ratios within
/// rounds.
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
    print(format!("{:10} {:>9} {:>9} {:>7}", "program", "wicker ms", "lua ms", "ratio"))?;
    for file in files {
        let mut times = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            let wicker = timed(Command::new(&own).arg(&file))?;
            let lua = timed(Command::new(LUA).arg(file.with_extension("lua")))?;
            let [wicker, lua] = [wicker, lua].map(|time| time.as_secs_f64() * 1e3);
            for (list, time) in times.iter_mut().zip([wicker, lua, wicker / lua]) {
                list.push(time);
            }
        }
        let [wicker, lua, ratio] = times.map(median);
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        print(format!("{name:10} {wicker:9.0} {lua:9.0} {ratio:7.2}"))?;
    }
    Ok(())
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
