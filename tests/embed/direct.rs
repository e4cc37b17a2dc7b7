//! Imported functions that are bound to functions of the embedder.

use super::support::{Calls, engine, invoke, module};
use osier::interp::{Limits, NoHost, Options, Outcome, TraceLevel};
use osier::ir::{DeclaredEffect, Func, Module};
use osier::jit::{
    BindError, BoundFunctions, Config, DirectFunction, DirectMemory, LinkError, RunError, Version,
    VersionSpec, Vm, live_code,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Calls an import of each kind, one of them through a table.
pub(super) const CALLS: &str = "
import func @scale \"env\" \"scale\" (i32, f64, f32, i64) -> f64
import func @count \"env\" \"count\" (i64) -> i64
import func @poke \"env\" \"poke\" (i32, i32) -> ()
memory @mem 1
table @t 1
elem @t 0 [@count]
func @sum(%n: i64) -> i64 {
entry:
  %zero = const.i64 0
  jump head(%n, %zero)
head(%left: i64, %sum: i64):
  %x = call @count(%left)
  %next = add.i64 %sum, %x
  %one = const.i64 1
  %rest = sub.i64 %left, %one
  br_if %rest, head(%rest, %next), done
done:
  return %next
}
func @through(%x: i64) -> i64 {
entry:
  %first = const.i32 0
  %r = call_indirect @t (i64) -> i64 [%first](%x)
  return %r
}
func @scaled(%a: i32, %b: f64, %c: f32, %d: i64) -> f64 {
entry:
  %r = call @scale(%a, %b, %c, %d)
  return %r
}
func @poked(%at: i32, %bits: i32) -> i32 {
entry:
  call @poke(%at, %bits)
  %x = load.i32 @mem[%at]
  return %x
}
";

extern "C" fn count(total: &AtomicU64, by: u64) -> u64 {
    total.fetch_add(by, Ordering::Relaxed) + by
}

extern "C" fn scale(factor: &f64, a: i32, b: f64, c: f32, d: u64) -> f64 {
    f64::from(a) + factor * b + f64::from(c) + d as f64
}

extern "C" fn poke((): &(), mut memory: DirectMemory<'_>, at: u32, bits: u32) {
    let size = memory.bytes().len();
    assert_eq!(size, 65_536, "the memory of the program");
    memory.bytes_mut()[at as usize..][..4].copy_from_slice(&bits.to_le_bytes());
}

fn count_with(total: &Arc<AtomicU64>, effect: DeclaredEffect) -> DirectFunction {
    let code = count as extern "C" fn(&AtomicU64, u64) -> u64;
    DirectFunction::new(Arc::clone(total), code, effect)
}

fn poke_with(effect: DeclaredEffect) -> DirectFunction {
    let code = poke as extern "C" fn(&(), DirectMemory<'_>, u32, u32);
    DirectFunction::with_memory(Arc::new(()), code, effect)
}

pub(super) fn named(module: &Module, name: &str) -> Func {
    module.func_named(name).expect("the text has it")
}

/// A machine with native code for all functions, or without native code.
fn machine(config: Config, trace: TraceLevel, native: bool) -> Vm {
    let (engine, module) = (engine(config), module(CALLS));
    let options = Options { trace, ..Options::traced() };
    let mut vm = Vm::new(&engine, &module, Limits::default(), options).expect("instantiated");
    for (func, body) in module.defined().filter(|_| native) {
        let version = engine.version(&module, func, body, &[]).expect("compiled");
        vm.install(&version, Vec::new()).expect("it fits");
    }
    vm
}

/// Native code, the interpreter, traced and checked runs, and the embedder itself call the bound
/// functions, with the same results. The host is never called.
#[test]
fn bound_functions_are_called_from_everywhere() {
    let checked = Config { checked: true, ..Config::default() };
    for (config, trace) in [
        (Config::default(), TraceLevel::Off),
        (Config { trace: true, ..Config::default() }, TraceLevel::Full),
        (checked, TraceLevel::Off),
    ] {
        for native in [true, false] {
            let mut vm = machine(config, trace, native);
            let module = Arc::clone(vm.module());
            let total = Arc::new(AtomicU64::new(0));
            let code = scale as extern "C" fn(&f64, i32, f64, f32, u64) -> f64;
            let scale = DirectFunction::new(Arc::new(10.0), code, DeclaredEffect::Pure);
            vm.bind(named(&module, "scale"), &scale).expect("it fits");
            vm.bind(named(&module, "count"), &count_with(&total, DeclaredEffect::Any))
                .expect("it fits");
            vm.bind(named(&module, "poke"), &poke_with(DeclaredEffect::Any)).expect("it fits");
            let mut run = |name: &str, args: &[u64]| {
                let outcome = invoke(&mut vm, named(&module, name), args).expect("no error");
                outcome.returned().expect("it returns")[0]
            };
            // 3, 3 + 2, 3 + 2 + 1.
            assert_eq!(run("sum", &[3]), 3 + 5 + 6, "{config:?} {native}");
            assert_eq!(run("count", &[4]), 10);
            let args = [(-1_i32) as u32 as u64, 0.5_f64.to_bits(), 2_f32.to_bits().into(), 7];
            assert_eq!(f64::from_bits(run("scaled", &args)), -1.0 + 5.0 + 2.0 + 7.0);
            assert_eq!(run("poked", &[8, 0xdead_beef]), 0xdead_beef);
            assert_eq!(run("through", &[5]), 15);
            assert_eq!(total.load(Ordering::Relaxed), 15);
        }
    }
}

/// The host serves all other imported functions, also where the interpreter stops at each of them,
/// and a function that is no longer bound.
#[test]
fn a_host_serves_the_other_functions() {
    for native in [true, false] {
        let mut vm = machine(Config::default(), TraceLevel::Off, native);
        let module = Arc::clone(vm.module());
        let (count, total) = (named(&module, "count"), Arc::new(AtomicU64::new(0)));
        vm.bind(count, &count_with(&total, DeclaredEffect::Any)).expect("it fits");
        let mut asked = 0;
        let mut host = Calls(|| {
            asked += 1;
            Ok(7)
        });
        let mut run = |vm: &mut Vm, name: &str, args: &[u64]| {
            let outcome = vm.invoke(named(&module, name), args, &mut host).expect("no error");
            outcome.returned().expect("it returns")[0]
        };
        assert_eq!(run(&mut vm, "scaled", &[1, 2, 3, 4]), 7);
        assert_eq!(run(&mut vm, "sum", &[2]), 2 + 3);
        vm.unbind(count).expect("no code calls it");
        assert_eq!(run(&mut vm, "sum", &[2]), 14);
        assert_eq!((asked, total.load(Ordering::Relaxed)), (3, 3), "{native}");
    }
}

/// A trace has the calls of bound functions, like the calls of a host.
#[test]
fn traces_have_calls_of_bound_functions() {
    let lengths = [true, false].map(|native| {
        let config = Config { trace: true, ..Config::default() };
        let mut vm = machine(config, TraceLevel::Full, native);
        let module = Arc::clone(vm.module());
        let total = Arc::new(AtomicU64::new(0));
        let count = named(&module, "count");
        vm.bind(count, &count_with(&total, DeclaredEffect::Any)).expect("it fits");
        invoke(&mut vm, named(&module, "sum"), &[5]).expect("no error");
        vm.machine().trace().effects().len()
    });
    assert_eq!(lengths[0], lengths[1]);
    assert!(lengths[0] >= 10, "five calls and five returns: {}", lengths[0]);
}

/// An effect that is declared too small ends a checked run with an error that names the function.
#[test]
fn effects_declared_too_small_are_seen() {
    let config = Config { checked: true, ..Config::default() };
    for native in [true, false] {
        let mut vm = machine(config, TraceLevel::Off, native);
        let module = Arc::clone(vm.module());
        let total = Arc::new(AtomicU64::new(0));
        let (count, poke) = (named(&module, "count"), named(&module, "poke"));
        vm.bind(count, &count_with(&total, DeclaredEffect::Pure)).expect("it fits");
        vm.bind(poke, &poke_with(DeclaredEffect::Reads)).expect("it fits");
        for (func, name, args, promised) in [
            (count, "sum", &[3][..], DeclaredEffect::Pure),
            (poke, "poked", &[8, 7], DeclaredEffect::Reads),
        ] {
            let error = invoke(&mut vm, named(&module, name), args).expect_err("it is seen");
            let RunError::Effect { func: found, promised: said, .. } = &error else {
                panic!("{error:?}")
            };
            assert_eq!((*found, *said), (func, promised));
            assert!(error.to_string().contains(&format!("{func} is declared `{promised}`")));
        }
    }
}

/// A function that does not fit is refused by name, and nothing changes.
#[test]
fn wrong_bindings_are_refused() {
    let mut vm = machine(Config::default(), TraceLevel::Off, true);
    let module = Arc::clone(vm.module());
    let total = Arc::new(AtomicU64::new(0));
    let count = count_with(&total, DeclaredEffect::Any);
    let (sum, poke) = (named(&module, "sum"), named(&module, "poke"));
    assert_eq!(vm.bind(sum, &count), Err(BindError::NotImported(sum)));
    let beyond = Func::from_u32(99);
    assert_eq!(vm.bind(beyond, &count), Err(BindError::NotImported(beyond)));
    assert_eq!(vm.bind(poke, &count), Err(BindError::OtherSignature(poke)));
    assert_eq!(vm.bind(poke, &poke_with(DeclaredEffect::Pure)), Err(BindError::Memory(poke)));
    let outcome = vm.invoke(sum, &[1], &mut NoHost).expect("no error");
    assert!(outcome.returned().is_none(), "the host has no such function: {outcome}");
}

/// A function that is bound anew or unbound leaves no code and no data behind.
#[test]
fn bound_functions_are_freed() {
    let mut vm = machine(Config::default(), TraceLevel::Off, true);
    let module = Arc::clone(vm.module());
    let (count, sum) = (named(&module, "count"), named(&module, "sum"));
    let totals = [(); 3].map(|()| Arc::new(AtomicU64::new(0)));
    for total in &totals {
        vm.bind(count, &count_with(total, DeclaredEffect::Any)).expect("it fits");
        invoke(&mut vm, sum, &[2]).expect("no error");
        assert_eq!(total.load(Ordering::Relaxed), 3);
    }
    assert_eq!(totals.each_ref().map(Arc::strong_count), [1, 1, 2]);
    vm.unbind(count).expect("no code calls it");
    assert_eq!(Arc::strong_count(&totals[2]), 1);
    let outcome = vm.invoke(sum, &[1], &mut NoHost).expect("no error");
    assert!(outcome.returned().is_none(), "{outcome}");
    assert!(live_code() > 0);
}

/// Doubles its argument: the binding without data.
pub(super) extern "C" fn double(x: u64) -> u64 {
    2 * x
}

extern "C" fn triple(x: u64) -> u64 {
    3 * x
}

pub(super) fn plain(code: extern "C" fn(u64) -> u64) -> DirectFunction {
    DirectFunction::plain(code, DeclaredEffect::Pure)
}

/// A version of a function of [`CALLS`] that calls the functions of a machine at their addresses.
pub(super) fn calling(vm: &Vm, name: &str, bound: &BoundFunctions) -> Arc<Version> {
    let func = named(vm.module(), name);
    let body = vm.module().body(func).expect("it has a body");
    let spec = VersionSpec::default().calling(bound);
    vm.engine().version(vm.module(), func, body, spec).expect("compiled")
}

/// A function without data is called from everywhere, also through the table.
#[test]
fn plain_functions_are_called_from_everywhere() {
    for native in [true, false] {
        let mut vm = machine(Config::default(), TraceLevel::Off, native);
        let (count, sum, through) = {
            let module = vm.module();
            (named(module, "count"), named(module, "sum"), named(module, "through"))
        };
        vm.bind(count, &plain(double)).expect("it fits");
        for (func, arg, result) in [(sum, 4, 20), (through, 21, 42), (count, 8, 16)] {
            let outcome = invoke(&mut vm, func, &[arg]).expect("it ends");
            assert_eq!(outcome.to_string(), Outcome::Returned(vec![result]).to_string());
        }
    }
}

/// A version calls functions of each kind at their addresses, and so does a continuation into it.
#[test]
fn versions_call_bound_functions_at_their_addresses() {
    let mut vm = machine(Config::default(), TraceLevel::Off, false);
    let module = Arc::clone(vm.module());
    let total = Arc::new(AtomicU64::new(0));
    let scale = scale as extern "C" fn(&f64, i32, f64, f32, u64) -> f64;
    let scale = DirectFunction::new(Arc::new(2.5), scale, DeclaredEffect::Pure);
    vm.bind(named(&module, "scale"), &scale).expect("it fits");
    vm.bind(named(&module, "count"), &count_with(&total, DeclaredEffect::Any)).expect("it fits");
    vm.bind(named(&module, "poke"), &poke_with(DeclaredEffect::Any)).expect("it fits");
    for name in ["sum", "scaled", "poked"] {
        let version = calling(&vm, name, &vm.bound());
        let shim = calling(&vm, name, &BoundFunctions::default());
        assert_ne!(version.code_size(), shim.code_size(), "{name} has other code");
        vm.install(&version, Vec::new()).expect("it fits");
    }
    let mut returned = |name: &str, args: &[u64]| match invoke(&mut vm, named(&module, name), args)
        .expect("it ends")
    {
        Outcome::Returned(values) => values[0],
        other => panic!("{other}"),
    };
    assert_eq!(returned("sum", &[4]), (4 + 7 + 9 + 10) + 10 - 10);
    let args = [2, 4.0f64.to_bits(), u64::from(0.5f32.to_bits()), 3];
    assert_eq!(f64::from_bits(returned("scaled", &args)), 2.0 + 10.0 + 0.5 + 3.0);
    assert_eq!(returned("poked", &[64, 77]), 77);
}

/// A machine runs code that calls a function at its address only as long as it has bound this
/// function.
#[test]
fn machines_with_other_functions_refuse_calls_at_addresses() {
    let mut vm = machine(Config::default(), TraceLevel::Off, false);
    let (count, sum) = (named(vm.module(), "count"), named(vm.module(), "sum"));
    vm.bind(count, &plain(double)).expect("it fits");
    let version = calling(&vm, "sum", &vm.bound());
    vm.install(&version, Vec::new()).expect("it fits");
    assert_eq!(vm.unbind(count), Err(BindError::InUse(count)));
    assert_eq!(vm.bind(count, &plain(triple)), Err(BindError::InUse(count)));
    assert_eq!(invoke(&mut vm, sum, &[4]), Ok(Outcome::Returned(vec![20])));
    vm.uninstall(sum);
    vm.bind(count, &plain(triple)).expect("no code calls the other");
    assert_eq!(vm.install(&version, Vec::new()), Err(LinkError::NotBound(count)));
    assert_eq!(vm.adopt(&version, Vec::new()), Err(LinkError::NotBound(count)));
    vm.unbind(count).expect("no code calls it");
    assert_eq!(vm.install(&version, Vec::new()), Err(LinkError::NotBound(count)));
    vm.bind(count, &plain(double)).expect("it fits");
    vm.install(&version, Vec::new()).expect("the function is bound again");
    assert_eq!(invoke(&mut vm, sum, &[4]), Ok(Outcome::Returned(vec![20])));
}

#[test]
fn a_traced_machine_refuses_calls_at_addresses() {
    let mut vm = machine(Config::default(), TraceLevel::Full, false);
    let count = named(vm.module(), "count");
    vm.bind(count, &plain(double)).expect("it fits");
    let version = calling(&vm, "sum", &vm.bound());
    assert_eq!(vm.install(&version, Vec::new()), Err(LinkError::NotBound(count)));
    let config = Config { trace: true, ..Config::default() };
    let mut vm = machine(config, TraceLevel::Full, false);
    vm.bind(count, &plain(double)).expect("it fits");
    let version = calling(&vm, "sum", &vm.bound());
    vm.install(&version, Vec::new()).expect("the engine traces: its code calls the shim");
}

/// Functions of a machine with another module, where the number means another function, are not
/// called.
#[test]
fn functions_for_other_imports_are_left_out() {
    let mut other = machine(Config::default(), TraceLevel::Off, false);
    let scale = scale as extern "C" fn(&f64, i32, f64, f32, u64) -> f64;
    let scale = DirectFunction::new(Arc::new(2.5), scale, DeclaredEffect::Pure);
    other.bind(named(other.module(), "scale"), &scale).expect("it fits");
    let text = "import func @id \"env\" \"id\" (i64) -> i64\nfunc @f(%x: i64) -> i64 {\nentry:\n  \
                %r = call @id(%x)\n  return %r\n}\n";
    let module = module(text);
    let engine = other.engine().clone();
    let mut vm = Vm::new(&engine, &module, Limits::default(), Options::default()).expect("made");
    let version = calling(&vm, "f", &other.bound());
    vm.install(&version, Vec::new()).expect("it calls nothing at an address");
    let mut host = Calls(|| Ok(5));
    assert_eq!(vm.invoke(version.func(), &[1], &mut host), Ok(Outcome::Returned(vec![5])));
}
