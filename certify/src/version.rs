//! The data of one version, by phase: its code, the assumptions about it, and the findings of one
//! round of numbering.

use super::leaves::LeafName;
use super::names::NameOwners;
use super::terms::{CertificateTerms, ReasonedTerms};
use fixedbitset::FixedBitSet;
use ir::decided::Decided;
use ir::dom::DomTree;
use ir::place::Place;
use ir::{Block, Edge, Function, Inst, Opcode, Value};
use number::{CopyAssumptions, Dense, FlowGraph, Home, LiveEdges, LiveTargets, ValueClasses};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use transition::certificate::{NO_TERM, RangeClaim, TermId, VersionTerms};
use transition::{Correspondence, Side};

/// The code of a version, which stays while the version is numbered.
#[derive(Debug)]
pub(super) struct VersionCode<'a> {
    /// The function, with the edges that count.
    pub(super) graph: FlowGraph<'a>,
    /// The other version.
    pub(super) other: &'a Function,
    pub(super) common: &'a Correspondence<'a>,
    pub(super) side: Side,
    /// The number of edges of `graph`.
    edges: usize,
    /// By block: the only target of a branch that the log folded and that no constant decides. Each
    /// has to follow from the ranges of integers in the end (`ranges`).
    pub(super) folded: BTreeMap<Block, u32>,
}

impl<'a> VersionCode<'a> {
    fn new(common: &'a Correspondence<'a>, side: Side) -> VersionCode<'a> {
        let (f, other) = (common.versions[side], common.versions[side.other()]);
        // Numbering finds the edges that constants exclude too. But it starts over then, and half
        // of its rounds are spent on edges that no run takes.
        let folded = folded_branches(common, side);
        let live = decided_edges(f, &common.decided[side], other, &folded);
        let graph = FlowGraph::narrowed(f, &live);
        let edges = live.count(f, &graph.cfg);
        VersionCode { graph, other, common, side, edges, folded }
    }

    /// Returns all edges of branches whose folding nothing justifies.
    pub(super) fn unfold(&mut self, blocks: &[Block]) {
        blocks.iter().for_each(|block| _ = self.folded.remove(block));
        let f = self.graph.f;
        let live = decided_edges(f, &self.common.decided[self.side], self.other, &self.folded);
        self.graph = FlowGraph::narrowed(f, &live);
        self.edges = live.count(f, &self.graph.cfg);
    }

    /// Whether a parameter is always the same constant.
    fn is_constant(&self, param: Value) -> bool {
        self.common.decided[self.side].is_constant(param)
    }

    /// Narrows the graph to the live edges, if it has others; with fewer edges, more blocks
    /// dominate. Returns whether the graph had other edges.
    fn narrow(&mut self, live: &LiveEdges) -> bool {
        let FlowGraph { f, ref cfg, .. } = self.graph;
        let count = live.count(f, cfg);
        let is_narrower = count != self.edges;
        if is_narrower {
            self.graph = FlowGraph::narrowed(f, live);
            self.edges = count;
        }
        is_narrower
    }
}

/// The assumptions about a version. They last over rounds and only grow weaker, until the graph is
/// narrowed.
#[derive(Debug)]
pub(super) struct Assumptions {
    /// Which parameters are copies.
    pub(super) copies: CopyAssumptions,
    /// The blocks at whose start memory is not a copy.
    pub(super) pinned_memory: FixedBitSet,
    /// The parameters, and the blocks whose memory, copy a class with leaves that nothing binds.
    pub(super) doubted: Vec<(Block, Option<Value>)>,
    /// Lone writes, and writes that are the same operation as one. A write that covers a hidden
    /// write leaves it out of its class.
    pub(super) hidden: FixedBitSet,
    /// Names that a block must not take, since a block behind it is handed the same name.
    pub(super) yielded: BTreeSet<(LeafName, Block)>,
    /// The blocks that have given up: no read is traced through their start.
    pub(super) opaque: FixedBitSet,
}

