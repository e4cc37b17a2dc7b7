//! Functions whose bodies come later: when a run calls them, or before.

use super::support::{engine, invoke, module, vm};
use osier::interp::{Limits, Machine, NoHost, NoObserver, Options, Outcome};
use osier::ir::{Func, Function, FunctionBuilder, InstSpec, Module, Opcode, SupplyError, Type};
use osier::jit::{
    Callback, CallbackEnd, Config, Embedder, Engine, LinkError, RunError, Vm, VmError,
};
use std::fmt::Write;
use std::sync::Arc;

/// `@main` calls `@double` directly, `@square` through a table, and `@never` for no argument below
/// 1,000.
const MAIN: &str = "
table @ops 1
elem @ops 0 [@square]
later func @double (i64) -> i64
later func @square (i64) -> i64
later func @never (i64) -> i64
func @main(%n: i64) -> i64 {
entry:
  %limit = const.i64 1000
  %small = ult.i64 %n, %limit
  br_if %small, usual, rare
rare:
  %x = call @never(%n)
  return %x
usual:
  %a = call @double(%n)
  %at = const.i32 0
  %b = call_indirect @ops (i64) -> i64 [%at](%n)
  %c = call @double(%b)
  %d = add.i64 %a, %c
  return %d
}
";

/// The bodies that come later.
const BODIES: &str = "
func @double(%x: i64) -> i64 {
entry:
  %y = add.i64 %x, %x
  return %y
}
func @square(%x: i64) -> i64 {
entry:
  %y = mul.i64 %x, %x
  return %y
}
";

/// Supplies bodies by name, and notes the requested functions.
struct Library {
    bodies: Arc<Module>,
    asked: Vec<Func>,
}

impl Library {
    fn new(text: &str) -> Library {
        Library { bodies: module(text), asked: Vec::new() }
    }

    fn body(&self, name: &str) -> Option<Arc<Function>> {
        self.bodies.shared_body(self.bodies.func_named(name)?).cloned()
    }
}

impl Embedder for Library {
    fn supply(
        &mut self,
        back: &mut Callback<'_>,
        func: Func,
    ) -> Result<Arc<Function>, CallbackEnd> {
        self.asked.push(func);
        let body = self.body(&back.module().funcs[func].name);
        body.ok_or_else(|| back.machine().body_missing(func).into())
    }
}

fn named(module: &Module, name: &str) -> Func {
    module.func_named(name).expect("the text has it")
}

fn compiled(vm: &mut Vm, engine: &Engine, func: Func) {
    let module = Arc::clone(vm.module());
    let body = module.body(func).expect("it has a body");
    let version = engine.version(&module, func, body, &[]).expect("compiled");
    vm.install(&version, vec![]).expect("it fits");
}

#[test]
fn a_call_asks_for_the_body_once() {
    for is_native in [false, true] {
        let (engine, module) = (engine(Config::default()), module(MAIN));
        let (mut vm, mut library) = (vm(&engine, &module), Library::new(BODIES));
        let main = named(&module, "main");
        if is_native {
            compiled(&mut vm, &engine, main);
        }
        for n in [3, 7] {
            let ended = vm.run(main, &[n], &mut library).expect("it runs");
            assert_eq!(ended, Outcome::Returned(vec![2 * n + 2 * n * n]), "native: {is_native}");
        }
        assert_eq!(library.asked, [named(&module, "double"), named(&module, "square")]);
        // A function without calls is never translated.
        assert!(module.awaits_body(named(&module, "never")));
        // Supplied functions are compiled as all others.
        compiled(&mut vm, &engine, named(&module, "square"));
        let ended = vm.run(main, &[5], &mut library).expect("it runs");
        assert_eq!(ended, Outcome::Returned(vec![60]));
    }
}

