//! Packed entries: many large entries in little memory.
//!
//! An entry names each value that it provides. A function of 60,000 instructions with 300 live
//! values at each point has 18 million of them each way. Entries of neighboring points name nearly
//! the same values, and compute nearly the same steps. A *store* therefore keeps each entry as
//! lists of words, and cuts each list into parts at places that depend on the words alone. Equal
//! parts are stored once, whichever entries and lists they are of. A value more or less changes
//! only its part, so a point costs about the logarithm of its values.
//!
//! Example: the entry at a point assigns `%a`, `%b`, ... to themselves, and so does the entry at
//! the next point, but for `%b`. The two lists of words differ in the first part, and share the
//! others. The second list is made from the first, and compared with it, for about the cost of that
//! part ([`crate::lists`]).
//!
//! The values that an entry provides are one list, and the assignments that change a value are
//! another, short one. Most values keep their contents, and then landing points with equal live
//! values have equal lists, whatever their entries compute. The required values are the values that
//! keep their contents and the values that the rest of the entry reads. So their list is made from
//! the list of provided values.
//!
//! Words say nothing of the place of a step. A step that reads another step counts the steps back
//! to it, and an assignment counts from the step that the last assignment read. Entries that have a
//! step more or less in front thus share the parts of the other steps.
//!
//! A store only grows, and an entry is read from it as it was packed. So an entry that the checker
//! has judged cannot change before it is fired.

use crate::ascending::{ascends, differences};
use crate::lists::Lists;
use crate::mapping::{Assign, Entry, Operand, Replay, Step};
use crate::parts::{EntryCode, EntryParts, ValueList, assigns_of};
use ir::entity::{Inst, Point, Value};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The store of packed entries. Clones are the same store.
#[derive(Clone, Debug, Default)]
pub struct EntryStore(Arc<RwLock<Packed>>);

impl EntryStore {
    /// Packs an entry. The same store gives equal entries the same number. `None` for an entry that
    /// no maker makes. Such an entry has a step that reads itself or a later one, an id beyond
    /// 2^31, or values that do not ascend. An entry with inner activations is not packed, either.
    pub(crate) fn pack(&self, entry: &Arc<Entry>) -> Option<u32> {
        self.write().pack(entry)
    }

    /// As [`EntryStore::pack`], for an entry in parts.
    pub(crate) fn pack_parts(&self, parts: &EntryParts<'_>) -> Option<u32> {
        self.write().pack_parts(parts, None)
    }

    /// The entry with a number that [`EntryStore::pack`] gave. Cost: linear in the entry.
    pub(crate) fn unpack(&self, number: u32) -> Entry {
        self.read().unpack(number)
    }

    /// The entry with this number without its lists of values. Cost: linear in the rest.
    pub(crate) fn code(&self, number: u32) -> EntryCode<'static> {
        self.read().code(number)
    }

    /// The outline of the entry with this number. Cost: constant.
    pub(crate) fn outline(&self, number: u32) -> EntryOutline {
        let record = self.read().record(number);
        let [steps, replays, provided, changed] = record.counts.map(|count| count as usize);
        EntryOutline { target: record.target(), steps, replays, provided, changed }
    }

    /// The kept values of the entry with this number. Cost: linear in them.
    pub(crate) fn kept(&self, number: u32) -> Vec<Value> {
        let packed = self.read();
        packed.values_of(packed.record(number).kept)
    }

    /// The values that the entry with this number provides. Cost: constant.
    pub(crate) fn provided(&self, number: u32) -> ValueList<'static> {
        let record = self.read().record(number);
        ValueList::Packed(self.clone(), record.provided, record.counts[2] as usize)
    }

    /// The values that the entry with this number requires. Cost: constant.
    pub(crate) fn required(&self, number: u32) -> ValueList<'static> {
        let record = self.read().record(number);
        ValueList::Packed(self.clone(), record.requires, record.required as usize)
    }

    /// Whether this is the same store.
    pub(crate) fn is(&self, other: &EntryStore) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The words that the store has.
    pub fn words(&self) -> usize {
        self.read().lists.words.len()
    }

    /// Whether a list of values, which ascends, has a value.
    pub(crate) fn has(&self, list: u32, value: Value) -> bool {
        self.read().lists.has(list, value.as_u32())
    }

    /// The values of a list.
    pub(crate) fn values(&self, list: u32) -> Vec<Value> {
        self.read().values_of(list)
    }

    /// See [`ValueList::differences`].
    pub(crate) fn differences(&self, lists: [u32; 2], mut only: impl FnMut(Value, bool)) {
        let only = |word: u32, is_second: bool| only(Value::from_u32(word), is_second);
        self.read().lists.differences(lists, only);
    }

    fn read(&self) -> RwLockReadGuard<'_, Packed> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Packed> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The properties of an entry that need no look at its lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntryOutline {
    /// The landing point.
    pub target: Point,
    /// The number of steps.
    pub steps: usize,
    /// The number of replayed stores.
    pub replays: usize,
    /// The number of values provided.
    pub provided: usize,
    /// The number of these that are assigned from another value or a step.
    pub changed: usize,
}

