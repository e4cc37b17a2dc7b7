//! Facts of entries: which term each step of compensation code computes.
//!
//! A step is explained twice. Its *here* term is in terms of the contents of leaves at the source
//! point. If the path to the next anchor binds leaves, its *far* term is in terms of their contents
//! at the anchor, where the two versions are compared.
//!
//! Example: the path jumps to `head(%x)` with %a. Here, a step `mul %a, %b` is the product of %a
//! and %b. Far, it may also be the product of %x and %b, which the target version computes.

use super::memory::LoneWrites;
use super::paths::{EnteredBlock, LivePath, LivePaths, PathBindings};
use super::search::SettledRelation;
use super::terms::{CertificateTerms, ReasonedTerms};
use super::version::NumberedVersion;
use ir::{Block, Imm, Inst, Opcode, Point, Type};
use number::{ClassArgs, Home};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use transition::certificate::{EntryFacts, MappingFacts, NO_TERM, TermId, is_well_typed};
use transition::mapping::{EntryCode, Mapping, Operand, Replay, SharedEntry, Step};
use transition::{Correspondence, Side, VersionKey};

/// Combinations of far operands of one step that are looked up in the table. There is more than one
/// only where a path binds a parameter to a class that is also available elsewhere.
const MAX_LOOKED_FOR: usize = 32;

/// Far terms considered for one step.
const MAX_CHOICES: usize = 8;

/// The classes that an operand may stand for at the end of a path.
type FarClasses = SmallVec<[TermId; 2]>;

/// A term that a step may compute at the end of a path, with its operands in the order of the step.
type FarTerm = (TermId, ClassArgs);

/// The steps of an entry, and their terms.
type ExplainedSteps = (Vec<Step>, Box<[TermId]>);

/// Makes the facts of one mapping.
pub(super) struct Explainer<'e, 'a> {
    /// The source version of the entries.
    version: &'e mut NumberedVersion<'a>,
    /// Their target version.
    other: &'e NumberedVersion<'a>,
    /// The paths of the source version.
    paths: &'e LivePaths,
    terms: &'e mut CertificateTerms,
    source: VersionKey,
    target: VersionKey,
    bindings: PathBindings,
    /// The block whose path `bindings` holds, if any.
    entered: Option<Block>,
    /// The leaves bound on the path, by the class they are bound to, ascending.
    bound_to: Vec<(TermId, TermId)>,
    /// The steps of the last entry with code, and their terms.
    last: Option<ExplainedSteps>,
    /// The memory at the landing point of the last entry with replays, and its lone writes.
    lone: (TermId, LoneWrites),
}

impl<'e, 'a> Explainer<'e, 'a> {
    pub(super) fn new(
        common: &Correspondence<'_>,
        relation: &'e mut SettledRelation<'a>,
        heading: Side,
    ) -> Explainer<'e, 'a> {
        let (source, target) = (
            VersionKey::of(common.versions[heading]),
            VersionKey::of(common.versions[heading.other()]),
        );
        let SettledRelation { versions: [a, b], paths, terms, .. } = relation;
        let (version, other) = if heading == Side::Before { (a, &*b) } else { (b, &*a) };
        Explainer {
            version,
            other,
            paths: &paths[heading as usize],
            terms,
            source,
            target,
            bindings: PathBindings::default(),
            entered: None,
            bound_to: Vec::new(),
            last: None,
            lone: (NO_TERM, LoneWrites::default()),
        }
    }

    /// The facts of the entries of a mapping. `explained` has the facts of entries that other
    /// mappings may share with it.
    pub(super) fn explain(
        mut self,
        mapping: &Mapping,
        explained: &mut BTreeMap<Point, (SharedEntry, EntryFacts)>,
    ) -> MappingFacts {
        let fits = mapping.source() == self.source && mapping.target() == self.target;
        let facts = |(point, shared): (Point, &SharedEntry)| {
            if let Some((known, facts)) = explained.get(&point).filter(|_| fits)
                && known.is(shared)
            {
                return facts.clone();
            }
            // Nothing is to be explained.
            if !shared.has_code() {
                return EntryFacts::default();
            }
            let entry = shared.code();
            if !fits {
                return nothing(&entry);
            }
            let facts = self.entry(point, &entry);
            explained.insert(point, (shared.clone(), facts.clone()));
            facts
        };
        mapping.shared_entries().map(facts).collect()
    }

    /// The facts of one entry.
    fn entry(&mut self, point: Point, entry: &EntryCode<'_>) -> EntryFacts {
        let f = self.version.f();
        // A mapping may come from any maker, so its entries may name any point.
        if !f.has_inst(point.inst()) || !self.version.live().has_block(f.inst_block(point.inst())) {
            return nothing(entry);
        }
        let here = self.here(&entry.steps);
        let replays = self.replays(point, entry, &here);
        let paths = self.paths;
        // If the path enters no block, leaves mean the same at its end, and here terms suffice.
        let far = match paths.from(self.version, point.inst()) {
            Some(path) if path.crossings().next().is_some() => self.far(point, entry, &here, &path),
            _ => Box::default(),
        };
        EntryFacts { here, far, replays }
    }

