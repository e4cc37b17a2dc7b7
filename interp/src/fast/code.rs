//! The fast code of one version.

use super::op::FastOp;
use ir::entity::{Sig, Table};

/// Number of values in the window through which the loop accesses a frame.
pub(super) const WINDOW: usize = 1 << 16;

/// The fast code of one version.
#[derive(Clone, Debug)]
pub(crate) struct Fast {
    pub(super) ops: Vec<FastOp>,
    /// Lists of slots: of moves, of arguments and of results.
    pub(super) pool: Vec<u16>,
    /// The target pcs of switches.
    pub(super) targets: Vec<u32>,
    pub(super) indirect: Vec<(Sig, Table)>,
    /// The contents of the constant slots, which start at `consts_at`.
    pub(super) consts: Vec<u64>,
    pub(super) consts_at: u32,
    /// For each value that was coalesced, its slot in the exact code and the slot it shares here.
    pub(super) shared: Vec<(u16, u16)>,
}

impl Fast {
    /// The number of constant slots.
    pub(crate) fn constants(&self) -> u32 {
        self.consts.len() as u32 // at most decode::MANY
    }

    /// The slot that a value shares, given its slot in the exact code; `None` for a value that
    /// shares no slot. Cost: linear in the coalesced values.
    pub(crate) fn shared_slot(&self, own: u32) -> Option<u16> {
        self.shared.iter().find(|(value, _)| u32::from(*value) == own).map(|(_, slot)| *slot)
    }

    /// The slots of the `count` results of the call at a pc.
    #[inline]
    pub(crate) fn results_of(&self, pc: usize, count: usize) -> &[u16] {
        let call = &self.ops[pc];
        &self.pool[call.y as usize + usize::from(call.b)..][..count]
    }

    /// Writes the constants of the frame at `base`.
    #[inline]
    pub(crate) fn fill_consts(&self, stack: &mut [u64], base: usize) {
        stack[base + self.consts_at as usize..][..self.consts.len()].copy_from_slice(&self.consts);
    }
}
