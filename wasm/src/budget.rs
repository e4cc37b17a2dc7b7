//! How much memory an import may use, and what has been used.

use crate::error::ImportError;

/// Bounds on what importing a module may use.
///
/// A byte of WebAssembly can need far more than a byte of IR: a one-byte operator becomes an
/// instruction, and `n` nested loops that set `n` locals need `n * n` block parameters. The
/// importer estimates from above what it is about to allocate, and refuses a module that would need
/// more than `base_bytes + bytes_per_input_byte * input length`. Programs that compilers make need
/// 25 to 60 bytes for each of theirs by this estimate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ImportLimits {
    /// Bytes of memory for every byte of input.
    pub bytes_per_input_byte: u64,
    /// Bytes of memory whatever the input.
    pub base_bytes: u64,
}

impl Default for ImportLimits {
    /// 64 bytes for every byte of input, and 64 MiB.
    fn default() -> ImportLimits {
        ImportLimits { bytes_per_input_byte: 64, base_bytes: 64 << 20 }
    }
}

/// What one of each may cost, in bytes, with the slack of growing tables and of the allocator, and
/// with what the validator keeps besides. `tests/memory.rs` measures modules made of each.
pub(crate) mod cost {
    /// An entry of the type section.
    pub(crate) const TYPE: u64 = 600;
    /// An imported function.
    pub(crate) const IMPORT: u64 = 700;
    /// A function of the module, beside its body.
    pub(crate) const FUNCTION: u64 = 700;
    /// An export, global, or segment.
    pub(crate) const ITEM: u64 = 300;
    /// An entry of an element segment.
    pub(crate) const ELEMENT: u64 = 24;
    /// A byte of a name.
    pub(crate) const NAME_BYTE: u64 = 4;
    /// A level of nesting, while its function is imported.
    pub(crate) const LEVEL: u64 = 200;
    /// A value on the operand stack at its highest, while its function is imported.
    pub(crate) const STACK: u64 = 24;
    /// An instruction with its results, while its function is imported.
    pub(crate) const BUILT_INST: u64 = 560;
    /// The same in the finished function.
    pub(crate) const INST: u64 = 190;
    /// A result of an instruction beyond its first, while its function is imported.
    pub(crate) const BUILT_RESULT: u64 = 160;
    /// The same in the finished function.
    pub(crate) const RESULT: u64 = 80;
    /// An operand of an instruction.
    pub(crate) const OPERAND: u64 = 16;
    /// A block beside its instructions, while its function is imported.
    pub(crate) const BUILT_BLOCK: u64 = 500;
    /// The same in the finished function.
    pub(crate) const BLOCK: u64 = 110;
    /// A target of a branch, while its function is imported.
    pub(crate) const BUILT_TARGET: u64 = 110;
    /// The same in the finished function.
    pub(crate) const TARGET: u64 = 44;
    /// A local used in a block, while its function is imported.
    pub(crate) const ACCESS: u64 = 350;
    /// An argument of a block parameter made for a local, while its function is imported.
    pub(crate) const BUILT_ARG: u64 = 260;
    /// The same in the finished function.
    pub(crate) const ARG: u64 = 40;
}

/// What may still be used.
#[derive(Debug)]
pub(crate) struct Budget {
    left: u64,
}

impl Budget {
    pub(crate) fn new(limits: &ImportLimits, input_bytes: usize) -> Budget {
        let scaled = limits.bytes_per_input_byte.saturating_mul(input_bytes as u64);
        Budget { left: limits.base_bytes.saturating_add(scaled) }
    }

    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Takes what is about to be used.
    pub(crate) fn charge(&mut self, bytes: u64, offset: u64) -> Result<(), ImportError> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(ImportError::too_large(
                "the module needs more memory than its size allows",
                offset,
            )),
        }
    }

    /// Gives back what is no longer used.
    pub(crate) fn release(&mut self, bytes: u64) {
        self.left += bytes;
    }
}
