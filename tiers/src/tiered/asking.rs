//! What a policy learns of an embedder whose interpreter is its own: profiles, assumptions, and
//! frame states.

use super::Tiered;
use crate::Observer;
use crate::speculating::{AskedFunction, AssumptionSource, ProfileSource};
use derive::speculate::SuggestOptions;
use ir::{FrameStates, Func};
use profile::FunctionProfile;
use std::collections::BTreeMap;
use std::sync::Arc;

impl<O: Observer> Tiered<O> {
    /// Like [`Tiered::profiling`], with profiles of an interpreter of the embedder's own: calls,
    /// branches and values, in terms of the base ([`profile::OwnCounts`]). `source` is asked once
    /// for each function, when the function first requests code; again if it answers `None`.
    ///
    /// # Panics
    /// The run panics if a profile does not fit its function, as [`Suggester::of`] does.
    ///
    /// [`Suggester::of`]: derive::speculate::Suggester::of
    pub fn profiling_own(
        self,
        options: SuggestOptions,
        source: impl Fn(Func) -> Option<FunctionProfile> + Send + 'static,
    ) -> Tiered<O> {
        let mut tiered = self.here();
        tiered.speculations.count_by(options, ProfileSource::new(source));
        tiered
    }

    /// Like [`Tiered::speculating`] and [`Tiered::handing`], for functions whose bodies come late
    /// ([`jit::Vm::supply`]). `source` is asked for each function when it first requests code;
    /// again if it answers `None`.
    pub fn asking(
        self,
        source: impl Fn(Func) -> Option<AskedFunction> + Send + 'static,
    ) -> Tiered<O> {
        let mut tiered = self.here();
        tiered.speculations.ask(AssumptionSource::new(source));
        tiered
    }

    /// Lets failed assumptions of these functions lead to an interpreter of the embedder's own
    /// ([`jit::Embedder::resume`]), at these frame states of their bases, instead of Osier's
    /// interpreter. States that do not fit a function make it assume nothing
    /// ([`Observer::refused`]). With [`Tiered::in_background`], call this before: the thread makes
    /// entries that take dead values where the state at the loop names them.
    pub fn handing(mut self, states: BTreeMap<Func, Arc<FrameStates>>) -> Tiered<O> {
        self.speculations.hand(Arc::new(states));
        self
    }
}
