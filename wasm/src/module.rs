//! Imports the sections of a module, in order.

use crate::bodies::{Pending, Translated, translate_all};
use crate::budget::{ImportBudget, ImportLimits, cost};
use crate::constant;
use crate::error::{ImportError, Location};
use crate::function::ModuleContext;
use crate::index::Index;
use crate::link::Linker;
use crate::names::{NameSection, UniqueNames};
use crate::offsets::CodeOffsets;
use crate::unsupported::{Placeholders, UnsupportedBody};
use ir::module::{Export, External, FuncDecl, ImportName};
use ir::{Module, Sig, Signature};
use std::collections::HashMap;
use wasmparser::{
    ConstExpr, DataKind, ElementItems, ElementKind, ExportSectionReader, ExternalKind,
    FuncToValidate, FuncValidatorAllocations, FunctionBody, FunctionSectionReader,
    GlobalSectionReader, ImportSectionReader, Parser, Payload, SectionLimited, TableInit, TypeRef,
    ValidPayload, Validator, ValidatorResources, WasmFeatures,
};

type Result<T> = std::result::Result<T, ImportError>;

/// The features that are supported.
const FEATURES: WasmFeatures = WasmFeatures::WASM1
    .union(WasmFeatures::SIGN_EXTENSION)
    .union(WasmFeatures::SATURATING_FLOAT_TO_INT)
    .union(WasmFeatures::MULTI_VALUE)
    .union(WasmFeatures::MULTI_MEMORY)
    .union(WasmFeatures::BULK_MEMORY)
    .union(WasmFeatures::REFERENCE_TYPES)
    .union(WasmFeatures::EXTENDED_CONST);

/// What an import is to give.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct ImportWishes {
    /// The offsets of the instructions.
    pub(crate) offsets: bool,
    /// A module without the functions that use parts of WebAssembly that are not supported, in
    /// place of an error.
    pub(crate) parts: bool,
}

/// A module and, on request, the offsets of its instructions.
pub(crate) struct Imported {
    pub(crate) module: Module,
    pub(crate) offsets: Option<CodeOffsets>,
    /// The functions that are left out, in the order of the module.
    pub(crate) left_out: Vec<UnsupportedBody>,
}

/// Imports a module, alone or linked to the modules of a linker.
pub(crate) fn import(
    bytes: &[u8],
    limits: &ImportLimits,
    linker: Option<Linker<'_>>,
    wanted: ImportWishes,
) -> Result<Imported> {
    let module = linker.as_ref().map_or_else(Module::new, Linker::before);
    let mut importer = Importer {
        types: Vec::new(),
        sig_of: module.sigs.iter().map(|(sig, signature)| (signature.clone(), sig)).collect(),
        index: Index::behind(&module),
        names: NamesInUse::of(&module),
        module,
        linker,
        name_section: name_section(bytes),
        budget: ImportBudget::new(limits, bytes.len()),
        allocations: FuncValidatorAllocations::default(),
        pending: Vec::new(),
        threads: limits.threads,
        code_start: 0,
        offsets: wanted.offsets.then(CodeOffsets::default),
        unsupported: wanted.parts.then(Placeholders::default),
        left_out: Vec::new(),
    };
    let imported = importer.all(bytes);
    // An error of a body comes before one behind it.
    importer.bodies()?;
    imported?;
    let is_linked = importer.linker.is_some();
    let Importer { mut module, offsets, mut left_out, .. } = importer;
    // Threads end in any order (`several_threads_leave_out_the_same`).
    left_out.sort_by_key(|one| one.func);
    // The code of a linked module comes later, and may write the tables of the modules before; so
    // may code that is left out (`functions_that_are_left_out_may_write_tables`).
    if !is_linked && left_out.is_empty() {
        fix_tables(&mut module);
    }
    Ok(Imported { module, offsets, left_out })
}

/// Declares tables fixed that nothing writes. Cost: linear in the module.
fn fix_tables(module: &mut Module) {
    let exposed = module.exposed_tables();
    for (table, decl) in module.tables.iter_mut() {
        decl.fixed = !exposed.contains(&table);
    }
}

/// The name section. It follows the functions that need it in the file, so a separate pass finds it
/// first. The main pass reports errors.
fn name_section(bytes: &[u8]) -> Option<NameSection<'_>> {
    let payloads = Parser::new(0).parse_all(bytes).map_while(std::result::Result::ok);
    payloads
        .filter_map(|payload| match payload {
            Payload::CustomSection(section) => NameSection::of(&section),
            _ => None,
        })
        .next()
}

/// The names in use, by kind.
#[derive(Default)]
pub(crate) struct NamesInUse {
    funcs: UniqueNames,
    pub(crate) globals: UniqueNames,
    pub(crate) memories: UniqueNames,
    pub(crate) tables: UniqueNames,
}

