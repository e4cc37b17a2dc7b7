//! What the tiers cost, and the thresholds that follow from it.
//!
//! `cargo run --release --example osr_cost -- tiers` measures the table anew.

use jit::CountedPlace;

/// The costs of one instruction of a base function, in picoseconds: of executing it once in each
/// tier, and of bringing it from tier to tier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Costs {
    /// Executed by the interpreter, with visits counted.
    pub interpreted: u64,
    /// Executed in native code of the base.
    pub native: u64,
    /// Executed in native code of the optimized version.
    pub optimized: u64,
    /// Compiled by Cranelift with all effort.
    pub compiled: u64,
    /// One entry from the base to itself, made by the checker ([`check::stay`]).
    pub mapped: u64,
}

impl Costs {
    /// The table that the policy uses, from whole runs on two cores of a server (AMD EPYC).
    ///
    /// Executing: differences of two sizes of six kernels by route m2r, geometric means. Compiling:
    /// the 85 functions and 14 loops of zlib. Entries: first loops of 14 kernels by both routes,
    /// beside builds, in proportion to compiling in the same run. Optimized code: 0.99 times the
    /// base, over eleven programs by both routes.
    pub const MEASURED: Costs = Costs {
        interpreted: 3_000,
        native: 190,
        optimized: 185,
        compiled: 6_800_000,
        mapped: 300_000,
    };

    /// The picoseconds until native code of the base can take over at a place of a function with
    /// this number of instructions: for calls the version, for a loop the entry and the
    /// continuation, which has at most as many instructions.
    pub fn of_base(&self, instructions: usize, is_loop: bool) -> u64 {
        let each = self.compiled + u64::from(is_loop) * self.mapped;
        each.saturating_mul(instructions as u64)
    }

    /// The picoseconds that native code of the base saves in these visits of a place.
    pub fn saved(&self, instructions: usize, visits: u64) -> u64 {
        let each = self.interpreted.saturating_sub(self.native);
        each.saturating_mul(instructions as u64).saturating_mul(visits)
    }

    /// The share of its price, in percent, that native code would have saved when a run that waits
    /// for it asks for it. With 100, the time of interpreting and compiling a function is at most
    /// twice the smaller of the two, whatever comes (Karlin et al., "Competitive Snoopy Caching",
    /// 1988). Runs of `docs/native.md` took the same time with 50, in the geometric mean.
    pub const SHARE_HERE: u64 = 75;

    /// As [`Costs::SHARE_HERE`], of code that another thread makes: its time costs the run nothing.
    pub const SHARE_BESIDE: u64 = 2;

    /// The share of its price, in percent, that an entry into a loop would have saved when a run
    /// asks for it although calls of the function are native already: they alone will be, mostly.
    pub const SHARE_LATE: u64 = 100;

    /// The calls of a function after which a hot loop in it stands for calls to come, and no longer
    /// for itself.
    pub const CALLS: u64 = 8;

    /// The number of visits after which a place alone makes its function hot: native code would
    /// have saved this share of its price, in percent.
    pub(super) fn hot_after(&self, place: &CountedPlace<'_>, percent: u64) -> u32 {
        let price = self.of_base(place.body.inst_count(), place.header.is_some());
        let saved = self.saved(place.instructions, 1).max(1);
        let visits = price.saturating_mul(percent) / 100 / saved;
        u32::try_from(visits.max(1)).unwrap_or(u32::MAX)
    }

    /// Whether optimized code is faster than that of the base at all.
    pub fn optimizing_pays(&self) -> bool {
        self.optimized < self.native
    }
}
