//! The checks that acceptance consists of, and the settings that limit it.
//!
//! [`Check`] names every check. Its documentation is also its printed summary, which `osier
//! explain` shows for entries that are not proved. Every check goes through [`Options::require`].

use ir::{Block, Inst, Value};
use transition::certificate::TermId;

macro_rules! checks {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal;)+) => {
        /// A check of the checker. Verdicts and reports print its name.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Check { $($(#[doc = $doc])+ $variant,)+ }

        impl Check {
            /// Every check, in the order in which the checker first uses it.
            pub const ALL: &'static [Check] = &[$(Check::$variant,)+];

            /// The name in reports, in kebab case.
            pub const fn name(self) -> &'static str {
                match self { $(Check::$variant => $name,)+ }
            }

            /// The property that the check requires, as one sentence. Begins with a space.
            pub const fn summary(self) -> &'static str {
                match self { $(Check::$variant => concat!($($doc,)+),)+ }
            }
        }
    };
}

checks! {
    /// Certificate, mapping and versions belong together.
    Versions "versions";
    /// Both versions are well-formed, so that every definition dominates its uses.
    Ssa "ssa";
    /// Versions, certificate and mappings stay within the limits of the checker.
    Size "size";
    /// A term names earlier terms only, and each operand is the first term of its class.
    TermOrder "term-order";
    /// A term is a leaf, or an operation on operands of the types it takes.
    TermShape "term-shape";
    /// A class is named by its first term. All terms of a class have the same type.
    TermClass "term-class";
    /// A folded operation computes the constant of its class.
    Folding "folding";
    /// A sum adds the same constant to the same class as another term of its own class.
    Sum "sum";
    /// A rewritten term, with the terms it names, matches the pattern of its rule.
    RulePattern "rule-pattern";
    /// The guard of the rule holds.
    RuleGuard "rule-guard";
    /// The class of a rewritten term is the right side of its rule.
    RuleResult "rule-result";
    /// The term of a result is the operation that computes it, on the classes of its operands.
    ValueTerm "value-term";
    /// The term of an argument is the leaf of that argument.
    ArgumentTerm "argument-term";
    /// A read or write names the memory before it.
    MemoryTerm "memory-term";
    /// The class of a read past writes, or of a write over writes, follows from the places they
    /// access.
    MemoryRule "memory-rule";
    /// A read of the memory at the start of a block has its class on every live edge into the
    /// block.
    MemoryMerge "memory-merge";
    /// Every instruction with an effect is an anchor, except for writes of one place.
    EffectAnchor "effect-anchor";
    /// Parameters that bind one leaf receive equal arguments.
    LeafBinder "leaf-binder";
    /// A parameter that is a copy receives its class on every live edge.
    CopyEdges "copy-edges";
    /// An integer is in the interval claimed at the end of a block, by the branches on the way or
    /// by other claims.
    Range "range";
    /// An anchor is the same instruction in both versions.
    AnchorSame "anchor-same";
    /// From every anchor, both versions run to the same next anchor.
    AnchorNext "anchor-next";
    /// The operands of an anchor are equal in both versions.
    AnchorOperands "anchor-operands";
    /// Memory is the same in both versions before every anchor that can show it.
    AnchorMemory "anchor-memory";
    /// A write that a single version executes cannot trap, or the next anchor of the other version
    /// traps whenever the write would.
    LoneWrite "lone-write";
    /// A leaf in both versions holds the same contents in both.
    LeafAgrees "leaf-agrees";
    /// Where only one version may have trapped so far, the other version reaches its trap before
    /// any effect.
    TrapOrder "trap-order";
    /// The source point is a point of the source version.
    SourcePoint "source-point";
    /// No run through the source point executes an anchor with another failed check.
    AnchorsProved "anchors-proved";
    /// The source point can be reached, as far as the certificate tells.
    SourceReached "source-reached";
    /// The target point lies in the gap of the source point, and every run through the gap passes
    /// it.
    TargetPoint "target-point";
    /// No instruction that may trap, and that the source version has not passed, precedes the
    /// target point.
    TrapPassed "trap-passed";
    /// No assumption that the source version does not make may precede the target point.
    AssumePassed "assume-passed";
    /// The required values ascend, and are available at the source point.
    Requires "requires";
    /// The kept values are the required values that are not live at the source point.
    Kept "kept";
    /// A step reads required values and results of earlier steps only.
    StepOrder "step-order";
    /// A step is an operation on values, and its operands have the types it takes.
    StepShape "step-shape";
    /// A step computes the term that the facts name.
    StepTerm "step-term";
    /// A step that may trap repeats an executed operation of one version.
    StepTrap "step-trap";
    /// A replayed store is the write that the facts name, and cannot trap.
    Replay "replay";
    /// Memory after the entry is the memory of the target version at the target point.
    EntryMemory "entry-memory";
    /// The assigned values ascend, and are values of the target version available at the target
    /// point.
    AssignShape "assign-shape";
    /// An assigned value receives the contents that it has in the target version.
    AssignValue "assign-value";
    /// Every value that is live+ at the target point is provided.
    LivePlus "live-plus";
    /// The second of two composed mappings leaves from the version that the first leads to.
    ComposeVersions "compose-versions";
    /// The first of two composed entries provides every value that the second requires.
    ComposeProvides "compose-provides";
    /// A composed entry executes the replays of both entries, in order.
    ComposeReplays "compose-replays";
    /// Composed entries read required values and results of earlier steps only.
    ComposeSteps "compose-steps";
}

/// The part of the input at which a check failed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Place {
    /// No particular part.
    Whole,
    /// A term of the certificate.
    Term(TermId),
    /// A value.
    Value(Value),
    /// A block.
    Block(Block),
    /// An instruction.
    Inst(Inst),
    /// An operand of an instruction, by index.
    Operand(Inst, u32),
    /// A step of the compensation code.
    Step(u32),
}

/// A failed check.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Finding {
    /// The check that failed.
    pub check: Check,
    /// The part of the input at which it failed.
    pub at: Place,
}

/// The settings of the checker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Which values an entry has to provide.
    pub demand: transition::Demand,
    /// A check to leave out. For experiments which show that each check is needed; never for use.
    pub(crate) without: Option<Check>,
    /// The largest number of values live at block starts, summed over all blocks, at four bytes
    /// each. A pair with more is undecided.
    pub live_limit: usize,
}

impl Default for Options {
    /// Demands the needed values, applies all checks, and accepts at most 2^26 live values.
    fn default() -> Options {
        Options { demand: transition::Demand::default(), without: None, live_limit: 1 << 26 }
    }
}

impl Options {
    /// The same options without one check: for experiments that show the need for each check. A
    /// relation made with them accepts wrong entries.
    #[cfg(feature = "unproved")]
    #[must_use]
    pub fn without(self, check: Check) -> Options {
        Options { without: Some(check), ..self }
    }

    /// Fails with a finding unless `ok`. A check that is left out never fails.
    pub(crate) fn require(&self, check: Check, ok: bool, at: Place) -> Result<(), Finding> {
        if ok || self.without == Some(check) { Ok(()) } else { Err(Finding { check, at }) }
    }
}
