//! The fuzzer under a small budget. It finds no divergence, its figures stay above their floors,
//! and it finds, reduces and prints seeded mistakes.

use fuzz::{
    BatchWatch, CampaignLimits, CampaignOptions, Case, CaseEvent, CaseSource, CaseTime, Clock,
    Drawn, EdgeDamage, Figures, FuzzFinding, FuzzOracle, Judged, Results, Stress, as_test,
    campaign, campaign_by, guilty, judge, judge_with, reduce,
};
use interp::{Limits, Machine, NoHost, NoObserver};
use ir::edit::{Editor, Pass};
use ir::text::parse_module;
use ir::{Function, Opcode};
use osr::Edge;
use passes::registry::StaticPass;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use texts::LOOP_WITHOUT_A_SHARED_ANCHOR;

mod certified;
mod native;
mod texts;

/// Generated programs, one for each seed.
struct Seeds(CampaignOptions);

impl CaseSource for Seeds {
    fn case(&self, number: u64) -> Drawn {
        Drawn::Case(Box::new(self.0.generated(self.0.seed + number)))
    }
}

fn run(options: CampaignOptions, jobs: usize, cases: u64, transitions: u64) -> Results {
    let limits = CampaignLimits { cases, transitions, failures: 10, ..CampaignLimits::default() };
    campaign(Arc::new(Seeds(options)), jobs, &limits, &|_| {})
}

/// The figures of a campaign. Fails the test with the first finding if there is one.
fn clean(results: &Results) -> &Figures {
    if let Some(failure) = results.failures.first() {
        panic!("case {}: {}", failure.number, failure.findings[0]);
    }
    &results.figures
}

#[test]
fn nothing_diverges_and_no_figure_is_below_its_floor() {
    let results =
        run(CampaignOptions { inputs: 6, ..CampaignOptions::default() }, 2, 600, u64::MAX);
    let figures = clean(&results);
    assert_eq!(figures.below_floors(), Vec::<String>::new());
    assert_eq!(figures.programs, 600);
    assert_eq!(figures.passes.len(), passes::registry::PASSES.len(), "every pass is run");
    assert!(figures.transitions() >= 500_000, "{} transitions", figures.transitions());
    assert!(figures.versions.len() >= 4, "programs by number of versions: {:?}", figures.versions);
    assert!(
        figures.entries_fired * 2 > figures.entries_armed,
        "{} of {} entries fired",
        figures.entries_fired,
        figures.entries_armed
    );
    assert!(
        figures.hops.chains >= 1000 && figures.hops.full_chains * 10 >= figures.hops.chains * 8,
        "{:?}",
        figures.hops
    );
    assert_eq!(figures.hops.exhausted, 0);
    assert!(
        figures.certificates.certified >= 10_000
            && figures.certificates.dropped() * 100 <= figures.certificates.certified,
        "{figures:#?}"
    );
    assert!(
        figures.composition.composed >= 1000 && figures.composition.same_point >= 100_000,
        "{figures:#?}"
    );
}

#[test]
fn speculation_is_judged_at_failing_assumptions_too() {
    let options = CampaignOptions { only_speculation: true, inputs: 6, ..Default::default() };
    let results = run(options, 2, 240, u64::MAX);
    let figures = clean(&results);
    assert_eq!(figures.below_floors(), Vec::<String>::new());
    let all = &figures.speculation;
    let (holding, failing) = all.exits();
    assert!(all.made >= 800 && 4 * all.dropped < all.made, "{all:#?}");
    assert!(all.failing * 10 >= all.made * 3 && all.visited > all.failing, "{all:#?}");
    assert!(holding >= 5000 && failing >= 2000, "{holding} holding, {failing} failing");
    assert!(all.hops.hops >= 1000, "{:#?}", all.hops);
    assert_eq!(all.hops.exhausted, 0);
    let transitions = all.state.total().transitions;
    assert_eq!(figures.transitions(), transitions);
    assert!(transitions > holding + failing, "other entries fire, too");
}

