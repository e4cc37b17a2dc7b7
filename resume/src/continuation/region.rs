//! What of a version can be come to from a landing point, and what of that is needed.

use super::ContinuationError;
use crate::copy::Origins;
use cranelift_entity::EntityRef;
use fixedbitset::FixedBitSet;
use ir::decided::Decided;
use ir::{Block, Edge, Function, Inst, Value, ValueDef};
use transition::mapping::Entry;

/// The edges that runs take as far as constants tell; the others are not there.
#[derive(Clone, Copy)]
pub(super) struct Taken<'f> {
    /// Of the version that entries lead into.
    pub(super) decided: &'f Decided,
    /// What the code is a copy of, if it is not the version itself.
    pub(super) origins: Option<&'f Origins>,
}

impl Taken<'_> {
    fn may_take(&self, edge: Edge) -> bool {
        match self.origins {
            None => self.decided.may_take(edge),
            Some(origins) => {
                let of = origins.inst(edge.inst);
                of.is_none_or(|inst| self.decided.may_take(Edge { inst, ..edge }))
            }
        }
    }
}

/// The part of a version behind a landing point.
pub(super) struct Region<'f> {
    pub(super) target: &'f Function,
    /// The instruction landed at.
    pub(super) landing: Inst,
    /// Its block.
    pub(super) block: Block,
    /// The blocks that are come to, in reverse postorder of the graph that begins with the landing.
    /// If the landing's own is among them, it is split there, or come to as a whole
    /// ([`Region::lands_at_start`]).
    pub(super) order: Vec<Block>,
    /// By block index, those of `order`.
    reached: FixedBitSet,
    taken: Option<Taken<'f>>,
    /// By value of the version: whether an effect, a trap, a branch or a result behind the landing
    /// depends on it.
    needed: FixedBitSet,
    /// By value of the version: whether it is needed and provided.
    provided: FixedBitSet,
}

