//! Inlined code left into an interpreter of the embedder (`jit::Action::HandFrames`).

use super::policy::plan;
use super::{ALL, parsed};
use interp::{Limits, Machine, NoHost, NoObserver, Options, Outcome};
use ir::eval::fold;
use ir::{Edge, Func, Function, Imm, Inst, Module, Opcode, Point, Type, Value};
use jit::{
    Action, CallbackEnd, Condition, Config, DeoptFrame, Embedder, Engine, LinkError, PointSpec,
    RunError, Slot, SlotLayout, Vm,
};
use osier::driver::NoObserver as NoDriverObserver;
use osier::inlining::{CalleeLandings, Inlined, inline};
use passes::InlinePolicy;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

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

    /// A layout for each function, with a slot for each value.
    fn layouts(&self) -> BTreeMap<Func, SlotLayout> {
        let bodies = self.module.defined();
        bodies.map(|(func, body)| (func, SlotLayout::new(values(body).zip(0..)))).collect()
    }

    /// The point with an entry into the most frames.
    fn deepest(&self) -> Point {
        let entries = self.made.down.entries();
        entries.max_by_key(|(_, entry)| entry.frames.len()).expect("an entry").0
    }

    /// A machine that hands its run over at the first visit of a point.
    fn leaving(&self, at: Point, layouts: BTreeMap<Func, SlotLayout>) -> Result<Vm, LinkError> {
        let version = self.made.tree.function(self.made.optimized);
        let values = self.made.down.entry(at).expect("an entry").requires.clone();
        let point = PointSpec { at, condition: Condition::Always, values };
        let sites = Arc::new(self.made.copies.sites());
        let of = (self.main, version);
        let code = self.engine.inlined_version(&self.module, of, &[point], sites);
        let mut vm = Vm::new(&self.engine, &self.module, Limits::default(), Options::default())
            .expect("instantiated");
        let action = Action::HandFrames(Arc::new(self.made.down.clone()), Arc::new(layouts));
        vm.install(&code.expect("compiled"), vec![action])?;
        Ok(vm)
    }

    /// A walker, and the counts of frames that it will have met.
    fn walker(&self) -> (Walker, Arc<Mutex<Vec<usize>>>) {
        let met = Arc::new(Mutex::new(Vec::new()));
        let (module, layouts) = (Arc::clone(&self.module), self.layouts());
        (Walker { module, layouts, met: Arc::clone(&met) }, met)
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
    layouts: BTreeMap<Func, SlotLayout>,
    /// The number of frames of each landing.
    met: Arc<Mutex<Vec<usize>>>,
}

