//! A module: declarations, and one body for each function that is not imported.

use crate::bodies::Bodies;
use crate::chunked::ChunkedMap;
use crate::effect::DeclaredEffect;
use crate::entity::{Func, Global, Memory, Sig, Table};
use crate::function::Function;
use crate::init::InitExpr;
use crate::inst::{Imm, InstData};
use crate::opcode::Opcode;
use crate::reference;
use crate::rules::declared::ModuleRules;
use crate::types::{Signature, Type};
use cranelift_entity::PrimaryMap;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// Bytes in a page, the unit of memory sizes.
pub const PAGE_BYTES: u64 = 65536;

/// The origin of an imported declaration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImportName {
    /// The name of the providing module.
    pub module: String,
    /// The name within that module.
    pub field: String,
}

/// A function of a module.
#[derive(Clone, Debug)]
pub struct FuncDecl {
    /// The name, unique among the functions of the module.
    pub name: String,
    /// The signature.
    pub sig: Sig,
    /// The host function that it refers to, if imported. A function that is not imported has a
    /// body, or awaits one ([`Module::define_later`]).
    pub import: Option<ImportName>,
    /// The effect that the embedder declares for an imported function;
    /// [`DeclaredEffect::Any`] for every other function.
    pub effect: DeclaredEffect,
}

/// A global variable.
#[derive(Clone, Debug)]
pub struct GlobalDecl {
    /// The name, unique among the globals of the module.
    pub name: String,
    /// The type.
    pub ty: Type,
    /// Whether the program may set the global.
    pub mutable: bool,
    /// The initial value. An imported global has it until the embedder sets the global, and other
    /// initial values may depend on it.
    pub init: InitExpr,
    /// The global of the embedder that it refers to, if imported.
    pub import: Option<ImportName>,
}

/// How a memory is addressed, and who has its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum MemoryKind {
    /// A linear memory, addressed by `i32` from 0 to its size.
    #[default]
    Linear,
    /// A host memory, addressed by `i64`, whose bytes the embedder has. It has no pages.
    Host,
    /// A host memory whose bytes the machine has. They are the bytes of its initial pages, from
    /// this address on. They are zero at first. An access outside of them traps.
    HostFrom(u64),
}

impl MemoryKind {
    /// Whether the memory is a host memory.
    pub fn is_host(self) -> bool {
        self != MemoryKind::Linear
    }

    /// The immediate of a load or store of a memory of this kind.
    pub fn address(self, memory: Memory, offset: u64) -> Imm {
        match self {
            MemoryKind::Linear => Imm::Address(memory, offset),
            MemoryKind::Host | MemoryKind::HostFrom(_) => Imm::HostAddress(memory, offset),
        }
    }
}

/// A memory.
#[derive(Clone, Debug)]
pub struct MemoryDecl {
    /// The name, unique among the memories of the module.
    pub name: String,
    /// The initial size in pages. A memory never shrinks.
    pub min_pages: u32,
    /// The maximum size in pages; 65536 if absent.
    pub max_pages: Option<u32>,
    /// The memory of the embedder that it refers to, if imported.
    pub import: Option<ImportName>,
    /// How it is addressed.
    pub kind: MemoryKind,
}

/// A table of references.
#[derive(Clone, Debug)]
pub struct TableDecl {
    /// The name, unique among the tables of the module.
    pub name: String,
    /// The type of the entries, a reference type.
    pub ty: Type,
    /// The initial number of entries, all null. A table never shrinks.
    pub size: u32,
    /// The maximum number of entries. If absent, the limit of the verifier applies.
    pub max_size: Option<u32>,
    /// The table of the embedder that it refers to, if imported.
    pub import: Option<ImportName>,
    /// Whether the initial entries never change: no code writes the table, and it is neither
    /// imported nor exported. It may grow.
    pub fixed: bool,
}

impl TableDecl {
    /// A table of function references that the module defines, without a maximum.
    pub fn of_funcs(name: impl Into<String>, size: u32) -> TableDecl {
        let (name, ty) = (name.into(), Type::FuncRef);
        TableDecl { name, ty, size, max_size: None, import: None, fixed: false }
    }
}

/// The table whose entries an instruction may write. Growth writes no entry that exists.
fn written_table(data: &InstData) -> Option<Table> {
    match (data.opcode, data.imm) {
        (Opcode::TableSet | Opcode::TableFill, Imm::Table(table))
        | (Opcode::TableCopy, Imm::Tables(table, _))
        | (Opcode::TableInit, Imm::TableElem(table, _)) => Some(table),
        _ => None,
    }
}