/// Programs, versions with inlined code, and transitions into one activation and several.
#[test]
fn versions_with_inlined_code_can_be_judged_alone() {
    let options = CampaignOptions { only_inlining: true, inputs: 6, ..CampaignOptions::default() };
    let results = run(options, 2, 60, u64::MAX);
    let figures = clean(&results);
    assert_eq!(figures.below_floors(), Vec::<String>::new());
    let all = &figures.inlining;
    assert!(all.versions > 20 && all.calls > all.versions, "{all:#?}");
    // Callees trap in many of these programs, and the versions have points that no base reaches.
    assert!(3 * all.lost[1] < all.points[1], "few points have no way out: {all:#?}");
    let several: u64 = all.down[1..].iter().sum();
    assert!(several > 5_000 && all.up > 5_000 && all.going_on > 50, "{all:#?}");
    let chains = &all.chains;
    assert!(chains.chains > 100 && chains.hops() > 2 * chains.chains, "{all:#?}");
    assert!(4 * chains.several > chains.chains, "into several activations twice: {all:#?}");
    assert_eq!(figures.transitions(), all.transitions());
    assert!(figures.passes.is_empty() && figures.speculation.wanted == 0);
}

/// No transition then leads into a version that assumes.
#[test]
fn exits_can_be_compared_alone() {
    let options = CampaignOptions {
        only_speculation: true,
        only_exits: true,
        inputs: 3,
        chains: 0,
        ..CampaignOptions::default()
    };
    let results = run(options, 2, 30, u64::MAX);
    let state = &clean(&results).speculation.state;
    assert_eq!(state.forward.transitions, 0);
    assert!(state.backward.failing > 50 && state.backward.holding > 100, "{state:#?}");
}

/// The second speculation resolves the branches of a loop whose jump back the first speculation has
/// added. No anchor of the base is left in the loop.
#[test]
fn a_loop_without_a_shared_anchor_is_left_to_chains() {
    let options = CampaignOptions {
        seed: 900_012_523,
        size: 60,
        inputs: 300,
        only_speculation: true,
        ..CampaignOptions::default()
    };
    let results = run(options, 1, 1, u64::MAX);
    let figures = clean(&results);
    assert!(figures.speculation.hops.hops > 0, "{figures:#?}");
}

/// The same with one speculation: an assumption decides a branch of the loop and cuts the loop in
/// the first step, and another branch in the second step.
#[test]
fn a_loop_of_one_speculation_without_a_shared_anchor_is_left_to_chains() {
    let module = parse_module(LOOP_WITHOUT_A_SHARED_ANCHOR).expect("it is well-formed");
    let main = module.func_named("main").expect("the text has it");
    let options = CampaignOptions { inputs: 3, size: 80, ..CampaignOptions::default() };
    let judged = judge(&options.case(5, module, main, vec![vec![8, 3, 4]; 3], 100_000));
    assert_eq!(judged.findings, []);
    assert!(judged.figures.speculation.hops.hops > 0, "{:#?}", judged.figures);
}

#[test]
fn a_campaign_judges_speculation_unless_told_not_to() {
    let options = |assumptions| CampaignOptions { inputs: 2, assumptions, ..Default::default() };
    let usual = CampaignOptions::default().assumptions;
    let figures = run(options(usual), 2, 30, u64::MAX).figures;
    assert!(figures.speculation.made > 50 && figures.state.runs > 0, "{figures:#?}");
    let (with, without) = (figures.state, run(options(0), 2, 30, u64::MAX).figures);
    assert_eq!(without.speculation, fuzz::SpeculationFigures::default());
    assert!(without.state.runs > 0 && with != without.state, "a third of the programs has facts");
}

/// Each pass alone changes at least half of the programs.
#[test]
fn every_pass_acts_on_half_of_the_programs() {
    for pass in passes::registry::PASSES {
        let options = CampaignOptions {
            pipelines: vec![vec![*pass]],
            versions: Some(2),
            inputs: 1,
            going_on: 0,
            ..CampaignOptions::default()
        };
        let results = run(options, 2, 60, u64::MAX);
        let acted = clean(&results).passes[pass.name()].acted;
        assert!(acted >= 30, "{} acts on {acted} of 60 programs", pass.name());
    }
}

#[test]
fn figures_do_not_depend_on_the_number_of_threads() {
    let options = || CampaignOptions { inputs: 2, size: 60, ..CampaignOptions::default() };
    for (cases, transitions) in [(50, u64::MAX), (u64::MAX, 20_000)] {
        let alone = run(options(), 1, cases, transitions);
        assert!(alone.figures.transitions() > 10_000);
        assert_eq!(
            alone,
            run(options(), 3, cases, transitions),
            "{cases} cases, {transitions} transitions"
        );
    }
}

