//! Versions that assume, run on inputs on which their assumptions hold and fail. Wherever one
//! fails, the run goes on in the base by the exit, and ends as a run of the base does.

use interp::{
    Control, Limits, Machine, NoHost, NoObserver, Observer, Options, Outcome, Program, Run, Scope,
    TraceLevel, View,
};
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::text::parse_module;
use ir::{Func, Function, Inst, Module, Opcode, Point, Type, Value, ValueDef};
use osier::jit::{Action, Config, Engine, Vm};
use osier::osr::VersionTree;
use osier::speculate::{Assumption, Expected, Pins, Plan, SpeculateError, Speculative, speculate};
use passes::{Pipeline, parse};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use verify::generate::{Weights, generate};
use verify::prng::Prng;

const STEPS: u64 = 200_000;

/// Poison: a value that no entry provides has other contents in each activation.
const OPTIONS: Options = Options { trace: TraceLevel::Digest, track_memory: true, poison: true };

pub(crate) fn machine(program: &Program) -> Machine {
    let limits = Limits { fuel: STEPS, ..Limits::default() };
    Machine::with_options(program, limits, OPTIONS).expect("it is instantiated")
}

/// The end of a run, without the place of a trap, which passes move.
pub(crate) fn end(machine: &Machine, outcome: &Outcome) -> (String, u64, u64) {
    let how = match outcome {
        Outcome::Returned(values) => format!("{values:x?}"),
        Outcome::Trapped { kind, .. } => kind.to_string(),
        other => other.to_string(),
    };
    (how, machine.memory_digest(), machine.trace().digest())
}

/// A tree of versions, and the speculations in it.
pub(crate) struct Made {
    pub(crate) tree: VersionTree,
    pub(crate) all: Vec<Speculative>,
}

impl Made {
    /// Speculates on a base, and pins values on demand.
    pub(crate) fn new(
        module: &Module,
        base: &Function,
        assume: &[Assumption],
        pipeline: &Pipeline,
    ) -> Result<Made, SpeculateError> {
        let mut made = Made { tree: VersionTree::new(base.clone()), all: Vec::new() };
        made.again(module, &Plan::new(assume, pipeline))?;
        Ok(made)
    }

    /// Speculates on the last version.
    fn again(&mut self, module: &Module, plan: &Plan<'_>) -> Result<(), SpeculateError> {
        let from = self.all.last().map_or(VersionTree::BASE, |last| last.optimized);
        self.all.push(speculate(module, &mut self.tree, from, plan)?);
        Ok(())
    }

    pub(crate) fn last(&self) -> &Speculative {
        self.all.last().expect("there is one")
    }

    pub(crate) fn function(&self) -> &Function {
        self.tree.function(self.last().optimized)
    }
}

/// The assumptions made, left out and settled.
fn counts(made: &Made) -> (usize, usize, usize) {
    let Speculative { exits, dropped, settled, .. } = made.last();
    (exits.len(), dropped.len(), settled.len())
}

/// Runs a function whose version makes assumptions. Returns the end of the run and the number of
/// exits taken.
pub(crate) fn run(
    module: &Module,
    program: &Program,
    (func, made): (Func, &Made),
    (entry, args): (Func, &[u64]),
) -> (Outcome, Machine, u64) {
    let mut machine = machine(program);
    let base = machine.current(func).expect("it is not imported");
    let mut versions = vec![(VersionTree::BASE, base)];
    for made_one in &made.all {
        let f = made.tree.function(made_one.optimized);
        versions.push((made_one.optimized, machine.add_version(module, func, f)));
    }
    machine.set_current(func, versions.last().expect("there is one").1);
    machine.start(entry, args);
    let mut exits = 0;
    let outcome = loop {
        match machine.run(&mut NoHost, &mut NoObserver) {
            Run::Done(outcome) => break outcome,
            Run::Failed { .. } => {
                exits += 1;
                let view = machine.view().expect("a failed run is paused");
                let (at, inst) = (view.version(), view.inst());
                // A run that has left may be in an earlier speculation, and leave that one, too.
                let (current, _) = versions.iter().find(|(_, id)| *id == at).expect("it is known");
                let of = made.all.iter().find(|one| one.optimized == *current);
                let of = of.expect("the base assumes nothing");
                let (to, exit) = of.exit(inst).expect("each assumption has an exit");
                let (_, to) = versions.iter().find(|(v, _)| *v == to).expect("it is known");
                machine.fire(*to, exit).expect("an exit fires");
            }
            Run::Paused | Run::Called { .. } => unreachable!("nobody pauses it"),
        }
    };
    (outcome, machine, exits)
}

