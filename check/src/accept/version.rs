//! One version alone: every value holds the contents that its term has, given the contents of the
//! leaves.
//!
//! The claim holds for the values available at one point, with the contents that the version last
//! bound to each leaf. In strict SSA, the latest instances of values that dominate a point belong
//! together, so definitions are equations between them (`docs/osr.md`, *Rules for values*).
//!
//! A block parameter is one of two things. It may *bind* a leaf: then the leaf stands for the
//! contents that the parameter receives. Otherwise it is a *copy*: then every live edge into its
//! block passes an argument of the class of the parameter. Memory at the start of a block is a
//! parameter in this sense.
//!
//! A copy needs one more argument. The copy received the contents that its class had at the edge,
//! and the class must still have these contents at later points. That is so if no leaf of the class
//! is bound in between, so all leaves of the class must be bound strictly above the block of the
//! copy. This needs no check of its own. Take any path of edges from the function entry to a copy
//! of a class, and a leaf on which the contents of the class depend. The first value on this path
//! whose class depends on the leaf either binds it, or gets an operand or argument of such a class
//! from earlier on the path. The latter contradicts that the value is the first. So every path to
//! the copy has bound the leaf before the copy.
//!
//! The result is the support of classes, the memory before every instruction, the lone writes, and
//! the accesses that cannot trap. All other files of the checker rely on them.

use super::accesses::Accesses;
use super::assume;
use super::checks::{Check, Finding, Place};
use super::graph::BlockGraph;
use super::ranges::ClaimedRanges;
use super::terms::TermTable;
use fixedbitset::FixedBitSet;
use ir::{Block, Edge, Effects, Function, Inst, InstData, Opcode, Value};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use transition::certificate::{By, NO_TERM, TermId, TermKind, VersionTerms};

/// Where the leaves of a class are bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Support {
    /// The class has no leaves: it is a constant, computed from constants.
    Anywhere,
    /// The deepest block that binds a leaf of the class. The blocks that bind other leaves dominate
    /// it.
    Below(Block),
    /// The version does not bind some leaf of the class, or binds two leaves in blocks without
    /// dominance in either direction. No point of this version has all leaves of the class.
    Unbound,
}

/// One version with the terms of its values.
pub(crate) struct ProvedVersion<'a, 'c> {
    pub(crate) f: &'a Function,
    pub(crate) table: Rc<TermTable<'c>>,
    /// The graph of all edges.
    pub(crate) full: BlockGraph,
    /// The graph of the edges that may be taken; `None` if all may.
    live: Option<BlockGraph>,
    /// By value index: its term.
    terms: Vec<TermId>,
    /// By block index: the classes of memory at its start and at its end.
    memory: Vec<[TermId; 2]>,
    /// By term: the block that binds this leaf.
    pub(crate) binders: Vec<Option<Block>>,
    /// By class.
    support: Vec<Support>,
    /// By term: the effect-free instructions that compute it and may trap in general.
    executed: BTreeMap<TermId, SmallVec<[Inst; 2]>>,
    /// By instruction index: the term of the memory after a write of one place.
    writes: Vec<TermId>,
    /// By instruction index: the class of the memory before it.
    before: Vec<TermId>,
    /// The writes that are no anchors.
    pub(crate) lone_writes: Vec<Inst>,
    pub(super) accesses: Accesses,
    /// Claims about integers at the ends of blocks.
    pub(super) ranges: ClaimedRanges,
}

