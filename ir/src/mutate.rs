//! The primitive mutations that the builder and the editor use.
//!
//! They are private to this crate. Each mutation keeps the derived lists of a function exact: the
//! instruction lists of blocks, the users of values, and the predecessor edges of blocks. Mutations
//! do not check legality; the editor checks each mutation first.

use crate::bag::Bag;
use crate::entity::{Block, Inst, Value};
use crate::function::{BlockData, Function, InstNode, ValueData, ValueDef};
use crate::inst::{Edge, InstData, Target};
use crate::types::Type;
use smallvec::SmallVec;

/// The distance between the order numbers of neighboring instructions after a renumbering.
pub(crate) const ORDER_STRIDE: u32 = 16;

/// The position at which an instruction is inserted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InsertPosition {
    Before(Inst),
    End(Block),
}

impl Function {
    pub(crate) fn append_block(&mut self, block: Block) {
        self.reserve_block(block);
        self.layout.push(block);
    }

    /// Adds a block that has no place in the layout yet. Only the builder uses it.
    pub(crate) fn reserve_block(&mut self, block: Block) {
        let data = BlockData { params: Vec::new(), first: None, last: None, preds: Bag::default() };
        self.blocks.insert(block, data);
    }

    /// Adds a placeholder for a value that is not known yet. The builder replaces it before it
    /// finishes the function.
    pub(crate) fn add_open_read(&mut self, block: Block, value: Value, ty: Type) {
        self.values.insert(
            value,
            ValueData { ty, def: ValueDef::Param(block, u32::MAX), users: Bag::default() },
        );
    }

    /// Inserts a new block before another in layout order.
    pub(crate) fn insert_block_before(&mut self, block: Block, next: Block) {
        self.reserve_block(block);
        self.layout.insert_before(block, next);
    }

    pub(crate) fn append_param(&mut self, block: Block, value: Value, ty: Type) {
        let params = &mut self.block_mut(block).params;
        let index = params.len() as u32;
        params.push(value);
        self.values.insert(
            value,
            ValueData { ty, def: ValueDef::Param(block, index), users: Bag::default() },
        );
    }

    /// Removes an unused parameter. The arguments of the edges that lead to the block stay.
    pub(crate) fn remove_param(&mut self, block: Block, index: usize) {
        let params = &mut self.block_mut(block).params;
        let removed = params.remove(index);
        let shifted: Vec<Value> = params[index..].to_vec();
        for (i, value) in shifted.into_iter().enumerate() {
            self.value_mut(value).def = ValueDef::Param(block, (index + i) as u32);
        }
        self.values.remove(removed);
        self.value_names.remove(&removed);
    }

    /// Inserts an instruction, and updates results, users and edges.
    pub(crate) fn insert_inst(
        &mut self,
        inst: Inst,
        data: InstData,
        result_types: &[Type],
        place: InsertPosition,
    ) {
        for value in data.operands() {
            self.add_user(value, inst);
        }
        for (index, target) in data.targets.iter().enumerate() {
            self.block_mut(target.block).preds.push(Edge { inst, index: index as u32 });
        }
        for (index, (value, ty)) in data.results.iter().zip(result_types).enumerate() {
            let def = ValueDef::Result(inst, index as u32);
            self.values.insert(*value, ValueData { ty: *ty, def, users: Bag::default() });
        }
        let block = self.place_block(place);
        self.insts
            .insert(inst, InstNode { data, block, prev: None.into(), next: None.into(), order: 0 });
        self.link(inst, place);
    }

    /// Removes an instruction whose results have no users.
    pub(crate) fn remove_inst(&mut self, inst: Inst) {
        self.unlink(inst);
        let node = self.insts.remove(inst).expect("the instruction exists");
        for value in node.data.operands() {
            self.remove_user(value, inst);
        }
        for (index, target) in node.data.targets.iter().enumerate() {
            self.remove_pred(target.block, Edge { inst, index: index as u32 });
        }
        for value in &node.data.results {
            self.values.remove(*value);
            self.value_names.remove(value);
        }
    }

    /// Moves an instruction.
    pub(crate) fn move_inst(&mut self, inst: Inst, before: Inst) {
        self.unlink(inst);
        self.link(inst, InsertPosition::Before(before));
    }

    /// Replaces one operand by another value.
    pub(crate) fn set_operand(&mut self, inst: Inst, index: usize, value: Value) {
        let operand = self.inst_mut(inst).operand_mut(index).expect("the operand exists");
        let before = std::mem::replace(operand, value);
        self.remove_user(before, inst);
        self.add_user(value, inst);
    }

