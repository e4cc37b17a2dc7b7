//! A module: declarations, and one body for each function that is not imported.

use crate::entity::{Func, Global, Memory, Sig, Table};
use crate::function::Function;
use crate::reference;
use crate::types::{Signature, Type};
use cranelift_entity::PrimaryMap;

/// Bytes in a page, the unit of memory sizes.
pub const PAGE_BYTES: u64 = 65536;

/// Where something declared by a module comes from, when the module does not define it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImportName {
    /// The name of the providing module.
    pub module: String,
    /// The name within it.
    pub field: String,
}

/// A function of a module.
#[derive(Clone, Debug)]
pub struct FuncDecl {
    /// Unique among the functions of the module.
    pub name: String,
    /// Its signature.
    pub sig: Sig,
    /// The host function it stands for; a function that is not imported has a body.
    pub import: Option<ImportName>,
}

/// A global variable.
#[derive(Clone, Debug)]
pub struct GlobalDecl {
    /// Unique among the globals of the module.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Whether it may be set.
    pub mutable: bool,
    /// Its bits at the start; of an imported one those it has until the embedder sets it.
    pub init: u64,
    /// What of the embedder's it stands for.
    pub import: Option<ImportName>,
}

/// A linear memory, addressed by `i32`.
#[derive(Clone, Debug)]
pub struct MemoryDecl {
    /// Unique among the memories of the module.
    pub name: String,
    /// Pages at the start. A memory never shrinks.
    pub min_pages: u32,
    /// Pages it may grow to; without one, 65536.
    pub max_pages: Option<u32>,
    /// What of the embedder's it stands for.
    pub import: Option<ImportName>,
}

/// A table of references.
#[derive(Clone, Debug)]
pub struct TableDecl {
    /// Unique among the tables of the module.
    pub name: String,
    /// The type of its entries, one of references.
    pub ty: Type,
    /// The number of entries at the start, all null. A table never shrinks.
    pub size: u32,
    /// Entries it may grow to; without one, what the verifier allows.
    pub max_size: Option<u32>,
    /// What of the embedder's it stands for.
    pub import: Option<ImportName>,
}

impl TableDecl {
    /// A table of function references that the module defines, without a maximum.
    pub fn of_funcs(name: impl Into<String>, size: u32) -> TableDecl {
        TableDecl { name: name.into(), ty: Type::FuncRef, size, max_size: None, import: None }
    }
}

/// Bytes for memories: written to one at the start, or kept for `memory_init`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataSegment {
    /// The memory written at the start and the address of the first byte. The segment is then
    /// dropped.
    pub active: Option<(Memory, u64)>,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl DataSegment {
    /// A segment that is written at the start.
    pub fn active(memory: Memory, offset: u64, bytes: Vec<u8>) -> DataSegment {
        DataSegment { active: Some((memory, offset)), bytes }
    }
}

/// References for tables: written to one at the start, or kept for `table_init`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ElementSegment {
    /// The type of the references.
    pub ty: Type,
    /// The table written at the start and the index of the first entry. The segment is then
    /// dropped.
    pub active: Option<(Table, u64)>,
    /// The bits of the references, as [`mod@reference`] says.
    pub entries: Vec<u64>,
}

impl ElementSegment {
    /// A segment of functions that is written at the start; `None` is a null entry.
    pub fn of_funcs(table: Table, offset: u64, funcs: &[Option<Func>]) -> ElementSegment {
        let entries = funcs.iter().map(|func| reference::of_func(*func)).collect();
        ElementSegment { ty: Type::FuncRef, active: Some((table, offset)), entries }
    }
}

/// Something of a module that has a name for the embedder or for other modules.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum External {
    /// A function.
    Func(Func),
    /// A global.
    Global(Global),
    /// A memory.
    Memory(Memory),
    /// A table.
    Table(Table),
}

/// A name for the embedder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Export {
    /// The name.
    pub name: String,
    /// What it names.
    pub item: External,
}

impl Export {
    /// The function it names, if it is one.
    pub fn func(&self) -> Option<Func> {
        match self.item {
            External::Func(func) => Some(func),
            _ => None,
        }
    }
}

/// A module. Declarations are plain data, changed freely by whoever builds one; function bodies are
/// [`Function`]s and so are changed by the editor alone.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// Signatures, each at most once.
    pub sigs: PrimaryMap<Sig, Signature>,
    /// Functions, imported ones first when the module came from WebAssembly.
    pub funcs: PrimaryMap<Func, FuncDecl>,
    /// Global variables.
    pub globals: PrimaryMap<Global, GlobalDecl>,
    /// Linear memories.
    pub memories: PrimaryMap<Memory, MemoryDecl>,
    /// Tables.
    pub tables: PrimaryMap<Table, TableDecl>,
    /// Data segments, by the index of their [`crate::Data`]; those written at the start are written
    /// in order.
    pub data: Vec<DataSegment>,
    /// Element segments, by the index of their [`crate::Elem`]; those written at the start are
    /// written in order.
    pub elements: Vec<ElementSegment>,
    /// What has names for the embedder.
    pub exports: Vec<Export>,
    /// The function run when the module is instantiated.
    pub start: Option<Func>,
    /// The bodies; an entry may be missing at the end or `None` for imported functions.
    pub bodies: cranelift_entity::SecondaryMap<Func, Option<Function>>,
}

impl Module {
    /// A module with nothing in it.
    pub fn new() -> Module {
        Module::default()
    }

    /// The id of a signature, added when it is not there yet. Cost: linear in the signatures.
    pub fn sig(&mut self, signature: &Signature) -> Sig {
        match self.sigs.iter().find(|(_, s)| *s == signature) {
            Some((id, _)) => id,
            None => self.sigs.push(signature.clone()),
        }
    }

    /// The signature of a function.
    pub fn signature(&self, func: Func) -> &Signature {
        &self.sigs[self.funcs[func].sig]
    }

    /// The body of a function that is not imported.
    pub fn body(&self, func: Func) -> Option<&Function> {
        self.bodies[func].as_ref()
    }

    /// Every function that has a body, in order.
    pub fn defined(&self) -> impl Iterator<Item = (Func, &Function)> {
        self.funcs.keys().filter_map(|f| self.bodies[f].as_ref().map(|b| (f, b)))
    }

    /// The function with this name. Cost: linear in the functions.
    pub fn func_named(&self, name: &str) -> Option<Func> {
        self.funcs.iter().find(|(_, d)| d.name == name).map(|(f, _)| f)
    }

    /// The function exported under this name, or else the function with this name.
    pub fn lookup(&self, name: &str) -> Option<Func> {
        let exported = self.exports.iter().filter(|e| e.name == name).find_map(Export::func);
        exported.or_else(|| self.func_named(name))
    }
}
