//! The two tiers of the interpreter. The fast tier executes runs without an observer in a loop of
//! its own. It must end as the exact tier does, with any amount of fuel.

use interp::{
    Limits, Machine, NoHost, NoObserver, Options, Outcome, PauseAtMarks, Program, Run, TraceLevel,
};
use ir::text::parse_module;
use ir::{Func, Function, Inst, Module};
use osier::{Format, load};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use verify::generate::{Weights, generate};
use verify::prng::Prng;
use wasm::wasi::Wasi;

/// The end of a run, with the fuel and memory it left.
#[derive(PartialEq, Debug)]
struct End {
    outcome: Outcome,
    fuel: u64,
    memory: u64,
    computed: u64,
}

/// With a trace the exact tier executes the whole run.
const TIERS: [TraceLevel; 2] = [TraceLevel::Digest, TraceLevel::Off];

fn machine(program: &Program, fuel: u64, trace: TraceLevel) -> Machine {
    let limits = Limits { fuel, ..Limits::default() };
    Machine::with_options(program, limits, Options { trace, ..Options::traced() })
        .expect("it is instantiated")
}

fn end(machine: &Machine, outcome: Outcome) -> End {
    End {
        outcome,
        fuel: machine.fuel(),
        memory: machine.memory_digest(),
        computed: machine.computed_memory_digest(),
    }
}

/// Runs a function in both tiers, asserts that both end alike, and returns that end.
fn both(program: &Program, func: Func, args: &[u64], fuel: u64, what: &str) -> End {
    let ends = TIERS.map(|trace| {
        let mut machine = machine(program, fuel, trace);
        let mut out = Vec::new();
        let mut wasi = Wasi::new(
            vec!["program".to_owned(), "3".to_owned()],
            &[][..],
            &mut out,
            std::io::sink(),
        );
        let outcome = machine.invoke(func, args, &mut wasi, &mut NoObserver);
        drop(wasi);
        (end(&machine, outcome), out)
    });
    let [exact, fast] = ends;
    assert_eq!(exact, fast, "{what} with fuel {fuel}");
    fast.0
}

/// Programs that cover all constructs of the generator, with arguments.
fn programs() -> impl Iterator<Item = (u64, Module, Func, Vec<Vec<u64>>)> {
    (0..150).map(|seed| {
        let made = generate(seed, 100, &Weights::default());
        (seed, made.module, made.main, made.arguments)
    })
}

/// Runs a function to its end, with pauses at counted calls and blocks: at the first visit of each,
/// and at random visits from then on. Returns the end, the number of pauses, and the calls counted
/// by function.
fn with_pauses(
    module: &Module,
    program: &Program,
    func: Func,
    args: &[u64],
    fuel: u64,
    trace: TraceLevel,
    prng: &mut Prng,
) -> (End, u64, Vec<u64>) {
    let mut machine = machine(program, fuel, trace);
    machine.count_visits();
    let heads = |body: &Function| -> Vec<Inst> {
        body.blocks().map(|block| body.first_inst(block)).collect()
    };
    for (func, body) in module.defined() {
        let version = machine.current(func).expect("it has a body");
        machine.count_blocks(version, heads(body).into_iter().map(|inst| (inst, 1)));
    }
    let asked = AtomicU32::new(0);
    machine.start(func, args);
    let mut pauses = 0;
    let outcome = loop {
        match machine.run_to_visit(&mut NoHost, [&asked; 2]) {
            Run::Done(outcome) => break outcome,
            Run::Paused => {
                pauses += 1;
                let view = machine.view().expect("the run is paused");
                let (version, inst) = (view.version(), view.inst());
                assert!(machine.is_due() || asked.load(Ordering::Relaxed) != 0);
                machine.pause_after(version, inst, 1 + prng.below(4));
                machine.show_live_values();
                // Every eighth pause requests another pause at the next visit.
                asked.store(u32::from(prng.below(8) == 0), Ordering::Relaxed);
            }
            other => panic!("a generated program does not end with {other:?}"),
        }
    };
    let calls = module.defined().map(|(func, body)| {
        let version = machine.current(func).expect("it has a body");
        machine.visits(version, body.first_inst(body.entry()))
    });
    let calls = calls.collect();
    (end(&machine, outcome), pauses, calls)
}

