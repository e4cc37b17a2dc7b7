//! A continuation ends exactly as a run that fires the entry. The tests compare the two at every
//! entry of random programs and of kernels. Versions with OSR points end as the plain versions do,
//! and their side exits are kept.

use check::CheckedEntry;
use interp::{
    Control, Host, Limits, Machine, NoObserver, Observer, Options, Outcome, PauseAtMarks,
    Program as Code, Run, Scope, TraceLevel, View,
};
use ir::module::FuncDecl;
use ir::verifier::verify_function;
use ir::{Func, Function, Inst, Module, Point, Value};
use osier::driver::{NoObserver as Unobserved, Vigilance, derive};
use osier::{Format, load};
use osr::{Level, VersionPair, synthesize};
use resume::{
    Condition, ContinuationError, Instrumented, PointSpec, Truth, continuation,
    continuation_with_points, instrument,
};
use std::collections::BTreeMap;
use std::path::Path;
use transition::VersionKey;
use transition::mapping::{Entry, Mapping};
use verify::generate::{Weights, generate};
use verify::prng::Prng;
use wasm::wasi::Wasi;

/// How much was compared.
#[derive(Default, Debug)]
struct Counts {
    entries: u64,
    transitions: u64,
    in_loops: u64,
    replaying: u64,
    trapped: u64,
    left: u64,
    in_calls: u64,
}

/// The entries from one version of a function to another. The continuation of each entry is a
/// function of the module.
struct Way {
    func: Func,
    source: Function,
    target: Function,
    /// By point of the source version: the entry and its continuation.
    entries: BTreeMap<Point, (Entry, Func)>,
}

/// Adds the continuations of all entries of a mapping to a module. With `armed`, the continuations
/// have the OSR points of the target version.
fn way(
    module: &mut Module,
    of: Func,
    source: &Function,
    target: &Function,
    mapping: &Mapping,
    armed: Option<&Instrumented>,
    counts: &mut Counts,
) -> Way {
    let mut entries = BTreeMap::new();
    let landed = armed.map_or(target, |a| &a.function);
    let (from, to) = (VersionKey::of(source), VersionKey::of(target));
    for (point, plain) in mapping.entries() {
        let name = format!("continuation {}", module.funcs.len());
        let sealed = CheckedEntry::unproved(from, to, point, plain);
        let made = match armed {
            None => continuation(&name, source, &[target], sealed),
            Some(armed) => continuation_with_points(&name, source, target, armed, sealed),
        };
        let entry = armed.map_or(Some(plain.clone()), |a| a.entry(plain));
        let Some(entry) = entry else {
            assert_eq!(
                made.err(),
                Some(ContinuationError::NoSuchPoint(plain.target)),
                "it was left out"
            );
            continue;
        };
        let made = made.unwrap_or_else(|e| panic!("{name} at {point:?}: {e}"));
        check_origins(&made, landed);
        let sig = module.sig(made.function.signature());
        let func =
            module.funcs.push(FuncDecl { name, sig, import: None, effect: Default::default() });
        module.define(func, made.function);
        let findings = verify_function(module, module.body(func).expect("just added"));
        assert!(findings.is_empty(), "{}", findings[0]);
        counts.entries += 1;
        entries.insert(point, (entry, func));
    }
    Way { func: of, source: source.clone(), target: landed.clone(), entries }
}

/// Asserts that each copied instruction is the same operation, on copies of the same operands.
fn check_origins(made: &resume::Continuation, target: &Function) {
    let (function, origins) = (&made.function, &made.origins);
    for inst in function.all_insts() {
        let Some(of) = origins.inst(inst) else { continue };
        let (a, b) = (function.inst(inst), target.inst(of));
        let folded = a.targets.len() < b.targets.len();
        assert!(
            folded
                || (a.opcode, a.ty, a.imm, a.args.len()) == (b.opcode, b.ty, b.imm, b.args.len())
        );
        for (x, y) in a.args.iter().zip(&b.args) {
            let is_given = origins.value(*x).is_none()
                && made.provided.iter().any(|(v, given)| (v, given) == (y, x));
            assert!(is_given || origins.value(*x) == Some(*y), "{x} for {y} in {inst}");
        }
    }
}

