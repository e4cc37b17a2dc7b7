//! Entries that several mappings have, whole or packed.

use crate::mapping::{Assign, Entry};
use crate::packed::{EntryOutline, EntryStore};
use crate::parts::{EntryCode, EntryParts, ValueList};
use ir::entity::{Point, Value};
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

/// An entry that several mappings may have. Large mappings have their entries packed
/// ([`EntryStore`]).
#[derive(Clone, Debug)]
pub struct SharedEntry(Stored);

#[derive(Clone, Debug)]
enum Stored {
    /// With the number of assignments that change a value, since each mapping that shares the entry
    /// needs its size.
    Whole(Arc<Entry>, usize),
    Packed(Arc<PackedEntry>),
}

#[derive(Debug)]
struct PackedEntry {
    store: EntryStore,
    number: u32,
    /// The entry, once a caller has requested a lasting reference.
    whole: OnceLock<Entry>,
}

impl SharedEntry {
    /// The entry. Cost: linear in the entry if it is packed; then it is not kept.
    pub fn get(&self) -> Cow<'_, Entry> {
        match &self.0 {
            Stored::Whole(entry, _) => Cow::Borrowed(entry),
            Stored::Packed(packed) => match packed.whole.get() {
                Some(entry) => Cow::Borrowed(entry),
                None => Cow::Owned(packed.store.unpack(packed.number)),
            },
        }
    }

    /// The landing point of the entry. Cost: constant.
    pub fn target(&self) -> Point {
        match &self.0 {
            Stored::Whole(entry, _) => entry.target,
            Stored::Packed(packed) => packed.store.outline(packed.number).target,
        }
    }

    /// The outline of the entry. Cost: constant.
    pub fn outline(&self) -> EntryOutline {
        match &self.0 {
            Stored::Whole(entry, changed) => EntryOutline::with(entry, *changed),
            Stored::Packed(packed) => packed.store.outline(packed.number),
        }
    }

    /// The kept values of the entry.
    pub fn kept(&self) -> Cow<'_, [Value]> {
        match &self.0 {
            Stored::Whole(entry, _) => Cow::Borrowed(&entry.kept),
            Stored::Packed(packed) => Cow::Owned(packed.store.kept(packed.number)),
        }
    }

    /// The values that the entry requires. Cost: constant.
    pub fn requires(&self) -> ValueList<'_> {
        match &self.0 {
            Stored::Whole(entry, _) => ValueList::Whole(Cow::Borrowed(&entry.requires)),
            Stored::Packed(packed) => packed.store.required(packed.number),
        }
    }

    /// The values that the entry provides. Cost: constant if it is packed, otherwise linear in
    /// them.
    pub fn provides(&self) -> ValueList<'_> {
        match &self.0 {
            Stored::Whole(entry, _) => ValueList::Whole(entry.provides().collect()),
            Stored::Packed(packed) => packed.store.provided(packed.number),
        }
    }

    /// The landing point, the steps, and the values that they change. Cost: linear in these if the
    /// entry is packed, otherwise in the values provided.
    pub fn code(&self) -> EntryCode<'_> {
        match &self.0 {
            Stored::Whole(entry, _) => {
                let is_changed = |assign: &&Assign| !assign.is_identity();
                let changed: Vec<Assign> =
                    entry.assigns.iter().filter(is_changed).copied().collect();
                EntryCode {
                    target: entry.target,
                    steps: Cow::Borrowed(&entry.steps),
                    replays: Cow::Borrowed(&entry.replays),
                    changed: changed.into(),
                }
            }
            Stored::Packed(packed) => packed.store.code(packed.number),
        }
    }

    /// Whether the run lands in the target version alone ([`Entry::inner`]). Cost: constant.
    pub fn lands_alone(&self) -> bool {
        match &self.0 {
            Stored::Whole(entry, _) => entry.inner.is_empty(),
            // No other entry is packed.
            Stored::Packed(_) => true,
        }
    }

    /// Whether the entry has steps or replays. Cost: constant.
    pub fn has_code(&self) -> bool {
        match &self.0 {
            Stored::Whole(entry, _) => !entry.steps.is_empty() || !entry.replays.is_empty(),
            Stored::Packed(packed) => {
                let outline = packed.store.outline(packed.number);
                outline.steps + outline.replays > 0
            }
        }
    }

    /// The number of values provided. Cost: constant.
    pub fn provided(&self) -> usize {
        match &self.0 {
            Stored::Whole(entry, _) => entry.assigns.len(),
            Stored::Packed(packed) => packed.store.outline(packed.number).provided,
        }
    }

    /// The entry. If it is packed, it stays in memory from here on.
    pub(crate) fn whole(&self) -> &Entry {
        match &self.0 {
            Stored::Whole(entry, _) => entry,
            Stored::Packed(packed) => {
                packed.whole.get_or_init(|| packed.store.unpack(packed.number))
            }
        }
    }

    /// Whether the entry is packed. Cost: constant.
    pub fn is_packed(&self) -> bool {
        matches!(self.0, Stored::Packed(_))
    }

    /// Whether the two are known to be the same entry. Cost: constant.
    pub fn is(&self, other: &SharedEntry) -> bool {
        match (&self.0, &other.0) {
            (Stored::Whole(a, _), Stored::Whole(b, _)) => Arc::ptr_eq(a, b),
            (Stored::Packed(a), Stored::Packed(b)) => a.store.is(&b.store) && a.number == b.number,
            _ => false,
        }
    }

    /// Whether the two are known to be different: a store gives equal entries one number.
    fn differ_packed(&self, other: &SharedEntry) -> bool {
        match (&self.0, &other.0) {
            (Stored::Packed(a), Stored::Packed(b)) => a.store.is(&b.store) && a.number != b.number,
            _ => false,
        }
    }

    pub(crate) fn into_entry(self) -> Entry {
        match self.0 {
            Stored::Whole(entry, _) => Arc::unwrap_or_clone(entry),
            Stored::Packed(_) => self.get().into_owned(),
        }
    }

    /// The entry, packed if the store takes it.
    pub(crate) fn packed(self, store: &EntryStore) -> SharedEntry {
        let Stored::Whole(entry, _) = &self.0 else { return self };
        let Some(number) = store.pack(entry) else { return self };
        SharedEntry::stored(store, number)
    }

    fn stored(store: &EntryStore, number: u32) -> SharedEntry {
        let (store, whole) = (store.clone(), OnceLock::new());
        SharedEntry(Stored::Packed(Arc::new(PackedEntry { store, number, whole })))
    }

    /// An entry from its parts, packed if there is a store and it takes the entry. Cost: linear in
    /// the entry; for a packed entry, mostly in its differences from the last entry.
    pub fn made(parts: EntryParts<'_>, store: Option<&EntryStore>) -> SharedEntry {
        match store.and_then(|store| Some((store, store.pack_parts(&parts)?))) {
            Some((store, number)) => SharedEntry::stored(store, number),
            None => parts.into_entry().into(),
        }
    }
}

impl From<Arc<Entry>> for SharedEntry {
    fn from(entry: Arc<Entry>) -> SharedEntry {
        let changed = entry.changed();
        SharedEntry(Stored::Whole(entry, changed))
    }
}

impl From<Entry> for SharedEntry {
    fn from(entry: Entry) -> SharedEntry {
        Arc::new(entry).into()
    }
}

impl PartialEq for SharedEntry {
    fn eq(&self, other: &SharedEntry) -> bool {
        self.is(other) || (!self.differ_packed(other) && self.get() == other.get())
    }
}

impl Eq for SharedEntry {}
