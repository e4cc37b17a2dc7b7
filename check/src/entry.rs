//! One entry: it starts and lands at corresponding points, and computes what the target version
//! has.

use super::lines::{Bindings, Line};
use super::product::Product;
use super::traps::Traps;
use super::version::Version;
use crate::verdict::{Check, Finding, Place};
use ir::eval::is_safe_divisor;
use ir::{Block, Imm, Opcode, Point, Type, Value};
use smallvec::SmallVec;
use transition::certificate::{EntryFacts, NO_TERM, TermId, TermKind};
use transition::mapping::{Entry, Operand, Step};

/// What an operand stands for: as leaves are at the source point, and as they are at the anchor.
#[derive(Clone, Copy)]
struct Class {
    here: TermId,
    far: TermId,
}

const UNKNOWN: Class = Class { here: NO_TERM, far: NO_TERM };

/// Judges the entries of one mapping, one after the other.
pub(super) struct Judge<'r, 'a, 'c> {
    product: &'r Product<'a, 'c>,
    traps: &'r Traps,
    source: usize,
    pub(super) bindings: Bindings,
    steps: Vec<(Class, Option<Type>)>,
}

impl<'r, 'a, 'c> Judge<'r, 'a, 'c> {
    /// For entries that leave the version `source`; `traps` are those of the other.
    pub(super) fn new(product: &'r Product<'a, 'c>, traps: &'r Traps, source: usize) -> Self {
        let bindings = Bindings::new(product.terms.len());
        Judge { product, traps, source, bindings, steps: Vec::new() }
    }

