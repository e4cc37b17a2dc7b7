//! One version: every value is what its term says, given what the leaves stand for in this version.
//!
//! Among values available at one point, equal terms mean equal contents: in strict SSA the latest instances of
//! values that dominate a point belong together (`mappings.md`, section 5), so definitions are equations
//! between them. A parameter that is no leaf, a *copy*, was given what its class stands for on every edge ever
//! taken, and nothing its class depends on has been bound again since, because all of it was bound above.

use super::graph::Graph;
use super::terms::Terms;
use super::verdict::{Check, Finding, Options, Place};
use fixedbitset::FixedBitSet;
use ir::certificate::{NO_TERM, TermId, TermKind, VersionTerms};
use ir::{Block, Edge, Effects, Function, Inst, InstData, Opcode, Value};

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
pub(super) struct Version<'a> {
    pub(super) f: &'a Function,
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
}

impl<'a> Version<'a> {
    /// Checks a version against its terms. Cost: linear in instructions, operands and terms.
    pub(super) fn check(
        f: &'a Function,
        claimed: &VersionTerms,
        terms: &Terms<'_>,
        anchors: &FixedBitSet,
        options: &Options,
    ) -> Result<Version<'a>, Finding> {
        let mut version = Version {
            f,
            full: Graph::new(f, |_| true),
            live: None,
            terms: vec![NO_TERM; f.value_bound()],
            memory: vec![[NO_TERM; 2]; f.block_bound()],
            binders: vec![None; terms.len()],
            support: Vec::new(),
        };
        version.read(claimed, terms, options)?;
        version.find_live_edges(terms);
        version.bind_leaves(terms, options)?;
        version.find_support(terms);
        for block in version.live().blocks().to_vec() {
            version.check_results(block, terms, anchors, options)?;
        }
        for &block in version.live().blocks().iter().skip(1) {
            version.check_block_entry(block, terms, options)?;
        }
        Ok(version)
    }

    /// The graph of the edges that may be taken.
    pub(super) fn live(&self) -> &Graph {
        self.live.as_ref().unwrap_or(&self.full)
    }

    /// The class of a value; [`NO_TERM`] without.
    pub(super) fn class(&self, terms: &Terms<'_>, value: Value) -> TermId {
        terms.class(self.term(value))
    }

    /// The term of a value; [`NO_TERM`] without.
    pub(super) fn term(&self, value: Value) -> TermId {
        self.terms.get(value.as_u32() as usize).copied().unwrap_or(NO_TERM)
    }

    /// The leaf that stands for the memory at the start of a block, if it is one.
    pub(super) fn memory_leaf(&self, block: Block) -> Option<TermId> {
        let id = self.memory.get(block.as_u32() as usize)?[0];
        self.is_leaf_of(id, block).then_some(id)
    }

    /// The class of the memory at the end of a block.
    pub(super) fn memory_at_end(&self, block: Block) -> TermId {
        self.memory.get(block.as_u32() as usize).map_or(NO_TERM, |m| m[1])
    }

    pub(super) fn support(&self, class: TermId) -> Support {
        self.support.get(class as usize).copied().unwrap_or(Support::Unbound)
    }

    /// Whether a branch may take an edge: its condition is not known to choose another.
    pub(super) fn may_take(&self, terms: &Terms<'_>, edge: Edge) -> bool {
        let data = self.f.inst(edge.inst);
        let known = data.args.first().and_then(|v| terms.constant(self.class(terms, *v)));
        match (data.opcode, known) {
            (Opcode::BrIf, Some(bits)) => edge.index == u32::from(bits == 0),
            (Opcode::Switch, Some(bits)) => u64::from(edge.index) == bits.min(data.targets.len() as u64 - 1),
            _ => true,
        }
    }

    /// The targets that a terminator may continue at, by index.
    pub(super) fn live_targets<'s>(&'s self, terms: &'s Terms<'_>, inst: Inst) -> impl Iterator<Item = Edge> + 's {
        let edges = (0..self.f.inst(inst).targets.len() as u32).map(move |index| Edge { inst, index });
        edges.filter(move |e| self.may_take(terms, *e))
    }

    /// The edges into a block that may be taken, from blocks that are reached.
    pub(super) fn live_into<'s>(&'s self, terms: &'s Terms<'_>, block: Block) -> impl Iterator<Item = Edge> + 's {
        let edges = self.f.predecessors(block).iter().copied();
        edges.filter(move |e| self.live().has(self.f.inst_block(e.inst)) && self.may_take(terms, *e))
    }

    fn read(&mut self, claimed: &VersionTerms, terms: &Terms<'_>, options: &Options) -> Result<(), Finding> {
        for &(value, term) in &claimed.values {
            let fits = self.f.has_value(value) && terms.ty(term) == Some(self.f.value_type(value));
            options.require(Check::ValueTerm, fits, Place::Value(value))?;
            if let Some(slot) = self.terms.get_mut(value.as_u32() as usize) {
                *slot = term;
            }
        }
        for &(block, term) in &claimed.memory {
            let fits = self.f.has_block(block) && terms.get(term).is_some_and(|t| t.ty.is_none());
            options.require(Check::MemoryTerm, fits, Place::Block(block))?;
            if let Some(slot) = self.memory.get_mut(block.as_u32() as usize) {
                *slot = [term; 2];
            }
        }
        Ok(())
    }

    fn find_live_edges(&mut self, terms: &Terms<'_>) {
        let blocks = self.full.blocks().iter();
        let all_live = blocks.map(|b| self.f.terminator(*b)).all(|inst| {
            let data = self.f.inst(inst);
            !matches!(data.opcode, Opcode::BrIf | Opcode::Switch)
                || data.args.first().is_none_or(|v| terms.constant(self.class(terms, *v)).is_none())
        });
        if !all_live {
            self.live = Some(Graph::new(self.f, |e| self.may_take(terms, e)));
        }
    }

    /// Finds which block binds which leaf: the first one met that has it. Where others have it too it is a
    /// copy, which the binding block has to dominate, and so is met before.
    fn bind_leaves(&mut self, terms: &Terms<'_>, options: &Options) -> Result<(), Finding> {
        let mut bound = std::mem::take(&mut self.binders);
        let mut bind = |id: TermId, block: Block| {
            if let Some(slot) = bound.get_mut(id as usize) {
                slot.get_or_insert(block);
            }
        };
        let entry = self.f.entry();
        for &block in self.live().blocks() {
            for (index, &param) in self.f.block_params(block).iter().enumerate() {
                let (id, place) = (self.term(param), Place::Value(param));
                let kind = terms.get(id).map(|t| &t.kind);
                if block == entry {
                    let fits = kind == Some(&TermKind::Argument(index as u32));
                    options.require(Check::ArgumentTerm, fits, place)?;
                    bind(id, block);
                } else if kind == Some(&TermKind::Param) {
                    bind(id, block);
                }
            }
            let id = self.memory.get(block.as_u32() as usize).map_or(NO_TERM, |m| m[0]);
            let kind = terms.get(id).map(|t| &t.kind);
            options.require(Check::TermMissing, kind.is_some(), Place::Block(block))?;
            let at_entry = kind == Some(&TermKind::MemoryAtEntry);
            options.require(Check::MemoryTerm, at_entry || block != entry, Place::Block(block))?;
            if block == entry || kind == Some(&TermKind::MemoryParam) {
                bind(id, block);
            }
        }
        self.binders = bound;
        Ok(())
    }

    /// The support of every class: of its first term, since the others are equal whatever the leaves stand for.
    fn find_support(&mut self, terms: &Terms<'_>) {
        let in_block = |inst: Inst| match self.f.has_inst(inst) && self.live().has(self.f.inst_block(inst)) {
            true => Support::Below(self.f.inst_block(inst)),
            false => Support::Unbound,
        };
        let mut support: Vec<Support> = Vec::with_capacity(terms.len());
        for id in 0..terms.len() as TermId {
            let found = match terms.get(id).map(|t| &t.kind) {
                Some(TermKind::Op { args, .. }) => args.iter().fold(Support::Anywhere, |deepest, arg| {
                    let other = support.get(*arg as usize).copied().unwrap_or(Support::Unbound);
                    self.deeper(deepest, other)
                }),
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
    fn check_results(
        &mut self,
        block: Block,
        terms: &Terms<'_>,
        anchors: &FixedBitSet,
        options: &Options,
    ) -> Result<(), Finding> {
        let mut memory = terms.class(self.memory[block.as_u32() as usize][0]);
        for inst in self.f.block_insts(block) {
            let data = self.f.inst(inst);
            let place = Place::Inst(inst);
            if data.opcode.is_effect_free() {
                let own = data.result().map(|v| self.term(v));
                options.require(Check::TermMissing, own.is_some_and(|t| terms.get(t).is_some()), place)?;
                self.check_operation(data, own.unwrap_or(NO_TERM), memory, terms, options, place)?;
                continue;
            }
            let is_anchor = anchors.contains(inst.as_u32() as usize) || data.opcode.is_terminator();
            options.require(Check::EffectAnchor, is_anchor, place)?;
            for (index, value) in data.results.iter().enumerate() {
                let kind = terms.get(self.term(*value)).map(|t| &t.kind);
                let fits = kind == Some(&TermKind::Result(inst, index as u32));
                options.require(Check::ValueTerm, fits, place)?;
            }
            if data.opcode.effects().has(Effects::WRITES) {
                memory = terms.after.get(&inst).copied().unwrap_or(NO_TERM);
                options.require(Check::MemoryTerm, memory != NO_TERM, place)?;
            }
        }
        self.memory[block.as_u32() as usize][1] = memory;
        Ok(())
    }

    fn check_operation(
        &self,
        data: &InstData,
        id: TermId,
        memory: TermId,
        terms: &Terms<'_>,
        options: &Options,
        place: Place,
    ) -> Result<(), Finding> {
        let Some(TermKind::Op { opcode, ty, imm, args }) = terms.get(id).map(|t| &t.kind) else {
            return options.require(Check::ValueTerm, false, place);
        };
        let reads = data.opcode.effects().has(Effects::READS);
        let values = if reads { args.split_last().map_or(&args[..], |(_, rest)| rest) } else { &args[..] };
        let same =
            |order: &mut dyn Iterator<Item = &Value>| order.map(|v| self.class(terms, *v)).eq(values.iter().copied());
        let operands =
            same(&mut data.args.iter()) || (data.opcode.is_commutative() && same(&mut data.args.iter().rev()));
        let fits = *opcode == data.opcode && *ty == data.ty && *imm == data.imm && operands;
        options.require(Check::ValueTerm, fits, place)?;
        options.require(Check::MemoryTerm, !reads || args.last() == Some(&memory), place)
    }

    /// Checks what the parameters of a block, and its memory, receive.
    fn check_block_entry(&self, block: Block, terms: &Terms<'_>, options: &Options) -> Result<(), Finding> {
        let params = self.f.block_params(block);
        let own_memory = terms.class(self.memory[block.as_u32() as usize][0]);
        let copies_memory = self.memory_leaf(block).is_none();
        for (index, &param) in params.iter().enumerate() {
            let class = self.class(terms, param);
            if !self.is_leaf_of(class, block) {
                let fits = self.is_strictly_above(class, block);
                options.require(Check::TermMissing, class != NO_TERM, Place::Value(param))?;
                options.require(Check::CopySupport, fits, Place::Value(param))?;
                self.check_received(block, index, |_| class, Check::CopyEdges, terms, options)?;
            } else if let Some(first) = params[..index].iter().position(|p| self.term(*p) == self.term(param)) {
                let of_first = |edge: Edge| self.class(terms, self.f.target(edge).args[first]);
                self.check_received(block, index, of_first, Check::LeafBinder, terms, options)?;
            }
        }
        if copies_memory {
            options.require(Check::CopySupport, self.is_strictly_above(own_memory, block), Place::Block(block))?;
            for edge in self.live_into(terms, block) {
                let given = self.memory_at_end(self.f.inst_block(edge.inst));
                options.require(Check::CopyEdges, given == own_memory, Place::Block(block))?;
            }
        }
        Ok(())
    }

    fn check_received(
        &self,
        block: Block,
        index: usize,
        wanted: impl Fn(Edge) -> TermId,
        check: Check,
        terms: &Terms<'_>,
        options: &Options,
    ) -> Result<(), Finding> {
        let place = Place::Value(self.f.block_params(block)[index]);
        for edge in self.live_into(terms, block) {
            let given = self.class(terms, self.f.target(edge).args[index]);
            options.require(check, given == wanted(edge) && given != NO_TERM, place)?;
        }
        Ok(())
    }

    pub(super) fn is_leaf_of(&self, class: TermId, block: Block) -> bool {
        self.binders.get(class as usize).copied().flatten() == Some(block)
    }

    /// Whether everything a class depends on was bound above a block.
    fn is_strictly_above(&self, class: TermId, block: Block) -> bool {
        match self.support(class) {
            Support::Anywhere => true,
            Support::Below(home) => home != block && self.live().dominates(home, block),
            Support::Unbound => false,
        }
    }

    /// Whether everything a class depends on is available before an instruction, as this version last bound it.
    pub(super) fn is_supported_at(&self, class: TermId, at: Inst) -> bool {
        match self.support(class) {
            Support::Anywhere => true,
            Support::Below(home) => self.live().dominates(home, self.f.inst_block(at)),
            Support::Unbound => false,
        }
    }
}
