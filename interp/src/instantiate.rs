//! Instantiation: creates the memories, tables and globals of a module and writes its segments.

use super::globals::Globals;
use super::memory::Memories;
use super::region::Region;
use super::tables::{SegmentKind, Tables};
use cranelift_entity::EntityRef;
use ir::module::{ElementSegment, MemoryDecl, MemoryKind, Module};
use ir::{Global, Type};
use std::fmt;

/// Why a module could not be instantiated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InstantiateError {
    /// A function is not imported and has no body.
    NoBody {
        /// The name of the function.
        function: String,
    },
    /// The initial size of a memory exceeds its own maximum, the machine's limit, or the capacity
    /// of its region.
    MemoryTooLarge {
        /// The name of the memory.
        memory: String,
        /// The initial size in pages.
        pages: u32,
    },
    /// A machine has a memory of fewer pages than the module declares for it as the minimum. Code
    /// for that module may rely on its declaration ([`Module::least_bytes`]).
    MemoryTooSmall {
        /// The name of the memory.
        memory: String,
        /// The declared minimum in pages.
        pages: u32,
        /// The pages that the memory has.
        has: u32,
    },
    /// The initial size of a table exceeds the machine's limit.
    TableTooLarge {
        /// The name of the table.
        table: String,
        /// The initial number of entries.
        entries: u32,
    },
    /// A data segment is out of bounds of its memory.
    DataOutOfBounds {
        /// The index of the segment among the data segments.
        segment: usize,
        /// The name of the memory.
        memory: String,
    },
    /// An element segment is out of bounds of its table.
    ElementsOutOfBounds {
        /// The index of the segment among the element segments.
        segment: usize,
        /// The name of the table.
        table: String,
    },
}

impl InstantiateError {
    /// Whether the error concerns a segment that is out of bounds. The new declarations then exist
    /// nevertheless, and the segments before the faulty one are written
    /// ([`super::Machine::extend`]). After any other error the machine is unchanged.
    pub fn is_of_segment(&self) -> bool {
        matches!(
            self,
            InstantiateError::DataOutOfBounds { .. } | InstantiateError::ElementsOutOfBounds { .. }
        )
    }
}

impl fmt::Display for InstantiateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InstantiateError::NoBody { function } => {
                write!(f, "function @{function} has no body and is not imported")
            }
            InstantiateError::MemoryTooLarge { memory, pages } => {
                write!(
                    f,
                    "memory {memory} has {pages} initial pages, more than its maximum, the limit or its region allows"
                )
            }
            InstantiateError::MemoryTooSmall { memory, pages, has } => {
                write!(f, "memory {memory} is declared with {pages} pages at least, and has {has}")
            }
            InstantiateError::TableTooLarge { table, entries } => {
                write!(f, "table {table} has {entries} entries, more than the limit allows")
            }
            InstantiateError::DataOutOfBounds { segment, memory } => {
                write!(f, "data segment {segment} is out of bounds of memory {memory}")
            }
            InstantiateError::ElementsOutOfBounds { segment, table } => {
                write!(f, "element segment {segment} is out of bounds of table {table}")
            }
        }
    }
}

impl std::error::Error for InstantiateError {}

/// The number of memories, tables and segments that a machine has.
#[derive(Clone, Copy, Debug)]
pub(super) struct StorageCounts {
    memories: usize,
    tables: usize,
    data: usize,
    elements: usize,
}

impl StorageCounts {
    pub(super) fn of(memories: &Memories, globals: &Globals) -> StorageCounts {
        let tables = &globals.tables;
        StorageCounts {
            memories: memories.count(),
            tables: tables.count(),
            data: tables.segments(SegmentKind::Data),
            elements: tables.segments(SegmentKind::Elem),
        }
    }
}

