//! Assumptions around inlining: assumptions that make a call direct, and assumptions about inlined
//! functions.

use super::{ALL, parsed};
use interp::{
    Limits, Machine, NoHost, NoObserver, Options, Outcome, Program, Run, TraceLevel, VersionId,
};
use ir::{Func, Function, Inst, Module, Opcode, Point};
use jit::{Action, Config, Engine, Quiet, VersionSpec, Vm};
use osier::driver::NoObserver as NoDriverObserver;
use osier::inlining::{
    CalleeLandings, InlinePlan, Inlined, InlinedAssumptions, NotInlined, PlacedAssumption, inline,
};
use osier::speculate::{Assumption, Dropped, Expected, SpeculateError};
use std::collections::BTreeMap;
use std::sync::Arc;

/// `@main` calls through a table; `@scale` branches on its second argument, and traps if it is 0.
const TEXT: &str = "memory @m 1
export \"main\" @main
table @ops 2 fixed
elem @ops 0 [@scale, @neg]
func @main(%x: i32, %by: i32, %op: i32) -> i32 {
entry:
  %one = const.i32 1
  %w = add.i32 %x, %one
  %r = call_indirect @ops (i32, i32) -> i32 [%op](%w, %by)
  %s = add.i32 %r, %x
  return %s
}
func @scale(%a: i32, %b: i32) -> i32 {
entry:
  %seven = const.i32 7
  %is = eq.i32 %b, %seven
  br_if %is, fast, slow
fast:
  %p = mul.i32 %a, %b
  return %p
slow:
  store.i32 @m[%a], %b
  %q = sdiv.i32 %a, %b
  %d = call @neg(%q, %b)
  return %d
}
func @neg(%a: i32, %b: i32) -> i32 {
entry:
  %zero = const.i32 0
  store.i32 @m[%zero], %a
  %n = sub.i32 %zero, %a
  return %n
}";

struct Assuming {
    module: Arc<Module>,
    main: Func,
    made: Result<Inlined, NotInlined>,
}

/// The place of an assumption in the first block of a function.
#[derive(Clone, Copy)]
enum Place {
    Start,
    End,
}
use Place::{End, Start};

