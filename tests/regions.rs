//! Loops that run natively by themselves: a continuation holds the loop alone, and where the run
//! leaves the loop, it goes back to the base.

use crate::on_demand::fire;
use check::Checked;
use interp::{
    Limits, Machine, NoHost, NoObserver, Options, Outcome, Program as Loaded, TraceLevel,
};
use ir::loops::LoopForest;
use ir::{Func, Function, Module, Point};
use jit::{
    Action, Config, Continuation, Engine, HotLoop, RegionExits, RunError, Tier, Tiering,
    TransitionKind, Vm,
};
use osier::driver::{self, Derived, EnteredRegion, Proved, Vigilance, derive, prove_regions};
use osier::{Format, load};
use osr::{Level, VersionPair};
use passes::Pipeline;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use transition::mapping::Mapping;
use verify::generate::{Program, Weights, generate};

/// The optimized version of a function, and the loops of the base that can run as its regions.
struct MadeRegions {
    derived: Derived,
    proved: Proved,
    regions: BTreeMap<Point, EnteredRegion>,
}

/// Optimizes a function, and maps its loop headers and the points behind its loops.
fn made(module: &Module, base: &Function, pipeline: &Pipeline) -> MadeRegions {
    let observer = &mut driver::NoObserver;
    let derived = derive(module, base, pipeline, Vigilance::Off, observer);
    let forest = LoopForest::of(base);
    let headers = forest.loops().map(|l| Point::before(base.first_inst(forest.header(l))));
    let (proved, regions) =
        prove_regions(module, base, &derived, Level::Avail, headers.collect(), observer);
    MadeRegions { derived, proved, regions }
}

impl MadeRegions {
    fn up(&self) -> &Checked<Mapping> {
        &self.proved.highest().before.mapping
    }

    fn down(&self) -> &Checked<Mapping> {
        &self.proved.highest().after.mapping
    }
}

/// Compiles each hot loop as a region, and enters it at each visit from outside.
struct RegionPolicy {
    pipeline: Pipeline,
    /// Larger loops stay in the interpreter.
    most: usize,
    functions: BTreeMap<Func, MadeRegions>,
    made: BTreeMap<(Func, Point), Option<Arc<Continuation>>>,
    /// The instructions of regions and of their versions.
    sizes: Arc<Mutex<Vec<(usize, usize)>>>,
}

impl RegionPolicy {
    fn new(most: usize) -> RegionPolicy {
        RegionPolicy {
            pipeline: Pipeline::default(),
            most,
            functions: BTreeMap::new(),
            made: BTreeMap::new(),
            sizes: Arc::default(),
        }
    }

    fn make(
        &mut self,
        tier: &mut Tier<'_>,
        HotLoop { func, at }: HotLoop,
    ) -> Result<Option<Arc<Continuation>>, RunError> {
        let module = Arc::clone(tier.module());
        let base = module.body(func).expect("a hot loop is in a body");
        let pipeline = &self.pipeline;
        let one = self.functions.entry(func).or_insert_with(|| made(&module, base, pipeline));
        let Some(EnteredRegion { region, cut }) = one.regions.get(&at) else {
            return Ok(None);
        };
        if region.inst_count(&one.derived.function) > self.most {
            return Ok(None);
        }
        let (version, back) = (&one.derived.function, Arc::new(one.down().clone()));
        let entry = one.up().checked_entry(at).expect("a region has an entry");
        let engine = tier.engine().clone();
        let exits = RegionExits { back: &back, points: cut };
        let into = engine.region(&module, func, base, version, entry, exits);
        let into = into.map_err(RunError::Continue)?;
        let actions = cut.iter().map(|_| Action::Interpret(Arc::clone(&back))).collect();
        tier.adopt(into.target(), actions).map_err(RunError::Link)?;
        let sizes = (into.instructions(), version.inst_count());
        self.sizes.lock().expect("nobody panics with it").push(sizes);
        Ok(Some(into))
    }
}

impl Tiering for RegionPolicy {
    fn threshold(&self) -> Option<u32> {
        Some(2)
    }

    fn hot(
        &mut self,
        tier: &mut Tier<'_>,
        at: HotLoop,
    ) -> Result<Option<Arc<Continuation>>, RunError> {
        let known = match self.made.get(&(at.func, at.at)) {
            Some(known) => known.clone(),
            None => self.make(tier, at)?,
        };
        if known.is_some() {
            tier.ask_again(at);
        }
        self.made.insert((at.func, at.at), known.clone());
        Ok(known)
    }
}

