//! Processes the functions of a module on several threads and returns the results in module order,
//! independent of the number of threads.

use super::failure::{CommandFailure, INTERRUPTED, tell};
use super::interrupt::CtrlC;
use super::progress::Progress;
use super::stopwatch::Stopwatch;
use ir::{Func, Function};
use rayon::ThreadPoolBuilder;
use rayon::iter::{ParallelBridge, ParallelIterator};
use std::any::Any;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Stack of a worker thread in bytes: 8 MiB, the usual size for a main thread.
pub(super) const STACK: usize = 8 << 20;

/// The interval at which the main thread tests the flag of Ctrl-C.
const POLL: Duration = Duration::from_millis(50);

/// The option that sets the number of threads.
#[derive(Debug, clap::Args)]
pub(super) struct Jobs {
    /// Number of threads; the output does not depend on it [default: one per core]
    #[arg(long, value_name = "J", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
}

impl Jobs {
    /// The number of threads: the option, or else the number of cores.
    pub(super) fn count(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, |n| n.get());
        self.jobs.map_or_else(cores, |jobs| jobs as usize)
    }
}

/// The results of the completed functions.
#[derive(Debug)]
pub(super) struct Worked<T> {
    /// The results, in module order.
    pub(super) results: Vec<T>,
    /// The sum of the times of all threads.
    pub(super) stopwatch: Stopwatch,
    /// Whether Ctrl-C came before all functions were complete.
    pub(super) interrupted: bool,
}

/// The index of a function in the list, and its result and times or the panic that ended it.
type FunctionOutcome<T> = (usize, Result<(T, Stopwatch), Box<dyn Any + Send>>);

/// Applies `work` to every function on `jobs` threads and passes the results to `finish`.
///
/// With several threads the largest functions come first, so that no thread is left alone with a
/// large one at the end. Memory stays bounded: each thread holds the data of one function at a
/// time, and other functions hold only their results.
///
/// After Ctrl-C, `finish` gets the results so far. The process then exits with status 130 and does
/// not wait for functions in progress.
///
/// # Errors
/// If the threads cannot be started, or as `finish`.
///
/// # Panics
/// If `work` panics. A message names the function.
pub(super) fn each_function<T: Send>(
    jobs: usize,
    functions: &[(Func, &Function)],
    work: impl Fn(&Function, &mut Stopwatch) -> T + Sync,
    finish: impl FnOnce(Worked<T>) -> Result<(), CommandFailure>,
) -> Result<(), CommandFailure> {
    let mut order: Vec<usize> = (0..functions.len()).collect();
    if jobs > 1 {
        order.sort_by_key(|at| Reverse(functions[*at].1.inst_count()));
    }
    let threads = ThreadPoolBuilder::new().num_threads(jobs).stack_size(STACK).build();
    let threads =
        threads.map_err(|e| CommandFailure::input(format!("cannot start {jobs} threads: {e}")))?;
    let interrupt = CtrlC::listen();
    let progress = Progress::new(functions.len() as u64);
    let panicked = AtomicBool::new(false);
    // After a panic the remaining functions are skipped, since the command fails anyway.
    let one = |at: usize, sender: &Sender<FunctionOutcome<T>>| {
        if panicked.load(Ordering::Relaxed) {
            return;
        }
        let (_, function) = functions[at];
        progress.begin(function.name());
        let mut stopwatch = Stopwatch::new();
        let result = catch_unwind(AssertUnwindSafe(|| work(function, &mut stopwatch)));
        panicked.fetch_or(result.is_err(), Ordering::Relaxed);
        progress.end();
        // The receiver is gone if another function panicked or Ctrl-C ended `gather`.
        let _ = sender.send((at, result.map(|result| (result, stopwatch))));
    };
    let (sender, receiver) = channel();
    // The calling thread gathers results while the pool works, so that it can react to Ctrl-C.
    let ended = threads.in_place_scope(|scope| {
        scope.spawn(|_| {
            order.into_iter().par_bridge().for_each_with(sender, |sender, at| one(at, sender))
        });
        let worked = gather(&receiver, &interrupt)?;
        progress.clear();
        let (interrupted, done) = (worked.interrupted, worked.results.len());
        let finished = finish(worked);
        if interrupted {
            exit_interrupted(finished, done, functions.len());
        }
        Ok(finished)
    });
    ended.unwrap_or_else(|(at, panic): (usize, Box<dyn Any + Send>)| {
        let name = functions[at].1.name();
        tell(&format!(
            "bug in Osier: the panic above occurred while processing @{}",
            name.escape_debug()
        ));
        resume_unwind(panic)
    })
}

/// Receives results until all functions are complete, a function has panicked, or Ctrl-C is
/// pressed. Afterwards Ctrl-C ends the process at once.
///
/// # Errors
/// The index of a function that panicked, and its panic.
fn gather<T>(
    receiver: &Receiver<FunctionOutcome<T>>,
    interrupt: &CtrlC,
) -> Result<Worked<T>, (usize, Box<dyn Any + Send>)> {
    // The map orders results by index, that is, in module order.
    let (mut results, mut stopwatch) = (BTreeMap::new(), Stopwatch::new());
    let mut all = false;
    while !all && !interrupt.is_raised() {
        match receiver.recv_timeout(POLL) {
            Ok((at, Ok((result, time)))) => {
                results.insert(at, result);
                stopwatch.merge(&time);
            }
            Ok((at, Err(panic))) => return Err((at, panic)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => all = true,
        }
    }
    interrupt.end();
    Ok(Worked { results: results.into_values().collect(), stopwatch, interrupted: !all })
}

/// Ends the process and with it the threads that still work. Waiting for them could take long.
fn exit_interrupted(finished: Result<(), CommandFailure>, done: usize, all: usize) -> ! {
    if let Err(failure) = finished {
        failure.tell();
    }
    tell(&format!("interrupted: {done} of {all} functions are complete"));
    std::process::exit(INTERRUPTED.into())
}

#[cfg(test)]
mod tests;
