//! Random C programs in every engine, after every pipeline, beside their native code; and the
//! mappings of their functions before the checker.
//!
//! csmith writes programs whose results the standard determines. A program prints a checksum of its
//! globals at its end. The compiler builds it at `-O0`, where each variable is a place in memory,
//! at `-O1` and at `-O2`.
//!
//! The judge runs the command `osier` and depends on no other package of the project: the gate
//! builds it in seconds. The comparison of engines in `judges` compiles [`process`], too.

mod arguments;
mod judge;
pub mod process;
mod program;

pub use arguments::{CsmithArguments, ProgramSize};
pub use judge::CsmithCounts;

use judge::judge;
use program::{CProgram, LEVELS};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// The most rewrites that may be given up, out of a total: a function with given-up rewrites is
/// slower.
const GIVEN_UP: (u64, u64) = (1, 1000);

/// The most findings that are printed.
const PRINTED: usize = 60;

/// Something wrong with a module.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ModuleFinding {
    /// The seed of the program.
    pub seed: u64,
    /// The level of the compiler.
    pub level: &'static str,
    /// The options of the command, and its output or its end.
    pub message: String,
}

/// The counts of a campaign, and its findings in the order of seeds.
type Judged = (CsmithCounts, Vec<ModuleFinding>);

/// Judges the programs of all seeds that the arguments name. Findings and counts depend neither on
/// the number of threads nor on time, except for the programs that are skipped since they take too
/// long or crash.
///
/// # Errors
/// If a tool or the command is missing, or a tool fails.
pub fn campaign(arguments: &CsmithArguments, osier: &Path) -> Result<Judged, String> {
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let folder = match &arguments.write {
        Some(folder) => {
            std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
            folder.as_path()
        }
        None => scratch.path(),
    };
    let next = AtomicU64::new(0);
    let total = Mutex::new(Ok((CsmithCounts::default(), Vec::new())));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= arguments.programs {
                break;
            }
            let seed = arguments.seed.wrapping_add(number);
            let judged = judge_seed(seed, arguments, folder, osier);
            let mut total = total.lock().expect("no thread panics here");
            match (&mut *total, judged) {
                (Ok(all), Ok((counts, mut findings))) => {
                    all.0 += counts;
                    all.1.append(&mut findings);
                }
                // The first error ends the campaign.
                (Ok(_), Err(error)) => *total = Err(error),
                (Err(_), _) => break,
            }
        }
    };
    let jobs = arguments.jobs.unwrap_or_else(processors);
    thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(work);
        }
    });
    let (mut counts, mut findings) = total.into_inner().expect("no thread panics here")?;
    findings.sort();
    counts.places.sort();
    Ok((counts, findings))
}

fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Judges the modules of a seed in a folder of its own, which is kept if the caller wants programs.
fn judge_seed(
    seed: u64,
    arguments: &CsmithArguments,
    folder: &Path,
    osier: &Path,
) -> Result<Judged, String> {
    let folder = folder.join(seed.to_string());
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let judged = judge_program(seed, arguments, &folder, osier);
    if arguments.write.is_none() {
        std::fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    judged
}

fn judge_program(
    seed: u64,
    arguments: &CsmithArguments,
    folder: &Path,
    osier: &Path,
) -> Result<Judged, String> {
    let skipped = CsmithCounts { skipped: 1, ..CsmithCounts::default() };
    let Some(program) = CProgram::make(seed, arguments.size, folder)? else {
        return Ok((skipped, Vec::new()));
    };
    let mut counts = CsmithCounts { programs: 1, ..CsmithCounts::default() };
    let mut findings = Vec::new();
    for level in LEVELS {
        let Some(module) = program.module(level)? else {
            return Ok((skipped, Vec::new()));
        };
        let (mut of_module, found) = judge(osier, &module, &program.expected)?;
        for place in &mut of_module.places {
            *place = format!("--seed {seed}, {level}: {place}");
        }
        counts += of_module;
        findings.extend(found.into_iter().map(|message| ModuleFinding { seed, level, message }));
    }
    Ok((counts, findings))
}

/// Runs the command: prints findings and counts. Returns `false` if there is a finding, or too many
/// rewrites are given up.
///
/// # Errors
/// As [`campaign`]; also if fewer programs ran than `--least`, or the output cannot be written.
pub fn run(arguments: &CsmithArguments, out: &mut dyn Write) -> Result<bool, String> {
    let osier = command(arguments)?;
    let (counts, findings) = campaign(arguments, &osier)?;
    print(&counts, &findings, out).map_err(|error| error.to_string())?;
    if counts.programs < arguments.least {
        let (ran, least) = (counts.programs, arguments.least);
        return Err(format!("{ran} programs ran, and {least} have to"));
    }
    Ok(findings.is_empty() && !gives_up_too_many(&counts))
}

fn gives_up_too_many(counts: &CsmithCounts) -> bool {
    counts.given_up * GIVEN_UP.1 > counts.rewrites * GIVEN_UP.0
}

/// The command `osier`.
///
/// # Errors
/// If it does not exist.
fn command(arguments: &CsmithArguments) -> Result<PathBuf, String> {
    let judges = std::env::current_exe().map_err(|error| error.to_string())?;
    let osier = arguments.osier.clone().unwrap_or_else(|| judges.with_file_name("osier"));
    match osier.exists() {
        true => Ok(osier),
        false => Err(format!("no {} (cargo build --release builds it)", osier.display())),
    }
}

fn print(
    counts: &CsmithCounts,
    findings: &[ModuleFinding],
    out: &mut dyn Write,
) -> std::io::Result<()> {
    for ModuleFinding { seed, level, message } in findings.iter().take(PRINTED) {
        writeln!(out, "finding: --seed {seed}, {level}: {message}")?;
    }
    for place in counts.places.iter().take(PRINTED) {
        writeln!(out, "given up: {place}")?;
    }
    let rows = [
        ("programs", counts.programs),
        ("skipped, no answer", counts.skipped),
        ("modules", counts.modules),
        ("  bytes", counts.bytes),
        ("runs", counts.runs),
        ("entries that hold", counts.held),
        ("  dropped", counts.dropped),
        ("  refuted, of those dropped", counts.refuted),
        ("rewrites", counts.rewrites),
        ("  given up", counts.given_up),
    ];
    for (name, count) in rows {
        writeln!(out, "{name:<28}{count:>14}")?;
    }
    writeln!(out, "{:<28}{:>14.1}", "processor seconds of osier", counts.processor)?;
    let (seconds, options) = &counts.longest;
    writeln!(out, "{:<28}{seconds:>14.1}  {options}", "longest process, seconds")?;
    if gives_up_too_many(counts) {
        let (some, all) = GIVEN_UP;
        writeln!(out, "more than {some} of {all} rewrites are given up")?;
    }
    writeln!(out, "{:<28}{:>14}", "findings", findings.len())
}

#[cfg(test)]
mod tests;
