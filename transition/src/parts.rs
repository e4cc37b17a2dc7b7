//! Parts of entries: the pieces from which makers build entries, and the pieces that judges read.
//!
//! An entry lists hundreds of values in a straight line, and computes a few. Neither maker nor
//! judge goes through the lists of each entry: the maker hands over the changes, and the judge
//! looks at the values in which two lists differ.

use crate::ascending::{ascends, count_below, differences, with, without};
use crate::mapping::{Assign, Entry, Operand, Replay, Step};
use crate::packed::EntryStore;
use ir::entity::{Point, Value};
use std::borrow::Cow;

/// A list of values of an entry, to be compared with the list of another entry.
#[derive(Clone, Debug)]
pub enum ValueList<'e> {
    /// In any order.
    Whole(Cow<'e, [Value]>),
    /// A list in a store, with its length. It ascends.
    Packed(EntryStore, u32, usize),
}

impl ValueList<'_> {
    /// The number of values.
    pub fn len(&self) -> usize {
        match self {
            ValueList::Whole(values) => values.len(),
            ValueList::Packed(.., length) => *length,
        }
    }

    /// Whether the list has no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether each value is less than the next value. Cost: constant for a list in a store.
    pub fn ascends(&self) -> bool {
        match self {
            ValueList::Whole(values) => ascends(values),
            ValueList::Packed(..) => true,
        }
    }

    /// Whether an ascending list has a value. Cost: a fraction of the values at most.
    pub fn has(&self, value: Value) -> bool {
        match self {
            ValueList::Whole(values) => values.binary_search(&value).is_ok(),
            ValueList::Packed(store, list, _) => store.has(*list, value),
        }
    }

    /// The values, in order.
    pub fn values(&self) -> Cow<'_, [Value]> {
        match self {
            ValueList::Whole(values) => Cow::Borrowed(values),
            ValueList::Packed(store, list, _) => Cow::Owned(store.values(*list)),
        }
    }

    /// Calls `only` for each value in exactly one of two lists, with `true` for a value of the
    /// other list, like [`differences`]. `only` must not use the store of the lists. Cost: for two
    /// lists of one store, the parts in which they differ, and a fraction of the others; otherwise,
    /// as for [`differences`].
    pub fn differences(&self, other: &ValueList<'_>, only: impl FnMut(Value, bool)) {
        if let (ValueList::Packed(a, first, _), ValueList::Packed(b, second, _)) = (self, other)
            && a.is(b)
        {
            return a.differences([*first, *second], only);
        }
        differences(&self.values(), &other.values(), only);
    }

    /// Becomes a copy of another list.
    pub fn become_copy(&mut self, other: &ValueList<'_>) {
        match (&mut *self, other) {
            (ValueList::Whole(values), ValueList::Whole(others)) => {
                let values = values.to_mut();
                values.clear();
                values.extend_from_slice(others);
            }
            (_, ValueList::Whole(others)) => *self = ValueList::Whole(others.to_vec().into()),
            (_, ValueList::Packed(store, list, length)) => {
                *self = ValueList::Packed(store.clone(), *list, *length);
            }
        }
    }
}

impl Default for ValueList<'_> {
    fn default() -> Self {
        ValueList::Whole(Cow::Borrowed(&[]))
    }
}

/// An entry without the values that it provides unchanged, keeps, and requires.
#[derive(Clone, Debug)]
pub struct EntryCode<'e> {
    /// The landing point.
    pub target: Point,
    /// The steps.
    pub steps: Cow<'e, [Step]>,
    /// The replays.
    pub replays: Cow<'e, [Replay]>,
    /// The assignments from another value or from a step, in order.
    pub changed: Cow<'e, [Assign]>,
}

/// An entry in parts, as a maker finds it.
#[derive(Clone, Debug)]
pub struct EntryParts<'p> {
    /// The landing point.
    pub target: Point,
    /// The steps.
    pub steps: Vec<Step>,
    /// The replays.
    pub replays: Vec<Replay>,
    /// The values provided, ascending.
    pub provided: &'p [Value],
    /// The assignments that change a value, ascending.
    pub changed: Vec<Assign>,
    /// The values that steps, replays and these assignments read, and others provided that keep
    /// their contents, ascending, each once.
    pub read: Vec<Value>,
    /// The kept values.
    pub kept: Vec<Value>,
}

impl EntryParts<'_> {
    /// The entry. Cost: linear in the entry.
    pub(crate) fn into_entry(self) -> Entry {
        let EntryParts { target, steps, replays, provided, changed, read, kept } = self;
        let values: Vec<Value> = changed.iter().map(|assign| assign.value).collect();
        let requires = with(without(provided, &values), &read);
        let (assigns, inner) = (assigns_of(provided, &changed), Box::default());
        Entry { target, steps, replays, assigns, requires, kept, inner }
    }
}

/// The assignments of an entry. Both lists ascend, and each value that changes is provided.
pub(crate) fn assigns_of(provided: &[Value], changed: &[Assign]) -> Vec<Assign> {
    let (mut rest, mut assigns) = (provided, Vec::with_capacity(provided.len()));
    let to_itself = |value: &Value| Assign { value: *value, from: Operand::Source(*value) };
    for assign in changed {
        let (same, from) = rest.split_at(count_below(rest, assign.value));
        assigns.extend(same.iter().map(to_itself));
        assigns.push(*assign);
        rest = from.get(1..).unwrap_or_default();
    }
    assigns.extend(rest.iter().map(to_itself));
    assigns
}
