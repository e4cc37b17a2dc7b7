//! One version: every value is what its term says, given what the leaves stand for in this version.
//!
//! Among values available at one point, equal terms mean equal contents: in strict SSA the latest
//! instances of values that dominate a point belong together (`mappings.md`, section 5), so
//! definitions are equations between them. A parameter that is no leaf, a *copy*, was given what
//! its class stands for on every edge ever taken, and nothing its class depends on has been bound
//! again since, because all of it was bound strictly above.
//!
//! That it was bound above needs no check. Say a class depends on a leaf (contents of that leaf
//! alone make a difference to it), and take a path from the entry to a block that has a copy of the
//! class, or to a value of it. The first value on the path whose class depends on the leaf has
//! operands, or is given an argument, of such a class, unless it is what binds the leaf. So every
//! path to a copy has bound the leaf before it.

use super::graph::Graph;
use super::terms::Terms;
use crate::verdict::{Check, Finding, Place};
use fixedbitset::FixedBitSet;
use ir::place as memory;
use ir::{Block, Edge, Effects, Function, Inst, InstData, Opcode, Value};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use transition::certificate::{By, NO_TERM, TermId, TermKind, VersionTerms};

/// Accesses at one address looked at for one that vouches for a write done on the way over: the
/// last ones. What is further up costs the entry.
const MAX_ACCESSES: usize = 256;

/// Of a class: the deepest block that binds one of its leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Support {
    /// It has no leaves.
    Anywhere,
    /// This block; those that bind the other leaves dominate it.
    Below(Block),
    /// A leaf is not bound in this version, or the blocks that bind them are on no common path.
    Unbound,
}

/// One version with its terms.
pub(super) struct Version<'a, 'c> {
    pub(super) f: &'a Function,
    pub(super) table: Rc<Terms<'c>>,
    /// All edges.
    pub(super) full: Graph,
    /// Edges that may be taken, where there are others.
    live: Option<Graph>,
    /// By value index.
    terms: Vec<TermId>,
    /// By block index: the memory at its start, and at its end.
    memory: Vec<[TermId; 2]>,
    /// By term: the block that binds a leaf.
    pub(super) binders: Vec<Option<Block>>,
    /// By class.
    support: Vec<Support>,
    /// The instructions without effect that could trap, by the term they compute.
    executed: BTreeMap<TermId, SmallVec<[Inst; 2]>>,
    /// By instruction index: the term of the memory after a write of one place, and the memory
    /// before.
    writes: Vec<TermId>,
    before: Vec<TermId>,
    /// Writes that are no anchors.
    pub(super) lone_writes: Vec<Inst>,
    /// Accesses that no other vouches for, by the class of the address, in preorder of the
    /// dominator tree.
    accesses: BTreeMap<TermId, Vec<(Inst, memory::Place)>>,
    /// Accesses that cannot trap, since others at the same address have passed.
    vouched: FixedBitSet,
}

impl<'a, 'c> Version<'a, 'c> {
    /// Checks a version against its terms. Cost: linear in instructions, operands and terms.
    pub(super) fn check(
        f: &'a Function,
        claimed: &VersionTerms,
        table: &Rc<Terms<'c>>,
        anchors: &FixedBitSet,
    ) -> Result<Version<'a, 'c>, Finding> {
        let mut version = Version {
            f,
            table: Rc::clone(table),
            full: Graph::new(f, |_| true),
            live: None,
            terms: vec![NO_TERM; f.value_bound()],
            memory: vec![[NO_TERM; 2]; f.block_bound()],
            binders: vec![None; table.len()],
            support: Vec::new(),
            executed: BTreeMap::new(),
            writes: vec![NO_TERM; f.inst_bound()],
            before: vec![NO_TERM; f.inst_bound()],
            lone_writes: Vec::new(),
            accesses: BTreeMap::new(),
            vouched: FixedBitSet::with_capacity(f.inst_bound()),
        };
        version.read(claimed)?;
        version.find_live_edges();
        version.bind_leaves()?;
        version.find_support();
        version.vouch();
        for block in version.live().blocks().to_vec() {
            version.check_results(block, anchors)?;
        }
        let entered = version.live().blocks().iter().skip(1);
        entered.copied().try_for_each(|block| version.check_block_entry(block))?;
        let mut brought = BTreeMap::new();
        table.merged.iter().try_for_each(|id| version.check_merged(*id, &mut brought))?;
        Ok(version)
    }

