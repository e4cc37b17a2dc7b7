//! Value numbering of one version: the class of every value, and of the memory at the start of
//! every block.
//!
//! The numbering is *optimistic* (Click, "Global Code Motion, Global Value Numbering", PLDI 1995;
//! for edges, Wegman and Zadeck). It takes a parameter for a copy of the value it receives, until
//! two live edges bring different classes. Example: `head(%k)` receives %a from outside and %k over
//! the back edge. The walk takes %k for a copy of %a, and so the back edge brings the class of %a
//! too. One round:
//!
//! 1. a walk over the blocks in reverse postorder numbers each block from the edges that come from
//!    above;
//! 2. [`Numbering::revise`] checks that every live edge, back edges included, brings the assumed
//!    class. It *pins* each parameter for which an edge does not: a pinned parameter is a leaf from
//!    then on;
//! 3. if a parameter was pinned, everything is numbered anew.
//!
//! Assumptions only grow weaker, and classes that differ under strong assumptions differ under weak
//! ones. So nothing is pinned that need not be, and the rounds end. Numbering on instead of anew
//! would compare new classes with outdated ones. It would pin parameters that only hand a value
//! through an inner loop.

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

/// Blocks in a row, each joining edges, behind which the name of a leaf is looked for.
const MAX_JOINS: usize = 8;

/// The classes that edges bring to one parameter.
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
    /// The number of edges of `cfg`.
    edges: usize,
    /// Parameters that are not copies, and blocks whose memory is not one.
    pinned: FixedBitSet,
    pinned_memory: FixedBitSet,
    /// Parameters of one block with different numbers have been found to receive different classes.
    part: Dense<Value>,
    parts: u32,
    /// Whether every parameter is a leaf of its own and every edge is live. One round then numbers
    /// everything.
    is_plain: bool,
    /// The terms of values, and the classes of the memory at the start and the end of blocks.
    pub(super) terms: Dense<Value>,
    pub(super) at_start: Dense<Block>,
    pub(super) at_end: Dense<Block>,
    /// The terms of the memory after writes of one place, and the classes of the memory before
    /// every instruction.
    pub(super) writes: Dense<Inst>,
    before: Dense<Inst>,
    /// Lone writes, and writes that are the same operation as one. A write that covers one of them
    /// leaves it out of its class.
    hidden: FixedBitSet,
    pub(super) live: LiveEdges,
    pub(super) sites: Sites,
    names: Names,
}

impl<'a> Numbering<'a> {
    /// A numbering of the version before the log (side 0) or the one after it (side 1), without any
    /// results yet.
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

    /// Returns to the strongest assumptions.
    pub(super) fn unpin(&mut self) {
        self.pinned = FixedBitSet::with_capacity(self.f.value_bound());
        self.pinned_memory = FixedBitSet::with_capacity(self.f.block_bound());
        self.part.reset(self.f.value_bound());
        self.parts = 0;
        self.names.forgive();
    }

    /// Pins in both versions the parameters and memories of blocks around a redirected edge that
    /// either version has pinned. A redirected edge leads to another block in one version than in
    /// the other, so that a parameter may be a copy in one alone; the leaf of the other would then
    /// have no partner. Returns whether something was pinned.
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

    /// The blocks in the order of numbering. Some may be dead.
    pub(super) fn blocks(&self) -> &[Block] {
        self.cfg.rpo()
    }

    /// The class of a value. [`NO_TERM`] in dead code, and for values that this version lacks.
    pub(super) fn class(&self, table: &Table, value: Value) -> TermId {
        table.class(self.terms.get(value))
    }

    /// The site of a class.
    pub(super) fn site(&mut self, table: &Table, class: TermId) -> Site {
        self.sites.of(table, &self.dom, class)
    }

    /// The leaf that a parameter binds, if it binds one.
    pub(super) fn bound_leaf(&self, param: Value) -> Option<TermId> {
        self.pinned
            .contains(param.as_u32() as usize)
            .then(|| self.terms.get(param))
            .filter(|leaf| *leaf != NO_TERM)
    }

