//! Counts the work of a campaign. The document of `osier fuzz --format json` has each figure under
//! the name of its field, and text names some of them.

mod floors;
mod inlining;
mod keys;
mod native;
mod speculation;
mod sum;
mod tables;

pub use inlining::InlinedFigures;
pub use native::NativeFigures;
pub use speculation::SpeculationFigures;
pub use sum::AddUp;
pub use tables::TableFigures;

use super::oracle::FuzzOracle;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use sum::figures;
use verify::hops::HopReport;
use verify::state_oracle::Report;

figures! {
    /// Counts for one pass over all programs.
    #[derive(Copy, Serialize, Deserialize)]
    pub struct PassFigures {
        /// The number of programs that the pass ran on.
        pub programs: u64,
        /// The number of these programs in which the pass logged an action.
        pub acted: u64,
        /// The number of actions that the pass logged.
        pub actions: u64,
    }
}

figures! {
    /// Counts of the certificates oracle.
    #[derive(Serialize)]
    pub struct CertificateFigures {
        /// The number of entries that the checker accepts.
        pub certified: u64,
        /// The number of entries at unreachable points, for which the checker claims nothing.
        pub unreached: u64,
        /// The number of pairs of versions whose certificate the checker refutes, in whole or at an
        /// anchor. The entries that this costs count as dropped.
        pub unrelated: u64,
        /// The number of entries that the checker drops, by name of the failed check.
        pub dropped: BTreeMap<&'static str, u64>,
        /// The number of pairs with dropped entries. For each, the driver made the later version
        /// again without the rewrites to blame.
        pub retried: u64,
        /// The number of rewrites that the driver gave up there.
        pub given_up: u64,
        /// The number of entries of the versions so made that the checker drops.
        pub still_dropped: u64,
        /// The number of entries of the versions so made that the checker accepts. The document
        /// leaves it out.
        #[serde(skip)]
        pub held_again: u64,
    }
}

impl CertificateFigures {
    /// The number of entries that the checker drops.
    pub fn dropped(&self) -> u64 {
        self.dropped.values().sum()
    }
}

figures! {
    /// Counts of the composition oracle, and of the mappings that it judges.
    #[derive(Serialize, Deserialize)]
    pub struct CompositionFigures {
        /// The number of points with a composed entry along the whole chain of versions.
        pub composed: u64,
        /// The number of points with an entry in the first mapping of the chain but no composed
        /// entry.
        pub not_composed: u64,
        /// The number of comparisons of composed, rebuilt and direct entries that land at the same
        /// point.
        pub same_point: u64,
        /// The number of such entries that land at other points and are not compared.
        pub other_point: u64,
    }
}

figures! {
    /// Counts of runs with transitions of a stress switch.
    #[derive(Serialize)]
    pub struct StressFigures {
        /// The number of runs with transitions of a stress switch.
        pub stressed: u64,
        /// The number of transitions in these runs.
        pub stress_hops: u64,
        /// The number of these runs that a limit ended.
        pub stressed_exhausted: u64,
    }
}

