//! Entries between a version and itself, beside the judge of entries, which finds the liveness of a
//! target point by a certificate and knows nothing of `check::stay`.

use certify::Certifier;
use check::verdict::Options;
use check::{Checked, accept_armed, relate, stay, stay_armed};
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::edit::ActionLog;
use ir::text::parse_module;
use ir::{FrameState, FrameStates, Function, Inst, Module, Opcode, Point, Value};
use osier::{Format, load};
use osr::VersionPair;
use std::collections::BTreeSet;
use std::path::Path;
use transition::Side;
use transition::mapping::Mapping;
use verify::generate::{Weights, generate};
use verify::prng::Prng;

/// Every point of a function.
fn points(function: &Function) -> BTreeSet<Point> {
    function.all_insts().map(Point::before).collect()
}

/// Judges entries of a function to itself by a certificate, with mappings armed; all entries hold,
/// except at points that no run reaches. Returns the number of entries that hold.
fn judged(
    module: &Module,
    function: &Function,
    made: Checked<Mapping>,
    armed: &[&Mapping],
    name: &str,
) -> usize {
    let twin = function.clone();
    let log = ActionLog::empty_for(function);
    let pair = VersionPair::new(function, &twin, &log).expect("nothing was changed");
    let common = pair.correspondence();
    let mut certifier = Certifier::new(&common);
    let (count, made) = (made.len(), made.into_inner());
    let facts = certifier.facts(Side::Before, &made);
    let certificate = certifier.into_certificate();
    let relation = relate(module, common.versions, &certificate, Options::default());
    let accepted = accept_armed(&relation, Side::Before, made, facts, armed);
    // The judge wants to know that a run reaches the point; without one, the claim is empty.
    let relation = relation.expect("a version corresponds to itself");
    let (idle, wrong): (Vec<_>, Vec<_>) = accepted
        .rejected
        .into_iter()
        .partition(|(point, _)| relation.is_unreachable(Side::Before, *point));
    assert_eq!(wrong, [], "{name}");
    assert_eq!(accepted.mapping.len() + idle.len(), count, "{name}");
    accepted.mapping.len()
}

#[test]
fn entries_of_kernels_hold_at_every_point() {
    let mut held = 0;
    for name in ["vm", "sort.o2", "queens", "words.o2", "mixed"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/corpus/{name}.wasm"));
        let bytes = std::fs::read(file).expect("it is in the repository");
        let module = load(Format::Wasm, &bytes).expect("it is imported");
        for (_, function) in module.defined() {
            let made = stay(&module, function, &points(function));
            held += judged(&module, function, made, &[], name);
        }
    }
    assert!(held > 5_000, "{held} entries");
}

#[test]
fn entries_of_random_functions_hold_at_every_point() {
    let (mut held, mut large) = (0, 0);
    for seed in 0..100 {
        let size = if seed % 10 == 0 { 1_500 } else { 100 };
        let program = generate(seed, size, &Weights::default());
        for (_, function) in program.module.defined() {
            let made = stay(&program.module, function, &points(function));
            large += usize::from(function.block_bound() > 150);
            held += judged(&program.module, function, made, &[], &format!("seed {seed}"));
        }
    }
    assert!(held > 20_000 && large > 0, "{held} entries, {large} large functions");
}

/// States at random points, which name values that are available there, and often dead.
fn random_states(function: &Function, random: &mut Prng) -> FrameStates {
    let dom = DomTree::new(function, &Cfg::new(function));
    let params = function.blocks().flat_map(|block| function.block_params(block));
    let results = function.all_insts().flat_map(|inst| &function.inst(inst).results);
    let values: Vec<Value> = params.chain(results).copied().collect();
    let mut states = FrameStates::new();
    for at in points(function) {
        if random.below(8) == 0 {
            let named = values.iter().filter(|value| dom.available_at(function, **value, at));
            let named: Vec<Value> = named.filter(|_| random.below(4) == 0).copied().collect();
            states.set(at, FrameState::of_values(0, 0, (0..).zip(named)));
        }
    }
    states
}

/// An armed mapping requires values that may be dead. The judge refuses an entry that lacks one of
/// them, and one that does not list it as kept.
#[test]
fn entries_with_an_armed_mapping_provide_what_it_requires() {
    let (mut held, mut kept) = (0, 0);
    for seed in 0..60 {
        let random = &mut Prng::new(seed);
        let program = generate(seed, 100, &Weights::default());
        for (_, function) in program.module.defined() {
            let armed = osr::required(function, &random_states(function, random));
            let sealed = Checked::unproved(armed.clone());
            let all = points(function);
            let made = stay_armed(&program.module, function, &all, &[&sealed]);
            assert_eq!(made.len(), stay(&program.module, function, &all).len(), "seed {seed}");
            kept += made.entries().map(|(_, entry)| entry.kept.len()).sum::<usize>();
            held += judged(&program.module, function, made, &[&armed], &format!("seed {seed}"));
        }
    }
    assert!(held > 5_000 && kept > 5_000, "{held} entries that keep {kept} values");
}

/// The mapping requires `%b`, which one path to its point does not define. Only points from
/// which each path defines it, or behind the definition, have entries.
#[test]
fn a_point_where_an_armed_mapping_requires_too_much_has_no_entry() {
    let text = "func @f(%a: i32) -> i32 {\nentry:\nbr_if %a, one, two\none:\n%b = add.i32 %a, %a\n\
                jump two\ntwo:\n%c = add.i32 %a, %a\nreturn %c\n}\n";
    let module = parse_module(text).expect("it is well-formed");
    let (_, function) = module.defined().next().expect("there is a function");
    let add = |at: usize| {
        let adds = function.all_insts().filter(|inst| function.inst(*inst).opcode == Opcode::Add);
        adds.collect::<Vec<Inst>>()[at]
    };
    let (b, at) = (function.inst(add(0)).results[0], Point::before(add(1)));
    let mut states = FrameStates::new();
    states.set(at, FrameState::of_values(0, 0, [(0, b)]));
    let armed = Checked::unproved(osr::required(function, &states));
    let made = stay_armed(&module, function, &points(function), &[&armed]);
    let start = Point::before(function.first_inst(function.entry()));
    let behind = Point::before(function.next_inst(add(0)).expect("it jumps"));
    let one = Point::before(add(0));
    let with_entry: Vec<Point> = made.entries().map(|(point, _)| point).collect();
    assert!(![at, start].iter().any(|point| made.has_entry(*point)), "{with_entry:?}");
    assert_eq!(with_entry, [one, behind]);
}

#[test]
fn a_point_that_no_run_reaches_has_no_entry() {
    let text =
        "func @f(%a: i32) -> i32 {\nentry:\nreturn %a\nlost:\n%b = const.i32 1\nreturn %b\n}\n";
    let module = parse_module(text).expect("it is well-formed");
    let (_, function) = module.defined().next().expect("there is a function");
    let made = stay(&module, function, &points(function));
    assert_eq!(
        made.entries().map(|(point, _)| point).collect::<Vec<_>>(),
        [Point::before(function.first_inst(function.entry()))]
    );
}

#[test]
fn a_version_that_the_verifier_refuses_does_not_stay() {
    // `%b` does not dominate its use.
    let text = "func @f(%a: i32) -> i32 {\nentry:\nbr_if %a, one, two\none:\n%b = const.i32 1\n\
                jump two\ntwo:\nreturn %b\n}\n";
    let module = parse_module(text).expect("it can be parsed");
    let (_, function) = module.defined().next().expect("there is a function");
    assert!(stay(&module, function, &points(function)).is_empty());
}
