//! The part of a machine that native code reads and writes.

use super::block::{ContextBlock, Current};
use super::linear::Addresses;
use super::modules::ModuleChain;
use super::stop::RunError;
use super::table::CodeTable;
use crate::config::Interruption;
use crate::context::{Context, Helpers, MemoryView, TableView};
use crate::lower::call::CanonicalSignatures;
use cranelift_entity::EntityRef;
use interp::Machine;
use ir::{Func, Memory, Module, Table};
use std::sync::Arc;

/// The context of a machine, and all data at its addresses. Memories, tables and globals belong to
/// the machine of the interpreter.
pub(super) struct NativeView {
    block: Arc<ContextBlock>,
    /// The current block, for threads that end runs from outside.
    interrupts: Current,
    /// The words through which values cross. As many as the machine's code needs, and the values
    /// that Rust writes: often none.
    pub(super) buffer: Box<[u64]>,
    /// The address ranges of the guarded memories. A fault at another address is not a trap of the
    /// program.
    guarded: Addresses,
    memories: Box<[MemoryView]>,
    tables: Box<[TableView]>,
    signatures: CanonicalSignatures,
    interruption: Interruption,
}

// SAFETY: the raw pointers are addresses in memories and tables of the machine that is owned beside
// this view. Native code alone follows them, and `share` writes them anew before each entry.
unsafe impl Send for NativeView {}

impl NativeView {
    /// A view without memories and tables, and with a context for a module and these helpers.
    pub(super) fn new(
        module: &Module,
        guarded: Addresses,
        interruption: Interruption,
        helpers: Helpers,
    ) -> NativeView {
        let has_flags = interruption == Interruption::Signal;
        let block = ContextBlock::new(module.funcs.len(), has_flags, helpers);
        NativeView {
            interrupts: Current::new(Arc::clone(&block)),
            block,
            buffer: [].into(),
            guarded,
            memories: [].into(),
            tables: [].into(),
            signatures: CanonicalSignatures::default(),
            interruption,
        }
    }

    /// Makes room for the functions of a later module. The caller points the new functions at their
    /// code afterwards. A block without room is replaced by one with twice as much: over many
    /// extensions each costs a constant (`blocks_are_replaced_at_doublings`).
    pub(super) fn extend(&mut self, module: &Module, mut guarded: Addresses) {
        self.guarded.append(&mut guarded);
        let functions = module.funcs.len();
        if !self.block.has_room(functions) {
            let larger = self.block.larger(functions.max(2 * self.block.room()));
            self.block = self.interrupts.move_to(larger);
        }
    }

    /// Allocates the views of all declarations of a module. Linear in the memories, tables and new
    /// functions.
    pub(super) fn lay_out(&mut self, module: &Module) {
        let memory = MemoryView { base: std::ptr::null_mut(), bytes: 0 };
        let table = TableView { entries: std::ptr::null(), count: 0 };
        self.memories = vec![memory; module.memories.len()].into();
        self.tables = vec![table; module.tables.len()].into();
        self.signatures.extend(module);
    }

    /// The fixed part of the context.
    pub(super) fn context(&self) -> &Context {
        self.block.context()
    }

    /// The address of the context, for an entry into native code.
    pub(super) fn address(&self) -> *mut Context {
        self.block.address()
    }

    /// Makes calls of a function run some code.
    pub(super) fn point_at(&self, func: Func, code: *const u8) {
        self.block.point_at(func.index(), code);
    }

