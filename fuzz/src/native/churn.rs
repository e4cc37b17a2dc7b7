//! Native code that is replaced while it runs. A policy compiles the functions of a program anew
//! and releases code that frames are in, so the machine frees code all the time. Each run must end
//! like the interpreter's. A frame that returns to freed code ends the process.

use super::bases::BaseTwins;
use super::clock::Clock;
use super::plan::config;
use super::trial::Trial;
use crate::case::Case;
use crate::figures::Figures;
use crate::oracle::FuzzFinding;
use ir::Func;
use jit::{RunError, Tier, Tiering, Vm};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use verify::prng::Prng;

/// The most pieces of code of a program. Afterwards the policy releases nothing.
const PIECES: u64 = 48;

/// The policy: when a function without code is called, it mostly compiles the function, and
/// releases the code of some others. Their next calls request code again.
struct Churn {
    prng: Prng,
    /// The functions that had code at some time.
    known: Vec<Func>,
    compiled: Arc<AtomicU64>,
    released: Arc<AtomicU64>,
}

impl Tiering for Churn {
    fn called(&mut self, tier: &mut Tier<'_>, func: Func) -> Result<(), RunError> {
        let module = Arc::clone(tier.module());
        if self.compiled.load(Ordering::Relaxed) < PIECES {
            for other in &self.known {
                let version = tier.installed(*other).filter(|_| self.prng.chance(60)).cloned();
                if let Some(version) = version {
                    tier.release(&version);
                    self.released.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        let Some(body) = module.body(func).filter(|_| self.prng.chance(80)) else { return Ok(()) };
        let version = tier.engine().version(&module, func, body, &[]).map_err(RunError::Compile)?;
        self.compiled.fetch_add(1, Ordering::Relaxed);
        if !self.known.contains(&func) {
            self.known.push(func);
        }
        tier.install(&version, Vec::new()).map_err(RunError::Link)
    }
}

/// Judges runs of the bases of a program whose code is replaced.
///
/// # Errors
/// A difference between native code and the interpreter.
pub(super) fn judge(
    case: &Case,
    clock: &Clock,
    figures: &mut Figures,
) -> Result<(), Vec<FuzzFinding>> {
    let mut trial = Trial { tag: 0x6368_7572, ..Trial::new(case, [0, 0], clock) };
    let ended = run(&mut trial);
    trial.finish(ended, figures)
}

fn run(trial: &mut Trial<'_>) -> Result<(), String> {
    let case = trial.case;
    let mut prng = Prng::new(case.seed).fork(trial.tag);
    let module = Arc::new(case.module.clone());
    let mut vm = trial.instance(&module, config(case.options.nans, &mut prng))?;
    let (compiled, released) = (Arc::default(), Arc::default());
    let policy = Churn {
        prng: prng.fork(1),
        known: Vec::new(),
        compiled: Arc::clone(&compiled),
        released: Arc::clone(&released),
    };
    vm.set_tiering(Box::new(policy));
    let mut twins = BaseTwins::new(trial, &mut vm, "code that is replaced")?;
    let mut demand = |vm: &mut Vm, func: Func, _: usize| {
        vm.demand(func).map_err(|error| error.to_string()).map(|_| ())
    };
    let ended = twins.runs(trial, 1, &mut demand);
    trial.figures.compiled_functions += compiled.load(Ordering::Relaxed);
    trial.figures.released += released.load(Ordering::Relaxed);
    ended
}
