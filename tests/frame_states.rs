//! Frame states of bases: entries land where states are, and provide the values that these name.

use crate::inlining::ALL;
use certify::Certifier;
use check::verdict::{Check, Options as CheckOptions};
use check::{accept_armed, relate};
use interp::{Limits, Options, Outcome};
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::eval::fold;
use ir::text::parse_module;
use ir::{
    FrameState, FrameStateError, FrameStates, Func, Function, Imm, Inst, Local, LocalContent,
    Module, Opcode, Point, Type, Value,
};
use jit::{
    Action, CallbackEnd, Condition, Config, DeoptFrame, Embedder, Engine, HandedActivation,
    HandedContent, LinkError, PointSpec, RunError, Slot, VersionSpec, Vm,
};
use osier::driver::{NoObserver, Vigilance, derive, prove_graph};
use osier::inlining::{CalleeLandings, InlinePlan, Inlined, NotInlined, inline};
use osier::speculate::{Assumption, Expected, Plan, Speculative, speculate};
use osier::tiers::install_handing;
use osr::{Level, VersionGraph, VersionTree, required};
use passes::Pipeline;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use transition::frames::FramePlace;
use transition::mapping::{Entry, Mapping};
use transition::{Demand, Side};
use verify::generate::{Weights, generate};
use verify::prng::Prng;

fn parsed(text: &str) -> Arc<Module> {
    Arc::new(parse_module(text).unwrap_or_else(|errors| panic!("{errors:?}")))
}

fn local(slot: u32, value: Value) -> Local {
    Local { slot, content: LocalContent::Value(value), representation: 2 }
}

/// `%dead` is a local of the source language that no code of the IR reads.
const DEAD: &str = "func @f(%a: i32, %k: i32) -> i32 {
entry:
  %dead = mul.i32 %a, %k
  %one = const.i32 1
  %b = add.i32 %a, %one
  %c = mul.i32 %b, %k
  return %c
}";

/// A version of [`DEAD`] that assumes `%k` to be 7, and the frame state behind `%dead`.
struct Assumed {
    module: Arc<Module>,
    func: Func,
    dead: Value,
    states: Arc<FrameStates>,
    tree: VersionTree,
    made: Speculative,
}

impl Assumed {
    fn new(is_armed: bool) -> Assumed {
        let module = parsed(DEAD);
        let (func, base) = module.defined().next().expect("a function");
        let [a, k] = [0, 1].map(|index| base.arguments()[index]);
        let first = base.first_inst(base.entry());
        let (dead, at) = (base.inst(first).results[0], base.next_inst(first).expect("a next"));
        let at = Point::before(at);
        let constant = LocalContent::Constant(Type::I64, 42);
        let mut locals: Vec<Local> = (0..).zip([a, k, dead]).map(|(n, v)| local(n, v)).collect();
        locals.push(Local { slot: 3, content: constant, representation: 5 });
        locals.push(local(9, a));
        let caller = Arc::new(FrameState::new(8, 81, vec![local(0, k)]));
        let state = FrameState { function: 4, pc: 12, locals, caller: Some(caller) };
        let mut states = FrameStates::new();
        states.set(at, state);
        let mut tree = VersionTree::new(base.clone());
        match is_armed {
            true => tree.arm_states(VersionTree::BASE, &states).expect("they fit"),
            false => tree.land_at(VersionTree::BASE, BTreeSet::from([at])),
        }
        let assume = [Assumption { at, value: k, expected: Expected::Is(7), reason: 0 }];
        let pipeline = Pipeline::default();
        let plan = Plan::new(&assume, &pipeline);
        let made = speculate(&module, &mut tree, VersionTree::BASE, &plan).expect("it fits");
        assert_eq!(made.exits.len(), 1);
        let states = Arc::new(states);
        Assumed { module: Arc::clone(&module), func, dead, states, tree, made }
    }

    fn back(&self) -> Arc<check::Checked<Mapping>> {
        Arc::new(self.made.backward[&VersionTree::BASE].clone())
    }

