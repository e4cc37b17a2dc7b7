//! Seeded mistakes: wrong passes and wrong mappings are found, reduced, blamed and printed.

use fuzz::{
    CampaignOptions, Case, EdgeDamage, FindingKey, FuzzOracle, Judged, SavedCase, as_test, guilty,
    judge, judge_with, reduce,
};
use interp::{Limits, Machine, NoHost, NoObserver};
use ir::edit::{Editor, Pass};
use ir::text::parse_module;
use ir::{Function, Opcode};
use osr::Edge;
use passes::registry::StaticPass;
use std::collections::BTreeMap;
use verify::state_oracle::Report as StateReport;

/// A wrong pass: it swaps the operands of the first subtraction of each function.
struct TurnsSubtractions;

impl Pass for TurnsSubtractions {
    fn name(&self) -> &'static str {
        "turns_subtractions"
    }

    fn run(&self, editor: &mut Editor<'_>) {
        let function = editor.func();
        let wanted = |i: &ir::Inst| {
            let data = function.inst(*i);
            data.opcode == Opcode::Sub && data.args[0] != data.args[1]
        };
        let Some(inst) = function.all_insts().find(wanted) else { return };
        let args = function.inst(inst).args.clone();
        if editor.plan("wrong") {
            editor.replace_operand(inst, 0, args[1]);
            editor.replace_operand(inst, 1, args[0]);
        }
    }
}

static TURNS_SUBTRACTIONS: TurnsSubtractions = TurnsSubtractions;

/// A pass that panics if the function has a multiplication.
struct Panics;

impl Pass for Panics {
    fn name(&self) -> &'static str {
        "panics"
    }

    fn run(&self, editor: &mut Editor<'_>) {
        let function = editor.func();
        assert!(
            !function.all_insts().any(|i| function.inst(i).opcode == Opcode::Mul),
            "a multiplication"
        );
    }
}

static PANICS: Panics = Panics;

/// Damages every entry that leads to an earlier version: adds one to the first constant of its
/// compensation code.
fn off_by_one(edge: &mut Edge) {
    if edge.from < edge.to {
        return;
    }
    let damaged: Vec<_> = edge
        .mapping
        .entries()
        .filter_map(|(point, entry)| {
            let mut entry = entry.clone();
            let step =
                entry.steps.iter_mut().find(|s| s.opcode == Opcode::Const && s.ty.is_int())?;
            step.bits = step.bits.wrapping_add(1) & step.ty.mask();
            Some((point, entry))
        })
        .collect();
    damaged.into_iter().for_each(|(point, entry)| edge.mapping.insert(point, entry));
}

/// The first case in which this oracle finds something. A wrong pass, if given, runs before the
/// drawn passes.
fn first_failure(
    oracle: FuzzOracle,
    wrong: Option<StaticPass>,
    damage: Option<EdgeDamage>,
) -> (Case, Judged) {
    for seed in 0..200 {
        let certificates = oracle == FuzzOracle::Certificates;
        let mut case = CampaignOptions { inputs: 6, certificates, ..CampaignOptions::default() }
            .generated(seed);
        if let Some(pass) = wrong {
            case.steps[0].insert(0, pass);
        }
        let judged = judge_with(&case, damage);
        if judged.oracle() == Some(oracle) {
            return (case, judged);
        }
    }
    panic!("the {oracle} oracle finds nothing");
}

fn instructions(case: &Case) -> usize {
    case.module.defined().map(|(_, body): (_, &Function)| body.inst_count()).sum()
}

/// Reduces a failing case, and asserts that the result is small and still fails the same oracle.
fn reduced(
    oracle: FuzzOracle,
    wrong: Option<StaticPass>,
    damage: Option<EdgeDamage>,
    most: usize,
) -> (Case, Judged) {
    let (case, judged) = first_failure(oracle, wrong, damage);
    let first = |judged: Judged| judged.findings.into_iter().next();
    let finding = first(judged).expect("the oracle finds something");
    assert!(
        instructions(&case) > 5 * most,
        "the case has only {} instructions",
        instructions(&case)
    );
    let small = reduce(&case, &finding, &|case| first(judge_with(case, damage)));
    let judged = judge_with(&small, damage);
    assert!(judged.findings[0].is_like(&finding), "{} is not {finding}", judged.findings[0]);
    let text = ir::text::print_module(&small.module);
    assert!(
        instructions(&small) <= most,
        "the reduced case has {} instructions:\n{text}",
        instructions(&small)
    );
    assert!(small.arguments.len() <= 1, "{:?}", small.arguments);
    assert_eq!(
        judge(&small).oracle().is_some(),
        wrong.is_some(),
        "only the mistake remains:\n{text}"
    );
    (small, judged)
}

#[test]
fn a_wrong_pass_is_found_and_reduced_to_its_mistake() {
    let (case, judged) = reduced(FuzzOracle::State, Some(&TURNS_SUBTRACTIONS), None, 10);
    assert_eq!(case.pipeline(), "turns_subtractions");
    assert_eq!(case.versions(), 2);
    let test = as_test(&case, &judged.findings[0], "osier fuzz --seed 1");
    assert!(test.contains(";@ pipeline: turns_subtractions\n"), "{test}");
    assert!(test.starts_with(";; The state oracle found: "), "{test}");
    assert!(test.contains(";; Found by: osier fuzz --seed 1\n"), "{test}");
}

