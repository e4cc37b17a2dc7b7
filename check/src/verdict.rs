//! Checks and verdicts.

use ir::{Block, Inst, Value};
use std::fmt;
use transition::certificate::TermId;

macro_rules! checks {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal;)+) => {
        /// What the checker checks, each by a name that verdicts and reports print.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Check { $($(#[doc = $doc])+ $variant,)+ }

        impl Check {
            /// Every check.
            pub const ALL: &'static [Check] = &[$(Check::$variant,)+];

            /// The name in reports.
            pub const fn name(self) -> &'static str {
                match self { $(Check::$variant => $name,)+ }
            }

            /// What is checked, in a sentence.
            pub const fn summary(self) -> &'static str {
                match self { $(Check::$variant => concat!($($doc,)+),)+ }
            }
        }
    };
}

checks! {
    /// Certificate, mapping and versions belong together.
    Versions "versions";
    /// Both versions are well-formed; left out, definitions need not dominate uses.
    Ssa "ssa";
    /// Limits on size are kept.
    Size "size";
    /// A term names terms before it.
    TermOrder "term-order";
    /// A term is a leaf, or an operation on values of the types it takes.
    TermShape "term-shape";
    /// A class is named by its first term, and its terms have one type.
    TermClass "term-class";
    /// A folded operation computes the constant of its class.
    Folding "folding";
    /// A term and those it names match the pattern of their rule.
    RulePattern "rule-pattern";
    /// The guard of a rule holds.
    RuleGuard "rule-guard";
    /// The class of a rewritten term is the right side of its rule.
    RuleResult "rule-result";
    /// The term of a result is the operation that computes it, on the classes of its operands.
    ValueTerm "value-term";
    /// The term of an argument is that argument.
    ArgumentTerm "argument-term";
    /// A read names the memory as it is where it stands.
    MemoryTerm "memory-term";
    /// A read finds what its term says past writes, and a write hides what its term says.
    MemoryRule "memory-rule";
    /// A read of what a block begins with gives its class on every edge into the block.
    MemoryMerge "memory-merge";
    /// Instructions with effects are anchors, but writes of one place.
    EffectAnchor "effect-anchor";
    /// Parameters that share a leaf receive equal values.
    LeafBinder "leaf-binder";
    /// A parameter that is no leaf receives its class on every live edge.
    CopyEdges "copy-edges";
    /// An anchor is one instruction of both versions.
    AnchorSame "anchor-same";
    /// From every anchor control runs on to the same next anchor in both versions.
    AnchorNext "anchor-next";
    /// The operands of an anchor are equal in both versions.
    AnchorOperands "anchor-operands";
    /// Memory is the same in both versions before an anchor by which it can be seen.
    AnchorMemory "anchor-memory";
    /// A write that only one version has, or has elsewhere, cannot trap, or the next anchor traps
    /// just as it does.
    LoneWrite "lone-write";
    /// A leaf that both versions have holds the same in both.
    LeafAgrees "leaf-agrees";
    /// What may trap in one version before it does in the other does so before any effect, and is
    /// reached.
    TrapOrder "trap-order";
    /// The source point is a point of the source version.
    SourcePoint "source-point";
    /// The source point can be reached, as far as the certificate tells.
    SourceReached "source-reached";
    /// The target point lies in the same gap as the source point, where every run through the gap
    /// passes it.
    TargetPoint "target-point";
    /// The target point lies behind no instruction that may trap and that the source version has
    /// not passed.
    TrapPassed "trap-passed";
    /// What is read is listed, ascending, and available at the source point.
    Requires "requires";
    /// The values listed as kept are those read that are not live at the source point.
    Kept "kept";
    /// A step reads what is listed or earlier steps.
    StepOrder "step-order";
    /// A step is an operation on values, on operands of the types it takes.
    StepShape "step-shape";
    /// A step computes the term that the facts name.
    StepTerm "step-term";
    /// A step that could trap repeats what one of the versions has executed.
    StepTrap "step-trap";
    /// A store executed on the way is the write that the facts name, and cannot trap.
    Replay "replay";
    /// Memory is what it is in the target version.
    EntryMemory "entry-memory";
    /// Values assigned are values of the target version, available at the target point, ascending.
    AssignShape "assign-shape";
    /// A value assigned receives the value it has in the target version.
    AssignValue "assign-value";
    /// What is live+ at the target point is provided.
    LivePlus "live-plus";
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where a check failed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Place {
    /// The whole.
    Whole,
    /// A term of the certificate.
    Term(TermId),
    /// A value.
    Value(Value),
    /// A block.
    Block(Block),
    /// An instruction.
    Inst(Inst),
    /// A step of the compensation code.
    Step(u32),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Whole => f.write_str("the whole"),
            Place::Term(id) => write!(f, "term {id}"),
            Place::Value(value) => write!(f, "%{value}"),
            Place::Block(block) => write!(f, "{block}"),
            Place::Inst(inst) => write!(f, "{inst}"),
            Place::Step(index) => write!(f, "step {index}"),
        }
    }
}

