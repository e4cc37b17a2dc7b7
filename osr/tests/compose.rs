//! Composition of mappings, on versions made by hand.

use super::common::{edited, function, inst, value};
use ir::edit::Editor;
use ir::{Func, Function, Global, Imm, Inst, InstSpec, Memory, Opcode, Point, Type, Value};
use std::collections::{BTreeMap, BTreeSet};
use transition::frames::{Frame, FramePlace};
use transition::mapping::{Assign, Entry, Mapping, Operand, Replay, Step};
use transition::{NotAChain, Refusal, VersionKey, compose};

const TEXT: &str = "
func @f(%a: i32, %b: i32) -> i32 {
entry:
  %x = add.i32 %a, %b
  %y = mul.i32 %x, %a
  %z = sub.i32 %y, %b
  return %z
}";

/// Three versions that differ only in their keys. The tests compose entries between them without
/// running the versions, so any well-formed entry will do.
fn versions() -> [Function; 3] {
    let base = function(TEXT);
    let idle = |ed: &mut Editor<'_>| {
        let last = inst(ed.func(), "z");
        ed.add_value(InstSpec::constant(Type::I32, 7), last);
    };
    let second = edited(&base, idle).into_parts().0;
    let third = edited(&second, idle).into_parts().0;
    [base, second, third]
}

fn step(opcode: Opcode, a: Operand, b: Operand) -> Step {
    Step { opcode, ty: Type::I32, operand_ty: Type::I32, bits: 0, args: [a, b].into() }
}

fn constant(bits: u64) -> Step {
    Step {
        opcode: Opcode::Const,
        ty: Type::I32,
        operand_ty: Type::I32,
        bits,
        args: Vec::new().into(),
    }
}

fn assign(value: Value, from: Operand) -> Assign {
    Assign { value, from }
}

/// An entry without replays and kept values. Sorts the lists, as entries require.
pub(crate) fn entry(
    target: Point,
    steps: Vec<Step>,
    mut assigns: Vec<Assign>,
    mut requires: Vec<Value>,
) -> Entry {
    assigns.sort();
    requires.sort();
    Entry {
        target,
        steps,
        replays: Vec::new(),
        assigns,
        requires,
        kept: Vec::new(),
        inner: Box::default(),
    }
}

struct Case {
    versions: [Function; 3],
    first: Mapping,
    second: Mapping,
}

impl Case {
    fn new() -> Case {
        let versions = versions();
        let (first, second) =
            (Mapping::new(&versions[0], &versions[1]), Mapping::new(&versions[1], &versions[2]));
        Case { versions, first, second }
    }

    fn values<const N: usize>(&self, names: [&str; N]) -> [Value; N] {
        names.map(|n| value(&self.versions[0], n))
    }

    fn point(&self, name: &str) -> Point {
        Point::before(inst(&self.versions[0], name))
    }

    fn refusal(&self) -> Refusal {
        let composed = compose(&self.first, &self.second).expect("a chain");
        assert!(composed.mapping.is_empty(), "{composed:?}");
        assert_eq!(composed.refused.len(), 1);
        composed.refused[0].1
    }
}

/// Steps and a replay that make an object with one field: its reference is the step `2`, its
/// address the step `4`.
fn object(field: Value) -> (Vec<Step>, Replay) {
    let of = |opcode, ty, operand_ty, arg| {
        let args = [Operand::Step(arg)].into_iter().collect();
        Step { opcode, ty, operand_ty, bits: 0, args }
    };
    let args = [Operand::Step(0), Operand::Step(1)].into();
    let steps = vec![
        constant(24),
        constant(7),
        Step::object(Func::from_u32(9), 0, args),
        of(Opcode::RefBits, Type::I64, Type::Ref, 2),
        of(Opcode::Wrap, Type::I32, Type::I64, 3),
    ];
    let replay = Replay {
        inst: Inst::from_u32(0),
        opcode: Opcode::Store,
        ty: Type::I32,
        imm: Imm::Address(Memory::from_u32(0), 8),
        args: [Operand::Step(4), Operand::Source(field)].into(),
    };
    (steps, replay)
}

