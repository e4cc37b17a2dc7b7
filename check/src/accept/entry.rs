//! One entry: source and target point correspond, and the compensation code computes the contents
//! of the target version.
//!
//! Classes of values are in terms of leaves, and a leaf of the two versions agrees at an *anchor*,
//! not at the points of an entry. The path from the source point to the anchor may bind leaves.
//! Example: at the end of a loop body, before `jump head(%n)`, the leaf of the parameter `%p` of
//! `head` is bound once more on the path to the anchor in `head`. A target point in `head` has the
//! new contents of `%p`, which the source version still holds in `%n`. So every operand has two
//! classes:
//!
//! - *here*: in terms of the leaves at the source point;
//! - *far*: in terms of the leaves at the anchor. The values of the target version have these
//!   classes.
//!
//! An operand fits a class of the target version if its far class is that class, or if that class
//! is a leaf which the path binds to the here class. If the path binds nothing, the two classes are
//! the same.
//!
//! An entry repeats most of the entry before it: in a straight line, neighboring points have the
//! same values but for a few. Two facts about a value *carry over* from one entry to the next, if
//! the paths of both entries bind nothing, and if each point of the next entry stands in the same
//! block as the point of the last entry, not above it:
//!
//! - A value that both entries require is available at the next source point. Its definition
//!   dominates the last point, where it was available. The next point stands below the last point
//!   in the same block.
//! - A value that both entries assign to itself is right. It is available at the next target point
//!   for the same reason. Where nothing is bound, its class in either version depends on no point,
//!   and the two classes were compared. It remains to check that the next entry requires the value.
//!   So a value that the next entry requires no longer is judged anew.
//!
//! All else is judged for each entry: order, steps, memory, and values assigned from another value
//! or from a step. An entry that fails a check carries nothing over.
//!
//! Neither fact needs a look at a value in both lists. In two lists of one store
//! ([`ValueList::differences`]), parts with the same number are the same part, whose words never
//! change. So the comparison passes them by their numbers. The values that an entry assigns to
//! themselves are the provided values, without the few values assigned from elsewhere. A value is
//! new to it if it is provided for the first time, or if the last entry assigned it from elsewhere
//! (`a_value_that_is_no_longer_computed_is_judged_again`). Each list in a store ascends: a store
//! neither takes nor makes another list (`what_no_maker_makes_is_not_packed`).
//!
//! The checks run in this order: source point, target point, required values, steps, memory,
//! assignments. Liveness follows later, for all entries together (`live`).

use super::assume::Assumes;
use super::checks::{Check, Finding, Place};
use super::paths::{AnchorPath, Bindings};
use super::product::CrossProduct;
use super::traps::PendingTraps;
use super::version::ProvedVersion;
use fixedbitset::FixedBitSet;
use ir::eval::is_safe_divisor;
use ir::{Block, Imm, Inst, Opcode, Point, Type, Value};
use smallvec::SmallVec;
use transition::certificate::{EntryFacts, NO_TERM, TermId, TermKind};
use transition::mapping::{Assign, EntryCode, Operand, SharedEntry, Step, ValueList};
use transition::{Pair, Side};

/// The two classes of an operand; [`NO_TERM`] where one is unknown.
#[derive(Clone, Copy)]
struct Class {
    here: TermId,
    far: TermId,
}

const UNKNOWN: Class = Class { here: NO_TERM, far: NO_TERM };

/// Judges the entries of one mapping, in order. The tables are kept between entries, so that an
/// entry costs its own size.
pub(crate) struct Judge<'r, 'a, 'c> {
    product: &'r CrossProduct<'a, 'c>,
    traps: &'r PendingTraps,
    assumes: &'r Assumes,
    source: Side,
    /// The leaves that the path from the source point binds.
    pub(crate) bindings: Bindings,
    /// Of each step of the current entry so far: the classes and the type of its result.
    steps: Vec<(Class, Option<Type>)>,
    /// Values of each version found available in whole blocks.
    available: Pair<AvailableValues>,
    /// By value index: whether the current entry requires the value.
    required: FixedBitSet,
    /// The proofs of the last entry, for the next entry.
    last: LastEntry,
}