/// The tables whose entries a function may write, with repetitions.
pub(crate) fn written_tables(body: &Function) -> impl Iterator<Item = Table> {
    body.all_insts().filter_map(|inst| written_table(body.inst(inst)))
}

/// Bytes for memories. An active segment is written at instantiation; a passive segment is kept for
/// `memory_init`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataSegment {
    /// For an active segment: the memory, and the address of the first byte. The segment is dropped
    /// after it is written.
    pub active: Option<(Memory, InitExpr)>,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl DataSegment {
    /// An active segment.
    pub fn active(memory: Memory, offset: u64, bytes: Vec<u8>) -> DataSegment {
        DataSegment { active: Some((memory, offset.into())), bytes }
    }
}

/// References for tables. An active segment is written at instantiation; a passive segment is kept
/// for `table_init`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ElementSegment {
    /// The type of the references.
    pub ty: Type,
    /// For an active segment: the table, and the index of the first entry. The segment is dropped
    /// after it is written.
    pub active: Option<(Table, InitExpr)>,
    /// The bits of the references, in the form of [`mod@reference`].
    pub entries: Vec<u64>,
    /// Entries that are the values of globals, in ascending order of their indices. Their bits in
    /// `entries` are null.
    pub from_globals: Vec<(u32, Global)>,
}

impl ElementSegment {
    /// An active segment of functions; `None` is a null entry.
    pub fn of_funcs(table: Table, offset: u64, funcs: &[Option<Func>]) -> ElementSegment {
        let entries = funcs.iter().map(|func| reference::of_func(*func)).collect();
        let active = Some((table, offset.into()));
        ElementSegment { ty: Type::FuncRef, active, entries, from_globals: Vec::new() }
    }

    /// A passive segment of references of a type.
    pub fn passive(ty: Type, entries: Vec<u64>) -> ElementSegment {
        ElementSegment { ty, active: None, entries, from_globals: Vec::new() }
    }

    /// The bits of a range of the references, where `global` tells the values of globals. Copies
    /// the range if some of it are values of globals.
    ///
    /// # Panics
    /// If the range exceeds the entries.
    pub fn resolved(&self, range: Range<usize>, global: impl Fn(Global) -> u64) -> Cow<'_, [u64]> {
        let mut entries = Cow::Borrowed(&self.entries[range.clone()]);
        let first = self.from_globals.partition_point(|(at, _)| (*at as usize) < range.start);
        for (at, read) in &self.from_globals[first..] {
            if *at as usize >= range.end {
                break;
            }
            entries.to_mut()[*at as usize - range.start] = global(*read);
        }
        entries
    }

    /// Whether the module alone tells which entries of a table the segment writes, and what.
    fn is_known(&self) -> bool {
        let place = self.active.as_ref().is_none_or(|(_, first)| first.known().is_some());
        place && self.from_globals.is_empty()
    }
}

/// An entity of a module that has a name for the embedder or for other modules.
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

/// A named entity for the embedder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Export {
    /// The name.
    pub name: String,
    /// The exported entity.
    pub item: External,
}

impl Export {
    /// The exported function; `None` if the export is another kind of entity.
    pub fn func(&self) -> Option<Func> {
        match self.item {
            External::Func(func) => Some(func),
            _ => None,
        }
    }
}

/// A module. Its declarations are plain data that clients may change freely. The function bodies
/// are [`Function`]s, so only the editor changes them.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// The signatures, without duplicates.
    pub sigs: PrimaryMap<Sig, Signature>,
    /// The functions. In a module from WebAssembly, imported functions come first.
    pub funcs: ChunkedMap<Func, FuncDecl>,
    /// Global variables.
    pub globals: PrimaryMap<Global, GlobalDecl>,
    /// Memories.
    pub memories: PrimaryMap<Memory, MemoryDecl>,
    /// Tables.
    pub tables: PrimaryMap<Table, TableDecl>,
    /// The data segments, indexed by [`crate::Data`]. Active segments are written in this order.
    pub data: Vec<DataSegment>,
    /// The element segments, indexed by [`crate::Elem`]. Active segments are written in this order.
    pub elements: Vec<ElementSegment>,
    /// The named entities for the embedder.
    pub exports: Vec<Export>,
    /// The function that runs at instantiation.
    pub start: Option<Func>,
    /// The bodies.
    pub(crate) bodies: Bodies,
}

