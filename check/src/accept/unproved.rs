//! Unproved anchors, and the points that they leave unknown.
//!
//! An anchor is *unproved* if a check of its step in the product fails: its operands or the memory
//! before it are not proved equal, or the paths that leave it are not proved to end alike. The
//! versions may then differ wherever a run executes this anchor.
//!
//! Example:
//!
//! ```text
//! start(%x: i32): br_if %x, slow, fast
//! slow: %a = call @f(%x); return %a
//! fast: %b = call @g(%x); return %b
//! ```
//!
//! Suppose that the operand of the call of `@f` is not proved. No run that passes `fast` executes
//! this call, so entries in `fast` hold. A run may reach the call from `start`, and the other
//! version may then behave differently. So entries in `start` and in `slow` do not hold.
//!
//! The law: let P be a point of a version, in a block that lies on no path of live edges from or to
//! the block of an unproved anchor. The entries at P are judged as if there was no such anchor.
//!
//! The argument: take any run of this version through P. Runs take live edges alone, which is a
//! fact of the version by itself. So the run executes no unproved anchor, before or after P. Every
//! step of the induction along this run is thus proved. By the induction, the other version
//! executes the same anchors on the same input, and none of them is unproved. A run that traps
//! before it reaches an unproved anchor does not execute it, and is not needed here: the law goes
//! by edges, and leaves such points out. Three results come from all steps together: the pending
//! traps, the blocks in which paths part, and the anchors that are met. All of them only grow with
//! further steps. So the argument may omit steps that this run does not take.

use super::checks::{Check, Finding};
use super::product::ProductFailure;
use super::version::ProvedVersion;
use ir::{Block, Inst};
use std::collections::{BTreeMap, BTreeSet};
use transition::certificate::TermId;
use transition::{Pair, Side};

/// An anchor whose step is not proved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnprovedAnchor {
    /// The anchor.
    pub anchor: Inst,
    /// The check that its step fails.
    pub finding: Finding,
    /// The classes that should have been equal, if the check compared classes.
    pub classes: Option<Pair<TermId>>,
}

/// All unproved anchors of a pair.
#[derive(Default)]
pub(crate) struct UnprovedAnchors {
    all: Vec<UnprovedAnchor>,
    /// The anchors.
    anchors: BTreeSet<Inst>,
    /// By finding: the index of the first anchor that has it.
    by_finding: BTreeMap<Finding, usize>,
    /// By version and block index: the index of the first unproved anchor from which or to which
    /// runs pass this block. Empty without unproved anchors.
    touched: Pair<Vec<Option<usize>>>,
}

impl UnprovedAnchors {
    /// Adds an anchor with a failed check, unless it is known.
    ///
    /// # Errors
    /// The failure, if a limit was exceeded. A limit is one of the whole pair.
    pub(crate) fn add(
        &mut self,
        anchor: Inst,
        failure: ProductFailure,
    ) -> Result<(), ProductFailure> {
        let ProductFailure { finding, classes } = failure;
        if finding.check == Check::Size {
            return Err(failure);
        }
        if self.anchors.insert(anchor) {
            self.by_finding.entry(finding).or_insert(self.all.len());
            self.all.push(UnprovedAnchor { anchor, finding, classes });
        }
        Ok(())
    }

    /// Whether this anchor is unproved.
    pub(crate) fn has(&self, anchor: Inst) -> bool {
        self.anchors.contains(&anchor)
    }

    /// All unproved anchors, in the order in which the proof met them.
    pub(crate) fn all(&self) -> &[UnprovedAnchor] {
        &self.all
    }

    /// The first unproved anchor with this finding.
    pub(crate) fn with(&self, finding: Finding) -> Option<&UnprovedAnchor> {
        self.by_finding.get(&finding).and_then(|index| self.all.get(*index))
    }

    /// An unproved anchor that runs through this block of a version may execute.
    pub(crate) fn touching(&self, side: Side, block: Block) -> Option<&UnprovedAnchor> {
        let index = self.touched[side].get(block.as_u32() as usize).copied().flatten()?;
        self.all.get(index)
    }

    /// Finds the blocks of both versions from which and to which live edges lead from and to
    /// unproved anchors. Cost: linear in both versions.
    pub(crate) fn spread(&mut self, versions: &Pair<ProvedVersion<'_, '_>>) {
        if self.all.is_empty() {
            return;
        }
        self.touched = versions.as_ref().map(|version| {
            let mut found = vec![None; version.f.block_bound()];
            // Each direction has marks of its own: a block met in one direction says nothing about
            // the blocks of the other direction.
            for onward in [true, false] {
                let mut met = vec![false; version.f.block_bound()];
                for (index, unproved) in self.all.iter().enumerate() {
                    let mut work = vec![version.f.inst_block(unproved.anchor)];
                    while let Some(block) = work.pop() {
                        let at = block.as_u32() as usize;
                        if !std::mem::replace(&mut met[at], true) {
                            found[at] = found[at].or(Some(index));
                            work.extend(neighbors(version, block, onward));
                        }
                    }
                }
            }
            found
        });
    }
}

/// The blocks that live edges lead to from a block (`onward`), or come from.
fn neighbors(version: &ProvedVersion<'_, '_>, block: Block, onward: bool) -> Vec<Block> {
    let f = version.f;
    match onward {
        true => version.live_targets(f.terminator(block)).map(|e| f.target(e).block).collect(),
        false => version.live_into(block).map(|e| f.inst_block(e.inst)).collect(),
    }
}