/// As [`run`], natively, with the first speculation alone. Returns how often assumptions failed,
/// too.
fn run_natively(
    (engine, module): (&Engine, &Arc<Module>),
    (func, made): (Func, &Made),
    (entry, args): (Func, &[u64]),
) -> (Outcome, Vm, u64) {
    let one = &made.all[0];
    let back = Arc::new(one.backward[&VersionTree::BASE].clone());
    let optimized = made.tree.function(one.optimized);
    let version = engine.speculative(module, func, optimized, |_| Some(&**back)).expect("compiled");
    assert_eq!(version.points().len(), one.exits.len(), "each assumption has a point");
    let options = Options { track_memory: false, ..OPTIONS };
    let mut vm = Vm::new(engine, module, Limits::default(), options).expect("it is instantiated");
    let actions = vec![Action::Interpret(back); one.exits.len()];
    vm.install(&version, actions).expect("it fits");
    let outcome = vm.invoke(entry, args, &mut NoHost).expect("the run ends");
    let failed = vm.transitions().iter().map(|made| made.count).sum();
    (outcome, vm, failed)
}

pub(crate) fn value(f: &Function, name: &str) -> Value {
    let named = |v: &Value| f.value_name(*v) == Some(name);
    let insts = f.all_insts().flat_map(|i| f.inst(i).results.to_vec());
    let params = f.blocks().flat_map(|b| f.block_params(b).to_vec());
    params.chain(insts).find(named).unwrap_or_else(|| panic!("no {name}"))
}

pub(crate) fn inst(f: &Function, name: &str) -> Inst {
    f.defining_inst(value(f, name)).expect("a result")
}

pub(crate) fn first(module: &Module) -> (Func, &Function) {
    module.defined().next().expect("the module has a function")
}

