//! Entries on demand: for a set of points, they equal the entries of the whole mappings, up to
//! live+. The checker accepts them, and the state oracle finds no difference.

use certify::Certifier;
use check::relate;
use check::verdict::{Check, Options};
use interp::{Limits, NoHost};
use ir::decided::Decided;
use ir::liveness::Liveness;
use ir::{Block, Function, Inst, Module, Point, Value};
use osier::driver::{NoObserver, Vigilance, derive, prove, prove_at};
use osier::{Format, load};
use osr::{Level, Synthesis, VersionPair, synthesize, synthesize_at};
use passes::Pipeline;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use transition::mapping::Mapping;
use transition::{Pair, Side};
use verify::generate::{Program, Weights, generate};
use verify::prng::Prng;
use verify::state_oracle::{FunctionPair, Oracle, OracleOptions};

type Asked = Pair<BTreeSet<Point>>;

fn pipeline(seed: u64) -> Pipeline {
    let names = ["O1", "canonical", "O2", "canonical,O1", "licm,cse,simplify,sccp,adce,cfg_clean"];
    passes::parse(names[seed as usize % names.len()]).expect("a pipeline")
}

fn points(f: &Function) -> BTreeSet<Point> {
    f.all_insts().map(Point::before).collect()
}

/// The requested sets: the loop headers and the calls of both versions, the headers of the first
/// version alone, and random points of one or both versions.
fn sets(pair: &VersionPair<'_>, versions: Pair<&Function>, seed: u64) -> Vec<Asked> {
    let mut prng = Prng::new(seed);
    let headers = Pair::from_fn(|side| pair.loop_headers(side));
    let mut sets = vec![
        Pair::new(headers.before.clone(), BTreeSet::new()),
        headers,
        Pair::from_fn(|side| pair.calls(side)),
    ];
    for share in [2, 8, 30] {
        let mut some = |side: Side| -> BTreeSet<Point> {
            points(versions[side]).into_iter().filter(|_| prng.index(share) == 0).collect()
        };
        sets.push(Pair::new(some(Side::Before), some(Side::After)));
        sets.push(Pair::new(BTreeSet::new(), some(Side::After)));
    }
    sets
}

fn mapping(made: &Synthesis, side: Side) -> &Mapping {
    match side {
        Side::Before => &made.forward.mapping,
        Side::After => &made.backward.mapping,
    }
}

/// The values that each entry of a mapping has to provide, when the entries of `back` are armed.
fn lacking(target: &Function, mapping: &Mapping, back: &Mapping) -> Vec<(Point, Value)> {
    let uses: BTreeMap<Inst, Vec<Value>> =
        back.entries().map(|(point, entry)| (point.inst(), entry.requires.clone())).collect();
    let live = Liveness::of_run(target, &Decided::new(target), &uses);
    let missing = mapping.entries().flat_map(|(point, entry)| {
        let live = live.live_before(target, entry.target);
        let missing: Vec<Value> = live.iter().filter(|v| !entry.provides_value(*v)).collect();
        missing.into_iter().map(move |value| (point, value))
    });
    missing.collect()
}

/// Compares the entries on demand with the entries of the whole mappings. Returns the number of
/// compared entries, and the number of entries with fewer provided values.
fn compare(
    made: &Synthesis,
    all: &Synthesis,
    asked: &Asked,
    versions: Pair<&Function>,
    what: &str,
) -> (usize, usize) {
    let (mut compared, mut fewer) = (0, 0);
    for side in Side::BOTH {
        let (some, whole) = (mapping(made, side), mapping(all, side));
        let (target, back) = (versions[side.other()], mapping(made, side.other()));
        assert_eq!(lacking(target, some, back), [], "{what}, {side}: live+ of the set");
        assert!(some.entries().all(|(p, _)| asked[side].contains(&p)), "{what}: only these points");
        for &point in &asked[side] {
            let Some(of_all) = whole.entry(point) else { continue };
            // With fewer armed entries, an entry has to provide less.
            let entry = some.entry(point);
            let entry = entry.unwrap_or_else(|| panic!("{what}, {side}: {point:?} has no entry"));
            if entry.target == of_all.target {
                let given: BTreeSet<Value> = of_all.provides().collect();
                assert!(entry.provides().all(|v| given.contains(&v)), "{what}, {side}: {point:?}");
                fewer += usize::from(entry.provides().count() < given.len());
            }
            compared += 1;
        }
        let synthesized = if side == Side::Before { &made.forward } else { &made.backward };
        assert_eq!(synthesized.points, asked[side].len());
        let listed = synthesized.missing.len() + synthesized.unreachable + some.len();
        assert_eq!(listed, synthesized.points, "{what}, {side}: every point has an answer");
    }
    (compared, fewer)
}