/// Adds the memories, tables, globals and segments that the module declares beyond the counts in
/// `has`. A memory lies in the region that `regions` returns for it, or in memory of the
/// interpreter's own. On an error nothing is added.
pub(super) fn add_storage(
    module: &Module,
    has: StorageCounts,
    memories: &mut Memories,
    globals: &mut Globals,
    regions: &mut dyn FnMut(&MemoryDecl) -> Option<Box<dyn Region>>,
) -> Result<(), InstantiateError> {
    let before = (memories.extent(), globals.tables.extent());
    if let Err(error) = add_limited(module, has, memories, &mut globals.tables, regions) {
        memories.cut(before.0);
        globals.tables.cut(before.1);
        return Err(error);
    }
    for decl in module.globals.values().skip(globals.values().len()) {
        let init = decl.init.evaluate(decl.ty, |global| globals.get(global.index()));
        globals.add(init & decl.ty.mask());
    }
    globals.tables.add_segments(SegmentKind::Data, module.data.len());
    globals.tables.add_segments(SegmentKind::Elem, module.elements.len());
    Ok(())
}

/// Fails if a memory that exists has fewer pages than the module declares at least
/// (`a_module_that_declares_more_pages_than_a_memory_has_is_rejected`). It may have more, since it
/// may have grown.
pub(super) fn check_least(module: &Module, memories: &Memories) -> Result<(), InstantiateError> {
    for (memory, decl) in module.memories.iter().take(memories.count()) {
        let has = memories.pages(memory);
        if decl.kind == MemoryKind::Linear && decl.min_pages > has {
            let (memory, pages) = (decl.name.clone(), decl.min_pages);
            return Err(InstantiateError::MemoryTooSmall { memory, pages, has });
        }
    }
    Ok(())
}

/// Adds memories and tables, the two kinds that a limit may reject. On an error, memories and
/// tables added so far stay; the caller removes them.
fn add_limited(
    module: &Module,
    has: StorageCounts,
    memories: &mut Memories,
    tables: &mut Tables,
    regions: &mut dyn FnMut(&MemoryDecl) -> Option<Box<dyn Region>>,
) -> Result<(), InstantiateError> {
    for decl in module.memories.values().skip(has.memories) {
        let too_large = |_| InstantiateError::MemoryTooLarge {
            memory: decl.name.clone(),
            pages: decl.min_pages,
        };
        memories.add(decl, regions(decl)).map_err(too_large)?;
    }
    for decl in module.tables.values().skip(has.tables) {
        let too_large =
            |_| InstantiateError::TableTooLarge { table: decl.name.clone(), entries: decl.size };
        tables.add(decl).map_err(too_large)?;
    }
    Ok(())
}

/// Writes the new active segments and drops them, element segments first. On an error, the segments
/// before the faulty one stay written.
pub(super) fn write_segments(
    module: &Module,
    has: StorageCounts,
    memories: &mut Memories,
    globals: &mut Globals,
) -> Result<(), InstantiateError> {
    let (values, tables) = globals.split();
    let read = |global: Global| values[global.index()];
    // Segments of fixed tables come first. They fit, and versions rely on them, so a faulty segment
    // of an imported table must not keep them away
    // (`a_faulty_segment_keeps_none_of_a_fixed_table_away`).
    let new = || module.elements.iter().enumerate().skip(has.elements);
    let is_fixed = |(_, elements): &(usize, &ElementSegment)| {
        elements.active.as_ref().is_some_and(|(table, _)| module.tables[*table].fixed)
    };
    let rest = new().filter(|segment| !is_fixed(segment));
    for (segment, elements) in new().filter(is_fixed).chain(rest) {
        let Some((table, offset)) = &elements.active else { continue };
        let (table, offset) = (*table, offset.evaluate(Type::I32, read));
        let count = elements.entries.len() as u64;
        tables
            .write(table, offset, 0, count, &elements.resolved(0..elements.entries.len(), read))
            .map_err(|_| InstantiateError::ElementsOutOfBounds {
                segment,
                table: module.tables[table].name.clone(),
            })?;
        tables.drop_segment(SegmentKind::Elem, segment);
    }
    for (segment, data) in module.data.iter().enumerate().skip(has.data) {
        let Some((memory, offset)) = &data.active else { continue };
        let (memory, offset) = (*memory, offset.evaluate(Type::I32, read));
        memories.write(memory, offset, &data.bytes).map_err(|_| {
            InstantiateError::DataOutOfBounds {
                segment,
                memory: module.memories[memory].name.clone(),
            }
        })?;
        tables.drop_segment(SegmentKind::Data, segment);
    }
    Ok(())
}
