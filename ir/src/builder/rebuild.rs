//! Rebuilding the finished function: it replaces reads of variables by their sources, and assigns
//! dense ids in layout order.
//!
//! The tables of instructions and values change in place. A second copy beside the first would
//! double the memory that an import needs (`wasm/tests/memory.rs`).

use super::finished::{FinishedFunction, FinishedIds, NewIds};
use super::place::{Placement, ReadSource};
use super::prune::Pruned;
use crate::bag::Bag;
use crate::entity::{Block, Inst, Point, Value};
use crate::family::Family;
use crate::frame_states::{FrameState, FrameStates, LocalContent};
use crate::function::{BlockData, Function, InstNode, ValueData, ValueDef};
use crate::inst::{Edge, Imm, InstData, Target};
use crate::mutate::ORDER_STRIDE;
use crate::opcode::Opcode;
use crate::sparse::{NOWHERE, Sparse};
use crate::types::Type;
use cranelift_entity::packed_option::ReservedValue;
use cranelift_entity::{EntityRef, SecondaryMap};
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeMap;
use std::ops::Range;

/// Rebuilds the function with the remaining parameters. `states` are the frame states, each with
/// the client's id of its instruction. Cost: linear.
pub(super) fn rebuild(
    function: Function,
    states: BTreeMap<Inst, FrameState>,
    placement: &Placement,
    pruned: &Pruned,
) -> FinishedFunction {
    let made = made_by_block(placement, pruned);
    let mut rebuild = Rebuild {
        edge_rank: EdgeRanks::new(&function, &made),
        value: vec![Value::reserved_value(); function.value_bound()],
        new_block: SecondaryMap::with_default(Block::reserved_value()),
        function,
        placement,
        pruned,
        made,
        made_value: vec![Value::new(0); placement.params.len()],
        zeros: BTreeMap::new(),
        spans: Vec::new(),
    };
    let (inst_count, value_count) = rebuild.number();
    rebuild.translate();
    rebuild.rename();
    let states = rebuild.states(states);
    let mut insts = rebuild.new_insts();
    rebuild.function.insts.permute(&mut insts, inst_count);
    let values = rebuild.move_values(value_count);
    let blocks = rebuild.fill();
    let params =
        pruned.live.ones().map(|p| (rebuild.made_value[p], placement.params[p].variable)).collect();
    let new_blocks = rebuild.new_block.values().map(|block| block.as_u32()).collect();
    let ids = FinishedIds(Some(NewIds { insts, values, blocks: new_blocks }));
    let function = rebuild.finished(blocks, inst_count, value_count);
    FinishedFunction { function, states, params, ids }
}

/// The remaining created parameters of each block, by block index, in the order of their variables.
fn made_by_block(placement: &Placement, pruned: &Pruned) -> SecondaryMap<Block, Vec<u32>> {
    let mut made = SecondaryMap::<Block, Vec<u32>>::new();
    for param in pruned.live.ones() {
        made[placement.params[param].block].push(param as u32);
    }
    made
}

/// For every edge into a block with created parameters: its position among the predecessor edges of
/// the block.
#[derive(Debug, Default)]
struct EdgeRanks {
    /// By terminator: the index in `rank` of its first edge.
    start: SecondaryMap<Inst, u32>,
    rank: Vec<u32>,
}

impl EdgeRanks {
    fn new(function: &Function, made: &SecondaryMap<Block, Vec<u32>>) -> EdgeRanks {
        let mut ranks = EdgeRanks::default();
        ranks.start.resize(function.inst_bound());
        for block in function.blocks() {
            ranks.start[function.terminator(block)] = ranks.rank.len() as u32;
            ranks.rank.resize(ranks.rank.len() + function.successors(block).len(), 0);
        }
        for block in function.blocks().filter(|b| !made[*b].is_empty()) {
            for (rank, edge) in function.predecessors(block).iter().enumerate() {
                let at = ranks.start[edge.inst] + edge.index;
                ranks.rank[at as usize] = rank as u32;
            }
        }
        ranks
    }

    fn of(&self, inst: Inst, index: usize) -> usize {
        self.rank[self.start[inst] as usize + index] as usize
    }
}

struct Rebuild<'a> {
    function: Function,
    placement: &'a Placement,
    pruned: &'a Pruned,
    made: SecondaryMap<Block, Vec<u32>>,
    /// By the client's id: the new id; reserved for placeholders.
    value: Vec<Value>,
    new_block: SecondaryMap<Block, Block>,
    /// By created parameter: the new id.
    made_value: Vec<Value>,
    /// The zeros that a block creates, by the client's id of the block.
    zeros: BTreeMap<(Block, Type), Value>,
    edge_rank: EdgeRanks,
    /// By block, in layout order.
    spans: Vec<Span>,
}