    fn vm(&self) -> Result<Vm, LinkError> {
        let engine = Engine::new(Config::default()).expect("native code runs here");
        let mut vm = Vm::new(&engine, &self.module, Limits::default(), Options::traced())
            .expect("instantiated");
        let (back, optimized) = (self.back(), self.tree.function(self.made.optimized));
        match install_handing(&mut vm, self.func, optimized, &back, &self.states) {
            Ok(_) => Ok(vm),
            Err(RunError::Link(error)) => Err(error),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Checks the activations of [`DEAD`] with the arguments 5 and 3, and answers 99.
struct Looks(usize);

impl Embedder for Looks {
    fn resume(&mut self, frame: &mut DeoptFrame<'_>) -> Result<Vec<Slot>, CallbackEnd> {
        let [inner, outer] = frame.activations else { panic!("two activations") };
        assert_eq!((inner.function, inner.pc, outer.function, outer.pc), (4, 12, 8, 81));
        assert_eq!((inner.func, inner.at), (outer.func, outer.at));
        let slots = [0, 1, 2, 9].map(|slot| inner.slot(slot).map(|slot| (slot.ty, slot.bits)));
        assert_eq!(slots, [5, 3, 15, 5].map(|bits| Some((Type::I32, bits))));
        assert_eq!(inner.slot(3), Some(Slot { ty: Type::I64, bits: 42 }));
        assert_eq!(inner.slot(4), None);
        assert_eq!(outer.slot(0), Some(Slot { ty: Type::I32, bits: 3 }));
        let words: Vec<u32> = inner.locals.iter().map(|local| local.representation).collect();
        assert_eq!(words, [2, 2, 2, 5, 2]);
        self.0 += 1;
        Ok(vec![Slot { ty: Type::I32, bits: 99 }])
    }
}

#[test]
fn an_exit_hands_over_the_values_of_the_state() {
    let scene = Assumed::new(true);
    let (mut vm, mut looks) = (scene.vm().expect("it fits"), Looks(0));
    let ran = vm.run(scene.func, &[5, 7], &mut looks);
    assert_eq!((ran, looks.0), (Ok(Outcome::Returned(vec![42])), 0));
    let ran = vm.run(scene.func, &[5, 3], &mut looks);
    assert_eq!((ran, looks.0), (Ok(Outcome::Returned(vec![99])), 1));
}

#[test]
fn a_value_of_a_state_that_was_not_armed_is_refused() {
    let scene = Assumed::new(false);
    let found = scene.vm().map(|_| ()).expect_err("refused");
    let (func, value) = (scene.func, scene.dead);
    assert_eq!(found, LinkError::NotProvided { number: 0, func, value });
    assert!(found.to_string().contains(&format!("names {value}, which")), "{found}");
    let mut tree = scene.tree.clone();
    let base = tree.function(VersionTree::BASE);
    let first = Point::before(base.first_inst(base.entry()));
    let mut states = FrameStates::new();
    states.set(first, FrameState::new(0, 0, vec![local(0, value)]));
    let error = tree.arm_states(VersionTree::BASE, &states);
    assert_eq!(error, Err(FrameStateError::NotAvailable(first, value)));
}

/// States at every `every`th reachable point, each with up to three values that are available.
fn random_states(base: &Function, every: usize, prng: &mut Prng) -> FrameStates {
    let cfg = Cfg::new(base);
    let dom = DomTree::new(base, &cfg);
    let values: Vec<Value> = values(base).collect();
    let mut states = FrameStates::new();
    let insts = cfg.rpo().iter().flat_map(|block| base.block_insts(*block));
    for point in insts.map(Point::before).step_by(every) {
        let mut named = BTreeSet::new();
        for _ in 0..30 {
            let value = values[prng.below(values.len() as u32) as usize];
            if named.len() < 3 && dom.available_at(base, value, point) {
                named.insert(value);
            }
        }
        let locals = (0..).zip(named).map(|(slot, value)| local(slot, value)).collect();
        states.set(point, FrameState::new(0, 0, locals));
    }
    states
}

fn values(f: &Function) -> impl Iterator<Item = Value> + '_ {
    let params = f.blocks().flat_map(|block| f.block_params(block).iter().copied());
    params.chain(f.all_insts().flat_map(|inst| f.inst(inst).results.iter().copied()))
}

/// The checker counts the values that states name: it refuses an entry without such a value.
#[test]
fn entries_land_at_states_and_provide_their_values() {
    let (mut held, mut more, mut refused, mut anyway) = (0, 0, 0, 0);
    for seed in 0..80 {
        let program = generate(seed, 120, &Weights::default());
        let (module, base) = (&program.module, program.module.body(program.main));
        let base = base.expect("the main function has a body");
        let mut prng = Prng::new(seed);
        let states = random_states(base, 1 + (seed % 4) as usize, &mut prng);
        let pipeline = passes::parse(["O1", "O2"][seed as usize % 2]).expect("a named pipeline");
        let derived = derive(module, base, &pipeline, Vigilance::Off, &mut NoObserver);
        let mut tree = VersionTree::new(base.clone());
        tree.arm_states(VersionTree::BASE, &states).expect("they fit");
        let opt = tree.add(VersionTree::BASE, derived.function, derived.log).expect("replayed");
        let pairs = [(VersionTree::BASE, opt)];
        let graph = VersionGraph::build(&tree, &pairs, Level::Avail, Demand::default());
        let mut graph = graph.expect("derived");
        assert_eq!(graph.lacking(), [], "seed {seed}");
        let made = prove_graph(module, &mut graph, &mut NoObserver);
        // Code that no run reaches has no entry, whatever it claims.
        let is_idle = |check: Option<Check>| check == Some(Check::SourceReached);
        let mut rejected = made.mappings.iter().flat_map(|made| made.missing.rejected());
        let wrong = rejected.find(|(_, v)| !is_idle(v.finding().map(|f| f.check)));
        assert_eq!(wrong, None, "seed {seed}");
        let versions = tree.function(VersionTree::BASE);
        let live =
            ir::liveness::Liveness::of_needed(versions, &Cfg::new(versions), &BTreeMap::new());
        let mut poorer =
            Mapping::between(made.mappings[1].mapping.source(), made.mappings[1].mapping.target());
        for (point, entry) in made.mappings[1].mapping.entries() {
            let state = states.get(entry.target).expect("entries land at states alone");
            assert!(state.all_values().all(|value| entry.provides_value(value)), "seed {seed}");
            held += 1;
            let live: BTreeSet<Value> = live.live_before(versions, entry.target).iter().collect();
            let unlive = state.all_values().find(|value| !live.contains(value));
            if let Some(value) = unlive {
                more += 1;
                poorer.insert(point, without(entry, value));
            }
        }
        let [with, alone] = refused_without(module, &tree, &graph, &states, poorer);
        (refused, anyway) = (refused + with, anyway + alone);
    }
    assert!(held > 2_000 && more > 1_000, "{held} entries, {more} with a value that is not live");
    // Some of the values are required by an entry forward as well.
    assert!(refused == more && anyway < more / 2, "{refused} of {more} refused, {anyway} anyway");
}

/// An entry without the assignment of a value, which requires exactly the values that it reads.
fn without(entry: &Entry, value: Value) -> Entry {
    let mut entry = entry.clone();
    entry.assigns.retain(|assign| assign.value != value);
    entry.requires = entry.reads();
    entry.kept.retain(|kept| entry.requires.contains(kept));
    entry
}

/// The numbers of entries that the checker refuses with the states armed, and without them.
fn refused_without(
    module: &Module,
    tree: &VersionTree,
    graph: &VersionGraph<'_>,
    states: &FrameStates,
    mapping: Mapping,
) -> [usize; 2] {
    let [base, opt] = [0, 1].map(|index| tree.versions().nth(index).expect("two versions"));
    let common = graph.correspondence(base, opt).expect("built");
    let mut certifier = Certifier::new(&common);
    let forward = &graph.edges()[0].mapping;
    let facts = certifier.facts(Side::After, &mapping);
    let certificate = certifier.into_certificate();
    let relation = relate(module, common.versions, &certificate, CheckOptions::default());
    let judged = |armed: &[&Mapping]| {
        accept_armed(&relation, Side::After, mapping.clone(), facts.clone(), armed).rejected
    };
    let named = required(tree.function(base), states);
    let (with, alone) = (judged(&[forward, &named]), judged(&[forward]));
    let is_lacking = |check: Option<Check>| check == Some(Check::LivePlus);
    assert!(with.iter().all(|(_, v)| is_lacking(v.finding().map(|f| f.check))), "{with:?}");
    [with.len(), alone.len()]
}

/// `@main` calls `@inner` through `@outer`. Each has locals that the code reads no more.
const NESTED: &str = "func @inner(%n: i32, %b: i64) -> (i64, i32) {
entry:
  %one = const.i32 1
  %lost = mul.i32 %n, %n
  jump head(%n, %b)
head(%i: i32, %s: i64):
  %w = uextend.i64 %i
  %old = xor.i64 %s, %w
  %t = add.i64 %s, %w
  %j = sub.i32 %i, %one
  br_if %j, head(%j, %t), done
done:
  return %t, %n
}
func @outer(%a: i32) -> (i32, i64) {
entry:
  %w = uextend.i64 %a
  %d = add.i32 %a, %a
  %gone = mul.i32 %d, %a
  %x, %y = call @inner(%a, %w)
  %p = xor.i64 %x, %w
  %q = add.i32 %y, %d
  return %q, %p
}
func @main(%a: i32) -> i64 {
entry:
  %b = add.i32 %a, %a
  %q, %p = call @outer(%b)
  %c = add.i32 %q, %a
  %w = uextend.i64 %c
  %r = add.i64 %w, %p
  return %r
}";

/// States at every `every`th point of every function, with all values that are available.
fn all_available(module: &Module, every: usize) -> BTreeMap<Func, Arc<FrameStates>> {
    let of = |(func, base): (Func, &Function)| {
        let dom = DomTree::new(base, &Cfg::new(base));
        let mut states = FrameStates::new();
        let is_behind = |inst: &Inst| {
            base.prev_inst(*inst).is_some_and(|prev| base.inst(prev).opcode == Opcode::Call)
        };
        let insts = base.all_insts().enumerate();
        for (_, inst) in insts.filter(|(number, inst)| number % every == 0 || is_behind(inst)) {
            let at = Point::before(inst);
            let there = values(base).filter(|value| dom.available_at(base, *value, at));
            let locals = there.map(|value| local(value.as_u32(), value)).collect();
            states.set(at, FrameState::new(func.as_u32(), inst.as_u32(), locals));
        }
        (func, Arc::new(states))
    };
    module.defined().map(of).collect()
}

/// A plain interpreter of bases. Notes the contents of all values at the first visit of each
/// instruction.
struct Plain<'m> {
    module: &'m Module,
    first: BTreeMap<(Func, Inst), BTreeMap<Value, u64>>,
}

