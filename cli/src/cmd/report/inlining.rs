//! `osier report` with a pipeline that inlines.

use super::minimum::{self, MeasuredShares};
use super::{Args, ReportClock, names, program, times, times_text};
use crate::cmd::failure::{CommandFailure, tell_progress};
use crate::cmd::input::Loaded;
use crate::cmd::jobs::each_function;
use crate::cmd::stopwatch::Stopwatch;
use ir::{Func, Function};
use osier::inlining::{CalleeLandings, InlinePlan, NotInlined, inline};
use osier::report;
use osier::schema::{InliningFigures, InliningReport, SCHEMA, Time};
use std::collections::BTreeMap;

/// Writes the report on versions with inlined code, as [`super::report`] does.
pub(super) fn report(
    args: &Args,
    loaded: &Loaded,
    selected: &[(Func, &Function)],
    plan: &InlinePlan,
    clock: ReportClock,
) -> Result<(), CommandFailure> {
    let module = &loaded.module;
    let plan = &plan.clone().with_retry(args.retry.bounds());
    let landings = CalleeLandings::new(module, plan);
    let funcs: BTreeMap<&str, Func> =
        selected.iter().map(|(func, base)| (base.name(), *func)).collect();
    let figures = |base: &Function, stopwatch: &mut Stopwatch| {
        match inline(module, funcs[base.name()], plan, &landings, stopwatch) {
            Ok(made) => Some(report::inlined_function(&made)),
            Err(NotInlined::NoCall) => None,
            // A copy that the checker rejects is a bug of ours, not a property of the program.
            Err(error) => panic!("@{}: {error}", base.name()),
        }
    };
    let jobs = args.jobs.count();
    each_function(jobs, selected, figures, |worked| {
        let plain = worked.results.iter().filter(|function| function.is_none()).count() as u64;
        let mut report = InliningReport {
            schema: SCHEMA,
            program: program(loaded),
            pipeline: args.pipeline.first().map(names).unwrap_or_default(),
            plain,
            functions: worked.results.into_iter().flatten().collect(),
            totals: InliningFigures::default(),
            interrupted: worked.interrupted,
            time: Time { import: clock.import, jobs: jobs as u64, ..times(&worked.stopwatch) },
        };
        report.sum();
        report.time.elapsed = clock.elapsed();
        tell_progress(&times_text(&report.time));
        let below = minimum::compare(&args.min, [MeasuredShares::of_inlining(&report)]);
        let tables = report::inlining_tables(&report);
        args.write(&report, &tables, report.interrupted, &below.lines)?;
        below.verdict()
    })
}
