//! Paths between bounding anchors.
//!
//! An *anchor* of two versions is an instruction that both have and that the log moved nowhere. A
//! *bounding* anchor is a terminator, has an effect, or may trap. From any point, control follows
//! one *path* to the next bounding anchor. The path runs on through jumps that are not anchors:
//! jumps of blocks that the other version lacks, jumps that the other version merged away, and
//! branches that the log folded.
//!
//! All points of both versions whose paths end at the same bounding anchor lie in one *gap*.

use crate::facts::Facts;
use cranelift_entity::SecondaryMap;
use fixedbitset::FixedBitSet;
use ir::cfg::Cfg;
use ir::decided::Decided;
use ir::{Block, Edge, Function, Inst, Opcode, Point};
use smallvec::SmallVec;

/// Jumps on one path. Blocks that only one version has come in chains of two or three. The limit
/// keeps the cost linear for any pass; a longer path is dropped, and its points have no entries.
/// `anchors` makes paths end earlier where it finds an instruction for that.
pub(crate) const MAX_JUMPS: usize = 64;

/// A jump on a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TakenJump {
    /// The edges that may be taken, all to one block. There are several only at a branch that the
    /// log folded when its targets had become equal.
    pub(crate) edges: SmallVec<[Edge; 1]>,
    /// Whether another edge leads to that block too.
    pub(crate) joins: bool,
}

/// The end of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PathEnd {
    /// The bounding anchor.
    pub(crate) anchor: Inst,
    /// The jumps on the path, in order.
    pub(crate) jumps: SmallVec<[TakenJump; 2]>,
}

/// The paths of one version.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    /// The next bounding anchor at or after an instruction, in its own block.
    next_in_block: SecondaryMap<Inst, Option<Inst>>,
    /// By block that ends without a bounding anchor: the rest of the path from its end.
    tails: SecondaryMap<Block, Option<PathEnd>>,
    /// By bounding anchor: the points whose paths end there and that an entry may land at, in the
    /// order control passes them.
    landings: SecondaryMap<Inst, Vec<Point>>,
    /// By instruction: the index of the point before it among the landings of its anchor.
    numbers: SecondaryMap<Inst, u32>,
}

impl Paths {
    /// Computes the paths of a version. Cost: linear in its instructions.
    pub(crate) fn new(
        f: &Function,
        cfg: &Cfg,
        decided: &Decided,
        anchors: &FixedBitSet,
        facts: &Facts,
    ) -> Paths {
        let mut paths = Paths {
            next_in_block: SecondaryMap::new(),
            tails: SecondaryMap::new(),
            landings: SecondaryMap::new(),
            numbers: SecondaryMap::new(),
        };
        for &block in cfg.rpo() {
            paths.scan_block(f, anchors, block);
        }
        // A second loop, because `follow` reads `next_in_block` of blocks that come later.
        for &block in cfg.rpo() {
            paths.tails[block] = paths.follow(f, cfg, facts, block);
        }
        // Code proved dead has paths to anchors too, but nothing is live there. An entry could land
        // there at no cost, in code that no run reaches.
        for &block in decided.cfg().rpo().iter().filter(|b| !facts.control.is_removed(**b)) {
            for inst in f.block_insts(block) {
                // Across a join the points do not correspond: the run may have reached the anchor
                // over another edge, and then this version never visits the point.
                if let Some(end) = paths.end(f, inst)
                    && !end.jumps.iter().any(|j| j.joins)
                {
                    paths.numbers[inst] = paths.landings[end.anchor].len() as u32;
                    paths.landings[end.anchor].push(Point::before(inst));
                }
            }
        }
        paths
    }

    fn scan_block(&mut self, f: &Function, anchors: &FixedBitSet, block: Block) {
        // From the end of the block upward, so that one walk finds the next anchor of every
        // instruction.
        let mut next = None;
        let mut at = Some(f.terminator(block));
        while let Some(inst) = at {
            if anchors.contains(inst.as_u32() as usize) {
                next = Some(inst);
            }
            self.next_in_block[inst] = next;
            at = f.prev_inst(inst);
        }
    }

