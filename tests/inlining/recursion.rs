//! Functions inlined into themselves: their exits land in several activations of one base.

use super::frames::{all_inlined, judged};
use super::policy::plan;
use super::{ALL, parsed};
use interp::{
    Limits, Machine, NoHost, NoObserver, Options, Outcome, PauseAlways, Program, Run, TraceLevel,
    VersionId,
};
use ir::{Func, Module, Point};
use jit::{Action, Condition, Config, Engine, PointSpec, Quiet, VersionSpec, Vm};
use osier::driver::NoObserver as NoDriverObserver;
use osier::exchange::{self, WrittenCopy, recheck_copy};
use osier::inlining::{CalleeLandings, Inlined, LeftOut, inline};
use passes::{Callers, InlinePolicy};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use transition::mapping::Entry;
use verify::prng::Prng;
use verify::state_oracle::{OracleOptions, Report};

/// `@walk` calls itself between two loads of one place; the second goes in the optimized version.
/// `@fib` calls itself twice. `@ack` calls itself in an argument, and `@even` through `@odd`.
const RECURSIVE: &str = "memory @m 1
memory @k 1
data @m 0 \"\\07\\01\\03\\09\\05\\02\\08\\01\\04\\06\\03\\02\\09\\01\\05\\07\\02\\03\"
func @walk(%n: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  br_if %n, more, done
done:
  return %zero
more:
  %a = load.i32 @m[%n]
  store.i32 @k[%n], %a
  store.i32 @k[%n + 4], %n
  %b = load.i32 @m[%n]
  %p = sub.i32 %n, %one
  %x = call @walk(%p)
  store.i32 @k[%n + 8], %x
  %c = load.i32 @m[%n]
  %s = add.i32 %b, %x
  %t = mul.i32 %s, %c
  return %t
}
func @fib(%n: i32) -> i32 {
entry:
  %one = const.i32 1
  %small = ule.i32 %n, %one
  br_if %small, done, more
done:
  return %n
more:
  %p = sub.i32 %n, %one
  %a = call @fib(%p)
  store.i32 @k[%n], %a
  %q = sub.i32 %p, %one
  %b = call @fib(%q)
  %s = add.i32 %a, %b
  return %s
}
func @ack(%m: i32, %n: i32) -> i32 {
entry:
  %one = const.i32 1
  br_if %m, some, base
base:
  %r = add.i32 %n, %one
  return %r
some:
  %l = sub.i32 %m, %one
  br_if %n, both, left
left:
  %s = call @ack(%l, %one)
  return %s
both:
  %k = sub.i32 %n, %one
  %i = call @ack(%m, %k)
  store.i32 @k[%n], %i
  %t = call @ack(%l, %i)
  return %t
}
func @even(%n: i32, %w: i32) -> i32 {
entry:
  %one = const.i32 1
  br_if %n, more, done
done:
  return %w
more:
  %p = sub.i32 %n, %one
  store.i32 @k[%p], %w
  %r = call @odd(%p, %w)
  %s = add.i32 %r, %n
  return %s
}
func @odd(%n: i32, %w: i32) -> i32 {
entry:
  %one = const.i32 1
  %zero = const.i32 0
  br_if %n, more, done
done:
  return %zero
more:
  %p = sub.i32 %n, %one
  %v = mul.i32 %w, %n
  %r = call @even(%p, %v)
  %s = xor.i32 %r, %v
  return %s
}
";

/// Runs of the recursive functions.
const RUNS: [(&str, &[u64]); 6] = [
    ("walk", &[7]),
    ("fib", &[9]),
    ("ack", &[2, 3]),
    ("even", &[9, 5]),
    ("even", &[8, 3]),
    ("odd", &[7, 1 << 31]),
];

fn recursive(recursion: usize) -> InlinePolicy {
    InlinePolicy { size: 60, recursion, allowance: 200, ..ALL }
}

/// The most occurrences of one function on a path of calls, besides the first.
fn repeated(made: &Inlined) -> usize {
    let instances = made.copies.instances();
    let path = |id: usize| {
        let caller = |id: &usize| Some(instances[*id].caller?.0);
        std::iter::successors(Some(id), caller).map(|id| instances[id].func)
    };
    let most = (0..instances.len()).map(|id| {
        let mut counts: BTreeMap<Func, usize> = BTreeMap::new();
        path(id).for_each(|func| *counts.entry(func).or_default() += 1);
        counts.into_values().max().unwrap_or(0)
    });
    most.max().unwrap_or(1) - 1
}

