//! Exits of a front end's own in inlined code ([`InlinePlan::at_places`]).

use super::{ALL, parsed};
use interp::{Limits, Options, Outcome};
use ir::cfg::Cfg;
use ir::decided::Decided;
use ir::dom::DomTree;
use ir::{
    FrameState, FrameStates, Func, Function, Inst, Local, LocalContent, Module, Opcode, Point,
    Value,
};
use jit::{
    Action, CallbackEnd, Condition, Config, DeoptFrame, Embedder, Engine, HandedContent, PointSpec,
    Slot, Vm,
};
use osier::driver::{NoObserver, StatePointError};
use osier::inlining::{CalleeLandings, InlinePlan, Inlined, NotInlined, StatePlaces, inline};
use osier::speculate::Assumption;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use verify::generate::{Weights, generate};

/// `@leaf` leaves where a square is above `%n`. Its state names `%turns`, which no code needs, and
/// so does the state of `@main` behind the call with `%calls`.
const COUNTED: &str = "func @main(%a: i32, %n: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump head(%a, %zero)
head(%x: i32, %calls: i32):
  %more = add.i32 %calls, %one
  %y = call @leaf(%x, %n)
  %z = add.i32 %y, %one
  %done = eq.i32 %z, %n
  br_if %done, end, head(%z, %more)
end:
  return %z
}
func @leaf(%a: i32, %n: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump head(%a, %zero)
head(%x: i32, %turns: i32):
  %y = mul.i32 %x, %x
  %more = add.i32 %turns, %one
  %big = ult.i32 %n, %y
  br_if %big, leave, next
next:
  %small = ult.i32 %y, %a
  br_if %small, head(%y, %more), end
leave:
  trap user0
end:
  return %y
}";

/// The functions of a module as a front end has them.
struct Bases {
    module: Arc<Module>,
    main: Func,
    states: BTreeMap<Func, Arc<FrameStates>>,
    places: BTreeMap<Func, StatePlaces>,
}

impl Bases {
    /// [`COUNTED`]: a state in front of the trap, and one behind the call.
    fn counted() -> Bases {
        let module = Arc::new(parsed(COUNTED));
        let [main, leaf] = ["main", "leaf"].map(|name| module.func_named(name).expect("it has it"));
        let [of_main, of_leaf] = [main, leaf].map(|func| module.body(func).expect("a body"));
        let found = |f: &Function, opcode| {
            f.all_insts().find(|inst| f.inst(*inst).opcode == opcode).expect("it has one")
        };
        let (call, trap) = (found(of_main, Opcode::Call), found(of_leaf, Opcode::Trap));
        let param = |f: &Function, index| f.block_params(f.blocks().nth(1).expect("a loop"))[index];
        let behind = Point::before(of_main.next_inst(call).expect("no terminator"));
        let result = of_main.inst(call).results[0];
        let mut states = [FrameStates::new(), FrameStates::new()];
        states[0].set(behind, state(&[result, param(of_main, 1)]));
        states[1].set(Point::before(trap), state(&[param(of_leaf, 1)]));
        let states = [main, leaf].into_iter().zip(states.map(Arc::new)).collect();
        let (entrances, exits) = (BTreeSet::new(), BTreeSet::from([Point::before(trap)]));
        let of_leaf = StatePlaces { entrances, exits };
        let head = of_main.first_inst(of_main.blocks().nth(1).expect("a loop"));
        let entrances = BTreeSet::from([Point::before(head)]);
        let of_main = StatePlaces { entrances, exits: BTreeSet::new() };
        let places = BTreeMap::from([(main, of_main), (leaf, of_leaf)]);
        Bases { module, main, states, places }
    }

    fn plan(&self) -> InlinePlan {
        InlinePlan { policy: ALL, ..InlinePlan::o3() }.with_states(self.states.clone())
    }

    fn inlined(&self, plan: &InlinePlan) -> Result<Inlined, NotInlined> {
        let landings = CalleeLandings::new(&self.module, plan);
        inline(&self.module, self.main, plan, &landings, &mut NoObserver)
    }

