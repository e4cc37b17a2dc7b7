//! The counts of native code.

use super::{Events, LOOP, both, kernel, parsed, programs};
use interp::{Limits, NoHost, Options, Program};
use ir::{Func, Module, Opcode, Point};
use jit::{Action, Condition, Config, Engine, Interruption, LinkError, PointSpec, VersionSpec, Vm};
use osier::driver::{self, Vigilance, derive, prove};
use osier::osr::Level;
use osier::profile::Profile;
use osier::tiers::{self, Eager};
use passes::Pipeline;
use std::sync::Arc;
use wasm::wasi::Wasi;

/// Native code counts the same events as the interpreter, in all its calls and loops.
#[test]
fn native_code_counts_as_the_interpreter_does() {
    let engine = Engine::new(Config { interruption: Interruption::Fuel, ..Config::default() })
        .expect("the tests run where native code does");
    let mut events = Events::default();
    let kernels = ["vm", "calls", "sort", "scan", "words.o2", "mixed"].map(|name| {
        let module = kernel(name);
        let entry = module.lookup("_start").expect("it is exported");
        (name.to_owned(), module, entry, vec![Vec::new()])
    });
    let generated = programs().map(|(seed, module, entry, arguments)| {
        (format!("program {seed}"), module, entry, arguments)
    });
    for (name, module, entry, arguments) in generated.chain(kernels) {
        let module = Arc::new(module);
        let program = Program::new(&module);
        for args in arguments {
            let [_, expected] = both(&module, &program, entry, &args, u64::MAX >> 1);
            let counted = natively(&engine, &module, entry, &args);
            assert_eq!(counted, expected, "{name} with {args:x?}");
            events.add(&expected);
        }
    }
    events.require_many();
}

fn natively(engine: &Engine, module: &Arc<Module>, func: Func, args: &[u64]) -> Profile {
    let limits = Limits { fuel: u64::MAX >> 1, ..Limits::default() };
    let options = Options::default();
    let mut vm = Vm::new(engine, module, limits, options).expect("it is instantiated");
    vm.set_tiering(Box::new(Eager::new(tiers::NoObserver).counting()));
    let arguments = vec!["program".to_owned(), "3".to_owned()];
    let mut wasi = Wasi::new(arguments, &[][..], std::io::sink(), std::io::sink());
    tiers::invoke(&mut vm, func, args, &mut wasi).expect("native code can run it");
    tiers::native_profile(module, &vm)
}

/// A continuation into a version that counts counts there, and is no call.
#[test]
fn continuations_count_in_their_version() {
    let module = Arc::new(parsed(LOOP));
    let func = module.lookup("f").expect("the text has it");
    let body = module.body(func).expect("it has a body");
    let engine = Engine::new(Config::default()).expect("the tests run where native code does");
    let target =
        engine.version(&module, func, body, VersionSpec::counting()).expect("it is compiled");
    let branch = body.all_insts().find(|inst| body.inst(*inst).opcode == Opcode::BrIf);
    let branch = branch.expect("a branch");
    let nothing = Pipeline::of(Vec::new());
    let derived = derive(&module, body, &nothing, Vigilance::On, &mut driver::NoObserver);
    let made = prove(&module, body, &derived, &[Level::Avail], &mut driver::NoObserver);
    let at = Point::before(branch);
    let entry = made.levels[0].1.before.mapping.checked_entry(at).expect("it is the same point");
    let continuation = engine.continuation(body, entry, &target).expect("it is compiled");
    let values = continuation.requires().to_vec();
    let point = PointSpec { at, condition: Condition::Countdown(10), values };
    let source = engine.version(&module, func, body, &[point]).expect("it is compiled");
    let mut vm = Vm::new(&engine, &module, Limits::default(), Options::traced())
        .expect("it is instantiated");
    vm.adopt(&target, Vec::new()).expect("it fits");
    vm.install(&source, vec![Action::Continue(continuation)]).expect("it fits");
    vm.invoke(func, &[25], &mut NoHost).expect("it runs");
    let counters = target.counters().expect("it counts");
    assert_eq!((counters.calls(), counters.arguments()), (0, Vec::new()));
    assert_eq!(counters.sides(branch).map(|sides| sides.iter().sum()), Some(16));
    assert!(source.counters().is_none());
}

/// Two machines would add to the same words.
#[test]
fn one_machine_runs_a_version_that_counts() {
    let module = Arc::new(parsed(LOOP));
    let func = module.lookup("f").expect("the text has it");
    let body = module.body(func).expect("it has a body");
    let engine = Engine::new(Config::default()).expect("the tests run where native code does");
    let version =
        engine.version(&module, func, body, VersionSpec::counting()).expect("it is compiled");
    let adopt = || {
        let mut vm = Vm::new(&engine, &module, Limits::default(), Options::traced())
            .expect("it is instantiated");
        vm.adopt(&version, Vec::new())
    };
    assert_eq!(adopt(), Ok(()));
    assert_eq!(adopt(), Err(LinkError::Claimed));
}
