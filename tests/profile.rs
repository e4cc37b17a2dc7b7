//! Profiles: what both tiers of the interpreter count, the file format, and what profiles suggest.

use interp::{
    CallTarget, CallTargets, Control, Limits, MAX_TARGETS, Machine, NoHost, NoObserver, Observer,
    Options, Outcome, Program, Scope, TraceLevel, View,
};
use ir::text::parse_module;
use ir::{Func, Inst, Module, Opcode, Point, Shape};
use jit::{Action, Condition, Config, Engine, Interruption, LinkError, PointSpec, Vm};
use osier::driver::{self, Format, Vigilance, certify, derive, load};
use osier::native::{self, Eager};
use osier::osr::Level;
use osier::profile::{FORMAT, FunctionProfile, Profile};
use osier::speculate::{Expected, Observed, SuggestOptions, Suggestion, suggest};
use passes::Pipeline;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use verify::generate::{Weights, generate};
use verify::prng::Prng;
use wasm::wasi::Wasi;

const FUEL: u64 = 1 << 20;

fn machine(program: &Program, fuel: u64, trace: TraceLevel) -> Machine {
    let limits = Limits { fuel, ..Limits::default() };
    let options = Options { trace, ..Options::default() };
    let mut machine = Machine::with_options(program, limits, options).expect("it is instantiated");
    machine.count();
    machine
}

/// The profiles of a run in the exact tier, which executes runs with a trace, and in the fast tier.
fn both(module: &Module, program: &Program, func: Func, args: &[u64], fuel: u64) -> [Profile; 2] {
    [TraceLevel::Digest, TraceLevel::Off].map(|trace| {
        let mut machine = machine(program, fuel, trace);
        let arguments = vec!["program".to_owned(), "3".to_owned()];
        let mut wasi = Wasi::new(arguments, &[][..], std::io::sink(), std::io::sink());
        machine.invoke(func, args, &mut wasi, &mut NoObserver);
        Profile::collect(module, &machine)
    })
}

/// Makes a profile from the state before each instruction, without the counters.
struct Naive<'a> {
    module: &'a Module,
    functions: BTreeMap<Func, FunctionProfile>,
    /// The loads that varied.
    varied: BTreeSet<(Func, Inst)>,
    activations: BTreeSet<u64>,
    /// The load or indirect call that the run executes, with the index of the call. It takes effect
    /// if the run goes on.
    pending: Option<(Func, Inst, u64)>,
}

impl Naive<'_> {
    fn enter(&mut self, view: &View<'_>) {
        let func = view.func();
        let body = self.module.body(func).expect("it runs");
        let args = body.arguments().iter().map(|arg| view.value(*arg));
        let profile = self.functions.entry(func).or_default();
        if profile.calls == 0 {
            profile.arguments = args.map(Some).collect();
        } else {
            for (known, arg) in profile.arguments.iter_mut().zip(args) {
                *known = known.filter(|known| *known == arg);
            }
        }
        profile.calls += 1;
    }

    fn finish_pending(&mut self, view: &View<'_>) {
        let Some((func, inst, index)) = self.pending.take() else { return };
        let data = self.module.body(func).expect("it runs").inst(inst);
        let profile = self.functions.entry(func).or_default();
        if data.opcode == Opcode::CallIndirect {
            let CallTargets { targets, others } = profile.targets.entry(inst).or_default();
            // The run is in the callee now.
            let func = view.func();
            match targets.iter().position(|known| (known.index, known.func) == (index, func)) {
                Some(known) => targets[known].calls += 1,
                None if targets.len() < MAX_TARGETS => {
                    targets.push(CallTarget { index, func, calls: 1 });
                }
                None => *others += 1,
            }
        } else if !self.varied.contains(&(func, inst)) {
            let value = view.value(data.result().expect("a load has a result"));
            if *profile.values.entry(inst).or_insert(value) != value {
                profile.values.remove(&inst);
                self.varied.insert((func, inst));
            }
        }
    }
}