impl<'a, 'c> ProvedVersion<'a, 'c> {
    /// Checks a version against the terms that the certificate claims for it. Cost: linear in
    /// instructions, operands and terms.
    ///
    /// # Errors
    /// The first check that fails.
    pub(crate) fn check(
        f: &'a Function,
        claimed: &VersionTerms,
        table: &Rc<TermTable<'c>>,
        anchors: &FixedBitSet,
        least: &Rc<[u64]>,
    ) -> Result<ProvedVersion<'a, 'c>, Finding> {
        let mut version = ProvedVersion {
            f,
            table: Rc::clone(table),
            full: BlockGraph::new(f, |_| true),
            live: None,
            terms: vec![NO_TERM; f.value_bound()],
            memory: vec![[NO_TERM; 2]; f.block_bound()],
            binders: vec![None; table.len()],
            support: Vec::new(),
            executed: BTreeMap::new(),
            writes: vec![NO_TERM; f.inst_bound()],
            before: vec![NO_TERM; f.inst_bound()],
            lone_writes: Vec::new(),
            accesses: Accesses::new(f, least),
            ranges: ClaimedRanges::default(),
        };
        // The order matters: each step reads the results of the steps before it. Live edges come
        // first, and they rest on *claimed* terms that the last steps check (`find_live_edges`).
        version.read(claimed)?;
        version.read_ranges(&claimed.ranges)?;
        version.find_live_edges();
        version.bind_leaves()?;
        version.find_support();
        version.vouch();
        for block in version.live().blocks().to_vec() {
            version.check_results(block, anchors)?;
        }
        // The function entry has no predecessors; `bind_leaves` has checked its parameters.
        let entered = version.live().blocks().iter().skip(1);
        entered.copied().try_for_each(|block| version.check_block_entry(block))?;
        version.check_ranges()?;
        // Last, because these reads name the memory at the ends of blocks, which `check_results`
        // finds.
        let mut brought = BTreeMap::new();
        table.merged.iter().try_for_each(|id| version.check_merged(*id, &mut brought))?;
        Ok(version)
    }

    /// The graph of the edges that may be taken. The proof uses dominance in this graph.
    pub(crate) fn live(&self) -> &BlockGraph {
        self.live.as_ref().unwrap_or(&self.full)
    }

    /// The class of a value; [`NO_TERM`] if the certificate gives it no term.
    pub(crate) fn class(&self, value: Value) -> TermId {
        self.table.class(self.term(value))
    }

    /// The term of a value; [`NO_TERM`] if the certificate gives the value no term.
    pub(crate) fn term(&self, value: Value) -> TermId {
        self.terms.get(value.as_u32() as usize).copied().unwrap_or(NO_TERM)
    }

    /// The bits of a value in the class of a constant.
    pub(crate) fn constant(&self, value: Value) -> Option<u64> {
        self.table.constant(self.class(value))
    }

    fn memory(&self, block: Block) -> [TermId; 2] {
        self.memory.get(block.as_u32() as usize).copied().unwrap_or([NO_TERM; 2])
    }

    /// The leaf of the memory at the start of a block; `None` if that memory is a copy.
    pub(crate) fn memory_leaf(&self, block: Block) -> Option<TermId> {
        Some(self.memory(block)[0]).filter(|id| self.is_leaf_of(*id, block))
    }

    /// The class of the memory at the end of a block.
    pub(crate) fn memory_at_end(&self, block: Block) -> TermId {
        self.memory(block)[1]
    }

    /// Where the leaves of a class are bound; `Unbound` for a term that does not exist.
    pub(crate) fn support(&self, class: TermId) -> Support {
        self.support.get(class as usize).copied().unwrap_or(Support::Unbound)
    }

    /// Whether a run may take an edge: the class of the condition is no constant and no range
    /// decides the branch, or this edge is chosen.
    pub(crate) fn may_take(&self, edge: Edge) -> bool {
        let condition = self.f.inst(edge.inst).args.first();
        let known = condition.and_then(|v| self.constant(*v).or_else(|| self.ranged(edge, *v)));
        known.and_then(|bits| self.target_for(edge.inst, bits)).is_none_or(|taken| taken == edge)
    }

    /// The bits of the condition of a branch as far as its range decides the edge to take.
    fn ranged(&self, edge: Edge, condition: Value) -> Option<u64> {
        if self.ranges.is_empty() || self.f.inst(edge.inst).opcode != Opcode::BrIf {
            return None;
        }
        let within = self.ranges.claimed(self.f.inst_block(edge.inst), self.class(condition))?;
        match (within.has(0), within.value()) {
            (false, _) => Some(1),
            (true, value) => value.map(|_| 0),
        }
    }

    /// The edge that a branch or switch takes when its condition holds these bits; `None` for other
    /// instructions.
    pub(crate) fn target_for(&self, inst: Inst, bits: u64) -> Option<Edge> {
        let data = self.f.inst(inst);
        match data.opcode {
            Opcode::BrIf => Some(Edge { inst, index: u32::from(bits == 0) }),
            Opcode::Switch => {
                Some(Edge { inst, index: bits.min(data.targets.len() as u64 - 1) as u32 })
            }
            _ => None,
        }
    }