#[test]
fn a_body_that_is_missing_ends_the_run_at_the_call() {
    let module = module(MAIN);
    let (main, call) = (named(&module, "main"), "the body of @never has not come");
    let missing = |outcome: Outcome, what: &str| match outcome {
        Outcome::HostFailed { error, site } => {
            assert_eq!((&*error.to_string(), site.func), (call, main), "{what}");
            assert!(site.inst.is_some(), "{what}");
        }
        other => panic!("{what}: {other:?}"),
    };
    let mut machine = Machine::new(&module, Limits::default()).expect("it can be instantiated");
    missing(machine.invoke(main, &[1000], &mut NoHost, &mut NoObserver), "interpreter alone");
    for is_native in [false, true] {
        let engine = engine(Config::default());
        let mut vm = vm(&engine, &module);
        if is_native {
            compiled(&mut vm, &engine, main);
        }
        missing(invoke(&mut vm, main, &[1000]).expect("it runs"), "with a host");
        let mut library = Library::new(BODIES);
        missing(vm.run(main, &[1000], &mut library).expect("it runs"), "with an embedder");
    }
    let ended = machine.invoke(named(&module, "never"), &[1], &mut NoHost, &mut NoObserver);
    assert!(matches!(ended, Outcome::HostFailed { .. }), "{ended:?}");
}

#[test]
fn a_body_that_does_not_fit_is_refused() {
    let module = module(MAIN);
    let double = named(&module, "double");
    let body = |text: &str| {
        let bodies = super::support::module(text);
        Arc::clone(bodies.shared_body(Func::from_u32(0)).expect("a body"))
    };
    let other =
        body("func @double(%x: i32) -> i64 {\nentry:\n  %y = const.i64 1\n  return %y\n}\n");
    assert!(matches!(
        module.supply(double, other).expect_err("other parameters"),
        SupplyError::OtherDeclaration { .. }
    ));
    // Valid where it comes from, where function 1 takes no argument.
    let calls = body(
        "func @double(%x: i64) -> i64 {\nentry:\n  %y = call @none()\n  return %y\n}
func @none() -> i64 {\nentry:\n  %y = const.i64 1\n  return %y\n}\n",
    );
    let refused = module.supply(double, calls).expect_err("it calls another function");
    assert!(matches!(&refused, SupplyError::Invalid { findings } if !findings.is_empty()));
    assert!(refused.to_string().contains("not valid"), "{refused}");
    let main = named(&module, "main");
    let twice = Arc::clone(module.shared_body(main).expect("a body"));
    assert_eq!(module.supply(main, twice), Err(SupplyError::NotAwaited { func: main }));
    assert!(module.awaits_body(double), "nothing has changed");

    // The same through a run.
    let engine = engine(Config::default());
    let mut vm = vm(&engine, &module);
    let mut library = Library::new(&BODIES.replace("i64", "i32"));
    let ended = vm.run(main, &[1], &mut library).expect_err("other parameters");
    assert!(matches!(&ended, RunError::Supply { func, .. } if *func == double), "{ended:?}");
    // No code without a base.
    let version =
        engine.version(&module, double, &Library::new(BODIES).body("double").expect("it"), &[]);
    let refused = vm.install(&version.expect("compiled"), vec![]);
    assert_eq!(refused, Err(LinkError::AwaitsBody(double)));
}

#[test]
fn a_later_body_writes_no_fixed_table() {
    let text = "table @ops 1 fixed\nlater func @write ()\n";
    let body = "table @ops 1\nfunc @write() {\nentry:\n  %at = const.i32 0\n  %null = const.funcref null\n  table_set.funcref @ops, %at, %null\n  return\n}\n";
    let (module, bodies) = (module(text), module(body));
    let write = Func::from_u32(0);
    let body = Arc::clone(bodies.shared_body(write).expect("a body"));
    let refused = module.supply(write, body).expect_err("the table is fixed");
    assert_eq!(refused, SupplyError::WritesFixed { table: "ops".to_owned() });
}

#[test]
fn machines_share_the_body_of_their_module() {
    let (engine, module) = (engine(Config::default()), module(MAIN));
    let (mut one, mut two) = (vm(&engine, &module), vm(&engine, &module));
    let (main, mut library) = (named(&module, "main"), Library::new(BODIES));
    for (machine, asked) in [(&mut one, 2), (&mut two, 2)] {
        let ended = machine.run(main, &[3], &mut library).expect("it runs");
        assert_eq!((ended, library.asked.len()), (Outcome::Returned(vec![24]), asked));
    }
    // The second machine may also be told before a call.
    let never = named(&module, "never");
    let body = module_of("func @never(%x: i64) -> i64 {\nentry:\n  return %x\n}\n");
    two.supply(never, body).expect("it fits");
    assert_eq!(two.run(main, &[2000], &mut library), Ok(Outcome::Returned(vec![2000])));
    assert_eq!(one.run(main, &[3000], &mut library), Ok(Outcome::Returned(vec![3000])));
}