/// Two inner loops in an outer loop, with code around them.
const NESTED: &str = "
memory @mem 1
func @main(%n: i64, %m: i64, %k: i64) -> i64 {
entry:
  %zero = const.i64 0
  jump outer(%zero, %zero)
outer(%i: i64, %acc: i64):
  %more = ult.i64 %i, %n
  br_if %more, first(%zero, %acc), done
first(%a: i64, %s: i64):
  %square = mul.i64 %k, %k
  %sum = add.i64 %s, %square
  %one = const.i64 1
  %b = add.i64 %a, %one
  %again = ult.i64 %b, %m
  br_if %again, first(%b, %sum), between
between:
  %eight = const.i64 8
  %at = and.i64 %sum, %eight
  %place = wrap.i32 %at
  store.i64 @mem[%place], %sum
  jump second(%zero, %sum)
second(%c: i64, %t: i64):
  %was = load.i64 @mem[%place]
  %mixed = xor.i64 %t, %was
  %more2 = add.i64 %mixed, %k
  %d = add.i64 %c, %one
  %again2 = ult.i64 %d, %m
  br_if %again2, second(%d, %more2), next
next:
  %j = add.i64 %i, %one
  jump outer(%j, %more2)
done:
  %three = const.i64 3
  %r = mul.i64 %acc, %three
  return %r
}
";

fn vm(module: &Arc<Module>) -> Vm {
    let engine = Engine::new(Config { trace: true, ..Config::default() });
    let engine = engine.expect("the tests run where native code does");
    let options = Options { poison: false, track_memory: false, trace: TraceLevel::Digest };
    Vm::new(&engine, module, Limits::default(), options).expect("it can be instantiated")
}

/// A run goes into an inner loop and out of it again and again. The code of each loop is a part of
/// the function's.
#[test]
fn a_run_enters_and_leaves_the_code_of_inner_loops() {
    let module = Arc::new(load(Format::Oir, NESTED.as_bytes()).expect("well-formed"));
    let main = module.func_named("main").expect("there");
    let args = [40, 10, 7];
    let mut machine = Machine::new(&module, Limits::default()).expect("it can be instantiated");
    let expected = machine.invoke(main, &args, &mut NoHost, &mut NoObserver);
    let mut vm = vm(&module);
    let policy = RegionPolicy::new(10);
    let sizes = Arc::clone(&policy.sizes);
    vm.set_tiering(Box::new(policy));
    assert_eq!(vm.invoke(main, &args, &mut NoHost), Ok(expected));
    let sizes = sizes.lock().expect("nobody panics with it").clone();
    assert!(sizes.len() >= 2, "{sizes:?}");
    let (least, whole) = sizes.iter().min().expect("some");
    assert!(2 * least < *whole, "the loop alone is less than half: {sizes:?}");
    let made = vm.transitions();
    let count = |kind| made.iter().filter(|m| m.kind == kind).map(|m| m.count).sum::<u64>();
    let (up, down) = (count(TransitionKind::Up), count(TransitionKind::Down));
    assert!(up >= 40 && down >= 40, "{up} up, {down} down: {made:?}");
}

/// The inner loop is left to the header of the outer loop, the only way into the inner loop.
const BACK_TO_HEADER: &str = "
func @main(%n: i64, %m: i64) -> i64 {
entry:
  %zero = const.i64 0
  %one = const.i64 1
  jump outer(%zero, %zero)
outer(%i: i64, %acc: i64):
  %more = ult.i64 %i, %n
  br_if %more, enter, done
enter:
  %j = add.i64 %i, %one
  jump inner(%zero, %acc)
inner(%a: i64, %s: i64):
  %sum = add.i64 %s, %j
  %b = add.i64 %a, %one
  %again = ult.i64 %b, %m
  br_if %again, inner(%b, %sum), outer(%j, %sum)
done:
  return %acc
}
";

/// Code that stands only behind a way out of the loop may be the loop itself.
#[test]
fn a_loop_is_left_to_the_code_in_front_of_it() {
    let module = Arc::new(load(Format::Oir, BACK_TO_HEADER.as_bytes()).expect("well-formed"));
    let main = module.func_named("main").expect("there");
    let mut vm = vm(&module);
    let policy = RegionPolicy::new(7);
    let sizes = Arc::clone(&policy.sizes);
    vm.set_tiering(Box::new(policy));
    let expected = (1..=30).sum::<u64>() * 20;
    let ended = Ok(Outcome::Returned(vec![expected]));
    assert_eq!(vm.invoke(main, &[30, 20], &mut NoHost), ended);
    assert!(!sizes.lock().expect("nobody panics with it").is_empty());
}

/// Points of the version would take the actions of the points at which the region is left.
#[test]
fn a_version_with_points_has_no_regions() {
    let leaving = NESTED.replace("done:\n", "leave:\n  osr_exit 0(%more2)\ndone:\n").replace(
        "br_if %again2, second(%d, %more2), next",
        "br_if %again2, second(%d, %more2), behind\nbehind:\n  br_if %k, next, leave",
    );
    let module = Arc::new(load(Format::Oir, leaving.as_bytes()).expect("well-formed"));
    let (func, base) = module.defined().next().expect("there is a function");
    let one = made(&module, base, &Pipeline::default());
    let (&at, EnteredRegion { cut, .. }) =
        one.regions.first_key_value().expect("a loop has an entry");
    let engine = Engine::new(Config::default()).expect("the tests run where native code does");
    let entry = one.up().checked_entry(at).expect("found before");
    let exits = RegionExits { back: one.down(), points: cut };
    let made = engine.region(&module, func, base, &one.derived.function, entry, exits);
    assert!(made.expect_err("it has points").to_string().contains("points of its own"));
}