/// By function: an argument, its bits, and the place.
type Assumed<'a> = &'a [(&'a str, usize, u64, Place)];

fn function<'m>(module: &'m Module, name: &str) -> (Func, &'m Function) {
    module.defined().find(|(_, f)| f.name() == name).expect("a function")
}

impl Assuming {
    fn new(text: &str, assume: Assumed<'_>) -> Assuming {
        let module = parsed(text);
        let main = module.lookup("main").expect("the text has it");
        let mut all: BTreeMap<Func, Vec<Assumption>> = BTreeMap::new();
        for (name, number, bits, place) in assume {
            let (func, base) = function(&module, name);
            let at = Point::before(match place {
                Start => base.first_inst(base.entry()),
                End => base.terminator(base.entry()),
            });
            let (value, expected) = (base.arguments()[*number], Expected::Is(*bits));
            let one = Assumption { at, value, expected, reason: *number as u32 };
            all.entry(func).or_default().push(one);
        }
        let plan = InlinePlan { policy: ALL, ..InlinePlan::o3().assuming(all) };
        let landings = CalleeLandings::new(&module, &plan);
        let made = inline(&module, main, &plan, &landings, &mut NoDriverObserver);
        Assuming { module: Arc::new(module), main, made }
    }

    fn inlined(&self) -> &Inlined {
        self.made.as_ref().expect("the calls are small")
    }

    fn assumptions(&self) -> &InlinedAssumptions {
        &self.inlined().assumptions
    }

    /// Runs the version in the interpreter, and leaves where an assumption fails. Returns the
    /// numbers of activations made by exits, and the end.
    fn interpreted(&self, args: &[u64]) -> (Vec<usize>, Outcome) {
        let options = Options { trace: TraceLevel::Full, poison: true, track_memory: true };
        let mut machine =
            Machine::with_options(&Program::new(&self.module), Limits::default(), options)
                .expect("instantiated");
        let bases: BTreeMap<Func, VersionId> = (self.module.defined())
            .map(|(func, _)| (func, machine.current(func).expect("a base")))
            .collect();
        let made = self.inlined();
        let id = machine.add_version(&self.module, self.main, made.tree.function(made.optimized));
        machine.set_current(self.main, id);
        machine.set_sites(id, Arc::new(made.copies.sites()));
        machine.start(self.main, args);
        let mut left = Vec::new();
        loop {
            match machine.run(&mut NoHost, &mut NoObserver) {
                Run::Failed { .. } => {
                    let inst = machine.view().expect("it is paused").inst();
                    let exit = made.exit(inst).expect("each assumption has an exit");
                    let landings = exit.landings(self.main);
                    let to: Vec<VersionId> = landings.map(|landing| bases[&landing.func]).collect();
                    left.push(to.len());
                    machine.fire(&to, exit).expect("it fits");
                }
                Run::Done(outcome) => return (left, outcome),
                other => panic!("{other:?}"),
            }
        }
    }

    /// The end of the run in native code, and the exits that it took.
    fn native(&self, args: &[u64]) -> (u64, Outcome) {
        let made = self.inlined();
        let engine = Engine::new(Config::default()).expect("native code runs here");
        let version = made.tree.function(made.optimized);
        let sites = Arc::new(made.copies.sites());
        let spec = VersionSpec::leaving(version, |_| Some(&made.down));
        let spec = spec.expect("each assumption has an exit").with_sites(sites);
        let code = engine.version(&self.module, self.main, version, spec).expect("compiled");
        let mut vm = Vm::new(&engine, &self.module, Limits::default(), Options::traced())
            .expect("instantiated");
        vm.set_tiering(Box::new(Quiet));
        let down = Arc::new(made.down.clone());
        let actions = vec![Action::Interpret(down); code.points().len()];
        vm.install(&code, actions).expect("installed");
        let outcome = vm.invoke(self.main, args, &mut NoHost).expect("it ends");
        (vm.transitions().iter().map(|made| made.count).sum(), outcome)
    }

    /// Compares runs with runs of the base. Returns the numbers of activations made by exits.
    fn compared(&self, args: &[u64]) -> Vec<usize> {
        let mut plain = Machine::new(&self.module, Limits::default()).expect("instantiated");
        let expected = plain.invoke(self.main, args, &mut NoHost, &mut NoObserver);
        let (left, found) = self.interpreted(args);
        assert_eq!(found, expected, "{args:?}, interpreted");
        let (exits, found) = self.native(args);
        assert_eq!((exits, found), (left.len() as u64, expected), "{args:?}, native");
        left
    }

    fn count(&self, opcode: Opcode) -> usize {
        let version = self.inlined().tree.function(self.inlined().optimized);
        version.all_insts().filter(|inst: &Inst| version.inst(*inst).opcode == opcode).count()
    }
}

#[test]
fn a_call_whose_target_is_assumed_is_inlined() {
    let plain = Assuming::new(TEXT, &[]);
    assert_eq!(plain.made.as_ref().map(|_| ()), Err(&NotInlined::NoCall));
    let made = Assuming::new(TEXT, &[("main", 2, 0, Start)]);
    assert_eq!([Opcode::Call, Opcode::CallIndirect].map(|op| made.count(op)), [0, 0]);
    assert_eq!(made.assumptions().exits.len(), 1);
    assert!(made.compared(&[5, 7, 0]).is_empty());
    assert!(made.compared(&[5, 3, 0]).is_empty());
    // Another function, and no function: the base calls, or traps.
    assert_eq!(made.compared(&[5, 7, 1]), [1]);
    assert_eq!(made.compared(&[5, 7, 2]), [1]);
}

#[test]
fn an_assumption_about_an_inlined_function_leaves_into_its_frame() {
    let made = Assuming::new(TEXT, &[("main", 2, 0, Start), ("scale", 1, 7, Start)]);
    let instances: Vec<usize> = (made.assumptions().exits.iter())
        .map(|exit| exit.assumption.expect("of the plan").instance)
        .collect();
    assert_eq!(instances, [0, 1]);
    // The slow path is gone, and with it the store, the division and the inner call.
    assert_eq!([Opcode::Store, Opcode::Sdiv].map(|op| made.count(op)), [0, 0]);
    assert!(made.compared(&[5, 7, 0]).is_empty());
    assert_eq!(made.compared(&[5, 3, 0]), [2]);
    // The division traps behind the exit, in the base of the callee.
    assert_eq!(made.compared(&[5, 0, 0]), [2]);
    assert_eq!(made.compared(&[5, 7, 1]), [1]);
}

/// The innermost function of three assumes: the run leaves into three activations.
#[test]
fn an_assumption_two_calls_deep_leaves_into_three_frames() {
    let made = Assuming::new(TEXT, &[("main", 2, 0, Start), ("neg", 0, 4, End)]);
    assert_eq!(made.assumptions().exits.len(), 2);
    assert!(made.compared(&[11, 3, 0]).is_empty());
    assert_eq!(made.compared(&[14, 3, 0]), [3]);
}

#[test]
fn an_assumption_that_a_constant_argument_breaks_is_left_out() {
    let text = TEXT.replace("call @neg(%q, %b)", "call @neg(%q, %seven)");
    let made = Assuming::new(&text, &[("main", 2, 0, Start), ("neg", 1, 8, Start)]);
    let dropped = &made.assumptions().dropped;
    let [(PlacedAssumption { instance: 2, .. }, Dropped::NeverHolds)] = dropped[..] else {
        panic!("{dropped:?}");
    };
    let made = Assuming::new(&text, &[("main", 2, 0, Start), ("neg", 1, 7, Start)]);
    assert_eq!((made.assumptions().settled.len(), made.assumptions().exits.len()), (1, 1));
    assert!(made.compared(&[5, 3, 0]).is_empty());
}

#[test]
fn a_list_that_does_not_fit_an_inlined_function_is_refused() {
    let made = Assuming::new(TEXT, &[("main", 2, 0, Start), ("scale", 1, 1 << 32, Start)]);
    let scale = function(&made.module, "scale").0;
    let refused = made.made.map(|_| ()).expect_err("32 bits");
    let NotInlined::Refused { func, error: SpeculateError::DoesNotFit { assumption: 0, .. } } =
        refused
    else {
        panic!("{refused}");
    };
    assert_eq!(func, scale);
}