impl EntryOutline {
    /// The outline of an entry with `changed` assignments that change a value.
    pub(crate) fn with(entry: &Entry, changed: usize) -> EntryOutline {
        EntryOutline {
            target: entry.target,
            steps: entry.steps.len(),
            replays: entry.replays.len(),
            provided: entry.assigns.len(),
            changed,
        }
    }

    /// The size of the compensation code, as [`Entry::size`] has it.
    pub fn size(&self) -> usize {
        self.steps + self.replays + self.changed
    }
}

/// A packed entry: the numbers of its lists.
struct Record {
    target: u32,
    steps: u32,
    replays: u32,
    provided: u32,
    changed: u32,
    kept: u32,
    requires: u32,
    /// The number of required values.
    required: u32,
    /// Of steps, replays, values provided, and values that change.
    counts: [u32; 4],
}

impl Record {
    fn target(&self) -> Point {
        Point::before(Inst::from_u32(self.target))
    }
}

/// See [`EntryStore`].
#[derive(Debug, Default)]
struct Packed {
    lists: Lists,
    /// Steps without their operands, each with the number of operands.
    steps: Numbered<(Step, u32)>,
    /// Replays, likewise.
    replays: Numbered<(Replay, u32)>,
    /// The entry packed last, and its number. Mappings of several levels share entries.
    last: Option<(Arc<Entry>, u32)>,
    /// The values provided last, and the number of their list; then the values required last.
    last_values: [Option<(Vec<Value>, u32)>; 2],
    /// The list edited last, the changes, and the number of the list made.
    last_edit: (u32, Vec<(u32, bool)>, u32),
    /// Emptied and filled again for each list.
    list: Vec<u32>,
}

impl Packed {
    fn pack(&mut self, entry: &Arc<Entry>) -> Option<u32> {
        if let Some((last, number)) = &self.last
            && Arc::ptr_eq(last, entry)
        {
            return Some(*number);
        }
        if !entry.inner.is_empty() {
            return None;
        }
        let is_changed = |assign: &&Assign| !assign.is_identity();
        let provided: Vec<Value> = entry.provides().collect();
        let parts = EntryParts {
            target: entry.target,
            steps: entry.steps.clone(),
            replays: entry.replays.clone(),
            provided: &provided,
            changed: entry.assigns.iter().filter(is_changed).copied().collect(),
            read: Vec::new(),
            kept: entry.kept.clone(),
        };
        let number = self.pack_parts(&parts, Some(&entry.requires))?;
        self.last = Some((entry.clone(), number));
        Some(number)
    }

    /// Packs an entry that requires these values; without a list, it requires the values that it
    /// reads.
    fn pack_parts(&mut self, parts: &EntryParts<'_>, requires: Option<&[Value]>) -> Option<u32> {
        let EntryParts { target, steps, replays, provided, changed, read, kept } = parts;
        // An entry is judged in parts and fired as a whole. Only of such parts the two are one
        // entry (`parts_that_are_no_entry_are_not_packed`).
        let values: SmallVec<[Value; 8]> = changed.iter().map(|assign| assign.value).collect();
        let is_provided = |value: &Value| provided.binary_search(value).is_ok();
        let are_ordered = ascends(provided) && ascends(&values) && ascends(read);
        let is_changed = |assign: &Assign| !assign.is_identity();
        if !are_ordered || !values.iter().all(is_provided) || !changed.iter().all(is_changed) {
            return None;
        }
        let counts = [steps.len(), replays.len(), provided.len(), changed.len()];
        let mut last = 0;
        let provided = self.ascending(provided, 0)?;
        let (requires, required) = match requires {
            Some(requires) => (self.ascending(requires, 1)?, requires.len()),
            None => self.reading(provided, parts)?,
        };
        let [steps_count, replays_count, provided_count, changed_count] = counts;
        let record = [
            target.inst().as_u32(),
            self.operations(steps)?,
            self.replayed(steps.len(), replays)?,
            provided,
            self.list(changed, |assign, list| assigned(assign, &mut last, list))?,
            self.list(kept, |value, list| {
                list.push(value.as_u32());
                Some(())
            })?,
            requires,
            required as u32,
            steps_count as u32,
            replays_count as u32,
            provided_count as u32,
            changed_count as u32,
        ];
        // One node, however its words would be cut: the outline is read without a search.
        self.lists.node(0, &record)
    }

