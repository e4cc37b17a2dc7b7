//! Value numbering of one version: the class of every value, and of the memory at the start of
//! every block.
//!
//! *Optimistic* (Click, "Global Code Motion, Global Value Numbering", PLDI 1995; Wegman and Zadeck
//! for the edges): a parameter is taken to be a copy of what it receives until two edges that may
//! be taken bring different classes. A round walks the blocks once in reverse postorder, edges back
//! aside; then every edge is asked whether it brings what was assumed. A parameter it does not hold
//! for is *pinned*: a leaf from then on; and everything is numbered again. Assumptions only ever
//! grow weaker, and what differs under stronger ones differs under weaker ones, so nothing is
//! pinned that need not be. (Numbering on from where a round stands, instead of anew, would compare
//! new classes with outdated ones, and pin the parameters that hand a value through an inner loop.)

use super::leaves::{Dense, Leaves, Name};
use super::memory::Reader;
use super::merges::{Asker, MAX_MERGES};
use super::names::Names;
use super::place::{LiveEdges, Site, Sites, Taken};
use super::table::{Args, Table};
use fixedbitset::FixedBitSet;
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::place::Place;
use ir::{Block, Edge, Effects, Function, Inst, InstData, Opcode, Value};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use transition::certificate::{NO_TERM, TermId, TermKind};
use transition::{Correspondence, Side};

/// Blocks that join edges, one after the other, that the name of a leaf is looked for behind.
const MAX_JOINS: usize = 8;

/// What edges bring to one parameter.
type Received = SmallVec<[TermId; 4]>;

/// The numbering of one version.
#[derive(Debug)]
pub(super) struct Numbering<'a> {
    pub(super) f: &'a Function,
    other: &'a Function,
    common: &'a Correspondence<'a>,
    side: Side,
    cfg: Cfg,
    pub(super) dom: DomTree,
    /// The edges `cfg` has.
    edges: usize,
    /// Parameters, and blocks whose memory, are no copies.
    pinned: FixedBitSet,
    pinned_memory: FixedBitSet,
    /// Parameters of one block that were found to receive different things have different numbers.
    part: Dense<Value>,
    parts: u32,
    /// Parameters are leaves, each its own, and every edge may be taken: numbers everything in one
    /// round.
    is_plain: bool,
    /// The terms of values, and those of the memory at the start and the end of blocks.
    pub(super) terms: Dense<Value>,
    pub(super) at_start: Dense<Block>,
    pub(super) at_end: Dense<Block>,
    /// The terms of the memory after writes of one place, and the classes of that before every
    /// instruction.
    pub(super) writes: Dense<Inst>,
    before: Dense<Inst>,
    /// Lone writes, and those that are the same operation as one: what covers such a write leaves
    /// it out.
    hidden: FixedBitSet,
    pub(super) live: LiveEdges,
    pub(super) sites: Sites,
    names: Names,
}

