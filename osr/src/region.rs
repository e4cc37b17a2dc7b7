//! The code of one loop, for a continuation that holds the loop alone.
//!
//! Example: a run is in a loop of a function of 24,000 instructions. The rest of the function from
//! the loop's header on is hardly smaller than the function. The loop itself has 300 instructions.
//! A continuation with the 300 is compiled in a hundredth of the time. Where the run leaves the
//! loop, it goes back to the base, through an OSR point that always fires.

use ir::loops::{Loop, LoopForest};
use ir::{Block, Function, Point};
use std::collections::BTreeSet;

/// The code of a loop of a version, and the places behind it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoopRegion {
    /// The blocks of the loop, inner loops included, ascending.
    blocks: Vec<Block>,
    /// The blocks with an edge from outside, in reverse postorder: one in a reducible loop.
    entries: Vec<Block>,
    /// The blocks outside with an edge from inside, ascending.
    exits: Vec<Block>,
}

impl LoopRegion {
    /// The region of a loop. Cost: near linear in the loop.
    ///
    /// # Panics
    /// If the forest is stale.
    pub fn of(version: &Function, forest: &LoopForest, of: Loop) -> LoopRegion {
        forest.check(version);
        let blocks: BTreeSet<Block> = forest.blocks(of).iter().copied().collect();
        let exits: BTreeSet<Block> =
            forest.exits(of).iter().map(|edge| version.target(*edge).block).collect();
        LoopRegion {
            blocks: blocks.into_iter().collect(),
            entries: forest.entries(of).to_vec(),
            exits: exits.into_iter().collect(),
        }
    }

    /// The blocks of the loop, inner loops included, ascending.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The blocks with an edge from outside: one in a reducible loop.
    pub fn entries(&self) -> &[Block] {
        &self.entries
    }

    /// The number of instructions of the loop.
    pub fn inst_count(&self, version: &Function) -> usize {
        self.blocks.iter().map(|block| version.block_insts(*block).count()).sum()
    }

    /// All points of the blocks to which a run comes when it leaves the loop: points for which to
    /// request an entry to the base. Linear in these blocks.
    pub fn exit_points(&self, version: &Function) -> BTreeSet<Point> {
        let insts = self.exits.iter().flat_map(|block| version.block_insts(*block));
        insts.map(Point::before).collect()
    }

    /// The points at which a run leaves the code of the region: on each way out of the loop, the
    /// first point at which it `may_leave`. Code before these points belongs to the region. A way
    /// without such a point leads to the end of the function, or back into the loop. Ascending.
    /// Linear in the code behind the loop up to the points.
    pub fn cut(&self, version: &Function, may_leave: impl Fn(Point) -> bool) -> Vec<Point> {
        let (mut points, mut work) = (BTreeSet::new(), self.exits.clone());
        let mut seen: BTreeSet<Block> = self.exits.iter().copied().collect();
        while let Some(block) = work.pop() {
            let mut here = version.block_insts(block).map(Point::before);
            if let Some(point) = here.find(|point| may_leave(*point)) {
                points.insert(point);
                continue;
            }
            let targets = &version.inst(version.terminator(block)).targets;
            let next = targets.iter().map(|target| target.block);
            work.extend(
                next.filter(|to| self.blocks.binary_search(to).is_err() && seen.insert(*to)),
            );
        }
        points.into_iter().collect()
    }
}