    /// Replaces every operand `before` by `after`.
    pub(crate) fn replace_uses(&mut self, before: Value, after: Value) {
        let users = std::mem::take(&mut self.value_mut(before).users);
        // A switch may use one value 10^5 times. A single visit replaces all its uses of the value.
        let mut insts = users.as_slice().to_vec();
        insts.sort_unstable();
        insts.dedup();
        for inst in insts {
            let data = self.inst_mut(inst);
            for operand in
                data.args.iter_mut().chain(data.targets.iter_mut().flat_map(|t| t.args.iter_mut()))
            {
                if *operand == before {
                    *operand = after;
                }
            }
        }
        self.value_mut(after).users.extend(users);
    }

    /// Rewrites the operands and targets of an instruction under its own id. The results must stay
    /// the same.
    pub(crate) fn rewrite_inst(&mut self, inst: Inst, rewrite: impl FnOnce(&mut InstData)) {
        let mut data = self.inst(inst).clone();
        for value in data.operands() {
            self.remove_user(value, inst);
        }
        for (index, target) in data.targets.iter().enumerate() {
            self.remove_pred(target.block, Edge { inst, index: index as u32 });
        }
        rewrite(&mut data);
        for value in data.operands() {
            self.add_user(value, inst);
        }
        for (index, target) in data.targets.iter().enumerate() {
            self.block_mut(target.block).preds.push(Edge { inst, index: index as u32 });
        }
        *self.inst_mut(inst) = data;
    }

    /// Redirects an edge to another block, with other arguments.
    pub(crate) fn redirect_edge(&mut self, edge: Edge, target: Target) {
        let slot = &mut self.inst_mut(edge.inst).targets[edge.index as usize];
        let before = std::mem::replace(slot, target.clone());
        for value in before.args {
            self.remove_user(value, edge.inst);
        }
        for value in target.args {
            self.add_user(value, edge.inst);
        }
        self.remove_pred(before.block, edge);
        self.block_mut(target.block).preds.push(edge);
    }

    /// Appends an argument to an edge.
    pub(crate) fn push_edge_arg(&mut self, edge: Edge, value: Value) {
        self.inst_mut(edge.inst).targets[edge.index as usize].args.push(value);
        self.add_user(value, edge.inst);
    }

    /// Moves the instructions behind a call to a new block, removes the call, and makes its results
    /// the parameters of that block. The block of the call then lacks a terminator. Cost: linear in
    /// the instructions moved.
    pub(crate) fn split_behind(&mut self, call: Inst, rest: Block) {
        let block = self.inst_block(call);
        match self.layout.after(block) {
            Some(next) => self.insert_block_before(rest, next),
            None => self.append_block(rest),
        }
        let behind: Vec<Inst> =
            std::iter::successors(self.next_inst(call), |inst| self.next_inst(*inst)).collect();
        for inst in behind {
            self.unlink(inst);
            self.link(inst, InsertPosition::End(rest));
        }
        let results = std::mem::take(&mut self.inst_mut(call).results);
        for (index, value) in results.iter().enumerate() {
            self.value_mut(*value).def = ValueDef::Param(rest, index as u32);
        }
        self.block_mut(rest).params.extend(results);
        self.remove_inst(call);
    }

    /// Removes one argument of an edge.
    pub(crate) fn remove_edge_arg(&mut self, edge: Edge, index: usize) {
        let value = self.inst_mut(edge.inst).targets[edge.index as usize].args.remove(index);
        self.remove_user(value, edge.inst);
    }

    /// Moves every instruction of `from` to the end of `to`, and drops `from`. The block `from` has
    /// no parameters, and the terminator of `to` was just removed.
    ///
    /// Control went from `to` to `from` alone and nowhere else, so the mark of either is true of
    /// both. The entry block takes none (`a_merged_block_keeps_the_mark`).
    pub(crate) fn splice_block(&mut self, to: Block, from: Block) {
        if self.cold.contains(&from) && to != self.entry() {
            self.cold.insert(to);
        }
        let insts: SmallVec<[Inst; 16]> = self.block_insts(from).collect();
        for inst in insts {
            self.unlink(inst);
            self.link(inst, InsertPosition::End(to));
        }
        self.drop_empty_blocks(&[from]);
    }

    /// Drops blocks without instructions and without edges that lead to them. Cost: linear in the
    /// number of dropped blocks.
    pub(crate) fn drop_empty_blocks(&mut self, blocks: &[Block]) {
        for block in blocks {
            self.layout.remove(*block);
            self.blocks.remove(*block);
            self.block_names.remove(block);
            self.cold.remove(block);
        }
    }

    pub(crate) fn block_mut(&mut self, block: Block) -> &mut BlockData {
        self.blocks.get_mut(block).unwrap_or_else(|| panic!("{block} does not exist"))
    }

    pub(crate) fn inst_mut(&mut self, inst: Inst) -> &mut InstData {
        &mut self.node_mut(inst).data
    }

