//! Tests of firing entries, and of entries that cannot be fired.

use super::support::{landing, machine, returned, sum};
use check::{Checked, CheckedEntry};
use interp::{FireError, Limits, Machine, NoHost, NoObserver, PauseAtMarks, Run, TransferError};
use ir::edit::{Editor, Fuel, Pass, apply};
use ir::module::FuncDecl;
use ir::text::{parse_module, print_module};
use ir::{Function, Imm, Inst, InstSpec, Opcode, Point, Type, Value};
use transition::VersionKey;
use transition::mapping::{Entry, Mapping};

/// Starts a run and pauses it before an instruction, which it marks.
fn pause(machine: &mut Machine, func: ir::Func, args: &[u64], at: Inst) {
    machine.mark(machine.current(func).expect("it is not imported"), [at]);
    machine.start(func, args);
    assert_eq!(machine.run(&mut NoHost, &mut PauseAtMarks), Run::Paused);
}

/// An entry that nobody has proved, claimed to lead from a point of one version to another.
fn claimed<'m>(
    [source, target]: [&Function; 2],
    point: Point,
    entry: &'m Entry,
) -> CheckedEntry<'m> {
    CheckedEntry::unproved(VersionKey::of(source), VersionKey::of(target), point, entry)
}

#[test]
fn entries_are_found_at_the_paused_point() {
    let sum = sum();
    let function = sum.module.body(sum.func).expect("it is defined");
    let at = function.defining_inst(sum.s2).expect("it is an addition");
    let mut machine = machine(&sum.module, Limits::default());
    let version = machine.current(sum.func).expect("it is not imported");
    assert_eq!(machine.code(version).key(), transition::VersionKey::of(function));
    let point = Point::before(at);
    let mut mapping = Mapping::new(function, function);
    mapping.insert(point, landing(point, &[sum.n, sum.i, sum.s]));
    let mapping = Checked::unproved(mapping);
    let entry = mapping.checked_entry(point).expect("the mapping has it");
    assert_eq!(machine.fire(version, entry), Err(FireError::NotPaused));
    machine.start(sum.func, &[5]);
    assert_eq!(machine.fire(version, entry), Err(FireError::NotPaused), "it has not run yet");
    pause(&mut machine, sum.func, &[5], at);
    assert!(mapping.checked_entry(Point::before(Inst::from_u32(0))).is_none());
    assert_eq!(machine.fire(version, entry), Ok(point));
    assert_eq!(machine.run(&mut NoHost, &mut NoObserver), Run::Done(returned(&[10])));
}

/// `fire` refuses an entry whose source point is another instruction of the paused version, even
/// where the entry assigns the right contents. The run stays unchanged.
#[test]
fn entries_of_other_points_are_refused() {
    let sum = sum();
    let function = sum.module.body(sum.func).expect("it is defined");
    let at = function.defining_inst(sum.s2).expect("it is an addition");
    let later = function.defining_inst(sum.i2).expect("it is an addition");
    let mut machine = machine(&sum.module, Limits::default());
    let version = machine.current(sum.func).expect("it is not imported");
    let entry = landing(Point::before(at), &[sum.n, sum.i, sum.s]);
    let of = |inst| claimed([function, function], Point::before(inst), &entry);
    pause(&mut machine, sum.func, &[5], at);
    let refused = Err(FireError::OtherPoint(Point::before(at)));
    assert_eq!(machine.fire(version, of(later)), refused);
    assert_eq!(machine.fire(version, of(Inst::from_u32(1000))), refused);
    let view = machine.view().expect("it is paused");
    assert_eq!((view.inst(), view.value(sum.i), view.value(sum.s)), (at, 0, 0));
    assert_eq!(machine.fire(version, of(at)), Ok(Point::before(at)));
    assert_eq!(machine.run(&mut NoHost, &mut NoObserver), Run::Done(returned(&[10])));
}

/// The key of a version covers the name of its function. So `fire` refuses an entry of a function
/// that differs by its name alone. The other function may be in the same module or in another.
#[test]
fn entries_of_a_function_with_the_same_text_are_refused() {
    let mut sum = sum();
    let text = print_module(&sum.module).replace("@sum(", "@twin(");
    let alone = parse_module(&text).unwrap_or_else(|errors| panic!("{errors:?}"));
    let twin = alone.defined().next().expect("it is defined").1.clone();
    let sig = sum.module.funcs[sum.func].sig;
    let decl = FuncDecl { name: "twin".to_owned(), sig, import: None, effect: Default::default() };
    let other = sum.module.funcs.push(decl);
    sum.module.define(other, twin.clone());
    let function = sum.module.body(sum.func).expect("it is defined");
    let at = function.defining_inst(sum.s2).expect("it is an addition");
    assert_eq!(twin.defining_inst(sum.s2), Some(at), "the text has the same ids");
    let mut machine = machine(&sum.module, Limits::default());
    let base = machine.current(sum.func).expect("it is not imported");
    let named_otherwise = machine.current(other).expect("it is not imported");
    let point = Point::before(at);
    let entry = landing(point, &[sum.n, sum.i, sum.s]);
    pause(&mut machine, sum.func, &[5], at);
    let own = claimed([function, function], point, &entry);
    let twins = claimed([&twin, &twin], point, &entry);
    let across = claimed([function, &twin], point, &entry);
    assert_eq!(machine.fire(base, twins), Err(FireError::OtherSource));
    assert_eq!(machine.fire(named_otherwise, twins), Err(FireError::OtherSource));
    assert_eq!(machine.fire(named_otherwise, own), Err(FireError::OtherTarget));
    assert_eq!(machine.fire(base, across), Err(FireError::OtherTarget));
    // An entry whose keys fit still cannot lead into another function.
    let refused = Err(FireError::Transfer(TransferError::OtherFunction));
    assert_eq!(machine.fire(named_otherwise, across), refused);
    assert_eq!(machine.view().expect("it is paused").version(), base);
    assert_eq!(machine.fire(base, own), Ok(point));
    assert_eq!(machine.run(&mut NoHost, &mut NoObserver), Run::Done(returned(&[10])));
}

