//! Generated programs, whose rows assume contents that a first run has shown. Runs enter random
//! rows at random landings, leave where assumptions fail, and enter again.

use super::support::{FUEL, Rows, machine, run};
use crate::speculation::random::{Recorder, random_places};
use crate::speculation::support::end;
use interp::{NoHost, NoObserver, Outcome, Program};
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::{FrameState, FrameStates, Func, Function, Inst, Module, Point, Value};
use osier::landing::{LandingCode, handover};
use osier::speculate::{Assumption, Expected, Plan};
use passes::parse;
use std::collections::HashMap;
use std::sync::Arc;
use verify::generate::{Weights, generate};
use verify::prng::Prng;

/// Random points of a function: block starts, and others.
fn landings(f: &Function, random: &mut Prng) -> Vec<Point> {
    let insts: Vec<Inst> = f.all_insts().collect();
    let starts: Vec<Inst> = f.blocks().map(|block| f.first_inst(block)).collect();
    let any = |list: &[Inst], random: &mut Prng| list[random.below(list.len() as u32) as usize];
    (0..3).map(|k| Point::before(any(if k < 2 { &starts } else { &insts }, random))).collect()
}

/// States in front of one instruction of eight, and of each block, which name some of the values
/// that are available there.
fn random_states(f: &Function, random: &mut Prng) -> FrameStates {
    let dom = DomTree::new(f, &Cfg::new(f));
    let params = f.blocks().flat_map(|block| f.block_params(block));
    let results = f.all_insts().flat_map(|inst| &f.inst(inst).results);
    let values: Vec<Value> = params.chain(results).copied().collect();
    let mut states = FrameStates::new();
    for inst in f.all_insts() {
        let (at, is_first) = (Point::before(inst), f.prev_inst(inst).is_none());
        if is_first || random.below(8) == 0 {
            let named = values.iter().filter(|value| dom.available_at(f, **value, at));
            let named: Vec<Value> = named.filter(|_| random.below(4) == 0).copied().collect();
            states.set(at, FrameState::of_values(0, inst.as_u32(), (0..).zip(named)));
        }
    }
    states
}

/// The code behind a landing. With states, runs also leave to these.
fn code_behind(
    module: &Module,
    base: &Function,
    at: Point,
    states: Option<&FrameStates>,
    assume: &[Assumption],
) -> Option<LandingCode> {
    let Some(states) = states else { return LandingCode::new(module, base, at).ok() };
    let places = assume.iter().map(|of| of.at).chain([at]).collect();
    let out = handover(module, base, states, &places).expect("the states fit");
    LandingCode::leaving(module, base, at, Arc::new(out)).ok()
}

#[test]
fn runs_through_tables_end_as_the_base_does() {
    through_tables(80, false);
}

/// The rows keep the values that states name, and half of the exits lead to states.
#[test]
fn runs_through_tables_with_frame_states_end_as_the_base_does() {
    through_tables(60, true);
}

fn through_tables(seeds: u64, has_states: bool) {
    let (mut rows_made, mut exits_made, mut contexts, mut left_out) = (0, 0, 0, 0);
    let (mut entered, mut left, mut handed) = (0, 0, 0);
    for seed in 0..seeds {
        let random = &mut Prng::new(seed);
        let generated = generate(seed, 60, &Weights::default());
        let module = &generated.module;
        let program = Program::new(module);
        let places: HashMap<(Func, Inst), Value> = module
            .defined()
            .flat_map(|(func, f)| {
                let places = random_places(f, random, 6);
                places.into_iter().map(move |(inst, value)| ((func, inst), value))
            })
            .collect();
        let mut recorder = Recorder { wanted: &places, seen: HashMap::new() };
        let first = &generated.arguments[0];
        machine(&program).invoke(generated.main, first, &mut NoHost, &mut recorder);
        let mut tables = Vec::new();
        for (func, base) in module.defined() {
            let seen = recorder.seen.iter().filter(|((of, _), _)| *of == func);
            let mut all: Vec<Assumption> = seen
                .map(|(place, bits)| {
                    let expected = Expected::Is(*bits);
                    let (at, value) = (Point::before(place.1), places[place]);
                    Assumption { at, value, expected, reason: seed as u32 }
                })
                .collect();
            all.sort_unstable();
            let states = has_states.then(|| random_states(base, random));
            let pipeline = parse(["O1", "O2", "canonical"][seed as usize % 3]).expect("it is one");
            for at in landings(base, random) {
                let code = code_behind(module, base, at, states.as_ref(), &all);
                let Some(code) = code else { continue };
                let half = all.len() / 2;
                let mut rows = Vec::new();
                for assume in [&all[..], &all[..half], &[]] {
                    let row = code.row(module, base, &Plan::new(assume, &pipeline));
                    let row = row.unwrap_or_else(|error| panic!("seed {seed}, {func}: {error}"));
                    exits_made += row.exits.len();
                    contexts += row.exits.iter().filter(|exit| exit.is_context).count();
                    left_out += row.left_out.len();
                    rows.push(row);
                }
                rows_made += rows.len();
                tables.push(Rows { func, code, rows });
            }
        }
        for args in &generated.arguments {
            let mut plain = machine(&program);
            let expected = plain.invoke(generated.main, args, &mut NoHost, &mut NoObserver);
            for often in [1, 3] {
                let (outcome, after, hops) =
                    run(module, &program, &tables, generated.main, args, Prng::new(seed), often);
                let is_limited =
                    |o: &Outcome| matches!(o, Outcome::OutOfFuel(_) | Outcome::StackOverflow(_));
                // A run that goes from exit to exit for ever would have no end of its own.
                let is_short = plain.fuel() > FUEL / 2;
                if is_limited(&expected) || (is_limited(&outcome) && !is_short) {
                    continue;
                }
                let [found, wanted] = [end(&after, &outcome), end(&plain, &expected)];
                assert_eq!(found, wanted, "seed {seed} with {args:x?}, {hops:?}");
                entered += hops.entered;
                left += hops.left;
                handed += hops.handed;
            }
        }
    }
    let figures = format!(
        "{rows_made} rows with {exits_made} exits ({contexts} at the start), {left_out} left out; \
         {entered} entered, {left} left, {handed} handed"
    );
    let at_least = seeds as usize;
    assert!(rows_made > 5 * at_least && 2 * contexts > at_least, "{figures}");
    assert!(left > 5 * seeds, "{figures}");
    assert!(has_states == (handed > 100), "{figures}");
}
