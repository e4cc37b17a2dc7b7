//! Versions for an embedder whose interpreter runs in the frame states of a base.

use check::Checked;
use interp::{Limits, Options, Outcome};
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::text::parse_module;
use ir::{
    FrameState, FrameStates, Func, Function, Inst, Local, LocalContent, Module, Opcode, Point,
    Value,
};
use jit::{
    Action, CallbackEnd, Condition, Config, DeoptFrame, Embedder, Engine, PointSpec, Slot, Vm,
};
use osier::driver::{
    NoObserver, Recipe, Retry, SecuredStates, StatePointError, StatePoints, Why, derive_with_states,
};
use osr::{Level, Reason};
use passes::Pipeline;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use transition::mapping::Mapping;
use verify::generate::{Weights, generate};

/// The exit counts the turns of the loop, which no code needs. The second parameter of `leave` has
/// one incoming value.
const COUNTED: &str = "func @f(%a: i32, %n: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump head(%a, %zero)
head(%x: i32, %turns: i32):
  %y = mul.i32 %x, %x
  %more = add.i32 %turns, %one
  %big = ult.i32 %n, %y
  br_if %big, leave(%more, %a), next
next:
  %z = add.i32 %y, %one
  %done = eq.i32 %z, %n
  br_if %done, end, head(%z, %more)
leave(%count: i32, %same: i32):
  trap user0
end:
  return %z
}";

/// A base, and its states, entrances and exits.
struct Base {
    module: Arc<Module>,
    func: Func,
    states: Arc<FrameStates>,
    entrances: BTreeSet<Point>,
    exits: BTreeSet<Point>,
}

impl Base {
    /// [`COUNTED`], with a state in front of its trap that names `%count` and `%same`.
    fn counted() -> Base {
        let module = Arc::new(parse_module(COUNTED).unwrap_or_else(|errors| panic!("{errors:?}")));
        let (func, f) = module.defined().next().expect("a function");
        let is_trap = |inst: &Inst| f.inst(*inst).opcode == Opcode::Trap;
        let trap = f.all_insts().find(is_trap).expect("it traps");
        let params = f.block_params(f.inst_block(trap));
        let content = |value: &Value| LocalContent::Value(*value);
        let locals = (0..).zip(params.iter().map(content));
        let locals = locals.map(|(slot, content)| Local { slot, content, representation: 0 });
        let (head, exit) = (f.blocks().nth(1).expect("a loop"), Point::before(trap));
        let mut states = FrameStates::new();
        states.set(exit, FrameState::new(0, 7, locals.collect()));
        let entrances = BTreeSet::from([Point::before(f.first_inst(head))]);
        let exits = BTreeSet::from([exit]);
        Base { func, states: Arc::new(states), entrances, exits, module: Arc::clone(&module) }
    }

    fn body(&self) -> &Function {
        self.module.body(self.func).expect("it has a body")
    }

    fn derive(&self, retry: Retry) -> SecuredStates {
        let Base { states, entrances, exits, .. } = self;
        let (pipeline, levels) = (Pipeline::default(), [Level::Avail]);
        let recipe = Recipe { retry, ..Recipe::new(&pipeline, &levels) };
        let points = StatePoints { states, entrances, exits };
        let made = derive_with_states(&self.module, self.body(), points, &recipe, &mut NoObserver);
        made.expect("the states fit")
    }

    fn params_of_exit(&self) -> [Value; 2] {
        let exit = self.exits.first().expect("an exit").inst();
        let params = self.body().block_params(self.body().inst_block(exit));
        [params[0], params[1]]
    }
}

/// Without the values to keep, the parameters that count turns are dead, and the exit is lost.
#[test]
fn a_dead_parameter_that_a_state_names_is_kept() {
    let base = Base::counted();
    let plain = base.derive(Retry::OFF);
    let [missing] = &plain.down().missing[..] else { panic!("{:?}", plain.down().missing) };
    let Why::Obstacle(obstacle) = missing.why else { panic!("{missing}") };
    assert_eq!(
        (missing.point, obstacle.reason),
        (*base.exits.first().expect("an exit"), Reason::Parameter)
    );
    assert!(plain.down().mapping.is_empty() && plain.retried.kept.is_empty());
    assert!(missing.to_string().contains("block parameter does not exist"), "{missing}");
    let made = base.derive(Retry::default());
    assert_eq!((&made.down().missing[..], &made.up().missing[..]), (&[][..], &[][..]));
    assert!(made.down().mapping.points().eq(base.exits.iter().copied()));
    // `%turns`: the operation of `%more` is executed again, and `%count` has one incoming value.
    let turns = base.body().block_params(base.body().blocks().nth(1).expect("a loop"))[1];
    assert_eq!(made.retried.kept, BTreeSet::from([turns]));
    // Nothing else is given up.
    assert_eq!((made.retried.given_up.len(), made.retried.probes), (0, 0));
    assert_eq!(made.up().mapping.len(), 1);
}

