//! Composition: makes one mapping from two consecutive mappings.
//!
//! Let M lead from p to q, and N from q to r. The composed entry at a point of p is M's entry
//! there, followed by N's entry at M's landing point. It is legal only if N's entry requires a
//! subset of the values that M's entry provides. Agreement on live values is not enough: N's entry
//! may read kept values, which are dead in q, and an entry that provides only live values leaves
//! them undefined. The composed entry requires a subset of the values that M's entry requires. It
//! provides the values that N's entry provides.
//!
//! The effects before both entries are the same, so effects need no check. Replays take care of
//! memory: the composed entry executes the replays of M's entry, and then the replays of N's entry.
//! Steps do not read memory, so all steps may precede all replays.

use crate::VersionKey;
use crate::frames::Frame;
use crate::mapping::{Assign, Entry, Mapping, Operand, Replay, Step};
use crate::objects::without_unread_objects;
use ir::{Point, Value};
use std::collections::HashMap;
use std::fmt;

/// The reason why two entries do not compose.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Refusal {
    /// The second mapping has no entry at the landing point of the first entry, or that point is a
    /// call that the run has begun: the first entry has inner activations.
    NoSecondEntry,
    /// The second entry requires a value that the first entry does not provide.
    NotProvided {
        /// The value.
        value: Value,
    },
    /// One of the entries reads a value outside of its required values, or a later step. Such an
    /// entry is malformed.
    Malformed,
}

impl Refusal {
    /// The names of all reasons, in the order of the enumeration.
    pub const NAMES: [&'static str; 3] = ["no_second_entry", "not_provided", "malformed"];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Refusal::NoSecondEntry => Refusal::NAMES[0],
            Refusal::NotProvided { .. } => Refusal::NAMES[1],
            Refusal::Malformed => Refusal::NAMES[2],
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NoSecondEntry => {
                f.write_str("the second mapping has no entry where the first one lands")
            }
            Refusal::NotProvided { value } => {
                write!(f, "the second entry requires {value}, which the first one does not provide")
            }
            Refusal::Malformed => {
                f.write_str("an entry reads what it does not require or has not computed")
            }
        }
    }
}

/// A condition under which two mappings, or two of their entries, compose. The documentation of
/// `check::compose` explains why the conditions suffice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ComposeCondition {
    /// The second mapping leaves from the version that the first mapping leads to.
    Versions,
    /// The first entry provides every value that the second entry requires.
    Provides,
    /// The composed entry executes the replays of the first entry, and then the replays of the
    /// second entry.
    Replays,
    /// Both entries read values that they require, and results of earlier steps.
    Steps,
}

/// Two mappings composed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Composition {
    /// From the source version of the first to the target version of the second.
    pub mapping: Mapping,
    /// The points at which the first mapping has an entry and the composition lacks one, ascending.
    pub refused: Vec<(Point, Refusal)>,
}

impl Composition {
    /// The number of points refused for the reason with this name.
    pub fn refused_for(&self, name: &str) -> usize {
        self.refused.iter().filter(|(_, refusal)| refusal.name() == name).count()
    }
}

/// Two mappings that do not follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotAChain {
    /// The target version of the first mapping.
    pub target: VersionKey,
    /// The source version of the second.
    pub source: VersionKey,
}

impl fmt::Display for NotAChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the second mapping leaves from another version than the first one leads to")
    }
}

impl std::error::Error for NotAChain {}

/// Composes two mappings, entry by entry. The function is total: any two entries compose or are
/// refused. Cost: near linear in the entries of the first mapping and in the entries of the second
/// mapping at their landing points.
///
/// # Errors
/// When the source version of the second mapping is not the target version of the first.
pub fn compose(first: &Mapping, second: &Mapping) -> Result<Composition, NotAChain> {
    compose_without(first, second, None)
}

