//! A collector that moves every object in every call of the embedder: native frames, activations of
//! the interpreter, globals, and frames of entries that leave or begin in the middle of a loop.

use super::support::{Pair, engine, module, vm};
use osier::interp::{Limits, Options, Outcome, TraceLevel};
use osier::ir::{Func, Module};
use osier::jit::{
    Action, Callback, CallbackEnd, Condition, Config, Effort, Embedder, Engine, Exits,
    TransitionKind, Vm,
};
use osier::tiers::Eager;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Makes an object in each round of a loop, and keeps the first, the last and one in a global.
/// `@read` is called with an object that its caller keeps. `@old` counts words that were read
/// before a collection and are still the words of their references.
const PROGRAM: &str = "
import func @make \"env\" \"make\" (i64) -> ref
import func @content \"env\" \"content\" (ref) -> i64
global @kept: mut ref = 0
global @old: mut i64 = 0
func @work(%n: i64, %depth: i64) -> i64 {
entry:
  %zero = const.i64 0
  %one = const.i64 1
  %first = call @make(%n)
  %word = ref_bits %first
  jump head(%zero, %zero, %first)
head(%i: i64, %sum: i64, %last: ref):
  %more = ult.i64 %i, %n
  br_if %more, body, done
body:
  %three = const.i64 3
  %scaled = mul.i64 %depth, %three
  %made = call @make(%i)
  global_set.ref @kept, %last
  %a = call @read(%made, %last, %depth)
  %b = call @content(%first)
  %now = ref_bits %first
  %stays = eq.i64 %word, %now
  %stay = uextend.i64 %stays
  %counted = global_get.i64 @old
  %count = add.i64 %counted, %stay
  global_set.i64 @old, %count
  %c = add.i64 %a, %b
  %d = add.i64 %sum, %c
  %e = add.i64 %d, %scaled
  %j = add.i64 %i, %one
  jump head(%j, %e, %made)
done:
  %kept = global_get.ref @kept
  %x = call @content(%last)
  %y = call @content(%kept)
  %z = add.i64 %x, %y
  %result = add.i64 %sum, %z
  return %result
}
func @read(%a: ref, %b: ref, %depth: i64) -> i64 {
entry:
  %one = const.i64 1
  %chosen = select.ref %depth, %a, %b
  %less = sub.i64 %depth, %one
  br_if %depth, deeper, leaf
deeper:
  %below = call @read(%b, %chosen, %less)
  %own = call @content(%a)
  %same = ref_eq %chosen, %a
  %wide = uextend.i64 %same
  %s = add.i64 %below, %own
  %t = add.i64 %s, %wide
  return %t
leaf:
  %x = call @content(%a)
  %y = call @content(%b)
  %sum = add.i64 %x, %y
  return %sum
}
";

/// The result of `@work(n, depth)`, if no object is lost.
fn expected(n: u64, depth: u64) -> u64 {
    let (mut sum, mut last, mut kept) = (0, n, 0);
    for i in 0..n {
        sum += read(i, last, depth) + n + 3 * depth;
        (kept, last) = (last, i);
    }
    sum + last + kept
}

fn read(a: u64, b: u64, depth: u64) -> u64 {
    match depth {
        0 => a + b,
        _ => read(b, a, depth - 1) + a + 1,
    }
}

/// A heap that moves every object at every call. The visit of a word without an object ends the
/// test. Such a word is stale, was visited twice, or is no reference.
struct Heap {
    /// The content of each object, by its word.
    objects: BTreeMap<u64, u64>,
    moves: u64,
    /// The number of roots visited.
    roots: usize,
}

impl Heap {
    fn new() -> Heap {
        Heap { objects: BTreeMap::new(), moves: 0, roots: 0 }
    }

    /// Moves every object that a root of the machine or of `own` leads to; all other objects are
    /// gone.
    fn collect(&mut self, back: &mut Callback<'_>, own: &mut [u64]) {
        self.moves += 1;
        let key = self.moves << 32;
        let from = std::mem::take(&mut self.objects);
        let mut visit = |word: &mut u64| {
            let content = from.get(word).unwrap_or_else(|| panic!("{word:#x} is no object"));
            *word = (*word & 0xffff_ffff) | key;
            self.objects.insert(*word, *content);
            self.roots += 1;
        };
        back.roots(&mut visit);
        own.iter_mut().for_each(&mut visit);
    }
}

impl Embedder for Heap {
    fn call(
        &mut self,
        back: &mut Callback<'_>,
        func: Func,
        args: &[u64],
        results: &mut [u64],
    ) -> Result<(), CallbackEnd> {
        match back.module().funcs[func].import.as_ref().expect("an import").field.as_str() {
            "make" => {
                self.collect(back, &mut []);
                // Objects are numbered, and their words also name the last collection.
                let word = (self.moves << 32) | (2 * self.moves + 1);
                self.objects.insert(word, args[0]);
                results[0] = word;
            }
            _ if args[0] == 0 => self.collect(back, &mut []),
            _ => {
                let mut own = [args[0]];
                self.collect(back, &mut own);
                results[0] = self.objects[&own[0]];
            }
        }
        Ok(())
    }
}