impl Observer for Naive<'_> {
    const SCOPE: Scope = Scope::Everything;

    fn before(&mut self, view: &View<'_>, inst: Inst) -> Control {
        self.finish_pending(view);
        if self.activations.insert(view.activation()) {
            self.enter(view);
        }
        let func = view.func();
        let data = self.module.body(func).expect("it runs").inst(inst);
        match data.opcode.shape() {
            Shape::BrIf | Shape::Switch => {
                let last = data.targets.len() as u64 - 1;
                let side = match (data.opcode, view.value(data.args[0])) {
                    (Opcode::BrIf, condition) => u64::from(condition == 0),
                    (_, index) => index.min(last),
                };
                let profile = self.functions.entry(func).or_default();
                let none = || vec![0; data.targets.len()];
                profile.branches.entry(inst).or_insert_with(none)[side as usize] += 1;
            }
            Shape::Load(_) | Shape::GlobalGet => self.pending = Some((func, inst, 0)),
            Shape::CallIndirect => {
                let index = view.value(*data.args.last().expect("it has an index"));
                self.pending = Some((func, inst, index));
            }
            _ => {}
        }
        Control::Continue
    }
}

/// Programs that cover all constructs of the generator, with arguments.
fn programs() -> impl Iterator<Item = (u64, Module, Func, Vec<Vec<u64>>)> {
    (0..120).map(|seed| {
        let made = generate(seed, 100, &Weights::default());
        (seed, made.module, made.main, made.arguments)
    })
}

#[test]
fn both_tiers_count_what_an_observer_sees() {
    let (mut runs, mut sides, mut values, mut targets) = (0, 0, 0, 0);
    for (seed, module, entry, arguments) in programs() {
        let program = Program::new(&module);
        for args in arguments {
            let mut observed = machine(&program, FUEL, TraceLevel::Off);
            let (functions, varied) = Default::default();
            let (activations, pending) = Default::default();
            let module = &module;
            let mut naive = Naive { module, functions, varied, activations, pending };
            let outcome = observed.invoke(entry, &args, &mut NoHost, &mut naive);
            if matches!(outcome, Outcome::OutOfFuel(_)) {
                continue; // an instruction may have executed that no event follows
            }
            let expected = Profile { functions: naive.functions };
            let what = format!("program {seed} with {args:x?}");
            assert_eq!(Profile::collect(module, &observed), expected, "{what}, observed");
            let [exact, fast] = both(module, &program, entry, &args, FUEL);
            assert_eq!(exact, expected, "{what}, exact tier");
            assert_eq!(fast, expected, "{what}, fast tier");
            runs += 1;
            for profile in expected.functions.values() {
                sides += profile.branches.len();
                values += profile.values.len();
                targets += profile.targets.len();
            }
        }
    }
    assert!(
        runs > 300 && sides > 2_000 && values > 500 && targets > 60,
        "{runs} {sides} {values} {targets}"
    );
}

#[test]
fn both_tiers_count_alike_with_any_fuel() {
    for name in ["vm", "calls", "sort", "scan", "words.o2", "mixed"] {
        let module = kernel(name);
        let entry = module.lookup("_start").expect("it is exported");
        let program = Program::new(&module);
        let mut prng = Prng::new(7);
        for fuel in (0..200).chain((0..60).map(|_| prng.next_u64() % 20_000)) {
            let [exact, fast] = both(&module, &program, entry, &[], fuel);
            assert_eq!(exact, fast, "{name} with fuel {fuel}");
        }
    }
}

fn kernel(name: &str) -> Module {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/corpus/{name}.wasm"));
    load(Format::Wasm, &std::fs::read(file).expect("it is in the repository"))
        .expect("it is imported")
}

