//! Random modules in the interpreter, in native code and in wasmi. Instantiation and each call must
//! end alike: results, traps, exported globals and memories, before and after `O1`.
//!
//! A module counts its loop iterations and calls, and traps when there are too many. So every run
//! ends at the same place in every engine. Fuel bounds all engines besides.

mod canonical;
mod judge;
mod module;
mod ours;
mod state;
mod theirs;

pub use judge::SmithCounts;

use crate::arguments::SmithArguments;
use judge::{judge, judge_sample};
use module::Sample;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// A module about which the engines disagree, or on which one of ours panicked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EngineDifference {
    /// The seed of the module.
    pub seed: u64,
    /// Whether an engine panicked.
    pub panicked: bool,
    /// A description.
    pub message: String,
}

/// Judges the modules of `count` seeds from `seed` on, on `jobs` threads. Findings are in the order
/// of seeds. Neither findings nor counts depend on the number of threads.
///
/// # Errors
/// If native code is requested and not supported on this host.
pub fn campaign(
    seed: u64,
    count: u64,
    jobs: usize,
    native: bool,
) -> Result<(SmithCounts, Vec<EngineDifference>), String> {
    let engine = native.then(ours::engine).transpose()?;
    let next = AtomicU64::new(0);
    let total = Mutex::new((SmithCounts::default(), Vec::new()));
    thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            let work = || {
                let mut counts = SmithCounts::default();
                let mut findings = Vec::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        break;
                    }
                    match guarded(seed.wrapping_add(number), |seed| judge(seed, engine.as_ref())) {
                        Ok(one) => counts += one,
                        Err(finding) => findings.push(finding),
                    }
                }
                let mut total = total.lock().expect("no thread panics here");
                total.0 += counts;
                total.1.append(&mut findings);
            };
            let thread = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
            thread.expect("a thread can be made");
        }
    });
    let (counts, mut findings) = total.into_inner().expect("no thread panics here");
    findings.sort_by_key(|f| f.seed);
    Ok((counts, findings))
}

/// Bytes of stack of a thread: native code recurses on it as deep as the rounds of a module allow.
const STACK: usize = 64 << 20;

/// Runs a judgment and turns a difference or a panic into a finding.
fn guarded(
    seed: u64,
    judgment: impl FnOnce(u64) -> Result<SmithCounts, String>,
) -> Result<SmithCounts, EngineDifference> {
    match catch_unwind(AssertUnwindSafe(|| judgment(seed))) {
        Ok(Ok(counts)) => Ok(counts),
        Ok(Err(message)) => Err(EngineDifference { seed, panicked: false, message }),
        Err(payload) => {
            let text = payload.downcast_ref::<String>().cloned();
            let text = text.or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            Err(EngineDifference {
                seed,
                panicked: true,
                message: text.unwrap_or_else(|| "a panic".to_owned()),
            })
        }
    }
}

fn judge_file(
    file: &Path,
    seed: u64,
    native: bool,
) -> Result<(SmithCounts, Vec<EngineDifference>), String> {
    let engine = native.then(ours::engine).transpose()?;
    let bytes = std::fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let sample =
        Sample::of(bytes).ok_or_else(|| format!("{}: no WebAssembly module", file.display()))?;
    Ok(match guarded(seed, |seed| judge_sample(&sample, seed, engine.as_ref())) {
        Ok(counts) => (counts, Vec::new()),
        Err(finding) => (SmithCounts::default(), vec![finding]),
    })
}

/// Runs the command: prints findings and counts. Returns `false` if there is a finding.
///
/// # Errors
/// If the output cannot be written, or if no module was judged.
pub fn run(arguments: &SmithArguments, out: &mut dyn Write) -> Result<bool, String> {
    if let Some(file) = &arguments.write {
        let sample = module::sample(arguments.seed).ok_or("the seed makes no module")?;
        std::fs::write(file, sample.bytes).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    // Panics are reported as findings, with their seed.
    std::panic::set_hook(Box::new(|_| {}));
    let jobs =
        arguments.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    let native = !arguments.without_native;
    let (counts, findings) = match &arguments.file {
        Some(file) => judge_file(file, arguments.seed, native)?,
        None => campaign(arguments.seed, arguments.modules, jobs, native)?,
    };
    for finding in findings.iter().take(20) {
        let kind = if finding.panicked { "panic" } else { "difference" };
        let EngineDifference { seed, message, .. } = finding;
        writeln!(out, "{kind}: --seed {seed} --modules 1: {message}").map_err(|e| e.to_string())?;
    }
    print(&counts, &findings, out).map_err(|e| e.to_string())?;
    if counts.calls == 0 && findings.is_empty() {
        return Err("nothing was judged".to_owned());
    }
    Ok(findings.is_empty())
}

fn print(
    counts: &SmithCounts,
    findings: &[EngineDifference],
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let panics = findings.iter().filter(|f| f.panicked).count();
    let rows = [
        ("modules judged", counts.modules),
        ("seeds without a module", counts.none),
        ("  not to be instantiated", counts.hopeless),
        ("instructions", counts.instructions),
        ("instructions after O1", counts.optimized),
        ("calls of each version", counts.calls),
        ("  returned", counts.returned),
        ("    with a value", counts.valued),
        ("  at a limit, not compared", counts.unfinished),
        ("  trapped", counts.traps.values().sum()),
    ];
    for (name, count) in rows {
        writeln!(out, "{name:<28}{count:>14}")?;
    }
    for (kind, count) in &counts.traps {
        writeln!(out, "    {:<24}{count:>14}", kind.to_string())?;
    }
    writeln!(out, "{:<28}{panics:>14}", "panics")?;
    writeln!(out, "{:<28}{:>14}", "differences", findings.len() - panics)
}