/// Runs both versions side by side, and fires every entry. Returns the number of transitions.
pub(crate) fn fire(
    program: &Program,
    after: &Function,
    anchors: &BTreeSet<Inst>,
    [forward, backward]: [&Mapping; 2],
) -> u64 {
    let before = program.module.body(program.main).expect("the main function has a body");
    let func = program.main;
    let pair = FunctionPair { func, before, after, anchors, forward, backward, copies: None };
    let limits = Limits { fuel: 2 * program.steps + 1000, ..Limits::default() };
    let options = OracleOptions { limits, ..OracleOptions::default() };
    let mut oracle = Oracle::new(&program.module, &[pair], options).expect("of these versions");
    program.arguments.iter().for_each(|args| oracle.run(program.main, args, &NoHost));
    let report = oracle.report();
    assert_eq!(report.divergence_count, 0, "{}", report.divergences[0]);
    report.total().transitions
}

/// The mappings on demand at all points are the whole mappings, whatever the level. At the points
/// of a set, they have an entry wherever the whole mappings have one. The entry provides live+ of
/// the set.
#[test]
fn entries_of_sets_are_those_of_the_whole_mappings_up_to_live_plus() {
    let (mut compared, mut fewer, mut transitions) = (0, 0, 0);
    for seed in 0..60 {
        let program = generate(seed, 80, &Weights::default());
        let base = program.module.body(program.main).expect("the main function has a body");
        let derived =
            derive(&program.module, base, &pipeline(seed), Vigilance::On, &mut NoObserver);
        let versions = Pair::new(base, &derived.function);
        let pair = VersionPair::new(base, &derived.function, &derived.log).expect("it replays");
        for level in Level::ALL {
            let all = synthesize(&pair, level);
            let everything = synthesize_at(&pair, level, &versions.map(points));
            assert_eq!(format!("{everything:?}"), format!("{all:?}"), "seed {seed}, {level}");
        }
        let all = synthesize(&pair, Level::Avail);
        let anchors = pair.bounding_anchors().collect();
        for (number, asked) in sets(&pair, versions, seed).iter().enumerate() {
            let made = synthesize_at(&pair, Level::Avail, asked);
            let what = format!("seed {seed}, set {number}");
            let counts = compare(&made, &all, asked, versions, &what);
            (compared, fewer) = (compared + counts.0, fewer + counts.1);
            let mappings = [&made.forward.mapping, &made.backward.mapping];
            transitions += fire(&program, &derived.function, &anchors, mappings);
        }
    }
    assert!(compared > 7_000 && fewer > 500, "{compared} entries, {fewer} provide less");
    assert!(transitions > 10_000, "{transitions} transitions");
}

/// The checker accepts on demand every entry that it accepts in the whole mapping, if the entry
/// lands at the same point, and refutes no entry.
fn accepted_on_demand(module: &Module, base: &Function, pipeline: &Pipeline, seed: u64) -> usize {
    let derived = derive(module, base, pipeline, Vigilance::Off, &mut NoObserver);
    let versions = Pair::new(base, &derived.function);
    let pair = VersionPair::new(base, &derived.function, &derived.log).expect("it replays");
    let all = prove(module, base, &derived, &[Level::Avail], &mut NoObserver);
    let all = all.highest();
    let mut accepted = 0;
    for asked in sets(&pair, versions, seed) {
        let made = prove_at(module, base, &derived, Level::Avail, |_| asked, &mut NoObserver);
        for (some, whole) in made.highest().iter().zip(all.iter()) {
            assert_eq!(some.facts.len(), some.mapping.len());
            accepted += some.mapping.len();
            for (point, verdict) in some.missing.rejected() {
                assert!(!verdict.is_refuted(), "@{} {point:?}: {verdict}", base.name());
                assert!(whole.mapping.entry(point).is_none(), "@{} {point:?}", base.name());
            }
        }
    }
    accepted
}

#[test]
fn the_checker_accepts_entries_on_demand_of_generated_programs() {
    let mut accepted = 0;
    for seed in 0..30 {
        let program = generate(seed, 60, &Weights::default());
        for (_, base) in program.module.defined() {
            accepted += accepted_on_demand(&program.module, base, &pipeline(seed), seed);
        }
    }
    assert!(accepted > 5_000, "{accepted}");
}

#[test]
fn the_checker_accepts_entries_on_demand_of_kernels() {
    let mut accepted = 0;
    for name in ["vm", "calls", "sort", "nbody.o2", "scan", "words"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/corpus/{name}.wasm"));
        let bytes = std::fs::read(file).expect("it is in the repository");
        let module = load(Format::Wasm, &bytes).expect("it is imported");
        for (seed, (_, base)) in (0..).zip(module.defined()) {
            accepted += accepted_on_demand(&module, base, &Pipeline::default(), seed);
        }
    }
    assert!(accepted > 8_000, "{accepted}");
}