/// The entries of regions under the state oracle. Returns the number of transitions.
fn judged(program: &Program, base: &Function, one: &MadeRegions) -> u64 {
    let after = &one.derived.function;
    let versions = VersionPair::new(base, after, &one.derived.log).expect("it replays");
    let anchors = versions.bounding_anchors().collect();
    fire(program, after, &anchors, [one.up(), one.down()])
}

/// Random programs whose loops run as regions end like the interpreter's runs, and the state oracle
/// finds no difference at the entries of the regions.
#[test]
fn random_programs_run_their_loops_as_regions() {
    let (mut regions, mut transitions, mut ups, mut downs) = (0, 0, 0, 0);
    for seed in 0..80 {
        let program = generate(seed, 80, &Weights::default());
        let module = Arc::new(program.module.clone());
        let base = module.body(program.main).expect("the main function has a body");
        let pipeline = Pipeline::default();
        let one = made(&module, base, &pipeline);
        regions += one.regions.len();
        transitions += judged(&program, base, &one);
        let options = Options { poison: false, track_memory: false, trace: TraceLevel::Digest };
        let limits = Limits::default();
        let machine = Machine::with_options(&Loaded::new(&module), limits, options);
        let mut machine = machine.expect("a generated module");
        let mut vm = vm(&module);
        vm.set_tiering(Box::new(RegionPolicy::new(usize::MAX)));
        for args in &program.arguments {
            let expected = machine.invoke(program.main, args, &mut NoHost, &mut NoObserver);
            let found = vm.invoke(program.main, args, &mut NoHost).expect("it runs");
            match (&expected, &found) {
                (
                    Outcome::Trapped { kind: a, operand: x, .. },
                    Outcome::Trapped { kind: b, operand: y, .. },
                ) => assert_eq!((a, x), (b, y), "seed {seed}, {args:?}"),
                _ => assert_eq!(expected, found, "seed {seed}, {args:?}"),
            }
            assert!(vm.machine().same_memory(&machine), "seed {seed}, {args:?}");
            let effects = |machine: &Machine| machine.trace().digest();
            assert_eq!(effects(vm.machine()), effects(&machine), "seed {seed}, {args:?}");
        }
        for made in vm.transitions() {
            ups += if made.kind == TransitionKind::Up { made.count } else { 0 };
            downs += if made.kind == TransitionKind::Down { made.count } else { 0 };
        }
    }
    assert!(regions >= 60, "{regions} regions");
    assert!(transitions >= 1000, "{transitions} transitions compared");
    assert!(ups >= 100 && downs >= 100, "{ups} up, {downs} down");
}

/// Wrong use is refused by name.
#[test]
fn a_region_needs_its_own_entry_and_ways_back() {
    let module = Arc::new(load(Format::Oir, NESTED.as_bytes()).expect("well-formed"));
    let (func, base) = module.defined().next().expect("there is a function");
    let one = made(&module, base, &Pipeline::default());
    let (&at, EnteredRegion { cut, .. }) =
        one.regions.last_key_value().expect("a loop has an entry");
    let engine = Engine::new(Config::default()).expect("the tests run where native code does");
    let (forward, back) = (one.up(), one.down());
    let entry = || forward.checked_entry(at).expect("found before");
    let version = &one.derived.function;
    let said = |made: Result<Arc<Continuation>, jit::ContinueError>| {
        made.expect_err("it does not fit").to_string()
    };
    let region = |source, exits| engine.region(&module, func, source, version, entry(), exits);
    let exits = RegionExits { back, points: cut };
    let no_entry = [Point::before(version.first_inst(version.entry()))];
    let made = region(base, RegionExits { points: &no_entry, ..exits });
    assert!(said(made).contains("has no entry back"));
    // The mapping up leads from another version than the one that the run leaves.
    let made = region(base, RegionExits { back: forward, ..exits });
    assert!(matches!(made, Err(jit::ContinueError::OtherTarget { .. })));
    let made = region(version, exits);
    assert!(matches!(made, Err(jit::ContinueError::OtherSource { .. })));
    // The region can be compiled, and its target cannot be called.
    let made = region(base, exits).expect("it fits");
    let mut vm = Vm::new(&engine, &module, Limits::default(), Options::traced()).expect("it can");
    let actions = cut.iter().map(|_| Action::Ask).collect();
    assert_eq!(vm.install(made.target(), actions), Err(jit::LinkError::NotCallable));
}
