//! Conversion of the frames of a run between the layouts of exact and of fast code.

use crate::activations::Activations;
use crate::decoded::Decoded;
use crate::version::MachineVersion;

/// Prepares the frames of a run for the fast loop. Returns false when the fast loop cannot run all
/// of them. One case is a version without fast code. The other is an activation past its start in a
/// version with shared slots: the frame does not record which value of each group is live and
/// belongs in the slot. At the start only the arguments are live, and they keep their own slots.
pub(super) fn prepare(activations: &mut Activations, versions: &[MachineVersion]) -> bool {
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
/// group receive the contents of their shared slot. The live one is thereby correct, and a run
/// writes the others before it reads them. A transition may read dead values, so the frame says
/// that they are lost.
pub(super) fn settle(activations: &mut Activations, versions: &[MachineVersion]) {
    let mut caller: Option<(&Decoded, u32)> = None;
    for index in activations.floor()..activations.frames.len() {
        let code = settle_values(activations, versions, index);
        let frame = &mut activations.frames[index];
        if let Some((calling, pc)) = caller {
            frame.results_at = calling.results_at(pc);
        }
        caller = Some((code, frame.pc));
    }
}

/// Writes the values of one frame where exact code has them. The frame still fits fast code: that
/// never reads a slot written here before writing it.
pub(super) fn settle_values<'v>(
    activations: &mut Activations,
    versions: &'v [MachineVersion],
    index: usize,
) -> &'v Decoded {
    let frame = &mut activations.frames[index];
    frame.settled = true;
    let (base, code) = (frame.base, versions[frame.version as usize].code.decoded());
    for (own, slot) in code.fast.iter().flat_map(|fast| &fast.shared) {
        activations.stack[base + usize::from(*own)] = activations.stack[base + usize::from(*slot)];
    }
    for (slot, bits) in code.constants() {
        activations.stack[base + slot as usize] = bits;
    }
    code
}
