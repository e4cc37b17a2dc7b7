//! Counts the runs through landing tables.

use super::keys;
use super::sum::figures;
use serde::Serialize;
use verify::tables::TableRunReport;

figures! {
    /// Figures of landing tables: code behind points of bases, under assumptions.
    #[derive(Serialize)]
    pub struct TableFigures {
        /// The number of tables.
        pub tables: u64,
        /// The number of rows in them.
        pub rows: u64,
        /// The number of rows that could not be made, because their assumptions contradict the
        /// code.
        pub not_made: u64,
        /// The number of assumptions that rows make, each with an entry to the base.
        pub exits: u64,
        /// The number of these that a row tests at its start.
        pub facts: u64,
        /// The number of tables whose rows leave to frame states, for an interpreter of the
        /// embedder's own.
        pub handing: u64,
        /// The figures of runs, without their findings. The document has
        ///
        /// - `chains`: the number of chains of transitions through tables,
        /// - `entered`: the number of entries into rows whose facts hold,
        /// - `lies`: the number of entries into rows whose facts do not hold, each left at a test,
        /// - `to_rows`: the number of exits at failing assumptions that led to another row,
        /// - `failed`, `left`: the number of transitions to the base at failing assumptions, and at
        ///   other points,
        /// - `handed`: the number of transitions to frame states at failing assumptions,
        /// - `exhausted`: the number of runs and chains that a limit ended,
        /// - `states`: the number of transitions out of rows whose states were compared,
        /// - `holding`, `failing`: the number of these at assumptions,
        /// - `handed_states`: the number of these that land at frame states,
        /// - `compared`: the number of values compared,
        /// - `not_aligned`: the number of visits of landings whose states were not compared,
        ///   because a loop of the row has no event of the base, and
        /// - `transitions`: the number of all transitions.
        #[serde(flatten, serialize_with = "keys::tables")]
        pub runs: TableRunReport,
    }
}