    /// The terms of the steps, with leaves as at the source point.
    fn here(&mut self, steps: &[Step]) -> Box<[TermId]> {
        let mut here: Vec<TermId> = Vec::with_capacity(steps.len());
        // Entries of neighboring points have nearly the same steps.
        let (last, terms) = self.last.take().unwrap_or_default();
        let same = last.iter().zip(steps).take_while(|(a, b)| a == b).count();
        here.extend_from_slice(&terms[..same]);
        for step in &steps[same..] {
            let args: ClassArgs = step.args.iter().map(|arg| self.class(*arg, &here)).collect();
            here.push(if takes(&self.terms.table, step, &args) {
                self.make(step, args)
            } else {
                NO_TERM
            });
        }
        let here: Box<[TermId]> = here.into();
        self.last = Some((steps.to_vec(), here.clone()));
        here
    }

    /// The terms of the memory after each replayed store, with leaves as at the source point.
    fn replays(&mut self, point: Point, entry: &EntryCode<'_>, here: &[TermId]) -> Box<[TermId]> {
        if entry.replays.is_empty() {
            return Box::default();
        }
        let mut memory = self.version.memory_before(point.inst());
        let mut terms = Vec::with_capacity(entry.replays.len());
        // The memory at the landing point decides between several places that a replayed store may
        // have among earlier writes.
        let wanted = self.other.memory_before(entry.target.inst());
        if self.lone.0 != wanted {
            self.lone = (wanted, self.terms.lone_by_operation(wanted));
        }
        for Replay { opcode, ty, imm, args, .. } in &*entry.replays {
            let mut args: ClassArgs = args.iter().map(|arg| self.class(*arg, here)).collect();
            let made = self.lone.1.get(&((*opcode, *ty, *imm), args.clone()));
            let made = made.copied().unwrap_or(NO_TERM);
            args.push(memory);
            let types: SmallVec<[Option<Type>; 3]> =
                args.iter().map(|a| self.terms.table.ty(*a)).collect();
            let fits = !args.contains(&NO_TERM) && is_well_typed(*opcode, *ty, imm, &types);
            let term =
                if fits { self.terms.late_write(*opcode, *ty, *imm, args, made) } else { NO_TERM };
            memory = self.terms.table.class(term);
            terms.push(term);
        }
        terms.into()
    }

    fn make(&mut self, step: &Step, args: ClassArgs) -> TermId {
        self.terms.op(step.opcode, step.ty, immediate(step), args)
    }

    /// The class of an operand of a step.
    fn class(&self, operand: Operand, here: &[TermId]) -> TermId {
        match operand {
            Operand::Source(value) => self.version.class(&self.terms.table, value),
            Operand::Step(index) => {
                here.get(index as usize).map_or(NO_TERM, |term| self.terms.table.class(*term))
            }
        }
    }

    /// The terms of the steps, with leaves as at the end of the path. Backtracking is not needed:
    /// all choices are computed forward, and [`Explainer::choose`] picks among them backward.
    fn far(
        &mut self,
        point: Point,
        entry: &EntryCode<'_>,
        here: &[TermId],
        path: &LivePath<'_>,
    ) -> Box<[TermId]> {
        self.enter(point, path.crossings());
        if self.bindings.leaves.is_empty() {
            return Box::default();
        }
        let mut choices: Vec<SmallVec<[FarTerm; 1]>> = Vec::with_capacity(entry.steps.len());
        for step in &*entry.steps {
            let fits: SmallVec<[FarClasses; 3]> =
                step.args.iter().map(|arg| self.fits(*arg, here, &choices, path.anchor)).collect();
            choices.push(self.choices(step, &fits));
        }
        self.choose(entry, &choices)
    }

    /// For each step, picks the term that gives the assigned values the class they have in the
    /// target version.
    fn choose(&self, entry: &EntryCode<'_>, choices: &[SmallVec<[FarTerm; 1]>]) -> Box<[TermId]> {
        let mut wanted = vec![NO_TERM; entry.steps.len()];
        let want = |wanted: &mut Vec<TermId>, operand: Operand, class: TermId| {
            let Operand::Step(index) = operand else { return };
            let Some(slot) = wanted.get_mut(index as usize) else { return };
            let has = choices
                .get(index as usize)
                .into_iter()
                .flatten()
                .any(|(term, _)| self.terms.table.class(*term) == class);
            if *slot == NO_TERM && has {
                *slot = class;
            }
        };
        // From the assignments backward through the operands: the users of a step come later, so
        // the class that they need is known by then. The first user wins; a second user that needs
        // another class leaves the entry unproved.
        for assign in &*entry.changed {
            want(&mut wanted, assign.from, self.other.class(&self.terms.table, assign.value));
        }
        let mut far = vec![NO_TERM; entry.steps.len()];
        for (index, step) in entry.steps.iter().enumerate().rev() {
            let mut fitting = choices[index]
                .iter()
                .filter(|(term, _)| self.terms.table.class(*term) == wanted[index]);
            // A step without a wanted class takes its first choice, since the checker requires a
            // term for each step.
            let Some((term, args)) = fitting.next().or(choices[index].first()) else { continue };
            far[index] = *term;
            step.args
                .iter()
                .zip(args)
                .for_each(|(operand, class)| want(&mut wanted, *operand, *class));
        }
        far.into()
    }

