//! Where functions are born.
//!
//! A [`FunctionBuilder`] makes blocks and instructions, with block parameters given explicitly or
//! made on the fly from mutable variables (Braun et al., "Simple and Efficient Construction of Static
//! Single Assignment Form", CC 2013).

use crate::entity::{Block, Inst, Value};
use crate::family::Family;
use crate::function::Function;
use crate::inst::{InstData, InstSpec, Target};
use crate::mutate::Place;
use crate::opcode::Opcode;
use crate::types::{Signature, Type};
use smallvec::SmallVec;
use std::fmt;

/// Why a function could not be finished.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BuildError {
    /// The function has no block.
    NoBlock,
    /// A block does not end in a terminator.
    Unterminated(Block),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::NoBlock => f.write_str("the function has no block"),
            BuildError::Unterminated(block) => write!(f, "{block} does not end in a terminator"),
        }
    }
}

impl std::error::Error for BuildError {}

/// Makes one function. Blocks are laid out in the order of creation; the first is the entry.
///
/// The builder checks structure, not meaning: run [`crate::verifier`] on what it makes.
#[derive(Debug)]
pub struct FunctionBuilder {
    function: Function,
    current: Option<Block>,
}

impl FunctionBuilder {
    /// A builder of a function with no blocks yet, in a family of its own.
    pub fn new(name: &str, signature: Signature) -> FunctionBuilder {
        FunctionBuilder { function: Function::empty(name, signature, Family::new()), current: None }
    }

    /// The function as far as it is built.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// Adds a block without parameters at the end of the layout.
    pub fn create_block(&mut self) -> Block {
        let block = self.function.family.new_block();
        self.function.append_block(block);
        block
    }

    /// Adds a parameter at the end of a block's parameters. Edges made before must be given their
    /// argument by the caller's own order of work: create parameters before edges.
    pub fn append_param(&mut self, block: Block, ty: Type) -> Value {
        let value = self.function.family.new_value();
        self.function.append_param(block, value, ty);
        value
    }

    /// Makes instructions go to the end of a block from here on.
    pub fn switch_to(&mut self, block: Block) {
        self.current = Some(block);
    }

    /// The block instructions go to, unless there is none or it is already terminated.
    pub fn current(&self) -> Option<Block> {
        self.current.filter(|b| !self.is_terminated(*b))
    }

    /// Whether a block ends in a terminator.
    pub fn is_terminated(&self, block: Block) -> bool {
        let last = self.function.blocks.get(block).and_then(|b| b.last);
        last.is_some_and(|i| self.function.inst(i).opcode.is_terminator())
    }

    /// Adds an instruction at the end of the current block.
    ///
    /// # Panics
    /// When there is no current block, or it is already terminated.
    pub fn insert(&mut self, spec: InstSpec) -> Inst {
        let block = self.current().expect("the builder is in an open block");
        let inst = self.function.family.new_inst();
        let results = spec.result_types.iter().map(|_| self.function.family.new_value()).collect();
        let InstSpec { opcode, ty, imm, args, result_types, targets } = spec;
        let data = InstData { opcode, ty, imm, args, results, targets };
        self.function.insert_inst(inst, data, &result_types, Place::End(block));
        inst
    }

    /// Adds an instruction with one result and returns that.
    ///
    /// # Panics
    /// As [`FunctionBuilder::insert`], and when the instruction has not exactly one result.
    pub fn insert_value(&mut self, spec: InstSpec) -> Value {
        let inst = self.insert(spec);
        self.function.inst(inst).result().expect("the instruction has one result")
    }

    /// Adds a constant.
    ///
    /// # Panics
    /// As [`FunctionBuilder::insert`].
    pub fn constant(&mut self, ty: Type, bits: u64) -> Value {
        self.insert_value(InstSpec::constant(ty, bits))
    }

    /// Adds an operation on values with one result.
    ///
    /// # Panics
    /// As [`FunctionBuilder::insert_value`].
    pub fn op(&mut self, opcode: Opcode, ty: Type, args: &[Value]) -> Value {
        self.insert_value(InstSpec::new(opcode, ty, crate::inst::Imm::None, args))
    }

    /// Ends the current block with a jump.
    ///
    /// # Panics
    /// As [`FunctionBuilder::insert`].
    pub fn jump(&mut self, block: Block, args: &[Value]) -> Inst {
        self.insert(InstSpec::terminator(Opcode::Jump, &[], vec![Target::new(block, args)]))
    }

    /// Ends the current block with a two-way branch.
    ///
    /// # Panics
    /// As [`FunctionBuilder::insert`].
    pub fn br_if(&mut self, condition: Value, then: Target, otherwise: Target) -> Inst {
        self.insert(InstSpec::terminator(Opcode::BrIf, &[condition], vec![then, otherwise]))
    }

    /// Ends the current block with a return.
    ///
    /// # Panics
    /// As [`FunctionBuilder::insert`].
    pub fn ret(&mut self, values: &[Value]) -> Inst {
        self.insert(InstSpec::terminator(Opcode::Return, values, Vec::new()))
    }

    /// Gives an instruction its operands and targets, which may be defined later in the layout. The
    /// parser inserts every instruction without any, and comes back when all definitions are known.
    pub(crate) fn set_operands(&mut self, inst: Inst, args: SmallVec<[Value; 3]>, targets: Vec<Target>) {
        self.function.rewrite_terminator(inst, |data| (data.args, data.targets) = (args, targets));
    }

    /// Gives a value its name in the text form. A name that is already taken is printed with a suffix.
    pub fn name_value(&mut self, value: Value, name: &str) {
        self.function.value_names.insert(value, name.into());
    }

    /// Gives a block its name in the text form.
    pub fn name_block(&mut self, block: Block, name: &str) {
        self.function.block_names.insert(block, name.into());
    }

    /// The finished function.
    ///
    /// # Errors
    /// When there is no block, or a block is not terminated.
    pub fn finish(self) -> Result<Function, BuildError> {
        let blocks: Vec<Block> = self.function.blocks().collect();
        if blocks.is_empty() {
            return Err(BuildError::NoBlock);
        }
        match blocks.into_iter().find(|b| !self.is_terminated(*b)) {
            Some(block) => Err(BuildError::Unterminated(block)),
            None => Ok(self.function),
        }
    }
}