impl Walker {
    /// The contents of a frame. Each is of the type of its value.
    fn state(&self, func: Func, slots: &[Option<Slot>]) -> State {
        let f = self.module.body(func).expect("a body");
        let layout = &self.layouts[&func];
        assert!(slots.len() == layout.len(), "{} slots of {}", slots.len(), layout.len());
        let filled = values(f).filter_map(|value| {
            let slot = slots[layout.slot(value)?]?;
            assert_eq!(slot.ty, f.value_type(value), "{value}");
            Some((value, slot.bits))
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
        self.met.lock().expect("no panic").push(1 + frame.callers.len());
        let state = self.state(frame.func, frame.slots);
        let mut results = self.run(frame.func, frame.point.inst(), state);
        let mut func = frame.func;
        for caller in frame.callers {
            let f = self.module.body(caller.func).expect("a body");
            let call = f.inst(caller.call);
            assert_eq!(call.imm, Imm::Func(func), "the call that waits is that of the frame");
            let mut state = self.state(caller.func, &caller.slots);
            assert!(call.results.iter().all(|value| !state.contains_key(value)));
            state.extend(call.results.iter().copied().zip(results));
            results = self.run(caller.func, f.next_inst(caller.call).expect("a next"), state);
            func = caller.func;
        }
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
            let mut vm = scene.leaving(at, scene.layouts()).expect("it fits");
            for input in [1, 2, 5, 9] {
                let expected = plain.invoke(scene.main, &[input], &mut NoHost, &mut NoObserver);
                assert!(matches!(expected, Outcome::Returned(_)));
                let found = vm.run(scene.main, &[input], &mut walker).expect("it ends");
                assert_eq!(found, expected, "{input} at {at:?}");
            }
            let met = met.lock().expect("no panic");
            assert!(met.iter().all(|frames| *frames == entry.frames.len()), "{met:?} at {at:?}");
            deepest = deepest.max(met.iter().copied().max().unwrap_or(0));
        }
        assert!(deepest >= most, "{deepest} frames");
    }
}

/// Two frames of one function have slots of their own. The values of the inner one overwrite none
/// of the waiting one.
#[test]
fn two_frames_of_one_function_have_their_own_slots() {
    struct Looks(Arc<AtomicUsize>);
    impl Embedder for Looks {
        fn resume(&mut self, frame: &mut DeoptFrame<'_>) -> Result<Vec<Slot>, CallbackEnd> {
            let caller = &frame.callers[0];
            assert_eq!(caller.func, frame.func);
            let differs =
                |(a, b): &(&Option<Slot>, &Option<Slot>)| a.is_some() && b.is_some() && a != b;
            self.0.fetch_add(
                frame.slots.iter().zip(&caller.slots).filter(differs).count(),
                Ordering::Relaxed,
            );
            Ok(vec![Slot { ty: Type::I32, bits: 0 }])
        }
    }
    let scene = Scene::new(RECURSIVE);
    let base = scene.module.body(scene.main).expect("a body");
    let n = base.arguments()[0];
    let has_both = |frames: &[transition::frames::Frame]| {
        frames.len() == 2 && frames.iter().all(|f| f.assigns.iter().any(|a| a.value == n))
    };
    let mut entries = scene.made.down.entries();
    let (at, _) = entries.find(|(_, entry)| has_both(&entry.frames)).expect("two frames");
    let differing = Arc::new(AtomicUsize::new(0));
    let mut vm = scene.leaving(at, scene.layouts()).expect("it fits");
    let mut embedder = Looks(Arc::clone(&differing));
    vm.run(scene.main, &[9], &mut embedder).expect("it ends");
    assert!(differing.load(Ordering::Relaxed) > 0);
}

/// Values that an entry provides together need slots of their own, in each frame.
#[test]
fn values_of_a_frame_that_share_a_slot_are_refused() {
    let scene = Scene::new(NESTED);
    let at = scene.deepest();
    let frames = &scene.made.down.entry(at).expect("an entry").frames;
    assert_eq!(frames.len(), 3);
    for frame in frames.iter().filter(|frame| frame.assigns.len() > 1) {
        let [one, other] = [0, 1].map(|index| frame.assigns[index].value);
        let body = scene.module.body(frame.func).expect("a body");
        let others = values(body).filter(|value| ![one, other].contains(value)).zip(5..);
        let shared = SlotLayout::new(others.chain([(one, 3), (other, 3)]));
        let mut layouts = scene.layouts();
        layouts.insert(frame.func, shared);
        let found = scene.leaving(at, layouts).map(|_| ());
        let values = [one, other];
        assert_eq!(found, Err(LinkError::SharedSlot { number: 0, slot: 3, values }));
        let says = found.expect_err("refused").to_string();
        let names = [format!("slot 3 for {one} and for {other}"), "OSR point 0".to_owned()];
        assert!(names.iter().all(|name| says.contains(name)), "{says}");
    }
    // The same slots for values that are not provided here are no one's concern.
    let provided: Vec<Value> = frames[0].assigns.iter().map(|assign| assign.value).collect();
    let body = scene.module.body(frames[0].func).expect("a body");
    let others = values(body).filter(|value| !provided.contains(value)).map(|value| (value, 0));
    let mut layouts = scene.layouts();
    let slots = provided.iter().copied().zip(0..).chain(others);
    layouts.insert(frames[0].func, SlotLayout::new(slots));
    assert!(scene.leaving(at, layouts).is_ok());
}

/// Each frame with values needs a layout with a slot for each of them.
#[test]
fn a_frame_without_a_slot_is_refused() {
    let scene = Scene::new(NESTED);
    let at = scene.deepest();
    for frame in &scene.made.down.entry(at).expect("an entry").frames {
        for value in frame.assigns.iter().map(|assign| assign.value) {
            let body = scene.module.body(frame.func).expect("a body");
            let mut layouts = scene.layouts();
            let others = values(body).filter(|other| *other != value).zip(0..);
            layouts.insert(frame.func, SlotLayout::new(others));
            let found = scene.leaving(at, layouts).map(|_| ());
            assert_eq!(found, Err(LinkError::NoSlot { number: 0, value }));
        }
    }
}

/// What a handler returns are the results of the outermost function, in its types.
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
        let vm = scene.leaving(scene.deepest(), scene.layouts());
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
    // The results of the frame in the middle, and those of the innermost.
    assert_eq!(refused(&[(Type::I32, 7), (Type::I64, 7)]), "2 results instead of 1");
    assert_eq!(refused(&[(Type::I64, 7), (Type::I32, 7)]), "2 results instead of 1");
    assert_eq!(refused(&[(Type::I32, 7)]), "0x7 of type i32 as result 0 of type i64");

    let scene = Scene::new(RECURSIVE);
    let mut vm = scene.leaving(scene.deepest(), scene.layouts()).expect("it fits");
    let mut wide = Returns(vec![Slot { ty: Type::I32, bits: 1 << 32 }]);
    let ended = vm.run(scene.main, &[9], &mut wide);
    assert!(
        matches!(&ended, Err(RunError::WrongResults { what, .. }) if what.contains("0x100000000")),
        "{ended:?}"
    );
}