/// The proofs of one entry, for the next entry (see the module documentation).
#[derive(Default)]
struct LastEntry {
    /// The source point and the target point; `None` if nothing carries over.
    at: Option<[Inst; 2]>,
    /// The values that it requires. They are those of [`Judge::required`], whatever `at` is.
    requires: ValueList<'static>,
    /// The values that it provides. It assigns them to themselves, except the values in `changed`.
    provides: ValueList<'static>,
    /// The values that it assigns from elsewhere, and the values that have to be judged again.
    changed: SmallVec<[Value; 8]>,
}

/// By value index: the last block in which the value was found available throughout. Neighboring
/// points have nearly the same values, and most entries follow the entry of a neighboring point.
struct AvailableValues(Vec<Option<Block>>);

impl AvailableValues {
    /// Whether a value of the version is available before an instruction; all edges count.
    fn has(&mut self, version: &ProvedVersion<'_, '_>, value: Value, at: Inst) -> bool {
        let (f, block) = (version.f, version.f.inst_block(at));
        let slot = &mut self.0[value.as_u32() as usize];
        if *slot == Some(block) {
            return true;
        }
        let available = version.full.available(f, value, at);
        // The result of an instruction of this block is available below that instruction alone.
        let is_whole = f.defining_inst(value).is_none_or(|inst| f.inst_block(inst) != block);
        if available && is_whole {
            *slot = Some(block);
        }
        available
    }
}

impl<'r, 'a, 'c> Judge<'r, 'a, 'c> {
    /// A judge for entries from the version `source`. Traps and assumptions belong to the target
    /// version.
    pub(crate) fn new(
        product: &'r CrossProduct<'a, 'c>,
        traps: &'r PendingTraps,
        assumes: &'r Assumes,
        source: Side,
    ) -> Self {
        let bindings = Bindings::new(product.terms.len());
        let bounds = product.versions.as_ref().map(|version| version.f.value_bound());
        Judge {
            product,
            traps,
            assumes,
            source,
            bindings,
            steps: Vec::new(),
            available: bounds.map(|bound| AvailableValues(vec![None; bound])),
            required: FixedBitSet::with_capacity(bounds[source]),
            last: LastEntry::default(),
        }
    }