pub(crate) fn parsed(text: &str) -> Module {
    parse_module(text).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// A loop that stores where a rare condition says so. `%c` is 0 but where `%rare` divides `%j`.
const RARE: &str = "
memory @mem 1
export \"main\" @f
func @f(%n: i32, %rare: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump head(%zero, %zero)
head(%i: i32, %sum: i32):
  %more = ult.i32 %i, %n
  br_if %more, body, done
body:
  %a = load.i32 @mem[%zero + 64]
  %j = add.i32 %i, %one
  %rest = urem.i32 %j, %rare
  %c = eqz.i32 %rest
  br_if %c, slow, next(%sum)
slow:
  store.i32 @mem[%zero + 64], %j
  %twice = add.i32 %sum, %sum
  jump next(%twice)
next(%s: i32):
  %b = load.i32 @mem[%zero + 64]
  %t = add.i32 %s, %b
  %u = add.i32 %t, %a
  jump head(%j, %u)
done:
  return %sum
}";

fn at(f: &Function, before: &str, of: &str, bits: u64) -> Assumption {
    // Behind the definition of `before`.
    let next = f.next_inst(inst(f, before)).expect("a terminator follows");
    Assumption {
        at: Point::before(next),
        value: value(f, of),
        expected: Expected::Is(bits),
        reason: 7,
    }
}

#[test]
fn a_branch_never_taken_leaves_the_loop() {
    let module = parsed(RARE);
    let (func, base) = first(&module);
    let pipeline = parse("O1").expect("it is a pipeline");
    let made = Made::new(&module, base, &[at(base, "c", "c", 0)], &pipeline).expect("it is legal");
    assert_eq!(counts(&made), (1, 0, 0), "{:?}", made.last().dropped);
    assert!(made.function().inst_count() < base.inst_count(), "the slow side is gone");
    let program = Program::new(&module);
    for (args, exits) in [([50, 1000], 0), ([50, 7], 1), ([50, 1], 1), ([0, 0], 0), ([3, 0], 0)] {
        let mut plain = machine(&program);
        let expected = plain.invoke(func, &args, &mut NoHost, &mut NoObserver);
        let (outcome, after, taken) = run(&module, &program, (func, &made), (func, &args));
        assert_eq!(end(&after, &outcome), end(&plain, &expected), "{args:?}");
        assert_eq!(taken, exits, "{args:?}");
    }
}

#[test]
fn a_value_never_zero_decides_its_branch() {
    // The condition is no truth value: `%rest` itself decides.
    let text = RARE.replace(
        "  %c = eqz.i32 %rest\n  br_if %c, slow, next(%sum)",
        "  br_if %rest, next(%sum), slow",
    );
    let module = parsed(&text);
    let (func, base) = first(&module);
    let never = Assumption { expected: Expected::IsNot(0), ..at(base, "rest", "rest", 0) };
    let pipeline = parse("O1").expect("it is a pipeline");
    let made = Made::new(&module, base, &[never], &pipeline).expect("it is legal");
    assert_eq!(counts(&made), (1, 0, 0), "{:?}", made.last().dropped);
    assert!(!made.function().all_insts().any(|i| made.function().inst(i).opcode == Opcode::Store));
    let program = Program::new(&module);
    for (args, exits) in [([50, 1000], 0), ([50, 7], 1), ([50, 1], 1), ([0, 0], 0), ([3, 0], 0)] {
        let mut plain = machine(&program);
        let expected = plain.invoke(func, &args, &mut NoHost, &mut NoObserver);
        let (outcome, after, taken) = run(&module, &program, (func, &made), (func, &args));
        assert_eq!(end(&after, &outcome), end(&plain, &expected), "{args:?}");
        assert_eq!(taken, exits, "{args:?}");
    }
    let float = RARE.replace("  %rest =", "  %ratio = const.f32 1.0\n  %rest =");
    let module = parsed(&float);
    let (_, base) = first(&module);
    let differs = Assumption { expected: Expected::IsNot(0), ..at(base, "c", "ratio", 0) };
    let error = Made::new(&module, base, &[differs], &pipeline).map(|_| ()).expect_err("refused");
    assert_eq!(error, SpeculateError::NotComparable { assumption: 0, ty: Type::F32 });
}

/// A side that an assumption excludes has effects that would keep windows open: the load behind the
/// join may trap there, and the store before the branch may be seen. In the versions that assume,
/// no run takes that side.
#[test]
fn a_side_that_an_assumption_excludes_opens_no_window() {
    let text = "
memory @mem 1
import func @see \"host\" \"see\" (i32) -> i32
export \"main\" @f
func @f(%n: i32, %rare: i32, %p: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump head(%zero, %zero)
head(%i: i32, %sum: i32):
  %j = add.i32 %i, %one
  %c = eq.i32 %j, %rare
  br_if %c, slow, fast
slow:
  %seen = call @see(%j)
  jump join
fast:
  store.i32 @mem[%p], %j
  jump join
join:
  %b = load.i32 @mem[%p]
  %s = add.i32 %sum, %b
  store.i32 @mem[%p], %s
  %more = ult.i32 %j, %n
  br_if %more, head(%j, %s), done
done:
  return %s
}";
    let module = parsed(text);
    let (_, base) = first(&module);
    let never = at(base, "c", "c", 0);
    let made = Made::new(&module, base, &[never], &Pipeline::default()).expect("it is legal");
    assert_eq!(counts(&made), (1, 0, 0), "{:?}", made.last().dropped);
    assert!(made.last().exits[0].pins.is_empty(), "nothing is missing");
    let loads = |f: &Function| f.all_insts().filter(|i| f.inst(*i).opcode == Opcode::Load).count();
    assert_eq!((loads(base), loads(made.function())), (1, 0));
}

/// Calls through a fixed table whose index is assumed become calls of the function there.
#[test]
fn an_assumed_index_resolves_the_call() {
    let text = "
table @ops 2 fixed
elem @ops 0 [@inc, @dec]
func @apply(%x: i32, %op: i32) -> i32 {
entry:
  %r = call_indirect @ops (i32) -> i32 [%op](%x)
  %s = add.i32 %r, %r
  return %s
}
func @inc(%x: i32) -> i32 {
entry:
  %one = const.i32 1
  %y = add.i32 %x, %one
  return %y
}
func @dec(%x: i32) -> i32 {
entry:
  %one = const.i32 1
  %y = sub.i32 %x, %one
  return %y
}";
    let module = parsed(text);
    let (func, base) = first(&module);
    let at = Point::before(base.first_inst(base.entry()));
    let expected = Expected::Is(1);
    let down = Assumption { at, value: base.arguments()[1], expected, reason: 7 };
    let made = Made::new(&module, base, &[down], &Pipeline::default()).expect("it is legal");
    assert_eq!(counts(&made), (1, 0, 0), "{:?}", made.last().dropped);
    let opcodes: Vec<Opcode> =
        made.function().all_insts().map(|i| made.function().inst(i).opcode).collect();
    assert!(opcodes.contains(&Opcode::Call) && !opcodes.contains(&Opcode::CallIndirect));
    let points = made.function().inst_count();
    assert_eq!(made.last().backward[&VersionTree::BASE].len(), points, "an exit at every point");
    let program = Program::new(&module);
    for (op, exits) in [(1, 0), (0, 1), (2, 1)] {
        let mut plain = machine(&program);
        let expected = plain.invoke(func, &[5, op], &mut NoHost, &mut NoObserver);
        let (outcome, after, taken) = run(&module, &program, (func, &made), (func, &[5, op]));
        assert_eq!(end(&after, &outcome), end(&plain, &expected), "{op}");
        assert_eq!(taken, exits, "{op}");
    }
    let module = parsed(&text.replace(" fixed", ""));
    let (_, base) = first(&module);
    let made = Made::new(&module, base, &[down], &Pipeline::default()).expect("it is legal");
    let is_call = |i: Inst| made.function().inst(i).opcode == Opcode::Call;
    assert!(!made.function().all_insts().any(is_call), "code may write the table");
}

#[test]
fn the_operands_of_a_write_in_one_arm_are_not_pinned_behind_it() {
    // An exit in the second round of a loop may have to execute a write of the first round, whose
    // operands an arm of the loop computes. Seed 688 does. Nobody has to know whether the
    // assumptions hold.
    let pipeline = parse("O2").expect("it is a pipeline");
    for seed in 660..700 {
        let random = &mut Prng::new(seed);
        let generated = generate(seed, 100, &Weights::with_facts());
        for (_, base) in generated.module.defined() {
            let places = random_places(base, random, 6);
            let mut assume: Vec<Assumption> = places
                .into_iter()
                .map(|(inst, value)| {
                    let expected = Expected::Is(u64::from(random.below(3)));
                    Assumption { at: Point::before(inst), value, expected, reason: 0 }
                })
                .collect();
            assume.sort_unstable();
            let made = Made::new(&generated.module, base, &assume, &pipeline);
            let made = made.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            for version in made.tree.versions() {
                let f = made.tree.function(version);
                let findings = ir::verifier::verify_function(&generated.module, f);
                assert!(findings.is_empty(), "seed {seed}, {version}: {}", findings[0]);
            }
        }
    }
}

#[test]
fn no_entry_lands_in_the_next_round_of_a_loop_that_assumes() {
    // Case 2 of the design: from the second round on, a run in the base may have come by the slow
    // side. Behind the assumption is the whole loop, but not the code before it.
    let module = parsed(RARE);
    let (_, base) = first(&module);
    let made = Made::new(&module, base, &[at(base, "c", "c", 0)], &Pipeline::default())
        .expect("it is legal");
    let f = made.function();
    let entry = f.entry();
    let landings: Vec<_> = made.last().forward.entries().map(|(_, e)| e.target.inst()).collect();
    assert!(!landings.is_empty(), "entries from the base land before the loop");
    assert!(landings.iter().all(|inst| f.inst_block(*inst) == entry), "and nowhere else");
}

#[test]
fn wrong_assumptions_are_refused_by_name() {
    let module = parsed(RARE);
    let (_, base) = first(&module);
    let fine = at(base, "c", "c", 0);
    let refused = |a: Assumption| {
        Made::new(&module, base, &[fine, a], &Pipeline::default())
            .map(|_| ())
            .expect_err("it is refused")
    };
    let early = Assumption { at: Point::before(base.first_inst(base.entry())), ..fine };
    let error = SpeculateError::NotAvailable { assumption: 1, value: fine.value };
    assert_eq!(refused(early), error);
    let wide = Assumption { expected: Expected::Is(1 << 32), ..fine };
    assert!(matches!(refused(wide), SpeculateError::DoesNotFit { assumption: 1, .. }));
    let lost = Inst::from_u32(10_000);
    let nowhere = Assumption { at: Point::before(lost), ..fine };
    let error = SpeculateError::NoSuchPoint { assumption: 1, inst: lost };
    assert_eq!(refused(nowhere), error);
    let module = parsed("func @f(%r: funcref, %x: externref) {\nentry:\n  return\n}");
    let (_, base) = first(&module);
    let at = Point::before(base.first_inst(base.entry()));
    let of_ref = |index: usize, bits| {
        let value = base.arguments()[index];
        let assumption = Assumption { at, value, expected: Expected::Is(bits), reason: 0 };
        Made::new(&module, base, &[assumption], &Pipeline::default()).map(|_| ())
    };
    // Function 0 is the only one, and references of the host are no constants.
    for (index, bits, ty) in
        [(0, 2, Type::FuncRef), (0, u64::MAX, Type::FuncRef), (1, 1, Type::ExternRef)]
    {
        let error = SpeculateError::DoesNotFit { assumption: 0, bits, ty };
        assert_eq!(of_ref(index, bits), Err(error));
    }
    assert_eq!([of_ref(0, 0), of_ref(0, 1), of_ref(1, 0)], [Ok(()), Ok(()), Ok(())]);
    let module = parsed(RARE);
    let (_, base) = first(&module);
    let many = vec![fine; 5000];
    let error = Made::new(&module, base, &many, &Pipeline::default())
        .map(|_| ())
        .expect_err("it is refused");
    assert_eq!(error, SpeculateError::TooMany { count: 5000 });
}

/// A pass takes the exit of an assumption that the base itself makes, and nothing may be pinned.
/// The version then assumes no more than the base.
#[test]
fn a_base_that_assumes_keeps_its_exits() {
    let text = "
global @g: mut i32 = 3
func @f(%x: i32, %q: i32) -> i32 {
entry:
  %a = global_get.i32 @g
  global_set.i32 @g, %x
  %seven = const.i32 7
  %y = assume.i32 %x, 7, 1
  %c = eq.i32 %y, %seven
  br_if %c, one, two
one:
  %d = eq.i32 %q, %seven
  return %d
two:
  return %a
}";
    let module = parsed(text);
    let (_, base) = first(&module);
    let pipeline = parse("O1").expect("it is a pipeline");
    for pins in [Pins::Never, Pins::OnDemand, Pins::Live] {
        for assume in [&[at(base, "d", "d", 0)][..], &[]] {
            let mut tree = VersionTree::new(base.clone());
            let plan = Plan { assume, pipeline: &pipeline, pins };
            let made = speculate(&module, &mut tree, VersionTree::BASE, &plan);
            let made = made.unwrap_or_else(|error| panic!("{pins:?}: {error}"));
            let f = tree.function(made.optimized);
            let mut makes = f.all_insts().filter(|i| f.inst(*i).opcode == Opcode::Assume);
            assert!(makes.all(|inst| made.exit(inst).is_some()), "{pins:?}: each has an exit");
        }
    }
}

/// Records the first contents of a value at each place where it is wanted.
struct Recorder<'w> {
    wanted: &'w HashMap<(Func, Inst), Value>,
    seen: HashMap<(Func, Inst), u64>,
}

