//! The costs of the tiers, and the thresholds that follow from them.
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
    /// this number of instructions. For calls: to compile the version. For a loop: to make the
    /// entry and to compile the continuation, which has at most as many instructions.
    pub fn of_base(&self, instructions: usize, is_loop: bool) -> u64 {
        let each = self.compiled + u64::from(is_loop) * self.mapped;
        each.saturating_mul(instructions as u64)
    }

    /// The picoseconds that native code of the base saves in these visits of a place.
    pub fn saved(&self, instructions: usize, visits: u64) -> u64 {
        let each = self.interpreted.saturating_sub(self.native);
        each.saturating_mul(instructions as u64).saturating_mul(visits)
    }

    /// A waiting run requests native code when the code would have saved this share of its price,
    /// in percent. With 100, the time of interpreting and compiling a function is at most twice the
    /// smaller of the two, for every run (Karlin et al., "Competitive Snoopy Caching", 1988). With
    /// 50, the runs of `docs/native.md` took the same time, in the geometric mean.
    pub const SHARE_HERE: u64 = 75;

    /// Like [`Costs::SHARE_HERE`], for code that another thread makes: its time costs the run
    /// nothing.
    pub const SHARE_BESIDE: u64 = 2;

    /// Like [`Costs::SHARE_HERE`], for an entry into a loop of a function whose calls are native
    /// already: most of its later runs will be calls.
    pub const SHARE_LATE: u64 = 100;

    /// The calls of a function after which a hot loop requests the function, for calls to come, and
    /// not its own continuation.
    pub const CALLS: u64 = 8;

    /// The number of visits after which a place alone makes its function hot: native code would
    /// have saved this share of its price, in percent.
    pub(super) fn hot_after(&self, place: &CountedPlace<'_>, percent: u64) -> u32 {
        let price = self.of_base(place.body.inst_count(), place.header.is_some());
        let saved = self.saved(place.instructions, 1).max(1);
        let visits = price.saturating_mul(percent) / 100 / saved;
        u32::try_from(visits.max(1)).unwrap_or(u32::MAX)
    }

    /// Whether optimized code is faster than native code of the base.
    pub fn optimizing_pays(&self) -> bool {
        self.optimized < self.native
    }
}
