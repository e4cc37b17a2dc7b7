//! Where functions are born.
//!
//! A [`FunctionBuilder`] makes blocks and instructions, with block parameters given explicitly or
//! made for mutable variables: [`FunctionBuilder::declare_var`], `def_var` and `use_var`, the
//! interface of Braun et al., "Simple and Efficient Construction of Static Single Assignment Form"
//! (CC 2013). Their algorithm walks back through the blocks at every read, which costs variables
//! times blocks when many variables live long, and needs to be told when a block has all its
//! predecessors. Here a read is left open until `finish`, which then knows the whole graph: `place`
//! finds where definitions meet, `prune` drops what is redundant or unused, `rebuild` numbers what
//! is left.

mod dominators;
mod joins;
mod place;
mod prune;
mod rebuild;
mod skip;
mod variables;

use crate::entity::{Block, Inst, Value};
use crate::family::Family;
use crate::function::Function;
use crate::inst::{Edge, InstData, InstSpec, Target};
use crate::mutate::Place;
use crate::opcode::Opcode;
use crate::types::{Signature, Type};
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::fmt;

pub use variables::Variable;
use variables::Variables;

/// Why a function could not be finished.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BuildError {
    /// The function has no block.
    NoBlock,
    /// A block does not end in a terminator.
    Unterminated(Block),
    /// An edge leads to a reserved block that was never placed.
    Unplaced(Block),
    /// An edge leads to the first block, and variables are in use: its parameters are the
    /// arguments, so nothing can be made for a variable there.
    EdgeToEntry,
    /// The variables need more arguments than [`FunctionBuilder::limit_args`] allows.
    TooLarge,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::NoBlock => f.write_str("the function has no block"),
            BuildError::Unterminated(block) => write!(f, "{block} does not end in a terminator"),
            BuildError::Unplaced(block) => {
                write!(f, "an edge leads to {block}, which was never placed")
            }
            BuildError::EdgeToEntry => f.write_str("an edge leads to the entry block"),
            BuildError::TooLarge => {
                f.write_str("its variables need more block arguments than allowed")
            }
        }
    }
}

impl std::error::Error for BuildError {}

/// Makes one function. Blocks are laid out in the order in which they are created or placed; the
/// first is the entry.
///
/// The builder checks structure, not meaning: run [`crate::verifier`] on what it makes.
///
/// # Variables
/// A client that uses variables says where each is set and read, and never makes a parameter for
/// them. No parameter made for a variable is dead (read by nothing, or only by others that are
/// dead), and no set of them receives only one value besides its own. Parameters made with
/// [`FunctionBuilder::append_param`] are left alone. A variable that is not set on some path from
/// the entry is zero there; in a block that cannot be reached, one not set in the block itself is
/// zero.
#[derive(Debug)]
pub struct FunctionBuilder {
    function: Function,
    current: Option<Block>,
    variables: Variables,
    /// Reserved blocks that are not placed yet.
    unplaced: BTreeSet<Block>,
    /// Whether `finish` may change ids.
    renumbers: bool,
    arg_limit: usize,
    /// The blocks to keep, if the other empty ones are to be dropped.
    skip_but: Option<BTreeSet<Block>>,
}

