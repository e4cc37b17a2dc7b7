//! Packed entries: many large entries in little memory.
//!
//! An entry names each value that it provides. A function of 60,000 instructions with 300 live
//! values at each point has 18 million of them each way. Entries of neighboring points name nearly
//! the same values, and compute nearly the same steps. A *store* therefore keeps each entry as
//! lists of words, and cuts each list into parts at places that depend on the words alone. Equal
//! parts are stored once, whichever entries and lists they are of. A value more or less changes the
//! part that it is in, so a point costs about the logarithm of its values.
//!
//! Example: the entry at a point assigns `%a`, `%b`, ... to themselves, and so does the entry at
//! the next point, but for `%b`. The two lists of words differ in the first part, and share the
//! others.
//!
//! Words say nothing of the place of a step. A step that reads another counts the steps back to it,
//! and an assignment counts from the step that the last one read. Entries that have a step more or
//! less in front thus share the parts of the others.
//!
//! A store only grows, and an entry is read from it as it was packed. So an entry that the checker
//! has judged cannot change before it is fired.

use crate::ascending::union;
use crate::lists::Lists;
use crate::mapping::{Assign, Entry, Operand, Replay, Step};
use ir::entity::{Inst, Point, Value};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, PoisonError, RwLock};

/// The store of packed entries. Clones are the same store.
#[derive(Clone, Debug, Default)]
pub struct EntryStore(Arc<RwLock<Packed>>);

impl EntryStore {
    /// Packs an entry. The same store gives equal entries the same number. `None` for an entry that
    /// no maker makes: a step that reads itself or a later one, or an id beyond 2^31.
    ///
    /// `changed` is the number of assignments that change a value.
    pub(crate) fn pack(&self, entry: &Arc<Entry>, changed: usize) -> Option<u32> {
        self.0.write().unwrap_or_else(PoisonError::into_inner).pack(entry, changed)
    }

    /// The entry with a number that [`EntryStore::pack`] gave. Cost: linear in the entry.
    pub(crate) fn unpack(&self, number: u32) -> Entry {
        self.0.read().unwrap_or_else(PoisonError::into_inner).unpack(number)
    }

    /// The outline of the entry with this number. Cost: constant.
    pub(crate) fn outline(&self, number: u32) -> EntryOutline {
        let record = self.0.read().unwrap_or_else(PoisonError::into_inner).record(number);
        let [steps, replays, provided, changed] = record.counts.map(|count| count as usize);
        EntryOutline { target: record.target(), steps, replays, provided, changed }
    }

    /// The kept values of the entry with this number. Cost: linear in them.
    pub(crate) fn kept(&self, number: u32) -> Vec<Value> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).kept(number)
    }

    /// The values that the entry with this number provides. Cost: linear in them.
    pub(crate) fn provided(&self, number: u32) -> Vec<Value> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).provided(number)
    }

    /// The values that the entry with this number requires. Cost: linear in the entry.
    pub(crate) fn required(&self, number: u32) -> Vec<Value> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).required(number)
    }

    /// Whether this is the same store.
    pub(crate) fn is(&self, other: &EntryStore) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The words that the store has.
    pub fn words(&self) -> usize {
        self.0.read().unwrap_or_else(PoisonError::into_inner).lists.words.len()
    }
}

/// What can be told of an entry without its lists.
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
    /// The outline of an entry with so many assignments that change a value.
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
    assigns: u32,
    kept: u32,
    /// [`NONE`] for the values that the entry reads.
    requires: u32,
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
    /// Emptied and filled again for each list.
    list: Vec<u32>,
}

/// The word for no list.
const NONE: u32 = u32::MAX;

impl Packed {
    fn pack(&mut self, entry: &Arc<Entry>, changed: usize) -> Option<u32> {
        if let Some((last, number)) = &self.last
            && Arc::ptr_eq(last, entry)
        {
            return Some(*number);
        }
        let Entry { target, steps, replays, assigns, requires, kept } = &**entry;
        let mut last = 0;
        let outline = EntryOutline::with(entry, changed);
        let record = [
            target.inst().as_u32(),
            self.operations(steps)?,
            self.replayed(steps.len(), replays)?,
            self.list(assigns, |assign, list| assigned(assign, &mut last, list))?,
            self.values(kept)?,
            if *requires == entry.reads() { NONE } else { self.values(requires)? },
            outline.steps as u32,
            outline.replays as u32,
            outline.provided as u32,
            outline.changed as u32,
        ];
        // One node, however its words would be cut: the outline is read without a search.
        let number = self.lists.node(0, &record)?;
        self.last = Some((entry.clone(), number));
        Some(number)
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
        let number = is_written.and_then(|()| self.lists.put(&list, 0));
        self.list = list;
        number
    }