/// Native code counts what the interpreter does, in all its calls and loops.
#[test]
fn native_code_counts_as_the_interpreter_does() {
    let engine = Engine::new(Config { interruption: Interruption::Fuel, ..Config::default() })
        .expect("the tests run where native code does");
    let (mut runs, mut sides, mut values, mut targets) = (0, 0, 0, 0);
    let kernels = ["vm", "calls", "sort", "scan", "words.o2", "mixed"].map(|name| {
        let module = kernel(name);
        let entry = module.lookup("_start").expect("it is exported");
        (name.to_owned(), module, entry, vec![Vec::new()])
    });
    let generated = programs().map(|(seed, module, entry, arguments)| {
        (format!("program {seed}"), module, entry, arguments)
    });
    for (name, module, entry, arguments) in generated.chain(kernels) {
        let module = Arc::new(module);
        let program = Program::new(&module);
        for args in arguments {
            let [_, expected] = both(&module, &program, entry, &args, u64::MAX >> 1);
            let counted = natively(&engine, &module, entry, &args);
            assert_eq!(counted, expected, "{name} with {args:x?}");
            runs += 1;
            for profile in expected.functions.values() {
                sides += profile.branches.len();
                values += profile.values.len();
                targets += profile.targets.len();
            }
        }
    }
    assert!(
        runs > 300 && sides > 2_000 && values > 500 && targets > 60,
        "{runs} {sides} {values} {targets}"
    );
}

fn natively(engine: &Engine, module: &Arc<Module>, func: Func, args: &[u64]) -> Profile {
    let limits = Limits { fuel: u64::MAX >> 1, ..Limits::default() };
    let options = Options { trace: TraceLevel::Off, ..Options::default() };
    let mut vm = Vm::new(engine, module, limits, options).expect("it is instantiated");
    vm.set_tiering(Box::new(Eager::new(native::NoObserver).counting()));
    let arguments = vec!["program".to_owned(), "3".to_owned()];
    let mut wasi = Wasi::new(arguments, &[][..], std::io::sink(), std::io::sink());
    native::invoke(&mut vm, func, args, &mut wasi).expect("native code can run it");
    Profile::collect_native(module, &vm)
}

/// A continuation into a version that counts counts there, and is no call.
#[test]
fn continuations_count_in_their_version() {
    let module = Arc::new(parsed(LOOP));
    let func = module.lookup("f").expect("the text has it");
    let body = module.body(func).expect("it has a body");
    let engine = Engine::new(Config::default()).expect("the tests run where native code does");
    let target = engine.counting(&module, func, body).expect("it is compiled");
    let branch = body.all_insts().find(|inst| body.inst(*inst).opcode == Opcode::BrIf);
    let branch = branch.expect("a branch");
    let nothing = Pipeline::of(Vec::new());
    let derived = derive(&module, body, &nothing, Vigilance::On, &mut driver::NoObserver);
    let made = certify(&module, body, &derived, &[Level::Avail], &mut driver::NoObserver);
    let at = Point::before(branch);
    let entry = made.levels[0].forward.mapping.checked_entry(at).expect("it is the same point");
    let continuation = engine.continuation(body, entry, &target).expect("it is compiled");
    let values = continuation.requires().to_vec();
    let point = PointSpec { at, condition: Condition::Countdown(10), values };
    let source = engine.version(&module, func, body, &[point]).expect("it is compiled");
    let mut vm = Vm::new(&engine, &module, Limits::default(), Options::default())
        .expect("it is instantiated");
    vm.adopt(&target, Vec::new()).expect("it fits");
    vm.install(&source, vec![Action::Continue(continuation)]).expect("it fits");
    vm.invoke(func, &[25], &mut NoHost).expect("it runs");
    let counters = target.counters().expect("it counts");
    assert_eq!((counters.calls(), counters.arguments()), (0, Vec::new()));
    assert_eq!(counters.sides(branch).map(|sides| sides.iter().sum()), Some(16));
    assert!(source.counters().is_none());
}