impl Plain<'_> {
    fn run(&mut self, func: Func, args: &[u64]) -> Vec<u64> {
        let f = self.module.body(func).expect("a body");
        let mut state: BTreeMap<Value, u64> =
            f.arguments().iter().copied().zip(args.iter().copied()).collect();
        let mut at = f.first_inst(f.entry());
        loop {
            self.first.entry((func, at)).or_insert_with(|| state.clone());
            let data = f.inst(at);
            let args: Vec<u64> = data.args.iter().map(|arg| state[arg]).collect();
            let index = match (data.opcode, data.imm) {
                (Opcode::Return, _) => return args,
                (Opcode::Jump, _) => 0,
                (Opcode::BrIf, _) => usize::from(args[0] == 0),
                (opcode, imm) => {
                    let results = match imm {
                        Imm::Func(callee) => self.run(callee, &args),
                        _ => vec![data.constant().unwrap_or_else(|| {
                            let ty = f.value_type(data.args[0]);
                            fold(opcode, data.ty, ty, &args).expect("no effect")
                        })],
                    };
                    state.extend(data.results.iter().copied().zip(results));
                    at = f.next_inst(at).expect("no terminator");
                    continue;
                }
            };
            let target = &data.targets[index];
            let given: Vec<u64> = target.args.iter().map(|arg| state[arg]).collect();
            state.extend(f.block_params(target.block).iter().copied().zip(given));
            at = f.first_inst(target.block);
        }
    }
}