/// The end of a run, or of the activation that was innermost at its start.
#[derive(Debug)]
enum End {
    Whole(Outcome),
    Returned(Vec<u64>),
}

/// Pauses as soon as fewer activations than this are left.
struct AtReturn(usize);

impl Observer for AtReturn {
    const SCOPE: Scope = Scope::Everything;

    fn before(&mut self, view: &View<'_>, _inst: Inst) -> Control {
        if view.depth() < self.0 { Control::Pause } else { Control::Continue }
    }
}

/// Runs a machine until its innermost activation returns or the run ends. `body` gives the version
/// of a caller.
fn finish<'f>(
    machine: &mut Machine,
    host: &mut dyn Host,
    body: impl Fn(Func) -> &'f Function,
) -> End {
    let depth = machine.view().expect("a run is under way").depth();
    let run = match depth {
        1 => machine.run(host, &mut NoObserver),
        _ => machine.run(host, &mut AtReturn(depth)),
    };
    if let Run::Done(outcome) = run {
        return End::Whole(outcome);
    }
    let view = machine.view().expect("it is paused in the caller");
    let caller = body(view.func());
    let call = caller.prev_inst(view.inst()).expect("the call stands before");
    End::Returned(caller.inst(call).results.iter().map(|v| view.value(*v)).collect())
}

fn alike(continued: &Outcome, fired: &End) -> bool {
    match (continued, fired) {
        (Outcome::Returned(a), End::Returned(b) | End::Whole(Outcome::Returned(b))) => a == b,
        (
            Outcome::Trapped { kind: a, operand: x, .. },
            End::Whole(Outcome::Trapped { kind: b, operand: y, .. }),
        ) => (a, x) == (b, y),
        (
            Outcome::Left { point: a, values: x, .. },
            End::Whole(Outcome::Left { point: b, values: y, .. }),
        ) => (a, x) == (b, y),
        (Outcome::Exited(a), End::Whole(Outcome::Exited(b))) => a == b,
        (Outcome::OutOfFuel(_), End::Whole(Outcome::OutOfFuel(_))) => true,
        _ => false,
    }
}

/// Bounds on a comparison: visits of one point, transitions in total, and instructions.
#[derive(Clone, Copy)]
struct Effort {
    visits: u32,
    most: u64,
    fuel: u64,
}

fn host() -> Wasi<'static> {
    Wasi::new(vec!["program".to_owned(), "3".to_owned()], &[][..], std::io::sink(), std::io::sink())
}

/// Runs a program in the source version to the points with entries. From each, compares a run that
/// fires the entry with one that calls the continuation.
fn compare(
    module: &Module,
    entry: Func,
    args: &[u64],
    way: &Way,
    effort: Effort,
    counts: &mut Counts,
) {
    let limits = Limits { fuel: effort.fuel, ..Limits::default() };
    let mut machine = Machine::with_options(&Code::new(module), limits, Default::default())
        .expect("it instantiates");
    let [source, target] =
        [&way.source, &way.target].map(|f| machine.add_version(module, way.func, f));
    machine.set_current(way.func, source);
    machine.mark(source, way.entries.keys().map(|p| p.inst()));
    let body = |func: Func| {
        if func == way.func { &way.source } else { module.body(func).expect("it calls") }
    };
    let mut seen: BTreeMap<Point, u32> = BTreeMap::new();
    let (mut running, before) = (host(), counts.transitions);
    machine.start(entry, args);
    while machine.run(&mut running, &mut PauseAtMarks) == Run::Paused
        && counts.transitions - before < effort.most
    {
        let view = machine.view().expect("it is paused");
        let (point, depth) = (Point::before(view.inst()), view.depth());
        let (entry, rest) = &way.entries[&point];
        let values: Vec<u64> = entry.requires.iter().map(|v| view.value(*v)).collect();
        let times = seen.entry(point).or_default();
        *times += 1;
        if *times == effort.visits {
            machine.unmark(source, [point.inst()]);
        }
        let (mut fired, mut continued) = (machine.clone(), machine.clone());
        let [from, to] = [&way.source, &way.target].map(VersionKey::of);
        let sealed = CheckedEntry::unproved(from, to, point, entry);
        fired.fire(target, sealed).expect("the entry is right");
        let expected = finish(&mut fired, &mut host(), body);
        continued.start(*rest, &values);
        let outcome = continued.run(&mut host(), &mut NoObserver);
        let Run::Done(outcome) = outcome else { panic!("nobody pauses it") };
        assert!(alike(&outcome, &expected), "at {point:?} {outcome}, not {expected:?}");
        assert!(
            matches!(outcome, Outcome::OutOfFuel(_)) || continued.same_memory(&fired),
            "memory at {point:?}"
        );
        counts.transitions += 1;
        counts.in_loops += u64::from(*times > 1);
        counts.replaying += u64::from(!entry.replays.is_empty());
        counts.trapped += u64::from(outcome.trap().is_some());
        counts.left += u64::from(matches!(outcome, Outcome::Left { .. }));
        counts.in_calls += u64::from(depth > 1);
    }
}