/// Two machines would add to the same words.
#[test]
fn one_machine_runs_a_version_that_counts() {
    let module = Arc::new(parsed(LOOP));
    let func = module.lookup("f").expect("the text has it");
    let body = module.body(func).expect("it has a body");
    let engine = Engine::new(Config::default()).expect("the tests run where native code does");
    let version = engine.counting(&module, func, body).expect("it is compiled");
    let adopt = || {
        let mut vm = Vm::new(&engine, &module, Limits::default(), Options::default())
            .expect("it is instantiated");
        vm.adopt(&version, Vec::new())
    };
    assert_eq!(adopt(), Ok(()));
    assert_eq!(adopt(), Err(LinkError::Claimed));
}

#[test]
fn profiles_of_several_runs_add_up() {
    let module = parsed(LOOP);
    let program = Program::new(&module);
    let func = module.lookup("f").expect("the text has it");
    let run = |rounds: &[u64]| {
        let mut machine = machine(&program, FUEL, TraceLevel::Off);
        for rounds in rounds {
            machine.invoke(func, &[*rounds], &mut NoHost, &mut NoObserver);
        }
        Profile::collect(&module, &machine)
    };
    let mut sum = run(&[5]);
    sum.add(&run(&[7, 5]));
    assert_eq!(sum, run(&[5, 7, 5]));
    // A function that an exit alone entered, and that called through a table.
    let mut entered = sum.clone();
    let profile = entered.functions.get_mut(&func).expect("it ran");
    *profile = FunctionProfile { targets: profile.targets.clone(), ..FunctionProfile::default() };
    entered.add(&sum);
    assert!(entered.functions[&func].values.is_empty(), "a load may have varied there");
    let mut none = Profile::default();
    none.add(&sum);
    none.add(&Profile::default());
    assert_eq!(none, sum);
    let mut huge = sum.clone();
    huge.functions.values_mut().for_each(|profile| profile.calls = u64::MAX);
    huge.add(&sum);
    assert_eq!(huge.functions[&func].calls, u64::MAX);
}

/// The fast loop hands a run over to the exact loop at a call of a function without fast code.
#[test]
fn calls_of_functions_without_fast_code_count_once() {
    // More values than the window of a frame.
    let many: String = (0..65_200).map(|n| format!("  %c{n} = const.i32 {n}\n")).collect();
    let branch = "  %always = const.i32 1\n  br_if %always, out, many\nmany:\n";
    let code = format!("entry:\n{branch}{many}  jump out\nout:\n");
    let text = LOOP.replacen("entry:\n", &code, 1);
    let module = parsed(&text);
    let func = module.lookup("f").expect("the text has it");
    let [exact, fast] = both(&module, &Program::new(&module), func, &[150], FUEL);
    let calls: Vec<u64> =
        fast.functions[&func].targets.values().map(|t| t.targets[0].calls).collect();
    assert_eq!(calls, [150]);
    assert_eq!(exact, fast);
}

/// A version that is added later counts, too, and apart from the others.
#[test]
fn versions_count_apart() {
    let module = parsed(LOOP);
    let func = module.lookup("f").expect("the text has it");
    let body = module.body(func).expect("it has a body");
    let mut machine = machine(&Program::new(&module), FUEL, TraceLevel::Off);
    machine.invoke(func, &[3], &mut NoHost, &mut NoObserver);
    let base = machine.current(func).expect("it has a body");
    let other = machine.add_version(&module, func, body);
    machine.set_current(func, other);
    machine.invoke(func, &[4], &mut NoHost, &mut NoObserver);
    let last = body.all_insts().find(|inst| body.inst(*inst).opcode == Opcode::BrIf);
    let sides = [base, other].map(|version| {
        machine.counts(version).and_then(|counts| counts.sides(last.expect("a branch")))
    });
    assert_eq!(sides, [Some(vec![0, 3]), Some(vec![0, 4])]);
}