    fn values(&mut self, values: &[Value]) -> Option<u32> {
        self.list(values, |value, list| {
            list.push(value.as_u32());
            Some(())
        })
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
        let [count, _, provided, changed] = record.counts.map(|count| count as usize);
        let steps = self.steps_of(&self.lists.get(record.steps, 3 * count), count);
        let replays = self.replays_of(&self.lists.get(record.replays, 0), count);
        let assigns = self.lists.get(record.assigns, provided + changed);
        let assigns = assigns_of(&assigns, provided);
        let is_read = record.requires == NONE;
        let requires = if is_read { Vec::new() } else { self.values_of(record.requires) };
        let (target, kept) = (record.target(), self.values_of(record.kept));
        let entry = Entry { target, steps, replays, assigns, requires, kept };
        if is_read { Entry { requires: entry.reads(), ..entry } } else { entry }
    }

    fn kept(&self, number: u32) -> Vec<Value> {
        self.values_of(self.record(number).kept)
    }

    fn provided(&self, number: u32) -> Vec<Value> {
        let record = self.record(number);
        let mut provided = Vec::with_capacity(record.counts[2] as usize);
        let words = self.lists.get(record.assigns, provided.capacity());
        let mut words = words.iter();
        while let Some(first) = words.next() {
            provided.push(Value::from_u32(first >> 1));
            if first & 1 == 1 {
                words.next();
            }
        }
        provided
    }

    /// As [`Packed::unpack`] has them, without steps and assignments.
    fn required(&self, number: u32) -> Vec<Value> {
        let record = self.record(number);
        if record.requires != NONE {
            return self.values_of(record.requires);
        }
        let (mut same, mut read) = (Vec::with_capacity(record.counts[2] as usize), Vec::new());
        let mut reads = |word: u32| {
            if word & 1 == 0 {
                read.push(Value::from_u32(word >> 1));
            }
        };
        let words = self.lists.get(record.assigns, same.capacity());
        let mut words = words.iter();
        while let Some(first) = words.next() {
            match first & 1 {
                0 => same.push(Value::from_u32(first >> 1)),
                _ => words.next().copied().into_iter().for_each(&mut reads),
            }
        }
        let steps = |shape: u32| self.steps.all[shape as usize].1;
        let replays = |shape: u32| self.replays.all[shape as usize].1;
        let lists: [(u32, &dyn Fn(u32) -> u32); 2] =
            [(record.steps, &steps), (record.replays, &replays)];
        for (list, operands_of) in lists {
            let words = self.lists.get(list, 0);
            let mut words = words.iter();
            while let Some(shape) = words.next() {
                words.by_ref().take(operands_of(*shape) as usize).for_each(|word| reads(*word));
            }
        }
        union(same, read)
    }

    fn values_of(&self, list: u32) -> Vec<Value> {
        self.lists.get(list, 0).into_iter().map(Value::from_u32).collect()
    }