/// A source with one case. Counts the requests after its end.
struct OneCase {
    seeds: Seeds,
    asked: AtomicU64,
}

impl CaseSource for OneCase {
    fn case(&self, number: u64) -> Drawn {
        match number {
            0 => self.seeds.case(0),
            _ => {
                self.asked.fetch_add(1, Ordering::Relaxed);
                Drawn::End
            }
        }
    }
}

#[test]
fn a_source_that_has_ended_is_not_asked_again() {
    let seeds = Seeds(CampaignOptions::default());
    let source = Arc::new(OneCase { seeds, asked: AtomicU64::new(0) });
    let limits = CampaignLimits::default();
    let results = campaign(Arc::<OneCase>::clone(&source), 4, &limits, &|_| {});
    assert!(clean(&results).transitions() > 0);
    let asked = source.asked.load(Ordering::Relaxed);
    assert!(asked <= 4, "4 threads asked {asked} times after the end, expected once each");
}

#[test]
fn a_campaign_ends_within_a_batch_when_the_time_is_up() {
    let source = Arc::new(Slow::new(2));
    let told = Arc::clone(&source.begun);
    // The time is up in the second case of the batch, which ends before the campaign looks again.
    let stop = Arc::new(move || told.load(Ordering::Relaxed) >= 2);
    let limits = CampaignLimits { stop, ..CampaignLimits::default() };
    let results = campaign(source, 1, &limits, &|_| {});
    assert_eq!((clean(&results).programs, results.unfinished), (1, 0));
}

/// The thread goes on no more, and takes no time.
fn park_forever() -> ! {
    loop {
        std::thread::park();
    }
}

/// A source whose cases from some number on are never there: a case that does not end.
struct Slow {
    seeds: Seeds,
    begun: Arc<AtomicU64>,
    ends: u64,
}

impl Slow {
    fn new(ends: u64) -> Slow {
        let seeds = Seeds(CampaignOptions::default());
        Slow { seeds, begun: Arc::default(), ends }
    }
}

impl CaseSource for Slow {
    fn case(&self, number: u64) -> Drawn {
        self.begun.fetch_add(1, Ordering::Relaxed);
        if number >= self.ends {
            park_forever();
        }
        self.seeds.case(number)
    }
}

/// Without abandoned threads, a campaign of 10 seconds ended when its longest case did.
#[test]
fn a_campaign_does_not_wait_for_a_case_that_does_not_end() {
    let source = Arc::new(Slow::new(3));
    let told = Arc::clone(&source.begun);
    let stop = Arc::new(move || told.load(Ordering::Relaxed) >= 4);
    let limits = CampaignLimits { stop, ..CampaignLimits::default() };
    let results = campaign(source, 1, &limits, &|_| {});
    assert_eq!(clean(&results).programs, 3, "the cases judged in the batch count");
}

/// A judge that never ends the second case of eleven.
fn stuck_in_the_second(cases: Range<u64>, watch: &BatchWatch<'_>) -> bool {
    for number in cases {
        if number == 11 {
            return true;
        }
        if !watch.tell(CaseEvent::Begun(number)) {
            return false;
        }
        if number == 1 {
            park_forever();
        }
        let figures = Figures { programs: 1, ..Figures::default() };
        let judged = Box::new(Judged { figures, findings: Vec::new() });
        if !watch.tell(CaseEvent::Judged { number, judged }) {
            return false;
        }
    }
    false
}

#[test]
fn another_thread_continues_behind_a_case_that_takes_too_long() {
    // A clock that advances by one second with each look.
    let seconds = AtomicU64::new(0);
    let clock: Clock =
        Arc::new(move || Duration::from_secs(seconds.fetch_add(1, Ordering::Relaxed)));
    let case_time = Some(CaseTime { clock, most: Duration::from_secs(10) });
    let limits = CampaignLimits { case_time, ..CampaignLimits::default() };
    let results = campaign_by(Arc::new(stuck_in_the_second), 2, &limits, &|_| {});
    assert_eq!((clean(&results).programs, &results.late[..]), (10, &[1][..]));
}

