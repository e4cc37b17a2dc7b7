//! Inlined code left into an interpreter of the embedder (`jit::Action::Hand`).

use super::policy::plan;
use super::{ALL, parsed};
use interp::{Limits, Machine, NoHost, NoObserver, Options, Outcome};
use ir::eval::fold;
use ir::{
    Edge, FrameStates, Func, Function, Imm, Inst, Local, LocalContent, Module, Opcode, Point, Type,
    Value,
};
use jit::{
    Action, CallbackEnd, Condition, Config, DeoptFrame, Embedder, Engine, HandedActivation,
    HandedContent, LinkError, PointSpec, RunError, Slot, VersionSpec, Vm,
};
use osier::driver::NoObserver as NoDriverObserver;
use osier::inlining::{CalleeLandings, Inlined, inline};
use passes::InlinePolicy;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use transition::frames::FramePlace;

/// `@main` calls `@inner` through `@outer`. Both return more than one value, in types that differ.
const NESTED: &str = "func @inner(%n: i32, %b: i64) -> (i64, i32) {
entry:
  %one = const.i32 1
  jump head(%n, %b)
head(%i: i32, %s: i64):
  %w = uextend.i64 %i
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

/// A function that is inlined into itself.
const RECURSIVE: &str = "func @main(%n: i32) -> i32 {
entry:
  %one = const.i32 1
  %small = ule.i32 %n, %one
  br_if %small, done, more
done:
  return %n
more:
  %p = sub.i32 %n, %one
  %a = call @main(%p)
  %q = sub.i32 %p, %one
  %b = call @main(%q)
  %s = add.i32 %a, %b
  %t = xor.i32 %s, %n
  return %t
}";

/// By function: the frame states of its base.
type States = BTreeMap<Func, Arc<FrameStates>>;

struct Scene {
    module: Arc<Module>,
    main: Func,
    made: Inlined,
    engine: Engine,
}

impl Scene {
    fn new(text: &str) -> Scene {
        let module = Arc::new(parsed(text));
        let main = module.func_named("main").expect("the text has it");
        let plan = plan(InlinePolicy { recursion: 1, ..ALL });
        let landings = CalleeLandings::new(&module, &plan);
        let made = inline(&module, main, &plan, &landings, &mut NoDriverObserver);
        let engine = Engine::new(Config::default()).expect("native code runs here");
        Scene { made: made.expect("calls are inlined"), module, main, engine }
    }

    /// The frame states of each function, with a slot for each live value.
    fn states(&self) -> States {
        let bodies = self.module.defined();
        let of = |(func, body): (Func, &Function)| {
            let numbers: BTreeMap<Value, u32> = values(body).zip(0..).collect();
            let slot = |value: Value| numbers.get(&value).copied();
            (func, Arc::new(FrameStates::of_live(func.as_u32(), body, slot)))
        };
        bodies.map(of).collect()
    }

    /// The point with an entry into the most frames.
    fn deepest(&self) -> Point {
        let entries = self.made.down.entries();
        entries.max_by_key(|(_, entry)| entry.activations()).expect("an entry").0
    }

    /// A machine that hands its run over at the first visit of a point.
    fn leaving(&self, at: Point, states: States) -> Result<Vm, LinkError> {
        let version = self.made.tree.function(self.made.optimized);
        let values = self.made.down.entry(at).expect("an entry").requires.clone();
        let point = PointSpec { at, condition: Condition::Always, values };
        let sites = Arc::new(self.made.copies.sites());
        let spec = VersionSpec::from(std::slice::from_ref(&point)).with_sites(sites);
        let code = self.engine.version(&self.module, self.main, version, spec);
        let mut vm = Vm::new(&self.engine, &self.module, Limits::default(), Options::traced())
            .expect("instantiated");
        let action = Action::Hand(Arc::new(self.made.down.clone()), Arc::new(states));
        vm.install(&code.expect("compiled"), vec![action])?;
        Ok(vm)
    }

