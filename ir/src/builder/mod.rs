//! Construction of functions.
//!
//! A [`FunctionBuilder`] creates blocks and instructions. Clients give block parameters explicitly,
//! or use mutable variables and let the builder create the parameters.
//! [`FunctionBuilder::declare_var`], `def_var` and `use_var` form the interface of Braun et al.,
//! "Simple and Efficient Construction of Static Single Assignment Form" (CC 2013).
//!
//! The algorithm of that paper walks back through the blocks at every read. With many long-lived
//! variables, that costs variables times blocks. The paper also requires the client to announce
//! when a block has all its predecessors. This builder instead leaves every read open until
//! `finish`, when it knows the whole graph. Then `place` finds the join points of definitions,
//! `prune` drops redundant and unused parameters, and `rebuild` numbers the rest.

mod dominators;
mod finished;
mod insts;
mod joins;
mod place;
mod prune;
mod rebuild;
mod skip;
mod variables;

use crate::entity::{Block, Inst, Point, Value};
use crate::family::Family;
use crate::frame_states::{FrameState, FrameStates};
use crate::function::{Function, InstNode, ValueData};
use crate::inst::{Edge, InstData, InstSpec, Target};
use crate::mutate::InsertPosition;
use crate::opcode::Opcode;
use crate::types::{Signature, Type};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub use finished::{FinishedFunction, FinishedIds};
pub use variables::Variable;
use variables::Variables;

/// The reason why a function could not be finished.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BuildError {
    /// The function has no block.
    NoBlock,
    /// A block does not end in a terminator.
    Unterminated(Block),
    /// An edge leads to a reserved block that was never placed.
    Unplaced(Block),
    /// An edge leads to the first block, and the function uses variables. The parameters of that
    /// block are the function's arguments, so it cannot have parameters for variables.
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
                f.write_str("the variables need more block arguments than the limit allows")
            }
        }
    }
}

impl std::error::Error for BuildError {}

/// Builds one function. The layout is the order in which blocks are created or placed; the first
/// block is the entry.
///
/// The builder checks the structure but not the rules of a well-formed function. Run
/// [`crate::verifier`] on its result.
///
/// # Variables
/// A client that uses variables states where it sets and reads each variable, and never creates a
/// parameter for one. The result has a minimal set of parameters for variables:
///
/// - No such parameter is dead (unread, or read only by other dead parameters).
/// - No set of such parameters receives a single value from outside the set.
///
/// The builder does not remove parameters created with [`FunctionBuilder::append_param`]. A
/// variable that is not set on some path from the entry is zero on that path. In an unreachable
/// block, a variable that the block itself has not set is zero.
#[derive(Debug)]
pub struct FunctionBuilder {
    function: Function,
    current: Option<Block>,
    variables: Variables,
    /// Reserved blocks without a place in the layout yet.
    unplaced: BTreeSet<Block>,
    /// Whether the client has given the sizes of the tables.
    has_reserved: bool,
    /// Whether `finish` assigns new ids.
    renumbers: bool,
    arg_limit: usize,
    /// If `finish` must drop empty blocks: the empty blocks to keep.
    skip_but: Option<BTreeSet<Block>>,
    /// The frame state of the instruction that comes next.
    next_state: Option<FrameState>,
    /// The frame states, each with its instruction.
    states: BTreeMap<Inst, FrameState>,
}

impl FunctionBuilder {
    /// A builder for a function without blocks, in a new family.
    pub fn new(name: &str, signature: Signature) -> FunctionBuilder {
        FunctionBuilder {
            function: Function::empty(name, signature, Family::new()),
            current: None,
            variables: Variables::default(),
            unplaced: BTreeSet::new(),
            has_reserved: false,
            renumbers: false,
            arg_limit: usize::MAX,
            skip_but: None,
            next_state: None,
            states: BTreeMap::new(),
        }
    }

