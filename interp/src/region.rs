//! Storage for the bytes of memories.

use std::fmt;

/// Bytes that an engine provides for a memory, so that native code knows their address. An example
/// is a mapping with guard pages, whose base never moves. A region is empty at first; the machine
/// grows it to the size of the memory. It never shrinks: transitions rely on accesses below a size
/// that it has reached.
pub trait Region: Send + Sync + fmt::Debug {
    /// The bytes.
    fn bytes(&self) -> &[u8];

    /// The bytes, for writing.
    fn bytes_mut(&mut self) -> &mut [u8];

    /// Grows the region to `length` bytes, which is more than it has and a multiple of 64 KiB. New
    /// bytes are zero. Returns false, and changes nothing, when it cannot grow; the program then
    /// sees a failed growth.
    fn grow(&mut self, length: usize) -> bool;
}

/// The bytes of one memory.
#[derive(Debug)]
pub(super) enum Storage {
    /// An allocation of the interpreter.
    Own(Vec<u8>),
    /// Bytes of an engine.
    Region(Box<dyn Region>),
}

impl Storage {
    /// Empty storage, in the region if there is one.
    ///
    /// # Panics
    /// When the region is not empty.
    pub(super) fn new(region: Option<Box<dyn Region>>) -> Storage {
        region.map_or(Storage::default(), |region| {
            assert!(region.bytes().is_empty(), "interp: the region is not empty");
            Storage::Region(region)
        })
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Storage::Own(bytes) => bytes,
            Storage::Region(region) => region.bytes(),
        }
    }

    #[inline]
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Storage::Own(bytes) => bytes,
            Storage::Region(region) => region.bytes_mut(),
        }
    }

    /// Grows to `length` bytes; new bytes are zero. Returns false, and changes nothing, when the
    /// region cannot grow.
    ///
    /// # Panics
    /// When the length of a region does not match the result of its `grow`.
    pub(super) fn grow(&mut self, length: usize) -> bool {
        match self {
            Storage::Own(bytes) => extend_zeroed(bytes, length),
            Storage::Region(region) => {
                let before = region.bytes().len();
                let grown = region.grow(length);
                let expected = if grown { length } else { before };
                assert_eq!(
                    region.bytes().len(),
                    expected,
                    "interp: the length of the region does not match the result of `grow`"
                );
                return grown;
            }
        }
        true
    }
}

impl Default for Storage {
    fn default() -> Storage {
        Storage::Own(Vec::new())
    }
}

/// A clone is an allocation of the interpreter, because the engine does not know of the clone.
impl Clone for Storage {
    fn clone(&self) -> Storage {
        Storage::Own(self.bytes().to_vec())
    }
}

/// Extends a vector with zeros. A vector that at least doubles is allocated anew, because the
/// system commits a zeroed allocation page by page as it is touched. A program that claims much
/// memory and uses little thus costs little.
fn extend_zeroed(bytes: &mut Vec<u8>, length: usize) {
    if length > bytes.capacity() && length / 2 >= bytes.len() {
        let mut fresh = vec![0; length];
        fresh[..bytes.len()].copy_from_slice(bytes);
        *bytes = fresh;
    } else {
        bytes.resize(length, 0);
    }
}