#[test]
fn objects_of_two_entries_are_two() {
    let mut case = Case::new();
    let [a, b, x, y] = case.values(["a", "b", "x", "y"]);
    let (at, middle, end) = (case.point("x"), case.point("y"), case.point("z"));
    let (steps, fill) = object(a);
    let assigns = vec![assign(x, Operand::Step(4)), assign(b, Operand::Source(b))];
    let mut first = entry(middle, steps, assigns, vec![a, b]);
    first.replays.push(fill);
    case.first.insert(at, first);
    let (steps, fill) = object(b);
    let assigns = vec![assign(x, Operand::Source(x)), assign(y, Operand::Step(4))];
    let mut second = entry(end, steps, assigns, vec![b, x]);
    second.replays.push(fill);
    case.second.insert(middle, second);
    let composed = compose(&case.first, &case.second).expect("a chain");
    let entry = composed.mapping.entry(at).expect("the entries compose");
    assert_eq!(entry.steps.iter().filter(|step| step.allocator().is_some()).count(), 2);
    let filled: BTreeSet<Operand> = entry.replays.iter().map(|replay| replay.args[0]).collect();
    let assigned: BTreeSet<Operand> = entry.assigns.iter().map(|assign| assign.from).collect();
    assert_eq!((filled.len(), &filled), (2, &assigned), "{entry:?}");
}

#[test]
fn objects_are_filled_whatever_reads_them() {
    let mut case = Case::new();
    let [a, x] = case.values(["a", "x"]);
    let (at, middle, end) = (case.point("x"), case.point("y"), case.point("z"));
    let (mut steps, fill) = object(a);
    steps.push(step(Opcode::Add, Operand::Step(4), Operand::Step(1)));
    for (from, made) in [(Operand::Step(5), 1), (Operand::Source(a), 0)] {
        let mut first = entry(middle, steps.clone(), vec![assign(x, from)], vec![a]);
        first.replays.push(fill.clone());
        case.first.insert(at, first);
        case.second
            .insert(middle, entry(end, vec![], vec![assign(x, Operand::Source(x))], vec![x]));
        let composed = compose(&case.first, &case.second).expect("a chain");
        let entry = composed.mapping.entry(at).expect("the entries compose");
        assert_eq!(entry.replays.len(), made, "{entry:?}");
        assert_eq!(entry.steps.iter().filter(|step| step.allocator().is_some()).count(), made);
    }
}

#[test]
fn composed_steps_are_joined_shared_and_pruned() {
    let mut case = Case::new();
    let [a, b, x, y] = case.values(["a", "b", "x", "y"]);
    let source = Operand::Source;
    let (at, middle, end) = (case.point("x"), case.point("y"), case.point("z"));
    // %b is provided as a product that the second entry does not read.
    let mut first = entry(
        middle,
        vec![
            step(Opcode::Add, source(a), source(b)),
            constant(7),
            step(Opcode::Mul, source(b), Operand::Step(1)),
        ],
        vec![assign(a, source(a)), assign(b, Operand::Step(2)), assign(x, Operand::Step(0))],
        vec![a, b],
    );
    first.kept = vec![b];
    case.first.insert(at, first);
    // The constant 7 again, and the same sum twice: composition shares equal steps.
    let sum = step(Opcode::Add, source(x), Operand::Step(0));
    let second = entry(
        end,
        vec![constant(7), sum.clone(), sum],
        vec![assign(y, Operand::Step(1)), assign(x, Operand::Step(2)), assign(a, source(a))],
        vec![a, x],
    );
    case.second.insert(middle, second);
    let composed = compose(&case.first, &case.second).expect("a chain");
    assert_eq!(composed.refused, []);
    assert_eq!(composed.mapping.source(), VersionKey::of(&case.versions[0]));
    assert_eq!(composed.mapping.target(), VersionKey::of(&case.versions[2]));
    let mut expected = entry(
        end,
        vec![
            step(Opcode::Add, source(a), source(b)),
            constant(7),
            step(Opcode::Add, Operand::Step(0), Operand::Step(1)),
        ],
        vec![assign(y, Operand::Step(2)), assign(x, Operand::Step(2)), assign(a, source(a))],
        vec![a, b],
    );
    expected.kept = vec![b];
    assert_eq!(composed.mapping.entry(at), Some(&expected));
}

