//! A module: declarations, and one body for each function that is not imported.

use crate::entity::{Func, Global, Memory, Sig, Table};
use crate::function::Function;
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
    /// Its bits at the start.
    pub init: u64,
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
}

/// A table of function references.
#[derive(Clone, Debug)]
pub struct TableDecl {
    /// Unique among the tables of the module.
    pub name: String,
    /// The number of entries.
    pub size: u32,
}

/// Bytes written to a memory at the start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataSegment {
    /// The memory written.
    pub memory: Memory,
    /// The address of the first byte.
    pub offset: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// Function references written to a table at the start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ElementSegment {
    /// The table written.
    pub table: Table,
    /// The index of the first entry.
    pub offset: u64,
    /// The functions; `None` is a null entry.
    pub funcs: Vec<Option<Func>>,
}

/// A function the embedder may call by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Export {
    /// The name the embedder uses.
    pub name: String,
    /// The function.
    pub func: Func,
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
    /// Initial memory contents, written in order.
    pub data: Vec<DataSegment>,
    /// Initial table contents, written in order.
    pub elements: Vec<ElementSegment>,
    /// What the embedder may call.
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
        self.exports.iter().find(|e| e.name == name).map(|e| e.func).or_else(|| self.func_named(name))
    }
}