impl FunctionBuilder {
    /// A builder of a function with no blocks yet, in a family of its own.
    pub fn new(name: &str, signature: Signature) -> FunctionBuilder {
        FunctionBuilder {
            function: Function::empty(name, signature, Family::new()),
            current: None,
            variables: Variables::default(),
            unplaced: BTreeSet::new(),
            renumbers: false,
            arg_limit: usize::MAX,
            skip_but: None,
        }
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

    /// Makes a block without parameters that edges can lead to, and that has no place in the layout
    /// until [`FunctionBuilder::place_block`]. One never placed is dropped if no edge leads to it.
    pub fn reserve_block(&mut self) -> Block {
        let block = self.function.family.new_block();
        self.function.reserve_block(block);
        self.unplaced.insert(block);
        self.renumbers = true;
        block
    }

    /// Puts a reserved block at the end of the layout.
    ///
    /// # Panics
    /// When the block is not reserved, or placed already.
    pub fn place_block(&mut self, block: Block) {
        assert!(self.unplaced.remove(&block), "{block} is not a reserved block without a place");
        self.function.layout.push(block);
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
    pub(crate) fn set_operands(
        &mut self,
        inst: Inst,
        args: SmallVec<[Value; 3]>,
        targets: Vec<Target>,
    ) {
        self.function.rewrite_terminator(inst, |data| (data.args, data.targets) = (args, targets));
    }

    /// Gives a value its name in the text form. A name that is already taken is printed with a
    /// suffix.
    pub fn name_value(&mut self, value: Value, name: &str) {
        self.function.value_names.insert(value, name.into());
    }

    /// Gives a block its name in the text form.
    pub fn name_block(&mut self, block: Block, name: &str) {
        self.function.block_names.insert(block, name.into());
    }

    /// Adds a mutable variable.
    pub fn declare_var(&mut self, ty: Type) -> Variable {
        self.renumbers = true;
        self.variables.types.push(ty)
    }

    /// Sets a variable at the end of the current block as far as it is built. Cost: constant.
    ///
    /// # Panics
    /// When there is no current block, or it is already terminated, or the types differ.
    pub fn def_var(&mut self, variable: Variable, value: Value) {
        let block = self.current().expect("the builder is in an open block");
        let (ty, expected) = (self.function.value_type(value), self.variables.types[variable]);
        assert!(ty == expected, "{variable} is of type {expected}, {value} is of type {ty}");
        self.variables.set(variable, block, value);
    }

    /// What a variable holds at the end of the current block as far as it is built. Until `finish`
    /// it may be a value that is neither a result nor in a parameter list; it has its type and can
    /// be used like any other. Cost: constant.
    ///
    /// # Panics
    /// When there is no current block, or it is already terminated.
    pub fn use_var(&mut self, variable: Variable) -> Value {
        let block = self.current().expect("the builder is in an open block");
        if let Some(value) = self.variables.current(variable, block) {
            return value;
        }
        let value = self.function.family.new_value();
        self.function.add_open_read(block, value, self.variables.types[variable]);
        self.variables.read(variable, block, value);
        value
    }

    /// How many pairs of a variable and a block that sets or reads it there are so far: what the
    /// memory of variables grows with.
    pub fn accesses(&self) -> usize {
        self.variables.accesses.len()
    }

    /// Makes an edge without arguments lead to another block.
    ///
    /// # Panics
    /// When there is no such edge, or it has arguments.
    pub fn redirect(&mut self, edge: Edge, block: Block) {
        assert!(self.function.target(edge).args.is_empty(), "the edge has arguments");
        self.function.redirect_edge(edge, Target::new(block, &[]));
    }

    /// Makes `finish` drop blocks that do nothing but jump on: without parameters, instructions, or
    /// accesses to variables. Not the entry, nor the blocks in `keep`: the heads of loops, since
    /// two loops would otherwise become one with a common head.
    pub fn skip_empty_blocks(&mut self, keep: BTreeSet<Block>) {
        self.renumbers = true;
        self.skip_but = Some(keep);
    }

    /// Makes `finish` give up when the parameters of variables need more than this many arguments
    /// in all, before unneeded ones are dropped; without a limit, input that nests `n` loops and
    /// sets `n` variables in the innermost needs a multiple of `n * n`.
    pub fn limit_args(&mut self, limit: usize) {
        self.arg_limit = limit;
    }

    /// The finished function. If a variable was declared, a block reserved, or empty blocks are to
    /// be dropped, every id is made anew, dense and in layout order; ids handed out before then
    /// mean nothing. Otherwise ids stay.
    ///
    /// Cost: near-linear in blocks, edges, instructions and reads of variables.
    ///
    /// # Errors
    /// When there is no block, a block is not terminated, or variables cannot be resolved: see
    /// [`BuildError`].
    pub fn finish(self) -> Result<Function, BuildError> {
        self.finish_with_params().map(|(function, _)| function)
    }

    /// The finished function, as [`FunctionBuilder::finish`] gives it, and the parameters that were
    /// made for variables, each with its variable, in no meaningful order.
    ///
    /// # Errors
    /// As [`FunctionBuilder::finish`].
    pub fn finish_with_params(self) -> Result<(Function, Vec<(Value, Variable)>), BuildError> {
        let (mut function, params) = self.finish_body()?;
        function.start_history();
        Ok((function, params))
    }

    fn finish_body(mut self) -> Result<(Function, Vec<(Value, Variable)>), BuildError> {
        self.check()?;
        if !self.renumbers {
            return Ok((self.function, Vec::new()));
        }
        if let Some(keep) = &self.skip_but {
            let touched = self.variables.blocks();
            skip::skip_empty(&mut self.function, keep, |block, _| !touched.contains(&block));
        }
        let placement = place::place_params(&self.function, &self.variables, self.arg_limit)?;
        let pruned = prune::Pruned::new(&self.function, &self.variables, &placement);
        drop(self.variables);
        if let Some(keep) = &self.skip_but {
            // What only set variables that nothing reads is empty now.
            let made = pruned.blocks(&placement);
            let is_free = |block, to| !made.contains(&block) && !made.contains(&to);
            skip::skip_empty(&mut self.function, keep, is_free);
        }
        Ok(rebuild::rebuild(self.function, &placement, &pruned))
    }

    fn check(&self) -> Result<(), BuildError> {
        let entry = self.function.blocks().next().ok_or(BuildError::NoBlock)?;
        if let Some(block) = self.function.blocks().find(|b| !self.is_terminated(*b)) {
            return Err(BuildError::Unterminated(block));
        }
        let has_edge = |b: &&Block| !self.function.predecessors(**b).is_empty();
        if let Some(block) = self.unplaced.iter().find(has_edge) {
            return Err(BuildError::Unplaced(*block));
        }
        if !self.variables.types.is_empty() && has_edge(&&entry) {
            return Err(BuildError::EdgeToEntry);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// New ids must continue right after the dense ones; only this crate can draw them.
    #[test]
    fn the_family_continues_after_the_last_id() {
        let mut b = FunctionBuilder::new("f", Signature::new(&[Type::I32], &[Type::I32]));
        let (entry, last) = (b.create_block(), b.reserve_block());
        let arg = b.append_param(entry, Type::I32);
        let variable = b.declare_var(Type::I32);
        b.switch_to(entry);
        b.def_var(variable, arg);
        b.jump(last, &[]);
        b.place_block(last);
        b.switch_to(last);
        let value = b.use_var(variable);
        b.ret(&[value]);
        let function = b.finish().expect("complete");
        assert_eq!(function.family().new_inst(), Inst::from_u32(2));
        assert_eq!(function.family().new_value(), Value::from_u32(1));
        assert_eq!(function.family().new_block(), Block::from_u32(2));
    }
}