    /// A walker, and the counts of frames that it will have met.
    fn walker(&self) -> (Walker, Arc<Mutex<Vec<usize>>>) {
        let met = Arc::new(Mutex::new(Vec::new()));
        (Walker { module: Arc::clone(&self.module), met: Arc::clone(&met) }, met)
    }
}

fn values(f: &Function) -> impl Iterator<Item = Value> + '_ {
    let params = f.blocks().flat_map(|block| f.block_params(block).iter().copied());
    params.chain(f.all_insts().flat_map(|inst| f.inst(inst).results.iter().copied()))
}

/// The contents of values.
type State = BTreeMap<Value, u64>;

/// An interpreter of bases with a frame of its own.
struct Walker {
    module: Arc<Module>,
    /// The number of frames of each landing.
    met: Arc<Mutex<Vec<usize>>>,
}

impl Walker {
    /// The contents of an activation, each of the type of its value. `results` are the results of
    /// the activation before.
    fn state(&self, activation: &HandedActivation, results: &[u64]) -> State {
        assert_eq!(activation.function, activation.func.as_u32());
        assert_eq!(activation.pc, activation.at.inst().as_u32());
        let f = self.module.body(activation.func).expect("a body");
        let numbered: Vec<Value> = values(f).collect();
        let filled = activation.locals.iter().map(|local| {
            let value = numbered[local.slot as usize];
            let bits = match local.content {
                HandedContent::Bits(slot) => {
                    assert_eq!(slot.ty, f.value_type(value), "{value}");
                    slot.bits
                }
                HandedContent::Result(index) => results[index as usize],
            };
            (value, bits)
        });
        filled.collect()
    }

    /// Runs a function from before an instruction to its end.
    fn run(&self, func: Func, mut at: Inst, mut state: State) -> Vec<u64> {
        let f = self.module.body(func).expect("a body");
        loop {
            let data = f.inst(at);
            let args: Vec<u64> = data.args.iter().map(|arg| state[arg]).collect();
            let index = match data.opcode {
                Opcode::Return => return args,
                Opcode::Jump => 0,
                Opcode::BrIf => u32::from(args[0] == 0),
                _ => {
                    let results = self.results(f, at, &args);
                    state.extend(data.results.iter().copied().zip(results));
                    at = f.next_inst(at).expect("no terminator");
                    continue;
                }
            };
            let target = f.target(Edge { inst: at, index });
            let given: Vec<u64> = target.args.iter().map(|arg| state[arg]).collect();
            state.extend(f.block_params(target.block).iter().copied().zip(given));
            at = f.first_inst(target.block);
        }
    }

    fn results(&self, f: &Function, inst: Inst, args: &[u64]) -> Vec<u64> {
        let data = f.inst(inst);
        match (data.opcode, data.imm) {
            (Opcode::Call, Imm::Func(callee)) => {
                let body = self.module.body(callee).expect("a body");
                let state = body.arguments().iter().copied().zip(args.iter().copied()).collect();
                self.run(callee, body.first_inst(body.entry()), state)
            }
            _ => {
                let folded = || fold(data.opcode, data.ty, f.value_type(data.args[0]), args);
                vec![data.constant().or_else(folded).expect("an operation without effects")]
            }
        }
    }
}

impl Embedder for Walker {
    fn resume(&mut self, frame: &mut DeoptFrame<'_>) -> Result<Vec<Slot>, CallbackEnd> {
        self.met.lock().expect("no panic").push(frame.activations.len());
        let (mut results, mut func) = (Vec::new(), None);
        for activation in frame.activations {
            let f = self.module.body(activation.func).expect("a body");
            if let Some(callee) = func {
                let call = f.prev_inst(activation.at.inst()).expect("behind a call");
                assert_eq!(f.inst(call).imm, Imm::Func(callee), "the call that waits");
            }
            let state = self.state(activation, &results);
            results = self.run(activation.func, activation.at.inst(), state);
            func = Some(activation.func);
        }
        let func = func.expect("an activation");
        let types = &self.module.signature(func).results;
        Ok(results.iter().zip(types).map(|(bits, ty)| Slot { ty: *ty, bits: *bits }).collect())
    }
}