figures! {
    /// Counts over any number of programs. Counts only, so that figures add up in any order.
    ///
    /// A process that judges native code hands its figures to its parent in the form of the
    /// document, without the figures of other oracles and without findings.
    #[derive(Serialize, Deserialize)]
    pub struct Figures {
        /// The number of programs.
        pub programs: u64,
        /// The number of programs that no pass changed.
        pub unchanged: u64,
        /// The number of inputs (modules) that are not programs for this compiler.
        pub refused: u64,
        /// The number of programs, by number of versions.
        pub versions: BTreeMap<usize, u64>,
        /// The number of programs that each oracle judged: the options select the oracle, and no
        /// earlier oracle ended the judgment. It may have found nothing to judge in them.
        pub ran: BTreeMap<FuzzOracle, u64>,
        /// The figures of each pass, by its name.
        pub passes: BTreeMap<String, PassFigures>,
        /// The number of pairs of versions of a function with mappings.
        pub pairs: u64,
        /// The number of reachable points, of both versions of all pairs.
        pub points: u64,
        /// The number of these points with an entry.
        pub entries: u64,
        /// The number of entries that the state oracle can fire, composed ones included.
        pub entries_armed: u64,
        /// The number of these entries that fired at least once: coverage in pairs of point and
        /// versions.
        pub entries_fired: u64,
        /// The figures of the certificates oracle.
        #[serde(flatten, skip_deserializing)]
        pub certificates: CertificateFigures,
        /// The figures of the composition oracle.
        #[serde(flatten)]
        pub composition: CompositionFigures,
        /// The figures of the state oracle, without its findings. The document has
        ///
        /// - `runs`: the number of runs of a pair of versions on one input,
        /// - `trapped`: the number of these runs that ended in a trap,
        /// - `exhausted`: the number of these runs that a limit ended, whose ends are not compared,
        /// - `transitions`: the number of transitions whose states were compared,
        /// - `forward`, `backward`: the number of these transitions from the version before, and
        ///   from the version after,
        /// - `with_chi`: the share of transitions that run compensation code,
        /// - `in_loops`: the share of transitions that start in a loop,
        /// - `compared`: the number of compared values,
        /// - `compared_mean`: the mean number of compared values per transition,
        /// - `going_on`: the number of transitions after which the run continued to its end, and
        /// - `going_on_exhausted`: the number of these runs that a limit ended.
        #[serde(flatten, skip_deserializing, serialize_with = "keys::state")]
        pub state: Report,
        /// The figures of chains of random transitions, without their findings. The document has
        ///
        /// - `chains`: the number of chains,
        /// - `full_chains`: the number of chains with at least four transitions,
        /// - `hops`: the number of transitions in chains, and
        /// - `chains_exhausted`: the number of chains that a limit ended.
        #[serde(flatten, skip_deserializing, serialize_with = "keys::chains")]
        pub hops: HopReport,
        /// The figures of stress switches.
        #[serde(flatten, skip_deserializing)]
        pub stress: StressFigures,
        /// The number of programs with findings, by oracle. The document has the sum, and
        /// [`by_oracle`](crate::by_oracle) in another place.
        #[serde(rename = "divergences", skip_deserializing, serialize_with = "keys::sum")]
        pub findings: BTreeMap<FuzzOracle, u64>,
        /// The figures of speculative versions. `null` if there were none.
        #[serde(skip_deserializing, serialize_with = "keys::if_run")]
        pub speculation: SpeculationFigures,
        /// The figures of versions with inlined code. `null` if there were none.
        #[serde(skip_deserializing, serialize_with = "keys::if_run")]
        pub inlining: InlinedFigures,
        /// The figures of native code (`--engine jit`). `null` if none ran.
        #[serde(skip_deserializing, serialize_with = "keys::if_run")]
        pub native: NativeFigures,
    }
}

impl Figures {
    /// The number of compared transitions in both directions, by the interpreter and in native
    /// code, including transitions of speculative versions.
    pub fn transitions(&self) -> u64 {
        let native = self.native.transitions + self.native.left_inlined + self.native.to_rows;
        let speculation =
            self.speculation.state.total().transitions + self.speculation.tables.runs.transitions();
        let inlining = self.inlining.transitions();
        self.state.total().transitions + speculation + inlining + native
    }

    /// Whether an oracle judged a program. Reports name the oracles that did not, so that readers
    /// do not mistake silence for a verdict.
    pub fn has_run(&self, oracle: FuzzOracle) -> bool {
        self.ran.contains_key(&oracle)
    }

    /// Whether the speculation oracle or the inlining oracle alone judged the programs.
    pub(super) fn is_only_one(&self) -> bool {
        let is_one = self.has_run(FuzzOracle::Speculation) || self.has_run(FuzzOracle::Inlining);
        is_one && !self.has_run(FuzzOracle::Ssa)
    }

    /// Notes that an oracle judges the program of these figures.
    pub(super) fn note_run(&mut self, oracle: FuzzOracle) {
        self.ran.entry(oracle).or_insert(1);
    }

    /// Counts a program in which an oracle found something.
    pub fn count_finding(&mut self, oracle: FuzzOracle) {
        *self.findings.entry(oracle).or_default() += 1;
        // A process that dies hands no figures over.
        self.note_run(oracle);
        match oracle {
            FuzzOracle::Speculation => self.speculation.findings += 1,
            FuzzOracle::Inlining => self.inlining.findings += 1,
            FuzzOracle::Native => self.native.findings += 1,
            _ => {}
        }
    }

    /// Counts the passes of one program. `acted` holds the number of actions of each.
    pub(super) fn count_passes(&mut self, acted: &BTreeMap<&'static str, u64>) {
        for (name, actions) in acted {
            let pass = self.passes.entry((*name).to_owned()).or_default();
            pass.programs += 1;
            pass.acted += u64::from(*actions > 0);
            pass.actions += actions;
        }
        self.unchanged += u64::from(acted.values().all(|actions| *actions == 0));
    }
}