    /// The number of a list of values, most of which were in the last list of its kind. `None` if
    /// it does not ascend.
    fn ascending(&mut self, values: &[Value], kind: usize) -> Option<u32> {
        // Mappings of several levels have entries with a common landing point, one after the other.
        if let Some((known, last)) = &self.last_values[kind]
            && known == values
        {
            return Some(*last);
        }
        if !ascends(values) {
            return None;
        }
        let (mut known, last) = self.last_values[kind].take().unwrap_or_default();
        let mut changes = Vec::new();
        differences(&known, values, |value, comes| changes.push((value.as_u32(), comes)));
        let number = match changes.len() > values.len() / 4 || known.is_empty() {
            true => {
                let words = values.iter().copied().map(Value::as_u32);
                self.list(words, |word, list| {
                    list.push(word);
                    Some(())
                })?
            }
            false => self.lists.edited(last, &changes)?,
        };
        known.clear();
        known.extend_from_slice(values);
        self.last_values[kind] = Some((known, number));
        Some(number)
    }

    /// The list of the values that an entry reads which provides those of a list, with these
    /// changes, and reads these values besides; and its length.
    fn reading(&mut self, list: u32, parts: &EntryParts<'_>) -> Option<(u32, usize)> {
        let EntryParts { provided, changed, read, .. } = parts;
        let gone = changed.iter().map(|assign| assign.value);
        let gone = gone.filter(|value| read.binary_search(value).is_err());
        let new = read.iter().copied().filter(|value| provided.binary_search(value).is_err());
        let gone = gone.map(|value| (value.as_u32(), false));
        let mut changes: Vec<(u32, bool)> =
            gone.chain(new.map(|value| (value.as_u32(), true))).collect();
        changes.sort_unstable();
        let come = changes.iter().filter(|(_, comes)| *comes).count();
        let length = provided.len() + 2 * come - changes.len();
        if changes.is_empty() {
            return Some((list, length));
        }
        // At first, the list edited last has no changes.
        if (self.last_edit.0, &self.last_edit.1) != (list, &changes) {
            let number = self.lists.edited(list, &changes)?;
            self.last_edit = (list, changes, number);
        }
        Some((self.last_edit.2, length))
    }

