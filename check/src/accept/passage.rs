//! Passages: functions that are the compensation code of an entry alone, in front of a target that
//! stands elsewhere.

use super::continuation::{ContinuationFault, ContinuationWalk, LandedVersion};
use ir::{Function, Imm, Opcode, OsrPoint, Value};
use std::collections::BTreeSet;
use transition::copy::ContinuationClaim;
use transition::frames::FramePlace;
use transition::mapping::Entry;

/// Checks that a function is the way of an entry to the start of its target: it executes the steps
/// and the replays of the entry, and then leaves by point 0 with the values that the entry assigns
/// to the parameters of the target, in their order. Nothing else may be left to execute: the entry
/// lands before the first instruction of the target. So whoever enters the target with these values
/// makes the transition of the entry.
///
/// # Errors
/// The first difference.
pub fn passage(
    function: &Function,
    source: &Function,
    target: &Function,
    entry: &Entry,
) -> Result<(), ContinuationFault> {
    let steps = (0..entry.steps.len() as u32).collect();
    let claim = ContinuationClaim { steps, ..ContinuationClaim::default() };
    let landed = LandedVersion { version: target, without_points: None };
    let frames = vec![(landed, FramePlace::Before(entry.target), &entry.assigns[..])];
    let walk = ContinuationWalk::new(function, source, frames, entry, &claim, BTreeSet::new());
    walk.signature()?;
    let (start, own) = (target.entry(), function.entry());
    let is_start = entry.inner.is_empty() && entry.target.inst() == target.first_inst(start);
    if !is_start {
        return Err(ContinuationFault::Signature);
    }
    let mut insts = function.block_insts(own);
    let values = walk.compensation(&mut insts, &mut Vec::new())?;
    let last = insts.next().ok_or(ContinuationFault::Unclaimed(own))?;
    let leaves = function.inst(last);
    let given = target.block_params(start).iter().map(|param| values.get(&(0, *param)));
    let is_right = leaves.opcode == Opcode::OsrExit
        && leaves.imm == Imm::Exit(OsrPoint::from_u32(0))
        && given.map(Option::<&Value>::copied).eq(leaves.args.iter().map(|arg| Some(*arg)));
    if is_right { Ok(()) } else { Err(ContinuationFault::Leads(last)) }
}
