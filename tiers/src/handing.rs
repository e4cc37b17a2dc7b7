//! Speculative code above an interpreter of the embedder's own: each assumption that fails hands
//! the run to the embedder.

use check::{Checked, compose};
use derive::landing::handover;
use derive::speculate::Assumption;
use ir::loops::LoopForest;
use ir::{FrameStateError, FrameStates, Func, Function, Module, Point};
use jit::{Action, RunError, Version, VersionSpec, Vm};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use transition::mapping::Mapping;

/// The frame states of functions whose assumptions lead to an interpreter of the embedder's own.
pub(super) type HandedStates = Arc<BTreeMap<Func, Arc<FrameStates>>>;

/// The ways of a function to an interpreter of the embedder's own.
#[derive(Clone, Debug)]
pub(super) struct HandedWays {
    /// From the places of assumptions and the loop headers of the base to its frame states.
    pub(super) out: Arc<Checked<Mapping>>,
    /// The states of the function alone, where its exits land. If ways held the states of all
    /// functions, each function that names its states late would copy them
    /// ([`super::Tiered::asking`]).
    states: HandedStates,
}

impl HandedWays {
    /// The ways out of a base that makes these assumptions. Cost: as [`handover`].
    ///
    /// # Errors
    /// The first state that does not fit the base.
    pub(super) fn new(
        module: &Module,
        func: Func,
        assume: &[Assumption],
        states: &HandedStates,
    ) -> Option<Result<HandedWays, FrameStateError>> {
        let (base, own) = (module.body(func)?, states.get(&func)?);
        // The context of a row fails at its landing. Osier's interpreter enters a loop at the first
        // instruction of its header, and the embedder's at the first state there.
        let loops = LoopForest::of(base);
        let headers = loops.loops().flat_map(|id| {
            let insts = base.block_insts(loops.header(id)).map(Point::before);
            let with_state = insts.clone().find(|at| own.get(*at).is_some());
            insts.take(1).chain(with_state)
        });
        let assumed = assume.iter().map(|of| of.at).filter(|at| base.has_inst(at.inst()));
        let places: BTreeSet<Point> = headers.chain(assumed).collect();
        let out = handover(module, base, own, &places);
        let states = Arc::new(BTreeMap::from([(func, Arc::clone(own))]));
        Some(out.map(|out| HandedWays { out: Arc::new(out), states }))
    }

    /// The action of an exit with this mapping to the base: the embedder continues.
    pub(super) fn action(&self, back: &Checked<Mapping>) -> Action {
        let key = self.out.source();
        let handed = compose(back, &self.out).map(|made| made.mapping);
        // A mapping to another version has no entry to hand over by, as linking reports.
        let handed = handed.unwrap_or_else(|_| Checked::nothing(back.source(), key));
        Action::Hand(Arc::new(handed), Arc::clone(&self.states))
    }
}

/// Compiles a version and installs it: calls of its function run it from now on. Each assumption
/// of the version has an OSR point. Where an assumption fails, [`jit::Embedder::resume`] continues
/// with the frame state at the landing point of `back`, the mapping to the base.
/// `docs/embedding.md` explains the steps that this function joins.
///
/// # Errors
/// [`RunError::Compile`] if an assumption has no entry in `back`, or the engine makes no code.
/// [`RunError::Link`] if a landing point has no frame state.
pub fn install_handing(
    vm: &mut Vm,
    func: Func,
    version: &Function,
    back: &Checked<Mapping>,
    states: &Arc<FrameStates>,
) -> Result<Arc<Version>, RunError> {
    let module = Arc::clone(vm.module());
    let exits = VersionSpec::leaving(version, |_| Some(&**back));
    let code = exits.and_then(|exits| vm.engine().version(&module, func, version, exits));
    let code = code.map_err(RunError::Compile)?;
    let states = Arc::new(BTreeMap::from([(func, Arc::clone(states))]));
    let hand = Action::Hand(Arc::new(back.clone()), states);
    vm.install(&code, vec![hand; code.points().len()]).map_err(RunError::Link)?;
    Ok(code)
}
