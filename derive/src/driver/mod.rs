//! The driver: runs pipelines over functions and modules, and makes mappings that the checker
//! accepts.
//!
//! After each pass on each function the driver verifies the new version and replays the log. A
//! finding means a bug in the pass or in the editor. The driver then panics with the names of pass
//! and function: a wrong version must not reach later passes.

pub mod counterfactual;
mod missing;
mod prove;
mod prove_graph;
mod regions;
mod retry;
mod states;

pub use missing::{Missing, MissingPoints, UNPROVED, Why};
pub use prove::{CheckCounts, Proved, ProvedMapping, prove, prove_at};
pub use prove_graph::{NO_LOG, ProvedGraph, VersionPoints, prove_graph, prove_graph_at};
pub(crate) use prove_graph::{composed_along, mapping_between};
pub use regions::{EnteredRegion, prove_regions};
pub(crate) use retry::rewrites_to_omit;
pub use retry::{
    GivenUp, Recipe, Retried, Retry, Secured, derive_proved, derive_proved_at, derive_without,
};
pub use states::{SecuredStates, StatePointError, StatePoints, derive_with_states};
pub(crate) use states::{derive_waiting, kept_sources};

use ir::edit::{ActionLog, Fuel, Pass, apply_to, check_replay};
use ir::verifier::verify_function;
use ir::{Function, Module};
use passes::Pipeline;

/// The kinds of work that the driver spends time on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Running a pass.
    Optimize,
    /// Verifying a version and replaying a log.
    Replay,
    /// Making mappings and certificates.
    Map,
    /// Checking mappings.
    Check,
    /// Searching for the rewrites to give up ([`derive_proved`]).
    Retry,
}

impl Step {
    /// Every kind of step.
    pub const ALL: [Step; 5] = [Step::Optimize, Step::Replay, Step::Map, Step::Check, Step::Retry];
}

/// Observes the steps of the driver, so that an embedder can measure times. The library reads no
/// clock.
pub trait Observer {
    /// A step begins, and the step in progress ends. `None` only ends the step in progress.
    fn begin(&mut self, step: Option<Step>);
}

/// An observer that ignores all steps.
#[derive(Clone, Copy, Debug)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn begin(&mut self, _step: Option<Step>) {}
}

/// Whether the driver verifies versions and replays logs after each pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Vigilance {
    /// Verify and replay. Commands and tests use this.
    #[default]
    On,
    /// Do neither. The tiered engine and benchmarks use this, since they wait for the passes.
    Off,
}

/// A version and the actions that lead to it from its base.
#[derive(Clone, Debug)]
pub struct Derived {
    /// The version.
    pub function: Function,
    /// The actions of all passes, in order.
    pub log: ActionLog,
}

/// Runs a pipeline over one function of a module and returns the derived version. `base` does not
/// change.
///
/// # Panics
/// If a pass requests an illegal edit, makes a version that is not well-formed, or has a log that
/// does not replay to its version. Each is a bug; the message names pass and function.
pub fn derive(
    module: &Module,
    base: &Function,
    pipeline: &Pipeline,
    vigilance: Vigilance,
    observer: &mut dyn Observer,
) -> Derived {
    derive_within(module, base, pipeline, vigilance, &mut Fuel::UNLIMITED.clone(), observer)
}

/// Like [`derive()`], with the rewrites that the fuel grants.
pub(crate) fn derive_within(
    module: &Module,
    base: &Function,
    pipeline: &Pipeline,
    vigilance: Vigilance,
    fuel: &mut Fuel,
    observer: &mut dyn Observer,
) -> Derived {
    let mut derived = Derived { function: base.clone(), log: ActionLog::empty_for(base) };
    for pass in pipeline.passes() {
        observer.begin(Some(Step::Optimize));
        let before = (vigilance == Vigilance::On).then(|| derived.function.clone());
        let (function, log) = apply_to(derived.function, *pass, fuel).into_parts();
        if let Some(before) = before {
            observer.begin(Some(Step::Replay));
            check_pass(module, *pass, &before, &log, &function);
        }
        derived.function = function;
        derived.log.extend(log);
    }
    observer.begin(None);
    derived
}

/// Panics if the log does not replay from `before` to `after`, or if `after` is not well-formed.
fn check_pass(
    module: &Module,
    pass: &dyn Pass,
    before: &Function,
    log: &ActionLog,
    after: &Function,
) {
    let bug =
        |what: String| -> ! { panic!("bug in pass {} on @{}: {what}", pass.name(), before.name()) };
    if let Err(error) = check_replay(before, log, after) {
        bug(format!("its log does not replay: {error}"));
    }
    // The previous version is well-formed, and the replay has shown that this version equals it.
    if log.is_empty() {
        return;
    }
    if let Some(finding) = verify_function(module, after).first() {
        bug(format!("it made a version that is not well-formed: {finding}"));
    }
}

/// Runs a pipeline over every function of a module that has a body, and returns the module with the
/// derived functions.
///
/// # Panics
/// Like [`derive()`].
pub fn optimize(
    module: &Module,
    pipeline: &Pipeline,
    vigilance: Vigilance,
    observer: &mut dyn Observer,
) -> Module {
    let mut optimized = module.clone();
    for (func, base) in module.defined() {
        optimized.define(func, derive(module, base, pipeline, vigilance, observer).function);
    }
    optimized
}

#[cfg(test)]
mod tests;
