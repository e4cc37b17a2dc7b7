//! Imported functions with declared effects: passes use them, and breaches are named.

use super::support::{Pair, engine, invoke, module, vm};
use osier::interp::{HostError, Limits, Options};
use osier::ir::{DeclaredEffect, Func, Function, Opcode, TrapKind};
use osier::jit::{
    BindError, Callback, CallbackEnd, Config, DirectFunction, Embedder, RunError, Vm,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Sums `scale(k) + i` for all i below n.
const SUM: &str = "
import func @scale \"env\" \"scale\" (i64) -> i64 effect(pure)
func @sum(%n: i64, %k: i64) -> i64 {
entry:
  %zero = const.i64 0
  %one = const.i64 1
  jump head(%zero, %zero)
head(%i: i64, %acc: i64):
  %x = call_pure.i64 @scale(%k)
  %again = call_pure.i64 @scale(%k)
  %both = xor.i64 %x, %again
  %term = add.i64 %x, %i
  %more = add.i64 %term, %both
  %next = add.i64 %acc, %more
  %j = add.i64 %i, %one
  %goes = ult.i64 %j, %n
  br_if %goes, head(%j, %next), done
done:
  return %next
}
";

/// Three times the argument. The calls are counted, which the declaration forbids: a checked
/// machine could not see it.
extern "C" fn scale(calls: &AtomicU64, x: u64) -> u64 {
    calls.fetch_add(1, Ordering::Relaxed);
    3 * x
}

fn scale_with(calls: &Arc<AtomicU64>, effect: DeclaredEffect) -> DirectFunction {
    let code = scale as extern "C" fn(&AtomicU64, u64) -> u64;
    DirectFunction::new(Arc::clone(calls), code, effect)
}

/// The optimizer makes one call of the twenty, in front of the loop.
#[test]
fn a_pure_function_is_called_once() {
    let pair = Pair::new(SUM);
    let engine = engine(Config::default());
    let import = pair.module.func_named("scale").expect("it is declared");
    let run = |function: &Function| {
        let mut vm = vm(&engine, &pair.module);
        let calls = Arc::new(AtomicU64::new(0));
        vm.bind(import, &scale_with(&calls, DeclaredEffect::Pure)).expect("it fits");
        let version = engine.version(&pair.module, pair.func, function, &[]).expect("compiled");
        vm.install(&version, Vec::new()).expect("it fits");
        let outcome = invoke(&mut vm, pair.func, &[10, 7]).expect("no error");
        (outcome.returned().expect("it returns")[0], calls.load(Ordering::Relaxed))
    };
    assert_eq!(run(&pair.base), (10 * 21 + 45, 20));
    assert_eq!(run(&pair.opt), (10 * 21 + 45, 1));
}

/// Passes rely on the import, so a function with larger effects does not fit.
#[test]
fn a_function_with_a_larger_effect_is_not_bound() {
    let module = module(SUM);
    let mut vm = vm(&engine(Config::default()), &module);
    let import = module.func_named("scale").expect("it is declared");
    let calls = Arc::new(AtomicU64::new(0));
    let smaller = [DeclaredEffect::Any, DeclaredEffect::Outside, DeclaredEffect::Reads];
    for effect in smaller {
        let refused = BindError::Effect(import, DeclaredEffect::Pure, effect);
        assert_eq!(vm.bind(import, &scale_with(&calls, effect)), Err(refused));
    }
    let refused = BindError::Effect(import, DeclaredEffect::Pure, DeclaredEffect::Any);
    let words = format!("{import} is declared `pure`, and the function for it is `any`");
    assert_eq!(refused.to_string(), words);
    assert_eq!(vm.bind(import, &scale_with(&calls, DeclaredEffect::Pure)), Ok(()));
}

/// Calls an import of each effect.
const EACH: &str = "
import func @pure \"env\" \"pure\" (i64) -> i64 effect(pure)
import func @reads \"env\" \"reads\" (i64) -> i64 effect(reads)
import func @outside \"env\" \"outside\" (i64) -> i64 effect(outside)
memory @mem 1
func @leaf(%x: i64) -> i64 {
entry:
  return %x
}
func @pures(%x: i64) -> i64 {
entry:
  %r = call_pure.i64 @pure(%x)
  return %r
}
func @read(%x: i64) -> i64 {
entry:
  %r = call_reads.i64 @reads(%x)
  return %r
}
func @out(%x: i64) -> i64 {
entry:
  %r = call_outside @outside(%x)
  return %r
}
";

/// A deed of the embedder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Breach {
    Nothing,
    Trap,
    Exit,
    Write,
    Call(Func),
}

struct Breaching(Breach);

impl Embedder for Breaching {
    fn call(
        &mut self,
        back: &mut Callback<'_>,
        _: Func,
        args: &[u64],
        results: &mut [u64],
    ) -> Result<(), CallbackEnd> {
        match self.0 {
            Breach::Nothing => {}
            Breach::Trap => return Err(HostError::Trap(TrapKind::User(1)).into()),
            Breach::Exit => return Err(HostError::Exit(3).into()),
            Breach::Write => {
                // Other bytes each time: a checked run compares them.
                let memory = osier::ir::Memory::from_u32(0);
                let byte = back.memories().read(memory, 8, 1).expect("in bounds")[0];
                back.memories().write(memory, 8, &[byte + 1]).expect("in bounds");
            }
            Breach::Call(func) => {
                // Ignoring the error does not help.
                let _ = back.call(self, func, args);
            }
        }
        results[0] = args[0] + 1;
        Ok(())
    }
}

/// Each breach of a declaration ends the run with an error that names the function, natively and in
/// the interpreter. Writes are seen in checked runs.
#[test]
fn an_embedder_that_exceeds_a_declaration_is_named() {
    let module = module(EACH);
    let named = |name: &str| module.func_named(name).expect("the text has it");
    let engine = engine(Config { checked: true, ..Config::default() });
    for native in [true, false] {
        let mut vm =
            Vm::new(&engine, &module, Limits::default(), Options::default()).expect("instantiated");
        for (func, body) in module.defined().filter(|_| native) {
            let version = engine.version(&module, func, body, &[]).expect("compiled");
            vm.install(&version, Vec::new()).expect("it fits");
        }
        let breaches = [
            (Breach::Nothing, None, None),
            (Breach::Write, Some("it wrote memory"), Some("it wrote memory")),
            (Breach::Trap, Some("it traps"), None),
            (Breach::Exit, Some("it exits"), None),
            (Breach::Call(named("leaf")), Some("it calls"), Some("it calls")),
        ];
        for (breach, without_effect, outside) in breaches {
            for (caller, import, expected) in [
                ("pures", "pure", without_effect),
                ("read", "reads", without_effect),
                ("out", "outside", outside),
            ] {
                let ran = vm.run(named(caller), &[4], &mut Breaching(breach));
                let Some(expected) = expected else {
                    assert!(ran.is_ok(), "{caller} {breach:?} {native}: {ran:?}");
                    continue;
                };
                let Err(RunError::Effect { func, promised, what }) = &ran else {
                    panic!("{caller} {breach:?} {native}: {ran:?}")
                };
                assert_eq!((*func, promised.name()), (named(import), import));
                assert!(what.contains(expected), "{what}");
            }
        }
    }
}

/// `call_pure` and its kin are calls also to the machine code around them.
#[test]
fn declared_calls_are_calls() {
    for opcode in [Opcode::CallPure, Opcode::CallReads, Opcode::CallOutside] {
        assert!(opcode.is_call() && !opcode.is_step(), "{}", opcode.name());
    }
}
