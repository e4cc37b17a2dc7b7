//! Optimized code without objects, and the exits that make these objects
//! ([`InlinePlan::removing_objects`]).

mod programs;
mod random;

use interp::{
    Allocator, Host, HostError, Limits, Machine, Memories, Options, Outcome, PauseAlways, Program,
    Run, TraceLevel,
};
use ir::module::ImportName;
use ir::{
    FrameState, FrameStates, Func, Function, Local, LocalContent, Memory, Module, Opcode, Point,
    Value,
};
use osier::driver::NoObserver;
use osier::inlining::{CalleeLandings, InlinePlan, Inlined, StatePlaces, inline};
use passes::{InlinePolicy, Pipeline};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

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
        let module = ir::text::parse_module(TEXT).expect("the text is a module");
        let main = module.func_named("main").expect("it has it");
        let f = module.body(main).expect("a body");
        let named = |names: &[&str]| {
            let values: Vec<Value> = names.iter().map(|name| value(f, name)).collect();
            state(&values)
        };
        let mut states = FrameStates::new();
        let traps = f.all_insts().filter(|inst| f.inst(*inst).opcode == Opcode::Trap);
        let traps: Vec<Point> = traps.map(Point::before).collect();
        let [first, second, third] = traps[..] else { panic!("three traps") };
        states.set(first, named(&["i", "from"]));
        states.set(second, named(&["i", "from", "to"]));
        states.set(third, named(&["i", "from", "to"]));
        let (states, exits) = (Arc::new(states), BTreeSet::from([first, second, third]));
        Walk { module: Arc::new(module), main, states, exits }
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

/// A heap that grows, with a word of its own for the next address.
#[derive(Debug)]
struct Heap {
    shown: Vec<u64>,
    made: usize,
}

/// The place of the next address.
const NEXT: usize = 8;

fn heap() -> Memory {
    Memory::from_u32(0)
}

/// Takes the next bytes, which begin with rubbish.
fn allocate(args: &[u64], memories: &mut Memories) -> u64 {
    let bytes = memories.bytes_mut(heap()).expect("nothing tracks it");
    let next = u32::from_le_bytes(bytes[NEXT..NEXT + 4].try_into().expect("four bytes")).max(64);
    let end = next + args[0] as u32;
    bytes[NEXT..NEXT + 4].copy_from_slice(&end.to_le_bytes());
    bytes[next as usize..end as usize].fill(0xaa);
    args[1] | u64::from(next)
}

impl Host for Heap {
    fn call(
        &mut self,
        import: &ImportName,
        _: Func,
        args: &[u64],
        memories: &mut Memories,
        results: &mut [u64],
    ) -> Result<(), HostError> {
        match &*import.field {
            "new" => {
                self.made += 1;
                results[0] = allocate(args, memories);
            }
            _ => self.shown.push(args[0]),
        }
        Ok(())
    }
}

/// Makes the objects of exits, and counts them.
#[derive(Debug, Default)]
struct AtExits(AtomicUsize);

impl Allocator for AtExits {
    fn allocate(&self, _: Func, args: &[u64], memories: &mut Memories) -> Option<u64> {
        self.0.fetch_add(1, Relaxed);
        Some(allocate(args, memories))
    }
}

/// The end of a run: the numbers shown, the outcome, and the contents of the object `%from` if it
/// leaves.
#[derive(PartialEq, Debug)]
struct End {
    shown: Vec<u64>,
    outcome: Option<Outcome>,
    from: Option<Vec<u8>>,
}

impl Walk {
    /// Runs a version in the interpreter. At an exit it fires the entry. Returns the end, and the
    /// objects made by calls and by exits.
    fn run(&self, made: Option<&Inlined>, args: [u64; 2]) -> (End, usize, usize) {
        let options = Options { trace: TraceLevel::Full, poison: true, track_memory: false };
        let program = Program::new(&self.module);
        let mut machine =
            Machine::with_options(&program, Limits::default(), options).expect("instantiated");
        let at_exits = Arc::new(AtExits::default());
        machine.make_objects_by(Arc::clone(&at_exits) as Arc<dyn Allocator>);
        let base = machine.current(self.main).expect("a base");
        if let Some(made) = made {
            let optimized = made.tree.function(made.optimized);
            let id = machine.add_version(&self.module, self.main, optimized);
            machine.set_current(self.main, id);
        }
        let mut host = Heap { shown: Vec::new(), made: 0 };
        let mut end = End { shown: Vec::new(), outcome: None, from: None };
        machine.start(self.main, &args);
        loop {
            match machine.run(&mut host, &mut PauseAlways) {
                Run::Done(outcome) => {
                    end.outcome = Some(outcome);
                    break;
                }
                Run::Paused => {}
                other => panic!("{other:?}"),
            }
            let view = machine.view().expect("it is paused");
            let at = Point::before(view.inst());
            if let Some(made) = made.filter(|_| view.version() != base)
                && let Some(entry) = made.down.checked_entry(at)
            {
                machine.fire(base, entry).expect("the entry fits");
            }
            let view = machine.view().expect("it is paused");
            if self.exits.contains(&Point::before(view.inst())) && view.version() == base {
                let f = self.module.body(self.main).expect("a body");
                let address = view.value(value(f, "from")) as u32 as usize;
                end.from = Some(machine.memories().bytes(heap())[address..address + 24].to_vec());
                break;
            }
        }
        end.shown = host.shown;
        (end, host.made, at_exits.0.load(Relaxed))
    }
}

#[test]
fn objects_go_and_exits_make_them() {
    let walk = Walk::new();
    let made = walk.made();
    assert_eq!((made.removed_objects, made.exits.len(), made.down.len()), (2, 1, 1));
    assert_eq!(made.missing.each_ref().map(|points| points.len()), [0, 0]);
    for (n, limit, leaves) in [(5, 100.0, false), (40, 100.0, true), (1, -1.0, true)] {
        let args = [n, f64::to_bits(limit)];
        let (expected, calls, _) = walk.run(None, args);
        let (end, without, at_exits) = walk.run(Some(&made), args);
        assert_eq!(end, expected);
        assert_eq!((end.from.is_some(), without, at_exits), (leaves, 0, usize::from(leaves)));
        assert!(calls >= usize::from(leaves), "{calls}");
    }
}
