//! The kill matrix: for each bug, the layers that detect it.

use super::layers::Layer;
use osier::ir::seeded::{Area, Bug};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The results for one bug.
pub(crate) struct Row {
    bug: Bug,
    /// The number of programs tried.
    pub(crate) programs: usize,
    /// The programs among them whose versions or mappings differ from those without the bug.
    pub(crate) reached: usize,
    /// Entries that the checker accepts and a run shows to be wrong: must be 0.
    pub(crate) escaped: usize,
    /// The same, where the checker rejects the versions of another function of the program.
    pub(crate) beside: usize,
    /// By layer: the number of the first program by which it detected the bug.
    kills: BTreeMap<Layer, usize>,
}

impl Row {
    pub(crate) fn new(bug: Bug) -> Row {
        Row { bug, programs: 0, reached: 0, escaped: 0, beside: 0, kills: BTreeMap::new() }
    }

    pub(crate) fn note(&mut self, layer: Layer, number: usize, noticed: bool) {
        if noticed {
            self.kills.entry(layer).or_insert(number);
        }
    }

    pub(crate) fn killed(&self, layer: Layer) -> bool {
        self.kills.contains_key(&layer)
    }

    pub(crate) fn killed_by_any(&self) -> bool {
        !self.kills.is_empty()
    }
}

/// The reason why the checker cannot detect a bug; `None` if it can.
fn hidden(bug: Bug) -> Option<&'static str> {
    match bug {
        bug if bug.area() == Area::Native => Some("versions and mappings are right"),
        Bug::AdceForgetsBranches
        | Bug::AdceCountsOneUseLess
        | Bug::CfgMergesJoins
        | Bug::CfgForgetsUses
        | Bug::CfgSkipsFullBlocks => {
            Some("the editor refuses each such edit, so there is no wrong version")
        }
        Bug::LogOmitsReplacements
        | Bug::LogOmitsDeletions
        | Bug::LogWrongPlace
        | Bug::LogMoveAsDeleteAdd
        | Bug::LogReplacementTurned
        | Bug::LogFoldTurned
        | Bug::LogHoistAsSink => {
            Some("the versions are right, and no mapping is made of a log that does not replay")
        }
        _ => None,
    }
}

pub(crate) fn text(rows: &[Row]) -> String {
    let mut out = format!("{:>4} {:<28}", "id", "bug");
    Layer::ALL
        .iter()
        .for_each(|l| write!(out, " {:>7}", l.name()).expect("writing to a string cannot fail"));
    writeln!(out, " {:>9}", "reached").expect("writing to a string cannot fail");
    let mut area: Option<Area> = None;
    for row in rows {
        if area.replace(row.bug.area()) != Some(row.bug.area()) {
            writeln!(out, "{:?}", row.bug.area()).expect("writing to a string cannot fail");
        }
        write!(out, "{:>4} {:<28}", row.bug as usize + 1, row.bug.name())
            .expect("writing to a string cannot fail");
        for layer in Layer::ALL {
            let number = row.kills.get(&layer).map_or_else(|| "-".to_owned(), usize::to_string);
            write!(out, " {number:>7}").expect("writing to a string cannot fail");
        }
        let reached = format!("{}/{}", row.reached, row.programs);
        writeln!(out, " {reached:>9}").expect("writing to a string cannot fail");
    }
    totals(rows, &mut out);
    out
}

fn totals(rows: &[Row], out: &mut String) {
    let by = |layer: Layer| rows.iter().filter(|r| r.killed(layer)).count();
    let mut line = |text: String| writeln!(out, "{text}").expect("writing to a string cannot fail");
    line(format!(
        "{} bugs, {} killed by any layer",
        rows.len(),
        rows.iter().filter(|r| r.killed_by_any()).count()
    ));
    let (escaped, beside) = (
        rows.iter().map(|r| r.escaped).sum::<usize>(),
        rows.iter().map(|r| r.beside).sum::<usize>(),
    );
    line(format!(
        "{escaped} entries accepted by the checker and blamed in a run by the state oracle"
    ));
    line(format!(
        "{beside} more in programs where the checker refuses the versions of another function"
    ));
    for layer in Layer::ALL {
        line(format!("{:>8} kills {}", layer.name(), by(layer)));
    }
    let seen: Vec<&Row> = rows.iter().filter(|r| hidden(r.bug).is_none()).collect();
    let killed = seen.iter().filter(|r| r.killed(Layer::Checker)).count();
    line(format!("the checker can see {} and kills {killed} of them by itself", seen.len()));
    for row in rows {
        if let Some(reason) = hidden(row.bug) {
            line(format!("  cannot see {}: {reason}", row.bug.name()));
        } else if !row.killed(Layer::Checker) {
            line(format!("  misses {}", row.bug.name()));
        }
    }
    for row in rows.iter().filter(|r| !r.killed_by_any()) {
        line(format!("survives: {}: {}", row.bug.name(), row.bug.summary().trim()));
    }
}
