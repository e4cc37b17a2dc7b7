//! Runs of inlined code: sites of traps, and entries fired into several activations.

use super::parsed;
use check::CheckedEntry;
use interp::{
    FireError, Limits, Machine, NoHost, NoObserver, Options, Outcome, PauseAlways, Program, Run,
    TraceLevel, TransferError, VersionId,
};
use ir::loops::LoopForest;
use ir::{FrameState, FrameStates, Func, Local, LocalContent, Module, Point, Type};
use jit::{
    Action, CallbackEnd, Condition, Config, DeoptFrame, Embedder, Engine, LinkError, PointSpec,
    Quiet, Slot, TransitionKind, VersionSpec, Vm,
};
use osier::driver::{NoObserver as NoDriverObserver, Vigilance};
use osier::inlining::{CalleeLandings, InlinePlan, Inlined, inline};
use osier::tiers::Tiered;
use passes::{Callers, InlinePolicy, Pipeline};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use transition::copy::InlinedSites;
use transition::mapping::{Entry, Mapping};

/// `@main` calls `@inner` through `@outer`; `@inner` stores, and divides by its second argument.
const TEXT: &str = "memory @m 1
export \"main\" @main
func @inner(%a: i32, %b: i32) -> (i32, i32) {
entry:
  store.i32 @m[%a], %b
  %q = sdiv.i32 %a, %b
  store.i32 @m[%a + 4], %q
  return %q, %b
}
func @outer(%a: i32, %b: i32) -> i32 {
entry:
  %c = add.i32 %a, %b
  %x, %y = call @inner(%a, %b)
  %s = mul.i32 %x, %c
  %t = sub.i32 %s, %y
  return %t
}
func @main(%a: i32, %b: i32) -> i32 {
entry:
  %r = call @outer(%a, %b)
  %d = xor.i32 %r, %a
  return %d
}";

struct Made {
    module: Arc<Module>,
    main: Func,
    inlined: Inlined,
}

impl Made {
    fn new() -> Made {
        let module = parsed(TEXT);
        let main = module.lookup("main").expect("the text has it");
        let plan = InlinePlan::o3();
        let landings = CalleeLandings::new(&module, &plan);
        let made = inline(&module, main, &plan, &landings, &mut NoDriverObserver);
        let inlined = made.expect("the calls are small");
        Made { module: Arc::new(module), main, inlined }
    }

    /// A machine whose `@main` runs the version with inlined code, and the ids of the bases.
    fn machine(&self, limits: Limits) -> (Machine, Vec<(Func, VersionId)>) {
        let options = Options { trace: TraceLevel::Full, poison: true, track_memory: true };
        let mut machine = Machine::with_options(&Program::new(&self.module), limits, options)
            .expect("instantiated");
        let bases = self.module.defined();
        let bases = bases.map(|(func, _)| (func, machine.current(func).expect("a base")));
        let bases = bases.collect();
        let version = self.inlined.tree.function(self.inlined.optimized);
        let id = machine.add_version(&self.module, self.main, version);
        machine.set_current(self.main, id);
        machine.set_sites(id, Arc::new(self.inlined.copies.sites()));
        (machine, bases)
    }

    /// A point whose entry leads into three activations.
    fn deep(&self) -> Point {
        let mut entries = self.inlined.down.entries();
        entries.find(|(_, entry)| entry.activations() == 3).expect("in `@inner`").0
    }
}

/// Runs a machine up to a point.
fn run_to(machine: &mut Machine, main: Func, args: &[u64], at: Point) {
    machine.start(main, args);
    loop {
        assert_eq!(machine.run(&mut NoHost, &mut PauseAlways), Run::Paused);
        if machine.view().expect("it is paused").inst() == at.inst() {
            return;
        }
    }
}

