//! What the generator can plant, and how often.

use crate::prng::Prng;

macro_rules! features {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal $weight:literal;)+) => {
        /// Something the generator plants in programs because a pass, the mapping of a pass, or the
        /// interpreter treats it specially.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum Feature { $($(#[doc = $doc])+ $variant,)+ }

        impl Feature {
            /// Every feature, in table order.
            pub const ALL: &'static [Feature] = &[$(Feature::$variant,)+];

            /// The name in statistics and in settings.
            pub const fn name(self) -> &'static str {
                match self { $(Feature::$variant => $name,)+ }
            }

            /// The weight when nobody says otherwise.
            const fn usual_weight(self) -> u32 {
                match self { $(Feature::$variant => $weight,)+ }
            }
        }
    };
}

features! {
    /// A two-way branch whose arms join.
    Branch "branch" 10;
    /// A switch, several targets of which may be the same block.
    Switch "switch" 4;
    /// A loop with a bounded counter.
    Loop "loop" 12;
    /// Arms that share a block in the middle: cross edges and short circuits.
    CrossEdge "cross_edge" 4;
    /// A loop with two entries.
    Irreducible "irreducible" 2;
    /// A break, continue, return or trap out of the middle of a region: loops with several exits
    /// and several latches.
    EarlyExit "early_exit" 4;
    /// An expression computed before, in a dominating or a sibling block.
    Repeat "repeat" 6;
    /// A computation at a loop header whose operands come from outside the loop.
    Invariant "invariant" 12;
    /// A branch or a switch on a value that is always the same.
    KnownCondition "known_condition" 3;
    /// A branch on a block parameter that is a constant on one way there.
    Decided "decided" 12;
    /// One operation in all arms of a branch or switch.
    BothArms "both_arms" 24;
    /// A value nobody uses.
    Dead "dead" 2;
    /// A loop parameter that only feeds itself.
    DeadCycle "dead_cycle" 2;
    /// A block parameter that receives one value on every edge.
    MergeOne "merge_one" 3;
    /// A value computed before a branch and used in one arm only.
    PartiallyDead "partially_dead" 3;
    /// A load.
    Load "load" 5;
    /// A store.
    Store "store" 4;
    /// Loads and stores of the same few bytes next to each other: forwarding, dead stores, overlap.
    Alias "alias" 3;
    /// Reads and writes around one address: overlaps, neighbors, other widths, and another value
    /// that is the same address.
    Traffic "traffic" 4;
    /// A write that the arms of a branch overwrite, both or one or neither.
    Overwrite "overwrite" 6;
    /// A division that cannot trap, or does so for few operands.
    Division "division" 3;
    /// A division in an arm that only a non-zero divisor reaches.
    GuardedDivision "guarded_division" 4;
    /// An operation that often traps: any divisor, any address, any float to convert.
    Hazard "hazard" 1;
    /// An operand at the edge of its type: zero, one, the extremes, the width of a shift.
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
    /// A query of the size of the memory.
    MemorySize "memory_size" 1;
    /// A growth of the memory.
    MemoryGrow "memory_grow" 1;
    /// An operation on a range of memory, or on a segment of bytes.
    Range "range" 1;
    /// An operation on a table of references, or on a segment of them.
    Table "table" 1;
    /// Values of 8 and 16 bits.
    Narrow "narrow" 3;
    /// Integers of 64 bits.
    Wide "wide" 4;
    /// Floats.
    Float "float" 3;
}

impl std::fmt::Display for Feature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// How many features there are.
pub const FEATURES: usize = Feature::ALL.len();

/// How often each feature is planted, relative to the others. Zero: never.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Weights {
    by_feature: [u32; FEATURES],
}

impl Default for Weights {
    fn default() -> Weights {
        let mut by_feature = [0; FEATURES];
        for feature in Feature::ALL {
            by_feature[*feature as usize] = feature.usual_weight();
        }
        Weights { by_feature }
    }
}

impl Weights {
    /// The weight of a feature.
    pub fn of(&self, feature: Feature) -> u32 {
        self.by_feature[feature as usize]
    }

    /// The same weights but for one feature. Weights above 1000 count as 1000.
    #[must_use]
    pub fn with(mut self, feature: Feature, weight: u32) -> Weights {
        self.by_feature[feature as usize] = weight.min(1000);
        self
    }

    /// The weights of one program: each feature is left out, as it is, or pressed. A program with
    /// few features finds bugs that the presence of the others would hide (Groce et al., "Swarm
    /// Testing", ISSTA 2012). Loops are never left out: most passes have little to do without one.
    pub fn swarm(&self, prng: &mut Prng) -> Weights {
        let mut by_feature = self.by_feature.map(|w| w * prng.pick(&[0, 1, 1, 1, 3]));
        let loops = &mut by_feature[Feature::Loop as usize];
        *loops = (*loops).max(self.of(Feature::Loop));
        Weights { by_feature }
    }
}