    fn from(&self) -> &'r Version<'a, 'c> {
        &self.product.versions[self.source]
    }

    fn to(&self) -> &'r Version<'a, 'c> {
        &self.product.versions[1 - self.source]
    }

    /// Judges everything but what has to be live. Cost: linear in the entry.
    pub(super) fn check(
        &mut self,
        point: Point,
        entry: &Entry,
        facts: &EntryFacts,
    ) -> Result<(), Finding> {
        let Some(line) = self.check_source(point)? else { return Ok(()) };
        self.check_target(point, &line, entry)?;
        self.bindings.enter(self.from(), &line);
        self.bindings.check_work(self.from())?;
        self.check_requires(point, entry)?;
        self.steps.clear();
        let far = self.from().f.inst_block(line.anchor);
        for (index, step) in entry.steps.iter().enumerate() {
            self.check_step(point, entry, index, step, facts, far)?;
        }
        self.check_memory(point, entry, facts, far)?;
        self.check_assigns(entry, far)
    }

    /// The line from the source point; `None` where there is none and the check is left out.
    fn check_source(&self, point: Point) -> Result<Option<Line<'r>>, Finding> {
        let (from, inst) = (self.from(), point.inst());
        let place = Place::Inst(inst);
        self.product.terms.require(Check::SourcePoint, from.f.has_inst(inst), place)?;
        // In code that never runs any entry is right; it is dropped rather than called feasible.
        let is_live = from.f.has_inst(inst) && from.live().has(from.f.inst_block(inst));
        let line = is_live.then(|| self.product.lines[self.source].from(from, inst)).flatten();
        let met = line.filter(|l| self.product.is_reached.contains(l.anchor.as_u32() as usize));
        // Through a shared block control may come to another end than the line from here has.
        let strays = is_live
            && self.product.shared[self.source].contains(from.f.inst_block(inst).as_u32() as usize);
        let reached = (met.is_some() && !strays) || !from.f.has_inst(inst);
        self.product.terms.require(Check::SourceReached, reached, place).map(|()| met)
    }

    fn check_target(&self, point: Point, line: &Line<'r>, entry: &Entry) -> Result<(), Finding> {
        let (to, inst) = (self.to(), entry.target.inst());
        let place = Place::Inst(inst);
        let exists = to.f.has_inst(inst) && to.live().has(to.f.inst_block(inst));
        let landing = exists.then(|| self.product.lines[1 - self.source].from(to, inst)).flatten();
        let passed = landing
            .as_ref()
            .is_some_and(|l| l.anchor == line.anchor && !l.crossings().any(|c| c.joins));
        self.product.terms.require(Check::TargetPoint, passed, place)?;
        let skips = |landing| self.traps.skips(self.product, [point.inst(), inst], [line, landing]);
        self.product.terms.require(Check::TrapPassed, !landing.as_ref().is_some_and(skips), place)
    }

    fn check_requires(&self, point: Point, entry: &Entry) -> Result<(), Finding> {
        let from = self.from();
        let mut last = None;
        for &value in &entry.requires {
            let available =
                from.f.has_value(value) && from.full.available(from.f, value, point.inst());
            let fits = available && last.replace(value).is_none_or(|l| l < value);
            self.product.terms.require(Check::Requires, fits, Place::Value(value))?;
        }
        Ok(())
    }

    /// What an operand stands for, and its type.
    fn operand(
        &self,
        entry: &Entry,
        operand: Operand,
        far: Block,
    ) -> Result<(Class, Option<Type>), Finding> {
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
        let listed = entry.requires.binary_search(&value).is_ok();
        self.product.terms.require(Check::StepOrder, listed, Place::Value(value))?;
        let from = self.from();
        if !from.f.has_value(value) {
            return Ok((UNKNOWN, None));
        }
        let here = from.class(value);
        Ok((Class { here, far: self.unaffected(here, far) }, Some(from.f.value_type(value))))
    }

    /// A class as leaves are at the anchor, if none it depends on is bound on the way there.
    fn unaffected(&self, here: TermId, far: Block) -> TermId {
        let from = self.from();
        let same = self.bindings.is_empty()
            || (!self.bindings.affects(from, here) && from.is_supported_at(here, far));
        if same { here } else { NO_TERM }
    }

    /// Whether an operand is of a class as leaves are at the anchor.
    fn fits_far(&self, class: Class, wanted: TermId, far: Block) -> bool {
        if wanted == NO_TERM {
            return false;
        }
        let becomes = || {
            self.bindings.get(wanted) == Some(class.here)
                && self.from().is_supported_at(wanted, far)
        };
        class.far == wanted || (class.here != NO_TERM && becomes())
    }

    fn check_step(
        &mut self,
        point: Point,
        entry: &Entry,
        index: usize,
        step: &Step,
        facts: &EntryFacts,
        far: Block,
    ) -> Result<(), Finding> {
        let place = Place::Step(index as u32);
        let mut classes: SmallVec<[Class; 3]> = SmallVec::new();
        let mut types: SmallVec<[Type; 3]> = SmallVec::new();
        for arg in &step.args {
            let (class, ty) = self.operand(entry, *arg, far)?;
            classes.push(class);
            types.extend(ty);
        }
        self.product.terms.require(Check::StepShape, step.accepts(&types), place)?;
        let at = |facts: &[TermId]| facts.get(index).copied().unwrap_or(NO_TERM);
        let here = at(&facts.here);
        // Where nothing is bound on the way the two are the same, whatever the facts say
        // (`a_far_term_without_a_crossing_is_not_believed`).
        let there = if self.bindings.is_empty() { here } else { at(&facts.far) };
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
        let there =
            if there == NO_TERM && here != NO_TERM { self.unaffected(here, far) } else { there };
        self.steps.push((Class { here, far: there }, step.opcode.result_type(step.ty)));
        Ok(())
    }

    /// Memory is what the target version has, when the writes that only it has executed are
    /// executed here too: none of them can trap, for an access at the same address has passed.
    fn check_memory(
        &self,
        point: Point,
        entry: &Entry,
        facts: &EntryFacts,
        far: Block,
    ) -> Result<(), Finding> {
        let terms = &self.product.terms;
        let mut memory = self.from().memory_before(point.inst());
        for (index, replay) in entry.replays.iter().enumerate() {
            let place = Place::Inst(replay.inst);
            let mut classes: SmallVec<[TermId; 3]> = SmallVec::new();
            for arg in &replay.args {
                classes.push(self.operand(entry, *arg, far)?.0.here);
            }
            let id = facts.replays.get(index).copied().unwrap_or(NO_TERM);
            let does = matches!(terms.kind(id), Some(TermKind::Op { opcode, ty, imm, args })
                if (*opcode, *ty, *imm) == (replay.opcode, replay.ty, replay.imm)
                    && args.split_last() == Some((&memory, &classes[..])));
            terms.require(Check::Replay, does && self.bindings.is_empty(), place)?;
            terms.require(Check::Replay, self.from().has_accessed(id, point.inst()), place)?;
            memory = terms.class(id);
        }
        let wanted = self.to().memory_before(entry.target.inst());
        let class = Class { here: memory, far: self.unaffected(memory, far) };
        // Where no version writes alone memory is the same, whatever its classes, until something
        // is written here (`what_nobody_writes_is_not_replayed`).
        let untouched = entry.replays.is_empty() && !self.product.has_lone_writes();
        let same = untouched || self.fits_far(class, wanted, far);
        terms.require(Check::EntryMemory, same, Place::Whole)
    }

    /// Whether a step computes a term, when `fits` tells which operands are of which classes.
    fn computes(&self, step: &Step, id: TermId, fits: impl Fn(usize, TermId) -> bool) -> bool {
        let Some(TermKind::Op { opcode, ty, imm, args }) = self.product.terms.kind(id) else {
            return false;
        };
        let same_imm = match imm {
            Imm::None => step.opcode != Opcode::Const,
            Imm::Bits(bits) => step.opcode == Opcode::Const && *bits == step.bits,
            _ => false,
        };
        if *opcode != step.opcode || *ty != step.ty || !same_imm || args.len() != step.args.len() {
            return false;
        }
        let in_order = args.iter().enumerate().all(|(n, wanted)| fits(n, *wanted));
        let last = args.len().wrapping_sub(1);
        in_order
            || (opcode.is_commutative()
                && args.iter().enumerate().all(|(n, wanted)| fits(last - n, *wanted)))
    }

    /// Whether a step that could trap does not: its operands exclude it, or a version has executed
    /// the same.
    fn repeats(
        &self,
        step: &Step,
        classes: &[Class],
        [here, far]: [TermId; 2],
        point: Point,
        entry: &Entry,
    ) -> bool {
        let terms = &self.product.terms;
        let divisor = classes.get(1).and_then(|c| terms.constant(c.here));
        let folded = [here, far].iter().any(|t| terms.constant(terms.class(*t)).is_some());
        is_safe_divisor(step.opcode, step.ty, divisor)
            || folded
            || self.from().has_executed(here, point.inst())
            || self.to().has_executed(far, entry.target.inst())
    }

    fn check_assigns(&self, entry: &Entry, far: Block) -> Result<(), Finding> {
        let to = self.to();
        let mut last = None;
        for assign in &entry.assigns {
            let (value, target) = (assign.value, entry.target.inst());
            let exists = to.f.has_value(value);
            let available =
                exists && to.f.has_inst(target) && to.full.available(to.f, value, target);
            let ascends = last.replace(value).is_none_or(|l: Value| l < value);
            self.product.terms.require(
                Check::AssignShape,
                available && ascends,
                Place::Value(value),
            )?;
            let (class, _) = self.operand(entry, assign.from, far)?;
            let fits = self.fits_far(class, to.class(value), far);
            self.product.terms.require(Check::AssignValue, fits, Place::Value(value))?;
        }
        Ok(())
    }
}
