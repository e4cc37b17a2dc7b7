//! The features that the generator can plant, and how often.

use crate::prng::Prng;

macro_rules! features {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal $weight:literal;)+) => {
        /// A pattern that the generator plants in programs because a pass, its mapping, or the
        /// interpreter treats it in a special way.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum Feature { $($(#[doc = $doc])+ $variant,)+ }

        impl Feature {
            /// Every feature, in the order of the table.
            pub const ALL: &'static [Feature] = &[$(Feature::$variant,)+];

            /// The name in statistics and in settings.
            pub const fn name(self) -> &'static str {
                match self { $(Feature::$variant => $name,)+ }
            }

            /// The default weight.
            const fn usual_weight(self) -> u32 {
                match self { $(Feature::$variant => $weight,)+ }
            }
        }
    };
}

features! {
    /// A two-way branch whose arms join.
    Branch "branch" 10;
    /// A switch; several of its targets may be one block.
    Switch "switch" 4;
    /// A loop with a bounded counter.
    Loop "loop" 12;
    /// Two arms that share a block in the middle: cross edges and short circuits.
    CrossEdge "cross_edge" 4;
    /// A loop with two entries.
    Irreducible "irreducible" 2;
    /// A break, continue, return or trap inside a region, which gives loops several exits and
    /// several latches.
    EarlyExit "early_exit" 4;
    /// An expression that a dominating or a sibling block computed before.
    Repeat "repeat" 6;
    /// A computation in a loop header on operands from outside the loop.
    Invariant "invariant" 12;
    /// A branch or a switch on a condition that is always the same.
    KnownCondition "known_condition" 3;
    /// A branch on a block parameter that is a constant on one of its edges.
    Decided "decided" 12;
    /// The same operation in all arms of a branch or switch.
    BothArms "both_arms" 24;
    /// A value without a use.
    Dead "dead" 2;
    /// A loop parameter that only feeds itself.
    DeadCycle "dead_cycle" 2;
    /// A block parameter that receives the same value on every edge.
    MergeOne "merge_one" 3;
    /// A value computed before a branch and used in one arm only.
    PartiallyDead "partially_dead" 3;
    /// A load.
    Load "load" 5;
    /// A store.
    Store "store" 4;
    /// Loads and stores of the same few bytes in a row: forwarding, dead stores, overlap.
    Alias "alias" 3;
    /// Reads and writes around one address: overlaps, neighbors, other widths, and a second value
    /// that equals the address.
    Traffic "traffic" 4;
    /// A write that both arms, one arm or no arm of a branch overwrite.
    Overwrite "overwrite" 6;
    /// A division that cannot trap, or traps for few operands.
    Division "division" 3;
    /// A division in an arm that is reached only with a non-zero divisor.
    GuardedDivision "guarded_division" 4;
    /// An operation that often traps: with any divisor, any address, or any float to convert.
    Hazard "hazard" 1;
    /// An operand at the edge of its type: zero, one, the extremes, or the width of a shift.
    EdgeConstant "edge_constant" 4;
    /// A conversion between types.
    Convert "convert" 3;
    /// A choice without a branch.
    Select "select" 2;
    /// A call of another function.
    Call "call" 3;
    /// A call through the table.
    IndirectCall "indirect_call" 1;
    /// A read or write of a global.
    Global "global" 2;
    /// A read of the size of the memory.
    MemorySize "memory_size" 1;
    /// A growth of the memory.
    MemoryGrow "memory_grow" 1;
    /// An operation on a range of memory, or on a data segment.
    Range "range" 1;
    /// An operation on a table of references, or on a segment of references.
    Table "table" 1;
    /// Values of 8 and 16 bits.
    Narrow "narrow" 3;
    /// Integers of 64 bits.
    Wide "wide" 4;
    /// Floats.
    Float "float" 3;
    /// A fact that holds in the first rounds or calls, and then breaks. The default weight is zero:
    /// [`Weights::with_facts`].
    Fact "fact" 0;
    /// Calls of functions that call others, and several calls of one. The default weights of this
    /// feature and the features below are zero: [`Weights::and_trees`].
    CallTree "call_tree" 0;
    /// Returns that hand over the same values in other orders.
    Returns "returns" 0;
    /// A function that calls itself, or two functions that call each other, to a bounded depth.
    Recursion "recursion" 0;
    /// A call of the host.
    HostCall "host_call" 0;
    /// A trap, a division by zero or an access out of bounds, for few values, in a function that
    /// others call.
    CalleeTrap "callee_trap" 0;
}

