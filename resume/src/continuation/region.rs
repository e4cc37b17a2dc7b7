//! The region of a continuation: the code reachable from a landing point, and the values that it
//! needs.

use super::ContinuationError;
use crate::copy::Origins;
use cranelift_entity::EntityRef;
use fixedbitset::FixedBitSet;
use ir::decided::Decided;
use ir::{Block, Edge, Function, Inst, Point, Value, ValueDef};
use transition::mapping::{Entry, Mapping};

/// The edges that runs take, as far as constants tell. The region ignores all others.
#[derive(Clone, Copy)]
pub(super) struct DecidedBranches<'f> {
    /// The analysis of the version that entries lead to.
    pub(super) decided: &'f Decided,
    /// The sources of the code, if it is a copy of that version.
    pub(super) origins: Option<&'f Origins>,
}

impl DecidedBranches<'_> {
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
pub(super) struct CopiedRegion<'f> {
    pub(super) target: &'f Function,
    /// The landing instruction.
    pub(super) landing: Inst,
    /// Its block.
    pub(super) block: Block,
    /// The reachable blocks, in reverse postorder of the graph that starts at the landing point. If
    /// the landing block is among them, control comes back to it. Its copy is then split at the
    /// landing point, or whole if that is its start ([`CopiedRegion::lands_at_start`]).
    pub(super) order: Vec<Block>,
    /// By block index: whether `order` has the block.
    reached: FixedBitSet,
    taken: Option<DecidedBranches<'f>>,
    /// By value of the version: whether an effect, a trap, a branch or a result behind the landing
    /// point depends on it.
    needed: FixedBitSet,
    /// By value of the version: whether it is needed and the entry provides it.
    provided: FixedBitSet,
    /// The mapping whose entries runs take out of the code, if any.
    out: Option<&'f Mapping>,
}

