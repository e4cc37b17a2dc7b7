//! `wicker bench DIRECTORY`: the programs of a directory natively, and how many times as long they
//! take in the interpreter, in PUC Lua, in LuaJIT and in node, if these are installed.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use wicker::Machine;
use wicker::native::{Counts, Tuning};

/// Rounds; in each, every way runs a program once, but interpreters run in the first alone.
const ROUNDS: usize = 5;
/// The runs of an empty program, whose median is subtracted from a time.
const STARTS: usize = 3;

/// A way to run a program.
struct Way {
    label: &'static str,
    command: PathBuf,
    option: Option<&'static str>,
    /// Of the file with the program.
    extension: &'static str,
    /// Whether the first round alone runs it.
    is_slow: bool,
    /// Whether the time of an empty program is subtracted.
    is_slow_to_start: bool,
}

/// The ways other than the own ones: a command, and the extension of its programs. The Debian
/// packages have the names of the commands, but for `node` (`nodejs`).
const OTHERS: [(&str, &str); 3] = [("lua5.4", "lua"), ("luajit", "lua"), ("node", "js")];

/// Runs the programs, and prints for each way the quartiles of whole processes, and of the ratios
/// within rounds to the native time. The counts of native code and the functions without it follow.
/// The last lines have the geometric means of the median ratios.
///
/// # Errors
/// If a program cannot be run, fails, prints another text than is expected, or takes no longer than
/// an empty program whose time is subtracted.
pub(crate) fn run(directory: &Path) -> Result<(), String> {
    let listed = std::fs::read_dir(directory).map_err(|e| format!("{}: {e}", directory.display()));
    let mut files: Vec<PathBuf> = listed?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "wk"));
    files.sort();
    let ways = ways()?;
    let mut logarithms = vec![Vec::new(); ways.len()];
    let slow = ways.iter().filter(|way| way.is_slow).map(|way| way.label);
    print(format!(
        "milliseconds, and as a multiple of the native time: medians (and quartiles) of {ROUNDS} \
         rounds, but one round of {}",
        slow.collect::<Vec<_>>().join(", ")
    ))?;
    for file in &files {
        print(file.file_stem().unwrap_or_default().to_string_lossy().into_owned())?;
        for (all, measured) in logarithms.iter_mut().zip(compare(&ways, file)?) {
            all.extend(measured.map(f64::ln));
        }
        show_counts(file)?;
    }
    print("geometric mean of the multiples".to_owned())?;
    for (Way { label, .. }, all) in ways.iter().zip(logarithms) {
        let mean = (all.iter().sum::<f64>() / all.len().max(1) as f64).exp();
        print(format!("  {label:11} {mean:8.3} of {} programs", all.len()))?;
    }
    Ok(())
}

/// Runs a program in all ways, in turns. Returns the median ratio of each to the native time;
/// `None` where the program is not there in that language.
fn compare(ways: &[Way], file: &Path) -> Result<Vec<Option<f64>>, String> {
    let mut measured = vec![(Vec::new(), Vec::new()); ways.len()];
    for round in 0..ROUNDS {
        let mut native = None;
        for (way, (times, ratios)) in ways.iter().zip(&mut measured) {
            if way.program(file).exists() && (round == 0 || !way.is_slow) {
                let time = way.milliseconds(file)?;
                times.push(time);
                ratios.push(time / *native.get_or_insert(time));
            }
        }
    }
    let shown = ways.iter().zip(measured).map(|(Way { label, .. }, (times, ratios))| {
        if times.is_empty() {
            return Ok(None);
        }
        let (line, ratio) = line(times, ratios);
        print(format!("  {label:11} {line}"))?;
        Ok(Some(ratio))
    });
    shown.collect()
}

/// The median of times and of ratios, with the quartiles of more than one round. Returns the median
/// ratio, too.
fn line(times: Vec<f64>, ratios: Vec<f64>) -> (String, f64) {
    let is_single = times.len() == 1;
    let ([low, time, high], [least, ratio, most]) = (quartiles(times), quartiles(ratios));
    let line = match is_single {
        true => format!("{time:7.0} {ratio:9.3}"),
        false => {
            format!("{time:7.0} ({low:.0} to {high:.0}) {ratio:9.3} ({least:.3} to {most:.3})")
        }
    };
    (line, ratio)
}