impl NamesInUse {
    fn of(module: &Module) -> NamesInUse {
        let mut names = NamesInUse::default();
        module.funcs.values().for_each(|decl| drop(names.funcs.unique(&decl.name)));
        module.globals.values().for_each(|decl| drop(names.globals.unique(&decl.name)));
        module.memories.values().for_each(|decl| drop(names.memories.unique(&decl.name)));
        module.tables.values().for_each(|decl| drop(names.tables.unique(&decl.name)));
        names
    }
}

pub(crate) struct Importer<'a, 'l> {
    pub(crate) module: Module,
    /// The signature for each type index.
    pub(crate) types: Vec<Sig>,
    pub(crate) sig_of: HashMap<Signature, Sig>,
    pub(crate) index: Index,
    pub(crate) names: NamesInUse,
    linker: Option<Linker<'l>>,
    name_section: Option<NameSection<'a>>,
    pub(crate) budget: ImportBudget,
    allocations: FuncValidatorAllocations,
    /// Bodies that were read, and not translated yet.
    pending: Vec<Pending<'a>>,
    threads: usize,
    /// The offset at which the contents of the code section start.
    code_start: u64,
    /// The offsets of instructions, if they are to be noted.
    offsets: Option<CodeOffsets>,
    /// The declarations with placeholders, if functions may be left out.
    pub(crate) unsupported: Option<Placeholders>,
    left_out: Vec<UnsupportedBody>,
}

