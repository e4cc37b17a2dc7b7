//! The tables of the goals: whole processes, totals beside the better engine of ours, first calls,
//! iterations.

use super::contender::Contender;
use super::programs::{EMPTY, FUNCTIONS, PROGRAMS};
use super::samples::{EngineSample, Measure, Samples};
use crate::figures::statistics::{Estimate, Iterations};
use crate::figures::table::{FigureTable, FigureUnit};
use crate::figures::{Series, lesser, ratios};
use std::collections::BTreeSet;

/// The least time that a difference of two times counts as, in seconds. The difference of a short
/// program and the empty one can be nothing or less.
const LEAST: f64 = 0.001;

fn seconds(name: &str) -> (String, FigureUnit) {
    (name.to_owned(), FigureUnit::Seconds)
}

fn ratio(name: &str) -> (String, FigureUnit) {
    (name.to_owned(), FigureUnit::Ratio)
}

fn is_program(name: &str) -> bool {
    name != EMPTY.label()
}

/// The tables of all samples. `large` has the labels of the programs whose modules are large.
pub(super) fn tables(samples: &Samples, large: &BTreeSet<String>) -> Vec<FigureTable> {
    let mut tables = Vec::new();
    for cores in samples.cores(Measure::Process) {
        tables.push(processes(samples, cores, large));
        tables.push(totals(samples, cores));
    }
    for cores in samples.cores(Measure::First) {
        tables.push(first_calls(samples, cores));
    }
    for cores in samples.cores(Measure::Iterations) {
        tables.push(iterations(samples, cores));
    }
    tables
}

fn on(cores: u32) -> String {
    if cores == 1 { "one core".to_owned() } else { format!("{cores} cores") }
}

/// `osier run --engine tiered` beside the engines of others.
fn processes(samples: &Samples, cores: u32, large: &BTreeSet<String>) -> FigureTable {
    let title = format!(
        "Whole processes, {}: osier tiered, and its time by that of each other engine",
        on(cores)
    );
    let peers = Contender::PEERS;
    let columns = std::iter::once(seconds("tiered"));
    let columns = columns.chain(peers.iter().map(|peer| ratio(peer.name())));
    let mut table = FigureTable::new(&title, columns.collect());
    let figure = |program: &str, contender, of: fn(&EngineSample) -> f64| {
        samples.series(Measure::Process, program, cores, contender, |sample| Some(of(sample)))
    };
    let wall: fn(&EngineSample) -> f64 = |sample| sample.wall;
    let processor: fn(&EngineSample) -> f64 = |sample| sample.processor;
    let labels: Vec<String> = PROGRAMS.iter().map(|program| program.label()).collect();
    for label in &labels {
        let ours = figure(label, Contender::Tiered, wall);
        let theirs = peers.iter().map(|peer| ratios(&ours, &figure(label, *peer, wall)));
        table.push(label, std::iter::once(ours.clone()).chain(theirs).collect());
    }
    table.mean("geometric mean", is_program);
    table.mean("modules > 500 kB", |name| large.contains(name));
    table.mean("other modules", |name| is_program(name) && !large.contains(name));
    // The same of other figures, with the same columns.
    let mut derived = |name: &str, of: &dyn Fn(&str, Contender) -> Series| {
        let mut other = FigureTable::new("", table.columns.clone());
        for label in labels.iter().filter(|label| is_program(label)) {
            let ours = of(label, Contender::Tiered);
            let theirs = peers.iter().map(|peer| ratios(&ours, &of(label, *peer)));
            other.push(label, std::iter::once(ours.clone()).chain(theirs).collect());
        }
        other.mean(name, |_| true);
        table.summary.extend(other.summary);
    };
    derived("less an empty one", &|label, contender| {
        let empty = figure(&EMPTY.label(), contender, wall);
        let start = Estimate::of(empty.into_values()).map_or(0.0, |estimate| estimate.median);
        let whole = figure(label, contender, wall).into_iter();
        whole.map(|(round, wall)| (round, (wall - start).max(LEAST))).collect()
    });
    derived("processor time", &|label, contender| figure(label, contender, processor));
    table.worst(1.0, is_program);
    table
}