/// Pauses at counted visits change nothing, in either tier and with any amount of fuel, and both
/// tiers count the same calls.
#[test]
fn a_run_without_fuel_stops_at_the_same_place_when_visits_count() {
    let mut paused = 0;
    for (seed, module, entry, arguments) in programs() {
        let program = Program::new(&module);
        let mut prng = Prng::new(seed);
        for args in arguments {
            let what = format!("program {seed} with {args:x?}");
            let used = (1 << 20) - both(&program, entry, &args, 1 << 20, &what).fuel;
            for round in 0..6 {
                let fuel = if round == 0 { 1 << 20 } else { prng.below(used as u32 + 1).into() };
                let wanted = both(&program, entry, &args, fuel, &what);
                let [exact, fast] = TIERS.map(|trace| {
                    with_pauses(&module, &program, entry, &args, fuel, trace, &mut prng)
                });
                assert_eq!((&exact.0, &fast.0), (&wanted, &wanted), "{what} with fuel {fuel}");
                // A call without fuel for its first instruction is counted in the fast tier alone.
                if !matches!(wanted.outcome, Outcome::OutOfFuel(_)) {
                    assert_eq!(exact.2, fast.2, "{what} with fuel {fuel}: calls");
                }
                paused += fast.1;
            }
        }
    }
    assert!(paused > 10_000, "{paused} pauses");
}

#[test]
fn generated_programs_end_alike() {
    let (mut compared, mut short) = (0, 0);
    for (seed, module, entry, arguments) in programs() {
        let program = Program::new(&module);
        let mut prng = Prng::new(seed);
        for args in arguments {
            let what = format!("program {seed} with {args:x?}");
            let used = (1 << 20) - both(&program, entry, &args, 1 << 20, &what).fuel;
            compared += 1;
            for _ in 0..20 {
                let fuel = prng.next_u64() % (used + 1);
                let end = both(&program, entry, &args, fuel, &what);
                short += u64::from(matches!(end.outcome, Outcome::OutOfFuel(_)));
            }
        }
    }
    assert!(compared > 500 && short > 5_000, "{compared} runs, {short} cut short");
}

#[test]
fn kernels_end_alike_with_any_fuel() {
    for name in ["vm", "calls", "sort", "nbody.o2", "scan", "words.o2", "mixed"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/corpus/{name}.wasm"));
        let bytes = std::fs::read(file).expect("it is in the repository");
        let module = load(Format::Wasm, &bytes).expect("it is imported");
        let entry = module.lookup("_start").expect("it is exported");
        let program = Program::new(&module);
        let used = u64::MAX - both(&program, entry, &[], u64::MAX, name).fuel;
        // Every amount near the start and near the end, so that the fuel runs out at every
        // instruction of a group.
        for fuel in (0..300).chain(used.saturating_sub(60)..=used + 1) {
            both(&program, entry, &[], fuel, name);
        }
    }
}

/// An observer watches a run for a while and then no longer.
#[test]
fn a_run_may_change_tiers() {
    let mut resumed = 0;
    for (seed, module, entry, arguments) in programs() {
        let program = Program::new(&module);
        for args in arguments {
            let whole = both(&program, entry, &args, 1 << 20, "whole");
            let mut machine = machine(&program, 1 << 20, TraceLevel::Off);
            let version = machine.current(entry).expect("it has a body");
            let body = module.body(entry).expect("it has a body");
            let insts: Vec<_> = body.all_insts().collect();
            machine.mark(version, [insts[seed as usize % insts.len()]]);
            machine.start(entry, &args);
            let mut host = interp::NoHost;
            let outcome = match machine.run(&mut host, &mut PauseAtMarks) {
                Run::Done(outcome) => outcome,
                Run::Called { .. } => panic!("nothing runs elsewhere"),
                Run::Failed { reason } => machine.fail(reason),
                Run::Paused => {
                    resumed += 1;
                    match machine.run(&mut host, &mut NoObserver) {
                        Run::Done(outcome) => outcome,
                        stopped => panic!("nothing pauses the run: {stopped:?}"),
                    }
                }
            };
            assert_eq!(end(&machine, outcome), whole, "program {seed} with {args:x?}");
        }
    }
    assert!(resumed > 100, "{resumed} runs went on in the other tier");
}

/// Runs `@f` of a text in both tiers with every amount of fuel up to the amount it needs, and
/// returns its results.
fn results(text: &str, args: &[u64]) -> Vec<u64> {
    let module = parse_module(text).unwrap_or_else(|errors| panic!("{errors:?}"));
    let func = module.lookup("f").expect("the text has it");
    let program = Program::new(&module);
    let whole = both(&program, func, args, 1 << 20, text);
    for fuel in 0..=(1 << 20) - whole.fuel {
        both(&program, func, args, fuel, text);
    }
    match whole.outcome {
        Outcome::Returned(values) => values,
        outcome => panic!("{outcome:?}"),
    }
}

