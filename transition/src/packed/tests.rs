//! Packing and reading preserves entries, and the store packs nothing that is no entry.

use super::*;
use crate::VersionKey;
use crate::frames::{Frame, FramePlace};
use crate::mapping::Mapping;
use ir::text::parse_module;
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
    let entry = Entry {
        target,
        steps,
        replays: vec![replay],
        assigns,
        requires: Vec::new(),
        kept,
        inner: Box::default(),
    };
    Entry { requires: entry.reads(), ..entry }
}

fn pack(store: &EntryStore, entry: Entry) -> Option<u32> {
    store.pack(&Arc::new(entry))
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
        assert_eq!(entry.requires, *store.required(*number).values());
        assert_eq!(entry.requires.len(), store.required(*number).len());
        let provided = store.provided(*number);
        assert!(entry.provides().eq(provided.values().iter().copied()));
        assert_eq!(entry.assigns.len(), provided.len());
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
fn parts_that_are_no_entry_are_not_packed() {
    let values = |list: &[u32]| list.iter().copied().map(value).collect::<Vec<Value>>();
    let pack = |provided: &[u32], changed: &[u32], read: &[u32]| {
        let changed = values(changed).into_iter();
        let parts = EntryParts {
            target: Point::before(Inst::from_u32(11)),
            steps: Vec::new(),
            replays: Vec::new(),
            provided: &values(provided),
            changed: changed
                .map(|v| Assign { value: v, from: Operand::Source(value(9)) })
                .collect(),
            read: values(read),
            kept: Vec::new(),
        };
        EntryStore::default().pack_parts(&parts)
    };
    assert!(pack(&[1, 2, 3], &[1, 3], &[9]).is_some());
    // The whole entry would assign %0 in the place of %1.
    assert_eq!(pack(&[1, 2, 3], &[0], &[9]), None);
    assert_eq!(pack(&[1, 2, 3], &[3, 1], &[9]), None);
    assert_eq!(pack(&[1, 2, 3], &[1], &[9, 9]), None);
    assert_eq!(pack(&[2, 1], &[], &[]), None);
    // An assignment that changes nothing: equal entries would have two numbers.
    assert_eq!(pack(&[8, 9], &[9], &[]), None);
}

#[test]
fn what_no_maker_makes_is_not_packed() {
    let store = EntryStore::default();
    let mut late = entry(0..0, 2);
    late.steps[0].args[1] = Operand::Step(0);
    assert_eq!(pack(&store, late), None);
    let far = Assign { value: value(1), from: Operand::Source(value(1 << 31)) };
    assert_eq!(pack(&store, Entry { assigns: vec![far], ..entry(0..0, 0) }), None);
}

/// A packed entry would forget the inner activations.
#[test]
fn an_entry_into_several_activations_is_not_packed() {
    let at = FramePlace::Before(Point::before(Inst::from_u32(3)));
    let assigns = vec![Assign { value: value(1), from: Operand::Source(value(2)) }];
    let body = parse_module("func @f() {\nentry:\n  return\n}\n").expect("it is right");
    let (func, body) = body.defined().next().expect("a function");
    let frame = Frame { func, version: VersionKey::of(body), at, assigns };
    let several = Entry { inner: [frame].into(), ..entry(1..9, 2) };
    let store = EntryStore::default();
    assert_eq!(pack(&store, several.clone()), None);
    let mut mapping = Mapping::new(body, body).packing(store);
    let point = Point::before(Inst::from_u32(5));
    mapping.insert(point, several.clone());
    assert_eq!(mapping.entry(point), Some(&several));
    let shared = mapping.shared(point).expect("it was inserted");
    assert!(!shared.lands_alone() && !shared.is_packed());
    assert_eq!(shared.outline().size(), several.size());
}