/// A check that failed, and where.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Finding {
    /// The check.
    pub check: Check,
    /// Where.
    pub at: Place,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.check, self.at)
    }
}

/// Contents of the leaves under which what is computed is not what is wanted.
///
/// The leaves (arguments, parameters, results of effects, memory) are taken as free: that a run
/// reaches the point with these contents is not claimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Witness {
    /// Which of the checker's valuations it is.
    pub valuation: u32,
    /// The bits wanted.
    pub expected: u64,
    /// The bits computed; `None` when the computation traps.
    pub found: Option<u64>,
}

/// What the checker says. Only [`Verdict::Holds`] is a yes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Proved.
    Holds,
    /// Shown to be wrong: it breaks a rule that needs no proof, or the witness tells two values
    /// apart.
    Refuted(Finding, Option<Witness>),
    /// Neither.
    Undecided(Finding),
}

impl Verdict {
    /// Whether the entry is proved.
    pub fn holds(&self) -> bool {
        *self == Verdict::Holds
    }

    /// Whether the entry is shown to be wrong.
    pub fn is_refuted(&self) -> bool {
        matches!(self, Verdict::Refuted(..))
    }

    /// What to say of a check that failed, when no contents of leaves show anything: some rules
    /// need no proof to be broken.
    pub(crate) fn of(finding: Finding) -> Verdict {
        match finding.check {
            Check::Versions
            | Check::Ssa
            | Check::SourcePoint
            | Check::TargetPoint
            | Check::TrapPassed
            | Check::Requires
            | Check::Kept
            | Check::StepOrder
            | Check::StepShape
            | Check::AssignShape
            | Check::LivePlus => Verdict::Refuted(finding, None),
            _ => Verdict::Undecided(finding),
        }
    }

    /// The check that failed.
    pub fn finding(&self) -> Option<Finding> {
        match self {
            Verdict::Holds => None,
            Verdict::Refuted(finding, _) | Verdict::Undecided(finding) => Some(*finding),
        }
    }
}

impl From<Finding> for Verdict {
    fn from(finding: Finding) -> Verdict {
        Verdict::of(finding)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Holds => f.write_str("holds"),
            Verdict::Undecided(finding) => write!(f, "undecided: {finding}"),
            Verdict::Refuted(finding, None) => write!(f, "refuted: {finding}"),
            Verdict::Refuted(finding, Some(w)) => match w.found {
                Some(found) => {
                    write!(f, "refuted: {finding}: {:#x} wanted, {found:#x} computed", w.expected)
                }
                None => {
                    write!(f, "refuted: {finding}: {:#x} wanted, computing it traps", w.expected)
                }
            },
        }
    }
}

/// How the checker is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// What entries have to provide.
    pub demand: transition::Demand,
    /// A check that is left out: for experiments that show that each is needed, never for use.
    pub(crate) without: Option<Check>,
    /// Values live at the starts of blocks, over all blocks, beyond which a pair is not decided.
    /// Four bytes each.
    pub live_limit: usize,
}

impl Default for Options {
    /// What is needed, by all checks, with at most 2^26 values live.
    fn default() -> Options {
        Options { demand: transition::Demand::default(), without: None, live_limit: 1 << 26 }
    }
}

impl Options {
    /// The same options without one of the checks: for experiments that show that each is needed. A
    /// relation made with them accepts wrong entries.
    #[cfg(feature = "unproved")]
    #[must_use]
    pub fn without(self, check: Check) -> Options {
        Options { without: Some(check), ..self }
    }

    /// Fails with a finding unless `ok`.
    pub(crate) fn require(&self, check: Check, ok: bool, at: Place) -> Result<(), Finding> {
        if ok || self.without == Some(check) { Ok(()) } else { Err(Finding { check, at }) }
    }
}