impl<'a> Importer<'a, '_> {
    /// Imports the sections of a module, up to the first error. Bodies may be left for later.
    fn all(&mut self, bytes: &'a [u8]) -> Result<()> {
        let features = match self.unsupported {
            None => FEATURES,
            Some(_) => {
                // Counts of imports are those of the section.
                let not = WasmFeatures::COMPONENT_MODEL.union(WasmFeatures::COMPACT_IMPORTS);
                WasmFeatures::all().difference(not)
            }
        };
        let mut validator = Validator::new_with_features(features);
        let mut parser = Parser::new(0);
        parser.set_features(features);
        for payload in parser.parse_all(bytes) {
            let payload = payload?;
            // Sections behind the code take their share of the budget after the bodies
            // (`several_threads_have_the_same_limit`).
            if !matches!(payload, Payload::CodeSectionEntry(_)) {
                self.bodies()?;
            }
            self.check_before(&payload)?;
            match validator.payload(&payload)? {
                ValidPayload::Func(func, body) => self.body(func, body)?,
                ValidPayload::Ok | ValidPayload::End(_) => self.section(payload)?,
                ValidPayload::Parser(_) => {
                    unreachable!("importer: the validator rejects nested modules")
                }
            }
        }
        Ok(())
    }

    /// Checks a section before the validator sees it. No count may exceed the bytes of the section,
    /// because the validator allocates memory for all items at once. Constant expressions may not
    /// use unsupported operators, because the importer names these better.
    fn check_before(&mut self, payload: &Payload<'a>) -> Result<()> {
        match payload {
            Payload::TypeSection(section) => {
                self.check_count(section, cost::TYPE)?;
                // The count is that of groups.
                section.clone().into_iter_with_offsets().try_for_each(|item| {
                    let (offset, group) = item?;
                    self.budget
                        .charge(cost::TYPE * (group.types().len() as u64).saturating_sub(1), offset)
                })
            }
            Payload::ImportSection(section) => self.check_count(section, cost::IMPORT),
            Payload::FunctionSection(section) => self.check_count(section, cost::FUNCTION),
            Payload::TableSection(section) => self.check_count(section, cost::ITEM),
            Payload::MemorySection(section) => self.check_count(section, cost::ITEM),
            Payload::TagSection(section) => self.check_count(section, cost::ITEM),
            Payload::ExportSection(section) => self.check_count(section, cost::ITEM),
            Payload::GlobalSection(section) => {
                self.check_count(section, cost::ITEM)?;
                section
                    .clone()
                    .into_iter()
                    .try_for_each(|global| self.check_constant(&global?.init_expr))
            }
            Payload::ElementSection(section) => {
                self.check_count(section, cost::ITEM)?;
                section.clone().into_iter().try_for_each(|segment| {
                    let segment = segment?;
                    if let ElementKind::Active { offset_expr, .. } = segment.kind {
                        self.check_constant(&offset_expr)?;
                    }
                    match segment.items {
                        ElementItems::Functions(_) => Ok(()),
                        ElementItems::Expressions(_, items) => {
                            items.into_iter().try_for_each(|item| self.check_constant(&item?))
                        }
                    }
                })
            }
            Payload::DataSection(section) => {
                self.check_count(section, cost::ITEM)?;
                section.clone().into_iter().try_for_each(|segment| match segment?.kind {
                    DataKind::Active { offset_expr, .. } => self.check_constant(&offset_expr),
                    DataKind::Passive => Ok(()),
                })
            }
            _ => Ok(()),
        }
    }

    fn check_constant(&self, expr: &ConstExpr<'a>) -> Result<()> {
        match self.unsupported {
            None => constant::check(expr),
            Some(_) => Ok(()),
        }
    }

    fn check_count<T>(&mut self, section: &SectionLimited<'_, T>, cost: u64) -> Result<()> {
        let (count, start) = (u64::from(section.count()), section.original_position());
        if count > section.range().end.saturating_sub(start) {
            let message = format!("the section is too short for the {count} items it claims");
            return Err(ImportError::invalid(message, Location::Offset(start)));
        }
        self.budget.charge(count * cost, start)
    }

    /// Imports a section that the validator has accepted.
    fn section(&mut self, payload: Payload<'a>) -> Result<()> {
        match payload {
            Payload::TypeSection(section) => self.types(section),
            Payload::ImportSection(section) => self.imports(section),
            Payload::FunctionSection(section) => self.functions(section),
            Payload::TableSection(section) => {
                section.into_iter_with_offsets().try_for_each(|item| {
                    let (offset, table) = item?;
                    let name = format!("table{}", self.index.tables.len());
                    self.declare_table(&table.ty, &name, None, offset)?;
                    if let (TableInit::Expr(_), Some(unsupported)) =
                        (table.init, &mut self.unsupported)
                    {
                        let table = self.index.tables.last().expect("declared above");
                        unsupported.tables.insert(*table, "function references");
                    }
                    Ok(())
                })
            }
            Payload::MemorySection(section) => section.into_iter().try_for_each(|memory| {
                let name = format!("memory{}", self.index.memories.len());
                self.declare_memory(&memory?, &name, None);
                Ok(())
            }),
            Payload::GlobalSection(section) => self.globals(section),
            Payload::ExportSection(section) => self.exports(section),
            Payload::StartSection { func, .. } => {
                // A start function with a placeholder is left out, and takes a parameter.
                let func = self.index.func(func);
                let sig = self.module.funcs[func].sig;
                let unsupported = self.unsupported.as_ref();
                let is_known = unsupported.is_none_or(|all| all.sig(sig).is_none());
                self.module.start = Some(func).filter(|_| is_known);
                Ok(())
            }
            Payload::ElementSection(section) => self.elements(section),
            Payload::DataSection(section) => self.data(section),
            Payload::CodeSectionStart { unchecked_range, .. } => {
                self.code_start = unchecked_range.start;
                Ok(())
            }
            _ => Ok(()), // version, counts, custom sections and the end need no import
        }
    }

    fn imports(&mut self, section: ImportSectionReader<'a>) -> Result<()> {
        for item in section.into_imports_with_offsets() {
            let (offset, import) = item?;
            let name = format!("{}.{}", import.module, import.name);
            self.budget.charge(cost::NAME_BYTE * name.len() as u64, offset)?;
            let what = match import.ty {
                // No function that is kept can name a tag.
                TypeRef::Tag(_) if self.unsupported.is_some() => continue,
                TypeRef::Tag(_) => "tag",
                TypeRef::FuncExact(_) if self.unsupported.is_none() => "exact function",
                _ if self.linker.is_some() => {
                    self.link(import.module, import.name, &import.ty, offset)?;
                    continue;
                }
                _ => {
                    let import_name = ImportName {
                        module: import.module.to_owned(),
                        field: import.name.to_owned(),
                    };
                    self.declare_import(&import.ty, &name, import_name, offset)?;
                    continue;
                }
            };
            return Err(ImportError::unsupported(format!("imported {what} {name}"), offset));
        }
        Ok(())
    }

    /// Declares an import that the embedder provides.
    fn declare_import(
        &mut self,
        ty: &TypeRef,
        name: &str,
        import: ImportName,
        offset: u64,
    ) -> Result<()> {
        match ty {
            TypeRef::Func(ty) | TypeRef::FuncExact(ty) => {
                let (name, sig) = (self.names.funcs.unique(name), self.types[*ty as usize]);
                let func = self.module.funcs.push(FuncDecl {
                    name,
                    sig,
                    import: Some(import),
                    effect: Default::default(),
                });
                self.index.funcs.push(func);
            }
            TypeRef::Table(ty) => self.declare_table(ty, name, Some(import), offset)?,
            TypeRef::Memory(ty) => self.declare_memory(ty, name, Some(import)),
            TypeRef::Global(ty) => {
                self.declare_global(ty, name, Ok(0.into()), Some(import), offset)?;
            }
            TypeRef::Tag(_) => unreachable!("importer: rejected before"),
        }
        Ok(())
    }

    /// Resolves an import to a definition of the earlier modules.
    fn link(&mut self, module: &str, field: &str, ty: &TypeRef, offset: u64) -> Result<()> {
        let linker = self.linker.as_ref().expect("the caller has checked that there is a linker");
        match linker.find(&self.module, &self.types, module, field, ty, offset)? {
            External::Func(func) => self.index.funcs.push(func),
            External::Global(global) => self.index.globals.push(global),
            External::Memory(memory) => self.index.memories.push(memory),
            External::Table(table) => self.index.tables.push(table),
        }
        Ok(())
    }

    /// Declares the functions that the module defines, and names them.
    fn functions(&mut self, section: FunctionSectionReader<'a>) -> Result<()> {
        let imported = self.index.funcs.len();
        let names = match &self.name_section {
            Some(names) => {
                self.budget
                    .charge(cost::NAME_BYTE * names.len() as u64, section.original_position())?;
                names.funcs(imported + section.count() as usize)
            }
            None => Vec::new(),
        };
        for (index, ty) in (imported..).zip(section) {
            let name = match names.get(index).copied().flatten() {
                Some(name) => self.names.funcs.unique(name),
                None => self.names.funcs.unique(&format!("func{index}")),
            };
            let func = self.module.funcs.push(FuncDecl {
                name,
                sig: self.types[ty? as usize],
                import: None,
                effect: Default::default(),
            });
            self.index.funcs.push(func);
        }
        Ok(())
    }

    fn globals(&mut self, section: GlobalSectionReader<'a>) -> Result<()> {
        let imported = self.index.globals.len();
        let names = match &self.name_section {
            Some(names) => {
                self.budget
                    .charge(cost::NAME_BYTE * names.len() as u64, section.original_position())?;
                names.globals(imported + section.count() as usize)
            }
            None => Vec::new(),
        };
        for (index, item) in (imported..).zip(section.into_iter_with_offsets()) {
            let (offset, global) = item?;
            let given = names.get(index).copied().flatten().map(str::to_owned);
            let name = given.unwrap_or_else(|| format!("global{index}"));
            let init = self.constant(&global.init_expr);
            self.declare_global(&global.ty, &name, init, None, offset)?;
        }
        Ok(())
    }

    fn exports(&mut self, section: ExportSectionReader<'a>) -> Result<()> {
        for item in section.into_iter_with_offsets() {
            let (offset, export) = item?;
            let item = match export.kind {
                ExternalKind::Func => External::Func(self.index.func(export.index)),
                ExternalKind::Table => External::Table(self.index.table(export.index)),
                ExternalKind::Memory => External::Memory(self.index.memory(export.index)),
                ExternalKind::Global => External::Global(self.index.global(export.index)),
                ExternalKind::Tag if self.unsupported.is_some() => continue,
                ExternalKind::Tag | ExternalKind::FuncExact => {
                    return Err(ImportError::unsupported(
                        "the export of a tag or of an exact function",
                        offset,
                    ));
                }
            };
            self.budget.charge(cost::NAME_BYTE * export.name.len() as u64, offset)?;
            self.module.exports.push(Export { name: export.name.to_owned(), item });
        }
        Ok(())
    }

    /// Takes up a body. With one thread, the body is translated at once instead of waiting in
    /// memory.
    fn body(
        &mut self,
        func: FuncToValidate<ValidatorResources>,
        body: FunctionBody<'a>,
    ) -> Result<()> {
        let one = Pending { id: self.index.func(func.index), func, body };
        if self.threads > 1 {
            self.pending.push(one);
            return Ok(());
        }
        let context = ModuleContext {
            module: &self.module,
            types: &self.types,
            index: &self.index,
            notes_from: self.offsets.is_some().then_some(self.code_start),
            unsupported: self.unsupported.as_ref(),
        };
        let translated = one.translate(context, &mut self.allocations, &mut self.budget)?;
        self.define(translated);
        Ok(())
    }

    /// Translates the bodies that wait.
    fn bodies(&mut self) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        let context = ModuleContext {
            module: &self.module,
            types: &self.types,
            index: &self.index,
            notes_from: self.offsets.is_some().then_some(self.code_start),
            unsupported: self.unsupported.as_ref(),
        };
        for translated in translate_all(context, &pending, self.threads, &mut self.budget)? {
            self.define(translated);
        }
        Ok(())
    }

    fn define(&mut self, translated: Translated) {
        match translated {
            Translated::Body { id, function, offsets } => {
                self.module.define(id, *function);
                if let (Some(all), Some(offsets)) = (&mut self.offsets, offsets) {
                    all.insert(id, offsets);
                }
            }
            Translated::LeftOut(left_out) => {
                self.module.define_later(left_out.func);
                self.left_out.push(left_out);
            }
        }
    }
}
