//! Both versions side by side: they execute the same anchors in the same order, and leaves agree.
//!
//! The claim is proved by induction over the anchors that a run executes. Before each anchor:
//!
//! - both versions have executed the same anchors, with the same effects;
//! - every leaf that both versions have there holds the same contents in both;
//! - memory is the same in both, if the anchor can show it ([`Check::AnchorMemory`]).
//!
//! A class is one function of its leaves. So values of one class have the same contents in both
//! versions.
//!
//! The induction starts with the two paths from the function entry. Its step takes an anchor and a
//! pair of paths that leave it. The step shows that both paths end before the same anchor, and that
//! leaves bound on the paths agree before this anchor. An anchor needs one visit, because the claim
//! says the same for every execution of it. Loops therefore need no fixpoint here: the leaves *are*
//! the guess of the loop invariant, and the certificate makes it.
//!
//! A *lone write* is a write that is no anchor: one version alone executes it, or executes it
//! elsewhere. Between a lone write and the write that covers it, the memories of the versions
//! differ.

use super::lines::{Bindings, Line, Lines};
use super::terms::Terms;
use super::version::Version;
use crate::verdict::{Check, Finding, Place};
use fixedbitset::FixedBitSet;
use ir::eval::is_safe_divisor;
use ir::{Edge, Inst, Opcode};
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::rc::Rc;
use transition::certificate::{NO_TERM, TermId, TermKind};

/// A pair of paths, one of each version, that leave one anchor together.
pub(super) struct Onward<'l> {
    pub(super) lines: [Line<'l>; 2],
}

/// Both versions with their paths.
pub(super) struct Product<'a, 'c> {
    pub(super) terms: Rc<Terms<'c>>,
    pub(super) versions: [Version<'a, 'c>; 2],
    pub(super) lines: [Lines; 2],
    /// Per version: the blocks from which paths lead to different anchors (`shared` in `lines`).
    pub(super) shared: [FixedBitSet; 2],
    /// The anchors that runs may reach, in the order in which the proof met them.
    pub(super) reached: Vec<Inst>,
    pub(super) is_reached: FixedBitSet,
}

/// A failed check of the product, with the two classes that should have been equal, if it compared
/// classes. `refute` then looks for contents that tell them apart.
pub(super) struct Failure {
    pub(super) finding: Finding,
    pub(super) classes: Option<[TermId; 2]>,
}

impl From<Finding> for Failure {
    fn from(finding: Finding) -> Failure {
        Failure { finding, classes: None }
    }
}

impl<'a, 'c> Product<'a, 'c> {
    /// Prepares the paths of both versions. Cost: linear in both versions.
    pub(super) fn new(
        terms: Rc<Terms<'c>>,
        versions: [Version<'a, 'c>; 2],
        anchors: &FixedBitSet,
        passed: &[Inst],
    ) -> Product<'a, 'c> {
        // The certificate may list anything. An instruction that is no branch in either version is
        // dropped here, so that `passes_branches` is not true for nothing.
        let is_branch =
            |v: &Version<'_, '_>, i: Inst| v.f.has_inst(i) && v.target_for(i, 0).is_some();
        let passed = passed.iter().copied().filter(|i| versions.iter().any(|v| is_branch(v, *i)));
        let passed: Rc<BTreeSet<Inst>> = Rc::new(passed.collect());
        let lines = [0, 1].map(|side| Lines::new(&versions[side], anchors, Rc::clone(&passed)));
        let shared = [0, 1].map(|side| FixedBitSet::with_capacity(versions[side].f.block_bound()));
        let is_reached = FixedBitSet::with_capacity(anchors.len());
        Product { terms, versions, lines, shared, reached: Vec::new(), is_reached }
    }

    /// Whether paths may continue past branches that they decide.
    pub(super) fn passes_branches(&self) -> bool {
        !self.lines[0].passed.is_empty()
    }

