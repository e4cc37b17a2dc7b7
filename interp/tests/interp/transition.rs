//! Tests of firing entries, and of entries that cannot be fired.

use super::support::{ir, machine, returned, sum};
use interp::{FireError, Limits, Machine, NoHost, NoObserver, PauseAtMarks, Run, TransferError};
use ir::edit::{Editor, Fuel, Pass, apply};
use ir::{Imm, Inst, InstSpec, Opcode, Point, Type, Value};
use transition::mapping::{Assign, Entry, Mapping, Operand};

/// An entry without steps that assigns each of these values its own contents.
fn identity(target: Point, values: &[Value]) -> Entry {
    let assigns = values
        .iter()
        .map(|value| Assign { value: *value, from: Operand::Source(*value) })
        .collect();
    Entry {
        target,
        steps: Vec::new(),
        replays: Vec::new(),
        assigns,
        requires: values.to_vec(),
        kept: Vec::new(),
    }
}

/// Starts a run and pauses it before an instruction, which it marks.
fn pause(machine: &mut Machine, func: ir::Func, args: &[u64], at: Inst) {
    machine.mark(machine.current(func).expect("it is not imported"), [at]);
    machine.start(func, args);
    assert_eq!(machine.run(&mut NoHost, &mut PauseAtMarks), Run::Paused);
}

#[test]
fn entries_are_found_at_the_paused_point() {
    let sum = sum();
    let function = sum.module.body(sum.func).expect("it is defined");
    let at = function.defining_inst(sum.s2).expect("it is an addition");
    let mut machine = machine(&sum.module, Limits::default());
    let version = machine.current(sum.func).expect("it is not imported");
    assert_eq!(machine.code(version).key(), transition::VersionKey::of(function));
    let mut mapping = Mapping::new(function, function);
    assert_eq!(machine.fire_mapped(version, &mapping), Err(FireError::NotPaused));
    machine.start(sum.func, &[5]);
    assert_eq!(
        machine.fire_mapped(version, &mapping),
        Err(FireError::NotPaused),
        "it has not run yet"
    );
    pause(&mut machine, sum.func, &[5], at);
    let point = Point::before(at);
    assert_eq!(machine.fire_mapped(version, &mapping), Err(FireError::NoEntry(point)));
    mapping.insert(point, identity(point, &[sum.n, sum.i, sum.s]));
    assert_eq!(machine.fire_mapped(version, &mapping), Ok(point));
    assert_eq!(machine.run(&mut NoHost, &mut NoObserver), Run::Done(returned(&[10])));
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

/// `fire_mapped` rejects a mapping whose source or target is another version, and the run stays
/// unchanged.
#[test]
fn mappings_of_other_versions_are_refused() {
    let sum = sum();
    let function = sum.module.body(sum.func).expect("it is defined");
    let at = function.defining_inst(sum.s2).expect("it is an addition");
    let other = apply(function, &AddsZero(at), &mut Fuel::rewrites(1)).into_parts().0;
    let mut machine = machine(&sum.module, Limits::default());
    let base = machine.current(sum.func).expect("it is not imported");
    let edited = machine.add_version(&sum.module, sum.func, &other);
    let point = Point::before(at);
    let mapped = |source, target| {
        let mut mapping = Mapping::new(source, target);
        mapping.insert(point, identity(point, &[sum.n, sum.i, sum.s]));
        mapping
    };
    pause(&mut machine, sum.func, &[5], at);
    assert_eq!(machine.fire_mapped(edited, &mapped(&other, &other)), Err(FireError::OtherSource));
    assert_eq!(
        machine.fire_mapped(edited, &mapped(function, function)),
        Err(FireError::OtherTarget)
    );
    assert_eq!(machine.fire_mapped(base, &mapped(function, &other)), Err(FireError::OtherTarget));
    assert_eq!(machine.view().expect("it is paused").version(), base);
    assert_eq!(machine.fire_mapped(edited, &mapped(function, &other)), Ok(point));
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
    let entry = identity(point, &[sum.n, sum.i, sum.s]);
    assert_eq!(machine.fire(version, &entry), Err(FireError::NotPaused), "no run is under way");
    pause(&mut machine, sum.func, &[5], at);
    let nothing = Value::from_u32(1000);
    assert_eq!(
        machine.fire(version, &identity(point, &[nothing])),
        Err(FireError::NoSuchValue(nothing))
    );
    let nowhere = Point::before(Inst::from_u32(1000));
    let refused = FireError::Transfer(TransferError::NoSuchPoint(nowhere));
    assert_eq!(machine.fire(version, &identity(nowhere, &[sum.n])), Err(refused));
    assert_eq!(machine.fire(version, &entry), Ok(()));
    assert_eq!(machine.run(&mut NoHost, &mut NoObserver), Run::Done(returned(&[10])));
    assert_eq!(machine.fire(version, &entry), Err(FireError::NotPaused), "it has ended");
}
