//! Both versions side by side: they execute the same anchors in the same order, and leaves agree.
//!
//! The claim is proved by induction over the anchors that a run executes. Before each anchor:
//!
//! - both versions have executed the same anchors, with the same effects;
//! - every leaf in both versions holds the same contents in both;
//! - memory is the same in both, if the anchor can show it ([`Check::AnchorMemory`]).
//!
//! A class is one function of its leaves. So values of one class have equal contents in both
//! versions.
//!
//! The induction starts with the two paths from the function entry. Its step takes an anchor and a
//! pair of paths that leave it. The step shows that both paths end before the same anchor, and that
//! leaves bound on the paths agree before this anchor. An anchor needs one visit, because the claim
//! covers every execution of the anchor. Loops therefore need no fixpoint here: the leaves *are*
//! the guess of the loop invariant, and the certificate makes it.
//!
//! An anchor whose step fails a check is *unproved*. The proof then speaks of the runs that do not
//! execute it; `unproved` finds the points where only such runs pass.
//!
//! A *lone write* is a write that is no anchor: one version alone executes it, or executes it
//! elsewhere, or both execute it between the same anchors. Between a lone write and the write that
//! covers it, the memories of the versions differ.

use super::accesses::CountedFrom;
use super::calls;
use super::checks::{Check, Finding, Place};
use super::paths::{AnchorPath, AnchorPaths, Bindings};
use super::terms::TermTable;
use super::unproved::UnprovedAnchors;
use super::version::ProvedVersion;
use fixedbitset::FixedBitSet;
use ir::eval::is_safe_divisor;
use ir::{Block, Edge, Inst, Module, Opcode};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use transition::certificate::{NO_TERM, TermId};
use transition::{Pair, Side};

/// A pair of paths, one of each version, that leave one anchor together and end before the next.
pub(crate) type PathPair<'l> = Pair<AnchorPath<'l>>;

/// Both versions with their paths.
pub(crate) struct CrossProduct<'a, 'c> {
    pub(crate) terms: Rc<TermTable<'c>>,
    pub(crate) versions: Pair<ProvedVersion<'a, 'c>>,
    pub(crate) paths: Pair<AnchorPaths>,
    /// The anchors that runs may reach, in the order in which the proof met them.
    pub(crate) reached: Vec<Inst>,
    pub(crate) is_reached: FixedBitSet,
    /// The anchors whose step is not proved, in the order in which the proof met them.
    pub(crate) unproved: UnprovedAnchors,
}

/// A failed check of the product, with the two classes that should have been equal, if it compared
/// classes. `refute` then looks for contents that tell them apart.
pub(crate) struct ProductFailure {
    pub(crate) finding: Finding,
    pub(crate) classes: Option<Pair<TermId>>,
}

/// An anchor at the end of a pair of paths, and whether both versions reach it alike.
type Arrival = (Inst, Result<(), ProductFailure>);

/// Classes that have to be equal for an anchor, each with its check and the place of a finding.
type ShownClasses = SmallVec<[(Check, Place, Pair<TermId>); 4]>;

impl From<Finding> for ProductFailure {
    fn from(finding: Finding) -> ProductFailure {
        ProductFailure { finding, classes: None }
    }
}

impl<'a, 'c> CrossProduct<'a, 'c> {
    /// Prepares the paths of both versions. Cost: linear in both versions.
    pub(crate) fn new(
        terms: Rc<TermTable<'c>>,
        versions: Pair<ProvedVersion<'a, 'c>>,
        anchors: &FixedBitSet,
    ) -> CrossProduct<'a, 'c> {
        let paths = versions.as_ref().map(|v| AnchorPaths::new(v, anchors));
        let is_reached = FixedBitSet::with_capacity(anchors.len());
        let (reached, unproved) = (Vec::new(), UnprovedAnchors::default());
        CrossProduct { terms, versions, paths, reached, is_reached, unproved }
    }