    /// The leaf that a block binds for the memory at its start, if it binds one.
    pub(super) fn bound_memory(&self, block: Block) -> Option<TermId> {
        let pinned = self.pinned_memory.contains(block.as_u32() as usize);
        pinned.then(|| self.at_start.get(block)).filter(|leaf| *leaf != NO_TERM)
    }

    /// Narrows the graph to the live edges, if it has others; with fewer edges, more blocks
    /// dominate. Returns whether it had others.
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

    /// Numbers everything once. `false` when a back edge leads to code that no edge from above
    /// leads to. Another walk is needed then.
    pub(super) fn walk(&mut self, table: &mut Table, leaves: &mut Leaves, is_first: bool) -> bool {
        // A second walk keeps the classes of the first: they are the ones that the back edge
        // brings.
        if is_first {
            self.terms.reset(self.f.value_bound());
            self.at_start.reset(self.f.block_bound());
            self.at_end.reset(self.f.block_bound());
            self.live.clear(self.f);
        }
        // Each walk binds leaves and makes writes anew.
        self.writes.reset(self.f.inst_bound());
        self.before.reset(self.f.inst_bound());
        self.sites.clear();
        self.names.clear([self.f, self.other]);
        let mut is_complete = true;
        for n in 0..self.cfg.rpo().len() {
            let block = self.cfg.rpo()[n];
            let incoming = self.incoming(block, n);
            // No live edge reaches the block so far, so its values stay without terms, and do not
            // stop others from being copies.
            if n > 0 && incoming.is_empty() && !self.is_plain {
                continue;
            }
            self.enter(table, leaves, block, &incoming);
            let memory = self.run(table, leaves, block);
            self.at_end.set(block, memory);
            let taken = self.decide(table, block);
            // A back edge that becomes live leads to a block that this walk has gone past. If no
            // edge from above has made that block live, it has no terms yet.
            if self.live.take(block, taken) {
                let back =
                    self.live.out_of(self.f, block).into_iter().map(|e| self.f.target(e).block);
                let mut back = back.filter(|to| self.cfg.rpo_index(*to).is_some_and(|t| t <= n));
                is_complete &= back.all(|to| self.live.has_block(to));
            }
        }
        is_complete
    }