/// Compares the locals that it is handed with the first visit of the place in a plain run.
struct Compares<'m> {
    plain: Plain<'m>,
    activations: usize,
    values: usize,
}

impl Compares<'_> {
    fn compare(&mut self, activation: &HandedActivation, is_innermost: bool) {
        let f = self.plain.module.body(activation.func).expect("a body");
        let inst = activation.at.inst();
        assert_eq!(activation.pc, inst.as_u32());
        let call = f.prev_inst(inst).filter(|_| !is_innermost);
        let first = &self.plain.first[&(activation.func, call.unwrap_or(inst))];
        for local in &activation.locals {
            let value = Value::from_u32(local.slot);
            match local.content {
                HandedContent::Bits(slot) => {
                    let is = (slot.ty, Some(&slot.bits));
                    assert_eq!(is, (f.value_type(value), first.get(&value)), "{value} at {inst}");
                    self.values += 1;
                }
                HandedContent::Result(index) => {
                    let results = &f.inst(call.expect("within a call")).results;
                    assert_eq!(results[index as usize], value);
                }
            }
        }
        self.activations += 1;
    }
}

impl Embedder for Compares<'_> {
    fn resume(&mut self, frame: &mut DeoptFrame<'_>) -> Result<Vec<Slot>, CallbackEnd> {
        for (number, activation) in frame.activations.iter().enumerate() {
            self.compare(activation, number == 0);
        }
        Ok(vec![Slot { ty: Type::I64, bits: 1 }])
    }
}