    fn record(&self, number: u32) -> Record {
        let [_, target, steps, replays, assigns, kept, requires, counts @ ..] =
            self.lists.words_of(number)
        else {
            unreachable!("the record of an entry has ten words")
        };
        let counts = counts.try_into().expect("four counts");
        let [target, steps, replays] = [*target, *steps, *replays];
        Record {
            target,
            steps,
            replays,
            assigns: *assigns,
            kept: *kept,
            requires: *requires,
            counts,
        }
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

/// One word for a value that keeps its contents, two for another: a step counts from the last one
/// assigned.
fn assigned(assign: &Assign, last: &mut u32, list: &mut Vec<u32>) -> Option<()> {
    let value = word(Operand::Source(assign.value), 0)?;
    if assign.is_identity() {
        list.push(value);
        return Some(());
    }
    let from = match assign.from {
        Operand::Source(_) => word(assign.from, 0)?,
        Operand::Step(index) => {
            let ahead = i32::try_from(i64::from(index) - i64::from(*last)).ok()?;
            *last = index;
            i32::checked_mul(ahead, 2)? as u32 | 1
        }
    };
    list.extend([value | 1, from]);
    Some(())
}

fn assigns_of(words: &[u32], count: usize) -> Vec<Assign> {
    let (mut assigns, mut words) = (Vec::with_capacity(count), words.iter());
    let mut last = 0u32;
    while let Some(first) = words.next() {
        let value = Value::from_u32(first >> 1);
        let from = match first & 1 {
            0 => Operand::Source(value),
            _ => match *words.next().expect("two words for a value that changes") {
                source if source & 1 == 0 => Operand::Source(Value::from_u32(source >> 1)),
                step => {
                    last = last.wrapping_add_signed(step as i32 >> 1);
                    Operand::Step(last)
                }
            },
        };
        assigns.push(Assign { value, from });
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
mod tests {
    use super::*;
    use ir::{Imm, Opcode, Type};

    fn value(id: u32) -> Value {
        Value::from_u32(id)
    }

    /// An entry with values, steps and a replay.
    fn entry(values: std::ops::Range<u32>, steps: u32) -> Entry {
        let add = |at: u32| Step {
            opcode: Opcode::Add,
            ty: Type::I32,
            operand_ty: Type::I32,
            bits: 0,
            args: [
                Operand::Source(value(at)),
                at.checked_sub(1).map_or_else(|| Operand::Source(value(7)), Operand::Step),
            ]
            .into(),
        };
        let from = |v: u32| match v % 5 {
            0 if steps > 0 => Operand::Step(v % steps),
            1 => Operand::Source(value(v + 1)),
            _ => Operand::Source(value(v)),
        };
        let assigns = values.map(|v| Assign { value: value(v), from: from(v) }).collect();
        let replay = Replay {
            inst: Inst::from_u32(3),
            opcode: Opcode::Store,
            ty: Type::I32,
            imm: Imm::None,
            args: [Operand::Source(value(1)), Operand::Source(value(2))].into(),
        };
        let target = Point::before(Inst::from_u32(11));
        let (steps, kept) = ((0..steps).map(add).collect(), vec![value(2), value(9)]);
        let entry =
            Entry { target, steps, replays: vec![replay], assigns, requires: Vec::new(), kept };
        Entry { requires: entry.reads(), ..entry }
    }

    fn pack(store: &EntryStore, entry: Entry) -> Option<u32> {
        let changed = entry.assigns.iter().filter(|assign| !assign.is_identity()).count();
        store.pack(&Arc::new(entry), changed)
    }

    fn packed(store: &EntryStore, entry: Entry) -> u32 {
        pack(store, entry).expect("a maker may make it")
    }

    #[test]
    fn entries_are_read_as_they_were_packed() {
        let store = EntryStore::default();
        let mut all = vec![entry(0..0, 0)];
        for (count, steps) in [(1, 0), (3, 1), (90, 4), (700, 300), (5000, 0)] {
            for from in [1, 2, 40] {
                all.push(entry(from..from + count, steps));
            }
        }
        let more = Entry { requires: vec![value(1), value(800)], ..entry(3..9, 2) };
        all.push(more);
        let numbers: Vec<u32> = all.iter().map(|entry| packed(&store, entry.clone())).collect();
        for (entry, number) in all.iter().zip(&numbers) {
            assert_eq!(*entry, store.unpack(*number));
            assert_eq!(entry.requires, store.required(*number));
            assert!(entry.provides().eq(store.provided(*number)));
            assert_eq!(packed(&store, entry.clone()), *number, "equal entries are one");
        }
        let mut different = numbers.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), numbers.len(), "others are not");
    }

    #[test]
    fn neighbors_share_what_they_have_in_common() {
        let (store, count) = (EntryStore::default(), 3000);
        for first in 0..1000 {
            let assigns = (first..first + count)
                .map(|v| Assign { value: value(v), from: Operand::Source(value(v)) });
            packed(&store, Entry { assigns: assigns.collect(), ..entry(0..0, 0) });
        }
        assert!(store.words() < 1000 * 250, "{} words", store.words());
    }

    #[test]
    fn what_no_maker_makes_is_not_packed() {
        let store = EntryStore::default();
        let mut late = entry(0..0, 2);
        late.steps[0].args[1] = Operand::Step(0);
        assert_eq!(pack(&store, late), None);
        let far = Assign { value: value(1 << 31), from: Operand::Source(value(1)) };
        assert_eq!(pack(&store, Entry { assigns: vec![far], ..entry(0..0, 0) }), None);
    }
}