    /// Makes room for this many instructions and values, placeholders included. A client that knows
    /// good bounds avoids the slack of tables that grow. Allocates
    /// [`FunctionBuilder::table_bytes`].
    pub fn reserve(&mut self, insts: usize, values: usize) {
        self.has_reserved = true;
        self.function.insts.reserve(insts);
        self.function.values.reserve(values);
    }

    /// The bytes of the tables of this many instructions and values. Lists of more than three
    /// operands, of targets, and of more than four users have memory of their own.
    pub fn table_bytes(insts: usize, values: usize) -> u64 {
        let (inst, value) = (size_of::<Option<InstNode>>(), size_of::<Option<ValueData>>());
        insts as u64 * inst as u64 + values as u64 * value as u64
    }

    /// The bytes that `finish` uses meanwhile for each instruction and each value. Blocks, edges
    /// and accesses to variables come on top.
    pub fn finish_bytes(insts: usize, values: usize) -> u64 {
        // New ids and positions of edges; new ids, sources of reads, and numbers of uses.
        insts as u64 * 8 + values as u64 * 20
    }

    /// The function in its current state.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// Appends a block without parameters to the layout.
    pub fn create_block(&mut self) -> Block {
        let block = self.function.family.new_block();
        self.function.append_block(block);
        block
    }

    /// Creates a block without parameters that edges can lead to. The block has no place in the
    /// layout until [`FunctionBuilder::place_block`]. `finish` drops a block that was never placed
    /// if no edge leads to it.
    pub fn reserve_block(&mut self) -> Block {
        let block = self.function.family.new_block();
        self.function.reserve_block(block);
        self.unplaced.insert(block);
        self.renumbers = true;
        block
    }

    /// Appends a reserved block to the layout.
    ///
    /// # Panics
    /// When the block is not reserved, or is already placed.
    pub fn place_block(&mut self, block: Block) {
        assert!(self.unplaced.remove(&block), "{block} is not reserved, or is already placed");
        self.function.layout.push(block);
    }

    /// Appends a parameter to a block. The builder does not add an argument to existing edges, so
    /// create parameters before edges.
    pub fn append_param(&mut self, block: Block, ty: Type) -> Value {
        let value = self.function.family.new_value();
        self.function.append_param(block, value, ty);
        value
    }

    /// Selects the block to which the following instructions are appended.
    pub fn switch_to(&mut self, block: Block) {
        let open = self.current();
        self.variables.switch(open);
        self.current = Some(block);
    }

    /// The block to which instructions are appended. `None` if no block is selected, or if the
    /// selected block has a terminator.
    pub fn current(&self) -> Option<Block> {
        self.current.filter(|b| !self.is_terminated(*b))
    }

    /// Whether a block ends in a terminator.
    pub fn is_terminated(&self, block: Block) -> bool {
        let last = self.function.blocks.get(block).and_then(|b| b.last);
        last.is_some_and(|i| self.function.inst(i).opcode.is_terminator())
    }

    /// Appends an instruction to the current block.
    ///
    /// # Panics
    /// When there is no current block, or it has a terminator.
    #[track_caller]
    pub fn insert(&mut self, spec: InstSpec) -> Inst {
        let block = self.current().expect("no block is open: a terminator has ended it");
        let inst = self.function.family.new_inst();
        let results = spec.result_types.iter().map(|_| self.function.family.new_value()).collect();
        let InstSpec { opcode, ty, imm, args, result_types, targets } = spec;
        let data = InstData { opcode, ty, imm, args, results, targets };
        self.function.insert_inst(inst, data, &result_types, InsertPosition::End(block));
        if let Some(state) = self.next_state.take() {
            self.states.insert(inst, state);
        }
        inst
    }

    /// Appends an instruction with one result and returns the result.
    ///
    /// # Panics
    /// As [`FunctionBuilder::insert`], and when the number of results is not one.
    pub fn insert_value(&mut self, spec: InstSpec) -> Value {
        let inst = self.insert(spec);
        self.function.inst(inst).result().expect("the instruction has one result")
    }

