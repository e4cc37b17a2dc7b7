//! Straight lines between bounding anchors.
//!
//! An *anchor* of two versions is an instruction present in both and moved nowhere between them. A
//! bounding anchor is an anchor that is a terminator, has an effect, or may trap. From any point,
//! control runs straight on to the next bounding anchor, through jumps that are none: jumps of
//! blocks that only this version has, or that the other version merged away, and branches that were
//! folded first. All points of both versions from which the next bounding anchor is the same lie in
//! one *gap*.

use crate::facts::Facts;
use cranelift_entity::SecondaryMap;
use fixedbitset::FixedBitSet;
use ir::cfg::Cfg;
use ir::decided::Decided;
use ir::{Block, Edge, Function, Inst, Opcode, Point};
use smallvec::SmallVec;

/// Jumps followed before a line is given up. Blocks that only one version has come in chains of two
/// or three; the limit keeps the cost linear whatever a pass makes.
const MAX_CROSSINGS: usize = 64;

/// A jump on a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Crossing {
    /// The edges that may be taken, all to one block. More than one only at a branch that was
    /// folded when its targets had become equal.
    pub(crate) edges: SmallVec<[Edge; 1]>,
    /// Whether control may come to that block from elsewhere too.
    pub(crate) joins: bool,
}

/// Where a line ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LineEnd {
    /// The bounding anchor.
    pub(crate) anchor: Inst,
    /// The jumps on the way, in order.
    pub(crate) jumps: SmallVec<[Crossing; 2]>,
}

/// The lines of one version.
#[derive(Debug)]
pub(crate) struct Lines {
    /// The next bounding anchor at or after an instruction in its own block.
    next_in_block: SecondaryMap<Inst, Option<Inst>>,
    /// Where the line goes that leaves a block by a jump that is no anchor.
    tails: SecondaryMap<Block, Option<LineEnd>>,
    /// The points before each bounding anchor that may be landed at, in the order they are passed.
    landings: SecondaryMap<Inst, Vec<Point>>,
    /// Where among the landings of its anchor the point before an instruction stands.
    numbers: SecondaryMap<Inst, u32>,
}

impl Lines {
    /// Computes the lines of a version. Cost: linear in its instructions.
    pub(crate) fn new(
        f: &Function,
        cfg: &Cfg,
        decided: &Decided,
        anchors: &FixedBitSet,
        facts: &Facts,
    ) -> Lines {
        let mut lines = Lines {
            next_in_block: SecondaryMap::new(),
            tails: SecondaryMap::new(),
            landings: SecondaryMap::new(),
            numbers: SecondaryMap::new(),
        };
        for &block in cfg.rpo() {
            lines.scan_block(f, anchors, block);
        }
        for &block in cfg.rpo() {
            lines.tails[block] = lines.follow(f, cfg, facts, block);
        }
        // Code proved dead leads to anchors too, and is no place to land: nothing is live there.
        for &block in decided.cfg().rpo().iter().filter(|b| !facts.removed_blocks.contains(b)) {
            for inst in f.block_insts(block) {
                if let Some(end) = lines.end(f, inst)
                    && !end.jumps.iter().any(|j| j.joins)
                {
                    lines.numbers[inst] = lines.landings[end.anchor].len() as u32;
                    lines.landings[end.anchor].push(Point::before(inst));
                }
            }
        }
        lines
    }

    fn scan_block(&mut self, f: &Function, anchors: &FixedBitSet, block: Block) {
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

    fn follow(&self, f: &Function, cfg: &Cfg, facts: &Facts, block: Block) -> Option<LineEnd> {
        let mut end = LineEnd { anchor: f.terminator(block), jumps: SmallVec::new() };
        let mut block = block;
        loop {
            let jump = f.terminator(block);
            if self.next_in_block[jump].is_some() || end.jumps.len() == MAX_CROSSINGS {
                return None;
            }
            let edges = edges_taken(f, facts, jump)?;
            block = f.target(edges[0]).block;
            let mut others = f.predecessors(block).iter().filter(|e| !edges.contains(e));
            let joins = others.any(|e| may_be_taken(f, cfg, facts, *e));
            end.jumps.push(Crossing { edges, joins });
            if let Some(anchor) = self.next_in_block[f.first_inst(block)] {
                end.anchor = anchor;
                return Some(end);
            }
        }
    }

    /// The end of the line from the point before an instruction; `None` when it meets no anchor, or
    /// the block is unreachable.
    pub(crate) fn end(&self, f: &Function, inst: Inst) -> Option<LineEnd> {
        match self.next_in_block[inst] {
            Some(anchor) => Some(LineEnd { anchor, jumps: SmallVec::new() }),
            None => self.tails[f.inst_block(inst)].clone(),
        }
    }

    /// The points from which control runs straight to this anchor, in order.
    pub(crate) fn landings(&self, anchor: Inst) -> &[Point] {
        &self.landings[anchor]
    }

    /// The index of a point among the landings before this anchor, if it is one of them. Cost:
    /// constant.
    pub(crate) fn landing_number(&self, anchor: Inst, point: Point) -> Option<usize> {
        let number = self.numbers[point.inst()] as usize;
        (self.landings(anchor).get(number) == Some(&point)).then_some(number)
    }
}

/// The edges a terminator may take, if it is a jump or was folded and they all lead to one block.
fn edges_taken(f: &Function, facts: &Facts, inst: Inst) -> Option<SmallVec<[Edge; 1]>> {
    if f.inst(inst).opcode == Opcode::Jump {
        return Some(SmallVec::from_iter([Edge { inst, index: 0 }]));
    }
    let edges: SmallVec<[Edge; 1]> =
        facts.folded.get(&inst)?.iter().map(|index| Edge { inst, index: *index }).collect();
    let block = f.target(edges[0]).block;
    edges.iter().all(|e| f.target(*e).block == block).then_some(edges)
}

/// Whether control may take an edge: the log has not proved that it cannot.
pub(crate) fn may_be_taken(f: &Function, cfg: &Cfg, facts: &Facts, edge: Edge) -> bool {
    let from = f.inst_block(edge.inst);
    let is_branch = f.inst(edge.inst).opcode != Opcode::Jump;
    // A branch that edges were sent past took the others for those
    // (`tests/oir/osr/folded_where_edges_were_sent_past.oir`).
    let was_passed = facts.passed_ends.contains(&edge.inst);
    let is_left_out = |taken: &SmallVec<[u32; 1]>| !taken.contains(&edge.index);
    let folded_away =
        is_branch && !was_passed && facts.folded.get(&edge.inst).is_some_and(is_left_out);
    cfg.is_reachable(from) && !facts.removed_blocks.contains(&from) && !folded_away
}