impl Assumptions {
    /// The strongest assumptions about a version.
    pub(super) fn new(f: &Function, common: &Correspondence<'_>) -> Assumptions {
        Assumptions {
            copies: CopyAssumptions::new(f),
            pinned_memory: FixedBitSet::with_capacity(f.block_bound()),
            doubted: Vec::new(),
            hidden: lone_writes(f, common),
            yielded: BTreeSet::new(),
            opaque: FixedBitSet::with_capacity(f.block_bound()),
        }
    }

    /// Returns to the strongest assumptions. Hidden writes stay: they do not depend on the graph.
    pub(super) fn forgive(&mut self, f: &Function) {
        self.copies.reset(f);
        self.pinned_memory = FixedBitSet::with_capacity(f.block_bound());
        self.yielded.clear();
        self.opaque.clear();
    }

    /// Gives up all assumptions about the start of a block, for all later rounds: its parameters
    /// are leaves of their own, and no read is traced through. A parameter that always holds the
    /// same constant stays a copy of this constant: the version's dead edges may rest on the
    /// parameter.
    pub(super) fn give_up(&mut self, code: &VersionCode<'_>, block: Block) {
        let params = code.graph.f.block_params(block).iter().copied();
        self.copies.give_up(params.filter(|param| !code.is_constant(*param)));
        self.pinned_memory.insert(block.as_u32() as usize);
        self.opaque.insert(block.as_u32() as usize);
    }

    /// The number of assumptions that have failed.
    pub(super) fn failed(&self) -> usize {
        let sets = [&self.pinned_memory, &self.hidden, &self.opaque];
        self.copies.count()
            + self.yielded.len()
            + sets.map(|set| set.count_ones(..)).iter().sum::<usize>()
    }

    /// Pins parameters and memories that copy a class of unbound leaves, unless an assumed read was
    /// refuted in this round. Returns whether something was pinned.
    ///
    /// A version that takes over a read which the other version assumed gets a class of the other's
    /// leaves, which it may not bind. If the read is refuted, the class comes from it, and the next
    /// round has another (`a_read_assumed_by_the_other_version_pins_nothing`).
    pub(super) fn pin_doubted(&mut self, is_refuted: bool) -> bool {
        let doubted = std::mem::take(&mut self.doubted);
        for (block, param) in doubted.iter().filter(|_| !is_refuted) {
            match param {
                Some(param) => self.copies.pin(*param),
                None => self.pinned_memory.insert(block.as_u32() as usize),
            }
        }
        !is_refuted && !doubted.is_empty()
    }

    /// Pins each parameter and the memory of a block to which some live edge does not bring the
    /// assumed class. Returns whether there are any.
    pub(super) fn revise(
        &mut self,
        version: &NumberedVersion<'_>,
        table: &ReasonedTerms,
        block: Block,
    ) -> bool {
        let (f, found) = (version.f(), &version.found);
        let edges: SmallVec<[Edge; 4]> = version.live().leading_to(f, block).collect();
        // Memory is like one more parameter of the block, but never shares a leaf with another.
        let memory = found.at_start.get(block);
        let brings_other = |e: &Edge| found.at_end.get(f.inst_block(e.inst)) != memory;
        let fails =
            !self.pinned_memory.contains(block.as_u32() as usize) && edges.iter().any(brings_other);
        if fails {
            self.pinned_memory.insert(block.as_u32() as usize);
        }
        self.copies.revise(f, block, &edges, |v| found.values.class(table, v)) || fails
    }

    /// Records the writes that are the same operation as a lone write of either version. Returns
    /// whether there are new writes. Then everything is numbered again: a covering write leaves
    /// such a write out wherever it stands (`tests/oir/passes/dse/equal_stores_on_other_ways.oir`).
    /// Cost: linear in the instructions.
    pub(super) fn note_hidden(&mut self, writes: &Dense<Inst>, terms: &CertificateTerms) -> bool {
        let mut changed = false;
        for (inst, term) in writes.iter() {
            if terms.is_hidden(term) && !self.hidden.contains(inst.as_u32() as usize) {
                self.hidden.insert(inst.as_u32() as usize);
                changed = true;
            }
        }
        changed
    }
}

