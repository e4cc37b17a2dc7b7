//! Liveness at a few places of a function, without the live sets of all blocks.

use super::{LiveSet, Liveness, visit_points};
use crate::cfg::Cfg;
use crate::decided::Decided;
use crate::dom::DomTree;
use crate::entity::{Block, Inst, Point, Value};
use crate::function::Function;
use crate::needed::Needed;
use cranelift_entity::EntityRef;
use fixedbitset::FixedBitSet;
use std::collections::{BTreeMap, BinaryHeap};

/// Blocks that are searched one by one. Beyond this number, the live sets of all blocks cost less
/// than the searches.
const MAX_SEARCHES: usize = 64;

/// The uses that count for [`LocalLiveness`].
#[derive(Clone, Copy, Debug)]
pub enum CountedUses<'a> {
    /// All uses, as for [`Liveness::with_extra_uses`].
    All(&'a Cfg),
    /// The needed uses, as for [`Liveness::of_needed`].
    Needed(&'a Cfg),
    /// The needed uses in runs, as for [`Liveness::of_run`].
    InRun(&'a Decided),
}

/// The live values at the points of some blocks. [`Liveness`] covers all blocks.
///
/// For each block, one search goes forward from its end, and collects the values that the blocks it
/// reaches read. A value counts if the search has not passed its definition on the way. In strict
/// SSA the definitions in question dominate the block. So they lie on one path of the dominator
/// tree, and one search answers for all of them. It visits blocks in the order of the deepest
/// dominator of the start that a path to them has to pass.
#[derive(Clone, Debug)]
pub struct LocalLiveness {
    stamp: u64,
    /// By block: the values live after the terminator.
    live_out: BTreeMap<Block, LiveSet>,
    extra: BTreeMap<Inst, Vec<Value>>,
    needed: Option<Needed>,
}

impl LocalLiveness {
    /// Computes the live values in `blocks`. Each value in `extra` counts as used before its
    /// instruction, and has to be available there. `dom` is the dominator tree over all edges. A
    /// block that is unreachable over the edges that count has no live values at its end.
    ///
    /// Cost: one pass over the operands of the function. Then, for each block, the blocks reachable
    /// from it and the uses there; beyond 64 blocks, the cost of [`Liveness`] instead.
    ///
    /// # Panics
    /// When `dom` or the graph in `counted` is stale, or the function lacks one of the blocks,
    /// instructions or values.
    pub fn new(
        function: &Function,
        dom: &DomTree,
        counted: CountedUses<'_>,
        extra: &BTreeMap<Inst, Vec<Value>>,
        blocks: impl IntoIterator<Item = Block>,
    ) -> LocalLiveness {
        dom.check(function);
        let (cfg, needed) = match counted {
            CountedUses::All(cfg) => (cfg, None),
            CountedUses::Needed(cfg) => (cfg, Some(Needed::new(function, cfg, extra))),
            CountedUses::InRun(decided) => {
                (decided.cfg(), Some(Needed::of_run(function, decided, extra)))
            }
        };
        cfg.check(function);
        let mut live_out: BTreeMap<Block, LiveSet> =
            blocks.into_iter().map(|block| (block, LiveSet::default())).collect();
        if live_out.len() > MAX_SEARCHES {
            let all = Liveness::compute(function, cfg, extra, needed);
            live_out.iter_mut().for_each(|(block, live)| live.clone_from(all.live_out(*block)));
            let Liveness { stamp, extra, needed, .. } = all;
            return LocalLiveness { stamp, live_out, extra, needed };
        }
        if !live_out.is_empty() {
            let exposed = ExposedUses::new(function, cfg, needed.as_ref(), extra);
            let search = EndSearch { function, dom, cfg, exposed: &exposed };
            live_out.iter_mut().for_each(|(block, live)| *live = search.live_out(*block));
        }
        LocalLiveness { stamp: function.stamp(), live_out, extra: extra.clone(), needed }
    }

    /// Visits the points of a block as [`Liveness::for_each_point`] does.
    ///
    /// # Panics
    /// When liveness is stale, or was not computed for the block.
    pub fn for_each_point(
        &self,
        function: &Function,
        block: Block,
        visit: impl FnMut(Point, &LiveSet),
    ) {
        crate::cfg::check_stamp("LocalLiveness", self.stamp, function);
        let live = self.live_out[&block].clone();
        visit_points(function, block, live, self.needed.as_ref(), &self.extra, visit);
    }
}

/// The values that blocks read and that other blocks define, by number of the reading block.
struct ExposedUses {
    /// The values that block `n` reads are `values[start[n]..start[n + 1]]`.
    start: Vec<u32>,
    values: Vec<Value>,
}

impl ExposedUses {
    fn new(
        function: &Function,
        cfg: &Cfg,
        needed: Option<&Needed>,
        extra: &BTreeMap<Inst, Vec<Value>>,
    ) -> ExposedUses {
        let mut exposed = ExposedUses { start: vec![0], values: Vec::new() };
        for &block in cfg.rpo() {
            // A use below the definition, in the same block, makes the value live at the end of no
            // other block.
            let is_exposed = |value: &Value| function.value_block(*value) != block;
            for inst in function.block_insts(block) {
                match needed {
                    None => {
                        let read = function.inst(inst).operands();
                        exposed.values.extend(read.filter(is_exposed));
                    }
                    Some(needed) => {
                        exposed.values.extend(needed.operands(function, inst).filter(is_exposed));
                    }
                }
                if !extra.is_empty() {
                    let used = extra.get(&inst).into_iter().flatten().copied();
                    exposed.values.extend(used.filter(is_exposed));
                }
            }
            exposed.start.push(exposed.values.len() as u32);
        }
        exposed
    }

    fn of(&self, n: u32) -> &[Value] {
        &self.values[self.start[n as usize] as usize..self.start[n as usize + 1] as usize]
    }
}

/// The search for the values live at the end of a block.
struct EndSearch<'a> {
    function: &'a Function,
    dom: &'a DomTree,
    /// The edges that count. Dominance over all edges holds over these too.
    cfg: &'a Cfg,
    exposed: &'a ExposedUses,
}

impl EndSearch<'_> {
    /// The values live after the terminator of a block.
    ///
    /// The *level* of a reached block is the depth in the dominator tree of the deepest dominator
    /// of the start that some path from the start to that block does not pass again, and that
    /// dominates the whole path. A definition at this depth or above is not passed again either:
    /// a path that leaves the subtree of a definition can come back only over the definition.
    fn live_out(&self, start: Block) -> LiveSet {
        let Some(first) = self.cfg.number(start) else { return LiveSet::default() };
        let depths = self.depths(start);
        let mut reached = FixedBitSet::with_capacity(self.cfg.len());
        let mut values = Vec::new();
        let mut level = depths.of_dominator[start.index()];
        let (mut stack, mut deferred) = (vec![], BinaryHeap::new());
        let mut at = Some(first);
        while let Some(n) = at {
            for &to in self.cfg.succs(n).iter().filter(|to| !reached.contains(**to as usize)) {
                // Level 0 is above the entry: no definition is there.
                match depths.at_most[self.cfg.block(to).index()].min(level) {
                    0 => {}
                    lower if lower < level => deferred.push((lower, to)),
                    _ => stack.push(to),
                }
            }
            // The deepest level first: a block that is reached has its final level then.
            at = loop {
                let next = stack.pop().map(|to| (level, to)).or_else(|| deferred.pop());
                let Some((reached_at, to)) = next else { break None };
                level = reached_at;
                if !reached.put(to as usize) {
                    let live = |value: &&Value| {
                        let home = self.function.value_block(**value).index();
                        (1..=level).contains(&depths.of_dominator[home])
                    };
                    values.extend(self.exposed.of(to).iter().filter(live).copied());
                    break Some(to);
                }
            };
        }
        values.sort_unstable();
        values.dedup();
        LiveSet { values }
    }

    fn depths(&self, start: Block) -> Depths {
        let bound = self.function.block_bound();
        let mut depths = Depths { of_dominator: vec![0; bound], at_most: vec![0; bound] };
        let mut above: Vec<Block> =
            std::iter::successors(Some(start), |block| self.dom.idom(*block)).collect();
        above.reverse();
        for (block, depth) in above.iter().zip(1..) {
            depths.of_dominator[block.index()] = depth;
            // A path into a dominator of the start passes it again.
            depths.at_most[block.index()] = depth - 1;
        }
        // Each block after its immediate dominator.
        for &block in self.dom.preorder() {
            if let (Some(parent), 0) = (self.dom.idom(block), depths.of_dominator[block.index()]) {
                depths.at_most[block.index()] = match depths.of_dominator[parent.index()] {
                    0 => depths.at_most[parent.index()],
                    depth => depth,
                };
            }
        }
        depths
    }
}

/// Depths in the dominator tree, by block index. The entry has depth 1.
struct Depths {
    /// Of a dominator of the start: its depth. 0 for other blocks.
    of_dominator: Vec<u32>,
    /// The highest level at which a path may enter the block: the depth of the deepest dominator
    /// of the start that strictly dominates the block.
    at_most: Vec<u32>,
}