/// Two parameters swap in every iteration, so neither may take the slot of the other parameter.
#[test]
fn parameters_that_swap() {
    let text = r"
func @f(%n: i32, %x: i32, %y: i32) -> (i32, i32) {
entry:
  jump head(%n, %x, %y)
head(%i: i32, %a: i32, %b: i32):
  %one = const.i32 1
  %j = sub.i32 %i, %one
  %c = add.i32 %a, %one
  br_if %j, head(%j, %b, %c), done
done:
  return %a, %b
}";
    assert_eq!(results(text, &[4, 10, 20]), [21, 12]);
}

/// One parameter is read after the definition of the argument passed to it, and one after the loop.
#[test]
fn parameters_read_late() {
    let text = r"
func @f(%n: i32) -> (i32, i32, i32) {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump head(%zero, %zero, %one)
head(%i: i32, %acc: i32, %k: i32):
  %j = add.i32 %i, %one
  %l = mul.i32 %k, %j
  %sum = add.i32 %acc, %i
  %more = ult.i32 %j, %n
  br_if %more, head(%j, %sum, %l), done
done:
  return %i, %sum, %k
}";
    assert_eq!(results(text, &[5]), [4, 10, 24]);
}

/// An argument is passed on and also read after the loop, and one is passed to two parameters.
#[test]
fn arguments_read_behind_the_loop() {
    let text = r"
func @f(%n: i32) -> (i32, i32, i32) {
entry:
  %zero = const.i32 0
  jump head(%zero, %zero, %zero)
head(%i: i32, %a: i32, %b: i32):
  %one = const.i32 1
  %j = add.i32 %i, %one
  %both = mul.i32 %j, %j
  %c = sub.i32 %a, %b
  %more = ult.i32 %j, %n
  br_if %more, head(%j, %both, %both), done(%c)
done(%d: i32):
  %r = add.i32 %both, %d
  return %j, %both, %r
}";
    assert_eq!(results(text, &[6]), [6, 36, 36]);
}

/// Loops that end with an addition, a comparison of the sum on either side, and a branch on it.
#[test]
fn steps_of_loops() {
    let mut returned = 0;
    for name in ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"] {
        for operands in ["%j, %limit", "%limit, %j", "%j, %j"] {
            let text = format!(
                r"
func @f(%first: i32, %limit: i32, %step: i32) -> i32 {{
entry:
  jump head(%first)
head(%i: i32):
  %j = add.i32 %i, %step
  %more = {name}.i32 {operands}
  br_if %more, head(%j), done
done:
  return %j
}}"
            );
            let program =
                Program::new(&parse_module(&text).unwrap_or_else(|errors| panic!("{errors:?}")));
            let func = program.declarations().lookup("f").expect("the text has it");
            for (first, limit, step) in
                [(0, 9, 3), (9, 0, -3), (5, 5, 0), (-7, 2, 3), (i32::MAX, 1, 1), (i32::MIN, 4, -1)]
            {
                let args = [first, limit, step].map(|number: i32| u64::from(number as u32));
                for fuel in 0..20 {
                    let end = both(&program, func, &args, fuel, &text);
                    returned += u64::from(matches!(end.outcome, Outcome::Returned(_)));
                }
            }
        }
    }
    assert!(returned > 1_000, "{returned} runs returned");
}

/// A loop that counts down to zero.
#[test]
fn steps_to_zero() {
    let text = r"
func @f(%n: i32) -> (i32, i32) {
entry:
  %zero = const.i32 0
  jump head(%n, %zero)
head(%i: i32, %acc: i32):
  %sum = add.i32 %acc, %i
  %less = const.i32 -1
  %j = add.i32 %less, %i
  br_if %j, head(%j, %sum), done
done:
  return %j, %sum
}";
    assert_eq!(results(text, &[9]), [0, 45]);
}

/// Instructions that only the exact tier executes read and define the parameters of a loop.
#[test]
fn instructions_left_to_the_exact_loop() {
    let text = r"
memory @small 1 9
memory @far 1 9
func @f(%n: i32) -> (i32, i32, i32) {
entry:
  %zero = const.i32 0
  jump head(%zero, %n, %zero)
head(%i: i32, %last: i32, %sum: i32):
  %one = const.i32 1
  %j = add.i32 %i, %one
  store.i32 @far[%j], %last
  %size = memory_grow @small, %j
  %next = add.i32 %sum, %size
  %more = ult.i32 %j, %n
  br_if %more, head(%j, %size, %next), done
done:
  %read = load.i32 @far[%j]
  return %size, %next, %read
}";
    // Pages: 1, 2, 4; four more exceed the limit.
    assert_eq!(results(text, &[3]), [4, 7, 2]);
    assert_eq!(results(text, &[4]), [u32::MAX.into(), 6, 4]);
}