/// Every entry of every program, on several inputs: the run ends as the plain one does.
#[test]
fn an_interpreter_of_others_goes_on_from_every_entry() {
    for (text, most) in [(NESTED, 3), (RECURSIVE, 2)] {
        let scene = Scene::new(text);
        let mut plain = Machine::new(&scene.module, Limits::default()).expect("instantiated");
        let mut deepest = 0;
        for (at, entry) in scene.made.down.entries() {
            let (mut walker, met) = scene.walker();
            let mut vm = scene.leaving(at, scene.states()).expect("it fits");
            for input in [1, 2, 5, 9] {
                let expected = plain.invoke(scene.main, &[input], &mut NoHost, &mut NoObserver);
                assert!(matches!(expected, Outcome::Returned(_)));
                let found = vm.run(scene.main, &[input], &mut walker).expect("it ends");
                assert_eq!(found, expected, "{input} at {at:?}");
            }
            let met = met.lock().expect("no panic");
            assert!(met.iter().all(|frames| *frames == entry.activations()), "{met:?} at {at:?}");
            deepest = deepest.max(met.iter().copied().max().unwrap_or(0));
        }
        assert!(deepest >= most, "{deepest} frames");
    }
}

/// Two frames of one function have slots of their own. The values of the inner frame overwrite no
/// value of the waiting frame.
#[test]
fn two_frames_of_one_function_have_their_own_slots() {
    struct Looks(Arc<AtomicUsize>);
    impl Embedder for Looks {
        fn resume(&mut self, frame: &mut DeoptFrame<'_>) -> Result<Vec<Slot>, CallbackEnd> {
            let [inner, outer] = frame.activations else { panic!("two activations") };
            assert_eq!(outer.func, inner.func);
            let differs = |local: &&jit::HandedLocal| {
                let here = inner.slot(local.slot);
                here.is_some() && outer.slot(local.slot).is_some_and(|slot| Some(slot) != here)
            };
            self.0.fetch_add(outer.locals.iter().filter(differs).count(), Ordering::Relaxed);
            Ok(vec![Slot { ty: Type::I32, bits: 0 }])
        }
    }
    let scene = Scene::new(RECURSIVE);
    let base = scene.module.body(scene.main).expect("a body");
    let n = base.arguments()[0];
    let has_both = |entry: &transition::mapping::Entry| {
        let lists: Vec<_> = entry.assign_lists().collect();
        lists.len() == 2 && lists.iter().all(|list| list.iter().any(|a| a.value == n))
    };
    let mut entries = scene.made.down.entries();
    let (at, _) = entries.find(|(_, entry)| has_both(entry)).expect("two frames");
    let differing = Arc::new(AtomicUsize::new(0));
    let mut vm = scene.leaving(at, scene.states()).expect("it fits");
    let mut embedder = Looks(Arc::clone(&differing));
    vm.run(scene.main, &[9], &mut embedder).expect("it ends");
    assert!(differing.load(Ordering::Relaxed) > 0);
}

/// The frame states of a scene, changed at one point.
fn changed(scene: &Scene, func: Func, at: Point, change: impl Fn(&mut Vec<Local>)) -> States {
    let mut states = scene.states();
    let mut of_func = FrameStates::clone(&states[&func]);
    let mut state = of_func.get(at).expect("a state").clone();
    change(&mut state.locals);
    of_func.set(at, state);
    states.insert(func, Arc::new(of_func));
    states
}

/// The point of each frame whose state counts.
fn landed(scene: &Scene) -> Vec<(Func, Point)> {
    let entry = scene.made.down.checked_entry(scene.deepest()).expect("an entry");
    assert_eq!(entry.entry().activations(), 3);
    let place = |frame: transition::frames::Landing<'_>| match frame.at {
        FramePlace::Before(point) => (frame.func, point),
        FramePlace::Within(call) => {
            let f = scene.module.body(frame.func).expect("a body");
            (frame.func, Point::before(f.next_inst(call).expect("a next")))
        }
    };
    entry.landings(scene.main).map(place).collect()
}

