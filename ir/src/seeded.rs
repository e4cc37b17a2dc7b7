//! Seeded bugs: wrong changes of this project's own code, to put its judges on trial.
//!
//! Each bug is one condition at the place that it breaks, `seeded(Bug::...)`. Without the feature
//! `seeded-bugs` that is a constant `false`: nothing of a bug is left in the code, and there is no
//! state. With the feature a thread can switch one bug on for the time of a call (`with`).
//! `docs/testing.md` says what the trial shows; the tests in `tests/trial.rs` demand that each bug
//! has its place.

macro_rules! bugs {
    ($($area:ident { $($(#[doc = $doc:literal])+ $bug:ident;)+ })+) => {
        /// A wrong change. The documentation says what is wrong.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Bug { $($($(#[doc = $doc])+ $bug,)+)+ }

        impl Bug {
            /// Every bug, those of one area in a row.
            pub const ALL: &'static [Bug] = &[$($(Bug::$bug,)+)+];

            /// The name, as the source writes it.
            pub const fn name(self) -> &'static str {
                match self { $($(Bug::$bug => stringify!($bug),)+)+ }
            }

            /// What is wrong, in a sentence.
            pub const fn summary(self) -> &'static str {
                match self { $($(Bug::$bug => concat!($($doc,)+),)+)+ }
            }

            /// Where it is.
            pub const fn area(self) -> Area {
                match self { $($(Bug::$bug => Area::$area,)+)+ }
            }
        }
    };
}

/// What a bug is part of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Area {
    /// The pass `sccp`.
    Sccp,
    /// The pass `simplify`.
    Simplify,
    /// The pass `cse`.
    Cse,
    /// The pass `gvn`.
    Gvn,
    /// The passes `sink` and `hoist`.
    Motion,
    /// The pass `licm`.
    Licm,
    /// The passes `loop_canon` and `preheaders`, and what the editor does for them.
    LoopCanon,
    /// The pass `adce`, and what the editor does for it.
    Adce,
    /// The pass `cfg_clean`.
    CfgClean,
    /// The pass `load_elim`, and the analysis it asks.
    LoadElim,
    /// The pass `dse`.
    Dse,
    /// The log, or an edit that is not what the log says.
    Log,
    /// Composition of mappings, and mappings of several versions.
    Compose,
    /// The making of mappings.
    Osr,
    /// Native code and continuations.
    Native,
}

bugs! {
    Sccp {
        /// Where two constants meet, the first one wins.
        SccpMeetTakesFirst;
        /// What is a constant on one edge and varies on another is that constant.
        SccpVaryingLoses;
        /// A known branch is taken the other way.
        SccpBranchInverted;
        /// A switch counts around instead of going to its last target.
        SccpSwitchWraps;
        /// Operations are folded with their operands in the other order.
        SccpOperandsSwapped;
        /// Operations of 32 bits are folded as those of 64.
        SccpFoldsTooWide;
        /// A parameter is taken for what its first edge passes.
        SccpCopyOfFirstEdge;
    }
    Simplify {
        /// The guards of rules are not looked at.
        SimplifyIgnoresGuard;
        /// Operands match in either order whatever the operation.
        SimplifyCommutesAll;
        /// The second occurrence of a variable matches anything.
        SimplifyForgetsRepeats;
        /// Two constants are combined in the wrong order.
        SimplifyConstantsSwapped;
        /// All bits set are 32 bits, in 64 as well.
        SimplifyOnesTooNarrow;
        /// Any constant but 0 is taken for 1.
        SimplifyOneIsNonZero;
        /// A new operation gets its operands in the wrong order.
        SimplifyOperandsSwapped;
        /// A rule that yields its second variable yields the first.
        SimplifyTakesOtherArm;
    }
    Cse {
        /// Operations with exchanged operands are equal whatever the operation.
        CseCommutesAll;
        /// An operation of another arm counts as one that dominates.
        CseIgnoresDominance;
        /// A difference is taken for a sum.
        CseSubIsAdd;
        /// Reads of memory are shared, whatever is written between them.
        CseSharesReads;
        /// Parameters are equal if their first edge passes equal values.
        CseParamsOfFirstEdge;
        /// The third operand does not count.
        CseForgetsThirdOperand;
        /// Of two equal operations the later one stays.
        CseKeepsTheLater;
    }
    Gvn {
        /// Operations with exchanged operands are equal whatever the operation.
        GvnCommutesAll;
        /// What comes back around a loop is not looked at.
        GvnForgetsBackEdges;
        /// Parameters that receive the same from above are equal, whatever comes back around the
        /// loop.
        GvnKeepsGroups;
        /// Reads of memory are equal, whatever is written between them.
        GvnSharesReads;
        /// A value of another arm counts as one that dominates.
        GvnIgnoresDominance;
        /// Or is taken for exclusive or.
        GvnOrIsXor;
    }
    Motion {
        /// What may trap moves into the arm that uses it.
        SinkIgnoresTraps;
        /// Reads move down across writes.
        SinkIgnoresWrites;
        /// What several arms use moves to where the first user is.
        SinkToFirstUse;
        /// What moves into an arm goes to its end, behind its users.
        SinkToEndOfArm;
        /// What may trap moves above a branch that every arm of which computes it.
        HoistIgnoresTraps;
        /// Operations of two arms with exchanged operands are equal whatever the operation.
        HoistCommutesAll;
        /// Operations on different constants are equal.
        HoistIgnoresConstants;
        /// The constants that what moves needs stay.
        HoistLeavesConstants;
        /// Blocks that are led to from elsewhere too are arms.
        HoistIgnoresJoins;
    }
    Licm {
        /// Reads leave loops that write.
        LicmIgnoresWrites;
        /// What may trap leaves loops like everything else.
        LicmIgnoresTraps;
        /// What may trap leaves a header although an effect stands before it.
        LicmTrapBehindEffect;
        /// What may trap leaves any block of a loop, not the header alone.
        LicmTrapFromAnyBlock;
        /// One operand from outside makes an operation invariant.
        LicmOneOperandSuffices;
        /// What an inner loop writes the loops around it do not.
        LicmForgetsInnerWrites;
        /// What leaves a loop goes to the entry of the function.
        LicmHoistsToEntry;
        /// What may trap leaves outer headers although something there has an effect.
        LicmPassesOuterEffects;
    }
    LoopCanon {
        /// A block on joined edges hands its first two parameters of one type on in the wrong
        /// order.
        JoinHandsOnSwapped;
        /// All joined edges pass what the first one did.
        JoinTakesFirstArguments;
        /// A block on an edge passes its first two arguments of one type in the wrong order.
        SplitPassesSwapped;
        /// A block on an edge of a branch leads where another edge of it does.
        SplitLeadsElsewhere;
        /// A block with other ways out is a preheader.
        PreheaderWithOtherExits;
        /// A loop with two ways in has a preheader.
        PreheaderOfIrreducible;
        /// Of several blocks that lead to a loop the first is its preheader.
        PreheaderFirstOfSeveral;
    }
    Adce {
        /// Divisions that may trap are dead when their results are.
        AdceDropsDivisions;
        /// Loads that may trap are dead when their results are.
        AdceDropsLoads;
        /// Calls are dead when their results are.
        AdceDropsCalls;
        /// Growing a memory is dead when its result is.
        AdceDropsGrowth;
        /// What a branch depends on is dead.
        AdceForgetsBranches;
        /// What has one use has none.
        AdceCountsOneUseLess;
        /// With a parameter goes the first argument of each edge.
        RemoveParamWrongArgument;
        /// With a parameter of a dead cycle goes the first argument of each edge.
        RemoveDeadWrongArgument;
    }
    CfgClean {
        /// A branch to one block with different arguments becomes a jump.
        CfgFoldsOtherArguments;
        /// A switch becomes a jump though its last target is another.
        CfgFoldsAllButLast;
        /// Parameters of a join are bound to the arguments of its first edge.
        CfgBindsFirstEdge;
        /// A parameter is bound to the first argument.
        CfgBindsFirstArgument;
        /// A join is merged into a block that leads to it.
        CfgMergesJoins;
        /// A parameter is removed and its uses are not replaced.
        CfgForgetsUses;
        /// Blocks that hold instructions are taken for empty.
        CfgSkipsFullBlocks;
        /// An edge sent past a block passes its first argument as its last one too.
        RedirectDropsLast;
        /// An edge sent past a branch goes the other way.
        RedirectOtherWay;
        /// An edge is sent past a branch that constants of another edge decide.
        RedirectForOtherEdge;
        /// Blocks that write or may trap are passed by.
        RedirectMissesEffects;
    }
    LoadElim {
        /// A store elsewhere is apart, however near.
        ClobberPassesStores;
        /// Calls and growth write nothing.
        ClobberPassesCalls;
        /// What holds of the first way to a join holds of all.
        ClobberTakesFirstEdge;
        /// What was stored in part is read whole.
        LoadElimForwardsParts;
        /// What was stored last is what is read, wherever it was stored.
        LoadElimForgetsAddress;
        /// Equal reads give equal values, whatever was written between them.
        LoadElimForgetsWrites;
    }
    Dse {
        /// Reads do not see a store.
        DseForgetsReads;
        /// Calls and growth do not see a store.
        DseForgetsCalls;
        /// What overwrites a part of a store overwrites it.
        DseTakesParts;
        /// One way on suffices where there are several.
        DseFollowsOneWay;
        /// A store goes though it may be the one that traps.
        DseDropsTraps;
        /// A trap does not see a store.
        DsePassesTraps;
    }
    Log {
        /// Replacements are not recorded.
        LogOmitsReplacements;
        /// Deletions are not recorded.
        LogOmitsDeletions;
        /// Moves are recorded with another place.
        LogWrongPlace;
        /// A move is recorded as deletion and addition.
        LogMoveAsDeleteAdd;
        /// A replacement is recorded the other way around.
        LogReplacementTurned;
        /// A folded branch is recorded with the other target.
        LogFoldTurned;
        /// A hoist is recorded as a sink.
        LogHoistAsSink;
        /// Replacing all uses forgets those in terminators.
        ReplaceForgetsTerminators;
        /// Replacing all uses forgets those in blocks that stand later.
        ReplaceForgetsOtherBlocks;
        /// A folded branch keeps another target than it says.
        FoldKeepsOther;
    }
    Compose {
        /// The composed entry lands where the first one does.
        ComposeLandsAtFirst;
        /// The composed entry provides what the first one does.
        ComposeProvidesFirst;
        /// What the second entry requires need not be provided: the source's value of that id is
        /// read.
        ComposeIgnoresRequires;
        /// What the second entry reads is read under its own id, whatever the first assigned to it.
        ComposeForgetsAssigns;
        /// Constants are shared whatever their bits.
        ComposeSharesConstants;
        /// Steps of the second entry read the first one's steps.
        ComposeStepsNotMoved;
        /// Steps that only steps read are dropped.
        ComposeDropsInnerSteps;
        /// The second mapping is followed first.
        ComposeOrderSwapped;
        /// Kept values of the composed entry are not listed.
        ComposeForgetsKept;
        /// What mappings of other pairs keep does not count.
        GraphPairsApart;
    }
    Osr {
        /// A parameter is what its first edge passes, if that is available.
        ParamTakesFirstEdge;
        /// A parameter is computed as the argument of its first edge is.
        ParamTakesArmsDefinition;
        /// A loop's parameter is what enters the loop.
        ParamIgnoresBackEdges;
        /// What is available counts before the jump of a block that only the source has is taken.
        PoolBeforeJump;
        /// Parameters are bound one after the other.
        SequentialCopies;
        /// Operations of the rest of a block count as executed.
        RestTakenAsDone;
        /// The rest of a block is run though it may trap, and entries land as late as they can.
        RestMayTrap;
        /// Landing behind what may trap is allowed.
        TrapsIgnored;
        /// Landing behind what may trap in blocks above is allowed.
        TrapsAboveIgnored;
        /// What may trap and was moved counts as unable to.
        MovedTrapsHarmless;
        /// A member of the class is read where it is not available.
        StaleClassMember;
        /// What was found at one point holds at the next.
        StaleOutcomes;
        /// Entries provide what is live, and not what entries there keep.
        PlainLiveness;
        /// The result of an earlier call of the same function with the same operands is taken for
        /// the later one's.
        CallResultReused;
        /// The result of an earlier read of the same place is taken for the later one's.
        ReadResultReused;
        /// The divisor that keeps dead code from trapping is not needed.
        DivisorNotNeeded;
        /// What runs nowhere is what a decided branch does lead to.
        DecidedOtherWay;
        /// A parameter is the constant that the first edge into its block passes.
        DecidedByFirstEdge;
        /// What entries read does not count as used where no run of their version reads it any
        /// more.
        ReadsOfEntriesNotLive;
        /// Steps convert from the type they convert to.
        StepOperandType;
        /// Constants of classes have eight bits.
        ConstantTooNarrow;
        /// Steps have their operands in the other order.
        StepOperandsSwapped;
        /// Kept values are not listed.
        KeptNotListed;
        /// The point before an anchor lies behind it.
        GapPastAnchor;
        /// Stores, calls and other effects bound no gap.
        EffectsNoAnchors;
        /// What was moved bounds gaps.
        MovedIsAnchor;
        /// A branch folded with equal targets takes the one kept.
        FoldedTakesKept;
        /// Entries leave blocks that the other version may have passed by.
        PassedByIgnored;
        /// Certificates do not list the branches that lines go on past.
        PassedNotListed;
        /// A parameter that is no copy in one version is one in the other, though edges were sent
        /// past its block.
        PinnedOnOneSide;
    }
    Native {
        /// Less is taken for less or equal.
        NativeConditionCode;
        /// Unsigned comparisons are signed.
        NativeUnsignedIsSigned;
        /// Unsigned division is signed.
        NativeDivisionSigned;
        /// Narrow integers have the sign in their upper bits where words are looked at.
        NativeNarrowSignExtended;
        /// The upper bits of an f32 are set where words are looked at.
        NativeUpperBitsOfF32;
        /// A NaN stays what the processor made of it where its bits are looked at.
        NativeNanAsItIs;
        /// The last bytes of an access need not lie in memory.
        NativeBoundsMissByte;
        /// The offset of an access is not added.
        NativeOffsetForgotten;
        /// The place of a memory is taken for fixed, whatever grows it.
        NativeStaleMemoryBase;
        /// Stores of one byte write as many as the value has.
        NativeStoreTooWide;
        /// Fuel is looked at, and not paid.
        NativeFuelNotPaid;
        /// Two results of one type are returned in the other order.
        NativeResultsSwapped;
        /// Indirect calls take functions of any signature.
        NativeSignatureUnchecked;
        /// Indirect calls take null for a function.
        NativeNullUnchecked;
        /// Indirect calls look behind the end of their table.
        NativeTableUnchecked;
        /// An OSR point leaves with two values of one type in the other order.
        NativeExitValuesSwapped;
        /// An OSR point leaves with its values one word too far.
        NativeExitSlotOffByOne;
        /// The description of an exit has two values in each other's places.
        NativePlaceOfNeighbor;
        /// An OSR point leaves through the cell of its neighbor.
        NativeCellOfNeighbor;
        /// An OSR point that counts down fires one visit too early.
        NativeCounterOffByOne;
        /// An OSR point fires when any is armed.
        NativeFiresUnarmed;
        /// A continuation takes its first value for its second too.
        NativeContinuationWrongSlot;
        /// A continuation does not execute the stores of its entry.
        NativeReplaysDropped;
    }
}

/// Whether a bug is switched on: never, without the feature.
#[cfg(not(feature = "seeded-bugs"))]
#[inline(always)]
pub const fn seeded(_: Bug) -> bool {
    false
}

#[cfg(feature = "seeded-bugs")]
mod switch {
    use super::Bug;
    use std::cell::Cell;

    thread_local! {
        static ON: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Puts back what was switched on before, also when the call panics.
    struct Restore(Option<Bug>);

    impl Drop for Restore {
        fn drop(&mut self) {
            ON.set(self.0);
        }
    }

    /// Whether a bug is switched on in this thread.
    pub fn seeded(bug: Bug) -> bool {
        ON.get() == Some(bug)
    }

    /// Calls `f` with one bug switched on in this thread, or none.
    pub fn with<T>(bug: Option<Bug>, f: impl FnOnce() -> T) -> T {
        let _restore = Restore(ON.replace(bug));
        f()
    }
}

#[cfg(feature = "seeded-bugs")]
pub use switch::{seeded, with};
