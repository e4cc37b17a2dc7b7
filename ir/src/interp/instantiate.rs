//! Initial memories and tables.

use super::limits::Limits;
use super::memory::Memories;
use crate::entity::{Func, Memory};
use crate::module::Module;
use cranelift_entity::EntityRef;
use cranelift_entity::packed_option::PackedOption;
use std::fmt;

/// Why a module could not be instantiated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InstantiateError {
    /// A function is neither imported nor has a body.
    NoBody {
        /// Its name.
        function: String,
    },
    /// A memory starts with more pages than its own maximum or the machine's limit.
    MemoryTooLarge {
        /// Its name.
        memory: String,
        /// The pages it starts with.
        pages: u32,
    },
    /// A table is larger than the machine's limit.
    TableTooLarge {
        /// Its name.
        table: String,
        /// Its entries.
        entries: u32,
    },
    /// A data segment does not lie within its memory.
    DataOutOfBounds {
        /// Its index among the data segments.
        segment: usize,
        /// The name of the memory.
        memory: String,
    },
    /// An element segment does not lie within its table.
    ElementsOutOfBounds {
        /// Its index among the element segments.
        segment: usize,
        /// The name of the table.
        table: String,
    },
}

impl fmt::Display for InstantiateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InstantiateError::NoBody { function } => write!(f, "function @{function} has no body and is not imported"),
            InstantiateError::MemoryTooLarge { memory, pages } => {
                write!(f, "memory {memory} starts with {pages} pages, more than its maximum or the limit allows")
            }
            InstantiateError::TableTooLarge { table, entries } => {
                write!(f, "table {table} has {entries} entries, more than the limit allows")
            }
            InstantiateError::DataOutOfBounds { segment, memory } => {
                write!(f, "data segment {segment} does not lie within memory {memory}")
            }
            InstantiateError::ElementsOutOfBounds { segment, table } => {
                write!(f, "element segment {segment} does not lie within table {table}")
            }
        }
    }
}

impl std::error::Error for InstantiateError {}

/// The memories with the data segments written.
pub(super) fn fill_memories(module: &Module, limits: &Limits, tracked: bool) -> Result<Memories, InstantiateError> {
    let name = |memory: Memory| module.memories[memory].name.clone();
    let mut memories = Memories::new(&module.memories, limits, tracked).map_err(|memory| {
        InstantiateError::MemoryTooLarge { memory: name(memory), pages: module.memories[memory].min_pages }
    })?;
    for (segment, data) in module.data.iter().enumerate() {
        memories
            .write(data.memory, data.offset, &data.bytes)
            .map_err(|_| InstantiateError::DataOutOfBounds { segment, memory: name(data.memory) })?;
    }
    Ok(memories)
}

/// The tables with the element segments written.
pub(super) fn fill_tables(module: &Module, limits: &Limits) -> Result<Vec<Vec<PackedOption<Func>>>, InstantiateError> {
    let mut entries_left = limits.table_entries;
    let mut tables = Vec::new();
    for decl in module.tables.values() {
        let too_large = || InstantiateError::TableTooLarge { table: decl.name.clone(), entries: decl.size };
        entries_left = entries_left.checked_sub(decl.size).ok_or_else(too_large)?;
        tables.push(vec![PackedOption::default(); decl.size as usize]);
    }
    for (segment, elements) in module.elements.iter().enumerate() {
        let table = &mut tables[elements.table.index()];
        let start = usize::try_from(elements.offset).ok();
        let end = start.and_then(|s| s.checked_add(elements.funcs.len()));
        let range = start.zip(end).and_then(|(start, end)| table.get_mut(start..end));
        let range = range.ok_or_else(|| InstantiateError::ElementsOutOfBounds {
            segment,
            table: module.tables[elements.table].name.clone(),
        })?;
        for (entry, func) in range.iter_mut().zip(&elements.funcs) {
            *entry = (*func).into();
        }
    }
    Ok(tables)
}