#[test]
fn unread_values_are_not_required() {
    let mut case = Case::new();
    let [a, b] = case.values(["a", "b"]);
    let (at, middle) = (case.point("x"), case.point("y"));
    let copy = |v| assign(v, Operand::Source(v));
    let mut first = entry(middle, Vec::new(), vec![copy(a), copy(b)], vec![a, b]);
    first.kept = vec![a, b];
    case.first.insert(at, first);
    case.second.insert(middle, entry(middle, Vec::new(), vec![copy(a)], vec![a]));
    let composed = compose(&case.first, &case.second).expect("a chain");
    let entry = composed.mapping.entry(at).expect("legal");
    assert_eq!((&entry.requires, &entry.kept), (&vec![a], &vec![a]));
}

#[test]
fn the_second_entry_may_require_only_provided_values() {
    let mut case = Case::new();
    let [a, b, y] = case.values(["a", "b", "y"]);
    let (at, middle) = (case.point("x"), case.point("y"));
    let copy = |v| assign(v, Operand::Source(v));
    case.first.insert(at, entry(middle, Vec::new(), vec![copy(a)], vec![a]));
    // The law counts every value required, read or not. The source version has %b too, but the
    // first entry does not provide it.
    case.second.insert(middle, entry(middle, Vec::new(), vec![copy(a)], vec![a, b]));
    assert_eq!(case.refusal(), Refusal::NotProvided { value: b });
    case.second
        .insert(middle, entry(middle, Vec::new(), vec![assign(y, Operand::Source(b))], vec![b]));
    assert_eq!(case.refusal(), Refusal::NotProvided { value: b });
    let composed = compose(&case.first, &case.second).expect("a chain");
    assert_eq!(composed.refused_for("not_provided"), 1);
}

#[test]
fn the_second_mapping_needs_an_entry_where_the_first_lands() {
    let mut case = Case::new();
    let at = case.point("x");
    case.first.insert(at, entry(case.point("y"), Vec::new(), Vec::new(), Vec::new()));
    case.second.insert(at, entry(at, Vec::new(), Vec::new(), Vec::new()));
    assert_eq!(case.refusal(), Refusal::NoSecondEntry);
}

/// The first entry lands within the call at `%y`, in an activation begun there. An entry before the
/// call would begin it again. The second entry may land in several activations, and has their
/// values in terms of the first.
#[test]
fn nothing_goes_on_from_several_activations() {
    let mut case = Case::new();
    let [a, b, x, y] = case.values(["a", "b", "x", "y"]);
    let (at, middle) = (case.point("x"), case.point("y"));
    let copy = |v| assign(v, Operand::Source(v));
    let plain = entry(middle, Vec::new(), vec![copy(a), assign(x, Operand::Source(b))], vec![a, b]);
    let version = VersionKey::of(&case.versions[0]);
    let begun = |from| Frame {
        func: Func::from_u32(0),
        version,
        at: FramePlace::Before(at),
        assigns: vec![assign(y, from)],
    };
    let several = Entry { inner: [begun(Operand::Source(a))].into(), ..plain.clone() };
    let sum = step(Opcode::Add, Operand::Source(x), Operand::Source(a));
    let second = entry(middle, vec![sum], vec![copy(a)], vec![a, x]);
    let second = Entry { inner: [begun(Operand::Step(0))].into(), ..second };
    case.first.insert(at, several);
    case.second.insert(middle, second);
    assert_eq!(case.refusal(), Refusal::NoSecondEntry);
    case.first.insert(at, plain);
    let composed = compose(&case.first, &case.second).expect("a chain");
    let made = composed.mapping.entry(at).expect("legal");
    assert_eq!(made.steps, [step(Opcode::Add, Operand::Source(b), Operand::Source(a))]);
    assert_eq!((&made.inner[0].assigns, made.target), (&vec![assign(y, Operand::Step(0))], middle));
    assert_eq!((made.activations(), &made.requires), (2, &vec![a, b]));
}