    /// The graph of the edges that may be taken.
    pub(super) fn live(&self) -> &Graph {
        self.live.as_ref().unwrap_or(&self.full)
    }

    /// The class of a value; [`NO_TERM`] without.
    pub(super) fn class(&self, value: Value) -> TermId {
        self.table.class(self.term(value))
    }

    /// The term of a value; [`NO_TERM`] without.
    pub(super) fn term(&self, value: Value) -> TermId {
        self.terms.get(value.as_u32() as usize).copied().unwrap_or(NO_TERM)
    }

    /// The bits of a value whose class is a constant.
    pub(super) fn constant(&self, value: Value) -> Option<u64> {
        self.table.constant(self.class(value))
    }

    fn memory(&self, block: Block) -> [TermId; 2] {
        self.memory.get(block.as_u32() as usize).copied().unwrap_or([NO_TERM; 2])
    }

    /// The leaf that stands for the memory at the start of a block, if it is one.
    pub(super) fn memory_leaf(&self, block: Block) -> Option<TermId> {
        Some(self.memory(block)[0]).filter(|id| self.is_leaf_of(*id, block))
    }

    /// The class of the memory at the end of a block.
    pub(super) fn memory_at_end(&self, block: Block) -> TermId {
        self.memory(block)[1]
    }

    pub(super) fn support(&self, class: TermId) -> Support {
        self.support.get(class as usize).copied().unwrap_or(Support::Unbound)
    }

    /// Whether a branch may take an edge: its condition is not known to choose another.
    pub(super) fn may_take(&self, edge: Edge) -> bool {
        let known = self.f.inst(edge.inst).args.first().and_then(|v| self.constant(*v));
        known.and_then(|bits| self.target_for(edge.inst, bits)).is_none_or(|taken| taken == edge)
    }

    /// The target that a branch continues at when its condition holds these bits.
    pub(super) fn target_for(&self, inst: Inst, bits: u64) -> Option<Edge> {
        let data = self.f.inst(inst);
        match data.opcode {
            Opcode::BrIf => Some(Edge { inst, index: u32::from(bits == 0) }),
            Opcode::Switch => {
                Some(Edge { inst, index: bits.min(data.targets.len() as u64 - 1) as u32 })
            }
            _ => None,
        }
    }

