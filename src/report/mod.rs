//! The figures of `osier report`: at how many points execution can move between two versions of a
//! function, what it costs, and why elsewhere it cannot.

mod published;
mod table;
mod tally;
mod text;
mod totals;

pub use text::{WIDTH, text};

use crate::driver::{Derived, Observer, Step};
use crate::schema::{Actions, Direction, FunctionReport, LEVELS, Program, Report, SCHEMA, Size, Time};
use ir::Function;
use ir::edit::ActionLog;
use osr::{Level, VersionPair};
use tally::{Gap, Tally};

/// The place of a level in [`LEVELS`].
fn place(level: Level) -> usize {
    LEVELS.iter().position(|name| *name == level.name()).expect("the schema has every level")
}

/// The figures of one function and the version derived from it; `infeasible` and `blame` at `level`.
///
/// Mappings are made and dropped level by level. Cost: that of one synthesis for each level.
///
/// # Panics
/// When the log does not lead from `base` to the version derived.
pub fn function_report(
    base: &Function,
    derived: &Derived,
    level: Level,
    observer: &mut dyn Observer,
) -> FunctionReport {
    observer.begin(Some(Step::Map));
    let (forward, backward) = directions(base, &derived.function, &derived.log, level);
    observer.begin(None);
    FunctionReport {
        name: base.name().to_owned(),
        base: Size::of(base),
        opt: Size::of(&derived.function),
        actions: Actions::of(derived.log.actions()),
        forward,
        backward,
    }
}

/// The figures of the mappings both ways.
fn directions(base: &Function, opt: &Function, log: &ActionLog, level: Level) -> (Direction, Direction) {
    let pair = VersionPair::new(base, opt, log).expect("the driver has replayed the log");
    let mut tallies = [Tally::new(base), Tally::new(opt)];
    for each in Level::ALL {
        let synthesis = osr::synthesize(&pair, each);
        for (tally, made) in tallies.iter_mut().zip([&synthesis.forward, &synthesis.backward]) {
            tally.take_level(place(each), made.points as u64, made.unreachable as u64, &made.mapping);
            if each == level {
                let gaps =
                    made.unmapped.iter().map(|u| Gap { point: u.point, reason: u.reason.name(), blame: u.blame });
                tally.take_gaps(gaps, log);
            }
        }
    }
    let [forward, backward] = tallies.map(Tally::finish);
    (forward, backward)
}

/// The report on functions given in module order. Its times are all 0: the library reads no clock.
pub fn report(program: Program, pipeline: Vec<String>, level: Level, functions: Vec<FunctionReport>) -> Report {
    let totals = totals::totals(&functions);
    let level = level.name().to_owned();
    Report { schema: SCHEMA, program, pipeline, level, functions, totals, time: Time::default() }
}
