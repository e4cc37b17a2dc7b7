//! Every point of graphs of all shapes: a run that continues in the continuation ends as the run
//! that stays in the version.

use super::{ENDLESS, NESTED, identity, rest, shown, with};
use crate::common::function;
use interp::{Limits, Machine, NoHost, NoObserver, Outcome, PauseAlways, Program, Run};
use ir::text::parse_module;
use ir::{Func, Inst, Module};
use std::collections::BTreeMap;
use transition::mapping::Entry;

/// A loop with two entries, a switch with two edges to one block that pass different values, and a
/// block that swaps its parameters.
const TANGLED: &str = "\
func @f(%n: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  %two = const.i32 2
  %odd = and.i32 %n, %one
  br_if %odd, left(%n), right(%zero)
left(%a: i32):
  %b = add.i32 %a, %two
  jump right(%b)
right(%c: i32):
  %d = mul.i32 %c, %two
  %e = sub.i32 %n, %d
  switch %e, [left(%d), swap(%c, %d), left(%e)], default other
other:
  %f = and.i32 %d, %two
  %g = slt.i32 %n, %d
  br_if %g, swap(%d, %e), left(%d)
swap(%x: i32, %y: i32):
  %h = sub.i32 %x, %y
  %more = slt.i32 %one, %h
  br_if %more, swap(%y, %h), done
done:
  %r = add.i32 %h, %c
  return %r
}
";

fn end(machine: &mut Machine) -> Outcome {
    match machine.run(&mut NoHost, &mut NoObserver) {
        Run::Done(outcome) => outcome,
        other => panic!("nobody pauses it: {other:?}"),
    }
}

/// Compares two ends at every visit of every instruction of a run: the end of the run, and the end
/// of a continuation that starts with the values of the run. Returns the number of visits compared.
pub(super) fn compare_at_every_visit(text: &str, argument: u64) -> usize {
    let f = function(text);
    let rests: BTreeMap<Inst, (Entry, Module, Func)> = f
        .all_insts()
        .map(|at| {
            let entry = identity(&f, at);
            let (module, func) = with(text, &rest(&f, &entry).function);
            (at, (entry, module, func))
        })
        .collect();
    let limits = Limits { fuel: 3000, ..Limits::default() };
    let module = parse_module(text).expect("read before");
    let func = module.lookup("f").expect("the function");
    let mut machine = Machine::new(&module, limits).expect("it instantiates");
    machine.start(func, &[argument]);
    let mut compared = 0;
    while machine.run(&mut NoHost, &mut PauseAlways) == Run::Paused {
        let view = machine.view().expect("it is paused");
        let (entry, module, rest) = &rests[&view.inst()];
        let values: Vec<u64> = entry.requires.iter().map(|v| view.value(*v)).collect();
        // Clones run to the end, while the original steps from pause to pause: both ends start from
        // the state of this visit.
        let mut on = machine.clone();
        let expected = end(&mut on);
        let mut other = machine.clone();
        other.extend(&Program::new(module)).expect("the module begins alike");
        other.start(*rest, &values);
        assert_eq!(
            shown(&end(&mut other)),
            shown(&expected),
            "from {} with {values:?}",
            view.inst()
        );
        assert!(other.same_memory(&on));
        compared += 1;
    }
    compared
}

#[test]
fn from_every_point_of_every_round() {
    assert!(compare_at_every_visit(NESTED, 4) > 60);
    assert!((0..8).map(|n| compare_at_every_visit(TANGLED, n)).sum::<usize>() > 100);
    assert!(compare_at_every_visit(ENDLESS, 3) > 10);
}