/// An activation names each slot once.
#[test]
fn a_slot_named_twice_is_refused() {
    let scene = Scene::new(NESTED);
    for (func, at) in landed(&scene) {
        let twice = changed(&scene, func, at, |locals| locals.extend(locals.first().copied()));
        let slot = twice[&func].get(at).expect("a state").locals[0].slot;
        let found = scene.leaving(scene.deepest(), twice).map(|_| ());
        assert_eq!(found, Err(LinkError::SharedSlot { number: 0, slot }));
        let says = found.expect_err("refused").to_string();
        assert!(says.contains("OSR point 0") && says.contains(&format!("slot {slot} twice")));
        // Two slots for one value are fine.
        let both = changed(&scene, func, at, |locals| {
            let first = locals[0];
            locals.push(Local { slot: 1000, ..first });
        });
        assert!(scene.leaving(scene.deepest(), both).is_ok());
    }
}

/// Each frame needs a state where it lands, which names provided values alone.
#[test]
fn a_frame_without_its_state_is_refused() {
    let scene = Scene::new(NESTED);
    for (func, at) in landed(&scene) {
        let mut states = scene.states();
        states.insert(func, Arc::new(FrameStates::new()));
        let found = scene.leaving(scene.deepest(), states).map(|_| ());
        assert_eq!(found, Err(LinkError::NoState { number: 0, func, at }));
        let value = Value::from_u32(4_000);
        let more = changed(&scene, func, at, |locals| {
            let content = LocalContent::Value(value);
            locals.push(Local { slot: 1000, content, representation: 0 });
        });
        let found = scene.leaving(scene.deepest(), more).map(|_| ());
        assert_eq!(found, Err(LinkError::NotProvided { number: 0, func, value }));
    }
}

/// A handler must return the results of the outermost function, in its types.
#[test]
fn wrong_results_of_a_handler_are_refused() {
    struct Returns(Vec<Slot>);
    impl Embedder for Returns {
        fn resume(&mut self, _: &mut DeoptFrame<'_>) -> Result<Vec<Slot>, CallbackEnd> {
            Ok(self.0.clone())
        }
    }
    let scene = Scene::new(NESTED);
    let ended = |results: &[(Type, u64)]| {
        let results = results.iter().map(|(ty, bits)| Slot { ty: *ty, bits: *bits }).collect();
        let vm = scene.leaving(scene.deepest(), scene.states());
        vm.expect("it fits").run(scene.main, &[3], &mut Returns(results))
    };
    assert_eq!(ended(&[(Type::I64, 7)]), Ok(Outcome::Returned(vec![7])));
    let refused = |results: &[(Type, u64)]| match ended(results) {
        Err(RunError::WrongResults { func, what }) => {
            assert_eq!(func, scene.main);
            what
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&[]), "0 results instead of 1");
    // The results of the middle frame, and the results of the innermost frame.
    assert_eq!(refused(&[(Type::I32, 7), (Type::I64, 7)]), "2 results instead of 1");
    assert_eq!(refused(&[(Type::I64, 7), (Type::I32, 7)]), "2 results instead of 1");
    assert_eq!(refused(&[(Type::I32, 7)]), "0x7 of type i32 as result 0 of type i64");

    let scene = Scene::new(RECURSIVE);
    let mut vm = scene.leaving(scene.deepest(), scene.states()).expect("it fits");
    let mut wide = Returns(vec![Slot { ty: Type::I32, bits: 1 << 32 }]);
    let ended = vm.run(scene.main, &[9], &mut wide);
    assert!(
        matches!(&ended, Err(RunError::WrongResults { what, .. }) if what.contains("0x100000000")),
        "{ended:?}"
    );
}