#[test]
fn a_machine_that_does_not_count_has_no_profile() {
    let module = parsed(LOOP);
    let mut machine = Machine::new(&module, Limits::default()).expect("it is instantiated");
    let func = module.lookup("f").expect("the text has it");
    machine.invoke(func, &[5], &mut NoHost, &mut NoObserver);
    assert_eq!(Profile::collect(&module, &machine), Profile::default());
    // Counting begins at zero.
    machine.count();
    machine.invoke(func, &[5], &mut NoHost, &mut NoObserver);
    machine.count();
    machine.invoke(func, &[3], &mut NoHost, &mut NoObserver);
    let profile = Profile::collect(&module, &machine);
    assert_eq!(profile.functions[&func].calls, 1);
    assert_eq!(profile.functions[&func].arguments, [Some(3)]);
}

/// A loop of %n rounds that never takes a side, and calls one function through a table.
const LOOP: &str = r#"
global @limit: i32 = 100
table @calls 2 fixed
elem @calls 0 [@one, @two]
func @one(%x: i32) -> i32 {
entry:
  return %x
}
func @two(%x: i32) -> i32 {
entry:
  return %x
}
func @f(%n: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump head(%zero, %zero)
head(%i: i32, %index: i32):
  %limit = global_get.i32 @limit
  %over = ugt.i32 %i, %limit
  br_if %over, slow, rest
slow:
  %seen = call @two(%i)
  jump rest
rest:
  %x = call_indirect @calls (i32) -> i32 [%index](%i)
  %j = add.i32 %i, %one
  %more = ult.i32 %j, %n
  br_if %more, head(%j, %index), done
done:
  return %x
}
"#;

fn parsed(text: &str) -> Module {
    let module = parse_module(text).unwrap_or_else(|errors| panic!("{errors:?}"));
    assert_eq!(ir::verifier::verify_module(&module), []);
    module
}

/// The profile of one call of `@f`.
fn profiled(module: &Module, args: &[u64]) -> Profile {
    let func = module.lookup("f").expect("the text has it");
    let mut machine = machine(&Program::new(module), FUEL, TraceLevel::Off);
    machine.invoke(func, args, &mut NoHost, &mut NoObserver);
    Profile::collect(module, &machine)
}

/// The suggestions for `@f` at places visited ten times or more, each as "place: value expected,
/// worth".
fn suggested(text: &str, args: &[u64], by_worth: bool) -> Vec<String> {
    let module = parsed(text);
    let func = module.lookup("f").expect("the text has it");
    let base = module.body(func).expect("it has a body");
    let options = SuggestOptions { visits: 10, by_worth, ..SuggestOptions::default() };
    let shown = |suggestion: Suggestion| {
        let Suggestion { assumption, observed, worth, .. } = suggestion;
        let value = base.value_name(assumption.value).expect("the text names every value");
        format!("{observed}: {value} {}, {worth}", assumption.expected)
    };
    suggest(&module, func, &profiled(&module, args), &options).into_iter().map(shown).collect()
}

#[test]
fn sides_never_taken_and_single_targets_are_suggested() {
    let both =
        ["call of one target: index is 0x0, 200", "branch side never taken: over is 0x0, 150"];
    assert_eq!(suggested(LOOP, &[50], true), both);
    // In the order of the text.
    assert_eq!(suggested(LOOP, &[50], false), [both[1], both[0]]);
    // Too few visits; and a loop that takes the side.
    assert_eq!(suggested(LOOP, &[9], true), [""; 0]);
    let taken = ["call of one target: index is 0x0, 2000"];
    assert_eq!(suggested(LOOP, &[500], true), taken);
}

#[test]
fn a_reference_of_the_host_is_not_suggested() {
    let text = "func @f(%x: externref) -> i32 {\nentry:\n  %a = ref_is_null.externref %x\n  \
        %b = ref_is_null.externref %x\n  %c = ref_is_null.externref %x\n  \
        %d = add.i32 %a, %b\n  %e = add.i32 %d, %c\n  return %e\n}\n";
    let module = parsed(text);
    let func = module.lookup("f").expect("the text has it");
    let suggestions = |bits: u64| {
        let arguments = vec![Some(bits)];
        let one = FunctionProfile { calls: 5000, arguments, ..FunctionProfile::default() };
        let profile = Profile { functions: BTreeMap::from([(func, one)]) };
        suggest(&module, func, &profile, &SuggestOptions::default()).len()
    };
    assert_eq!([suggestions(0), suggestions(5)], [1, 0]);
}

