//! The versions that a machine holds.

use super::code::Code;
use cranelift_entity::entity_impl;
use ir::entity::Func;
use std::sync::Arc;

/// The id of a version of a function within one machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VersionId(u32);
entity_impl!(VersionId, "version");

/// One version of a function, loaded into a machine.
#[derive(Clone, Debug)]
pub(super) struct MachineVersion {
    pub(super) func: Func,
    pub(super) code: Arc<Code>,
}
