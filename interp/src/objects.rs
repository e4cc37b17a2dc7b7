//! Objects that entries make ([`transition::objects`]): an embedder's allocator makes them.

use super::machine::Machine;
use super::memory::Memories;
use ir::Func;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;
use transition::mapping::{CompensationFault, Entry};

/// Makes the objects of transitions: those that the optimized code lacks, and a frame needs.
pub trait Allocator: fmt::Debug + Send + Sync {
    /// Does what a call of `func` with these arguments would do, and returns the reference. The
    /// function is one that the module declares an allocator
    /// ([`ir::DeclaredEffect::is_allocator`]). It must move no object: references are in values of
    /// the transition, which nothing else knows. `None` if there is no space. The transition then
    /// fails, so keep some space for it: an entry makes few objects.
    fn allocate(&self, func: Func, args: &[u64], memories: &mut Memories) -> Option<u64>;
}

impl Machine {
    /// Lets an allocator make the objects of transitions. Without one, an entry that makes an
    /// object cannot be fired ([`CompensationFault::NoObject`]).
    pub fn make_objects_by(&mut self, allocator: Arc<dyn Allocator>) {
        self.allocator = Some(allocator);
    }

    /// Makes the objects of an entry, in the order of its steps. Cost: linear in the steps.
    ///
    /// # Errors
    /// [`CompensationFault::NoObject`] if there is no space or no allocator, and for an entry of
    /// which an argument is no constant. Objects made before stay, and nothing refers to them.
    pub fn objects_of(&mut self, entry: &Entry) -> Result<SmallVec<[u64; 2]>, CompensationFault> {
        let Machine { allocator, memories, .. } = self;
        entry
            .objects()
            .map(|(func, args)| {
                let made = || allocator.as_ref()?.allocate(func, &args?, memories);
                made().ok_or(CompensationFault::NoObject { func })
            })
            .collect()
    }
}