impl<'f> CopiedRegion<'f> {
    /// Finds the region behind the landing point of an entry. Cost: linear in the reachable code.
    ///
    /// # Errors
    /// [`ContinuationError::NotProvided`] if neither the entry provides a needed value nor code
    /// behind the landing point defines it.
    pub(super) fn new(
        target: &'f Function,
        entry: &Entry,
        taken: Option<DecidedBranches<'f>>,
        out: Option<&'f Mapping>,
    ) -> Result<CopiedRegion<'f>, ContinuationError> {
        let landing = entry.target.inst();
        let mut region = CopiedRegion {
            target,
            landing,
            block: target.inst_block(landing),
            order: Vec::new(),
            reached: FixedBitSet::with_capacity(target.block_bound()),
            taken,
            needed: FixedBitSet::with_capacity(target.value_bound()),
            provided: FixedBitSet::with_capacity(target.value_bound()),
            out,
        };
        region.walk();
        region.find_needed(entry)?;
        Ok(region)
    }

    /// Whether control may come back to the landing block.
    pub(super) fn comes_back(&self) -> bool {
        self.reached.contains(self.block.index())
    }

    /// Whether the landing point is the start of a block that control may come back to. Landing is
    /// then one more edge to that block.
    pub(super) fn lands_at_start(&self) -> bool {
        self.comes_back() && self.target.first_inst(self.block) == self.landing
    }

    /// Whether runs may take an edge.
    fn may_take(&self, edge: Edge) -> bool {
        self.taken.is_none_or(|t| t.may_take(edge))
    }

    /// Whether an effect, a trap, a branch or a result depends on a value.
    pub(super) fn is_needed(&self, value: Value) -> bool {
        self.needed.contains(value.index())
    }

    /// Whether a value is needed and the entry provides it.
    pub(super) fn is_provided(&self, value: Value) -> bool {
        self.provided.contains(value.index())
    }

    /// Treats a value as not provided from now on.
    pub(super) fn forget(&mut self, value: Value) {
        self.provided.set(value.index(), false);
    }

    /// Whether the entry provides a value, and code behind the landing point defines it again. A
    /// parameter of a block that the entry lands at the start of has one definition: landing is an
    /// edge that binds it.
    pub(super) fn has_two_definitions(&self, value: Value) -> bool {
        let is_argument =
            self.lands_at_start() && self.target.block_params(self.block).contains(&value);
        self.provided.contains(value.index()) && self.is_defined(value) && !is_argument
    }

    /// Whether an instruction is copied: it has an effect, may trap, or has a result that is
    /// needed.
    pub(super) fn is_kept(&self, inst: Inst) -> bool {
        self.is_root(inst) || self.target.inst(inst).results.iter().any(|v| self.is_needed(*v))
    }

    fn is_root(&self, inst: Inst) -> bool {
        let opcode = self.target.inst(inst).opcode;
        !opcode.is_effect_free() || (opcode.can_trap() && self.target.may_trap(inst))
    }

    /// Finds the reachable blocks, depth first. The stack is explicit, since the input decides its
    /// depth.
    fn walk(&mut self) {
        let at_start = self.target.first_inst(self.block) == self.landing;
        // The landing block stands at the bottom without being marked: only an edge back to it
        // marks it as reached.
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
                // The upper part of the landing block has one successor: the lower part, where the
                // walk began. So it is finished at once, and needs no visit of its own.
                true if !at_start => self.order.push(to),
                true => {}
                false => path.push((to, 0)),
            }
        }
        // The bottom of the stack is the code behind the landing point, which `land` emits apart;
        // or the whole block, if the landing point is its start.
        let landed = self.order.pop();
        if !self.lands_at_start() {
            self.order.reverse();
        } else {
            self.order.extend(landed);
            self.order.reverse();
        }
    }

    /// The instructions copied from a block of `order`. `None` stands for the code behind the
    /// landing point in its own block.
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

    /// Whether an instruction stands in the region.
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
        // Backward from the roots, over values: an operation enters the function only if a root
        // depends on it. A branch that becomes a jump needs no operand.
        let mut work: Vec<Value> = Vec::new();
        let blocks = self.order.iter().copied().map(Some);
        for block in blocks.chain((!self.lands_at_start()).then_some(None)) {
            for inst in self.insts(block).filter(|i| self.is_root(*i)) {
                if !self.is_decided(inst) {
                    work.extend(&self.target.inst(inst).args);
                }
            }
            for inst in self.insts(block) {
                work.extend(self.taken_out(inst).into_iter().flatten());
            }
        }
        work.extend(self.taken_out(self.landing).into_iter().flatten());
        while let Some(value) = work.pop() {
            if self.needed.put(value.index()) {
                continue;
            }
            // A provided value is followed further all the same if the region defines it again: its
            // next definition has operands too. Landing at the start of a block binds the block's
            // parameters, so the entry must provide the parameters even if edges bind them.
            if entry.provides_value(value) {
                self.provided.insert(value.index());
            } else if !self.is_defined(value)
                || (self.lands_at_start() && self.is_bound_at_landing(value))
            {
                return Err(ContinuationError::NotProvided(value));
            }
            match self.target.value_def(value) {
                // Only predecessors in the region bind the parameter; the others stand above the
                // landing point.
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

    /// The values that runs take out of the code before an instruction of the version. `None` if no
    /// entry leaves there. Values that the version lacks are left out: mappings of any origin reach
    /// this code.
    pub(super) fn taken_out(&self, inst: Inst) -> Option<Vec<Value>> {
        let entry = self.out?.entry(Point::before(inst))?;
        Some(entry.requires.iter().filter(|v| self.target.has_value(**v)).copied().collect())
    }

    /// Whether a value is a parameter of the landing block.
    fn is_bound_at_landing(&self, value: Value) -> bool {
        matches!(self.target.value_def(value), ValueDef::Param(block, _) if block == self.block)
    }

    /// Whether an edge starts in the region and runs may take it.
    fn is_edge(&self, edge: Edge) -> bool {
        let from = self.target.inst_block(edge.inst);
        (from == self.block || self.reached.contains(from.index())) && self.may_take(edge)
    }

    /// The index of the single edge that a branch takes, if constants decide it.
    pub(super) fn only_edge(&self, inst: Inst) -> Option<usize> {
        let count = self.target.inst(inst).targets.len();
        let taken = self.taken.filter(|_| count > 1)?;
        let mut ways =
            (0..count).filter(|index| taken.may_take(Edge { inst, index: *index as u32 }));
        ways.next().filter(|_| ways.next().is_none())
    }

    /// Whether a branch becomes a jump, which needs no operand.
    fn is_decided(&self, inst: Inst) -> bool {
        self.only_edge(inst).is_some()
    }
}
