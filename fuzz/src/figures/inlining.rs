//! Counts the work of the inlining oracle.

use super::keys::{self, OracleFigures};
use super::sum::{AddUp, figures};
use serde::Serialize;
use verify::state_oracle::{DEPTHS, FrameChains, Report};

figures! {
    /// Figures of versions with inlined code. Transitions out of them lead to one or more
    /// activations.
    #[derive(Serialize)]
    pub struct InlinedFigures {
        /// The number of versions with inlined code.
        pub versions: u64,
        /// The number of calls inlined.
        pub calls: u64,
        /// The number of points: of bases, of versions.
        pub points: [u64; 2],
        /// The number of points without an entry: up, down. Few points of a base lead into a
        /// version that assumes: an entry up needs the proof that the assumption holds.
        pub lost: [u64; 2],
        /// The number of transitions out of versions, by their activations: 1, 2, 3, 4 and more.
        pub down: [u64; DEPTHS],
        /// The number of transitions into versions.
        pub up: u64,
        /// The number of values compared.
        pub values: u64,
        /// The number of runs that continued behind a transition.
        pub going_on: u64,
        /// The number of assumptions that versions make, each with an exit.
        pub assumptions: u64,
        /// The number of assumptions left out.
        pub dropped: u64,
        /// The number of transitions at assumptions that held.
        pub exits_holding: u64,
        /// The number of transitions at assumptions that failed.
        pub exits_failing: u64,
        /// The number of transitions that found no room for their activations.
        pub without_room: u64,
        /// The number of visits that the oracle could not distinguish.
        pub ambiguous: u64,
        /// The figures of hop chains through versions and frames. The document has
        ///
        /// - `chains`: the number of chains,
        /// - `chain_hops`: the number of transitions in them, into versions, out of versions into
        ///   one activation, and out of versions into several,
        /// - `chains_several`: the number of chains with two transitions into several activations
        ///   or more,
        /// - `chain_states`: the number of these transitions whose state a run of the bases came
        ///   to,
        /// - `chain_apart`: the number of ways in that chains did not take, because they need a
        ///   value of entries accepted apart, and
        /// - `chains_exhausted`: the number of chains that a limit ended.
        #[serde(flatten, serialize_with = "keys::frame_chains")]
        pub chains: FrameChains,
        /// The number of programs in which the inlining oracle found something.
        pub findings: u64,
    }
}

impl InlinedFigures {
    /// All transitions.
    pub fn transitions(&self) -> u64 {
        self.up + self.down.iter().sum::<u64>()
    }

    /// Adds the figures of the state oracle, without its findings.
    pub(crate) fn count(&mut self, report: &Report) {
        let down = &report.backward;
        self.down.add(&down.by_depth);
        self.up += report.forward.transitions;
        self.values += report.total().compared;
        self.going_on += down.ends;
        self.exits_holding += down.holding;
        self.exits_failing += down.failing;
        self.without_room += report.without_room;
        self.ambiguous += report.ambiguous;
        self.chains.add(&report.chains);
    }
}

impl OracleFigures for InlinedFigures {
    fn has_run(&self) -> bool {
        self.versions > 0 || self.findings > 0
    }
}
