//! Host memories: bytes of the embedder at 64-bit addresses.

use std::fmt;

/// The bytes behind a host memory that the module declares without pages, as the interpreter uses
/// them. Examples are a simulation for tests, and the heap of a virtual machine in the process.
pub trait HostMemory: Send + Sync + fmt::Debug {
    /// Reads the bytes from an address on. Returns false if one of them belongs to no mapped range,
    /// or if they reach beyond the last address; the access then traps, and the contents of `into`
    /// are unspecified.
    fn read(&self, at: u64, into: &mut [u8]) -> bool;

    /// Writes bytes from an address on. Returns false, and writes nothing, in the cases in which
    /// [`HostMemory::read`] returns false.
    ///
    /// A byte that a run has accessed must stay accessible while the run lasts: optimized code
    /// relies on it.
    fn write(&mut self, at: u64, bytes: &[u8]) -> bool;
}

/// The bytes of a host memory, once the embedder has provided them. A clone starts without them:
/// otherwise two machines would write one memory.
#[derive(Default, Debug)]
pub(super) struct ProvidedMemory(pub(super) Option<Box<dyn HostMemory>>);

impl ProvidedMemory {
    pub(super) fn read(&self, at: u64, into: &mut [u8]) -> bool {
        self.0.as_ref().is_some_and(|memory| memory.read(at, into))
    }

    pub(super) fn write(&mut self, at: u64, bytes: &[u8]) -> bool {
        self.0.as_mut().is_some_and(|memory| memory.write(at, bytes))
    }
}

impl Clone for ProvidedMemory {
    fn clone(&self) -> ProvidedMemory {
        ProvidedMemory(None)
    }
}