fn inlined(module: &Module, main: Func, plan: &InlinePlan) -> Result<Inlined, NotInlined> {
    let landings = CalleeLandings::new(module, plan);
    inline(module, main, plan, &landings, &mut NoObserver)
}

#[test]
fn frames_of_inlined_code_hand_over_the_values_of_their_states() {
    let module = parsed(NESTED);
    let main = module.func_named("main").expect("the text has it");
    let engine = Engine::new(Config::default()).expect("native code runs here");
    let (mut deep, mut values) = (0, 0);
    for every in 1..4 {
        let states = all_available(&module, every);
        let plan = InlinePlan { policy: ALL, ..InlinePlan::o3() }.with_states(states.clone());
        let made = inlined(&module, main, &plan).expect("calls are inlined");
        for (at, entry) in made.down.entries() {
            let condition = Condition::Always;
            let point = PointSpec { at, condition, values: entry.requires.clone() };
            let version = made.tree.function(made.optimized);
            let sites = Arc::new(made.copies.sites());
            let spec = VersionSpec::from(std::slice::from_ref(&point)).with_sites(sites);
            let code = engine.version(&module, main, version, spec);
            let mut vm = Vm::new(&engine, &module, Limits::default(), Options::traced())
                .expect("instantiated");
            let down = Arc::new(made.down.clone());
            let action = Action::Hand(down, Arc::new(states.clone()));
            vm.install(&code.expect("compiled"), vec![action]).expect("it fits");
            let mut plain = Plain { module: &module, first: BTreeMap::new() };
            plain.run(main, &[5]);
            let mut compares = Compares { plain, activations: 0, values: 0 };
            let ended = vm.run(main, &[5], &mut compares);
            assert!(matches!(ended, Ok(Outcome::Returned(_))), "{ended:?} at {at:?}");
            deep += usize::from(compares.activations == 3);
            values += compares.values;
        }
    }
    assert!(deep > 10 && values > 200, "{deep} landings in three activations, {values} values");
}

/// The activation that waits for a call gets its results; activations further out get nothing.
#[test]
fn a_result_of_a_call_is_of_the_activation_within_it() {
    let module = parsed(NESTED);
    let main = module.func_named("main").expect("the text has it");
    let base = module.body(main).expect("a body");
    let is_call = |inst: &Inst| base.inst(*inst).opcode == Opcode::Call;
    let call = base.all_insts().find(is_call).expect("a call");
    let value = base.inst(call).results[0];
    let behind = Point::before(base.next_inst(call).expect("a next"));
    let engine = Engine::new(Config::default()).expect("native code runs here");
    let linked = |is_outer: bool| {
        let mut states = all_available(&module, 1);
        let named = FrameState::new(0, 0, vec![local(0, value)]);
        let bare =
            FrameState { caller: Some(Arc::new(named.clone())), ..FrameState::new(1, 1, vec![]) };
        let mut of_main = FrameStates::clone(&states[&main]);
        of_main.set(behind, if is_outer { bare } else { named });
        states.insert(main, Arc::new(of_main));
        let plan = InlinePlan { policy: ALL, ..InlinePlan::o3() }.with_states(states.clone());
        let made = inlined(&module, main, &plan).expect("calls are inlined");
        let deep = made.down.entries().find(|(_, entry)| !entry.inner.is_empty());
        let (at, entry) = deep.expect("an entry into inlined code");
        let point = PointSpec { at, condition: Condition::Always, values: entry.requires.clone() };
        let version = made.tree.function(made.optimized);
        let sites = Arc::new(made.copies.sites());
        let spec = VersionSpec::from(std::slice::from_ref(&point)).with_sites(sites);
        let code = engine.version(&module, main, version, spec).expect("compiled");
        let mut vm =
            Vm::new(&engine, &module, Limits::default(), Options::traced()).expect("instantiated");
        let action = Action::Hand(Arc::new(made.down.clone()), Arc::new(states));
        vm.install(&code, vec![action])
    };
    assert_eq!(linked(false), Ok(()));
    assert_eq!(linked(true), Err(LinkError::NotProvided { number: 0, func: main, value }));
}

