//! The state oracle over random programs, random pipelines and every level: synthesized mappings
//! hold, and mappings that provide too little do not.
//!
//! The floors keep the test from becoming easy. It fails if a generator or a pass no longer makes
//! loops, or if a level no longer writes compensation code.

use interp::{Limits, NoHost};
use ir::cfg::Cfg;
use ir::liveness::Liveness;
use ir::{Function, Inst, Value};
use osier::driver::{NoObserver, Vigilance, derive};
use osr::{Level, Synthesis, VersionPair, synthesize_levels};
use passes::Pipeline;
use passes::registry::{PASSES, parse};
use std::collections::{BTreeMap, BTreeSet};
use transition::mapping::Mapping;
use verify::generate::{Program, Weights, generate};
use verify::prng::Prng;
use verify::state_oracle::{Counts, Difference, FunctionPair, Oracle, OracleOptions, Report};

/// A version of the main function, the anchors it has in common with the base, and the mappings by
/// level.
struct Derived {
    function: Function,
    anchors: BTreeSet<Inst>,
    syntheses: Vec<(Level, Synthesis)>,
}

/// `O1` for every third program, and eight random passes for the other programs.
fn pipeline(seed: u64) -> Pipeline {
    let mut prng = Prng::new(seed);
    let names: Vec<&str> = (0..8).map(|_| PASSES[prng.index(PASSES.len())].name()).collect();
    let text = if seed.is_multiple_of(3) { "O1".to_owned() } else { names.join(",") };
    parse(&text).expect("a pipeline of known passes")
}

/// The main function after a pipeline; `None` if the pipeline changes nothing.
fn derived(program: &Program, seed: u64) -> Option<Derived> {
    let base = program.module.body(program.main).expect("the main function has a body");
    let derived = derive(&program.module, base, &pipeline(seed), Vigilance::On, &mut NoObserver);
    let pair = VersionPair::new(base, &derived.function, &derived.log)
        .expect("the driver has replayed the log");
    let anchors = pair.bounding_anchors().collect();
    let syntheses = synthesize_levels(&pair, &Level::ALL);
    (!derived.log.is_empty()).then(|| Derived { function: derived.function, anchors, syntheses })
}

/// Judges mappings on the arguments of a program.
fn judge(
    program: &Program,
    derived: &Derived,
    [forward, backward]: [&Mapping; 2],
    runs: usize,
) -> Report {
    let before = program.module.body(program.main).expect("the main function has a body");
    let pair = FunctionPair {
        func: program.main,
        before,
        after: &derived.function,
        anchors: &derived.anchors,
        forward,
        backward,
        copies: None,
    };
    let options = OracleOptions {
        limits: Limits { fuel: 2 * program.steps + 1000, ..Limits::default() },
        ..OracleOptions::default()
    };
    let mut oracle =
        Oracle::new(&program.module, &[pair], options).expect("the mappings are of these versions");
    program.arguments.iter().take(runs).for_each(|args| oracle.run(program.main, args, &NoHost));
    oracle.report().clone()
}

fn share(part: u64, all: u64) -> f64 {
    part as f64 / all as f64
}

#[test]
fn random_mappings_hold_at_every_level() {
    let mut avail = Counts::default();
    let mut changed = 0;
    for seed in 0..150 {
        let program = generate(seed, 100, &Weights::default());
        let Some(derived) = derived(&program, seed) else { continue };
        changed += 1;
        for (level, synthesis) in &derived.syntheses {
            let mappings = [&synthesis.forward.mapping, &synthesis.backward.mapping];
            let report = judge(&program, &derived, mappings, usize::MAX);
            assert_eq!(
                report.divergence_count,
                0,
                "seed {seed}, {level}, {:?}: {}",
                pipeline(seed),
                report.divergences[0]
            );
            assert_eq!(report.exhausted, 0, "seed {seed}, {level}");
            if *level == Level::Avail {
                avail.add(&report.total());
            }
        }
    }
    assert!(changed >= 140, "the pipelines changed {changed} programs");
    assert!(avail.transitions >= 100_000, "{avail:?}");
    assert!(share(avail.with_code, avail.transitions) >= 0.30, "{avail:?}");
    assert!(share(avail.in_loops, avail.transitions) >= 0.50, "{avail:?}");
    assert!(share(avail.compared, avail.transitions) >= 6.0, "{avail:?}");
}

/// Removes one random provided value from a mapping. With `kept`, the value is one that only
/// entries of the other direction require at the landing point; otherwise it is live there.
fn with_less(
    mapping: &Mapping,
    target: &Function,
    kept: bool,
    prng: &mut Prng,
) -> Option<(Mapping, Value)> {
    let live = Liveness::of_needed(target, &Cfg::new(target), &BTreeMap::new());
    let mut candidates = Vec::new();
    for (point, entry) in mapping.entries() {
        let live = live.live_before(target, entry.target);
        let provided = entry.provides().filter(|v| live.contains(*v) != kept);
        candidates.extend(provided.map(|value| (point, entry, value)));
    }
    let (point, entry, value) = *candidates.get(prng.index(candidates.len()))?;
    let (mut poor, mut damaged) = (entry.clone(), mapping.clone());
    poor.assigns.retain(|a| a.value != value);
    damaged.insert(point, poor);
    Some((damaged, value))
}

/// The target version or the entries of the other direction need every provided value. The judge
/// rejects an entry without such a value, and needs no run for it.
#[test]
fn a_value_removed_from_a_random_mapping_is_missed() {
    let (mut missed, mut missed_kept) = (0, 0);
    for seed in 0..60 {
        let program = generate(seed, 100, &Weights::default());
        let Some(derived) = derived(&program, seed) else { continue };
        let (level, synthesis) = derived.syntheses.last().expect("there are levels");
        assert_eq!(*level, Level::Avail);
        let mappings = [&synthesis.forward.mapping, &synthesis.backward.mapping];
        let before = program.module.body(program.main).expect("the main function has a body");
        let targets = [&derived.function, before];
        let mut prng = Prng::new(seed);
        for (direction, kept) in [(0, false), (0, true), (1, false), (1, true)] {
            let less = with_less(mappings[direction], targets[direction], kept, &mut prng);
            let Some((damaged, value)) = less else { continue };
            let mut judged = mappings;
            judged[direction] = &damaged;
            let found = judge(&program, &derived, judged, 0).divergences;
            let found: Vec<&Difference> = found.iter().map(|d| &d.difference).collect();
            assert_eq!(
                found,
                [&Difference::NotProvided { value }],
                "seed {seed}, direction {direction}"
            );
            *(if kept { &mut missed_kept } else { &mut missed }) += 1;
        }
    }
    assert!(
        missed >= 100 && missed_kept >= 40,
        "missed {missed} values, and {missed_kept} kept ones"
    );
}