    /// Writes the current addresses of memories, tables and globals, and the fuel, to the context.
    /// Linear in their number.
    ///
    /// # Errors
    /// [`RunError::Exchanged`] if they differ from the machine's original memories, tables and
    /// globals. Embedders and hosts get mutable references to the machine and its memories, and may
    /// exchange them (`memories_that_were_exchanged_are_refused`). Native code relies on the guards
    /// behind memories and on the number of globals.
    #[inline]
    pub(super) fn share(
        &mut self,
        machine: &mut Machine,
        modules: &ModuleChain,
        table: &CodeTable,
    ) -> Result<(), RunError> {
        modules.require_own(machine)?;
        self.reserve(table.buffer_words());
        for (index, view) in self.memories.iter_mut().enumerate() {
            let bytes = machine.memory_bytes_mut(Memory::new(index));
            if self.guarded.get(index).is_some_and(|range| range.start != bytes.as_ptr().addr()) {
                return Err(RunError::Exchanged);
            }
            *view = MemoryView { base: bytes.as_mut_ptr(), bytes: bytes.len() as u64 };
        }
        if machine.globals_mut().len() < modules.current.globals.len() {
            return Err(RunError::Exchanged);
        }
        for (index, view) in self.tables.iter_mut().enumerate() {
            let entries = machine.table_entries_mut(Table::new(index));
            *view = TableView { entries: entries.as_ptr(), count: entries.len() as u64 };
        }
        if let Some(memory) = self.memories.first() {
            self.context().memory.set(*memory);
        }
        self.context().globals.set(machine.globals_mut().as_mut_ptr());
        self.give(machine);
        self.publish();
        Ok(())
    }

    /// Makes room for this number of words in the buffer. The caller shares or publishes the view
    /// before native code continues. Code that waits for a helper loads the address of the buffer
    /// anew (`Lowering::buffer`). Over many calls, linear in the largest number.
    #[inline]
    pub(super) fn reserve(&mut self, words: usize) {
        if self.buffer.len() < words {
            self.grow_buffer(words);
        }
    }

    #[cold]
    fn grow_buffer(&mut self, words: usize) {
        let mut larger = vec![0; words.next_power_of_two()];
        // The words in use stay: a helper that reads its arguments may have run other code before.
        larger[..self.buffer.len()].copy_from_slice(&self.buffer);
        self.buffer = larger.into();
    }

    /// Writes the addresses of the buffer and of the views to the context. The addresses stay the
    /// same, but each use of the boxes in Rust invalidates earlier pointers into them. So native
    /// code gets new pointers after each such use.
    #[inline]
    pub(super) fn publish(&mut self) {
        let buffer = self.buffer.as_mut_ptr();
        let context = self.block.context();
        context.buffer.set(buffer);
        context.tables.set(self.tables.as_ptr());
        context.memories.set(self.memories.as_ptr());
        let signatures = self.signatures.of_functions();
        context.signatures.set(signatures.as_ptr());
        context.functions.set(signatures.len() as u64);
    }

    /// Writes the fuel and the first globals of the machine to the context, where native code
    /// changes them.
    #[inline]
    pub(super) fn give(&self, machine: &Machine) {
        self.context().fuel.set(i64::try_from(machine.fuel()).unwrap_or(i64::MAX));
        for (near, bits) in self.context().near.iter().zip(machine.globals()) {
            near.set(*bits);
        }
    }

    /// Reads the first globals back from the context, and the fuel if code counts it. Native code
    /// writes memories and all other globals in place.
    #[inline]
    pub(super) fn take_back(&self, machine: &mut Machine) {
        if self.interruption == Interruption::Fuel {
            machine.set_fuel(self.context().fuel.get().max(0) as u64);
        }
        for (bits, near) in machine.globals_mut().iter_mut().zip(&self.context().near) {
            *bits = near.get();
        }
    }

    /// Copies values to the beginning of the buffer.
    pub(super) fn fill_buffer(&mut self, values: &[u64]) {
        self.reserve(values.len());
        self.buffer[..values.len()].copy_from_slice(values);
    }

    /// Whether an address belongs to a guarded memory, so that a fault there is a trap of the
    /// program.
    pub(super) fn is_guarded(&self, address: usize) -> bool {
        self.guarded.iter().any(|range| range.contains(&address))
    }

    /// Drops an unnoticed request to end a run. Takes the lock only if a request exists: a request
    /// sets the word that this function reads before all other words.
    #[inline]
    pub(super) fn forget_interrupts(&self) {
        if self.block.is_interrupted() {
            self.interrupts.forget_interrupts();
        }
    }

    /// The handle of threads that end runs from outside.
    pub(super) fn interrupts(&self) -> Current {
        self.interrupts.clone()
    }

    /// The block in which the interpreter looks for interrupts. `None` without
    /// [`Interruption::Signal`].
    pub(super) fn heeded(&self) -> Option<Arc<ContextBlock>> {
        (self.interruption == Interruption::Signal).then(|| Arc::clone(&self.block))
    }
}

#[cfg(test)]
mod tests;