/// A loop calls, through a loop of another function, a function too large for fast code. From then
/// on the exact tier runs all activations, and must find the values in the slots they shared.
#[test]
fn a_callee_without_fast_code() {
    let mut text = r"
func @f(%n: i32) -> i32 {
entry:
  %zero = const.i32 0
  jump head(%zero, %zero)
head(%i: i32, %acc: i32):
  %one = const.i32 1
  %j = add.i32 %i, %one
  %got = call @middle(%j)
  %sum = add.i32 %acc, %got
  %more = ult.i32 %j, %n
  br_if %more, head(%j, %sum), done(%sum)
done(%r: i32):
  return %r
}
func @middle(%n: i32) -> i32 {
entry:
  jump head(%n, %n)
head(%i: i32, %acc: i32):
  %one = const.i32 1
  %sum = add.i32 %acc, %i
  %j = sub.i32 %i, %one
  %five = const.i32 5
  %large = eq.i32 %sum, %five
  br_if %large, exact, latch(%sum)
exact:
  %got = call @large(%sum)
  jump latch(%got)
latch(%next: i32):
  br_if %j, head(%j, %next), done
done:
  return %next
}
func @large(%x: i32) -> i32 {
entry:
  %v0 = add.i32 %x, %x
"
    .to_owned();
    let length = 1 << 16;
    for number in 1..length {
        text.push_str(&format!("  %v{number} = clz.i32 %x\n"));
    }
    text.push_str("  return %v0\n}\n");
    let module = parse_module(&text).unwrap_or_else(|errors| panic!("{errors:?}"));
    let func = module.lookup("f").expect("the text has it");
    let program = Program::new(&module);
    // 2, then 10 (5 doubled, in the middle of both loops), 9 and 14.
    let whole = both(&program, func, &[4], 1 << 20, "a large callee");
    assert_eq!(whole.outcome, Outcome::Returned(vec![35]));
    let used = (1 << 20) - whole.fuel;
    assert!(used > length);
    for fuel in (0..100).chain(used - 100..used) {
        both(&program, func, &[4], fuel, "a large callee");
    }
}

/// `osr_test` gives 0 in both tiers. An `osr_exit` ends the run in both, also inside calls and with
/// values in shared slots.
#[test]
fn osr_points() {
    let text = r"
func @f(%n: i32, %x: i32) -> i32 {
entry:
  %zero = const.i32 0
  jump head(%zero, %x)
head(%i: i32, %a: i32):
  %fire = osr_test 0
  %sum = add.i32 %fire, %a
  %r = call @g(%i, %n)
  %one = const.i32 1
  %j = add.i32 %i, %one
  %b = add.i32 %sum, %r
  jump head(%j, %b)
}
func @g(%i: i32, %n: i32) -> i32 {
entry:
  %more = ult.i32 %i, %n
  br_if %more, on, leaves(%n, %i)
on:
  %two = const.i32 2
  %twice = mul.i32 %i, %two
  return %twice
leaves(%a: i32, %b: i32):
  %seven = const.i64 7
  %product = mul.i32 %a, %b
  osr_exit 5(%b, %product, %seven, %a)
}
";
    let module = parse_module(text).unwrap_or_else(|errors| panic!("{errors:?}"));
    let func = module.lookup("f").expect("the text has it");
    let program = Program::new(&module);
    let whole = both(&program, func, &[6, 1], 1 << 20, text);
    assert!(
        matches!(&whole.outcome, Outcome::Left { values, .. } if *values == [6, 36, 7, 6]),
        "{}",
        whole.outcome
    );
    for fuel in 0..=(1 << 20) - whole.fuel {
        both(&program, func, &[6, 1], fuel, text);
    }
}

/// A call may list one value more often than a frame has slots. The fast tier has no number for so
/// many values.
#[test]
fn a_call_may_have_more_arguments_than_a_frame() {
    let (params, args) = (vec!["i32"; 70_000], vec!["%z"; 70_000]);
    let text = format!(
        "import func @many \"host\" \"many\" ({})\nexport \"main\" @f\nfunc @f(%z: i32) -> i32 {{\n\
         entry:\n  %c = eqz.i32 %z\n  br_if %c, none, some\nsome:\n  call @many({})\n  \
         jump none\nnone:\n  return %c\n}}",
        params.join(", "),
        args.join(", ")
    );
    let module = parse_module(&text).unwrap_or_else(|errors| panic!("{}", errors[0]));
    let func = module.lookup("main").expect("the text has it");
    let end = both(&Program::new(&module), func, &[0], 100, "many arguments");
    assert_eq!(end.outcome, Outcome::Returned(vec![1]));
}