    /// Appends a constant.
    ///
    /// # Panics
    /// As [`FunctionBuilder::insert`].
    pub fn constant(&mut self, ty: Type, bits: u64) -> Value {
        self.insert_value(InstSpec::constant(ty, bits))
    }

    /// Appends an operation on values with one result.
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
    pub fn br_if(
        &mut self,
        condition: Value,
        then: impl Into<Target>,
        otherwise: impl Into<Target>,
    ) -> Inst {
        let targets = vec![then.into(), otherwise.into()];
        self.insert(InstSpec::terminator(Opcode::BrIf, &[condition], targets))
    }

    /// Ends the current block with a return.
    ///
    /// # Panics
    /// As [`FunctionBuilder::insert`].
    pub fn ret(&mut self, values: &[Value]) -> Inst {
        self.insert(InstSpec::terminator(Opcode::Return, values, Vec::new()))
    }

    /// Sets the operands and targets of an instruction. They may be defined later in the layout.
    /// The parser inserts every instruction without operands and sets them when it knows all
    /// definitions.
    pub(crate) fn set_operands(
        &mut self,
        inst: Inst,
        args: SmallVec<[Value; 3]>,
        targets: Vec<Target>,
    ) {
        self.function.rewrite_inst(inst, |data| (data.args, data.targets) = (args, targets));
    }

    /// Sets the name of a value in the text form. The printer adds a suffix to a name that is
    /// already taken.
    pub fn name_value(&mut self, value: Value, name: &str) {
        self.function.value_names.insert(value, name.into());
    }

    /// Sets the name of a block in the text form.
    pub fn name_block(&mut self, block: Block, name: &str) {
        self.function.block_names.insert(block, name.into());
    }

    /// Marks a block as cold: a hint that control hardly ever gets there. Native code puts the
    /// block behind the others, and makes its calls cheap for the code around them rather than fast
    /// (`jit/src/lower/cold.rs`). Copies of the block keep the mark. `finish` drops the mark of the
    /// entry block, through which every run goes.
    pub fn mark_cold(&mut self, block: Block) {
        self.function.cold.insert(block);
    }

    /// Declares a mutable variable.
    pub fn declare_var(&mut self, ty: Type) -> Variable {
        self.renumbers = true;
        self.variables.types.push(ty)
    }

    /// Sets a variable at the current end of the current block. Cost: constant.
    ///
    /// # Panics
    /// When there is no open current block, or the types differ.
    #[track_caller]
    pub fn def_var(&mut self, variable: Variable, value: Value) {
        let block = self.current().expect("no block is open: a terminator has ended it");
        let (ty, expected) = (self.function.value_type(value), self.variables.types[variable]);
        assert!(ty == expected, "{variable} is of type {expected}, {value} is of type {ty}");
        self.variables.set(variable, block, value);
    }

    /// The value of a variable at the current end of the current block. Until `finish`, this may be
    /// a placeholder that is neither a result nor a block parameter. A placeholder has the
    /// variable's type, and instructions can use it like any other value. Cost: constant.
    ///
    /// # Panics
    /// When there is no current block, or it has a terminator.
    #[track_caller]
    pub fn use_var(&mut self, variable: Variable) -> Value {
        let block = self.current().expect("no block is open: a terminator has ended it");
        if let Some(value) = self.variables.current(variable, block) {
            return value;
        }
        let value = self.function.family.new_value();
        self.function.add_open_read(block, value, self.variables.types[variable]);
        self.variables.read(variable, block, value);
        value
    }

    /// Notes the frame state in front of the next instruction. Its values may come from variables
    /// ([`FunctionBuilder::use_var`]): a variable that only frame states read keeps its parameters,
    /// so that the value is there. The last of several states in front of an instruction counts.
    /// `finish` repeats the state at the start of a block in front of each jump to the block that
    /// has no state. [`FinishedFunction::states`] has all of them.
    pub fn frame_state(&mut self, state: FrameState) {
        self.next_state = Some(state);
    }