/// As [`compose`], with one condition left out, for experiments that show that each condition is
/// needed. The composed entries are then wrong: a value that the condition would have refused is
/// read under its own id, and replays are dropped.
///
/// # Errors
/// As for [`compose`], unless the condition on versions is left out.
pub fn compose_without(
    first: &Mapping,
    second: &Mapping,
    left_out: Option<ComposeCondition>,
) -> Result<Composition, NotAChain> {
    if first.target() != second.source() && left_out != Some(ComposeCondition::Versions) {
        return Err(NotAChain { target: first.target(), source: second.source() });
    }
    let mut composition = Composition {
        mapping: Mapping::between(first.source(), second.target()),
        refused: Vec::new(),
    };
    for (point, entry) in first.entries() {
        let next = second.entry(entry.target).ok_or(Refusal::NoSecondEntry);
        match next.and_then(|next| compose_entries(entry, next, left_out)) {
            Ok(entry) => composition.mapping.insert(point, entry),
            Err(refusal) => composition.refused.push((point, refusal)),
        }
    }
    Ok(composition)
}

/// The entry that runs `first` and then `second`, where values that the first entry provides have
/// other names in the version that the second leaves from. `names` gives them; none for a value
/// that this version lacks. Of several values with one name, the value with the least operand
/// counts. Cost: near linear in both, and in the names.
///
/// # Errors
/// The reason why the entries do not compose.
pub fn compose_renamed<N: IntoIterator<Item = Value>>(
    first: &Entry,
    names: impl Fn(Value) -> N,
    second: &Entry,
) -> Result<Entry, Refusal> {
    let mut code = ComposedCode::default();
    let between = code.append_first(first)?;
    let named = |assign: Assign| {
        let given = names(assign.value).into_iter();
        given.map(move |value| Assign { value, from: assign.from })
    };
    let mut between: Vec<Assign> = between.into_iter().flat_map(named).collect();
    between.sort_unstable();
    between.dedup_by_key(|assign| assign.value);
    finish(code, &between, first, second)
}

impl Entry {
    /// The entry with the assignments of these values alone, which are ascending. `None` if the
    /// entry does not provide all these values, or reads outside of its required values and earlier
    /// steps. Cost: near linear in the entry.
    pub fn only(&self, values: &[Value]) -> Option<Entry> {
        let mut code = ComposedCode::default();
        let all = code.append_first(self).ok()?;
        let assign = |value: &Value| {
            all.binary_search_by_key(value, |assign| assign.value).ok().map(|at| all[at])
        };
        let assigns = values.iter().map(assign).collect::<Option<Vec<Assign>>>()?;
        Some(code.finish(self.target, assigns, Box::default(), &self.kept))
    }
}

/// The entry that runs `first` and then `second`, with one condition left out.
fn compose_entries(
    first: &Entry,
    second: &Entry,
    left_out: Option<ComposeCondition>,
) -> Result<Entry, Refusal> {
    // The order matters. `second` reads operands in terms of `first`, so the steps of `first` come
    // first. The replays of `first` write bytes that the replays of `second` may overwrite
    // (`a_composed_entry_computes_as_both_entries_in_a_row`). Equal steps of the two are shared on
    // the way.
    let mut code = ComposedCode { left_out, ..ComposedCode::default() };
    let between = code.append_first(first)?;
    finish(code, &between, first, second)
}

/// Appends the second entry to the code of the first, which gives it these values.
fn finish(
    mut code: ComposedCode,
    between: &[Assign],
    first: &Entry,
    second: &Entry,
) -> Result<Entry, Refusal> {
    let (assigns, inner) = code.append_second(second, between)?;
    if !code.asks(ComposeCondition::Replays) {
        code.replays.clear();
    }
    // Only the first entry knows which of its values are not live at the source point.
    Ok(code.finish(second.target, assigns, inner, &first.kept))
}

/// The assignments of an entry in terms of composed code, and its inner activations.
type Landings = (Vec<Assign>, Box<[Frame]>);

/// Up to so many steps, a search through all is faster than a hash. Most entries have fewer.
const FEW_STEPS: usize = 16;

/// Compensation code under construction. Equal steps are shared.
#[derive(Default)]
pub(crate) struct ComposedCode {
    steps: Vec<Step>,
    replays: Vec<Replay>,
    /// The numbers of the steps, if there are more than [`FEW_STEPS`]. Never iterated, so hash
    /// order reaches no output.
    known: HashMap<Step, u32>,
    left_out: Option<ComposeCondition>,
}

impl ComposedCode {
    fn asks(&self, condition: ComposeCondition) -> bool {
        self.left_out != Some(condition)
    }

