//! Counts the work of the speculation oracle.

use super::keys::{self, OracleFigures};
use super::sum::figures;
use super::tables::TableFigures;
use serde::Serialize;
use verify::hops::HopReport;
use verify::state_oracle::Report;

figures! {
    /// Figures of versions that make assumptions. Each has exits to the version that makes none.
    #[derive(Serialize)]
    pub struct SpeculationFigures {
        /// The number of versions that make assumptions.
        pub versions: u64,
        /// The number of assumptions chosen from profiles.
        pub wanted: u64,
        /// The number of assumptions that optimized versions make, each with an exit.
        pub made: u64,
        /// The number of assumptions that a pass proved or removed.
        pub settled: u64,
        /// The number of assumptions dropped for lack of an exit.
        pub dropped: u64,
        /// The number of assumptions that keep values for their exits.
        pub pinned: u64,
        /// The number of assumptions made that a run reached.
        pub visited: u64,
        /// The number of assumptions made that failed in a run.
        pub failing: u64,
        /// The figures of the state oracle, without its findings. The document has
        ///
        /// - `exits_holding`: the number of exits fired and compared where the assumption holds,
        /// - `exits_failing`: the number of those where the assumption fails (if the run could
        ///   leave there, it did), and
        /// - `transitions`: the number of transitions whose states were compared, exits included.
        #[serde(flatten, serialize_with = "keys::exits")]
        pub state: Report,
        /// The figures of chains of random transitions, without their findings. The document has
        /// the number of transitions.
        #[serde(serialize_with = "keys::hops")]
        pub hops: HopReport,
        /// The figures of landing tables.
        pub tables: TableFigures,
        /// The number of programs in which the speculation oracle found something.
        pub findings: u64,
    }
}

impl SpeculationFigures {
    /// Exits fired and compared at visits of assumptions that hold, and of assumptions that fail.
    pub fn exits(&self) -> (u64, u64) {
        let total = self.state.total();
        (total.holding, total.failing)
    }
}

impl OracleFigures for SpeculationFigures {
    fn has_run(&self) -> bool {
        self.wanted > 0 || self.tables.tables > 0 || self.findings > 0
    }
}
