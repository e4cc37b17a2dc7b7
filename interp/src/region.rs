//! Where the bytes of a memory are.

use std::fmt;

/// Bytes that an engine provides for a memory, so that native code finds them where they are (a
/// mapping with guard pages, the base of which never moves). Empty at first; the machine makes it
/// as long as the memory.
pub trait Region: Send + Sync + fmt::Debug {
    /// The bytes.
    fn bytes(&self) -> &[u8];

    /// The bytes, to be written.
    fn bytes_mut(&mut self) -> &mut [u8];

    /// Makes it so many bytes long, more than it is, a multiple of 64 KiB; new bytes are zero.
    /// False, and nothing changed, when it cannot: the program sees growth that fails.
    fn grow(&mut self, length: usize) -> bool;
}

/// The bytes of one memory.
#[derive(Debug)]
pub(super) enum Storage {
    /// The library's own.
    Own(Vec<u8>),
    /// An engine's.
    Region(Box<dyn Region>),
}

impl Storage {
    /// Without bytes yet.
    ///
    /// # Panics
    /// When the region is not empty.
    pub(super) fn new(region: Option<Box<dyn Region>>) -> Storage {
        region.map_or(Storage::default(), |region| {
            assert!(region.bytes().is_empty(), "interp: a region is empty at first");
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

    /// Makes it longer with zeros; false, and nothing changed, when the region cannot.
    ///
    /// # Panics
    /// When a region says that it grew and did not.
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
                    "interp: the length of a region after growth"
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

/// A copy is the library's own: the engine does not know of it.
impl Clone for Storage {
    fn clone(&self) -> Storage {
        Storage::Own(self.bytes().to_vec())
    }
}

/// Makes a vector longer with zeros. A vector that at least doubles is allocated anew: zeroed
/// allocations are committed by the system page by page as they are touched, so that a program that
/// claims much and uses little costs little.
fn extend_zeroed(bytes: &mut Vec<u8>, length: usize) {
    if length > bytes.capacity() && length / 2 >= bytes.len() {
        let mut fresh = vec![0; length];
        fresh[..bytes.len()].copy_from_slice(bytes);
        *bytes = fresh;
    } else {
        bytes.resize(length, 0);
    }
}
