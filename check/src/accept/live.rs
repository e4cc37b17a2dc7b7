//! The values that an entry has to provide: the checker's own liveness.
//!
//! A value is *needed* if an effect, a trap, a branch or a result depends on it. A needed value is
//! live where a use of it may still come. If entries stand in many blocks, blocks are marked for
//! each value, from its uses up to its definition (Boissinot et al., "Computing Liveness Sets for
//! SSA-Form Programs", 2011, section 4.2). If they stand in a few, each of these is the start of
//! one search forward ([`LiveSets::search`]).
//!
//! There are two kinds of liveness. At a source point, *all* edges count: live is anything that the
//! text of the version still reads. At a target point, code that only excluded edges reach reads
//! nothing. A constant condition excludes the edges that it does not choose.
//!
//! The second kind provides enough for the following reason. By the product, a run of the target
//! version, started on the same input, reaches the target point. Compare it with the run that the
//! transition continues. Both agree on the live values. Every effect, trap, branch and armed entry
//! reads live values alone, conditions of decided branches included. So both runs compute the same
//! and take the same edges, step by step, and the started run takes no excluded edge.
//!
//! An entry is compared with the live values by a number: how many values of its list are live
//! ([`LiveValues::count_in`]). Lists of neighboring entries and the values live at their points
//! differ in little. So the number of the last entry is kept. It changes with each value that the
//! list gains or loses, and with each value that becomes live or dies. A list without repetitions
//! has all live values if this number is the number of live values. It has live values alone if the
//! number is its length. Kept values are compared one by one besides ([`LiveValues::leaves`]).

use super::checks::{Check, Finding, Options, Place};
use super::graph::BlockGraph;
use super::version::ProvedVersion;
use fixedbitset::FixedBitSet;
use ir::{Block, Edge, Function, Inst, Value, ValueDef};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::Rc;
use transition::Demand;
use transition::ascending::ascends;
use transition::mapping::ValueList;

/// Additional uses, by instruction: the values that armed entries require at their source points.
pub(crate) type Extra = BTreeMap<Inst, Vec<Value>>;

/// Blocks with entries up to which each is searched alone, unless they are more than one in
/// [`SEARCHED_SHARE`] of all. With more, the live values at the start of all blocks cost less.
const MAX_SEARCHES: usize = 64;

/// See [`MAX_SEARCHES`].
const SEARCHED_SHARE: usize = 4;

/// The values that are live at one point.
pub(crate) struct LiveValues {
    marks: FixedBitSet,
    /// Every marked value, and others. Clearing the marks must not cost the size of the function.
    entered: Vec<Value>,
    count: usize,
    /// The last list whose live values were counted, as a list and as marks.
    counted: ValueList<'static>,
    in_counted: FixedBitSet,
    /// The number of live values in that list.
    both: usize,
}

impl LiveValues {
    fn insert(&mut self, value: Value) {
        if !self.marks.put(value.as_u32() as usize) {
            self.entered.push(value);
            self.count += 1;
            self.both += usize::from(self.in_counted.contains(value.as_u32() as usize));
        }
    }

    fn remove(&mut self, value: Value) {
        if self.has(value) {
            self.marks.remove(value.as_u32() as usize);
            self.count -= 1;
            self.both -= usize::from(self.in_counted.contains(value.as_u32() as usize));
        }
    }

    fn clear(&mut self) {
        self.entered.drain(..).for_each(|v| self.marks.remove(v.as_u32() as usize));
        (self.count, self.both) = (0, 0);
    }

    /// Whether a value is live. The version may lack the value.
    pub(crate) fn has(&self, value: Value) -> bool {
        self.marks.contains(value.as_u32() as usize)
    }