#[test]
fn a_trap_in_inlined_code_is_that_of_the_base() {
    let made = Made::new();
    let end =
        |machine: &mut Machine| machine.invoke(made.main, &[8, 0], &mut NoHost, &mut NoObserver);
    let mut plain = Machine::new(&made.module, Limits::default()).expect("instantiated");
    let expected = end(&mut plain);
    let site = expected.site().expect("it traps").clone();
    assert_eq!((expected.trap().is_some(), &*site.function), (true, "inner"));
    assert_eq!(end(&mut made.machine(Limits::default()).0), expected);

    let version = made.inlined.tree.function(made.inlined.optimized);
    let engine = Engine::new(Config::default()).expect("native code runs here");
    let sites = Arc::new(made.inlined.copies.sites());
    let spec = VersionSpec::default().with_sites(sites);
    let code = engine.version(&made.module, made.main, version, spec);
    let mut vm =
        Vm::new(&engine, &made.module, Limits::default(), Options::traced()).expect("instantiated");
    vm.set_tiering(Box::new(Quiet));
    vm.install(&code.expect("compiled"), Vec::new()).expect("installed");
    assert_eq!(vm.invoke(made.main, &[8, 0], &mut NoHost).expect("it ends"), expected);
}

/// The plan alone, without mappings, knows the same sites.
#[test]
fn plans_tell_the_sites_that_copies_tell() {
    let made = Made::new();
    let base = made.module.body(made.main).expect("a body");
    let (plan, callers) = (InlinePlan::o3(), Callers::new(&made.module));
    let (version, sites) =
        plan.version(&callers, made.main, base, Vigilance::On, &mut NoDriverObserver);
    assert_eq!(version.inst_count(), {
        made.inlined.tree.function(made.inlined.optimized).inst_count()
    });
    // The ids belong to another family.
    let of = |sites: InlinedSites| sites.into_values().collect::<BTreeSet<_>>();
    assert_eq!(of(sites), of(made.inlined.copies.sites()));
}

#[test]
fn a_run_goes_on_in_three_activations() {
    let made = Made::new();
    let (mut machine, bases) = made.machine(Limits::default());
    let at = made.deep();
    run_to(&mut machine, made.main, &[8, 3], at);
    let entry = made.inlined.down.checked_entry(at).expect("an entry");
    let base = |func| bases.iter().find(|(of, _)| *of == func).expect("a base").1;
    let to: Vec<VersionId> = entry.landings(made.main).map(|landing| base(landing.func)).collect();
    let innermost = entry.entry().places().next().expect("one").inst();
    assert_eq!(machine.fire(&to, entry), Ok(Point::before(innermost)));
    let view = machine.view().expect("it is paused");
    let functions: Vec<&str> =
        view.frames().map(|frame| made.module.funcs[frame.func()].name.as_str()).collect();
    assert_eq!(functions, ["inner", "outer", "main"]);
    let calls: Vec<bool> = view
        .frames()
        .zip(entry.entry().places())
        .map(|(real, place)| real.inst() == place.inst())
        .collect();
    assert_eq!(calls, [true; 3]);
    let outcome = machine.finish(&mut NoHost, &mut NoObserver);
    let mut plain = Machine::new(&made.module, Limits::default()).expect("instantiated");
    assert_eq!(outcome, plain.invoke(made.main, &[8, 3], &mut NoHost, &mut NoObserver));
}

#[test]
fn a_run_without_room_for_its_frames_is_unchanged() {
    let made = Made::new();
    let at = made.deep();
    let entry = made.inlined.down.checked_entry(at).expect("an entry");
    let values = |limits: Limits| {
        let (mut machine, bases) = made.machine(limits);
        run_to(&mut machine, made.main, &[8, 3], at);
        let base = |func| bases.iter().find(|(of, _)| *of == func).expect("a base").1;
        let landings = entry.landings(made.main);
        let to: Vec<VersionId> = landings.map(|landing| base(landing.func)).collect();
        let fired = machine.fire(&to, entry).map(drop);
        let depth = machine.view().expect("it is paused").depth();
        (fired, depth, machine.finish(&mut NoHost, &mut NoObserver))
    };
    let (fired, depth, whole) = values(Limits::default());
    assert_eq!((fired, depth), (Ok(()), 3));
    let no_room = Err(FireError::Transfer(TransferError::StackOverflow));
    let tight = [
        Limits { call_depth: 2, ..Limits::default() },
        Limits { stack_values: 12, ..Limits::default() },
    ];
    for limits in tight {
        let (fired, depth, outcome) = values(limits);
        assert_eq!((fired, depth, &outcome), (no_room, 1, &whole), "{limits:?}");
    }
}

