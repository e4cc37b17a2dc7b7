//! The figures of a report over generated programs: they add up at every level, and each level of
//! the chain has at least the entries of the level below.

use osier::driver::{NoObserver, Recipe, derive_proved};
use osier::report::function_report;
use osier::schema::{DirectionFigures, FunctionReport, LEVELS};
use osr::Level;
use verify::generate::{Weights, generate};

const PROGRAMS: u64 = 40;
const SIZE: u32 = 120;

/// Asserts that the figures of a direction add up at the level at which the gaps were counted.
fn adds_up(direction: &DirectionFigures, level: Level, what: &str) {
    let place =
        LEVELS.iter().position(|name| *name == level.name()).expect("a level of the schema");
    let feasible: Vec<u64> = direction.feasible.iter().map(|(_, count)| *count).collect();
    assert_eq!(feasible.len(), Level::ALL.len(), "{what}: a count for each level");
    assert!(feasible.is_sorted(), "{what}: {feasible:?}");
    let missing = direction.reachable() - feasible[place];
    assert_eq!(direction.causes.infeasible.values().sum::<u64>(), missing, "{what}: by reason");
    assert_eq!(direction.causes.blame.values().sum::<u64>(), missing, "{what}: by pass");
    for ((level, spread), count) in direction.chi.iter().zip(&feasible) {
        assert_eq!(spread.count(), *count, "{what}: compensation code at {}", LEVELS[level]);
    }
    let empty = direction.chi.get(0).expect("the empty level");
    assert!(empty.max().unwrap_or(0) == 0, "{what}: compensation code where nothing may be done");
}

/// The reports on all functions of a generated program.
fn reports(seed: u64, level: Level) -> Vec<FunctionReport> {
    let program = generate(seed, SIZE, &Weights::default());
    let pipeline = passes::Pipeline::default();
    let bodies = program.module.defined();
    let report = |(_, base)| {
        let recipe = Recipe::new(&pipeline, &Level::ALL);
        let secured = derive_proved(&program.module, base, &recipe, &mut NoObserver);
        function_report(base, &secured, level)
    };
    bodies.map(report).collect()
}

#[test]
fn figures_add_up_at_every_level() {
    let (mut changed, mut missing) = (0, 0);
    for seed in 0..PROGRAMS {
        let level = Level::ALL[seed as usize % Level::ALL.len()];
        for report in reports(seed, level) {
            adds_up(
                &report.forward,
                level,
                &format!("seed {seed} {} forward at {level}", report.name),
            );
            adds_up(
                &report.backward,
                level,
                &format!("seed {seed} {} backward at {level}", report.name),
            );
            changed += u64::from(report.is_changed());
            missing += report.forward.causes.infeasible.values().sum::<u64>();
        }
    }
    // With fewer, the assertions above would hold without checking anything.
    assert!(
        changed > PROGRAMS && missing > 0,
        "{changed} changed functions, {missing} points without entry"
    );
}
