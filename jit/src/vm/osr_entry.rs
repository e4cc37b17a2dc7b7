//! The way up from the embedder's interpreter.
//!
//! Example: the embedder's interpreter has come to the header of a loop for the thousandth time. It
//! asks for code there ([`super::Vm::enter`]). If the tiering has a continuation, the function
//! continues there with the values that the interpreter gives, until it returns. If native code
//! exits, the embedder resumes the function ([`super::Embedder::resume`]), so activations of the
//! interpreter nest.

use super::entrance::Ascent;
use super::native;
use super::state::RunAccess;
use super::state::VmState;
use super::stop::{RunError, RunStop};
use super::tiering::HotLoop;
use interp::Outcome;
use ir::{Function, Value, ValueDef};

/// The answer to a request to continue a function in native code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Entered {
    /// The place has no code, or no code yet. Nothing has been executed.
    NotYet,
    /// The function continued in native code, and the run has ended.
    Ended(Outcome),
}

/// The contents of a base version's values at the place of the embedder's interpreter.
pub type Contents<'a> = &'a dyn Fn(Value) -> Option<u64>;

/// Continues a function at a place of its base in native code. Returns its results. `None` if the
/// tiering has no code for the place.
pub(super) fn enter(
    access: &mut RunAccess<'_>,
    place: HotLoop,
    contents: Contents<'_>,
) -> Result<Option<Vec<u64>>, RunStop> {
    match access.state().entrance(place, contents)? {
        Some(ascent) => native::resume(access, &ascent).map(Some),
        None => Ok(None),
    }
}

impl VmState {
    /// The native code for a place, whose inputs are in the buffer.
    fn entrance(
        &mut self,
        place: HotLoop,
        contents: Contents<'_>,
    ) -> Result<Option<Ascent>, RunStop> {
        let HotLoop { func, at } = place;
        let no_base = || RunStop::Failed(RunError::NoSuchPlace { func, at: at.inst() });
        let module = std::sync::Arc::clone(&self.modules.current);
        let body = module.funcs.get(func).and_then(|_| module.body(func));
        let body = body.filter(|body| body.has_inst(at.inst())).ok_or_else(no_base)?;
        let base = self.modules.base(func).ok_or_else(no_base)?;
        let Some(continuation) =
            self.ask_for(Some(contents), |tiering, tier| tiering.hot(tier, place))?
        else {
            return Ok(None);
        };
        let key = self.machine.code(base).key();
        self.require_continuation(&continuation, func, key, at)?;
        self.view.reserve(continuation.requires().len());
        for (word, value) in self.view.buffer.iter_mut().zip(continuation.requires()) {
            let given = contents(*value).or_else(|| constant(body, *value));
            let error = RunError::NotGiven { func, value: *value };
            let bits = given.ok_or(RunStop::Failed(error))?;
            *word = bits & body.value_type(*value).mask();
        }
        Ok(Some(self.ascend(at, &continuation)))
    }
}

/// The bits of a value that is a constant.
pub(super) fn constant(body: &Function, value: Value) -> Option<u64> {
    match body.value_def(value) {
        ValueDef::Result(inst, _) => body.inst(inst).constant(),
        ValueDef::Param(..) => None,
    }
}