    pub(crate) fn value_mut(&mut self, value: Value) -> &mut ValueData {
        self.values.get_mut(value).unwrap_or_else(|| panic!("{value} does not exist"))
    }

    pub(crate) fn node_mut(&mut self, inst: Inst) -> &mut InstNode {
        self.insts.get_mut(inst).unwrap_or_else(|| panic!("{inst} does not exist"))
    }

    fn add_user(&mut self, value: Value, inst: Inst) {
        self.value_mut(value).users.push(inst);
    }

    fn remove_user(&mut self, value: Value, inst: Inst) {
        if let Some(data) = self.values.get_mut(value) {
            assert!(data.users.remove(inst), "{value} does not list its user {inst}");
        }
    }

    fn remove_pred(&mut self, block: Block, edge: Edge) {
        if let Some(data) = self.blocks.get_mut(block) {
            assert!(data.preds.remove(edge), "{block} does not list its edge {edge:?}");
        }
    }

    fn place_block(&self, place: InsertPosition) -> Block {
        match place {
            InsertPosition::Before(inst) => self.inst_block(inst),
            InsertPosition::End(block) => block,
        }
    }

    /// Links an instruction into a list. Returns the number of instructions with new order numbers.
    fn link(&mut self, inst: Inst, place: InsertPosition) -> usize {
        let block = self.place_block(place);
        let (prev, next) = match place {
            InsertPosition::Before(next) => (self.prev_inst(next), Some(next)),
            InsertPosition::End(block) => (self.block_mut(block).last, None),
        };
        let low = prev.map_or(0, |p| self.node(p).order);
        let high = next.map(|n| self.node(n).order);
        // The middle between the neighbors, so that most insertions need no renumbering.
        let order = match high {
            None => low.saturating_add(ORDER_STRIDE),
            Some(high) => low + (high - low) / 2,
        };
        let node = self.node_mut(inst);
        (node.block, node.prev, node.next, node.order) = (block, prev.into(), next.into(), order);
        match prev {
            Some(prev) => self.node_mut(prev).next = inst.into(),
            None => self.block_mut(block).first = Some(inst),
        }
        match next {
            Some(next) => self.node_mut(next).prev = inst.into(),
            None => self.block_mut(block).last = Some(inst),
        }
        // No free number is left between the neighbors, or the numbers are about to overflow.
        if order == low || Some(order) == high || order > u32::MAX - ORDER_STRIDE {
            return self.make_room(inst);
        }
        0
    }

    fn unlink(&mut self, inst: Inst) {
        let node = self.node(inst);
        let (block, prev, next) = (node.block, node.prev.expand(), node.next.expand());
        match prev {
            Some(prev) => self.node_mut(prev).next = next.into(),
            None => self.block_mut(block).first = next,
        }
        match next {
            Some(next) => self.node_mut(next).prev = prev.into(),
            None => self.block_mut(block).last = prev,
        }
    }

    /// Gives new order numbers to an instruction that found no free one, and to its neighbors.
    /// Returns the number of instructions with new numbers.
    ///
    /// The ranges of numbers around the instruction double until one is sparse enough, and the
    /// instructions in it are spread over it evenly. A wider range has to be sparser, so that it
    /// absorbs many insertions before a range inside it is full again: a share of its size. An
    /// insertion thus renumbers on average a logarithm of the block's length, at any position
    /// (Bender et al., "Two Simplified Algorithms for Maintaining Order in a List", ESA 2002).
    fn make_room(&mut self, inst: Inst) -> usize {
        let at = u64::from(self.node(inst).order);
        let (mut first, mut last, mut count) = (inst, inst, 1);
        let mut gap = 2;
        for bits in 4..=32 {
            let size = 1u64 << bits;
            let start = at & !(size - 1);
            while let Some(prev) = self.prev_inst(first)
                && u64::from(self.node(prev).order) >= start
            {
                (first, count) = (prev, count + 1);
            }
            while let Some(next) = self.next_inst(last)
                && u64::from(self.node(next).order) < start + size
            {
                (last, count) = (next, count + 1);
            }
            // The whole range must do, at any density: a function has fewer than 2^32 instructions.
            if size / (count + 1) >= gap || bits == 32 {
                self.spread(first, count, start, size);
                return count as usize;
            }
            gap += gap / 5 + 1;
        }
        unreachable!("the last range has all numbers")
    }

    /// Spreads the order numbers of `count` consecutive instructions evenly over a range.
    fn spread(&mut self, first: Inst, count: u64, start: u64, size: u64) {
        let mut next = Some(first);
        for place in 1..=count {
            let inst = next.expect("the caller has counted the instructions");
            let node = self.node_mut(inst);
            node.order = (start + size * place / (count + 1)) as u32;
            next = node.next.expand();
        }
    }
}

#[cfg(test)]
mod tests;
