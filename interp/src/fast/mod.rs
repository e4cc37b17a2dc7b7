//! The fast tier: a second form of the code, for runs that no one observes.
//!
//! A run without an observer, trace, digests and poison exposes no state between two instructions.
//! Fast code uses this freedom as follows:
//!
//! - Constants are not executed. They have slots of their own after the frame, which entering the
//!   frame fills.
//! - A comparison that only the next branch uses is fused into the branch. An addition that only
//!   computes an address is fused into the load or store.
//! - Values that loops pass around share slots ([`coalesce`]), so most back edges need no moves.
//!   The addition that steps a loop counter is fused into the branch that ends the loop.
//!
//! Operations have the same pcs as in the exact code ([`super::code`]). A fused operation takes
//! fuel for every instruction it executes. So a run that runs out of fuel, traps or exits stops at
//! the same instruction as the exact loop, with the same memory.
//!
//! The exact loop executes every instruction that has no fast operation, one at a time. A new
//! opcode is therefore correct without any change here. `tests/tiers.rs` compares both tiers at
//! every amount of fuel.
//!
//! Slots are 16-bit numbers, and a frame is a window of 65,536 values on the stack, so the compiler
//! can omit bounds checks. Functions with more values have no fast code; a run that calls one
//! continues in the exact loop.

mod coalesce;
mod decode;
mod exec;
mod op;

pub(super) use exec::{applies, leave, run};

use super::activations::Activations;
use super::code::Code;
use super::machine::Version;
use ir::entity::{Sig, Table};
use ir::function::Function;
use ir::module::Module;
use op::Op;

/// Number of values in the window through which the loop accesses a frame.
pub(super) const WINDOW: usize = 1 << 16;

/// The fast code of one version.
#[derive(Clone, Debug)]
pub(super) struct Fast {
    ops: Vec<Op>,
    /// Lists of slots: those of moves, of arguments and of results.
    pool: Vec<u16>,
    /// The target pcs of switches.
    targets: Vec<u32>,
    indirect: Vec<(Sig, Table)>,
    /// The contents of the constant slots, which start at `consts_at`.
    consts: Vec<u64>,
    consts_at: u32,
    /// For each value that was coalesced, its slot in the exact code and the slot it shares here.
    shared: Vec<(u16, u16)>,
}

impl Fast {
    /// Decodes fast code, with operations at the pcs of the exact code. Returns `None` when the
    /// frame does not fit the window. Cost: linear in the function, plus the cost of
    /// [`coalesce::coalesce`].
    pub(super) fn new(module: &Module, function: &Function, exact: &Code) -> Option<Fast> {
        decode::decode(module, function, exact)
    }

    /// The number of constant slots.
    pub(super) fn constants(&self) -> u32 {
        self.consts.len() as u32 // at most decode::MANY
    }

    /// The slots of the `count` results of the call at a pc.
    #[inline]
    pub(super) fn results_of(&self, pc: usize, count: usize) -> &[u16] {
        let call = &self.ops[pc];
        &self.pool[call.y as usize + usize::from(call.b)..][..count]
    }

    /// Writes the constants of the frame at `base`.
    #[inline]
    fn fill_consts(&self, stack: &mut [u64], base: usize) {
        stack[base + self.consts_at as usize..][..self.consts.len()].copy_from_slice(&self.consts);
    }
}

/// Prepares the frames of a run for the fast loop. Returns false when the fast loop cannot run all
/// of them. One case is a version without fast code. The other is an activation past its start in a
/// version with shared slots: the frame does not record which value of each group is live and
/// belongs in the slot. At the start only the arguments are live, and they keep their own slots.
fn prepare(activations: &mut Activations, versions: &[Version]) -> bool {
    for index in activations.floor()..activations.frames.len() {
        let frame = activations.frames[index];
        let Some(fast) = &versions[frame.version as usize].code.fast else { return false };
        if frame.pc != 0 && !fast.shared.is_empty() {
            return false;
        }
        fast.fill_consts(&mut activations.stack, frame.base);
    }
    true
}

/// Converts the frames of a run to the layout of exact code. It copies shared slots to the own
/// slots of their values, writes the constants, and sets the result positions. All values of a
/// group receive the contents of their shared slot. The live one is thereby correct, and the others
/// are written before they are read.
fn settle(activations: &mut Activations, versions: &[Version]) {
    let mut caller: Option<(&Code, u32)> = None;
    for index in activations.floor()..activations.frames.len() {
        let frame = &mut activations.frames[index];
        let code = &*versions[frame.version as usize].code;
        for (own, slot) in code.fast.iter().flat_map(|fast| &fast.shared) {
            activations.stack[frame.base + usize::from(*own)] =
                activations.stack[frame.base + usize::from(*slot)];
        }
        for (slot, bits) in code.constants() {
            activations.stack[frame.base + slot as usize] = bits;
        }
        if let Some((calling, pc)) = caller {
            frame.results_at = calling.results_at(pc);
        }
        caller = Some((code, frame.pc));
    }
}
