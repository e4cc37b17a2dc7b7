//! The fuzzer under a small budget. It finds no divergence, and its figures stay above their
//! floors.

use fuzz::{
    CampaignLimits, CampaignOptions, CaseSource, Drawn, Figures, Results, Stress, campaign, judge,
};
use ir::text::parse_module;
use std::sync::Arc;
use texts::LOOP_WITHOUT_A_SHARED_ANCHOR;

mod budgets;
mod certified;
mod mistakes;
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

/// The gate judges more such programs, with optimized code.
#[test]
fn nothing_diverges_and_no_figure_is_below_its_floor() {
    let results =
        run(CampaignOptions { inputs: 6, ..CampaignOptions::default() }, 2, 110, u64::MAX);
    let figures = clean(&results);
    assert_eq!(figures.below_floors(), Vec::<String>::new());
    assert_eq!(figures.programs, 110);
    assert_eq!(figures.passes.len(), passes::registry::PASSES.len(), "every pass is run");
    assert!(figures.transitions() >= 88_000, "{} transitions", figures.transitions());
    assert!(figures.versions.len() >= 4, "programs by number of versions: {:?}", figures.versions);
    assert!(
        figures.entries_fired * 2 > figures.entries_armed,
        "{} of {} entries fired",
        figures.entries_fired,
        figures.entries_armed
    );
    assert!(
        figures.hops.chains >= 180 && figures.hops.full_chains * 10 >= figures.hops.chains * 8,
        "{:?}",
        figures.hops
    );
    assert_eq!(figures.hops.exhausted, 0);
    assert!(
        figures.certificates.certified >= 1800
            && figures.certificates.dropped() * 100 <= figures.certificates.certified,
        "{figures:#?}"
    );
    assert!(
        figures.composition.composed >= 180 && figures.composition.same_point >= 18_000,
        "{figures:#?}"
    );
}

#[test]
fn speculation_is_judged_at_failing_assumptions_too() {
    let options = CampaignOptions { only_speculation: true, inputs: 6, ..Default::default() };
    let results = run(options, 2, 90, u64::MAX);
    let figures = clean(&results);
    assert_eq!(figures.below_floors(), Vec::<String>::new());
    let all = &figures.speculation;
    let (holding, failing) = all.exits();
    assert!(all.made >= 300 && 4 * all.dropped < all.made, "{all:#?}");
    assert!(all.failing * 10 >= all.made * 3 && all.visited > all.failing, "{all:#?}");
    assert!(holding >= 1900 && failing >= 750, "{holding} holding, {failing} failing");
    assert!(all.hops.hops >= 375, "{:#?}", all.hops);
    assert_eq!(all.hops.exhausted, 0);
    let transitions = all.state.total().transitions;
    let tables = &all.tables.runs;
    assert_eq!(figures.transitions(), transitions + tables.transitions());
    assert!(transitions > holding + failing, "other entries fire, too");
    assert!(tables.lies > 20 && tables.to_rows > 20 && tables.failing > 200, "{tables:#?}");
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

/// Each pass alone changes at least half of the programs. Oracles of versions that this pass alone
/// does not make have other campaigns.
#[test]
fn every_pass_acts_on_half_of_the_programs() {
    for pass in passes::registry::PASSES {
        let options = CampaignOptions {
            pipelines: vec![vec![*pass]],
            versions: Some(2),
            inputs: 1,
            going_on: 0,
            assumptions: 0,
            inlining: false,
            ..CampaignOptions::default()
        };
        let results = run(options, 2, 24, u64::MAX);
        let acted = clean(&results).passes[pass.name()].acted;
        assert!(acted >= 12, "{} acts on {acted} of 24 programs", pass.name());
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
        let options = CampaignOptions { assumptions: 0, inlining: false, ..options };
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