    /// Binds the leaves of the path from a point. All points whose paths leave their block share
    /// the path, so the bindings are kept for the block.
    fn enter<'r>(&mut self, point: Point, crossings: impl Iterator<Item = &'r EnteredBlock>) {
        let block = self.version.f().inst_block(point.inst());
        if self.entered == Some(block) {
            return;
        }
        self.entered = Some(block);
        self.bindings.enter(self.version, &self.terms.table, crossings);
        let bound =
            self.bindings.leaves.iter().filter_map(|leaf| Some((self.bindings.get(*leaf)?, *leaf)));
        self.bound_to = bound.filter(|(class, _)| *class != NO_TERM).collect();
        self.bound_to.sort_unstable();
    }

    /// The classes that an operand may stand for at the end of the path.
    fn fits(
        &mut self,
        operand: Operand,
        here: &[TermId],
        choices: &[SmallVec<[FarTerm; 1]>],
        anchor: Inst,
    ) -> FarClasses {
        let mut fits = FarClasses::new();
        if let Operand::Step(index) = operand {
            for (term, _) in choices.get(index as usize).into_iter().flatten() {
                let class = self.terms.table.class(*term);
                if !fits.contains(&class) {
                    fits.push(class);
                }
            }
        }
        // Two reasons make a class `c` stand for `d` at the end. Either `d` is `c`, the path binds
        // none of its leaves, and all of them dominate the anchor. Or `d` is a leaf that the path
        // binds to `c`.
        let class = self.class(operand, here);
        if class == NO_TERM {
            return fits;
        }
        let home = self.version.home(&self.terms.table, class);
        let is_there = match home {
            Home::Anywhere => true,
            Home::Below(block) => {
                self.version.dom().dominates(block, self.version.f().inst_block(anchor))
            }
            Home::Nowhere => false,
        };
        let from = self.bound_to.partition_point(|(bound, _)| *bound < class);
        let leaves = self.bound_to[from..]
            .iter()
            .take_while(|(bound, _)| *bound == class)
            .map(|(_, leaf)| *leaf);
        let itself = Some(class).filter(|_| is_there && self.bindings.spares(home));
        for class in itself.into_iter().chain(leaves) {
            if !fits.contains(&class) {
                fits.push(class);
            }
        }
        fits
    }

    /// The terms of a step, one for each combination of operand classes that the table has as an
    /// operation, or else one new term.
    fn choices(&mut self, step: &Step, fits: &[FarClasses]) -> SmallVec<[FarTerm; 1]> {
        let count = fits.iter().map(|f| f.len()).fold(1usize, usize::saturating_mul);
        // Combination number `n`, read as digits, one for each operand. The first operand is the
        // lowest digit.
        let pick = |mut n: usize| -> ClassArgs {
            let one = |f: &FarClasses| {
                let at = n % f.len();
                n /= f.len();
                f[at]
            };
            fits.iter().map(one).collect()
        };
        let mut found: SmallVec<[FarTerm; 1]> = SmallVec::new();
        for args in (0..count.min(MAX_LOOKED_FOR))
            .map(pick)
            .filter(|args| takes(&self.terms.table, step, args))
        {
            let known =
                self.terms.table.find_op(step.opcode, step.ty, immediate(step), args.clone());
            found.extend(known.map(|term| (term, args)));
            if found.len() == MAX_CHOICES {
                break;
            }
        }
        // The table has no such term. A rule may still give a new term the class that is wanted, so
        // one combination is tried.
        if found.is_empty() && count > 0 {
            let args = pick(0);
            if takes(&self.terms.table, step, &args) {
                found.push((self.make(step, args.clone()), args));
            }
        }
        found
    }
}

/// The facts of an entry that cannot be explained.
fn nothing(entry: &EntryCode<'_>) -> EntryFacts {
    let unknown = |count: usize| vec![NO_TERM; count].into();
    EntryFacts {
        here: unknown(entry.steps.len()),
        far: Box::default(),
        replays: unknown(entry.replays.len()),
    }
}

fn immediate(step: &Step) -> Imm {
    if step.opcode == Opcode::Const { Imm::Bits(step.bits & step.ty.mask()) } else { Imm::None }
}

/// Whether a step is an operation on values that takes operands of these classes.
fn takes(table: &ReasonedTerms, step: &Step, args: &[TermId]) -> bool {
    if step.opcode == Opcode::Const {
        return args.is_empty();
    }
    let types: Option<SmallVec<[Type; 3]>> = args.iter().map(|a| table.ty(*a)).collect();
    let typed = |types: &SmallVec<[Type; 3]>| types.first() == Some(&step.operand_ty);
    types.filter(typed).is_some_and(|types| ir::eval::accepts(step.opcode, step.ty, &types))
}
