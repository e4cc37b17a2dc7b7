//! The oracle of native code, with runs and threads beside it, under a small budget.

use fuzz::{AddUp, CampaignOptions, Figures, Stress};

/// Judges cases in native code alone, in this process, and adds up the figures.
fn native(options: &CampaignOptions, seeds: std::ops::Range<u64>) -> Figures {
    let clock: fuzz::Clock = std::sync::Arc::new(|| std::time::Duration::ZERO);
    let mut all = Figures::default();
    for seed in seeds {
        let judged = fuzz::judge_native(&options.generated(seed), &clock);
        if let Some(finding) = judged.findings.first() {
            panic!("seed {seed}: {finding}");
        }
        all.add(&judged.figures);
    }
    all
}

#[test]
fn transitions_of_native_code_are_the_interpreters() {
    let figures =
        native(&CampaignOptions { size: 60, inputs: 4, ..CampaignOptions::default() }, 0..24);
    let native = figures.native;
    assert!(native.transitions >= 2000, "{native:?}");
    assert!(native.backward * 4 > native.transitions, "{native:?}");
    assert!(
        native.probed * 3 > native.transitions && native.probed < native.transitions,
        "{native:?}"
    );
    let native_ones = native.transitions + native.left_inlined + native.to_rows;
    assert_eq!(figures.transitions(), native_ones);
}

/// Exits lead into one activation and several, in the interpreter and in one piece of code.
#[test]
fn native_code_leaves_inlined_code() {
    let options =
        CampaignOptions { size: 60, inputs: 20, only_inlining: true, ..CampaignOptions::default() };
    let figures = native(&options, 0..40);
    let native = figures.native;
    assert!(native.points_fired >= 40 && native.left_inlined >= 1500, "{native:?}");
    assert!(native.framed * 2 > native.left_inlined, "{native:?}");
    assert!(native.resumed_inlined >= 100, "{native:?}");
    assert_eq!((native.transitions, figures.transitions()), (0, native.left_inlined));
}

#[test]
fn exits_of_native_code_are_the_interpreters() {
    let figures = native(
        &CampaignOptions {
            size: 40,
            inputs: 40,
            only_speculation: true,
            ..CampaignOptions::default()
        },
        0..16,
    );
    let native = figures.native;
    assert!(native.speculative >= 20 && native.assumptions >= 50, "{native:?}");
    assert!(native.assumptions_failing * 4 > native.assumptions, "{native:?}");
    assert!(native.exits >= 3000 && native.held >= 3000, "{native:?}");
    assert!(
        native.exits_interpreted * 8 > native.exits && native.exits_linked * 8 > native.exits,
        "{native:?}"
    );
    let asked = native.exits - native.exits_interpreted - native.exits_linked;
    assert!(asked * 8 > native.exits, "{native:?}");
    assert!(native.transitions >= 1000 && native.probed > 0, "{native:?}");
}

/// Versions other than the versions of the passes are judged only if the case has assumptions.
#[test]
fn native_code_without_assumptions_has_no_exits() {
    let options =
        CampaignOptions { size: 40, inputs: 2, assumptions: 0, ..CampaignOptions::default() };
    let native = native(&options, 0..2).native;
    assert_eq!((native.speculative, native.assumptions, native.exits), (0, 0, 0));
    assert!(native.transitions > 0);
}

#[test]
fn stress_switches_work_in_native_code() {
    let stress = Stress { every: Some(3), ..Stress::default() };
    let figures = native(
        &CampaignOptions { size: 30, inputs: 2, stress, ..CampaignOptions::default() },
        0..6,
    );
    let native = figures.native;
    assert!(native.transitions >= 100 && native.stays > native.transitions, "{native:?}");
}

/// Code comes late by a number of visits from the seed, whatever the threads do.
#[test]
fn native_code_comes_late_by_a_schedule_of_the_seed() {
    let options = CampaignOptions { size: 60, inputs: 4, ..CampaignOptions::default() };
    let schedule = || {
        let native = (0..24).map(|seed| native(&options, seed..seed + 1).native);
        native.map(|native| (native.tiered, native.late, native.delays)).collect::<Vec<_>>()
    };
    let (first, again) = (schedule(), schedule());
    assert_eq!(first, again);
    let (mut tiered, mut late, mut delays) = (0, 0, 0);
    for one in &first {
        (tiered, late, delays) = (tiered + one.0, late + one.1, delays + one.2);
    }
    assert!(tiered >= 12 && late >= 24 && delays > late, "{first:?}");
}

/// Two threads beside the run compile, install code, and set flags.
#[test]
fn other_threads_move_runs_out_of_native_code() {
    let options = CampaignOptions { size: 60, inputs: 4, ..CampaignOptions::default() };
    let native = native(&options, 0..40).native;
    assert!(native.entered >= 20 && native.flagged >= 20, "{native:?}");
}

/// Values of transitions differ in the bits of NaNs, and in nothing else.
#[test]
fn nans_of_the_processor_are_compared_but_for_their_bits() {
    let nans = jit::Nans::Platform;
    let options = CampaignOptions { size: 60, inputs: 4, nans, ..CampaignOptions::default() };
    let figures = native(&options, 0..40);
    assert!(figures.native.nans > 0 && figures.native.transitions >= 2000, "{figures:?}");
    let canonical = CampaignOptions { nans: jit::Nans::Canonical, ..options };
    assert_eq!(native(&canonical, 0..6).native.nans, 0);
}
