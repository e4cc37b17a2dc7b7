//! Maps the index spaces of a module to ids of the IR.
//!
//! A module numbers its imports before its definitions. In a module that is imported alone, indices
//! and ids are equal. A linked module shares the ids of the modules before it.

use ir::{Data, Elem, Func, Global, Memory, Module, Table};

/// The id for each index of a module, by kind.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) funcs: Vec<Func>,
    pub(crate) tables: Vec<Table>,
    pub(crate) memories: Vec<Memory>,
    pub(crate) globals: Vec<Global>,
    /// The number of data segments in the earlier modules.
    data: u32,
    elements: u32,
}

impl Index {
    /// The index of a module that follows others and has declared nothing yet.
    pub(crate) fn behind(module: &Module) -> Index {
        let count = |n: usize| u32::try_from(n).expect("modules have fewer than 2^32 segments");
        Index {
            funcs: Vec::new(),
            tables: Vec::new(),
            memories: Vec::new(),
            globals: Vec::new(),
            data: count(module.data.len()),
            elements: count(module.elements.len()),
        }
    }

    pub(crate) fn func(&self, index: u32) -> Func {
        self.funcs[index as usize]
    }

    pub(crate) fn table(&self, index: u32) -> Table {
        self.tables[index as usize]
    }

    pub(crate) fn memory(&self, index: u32) -> Memory {
        self.memories[index as usize]
    }

    pub(crate) fn global(&self, index: u32) -> Global {
        self.globals[index as usize]
    }

    pub(crate) fn data(&self, index: u32) -> Data {
        Data::from_u32(self.data + index)
    }

    pub(crate) fn elem(&self, index: u32) -> Elem {
        Elem::from_u32(self.elements + index)
    }
}
