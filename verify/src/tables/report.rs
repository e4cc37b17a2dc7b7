//! The report of runs through tables: counts, and divergences.

use ir::{Point, Value};
use std::fmt;

/// The difference between a run through tables and the run that stays in the base.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TableDifference {
    /// A run entered a row whose facts do not hold, and the row did not leave at a test of them.
    EnteredLie {
        /// How the run ended, or where it paused.
        found: String,
    },
    /// The machine refused a transition, or the code of an entry failed.
    Refused {
        /// The source point.
        point: Point,
        /// The reason.
        reason: String,
    },
    /// An assumption of a row has no entry back.
    WithoutExit {
        /// The point of the assumption.
        point: Point,
    },
    /// An exit that lands at the landing of a row is not composed with the entry to the row.
    NotComposed {
        /// The point of the exit.
        point: Point,
    },
    /// The base did not come to the landing point of an entry between the same events.
    NoPartner {
        /// The source point.
        point: Point,
        /// The landing point.
        target: Point,
    },
    /// An entry provides other contents of a value than the base has.
    Value {
        /// The source point.
        point: Point,
        /// The value of the base.
        value: Value,
        /// Its contents in the base.
        expected: u64,
        /// What the entry provides.
        found: u64,
    },
    /// An entry to a frame state does not provide a value that the state names.
    NotNamed {
        /// The source point.
        point: Point,
        /// The value of the base.
        value: Value,
    },
    /// The effects differ at the landing point of an entry.
    Effects {
        /// The source point.
        point: Point,
    },
    /// Memory differs at the landing point of an entry.
    Memory {
        /// The source point.
        point: Point,
    },
    /// The row and the base executed different events.
    Events {
        /// The number of common events before them.
        after: usize,
    },
    /// Result, memory or effects differ at the end of a chain.
    End {
        /// The end of the run in the base.
        expected: String,
        /// The end of the chain.
        found: String,
    },
}

impl fmt::Display for TableDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableDifference::EnteredLie { found } => {
                write!(f, "a row whose facts do not hold is not left at their tests: {found}")
            }
            TableDifference::Refused { point, reason } => {
                write!(f, "the entry at {} does not fire: {reason}", point.inst())
            }
            TableDifference::WithoutExit { point } => {
                write!(f, "the assumption at {} has no entry back", point.inst())
            }
            TableDifference::NotComposed { point } => {
                write!(f, "the exit at {} does not lead on to a row", point.inst())
            }
            TableDifference::NoPartner { point, target } => {
                let (point, target) = (point.inst(), target.inst());
                write!(f, "the base does not come to {target}, where the entry at {point} lands")
            }
            TableDifference::Value { point, value, expected, found } => {
                let point = point.inst();
                write!(f, "the entry at {point} gives {found:#x} for {value}, not {expected:#x}")
            }
            TableDifference::NotNamed { point, value } => {
                let point = point.inst();
                write!(f, "the entry at {point} lacks {value}, which the frame state names")
            }
            TableDifference::Effects { point } => {
                write!(f, "the effects differ where the entry at {} lands", point.inst())
            }
            TableDifference::Memory { point } => {
                write!(f, "memory differs where the entry at {} lands", point.inst())
            }
            TableDifference::Events { after } => {
                write!(f, "row and base differ behind {after} common events")
            }
            TableDifference::End { expected, found } => {
                write!(f, "the chain ends in {found}; in the base, the run ends in {expected}")
            }
        }
    }
}

/// A run through tables that differs from the base.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableDivergence {
    /// The arguments of the run, as bits.
    pub input: Vec<u64>,
    /// The function, the landing, and the index of the row; `None` for the end of a chain without a
    /// transition.
    pub place: Option<(String, Point, usize)>,
    /// The difference.
    pub difference: TableDifference,
}

impl fmt::Display for TableDivergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((function, at, row)) = &self.place {
            writeln!(f, "  {function}, row {row} of the table at {}", at.inst())?;
        }
        write!(f, "  {}\n  on input (", self.difference)?;
        for (index, bits) in self.input.iter().enumerate() {
            write!(f, "{}{bits:#x}", if index == 0 { "" } else { ", " })?;
        }
        f.write_str(")")
    }
}

/// Counts and divergences, summed over any number of runs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TableRunReport {
    /// Inputs run.
    pub runs: u64,
    /// Runs that a trap of the program ended.
    pub trapped: u64,
    /// Runs and chains that a limit ended. The judge compares no such ends.
    pub exhausted: u64,
    /// Runs that visit no landing.
    pub without_landings: u64,
    /// Chains run.
    pub chains: u64,
    /// Entries into rows whose facts hold, in chains.
    pub entered: u64,
    /// Entries into rows whose facts do not hold. Each was left at a test of a fact.
    pub lies: u64,
    /// Exits at failing assumptions that led to another row, by one composed entry.
    pub to_rows: u64,
    /// Exits at failing assumptions that led to the base.
    pub failed: u64,
    /// Exits at failing assumptions that led to a frame state, for the embedder's interpreter.
    pub handed: u64,
    /// Entries back to the base at other points, in chains.
    pub left: u64,
    /// Visits of landings from which states were compared.
    pub compared_visits: u64,
    /// States compared: one entry back to the base each.
    pub states: u64,
    /// The values compared in them.
    pub values: u64,
    /// Those of the states at assumptions that hold.
    pub holding: u64,
    /// Those at assumptions that fail.
    pub failing: u64,
    /// Those of the states that entries to frame states provide.
    pub handed_states: u64,
    /// States that entries to frame states provide, and that were not compared, because the base
    /// came to the frame state before both runs began. Chains hand over there.
    pub handed_unmet: u64,
    /// Rows whose states were not compared: a loop without a common event has visits that no judge
    /// tells apart. Chains enter them.
    pub not_aligned: u64,
    /// All divergences found, kept or not.
    pub divergence_count: u64,
    /// The first divergences, up to the limit of the options.
    pub divergences: Vec<TableDivergence>,
}

impl TableRunReport {
    /// The number of transitions in chains and of compared states.
    pub fn transitions(&self) -> u64 {
        let chains =
            self.entered + self.lies + self.to_rows + self.failed + self.left + self.handed;
        chains + self.compared_visits + self.states
    }

    /// Adds the counts of another report, and keeps all its divergences.
    pub fn add(&mut self, other: &TableRunReport) {
        self.runs += other.runs;
        self.trapped += other.trapped;
        self.exhausted += other.exhausted;
        self.without_landings += other.without_landings;
        self.chains += other.chains;
        self.entered += other.entered;
        self.lies += other.lies;
        self.to_rows += other.to_rows;
        self.failed += other.failed;
        self.handed += other.handed;
        self.left += other.left;
        self.compared_visits += other.compared_visits;
        self.states += other.states;
        self.values += other.values;
        self.holding += other.holding;
        self.failing += other.failing;
        self.handed_states += other.handed_states;
        self.handed_unmet += other.handed_unmet;
        self.not_aligned += other.not_aligned;
        self.divergence_count += other.divergence_count;
        self.divergences.extend(other.divergences.iter().cloned());
    }
}
