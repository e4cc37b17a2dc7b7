//! The oracles in the order in which they judge a program, and their findings.

use serde::{Deserialize, Serialize};
use std::fmt;
use verify::state_oracle::{Difference, Divergence};

/// A judge of one program and its versions. Cheap oracles with precise findings come first: the
/// first oracle that finds something ends the judgment of a program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")] // as `name` has it
pub enum FuzzOracle {
    /// No panic occurs in passes, the editor, the makers of mappings, or the judges.
    Panic,
    /// Every version is well-formed, and its log replays to it.
    Ssa,
    /// The checker refutes no entry, and accepts at least one entry of each program with entries.
    Certificates,
    /// All versions have the same effects and the same end.
    Lockstep,
    /// Every transition leads to the state that the target version has at the same visit.
    State,
    /// A run that continues after a transition ends like the run without it.
    GoingOn,
    /// A run with many transitions among all versions ends like the run without them. Transitions
    /// are random, or chosen by a stress switch.
    Hops,
    /// Native code makes the same transitions and ends alike.
    Native,
    /// Composed, rebuilt and direct mappings agree.
    Composition,
    /// Speculative versions make right transitions, leave where assumptions fail, and then end like
    /// the base.
    Speculation,
    /// Versions with inlined code make right transitions, into several activations, too, and then
    /// end like the base.
    Inlining,
}

impl FuzzOracle {
    /// All oracles, in order.
    pub const ALL: [FuzzOracle; 11] = [
        FuzzOracle::Panic,
        FuzzOracle::Ssa,
        FuzzOracle::Certificates,
        FuzzOracle::Lockstep,
        FuzzOracle::State,
        FuzzOracle::GoingOn,
        FuzzOracle::Hops,
        FuzzOracle::Native,
        FuzzOracle::Composition,
        FuzzOracle::Speculation,
        FuzzOracle::Inlining,
    ];

    /// The name of the oracle in reports.
    pub const fn name(self) -> &'static str {
        match self {
            FuzzOracle::Panic => "panic",
            FuzzOracle::Ssa => "ssa",
            FuzzOracle::Certificates => "certificates",
            FuzzOracle::Lockstep => "lockstep",
            FuzzOracle::State => "state",
            FuzzOracle::GoingOn => "going_on",
            FuzzOracle::Hops => "hops",
            FuzzOracle::Native => "native",
            FuzzOracle::Composition => "composition",
            FuzzOracle::Speculation => "speculation",
            FuzzOracle::Inlining => "inlining",
        }
    }

    /// The oracle with this name.
    pub fn from_name(name: &str) -> Option<FuzzOracle> {
        FuzzOracle::ALL.into_iter().find(|oracle| oracle.name() == name)
    }

    /// The oracle to which a divergence found by the state oracle belongs.
    pub(super) fn of(divergence: &Divergence) -> FuzzOracle {
        match &divergence.difference {
            Difference::Stops { .. } | Difference::LockstepEffects | Difference::FinalMemory => {
                FuzzOracle::Lockstep
            }
            Difference::GoingOn { .. } | Difference::Refused(_) => FuzzOracle::GoingOn,
            _ => FuzzOracle::State,
        }
    }
}

impl fmt::Display for FuzzOracle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The most findings that a case keeps.
pub const MAX_FINDINGS: usize = 4;

/// A finding of an oracle.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FuzzFinding {
    /// The oracle.
    pub oracle: FuzzOracle,
    /// The numbers of the two versions that the finding concerns, or twice the same number for a
    /// finding about one version.
    pub versions: [usize; 2],
    /// The description of the failure, for people.
    pub message: String,
}

impl fmt::Display for FuzzFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, last] = self.versions;
        match first == last {
            true => write!(f, "{}, version {first}:\n{}", self.oracle, self.message),
            false => write!(f, "{}, versions {first} and {last}:\n{}", self.oracle, self.message),
        }
    }
}
