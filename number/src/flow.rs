//! The order in which blocks are numbered, and the regions that are numbered in turns.
//!
//! A *region* is a stretch of the order that an edge leads back into: it begins at the target of
//! the edge, and ends behind the source. Regions nest. The order keeps the blocks of a loop
//! together, so the region of a loop is its blocks, and two loops in a row are two regions. In
//! plain reverse postorder, the code behind a loop may stand between its header and its body.

use crate::LiveEdges;
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::loops::{Loop, LoopForest};
use ir::{Block, Function};
use std::collections::BTreeMap;

/// A function and its control-flow graph, which stay while the function is numbered.
#[derive(Debug)]
pub struct FlowGraph<'f> {
    /// The function.
    pub f: &'f Function,
    /// The edges that count.
    pub cfg: Cfg,
    /// Dominance along these edges.
    pub dom: DomTree,
    /// The reachable blocks, in the order of numbering.
    order: Vec<Block>,
    /// By block index: the place in `order`, if the block is reachable.
    place: Vec<u32>,
    /// By place: the end of the region that begins there, or 0.
    region_end: Vec<u32>,
}

impl<'f> FlowGraph<'f> {
    /// The graph of all edges.
    pub fn new(f: &'f Function) -> FlowGraph<'f> {
        FlowGraph::of_cfg(f, Cfg::new(f))
    }

    /// The graph of the live edges alone.
    pub fn narrowed(f: &'f Function, live: &LiveEdges) -> FlowGraph<'f> {
        FlowGraph::of_cfg(f, Cfg::of_edges(f, |e| live.has(f, e)))
    }

    fn of_cfg(f: &'f Function, cfg: Cfg) -> FlowGraph<'f> {
        let dom = DomTree::new(f, &cfg);
        let order = numbering_order(f, &cfg);
        let mut place = vec![u32::MAX; f.block_bound()];
        order.iter().zip(0..).for_each(|(b, n)| place[b.as_u32() as usize] = n);
        let region_end = region_ends(&cfg, &order, &place);
        FlowGraph { f, cfg, dom, order, place, region_end }
    }

    /// The reachable blocks, in the order of numbering, the function entry first. Each other block
    /// follows a predecessor.
    pub fn order(&self) -> &[Block] {
        &self.order
    }

    /// The place of a block in the order; `None` if the block is unreachable.
    pub fn place(&self, block: Block) -> Option<usize> {
        let place = self.place.get(block.as_u32() as usize).copied();
        place.filter(|n| *n != u32::MAX).map(|n| n as usize)
    }

    /// The end of the region that begins at a place: the place behind its last block. `None` if no
    /// edge leads back to there.
    pub fn region_end(&self, place: usize) -> Option<usize> {
        self.region_end.get(place).filter(|end| **end > 0).map(|end| *end as usize)
    }
}

/// Reverse postorder, but with the blocks of each loop together. Every block still follows its
/// parent in the depth-first tree: if the parent is in another loop, the block is the header of its
/// own.
fn numbering_order(f: &Function, cfg: &Cfg) -> Vec<Block> {
    let rpo = cfg.rpo();
    let leads_back = |n: usize| cfg.preds(n as u32).last().is_some_and(|from| *from as usize >= n);
    if !(0..rpo.len()).any(leads_back) {
        return rpo.to_vec();
    }
    let forest = LoopForest::new(f, cfg);
    let mut order = vec![f.entry(); rpo.len()];
    // By loop, and for the code in no loop: the next free place. A header comes before the other
    // blocks of its loop, and takes places for all of them.
    let mut free: BTreeMap<Option<Loop>, usize> = BTreeMap::from([(None, 0)]);
    for &block in rpo {
        let around = forest.innermost(block);
        let own = around.filter(|of| forest.header(*of) == block);
        let (list, count) = match own {
            Some(of) => (forest.parent(of), forest.blocks(of).len()),
            None => (around, 1),
        };
        let at = free.get_mut(&list).map_or(0, |next| std::mem::replace(next, *next + count));
        order[at] = block;
        if own.is_some() {
            free.insert(own, at + 1);
        }
    }
    order
}

/// By place: the end of the region that begins there. A region that reaches into another region
/// includes it completely (`a_region_takes_in_all_of_an_inner_one`).
fn region_ends(cfg: &Cfg, order: &[Block], place: &[u32]) -> Vec<u32> {
    let mut ends = vec![0; order.len()];
    // The outermost regions that begin later, the nearest last.
    let mut later: Vec<(u32, u32)> = Vec::new();
    for (n, &block) in order.iter().enumerate().rev() {
        let Some(number) = cfg.number(block) else { continue };
        let from =
            cfg.preds(number).iter().map(|p| place[cfg.rpo()[*p as usize].as_u32() as usize]);
        let Some(mut end) = from.filter(|from| *from as usize >= n).max().map(|n| n + 1) else {
            continue;
        };
        while let Some((_, inner)) = later.last().copied().filter(|(start, _)| *start < end) {
            end = end.max(inner);
            later.pop();
        }
        later.push((n as u32, end));
        ends[n] = end;
    }
    ends
}