impl<'a> Numbering<'a> {
    /// The numbering of one version, which knows nothing yet.
    pub(super) fn new(common: &'a Correspondence<'a>, side: Side) -> Numbering<'a> {
        let (f, other) = (common.versions[side], common.versions[side.other()]);
        let cfg = Cfg::new(f);
        let dom = DomTree::new(f, &cfg);
        let edges = cfg.rpo().iter().map(|b| f.successors(*b).len()).sum();
        let mut numbering = Numbering {
            f,
            other,
            common,
            side,
            cfg,
            dom,
            edges,
            pinned: FixedBitSet::new(),
            pinned_memory: FixedBitSet::new(),
            part: Dense::default(),
            parts: 0,
            is_plain: false,
            terms: Dense::default(),
            at_start: Dense::default(),
            at_end: Dense::default(),
            writes: Dense::default(),
            before: Dense::default(),
            live: LiveEdges::default(),
            sites: Sites::default(),
            hidden: lone_writes(f, &common.anchors),
            names: Names::default(),
        };
        numbering.unpin();
        numbering
    }

    /// Assumes again all that can be assumed.
    pub(super) fn unpin(&mut self) {
        self.pinned = FixedBitSet::with_capacity(self.f.value_bound());
        self.pinned_memory = FixedBitSet::with_capacity(self.f.block_bound());
        self.part.reset(self.f.value_bound());
        self.parts = 0;
        self.names.forgive();
    }

    /// Where edges were sent past a branch, other edges lead to a block in one version than in the
    /// other: what is no copy in one is taken for none in the other either, that leaves may agree.
    /// Whether that is news.
    pub(super) fn pin_alike(&mut self, other: &mut Numbering<'_>) -> bool {
        let mut changed = false;
        let blocks = self.common.rerouted.iter().copied();
        for block in blocks.filter(|b| self.f.has_block(*b) && other.f.has_block(*b)) {
            let index = block.as_u32() as usize;
            changed |= self.pinned_memory.contains(index) != other.pinned_memory.contains(index);
            if self.pinned_memory.contains(index) || other.pinned_memory.contains(index) {
                self.pinned_memory.insert(index);
                other.pinned_memory.insert(index);
            }
            for &param in self.f.block_params(block).iter().filter(|p| other.f.has_value(**p)) {
                let index = param.as_u32() as usize;
                changed |= self.pinned.contains(index) != other.pinned.contains(index);
                if self.pinned.contains(index) || other.pinned.contains(index) {
                    self.pinned.insert(index);
                    other.pinned.insert(index);
                }
            }
        }
        changed
    }

    /// Assumes nothing from now on.
    pub(super) fn make_plain(&mut self) {
        self.is_plain = true;
        self.cfg = Cfg::new(self.f);
        self.dom = DomTree::new(self.f, &self.cfg);
        self.pinned.insert_range(..);
        self.pinned_memory.insert_range(..);
    }

    /// The blocks in the order they are numbered; some may be dead.
    pub(super) fn blocks(&self) -> &[Block] {
        self.cfg.rpo()
    }

    /// The class of a value; [`NO_TERM`] in dead code, and of what this version does not have.
    pub(super) fn class(&self, table: &Table, value: Value) -> TermId {
        table.class(self.terms.get(value))
    }

    /// The site of a class.
    pub(super) fn site(&mut self, table: &Table, class: TermId) -> Site {
        self.sites.of(table, &self.dom, class)
    }

    /// Whether a parameter binds a leaf, and which.
    pub(super) fn bound_leaf(&self, param: Value) -> Option<TermId> {
        self.pinned
            .contains(param.as_u32() as usize)
            .then(|| self.terms.get(param))
            .filter(|leaf| *leaf != NO_TERM)
    }

    /// Whether the memory at the start of a block is a leaf, and which.
    pub(super) fn bound_memory(&self, block: Block) -> Option<TermId> {
        let pinned = self.pinned_memory.contains(block.as_u32() as usize);
        pinned.then(|| self.at_start.get(block)).filter(|leaf| *leaf != NO_TERM)
    }

    /// Narrows the graph to the edges that may be taken, if there are others: more dominates more
    /// then. Whether there were.
    pub(super) fn narrow(&mut self) -> bool {
        let count = self.live.count(self.f, &self.cfg);
        if self.is_plain || count == self.edges {
            return false;
        }
        self.cfg = Cfg::of_edges(self.f, |e| self.live.has(self.f, e));
        self.dom = DomTree::new(self.f, &self.cfg);
        self.edges = count;
        true
    }

    /// Numbers everything once. `false` when edges back lead to code that nothing else leads to:
    /// then another walk is needed.
    pub(super) fn walk(&mut self, table: &mut Table, leaves: &mut Leaves, is_first: bool) -> bool {
        if is_first {
            self.terms.reset(self.f.value_bound());
            self.at_start.reset(self.f.block_bound());
            self.at_end.reset(self.f.block_bound());
            self.live.clear(self.f);
        }
        self.writes.reset(self.f.inst_bound());
        self.before.reset(self.f.inst_bound());
        self.sites.clear();
        self.names.clear([self.f, self.other]);
        let mut is_complete = true;
        for n in 0..self.cfg.rpo().len() {
            let block = self.cfg.rpo()[n];
            let incoming = self.incoming(block, n);
            if n > 0 && incoming.is_empty() && !self.is_plain {
                continue;
            }
            self.enter(table, leaves, block, &incoming);
            let memory = self.run(table, leaves, block);
            self.at_end.set(block, memory);
            let taken = self.decide(table, block);
            if self.live.take(block, taken) {
                let back =
                    self.live.out_of(self.f, block).into_iter().map(|e| self.f.target(e).block);
                let mut back = back.filter(|to| self.cfg.rpo_index(*to).is_some_and(|t| t <= n));
                is_complete &= back.all(|to| self.live.has_block(to));
            }
        }
        is_complete
    }

    /// The edges that what a block receives is looked at on: those that come from above, if any
    /// does.
    fn incoming(&self, block: Block, n: usize) -> SmallVec<[Edge; 4]> {
        let above =
            |e: &Edge| self.cfg.rpo_index(self.f.inst_block(e.inst)).is_some_and(|from| from < n);
        let edges: SmallVec<[Edge; 4]> =
            self.live.leading_to(self.f, block).filter(above).collect();
        if edges.is_empty() { self.live.leading_to(self.f, block).collect() } else { edges }
    }

    /// Numbers the parameters of a block and the memory at its start.
    fn enter(&mut self, table: &mut Table, leaves: &mut Leaves, block: Block, incoming: &[Edge]) {
        let params = self.f.block_params(block);
        if block == self.f.entry() {
            for (index, &param) in params.iter().enumerate() {
                let ty = Some(self.f.value_type(param));
                self.bind(
                    table,
                    |t| t.named_leaf(TermKind::Argument(index as u32), ty),
                    block,
                    Some(param),
                );
            }
            let memory =
                self.bind(table, |t| t.named_leaf(TermKind::MemoryAtEntry, None), block, None);
            self.at_start.set(block, memory);
            return;
        }
        let mut groups: BTreeMap<(u32, Received), SmallVec<[Value; 2]>> = BTreeMap::new();
        for (index, &param) in params.iter().enumerate() {
            let received: Received =
                incoming.iter().map(|e| self.class(table, self.f.target(*e).args[index])).collect();
            if !self.pinned.contains(param.as_u32() as usize) {
                if let Some(class) = self.copied(table, block, &received) {
                    self.terms.set(param, class);
                    continue;
                }
                self.pinned.insert(param.as_u32() as usize);
            }
            let alone = self.is_plain || received.is_empty();
            let part = if alone { param.as_u32() } else { self.part.get(param) };
            groups.entry((part, received)).or_default().push(param);
        }
        for members in groups.values() {
            self.bind_group(table, leaves, block, members);
        }
        self.enter_memory(table, leaves, block, incoming);
    }

    /// What a block that receives this may take a parameter for.
    fn copied(&mut self, table: &Table, block: Block, received: &[TermId]) -> Option<TermId> {
        let (&class, rest) = received.split_first()?;
        if class == NO_TERM || rest.iter().any(|other| *other != class) {
            return None;
        }
        let fits = match self.site(table, class) {
            Site::Anywhere => true,
            Site::Below(home) => home != block && self.dom.dominates(home, block),
            Site::Nowhere => false,
        };
        fits.then_some(class)
    }

    /// Makes parameters of a block one leaf.
    fn bind_group(
        &mut self,
        table: &mut Table,
        leaves: &mut Leaves,
        block: Block,
        members: &[Value],
    ) {
        let in_both = members.iter().copied().find(|p| self.other.has_value(*p));
        let Some(leader) = in_both.or(members.first().copied()) else { return };
        let name = self.name(leader, members, leaves, block);
        let ty = Some(self.f.value_type(leader));
        let named = name.map(|name| leaves.get(table, self.side, name, ty));
        // By one name and another, the other version may have bound one leaf where this one binds
        // two.
        let leaf = named
            .filter(|leaf| !self.sites.is_bound(*leaf))
            .unwrap_or_else(|| table.leaf(TermKind::Param, ty));
        self.sites.bind(leaf, block);
        if let (Some(Name::Param(name)), true) = (name, named == Some(leaf)) {
            members.iter().for_each(|p| leaves.rename(self.side, name, *p));
        }
        members.iter().for_each(|p| self.terms.set(*p, leaf));
    }

    fn enter_memory(
        &mut self,
        table: &mut Table,
        leaves: &mut Leaves,
        block: Block,
        incoming: &[Edge],
    ) {
        if !self.pinned_memory.contains(block.as_u32() as usize) {
            let received: Received =
                incoming.iter().map(|e| self.at_end.get(self.f.inst_block(e.inst))).collect();
            if let Some(class) = self.copied(table, block, &received) {
                self.at_start.set(block, class);
                return;
            }
            self.pinned_memory.insert(block.as_u32() as usize);
        }
        let (name, side) = (self.memory_name(block), self.side);
        let leaf = self.bind(
            table,
            |t| match name {
                Some(name) => leaves.get(t, side, name, None),
                None => t.leaf(TermKind::MemoryParam, None),
            },
            block,
            None,
        );
        self.at_start.set(block, leaf);
    }

    /// Makes a leaf that a block binds, and gives it to a value.
    fn bind(
        &mut self,
        table: &mut Table,
        make: impl FnOnce(&mut Table) -> TermId,
        block: Block,
        value: Option<Value>,
    ) -> TermId {
        let leaf = make(table);
        self.sites.bind(leaf, block);
        if let Some(value) = value {
            self.terms.set(value, leaf);
        }
        leaf
    }

    /// What the leaf of parameters is named after. A parameter of a block that joins edges is
    /// handed on to another, which is then often a copy: where the other version has that one
    /// alone, it is the leaf. Or the other version has one that was replaced.
    fn name(
        &mut self,
        param: Value,
        members: &[Value],
        leaves: &Leaves,
        block: Block,
    ) -> Option<Name> {
        let mut name = param;
        for _ in 0..MAX_JOINS {
            let to = self.common.joined_params.get(&name).copied();
            let Some(to) = to.filter(|to| !self.pinned.contains(to.as_u32() as usize)) else {
                break;
            };
            name = to;
        }
        let replaced = members.iter().filter_map(|p| self.replaced(*p)).flatten().copied();
        let replaced =
            replaced.filter(|p| name == param && !self.other.has_value(param) && leaves.offers(*p));
        let own: SmallVec<[Name; 4]> = replaced.chain([param]).map(Name::Param).collect();
        self.names.take(block, (name != param).then_some(Name::Param(name)), &own)
    }

    /// The parameters of the version before that a parameter of the version after replaced. The
    /// version after is numbered when the leaves of the version before exist.
    fn replaced(&self, param: Value) -> Option<&'a SmallVec<[Value; 2]>> {
        (self.side == Side::After).then(|| self.common.replaced.get(&param)).flatten()
    }

    /// As [`Numbering::name`], for the memory at the start of a block.
    fn memory_name(&mut self, block: Block) -> Option<Name> {
        let mut name = block;
        for _ in 0..MAX_JOINS {
            let to = self.common.joined_blocks.get(&name).copied();
            let Some(to) = to.filter(|to| !self.pinned_memory.contains(to.as_u32() as usize))
            else {
                break;
            };
            name = to;
        }
        self.names.take(
            block,
            (name != block).then_some(Name::Memory(name)),
            &[Name::Memory(block)],
        )
    }

    /// Numbers the results of a block; returns the memory at its end.
    fn run(&mut self, table: &mut Table, leaves: &Leaves, block: Block) -> TermId {
        let mut memory = self.at_start.get(block);
        for inst in self.f.block_insts(block) {
            let data = self.f.inst(inst);
            self.before.set(inst, memory);
            if data.opcode.is_effect_free() {
                if let Some(result) = data.result() {
                    let term = self.operation(table, leaves, data, memory);
                    self.terms.set(result, term);
                }
                continue;
            }
            if Place::written(data.opcode, data.ty, &data.imm).is_some() {
                let mut args: Args = data.args.iter().map(|v| self.class(table, *v)).collect();
                args.push(memory);
                if self.hidden.contains(inst.as_u32() as usize) {
                    table.hide((data.opcode, data.ty, data.imm), &args);
                }
                let term = table.write(data.opcode, data.ty, data.imm, args);
                self.writes.set(inst, term);
                memory = table.class(term);
                continue;
            }
            for (index, &result) in data.results.iter().enumerate() {
                let ty = Some(self.f.value_type(result));
                let kind = TermKind::Result(inst, index as u32);
                self.bind(table, |t| t.named_leaf(kind, ty), block, Some(result));
            }
            if data.opcode.effects().has(Effects::WRITES) {
                memory = self.bind(
                    table,
                    |t| t.named_leaf(TermKind::MemoryAfter(inst), None),
                    block,
                    None,
                );
            }
        }
        memory
    }

    fn operation(
        &mut self,
        table: &mut Table,
        leaves: &Leaves,
        data: &InstData,
        memory: TermId,
    ) -> TermId {
        let args: Args = data.args.iter().map(|v| self.class(table, *v)).collect();
        if !data.opcode.effects().has(Effects::READS) {
            return table.op(data.opcode, data.ty, data.imm, args);
        }
        if args.contains(&NO_TERM) || memory == NO_TERM {
            return NO_TERM;
        }
        let read = Reader { opcode: data.opcode, ty: data.ty, imm: data.imm, args };
        let address = data.args.first().copied();
        self.read(table, &read, memory, &mut Asker { leaves, address, budget: MAX_MERGES })
    }

    /// Notes which writes are the same operation as a lone one of either version. Whether that is
    /// news: then everything has to be numbered again, since what covers such a write leaves it out
    /// wherever it stands (`tests/oir/passes/dse/equal_stores_on_other_ways.oir`). Cost: linear in
    /// the instructions.
    pub(super) fn note_hidden(&mut self, table: &Table) -> bool {
        let mut changed = false;
        for (inst, term) in self.writes.iter() {
            if table.is_hidden(term) && !self.hidden.contains(inst.as_u32() as usize) {
                self.hidden.insert(inst.as_u32() as usize);
                changed = true;
            }
        }
        changed
    }

    /// The block that binds a leaf that stands for memory.
    pub(super) fn memory_home(&mut self, table: &Table, leaf: TermId) -> Option<Block> {
        let is_bound_by_block =
            matches!(table.terms.get(leaf as usize)?.kind, TermKind::MemoryParam);
        match self.site(table, leaf) {
            Site::Below(block) if is_bound_by_block => Some(block),
            _ => None,
        }
    }

    /// The class of the memory before an instruction.
    pub(super) fn memory_before(&self, inst: Inst) -> TermId {
        self.before.get(inst)
    }

    /// Whether nothing is assumed any more.
    pub(super) fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// The classes of the memories that edges from above bring to a block.
    pub(super) fn brought_from_above(&self, block: Block) -> SmallVec<[TermId; 4]> {
        let Some(n) = self.cfg.rpo_index(block) else { return SmallVec::new() };
        let memory = |e: Edge| self.at_end.get(self.f.inst_block(e.inst));
        self.incoming(block, n).into_iter().map(memory).collect()
    }

    /// The classes of the memories that edges bring to a block.
    pub(super) fn brought(&self, block: Block) -> SmallVec<[TermId; 4]> {
        self.live
            .leading_to(self.f, block)
            .map(|e| self.at_end.get(self.f.inst_block(e.inst)))
            .collect()
    }

    /// Where a block leads to.
    fn decide(&self, table: &Table, block: Block) -> Taken {
        let data = self.f.inst(self.f.terminator(block));
        let known = data.args.first().and_then(|v| table.constant(self.class(table, *v)));
        match (data.opcode, known) {
            (Opcode::BrIf, Some(bits)) if !self.is_plain => Taken::One(u32::from(bits == 0)),
            (Opcode::Switch, Some(bits)) if !self.is_plain => {
                Taken::One(bits.min((data.targets.len() as u64).saturating_sub(1)) as u32)
            }
            _ => Taken::All,
        }
    }

    /// Pins what some edge does not bring what was assumed to. Whether another round is needed.
    pub(super) fn revise(&mut self, table: &Table) -> bool {
        let mut changed = self.names.clash();
        for n in 1..self.cfg.rpo().len() {
            let block = self.cfg.rpo()[n];
            if !self.live.has_block(block) || self.is_plain {
                continue;
            }
            let edges: SmallVec<[Edge; 4]> = self.live.leading_to(self.f, block).collect();
            let memory = self.at_start.get(block);
            if !self.pinned_memory.contains(block.as_u32() as usize)
                && edges.iter().any(|e| self.at_end.get(self.f.inst_block(e.inst)) != memory)
            {
                self.pinned_memory.insert(block.as_u32() as usize);
                changed = true;
            }
            changed |= self.revise_params(table, block, &edges);
        }
        changed
    }

    fn revise_params(&mut self, table: &Table, block: Block, edges: &[Edge]) -> bool {
        let mut changed = false;
        let params = self.f.block_params(block);
        let mut groups: BTreeMap<TermId, SmallVec<[usize; 2]>> = BTreeMap::new();
        for (index, &param) in params.iter().enumerate() {
            let own = self.terms.get(param);
            if self.pinned.contains(param.as_u32() as usize) {
                groups.entry(own).or_default().push(index);
            } else if edges.iter().any(|e| self.class(table, self.f.target(*e).args[index]) != own)
            {
                self.pinned.insert(param.as_u32() as usize);
                changed = true;
            }
        }
        for members in groups.values().filter(|m| m.len() > 1) {
            let mut seen: BTreeMap<Received, u32> = BTreeMap::new();
            for &index in members {
                let received: Received = edges
                    .iter()
                    .map(|e| self.class(table, self.f.target(*e).args[index]))
                    .collect();
                let old = self.part.get(params[index]);
                let new = if seen.is_empty() { old } else { self.parts };
                let part = *seen.entry(received).or_insert(new);
                self.parts += u32::from(part == self.parts);
                changed |= old != part;
                self.part.set(params[index], part);
            }
        }
        changed
    }
}

/// The writes of one place that are no anchors.
fn lone_writes(f: &Function, anchors: &FixedBitSet) -> FixedBitSet {
    let mut lone = FixedBitSet::with_capacity(f.inst_bound());
    for inst in f.all_insts().filter(|i| !anchors.contains(i.as_u32() as usize)) {
        let data = f.inst(inst);
        lone.set(inst.as_u32() as usize, Place::written(data.opcode, data.ty, &data.imm).is_some());
    }
    lone
}