    /// The traps of a version that stand for an exit, by what `plan` says, without an entry.
    fn lost(&self, made: &Inlined) -> usize {
        let is_exit = |inst: &Inst| {
            let of =
                made.copies.origin(*inst).map(|(id, of)| (made.copies.instances()[id].func, of));
            of.is_some_and(|(func, of)| self.places[&func].exits.contains(&Point::before(of)))
        };
        let f = made.tree.function(made.optimized);
        let decided = Decided::new(f);
        let reached = decided.cfg().rpo().iter().flat_map(|block| f.block_insts(*block));
        reached.filter(is_exit).map(Point::before).filter(|at| !made.down.has_entry(*at)).count()
    }
}

impl Bases {
    /// The exits of the copy that runs of it reach, and that the optimized version still has in a
    /// reachable block, without being among its exits.
    fn vanished(&self, made: &Inlined) -> usize {
        let [copy, optimized] = [made.copy, made.optimized].map(|of| made.tree.function(of));
        let is_exit = |inst: &Inst| {
            let of = made.copies.origin(*inst);
            let of = of.map(|(id, of)| (made.copies.instances()[id].func, Point::before(of)));
            of.is_some_and(|(func, at)| self.places[&func].exits.contains(&at))
        };
        let decided = Decided::new(optimized);
        // A terminator whose block stays has no other in its place.
        let stays = |inst: &Inst| {
            let block = copy.inst_block(*inst);
            optimized.has_block(block) && decided.cfg().is_reachable(block)
        };
        let gone = |inst: &Inst| !made.exits.contains(&Point::before(*inst));
        let ends = |inst: &Inst| copy.inst(*inst).opcode == Opcode::Trap;
        copy.all_insts().filter(is_exit).filter(ends).filter(stays).filter(gone).count()
    }
}

/// A state whose slots are these values.
fn state(values: &[Value]) -> FrameState {
    let local = |(slot, value): (u32, &Value)| Local {
        slot,
        content: LocalContent::Value(*value),
        representation: 0,
    };
    FrameState::new(0, 7, (0..).zip(values).map(local).collect())
}

#[test]
fn an_exit_of_inlined_code_keeps_what_the_states_of_both_frames_name() {
    let bases = Bases::counted();
    let plain = bases.inlined(&bases.plan()).expect("the call is inlined");
    assert_eq!((plain.exits.len(), bases.lost(&plain)), (0, 1), "no exit is promised");
    let made = bases.inlined(&bases.plan().at_places(bases.places.clone()));
    let made = made.expect("the call is inlined");
    assert_eq!((made.exits.len(), bases.lost(&made)), (1, 0));
    // The loop header is entered, and the exit left.
    assert_eq!((made.up.len(), made.down.len()), (1, 1));
    assert_eq!(made.missing.each_ref().map(|points| points.len()), [0, 0]);
    let entry = made.down.entry(*made.exits.first().expect("an exit")).expect("an entry");
    assert_eq!(entry.activations(), 2);
}

/// Answers with the turns of the callee and the calls of the caller.
struct Counts;

impl Embedder for Counts {
    fn resume(&mut self, frame: &mut DeoptFrame<'_>) -> Result<Vec<Slot>, CallbackEnd> {
        let [leaf, main] = frame.activations else { panic!("two frames") };
        let turns = leaf.slot(0).expect("named");
        let [result, calls] = &main.locals[..] else { panic!("two locals") };
        assert_eq!(result.content, HandedContent::Result(0));
        let HandedContent::Bits(calls) = calls.content else { panic!("{calls:?}") };
        Ok(vec![Slot { ty: calls.ty, bits: 100 * turns.bits + calls.bits }])
    }
}

#[test]
fn a_run_leaves_inlined_code_with_the_values_that_were_kept() {
    let bases = Bases::counted();
    let made = bases.inlined(&bases.plan().at_places(bases.places.clone()));
    let made = made.expect("the call is inlined");
    let engine = Engine::new(Config::default()).expect("native code runs here");
    let spec = |at: &Point| PointSpec::of_entry(&made.down, *at, Condition::Always);
    let points: Vec<PointSpec> = made.exits.iter().filter_map(spec).collect();
    let optimized = made.tree.function(made.optimized);
    let code = engine.version(&bases.module, bases.main, optimized, &points).expect("compiled");
    let mut vm = Vm::new(&engine, &bases.module, Limits::default(), Options::default())
        .expect("instantiated");
    let down = Arc::new(made.down.clone());
    let action = Action::Hand(down, Arc::new(bases.states.clone()));
    vm.install(&code, vec![action]).expect("it fits");
    // 2, 5 in the second call, 26 in the third: the square of 26 is above 600, and of 5 above 24.
    let runs = [[2, 600], [2, 24], [2, 26]].map(|args| vm.run(bases.main, &args, &mut Counts));
    let returned = [2, 1, 26].map(|bits| Ok(Outcome::Returned(vec![bits])));
    assert_eq!(runs, returned);
}

