//! One entry: it starts and lands at corresponding points, and computes what the target version has.

use super::lines::{Bindings, Line};
use super::product::{Product, is_safe_divisor};
use super::traps::Traps;
use super::version::Version;
use crate::verdict::{Check, Finding, Place};
use ir::certificate::{EntryFacts, NO_TERM, TermId, TermKind};
use ir::eval::accepts;
use ir::mapping::{Entry, Operand, Step};
use ir::{Block, Effects, Imm, Inst, Opcode, Point, Type, Value};
use smallvec::SmallVec;

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
    pub(super) fn check(&mut self, point: Point, entry: &Entry, facts: &EntryFacts) -> Result<(), Finding> {
        let Some(line) = self.check_source(point)? else { return Ok(()) };
        self.check_target(point, &line, entry)?;
        let memory = self.from().memory_at_end(self.from().f.inst_block(point.inst()));
        self.bindings.enter(self.from(), line.crossings(), memory);
        self.check_requires(point, entry)?;
        self.check_facts(entry, facts)?;
        self.steps.clear();
        let far = self.from().f.inst_block(line.anchor);
        for (index, step) in entry.steps.iter().enumerate() {
            self.check_step(point, entry, index, step, facts, far)?;
        }
        self.check_assigns(entry, far)
    }

    /// The line from the source point; `None` where there is none and the check is left out.
    fn check_source(&self, point: Point) -> Result<Option<Line<'r>>, Finding> {
        let (from, inst) = (self.from(), point.inst());
        if !from.f.has_inst(inst) {
            return self.product.terms.require(Check::SourcePoint, false, Place::Inst(inst)).map(|()| None);
        }
        // In code that never runs any entry is right; it is dropped rather than called feasible.
        let line = if from.live().has(from.f.inst_block(inst)) {
            self.product.lines[self.source].from(from, inst)
        } else {
            None
        };
        let met = line.filter(|l| self.product.is_reached.contains(l.anchor.as_u32() as usize));
        self.product.terms.require(Check::SourceReached, met.is_some(), Place::Inst(inst))?;
        Ok(met)
    }

    fn check_target(&self, point: Point, line: &Line<'r>, entry: &Entry) -> Result<(), Finding> {
        let (to, inst) = (self.to(), entry.target.inst());
        let place = Place::Inst(inst);
        let exists = to.f.has_inst(inst) && to.live().has(to.f.inst_block(inst));
        let landing = exists.then(|| self.product.lines[1 - self.source].from(to, inst)).flatten();
        let passed = landing.is_some_and(|l| l.anchor == line.anchor && !l.crossings().any(|c| c.joins));
        self.product.terms.require(Check::TargetPoint, passed, place)?;
        let skips = exists && self.traps.skips(self.product, point.inst(), line, inst);
        self.product.terms.require(Check::TrapPassed, !skips, place)
    }

    fn check_requires(&self, point: Point, entry: &Entry) -> Result<(), Finding> {
        let from = self.from();
        let mut last = None;
        for &value in &entry.requires {
            let available = from.f.has_value(value) && from.full.available(from.f, value, point.inst());
            let fits = available && last.replace(value).is_none_or(|l| l < value);
            self.product.terms.require(Check::Requires, fits, Place::Value(value))?;
        }
        Ok(())
    }

    fn check_facts(&self, entry: &Entry, facts: &EntryFacts) -> Result<(), Finding> {
        let count = entry.steps.len();
        let fits = facts.here.len() == count && (facts.far.len() == count || facts.far.is_empty());
        self.product.terms.require(Check::Facts, fits, Place::Whole)
    }

    /// What an operand stands for, and its type.
    fn operand(&self, entry: &Entry, operand: Operand, far: Block) -> Result<(Class, Option<Type>), Finding> {
        let value = match operand {
            Operand::Step(index) => {
                let known = self.steps.get(index as usize).copied();
                self.product.terms.require(Check::StepOrder, known.is_some(), Place::Step(index))?;
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
        let same = self.bindings.is_empty() || (!self.bindings.affects(from, here) && from.is_supported_at(here, far));
        if same { here } else { NO_TERM }
    }

    /// Whether an operand is of a class as leaves are at the anchor.
    fn fits_far(&self, class: Class, wanted: TermId, far: Block) -> bool {
        if wanted == NO_TERM {
            return false;
        }
        let becomes = || self.bindings.get(wanted) == Some(class.here) && self.from().is_supported_at(wanted, far);
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
        self.product.terms.require(Check::StepShape, is_well_formed(step, &types), place)?;
        let at = |facts: &[TermId]| facts.get(index).copied().unwrap_or(NO_TERM);
        let here = at(&facts.here);
        let here_fits = self.computes(step, here, |n, wanted| classes[n].here == wanted);
        let there = if facts.far.is_empty() { here } else { at(&facts.far) };
        let far_fits = match self.bindings.is_empty() {
            true => here_fits,
            false => self.computes(step, there, |n, wanted| self.fits_far(classes[n], wanted, far)),
        };
        self.product.terms.require(Check::StepTerm, here_fits || far_fits, place)?;
        let terms = [here_fits.then_some(here), far_fits.then_some(there)];
        let cannot_trap = !step.opcode.can_trap() || self.repeats(step, &classes, terms, point, entry);
        self.product.terms.require(Check::StepTrap, cannot_trap, place)?;
        let [here, there] = terms.map(|t| t.map_or(NO_TERM, |t| self.product.terms.class(t)));
        let there = if there == NO_TERM && here != NO_TERM { self.unaffected(here, far) } else { there };
        self.steps.push((Class { here, far: there }, step.opcode.result_type(step.ty)));
        Ok(())
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
        in_order || (opcode.is_commutative() && args.iter().enumerate().all(|(n, wanted)| fits(last - n, *wanted)))
    }

    /// Whether a step that could trap does not: its operands exclude it, or a version has executed the same.
    fn repeats(
        &self,
        step: &Step,
        classes: &[Class],
        [here, far]: [Option<TermId>; 2],
        point: Point,
        entry: &Entry,
    ) -> bool {
        let terms = &self.product.terms;
        let divisor = classes.get(1).and_then(|c| terms.constant(c.here));
        let folded = here.or(far).is_some_and(|t| terms.constant(terms.class(t)).is_some());
        let by = |version: &Version<'_, '_>, term: Option<TermId>, at: Inst| {
            version.f.has_inst(at) && term.is_some_and(|t| version.has_executed(t, at))
        };
        is_safe_divisor(step.opcode, step.ty, divisor)
            || folded
            || by(self.from(), here, point.inst())
            || by(self.to(), far, entry.target.inst())
    }

    fn check_assigns(&self, entry: &Entry, far: Block) -> Result<(), Finding> {
        let to = self.to();
        let mut last = None;
        for assign in &entry.assigns {
            let (value, target) = (assign.value, entry.target.inst());
            let exists = to.f.has_value(value);
            let available = exists && to.f.has_inst(target) && to.full.available(to.f, value, target);
            let ascends = last.replace(value).is_none_or(|l: Value| l < value);
            self.product.terms.require(Check::AssignShape, available && ascends, Place::Value(value))?;
            let (class, _) = self.operand(entry, assign.from, far)?;
            let fits = self.fits_far(class, to.class(value), far);
            self.product.terms.require(Check::AssignValue, fits, Place::Value(value))?;
        }
        Ok(())
    }
}

/// Whether a step is an operation on values that takes operands of these types.
pub(super) fn is_well_formed(step: &Step, types: &[Type]) -> bool {
    if step.opcode == Opcode::Const {
        return step.args.is_empty() && step.bits & !step.ty.mask() == 0;
    }
    let first_fits = types.first().is_some_and(|ty| *ty == step.operand_ty);
    let reads = step.opcode.effects().has(Effects::READS);
    types.len() == step.args.len() && first_fits && !reads && accepts(step.opcode, step.ty, types)
}