#[test]
fn frames_are_fired_into_their_versions_alone() {
    let made = Made::new();
    let (mut machine, bases) = made.machine(Limits::default());
    let at = made.deep();
    let entry = made.inlined.down.checked_entry(at).expect("an entry");
    let to: Vec<VersionId> = {
        let base = |func| bases.iter().find(|(of, _)| *of == func).expect("a base").1;
        entry.landings(made.main).map(|landing| base(landing.func)).collect()
    };
    assert_eq!(machine.fire(&to, entry), Err(FireError::NotPaused));
    let elsewhere = made.inlined.points[1][0];
    run_to(&mut machine, made.main, &[8, 3], elsewhere);
    let wrong = FireError::OtherPoint(elsewhere);
    assert_eq!(machine.fire(&to, entry), Err(wrong));
    run_to(&mut machine, made.main, &[8, 3], at);
    let swapped: Vec<VersionId> = to.iter().rev().copied().collect();
    assert_eq!(machine.fire(&swapped, entry), Err(FireError::OtherTarget));
    assert_eq!(machine.fire(&to[..2], entry), Err(FireError::OtherTarget));
    let (from, base) = (entry.source(), entry.target());
    // The outermost activation is one of another function.
    let short = Entry { inner: entry.entry().inner[..1].into(), ..entry.entry().clone() };
    let middle = machine.code(to[1]).key();
    let of_two = CheckedEntry::unproved(from, middle, at, &short);
    let other = FireError::Transfer(TransferError::OtherFunction);
    assert_eq!(machine.fire(&to[..2], of_two), Err(other));
    // The innermost waits for one that the entry lacks.
    let begun = Entry { inner: entry.entry().inner[1..].into(), ..entry.entry().clone() };
    let call = begun.inner[0].at.inst();
    let refused = FireError::Transfer(TransferError::NotACall(call));
    assert_eq!(
        machine.fire(&to[1..], CheckedEntry::unproved(from, base, at, &begun)),
        Err(refused)
    );
    let mut astray = entry.entry().clone();
    astray.inner[1].at = transition::frames::FramePlace::Within(
        made.module.body(astray.inner[1].func).expect("a body").all_insts().next().expect("one"),
    );
    let not_a_call = astray.inner[1].at.inst();
    let astray = CheckedEntry::unproved(from, base, at, &astray);
    let refused = FireError::Transfer(TransferError::NotACall(not_a_call));
    assert_eq!(machine.fire(&to, astray), Err(refused));
    assert!(machine.fire(&to, entry).is_ok());
}