#[test]
fn mappings_that_do_not_follow_each_other_do_not_compose() {
    let case = Case::new();
    let keys = [0, 1].map(|i| VersionKey::of(&case.versions[i]));
    let expected = Err(NotAChain { target: keys[1], source: keys[0] });
    assert_eq!(compose(&case.first, &case.first), expected);
}

#[test]
fn malformed_entries_do_not_compose() {
    let mut case = Case::new();
    let [a, x] = case.values(["a", "x"]);
    let (at, middle) = (case.point("x"), case.point("y"));
    let good = entry(middle, Vec::new(), vec![assign(a, Operand::Source(a))], vec![a]);
    let itself = vec![step(Opcode::Add, Operand::Step(0), Operand::Step(0))];
    let bad = [
        entry(middle, itself, vec![assign(a, Operand::Step(0))], Vec::new()),
        entry(middle, Vec::new(), vec![assign(a, Operand::Step(0))], Vec::new()),
        entry(middle, Vec::new(), vec![assign(a, Operand::Source(x))], Vec::new()),
    ];
    for bad in bad {
        case.first.insert(at, bad.clone());
        case.second.insert(middle, entry(middle, Vec::new(), Vec::new(), Vec::new()));
        assert_eq!(case.refusal(), Refusal::Malformed);
        case.first.insert(at, good.clone());
        case.second.insert(middle, bad);
        assert_eq!(case.refusal(), Refusal::Malformed);
    }
}

/// A generator of entries, most of them meaningless.
struct Choice(u64);

impl Choice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    /// An operand. One operand in 24 is an arbitrary value, required or not, or a later step.
    fn operand(&mut self, values: &[Value], readable: &[Value], steps: usize) -> Operand {
        match self.below(24) {
            0 => Operand::Source(values[self.below(values.len())]),
            1..=11 if steps > 0 => Operand::Step(self.below(steps) as u32),
            2 => Operand::Step(self.below(9) as u32),
            _ if readable.is_empty() => Operand::Step(0),
            _ => Operand::Source(readable[self.below(readable.len())]),
        }
    }

    fn entry(&mut self, target: Point, values: &[Value]) -> Entry {
        let requires: Vec<Value> = values.iter().copied().filter(|_| self.below(3) > 0).collect();
        let mut steps = Vec::new();
        for number in 0..self.below(8) {
            let opcode = [Opcode::Add, Opcode::Mul, Opcode::Xor, Opcode::Const][self.below(4)];
            steps.push(match opcode {
                Opcode::Const => constant(self.below(3) as u64),
                _ => step(
                    opcode,
                    self.operand(values, &requires, number),
                    self.operand(values, &requires, number),
                ),
            });
        }
        let provided: Vec<Value> = values.iter().copied().filter(|_| self.below(6) > 0).collect();
        let count = steps.len();
        let assigns =
            provided.iter().map(|v| assign(*v, self.operand(values, &requires, count))).collect();
        let replays = (0..self.below(3)).map(|_| Replay {
            inst: target.inst(),
            opcode: Opcode::GlobalSet,
            ty: Type::I32,
            imm: Imm::Global(Global::from_u32(0)),
            args: [self.operand(values, &requires, count)].into_iter().collect(),
        });
        let replays = replays.collect();
        let kept = requires.iter().copied().filter(|_| self.below(2) > 0).collect();
        Entry { kept, replays, ..entry(target, steps, assigns, requires) }
    }
}

/// Runs an entry on a state and returns the values provided, and the contents written. `None` when
/// the entry fails or reads a value outside of its required values.
fn run(entry: &Entry, state: &BTreeMap<Value, u64>) -> Option<(BTreeMap<Value, u64>, Vec<u64>)> {
    let strays = std::cell::Cell::new(false);
    let mut after = BTreeMap::new();
    let read = |v: Value| match state.get(&v).filter(|_| entry.requires.contains(&v)) {
        Some(bits) => *bits,
        None => {
            strays.set(true);
            0
        }
    };
    let ran = entry.run(read, |_, v, bits| {
        after.insert(v, bits);
    });
    let writes = ran.ok().filter(|_| !strays.get())?;
    Some((after, writes.iter().flat_map(|write| write.args.to_vec()).collect()))
}