/// `osier run --engine tiered` beside the better of `interp` and `jit`, for each program by itself.
fn totals(samples: &Samples, cores: u32) -> FigureTable {
    let title = format!(
        "Total time, {}: osier tiered by the better of interp and jit of the same round",
        on(cores)
    );
    let columns = [seconds("interp"), seconds("jit"), seconds("tiered"), ratio("tiered")];
    let mut table =
        FigureTable::new(&title, columns.into_iter().chain([ratio("on the spot")]).collect());
    for program in PROGRAMS {
        let label = program.label();
        let wall = |contender| {
            samples.series(Measure::Process, &label, cores, contender, |sample| Some(sample.wall))
        };
        let (interp, jit) = (wall(Contender::Interp), wall(Contender::Jit));
        let tiered = wall(Contender::Tiered);
        let better = lesser(&interp, &jit);
        let spot = ratios(&wall(Contender::Spot), &better);
        let ratio = ratios(&tiered, &better);
        table.push(&label, vec![interp, jit, tiered, ratio, spot]);
    }
    table.mean("geometric mean", is_program);
    table.worst(1.3, is_program);
    table
}

/// The first call of one long loop, by the median of the later calls.
fn first_calls(samples: &Samples, cores: u32) -> FigureTable {
    let title = format!(
        "First call of one long loop, {}: by later calls in the process; osier tiered, and node",
        on(cores)
    );
    let names = ["osier", "later", "node", "later"].map(seconds);
    let columns = names.into_iter().chain(["osier/later", "node/later"].map(ratio));
    let mut table = FigureTable::new(&title, columns.collect());
    let later = |sample: &EngineSample| {
        let later = Estimate::of(sample.calls.get(1..)?.iter().copied())?;
        Some(later.median)
    };
    for function in FUNCTIONS {
        let label = function.label();
        let of = |contender, figure: &dyn Fn(&EngineSample) -> Option<f64>| {
            samples.series(Measure::First, &label, cores, contender, figure)
        };
        let first = |sample: &EngineSample| sample.calls.first().copied();
        let [ours, theirs] = [Contender::Tiered, Contender::Node]
            .map(|contender| (of(contender, &first), of(contender, &later)));
        let both = [ratios(&ours.0, &ours.1), ratios(&theirs.0, &theirs.1)];
        table.push(&label, [ours.0, ours.1, theirs.0, theirs.1].into_iter().chain(both).collect());
    }
    table.mean("geometric mean", |_| true);
    table.worst(1.1, |_| true);
    table
}

/// First, worst and average iteration beside node.
fn iterations(samples: &Samples, cores: u32) -> FigureTable {
    let title = format!(
        "Twenty calls, {}: the first, the worst four, all but the first; osier tiered by node",
        on(cores)
    );
    let columns = ["first", "worst", "average", "all three"].map(ratio);
    let columns = std::iter::once(seconds("first")).chain(columns);
    let mut table = FigureTable::new(&title, columns.collect());
    let figures: [fn(&Iterations) -> f64; 4] =
        [|one| one.first, |one| one.worst, |one| one.average, Iterations::combined];
    for function in FUNCTIONS {
        let label = function.label();
        let of = |contender, figure: fn(&Iterations) -> f64| {
            samples.series(Measure::Iterations, &label, cores, contender, |sample| {
                Iterations::of(&sample.calls).map(|scored| figure(&scored))
            })
        };
        let ours = figures.map(|figure| of(Contender::Tiered, figure));
        let theirs = figures.map(|figure| of(Contender::Node, figure));
        let both = ours.iter().zip(&theirs).map(|(ours, theirs)| ratios(ours, theirs));
        table.push(&label, std::iter::once(ours[0].clone()).chain(both).collect());
    }
    table.mean("geometric mean", |_| true);
    table.worst(1.0, |_| true);
    table
}