/// The findings of one round in a version.
#[derive(Debug, Default)]
pub(super) struct RoundFindings {
    /// The terms of values, the live edges, and the blocks that bind leaves.
    pub(super) values: ValueClasses,
    /// The classes of the memory at the start and the end of blocks.
    pub(super) at_start: Dense<Block>,
    pub(super) at_end: Dense<Block>,
    /// The terms of the memory after writes of one place, and the classes of the memory before
    /// every instruction.
    pub(super) writes: Dense<Inst>,
    pub(super) before: Dense<Inst>,
    /// The parameters that bind leaves, and the blocks that bind a leaf for the memory at their
    /// start.
    pub(super) binding: FixedBitSet,
    pub(super) binding_memory: FixedBitSet,
    /// The names that blocks have taken for their leaves.
    pub(super) names: NameOwners,
}

impl RoundFindings {
    /// The leaf that a parameter binds, if it binds one.
    pub(super) fn bound_leaf(&self, param: Value) -> Option<TermId> {
        let is_binding = self.binding.contains(param.as_u32() as usize);
        self.values.terms.find(param).filter(|_| is_binding)
    }

    /// The leaf that a block binds for the memory at its start, if it binds one.
    pub(super) fn bound_memory(&self, block: Block) -> Option<TermId> {
        let is_binding = self.binding_memory.contains(block.as_u32() as usize);
        self.at_start.find(block).filter(|_| is_binding)
    }

    /// The claims of a certificate about the version.
    pub(super) fn claims(&self, ranges: Vec<RangeClaim>) -> VersionTerms {
        VersionTerms {
            values: self.values.terms.iter().collect(),
            memory: self.at_start.iter().collect(),
            writes: self.writes.iter().collect(),
            ranges,
        }
    }
}

/// A version with the findings of a round.
#[derive(Debug)]
pub(super) struct NumberedVersion<'a> {
    pub(super) code: VersionCode<'a>,
    pub(super) found: RoundFindings,
}

impl<'a> NumberedVersion<'a> {
    /// The version on one side of a pair, without any findings yet.
    pub(super) fn new(common: &'a Correspondence<'a>, side: Side) -> NumberedVersion<'a> {
        NumberedVersion { code: VersionCode::new(common, side), found: RoundFindings::default() }
    }

    /// The function.
    pub(super) fn f(&self) -> &'a Function {
        self.code.graph.f
    }

    /// Dominance along the edges that count.
    pub(super) fn dom(&self) -> &DomTree {
        &self.code.graph.dom
    }

    /// The blocks in the order of numbering. Some may be dead.
    pub(super) fn blocks(&self) -> &[Block] {
        self.code.graph.order()
    }

    /// The live edges.
    pub(super) fn live(&self) -> &LiveEdges {
        &self.found.values.live
    }

    /// The class of a value. [`NO_TERM`] in dead code, and for values that this version lacks.
    pub(super) fn class(&self, table: &ReasonedTerms, value: Value) -> TermId {
        self.found.values.class(table, value)
    }

    /// The home of a class.
    pub(super) fn home(&mut self, table: &ReasonedTerms, class: TermId) -> Home {
        self.found.values.homes.of(table, &self.code.graph.dom, class)
    }

    /// Narrows the graph to the live edges. Returns whether the graph had other edges.
    pub(super) fn narrow(&mut self) -> bool {
        self.code.narrow(&self.found.values.live)
    }

    /// Forgets the findings of the last round.
    pub(super) fn begin_round(&mut self) {
        let (f, other) = (self.f(), self.code.other);
        self.found.values.reset(f);
        self.found.at_start.reset(f.block_bound());
        self.found.at_end.reset(f.block_bound());
        self.found.binding = FixedBitSet::with_capacity(f.value_bound());
        self.found.binding_memory = FixedBitSet::with_capacity(f.block_bound());
        self.found.writes.reset(f.inst_bound());
        self.found.before.reset(f.inst_bound());
        self.found.names.clear([f, other]);
    }

    /// Forgets the findings about blocks.
    pub(super) fn forget(&mut self, places: Range<usize>) {
        let NumberedVersion { code: VersionCode { graph, .. }, found } = self;
        for &block in &graph.order()[places] {
            found.values.forget(graph.f, block);
            found.at_start.unset(block);
            found.at_end.unset(block);
            found.binding_memory.set(block.as_u32() as usize, false);
            for param in graph.f.block_params(block) {
                found.binding.set(param.as_u32() as usize, false);
            }
            for inst in graph.f.block_insts(block) {
                found.writes.unset(inst);
                found.before.unset(inst);
            }
        }
    }

    /// The classes of the memories that edges bring.
    pub(super) fn brought(&self, edges: impl Iterator<Item = Edge>) -> SmallVec<[TermId; 4]> {
        edges.map(|e| self.found.at_end.get(self.f().inst_block(e.inst))).collect()
    }

    /// The class of the memory before an instruction; [`NO_TERM`] in dead code.
    pub(super) fn memory_before(&self, inst: Inst) -> TermId {
        self.found.before.find(inst).unwrap_or(NO_TERM)
    }
}