/// A native exit into frames: linking refuses an action that does not fit.
#[test]
fn actions_with_frames_have_to_fit() {
    let made = Made::new();
    let version = made.inlined.tree.function(made.inlined.optimized);
    let engine = Engine::new(Config::default()).expect("native code runs here");
    let at = made.deep();
    let down = Arc::new(made.inlined.down.clone());
    let requires = down.entry(at).expect("an entry").requires.clone();
    let install = |values: Vec<ir::Value>, mapping: Arc<check::Checked<Mapping>>| {
        let point = PointSpec { at, condition: Condition::Flag, values };
        let sites = Arc::new(made.inlined.copies.sites());
        let spec = VersionSpec::from(std::slice::from_ref(&point)).with_sites(sites);
        let code = engine.version(&made.module, made.main, version, spec).expect("compiled");
        let mut vm = Vm::new(&engine, &made.module, Limits::default(), Options::traced())
            .expect("instantiated");
        vm.set_tiering(Box::new(Quiet));
        let linked = vm.install(&code, vec![Action::Interpret(mapping)]);
        linked.map(|()| {
            code.arm(0);
            vm.invoke(made.main, &[8, 3], &mut NoHost).expect("it ends")
        })
    };
    let mut plain = Machine::new(&made.module, Limits::default()).expect("instantiated");
    let expected = plain.invoke(made.main, &[8, 3], &mut NoHost, &mut NoObserver);
    assert_eq!(install(requires.clone(), Arc::clone(&down)), Ok(expected.clone()));
    assert!(matches!(expected, Outcome::Returned(_)));

    let missing = LinkError::Missing { number: 0, value: requires[0] };
    assert_eq!(install(requires[1..].to_vec(), Arc::clone(&down)), Err(missing));
    let changed = |change: &dyn Fn(&mut Mapping)| {
        let mut mapping = Mapping::clone(&down);
        change(&mut mapping);
        install(requires.clone(), Arc::new(check::Checked::unproved(mapping)))
    };
    let empty = |mapping: &mut Mapping| drop(mapping.remove(at));
    assert_eq!(changed(&empty), Err(LinkError::NoEntry { number: 0 }));
    let target = down.target();
    let other = |mapping: &mut Mapping| *mapping = Mapping::between(plain_key(&made), target);
    assert_eq!(changed(&other), Err(LinkError::OtherVersion { number: 0 }));
    let elsewhere = |mapping: &mut Mapping| {
        let mut entry = mapping.entry(at).expect("an entry").clone();
        entry.inner[0].version = plain_key(&made);
        mapping.insert(at, entry);
    };
    let func = down.entry(at).expect("an entry").inner[0].func;
    assert_eq!(changed(&elsewhere), Err(LinkError::NotInBase { number: 0, func }));
}

fn plain_key(made: &Made) -> transition::VersionKey {
    transition::VersionKey::of(made.module.body(made.main).expect("a body"))
}

/// `@main` calls `@count`, whose loop goes round until its argument is used up. The two have
/// results of different types.
const LOOPING: &str = "export \"main\" @main
func @count(%n: i32) -> i64 {
entry:
  %zero = const.i64 0
  %one = const.i32 1
  jump head(%n, %zero)
head(%i: i32, %s: i64):
  %w = uextend.i64 %i
  %t = add.i64 %s, %w
  %j = sub.i32 %i, %one
  br_if %j, head(%j, %t), done
done:
  return %t
}
func @main(%n: i32) -> (i32, i64) {
entry:
  %r = call @count(%n)
  %k = add.i32 %n, %n
  return %k, %r
}";

/// Native code leaves into two activations, and the loop of the inner activation turns hot. Native
/// code continues in the inner activation alone: the outer activation still waits for its results.
#[test]
fn a_hot_loop_of_an_inner_frame_ends_no_outer_frame() {
    let module = Arc::new(parsed(LOOPING));
    let main = module.func_named("main").expect("the text has it");
    let plan = InlinePlan::o3();
    let landings = CalleeLandings::new(&module, &plan);
    let made = inline(&module, main, &plan, &landings, &mut NoDriverObserver).expect("it is small");
    let version = made.tree.function(made.optimized);
    let down = Arc::new(made.down.clone());
    // The run leaves at the header of the loop, and so comes by it many times in the interpreter.
    let count = module.body(module.func_named("count").expect("the text has it"));
    let count = count.expect("it has a body");
    let forest = LoopForest::of(count);
    let header = forest.header(forest.loops().next().expect("a loop"));
    let leads_there = |entry: &Entry| {
        entry.inner.len() == 1 && entry.inner[0].at.inst() == count.first_inst(header)
    };
    let (at, entry) = down.entries().find(|(_, entry)| leads_there(entry)).expect("the header");
    let point = PointSpec { at, condition: Condition::Flag, values: entry.requires.clone() };
    let engine = Engine::new(Config::default()).expect("native code runs here");
    let sites = Arc::new(made.copies.sites());
    let spec = VersionSpec::from(std::slice::from_ref(&point)).with_sites(sites);
    let code = engine.version(&module, main, version, spec).expect("compiled");
    let mut vm =
        Vm::new(&engine, &module, Limits::default(), Options::traced()).expect("instantiated");
    vm.set_tiering(Box::new(Tiered::new(5, Pipeline::default())));
    vm.install(&code, vec![Action::Interpret(Arc::clone(&down))]).expect("installed");
    code.arm(0);
    let found = vm.invoke(main, &[100], &mut NoHost).expect("it ends");
    assert_eq!(found, Outcome::Returned(vec![200, 5050]));
    let made: Vec<TransitionKind> = vm.transitions().iter().map(|made| made.kind).collect();
    assert_eq!(made, [TransitionKind::Up, TransitionKind::Down]);
}

