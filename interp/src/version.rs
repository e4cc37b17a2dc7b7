//! The versions that a machine holds.

use super::code::Code;
use cranelift_entity::entity_impl;
use ir::entity::{Func, Inst};
use std::sync::Arc;
use transition::copy::InlinedSites;

/// The id of a version of a function within one machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VersionId(u32);
entity_impl!(VersionId, "version");

/// One version is the list of the versions that a plain entry lands in ([`super::Machine::fire`]).
impl AsRef<[VersionId]> for VersionId {
    fn as_ref(&self) -> &[VersionId] {
        std::slice::from_ref(self)
    }
}

/// One version of a function, loaded into a machine.
#[derive(Clone, Debug)]
pub(super) struct MachineVersion {
    pub(super) func: Func,
    pub(super) code: Arc<Code>,
    /// The sites of its inlined code, if it has any.
    pub(super) sites: Option<Arc<InlinedSites>>,
}

impl MachineVersion {
    /// The function and the instruction at a pc: of the base, for inlined code.
    pub(super) fn site(&self, pc: u32) -> (Func, Option<Inst>) {
        let inst = self.code.inst_near(pc);
        let inlined = inst.and_then(|inst| self.sites.as_ref()?.get(&inst));
        inlined.map_or((self.func, inst), |(func, inst)| (*func, Some(*inst)))
    }
}