/// The entry up of a loop provides `%d`, which the entry down keeps, only if both entries are
/// requested.
#[test]
fn live_plus_of_a_set_counts_the_entries_of_the_set_alone() {
    let text = include_bytes!("../docs/examples/scale.oir");
    let module = load(Format::Oir, text).expect("well-formed");
    let (_, base) = module.defined().next().expect("one function");
    let derived = derive(&module, base, &Pipeline::default(), Vigilance::On, &mut NoObserver);
    let store = |f: &Function| {
        let at = f.all_insts().find(|i| f.inst(*i).opcode == ir::Opcode::Store);
        Point::before(at.expect("the example stores"))
    };
    let up = BTreeSet::from([store(base)]);
    let down = BTreeSet::from([store(&derived.function)]);
    let provided = |down: BTreeSet<Point>| {
        let asked = Pair::new(up.clone(), down);
        let made = prove_at(&module, base, &derived, Level::Avail, |_| asked, &mut NoObserver);
        let forward = &made.highest().before.mapping;
        let entry = forward.entry(store(base)).expect("the store has an entry");
        let d = base.block_params(base.entry())[1];
        (entry.provides_value(d), made.highest().after.mapping.len())
    };
    assert_eq!(provided(BTreeSet::new()), (false, 0));
    assert_eq!(provided(down), (true, 1));
}

/// A point outside the version has no answer, and unreachable code has no entry.
#[test]
fn points_of_other_versions_are_left_out() {
    let text = b"func @f(%a: i32) -> i32 {
entry:
  %one = const.i32 1
  br_if %one, yes, no
yes:
  return %a
no:
  return %one
}";
    let module = load(Format::Oir, text).expect("well-formed");
    let (_, base) = module.defined().next().expect("one function");
    let pipeline = passes::parse("cse").expect("a pass");
    let derived = derive(&module, base, &pipeline, Vigilance::On, &mut NoObserver);
    let pair = VersionPair::new(base, &derived.function, &derived.log).expect("it replays");
    let mut asked = points(base);
    asked.insert(Point::before(Inst::from_u32(900)));
    let made = synthesize_at(&pair, Level::Avail, &Pair::new(asked, BTreeSet::new()));
    assert_eq!((made.forward.points, made.forward.unreachable), (4, 1));
    assert_eq!((made.forward.mapping.len(), made.backward.points), (3, 0));
}

/// The mapping, with a value left out of one entry in `share`.
fn poorer(mapping: &Mapping, share: usize, prng: &mut Prng) -> Mapping {
    let mut poor = mapping.clone();
    for (point, entry) in mapping.entries() {
        if prng.index(share) == 0 && !entry.assigns.is_empty() {
            let mut less = entry.clone();
            less.assigns.remove(prng.index(less.assigns.len()));
            poor.insert(point, less);
        }
    }
    poor
}

/// The checker finds live values by one search for each block with entries, or, with many such
/// blocks, for all blocks together. Both must give the same verdicts, also on entries that provide
/// too little or keep the wrong values.
#[test]
fn entries_judged_one_by_one_have_the_verdicts_of_the_whole() {
    let (mut judged, mut lacking, mut large) = (0, 0, 0);
    for seed in 0..6 {
        let program = generate(seed, 1500, &Weights::default());
        let base = program.module.body(program.main).expect("the main function has a body");
        let derived =
            derive(&program.module, base, &pipeline(seed), Vigilance::Off, &mut NoObserver);
        let pair = VersionPair::new(base, &derived.function, &derived.log).expect("it replays");
        let made = synthesize(&pair, Level::Avail);
        let mut prng = Prng::new(seed);
        let whole = Pair::from_fn(|side| poorer(mapping(&made, side), 4, &mut prng));
        let common = pair.correspondence();
        let mut certifier = Certifier::new(&common);
        let facts = Pair::from_fn(|side| certifier.facts(side, &whole[side]));
        let certificate = certifier.into_certificate();
        let relation = relate(&program.module, common.versions, &certificate, Options::default());
        let Ok(relation) = relation else { continue };
        for side in Side::BOTH {
            let armed = &whole[side.other()];
            let verdicts = relation.judge(side, &whole[side], &facts[side], &[armed]);
            let home = |point: Point| common.versions[side].inst_block(point.inst());
            let blocks: BTreeSet<Block> = whole[side].entries().map(|(p, _)| home(p)).collect();
            large += usize::from(blocks.len() > 64);
            let all = whole[side].entries().zip(&facts[side]).zip(&verdicts);
            for (((point, entry), facts), verdict) in all.step_by(3) {
                let mut one = Mapping::between(whole[side].source(), whole[side].target());
                one.insert(point, entry.clone());
                let alone = relation.judge(side, &one, &vec![facts.clone()], &[armed]);
                assert_eq!(alone, [*verdict], "seed {seed}, {side}, {point:?}");
                judged += 1;
                let finding = verdict.finding();
                lacking += usize::from(finding.is_some_and(|f| f.check == Check::LivePlus));
            }
        }
    }
    assert!(judged > 800 && lacking > 100, "{judged} entries, {lacking} lack a value");
    assert!(large > 0, "no mapping has entries in more than 64 blocks");
}