    fn from(&self) -> &'r ProvedVersion<'a, 'c> {
        &self.product.versions[self.source]
    }

    fn to(&self) -> &'r ProvedVersion<'a, 'c> {
        &self.product.versions[self.source.other()]
    }

    /// Judges everything about one entry but liveness. Cost: linear in its code, in the values
    /// that the last entry does not have, and in its two paths.
    ///
    /// # Errors
    /// The first check that fails.
    pub(crate) fn check(
        &mut self,
        point: Point,
        shared: &SharedEntry,
        facts: &EntryFacts,
    ) -> Result<(), Finding> {
        let Some(path) = self.check_source(point)? else { return Ok(()) };
        let entry = &shared.code();
        // Before the values: the classes of a target point in another gap mean nothing at this
        // anchor.
        self.check_target(point, &path, entry.target.inst(), shared.lands_alone())?;
        self.bindings.enter(self.from(), &path);
        self.bindings.check_work(self.from())?;
        let place = [point.inst(), entry.target.inst()];
        // Taken: an entry that fails a check proves nothing for the next one.
        let carries = self.last.at.take().is_some_and(|last| self.is_below(last, place));
        if !carries {
            self.forget();
        }
        let mut is_proved = self.check_requires(point, shared)?;
        self.steps.clear();
        // The far classes are judged at the block of the anchor.
        let far = self.from().f.inst_block(path.anchor);
        for (index, step) in entry.steps.iter().enumerate() {
            self.check_step(point, entry, index, step, facts, far)?;
        }
        self.check_memory(point, entry, facts, far)?;
        is_proved &= self.check_assigns(shared, entry, far)?;
        self.last.at = Some(place).filter(|_| is_proved && self.bindings.is_empty());
        Ok(())
    }

    /// Whether what was proved for an entry between two points holds for this one as well: its
    /// points stand in the same blocks, not above those, and its path binds nothing.
    fn is_below(&self, last: [Inst; 2], place: [Inst; 2]) -> bool {
        let below = |version: &ProvedVersion<'_, '_>, last: Inst, at: Inst| {
            let f = version.f;
            f.has_inst(at)
                && f.inst_block(last) == f.inst_block(at)
                && (last == at || f.stands_before(last, at))
        };
        self.bindings.is_empty()
            && below(self.from(), last[0], place[0])
            && below(self.to(), last[1], place[1])
    }

    /// Forgets the proofs of the last entry.
    fn forget(&mut self) {
        let last = std::mem::take(&mut self.last);
        for value in last.requires.values().iter() {
            let index = value.as_u32() as usize;
            // A forged entry may require values that the version lacks.
            if index < self.required.len() {
                self.required.remove(index);
            }
        }
    }

    /// Proves [`Check::SourcePoint`], the source point is an instruction of the source version;
    /// [`Check::AnchorsProved`], no run through it executes an unproved anchor; and
    /// [`Check::SourceReached`], it lies on a path to one anchor that the product has met. Without
    /// the last check, the proof of the product would say nothing about the anchor that follows the
    /// point.
    ///
    /// For an unproved anchor, the finding of the anchor is returned, which says more.
    ///
    /// Returns the path from the source point. `None` only in experiments that leave the check out.
    fn check_source(&self, point: Point) -> Result<Option<AnchorPath<'r>>, Finding> {
        let (from, inst) = (self.from(), point.inst());
        let place = Place::Inst(inst);
        self.product.terms.require(Check::SourcePoint, from.f.has_inst(inst), place)?;
        // For code that never runs, any entry would be right. Such an entry is rejected all the
        // same: it would count as a feasible point.
        let is_live = from.f.has_inst(inst) && from.live().has(from.f.inst_block(inst));
        let home = is_live.then(|| from.f.inst_block(inst));
        let unproved = home.and_then(|b| self.product.unproved.touching(self.source, b));
        if let Some(unproved) = unproved {
            let proved = self.product.terms.require(Check::AnchorsProved, false, place);
            proved.map_err(|_| unproved.finding)?;
        }
        let path = is_live.then(|| self.product.paths[self.source].from(from, inst)).flatten();
        let met = path.filter(|l| self.product.is_reached.contains(l.anchor.as_u32() as usize));
        // A point that is no instruction has failed `SourcePoint` before. Here it counts as
        // reached, so that each check has its own failures when the other check is left out.
        let reached = met.is_some() || !from.f.has_inst(inst);
        self.product.terms.require(Check::SourceReached, reached, place).map(|()| met)
    }

    /// Proves [`Check::TargetPoint`], the target point lies in the gap before the same anchor, and
    /// every run through the gap passes it; [`Check::TrapPassed`]; and [`Check::AssumePassed`]. The
    /// first stops a transition that skips or repeats an effect, or that lands on an arm which the
    /// run of the target version did not take. An activation that waits for others is in no gap.
    fn check_target(
        &self,
        point: Point,
        path: &AnchorPath<'r>,
        inst: Inst,
        lands_alone: bool,
    ) -> Result<(), Finding> {
        let to = self.to();
        let place = Place::Inst(inst);
        let exists = to.f.has_inst(inst) && to.live().has(to.f.inst_block(inst));
        let landing =
            exists.then(|| self.product.paths[self.source.other()].from(to, inst)).flatten();
        // If no block on the path from the target point has another predecessor, then the anchor is
        // reached through the target point alone. By the product, a run of the target version
        // reaches this anchor, so it passes the target point.
        let passed = landing
            .as_ref()
            .is_some_and(|l| l.anchor == path.anchor && !l.crossings().any(|c| c.joins));
        self.product.terms.require(Check::TargetPoint, passed && lands_alone, place)?;
        // Landing after a trap that the source version has not passed would continue a run that has
        // ended in the target version ([`PendingTraps::skips`]).
        let skips = |landing| self.traps.skips(self.product, point.inst(), path, inst, landing);
        self.product.terms.require(
            Check::TrapPassed,
            !landing.as_ref().is_some_and(skips),
            place,
        )?;
        // Where such an assumption has failed, the target version has left and never passes the
        // point, and code behind the point may rest on it (`assume`).
        let assumed = exists && self.assumes.precede(to.f, inst);
        self.product.terms.require(Check::AssumePassed, !assumed, place)
    }

    /// Proves [`Check::Requires`]: the required values ascend and are available at the source
    /// point. An unavailable value would be read from a register that was never written.
    ///
    /// Returns whether they do. It is `false` without a finding only in experiments that leave the
    /// check out. Values that the last entry requires as well are available.
    fn check_requires(&mut self, point: Point, entry: &SharedEntry) -> Result<bool, Finding> {
        let (from, requires) = (self.from(), entry.requires());
        // All edges count here (`full`): an engine goes by the text of the version, which knows
        // nothing of excluded edges.
        let available = &mut self.available[self.source];
        let mut is_available =
            |value: Value| from.f.has_value(value) && available.has(from, value, point.inst());
        let mut fits = requires.ascends();
        let LastEntry { requires: last, changed, .. } = &mut self.last;
        last.differences(&requires, |value, is_new| {
            let index = value.as_u32() as usize;
            if index < self.required.len() {
                self.required.set(index, is_new);
            }
            fits &= !is_new || is_available(value);
            // An assignment of such a value is judged again, and fails
            // (`each_entry_lists_its_own_values`).
            changed.extend((!is_new).then_some(value));
        });
        last.become_copy(&requires);
        if !fits {
            self.last.provides = ValueList::default();
            let mut last = None;
            for &value in requires.values().iter() {
                let fits =
                    is_available(value) && last.replace(value).is_none_or(|l: Value| l < value);
                self.product.terms.require(Check::Requires, fits, Place::Value(value))?;
            }
        }
        Ok(fits)
    }

    /// The classes and the type of an operand. A value without a type is unknown, in experiments
    /// that leave checks out.
    ///
    /// # Errors
    /// [`Check::StepOrder`], when the operand is the result of this step or of a later step, or a
    /// value that is not required. Engines keep the required values alive and no others.
    fn operand(&self, operand: Operand, far: Block) -> Result<(Class, Option<Type>), Finding> {
        let value = match operand {
            Operand::Step(index) => {
                let known = self.steps.get(index as usize).copied();
                self.product.terms.require(
                    Check::StepOrder,
                    known.is_some(),
                    Place::Step(index),
                )?;
                return Ok(known.unwrap_or((UNKNOWN, None)));
            }
            Operand::Source(value) => value,
        };
        let listed = self.required.contains(value.as_u32() as usize);
        self.product.terms.require(Check::StepOrder, listed, Place::Value(value))?;
        let from = self.from();
        if !from.f.has_value(value) {
            return Ok((UNKNOWN, None));
        }
        let here = from.class(value);
        Ok((Class { here, far: self.unaffected(here, far) }, Some(from.f.value_type(value))))
    }

    /// A class at the source point as a class at the anchor; [`NO_TERM`] if the path may bind a
    /// leaf that it depends on, or if one of its leaves is not available at the anchor.
    fn unaffected(&self, here: TermId, far: Block) -> TermId {
        let from = self.from();
        let same = self.bindings.is_empty()
            || (!self.bindings.affects(from, here) && from.is_supported_at(here, far));
        if same { here } else { NO_TERM }
    }

    /// Whether an operand has the contents that the class `wanted` has at the anchor.
    fn fits_far(&self, class: Class, wanted: TermId, far: Block) -> bool {
        if wanted == NO_TERM {
            return false;
        }
        // The path binds the leaf `wanted` to the class of the operand at the source point. The
        // leaf must be available at the anchor: a leaf of an earlier block on the path might not
        // be.
        let becomes = || {
            self.bindings.get(wanted) == Some(class.here)
                && self.from().is_supported_at(wanted, far)
        };
        class.far == wanted || (class.here != NO_TERM && becomes())
    }

    /// Judges one step, and records the classes of its result.
    ///
    /// - [`Check::StepShape`]: the step is an operation on values, and its operands have the right
    ///   types.
    /// - [`Check::StepTerm`]: the step computes the terms that the facts name. The facts are hints:
    ///   a forged one fails here.
    /// - [`Check::StepTrap`]: the step cannot trap. Compensation code that traps would end a run
    ///   which the target version continues.
    fn check_step(
        &mut self,
        point: Point,
        entry: &EntryCode<'_>,
        index: usize,
        step: &Step,
        facts: &EntryFacts,
        far: Block,
    ) -> Result<(), Finding> {
        let place = Place::Step(index as u32);
        let mut classes: SmallVec<[Class; 3]> = SmallVec::new();
        let mut types: SmallVec<[Type; 3]> = SmallVec::new();
        for arg in &step.args {
            let (class, ty) = self.operand(*arg, far)?;
            classes.push(class);
            types.extend(ty);
        }
        self.product.terms.require(Check::StepShape, step.accepts(&types), place)?;
        let at = |facts: &[TermId]| facts.get(index).copied().unwrap_or(NO_TERM);
        let here = at(&facts.here);
        // A path that binds nothing has one set of leaves, and the far class is the here class. A
        // fact that claims another is ignored: no check below would look at it
        // (`a_far_term_without_a_crossing_is_not_believed`).
        let there = if self.bindings.is_empty() { here } else { at(&facts.far) };
        // One of the two terms is enough, since a step may make sense in one set of leaves alone.
        // Operands of the here term are compared at the source point; operands of the far term may
        // also become leaves of the path.
        let fits = (here != NO_TERM || there != NO_TERM)
            && (here == NO_TERM
                || self.computes(step, here, |n, wanted| classes[n].here == wanted))
            && (there == NO_TERM
                || self.bindings.is_empty()
                || self.computes(step, there, |n, wanted| self.fits_far(classes[n], wanted, far)));
        self.product.terms.require(Check::StepTerm, fits, place)?;
        let cannot_trap =
            !step.opcode.can_trap() || self.repeats(step, &classes, [here, there], point, entry);
        self.product.terms.require(Check::StepTrap, cannot_trap, place)?;
        let [here, there] = [here, there].map(|t| self.product.terms.class(t));
        // Without a far term, the result may still mean the same at the anchor. Later steps and
        // assignments need its far class.
        let there =
            if there == NO_TERM && here != NO_TERM { self.unaffected(here, far) } else { there };
        self.steps.push((Class { here, far: there }, step.opcode.result_type(step.ty)));
        Ok(())
    }

    /// Proves [`Check::Replay`] for every replayed write, and [`Check::EntryMemory`]: after the
    /// replays, memory equals the memory of the target version at the target point. Without them,
    /// the run would continue with a store missing, a store too many, or a trap in compensation
    /// code.
    ///
    /// A replay cannot trap, because an access of at least its bytes at its address has passed
    /// before the source point.
    fn check_memory(
        &self,
        point: Point,
        entry: &EntryCode<'_>,
        facts: &EntryFacts,
        far: Block,
    ) -> Result<(), Finding> {
        let terms = &self.product.terms;
        // The replays form a chain: each writes to the memory that the replays before it have left.
        let mut memory = self.from().memory_before(point.inst());
        for (index, replay) in entry.replays.iter().enumerate() {
            let place = Place::Inst(replay.inst);
            let mut classes: SmallVec<[TermId; 3]> = SmallVec::new();
            for arg in &replay.args {
                classes.push(self.operand(*arg, far)?.0.here);
            }
            // The operands of the term include its memory, so a replay in another order is another
            // term.
            let id = facts.replays.get(index).copied().unwrap_or(NO_TERM);
            let does = matches!(terms.kind(id), Some(TermKind::Op { opcode, ty, imm, args })
                if (*opcode, *ty, *imm) == (replay.opcode, replay.ty, replay.imm)
                    && args.split_last() == Some((&memory, &classes[..])));
            // Replays need a path that binds nothing. Their terms are in terms of the source point,
            // but the memory of the target version is in terms of the anchor.
            terms.require(Check::Replay, does && self.bindings.is_empty(), place)?;
            terms.require(Check::Replay, self.from().has_accessed(id, point.inst()), place)?;
            memory = terms.class(id);
        }
        let wanted = self.to().memory_before(entry.target.inst());
        let class = Class { here: memory, far: self.unaffected(memory, far) };
        let same = self.fits_far(class, wanted, far);
        terms.require(Check::EntryMemory, same, Place::Whole)
    }

    /// Whether a step is the operation of a term. `fits` tells whether the operand of the step with
    /// this index is of a class.
    fn computes(&self, step: &Step, id: TermId, fits: impl Fn(usize, TermId) -> bool) -> bool {
        let Some(TermKind::Op { opcode, ty, imm, args }) = self.product.terms.kind(id) else {
            return false;
        };
        // A step has no immediate but the bits of a constant. Operations with other immediates read
        // or write memory, and steps must not.
        let same_imm = match imm {
            Imm::None => step.opcode != Opcode::Const,
            Imm::Bits(bits) => step.opcode == Opcode::Const && *bits == step.bits,
            _ => false,
        };
        if *opcode != step.opcode || *ty != step.ty || !same_imm || args.len() != step.args.len() {
            return false;
        }
        // The facts name terms whose operands may stand in the other order, if the operation
        // commutes.
        let in_order = args.iter().enumerate().all(|(n, wanted)| fits(n, *wanted));
        let last = args.len().wrapping_sub(1);
        in_order
            || (opcode.is_commutative()
                && args.iter().enumerate().all(|(n, wanted)| fits(last - n, *wanted)))
    }

    /// Whether a step whose operation may trap in general cannot trap here. One reason is enough:
    ///
    /// - its divisor is a constant that excludes a trap;
    /// - its term is in the class of a constant; rules and folding allow this only for operations
    ///   that do not trap;
    /// - the source version has executed the same operation on the same operands before the source
    ///   point;
    /// - the target version has executed it before the target point, which a run reaches by
    ///   `TargetPoint`.
    fn repeats(
        &self,
        step: &Step,
        classes: &[Class],
        [here, far]: [TermId; 2],
        point: Point,
        entry: &EntryCode<'_>,
    ) -> bool {
        let terms = &self.product.terms;
        let divisor = classes.get(1).and_then(|c| terms.constant(c.here));
        let folded = [here, far].iter().any(|t| terms.constant(terms.class(*t)).is_some());
        is_safe_divisor(step.opcode, step.ty, divisor)
            || folded
            || self.from().has_executed(here, point.inst())
            || self.to().has_executed(far, entry.target.inst())
    }

    /// Proves [`Check::AssignShape`], the assigned values ascend and are available at the target
    /// point, and [`Check::AssignValue`], each receives the contents that it has there.
    ///
    /// Returns whether they do. It is `false` without a finding only in experiments that leave a
    /// check out. Values that the last entry assigns to themselves as well are not judged again.
    fn check_assigns(
        &mut self,
        shared: &SharedEntry,
        entry: &EntryCode<'_>,
        far: Block,
    ) -> Result<bool, Finding> {
        let (target, provides) = (entry.target, shared.provides());
        let mut fits = provides.ascends();
        let changed: SmallVec<[Value; 8]> = entry.changed.iter().map(|to| to.value).collect();
        // Values that the last entry did not assign to themselves.
        let mut last = std::mem::take(&mut self.last.provides);
        let mut new = std::mem::take(&mut self.last.changed);
        new.retain(|value| provides.has(*value));
        last.differences(&provides, |value, is_new| new.extend(is_new.then_some(value)));
        new.retain(|value| changed.binary_search(value).is_err());
        let to_itself = new.iter().map(|v| Assign { value: *v, from: Operand::Source(*v) });
        for assign in entry.changed.iter().copied().chain(to_itself) {
            fits = fits && self.check_assign(assign, target, far).is_ok();
        }
        last.become_copy(&provides);
        (self.last.provides, self.last.changed) = (last, changed);
        // Whether one fails is known. In order, the finding belongs to the first failing
        // assignment.
        if !fits {
            let mut last = None;
            for &assign in &shared.get().assigns {
                let value = assign.value;
                let ascends = last.replace(value).is_none_or(|l: Value| l < value);
                self.product.terms.require(Check::AssignShape, ascends, Place::Value(value))?;
                self.check_assign(assign, target, far)?;
            }
        }
        Ok(fits)
    }

    /// As [`Judge::check_assigns`], for one assignment, regardless of the order.
    fn check_assign(&mut self, assign: Assign, target: Point, far: Block) -> Result<(), Finding> {
        let (to, value, target) = (self.to(), assign.value, target.inst());
        let available = to.f.has_value(value)
            && to.f.has_inst(target)
            && self.available[self.source.other()].has(to, value, target);
        self.product.terms.require(Check::AssignShape, available, Place::Value(value))?;
        // The class of the value at the target point is also its class at the anchor. Its leaves
        // are bound in blocks that dominate the target point. The path from there to the anchor
        // only enters blocks below the target point, without coming back, so it binds none of these
        // leaves.
        let (class, _) = self.operand(assign.from, far)?;
        let fits = self.fits_far(class, to.class(value), far);
        self.product.terms.require(Check::AssignValue, fits, Place::Value(value))
    }
}