    /// Proves the induction step for every anchor that runs may reach. Anchors whose step fails are
    /// collected in `unproved`, and paths behind them are not walked.
    ///
    /// Cost: linear in both versions, plus the number of parameters that each path binds.
    pub(crate) fn prove(
        &mut self,
        module: &Module,
        anchors: &FixedBitSet,
    ) -> Result<(), ProductFailure> {
        // First, because everything below assumes that both versions have each anchor.
        self.check_anchors(module, anchors)?;
        let mut bindings = Pair::from_fn(|_| Bindings::new(self.terms.len()));
        let mut met: Vec<Arrival> = Vec::new();
        // By anchor: the classes to be compared on each path. Comparing all operands on each path
        // would be quadratic (`operands_of_an_anchor_with_many_paths_are_compared_once`).
        let mut apart: BTreeMap<Inst, ShownClasses> = BTreeMap::new();
        let mut follow = |product: &Self, start: Pair<Block>, onward: &PathPair<'_>| {
            product.check_leaves(start, onward, &mut bindings)?;
            let anchor = onward.before.anchor;
            let apart = apart.entry(anchor).or_insert_with(|| product.apart_at(anchor));
            bindings.before.add_work(apart.len());
            Ok((anchor, product.check_arrival(anchor, start, apart, &bindings)))
        };
        // The base of the induction: arguments and memory at the function entry are leaves that
        // hold the same contents in both versions, since both run on the same input.
        if let Some(onward) = self.start()? {
            let entries = self.versions.as_ref().map(|version| version.f.entry());
            met.push(follow(self, entries, &onward)?);
        }
        // Each anchor that some pair of paths ends at is visited once. The order does not matter:
        // checks below do not depend on other anchors.
        while let Some((anchor, arrival)) = met.pop() {
            if let Err(failure) = arrival {
                self.unproved.add(anchor, failure)?;
            }
            if self.is_reached.put(anchor.as_u32() as usize) {
                continue;
            }
            self.reached.push(anchor);
            match self.check_step(anchor, &mut follow) {
                Ok(next) => met.extend(next),
                Err(failure) => self.unproved.add(anchor, failure)?,
            }
        }
        self.check_merged()?;
        Side::BOTH.into_iter().try_for_each(|side| self.check_lone_writes(side))?;
        self.unproved.spread(&self.versions);
        Ok(())
    }

    /// Proves the step of the induction for one anchor, and returns the arrivals at the anchors
    /// that follow it.
    ///
    /// # Errors
    /// The first check that fails. The anchor is then *unproved* (`unproved`).
    fn check_step<F>(
        &self,
        anchor: Inst,
        mut follow: F,
    ) -> Result<SmallVec<[Arrival; 2]>, ProductFailure>
    where
        F: FnMut(&Self, Pair<Block>, &PathPair<'_>) -> Result<Arrival, ProductFailure>,
    {
        let start = self.blocks_of(anchor);
        self.onward(anchor)?.map(|paths| follow(self, start, &paths?)).collect()
    }

    /// Proves [`Check::AnchorSame`]: every anchor is the same instruction in both versions, with
    /// the same opcode, types, immediate, and number of operands. Without it, a certificate could
    /// pair a store with a load of the same id.
    ///
    /// One difference is allowed: a branch of one version may be a jump in the other version,
    /// because a pass folded it. [`CrossProduct::onward`] then compares every live target of the
    /// branch with the target of the jump. Another: a call through a fixed table may be a call of
    /// the function there ([`super::calls`]).
    fn check_anchors(&self, module: &Module, anchors: &FixedBitSet) -> Result<(), Finding> {
        let Pair { before: a, after: b } = self.versions.as_ref().map(|v| v.f);
        for inst in anchors.ones().map(|i| Inst::from_u32(i as u32)) {
            let same = a.has_inst(inst) && b.has_inst(inst) && {
                let (x, y) = (a.inst(inst), b.inst(inst));
                let is_branch = |op| matches!(op, Opcode::Jump | Opcode::BrIf | Opcode::Switch);
                let folded = x.opcode != y.opcode && is_branch(x.opcode) && is_branch(y.opcode);
                let one_jumps = x.opcode == Opcode::Jump || y.opcode == Opcode::Jump;
                let alike = x.opcode == y.opcode
                    && x.targets.len() == y.targets.len()
                    && x.args.len() == y.args.len();
                let fits = x.imm == y.imm && (alike || (folded && one_jumps));
                let is_resolved = || calls::is_resolved(module, &self.versions, inst);
                x.ty == y.ty && x.results.len() == y.results.len() && (fits || is_resolved())
            };
            self.terms.require(Check::AnchorSame, same, Place::Inst(inst))?;
        }
        Ok(())
    }

    /// The blocks of an anchor in both versions.
    fn blocks_of(&self, anchor: Inst) -> Pair<Block> {
        self.versions.as_ref().map(|version| version.f.inst_block(anchor))
    }

    /// Proves the rest of [`Check::MemoryMerge`]: some version binds the memory of every merged
    /// read. Each version checks the reads of memories that it binds. Without this check, a reason
    /// would stand in the table that nothing has looked at (`a_merged_read_has_a_binder`).
    fn check_merged(&self) -> Result<(), Finding> {
        for &id in &self.terms.merged {
            let memory = self.terms.read(id).map_or(usize::MAX, |read| read.memory as usize);
            let mut binders = self.versions.iter().map(|v| v.binders.get(memory));
            let fits = binders.any(|binder| matches!(binder, Some(Some(_))));
            self.terms.require(Check::MemoryMerge, fits, Place::Term(id))?;
        }
        Ok(())
    }

    /// The pair of paths from the function entry.
    pub(crate) fn start(&self) -> Result<Option<PathPair<'_>>, Finding> {
        let first = Pair::from_fn(|side| {
            let version = &self.versions[side];
            self.paths[side].from(version, version.f.first_inst(version.f.entry()))
        });
        self.pair(first, Place::Whole)
    }

    /// Proves [`Check::AnchorNext`]: both paths end before the same anchor. Without it, one version
    /// could skip an effect of the other version.
    fn pair<'l>(
        &self,
        paths: Pair<Option<AnchorPath<'l>>>,
        place: Place,
    ) -> Result<Option<PathPair<'l>>, Finding> {
        match paths {
            Pair { before: Some(x), after: Some(y) } if x.anchor == y.anchor => {
                Ok(Some(Pair::new(x, y)))
            }
            _ => self.terms.require(Check::AnchorNext, false, place).map(|()| None),
        }
    }

    /// The pairs of paths that leave an anchor, made one by one: together, the paths of a switch
    /// may enter any number of blocks. Empty if the anchor ends the function, or is unproved: the
    /// proof speaks of no run that executes such an anchor.
    ///
    /// # Errors
    /// [`Check::AnchorNext`], when the versions do not continue alike.
    pub(crate) fn onward(
        &self,
        anchor: Inst,
    ) -> Result<impl Iterator<Item = Result<PathPair<'_>, Finding>>, Finding> {
        let Pair { before: a, after: b } = &self.versions;
        let place = Place::Inst(anchor);
        let mut inside = None;
        let mut edges: SmallVec<[(Edge, Edge); 2]> = SmallVec::new();
        // Inside a block, each version continues with its own next instruction. Only a terminator
        // has no next instruction; it continues with its edges.
        match (a.f.next_inst(anchor), b.f.next_inst(anchor)) {
            _ if self.unproved.has(anchor) => {}
            (Some(next_a), Some(next_b)) => {
                let Pair { before, after } = &self.paths;
                let paths = Pair::new(before.from(a, next_a), after.from(b, next_b));
                inside = self.pair(paths, place)?;
            }
            _ => edges = self.edge_pairs(anchor)?,
        }
        let over = move |(x, y): (Edge, Edge)| {
            let paths = Pair::new(self.paths.before.over(a, x), self.paths.after.over(b, y));
            self.pair(paths, place).transpose()
        };
        Ok(inside.into_iter().map(Ok).chain(edges.into_iter().filter_map(over)))
    }

    /// The edges over which both versions leave a terminator together.
    fn edge_pairs(&self, anchor: Inst) -> Result<SmallVec<[(Edge, Edge); 2]>, Finding> {
        let Pair { before: a, after: b } = &self.versions;
        // Edges excluded by a constant condition are left out. Equal operands (`check_arrival`)
        // make both branches choose the edge of the same index, so the lists have to be equal.
        let live: Pair<SmallVec<[Edge; 2]>> =
            self.versions.as_ref().map(|v| v.live_targets(anchor).collect());
        let alike = a.f.inst(anchor).opcode == b.f.inst(anchor).opcode;
        let fits = !alike || live.before == live.after;
        self.terms.require(Check::AnchorNext, fits, Place::Inst(anchor))?;
        // Two branches pair edge by edge. A branch and a jump pair every live edge with the only
        // edge of the jump: whichever edge the branch takes, the other version does the same
        // (`a_branch_folded_to_the_wrong_side_is_noticed`).
        Ok(match alike {
            true => live.before.into_iter().zip(live.after).collect(),
            false => {
                let all = live.before.iter();
                all.flat_map(|x| live.after.iter().map(move |y| (*x, *y))).collect()
            }
        })
    }

    /// Proves [`Check::AnchorOperands`], the operands of an anchor have equal contents, and
    /// [`Check::AnchorMemory`], so has the memory that it can show, for one pair of paths that ends
    /// at the anchor. Without them, a version could call, store or branch on something else.
    ///
    /// Two classes that differ are compared once more, in terms of the leaves at the start of the
    /// paths. Example: one version branches on a parameter, and the other version on the value that
    /// the path to the branch passes to the parameter. Each pair of paths to the anchor is
    /// compared: another pair may bind something else, in both versions alike
    /// (`a_condition_of_the_next_round_is_another`).
    fn check_arrival(
        &self,
        anchor: Inst,
        start: Pair<Block>,
        apart: &ShownClasses,
        bound: &Pair<Bindings>,
    ) -> Result<(), ProductFailure> {
        for &(check, place, classes) in apart {
            let at_start =
                Pair::from_fn(|side| bound[side].resolve(&self.versions[side], classes[side]));
            let has_both = at_start.iter().all(|class| *class != NO_TERM);
            let ok = has_both && self.agree(anchor, at_start, start);
            // Classes of leaves that the paths bind refute nothing: the bound contents may make
            // them equal (`a_class_of_bound_leaves_refutes_nothing`).
            let classes = has_both.then_some(at_start);
            self.terms
                .require(check, ok, place)
                .map_err(|finding| ProductFailure { finding, classes })?;
        }
        Ok(())
    }

    /// The classes that have to be equal for an anchor and are not equal there: operands, and the
    /// memory unless the anchor shows no memory.
    fn apart_at(&self, anchor: Inst) -> ShownClasses {
        let at = self.blocks_of(anchor);
        let mut shown = self.shown_by(anchor);
        shown.retain(|(.., classes)| !self.agree(anchor, *classes, at));
        shown
    }

    /// Whether two classes that an anchor shows are equal for it. A branch tests whether its
    /// operand is zero, so `%x` and `ne %x, 0` choose the same edge
    /// (`a_branch_may_ask_whether_a_value_differs_from_zero`).
    fn agree(&self, anchor: Inst, classes: Pair<TermId>, at: Pair<Block>) -> bool {
        let is_branch = || self.versions.before.f.inst(anchor).opcode == Opcode::BrIf;
        let asked = || classes.map(|class| self.terms.zero_with(class));
        self.are_equal(classes, at) || (is_branch() && self.are_equal(asked(), at))
    }

    /// The classes that have to be equal for an anchor, each with its check: the operands, and the
    /// memory unless the anchor shows no memory.
    fn shown_by(&self, anchor: Inst) -> ShownClasses {
        let Pair { before: a, after: b } = &self.versions;
        let (x, y) = (a.f.inst(anchor), b.f.inst(anchor));
        // A folded branch has no condition to compare in the version with the jump. `onward` checks
        // all its live targets instead. The index of a call through a table has no counterpart in
        // the call of its target. Other anchors have the same number of operands in both versions.
        let operands = x.args.iter().zip(&y.args).zip(0..);
        let operands = operands.map(|((v, w), index)| {
            let classes = Pair::new(a.class(*v), b.class(*w));
            (Check::AnchorOperands, Place::Operand(anchor, index), classes)
        });
        let memory = (!self.is_blind(anchor)).then(|| {
            let classes = self.versions.as_ref().map(|v| v.memory_before(anchor));
            (Check::AnchorMemory, Place::Inst(anchor), classes)
        });
        operands.chain(memory).collect()
    }

    /// Whether an anchor shows no memory. A call, a return, a growth of memory and a trap show all
    /// memory.
    ///
    /// Branches show no memory. Neither does an assumption: where it fails, the run continues in
    /// another version by an entry, which brings memory into the state of that version. Neither
    /// does a read or a write of one place that cannot trap: the term of a read names its memory,
    /// so another memory gives another class.
    fn is_blind(&self, anchor: Inst) -> bool {
        let opcode = self.versions.before.f.inst(anchor).opcode;
        let is_control =
            matches!(opcode, Opcode::Jump | Opcode::BrIf | Opcode::Switch | Opcode::Assume);
        let is_access = opcode.is_effect_free() || self.versions.iter().all(|v| v.is_write(anchor));
        // One version suffices. Operands are equal and memory sizes are the same, so an access that
        // cannot trap in one version cannot trap in the other version.
        is_control
            || (is_access && Side::BOTH.into_iter().any(|side| self.is_harmless(side, anchor)))
    }

    /// The anchors before which some version executes lone writes, on the path that ends there.
    pub(crate) fn behind_lone_writes(&self) -> BTreeSet<Inst> {
        let behind = |(side, version): (Side, &ProvedVersion<'_, '_>)| -> Vec<Inst> {
            let writes = version.lone_writes.iter();
            let paths = writes.filter_map(|inst| self.paths[side].from(version, *inst));
            paths.map(|path| path.anchor).collect()
        };
        self.versions.sides().flat_map(behind).collect()
    }

    /// Whether both versions have the same memory before an anchor: their classes of memory are
    /// equal.
    pub(crate) fn has_same_memory(&self, anchor: Inst) -> bool {
        let Pair { before, after } = self.versions.as_ref().map(|v| v.memory_before(anchor));
        self.are_equal(Pair { before, after }, self.blocks_of(anchor))
    }

    /// Proves [`Check::LoneWrite`]: a lone write cannot trap; or, if it traps, the other version
    /// traps too and shows the same memory. Without this check, a deleted store that trapped would
    /// make only one version trap.
    ///
    /// The write is harmless if it is below the least size of its memory, or if an access at its
    /// address has passed before. Otherwise the next
    /// anchor has to be such an access: it then traps in the other version whenever the write
    /// would, with the memory that this version has before the write.
    ///
    /// The classes of address and memory are compared at two points: before the write and before
    /// the anchor. Their contents are the same at both points, because the path to the anchor binds
    /// none of their leaves. Both versions have these leaves before the anchor, so the leaves agree
    /// at the anchor ([`CrossProduct::are_equal`]).
    fn check_lone_writes(&self, side: Side) -> Result<(), ProductFailure> {
        let [version, other] = [side, side.other()].map(|s| &self.versions[s]);
        let mut bindings = Bindings::new(self.terms.len());
        for &inst in &version.lone_writes {
            let path = self.paths[side].from(version, inst);
            let traps_next = path.is_some_and(|path| {
                bindings.enter(version, &path);
                // The trap of the other version shows its memory before its anchor.
                let [own, shown] = [version.memory_before(inst), other.memory_before(path.anchor)];
                let stays = |class: TermId| !bindings.affects(version, class);
                let address_stays =
                    version.access(inst).is_some_and(|(address, _)| match address {
                        CountedFrom::Start => true,
                        CountedFrom::Of(class) => stays(class),
                    });
                version.traps_like(inst, path.anchor)
                    && address_stays
                    && stays(own)
                    && self.are_equal(Pair::new(own, shown), self.blocks_of(path.anchor))
            });
            let fits = self.is_harmless(side, inst) || traps_next;
            self.terms.require(Check::LoneWrite, fits, Place::Inst(inst))?;
        }
        Ok(())
    }

    /// Whether two classes have the same contents in both versions at corresponding places of these
    /// blocks. The answer is true for one class with all its leaves in both versions, since only
    /// such leaves agree. A missing term is equal to nothing, not even to another missing term: a
    /// value without a term is in code that was never checked.
    ///
    /// By a path argument, a version has the leaves of its own values. This test does without that
    /// argument: it fails with dominators that are too small. No forgery shows the difference while
    /// dominators are exact, which `dominators_are_those_of_the_ir` tests.
    fn are_equal(&self, classes: Pair<TermId>, at: Pair<Block>) -> bool {
        let has_leaves = |side: Side| self.versions[side].is_supported_at(classes.before, at[side]);
        classes.before == classes.after
            && classes.before != NO_TERM
            && Side::BOTH.into_iter().all(has_leaves)
    }

    /// Requires that two classes are equal ([`CrossProduct::are_equal`]).
    fn require_equal(
        &self,
        check: Check,
        classes: Pair<TermId>,
        at: Pair<Block>,
        place: Place,
    ) -> Result<(), ProductFailure> {
        self.terms
            .require(check, self.are_equal(classes, at), place)
            .map_err(|finding| ProductFailure { finding, classes: Some(classes) })
    }

    /// Proves [`Check::LeafAgrees`] for one pair of paths: every leaf that a path binds holds the
    /// same contents in both versions before the anchor, if both versions have the leaf there. It
    /// stops a loop that passes a wrong value around its back edge. The paths begin in the blocks
    /// `start`; the classes compared are in terms of the leaves there.
    fn check_leaves(
        &self,
        start: Pair<Block>,
        onward: &PathPair<'_>,
        bound: &mut Pair<Bindings>,
    ) -> Result<(), ProductFailure> {
        for (side, path) in onward.sides() {
            bound[side].enter(&self.versions[side], path);
            bound[side].check_work(&self.versions[side])?;
        }
        // A path may bind a leaf that the other path does not. In the other version, the leaf then
        // still holds its contents from the start of the path, which its own class stands for.
        for side in Side::BOTH {
            for &leaf in &bound[side].leaves {
                // The first round has compared the leaves that both paths bind.
                if side == Side::After && bound.before.get(leaf).is_some() {
                    continue;
                }
                // A version has a leaf at the anchor if the block that binds it dominates the
                // anchor. If one version lacks the leaf there, no value of this version depends on
                // the leaf, and the comparison is needless.
                let is_met = |(side, version): (Side, &ProvedVersion<'_, '_>)| {
                    let at = version.f.inst_block(onward[side].anchor);
                    version.binders[leaf as usize]
                        .is_some_and(|home| version.live().dominates(home, at))
                };
                if !self.versions.sides().all(is_met) {
                    continue;
                }
                let classes = bound.as_ref().map(|b| b.get(leaf).unwrap_or(leaf));
                self.require_equal(Check::LeafAgrees, classes, start, Place::Term(leaf))?;
            }
        }
        Ok(())
    }

    /// Whether an instruction of a version cannot trap where it stands.
    ///
    /// Reasons: its opcode never traps; an access at the same address has passed, or the access is
    /// below the least size of its memory; its class is a constant; or its divisor is a constant
    /// that excludes a trap. The third reason rests on the rules and on folding: they put an
    /// operation into the class of a constant only where it does not trap, because both sides of a
    /// rule trap alike ([`ir::rules::RULES`]).
    pub(crate) fn is_harmless(&self, side: Side, inst: Inst) -> bool {
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
