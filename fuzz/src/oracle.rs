//! The oracles, in the order in which a program meets them, and what they find.

use std::fmt;
use verify::state_oracle::Difference;

/// A judge of one program and its versions. Cheap ones that blame precisely come first: the first
/// that finds something ends the judgment of a program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Oracle {
    /// Nothing panics: passes, editor, mappings, judges.
    Panic,
    /// Every version is well-formed, and its log replays to it.
    Ssa,
    /// No entry's certificate is refuted.
    Certificates,
    /// All versions have the same effects and end alike.
    Lockstep,
    /// Every transition leads to the state that the target version has at the same visit.
    State,
    /// A run that goes on after a transition ends as the run without one.
    GoingOn,
    /// So does a run with many transitions, among all versions: random ones, or those of a stress
    /// switch.
    Hops,
    /// The same in native code.
    Native,
    /// Composed, directly built and rebuilt mappings agree.
    Composition,
}

impl Oracle {
    /// Every oracle, in order.
    pub const ALL: [Oracle; 9] = [
        Oracle::Panic,
        Oracle::Ssa,
        Oracle::Certificates,
        Oracle::Lockstep,
        Oracle::State,
        Oracle::GoingOn,
        Oracle::Hops,
        Oracle::Native,
        Oracle::Composition,
    ];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Oracle::Panic => "panic",
            Oracle::Ssa => "ssa",
            Oracle::Certificates => "certificates",
            Oracle::Lockstep => "lockstep",
            Oracle::State => "state",
            Oracle::GoingOn => "going_on",
            Oracle::Hops => "hops",
            Oracle::Native => "native",
            Oracle::Composition => "composition",
        }
    }

    /// The oracle that a difference found by the state oracle belongs to.
    pub(super) fn of(difference: &Difference) -> Oracle {
        match difference {
            Difference::Stops { .. } | Difference::LockstepEffects | Difference::FinalMemory => {
                Oracle::Lockstep
            }
            Difference::GoingOn { .. } | Difference::Refused(_) => Oracle::GoingOn,
            _ => Oracle::State,
        }
    }
}

impl fmt::Display for Oracle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Something an oracle found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Who found it.
    pub oracle: Oracle,
    /// The versions it is about, by number; one twice when it is about one alone.
    pub versions: (usize, usize),
    /// What is wrong, for people.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = self.versions;
        match first == last {
            true => write!(f, "{}, version {first}:\n{}", self.oracle, self.message),
            false => write!(f, "{}, versions {first} and {last}:\n{}", self.oracle, self.message),
        }
    }
}