#[test]
fn recursion_is_bounded_and_frames_are_those_of_the_bases() {
    let module = parsed(RECURSIVE);
    let runs: Vec<(Func, Vec<u64>)> = RUNS
        .iter()
        .map(|(name, args)| (module.func_named(name).expect("a function"), args.to_vec()))
        .collect();
    let (going_on, going_on_one_in) = (60, Some(4));
    let usual = OracleOptions::for_inlined_code();
    let options = OracleOptions { going_on, going_on_one_in, ..usual };
    let depth = |recursion: usize, pipeline: &str| {
        let inlined = all_inlined(&module, recursive(recursion), pipeline);
        let most = inlined.iter().map(|(_, made)| repeated(made)).max().expect("versions");
        assert_eq!(most, recursion, "{pipeline}");
        let report = judged(&module, &inlined, &runs, options);
        let first = report.divergences.first();
        assert!(first.is_none(), "{recursion} under {pipeline}: {first:?}");
        report
    };
    for pipeline in ["O2", "O0", "cse,load_elim,dse,adce"] {
        let mut sum = Report::default();
        (0..=3).for_each(|recursion| sum.add(&depth(recursion, pipeline)));
        let deep: u64 = sum.backward.by_depth[2..].iter().sum();
        let went_on = sum.backward.ends > 500 && sum.up_again > 100;
        let up = sum.forward.transitions;
        assert!(deep > 500 && up > 1_000 && went_on, "{pipeline}: {sum:?}");
    }
}

/// A function of the text with its version, in machines.
struct Recursive {
    module: Arc<Module>,
    func: Func,
    made: Inlined,
}

impl Recursive {
    fn all(recursion: usize) -> Vec<(Recursive, Vec<u64>)> {
        let module = Arc::new(parsed(RECURSIVE));
        let plan = plan(recursive(recursion));
        let landings = CalleeLandings::new(&module, &plan);
        let one = |(name, args): &(&str, &[u64])| {
            let func = module.func_named(name).expect("a function");
            let made = inline(&module, func, &plan, &landings, &mut NoDriverObserver);
            let made = made.expect("it is recursive");
            (Recursive { module: Arc::clone(&module), func, made }, args.to_vec())
        };
        RUNS.iter().map(one).collect()
    }

    fn expected(&self, args: &[u64]) -> (Outcome, u64) {
        let mut plain = Machine::new(&self.module, Limits::default()).expect("instantiated");
        let outcome = plain.invoke(self.func, args, &mut NoHost, &mut NoObserver);
        (outcome, plain.computed_memory_digest())
    }

    /// The exits into several activations of one function.
    fn deep(&self) -> Vec<Point> {
        let is_deep = |entry: &Entry| {
            let inner = entry.inner.iter().map(|frame| frame.func);
            let funcs: BTreeSet<Func> = inner.chain([self.func]).collect();
            entry.activations() > funcs.len()
        };
        let entries = self.made.down.entries().filter(|(_, entry)| is_deep(entry));
        entries.map(|(point, _)| point).collect()
    }

    /// Runs the function and makes a transition wherever there is an entry: out of the version with
    /// inlined code, and from any activation of the base into it. Returns the numbers of
    /// transitions: out, in, and in from a frame that landed within another of its function.
    fn hop(&self, args: &[u64], seed: u64) -> [usize; 3] {
        let options = Options { trace: TraceLevel::Full, poison: true, track_memory: false };
        let program = Program::new(&self.module);
        let mut machine =
            Machine::with_options(&program, Limits::default(), options).expect("instantiated");
        let bases: BTreeMap<Func, VersionId> = (self.module.defined())
            .map(|(func, _)| (func, machine.current(func).expect("a base")))
            .collect();
        let version = self.made.tree.function(self.made.optimized);
        let id = machine.add_version(&self.module, self.func, version);
        machine.set_current(self.func, id);
        machine.start(self.func, args);
        let mut prng = Prng::new(seed);
        let mut made = [0; 3];
        let outcome = loop {
            match machine.run(&mut NoHost, &mut PauseAlways) {
                Run::Done(outcome) => break outcome,
                Run::Paused => {}
                other => panic!("{other:?}"),
            }
            let view = machine.view().expect("it is paused");
            let (at, here) = (Point::before(view.inst()), view.version());
            let waiting = view.frames().nth(1).map(|frame| frame.version());
            if prng.below(3) > 0 {
                continue;
            }
            if here == id {
                let Some(exit) = self.made.down.checked_entry(at) else { continue };
                let landings = exit.landings(self.func);
                let to: Vec<VersionId> = landings.map(|landing| bases[&landing.func]).collect();
                machine.fire(&to, exit).expect("it fits");
                made[0] += 1;
            } else if here == bases[&self.func] {
                let Some(entry) = self.made.up.checked_entry(at) else { continue };
                machine.fire(id, entry).expect("it fits");
                made[1] += 1;
                made[2] += usize::from(waiting == Some(here));
            }
        };
        let found = (outcome, machine.computed_memory_digest());
        assert_eq!(found, self.expected(args), "seed {seed}, {args:?}");
        made
    }
}

