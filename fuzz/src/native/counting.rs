//! A policy that counts, for runs that have left inlined code.

use jit::{Continuation, FailedPoint, HotLoop, Onward, RunError, Tier, Tiering};
use osier::tiers::{NoObserver, Tiered};
use passes::Pipeline;
use std::sync::Arc;

/// Compiles at once, like [`Tiered`], and enters the continuation of a loop whenever the
/// interpreter reaches the loop. `Tiered` does so once, which is too seldom for programs of a few
/// calls.
pub(super) struct CountingPolicy {
    tiered: Tiered<NoObserver>,
    /// The loops that were hot, each with its continuation, or `None`.
    loops: Vec<(HotLoop, Option<Arc<Continuation>>)>,
}

impl CountingPolicy {
    /// A policy that finds a loop or a function hot after this number of visits.
    pub(super) fn new(threshold: u32) -> CountingPolicy {
        let tiered = Tiered::new(threshold, Pipeline::default());
        CountingPolicy { tiered, loops: Vec::new() }
    }
}

impl Tiering for CountingPolicy {
    fn threshold(&self) -> Option<u32> {
        self.tiered.threshold()
    }

    fn called(&mut self, tier: &mut Tier<'_>, func: ir::Func) -> Result<(), RunError> {
        self.tiered.called(tier, func)
    }

    fn hot(
        &mut self,
        tier: &mut Tier<'_>,
        at: HotLoop,
    ) -> Result<Option<Arc<Continuation>>, RunError> {
        let known = self.loops.iter().find(|(one, _)| *one == at);
        let continuation = match known {
            Some((_, continuation)) => continuation.clone(),
            None => {
                let made = self.tiered.hot(tier, at)?;
                self.loops.push((at, made.clone()));
                made
            }
        };
        if continuation.is_some() {
            tier.ask_again(at);
        }
        Ok(continuation)
    }

    fn failed(&mut self, tier: &mut Tier<'_>, at: FailedPoint<'_>) -> Result<Onward, RunError> {
        self.tiered.failed(tier, at)
    }
}