/// A state that names five sums, each of a parameter without other uses.
#[test]
fn one_round_keeps_all_values_that_an_exit_lacks() {
    let names = ["p", "q", "r", "s", "t"];
    let each = |f: &dyn Fn(&str) -> String| names.map(f).join("");
    let text = format!(
        "func @f(%a: i32, %n: i32) -> i32 {{
entry:
  %one = const.i32 1
  jump head(%a{})
head(%x: i32{}):
{}  %y = mul.i32 %x, %x
  %big = ult.i32 %n, %y
  br_if %big, leave, next
next:
  %done = eq.i32 %y, %n
  br_if %done, end, head(%y{})
leave:
  trap user0
end:
  return %y
}}",
        each(&|_| ", %one".to_owned()),
        each(&|name| format!(", %{name}: i32")),
        each(&|name| format!("  %{name}1 = add.i32 %{name}, %x\n")),
        each(&|name| format!(", %{name}1")),
    );
    let module = Arc::new(parse_module(&text).unwrap_or_else(|errors| panic!("{errors:?}")));
    let (func, f) = module.defined().next().expect("a function");
    let of = |opcode| f.all_insts().filter(move |inst| f.inst(*inst).opcode == opcode);
    let exit = Point::before(of(Opcode::Trap).next().expect("it traps"));
    let sums = of(Opcode::Add).map(|inst| LocalContent::Value(f.inst(inst).results[0]));
    let locals = (0..).zip(sums).map(|(slot, content)| Local { slot, content, representation: 0 });
    let mut states = FrameStates::new();
    states.set(exit, FrameState::new(0, 0, locals.collect()));
    let (states, exits) = (Arc::new(states), BTreeSet::from([exit]));
    let params = f.block_params(f.blocks().nth(1).expect("a loop"))[1..].to_vec();
    let entrances = BTreeSet::new();
    let base = Base { module: Arc::clone(&module), func, states, entrances, exits };
    let made = base.derive(Retry::default());
    assert_eq!((&made.down().missing[..], made.retried.probes), (&[][..], 0));
    assert_eq!(made.retried.kept, BTreeSet::from_iter(params));
}

#[test]
fn an_exit_that_the_base_cannot_serve_costs_no_rewrite() {
    let mut base = Base::counted();
    let plain = base.derive(Retry::OFF).derived.function.inst_count();
    base.states = Arc::new(FrameStates::new());
    let made = base.derive(Retry::default());
    assert_eq!((made.down().missing.len(), made.retried.probes), (1, 0));
    assert_eq!(made.derived.function.inst_count(), plain);
}

#[test]
fn mistakes_in_points_are_named() {
    let Base { module, func, states, entrances, exits } = Base::counted();
    let body = module.body(func).expect("it has a body");
    let error = |entrances: &BTreeSet<Point>, exits: &BTreeSet<Point>| {
        let (pipeline, levels) = (Pipeline::default(), [Level::Avail]);
        let recipe = Recipe::new(&pipeline, &levels);
        let points = StatePoints { states: &states, entrances, exits };
        derive_with_states(&module, body, points, &recipe, &mut NoObserver).map(drop)
    };
    let nowhere = Point::before(Inst::from_u32(4000));
    let found = error(&BTreeSet::from([nowhere]), &exits);
    assert_eq!(found, Err(StatePointError::NoSuchPoint(nowhere)));
    let movable = *entrances.first().expect("an entrance");
    let found = error(&entrances, &entrances);
    assert_eq!(found, Err(StatePointError::Movable(movable)));
    let message = found.expect_err("refused").to_string();
    assert!(message.contains("which passes move"), "{message}");
    assert_eq!(error(&entrances, &exits), Ok(()));
}

