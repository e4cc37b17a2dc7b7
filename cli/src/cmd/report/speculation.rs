//! `osier report --speculate`.

use super::{Args, ReportClock, names, program};
use crate::cmd::failure::{CommandFailure, tell_progress};
use crate::cmd::input::Loaded;
use crate::cmd::jobs::each_function;
use crate::cmd::stopwatch::Stopwatch;
use ir::text::AtName;
use ir::{Func, Function};
use osier::profile::Profile;
use osier::report;
use osier::schema::{AssumptionFigures, SCHEMA, SpeculationReport, SpeculationTime};
use osier::speculate::{Suggester, Suggestion};
use passes::Pipeline;
use std::collections::BTreeMap;
use std::path::Path;

/// Writes the report on the assumptions that a profile suggests, as [`super::report`]
/// does.
pub(super) fn report(
    args: &Args,
    pipeline: &Pipeline,
    loaded: &Loaded,
    selected: &[(Func, &Function)],
    path: &Path,
    profile: &Profile,
    clock: ReportClock,
) -> Result<(), CommandFailure> {
    let module = &loaded.module;
    let jobs = args.jobs.count();
    let time =
        SpeculationTime { import: clock.import, jobs: jobs as u64, ..SpeculationTime::default() };
    let suggester = Suggester::new(module, profile, args.suggestions.options());
    let suggested: BTreeMap<&str, (Func, Vec<Suggestion>)> = selected
        .iter()
        .map(|(func, base)| (base.name(), (*func, suggester.of(*func))))
        .filter(|(_, (_, suggestions))| !suggestions.is_empty())
        .collect();
    let functions: Vec<(Func, &Function)> =
        selected.iter().filter(|(_, base)| suggested.contains_key(base.name())).copied().collect();
    let (pins, pins_name) = args.suggestions.pins();
    let figures = |base: &Function, _: &mut Stopwatch| {
        let (func, suggestions) = &suggested[base.name()];
        report::speculated(module, *func, profile, suggestions, pipeline, pins)
            .map_err(|error| CommandFailure::input(format!("{}: {error}", AtName(base.name()))))
    };
    each_function(jobs, &functions, figures, |worked| {
        let figures: Result<Vec<_>, CommandFailure> = worked.results.into_iter().collect();
        let mut report = SpeculationReport {
            schema: SCHEMA,
            program: program(loaded),
            profile: path.display().to_string(),
            pipeline: args.pipeline.first().map(names).unwrap_or_default(),
            pins: pins_name,
            visits: args.suggestions.options().visits,
            functions: figures?,
            observed: BTreeMap::new(),
            totals: AssumptionFigures::default(),
            interrupted: worked.interrupted,
            time,
        };
        report.sum();
        report.time.elapsed = clock.elapsed();
        tell_progress(&format!("{:.2} s in all", report.time.elapsed));
        args.write(&report, &report::speculation_tables(&report), report.interrupted, &[])
    })
}