/// Two mappings accepted apart: the first transition leaves `i` out, and the second reads it.
#[test]
fn values_that_no_transition_provided_are_not_read() {
    let sum = sum();
    let function = sum.module.body(sum.func).expect("it is defined");
    let at = function.defining_inst(sum.s2).expect("it is an addition");
    let point = Point::before(at);
    let mut machine = machine(&sum.module, Limits::default());
    let version = machine.current(sum.func).expect("it is not imported");
    pause(&mut machine, sum.func, &[5], at);
    let less = landing(point, &[sum.n, sum.s]);
    let all = landing(point, &[sum.n, sum.i, sum.s]);
    let both = [function, function];
    assert_eq!(machine.fire(version, claimed(both, point, &less)), Ok(point));
    let digest = machine.memory_digest();
    let refused = Err(FireError::NotProvided(sum.i));
    assert_eq!(machine.fire(version, claimed(both, point, &all)), refused);
    assert_eq!(machine.memory_digest(), digest, "the machine is unchanged");
    assert_eq!(machine.fire(version, claimed(both, point, &less)), Ok(point));
}

/// A pass that adds a constant before an instruction.
struct AddsZero(Inst);

impl Pass for AddsZero {
    fn name(&self) -> &'static str {
        "adds_zero"
    }

    fn run(&self, editor: &mut Editor<'_>) {
        if editor.plan("add") {
            editor.add(InstSpec::new(Opcode::Const, Type::I32, Imm::Bits(0), &[]), self.0);
        }
    }
}

/// `fire` refuses an entry whose source or target is another version. The run stays unchanged.
#[test]
fn entries_of_other_versions_are_refused() {
    let sum = sum();
    let function = sum.module.body(sum.func).expect("it is defined");
    let at = function.defining_inst(sum.s2).expect("it is an addition");
    let other = apply(function, &AddsZero(at), &mut Fuel::rewrites(1)).into_parts().0;
    let mut machine = machine(&sum.module, Limits::default());
    let base = machine.current(sum.func).expect("it is not imported");
    let edited = machine.add_version(&sum.module, sum.func, &other);
    let point = Point::before(at);
    let entry = landing(point, &[sum.n, sum.i, sum.s]);
    let of = |source, target| claimed([source, target], point, &entry);
    pause(&mut machine, sum.func, &[5], at);
    assert_eq!(machine.fire(edited, of(&other, &other)), Err(FireError::OtherSource));
    assert_eq!(machine.fire(edited, of(function, function)), Err(FireError::OtherTarget));
    assert_eq!(machine.fire(base, of(function, &other)), Err(FireError::OtherTarget));
    assert_eq!(machine.view().expect("it is paused").version(), base);
    assert_eq!(machine.fire(edited, of(function, &other)), Ok(point));
    assert_eq!(machine.view().expect("it is paused").version(), edited);
    assert_eq!(machine.run(&mut NoHost, &mut NoObserver), Run::Done(returned(&[10])));
}

/// Firing fails if the paused version lacks a value that the entry reads, the target lacks the
/// landing point, or no run is paused.
#[test]
fn entries_that_cannot_be_fired() {
    let sum = sum();
    let function = sum.module.body(sum.func).expect("it is defined");
    let at = function.defining_inst(sum.s2).expect("it is an addition");
    let point = Point::before(at);
    let mut machine = machine(&sum.module, Limits::default());
    let version = machine.current(sum.func).expect("it is not imported");
    let entry = landing(point, &[sum.n, sum.i, sum.s]);
    let entry = claimed([function, function], point, &entry);
    assert_eq!(machine.fire(version, entry), Err(FireError::NotPaused), "no run is under way");
    pause(&mut machine, sum.func, &[5], at);
    let nothing = Value::from_u32(1000);
    let reads_nothing = landing(point, &[nothing]);
    assert_eq!(
        machine.fire(version, claimed([function, function], point, &reads_nothing)),
        Err(FireError::NoSuchValue(nothing))
    );
    let nowhere = Point::before(Inst::from_u32(1000));
    let refused = FireError::Transfer(TransferError::NoSuchPoint(nowhere));
    let lands_nowhere = landing(nowhere, &[sum.n]);
    assert_eq!(
        machine.fire(version, claimed([function, function], point, &lands_nowhere)),
        Err(refused)
    );
    assert_eq!(machine.fire(version, entry), Ok(point));
    assert_eq!(machine.run(&mut NoHost, &mut NoObserver), Run::Done(returned(&[10])));
    assert_eq!(machine.fire(version, entry), Err(FireError::NotPaused), "it has ended");
}