impl Observer for Recorder<'_> {
    const SCOPE: Scope = Scope::Everything;

    fn before(&mut self, view: &View<'_>, inst: Inst) -> Control {
        let place = (view.func(), inst);
        if let Some(value) = self.wanted.get(&place) {
            self.seen.entry(place).or_insert_with(|| view.value(*value));
        }
        Control::Continue
    }
}

/// Random places of a function with a value that is available there.
fn random_places(f: &Function, random: &mut Prng, count: usize) -> HashMap<Inst, Value> {
    let cfg = Cfg::new(f);
    let dom = DomTree::new(f, &cfg);
    let insts: Vec<Inst> = cfg.rpo().iter().flat_map(|b| f.block_insts(*b)).collect();
    let params = f.blocks().flat_map(|b| f.block_params(b).to_vec());
    let results = insts.iter().flat_map(|i| f.inst(*i).results.to_vec());
    let values: Vec<Value> = params.chain(results).collect();
    let mut places = HashMap::new();
    for _ in 0..8 * count {
        let inst = insts[random.below(insts.len() as u32) as usize];
        let value = values[random.below(values.len() as u32) as usize];
        let is_constant = f.constant(value).is_some();
        let is_home = match f.value_def(value) {
            ValueDef::Param(block, _) => cfg.is_reachable(block),
            ValueDef::Result(inst, _) => cfg.is_reachable(f.inst_block(inst)),
        };
        let fits = is_home && dom.available_at(f, value, Point::before(inst));
        if fits && !is_constant && places.len() < count {
            places.insert(inst, value);
        }
    }
    places
}

