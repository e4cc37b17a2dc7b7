//! The memory budget of an import.

use crate::error::ImportError;

/// Limits on the memory of an import.
///
/// A byte of WebAssembly can need far more than a byte of IR. A one-byte operator becomes an
/// instruction, and `n` nested loops that set `n` locals need `n * n` block parameters. The
/// importer computes an upper bound of each allocation before it makes it. It rejects a module that
/// would need more than `base_bytes + bytes_per_input_byte * input length`. By this estimate,
/// programs from compilers need 25 to 60 bytes per byte of input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ImportLimits {
    /// Bytes of memory for each byte of input.
    pub bytes_per_input_byte: u64,
    /// Bytes of memory for every input, regardless of its size.
    pub base_bytes: u64,
    /// Threads that translate functions; 1 if it is 0. They share the memory, and the result does
    /// not depend on their number.
    pub threads: usize,
}

impl Default for ImportLimits {
    /// 64 bytes for each byte of input, and 512 MiB: a function of a million instructions needs as
    /// much while it is imported. One thread.
    fn default() -> ImportLimits {
        ImportLimits { bytes_per_input_byte: 64, base_bytes: 512 << 20, threads: 1 }
    }
}

/// Upper bounds in bytes on the memory of one item of each kind. They include the slack of growing
/// tables, the overhead of the allocator, and the data of the validator. `tests/memory.rs` measures
/// modules made of each.
pub(crate) mod cost {
    /// An entry of the type section.
    pub(crate) const TYPE: u64 = 600;
    /// An imported function.
    pub(crate) const IMPORT: u64 = 700;
    /// A function of the module, without its body.
    pub(crate) const FUNCTION: u64 = 700;
    /// An export, table, memory, tag, global or segment.
    pub(crate) const ITEM: u64 = 300;
    /// An entry of an element segment.
    pub(crate) const ELEMENT: u64 = 24;
    /// An operation of a constant expression that is computed at instantiation.
    pub(crate) const INIT_OP: u64 = 32;
    /// A byte of a name.
    pub(crate) const NAME_BYTE: u64 = 4;
    /// A level of nesting, while its function is imported.
    pub(crate) const LEVEL: u64 = 200;
    /// An increase by one of the greatest height of the operand stack, while its function is
    /// imported.
    pub(crate) const STACK: u64 = 24;
    /// An instruction with its results, while its function is imported into tables that grow.
    pub(crate) const BUILT_INST: u64 = 560;
    /// An instruction with its results in the finished function.
    pub(crate) const INST: u64 = 190;
    /// A result of an instruction beyond its first, while its function is imported.
    pub(crate) const BUILT_RESULT: u64 = 160;
    /// A result of an instruction beyond its first in the finished function.
    pub(crate) const RESULT: u64 = 80;
    /// An operand of an instruction, while its function is imported.
    pub(crate) const OPERAND: u64 = 16;
    /// An operand of an instruction in the finished function, where it has memory of its own: in a
    /// list of more than three operands, and in one of more than four users.
    pub(crate) const USE: u64 = 12;
    /// The offset of an instruction, while its function is imported: in a table that grows by
    /// doubling, and in the tables of old and new ids.
    pub(crate) const BUILT_OFFSET: u64 = 24;
    /// The offset of an instruction of the finished function.
    pub(crate) const OFFSET: u64 = 4;
    /// The offsets of a function, except the offsets of its instructions.
    pub(crate) const OFFSETS: u64 = 120;
    /// A block without its instructions, while its function is imported.
    pub(crate) const BUILT_BLOCK: u64 = 500;
    /// A block without its instructions in the finished function.
    pub(crate) const BLOCK: u64 = 110;
    /// A target of a branch, while its function is imported.
    pub(crate) const BUILT_TARGET: u64 = 110;
    /// A target of a branch in the finished function.
    pub(crate) const TARGET: u64 = 44;
    /// A local used in a block, while its function is imported.
    pub(crate) const ACCESS: u64 = 350;
    /// An argument of a block parameter made for a local, while its function is imported.
    pub(crate) const BUILT_ARG: u64 = 260;
    /// An argument of a block parameter in the finished function.
    pub(crate) const ARG: u64 = 40;
}

/// The memory that an import may still use.
#[derive(Debug)]
pub(crate) struct ImportBudget {
    left: u64,
}

impl ImportBudget {
    pub(crate) fn new(limits: &ImportLimits, input_bytes: usize) -> ImportBudget {
        let scaled = limits.bytes_per_input_byte.saturating_mul(input_bytes as u64);
        ImportBudget { left: limits.base_bytes.saturating_add(scaled) }
    }

    /// A budget of some bytes.
    pub(crate) fn of(left: u64) -> ImportBudget {
        ImportBudget { left }
    }

    /// Takes bytes that shares of this budget have been charged with.
    ///
    /// # Panics
    /// If fewer are left, which the sum of the shares excludes.
    pub(crate) fn take(&mut self, bytes: u64) {
        self.left = self.left.checked_sub(bytes).expect("shares are parts of the budget");
    }

    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Takes `bytes` from the budget before they are allocated. Fails at `offset` when fewer are
    /// left.
    pub(crate) fn charge(&mut self, bytes: u64, offset: u64) -> Result<(), ImportError> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(ImportError::over_budget(
                "the import would need more memory than the limit for a module of this size",
                offset,
            )),
        }
    }

    /// Returns `bytes` to the budget.
    pub(crate) fn release(&mut self, bytes: u64) {
        self.left += bytes;
    }
}
