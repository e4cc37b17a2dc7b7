//! The memories, globals and tables of a machine, as the embedder reads and writes them.

use super::Machine;
use crate::globals;
use crate::memory::{Memories, OutOfBounds};
use cranelift_entity::EntityRef;
use ir::entity::{Global, Table};
use transition::mapping::Write;

impl Machine {
    /// Executes a store that belongs to a transition ([`transition::mapping::Entry::run`]).
    ///
    /// # Errors
    /// When the store is out of bounds; nothing is written then.
    pub fn write(&mut self, write: &Write) -> Result<(), OutOfBounds> {
        globals::execute(&mut self.memories, &mut self.globals, write)
    }

    /// The memories.
    pub fn memories(&self) -> &Memories {
        &self.memories
    }

    /// The memories, for the embedder to change between runs.
    pub fn memories_mut(&mut self) -> &mut Memories {
        &mut self.memories
    }

    /// The bits of the globals, in order of declaration.
    pub fn globals(&self) -> &[u64] {
        self.globals.values()
    }

    /// Sets a global, mutable or not, since the embedder decides the value of an imported one. Bits
    /// outside its type are cleared.
    ///
    /// # Panics
    /// When the module declares no such global.
    pub fn set_global(&mut self, global: Global, bits: u64) {
        let ty = self.declarations().globals[global].ty;
        self.globals.set(global.index(), bits & ty.mask());
    }

    /// The bits of the entries of a table.
    ///
    /// # Panics
    /// When the module declares no such table.
    pub fn table(&self, table: Table) -> &[u64] {
        self.globals.tables.entries(table)
    }

    /// Sets an entry of a table. Returns false, and changes nothing, when the index is out of
    /// bounds, or the entry is an initial one of a fixed table ([`ir::module::TableDecl::fixed`]).
    ///
    /// # Panics
    /// When the module declares no such table.
    pub fn set_table_entry(&mut self, table: Table, index: u64, bits: u64) -> bool {
        // Versions may call the function of such an entry without reading the table
        // (`no_embedder_writes_a_fixed_table`).
        let decl = &self.declarations().tables[table];
        if decl.fixed && index < u64::from(decl.size) {
            return false;
        }
        self.globals.tables.fill(table, index, bits, 1).is_ok()
    }

    /// A digest of memories, their sizes, globals, tables and dropped segments. Cost: constant
    /// where memory is tracked ([`crate::Options::track_memory`]), else the size of memories and
    /// tables.
    pub fn memory_digest(&self) -> u64 {
        self.memories.digest().wrapping_add(self.globals.digest())
    }

    /// The same digest, computed from the contents. Tests compare it with the tracked one. Cost:
    /// the size of memories and tables.
    pub fn computed_memory_digest(&self) -> u64 {
        self.memories.computed_digest().wrapping_add(self.globals.computed_digest())
    }

    /// Whether two machines have equal memories, globals, tables and dropped segments. Cost: the
    /// size of memories and tables.
    pub fn same_memory(&self, other: &Machine) -> bool {
        self.memories == other.memories
            && self.globals.values() == other.globals.values()
            && self.globals.tables == other.globals.tables
    }
}
