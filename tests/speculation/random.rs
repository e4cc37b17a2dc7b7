//! Generated programs, whose versions assume contents that a first run has shown.

use super::support::{Made, end, machine, run, run_natively};
use interp::{Control, NoHost, NoObserver, Observer, Outcome, Program, Scope, View};
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::{Func, Function, Inst, Point, Value, ValueDef};
use osier::jit::{Config, Engine};
use osier::speculate::{Assumption, Expected, Plan};
use passes::parse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use verify::generate::{Weights, generate};
use verify::prng::Prng;

/// Records the first contents of a value at each place where it is wanted.
pub(crate) struct Recorder<'w> {
    pub(crate) wanted: &'w HashMap<(Func, Inst), Value>,
    pub(crate) seen: HashMap<(Func, Inst), u64>,
}

impl Observer for Recorder<'_> {
    const SCOPE: Scope = Scope::Everything;

    fn before(&mut self, view: &View<'_>, inst: Inst) -> Control {
        let place = (view.func(), inst);
        if let Some(value) = self.wanted.get(&place) {
            self.seen.entry(place).or_insert_with(|| view.value(*value));
        }
        Control::Continue
    }
}

/// Random places of a function with a value that is available there.
pub(crate) fn random_places(f: &Function, random: &mut Prng, count: usize) -> HashMap<Inst, Value> {
    let cfg = Cfg::new(f);
    let dom = DomTree::new(f, &cfg);
    let insts: Vec<Inst> = cfg.rpo().iter().flat_map(|b| f.block_insts(*b)).collect();
    let params = f.blocks().flat_map(|b| f.block_params(b).to_vec());
    let results = insts.iter().flat_map(|i| f.inst(*i).results.to_vec());
    let values: Vec<Value> = params.chain(results).collect();
    let mut places = HashMap::new();
    for _ in 0..8 * count {
        let inst = insts[random.below(insts.len() as u32) as usize];
        let value = values[random.below(values.len() as u32) as usize];
        let is_constant = f.constant(value).is_some();
        let is_home = match f.value_def(value) {
            ValueDef::Param(block, _) => cfg.is_reachable(block),
            ValueDef::Result(inst, _) => cfg.is_reachable(f.inst_block(inst)),
        };
        let fits = is_home && dom.available_at(f, value, Point::before(inst));
        if fits && !is_constant && places.len() < count {
            places.insert(inst, value);
        }
    }
    places
}

/// The assumptions whose place a version still has, about a value that is available there.
fn still_there(f: &Function, all: &[Assumption]) -> Vec<Assumption> {
    let cfg = Cfg::new(f);
    let dom = DomTree::new(f, &cfg);
    let stands = |a: &&Assumption| {
        f.has_inst(a.at.inst())
            && f.has_value(a.value)
            && cfg.is_reachable(f.inst_block(a.at.inst()))
            && dom.available_at(f, a.value, a.at)
    };
    let holds = |a: &&Assumption| f.constant(a.value).is_none_or(|bits| a.expected.holds(bits));
    all.iter().filter(stands).filter(holds).copied().collect()
}

