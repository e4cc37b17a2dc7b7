//! Rebuilding the finished function: it replaces reads of variables by their sources, and assigns
//! dense ids in layout order.

use super::place::{Placement, ReadSource};
use super::prune::Pruned;
use super::variables::Variable;
use crate::bag::Bag;
use crate::entity::{Block, Inst, Value};
use crate::family::Family;
use crate::function::{BlockData, Function, InstNode, ValueData, ValueDef};
use crate::inst::{Edge, Imm, InstData, Target};
use crate::mutate::ORDER_STRIDE;
use crate::opcode::Opcode;
use crate::sparse::Sparse;
use crate::types::Type;
use cranelift_entity::packed_option::ReservedValue;
use cranelift_entity::{EntityRef, SecondaryMap};
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeMap;

/// Rebuilds the function with the remaining parameters. Also returns these parameters, each with
/// its variable. Cost: linear.
pub(super) fn rebuild(
    function: Function,
    placement: &Placement,
    pruned: &Pruned,
) -> (Function, Vec<(Value, Variable)>) {
    let mut rebuild = Rebuild {
        function,
        placement,
        pruned,
        made: made_by_block(placement, pruned),
        value: SecondaryMap::with_default(Value::reserved_value()),
        made_value: vec![Value::new(0); placement.params.len()],
        zeros: BTreeMap::new(),
        edge_rank: EdgeRanks::default(),
        insts: Vec::new(),
        values: Vec::new(),
        blocks: Vec::new(),
        new_block: SecondaryMap::with_default(Block::reserved_value()),
    };
    rebuild.edge_rank = EdgeRanks::new(&rebuild.function, &rebuild.made);
    rebuild.number();
    rebuild.fill();
    let made =
        pruned.live.ones().map(|p| (rebuild.made_value[p], placement.params[p].variable)).collect();
    (rebuild.finished(), made)
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
    /// By the client's id: the new id.
    value: SecondaryMap<Value, Value>,
    new_block: SecondaryMap<Block, Block>,
    /// By created parameter: the new id.
    made_value: Vec<Value>,
    /// The zeros that a block creates, by the client's id of the block.
    zeros: BTreeMap<(Block, Type), Value>,
    edge_rank: EdgeRanks,
    insts: Vec<Option<InstNode>>,
    values: Vec<Option<ValueData>>,
    blocks: Vec<Option<BlockData>>,
}

