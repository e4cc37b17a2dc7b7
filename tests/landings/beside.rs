//! What happens beside a run that goes from row to row: an interrupt, and a collector that moves
//! the references which live in rows.

use super::directed::behind;
use super::native::Watch;
use super::support::{native, policy};
use crate::speculation::support::{first, parsed};
use interp::{Host, HostError, Limits, Machine, Memories, NoObserver, Outcome};
use ir::Func;
use ir::module::ImportName;
use osier::jit::{Config, Interrupt, Interruption, RunError, TransitionKind, Vm};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A loop over elements of two kinds in turn, which keeps a reference, hands it to the host in
/// each round, and counts the rounds in memory.
const KEPT: &str = r#"
import func @beside "env" "beside" (i32) -> i64
memory @mem 1
export "main" @f
func @f(%n: i32, %word: i64) -> i64 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  %z = const.i64 0
  %first = ref_of %word
  jump head(%zero, %z, %first)
head(%i: i32, %sum: i64, %kept: ref):
  %more = ult.i32 %i, %n
  br_if %more, body, done
body:
  %x = call @beside(%i)
  %tag = and.i32 %i, %one
  br_if %tag, odd, even
odd:
  store.i32 @mem[%zero + 8], %i
  %a = mul.i64 %sum, %x
  jump next(%a)
even:
  %b = add.i64 %sum, %x
  jump next(%b)
next(%s: i64):
  %same = ref_eq %kept, %first
  %wide = uextend.i64 %same
  %t = add.i64 %s, %wide
  %k = add.i32 %i, %one
  jump head(%k, %t, %kept)
done:
  %last = ref_bits %kept
  %all = xor.i64 %sum, %last
  return %all
}"#;

/// Gives a number for each round, and asks for an interrupt in one of them.
struct Beside {
    interrupt: Option<(Interrupt, u64)>,
}

impl Host for Beside {
    fn call(
        &mut self,
        _import: &ImportName,
        _func: Func,
        args: &[u64],
        _memories: &mut Memories,
        results: &mut [u64],
    ) -> Result<(), HostError> {
        if let Some((interrupt, round)) = &self.interrupt
            && args[0] == *round
        {
            interrupt.ask();
        }
        results[0] = 3 * args[0] + 1;
        Ok(())
    }
}

/// The function, and a machine whose rows assume the kind of an element.
fn scene(config: Config) -> (Func, Vm, Watch) {
    let module = Arc::new(parsed(KEPT));
    let (func, base) = first(&module);
    let assume = BTreeMap::from([(func, vec![behind(base, "tag", 0)])]);
    let mut vm = native(&module, config);
    let watch = Watch::default();
    vm.set_tiering(Box::new(policy(watch.clone()).speculating(assume)));
    (func, vm, watch)
}

/// How often a run has gone from native code to native code, by the cells of its exits.
fn across(vm: &mut Vm) -> u64 {
    let made = vm.transitions();
    made.iter().filter(|of| of.kind == TransitionKind::Across).map(|of| of.count).sum()
}

/// The kinds alternate, so each round of the second call passes an exit to a row. An interrupt in
/// the middle ends the run, and the next run is as any.
#[test]
fn an_interrupt_ends_a_run_that_goes_from_row_to_row() {
    let config = Config { interruption: Interruption::Signal, ..Config::default() };
    let (func, mut vm, watch) = scene(config);
    let calm = vm.invoke(func, &[500, 7], &mut Beside { interrupt: None });
    assert!(!watch.seen().linked.is_empty() && across(&mut vm) > 100, "{:?}", watch.seen());
    let before = across(&mut vm);
    let interrupt = Some((vm.interrupt(), 1000));
    let ended = vm.invoke(func, &[u64::from(u32::MAX), 7], &mut Beside { interrupt });
    assert_eq!(ended, Err(RunError::Interrupted));
    // A round goes to a row, in some rounds by the test of the row before.
    let hops = across(&mut vm) - before;
    assert!((900..=2002).contains(&hops), "{hops} transitions in about 1,000 rounds");
    let memory = vm.module().memories.keys().next().expect("it has a memory");
    let stored = vm.machine().memories().bytes(memory)[8..12].to_vec();
    assert!([999, 1001].map(u32::to_le_bytes).iter().any(|of| *of == stored[..]), "{stored:?}");
    assert_eq!(vm.invoke(func, &[500, 7], &mut Beside { interrupt: None }), calm);
}

/// The collector moves the reference in each call of the host. Exits hand it to rows, and passages
/// to the next row. The reference has the same word at the end as in the interpreter.
#[test]
fn a_reference_lives_from_row_to_row() {
    let (func, mut vm, watch) = scene(Config::default());
    vm.machine_mut().stress_collector(true);
    let mut plain = Machine::new(vm.module(), Limits::default()).expect("it is instantiated");
    plain.stress_collector(true);
    for n in [50, 200, 201] {
        let args = [n, 7];
        let wanted = plain.invoke(func, &args, &mut Beside { interrupt: None }, &mut NoObserver);
        assert!(matches!(wanted, Outcome::Returned(_)), "{wanted}");
        assert_eq!(vm.invoke(func, &args, &mut Beside { interrupt: None }), Ok(wanted), "{n}");
    }
    assert!(!watch.seen().linked.is_empty() && across(&mut vm) > 300, "{:?}", watch.seen());
}
