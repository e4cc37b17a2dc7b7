//! The kill matrix: for each bug, the layers that detect it.

use super::layers::Layer;
use super::programs::{DEMANDS, LANDING, NATIVE, SPECULATING};
use mutants::table::Mutant;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The results of one bug.
pub(crate) struct Row<'t> {
    bug: &'t Mutant,
    /// Programs tried.
    pub(crate) programs: usize,
    /// The programs among them whose versions or mappings differ from the versions and mappings
    /// without the bug.
    pub(crate) reached: usize,
    /// Entries that the checker accepts and a run shows to be wrong: must be 0.
    pub(crate) escaped: usize,
    /// The same, where the checker rejects the versions of another function of the program.
    pub(crate) beside: usize,
    /// By layer: the number of the first program by which it detected the bug.
    kills: BTreeMap<Layer, usize>,
}

impl<'t> Row<'t> {
    pub(crate) fn new(bug: &'t Mutant) -> Row<'t> {
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

/// The reason why the checker cannot see a bug. `None` if it can.
fn hidden(bug: &Mutant) -> Option<&'static str> {
    match bug.name.as_str() {
        _ if bug.area == SPECULATING => Some("it judges each mapping that the search asks it for"),
        _ if bug.area == NATIVE || bug.area == LANDING => Some("versions and mappings are right"),
        _ if bug.area == DEMANDS => Some("it is the checker that is wrong"),
        "InlineForgetsEffects"
        | "InlineSharesIds"
        | "AdceForgetsBranches"
        | "AdceCountsOneUseLess"
        | "CfgMergesJoins"
        | "CfgForgetsUses"
        | "CfgSkipsFullBlocks" => {
            Some("the editor refuses each such edit, so there is no wrong version")
        }
        "ClaimOriginsOfCaller" => Some("there is no claim about the copy"),
        "FramesWithoutOutermost"
        | "FramesSwapped"
        | "FramesStayInVersion"
        | "FramesRequireNothing"
        | "OnlyTakesFirst" => Some("the checker composes frames with this code itself"),
        "LogOmitsReplacements"
        | "LogOmitsDeletions"
        | "LogWrongPlace"
        | "LogMoveAsDeleteAdd"
        | "LogReplacementTurned"
        | "LogFoldTurned"
        | "LogHoistAsSink" => {
            Some("the versions are right, and no mapping is made of a log that does not replay")
        }
        _ => None,
    }
}

pub(crate) fn text(rows: &[Row<'_>]) -> String {
    let mut out = format!("{:>4} {:<28}", "id", "bug");
    Layer::ALL
        .iter()
        .for_each(|l| write!(out, " {:>6}", l.name()).expect("writing to a string cannot fail"));
    writeln!(out, " {:>9}", "reached").expect("writing to a string cannot fail");
    let mut area = "";
    for row in rows {
        if area != row.bug.area {
            area = &row.bug.area;
            writeln!(out, "{area}").expect("writing to a string cannot fail");
        }
        write!(out, "{:>4} {:<28}", row.bug.id, row.bug.name)
            .expect("writing to a string cannot fail");
        for layer in Layer::ALL {
            let number = row.kills.get(&layer).map_or_else(|| "-".to_owned(), usize::to_string);
            let width = layer.name().len().max(6);
            write!(out, " {number:>width$}").expect("writing to a string cannot fail");
        }
        let reached = format!("{}/{}", row.reached, row.programs);
        writeln!(out, " {reached:>9}").expect("writing to a string cannot fail");
    }
    totals(rows, &mut out);
    out
}

fn totals(rows: &[Row<'_>], out: &mut String) {
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
    let seen: Vec<&Row<'_>> = rows.iter().filter(|r| hidden(r.bug).is_none()).collect();
    let killed = seen.iter().filter(|r| r.killed(Layer::Checker)).count();
    line(format!("the checker can see {} and kills {killed} of them by itself", seen.len()));
    for row in rows {
        if let Some(reason) = hidden(row.bug) {
            line(format!("  cannot see {}: {reason}", row.bug.name));
        } else if !row.killed(Layer::Checker) {
            line(format!("  misses {}", row.bug.name));
        }
    }
    for row in rows.iter().filter(|r| !r.killed_by_any()) {
        line(format!("survives: {}: {}", row.bug.name, row.bug.summary));
    }
}