impl<'f> Region<'f> {
    /// Walks from where an entry lands. Cost: linear in what is come to.
    ///
    /// # Errors
    /// A value that is needed, not provided, and defined nowhere behind the landing.
    pub(super) fn new(
        target: &'f Function,
        entry: &Entry,
        taken: Option<Taken<'f>>,
    ) -> Result<Region<'f>, ContinuationError> {
        let landing = entry.target.inst();
        let mut region = Region {
            target,
            landing,
            block: target.inst_block(landing),
            order: Vec::new(),
            reached: FixedBitSet::with_capacity(target.block_bound()),
            taken,
            needed: FixedBitSet::with_capacity(target.value_bound()),
            provided: FixedBitSet::with_capacity(target.value_bound()),
        };
        region.walk();
        region.find_needed(entry)?;
        Ok(region)
    }

    /// Whether control may come back to the block landed in.
    pub(super) fn comes_back(&self) -> bool {
        self.reached.contains(self.block.index())
    }

    /// Whether the landing is the start of a block that control may come back to: then it is an
    /// edge to that block.
    pub(super) fn lands_at_start(&self) -> bool {
        self.comes_back() && self.target.first_inst(self.block) == self.landing
    }

    /// Whether an edge that leaves a block is there.
    fn may_take(&self, edge: Edge) -> bool {
        self.taken.is_none_or(|t| t.may_take(edge))
    }

    /// Whether anything depends on a value.
    pub(super) fn is_needed(&self, value: Value) -> bool {
        self.needed.contains(value.index())
    }

    /// Whether a value is needed and provided.
    pub(super) fn is_provided(&self, value: Value) -> bool {
        self.provided.contains(value.index())
    }

    /// Takes a value for one that is not provided.
    pub(super) fn forget(&mut self, value: Value) {
        self.provided.set(value.index(), false);
    }

    /// Whether a value is needed and provided, and defined again behind the landing.
    pub(super) fn has_two_definitions(&self, value: Value) -> bool {
        let is_argument =
            self.lands_at_start() && self.target.block_params(self.block).contains(&value);
        self.provided.contains(value.index()) && self.is_defined(value) && !is_argument
    }

    /// Whether an instruction is copied: its effect or its results are needed.
    pub(super) fn is_kept(&self, inst: Inst) -> bool {
        self.is_root(inst) || self.target.inst(inst).results.iter().any(|v| self.is_needed(*v))
    }

    fn is_root(&self, inst: Inst) -> bool {
        let opcode = self.target.inst(inst).opcode;
        !opcode.is_effect_free() || (opcode.can_trap() && self.target.may_trap(inst))
    }

    /// Finds the blocks that are come to. The path is explicit: the input decides its length.
    fn walk(&mut self) {
        let at_start = self.target.first_inst(self.block) == self.landing;
        let mut path = vec![(self.block, 0u32)];
        while let Some((block, next)) = path.last_mut() {
            let edge = Edge { inst: self.target.terminator(*block), index: *next };
            let Some(target) = self.target.inst(edge.inst).targets.get(*next as usize) else {
                self.order.push(*block);
                path.pop();
                continue;
            };
            *next += 1;
            let to = target.block;
            if !self.may_take(edge) || self.reached.put(to.index()) {
                continue;
            }
            match to == self.block {
                // What comes before the landing leads to the landing, where the walk began.
                true if !at_start => self.order.push(to),
                true => {}
                false => path.push((to, 0)),
            }
        }
        // The bottom of the path was what stands behind the landing, or the block as a whole.
        let landed = self.order.pop();
        if !self.lands_at_start() {
            self.order.reverse();
        } else {
            self.order.extend(landed);
            self.order.reverse();
        }
    }

    /// The instructions that are copied from a block of `order`, or, of the landing's own block,
    /// `None` of what stands behind it.
    pub(super) fn insts(&self, block: Option<Block>) -> impl Iterator<Item = Inst> + use<'f> {
        let target = self.target;
        let (first, end) = match block {
            Some(block) if block == self.block && !self.lands_at_start() => {
                (target.first_inst(block), Some(self.landing))
            }
            Some(block) => (target.first_inst(block), None),
            None => (self.landing, None),
        };
        std::iter::successors(Some(first), move |i| target.next_inst(*i))
            .take_while(move |i| Some(*i) != end)
    }

    /// Whether an instruction stands in what is copied.
    fn is_copied(&self, inst: Inst) -> bool {
        let block = self.target.inst_block(inst);
        self.reached.contains(block.index())
            || (block == self.block
                && (inst == self.landing || self.target.stands_before(self.landing, inst)))
    }

    fn is_defined(&self, value: Value) -> bool {
        match self.target.value_def(value) {
            ValueDef::Result(inst, _) => self.is_copied(inst),
            ValueDef::Param(block, _) => self.reached.contains(block.index()),
        }
    }

    fn find_needed(&mut self, entry: &Entry) -> Result<(), ContinuationError> {
        let mut work: Vec<Value> = Vec::new();
        let blocks = self.order.iter().copied().map(Some);
        for block in blocks.chain((!self.lands_at_start()).then_some(None)) {
            for inst in self.insts(block).filter(|i| self.is_root(*i)) {
                if !self.is_decided(inst) {
                    work.extend(&self.target.inst(inst).args);
                }
            }
        }
        while let Some(value) = work.pop() {
            if self.needed.put(value.index()) {
                continue;
            }
            if entry.provides_value(value) {
                self.provided.insert(value.index());
            } else if !self.is_defined(value)
                || (self.lands_at_start() && self.is_bound_at_landing(value))
            {
                return Err(ContinuationError::NotProvided(value));
            }
            match self.target.value_def(value) {
                ValueDef::Result(inst, _) if self.is_copied(inst) => {
                    work.extend(&self.target.inst(inst).args)
                }
                ValueDef::Param(block, index) if self.reached.contains(block.index()) => {
                    let preds =
                        self.target.predecessors(block).iter().filter(|e| self.is_edge(**e));
                    work.extend(preds.map(|e| self.target.target(*e).args[index as usize]));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether a value is a parameter of the block landed in.
    fn is_bound_at_landing(&self, value: Value) -> bool {
        matches!(self.target.value_def(value), ValueDef::Param(block, _) if block == self.block)
    }

    /// Whether an edge is there, and leaves what is copied.
    fn is_edge(&self, edge: Edge) -> bool {
        let from = self.target.inst_block(edge.inst);
        (from == self.block || self.reached.contains(from.index())) && self.may_take(edge)
    }

    /// The one edge that a branch takes, if constants decide it.
    pub(super) fn only_edge(&self, inst: Inst) -> Option<usize> {
        let count = self.target.inst(inst).targets.len();
        let taken = self.taken.filter(|_| count > 1)?;
        let mut ways =
            (0..count).filter(|index| taken.may_take(Edge { inst, index: *index as u32 }));
        ways.next().filter(|_| ways.next().is_none())
    }

    /// Whether a branch becomes a jump, and needs no operand.
    fn is_decided(&self, inst: Inst) -> bool {
        self.only_edge(inst).is_some()
    }
}
