//! Composition: two mappings, one after the other, as one.
//!
//! Where the first leads from p to q and the second from q to r, the composed entry at a point of p
//! is the first's entry there, followed by the second's at the point where the first lands. Legal
//! only if what the second requires of q is a subset of what the first provides: an entry may read
//! values that are not live (kept values), and those an entry that provides what is live alone
//! leaves undefined. The composed entry requires no more than the first and provides what the
//! second does.
//!
//! Both entries have the same effects behind them, so these do not matter here; nor does memory,
//! which both leave as it is: entries that execute stores do not compose.

use ir::mapping::{Assign, Entry, Mapping, Operand, Step, VersionKey};
use ir::{Point, Value};
use std::collections::HashMap;
use std::fmt;

/// Why two entries do not compose.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Refusal {
    /// The second mapping has no entry where the first one lands.
    NoSecondEntry,
    /// The second entry requires a value that the first one does not provide.
    NotProvided {
        /// The value.
        value: Value,
    },
    /// One of the entries executes stores, between which and the other's code the order matters.
    Replays,
    /// One of the entries reads what it does not require, or a step that has not run: it is no
    /// entry at all.
    Malformed,
}

impl Refusal {
    /// The names of all reasons, in the order of the enumeration.
    pub const NAMES: [&'static str; 4] =
        ["no_second_entry", "not_provided", "replays", "malformed"];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Refusal::NoSecondEntry => Refusal::NAMES[0],
            Refusal::NotProvided { .. } => Refusal::NAMES[1],
            Refusal::Replays => Refusal::NAMES[2],
            Refusal::Malformed => Refusal::NAMES[3],
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
            Refusal::Replays => f.write_str("an entry executes stores"),
            Refusal::Malformed => {
                f.write_str("an entry reads what it does not require or has not computed")
            }
        }
    }
}

/// Two mappings composed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Composition {
    /// From the source of the first to the target of the second.
    pub mapping: Mapping,
    /// The points at which the first mapping has an entry and the composition has none, ascending.
    pub refused: Vec<(Point, Refusal)>,
}

impl Composition {
    /// How many points were refused for the reason of this name.
    pub fn refused_for(&self, name: &str) -> usize {
        self.refused.iter().filter(|(_, refusal)| refusal.name() == name).count()
    }
}

/// Two mappings that do not follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotAChain {
    /// The version the first mapping leads to.
    pub target: VersionKey,
    /// The version the second one leaves from.
    pub source: VersionKey,
}

impl fmt::Display for NotAChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the second mapping leaves from another version than the first one leads to")
    }
}

impl std::error::Error for NotAChain {}

/// Composes two mappings, entry by entry. Total: whatever the entries are, they compose or are
/// refused. Cost: near linear in the entries of the first and those of the second where they land.
///
/// # Errors
/// When the second does not leave from the version that the first leads to.
pub fn compose(first: &Mapping, second: &Mapping) -> Result<Composition, NotAChain> {
    if first.target() != second.source() {
        return Err(NotAChain { target: first.target(), source: second.source() });
    }
    let mut composition = Composition {
        mapping: Mapping::between(first.source(), second.target()),
        refused: Vec::new(),
    };
    for (point, entry) in first.entries() {
        let next = second.entry(entry.target).ok_or(Refusal::NoSecondEntry);
        match next.and_then(|next| compose_entries(entry, next)) {
            Ok(entry) => composition.mapping.insert(point, entry),
            Err(refusal) => composition.refused.push((point, refusal)),
        }
    }
    Ok(composition)
}

/// The entry that does what `first` does, and then what `second` does.
///
/// # Errors
/// Why there is none.
fn compose_entries(first: &Entry, second: &Entry) -> Result<Entry, Refusal> {
    if !first.replays.is_empty() || !second.replays.is_empty() {
        return Err(Refusal::Replays);
    }
    let is_missing = |v: &&Value| !first.provides_value(**v);
    if let Some(value) = second.requires.iter().find(is_missing) {
        return Err(Refusal::NotProvided { value: *value });
    }
    let mut code = Code::default();
    let between = code.append(first, |value| {
        first.requires.binary_search(&value).ok().map(|_| Operand::Source(value))
    });
    let between = between.ok_or(Refusal::Malformed)?;
    let given = |value: Value| {
        second.requires.binary_search(&value).ok()?;
        let at = between.binary_search_by_key(&value, |a| a.value).ok()?;
        Some(between[at].from)
    };
    let assigns = code.append(second, given).ok_or(Refusal::Malformed)?;
    let (steps, assigns) = code.needed_for(assigns);
    let mut requires: Vec<Value> = steps
        .iter()
        .flat_map(|s| &s.args)
        .chain(assigns.iter().map(|a| &a.from))
        .filter_map(source)
        .collect();
    requires.sort_unstable();
    requires.dedup();
    let is_kept = |v: &Value| first.kept.binary_search(v).is_ok();
    let kept = requires.iter().copied().filter(is_kept).collect();
    Ok(Entry { target: second.target, steps, replays: Vec::new(), assigns, requires, kept })
}

fn source(operand: &Operand) -> Option<Value> {
    match operand {
        Operand::Source(value) => Some(*value),
        Operand::Step(_) => None,
    }
}

/// Compensation code that grows; equal steps are shared.
#[derive(Default)]
struct Code {
    steps: Vec<Step>,
    /// Never iterated.
    known: HashMap<Step, u32>,
}

impl Code {
    /// Appends the steps of an entry, whose values `given` supplies, and returns its assignments in
    /// terms of this code. `None` when the entry reads what it must not.
    fn append(
        &mut self,
        entry: &Entry,
        given: impl Fn(Value) -> Option<Operand>,
    ) -> Option<Vec<Assign>> {
        let mut done: Vec<Operand> = Vec::new();
        for step in &entry.steps {
            let args =
                step.args.iter().map(|arg| moved(*arg, &done, &given)).collect::<Option<_>>()?;
            done.push(Operand::Step(self.step(Step { args, ..step.clone() })));
        }
        let assign =
            |a: &Assign| moved(a.from, &done, &given).map(|from| Assign { value: a.value, from });
        entry.assigns.iter().map(assign).collect()
    }

    /// The number of a step: of an equal one if there is one already.
    fn step(&mut self, step: Step) -> u32 {
        let Code { steps, known } = self;
        *known.entry(step).or_insert_with_key(|step| {
            steps.push(step.clone());
            steps.len() as u32 - 1
        })
    }

    /// The steps that the assignments read, in order, and the assignments in terms of those.
    fn needed_for(self, mut assigns: Vec<Assign>) -> (Vec<Step>, Vec<Assign>) {
        let mut needed = vec![false; self.steps.len()];
        let mark = |needed: &mut Vec<bool>, operand: Operand| {
            if let Operand::Step(index) = operand {
                needed[index as usize] = true;
            }
        };
        assigns.iter().for_each(|a| mark(&mut needed, a.from));
        // Steps read earlier ones, so one walk from the last to the first finds all.
        for index in (0..self.steps.len()).rev() {
            if needed[index] {
                self.steps[index].args.iter().for_each(|arg| mark(&mut needed, *arg));
            }
        }
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
        assigns.iter_mut().for_each(|a| renumber(&mut a.from));
        (steps, assigns)
    }
}

/// An operand of an entry, in terms of the code its steps were appended to.
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