#[test]
fn an_index_decides_nothing_where_the_table_may_change() {
    let setter = "func @set(%i: i32) {\nentry:\n  %f = const.funcref @two\n  table_set.funcref @calls, %i, %f\n  return\n}\n";
    let open = LOOP.replace(" fixed", "");
    let written = format!("{open}{setter}");
    assert_eq!(suggested(&written, &[50], true), ["branch side never taken: over is 0x0, 150"]);
    let all =
        ["branch side never taken: over is 0x0, 150", "call of one target: index is 0x0, -50"];
    assert_eq!(suggested(&written, &[50], false), all);
    let exported = format!("{open}export \"t\" table @calls\n");
    assert_eq!(suggested(&exported, &[50], false), all);
}

/// A loop over constant memory, an argument that never changes, and a condition that is no truth
/// value.
const CALLS: &str = r#"
memory @m 1
data @m 0 "\07\00\00\00"
func @main(%n: i32) -> i32 {
entry:
  %one = const.i32 1
  %six = const.i32 6
  jump head(%n)
head(%i: i32):
  %x = call @f(%i, %six)
  %j = sub.i32 %i, %one
  br_if %j, head(%j), done
done:
  return %x
}
func @f(%i: i32, %k: i32) -> i32 {
entry:
  %zero = const.i32 0
  %two = const.i32 2
  %l = load.i32 @m[%zero]
  %a = mul.i32 %l, %two
  %b = add.i32 %a, %two
  %c = add.i32 %b, %l
  %d = mul.i32 %k, %two
  %e = add.i32 %d, %two
  %g = xor.i32 %e, %d
  %h = add.i32 %c, %i
  %r = add.i32 %g, %h
  br_if %i, some, none
some:
  switch %k, [none, none, none, none, none, none, some2], default none
some2:
  return %r
none:
  return %zero
}
"#;

#[test]
fn constant_arguments_and_loads_are_suggested_by_what_they_fold() {
    let module = parsed(CALLS);
    let main = module.lookup("main").expect("the text has it");
    let func = module.lookup("f").expect("the text has it");
    let base = module.body(func).expect("it has a body");
    let mut machine = machine(&Program::new(&module), FUEL, TraceLevel::Off);
    machine.invoke(main, &[100], &mut NoHost, &mut NoObserver);
    let profile = Profile::collect(&module, &machine);
    let options = SuggestOptions { visits: 10, ..SuggestOptions::default() };
    let found = suggest(&module, func, &profile, &options);
    let named = |s: &Suggestion| {
        (
            base.value_name(s.assumption.value).expect("named"),
            s.assumption.expected,
            s.observed,
            s.worth,
        )
    };
    let (is, argument) = (Expected::Is, Observed::Argument);
    assert_eq!(
        found.iter().map(named).collect::<Vec<_>>(),
        [
            // `d`, `e`, `g` and the `switch`, less the test.
            ("k", is(6), argument, 200),
            // `a`, `b` and `c`, less the test.
            ("l", is(7), Observed::Load, 100),
        ]
    );
    // The branches join nothing that was visited, so that each saves less than its test costs.
    let options = SuggestOptions { by_worth: false, ..options };
    let found = suggest(&module, func, &profile, &options);
    let never = Observed::NeverTaken { side: 1 };
    assert_eq!(
        found.iter().map(named).collect::<Vec<_>>(),
        [("i", Expected::IsNot(0), never, -100), ("k", is(6), Observed::OneSide { side: 6 }, -100),]
    );
    let most = SuggestOptions { most: 1, ..options };
    assert_eq!(suggest(&module, func, &profile, &most), found[..1]);
}