/// A sum of `constants` constants, step by step.
fn long_sum(constants: u32) -> Vec<Step> {
    let constants = || (0..constants).map(|bits| constant(u64::from(bits)));
    let first = constants().len() as u32;
    let add = |at: u32| {
        let before = if at == 1 { 0 } else { first + at - 2 };
        step(Opcode::Add, Operand::Step(before), Operand::Step(at))
    };
    constants().chain((1..first).map(add)).collect()
}

#[test]
fn equal_steps_are_shared_however_many_there_are() {
    for constants in 2..24 {
        let mut case = Case::new();
        let [x, y, z] = case.values(["x", "y", "z"]);
        let (at, middle, end) = (case.point("x"), case.point("y"), case.point("z"));
        let steps = long_sum(constants);
        let last = Operand::Step(steps.len() as u32 - 1);
        case.first.insert(at, entry(middle, steps.clone(), vec![assign(x, last)], vec![]));
        let both = vec![assign(y, last), assign(z, Operand::Source(x))];
        case.second.insert(middle, entry(end, steps.clone(), both, vec![x]));
        let composed = compose(&case.first, &case.second).expect("a chain");
        let composed = composed.mapping.entry(at).expect("the first provides all");
        assert_eq!(composed.steps, steps, "{constants} constants");
        assert_eq!(composed.assigns, [assign(y, last), assign(z, last)], "{constants} constants");
    }
}

#[test]
fn a_composed_entry_computes_as_both_entries_in_a_row() {
    let case = Case::new();
    let values: Vec<Value> = case.values(["a", "b", "x", "y", "z"]).into();
    let (at, middle, end) = (case.point("x"), case.point("y"), case.point("z"));
    let state: BTreeMap<Value, u64> =
        values.iter().copied().zip([3, 5, 70, 1100, 13_000]).collect();
    let (mut legal, mut refused) = (0, BTreeMap::new());
    for seed in 0..20_000 {
        let mut choice = Choice(seed);
        let (first, second) = (choice.entry(middle, &values), choice.entry(end, &values));
        let (mut one, mut other) = (case.first.clone(), case.second.clone());
        one.insert(at, first.clone());
        other.insert(middle, second.clone());
        let composed = compose(&one, &other).expect("a chain");
        let between = run(&first, &state);
        let Some(entry) = composed.mapping.entry(at) else {
            *refused.entry(composed.refused[0].1.name()).or_insert(0) += 1;
            let covered = second.requires.iter().all(|v| first.provides_value(*v));
            // A refusal needs a reason: one of the two does not run by itself, or the second
            // requires a value that the first does not provide.
            let runs = between.is_some_and(|(s, _)| covered && run(&second, &s).is_some());
            assert!(!runs, "seed {seed}: {composed:?}");
            continue;
        };
        legal += 1;
        let (between, mut writes) = between.expect("a legal first entry runs");
        // Replays of both entries run in order.
        let (after, rest) = run(&second, &between).expect("a legal second entry runs");
        writes.extend(rest);
        assert_eq!(run(entry, &state), Some((after, writes)), "seed {seed}");
        assert!(entry.requires.iter().all(|v| first.requires.contains(v)), "seed {seed}");
        let kept: Vec<Value> =
            entry.requires.iter().copied().filter(|v| first.kept.contains(v)).collect();
        assert_eq!(entry.kept, kept, "seed {seed}");
        assert!(entry.provides().eq(second.provides()), "seed {seed}");
        assert!(entry.steps.len() <= first.steps.len() + second.steps.len(), "seed {seed}");
        let distinct: BTreeSet<String> = entry.steps.iter().map(Step::to_string).collect();
        assert_eq!(distinct.len(), entry.steps.len(), "seed {seed}: equal steps are shared");
    }
    assert!(
        legal > 1000 && refused["not_provided"] > 1000 && refused["malformed"] > 1000,
        "{legal}, {refused:?}"
    );
}