/// A source whose second case panics.
struct PanickingSource(Seeds);

impl CaseSource for PanickingSource {
    fn case(&self, number: u64) -> Drawn {
        assert_ne!(number, 1, "the case that panics");
        self.0.case(number)
    }
}

#[test]
#[should_panic(expected = "the case that panics")]
fn a_source_that_panics_ends_the_campaign() {
    let source = Arc::new(PanickingSource(Seeds(CampaignOptions::default())));
    campaign(source, 2, &CampaignLimits::default(), &|_| {});
}

/// A child that dies before it begins a case has judged it all the same.
#[test]
fn a_finding_in_a_case_that_never_began_is_a_failure() {
    let judge = |cases: Range<u64>, watch: &BatchWatch<'_>| {
        let finding =
            FuzzFinding { oracle: FuzzOracle::Native, versions: [0, 1], message: "so".to_owned() };
        let judged = Box::new(Judged { figures: Figures::default(), findings: vec![finding] });
        watch.tell(CaseEvent::Judged { number: cases.start, judged });
        true
    };
    let results = campaign_by(Arc::new(judge), 1, &CampaignLimits::default(), &|_| {});
    assert_eq!(results.failures.iter().map(|failure| failure.number).collect::<Vec<_>>(), [0]);
}

/// A seed gives the same case at any place in a campaign.
#[test]
fn a_seed_stands_for_one_case() {
    let first = CampaignOptions { seed: 7, ..CampaignOptions::default() };
    let (case, again) = (
        first.generated(9),
        CampaignOptions { seed: 9, ..CampaignOptions::default() }.generated(9),
    );
    assert_eq!(ir::text::print_module(&case.module), ir::text::print_module(&again.module));
    assert_eq!(
        (case.steps_text(), case.level, case.arguments),
        (again.steps_text(), again.level, again.arguments)
    );
}

/// Every switch fires transitions, and the runs end like the runs without.
#[test]
fn every_stress_switch_moves_runs() {
    let off = Stress::default();
    let switches = [
        Stress { every: Some(1), ..off },
        Stress { every: Some(7), ..off },
        Stress { every: Some(7), seed: Some(3), ..off },
        Stress { at_static: Some(5), ..off },
        Stress { at_dynamic: Some(9), ..off },
    ];
    let mut hops = Vec::new();
    for stress in switches {
        let options = CampaignOptions { stress, inputs: 3, size: 80, ..CampaignOptions::default() };
        let results = run(options, 2, 40, u64::MAX);
        let figures = clean(&results);
        assert!(figures.stress.stressed >= 120, "{stress:?}: {} runs", figures.stress.stressed);
        assert!(
            figures.stress.stress_hops > 60,
            "{stress:?}: {} transitions",
            figures.stress.stress_hops
        );
        assert!(
            figures.stress.stressed_exhausted * 100 <= figures.stress.stressed,
            "{stress:?}: {}",
            figures.stress.stressed_exhausted
        );
        hops.push(figures.stress.stress_hops);
    }
    assert!(hops[0] > 2 * hops[1], "more often at every point than at every seventh: {hops:?}");
    assert_ne!(hops[1], hops[2], "the stress seed shifts where counting begins");
}

#[test]
fn shuffling_changes_the_order_of_passes() {
    let pipelines = || vec![passes::Pipeline::default().passes().to_vec()];
    let order = |shuffle: bool, seed: u64| {
        CampaignOptions {
            shuffle,
            pipelines: pipelines(),
            versions: Some(2),
            ..CampaignOptions::default()
        }
        .generated(seed)
        .pipeline()
    };
    assert_eq!(order(false, 1), order(false, 2));
    assert_ne!(order(true, 1), order(true, 2));
    let sorted = |text: String| {
        let mut names: Vec<String> = text.split(',').map(str::to_owned).collect();
        names.sort();
        names
    };
    assert_eq!(sorted(order(true, 1)), sorted(order(false, 1)));
}

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
    let (case, _) = first_failure(oracle, wrong, damage);
    assert!(
        instructions(&case) > 5 * most,
        "the case has only {} instructions",
        instructions(&case)
    );
    let small = reduce(&case, oracle, &|case| judge_with(case, damage).oracle());
    let judged = judge_with(&small, damage);
    assert_eq!(judged.oracle(), Some(oracle));
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