    /// The number of pairs of a variable and a block that sets or reads it, so far. The memory used
    /// for variables grows with this number.
    pub fn accesses(&self) -> usize {
        self.variables.accesses.len()
    }

    /// Redirects an edge without arguments to another block.
    ///
    /// # Panics
    /// When the edge does not exist, or has arguments.
    pub fn redirect(&mut self, edge: Edge, block: Block) {
        assert!(self.function.target(edge).args.is_empty(), "the edge has arguments");
        self.function.redirect_edge(edge, Target::new(block, &[]));
    }

    /// Tells `finish` to drop blocks that only jump: blocks without parameters, other instructions,
    /// or accesses to variables. It keeps the entry and the blocks in `keep`. Put loop headers into
    /// `keep`, because dropping one could merge two loops into one loop with a common header.
    pub fn skip_empty_blocks(&mut self, keep: BTreeSet<Block>) {
        self.renumbers = true;
        self.skip_but = Some(keep);
    }

    /// Tells `finish` to fail if the parameters of variables need more than this many arguments in
    /// total, before pruning. Without a limit, a program with `n` nested loops that sets `n`
    /// variables in the innermost needs a multiple of `n * n` arguments.
    pub fn limit_args(&mut self, limit: usize) {
        self.arg_limit = limit;
    }

    /// Finishes the function. New ids are assigned, dense and in layout order, if the client
    /// declared a variable, reserved a block, or requested that empty blocks be dropped. Otherwise
    /// all ids stay. [`FinishedFunction::ids`] gives the new id of an instruction, a value or a
    /// block that the builder has returned before.
    ///
    /// Cost: near-linear in the number of blocks, edges, instructions and reads of variables.
    ///
    /// # Errors
    /// When the function has no block, a block has no terminator, or variables cannot be resolved:
    /// see [`BuildError`].
    pub fn finish(self) -> Result<FinishedFunction, BuildError> {
        let mut finished = self.finish_body()?;
        let entry = finished.function.entry();
        finished.function.cold.remove(&entry);
        finished.function.start_history();
        finished.states.repeat_at_jumps(&finished.function);
        Ok(finished)
    }

    fn finish_body(mut self) -> Result<FinishedFunction, BuildError> {
        self.check()?;
        if !self.renumbers {
            let mut states = FrameStates::new();
            for (inst, state) in self.states {
                states.set(Point::before(inst), state);
            }
            let (params, ids) = (Vec::new(), FinishedIds(None));
            return Ok(FinishedFunction { function: self.function, states, params, ids });
        }
        if let Some(keep) = &mut self.skip_but {
            // A frame state needs its instruction (`a_state_keeps_an_empty_block`).
            keep.extend(self.states.keys().map(|inst| self.function.inst_block(*inst)));
            let touched = self.variables.blocks();
            skip::skip_empty(&mut self.function, keep, |block, _| !touched.contains(&block));
        }
        let placement = place::place_params(&self.function, &self.variables, self.arg_limit)?;
        let named = self.states.values().flat_map(FrameState::all_values).collect();
        let pruned = prune::Pruned::new(&self.function, &self.variables, &named, &placement);
        drop(self.variables);
        if let Some(keep) = &self.skip_but {
            // A second pass: blocks that only set variables without reads are empty after pruning.
            let made = pruned.blocks(&placement);
            let is_free = |block, to| !made.contains(&block) && !made.contains(&to);
            skip::skip_empty(&mut self.function, keep, is_free);
        }
        let mut finished = rebuild::rebuild(self.function, self.states, &placement, &pruned);
        // To shrink a table holds two copies of it for a moment, so a reserved one stays.
        if !self.has_reserved {
            finished.function.insts.shrink();
            finished.function.values.shrink();
        }
        Ok(finished)
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
mod tests;