#[test]
fn a_file_gives_the_profile_that_was_written() {
    for name in ["vm", "calls", "words"] {
        let module = kernel(name);
        let entry = module.lookup("_start").expect("it is exported");
        let [profile, _] = both(&module, &Program::new(&module), entry, &[], FUEL);
        assert!(profile.functions.len() > 5, "{name}");
        let text = profile.write(&module);
        assert_eq!(Profile::read(&text, &module), Ok(profile), "{name}");
    }
}

#[test]
fn visits_of_blocks_follow_from_sides_and_jumps() {
    let module = parsed(LOOP);
    let func = module.lookup("f").expect("the text has it");
    let base = module.body(func).expect("it has a body");
    let profile = profiled(&module, &[150]);
    let visits = profile.functions[&func].visits(base);
    let visits: Vec<(&str, u64)> = base
        .blocks()
        .map(|block| {
            let name = base.block_name(block).expect("the text names every block");
            (name, visits[block.as_u32() as usize])
        })
        .collect();
    let expected = [("entry", 1), ("head", 150), ("slow", 49), ("rest", 150), ("done", 1)];
    assert_eq!(visits, expected);
    // Jumps in a circle, which a run enters and never leaves.
    let text = "func @f() {\nentry:\n  jump a\na:\n  jump b\nb:\n  jump a\n}\n";
    let module = parsed(text);
    let func = module.lookup("f").expect("the text has it");
    let base = module.body(func).expect("it has a body");
    let visits = profiled(&module, &[]).functions[&func].visits(base);
    assert_eq!(visits, [1, 1, 0]);
}

/// A change of a file, and the message that follows.
fn refused(from: &str, to: &str, message: &str) {
    let module = parsed(LOOP);
    let text = profiled(&module, &[50]).write(&module);
    assert!(text.contains(from), "{from} is not in {text}");
    let error = Profile::read(&text.replacen(from, to, 1), &module).expect_err(to);
    assert_eq!(error.to_string(), message, "{from} to {to}");
}

#[test]
fn files_that_do_not_fit_are_refused_by_name() {
    let module = parsed(LOOP);
    let text = profiled(&module, &[50]).write(&module);
    let error = Profile::read(&text, &parsed(&LOOP.replace("ugt", "ult"))).expect_err("it differs");
    assert_eq!(error.to_string(), "the profile is of another module: the body of f differs");
    let format = format!("\"profile\":{FORMAT}");
    refused(&format, "\"profile\":2", "the profile has format 2; this program reads format 1");
    let other = "the profile is of another module: ";
    refused("\"func\":0", "\"func\":9", &format!("{other}this one has no function one"));
    refused("\"func\":0", "\"func\":4294967295", &format!("{other}this one has no function one"));
    let f = |what: &str| format!("f: {what}");
    refused("\"at\":5,", "\"at\":50,", &f("it has no instruction 50"));
    refused("\"at\":5,", "\"at\":4,", &f("instruction 4: ugt is no branch"));
    refused("\"at\":5,", "\"at\":11,", &f("instruction 11: it occurs twice"));
    refused("[0,50]", "[0,50,1]", &f("instruction 5: 3 sides for 2 targets"));
    refused("[0,50]", "[0]", &f("instruction 5: 1 sides for 2 targets"));
    refused("\"at\":8", "\"at\":9", &f("instruction 9: add is no indirect call"));
    refused(
        "\"index\":0",
        "\"index\":4294967296",
        &f("instruction 8: 0x100000000 does not fit i32"),
    );
    refused(
        "\"func\":0,\"calls\":50",
        "\"func\":7,\"calls\":50",
        &f("instruction 8: the module has no function 7"),
    );
    refused("[\"0x32\"]", "[]", &f("0 arguments for 1 parameters"));
    refused("[\"0x32\"]", "[\"0x100000000\"]", &f("0x100000000 does not fit i32"));
    refused("\"at\":3,", "\"at\":4,", &f("instruction 4: ugt is no load"));
    refused("\"0x64\"", "\"0x6400000000\"", &f("instruction 3: 0x6400000000 does not fit i32"));
}

