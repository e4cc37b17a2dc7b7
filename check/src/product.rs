//! Both versions side by side: they execute the same anchors in the same order, and leaves agree.
//!
//! By induction over the anchors executed: before each anchor, every leaf that both versions bind
//! and that both have holds the same in both; memory and effects so far are the same. Then values
//! of one class are equal across versions, for both are the same function of leaves that agree.

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

/// One way on from an anchor, along both versions.
pub(super) struct Onward<'l> {
    pub(super) lines: [Line<'l>; 2],
}

/// Both versions, with their lines.
pub(super) struct Product<'a, 'c> {
    pub(super) terms: Rc<Terms<'c>>,
    pub(super) versions: [Version<'a, 'c>; 2],
    pub(super) lines: [Lines; 2],
    /// By version: blocks that some line runs through to an end which lines from their points do
    /// not have.
    pub(super) shared: [FixedBitSet; 2],
    /// The anchors that are reached, in the order they were met.
    pub(super) reached: Vec<Inst>,
    pub(super) is_reached: FixedBitSet,
}

/// A check of the product that failed: where two classes should have been equal, those.
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
    /// Cost: linear in both versions.
    pub(super) fn new(
        terms: Rc<Terms<'c>>,
        versions: [Version<'a, 'c>; 2],
        anchors: &FixedBitSet,
        passed: &[Inst],
    ) -> Product<'a, 'c> {
        let is_branch =
            |v: &Version<'_, '_>, i: Inst| v.f.has_inst(i) && v.target_for(i, 0).is_some();
        let passed = passed.iter().copied().filter(|i| versions.iter().any(|v| is_branch(v, *i)));
        let passed: Rc<BTreeSet<Inst>> = Rc::new(passed.collect());
        let lines = [0, 1].map(|side| Lines::new(&versions[side], anchors, Rc::clone(&passed)));
        let shared = [0, 1].map(|side| FixedBitSet::with_capacity(versions[side].f.block_bound()));
        let is_reached = FixedBitSet::with_capacity(anchors.len());
        Product { terms, versions, lines, shared, reached: Vec::new(), is_reached }
    }

    /// Whether lines may go on past branches.
    pub(super) fn passes_branches(&self) -> bool {
        !self.lines[0].passed.is_empty()
    }

    /// Proves the relation inductive. Cost: linear in both versions; per way on, the parameters it
    /// binds.
    pub(super) fn prove(&mut self, anchors: &FixedBitSet) -> Result<(), Failure> {
        self.check_anchors(anchors)?;
        let mut bindings = [Bindings::new(self.terms.len()), Bindings::new(self.terms.len())];
        let mut met: Vec<Inst> = Vec::new();
        let mut shared = std::mem::take(&mut self.shared);
        let mut follow = |product: &Self, onward: &Onward<'_>| {
            for (line, shared) in onward.lines.iter().zip(&mut shared) {
                shared.extend(line.shared().map(|block| block.as_u32() as usize));
            }
            product.check_leaves(onward, &mut bindings)
        };
        if let Some(onward) = self.start()? {
            follow(self, &onward)?;
            met.push(onward.lines[0].anchor);
        }
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
        self.shared = shared;
        [0, 1].into_iter().try_for_each(|side| self.check_lone_writes(side))
    }

    /// Every anchor is one instruction of both versions; only a branch may have become a jump.
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

    /// The way from the start of the function.
    pub(super) fn start(&self) -> Result<Option<Onward<'_>>, Finding> {
        let entries = [0, 1].map(|side| self.versions[side].f.entry());
        let first = [0, 1].map(|side| {
            let version = &self.versions[side];
            self.lines[side].from(version, version.f.first_inst(entries[side]))
        });
        self.pair(first, Place::Whole)
    }

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

    /// The ways on from an anchor.
    pub(super) fn onward(&self, anchor: Inst) -> Result<Vec<Onward<'_>>, Finding> {
        let [a, b] = &self.versions;
        let place = Place::Inst(anchor);
        if let (Some(next_a), Some(next_b)) = (a.f.next_inst(anchor), b.f.next_inst(anchor)) {
            let lines = [self.lines[0].from(a, next_a), self.lines[1].from(b, next_b)];
            return Ok(self.pair(lines, place)?.into_iter().collect());
        }
        let live: [SmallVec<[Edge; 2]>; 2] =
            [0, 1].map(|s| self.versions[s].live_targets(anchor).collect());
        let alike = a.f.inst(anchor).opcode == b.f.inst(anchor).opcode;
        self.terms.require(Check::AnchorNext, !alike || live[0] == live[1], place)?;
        // Two branches take the same target; a branch and a jump pair each with the only one.
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

    fn check_operands(&self, anchor: Inst) -> Result<(), Failure> {
        let [a, b] = &self.versions;
        let (x, y) = (a.f.inst(anchor), b.f.inst(anchor));
        // A branch that became a jump has no condition left to compare.
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

    /// Whether memory may differ between the versions, in places that are written before anything
    /// sees them.
    pub(super) fn has_lone_writes(&self) -> bool {
        self.versions.iter().any(|v| !v.lone_writes.is_empty())
    }

    /// The anchors that lines with lone writes lead to.
    pub(super) fn behind_lone_writes(&self) -> BTreeSet<Inst> {
        let sides = self.versions.iter().zip(&self.lines);
        let behind = |(version, lines): (&Version<'_, '_>, &Lines)| -> Vec<Inst> {
            let writes = version.lone_writes.iter();
            writes.filter_map(|inst| lines.from(version, *inst)).map(|line| line.anchor).collect()
        };
        sides.flat_map(behind).collect()
    }

    /// Whether both versions have the same memory before an anchor.
    pub(super) fn has_same_memory(&self, anchor: Inst) -> bool {
        let [one, other] = [0, 1].map(|side| self.versions[side].memory_before(anchor));
        !self.has_lone_writes() || (one == other && one != NO_TERM)
    }

    /// Memory is the same in both versions before an anchor by which it can be seen: all but
    /// branches, and reads and writes that cannot trap.
    fn check_memory(&self, anchor: Inst) -> Result<(), Failure> {
        let opcode = self.versions[0].f.inst(anchor).opcode;
        let is_control = matches!(opcode, Opcode::Jump | Opcode::BrIf | Opcode::Switch);
        let is_access = opcode.is_effect_free() || self.versions.iter().all(|v| v.is_write(anchor));
        let is_blind =
            is_control || (is_access && (0..2).any(|side| self.is_harmless(side, anchor)));
        if is_blind || !self.has_lone_writes() {
            return Ok(());
        }
        let memory = [0, 1].map(|side| self.versions[side].memory_before(anchor));
        self.require_equal(Check::AnchorMemory, memory, Place::Inst(anchor))
    }

    /// A write that is no anchor cannot trap; or the next anchor traps in both versions whenever it
    /// would, and finds in the other the memory that it finds. If what either depends on is bound
    /// anew on the line there, the line has come back above the write: then the anchor has passed
    /// since that was bound before, and the write cannot trap.
    fn check_lone_writes(&self, side: usize) -> Result<(), Failure> {
        let [version, other] = [side, 1 - side].map(|s| &self.versions[s]);
        for &inst in &version.lone_writes {
            let line = self.lines[side].from(version, inst);
            let traps_next = line.is_some_and(|line| {
                let memory = [version.memory_before(inst), other.memory_before(line.anchor)];
                version.traps_like(inst, line.anchor)
                    && memory[0] == memory[1]
                    && memory[0] != NO_TERM
            });
            // Where another line runs through its block to another end (`shared`), this one does
            // not say what follows it.
            let strays = self.shared[side].contains(version.f.inst_block(inst).as_u32() as usize);
            let fits = (self.is_harmless(side, inst) || traps_next) && !strays;
            self.terms.require(Check::LoneWrite, fits, Place::Inst(inst))?;
        }
        Ok(())
    }

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

    /// The leaves bound along two lines agree where both lines end, if both versions have them
    /// there.
    fn check_leaves(&self, onward: &Onward<'_>, bound: &mut [Bindings; 2]) -> Result<(), Failure> {
        for side in [0, 1] {
            bound[side].enter(&self.versions[side], &onward.lines[side]);
            bound[side].check_work(&self.versions[side])?;
        }
        for side in [0, 1] {
            for &leaf in &bound[side].leaves {
                if side == 1 && bound[0].get(leaf).is_some() {
                    continue;
                }
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
                // Memory is the same in both versions at every anchor, whatever its classes, if all
                // writes are anchors.
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

    /// Whether an instruction of a version cannot trap with the operands it has.
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