    /// The number of live values.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// The number of values of a list that are live; one that is listed twice counts twice. Cost:
    /// the values in which the list differs from the last list, and a fraction of the common
    /// values.
    pub(crate) fn count_in(&mut self, list: &ValueList<'_>) -> usize {
        // `both` changes as live values come and go, once for each. So a list that may have a
        // value twice is counted by itself: forged mappings may be armed.
        if !list.ascends() {
            return list.values().iter().filter(|value| self.has(**value)).count();
        }
        let LiveValues { marks, counted, in_counted, both, .. } = self;
        counted.differences(list, |value, is_new| {
            let index = value.as_u32() as usize;
            // A value that the version lacks is never live.
            if index < in_counted.len() {
                in_counted.set(index, is_new);
                let is_live = usize::from(marks.contains(index));
                *both = if is_new { *both + is_live } else { *both - is_live };
            }
        });
        counted.become_copy(list);
        *both
    }

    /// Whether `rest` are the values of a list that are not live, in its order.
    pub(crate) fn leaves(&mut self, list: &ValueList<'_>, rest: &[Value]) -> bool {
        // As many values as are not live, each in the list and not live: where both lists ascend,
        // these are all.
        let is_one = |value: &Value| !self.has(*value) && list.has(*value);
        if list.ascends() && ascends(rest) && rest.iter().all(is_one) {
            return self.count_in(list) + rest.len() == list.len();
        }
        list.values().iter().filter(|value| !self.has(**value)).eq(rest)
    }

    /// The live values, in any order, some perhaps twice.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Value> + '_ {
        self.entered.iter().copied().filter(|v| self.has(*v))
    }
}

/// The values that are live in each block, or in some.
pub(crate) struct LiveSets<'v> {
    f: &'v Function,
    /// The graph of the edges that count.
    graph: &'v BlockGraph,
    /// The version whose proof excludes edges. `None` if all edges count.
    taken: Option<&'v ProvedVersion<'v, 'v>>,
    /// Whether unneeded values count as well ([`Demand::Live`]).
    everything: bool,
    sets: Rc<BlockSets>,
}

/// The values that are live at the start of each block, or at the end of some.
#[derive(Default)]
pub(crate) struct BlockSets {
    /// The needed values.
    needed: FixedBitSet,
    /// By block index: the values live at the start, ascending. Empty if `at_end` has sets.
    at_start: Vec<Vec<Value>>,
    /// The values live at the end of the requested blocks, if these are few.
    at_end: Option<BTreeMap<Block, Vec<Value>>>,
}

/// The liveness of a version without additional uses, once it is known: of its text, and of its
/// runs.
pub(crate) type KnownSets = [OnceCell<Rc<BlockSets>>; 2];

/// The uses that make a value live.
#[derive(Clone, Copy)]
pub(crate) struct LiveUses<'e> {
    /// Whether edges that no run takes are left out.
    pub(crate) in_run: bool,
    /// Uses besides those of the version.
    pub(crate) extra: &'e Extra,
}

impl<'v> LiveSets<'v> {
    /// The liveness of a version, in these blocks, each named once. `known` keeps the liveness of
    /// all blocks without additional uses.
    ///
    /// Cost: linear in operands; for each of up to 64 blocks, a search of the blocks reachable from
    /// it and the uses there; for more blocks, the number of values live at the starts of all.
    ///
    /// # Errors
    /// [`Check::Size`], when `blocks` are many and more values are live at the starts of all blocks
    /// than `options` allow.
    pub(crate) fn new(
        version: &'v ProvedVersion<'_, '_>,
        LiveUses { in_run, extra }: LiveUses<'_>,
        options: &Options,
        known: &KnownSets,
        blocks: &[Block],
    ) -> Result<Self, Finding> {
        let everything = options.demand == Demand::Live;
        let excludes = !std::ptr::eq(version.live(), &version.full);
        let in_run = in_run && !everything && excludes;
        let (graph, taken) = match in_run {
            true => (version.live(), Some(version)),
            false => (&version.full, None),
        };
        let sets = Rc::default();
        let mut liveness = LiveSets { f: version.f, graph, taken, everything, sets };
        let is_few = blocks.len() <= MAX_SEARCHES.min(graph.blocks().len() / SEARCHED_SHARE);
        let known = Some(&known[in_run as usize]).filter(|_| extra.is_empty() && !is_few);
        if let Some(sets) = known.and_then(OnceCell::get) {
            liveness.sets = sets.clone();
        }
        if blocks.is_empty() || known.is_some_and(|known| known.get().is_some()) {
            return Ok(liveness);
        }
        let uses = liveness.uses(extra);
        let (mut at_start, mut at_end) = (Vec::new(), None);
        if is_few {
            at_end = Some(liveness.search(&uses, blocks));
        } else {
            let total;
            (at_start, total) = liveness.spread(uses, options.live_limit);
            options.require(Check::Size, total <= options.live_limit, Place::Whole)?;
        }
        liveness.keep(at_start, at_end);
        known.map(|known| known.set(liveness.sets.clone()));
        Ok(liveness)
    }