impl std::fmt::Display for Feature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The number of features.
pub const FEATURES: usize = Feature::ALL.len();

/// How often each feature is planted, relative to the other features. A feature of weight zero is
/// never planted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Weights {
    by_feature: [u32; FEATURES],
    /// How many of a hundred operations are on references that a collector may move. References are
    /// no feature: without them, the programs of a seed stay equal to the programs of earlier
    /// campaigns.
    references: u32,
    /// How many of a hundred accesses of memory are of host memories. Likewise no feature.
    hosted: u32,
    /// How many of a hundred operations call functions with declared effects. Likewise no feature.
    declared: u32,
}

impl Default for Weights {
    fn default() -> Weights {
        let mut by_feature = [0; FEATURES];
        for feature in Feature::ALL {
            by_feature[*feature as usize] = feature.usual_weight();
        }
        Weights { by_feature, references: 0, hosted: 0, declared: 0 }
    }
}

impl Weights {
    /// The default weights, with facts that break: programs that disappoint a profile. They serve
    /// tests of speculation.
    #[must_use]
    pub fn with_facts() -> Weights {
        Weights::default().with(Feature::Fact, 20)
    }

    /// The same weights, with trees of calls, for inlining. Such programs may import functions of
    /// the host: [`super::CountingHost`].
    #[must_use]
    pub fn and_trees(self) -> Weights {
        let tree = [
            (Feature::Call, 9),
            (Feature::CallTree, 20),
            (Feature::Returns, 10),
            (Feature::Recursion, 6),
            (Feature::HostCall, 3),
            (Feature::CalleeTrap, 8),
        ];
        tree.into_iter().fold(self, |all, (feature, weight)| all.with(feature, weight))
    }

    /// The same weights, with references that a collector may move, and with calls of the host, at
    /// which it does.
    #[must_use]
    pub fn and_references(self) -> Weights {
        Weights { references: 25, ..self.with(Feature::HostCall, 10) }
    }

    /// The same weights, with host memories. Their addresses are near 2^32 and 2^48.
    #[must_use]
    pub fn and_host_memories(self) -> Weights {
        Weights { hosted: 50, ..self }
    }

    /// The same weights, with calls of the functions of [`super::CountingHost`] that have declared
    /// effects ([`ir::DeclaredEffect`]).
    #[must_use]
    pub fn and_declared_calls(self) -> Weights {
        Weights { declared: 30, ..self }
    }

    /// How many of a hundred operations call functions with declared effects.
    pub(super) fn declared(&self) -> u32 {
        self.declared
    }

    /// How many of a hundred accesses of memory are of host memories.
    pub(super) fn hosted(&self) -> u32 {
        self.hosted
    }

    /// How many of a hundred operations are on references that a collector may move.
    pub(super) fn references(&self) -> u32 {
        self.references
    }

    /// The weight of a feature.
    pub fn of(&self, feature: Feature) -> u32 {
        self.by_feature[feature as usize]
    }

    /// The same weights, with one changed. Weights above 1000 count as 1000.
    #[must_use]
    pub fn with(mut self, feature: Feature, weight: u32) -> Weights {
        self.by_feature[feature as usize] = weight.min(1000);
        self
    }

    /// The weights of one program: each feature is left out, kept as it is, or tripled. A program
    /// with few features finds bugs that other features would hide (Groce et al., "Swarm Testing",
    /// ISSTA 2012). Loops are never left out, because most passes have little to do without one.
    /// Where trees of calls are wanted, calls are not left out either.
    pub fn swarm(&self, prng: &mut Prng) -> Weights {
        let mut by_feature = self.by_feature.map(|w| w * prng.pick(&[0, 1, 1, 1, 3]));
        let loops = &mut by_feature[Feature::Loop as usize];
        *loops = (*loops).max(self.of(Feature::Loop));
        if self.of(Feature::CallTree) > 0 {
            let calls = &mut by_feature[Feature::Call as usize];
            *calls = (*calls).max(self.of(Feature::Call));
        }
        if self.references > 0 {
            let hosts = &mut by_feature[Feature::HostCall as usize];
            *hosts = (*hosts).max(self.of(Feature::HostCall));
        }
        Weights { by_feature, ..*self }
    }
}