/// The edges that neither constants nor assumptions of both versions exclude.
fn decided_edges(
    f: &Function,
    decided: &Decided,
    other: &Function,
    folded: &BTreeMap<Block, u32>,
) -> LiveEdges {
    let mut live = LiveEdges::default();
    live.clear(f);
    for &block in decided.cfg().rpo() {
        let inst = f.terminator(block);
        let mut taken = (0..f.successors(block).len() as u32)
            .filter(|index| decided.may_take(Edge { inst, index: *index }));
        let targets = match (taken.next(), taken.next()) {
            (Some(only), None) => LiveTargets::One(only),
            _ if folded.contains_key(&block) => LiveTargets::One(folded[&block]),
            _ => LiveTargets::decided(f, block, assumed_by_both(f, other, inst)),
        };
        live.take(block, targets);
    }
    live
}

/// By block: the target of each branch of the version before that the log folded and that constants
/// do not decide. The log leaves one target, unless both targets are one block.
fn folded_branches(common: &Correspondence<'_>, side: Side) -> BTreeMap<Block, u32> {
    let (f, decided) = (common.versions[side], &common.decided[side]);
    let folded =
        common.folded.iter().filter(|(inst, _)| side == Side::Before && f.has_inst(**inst));
    let open = folded.filter_map(|(inst, targets)| match targets[..] {
        [only] if f.inst(*inst).opcode == Opcode::BrIf => Some((*inst, only)),
        _ => None,
    });
    let open = open.filter(|(inst, only)| decided.may_take(Edge { inst: *inst, index: 1 - only }));
    open.map(|(inst, only)| (f.inst_block(inst), only)).collect()
}

/// The bits of the condition of a branch if it is the result of an assumption that both versions
/// make. Such a result has the class of a constant (`VersionWalk::assumed_term`,
/// `an_edge_that_a_common_assumption_excludes_takes_no_round`).
fn assumed_by_both(f: &Function, other: &Function, branch: Inst) -> Option<u64> {
    let assumption = f.defining_inst(*f.inst(branch).args.first()?)?;
    let (_, bits) = f.inst(assumption).assumed().filter(|_| other.has_inst(assumption))?;
    Some(bits)
}

/// The writes of one place that are neither anchors nor paired. Classes of memory keep a paired
/// write when a later write covers it. Without this, a load between the two and one behind them
/// would find a part of some store in different memories
/// (`tests/oir/osr/part_of_a_store_before_a_paired_write.oir`).
fn lone_writes(f: &Function, common: &Correspondence<'_>) -> FixedBitSet {
    let mut lone = FixedBitSet::with_capacity(f.inst_bound());
    let bounds =
        |i: &Inst| [&common.anchors, &common.paired].map(|set| set.contains(i.as_u32() as usize));
    for inst in f.all_insts().filter(|i| bounds(i) == [false; 2]) {
        let data = f.inst(inst);
        lone.set(inst.as_u32() as usize, Place::written(data.opcode, data.ty, &data.imm).is_some());
    }
    lone
}