    /// Proves the induction step for every anchor that runs may reach.
    ///
    /// Cost: linear in both versions, plus the number of parameters that each path binds.
    pub(super) fn prove(&mut self, anchors: &FixedBitSet) -> Result<(), Failure> {
        // First, because everything below assumes that both versions have each anchor.
        self.check_anchors(anchors)?;
        let mut bindings = [Bindings::new(self.terms.len()), Bindings::new(self.terms.len())];
        let mut met: Vec<Inst> = Vec::new();
        // Taken out while the loop borrows `self`; `follow` adds the shared blocks of every path.
        let mut shared = std::mem::take(&mut self.shared);
        let mut follow = |product: &Self, onward: &Onward<'_>| {
            for (line, shared) in onward.lines.iter().zip(&mut shared) {
                shared.extend(line.shared().map(|block| block.as_u32() as usize));
            }
            product.check_leaves(onward, &mut bindings)
        };
        // The base of the induction: arguments and memory at the function entry are leaves that
        // hold the same contents in both versions, since both run on the same input.
        if let Some(onward) = self.start()? {
            follow(self, &onward)?;
            met.push(onward.lines[0].anchor);
        }
        // Each anchor that some pair of paths ends at is visited once. The order does not matter:
        // no check below depends on another anchor.
        while let Some(anchor) = met.pop() {
            if self.is_reached.put(anchor.as_u32() as usize) {
                continue;
            }
            self.reached.push(anchor);
            self.check_operands(anchor)?;
            self.check_memory(anchor)?;
            for onward in self.onward(anchor)? {
                follow(self, &onward)?;
                met.push(onward.lines[0].anchor);
            }
        }
        // Only now are all shared blocks known, and a lone write must not stand in one of them.
        self.shared = shared;
        [0, 1].into_iter().try_for_each(|side| self.check_lone_writes(side))
    }

    /// Proves [`Check::AnchorSame`]: every anchor is the same instruction in both versions, with
    /// the same opcode, types, immediate, and number of operands. Without it, a certificate could
    /// pair a store with a load of the same id.
    ///
    /// One difference is allowed: a branch of one version may be a jump in the other, because a
    /// pass folded it. [`Product::onward`] then compares every live target of the branch with the
    /// target of the jump.
    fn check_anchors(&self, anchors: &FixedBitSet) -> Result<(), Finding> {
        let [a, b] = [self.versions[0].f, self.versions[1].f];
        for inst in anchors.ones().map(|i| Inst::from_u32(i as u32)) {
            let same = a.has_inst(inst) && b.has_inst(inst) && {
                let (x, y) = (a.inst(inst), b.inst(inst));
                let is_branch = |op| matches!(op, Opcode::Jump | Opcode::BrIf | Opcode::Switch);
                let folded = x.opcode != y.opcode && is_branch(x.opcode) && is_branch(y.opcode);
                let one_jumps = x.opcode == Opcode::Jump || y.opcode == Opcode::Jump;
                let alike = x.opcode == y.opcode
                    && x.targets.len() == y.targets.len()
                    && x.args.len() == y.args.len();
                x.ty == y.ty
                    && x.imm == y.imm
                    && x.results.len() == y.results.len()
                    && (alike || (folded && one_jumps))
            };
            self.terms.require(Check::AnchorSame, same, Place::Inst(inst))?;
        }
        Ok(())
    }

    /// The pair of paths from the function entry.
    pub(super) fn start(&self) -> Result<Option<Onward<'_>>, Finding> {
        let entries = [0, 1].map(|side| self.versions[side].f.entry());
        let first = [0, 1].map(|side| {
            let version = &self.versions[side];
            self.lines[side].from(version, version.f.first_inst(entries[side]))
        });
        self.pair(first, Place::Whole)
    }

    /// Proves [`Check::AnchorNext`]: both paths end before the same anchor. Without it, one version
    /// could skip an effect of the other.
    fn pair<'l>(
        &self,
        lines: [Option<Line<'l>>; 2],
        place: Place,
    ) -> Result<Option<Onward<'l>>, Finding> {
        match lines {
            [Some(x), Some(y)] if x.anchor == y.anchor => Ok(Some(Onward { lines: [x, y] })),
            _ => self.terms.require(Check::AnchorNext, false, place).map(|()| None),
        }
    }

    /// The pairs of paths that leave an anchor. Returns none if the anchor ends the function.
    ///
    /// # Errors
    /// [`Check::AnchorNext`], when the versions do not continue alike.
    pub(super) fn onward(&self, anchor: Inst) -> Result<Vec<Onward<'_>>, Finding> {
        let [a, b] = &self.versions;
        let place = Place::Inst(anchor);
        // Inside a block, each version continues with its own next instruction. Only a terminator
        // has none, and it continues with its edges below.
        if let (Some(next_a), Some(next_b)) = (a.f.next_inst(anchor), b.f.next_inst(anchor)) {
            let lines = [self.lines[0].from(a, next_a), self.lines[1].from(b, next_b)];
            return Ok(self.pair(lines, place)?.into_iter().collect());
        }
        // Edges excluded by a constant condition are left out. Equal operands (`check_operands`)
        // make both branches choose the edge of the same index, so the lists have to be equal.
        let live: [SmallVec<[Edge; 2]>; 2] =
            [0, 1].map(|s| self.versions[s].live_targets(anchor).collect());
        let alike = a.f.inst(anchor).opcode == b.f.inst(anchor).opcode;
        self.terms.require(Check::AnchorNext, !alike || live[0] == live[1], place)?;
        // Two branches pair edge by edge. A branch and a jump pair every live edge with the only
        // one of the jump: whichever edge the branch takes, the other version does the same
        // (`a_branch_folded_to_the_wrong_side_is_noticed`).
        let edges: SmallVec<[(Edge, Edge); 2]> = match alike {
            true => live[0].iter().copied().zip(live[1].iter().copied()).collect(),
            false => live[0].iter().flat_map(|x| live[1].iter().map(move |y| (*x, *y))).collect(),
        };
        let mut onward = Vec::with_capacity(edges.len());
        for (x, y) in edges {
            let lines = [self.lines[0].over(a, x), self.lines[1].over(b, y)];
            onward.extend(self.pair(lines, place)?);
        }
        Ok(onward)
    }

    /// Proves [`Check::AnchorOperands`]: the operands of an anchor have equal classes, so both
    /// versions execute it with the same contents. This stops a version that calls, stores or
    /// branches on something else.
    fn check_operands(&self, anchor: Inst) -> Result<(), Failure> {
        let [a, b] = &self.versions;
        let (x, y) = (a.f.inst(anchor), b.f.inst(anchor));
        // A folded branch has no condition to compare in the version with the jump. `onward` has
        // checked all its live targets instead.
        if x.opcode != y.opcode {
            return Ok(());
        }
        for (v, w) in x.args.iter().zip(&y.args) {
            self.require_equal(
                Check::AnchorOperands,
                [a.class(*v), b.class(*w)],
                Place::Inst(anchor),
            )?;
        }
        Ok(())
    }

    /// Whether some version has lone writes. Without any, all writes are anchors with equal
    /// operands, so memory is the same in both versions at corresponding points, by the induction
    /// itself.
    pub(super) fn has_lone_writes(&self) -> bool {
        self.versions.iter().any(|v| !v.lone_writes.is_empty())
    }

    /// The anchors before which some version executes lone writes, on the path that ends there.
    pub(super) fn behind_lone_writes(&self) -> BTreeSet<Inst> {
        let sides = self.versions.iter().zip(&self.lines);
        let behind = |(version, lines): (&Version<'_, '_>, &Lines)| -> Vec<Inst> {
            let writes = version.lone_writes.iter();
            writes.filter_map(|inst| lines.from(version, *inst)).map(|line| line.anchor).collect()
        };
        sides.flat_map(behind).collect()
    }

    /// Whether both versions have the same memory before an anchor: their classes of memory are
    /// equal.
    pub(super) fn has_same_memory(&self, anchor: Inst) -> bool {
        let [one, other] = [0, 1].map(|side| self.versions[side].memory_before(anchor));
        !self.has_lone_writes() || (one == other && one != NO_TERM)
    }

    /// Proves [`Check::AnchorMemory`]: memory is the same in both versions before an anchor that
    /// can show it. A call, a return, a growth of memory and a trap show all memory.
    ///
    /// Branches show none. Neither does a read or a write of one place that cannot trap: the result
    /// of a read has its memory in its term, so a differing memory makes a differing class.
    fn check_memory(&self, anchor: Inst) -> Result<(), Failure> {
        let opcode = self.versions[0].f.inst(anchor).opcode;
        let is_control = matches!(opcode, Opcode::Jump | Opcode::BrIf | Opcode::Switch);
        let is_access = opcode.is_effect_free() || self.versions.iter().all(|v| v.is_write(anchor));
        // One version suffices. Operands are equal and memory sizes are the same, so an access that
        // cannot trap in one version cannot trap in the other.
        let is_blind =
            is_control || (is_access && (0..2).any(|side| self.is_harmless(side, anchor)));
        if is_blind || !self.has_lone_writes() {
            return Ok(());
        }
        let memory = [0, 1].map(|side| self.versions[side].memory_before(anchor));
        self.require_equal(Check::AnchorMemory, memory, Place::Inst(anchor))
    }

    /// Proves [`Check::LoneWrite`]: a lone write cannot trap; or, if it traps, the other version
    /// traps too and shows the same memory. Without this check, a deleted store that trapped would
    /// make one version trap and the other not.
    ///
    /// The write is harmless, if an access at its address has passed before. Otherwise the next
    /// anchor has to be such an access: it then traps in the other version whenever the write
    /// would, with the memory that this version has before the write.
    ///
    /// The classes of address and memory are compared at two points: before the write and before
    /// the anchor. They mean the same contents at both, unless the path to the anchor binds a leaf
    /// that they depend on. The blocks that bind such a leaf dominate the write, so this path has
    /// come back above the write. From there the path reaches the anchor first, so the run passed
    /// the anchor after the latest binding and before this write. The access of the anchor did not
    /// trap then, so the write cannot trap either.
    fn check_lone_writes(&self, side: usize) -> Result<(), Failure> {
        let [version, other] = [side, 1 - side].map(|s| &self.versions[s]);
        for &inst in &version.lone_writes {
            let line = self.lines[side].from(version, inst);
            let traps_next = line.is_some_and(|line| {
                // The memory of the other version before its anchor is the one that its trap shows.
                let memory = [version.memory_before(inst), other.memory_before(line.anchor)];
                version.traps_like(inst, line.anchor)
                    && memory[0] == memory[1]
                    && memory[0] != NO_TERM
            });
            // In a shared block, control may reach another anchor than the one on this path, so the
            // path does not tell which anchor follows the write
            // (`no_version_writes_alone_where_lines_part`).
            let strays = self.shared[side].contains(version.f.inst_block(inst).as_u32() as usize);
            let fits = (self.is_harmless(side, inst) || traps_next) && !strays;
            self.terms.require(Check::LoneWrite, fits, Place::Inst(inst))?;
        }
        Ok(())
    }

    /// Requires two classes to be equal. A missing term is equal to nothing, not even to another
    /// missing one: a value without a term is in code that was never checked.
    fn require_equal(
        &self,
        check: Check,
        classes: [TermId; 2],
        place: Place,
    ) -> Result<(), Failure> {
        let equal = classes[0] == classes[1] && classes[0] != NO_TERM;
        self.terms
            .require(check, equal, place)
            .map_err(|finding| Failure { finding, classes: Some(classes) })
    }

    /// Proves [`Check::LeafAgrees`] for one pair of paths: every leaf that a path binds holds the
    /// same contents in both versions before the anchor, if both versions have the leaf there. This
    /// stops a loop that passes another value around its back edge.
    fn check_leaves(&self, onward: &Onward<'_>, bound: &mut [Bindings; 2]) -> Result<(), Failure> {
        for side in [0, 1] {
            bound[side].enter(&self.versions[side], &onward.lines[side]);
            bound[side].check_work(&self.versions[side])?;
        }
        // A path may bind a leaf that the other path does not. In the other version, the leaf then
        // still holds its contents from the start of the path, which its own class stands for.
        for side in [0, 1] {
            for &leaf in &bound[side].leaves {
                // The first round has compared the leaves that both paths bind.
                if side == 1 && bound[0].get(leaf).is_some() {
                    continue;
                }
                // A version has a leaf at the anchor if the block that binds it dominates the
                // anchor. If one version does not have the leaf there, no value of this version
                // depends on it, and there is nothing to compare.
                let met = [0, 1].map(|s| {
                    let at = self.versions[s].f.inst_block(onward.lines[s].anchor);
                    self.versions[s].binders[leaf as usize]
                        .is_some_and(|home| self.versions[s].live().dominates(home, at))
                });
                if met != [true; 2] {
                    continue;
                }
                let values = [0, 1].map(|s| bound[s].get(leaf));
                let is_memory =
                    self.terms.get(leaf).is_some_and(|t| t.kind == TermKind::MemoryParam);
                // Without lone writes, memory is the same at every anchor, although its classes may
                // differ: one version may have a block more, and so a leaf more for memory. If one
                // path alone binds the leaf, the leaf of the other version is older memory, which
                // may differ (`memory_bound_in_one_version_alone_is_compared`).
                if is_memory && !self.has_lone_writes() && values.iter().all(Option::is_some) {
                    continue;
                }
                self.require_equal(
                    Check::LeafAgrees,
                    values.map(|class| class.unwrap_or(leaf)),
                    Place::Term(leaf),
                )?;
            }
        }
        Ok(())
    }

    /// Whether an instruction of a version cannot trap where it stands.
    ///
    /// Reasons: its opcode never traps; an access at the same address has passed; its class is a
    /// constant; or its divisor is a constant that excludes a trap. The third reason rests on the
    /// rules and on folding: they put an operation into the class of a constant only where it does
    /// not trap.
    pub(super) fn is_harmless(&self, side: usize, inst: Inst) -> bool {
        let version = &self.versions[side];
        let data = version.f.inst(inst);
        let folded = data.result().is_some_and(|v| version.constant(v).is_some());
        let divisor = data.args.get(1).and_then(|v| version.constant(*v));
        !data.opcode.can_trap()
            || version.is_vouched(inst)
            || (folded && data.opcode.is_value_determined())
            || is_safe_divisor(data.opcode, data.ty, divisor)
    }
}