    /// Appends the first entry and returns its assignments.
    ///
    /// # Errors
    /// [`Refusal::Malformed`], and [`Refusal::NoSecondEntry`] for an entry with inner activations:
    /// its landing point is a call that the run has begun, and a second entry would begin it again
    /// (`nothing_goes_on_from_several_activations`).
    pub(crate) fn append_first(&mut self, first: &Entry) -> Result<Vec<Assign>, Refusal> {
        let asks_steps = self.asks(ComposeCondition::Steps);
        let source = |value: Value| {
            let is_required = first.requires.binary_search(&value).is_ok();
            (is_required || !asks_steps).then_some(Operand::Source(value))
        };
        if !first.inner.is_empty() {
            return Err(Refusal::NoSecondEntry);
        }
        self.append(first, source).map(|(assigns, _)| assigns).ok_or(Refusal::Malformed)
    }

    /// Appends an entry that reads assigned values, which are ascending, and returns its
    /// assignments to each activation.
    ///
    /// # Errors
    /// [`Refusal::NotProvided`] and [`Refusal::Malformed`].
    pub(crate) fn append_second(
        &mut self,
        second: &Entry,
        between: &[Assign],
    ) -> Result<Landings, Refusal> {
        let provided = |value: Value| {
            let at = between.binary_search_by_key(&value, |a| a.value);
            at.ok().map(|at| between[at].from)
        };
        // Every required value counts, whether a step reads it or not
        // (`the_second_entry_may_require_only_provided_values`).
        let is_missing = |v: &&Value| provided(**v).is_none();
        if let Some(value) = second.requires.iter().find(is_missing)
            && self.asks(ComposeCondition::Provides)
        {
            return Err(Refusal::NotProvided { value: *value });
        }
        let (asks_steps, left_out) = (self.asks(ComposeCondition::Steps), self.left_out);
        let given = |value: Value| {
            // Mappings from other makers reach this code too. A read of a value that is not
            // required is therefore refused, even where the first entry happens to provide it.
            let is_required = second.requires.binary_search(&value).is_ok();
            // A value that is required is provided, unless a condition is left out.
            let found = || provided(value).or(left_out.map(|_| Operand::Source(value)));
            if is_required || !asks_steps { found() } else { None }
        };
        self.append(second, given).ok_or(Refusal::Malformed)
    }

    /// Appends the steps and replays of an entry and returns its assignments in terms of this code.
    /// `given` supplies the values that the entry reads. `None` when the entry reads a value or a
    /// step that it must not read.
    fn append(
        &mut self,
        entry: &Entry,
        given: impl Fn(Value) -> Option<Operand>,
    ) -> Option<Landings> {
        // By step of `entry`: the operand that replaces it. A step that reads a later one finds no
        // operand here, and the entry is refused.
        let mut done: Vec<Operand> = Vec::new();
        for step in &entry.steps {
            let args =
                step.args.iter().map(|arg| moved(*arg, &done, &given)).collect::<Option<_>>()?;
            let step = match step.allocator() {
                // Two entries make two objects, whatever their numbers
                // (`objects_of_two_entries_are_two`).
                Some(func) => Step::object(func, self.object_count(), args),
                None => Step { args, ..step.clone() },
            };
            done.push(self.add_step(step));
        }
        for replay in &entry.replays {
            let args =
                replay.args.iter().map(|arg| moved(*arg, &done, &given)).collect::<Option<_>>()?;
            self.replays.push(Replay { args, ..replay.clone() });
        }
        let assign =
            |a: &Assign| moved(a.from, &done, &given).map(|from| Assign { value: a.value, from });
        let all = |list: &[Assign]| list.iter().map(assign).collect::<Option<Vec<Assign>>>();
        let frame = |frame: &Frame| Some(Frame { assigns: all(&frame.assigns)?, ..*frame });
        let inner = entry.inner.iter().map(frame).collect::<Option<_>>()?;
        Some((all(&entry.assigns)?, inner))
    }

    /// The number of objects that the code makes so far.
    pub(crate) fn object_count(&self) -> u32 {
        self.steps.iter().filter(|step| step.allocator().is_some()).count() as u32
    }

    /// Appends a step, and returns its result.
    pub(crate) fn add_step(&mut self, step: Step) -> Operand {
        Operand::Step(self.step(step))
    }