/// A function and its optimized version, each with the mapping to the other version; `None` if the
/// pipeline changes nothing.
fn versions(module: &Module, func: Func) -> Option<[(Function, Mapping); 2]> {
    let base = module.body(func).expect("it has a body");
    let pipeline = passes::registry::parse("O1").expect("a known pipeline");
    let derived = derive(module, base, &pipeline, Vigilance::Off, &mut Unobserved);
    let pair = VersionPair::new(base, &derived.function, &derived.log).expect("the log replays");
    let synthesis = synthesize(&pair, Level::Avail);
    let before = (base.clone(), synthesis.forward.mapping);
    (!derived.log.is_empty()).then_some([before, (derived.function, synthesis.backward.mapping)])
}

#[test]
fn continuations_of_random_programs_end_as_transitions_do() {
    let mut counts = Counts::default();
    for seed in 0..120 {
        let program = generate(seed, 60, &Weights::default());
        let Some([before, after]) = versions(&program.module, program.main) else { continue };
        for ((source, mapping), (target, _)) in [(&before, &after), (&after, &before)] {
            let mut module = program.module.clone();
            let way = way(&mut module, program.main, source, target, mapping, None, &mut counts);
            let effort = Effort { visits: 3, most: 150, fuel: 2 * program.steps + 1000 };
            for args in program.arguments.iter().take(3) {
                compare(&module, program.main, args, &way, effort, &mut counts);
            }
        }
    }
    assert!(
        counts.entries > 10_000 && counts.transitions > 40_000 && counts.in_loops > 10_000,
        "{counts:?}"
    );
    assert!(counts.replaying > 50 && counts.trapped > 1_000, "{counts:?}");
}

/// A version with an OSR point wherever it has an outgoing entry. A point hands over the values
/// that the entry requires. With a generator, a few points are guards or always exit; the other
/// points check their condition and stay.
fn armed(version: &Function, out: &Mapping, mut prng: Option<&mut Prng>) -> Instrumented {
    let mut specs = Vec::new();
    for (at, entry) in out.entries() {
        let mut condition =
            if specs.len() % 2 == 0 { Condition::Flag } else { Condition::Countdown(100) };
        if let Some(prng) = prng.as_deref_mut() {
            // A guard value must be among the values an incoming entry provides, and these are.
            let integers: Vec<Value> = entry
                .requires
                .iter()
                .copied()
                .filter(|v| version.value_type(*v).is_int())
                .collect();
            match (prng.below(40), integers.get(prng.index(integers.len().max(1))).copied()) {
                (0, _) => condition = Condition::Always,
                (1..4, Some(value)) => {
                    let when = if prng.below(2) == 0 { Truth::Zero } else { Truth::NonZero };
                    condition = Condition::Guard { value, when };
                }
                _ => {}
            }
        }
        specs.push(PointSpec { at, condition, values: entry.requires.clone() });
    }
    instrument(version, &specs).unwrap_or_else(|e| panic!("{e}"))
}