#[test]
fn runs_that_leave_at_any_assumption_end_as_the_base_does() {
    let (mut made, mut dropped, mut settled, mut pinned, mut inherited) = (0, 0, 0, 0, 0);
    let (mut failing, mut holding, mut natively) = (0, 0, 0);
    let engine = Engine::new(Config { trace: true, ..Config::default() })
        .expect("the tests run where native code does");
    let mut lost = BTreeMap::new();
    for seed in 0..200 {
        let random = &mut Prng::new(seed);
        let generated = generate(seed, 40, &Weights::default());
        let module = &generated.module;
        let shared = Arc::new(module.clone());
        let program = Program::new(module);
        let places: HashMap<(Func, Inst), Value> = module
            .defined()
            .flat_map(|(func, f)| {
                let places = random_places(f, random, 4);
                places.into_iter().map(move |(inst, value)| ((func, inst), value))
            })
            .collect();
        let mut recorder = Recorder { wanted: &places, seen: HashMap::new() };
        machine(&program).invoke(
            generated.main,
            &generated.arguments[0],
            &mut NoHost,
            &mut recorder,
        );
        for (func, base) in module.defined() {
            let mut assumptions: Vec<Assumption> = recorder
                .seen
                .iter()
                .filter(|((of, _), _)| *of == func)
                .map(|(place, bits)| Assumption {
                    at: Point::before(place.1),
                    value: places[place],
                    expected: Expected::Is(*bits),
                    reason: seed as u32,
                })
                .collect();
            assumptions.sort_unstable();
            let pipeline = parse(["O1", "O2", "canonical"][seed as usize % 3]).expect("it is one");
            // The second half is assumed of the optimized version, where it still has the places.
            let later = assumptions.split_off(assumptions.len().div_ceil(2));
            let mut version =
                Made::new(module, base, &assumptions, &pipeline).expect("it is legal");
            let later = still_there(version.function(), &later);
            let again = version.again(module, &Plan::new(&later, &pipeline));
            again.unwrap_or_else(|error| panic!("seed {seed}, {func}: {error}"));
            for one in &version.all {
                assert!(
                    one.exits.iter().all(|e| one.exit(e.inst).is_some()),
                    "seed {seed}, {func}"
                );
                made += one.exits.iter().filter(|exit| exit.assumption.is_some()).count();
                pinned += one.exits.iter().filter(|exit| !exit.pins.is_empty()).count();
                inherited += one.exits.iter().filter(|exit| exit.assumption.is_none()).count();
                dropped += one.dropped.len();
                settled += one.settled.len();
                for (_, why) in &one.dropped {
                    *lost.entry(why.name()).or_insert(0) += 1;
                }
            }
            for args in &generated.arguments {
                let mut plain = machine(&program);
                let expected = plain.invoke(generated.main, args, &mut NoHost, &mut NoObserver);
                let (outcome, after, exits) =
                    run(module, &program, func, &version, generated.main, args);
                let is_limited =
                    |o: &Outcome| matches!(o, Outcome::OutOfFuel(_) | Outcome::StackOverflow(_));
                if is_limited(&expected) || is_limited(&outcome) {
                    continue;
                }
                let [found, wanted] = [end(&after, &outcome), end(&plain, &expected)];
                assert_eq!(found, wanted, "seed {seed}, {func} with {args:x?}, {exits} exits");
                failing += exits;
                holding += u64::from(exits == 0);
                let (outcome, vm, left) =
                    run_natively(&engine, &shared, func, &version, generated.main, args);
                if !is_limited(&outcome) {
                    // Native code does not digest memory at each effect.
                    let [found, wanted] =
                        [(vm.machine(), &outcome), (&plain, &expected)].map(|(m, how)| {
                            (end(m, how).0, m.computed_memory_digest(), m.trace().count())
                        });
                    assert_eq!(found, wanted, "seed {seed}, {func} with {args:x?}, natively");
                    natively += left;
                }
            }
        }
    }
    let figures = format!(
        "{made} assumptions ({pinned} pin, {inherited} stay on), {settled} settled, {dropped} \
         dropped ({lost:?}); {failing} exits, {natively} natively, {holding} runs without"
    );
    assert!(made > 450 && natively > 500 && failing > 1000 && holding > 1000, "{figures}");
    assert!(50 * dropped < made && pinned > 5 && inherited > 300, "{figures}");
}

#[test]
fn the_operands_of_a_write_in_one_arm_are_not_pinned_behind_it() {
    // An exit in the second round of a loop may have to execute a write of the first round, whose
    // operands an arm of the loop computes. Seed 688 does. Nobody has to know whether the
    // assumptions hold.
    let pipeline = parse("O2").expect("it is a pipeline");
    for seed in 660..700 {
        let random = &mut Prng::new(seed);
        let generated = generate(seed, 100, &Weights::with_facts());
        for (_, base) in generated.module.defined() {
            let places = random_places(base, random, 6);
            let mut assume: Vec<Assumption> = places
                .into_iter()
                .map(|(inst, value)| {
                    let expected = Expected::Is(u64::from(random.below(3)));
                    Assumption { at: Point::before(inst), value, expected, reason: 0 }
                })
                .collect();
            assume.sort_unstable();
            let made = Made::new(&generated.module, base, &assume, &pipeline);
            let made = made.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            for version in made.tree.versions() {
                let f = made.tree.function(version);
                let findings = ir::verifier::verify_function(&generated.module, f);
                assert!(findings.is_empty(), "seed {seed}, {version}: {}", findings[0]);
            }
        }
    }
}