    /// The edges of a terminator that a run may take, by index.
    pub(crate) fn live_targets(&self, inst: Inst) -> impl Iterator<Item = Edge> + '_ {
        let edges =
            (0..self.f.inst(inst).targets.len() as u32).map(move |index| Edge { inst, index });
        edges.filter(|e| self.may_take(*e))
    }

    /// The edges into a block that a run may take, from reachable blocks.
    pub(crate) fn live_into(&self, block: Block) -> impl Iterator<Item = Edge> + '_ {
        let edges = self.f.predecessors(block).iter().copied();
        edges.filter(|e| self.live().has(self.f.inst_block(e.inst)) && self.may_take(*e))
    }

    /// Reads the claimed terms: every one goes to a value, block or instruction that exists, and
    /// has its type. Whether the claims are true is the matter of the steps that follow.
    fn read(&mut self, claimed: &VersionTerms) -> Result<(), Finding> {
        for &(value, term) in &claimed.values {
            let fits =
                self.f.has_value(value) && self.table.ty(term) == Some(self.f.value_type(value));
            self.table.require(Check::ValueTerm, fits, Place::Value(value))?;
            if let Some(slot) = self.terms.get_mut(value.as_u32() as usize) {
                *slot = term;
            }
        }
        for &(block, term) in &claimed.memory {
            let fits =
                self.f.has_block(block) && self.table.get(term).is_some_and(|t| t.ty.is_none());
            self.table.require(Check::MemoryTerm, fits, Place::Block(block))?;
            if let Some(slot) = self.memory.get_mut(block.as_u32() as usize) {
                // The memory at the end is that at the start until `check_results` has followed the
                // writes.
                *slot = [term; 2];
            }
        }
        for &(inst, term) in &claimed.writes {
            self.table.require(Check::MemoryTerm, self.f.has_inst(inst), Place::Inst(inst))?;
            if let Some(slot) = self.writes.get_mut(inst.as_u32() as usize) {
                *slot = term;
            }
        }
        Ok(())
    }

    /// Finds the edges that constant conditions exclude.
    ///
    /// The conditions are *claimed* to be constants; nothing is checked yet. The claims are checked
    /// later for live code alone, which is enough; so are claims about ranges (`ranges`). Suppose
    /// that a run takes an excluded edge, and take the first time. Until then the run was in live
    /// code, where all claims are checked, so the condition did have the constant, and the run took
    /// another edge.
    fn find_live_edges(&mut self) {
        let mut ends = self.full.blocks().iter().map(|b| self.f.terminator(*b));
        if ends.any(|end| self.live_targets(end).count() < self.f.inst(end).targets.len()) {
            self.live = Some(BlockGraph::new(self.f, |e| self.may_take(e)));
        }
    }

    /// Finds the block that binds each leaf, and proves [`Check::ArgumentTerm`]: the parameters of
    /// the function entry are the arguments of their index. This stops a certificate that swaps two
    /// arguments.
    ///
    /// Several blocks may have parameters with one leaf. The first parameter in depth-first
    /// preorder binds it, and the later parameters are copies. `check_block_entry` accepts a copy
    /// only if its leaf is bound above it, and a block that dominates another precedes it in this
    /// order.
    fn bind_leaves(&mut self) -> Result<(), Finding> {
        let mut bound = std::mem::take(&mut self.binders);
        let mut bind = |id: TermId, block: Block| {
            if let Some(slot) = bound.get_mut(id as usize) {
                slot.get_or_insert(block);
            }
        };
        let entry = self.f.entry();
        for &block in self.live().blocks() {
            for (index, &param) in self.f.block_params(block).iter().enumerate() {
                let kind = self.table.kind(self.term(param));
                // At the function entry, an argument or the memory at entry is the only admissible
                // term. In other blocks, any term may stand; `check_block_entry` judges it.
                let fits = block != entry || kind == Some(&TermKind::Argument(index as u32));
                self.table.require(Check::ArgumentTerm, fits, Place::Value(param))?;
                if block == entry || kind == Some(&TermKind::Param) {
                    bind(self.term(param), block);
                }
            }
            // Memory at the start of a block is one more parameter, and the same rules apply.
            let kind = self.table.kind(self.memory(block)[0]);
            let fits = block != entry || kind == Some(&TermKind::MemoryAtEntry);
            self.table.require(Check::MemoryTerm, fits, Place::Block(block))?;
            if block == entry || kind == Some(&TermKind::MemoryParam) {
                bind(self.memory(block)[0], block);
            }
        }
        self.binders = bound;
        Ok(())
    }

    /// Finds the support of every class. It is computed from the first term of the class. Other
    /// terms of the class may mention other leaves, but they are equal to the first for all
    /// contents of all leaves.
    fn find_support(&mut self) {
        // A result of an anchor is bound where the anchor stands, not at the start of its block. A
        // block is exact enough: the support is compared with points after the anchor alone.
        let in_block =
            |inst: Inst| match self.f.has_inst(inst) && self.live().has(self.f.inst_block(inst)) {
                true => Support::Below(self.f.inst_block(inst)),
                false => Support::Unbound,
            };
        let mut support: Vec<Support> = Vec::with_capacity(self.table.len());
        // The operands of a term come earlier in the table (`TermOrder`), so one pass in order
        // suffices.
        for id in 0..self.table.len() as TermId {
            let found = match self.table.kind(id) {
                Some(TermKind::Op { args, .. }) => {
                    args.iter().fold(Support::Anywhere, |deepest, arg| {
                        self.deeper(
                            deepest,
                            support.get(*arg as usize).copied().unwrap_or(Support::Unbound),
                        )
                    })
                }
                Some(TermKind::Result(inst, _) | TermKind::MemoryAfter(inst)) => in_block(*inst),
                _ => self.binders[id as usize].map_or(Support::Unbound, Support::Below),
            };
            support.push(found);
        }
        self.support = support;
    }

    /// The deeper of two supports, if their blocks dominate one another.
    fn deeper(&self, a: Support, b: Support) -> Support {
        match (a, b) {
            (Support::Anywhere, other) | (other, Support::Anywhere) => other,
            (Support::Below(x), Support::Below(y)) if self.live().dominates(x, y) => b,
            (Support::Below(x), Support::Below(y)) if self.live().dominates(y, x) => a,
            _ => Support::Unbound,
        }
    }

    /// Checks every instruction of a block against the terms of its results, and follows memory
    /// through the block.
    ///
    /// - [`Check::ValueTerm`]: the term of a result is the operation, or the leaf of this result of
    ///   this anchor.
    /// - [`Check::MemoryTerm`]: a read or a write names the memory before it. This stops a load
    ///   that is moved across a store.
    /// - [`Check::EffectAnchor`]: an instruction with an effect is an anchor, except for writes of
    ///   one place. This stops a version that drops a call.
    fn check_results(&mut self, block: Block, anchors: &FixedBitSet) -> Result<(), Finding> {
        let mut memory = self.table.class(self.memory(block)[0]);
        for inst in self.f.block_insts(block) {
            let (data, place) = (self.f.inst(inst), Place::Inst(inst));
            self.before[inst.as_u32() as usize] = memory;
            // Effect-free: the term is the operation on the classes of the operands.
            if data.opcode.is_effect_free() {
                let term = data.result().map_or(NO_TERM, |v| self.term(v));
                self.check_operation(data, term, memory, place)?;
                if data.opcode.can_trap() {
                    self.executed.entry(term).or_default().push(inst);
                }
                continue;
            }
            // Terminators need not be listed as anchors. `paths` decides where paths end.
            let is_anchor = anchors.contains(inst.as_u32() as usize) || data.opcode.is_terminator();
            let written = self.writes[inst.as_u32() as usize];
            // A write of one place: memory after it is the class of its term. If it is no anchor,
            // it is a lone write.
            if written != NO_TERM {
                self.check_operation(data, written, memory, place)?;
                // A store that always traps has no place, and no term for the memory after it
                // (`a_store_above_every_memory_is_no_write`).
                let is_write = self.table.write(written).is_some();
                self.table.require(Check::MemoryTerm, is_write, place)?;
                memory = self.table.class(written);
                self.lone_writes.extend((!is_anchor).then_some(inst));
                continue;
            }
            if data.opcode == Opcode::Assume {
                let fits = assume::has_class(self, data, is_anchor);
                self.table.require(Check::ValueTerm, fits, place)?;
                continue;
            }
            // Any other effect has to be an anchor. No other instruction has its results as leaves.
            self.table.require(Check::EffectAnchor, is_anchor, place)?;
            for (index, value) in data.results.iter().enumerate() {
                let fits = self.table.kind(self.term(*value))
                    == Some(&TermKind::Result(inst, index as u32));
                self.table.require(Check::ValueTerm, fits, place)?;
            }
            // Memory after the anchor is a leaf of its own. Anything may have been written.
            if data.opcode.effects().has(Effects::WRITES) {
                memory = self.table.after.get(&inst).copied().unwrap_or(NO_TERM);
                self.table.require(Check::MemoryTerm, memory != NO_TERM, place)?;
            }
        }
        self.memory[block.as_u32() as usize][1] = memory;
        Ok(())
    }

    /// The class of the memory before an instruction.
    pub(crate) fn memory_before(&self, inst: Inst) -> TermId {
        self.before.get(inst.as_u32() as usize).copied().unwrap_or(NO_TERM)
    }

    /// Whether an instruction is a write of one place that has a term.
    pub(crate) fn is_write(&self, inst: Inst) -> bool {
        self.writes.get(inst.as_u32() as usize).is_some_and(|id| *id != NO_TERM)
    }

    /// Proves [`Check::MemoryMerge`] for one read of a block-start memory, if this version binds
    /// that memory: the read gives the class of its term. Without this check, the value that a
    /// single arm stored could replace a load after a join.
    ///
    /// The proof is by induction over the entries of the block. On every live edge into the block,
    /// the certificate names the same read of the memory at that edge, with the same class. Class
    /// and address are bound strictly above the block. So their contents are the same on an edge
    /// that leads back to the block, and the edge brings a memory in which the read gives this
    /// class.
    ///
    /// `brought` holds, for each block, the classes of memory that its edges bring. Many reads may
    /// be merged at a block with many edges, and computing this set for each read would cost their
    /// product (`reads_merged_on_many_edges_cost_the_edges_once`).
    fn check_merged(
        &self,
        id: TermId,
        brought: &mut BTreeMap<Block, BTreeSet<TermId>>,
    ) -> Result<(), Finding> {
        let (table, place) = (&self.table, Place::Term(id));
        // Only the versions that bind the memory use such a term, so the other versions need not
        // check it. `terms` learns nothing from it for the same reason
        // (`a_merged_read_tells_nothing`). `CrossProduct` rejects a term whose memory no version
        // binds.
        let (Some(term), Some(read)) = (table.get(id), table.read(id)) else { return Ok(()) };
        let (By::Merged { reads }, Some(block)) = (&term.by, self.binders[read.memory as usize])
        else {
            return Ok(());
        };
        // Strictly above: the block itself binds its leaves anew at each entry.
        let mut classes = read.operands.iter().chain([&term.class]);
        let is_above = |class: &TermId| match self.support(*class) {
            Support::Anywhere => true,
            Support::Below(home) => home != block && self.live().dominates(home, block),
            Support::Unbound => false,
        };
        table.require(Check::MemoryMerge, classes.all(is_above), place)?;
        // The list of reads is a hint. A read counts if it is proved to be of the class, and is the
        // same operation at the same address.
        let same =
            reads.iter().filter(|r| table.class(**r) == term.class).filter_map(|r| table.read(*r));
        let given: BTreeSet<TermId> = same.filter(|r| r.is_like(&read)).map(|r| r.memory).collect();
        let memories = || {
            self.live_into(block).map(|e| self.memory_at_end(self.f.inst_block(e.inst))).collect()
        };
        let brought = brought.entry(block).or_insert_with(memories);
        table.require(Check::MemoryMerge, brought.is_subset(&given), place)
    }

    /// Checks that a term is the operation of an instruction on the classes of its operands, and on
    /// the memory before the instruction if it reads or writes.
    fn check_operation(
        &self,
        data: &InstData,
        id: TermId,
        memory: TermId,
        place: Place,
    ) -> Result<(), Finding> {
        let Some(TermKind::Op { opcode, ty, imm, args }) = self.table.kind(id) else {
            return self.table.require(Check::ValueTerm, false, place);
        };
        let effects = data.opcode.effects();
        // The memory is the last operand of the term, and no operand of the instruction.
        let reads = effects.has(Effects::READS) || effects.has(Effects::WRITES);
        let values =
            if reads { args.split_last().map_or(&args[..], |(_, rest)| rest) } else { &args[..] };
        // The certificate lists the operands of a commuting operation in either order.
        let same = |order: &mut dyn Iterator<Item = &Value>| {
            order.map(|v| self.class(*v)).eq(values.iter().copied())
        };
        let operands = same(&mut data.args.iter())
            || (data.opcode.is_commutative() && same(&mut data.args.iter().rev()));
        let fits = *opcode == data.opcode && *ty == data.ty && *imm == data.imm && operands;
        self.table.require(Check::ValueTerm, fits, place)?;
        self.table.require(Check::MemoryTerm, !reads || args.last() == Some(&memory), place)
    }

    /// Checks the parameters of a block, and its memory, on every live edge into it.
    ///
    /// - [`Check::LeafBinder`]: parameters that bind one leaf receive arguments of one class.
    ///   Otherwise one leaf would stand for two contents.
    /// - [`Check::CopyEdges`]: a copy receives an argument of its class. This stops a parameter
    ///   that is claimed to be loop-invariant and is not.
    fn check_block_entry(&self, block: Block) -> Result<(), Finding> {
        let mut first = BTreeMap::new();
        for (index, &param) in self.f.block_params(block).iter().enumerate() {
            let (class, place) = (self.class(param), Place::Value(param));
            let is_leaf = self.is_leaf_of(class, block);
            // Only the first parameter of a leaf defines it, and later parameters are compared with
            // the first. Comparing all pairs would be quadratic
            // (`parameters_of_one_leaf_cost_their_number`).
            let first = *first.entry(class).or_insert(index);
            for edge in self.live_into(block).filter(|_| !is_leaf || first != index) {
                let given = |index: usize| self.class(self.f.target(edge).args[index]);
                let (check, wanted) = match is_leaf {
                    true => (Check::LeafBinder, given(first)),
                    false => (Check::CopyEdges, class),
                };
                self.table.require(check, given(index) == wanted && wanted != NO_TERM, place)?;
            }
        }
        // A memory that is no leaf is a copy of the memory that each edge brings.
        if self.memory_leaf(block).is_none() {
            let own = self.table.class(self.memory(block)[0]);
            for edge in self.live_into(block) {
                let given = self.memory_at_end(self.f.inst_block(edge.inst));
                self.table.require(
                    Check::CopyEdges,
                    given == own && own != NO_TERM,
                    Place::Block(block),
                )?;
            }
        }
        Ok(())
    }

    /// Whether an effect-free instruction that may trap and computes this term has executed
    /// whenever control is before `at`. The operation then has not trapped with these operands.
    pub(crate) fn has_executed(&self, term: TermId, at: Inst) -> bool {
        let insts = self.executed.get(&term).filter(|_| self.f.has_inst(at));
        insts.is_some_and(|insts| insts.iter().any(|i| self.live().passed(self.f, *i, at)))
    }

    /// Whether a block binds this leaf.
    pub(crate) fn is_leaf_of(&self, class: TermId, block: Block) -> bool {
        self.binders.get(class as usize).copied().flatten() == Some(block)
    }

    /// Whether a block binds the deepest leaf of a class.
    pub(super) fn is_bound_in(&self, class: TermId, block: Block) -> bool {
        self.support(class) == Support::Below(block)
    }

    /// Whether all leaves of a class are available in a block, with the contents that this version
    /// bound last.
    pub(crate) fn is_supported_at(&self, class: TermId, block: Block) -> bool {
        match self.support(class) {
            Support::Anywhere => true,
            Support::Below(home) => self.live().dominates(home, block),
            Support::Unbound => false,
        }
    }
}