fn run(vm: &mut Vm, n: u64, depth: u64) -> Heap {
    let work = vm.module().func_named("work").expect("the text has it");
    let mut heap = Heap::new();
    let outcome = vm.run(work, &[n, depth], &mut heap);
    assert_eq!(outcome, Ok(Outcome::Returned(vec![expected(n, depth)])));
    assert_eq!(vm.machine().globals()[1], 0, "a word read before a collection has changed");
    // Between runs, the global alone holds a reference.
    let mut count = 0;
    vm.roots(&mut |word| {
        count += 1;
        // The next run has another heap.
        *word = 0;
    });
    assert_eq!(count, usize::from(n > 0));
    heap
}

fn installed(module: &Arc<Module>, engine: &Engine, natively: &[&str]) -> Vm {
    install(vm(engine, module), module, engine, natively)
}

fn install(mut vm: Vm, module: &Arc<Module>, engine: &Engine, natively: &[&str]) -> Vm {
    for name in natively {
        let func = module.func_named(name).expect("the text has it");
        let body = module.body(func).expect("a body");
        let version = engine.version(module, func, body, &[]).expect("compiled");
        vm.install(&version, vec![]).expect("it fits");
    }
    vm
}

fn engines() -> Vec<Engine> {
    let efforts = [Effort::Least, Effort::Most];
    let configs = efforts.into_iter().flat_map(|effort| {
        [Exits::Stored, Exits::Described].map(|exits| Config { effort, exits, ..Config::default() })
    });
    configs.map(engine).collect()
}

#[test]
fn references_are_found_in_all_frames() {
    let module = module(PROGRAM);
    for engine in engines() {
        let mut counts = Vec::new();
        for natively in [&[][..], &["work", "read"], &["work"], &["read"]] {
            // The interpreter runs its fast loop without a trace, and its exact one with it.
            for trace in [TraceLevel::Off, TraceLevel::Digest] {
                let options = Options { trace, ..Options::traced() };
                let fresh = Vm::new(&engine, &module, Limits::default(), options);
                let fresh = fresh.expect("it can be instantiated");
                let mut vm = install(fresh, &module, &engine, natively);
                for (n, depth) in [(0, 0), (1, 0), (5, 1), (4, 7)] {
                    counts.push(run(&mut vm, n, depth).roots);
                }
            }
        }
        assert!(counts.iter().all(|roots| *roots > 0));
    }
}

/// Calls in cold blocks, with references that are live across them and others that they pass on.
#[test]
fn references_live_across_cold_calls_are_found() {
    let text = PROGRAM.replace("body:", "body cold:").replace("deeper:", "deeper cold:");
    let module = module(&text);
    let marked = |name| {
        let func = module.func_named(name).expect("the text has it");
        let body = module.body(func).expect("a body");
        body.blocks().filter(|block| body.is_cold(*block)).count()
    };
    assert_eq!([marked("work"), marked("read")], [1, 1]);
    for engine in engines() {
        for natively in [&["work", "read"][..], &["work"], &["read"]] {
            let mut vm = installed(&module, &engine, natively);
            for (n, depth) in [(0, 0), (1, 0), (5, 1), (4, 7)] {
                assert!(run(&mut vm, n, depth).roots > 0);
            }
        }
    }
}

/// A word that was read before a collection is not updated, also where the reference is kept.
#[test]
fn a_word_read_before_a_collection_stays() {
    let module = module(PROGRAM);
    for engine in engines() {
        for natively in [&[][..], &["work", "read"]] {
            // `run` compares the words, in the global `@old`.
            run(&mut installed(&module, &engine, natively), 10, 2);
        }
    }
}

/// Optimized versions, with inlined callees and reads that were merged and moved.
#[test]
fn optimized_code_keeps_references() {
    let module = module(PROGRAM);
    for engine in engines() {
        let mut vm = vm(&engine, &module);
        vm.set_tiering(Box::new(Eager::new(osier::tiers::NoObserver)));
        for name in ["work", "read"] {
            vm.demand(module.func_named(name).expect("the text has it")).expect("compiled");
        }
        for (n, depth) in [(0, 0), (5, 1), (20, 7)] {
            run(&mut vm, n, depth);
        }
    }
}

/// The loop continues in the other version, natively.
#[test]
fn a_continuation_keeps_references() {
    for engine in engines() {
        let pair = Pair::new(PROGRAM);
        let mut vm = installed(&pair.module, &engine, &["read"]);
        let fast = pair.at_head(&engine, true, Condition::Countdown(3));
        let slow = pair.at_head(&engine, false, Condition::Countdown(3));
        vm.adopt(&fast, vec![Action::Ask]).expect("it fits");
        vm.install(&slow, vec![pair.leading(&engine, true, &fast)]).expect("it fits");
        vm.relink(&fast, 0, pair.leading(&engine, false, &slow)).expect("it fits");
        run(&mut vm, 20, 3);
        let made = vm.transitions();
        assert!(made.iter().any(|made| made.kind == TransitionKind::Across && made.count > 2));
    }
}

/// The loop continues in the interpreter, whose frame has only the values of the transition.
#[test]
fn an_exit_to_the_interpreter_keeps_references() {
    for engine in engines() {
        let pair = Pair::new(PROGRAM);
        let mut vm = installed(&pair.module, &engine, &["read"]);
        let fast = pair.at_head(&engine, true, Condition::Countdown(4));
        vm.install(&fast, vec![Action::Interpret(Arc::clone(&pair.backward))]).expect("it fits");
        run(&mut vm, 20, 3);
        assert!(vm.transitions().iter().any(|made| made.kind == TransitionKind::Down));
    }
}