    /// A list of the words that `write` appends for each item.
    fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(T, &mut Vec<u32>) -> Option<()>,
    ) -> Option<u32> {
        let mut list = std::mem::take(&mut self.list);
        list.clear();
        let is_written = items.into_iter().try_for_each(|item| write(item, &mut list));
        let number = is_written.and_then(|()| self.lists.put(&list));
        self.list = list;
        number
    }

    fn operations(&mut self, steps: &[Step]) -> Option<u32> {
        let mut shapes = std::mem::take(&mut self.steps);
        let number = self.list(steps.iter().enumerate(), |(at, step), list| {
            let bare = Step { args: Default::default(), ..*step };
            list.push(shapes.number((bare, step.args.len() as u32)));
            operands(&step.args, at, list)
        });
        self.steps = shapes;
        number
    }

    fn replayed(&mut self, end: usize, replays: &[Replay]) -> Option<u32> {
        let mut shapes = std::mem::take(&mut self.replays);
        let number = self.list(replays, |replay, list| {
            let bare = Replay { args: Default::default(), ..*replay };
            list.push(shapes.number((bare, replay.args.len() as u32)));
            operands(&replay.args, end, list)
        });
        self.replays = shapes;
        number
    }

    fn unpack(&self, number: u32) -> Entry {
        let record = self.record(number);
        let EntryCode { target, steps, replays, changed } = self.code(number);
        let assigns = assigns_of(&self.values_of(record.provided), &changed);
        let (requires, kept) = (self.values_of(record.requires), self.values_of(record.kept));
        let (steps, replays) = (steps.into_owned(), replays.into_owned());
        Entry { target, steps, replays, assigns, requires, kept, inner: Box::default() }
    }

    fn code(&self, number: u32) -> EntryCode<'static> {
        let record = self.record(number);
        let [count, _, _, changed] = record.counts.map(|count| count as usize);
        let steps = self.steps_of(&self.lists.get(record.steps, 3 * count), count);
        let replays = self.replays_of(&self.lists.get(record.replays, 0), count);
        let changed = changed_of(&self.lists.get(record.changed, 2 * changed), changed);
        let (steps, replays, changed) = (steps.into(), replays.into(), changed.into());
        EntryCode { target: record.target(), steps, replays, changed }
    }

    fn values_of(&self, list: u32) -> Vec<Value> {
        self.lists.get(list, 0).into_iter().map(Value::from_u32).collect()
    }

    fn record(&self, number: u32) -> Record {
        let &[
            _,
            target,
            steps,
            replays,
            provided,
            changed,
            kept,
            requires,
            required,
            ref counts @ ..,
        ] = self.lists.words_of(number)
        else {
            unreachable!("the record of an entry has twelve words")
        };
        let counts = counts.try_into().expect("four counts");
        Record { target, steps, replays, provided, changed, kept, requires, required, counts }
    }

    fn steps_of(&self, words: &[u32], count: usize) -> Vec<Step> {
        let (mut steps, mut words) = (Vec::with_capacity(count), words.iter());
        while let Some(shape) = words.next() {
            let (bare, count) = &self.steps.all[*shape as usize];
            let args = words.by_ref().take(*count as usize).map(|w| operand(*w, steps.len()));
            let args = args.collect();
            steps.push(Step { args, ..*bare });
        }
        steps
    }

    fn replays_of(&self, words: &[u32], end: usize) -> Vec<Replay> {
        let (mut replays, mut words) = (Vec::new(), words.iter());
        while let Some(shape) = words.next() {
            let (bare, count) = &self.replays.all[*shape as usize];
            let args = words.by_ref().take(*count as usize).map(|w| operand(*w, end)).collect();
            replays.push(Replay { args, ..*bare });
        }
        replays
    }
}

/// The word for an operand at the place of a step, or behind all steps.
fn word(operand: Operand, at: usize) -> Option<u32> {
    let (number, is_step) = match operand {
        Operand::Source(value) => (value.as_u32(), 0),
        Operand::Step(index) => ((at as u32).checked_sub(index).filter(|back| *back > 0)?, 1),
    };
    (number < 1 << 31).then_some(number << 1 | is_step)
}

fn operand(word: u32, at: usize) -> Operand {
    match word & 1 {
        0 => Operand::Source(Value::from_u32(word >> 1)),
        _ => Operand::Step(at as u32 - (word >> 1)),
    }
}

fn operands(args: &[Operand], at: usize, list: &mut Vec<u32>) -> Option<()> {
    args.iter().try_for_each(|arg| {
        list.push(word(*arg, at)?);
        Some(())
    })
}

/// Two words for a value that changes: a step counts from the step assigned last.
fn assigned(assign: &Assign, last: &mut u32, list: &mut Vec<u32>) -> Option<()> {
    let from = match assign.from {
        Operand::Source(_) => word(assign.from, 0)?,
        Operand::Step(index) => {
            let ahead = i32::try_from(i64::from(index) - i64::from(*last)).ok()?;
            *last = index;
            i32::checked_mul(ahead, 2)? as u32 | 1
        }
    };
    list.extend([assign.value.as_u32(), from]);
    Some(())
}

fn changed_of(words: &[u32], count: usize) -> Vec<Assign> {
    let (mut assigns, mut last) = (Vec::with_capacity(count), 0u32);
    let (pairs, _) = words.as_chunks();
    for &[value, from] in pairs {
        let from = match from & 1 {
            0 => Operand::Source(Value::from_u32(from >> 1)),
            _ => {
                last = last.wrapping_add_signed(from as i32 >> 1);
                Operand::Step(last)
            }
        };
        assigns.push(Assign { value: Value::from_u32(value), from });
    }
    assigns
}

/// Things with numbers. The order of the hash reaches no output.
#[derive(Debug)]
struct Numbered<T> {
    all: Vec<T>,
    numbers: HashMap<T, u32>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Numbered { all: Vec::new(), numbers: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> Numbered<T> {
    fn number(&mut self, thing: T) -> u32 {
        let all = &mut self.all;
        *self.numbers.entry(thing).or_insert_with_key(|thing| {
            all.push(thing.clone());
            (all.len() - 1) as u32
        })
    }
}

#[cfg(test)]
mod tests;