/// An activation of the base that came from a frame may go up again, whichever frame it was. Frames
/// with the live values alone would lack the values that the entries up keep: `%a` of `@walk`.
#[test]
fn frames_within_frames_of_their_function_go_up_again() {
    let mut sum = [0; 3];
    for recursion in 1..=2 {
        for (one, args) in Recursive::all(recursion) {
            for seed in 0..20 {
                let made = one.hop(&args, seed);
                sum.iter_mut().zip(made).for_each(|(sum, made)| *sum += made);
            }
        }
    }
    assert!(sum.iter().all(|made| *made > 1_000), "{sum:?}");
    // The test is not vacuous: an entry up keeps a value.
    let (walk, _) = Recursive::all(1).swap_remove(0);
    assert!(walk.made.up.entries().any(|(_, entry)| !entry.kept.is_empty()));
}

/// Exits out of native code into activations of one function.
#[test]
fn native_exits_land_in_the_right_activation() {
    let engine = Engine::new(Config::default()).expect("native code runs here");
    let mut exits = 0;
    for (one, args) in Recursive::all(2) {
        let version = one.made.tree.function(one.made.optimized);
        let down = Arc::new(one.made.down.clone());
        let points: Vec<PointSpec> = (one.deep().into_iter())
            .map(|at| {
                let values = down.entry(at).expect("an entry").requires.clone();
                PointSpec { at, condition: Condition::Flag, values }
            })
            .collect();
        let sites = Arc::new(one.made.copies.sites());
        let spec = VersionSpec::from(&points).with_sites(sites);
        let code = engine.version(&one.module, one.func, version, spec);
        let code = code.expect("compiled");
        let (expected, _) = one.expected(&args);
        let mut vm = Vm::new(&engine, &one.module, Limits::default(), Options::traced())
            .expect("instantiated");
        vm.set_tiering(Box::new(Quiet));
        let actions = vec![Action::Interpret(Arc::clone(&down)); points.len()];
        vm.install(&code, actions).expect("installed");
        for number in 0..points.len() {
            code.arm(number);
            let found = vm.invoke(one.func, &args, &mut NoHost).expect("it ends");
            assert_eq!(found, expected, "point {number}, {args:?}");
            code.disarm(number);
        }
        exits += vm.transitions().iter().map(|made| made.count).sum::<u64>();
    }
    assert!(exits > 50, "{exits} exits");
}

/// Another program reads and judges them, too.
#[test]
fn files_of_functions_inlined_into_themselves_are_read_back() {
    let plan = plan(recursive(2));
    for (name, _) in RUNS {
        let module = parsed(RECURSIVE);
        let landings = CalleeLandings::new(&module, &plan);
        let func = module.func_named(name).expect("a function");
        let made = inline(&module, func, &plan, &landings, &mut NoDriverObserver);
        let made = made.expect("it is recursive");
        let mut text = exchange::header(&plan.names().join(","), "avail", 1);
        let others: BTreeSet<Func> = made.copies.instances().iter().map(|one| one.func).collect();
        let others: Vec<Func> = others.into_iter().filter(|other| *other != func).collect();
        text += &exchange::landings_header(others.len());
        for func in others.iter().copied() {
            let base = module.body(func).expect("a body");
            let certificate = CalleeLandings::certificate(base).expect("a base has one");
            exchange::landing(&mut text, func, base, &certificate);
        }
        exchange::write_copy(&mut text, &module, &WrittenCopy::of(func, &made));

        // A reader starts from the module alone: versions made twice from one base have other ids.
        let module = parsed(RECURSIVE);
        let versions =
            plan.versions(&Callers::new(&module), func, &LeftOut::default(), &mut NoDriverObserver);
        let versions = versions.expect("inlined again");
        let file = exchange::read(&text).expect("it is well formed");
        let landed = file.landings.iter().map(|landing| {
            let func = module.func_named(landing.name).expect("a function");
            let base = module.body(func).expect("a body");
            (func, landing.landing(func, base).expect("well formed"))
        });
        let landings = CalleeLandings::proved_by(Callers::new(&module), landed);
        let versions = versions.each_ref();
        let copy = file.functions[0].copy(&module, func, versions).expect("well formed");
        let entries = (copy.into.len() + copy.out.len()) as u64;
        let found = recheck_copy(&module, func, versions, copy, &landings, &mut NoDriverObserver);
        assert!(found.counts.dropped.is_empty(), "{name}: {:?}", found.counts.dropped);
        assert!(entries > 40 && found.counts.held > entries, "{name}: {entries}");
    }
}
