//! Objects that optimized code does not make, and the exits that make them
//! ([`InlinePlan::removing_objects`]).

use interp::{Allocator, Host, HostError, Limits, Memories, Options, Outcome};
use ir::module::ImportName;
use ir::{
    FrameState, FrameStates, Func, Function, Inst, Local, LocalContent, Module, Opcode, Point, Value,
};
use osier::driver::NoObserver;
use osier::inlining::{CalleeLandings, InlinePlan, Inlined, StatePlaces, inline};
use passes::{InlinePolicy, Pipeline};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const TEXT: &str = include_str!("main.oir");

/// A policy that inlines nothing.
const NONE: InlinePolicy = InlinePolicy {
    size: 0,
    single_size: 0,
    hot_size: 0,
    hot: u64::MAX,
    depth: 0,
    recursion: 0,
    growth: 0,
    allowance: 0,
};

struct Walk {
    module: Arc<Module>,
    main: Func,
    states: Arc<FrameStates>,
    exits: BTreeSet<Point>,
}

impl Walk {
    fn new() -> Walk {
        let module = Arc::new(ir::text::parse_module(TEXT).expect("the text is a module"));
        let main = module.func_named("main").expect("it has it");
        let f = module.body(main).expect("a body");
        let named = |names: &[&str]| {
            let values: Vec<Value> = names.iter().map(|name| value(f, name)).collect();
            state(&values)
        };
        let mut states = FrameStates::new();
        let mut traps = f.all_insts().filter(|inst| f.inst(*inst).opcode == Opcode::Trap);
        let [first, second] = [0; 2].map(|_| Point::before(traps.next().expect("two traps")));
        states.set(first, named(&["i", "from"]));
        states.set(second, named(&["i", "from", "to"]));
        Walk { module, main, states: Arc::new(states), exits: BTreeSet::from([first, second]) }
    }

    fn made(&self) -> Inlined {
        let last = passes::parse("O2").expect("named pipelines are known");
        let places = StatePlaces { entrances: BTreeSet::new(), exits: self.exits.clone() };
        let plan = InlinePlan::new(Pipeline::of(Vec::new()), NONE, last)
            .removing_objects()
            .with_states(BTreeMap::from([(self.main, Arc::clone(&self.states))]))
            .at_places(BTreeMap::from([(self.main, places)]));
        let landings = CalleeLandings::new(&self.module, &plan);
        inline(&self.module, self.main, &plan, &landings, &mut NoObserver).expect("two objects go")
    }
}

fn value(f: &Function, name: &str) -> Value {
    let params = f.blocks().flat_map(|block| f.block_params(block).iter().copied());
    let results = f.all_insts().flat_map(|inst| f.inst(inst).results.iter().copied());
    let mut values = params.chain(results);
    values.find(|value| f.value_name(*value) == Some(name)).expect("the text names it")
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
fn objects_go_and_exits_make_them() {
    let walk = Walk::new();
    let made = walk.made();
    let optimized = made.tree.function(made.optimized);
    eprintln!("{}", ir::FunctionText::new(&walk.module, optimized));
    for (at, entry) in made.down.entries() {
        eprintln!("{at:?} -> {:?}", entry.target);
        for step in &entry.steps { eprintln!("  {step}"); }
        for replay in &entry.replays { eprintln!("  {replay}"); }
        for a in &entry.assigns { eprintln!("  {a:?}"); }
    }
    assert_eq!((made.removed_objects, made.down.len(), made.exits.len()), (2, 1, 1));
}