#[test]
fn text_that_is_no_profile_is_refused() {
    let module = parsed(LOOP);
    let good = profiled(&module, &[50]).write(&module);
    let twice = format!("{good}{good}");
    let deep = "[".repeat(100_000);
    let line = good.lines().nth(1).expect("a function");
    let doubled = good.replacen(line, &format!("{line}\n{line}"), 1);
    for text in ["", "{}", "[]", "\u{0}", &deep, &twice, &good[..good.len() / 2], &doubled[..]] {
        let error = Profile::read(text, &module).expect_err(text).to_string();
        assert!(error.starts_with("it is not a profile: ") || error.contains("twice"), "{error}");
        assert!(error.len() < 1_000, "{error}");
    }
    let unknown = good.replacen("\"calls\":", "\"calls\":1,\"more\":", 1);
    assert!(Profile::read(&unknown, &module).is_err());
    let signed = good.replacen("\"0x64\"", "\"0x+64\"", 1);
    assert!(Profile::read(&signed, &module).is_err());
}

/// A profile that lies makes suggestions that `speculate` accepts.
#[test]
fn suggestions_of_any_profile_are_assumptions_that_fit() {
    let mut made = 0;
    for (seed, module, _, _) in programs().take(60) {
        let mut prng = Prng::new(seed);
        let mut profile = Profile::default();
        for (func, base) in module.defined() {
            profile.functions.insert(func, lie(&module, base, &mut prng));
        }
        let profile = Profile::read(&profile.write(&module), &module).expect("it fits");
        for (func, base) in module.defined() {
            for by_worth in [false, true] {
                let options = SuggestOptions { visits: 1, by_worth, most: 40 };
                let found = suggest(&module, func, &profile, &options);
                let assume: Vec<_> = found.iter().map(|suggestion| suggestion.assumption).collect();
                let pipeline = passes::parse("sccp").expect("a pass");
                let plan = osier::speculate::Plan::new(&assume, &pipeline);
                let mut tree = osier::osr::VersionTree::new(base.clone());
                let root = osier::osr::VersionTree::BASE;
                let result = osier::speculate::speculate(&module, &mut tree, root, &plan);
                result.unwrap_or_else(|error| panic!("program {seed}: {error}"));
                made += assume.len();
            }
        }
    }
    assert!(made > 500, "{made} assumptions");
}

/// A profile with figures out of the blue.
fn lie(module: &Module, base: &ir::Function, prng: &mut Prng) -> FunctionProfile {
    let params = base.arguments();
    let mut bits = |ty: ir::Type| prng.next_u64() & ty.mask();
    let mut profile = FunctionProfile {
        calls: u64::MAX,
        arguments: params.iter().map(|arg| Some(bits(base.value_type(*arg)))).collect(),
        ..FunctionProfile::default()
    };
    for inst in base.all_insts() {
        let data = base.inst(inst);
        match data.opcode.shape() {
            Shape::BrIf | Shape::Switch => {
                let mut sides = vec![0; data.targets.len()];
                sides[bits(ir::Type::I32) as usize % data.targets.len()] = u64::MAX;
                profile.branches.insert(inst, sides);
            }
            Shape::CallIndirect => {
                let func = module.funcs.keys().next().expect("it has a function");
                let target = CallTarget { index: bits(ir::Type::I32), func, calls: 1 };
                let targets = CallTargets { targets: vec![target], others: 0 };
                profile.targets.insert(inst, targets);
            }
            Shape::Load(_) | Shape::GlobalGet => {
                let ty = base.value_type(data.result().expect("it has a result"));
                profile.values.insert(inst, bits(ty));
            }
            _ => {}
        }
    }
    profile
}
