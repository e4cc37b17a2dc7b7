//! Entries into versions with inlined code and out of them, compared with runs of the bases.

use super::ALL;
use fuzz::inlined_pair;
use interp::{Limits, NoHost};
use ir::Module;
use osier::driver::NoObserver;
use osier::inlining::{CalleeLandings, InlinePlan, Inlined, NotInlined, inline};
use passes::InlinePolicy;
use verify::generate::{Weights, generate};
use verify::state_oracle::{FunctionPair, Oracle, OracleOptions, Report};

/// The versions with inlined code of all functions of a module that have calls to inline.
pub(super) fn all_inlined(
    module: &Module,
    policy: InlinePolicy,
    pipeline: &str,
) -> Vec<(ir::Func, Inlined)> {
    let passes = passes::parse(pipeline).expect("a pipeline");
    let plan = InlinePlan::new(passes.clone(), policy, passes);
    let landings = CalleeLandings::new(module, &plan);
    let made = |(func, _)| match inline(module, func, &plan, &landings, &mut NoObserver) {
        Ok(inlined) => Some((func, inlined)),
        Err(NotInlined::NoCall) => None,
        Err(error) => panic!("{func}: {error}"),
    };
    module.defined().filter_map(made).collect()
}

pub(super) fn judged(
    module: &Module,
    inlined: &[(ir::Func, Inlined)],
    runs: &[(ir::Func, Vec<u64>)],
    options: OracleOptions,
) -> Report {
    let pairs: Vec<FunctionPair<'_>> =
        inlined.iter().map(|(func, made)| inlined_pair(*func, made)).collect();
    let limits = Limits { fuel: 200_000, ..Limits::default() };
    let options = OracleOptions { limits, ..options };
    let mut oracle = Oracle::new(module, &pairs, options).expect("it can be instantiated");
    for (func, args) in runs {
        oracle.run(*func, args, &NoHost);
    }
    oracle.report().clone()
}

#[test]
fn entries_lead_to_the_activations_of_the_bases() {
    let mut sum = Report::default();
    let (mut points, mut lost) = (0, 0);
    for seed in 0..150 {
        let made = generate(seed, 60, &Weights::default());
        let policy = if seed % 2 == 0 { ALL } else { InlinePolicy::default() };
        let inlined = all_inlined(&made.module, policy, "O2");
        for (_, one) in &inlined {
            points += one.points[1].len();
            lost += one.missing[1].len();
        }
        let options = OracleOptions { seed, ..OracleOptions::for_inlined_code() };
        let runs: Vec<_> = made.arguments.iter().map(|args| (made.main, args.clone())).collect();
        let report = judged(&made.module, &inlined, &runs, options);
        if let Some(first) = report.divergences.first() {
            panic!("program {seed}: {first:?}\n of {} {report:?}", report.divergence_count);
        }
        sum.add(&report);
    }
    assert!(8 * lost < points, "{lost} of {points} points have no way out");
    let (several, up) = (sum.backward.by_depth[1..].iter().sum::<u64>(), sum.forward.transitions);
    assert!(several > 10_000 && up > 10_000 && sum.backward.ends > 100, "{sum:?}");
}