    /// The edges whose classes a block's parameters are numbered from: the live edges from above,
    /// or all live edges if there are none.
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
        // Pinned parameters that receive the same classes become one leaf, as two equal loop
        // counters do. Grouping by `part` too keeps those apart that a back edge was found to tell
        // apart.
        let mut groups: BTreeMap<(u32, Received), SmallVec<[Value; 2]>> = BTreeMap::new();
        for (index, &param) in params.iter().enumerate() {
            let received: Received =
                incoming.iter().map(|e| self.class(table, self.f.target(*e).args[index])).collect();
            // A failed copy is pinned at once: from then on it is a leaf even if later rounds bring
            // equal classes, so that assumptions only grow weaker.
            if !self.pinned.contains(param.as_u32() as usize) {
                if let Some(class) = self.copied(table, block, &received) {
                    self.terms.set(param, class);
                    continue;
                }
                self.pinned.insert(param.as_u32() as usize);
            }
            // Without assumptions each parameter is a leaf of its own, and without live edges there
            // is nothing to group by.
            let alone = self.is_plain || received.is_empty();
            let part = if alone { param.as_u32() } else { self.part.get(param) };
            groups.entry((part, received)).or_default().push(param);
        }
        for members in groups.values() {
            self.bind_group(table, leaves, block, members);
        }
        self.enter_memory(table, leaves, block, incoming);
    }

    /// The class of which a parameter may be taken for a copy: all these edges bring it, and its
    /// leaves are bound strictly above the block. A leaf of the block itself would be the last
    /// iteration's.
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

    /// Makes one leaf of several parameters of a block.
    fn bind_group(
        &mut self,
        table: &mut Table,
        leaves: &mut Leaves,
        block: Block,
        members: &[Value],
    ) {
        // A parameter that the other version has too gives the leaf its name: by that name the
        // other version finds it.
        let in_both = members.iter().copied().find(|p| self.other.has_value(*p));
        let Some(leader) = in_both.or(members.first().copied()) else { return };
        let name = self.name(leader, members, leaves, block);
        let ty = Some(self.f.value_type(leader));
        let named = name.map(|name| leaves.get(table, self.side, name, ty));
        // By different names, the other version may have bound one leaf where this version binds
        // two. The second then needs a leaf of its own.
        let leaf = named
            .filter(|leaf| !self.sites.is_bound(*leaf))
            .unwrap_or_else(|| table.leaf(TermKind::Param, ty));
        self.sites.bind(leaf, block);
        // The other version may know the leaf by any of these parameters.
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

    /// Makes a leaf that a block binds, and gives it to a value, if there is one.
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

    /// The name of the leaf of some parameters of a block. A parameter of a block that joins edges
    /// hands its contents on to another parameter, which is then often a copy. If the other version
    /// has only that one, its name is the name of the leaf. Or the other version has a parameter
    /// that one of these replaced.
    fn name(
        &mut self,
        param: Value,
        members: &[Value],
        leaves: &Leaves,
        block: Block,
    ) -> Option<Name> {
        let mut name = param;
        // Follows hand-overs to the last parameter that is a copy. A pinned one binds a leaf
        // itself, under its own name.
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

    /// The parameters of the version before that a parameter of the version after replaced. Only the
    /// version after looks names up: it is numbered second, when the leaves of the version before
    /// exist.
    fn replaced(&self, param: Value) -> Option<&'a SmallVec<[Value; 2]>> {
        (self.side == Side::After).then(|| self.common.replaced.get(&param)).flatten()
    }

    /// The name of the leaf for the memory at the start of a block, found as by
    /// [`Numbering::name`].
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

    /// Numbers the results of a block. Returns the class of the memory at its end.
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
                // Before the term is made, which records itself as hidden only then; the next write
                // may cover it.
                if self.hidden.contains(inst.as_u32() as usize) {
                    table.hide((data.opcode, data.ty, data.imm), &args);
                }
                let term = table.write(data.opcode, data.ty, data.imm, args);
                self.writes.set(inst, term);
                memory = table.class(term);
                continue;
            }
            // An anchor with an effect: both versions execute it with equal operands, so its
            // results are the same leaves in both.
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

    /// Records the writes that are the same operation as a lone write of either version. Returns
    /// whether there are new ones. Then everything is numbered again: a covering write leaves such
    /// a write out wherever it stands (`tests/oir/passes/dse/equal_stores_on_other_ways.oir`).
    /// Cost: linear in the instructions.
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

    /// The block that binds a leaf for memory, if a block does.
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

    /// Whether the numbering assumes nothing any more.
    pub(super) fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// The classes of the memories that a block's parameters are numbered from
    /// ([`Numbering::incoming`]).
    pub(super) fn brought_from_above(&self, block: Block) -> SmallVec<[TermId; 4]> {
        let Some(n) = self.cfg.rpo_index(block) else { return SmallVec::new() };
        let memory = |e: Edge| self.at_end.get(self.f.inst_block(e.inst));
        self.incoming(block, n).into_iter().map(memory).collect()
    }

    /// The classes of the memories that live edges bring to a block.
    pub(super) fn brought(&self, block: Block) -> SmallVec<[TermId; 4]> {
        self.live
            .leading_to(self.f, block)
            .map(|e| self.at_end.get(self.f.inst_block(e.inst)))
            .collect()
    }

    /// The edges that the terminator of a block may take, by the class of its condition.
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

    /// Pins each parameter and memory to which some live edge does not bring the assumed class.
    /// Returns whether another round is needed.
    pub(super) fn revise(&mut self, table: &Table) -> bool {
        let mut changed = self.names.clash();
        // All blocks before the next numbering: classes are compared within one round only.
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
        // Parameters of one leaf must receive equal classes on every edge, back edges included. The
        // first group keeps its number and each other group gets a new one, so that parts only ever
        // split.
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

/// The writes of one place that are not anchors.
fn lone_writes(f: &Function, anchors: &FixedBitSet) -> FixedBitSet {
    let mut lone = FixedBitSet::with_capacity(f.inst_bound());
    for inst in f.all_insts().filter(|i| !anchors.contains(i.as_u32() as usize)) {
        let data = f.inst(inst);
        lone.set(inst.as_u32() as usize, Place::written(data.opcode, data.ty, &data.imm).is_some());
    }
    lone
}