/// The time of a program without the median time of the empty program.
///
/// # Errors
/// If nothing is left.
fn without_start(time: f64, starts: Vec<f64>) -> Result<f64, String> {
    let [_, start, _] = quartiles(starts);
    match time > start {
        true => Ok(time - start),
        false => Err(format!("{time:.1} ms, and {start:.1} ms for an empty program")),
    }
}

/// The own ways, the native way first, and the others that are installed. Prints the names of
/// missing commands.
fn ways() -> Result<Vec<Way>, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let own_way = |label, option, is_slow| {
        let (command, extension) = (own.clone(), "wk");
        Way { label, command, option, extension, is_slow, is_slow_to_start: false }
    };
    let mut ways =
        vec![own_way("native", Some("--jit"), false), own_way("interpreter", None, true)];
    for (label, extension) in OTHERS {
        let command = PathBuf::from(label);
        match Command::new(&command).arg("-v").output() {
            Ok(_) => {
                let (option, is_slow) = (None, label == "lua5.4");
                let is_slow_to_start = label == "node";
                ways.push(Way { label, command, option, extension, is_slow, is_slow_to_start });
            }
            Err(error) => print(format!("{label} is not installed: {error}"))?,
        }
    }
    Ok(ways)
}

impl Way {
    /// The program in the language of this way.
    fn program(&self, file: &Path) -> PathBuf {
        file.with_extension(self.extension)
    }

    /// The time that a program takes.
    fn milliseconds(&self, file: &Path) -> Result<f64, String> {
        let expected = file.with_extension("expected");
        let expected =
            std::fs::read(&expected).map_err(|error| format!("{}: {error}", expected.display()))?;
        let program = self.program(file);
        let (time, output) = self.run(&program)?;
        if output != expected {
            return Err(format!("{}: {}", self.label, String::from_utf8_lossy(&output)));
        }
        if !self.is_slow_to_start {
            return Ok(time);
        }
        let start = |_| Ok(self.run(Path::new("/dev/null"))?.0);
        let starts = (0..STARTS).map(start).collect::<Result<_, String>>()?;
        without_start(time, starts)
            .map_err(|why| format!("{} {}: {why}", self.label, program.display()))
    }

    /// The milliseconds of a process, and its output.
    fn run(&self, file: &Path) -> Result<(f64, Vec<u8>), String> {
        let mut command = Command::new(&self.command);
        command.args(self.option).arg(file);
        let begun = Instant::now();
        let ended = command.output();
        let time = begun.elapsed().as_secs_f64() * 1e3;
        match ended {
            Ok(output) if output.status.success() => Ok((time, output.stdout)),
            Ok(output) => Err(format!("{command:?}: {output:?}")),
            Err(error) => Err(format!("{command:?}: {error}")),
        }
    }
}

/// Prints the events of native code, and why functions lack native code.
fn show_counts(file: &Path) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| failed(&error))?;
    let mut machine = Machine::new(&text).map_err(|error| failed(&error))?;
    let counts = machine.run_native(Tuning::default()).map_err(|error| failed(&error))?;
    let Counts { compiled, refused, plain, kept, exits, objects, inlined, entered, micros, .. } =
        counts;
    print(format!(
        "  {compiled} functions compiled in {} ms, {inlined} calls inlined, {objects} objects left \
         out, {entered} loops entered, {exits} exits, {} collections",
        micros / 1000,
        machine.collections()
    ))?;
    for (what, list) in [("refused", refused), ("without passes", plain), ("with objects", kept)] {
        list.into_iter().try_for_each(|why| print(format!("  {what}: {why}")))?;
    }
    Ok(())
}

fn print(line: String) -> Result<(), String> {
    writeln!(io::stdout(), "{line}").map_err(|error| error.to_string())
}

/// The quartiles of figures; the second is the median.
pub(crate) fn quartiles(mut all: Vec<f64>) -> [f64; 3] {
    all.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| all[all.len() * quarter / 4])
}