/// The armed points of the target version exit from the continuation as from the version itself.
#[test]
fn continuations_of_armed_versions_exit_as_these_do() {
    let mut counts = Counts::default();
    for seed in 0..60 {
        let program = generate(seed, 60, &Weights::default());
        let Some([before, after]) = versions(&program.module, program.main) else { continue };
        for ((source, mapping), (target, out)) in [(&before, &after), (&after, &before)] {
            let armed = armed(target, out, Some(&mut Prng::new(seed)));
            let mut module = program.module.clone();
            let findings = verify_function(&module, &armed.function);
            assert!(findings.is_empty(), "seed {seed}: {}", findings[0]);
            let way =
                way(&mut module, program.main, source, target, mapping, Some(&armed), &mut counts);
            let effort = Effort { visits: 2, most: 150, fuel: 8 * program.steps + 1000 };
            for args in program.arguments.iter().take(3) {
                compare(&module, program.main, args, &way, effort, &mut counts);
            }
        }
    }
    assert!(counts.transitions > 10_000 && counts.left > 2_000, "{counts:?}");
    assert!(counts.transitions - counts.left > 2_000, "{counts:?}");
}

/// The kernels of the corpus that this test runs.
const KERNELS: [&str; 6] = ["sort", "queens", "hash.o2", "vm", "nbody", "mixed.o2"];

fn kernel(name: &str) -> (Module, Func) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/corpus/{name}.wasm"));
    let module = load(Format::Wasm, &std::fs::read(file).expect("it is in the repository"))
        .expect("it is imported");
    let start = module.lookup("_start").expect("it is exported");
    (module, start)
}

/// Covers entries inside calls too, from functions in the middle of a program.
#[test]
fn continuations_of_kernels_end_as_transitions_do() {
    let mut counts = Counts::default();
    for name in KERNELS {
        let (program, start) = kernel(name);
        let mut largest: Vec<Func> = program.defined().map(|(func, _)| func).collect();
        largest
            .sort_by_key(|func| std::cmp::Reverse(program.body(*func).map(Function::inst_count)));
        for func in largest.into_iter().take(3) {
            let Some([before, after]) = versions(&program, func) else { continue };
            for ((source, mapping), (target, _)) in [(&before, &after), (&after, &before)] {
                let mut module = program.clone();
                let way = way(&mut module, func, source, target, mapping, None, &mut counts);
                let effort = Effort { visits: 2, most: 60, fuel: 1 << 22 };
                compare(&module, start, &[], &way, effort, &mut counts);
            }
        }
    }
    assert!(
        counts.entries > 5_000 && counts.transitions > 500 && counts.in_calls > 200,
        "{counts:?}"
    );
}

/// A version whose points never exit behaves as the version without points, including its effects.
#[test]
fn armed_versions_run_as_the_plain_ones() {
    let mut runs = 0;
    let mut same = |plain: &Module,
                    armed: &Module,
                    start: Func,
                    args: &[u64],
                    fuel: u64,
                    trace: TraceLevel| {
        let ends = [plain, armed].map(|module| {
            let limits = Limits { fuel, ..Limits::default() };
            let options = Options { trace, ..Options::traced() };
            let mut machine = Machine::with_options(&Code::new(module), limits, options)
                .expect("it instantiates");
            let outcome = machine.invoke(start, args, &mut host(), &mut NoObserver);
            let shown = match &outcome {
                Outcome::Trapped { kind, operand, .. } => format!("trap {kind} {operand:?}"),
                other => other.to_string(),
            };
            (shown, machine.memory_digest(), machine.trace().digest(), machine.trace().count())
        });
        assert_eq!(ends[0], ends[1]);
        runs += 1;
    };
    let arm = |module: &Module| {
        let mut armed_module = module.clone();
        for (func, body) in module.defined() {
            if let Some([(before, mapping), _]) = versions(module, func) {
                assert!(before.same_as(body).is_ok());
                armed_module.define(func, armed(body, &mapping, None).function);
            }
        }
        let findings = ir::verifier::verify_module(&armed_module);
        assert!(findings.is_empty(), "{}", findings[0]);
        armed_module
    };
    for seed in 0..100 {
        let program = generate(seed, 80, &Weights::default());
        let armed = arm(&program.module);
        for args in &program.arguments {
            for trace in [TraceLevel::Digest, TraceLevel::Off] {
                same(&program.module, &armed, program.main, args, 1 << 24, trace);
            }
        }
    }
    for name in KERNELS {
        let (module, start) = kernel(name);
        same(&module, &arm(&module), start, &[], u64::MAX, TraceLevel::Off);
    }
    assert!(runs > 500, "{runs} runs");
}
