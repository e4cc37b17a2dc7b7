//! A finished function, and where the client's entities are in it.

use super::Variable;
use crate::entity::{Block, Inst, Value};
use crate::frame_states::FrameStates;
use crate::function::Function;
use crate::sparse::NOWHERE;

/// A finished function with everything that the builder knows of it
/// ([`super::FunctionBuilder::finish`]).
#[derive(Clone, Debug)]
pub struct FinishedFunction {
    /// The function.
    pub function: Function,
    /// The frame states ([`super::FunctionBuilder::frame_state`]), in terms of the function.
    pub states: FrameStates,
    /// The parameters created for variables, each with its variable, in an order without meaning.
    pub params: Vec<(Value, Variable)>,
    /// The new ids of the client's instructions, values and blocks.
    pub ids: FinishedIds,
}

/// The ids in a finished function of instructions, values and blocks that the builder has returned.
#[derive(Clone, Debug)]
pub struct FinishedIds(pub(super) Option<NewIds>);

/// New ids by the client's id, or [`NOWHERE`].
#[derive(Clone, Debug)]
pub(super) struct NewIds {
    pub(super) insts: Vec<u32>,
    pub(super) values: Vec<u32>,
    pub(super) blocks: Vec<u32>,
}

impl FinishedIds {
    /// The id of an instruction that [`super::FunctionBuilder::insert`] returned. `None` if the
    /// builder dropped the instruction, with an empty block. Cost: constant.
    pub fn inst(&self, inserted: Inst) -> Option<Inst> {
        self.look_up(|ids| &ids.insts, inserted.as_u32()).map(Inst::from_u32)
    }

    /// The id of a value that the builder returned, as a result, as a parameter or from
    /// [`super::FunctionBuilder::use_var`]. `None` for a read that no instruction and no frame
    /// state uses, if the value needs a parameter: the function then lacks the parameter. Also
    /// `None` for a read of a variable that is not set, if no instruction uses the zero, and in
    /// unreachable code. Cost: constant.
    pub fn value(&self, returned: Value) -> Option<Value> {
        self.look_up(|ids| &ids.values, returned.as_u32()).map(Value::from_u32)
    }

    /// The id of a block that the builder returned. `None` if the builder dropped the block. Cost:
    /// constant.
    pub fn block(&self, returned: Block) -> Option<Block> {
        self.look_up(|ids| &ids.blocks, returned.as_u32()).map(Block::from_u32)
    }

    fn look_up(&self, of: impl Fn(&NewIds) -> &Vec<u32>, id: u32) -> Option<u32> {
        let Some(ids) = &self.0 else { return Some(id) };
        of(ids).get(id as usize).copied().filter(|id| *id != NOWHERE)
    }
}