/// Results that do not come from the program.
struct Answer;

impl Embedder for Answer {
    fn resume(&mut self, frame: &mut DeoptFrame<'_>) -> Result<Vec<Slot>, CallbackEnd> {
        let counts: Vec<usize> =
            frame.activations.iter().map(|activation| activation.locals.len()).collect();
        assert_eq!(counts, [0, 1]);
        Ok(vec![Slot { ty: Type::I32, bits: 99 }])
    }
}

/// A frame needs a state, which may name no value. `@five` has a state without values where the run
/// leaves.
#[test]
fn a_frame_without_values_is_handed() {
    let text = "func @five() -> i32 {\nentry:\n  %c = const.i32 5\n  return %c\n}\n\
        func @main(%n: i32) -> i32 {\nentry:\n  %r = call @five()\n  %s = add.i32 %r, %n\n  \
        return %s\n}\n";
    let module = Arc::new(parsed(text));
    let main = module.func_named("main").expect("the text has it");
    let nothing = || Pipeline::of(Vec::new());
    let plan = InlinePlan::new(nothing(), InlinePolicy::default(), nothing());
    let landings = CalleeLandings::new(&module, &plan);
    let made = inline(&module, main, &plan, &landings, &mut NoDriverObserver).expect("it is small");
    let down = Arc::new(made.down.clone());
    let is_bare = |entry: &Entry| entry.inner.len() == 1 && entry.inner[0].assigns.is_empty();
    let (at, entry) = down.entries().find(|(_, entry)| is_bare(entry)).expect("in `@five`");
    let engine = Engine::new(Config::default()).expect("native code runs here");
    let point = PointSpec { at, condition: Condition::Flag, values: entry.requires.clone() };
    let install = |states: BTreeMap<Func, Arc<FrameStates>>| {
        let (version, sites) = (made.tree.function(made.optimized), Arc::new(made.copies.sites()));
        let spec = VersionSpec::from(std::slice::from_ref(&point)).with_sites(sites);
        let code = engine.version(&module, main, version, spec);
        let code = code.expect("compiled");
        let mut vm =
            Vm::new(&engine, &module, Limits::default(), Options::traced()).expect("instantiated");
        let action = Action::Hand(Arc::clone(&down), Arc::new(states));
        vm.install(&code, vec![action]).map(|()| {
            code.arm(0);
            vm.run(main, &[7], &mut Answer).expect("it ends")
        })
    };
    let value = entry.assigns[0].value;
    let base = module.body(main).expect("it has a body");
    let behind = base.next_inst(entry.target.inst()).expect("a call is no terminator");
    let local = Local { slot: 0, content: LocalContent::Value(value), representation: 0 };
    let state = |at, locals| {
        let mut states = FrameStates::new();
        states.set(at, FrameState::new(0, 0, locals));
        Arc::new(states)
    };
    let five = (entry.inner[0].func, Point::before(entry.inner[0].at.inst()));
    let inner = || (five.0, state(five.1, Vec::new()));
    let outer = (main, state(Point::before(behind), vec![local]));
    assert_eq!(install(BTreeMap::from([inner(), outer])), Ok(Outcome::Returned(vec![99])));
    let missing = LinkError::NoState { number: 0, func: main, at: Point::before(behind) };
    assert_eq!(install(BTreeMap::from([inner()])), Err(missing));
}