/// The assumptions whose place a version still has, about a value that is available there.
fn still_there(f: &Function, all: &[Assumption]) -> Vec<Assumption> {
    let cfg = Cfg::new(f);
    let dom = DomTree::new(f, &cfg);
    let stands = |a: &&Assumption| {
        f.has_inst(a.at.inst())
            && f.has_value(a.value)
            && cfg.is_reachable(f.inst_block(a.at.inst()))
            && dom.available_at(f, a.value, a.at)
    };
    let holds = |a: &&Assumption| f.constant(a.value).is_none_or(|bits| a.expected.holds(bits));
    all.iter().filter(stands).filter(holds).copied().collect()
}

#[test]
fn runs_that_leave_at_any_assumption_end_as_the_base_does() {
    let (mut made, mut dropped, mut settled, mut pinned, mut inherited) = (0, 0, 0, 0, 0);
    let (mut failing, mut holding, mut natively) = (0, 0, 0);
    let engine = Engine::new(Config { trace: true, ..Config::default() })
        .expect("the tests run where native code does");
    let mut lost = BTreeMap::new();
    for seed in 0..200 {
        let random = &mut Prng::new(seed);
        let generated = generate(seed, 40, &Weights::default());
        let module = &generated.module;
        let shared = Arc::new(module.clone());
        let program = Program::new(module);
        let places: HashMap<(Func, Inst), Value> = module
            .defined()
            .flat_map(|(func, f)| {
                let places = random_places(f, random, 4);
                places.into_iter().map(move |(inst, value)| ((func, inst), value))
            })
            .collect();
        let mut recorder = Recorder { wanted: &places, seen: HashMap::new() };
        machine(&program).invoke(
            generated.main,
            &generated.arguments[0],
            &mut NoHost,
            &mut recorder,
        );
        for (func, base) in module.defined() {
            let mut assumptions: Vec<Assumption> = recorder
                .seen
                .iter()
                .filter(|((of, _), _)| *of == func)
                .map(|(place, bits)| Assumption {
                    at: Point::before(place.1),
                    value: places[place],
                    expected: Expected::Is(*bits),
                    reason: seed as u32,
                })
                .collect();
            assumptions.sort_unstable();
            let pipeline = parse(["O1", "O2", "canonical"][seed as usize % 3]).expect("it is one");
            // The second half is assumed of the optimized version, where it still has the places.
            let later = assumptions.split_off(assumptions.len().div_ceil(2));
            let mut version =
                Made::new(module, base, &assumptions, &pipeline).expect("it is legal");
            let later = still_there(version.function(), &later);
            let again = version.again(module, &Plan::new(&later, &pipeline));
            again.unwrap_or_else(|error| panic!("seed {seed}, {func}: {error}"));
            for one in &version.all {
                assert!(
                    one.exits.iter().all(|e| one.exit(e.inst).is_some()),
                    "seed {seed}, {func}"
                );
                made += one.exits.iter().filter(|exit| exit.assumption.is_some()).count();
                pinned += one.exits.iter().filter(|exit| !exit.pins.is_empty()).count();
                inherited += one.exits.iter().filter(|exit| exit.assumption.is_none()).count();
                dropped += one.dropped.len();
                settled += one.settled.len();
                for (_, why) in &one.dropped {
                    *lost.entry(why.name()).or_insert(0) += 1;
                }
            }
            for args in &generated.arguments {
                let mut plain = machine(&program);
                let expected = plain.invoke(generated.main, args, &mut NoHost, &mut NoObserver);
                let (outcome, after, exits) =
                    run(module, &program, (func, &version), (generated.main, args));
                let is_limited =
                    |o: &Outcome| matches!(o, Outcome::OutOfFuel(_) | Outcome::StackOverflow(_));
                if is_limited(&expected) || is_limited(&outcome) {
                    continue;
                }
                let [found, wanted] = [end(&after, &outcome), end(&plain, &expected)];
                assert_eq!(found, wanted, "seed {seed}, {func} with {args:x?}, {exits} exits");
                failing += exits;
                holding += u64::from(exits == 0);
                let (outcome, vm, left) =
                    run_natively((&engine, &shared), (func, &version), (generated.main, args));
                if !is_limited(&outcome) {
                    // Native code does not digest memory at each effect.
                    let [found, wanted] =
                        [(vm.machine(), &outcome), (&plain, &expected)].map(|(m, how)| {
                            (end(m, how).0, m.computed_memory_digest(), m.trace().count())
                        });
                    assert_eq!(found, wanted, "seed {seed}, {func} with {args:x?}, natively");
                    natively += left;
                }
            }
        }
    }
    let figures = format!(
        "{made} assumptions ({pinned} pin, {inherited} stay on), {settled} settled, {dropped} \
         dropped ({lost:?}); {failing} exits, {natively} natively, {holding} runs without"
    );
    assert!(made > 450 && natively > 500 && failing > 1000 && holding > 1000, "{figures}");
    assert!(50 * dropped < made && pinned > 5 && inherited > 300, "{figures}");
}
