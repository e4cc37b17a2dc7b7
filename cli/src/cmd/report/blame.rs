//! `osier report --blame-check`: the test of blame on a sample of all functions.

use super::super::failure::CommandFailure;
use ir::{Func, Module};
use osier::driver::Retry;
use osier::report::{BetterBlame, RankedGap, check_blame};
use osier::schema::BlameCheck;
use osr::Level;
use passes::Pipeline;
use rayon::ThreadPoolBuilder;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use std::collections::BTreeMap;

/// Tests the blame at points. Each function is taken by one thread.
/// Returns also the better blame of each function.
///
/// # Errors
/// If the threads cannot be started.
pub(super) fn check(
    module: &Module,
    pipeline: &Pipeline,
    retry: Retry,
    level: Level,
    gaps: Vec<RankedGap>,
    jobs: usize,
) -> Result<(BlameCheck, BTreeMap<Func, BetterBlame>), CommandFailure> {
    let mut functions: BTreeMap<Func, Vec<RankedGap>> = BTreeMap::new();
    gaps.into_iter().for_each(|gap| functions.entry(gap.func).or_default().push(gap));
    let threads = ThreadPoolBuilder::new().num_threads(jobs).stack_size(super::super::jobs::STACK);
    let threads = threads
        .build()
        .map_err(|e| CommandFailure::input(format!("cannot start {jobs} threads: {e}")))?;
    let one = |(func, gaps): (Func, Vec<RankedGap>)| {
        let base = module.body(func).expect("the function has points");
        (func, check_blame(module, base, pipeline, retry, level, &gaps))
    };
    let checks: Vec<_> = threads.install(|| functions.into_par_iter().map(one).collect());
    let (mut all, mut better) = (BlameCheck::default(), BTreeMap::new());
    for (func, (check, blame)) in checks {
        all.merge(&check);
        better.insert(func, blame);
    }
    Ok((all, better))
}