impl Module {
    /// The function at an index of a fixed table, which every call through this index calls. `None`
    /// if the table is not fixed or the entry is null. Cost: linear in the element segments.
    pub fn fixed_target(&self, table: Table, index: u64) -> Option<Func> {
        self.tables.get(table).filter(|decl| decl.fixed && index < u64::from(decl.size))?;
        // Later segments overwrite earlier ones.
        let mut segments = self.elements.iter().rev();
        let bits = segments.find_map(|segment| {
            let (_, first) = segment.active.as_ref().filter(|(of, _)| *of == table)?;
            // `exposed_tables` has the tables of all others.
            let first = first.known().filter(|_| segment.is_known())?;
            segment.entries.get(usize::try_from(index.checked_sub(first)?).ok()?).copied()
        });
        reference::func(bits?)
    }

    /// The bytes that a memory has in every run, from the start on: the declared minimum of a
    /// linear memory, imported or not, since a memory never shrinks. An access at a constant
    /// address below it never traps. 0 for a host memory, which has no declared minimum, and for a
    /// memory that the module does not declare.
    ///
    /// A machine for the module must have as much: the interpreter and native code reject a module
    /// that declares more than a memory has (`interp::InstantiateError::MemoryTooSmall`).
    pub fn least_bytes(&self, memory: Memory) -> u64 {
        let linear = self.memories.get(memory).filter(|decl| !decl.kind.is_host());
        linear.map_or(0, |decl| u64::from(decl.min_pages) * PAGE_BYTES)
    }

    /// The tables that are imported, exported, written by an instruction other than growth, or by a
    /// segment whose place or entries depend on globals. The other tables may be declared fixed.
    /// Cost: linear in the module.
    pub fn exposed_tables(&self) -> BTreeSet<Table> {
        let mut exposed: BTreeSet<Table> = BTreeSet::new();
        let is_imported = |(table, decl): (Table, &TableDecl)| decl.import.as_ref().map(|_| table);
        exposed.extend(self.tables.iter().filter_map(is_imported));
        exposed.extend(self.exports.iter().filter_map(|export| match export.item {
            External::Table(table) => Some(table),
            _ => None,
        }));
        let unknown = self.elements.iter().filter(|segment| !segment.is_known());
        exposed.extend(unknown.filter_map(|segment| Some(segment.active.as_ref()?.0)));
        exposed.extend(self.bodies.existing().flat_map(written_tables));
        exposed
    }

    /// An empty module.
    pub fn new() -> Module {
        Module::default()
    }

    /// Gives declared rules to every function whose body the module has. A body that is defined or
    /// supplied later has rules only if [`Function::with_rules`] gives them to it. Cost: linear in
    /// the module.
    ///
    /// # Errors
    /// If the rules are for another module, or a function is not a base. Nothing has changed then.
    pub fn use_rules(&mut self, rules: &Arc<ModuleRules>) -> Result<(), String> {
        rules.fits(self).map_err(|error| error.to_string())?;
        let mut changed = Vec::new();
        for (func, body) in self.defined() {
            let fails = |body: Box<Function>| format!("@{} is not a base", body.name());
            changed.push((func, body.clone().with_rules(rules).map_err(fails)?));
        }
        changed.into_iter().for_each(|(func, body)| self.define(func, body));
        Ok(())
    }

    /// The id of a signature. Adds the signature if the module does not have it. Cost: linear in
    /// the number of signatures.
    pub fn sig(&mut self, signature: &Signature) -> Sig {
        match self.sigs.iter().find(|(_, s)| *s == signature) {
            Some((id, _)) => id,
            None => self.sigs.push(signature.clone()),
        }
    }

    /// Adds a function that the module does not import, under its own name and with its body.
    /// Cost: linear in the number of signatures.
    pub fn add(&mut self, function: Function) -> Func {
        let (name, sig) = (function.name().to_owned(), self.sig(function.signature()));
        let decl = FuncDecl { name, sig, import: None, effect: DeclaredEffect::default() };
        let func = self.funcs.push(decl);
        self.define(func, function);
        func
    }

    /// The signature of a function.
    #[inline]
    pub fn signature(&self, func: Func) -> &Signature {
        &self.sigs[self.funcs[func].sig]
    }

    /// Every function that has a body, in order.
    pub fn defined(&self) -> impl Iterator<Item = (Func, &Function)> {
        self.funcs.keys().filter_map(|f| self.body(f).map(|b| (f, b)))
    }

    /// The function with this name. Cost: linear in the number of functions.
    pub fn func_named(&self, name: &str) -> Option<Func> {
        self.funcs.iter().find(|(_, d)| d.name == name).map(|(f, _)| f)
    }

    /// The function exported under this name. Without such an export, the function with this name.
    pub fn lookup(&self, name: &str) -> Option<Func> {
        let exported = self.exports.iter().filter(|e| e.name == name).find_map(Export::func);
        exported.or_else(|| self.func_named(name))
    }
}