/// The new ids of a block's contents, which are consecutive.
#[derive(Clone, Debug)]
struct Span {
    /// The first value: the first of the client's parameters, if there are any.
    first_value: usize,
    insts: Range<usize>,
}

impl Rebuild<'_> {
    /// Assigns ids to all blocks and values, in layout order. Returns the numbers of instructions
    /// and of values.
    fn number(&mut self) -> (usize, usize) {
        let layout: Vec<Block> = self.function.blocks().collect();
        let (mut insts, mut values) = (0, 0u32);
        for (n, &block) in layout.iter().enumerate() {
            self.new_block[block] = Block::new(n);
            let (first_value, first) = (values as usize, insts);
            let mut next = || {
                values += 1;
                Value::new(values as usize - 1)
            };
            for &param in self.function.block_params(block) {
                self.value[param.index()] = next();
            }
            for &param in &self.made[block] {
                self.made_value[param as usize] = next();
            }
            for ty in self.zeros_needed(block) {
                self.zeros.insert((block, ty), next());
                insts += 1;
            }
            for inst in self.function.block_insts(block) {
                insts += 1;
                for &result in &self.function.inst(inst).results {
                    self.value[result.index()] = next();
                }
            }
            self.spans.push(Span { first_value, insts: first..insts });
        }
        (insts, values as usize)
    }

    /// The types for which a block must create a zero. Only the entry and unreachable blocks create
    /// zeros.
    fn zeros_needed(&self, block: Block) -> Vec<Type> {
        if block == self.function.entry() {
            return self.pruned.zeros.clone();
        }
        let mut types = Vec::new();
        let mut need = |source: ReadSource| match source {
            ReadSource::LocalZero(ty) if !types.contains(&ty) => types.push(ty),
            _ => {}
        };
        for inst in self.function.block_insts(block) {
            let data = self.function.inst(inst);
            for operand in data.operands() {
                need(self.placement.reads[operand].unwrap_or(ReadSource::Value(operand)));
            }
            for (index, target) in data.targets.iter().enumerate() {
                for &param in &self.made[target.block] {
                    need(self.made_arg(inst, index, param));
                }
            }
        }
        types.sort_unstable();
        types
    }

    /// The argument of a created parameter on an edge.
    fn made_arg(&self, inst: Inst, index: usize, param: u32) -> ReadSource {
        self.placement.args_of(&self.function, param)[self.edge_rank.of(inst, index)]
    }

    /// Translates the values and targets of all instructions to new ids, and adds the arguments
    /// of created parameters.
    fn translate(&mut self) {
        let mut block = self.function.layout.first();
        while let Some(at) = block {
            let mut inst = self.function.blocks.get(at).and_then(|b| b.first);
            while let Some(id) = inst {
                let data = self.function.inst_mut(id);
                let mut args = std::mem::take(&mut data.args);
                let mut targets = std::mem::take(&mut data.targets);
                let mut results = std::mem::take(&mut data.results);
                for result in &mut results {
                    *result = self.value[result.index()];
                }
                for arg in &mut args {
                    *arg = self.operand(at, *arg);
                }
                for (index, target) in targets.iter_mut().enumerate() {
                    self.translate_target(at, Edge { inst: id, index: index as u32 }, target);
                }
                targets.shrink_to_fit();
                let node = self.function.node_mut(id);
                (node.data.args, node.data.targets, node.data.results) = (args, targets, results);
                inst = node.next.expand();
            }
            block = self.function.layout.after(at);
        }
    }

    fn translate_target(&self, block: Block, edge: Edge, target: &mut Target) {
        for arg in target.args.iter_mut() {
            *arg = self.operand(block, *arg);
        }
        let index = edge.index as usize;
        let made = &self.made[target.block];
        let made = made.iter().map(|p| self.source(block, self.made_arg(edge.inst, index, *p)));
        target.args.extend(made);
        target.args.shrink_to_fit();
        target.block = self.new_block[target.block];
    }

    fn operand(&self, block: Block, value: Value) -> Value {
        match self.placement.reads[value] {
            Some(source) => self.source(block, source),
            None => self.value[value.index()],
        }
    }

    /// The new id of a source that a block uses.
    fn source(&self, block: Block, source: ReadSource) -> Value {
        match self.pruned.resolve(source) {
            ReadSource::Value(value) => self.value[value.index()],
            ReadSource::Param(param) => self.made_value[param as usize],
            ReadSource::Zero(ty) => self.zeros[&(self.function.entry(), ty)],
            ReadSource::LocalZero(ty) => self.zeros[&(block, ty)],
        }
    }

    /// The frame states in terms of the new ids.
    fn states(&self, mut states: BTreeMap<Inst, FrameState>) -> FrameStates {
        let mut made = FrameStates::new();
        if states.is_empty() {
            return made;
        }
        for (block, span) in self.function.blocks().zip(&self.spans) {
            let insts = self.function.block_insts(block);
            let count = insts.clone().count();
            for (inst, new) in insts.zip(span.insts.end - count..) {
                if let Some(state) = states.remove(&inst) {
                    let state = state.map(&mut |content| self.content(block, content));
                    made.set(Point::before(Inst::new(new)), state);
                }
            }
        }
        made
    }

    /// The contents of a slot in a block. A variable that is not set is zero, and no instruction
    /// makes that zero for a frame state alone.
    fn content(&self, block: Block, content: LocalContent) -> LocalContent {
        let LocalContent::Value(value) = content else { return content };
        let source = self.placement.reads[value].map(|source| self.pruned.resolve(source));
        match source {
            Some(ReadSource::Zero(ty) | ReadSource::LocalZero(ty)) => LocalContent::Constant(ty, 0),
            Some(source) => LocalContent::Value(self.source(block, source)),
            // `FrameStates::check` names a value that the builder does not know.
            None => LocalContent::Value(*self.value.get(value.index()).unwrap_or(&value)),
        }
    }

    /// Gives named values, and named and cold blocks, their new ids. Names of placeholders are
    /// dropped.
    fn rename(&mut self) {
        let names = std::mem::take(&mut self.function.value_names).into_iter();
        let names = names.map(|(v, name)| (self.value[v.index()], name));
        self.function.value_names = names.filter(|(v, _)| !v.is_reserved_value()).collect();
        let names = std::mem::take(&mut self.function.block_names).into_iter();
        let names = names.map(|(b, name)| (self.new_block[b], name));
        self.function.block_names = names.filter(|(b, _)| !b.is_reserved_value()).collect();
        let cold = std::mem::take(&mut self.function.cold).into_iter();
        let cold = cold.map(|b| self.new_block[b]);
        self.function.cold = cold.filter(|b| !b.is_reserved_value()).collect();
    }

    /// By the client's id of an instruction: the new id, or [`NOWHERE`] if it was dropped.
    fn new_insts(&self) -> Vec<u32> {
        let mut to = vec![NOWHERE; self.function.inst_bound()];
        for (block, span) in self.function.blocks().zip(&self.spans) {
            let insts = self.function.block_insts(block);
            // The zeros of the block come first.
            let count = insts.clone().count();
            for (inst, new) in insts.zip(span.insts.end - count..) {
                to[inst.index()] = new as u32;
            }
        }
        to
    }

    /// Moves values to their new ids. Returns the new id by the client's id, placeholders of reads
    /// included, or [`NOWHERE`].
    fn move_values(&mut self, count: usize) -> Vec<u32> {
        // The reserved value has the number `NOWHERE`.
        let mut to = std::mem::take(&mut self.value).into_iter().map(Value::as_u32).collect();
        self.function.values.permute(&mut to, count);
        for value in self.function.values.values_mut() {
            value.users = Bag::default();
        }
        for (placeholder, source) in self.placement.reads.iter() {
            let Some(source) = *source else { continue };
            let new = match self.pruned.resolve(source) {
                // Settled, hence no placeholder.
                ReadSource::Value(value) => to[value.index()],
                ReadSource::Param(param) if self.pruned.live.contains(param as usize) => {
                    self.made_value[param as usize].as_u32()
                }
                ReadSource::Zero(ty) => {
                    let zero = self.zeros.get(&(self.function.entry(), ty));
                    zero.map_or(NOWHERE, |value| value.as_u32())
                }
                ReadSource::Param(_) | ReadSource::LocalZero(_) => NOWHERE,
            };
            to[placeholder.index()] = new;
        }
        to
    }

    /// Creates the blocks with their parameters and zeros, and links the instructions.
    fn fill(&mut self) -> Vec<Option<BlockData>> {
        let layout: Vec<Block> = self.function.blocks().collect();
        let mut blocks = Vec::with_capacity(layout.len());
        for (n, block) in layout.into_iter().enumerate() {
            let Span { first_value, insts } = self.spans[n].clone();
            let params = self.params(block, first_value);
            let zeros =
                self.zeros.range((block, Type::ALL[0])..).take_while(|((b, _), _)| *b == block);
            for (((_, ty), value), at) in zeros.zip(insts.start..) {
                let data = InstData {
                    opcode: Opcode::Const,
                    ty: *ty,
                    imm: Imm::Bits(0),
                    args: SmallVec::new(),
                    results: smallvec![*value],
                    targets: Vec::new(),
                };
                let (prev, next) = (None.into(), None.into());
                let node = InstNode { data, block: Block::new(n), prev, next, order: 0 };
                self.function.insts.insert(Inst::new(at), node);
                let def = ValueDef::Result(Inst::new(at), 0);
                let value_data = ValueData { ty: *ty, def, users: Bag::default() };
                self.function.values.insert(*value, value_data);
            }
            self.link(Block::new(n), &insts);
            let (first, last) = (Some(Inst::new(insts.start)), Some(Inst::new(insts.end - 1)));
            blocks.push(Some(BlockData { params, first, last, preds: Bag::default() }));
        }
        blocks
    }

    /// The parameters of a block: first the client's, then the parameters that this function
    /// creates.
    fn params(&mut self, block: Block, first: usize) -> Vec<Value> {
        let (id, explicit) = (self.new_block[block], self.function.block_params(block).len());
        let mut params = Vec::with_capacity(explicit + self.made[block].len());
        params.extend((0..explicit).map(|n| Value::new(first + n)));
        for (index, value) in params.iter().enumerate() {
            self.function.value_mut(*value).def = ValueDef::Param(id, index as u32);
        }
        for made in self.made[block].iter().map(|p| *p as usize) {
            let def = ValueDef::Param(id, params.len() as u32);
            let ty = self.placement.params[made].ty;
            let value = self.made_value[made];
            self.function.values.insert(value, ValueData { ty, def, users: Bag::default() });
            params.push(value);
        }
        params
    }

    /// Links the instructions of a block, and records them as the definitions of their results.
    fn link(&mut self, block: Block, insts: &Range<usize>) {
        for at in insts.clone() {
            let node = self.function.node_mut(Inst::new(at));
            node.block = block;
            node.prev = (at > insts.start).then(|| Inst::new(at - 1)).into();
            node.next = (at + 1 < insts.end).then(|| Inst::new(at + 1)).into();
            node.order = ORDER_STRIDE * (at - insts.start + 1) as u32;
            let results = node.data.results.clone();
            for (index, value) in results.into_iter().enumerate() {
                self.function.value_mut(value).def = ValueDef::Result(Inst::new(at), index as u32);
            }
        }
    }

    /// Computes the derived lists (users and predecessors), allocated to their exact sizes, and
    /// returns the function.
    fn finished(
        self,
        mut blocks: Vec<Option<BlockData>>,
        inst_count: usize,
        value_count: usize,
    ) -> Function {
        let Function { mut values, insts, .. } = self.function;
        let (mut uses, mut edges) = (vec![0u32; value_count], vec![0u32; blocks.len()]);
        let data = |at| &insts.get(Inst::new(at)).expect("the ids are dense").data;
        for at in 0..inst_count {
            data(at).operands().for_each(|value| uses[value.index()] += 1);
            data(at).targets.iter().for_each(|target| edges[target.block.index()] += 1);
        }
        for (value, uses) in values.values_mut().zip(uses) {
            value.users = Bag::with_capacity(uses as usize);
        }
        for (block, edges) in blocks.iter_mut().flatten().zip(edges) {
            block.preds = Bag::with_capacity(edges as usize);
        }
        for (at, inst) in (0..inst_count).map(|at| (at, Inst::new(at))) {
            for value in data(at).operands() {
                values.get_mut(value).expect("every value is defined").users.push(inst);
            }
            for (index, target) in data(at).targets.iter().enumerate() {
                let block = blocks[target.block.index()].as_mut().expect("every block is filled");
                block.preds.push(Edge { inst, index: index as u32 });
            }
        }
        let drawn = [inst_count, value_count, blocks.len()].map(|n| n as u32);
        Function {
            family: Family::drawn(drawn[0], drawn[1], drawn[2]),
            layout: (0..blocks.len()).map(Block::new).collect(),
            blocks: Sparse::dense(blocks),
            insts,
            values,
            ..self.function
        }
    }
}