    /// Appends a replay.
    pub(crate) fn replay(&mut self, replay: Replay) {
        self.replays.push(replay);
    }

    /// The number of a step. An equal step has the same number.
    fn step(&mut self, step: Step) -> u32 {
        // Equality includes the bits: two constants of one type differ in nothing else.
        let ComposedCode { steps, known, .. } = self;
        let next = steps.len() as u32;
        if steps.len() <= FEW_STEPS {
            if let Some(number) = steps.iter().position(|one| *one == step) {
                return number as u32;
            }
            if steps.len() == FEW_STEPS {
                known.extend(steps.iter().cloned().zip(0..).chain([(step.clone(), next)]));
            }
            steps.push(step);
            return next;
        }
        *known.entry(step).or_insert_with_key(|step| {
            steps.push(step.clone());
            next
        })
    }

    /// The entry with this code. Its second part may read fewer values than the first provides, so
    /// steps and values for the others are removed. Otherwise, composed entries would grow with
    /// each hop of a chain. `kept` are the values that are not live at the source point, and maybe
    /// others.
    pub(crate) fn finish(
        mut self,
        target: Point,
        mut assigns: Vec<Assign>,
        mut inner: Box<[Frame]>,
        kept: &[Value],
    ) -> Entry {
        let all = inner.iter().flat_map(|frame| &frame.assigns).chain(&assigns);
        without_unread_objects(&self.steps, &mut self.replays, all);
        let inner_lists = inner.iter_mut().map(|frame| &mut frame.assigns[..]);
        let (steps, replays) = self.needed_for(inner_lists.chain([&mut assigns[..]]).collect());
        let (requires, none) = (Vec::new(), Vec::new());
        let made = Entry { target, steps, replays, assigns, requires, kept: none, inner };
        let requires = made.reads();
        let is_kept = |value: &Value| kept.binary_search(value).is_ok();
        let kept = requires.iter().copied().filter(is_kept).collect();
        Entry { requires, kept, ..made }
    }

    /// The steps that the replays and the assignments read, in order, and the replays in terms of
    /// those. The assignments then are, too.
    fn needed_for(mut self, mut assigns: Vec<&mut [Assign]>) -> (Vec<Step>, Vec<Replay>) {
        if self.steps.is_empty() {
            return (self.steps, self.replays);
        }
        let mut needed = vec![false; self.steps.len()];
        let mark = |needed: &mut Vec<bool>, operand: Operand| {
            if let Operand::Step(index) = operand {
                needed[index as usize] = true;
            }
        };
        assigns.iter().flat_map(|list| list.iter()).for_each(|a| mark(&mut needed, a.from));
        self.replays.iter().flat_map(|r| &r.args).for_each(|arg| mark(&mut needed, *arg));
        // Steps read only earlier steps, so one walk from the last to the first finds all.
        for index in (0..self.steps.len()).rev() {
            if needed[index] {
                self.steps[index].args.iter().for_each(|arg| mark(&mut needed, *arg));
            }
        }
        // A step's new number is the count of needed steps before it.
        let mut numbers: Vec<u32> = Vec::with_capacity(needed.len());
        let mut count = 0;
        for is_needed in &needed {
            numbers.push(count);
            count += u32::from(*is_needed);
        }
        let renumber = |operand: &mut Operand| {
            if let Operand::Step(index) = operand {
                *index = numbers[*index as usize];
            }
        };
        let mut steps: Vec<Step> =
            self.steps.into_iter().zip(&needed).filter(|(_, n)| **n).map(|(s, _)| s).collect();
        steps.iter_mut().flat_map(|s| &mut s.args).for_each(renumber);
        self.replays.iter_mut().flat_map(|r| &mut r.args).for_each(renumber);
        assigns.iter_mut().flat_map(|a| a.iter_mut()).for_each(|a| renumber(&mut a.from));
        (steps, self.replays)
    }
}

/// An operand of an entry, in terms of the code that its steps were appended to.
fn moved(
    operand: Operand,
    done: &[Operand],
    given: &impl Fn(Value) -> Option<Operand>,
) -> Option<Operand> {
    match operand {
        Operand::Source(value) => given(value),
        Operand::Step(index) => done.get(index as usize).copied(),
    }
}
