//! The fast tier: the same code once more, for runs that nobody watches.
//!
//! A run without observer, trace, digests and poison cannot be looked at between two instructions.
//! So constants need not be executed: they stand in slots of their own behind the frame, which
//! entering it fills. Comparisons that only the branch behind them uses need not be stored, nor
//! sums that are only an address. Values that loops pass around share slots ([`coalesce`]), so that
//! nothing is moved on most rounds; and the addition that steps one of them is done by the branch
//! that ends the round. Operations are found at the same pcs as in the exact code
//! ([`super::code`]), and one that stands for several instructions takes fuel for each: a run that
//! ends for want of fuel, traps or exits does so at the same instruction with the same memory.
//! Whatever is not known here is done by the exact loop, one instruction at a time, so an opcode
//! needs no row here to be right. `tests/tiers.rs` compares both tiers at every amount of fuel.
//!
//! Slots are numbers of 16 bits and a frame a window of 65,536 values, which is what lets the
//! compiler leave out bounds checks; functions with more values than that have no fast code, and
//! runs that reach one go on in the exact loop.

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

/// Values of the window on the stack that a frame is seen through.
pub(super) const WINDOW: usize = 1 << 16;

/// The code of one version for the fast loop.
#[derive(Clone, Debug)]
pub(super) struct Fast {
    ops: Vec<Op>,
    /// Slots of moves, of arguments and of results.
    pool: Vec<u16>,
    /// The pcs that switches go to.
    targets: Vec<u32>,
    indirect: Vec<(Sig, Table)>,
    /// What stands in the slots from `consts_at` on.
    consts: Vec<u64>,
    consts_at: u32,
    /// The slots that exact code has for values kept in another slot here, each with the other one.
    shared: Vec<(u16, u16)>,
}

impl Fast {
    /// Fast code with operations at the pcs of the exact code, or nothing when the frame is larger
    /// than the window. Cost: linear in the function, and that of [`coalesce::coalesce`].
    pub(super) fn new(module: &Module, function: &Function, exact: &Code) -> Option<Fast> {
        decode::decode(module, function, exact)
    }

    /// The number of slots that constants take.
    pub(super) fn constants(&self) -> u32 {
        self.consts.len() as u32 // at most decode::MANY
    }

    /// The slots of the results of the call at a pc, which has so many.
    #[inline]
    pub(super) fn results_of(&self, pc: usize, count: usize) -> &[u16] {
        let call = &self.ops[pc];
        &self.pool[call.y as usize + usize::from(call.b)..][..count]
    }

    /// Fills the constants of a frame.
    #[inline]
    fn fill_consts(&self, stack: &mut [u64], base: usize) {
        stack[base + self.consts_at as usize..][..self.consts.len()].copy_from_slice(&self.consts);
    }
}

/// Makes the frames of a run ready for the fast loop; false when it cannot run all of them. Of
/// values that share a slot the one that is live would have to be found, so activations under way
/// in code with such values are left to the exact loop. At the start, nothing is live but the
/// arguments, which have their own slots.
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

/// Makes the frames of a run ready for the exact loop: values in slots of their own, constants in
/// those of their instructions, and the places of results. Of values that shared a slot all get
/// what is in it: the one that is live has it then, and the others are not read before they are
/// written.
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