    /// The liveness of the text of a function with these edges and additional uses, in these
    /// blocks, each named once. Cost: linear in operands; for each block, a search of the blocks
    /// reachable from it and the uses there.
    pub(crate) fn of_text(
        f: &'v Function,
        graph: &'v BlockGraph,
        extra: &Extra,
        blocks: &[Block],
    ) -> Self {
        let sets = Rc::default();
        let mut liveness = LiveSets { f, graph, taken: None, everything: false, sets };
        let uses = liveness.uses(extra);
        let at_end = liveness.search(&uses, blocks);
        liveness.keep(Vec::new(), Some(at_end));
        liveness
    }

    /// Finds the needed values, and then the uses that count: only the uses by needed results.
    fn uses(&mut self, extra: &Extra) -> Vec<(Value, Block)> {
        let needed = self.find_needed(extra);
        self.sets = Rc::new(BlockSets { needed, ..BlockSets::default() });
        self.exposed(extra)
    }

    /// Keeps the values live at the starts of all blocks, or at the ends of some.
    fn keep(&mut self, at_start: Vec<Vec<Value>>, at_end: Option<BTreeMap<Block, Vec<Value>>>) {
        let needed = self.sets.needed.clone();
        self.sets = Rc::new(BlockSets { needed, at_start, at_end });
    }

    /// Whether an edge counts. An edge from an unreachable block never does. The class of its
    /// condition was not checked, so nothing would exclude the edge, and its arguments would count
    /// although no run passes them (`arguments_passed_by_excluded_blocks_are_not_live`).
    fn counts_edge(&self, edge: Edge) -> bool {
        let comes = self.graph.has(self.f.inst_block(edge.inst));
        comes && self.taken.is_none_or(|version| version.may_take(edge))
    }