/// The correct passes of the case make dozens of rewrites besides.
#[test]
fn a_finding_names_the_rewrite_to_blame() {
    let (mut case, _) = first_failure(FuzzOracle::State, Some(&TURNS_SUBTRACTIONS), None);
    let wrong = case.steps[0].remove(0);
    case.steps[0].insert(1, wrong);
    let fails = |case: &Case| Some(judge(case).oracle() == Some(FuzzOracle::State));
    let found = guilty(&case, &fails).expect("a rewrite to blame");
    assert_eq!((found.pass, found.rule), ("turns_subtractions", "wrong"), "{found}");
    let limited = |rewrites| fails(&Case { rewrites, ..case.clone() });
    assert_eq!(limited(found.number), Some(false), "{found}");
    assert_eq!(limited(found.number + 1), Some(true), "{found}");
}

#[test]
fn a_panic_of_a_pass_has_no_rewrite_to_blame() {
    let (case, _) = first_failure(FuzzOracle::Panic, Some(&PANICS), None);
    let fails = |case: &Case| Some(judge(case).oracle() == Some(FuzzOracle::Panic));
    assert_eq!(guilty(&case, &fails), None);
}

#[test]
fn a_panic_is_found_and_reduced() {
    let (case, _) = reduced(FuzzOracle::Panic, Some(&PANICS), None, 6);
    assert_eq!(case.pipeline(), "panics");
}

#[test]
fn a_wrong_mapping_is_found_and_reduced_by_the_state_oracle() {
    let (case, judged) = reduced(FuzzOracle::State, None, Some(off_by_one), 12);
    assert!(case.steps.iter().flatten().count() <= 2, "{}", case.steps_text());
    assert!(
        judged.findings[0].message.contains("in the target version, and"),
        "{}",
        judged.findings[0]
    );
}

/// The certificates refute the same mistake without a run.
#[test]
fn a_wrong_mapping_is_refuted_by_its_certificates() {
    let (case, judged) = reduced(FuzzOracle::Certificates, None, Some(off_by_one), 12);
    assert!(case.options.certificates);
    assert!(judged.findings[0].message.contains("backward: refuted"), "{}", judged.findings[0]);
}

/// A printed failure is a test: its module parses, and its call ends as its `run` line says.
#[test]
fn a_failure_is_printed_as_a_test_that_runs() {
    let (case, judged) = reduced(FuzzOracle::State, None, Some(off_by_one), 12);
    let test = as_test(&case, &judged.findings[0], "a test");
    let module = parse_module(&test).unwrap_or_else(|e| panic!("{e:?}\n{test}"));
    assert!(test.contains(";@ osr: every-point both\n"), "{test}");
    let run = test.lines().find_map(|l| l.strip_prefix(";@ run: ")).expect("a call");
    let entry =
        module.func_named(&case.module.funcs[case.entry].name).expect("the function that is run");
    let limits = Limits { fuel: case.fuel, ..Limits::default() };
    let mut machine = Machine::new(&module, limits).expect("a generated module");
    let outcome = machine.invoke(entry, &case.arguments[0], &mut NoHost, &mut NoObserver);
    match outcome.trap() {
        Some(kind) => assert!(run.ends_with(&format!(" traps {kind}")), "{run}"),
        None => assert!(run.contains(" == "), "{run}: {outcome}"),
    }
}

/// The findings of one mistake in different programs have few keys, and each names the rewrite.
#[test]
fn findings_of_one_mistake_are_merged_by_their_key() {
    let fails = |case: &Case| Some(judge(case).oracle() == Some(FuzzOracle::State));
    let mut keys = BTreeMap::new();
    for seed in 0..60 {
        let certificates = false;
        let options =
            CampaignOptions { inputs: 4, size: 60, certificates, ..CampaignOptions::default() };
        let mut case = options.generated(seed);
        case.steps[0].insert(0, &TURNS_SUBTRACTIONS);
        let judged = judge(&case);
        if judged.oracle() != Some(FuzzOracle::State) {
            continue;
        }
        let rewrite = guilty(&case, &fails);
        let key = FindingKey::new(&judged.findings[0], rewrite.as_ref(), None);
        keys.entry(key.to_string()).or_insert_with(Vec::new).push(seed);
    }
    let programs: usize = keys.values().map(Vec::len).sum();
    assert!(programs >= 10 && keys.len() * 2 <= programs, "{keys:#?}");
    // A right rewrite may be the one that brings a wrong value to light.
    let of_mistake = |key: &&String| key.starts_with("state-turns_subtractions-wrong-");
    let blamed: usize = keys.keys().filter(of_mistake).map(|key| keys[key].len()).sum();
    assert!(blamed * 10 >= programs * 9, "{keys:#?}");
}

/// A file of a finding holds the case: judging it again gives the same findings.
#[test]
fn a_saved_case_is_judged_like_the_case() {
    let options = CampaignOptions { inputs: 4, size: 60, ..CampaignOptions::default() };
    for seed in 0..20 {
        let case = options.generated(seed);
        let saved = SavedCase::of(&case).expect("a generated case has no WASI host");
        let again = saved.case(&case.options).expect("a case");
        assert_eq!(SavedCase::of(&again), Some(saved), "seed {seed}");
        let [before, after] = [&case, &again].map(|case| judge_with(case, Some(off_by_one)));
        assert_eq!(before.oracle(), after.oracle(), "seed {seed}");
        // Ids are dense in the text, and samples of transitions depend on them; runs do not.
        let [before, after] = [&case, &again].map(|case| judge(case).figures.state);
        let of = |state: &StateReport| [state.runs, state.trapped, state.exhausted];
        assert_eq!(of(&before), of(&after), "seed {seed}");
        assert!(before.runs > 0, "seed {seed}");
    }
    let mut case = options.generated(0);
    case.steps[0].insert(0, &TURNS_SUBTRACTIONS);
    let unknown = SavedCase::of(&case).expect("a case");
    assert!(unknown.case(&case.options).is_none(), "no such pass is registered");
}