#[test]
fn states_that_do_not_fit_a_function_are_refused() {
    let module = parsed(NESTED);
    let main = module.func_named("main").expect("the text has it");
    let base = module.body(main).expect("a body");
    let first = Point::before(base.first_inst(base.entry()));
    let late = base.inst(base.first_inst(base.entry())).results[0];
    let mut states = FrameStates::new();
    states.set(first, FrameState::new(0, 0, vec![local(0, late)]));
    let plan = InlinePlan { policy: ALL, ..InlinePlan::o3() };
    let plan = plan.with_states(BTreeMap::from([(main, Arc::new(states))]));
    let error = FrameStateError::NotAvailable(first, late);
    let found = inlined(&module, main, &plan).map(|_| ());
    assert_eq!(found, Err(NotInlined::States { func: main, error }));
}

/// The argument of an inlined function is assumed, and the exit could land in front of the call,
/// where the caller has no state.
const GUESSED: &str = "
memory @mem 1
func @triple(%x: i64) -> i64 {
entry:
  %three = const.i64 3
  %r = mul.i64 %x, %three
  return %r
}
func @main(%p: i32, %n: i64) -> i64 {
entry:
  %a = load.i64 @mem[%p]
  store.i64 @mem[%p + 8], %a
  %r = call @triple(%n)
  %s = add.i64 %r, %a
  return %s
}
";

/// The guess is that the argument of `@triple` is 7. Its frame states are at the first points of
/// both functions and, if `waits`, behind the call.
fn guessed(module: &Arc<Module>, waits: bool) -> (Inlined, BTreeMap<Func, Arc<FrameStates>>) {
    let [main, triple] = ["main", "triple"].map(|name| module.func_named(name).expect("named"));
    let body = |func: Func| module.body(func).expect("a body");
    let first = |func: Func| Point::before(body(func).first_inst(body(func).entry()));
    let call = body(main).all_insts().find(|inst| body(main).inst(*inst).opcode == Opcode::Call);
    let behind = body(main).next_inst(call.expect("a call")).expect("a next");
    let state = |func: Func, pc: u32| {
        let named = body(func).arguments().iter().enumerate();
        let locals = named.map(|(slot, value)| local(slot as u32, *value)).collect();
        FrameState::new(func.as_u32(), pc, locals)
    };
    let (mut of_main, mut of_triple) = (FrameStates::new(), FrameStates::new());
    of_main.set(first(main), state(main, 0));
    of_triple.set(first(triple), state(triple, 0));
    if waits {
        of_main.set(Point::before(behind), state(main, 2));
    }
    let states = BTreeMap::from([(main, Arc::new(of_main)), (triple, Arc::new(of_triple))]);
    let guess = Assumption::is(first(triple), body(triple).arguments()[0], 7);
    let plan = InlinePlan { policy: ALL, ..InlinePlan::o3() }
        .with_states(states.clone())
        .assuming(BTreeMap::from([(triple, vec![guess])]));
    (inlined(module, main, &plan).expect("the call is inlined"), states)
}

/// An interpreter cannot continue at a point without a state. Such an assumption is given up by its
/// reason, and the version has no exit that a machine would refuse.
#[test]
fn an_exit_without_a_state_to_land_at_is_given_up() {
    for waits in [true, false] {
        let (made, states) = guessed(&parsed(GUESSED), waits);
        let assumed = &made.assumptions;
        assert!(assumed.exits.is_empty());
        let [dropped] = &assumed.dropped[..] else { panic!("{assumed:?}") };
        assert!(format!("{dropped:?}").contains("NoLanding"), "{dropped:?}");
        // Every other entry lands at states.
        let main = *states.keys().next_back().expect("two functions");
        assert!(made.down.entries().count() > 0);
        for (point, entry) in made.down.entries() {
            for landing in entry.landings(main, made.down.target()) {
                let FramePlace::Before(at) = landing.at else { continue };
                assert!(states[&landing.func].get(at).is_some(), "{point:?}: {landing:?}");
            }
        }
    }
}