#[test]
fn an_unused_parameter_with_one_incoming_value_is_that_value() {
    let base = Base::counted();
    let made = base.derive(Retry::default());
    let [_, same] = base.params_of_exit();
    assert!(!made.retried.kept.contains(&same) && !made.derived.function.has_value(same));
    let entry = made.down().mapping.entry(*base.exits.first().expect("an exit")).expect("an entry");
    assert!(entry.provides_value(same));
}

/// Answers 100 times the number of turns.
struct Turns;

impl Embedder for Turns {
    fn resume(&mut self, frame: &mut DeoptFrame<'_>) -> Result<Vec<Slot>, CallbackEnd> {
        let [count, same] = [0, 1].map(|slot| frame.activations[0].slot(slot).expect("named"));
        assert_eq!(frame.activations[0].pc, 7);
        Ok(vec![Slot { ty: count.ty, bits: 100 * count.bits + same.bits }])
    }
}

#[test]
fn a_run_leaves_with_the_values_that_were_kept() {
    let base = Base::counted();
    let made = base.derive(Retry::default());
    let engine = Engine::new(Config::default()).expect("native code runs here");
    let spec = |at: Point| PointSpec::of_entry(&made.down().mapping, at, Condition::Always);
    let points: Vec<PointSpec> = made.down().mapping.points().filter_map(spec).collect();
    let code = engine.version(&base.module, base.func, &made.derived.function, &points);
    let mut vm = Vm::new(&engine, &base.module, Limits::default(), Options::default())
        .expect("instantiated");
    let down: Arc<Checked<Mapping>> = Arc::new(made.down().mapping.clone());
    let states = BTreeMap::from([(base.func, Arc::clone(&base.states))]);
    let action = Action::Hand(down, Arc::new(states));
    vm.install(&code.expect("compiled"), vec![action]).expect("it fits");
    // 2, 5, 26, 677: the square of 26 is above 600.
    let outcomes = [[2, 26], [2, 600], [5, 600]].map(|args| vm.run(base.func, &args, &mut Turns));
    let returned = [26, 302, 205].map(|bits| Ok(Outcome::Returned(vec![bits])));
    assert_eq!(outcomes, returned);
}

/// States at some points of a base that name all values available there.
fn states_at(base: &Function, points: impl Iterator<Item = Point>) -> FrameStates {
    let dom = DomTree::new(base, &Cfg::new(base));
    let params = base.blocks().flat_map(|block| base.block_params(block).iter().copied());
    let results = base.all_insts().flat_map(|inst| base.inst(inst).results.iter().copied());
    let values: Vec<Value> = params.chain(results).collect();
    let mut states = FrameStates::new();
    for at in points {
        let there = values.iter().filter(|value| dom.available_at(base, **value, at));
        let local = |value: &Value| Local {
            slot: value.as_u32(),
            content: LocalContent::Value(*value),
            representation: 0,
        };
        states.set(at, FrameState::new(0, 0, there.map(local).collect()));
    }
    states
}

/// Exits in front of every third effect or branch, whose states name everything.
#[test]
fn no_exit_of_random_programs_is_lost_for_want_of_a_value() {
    let (mut exits, mut before, mut kept) = (0, 0, 0);
    for seed in 0..60 {
        let program = generate(seed, 120, &Weights::default());
        let (module, func) = (Arc::new(program.module.clone()), program.main);
        let base = module.body(func).expect("the main function has a body");
        let cfg = Cfg::new(base);
        let insts = cfg.rpo().iter().flat_map(|block| base.block_insts(*block));
        let anchors = insts.filter(|inst| !base.inst(*inst).opcode.is_effect_free());
        let exit_points: BTreeSet<Point> = anchors.map(Point::before).step_by(3).collect();
        let states = Arc::new(states_at(base, exit_points.iter().copied()));
        let base = Base {
            module: Arc::clone(&module),
            func,
            states,
            entrances: BTreeSet::new(),
            exits: exit_points,
        };
        before += base.derive(Retry::OFF).down().missing.len();
        let made = base.derive(Retry::default());
        exits += made.down().mapping.len();
        kept += made.retried.kept.len();
        assert_eq!(made.down().missing[..], [], "seed {seed}");
        assert!(made.down().mapping.entries().all(|(_, entry)| {
            let state = base.states.get(entry.target).expect("entries land at states alone");
            state.all_values().all(|value| entry.provides_value(value))
        }));
    }
    assert!(exits > 300 && before > 50 && kept > 20, "{exits} exits, {before} lost, {kept} kept");
}
