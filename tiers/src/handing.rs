//! Speculative code above an interpreter of the embedder's own: each assumption that fails hands
//! the run to the embedder.

use check::Checked;
use ir::{FrameStates, Func, Function};
use jit::{Action, RunError, Version, VersionSpec, Vm};
use std::collections::BTreeMap;
use std::sync::Arc;
use transition::mapping::Mapping;

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