/// Two machines request one body from their embedders at the same time: the first to come counts.
#[test]
fn a_body_may_come_from_elsewhere_meanwhile() {
    struct Late(Library);
    impl Embedder for Late {
        fn supply(
            &mut self,
            back: &mut Callback<'_>,
            func: Func,
        ) -> Result<Arc<Function>, CallbackEnd> {
            let body = self.0.supply(back, func)?;
            back.module().supply(func, Arc::clone(&body)).expect("as another machine does");
            Ok(body)
        }
    }
    let (engine, module) = (engine(Config::default()), module(MAIN));
    let (mut vm, mut late) = (vm(&engine, &module), Late(Library::new(BODIES)));
    let main = named(&module, "main");
    assert_eq!(vm.run(main, &[3], &mut late), Ok(Outcome::Returned(vec![24])));
}

fn module_of(text: &str) -> Arc<Function> {
    let bodies = module(text);
    Arc::clone(bodies.shared_body(Func::from_u32(0)).expect("a body"))
}

/// Each function calls the next function, and all but the first come later.
#[test]
fn first_calls_are_as_deep_as_others() {
    const DEPTH: usize = 20_000;
    struct Chain;
    impl Embedder for Chain {
        fn supply(
            &mut self,
            back: &mut Callback<'_>,
            func: Func,
        ) -> Result<Arc<Function>, CallbackEnd> {
            let (module, at) = (Arc::clone(back.module()), func.as_u32() as usize);
            Ok(link(&module, at))
        }
    }
    /// Calls the next function and adds one; the last function returns its argument.
    fn link(declared: &Module, at: usize) -> Arc<Function> {
        let func = Func::from_u32(at as u32);
        let (name, signature) = (&declared.funcs[func].name, declared.signature(func).clone());
        let mut builder = FunctionBuilder::new(name, signature);
        let entry = builder.create_block();
        let argument = builder.append_param(entry, Type::I64);
        builder.switch_to(entry);
        let last = at + 1 == DEPTH;
        let returned = if last {
            argument
        } else {
            let next = Func::from_u32(at as u32 + 1);
            let call = InstSpec::call(next, &[argument], &[Type::I64]);
            let called = builder.insert_value(call);
            let one = builder.constant(Type::I64, 1);
            builder.op(Opcode::Add, Type::I64, &[called, one])
        };
        builder.ret(&[returned]);
        Arc::new(builder.finish().expect("well-formed").function)
    }
    let mut text = String::new();
    for at in 0..DEPTH {
        writeln!(text, "later func @f{at} (i64) -> i64").expect("a string takes all");
    }
    let (engine, module) = (engine(Config::default()), module(&text));
    let limits = Limits { call_depth: 2 * DEPTH as u32, ..Limits::default() };
    let mut vm = Vm::new(&engine, &module, limits, Options::traced()).expect("instantiated");
    let first = vm.run(Func::from_u32(0), &[1], &mut Chain);
    assert_eq!(first, Ok(Outcome::Returned(vec![DEPTH as u64])));
    assert_eq!(vm.run(Func::from_u32(0), &[1], &mut Chain), first);
}

/// Bodies supplied before an extension stay, and missing bodies still come later.
#[test]
fn an_extended_machine_awaits_what_it_awaited() {
    let (engine, module) = (engine(Config::default()), module(MAIN));
    let (mut vm, mut library) = (vm(&engine, &module), Library::new(BODIES));
    let (main, double) = (named(&module, "main"), named(&module, "double"));
    vm.supply(double, library.body("double").expect("it")).expect("it fits");
    let mut later = Module::clone(&module);
    let decl = later.funcs[double].clone();
    let added = later.funcs.push(osier::ir::module::FuncDecl { name: "added".to_owned(), ..decl });
    later.define_later(added);
    vm.extend(&Arc::new(later.clone())).expect("it begins alike");
    assert_eq!(vm.run(main, &[3], &mut library), Ok(Outcome::Returned(vec![24])));
    assert_eq!(library.asked, [named(&module, "square")]);
    vm.supply(added, module_of("func @added(%x: i64) -> i64 {\nentry:\n  return %x\n}\n"))
        .expect("it fits");
    assert_eq!(vm.run(added, &[9], &mut library), Ok(Outcome::Returned(vec![9])));

    // Another body to come is another function.
    later.define_later(named(&module, "never"));
    assert!(matches!(vm.extend(&Arc::new(later)), Err(VmError::OtherBeginning { .. })));
}