impl Rebuild<'_> {
    /// Assigns ids to all blocks and values, in layout order.
    fn number(&mut self) {
        let layout: Vec<Block> = self.function.blocks().collect();
        let (mut insts, mut values) = (0, 0u32);
        let mut next = || {
            values += 1;
            Value::new(values as usize - 1)
        };
        for (n, &block) in layout.iter().enumerate() {
            self.new_block[block] = Block::new(n);
            for &param in self.function.block_params(block) {
                self.value[param] = next();
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
                    self.value[result] = next();
                }
            }
        }
        self.insts.reserve_exact(insts);
        self.blocks.reserve_exact(layout.len());
        self.values.reserve_exact(values as usize);
        self.values.resize_with(values as usize, || None);
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

    /// Fills the tables of instructions, values and blocks, in layout order.
    fn fill(&mut self) {
        let layout: Vec<Block> = self.function.blocks().collect();
        for block in layout {
            self.start_block(block);
            let mut next = self.function.blocks.get(block).and_then(|b| b.first);
            while let Some(inst) = next {
                let node = self.function.insts.remove(inst).expect("a listed instruction exists");
                next = node.next;
                let types: SmallVec<[Type; 1]> =
                    node.data.results.iter().map(|v| self.function.value_type(*v)).collect();
                let data = self.mapped(block, inst, node.data);
                self.push_inst(block, data, &types);
            }
        }
    }

    /// Starts a block: adds its parameters and its zeros.
    fn start_block(&mut self, block: Block) {
        let id = self.new_block[block];
        let explicit = self.function.block_params(block);
        let mut params = Vec::with_capacity(explicit.len() + self.made[block].len());
        let types = explicit.iter().map(|v| (self.value[*v], self.function.value_type(*v)));
        let made = self.made[block].iter().map(|p| *p as usize);
        for (value, ty) in
            types.chain(made.map(|p| (self.made_value[p], self.placement.params[p].ty)))
        {
            let def = ValueDef::Param(id, params.len() as u32);
            self.values[value.index()] = Some(ValueData { ty, def, users: Bag::default() });
            params.push(value);
        }
        self.blocks.push(Some(BlockData {
            params,
            first: None,
            last: None,
            preds: Bag::default(),
        }));
        let zeros = self.zeros.range((block, Type::ALL[0])..).take_while(|((b, _), _)| *b == block);
        let zeros: Vec<(Type, Value)> = zeros.map(|((_, ty), value)| (*ty, *value)).collect();
        for (ty, value) in zeros {
            let (args, results) = (SmallVec::new(), smallvec![value]);
            let data = InstData {
                opcode: Opcode::Const,
                ty,
                imm: Imm::Bits(0),
                args,
                results,
                targets: Vec::new(),
            };
            self.push_inst(block, data, &[ty]);
        }
    }

    /// Translates an instruction to new ids and adds the arguments of created parameters.
    fn mapped(&self, block: Block, inst: Inst, mut data: InstData) -> InstData {
        for result in &mut data.results {
            *result = self.value[*result];
        }
        for arg in &mut data.args {
            *arg = self.operand(block, *arg);
        }
        for (index, Target { block: to, args }) in data.targets.iter_mut().enumerate() {
            for arg in args.iter_mut() {
                *arg = self.operand(block, *arg);
            }
            let made = &self.made[*to];
            args.extend(made.iter().map(|p| self.source(block, self.made_arg(inst, index, *p))));
            args.shrink_to_fit();
            *to = self.new_block[*to];
        }
        data.targets.shrink_to_fit();
        data
    }

    fn operand(&self, block: Block, value: Value) -> Value {
        match self.placement.reads[value] {
            Some(source) => self.source(block, source),
            None => self.value[value],
        }
    }

    /// The new id of a source that a block uses.
    fn source(&self, block: Block, source: ReadSource) -> Value {
        match self.pruned.resolve(source) {
            ReadSource::Value(value) => self.value[value],
            ReadSource::Param(param) => self.made_value[param as usize],
            ReadSource::Zero(ty) => self.zeros[&(self.function.entry(), ty)],
            ReadSource::LocalZero(ty) => self.zeros[&(block, ty)],
        }
    }

    /// Appends an instruction to the block under construction.
    fn push_inst(&mut self, block: Block, data: InstData, types: &[Type]) {
        let (id, inst) = (self.new_block[block], Inst::new(self.insts.len()));
        for (index, (value, ty)) in data.results.iter().zip(types).enumerate() {
            let def = ValueDef::Result(inst, index as u32);
            self.values[value.index()] = Some(ValueData { ty: *ty, def, users: Bag::default() });
        }
        let block = self.blocks[id.index()].as_mut().expect("the block is started");
        let prev = block.last.replace(inst);
        let mut order = ORDER_STRIDE;
        match prev {
            Some(prev) => {
                let before = self.insts[prev.index()].as_mut().expect("filled in order");
                before.next = Some(inst);
                order += before.order;
            }
            None => block.first = Some(inst),
        }
        self.insts.push(Some(InstNode { data, block: id, prev, next: None, order }));
    }

    /// Computes the derived lists (users and predecessors), allocated to their exact sizes, and
    /// returns the function.
    fn finished(mut self) -> Function {
        let insts = &self.insts;
        let users = grouped(self.values.len(), || {
            numbered(insts).flat_map(|(inst, data)| data.operands().map(move |v| (v.index(), inst)))
        });
        let edges = grouped(self.blocks.len(), || {
            numbered(insts).flat_map(|(inst, data)| {
                let targets = data.targets.iter().enumerate();
                targets.map(move |(index, t)| (t.block.index(), Edge { inst, index: index as u32 }))
            })
        });
        for (data, users) in self.values.iter_mut().zip(users) {
            data.as_mut().expect("every value is defined").users = users.into();
        }
        for (data, preds) in self.blocks.iter_mut().zip(edges) {
            data.as_mut().expect("every block is filled").preds = preds.into();
        }
        let names =
            self.function.value_names.iter().filter(|(v, _)| self.placement.reads[**v].is_none());
        let value_names = names.map(|(v, name)| (self.value[*v], name.clone())).collect();
        let names = self
            .function
            .block_names
            .iter()
            .filter(|(b, _)| !self.new_block[**b].is_reserved_value());
        let block_names = names.map(|(b, name)| (self.new_block[*b], name.clone())).collect();
        let drawn = [self.insts.len(), self.values.len(), self.blocks.len()].map(|n| n as u32);
        Function {
            family: Family::drawn(drawn[0], drawn[1], drawn[2]),
            layout: (0..self.blocks.len()).map(Block::new).collect(),
            blocks: Sparse::dense(self.blocks),
            insts: Sparse::dense(self.insts),
            values: Sparse::dense(self.values),
            value_names,
            block_names,
            ..self.function
        }
    }
}

/// The instructions of a table without holes.
fn numbered(insts: &[Option<InstNode>]) -> impl Iterator<Item = (Inst, &InstData)> {
    insts.iter().enumerate().filter_map(|(i, node)| Some((Inst::new(i), &node.as_ref()?.data)))
}

/// Distributes the items over `count` groups and keeps their order. Iterates over the items twice,
/// to allocate exact sizes.
fn grouped<T, I: Iterator<Item = (usize, T)>>(count: usize, items: impl Fn() -> I) -> Vec<Vec<T>> {
    let mut sizes = vec![0u32; count];
    for (group, _) in items() {
        sizes[group] += 1;
    }
    let mut groups: Vec<Vec<T>> =
        sizes.into_iter().map(|n| Vec::with_capacity(n as usize)).collect();
    for (group, item) in items() {
        groups[group].push(item);
    }
    groups
}