    fn follow(&self, f: &Function, cfg: &Cfg, facts: &Facts, block: Block) -> Option<PathEnd> {
        let mut end = PathEnd { anchor: f.terminator(block), jumps: SmallVec::new() };
        let mut block = block;
        loop {
            let jump = f.terminator(block);
            // An anchor in the first block: `end` answers from `next_in_block`, and needs no tail.
            if self.next_in_block[jump].is_some() || end.jumps.len() == MAX_JUMPS {
                return None;
            }
            let edges = edges_taken(f, facts, jump)?;
            block = f.target(edges[0]).block;
            // Only edges that runs can take count. An edge from code that the log removed would
            // create a false join, and cost the landing points before it. By index of the edge: a
            // switch may have many, all to this block
            // (`a_switch_with_many_edges_to_one_block_costs_linear_time`).
            let is_own = |e: &Edge| {
                e.inst == jump && edges.binary_search_by_key(&e.index, |own| own.index).is_ok()
            };
            let mut others = f.predecessors(block).iter().filter(|e| !is_own(e));
            let joins = others.any(|e| may_be_taken(f, cfg, facts, *e));
            end.jumps.push(TakenJump { edges, joins });
            if let Some(anchor) = self.next_in_block[f.first_inst(block)] {
                end.anchor = anchor;
                return Some(end);
            }
        }
    }

    /// The end of the path from the point before an instruction. `None` when the path meets no
    /// bounding anchor, or the block is unreachable.
    pub(crate) fn end(&self, f: &Function, inst: Inst) -> Option<PathEnd> {
        match self.next_in_block[inst] {
            Some(anchor) => Some(PathEnd { anchor, jumps: SmallVec::new() }),
            None => self.tails[f.inst_block(inst)].clone(),
        }
    }

    /// The points whose paths lead to this anchor without a join, in the order control passes them.
    pub(crate) fn landings(&self, anchor: Inst) -> &[Point] {
        &self.landings[anchor]
    }

    /// The index of a point among the landings of this anchor, if it is one of them. Cost:
    /// constant.
    pub(crate) fn landing_number(&self, anchor: Inst, point: Point) -> Option<usize> {
        let number = self.numbers[point.inst()] as usize;
        // Zero is also the default of an instruction without a landing, so the point itself is
        // compared.
        (self.landings(anchor).get(number) == Some(&point)).then_some(number)
    }
}

/// The edges a terminator may take, if it is a jump, or a branch the log folded whose edges all
/// lead to one block.
pub(crate) fn edges_taken(f: &Function, facts: &Facts, inst: Inst) -> Option<SmallVec<[Edge; 1]>> {
    if f.inst(inst).opcode == Opcode::Jump {
        return Some(SmallVec::from_iter([Edge { inst, index: 0 }]));
    }
    let edges: SmallVec<[Edge; 1]> = facts
        .control
        .taken_targets(inst)?
        .iter()
        .map(|index| Edge { inst, index: *index })
        .collect();
    let block = f.target(edges[0]).block;
    edges.iter().all(|e| f.target(*e).block == block).then_some(edges)
}

/// Whether a run may take an edge. The log may have proved that no run does.
pub(crate) fn may_be_taken(f: &Function, cfg: &Cfg, facts: &Facts, edge: Edge) -> bool {
    let from = f.inst_block(edge.inst);
    let is_branch = f.inst(edge.inst).opcode != Opcode::Jump;
    let is_left_out = |taken: &[u32]| taken.binary_search(&edge.index).is_err();
    let folded_away = is_branch && facts.control.taken_targets(edge.inst).is_some_and(is_left_out);
    cfg.is_reachable(from) && !facts.control.is_removed(from) && !folded_away
}