    /// The targets that a terminator may continue at, by index.
    pub(super) fn live_targets(&self, inst: Inst) -> impl Iterator<Item = Edge> + '_ {
        let edges =
            (0..self.f.inst(inst).targets.len() as u32).map(move |index| Edge { inst, index });
        edges.filter(|e| self.may_take(*e))
    }

    /// The edges into a block that may be taken, from blocks that are reached.
    pub(super) fn live_into(&self, block: Block) -> impl Iterator<Item = Edge> + '_ {
        let edges = self.f.predecessors(block).iter().copied();
        edges.filter(|e| self.live().has(self.f.inst_block(e.inst)) && self.may_take(*e))
    }

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

    fn find_live_edges(&mut self) {
        let mut ends = self.full.blocks().iter().map(|b| self.f.terminator(*b));
        if ends.any(|end| self.live_targets(end).count() < self.f.inst(end).targets.len()) {
            self.live = Some(Graph::new(self.f, |e| self.may_take(e)));
        }
    }

    /// Finds which block binds which leaf: the first one met that has it. Where others have it too
    /// it is a copy, which the binding block has to dominate, and so is met before.
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
                let fits = block != entry || kind == Some(&TermKind::Argument(index as u32));
                self.table.require(Check::ArgumentTerm, fits, Place::Value(param))?;
                if block == entry || kind == Some(&TermKind::Param) {
                    bind(self.term(param), block);
                }
            }
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

    /// The support of every class: of its first term, since the others are equal whatever the
    /// leaves stand for.
    fn find_support(&mut self) {
        let in_block =
            |inst: Inst| match self.f.has_inst(inst) && self.live().has(self.f.inst_block(inst)) {
                true => Support::Below(self.f.inst_block(inst)),
                false => Support::Unbound,
            };
        let mut support: Vec<Support> = Vec::with_capacity(self.table.len());
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

    fn deeper(&self, a: Support, b: Support) -> Support {
        match (a, b) {
            (Support::Anywhere, other) | (other, Support::Anywhere) => other,
            (Support::Below(x), Support::Below(y)) if self.live().dominates(x, y) => b,
            (Support::Below(x), Support::Below(y)) if self.live().dominates(y, x) => a,
            _ => Support::Unbound,
        }
    }

    /// Checks the results of the instructions of a block, and follows the memory through it.
    fn check_results(&mut self, block: Block, anchors: &FixedBitSet) -> Result<(), Finding> {
        let mut memory = self.table.class(self.memory(block)[0]);
        for inst in self.f.block_insts(block) {
            let (data, place) = (self.f.inst(inst), Place::Inst(inst));
            self.before[inst.as_u32() as usize] = memory;
            if data.opcode.is_effect_free() {
                let term = data.result().map_or(NO_TERM, |v| self.term(v));
                self.check_operation(data, term, memory, place)?;
                if data.opcode.can_trap() {
                    self.executed.entry(term).or_default().push(inst);
                }
                continue;
            }
            let is_anchor = anchors.contains(inst.as_u32() as usize) || data.opcode.is_terminator();
            let written = self.writes[inst.as_u32() as usize];
            if written != NO_TERM {
                self.check_operation(data, written, memory, place)?;
                memory = self.table.class(written);
                self.lone_writes.extend((!is_anchor).then_some(inst));
                continue;
            }
            self.table.require(Check::EffectAnchor, is_anchor, place)?;
            for (index, value) in data.results.iter().enumerate() {
                let fits = self.table.kind(self.term(*value))
                    == Some(&TermKind::Result(inst, index as u32));
                self.table.require(Check::ValueTerm, fits, place)?;
            }
            if data.opcode.effects().has(Effects::WRITES) {
                memory = self.table.after.get(&inst).copied().unwrap_or(NO_TERM);
                self.table.require(Check::MemoryTerm, memory != NO_TERM, place)?;
            }
        }
        self.memory[block.as_u32() as usize][1] = memory;
        Ok(())
    }

    /// Finds the accesses that others vouch for. Of those that dominate one, the nearest that is
    /// kept vouches for all that any of them does; in preorder of the dominator tree, who does not
    /// dominate an access dominates none after it.
    fn vouch(&mut self) {
        let graph = self.live.as_ref().unwrap_or(&self.full);
        let mut blocks = graph.blocks().to_vec();
        blocks.sort_by_key(|block| graph.preorder(*block));
        let mut above: BTreeMap<_, Vec<(Inst, memory::Place)>> = BTreeMap::new();
        for inst in blocks.iter().flat_map(|block| self.f.block_insts(*block)) {
            let Some((address, place)) = self.access(inst) else { continue };
            let above = above.entry((address, place.memory())).or_default();
            while above.pop_if(|(other, _)| !graph.passed(self.f, *other, inst)).is_some() {}
            if above.last().is_some_and(|(_, p)| p.vouches_for(&place)) {
                self.vouched.insert(inst.as_u32() as usize);
            } else {
                above.push((inst, place));
                self.accesses.entry(address).or_default().push((inst, place));
            }
        }
    }

    /// The class of the address of an access, and the place.
    fn access(&self, inst: Inst) -> Option<(TermId, memory::Place)> {
        let data = self.f.inst(inst);
        let place = memory::Place::read(data.opcode, data.ty, &data.imm);
        let place = place.or(memory::Place::written(data.opcode, data.ty, &data.imm));
        Some((self.class(*data.args.first()?), place.filter(|_| data.opcode.can_trap())?))
    }

    /// Whether a write of some bytes could not trap before `at`, since an access at the same
    /// address has passed.
    pub(super) fn has_accessed(&self, write: TermId, at: Inst) -> bool {
        let Some((address, place)) = self.table.bytes_written(write) else { return true };
        let mut passed = self.accesses.get(&address).into_iter().flatten().rev().take(MAX_ACCESSES);
        passed.any(|(i, p)| p.vouches_for(&place) && self.live().passed(self.f, *i, at))
    }

    /// Whether an access cannot trap where another has not, control having come straight from the
    /// one to the other.
    pub(super) fn traps_like(&self, inst: Inst, other: Inst) -> bool {
        let both = self.access(inst).zip(self.access(other));
        both.is_some_and(|((x, place), (y, p))| x == y && p.vouches_for(&place))
    }

    /// Whether an access cannot trap, since one at the same address has passed.
    pub(super) fn is_vouched(&self, inst: Inst) -> bool {
        self.vouched.contains(inst.as_u32() as usize)
    }

    /// The class of the memory before an instruction.
    pub(super) fn memory_before(&self, inst: Inst) -> TermId {
        self.before.get(inst.as_u32() as usize).copied().unwrap_or(NO_TERM)
    }

    /// Whether an instruction writes one place, and nothing more.
    pub(super) fn is_write(&self, inst: Inst) -> bool {
        self.writes.get(inst.as_u32() as usize).is_some_and(|id| *id != NO_TERM)
    }

    /// Checks that a read of what a block begins with gives its class on every edge into the block,
    /// if this version has the block. By induction over the times the block is entered: its class
    /// and its address are bound strictly above, so what they stood for when it was last entered
    /// they stand for where an edge leads back to it. `brought` are the memories that edges bring,
    /// of blocks asked about before: the reads of a block that many lead to must not cost its edges
    /// each (`reads_merged_on_many_edges_cost_the_edges_once`).
    fn check_merged(
        &self,
        id: TermId,
        brought: &mut BTreeMap<Block, BTreeSet<TermId>>,
    ) -> Result<(), Finding> {
        let (table, place) = (&self.table, Place::Term(id));
        let (Some(term), Some(read)) = (table.get(id), table.read(id)) else { return Ok(()) };
        let (By::Merged { reads }, Some(block)) = (&term.by, self.binders[read.memory as usize])
        else {
            return Ok(());
        };
        let mut classes = read.operands.iter().chain([&term.class]);
        let is_above = |class: &TermId| match self.support(*class) {
            Support::Anywhere => true,
            Support::Below(home) => home != block && self.live().dominates(home, block),
            Support::Unbound => false,
        };
        table.require(Check::MemoryMerge, classes.all(is_above), place)?;
        let same =
            reads.iter().filter(|r| table.class(**r) == term.class).filter_map(|r| table.read(*r));
        let given: BTreeSet<TermId> = same.filter(|r| r.is_like(&read)).map(|r| r.memory).collect();
        let memories = || {
            self.live_into(block).map(|e| self.memory_at_end(self.f.inst_block(e.inst))).collect()
        };
        let brought = brought.entry(block).or_insert_with(memories);
        table.require(Check::MemoryMerge, brought.is_subset(&given), place)
    }

    /// Checks that a term is the operation of an instruction, on the memory where it stands.
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
        let reads = effects.has(Effects::READS) || effects.has(Effects::WRITES);
        let values =
            if reads { args.split_last().map_or(&args[..], |(_, rest)| rest) } else { &args[..] };
        let same = |order: &mut dyn Iterator<Item = &Value>| {
            order.map(|v| self.class(*v)).eq(values.iter().copied())
        };
        let operands = same(&mut data.args.iter())
            || (data.opcode.is_commutative() && same(&mut data.args.iter().rev()));
        let fits = *opcode == data.opcode && *ty == data.ty && *imm == data.imm && operands;
        self.table.require(Check::ValueTerm, fits, place)?;
        self.table.require(Check::MemoryTerm, !reads || args.last() == Some(&memory), place)
    }

    /// Checks what the parameters of a block, and its memory, receive: a copy its class, parameters
    /// that bind one leaf the same as the first of them.
    fn check_block_entry(&self, block: Block) -> Result<(), Finding> {
        let mut first = BTreeMap::new();
        for (index, &param) in self.f.block_params(block).iter().enumerate() {
            let (class, place) = (self.class(param), Place::Value(param));
            let is_leaf = self.is_leaf_of(class, block);
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

    /// Whether an instruction that could trap and computes a term has executed wherever control is
    /// before `at`.
    pub(super) fn has_executed(&self, term: TermId, at: Inst) -> bool {
        let insts = self.executed.get(&term).filter(|_| self.f.has_inst(at));
        insts.is_some_and(|insts| insts.iter().any(|i| self.live().passed(self.f, *i, at)))
    }

    pub(super) fn is_leaf_of(&self, class: TermId, block: Block) -> bool {
        self.binders.get(class as usize).copied().flatten() == Some(block)
    }

    /// Whether everything a class depends on is available in a block, as this version last bound
    /// it.
    pub(super) fn is_supported_at(&self, class: TermId, block: Block) -> bool {
        match self.support(class) {
            Support::Anywhere => true,
            Support::Below(home) => self.live().dominates(home, block),
            Support::Unbound => false,
        }
    }
}