    fn counted_edges(&self, inst: Inst) -> impl Iterator<Item = Edge> + '_ {
        let edges =
            (0..self.f.inst(inst).targets.len() as u32).map(move |index| Edge { inst, index });
        edges.filter(|e| self.counts_edge(*e))
    }

    /// Marks the needed values: from the operands that effects, traps and branches demand, through
    /// definitions and the arguments of edges that count.
    fn find_needed(&self, extra: &Extra) -> FixedBitSet {
        let mut needed = FixedBitSet::with_capacity(self.f.value_bound());
        let mut work: Vec<Value> = extra.values().flatten().copied().collect();
        for &block in self.graph.blocks() {
            for inst in self.f.block_insts(block) {
                work.extend(demanded(self.f, inst));
            }
        }
        // Each value is expanded once, when it is first marked, so loops through parameters end.
        while let Some(value) = work.pop() {
            if needed.put(value.as_u32() as usize) {
                continue;
            }
            match self.f.value_def(value) {
                ValueDef::Result(inst, _) => work.extend(&self.f.inst(inst).args),
                ValueDef::Param(block, index) => {
                    let edges = self.f.predecessors(block).iter().filter(|e| self.counts_edge(**e));
                    work.extend(edges.map(|e| self.f.target(*e).args[index as usize]));
                }
            }
        }
        needed
    }

    /// Whether reads of this result or parameter make their operands live.
    fn counts(&self, value: Value) -> bool {
        self.everything || self.sets.needed.contains(value.as_u32() as usize)
    }

    /// Calls `read` for every value that an instruction reads: operands, arguments for parameters
    /// that count, and additional uses.
    fn reads(&self, inst: Inst, extra: &Extra, mut read: impl FnMut(Value)) {
        let data = self.f.inst(inst);
        // An instruction without needed results reads only the operands that it demands anyway.
        let computes = self.everything || data.results.iter().any(|v| self.counts(*v));
        let args = if computes { &data.args[..] } else { demanded(self.f, inst) };
        args.iter().for_each(|v| read(*v));
        for target in self.counted_edges(inst).map(|e| self.f.target(e)) {
            let params = self.f.block_params(target.block);
            target
                .args
                .iter()
                .zip(params)
                .filter(|(_, p)| self.counts(**p))
                .for_each(|(v, _)| read(*v));
        }
        extra.get(&inst).into_iter().flatten().for_each(|v| read(*v));
    }

    /// The values that blocks read and other blocks define, each once with every block that reads
    /// it, block by block.
    fn exposed(&self, extra: &Extra) -> Vec<(Value, Block)> {
        let mut uses: Vec<(Value, Block)> = Vec::new();
        // By value index: the last block that has been entered for it.
        let mut last: Vec<Option<Block>> = vec![None; self.f.value_bound()];
        for &block in self.graph.blocks() {
            // A use below the definition, in the same block, makes the value live at no block
            // start. Armed entries may require values that this version lacks, in forged mappings.
            for inst in self.f.block_insts(block) {
                self.reads(inst, extra, |value| {
                    let mut is_new = || last[value.as_u32() as usize].replace(block) != Some(block);
                    if self.f.has_value(value) && !self.is_defined_in(value, block) && is_new() {
                        uses.push((value, block));
                    }
                });
            }
        }
        uses
    }

    /// Finds the values live at the ends of some blocks.
    ///
    /// A value is live at the end of `start` if a path leads from there to a use without passing
    /// the definition. In strict SSA the definition then dominates `start`, and the use. Call the
    /// dominators of `start` its *heads*, and count their depth from the function entry. A path
    /// that leaves the blocks strictly below a head comes back only through the head. So a use
    /// counts if and only if some path to it stays strictly below the head that defines the value.
    ///
    /// The search finds for each block its *level*: the depth of the deepest head such that some
    /// path from `start` to the block stays strictly below. Such a path stays below all heads above
    /// as well. So a use in the block counts if the value's head is at the level or above. Blocks
    /// are visited by falling level, hence each at its own.
    ///
    /// An armed entry of a forged mapping may require a value whose definition does not dominate
    /// it. Such a use counts everywhere: no entry can provide the value.
    fn search(&self, uses: &[(Value, Block)], blocks: &[Block]) -> BTreeMap<Block, Vec<Value>> {
        let (f, graph, bound) = (self.f, self.graph, self.f.block_bound());
        let home = |value: Value| f.value_block(value).as_u32() as usize;
        let strays = |(v, b): &&(Value, Block)| !graph.dominates(f.value_block(*v), *b);
        let stray: Vec<Value> = uses.iter().filter(strays).map(|(value, _)| *value).collect();
        let mut reads = vec![Vec::new(); bound];
        uses.iter().for_each(|(value, block)| reads[block.as_u32() as usize].push(*value));
        let mut at_end = BTreeMap::new();
        for &start in blocks.iter().filter(|b| graph.has(**b)) {
            // By block index: the depth of a head, and the depth of the deepest head that strictly
            // dominates the block; 0 without a head.
            let (mut depth, mut below) = (vec![0u32; bound], vec![0u32; bound]);
            let heads: Vec<Block> =
                std::iter::successors(Some(start), |b| graph.idom(*b)).collect();
            heads.iter().rev().zip(1..).for_each(|(b, n)| depth[b.as_u32() as usize] = n);
            for &block in graph.blocks() {
                let above = graph.idom(block).map(|b| b.as_u32() as usize);
                let deepest = above.map(|b| if depth[b] > 0 { depth[b] } else { below[b] });
                below[block.as_u32() as usize] = deepest.unwrap_or(0);
            }
            let mut live = stray.clone();
            let mut seen = FixedBitSet::with_capacity(bound);
            let mut work = BinaryHeap::new();
            let (mut level, mut block) = (heads.len() as u32, start);
            loop {
                for to in self.counted_edges(f.terminator(block)).map(|e| f.target(e).block) {
                    let lower = level.min(below[to.as_u32() as usize]);
                    if lower > 0 && !seen.contains(to.as_u32() as usize) {
                        work.push((lower, to));
                    }
                }
                let is_new = |(_, to): &(u32, Block)| !seen.contains(to.as_u32() as usize);
                let Some(next) = std::iter::from_fn(|| work.pop()).find(is_new) else { break };
                (level, block) = next;
                seen.insert(block.as_u32() as usize);
                let counts = |v: &&Value| (1..=level).contains(&depth[home(**v)]);
                live.extend(reads[block.as_u32() as usize].iter().filter(counts));
            }
            at_end.insert(start, live);
        }
        at_end
    }

    /// The values live at the start of each block, by block index, and their number. Stops soon
    /// after `limit`.
    fn spread(&self, mut uses: Vec<(Value, Block)>, limit: usize) -> (Vec<Vec<Value>>, usize) {
        let mut at_start: Vec<Vec<Value>> = vec![Vec::new(); self.f.block_bound()];
        // Sorted by value: the marks of one value are then made together, and `live.last()` below
        // tells whether a block is marked.
        uses.sort_unstable();
        let mut total = 0;
        let mut work = Vec::new();
        for (value, block) in uses {
            work.push(block);
            while let Some(block) = work.pop() {
                let live = &mut at_start[block.as_u32() as usize];
                // Beyond the limit, the rest of the work is only drained. The caller rejects the
                // pair.
                if live.last() == Some(&value) || total > limit {
                    continue;
                }
                live.push(value);
                total += 1;
                let preds = self.f.predecessors(block).iter().filter(|e| self.counts_edge(**e));
                let preds = preds.map(|e| self.f.inst_block(e.inst));
                work.extend(preds.filter(|b| !self.is_defined_in(value, *b)));
            }
        }
        (at_start, total)
    }

    fn is_defined_in(&self, value: Value, block: Block) -> bool {
        self.f.value_block(value) == block
    }

    /// No live values, for [`LiveSets::walk`].
    pub(crate) fn none(&self) -> LiveValues {
        let marks = FixedBitSet::with_capacity(self.f.value_bound());
        let in_counted = marks.clone();
        let (entered, counted) = (Vec::new(), ValueList::default());
        LiveValues { marks, entered, count: 0, counted, in_counted, both: 0 }
    }

    /// Walks a block upward. Calls `visit` for each instruction with the set of values live before
    /// it. `live` is reused from walk to walk.
    pub(crate) fn walk(
        &self,
        block: Block,
        extra: &Extra,
        live: &mut LiveValues,
        mut visit: impl FnMut(Inst, &mut LiveValues),
    ) {
        live.clear();
        match &self.sets.at_end {
            Some(at_end) => at_end.get(&block).into_iter().flatten().for_each(|v| live.insert(*v)),
            None => {
                for edge in self.counted_edges(self.f.terminator(block)) {
                    let to = self.f.target(edge).block;
                    self.sets.at_start[to.as_u32() as usize].iter().for_each(|v| live.insert(*v));
                }
            }
        }
        let mut at = Some(self.f.terminator(block));
        while let Some(inst) = at {
            // Results first, operands second: above the instruction, its results are not defined
            // yet.
            for result in &self.f.inst(inst).results {
                live.remove(*result);
            }
            self.reads(inst, extra, |v| live.insert(v));
            visit(inst, live);
            at = self.f.prev_inst(inst);
        }
    }
}

/// The operands that an instruction needs even if its results are not needed: all of an effect, a
/// branch, or an instruction that may trap. A division with a constant divisor that excludes a trap
/// needs that divisor: with other contents it would trap.
fn demanded(f: &Function, inst: Inst) -> &[Value] {
    let data = f.inst(inst);
    if !data.opcode.is_effect_free() || f.may_trap(inst) {
        &data.args
    } else if data.opcode.can_trap() {
        data.args.get(1..).unwrap_or(&[])
    } else {
        &[]
    }
}