/// The error of places in which one function has other exits.
fn refused(bases: &Bases, func: Func, exit: Point) -> StatePointError {
    let mut places = bases.places.clone();
    places.get_mut(&func).expect("it has some").exits.insert(exit);
    match bases.inlined(&bases.plan().at_places(places)) {
        Err(NotInlined::Places { func: named, error }) if named == func => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn exits_that_do_not_fit_are_named() {
    let bases = Bases::counted();
    let leaf = bases.module.func_named("leaf").expect("it has it");
    let [of_main, of_leaf] =
        [bases.main, leaf].map(|func| bases.module.body(func).expect("a body"));
    let at = |f: &Function, opcode| {
        let is_it = |inst: &Inst| f.inst(*inst).opcode == opcode;
        Point::before(f.all_insts().find(is_it).expect("it has one"))
    };
    let nowhere = Point::before(Inst::from_u32(4000));
    for func in [bases.main, leaf] {
        assert_eq!(refused(&bases, func, nowhere), StatePointError::NoSuchPoint(nowhere));
    }
    let movable = at(of_leaf, Opcode::Mul);
    assert_eq!(refused(&bases, leaf, movable), StatePointError::Movable(movable));
    // Inlining replaces both: an exit in front of them would vanish.
    let (call, end) = (at(of_main, Opcode::Call), at(of_leaf, Opcode::Return));
    assert_eq!(refused(&bases, bases.main, call), StatePointError::Inlined(call));
    assert_eq!(refused(&bases, leaf, end), StatePointError::Inlined(end));
    let mut states = bases.states.clone();
    states.remove(&leaf);
    let plan = bases.plan().at_places(bases.places.clone());
    let error = bases.inlined(&plan.clone().with_states(states.clone())).expect_err("no states");
    assert_eq!(error, NotInlined::Places { func: leaf, error: StatePointError::NoStates });
    let mut wrong = FrameStates::new();
    wrong.set(at(of_leaf, Opcode::Trap), state(&[Value::from_u32(900)]));
    states.insert(leaf, Arc::new(wrong));
    let error = bases.inlined(&plan.with_states(states)).expect_err("no such value");
    assert!(matches!(error, NotInlined::States { func, .. } if func == leaf), "{error:?}");
}

#[test]
fn calls_of_kept_functions_stay() {
    let bases = Bases::counted();
    let leaf = bases.module.func_named("leaf").expect("it has it");
    let plan = bases.plan().keeping(BTreeSet::from([leaf]));
    assert_eq!(bases.inlined(&plan).expect_err("no call is left"), NotInlined::NoCall);
    let two = Arc::new(parsed(&format!(
        "{COUNTED}\nfunc @both(%a: i32) -> i32 {{\nentry:\n  %x = call @leaf(%a, %a)\n  \
         %y = call @one(%x)\n  return %y\n}}\nfunc @one(%a: i32) -> i32 {{\nentry:\n  \
         return %a\n}}"
    )));
    let main = two.func_named("both").expect("it has it");
    let bases = Bases { module: two, main, states: BTreeMap::new(), places: BTreeMap::new() };
    // The landings need not know of it.
    let landings = CalleeLandings::new(&bases.module, &bases.plan());
    let plan = bases.plan().keeping(BTreeSet::from([leaf]));
    let made = inline(&bases.module, main, &plan, &landings, &mut NoObserver).expect("one is");
    let funcs: Vec<Func> = made.copies.instances().iter().map(|one| one.func).collect();
    assert_eq!(funcs, [main, bases.module.func_named("one").expect("it has it")]);
}

#[test]
fn assumptions_keep_their_exits_beside_places() {
    let bases = Bases::counted();
    let leaf = bases.module.func_named("leaf").expect("it has it");
    let f = bases.module.body(leaf).expect("a body");
    let trap = bases.places[&leaf].exits.first().expect("an exit").inst();
    let big = f.inst(f.terminator(f.value_block(f.inst(trap_branch(f, trap)).args[0]))).args[0];
    let at = Point::before(f.terminator(f.value_block(big)));
    let assume = BTreeMap::from([(leaf, vec![Assumption::is(at, big, 0)])]);
    let mut states = bases.states.clone();
    let mut of_leaf = FrameStates::clone(&states[&leaf]);
    of_leaf.set(at, state(&[f.block_params(f.blocks().nth(1).expect("a loop"))[0]]));
    states.insert(leaf, Arc::new(of_leaf));
    let plan = bases.plan().with_states(states).at_places(bases.places.clone());
    let made = bases.inlined(&plan.assuming(assume)).expect("the call is inlined");
    assert_eq!((made.assumptions.exits.len(), &made.assumptions.dropped[..]), (1, &[][..]));
}

/// The branch that leads to a block with one predecessor.
fn trap_branch(f: &Function, trap: Inst) -> Inst {
    let edge = f.predecessors(f.inst_block(trap)).iter().next().expect("a branch");
    edge.inst
}

/// Exits in front of every third effect or branch, and states that name everything.
#[test]
fn no_exit_of_random_inlined_code_is_lost_for_want_of_a_value() {
    let (mut exits, mut before, mut deep) = (0, 0, 0);
    for seed in 0..40 {
        let program = generate(seed, 80, &Weights::default());
        let module = Arc::new(program.module.clone());
        let mut bases =
            Bases { module, main: program.main, states: BTreeMap::new(), places: BTreeMap::new() };
        for (func, base) in bases.module.defined() {
            let (states, exits) = everywhere(base);
            bases.states.insert(func, Arc::new(states));
            bases.places.insert(func, StatePlaces { exits, ..StatePlaces::default() });
        }
        let Ok(plain) = bases.inlined(&bases.plan()) else { continue };
        let made = bases.inlined(&bases.plan().at_places(bases.places.clone()));
        let made = made.expect("calls are inlined");
        before += bases.lost(&plain);
        let lost: Vec<&Point> = made.exits.iter().filter(|at| !made.down.has_entry(**at)).collect();
        assert_eq!(lost, [] as [&Point; 0], "seed {seed}");
        assert_eq!(bases.vanished(&made), 0, "seed {seed}");
        for at in &made.exits {
            let entry = made.down.entry(*at).expect("it has one");
            exits += 1;
            deep += usize::from(entry.activations() > 1);
        }
    }
    assert!(exits > 200 && before > 20 && deep > 50, "{exits} exits, {before} lost, {deep} deep");
}

/// States in front of every effect and behind every call, which name all values available there,
/// and every third of the points in front of effects.
fn everywhere(base: &Function) -> (FrameStates, BTreeSet<Point>) {
    let (cfg, mut states) = (Cfg::new(base), FrameStates::new());
    let dom = DomTree::new(base, &cfg);
    let params = base.blocks().flat_map(|block| base.block_params(block).iter().copied());
    let results = base.all_insts().flat_map(|inst| base.inst(inst).results.iter().copied());
    let values: Vec<Value> = params.chain(results).collect();
    let mut note = |inst: Inst| {
        let at = Point::before(inst);
        let there: Vec<Value> =
            values.iter().copied().filter(|value| dom.available_at(base, *value, at)).collect();
        states.set(at, state(&there));
    };
    let mut anchors = Vec::new();
    for inst in cfg.rpo().iter().flat_map(|block| base.block_insts(*block)) {
        if !base.inst(inst).opcode.is_effect_free() {
            note(inst);
            // Inlining replaces calls and returns.
            if !matches!(base.inst(inst).opcode, Opcode::Call | Opcode::Return) {
                anchors.push(Point::before(inst));
            }
        }
        if let (Opcode::Call, Some(next)) = (base.inst(inst).opcode, base.next_inst(inst)) {
            note(next);
        }
    }
    (states, anchors.into_iter().step_by(3).collect())
}
