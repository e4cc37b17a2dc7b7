//! The sections of a module, in order.

use crate::budget::{Budget, ImportLimits, cost};
use crate::error::{ImportError, Location};
use crate::function::{self, Context, check_supported, number_type};
use crate::names::{NameSection, UniqueNames};
use crate::operators;
use ir::module::{DataSegment, ElementSegment, Export, FuncDecl, GlobalDecl, ImportName, MemoryDecl, TableDecl};
use ir::{Func, Global, Memory, Module, Sig, Signature, Table};
use std::collections::HashMap;
use wasmparser::{
    ConstExpr, DataKind, DataSectionReader, ElementItems, ElementKind, ElementSectionReader, ExportSectionReader,
    ExternalKind, FuncToValidate, FuncType, FuncValidatorAllocations, FunctionBody, FunctionSectionReader,
    GlobalSectionReader, ImportSectionReader, Operator, Parser, Payload, SectionLimited, TypeRef, TypeSectionReader,
    ValidPayload, Validator, ValidatorResources, WasmFeatures,
};

type Result<T> = std::result::Result<T, ImportError>;

const FEATURES: WasmFeatures = WasmFeatures::WASM1
    .union(WasmFeatures::SIGN_EXTENSION)
    .union(WasmFeatures::SATURATING_FLOAT_TO_INT)
    .union(WasmFeatures::MULTI_VALUE)
    .union(WasmFeatures::MULTI_MEMORY);

pub(crate) fn import(bytes: &[u8], limits: &ImportLimits) -> Result<Module> {
    let mut importer = Importer {
        module: Module::new(),
        types: Vec::new(),
        sig_of: HashMap::new(),
        name_section: name_section(bytes),
        budget: Budget::new(limits, bytes.len()),
        allocations: FuncValidatorAllocations::default(),
    };
    let mut validator = Validator::new_with_features(FEATURES);
    let mut parser = Parser::new(0);
    parser.set_features(FEATURES);
    for payload in parser.parse_all(bytes) {
        let payload = payload?;
        importer.check_before(&payload)?;
        match validator.payload(&payload)? {
            ValidPayload::Func(func, body) => importer.body(func, &body)?,
            ValidPayload::Ok | ValidPayload::End(_) => importer.section(payload)?,
            ValidPayload::Parser(_) => unreachable!("importer: the validator refuses nested modules"),
        }
    }
    Ok(importer.module)
}

/// The name section, which stands behind the functions that need it. Errors are left for the main
/// pass to find.
fn name_section(bytes: &[u8]) -> Option<NameSection<'_>> {
    let payloads = Parser::new(0).parse_all(bytes).map_while(std::result::Result::ok);
    payloads
        .filter_map(|payload| match payload {
            Payload::CustomSection(section) => NameSection::of(&section),
            _ => None,
        })
        .next()
}

struct Importer<'a> {
    module: Module,
    /// By type index.
    types: Vec<Sig>,
    sig_of: HashMap<Signature, Sig>,
    name_section: Option<NameSection<'a>>,
    budget: Budget,
    allocations: FuncValidatorAllocations,
}

impl<'a> Importer<'a> {
    /// What is checked before the validator sees a section: that no count claims more items than the
    /// section has bytes (the validator makes room for all of them), and that no constant expression
    /// uses what can be refused by a better name.
    fn check_before(&mut self, payload: &Payload<'a>) -> Result<()> {
        match payload {
            Payload::TypeSection(section) => self.check_count(section, cost::TYPE),
            Payload::ImportSection(section) => self.check_count(section, cost::IMPORT),
            Payload::FunctionSection(section) => self.check_count(section, cost::FUNCTION),
            Payload::TableSection(section) => self.check_single(section, "table"),
            Payload::MemorySection(section) => self.check_count(section, cost::ITEM),
            Payload::TagSection(section) => self.check_count(section, cost::ITEM),
            Payload::ExportSection(section) => self.check_count(section, cost::ITEM),
            Payload::GlobalSection(section) => {
                self.check_count(section, cost::ITEM)?;
                section.clone().into_iter().try_for_each(|global| check_constant(&global?.init_expr))
            }
            Payload::ElementSection(section) => {
                self.check_count(section, cost::ITEM)?;
                section.clone().into_iter().try_for_each(|segment| match segment?.kind {
                    ElementKind::Active { offset_expr, .. } => check_constant(&offset_expr),
                    ElementKind::Passive | ElementKind::Declared => Ok(()),
                })
            }
            Payload::DataSection(section) => {
                self.check_count(section, cost::ITEM)?;
                section.clone().into_iter().try_for_each(|segment| match segment?.kind {
                    DataKind::Active { offset_expr, .. } => check_constant(&offset_expr),
                    DataKind::Passive => Ok(()),
                })
            }
            _ => Ok(()),
        }
    }

    fn check_count<T>(&mut self, section: &SectionLimited<'_, T>, cost: u64) -> Result<()> {
        let (count, start) = (u64::from(section.count()), section.original_position());
        if count > section.range().end.saturating_sub(start) {
            let message = format!("the section claims {count} items and is shorter than that");
            return Err(ImportError::invalid(message, Location::Offset(start)));
        }
        self.budget.charge(count * cost, start)
    }

    fn check_single<T>(&mut self, section: &SectionLimited<'_, T>, what: &str) -> Result<()> {
        self.check_count(section, cost::ITEM)?;
        match section.count() {
            0 | 1 => Ok(()),
            _ => Err(ImportError::unsupported(format!("more than one {what}"), section.original_position())),
        }
    }

    /// Takes a section that the validator has accepted.
    fn section(&mut self, payload: Payload<'a>) -> Result<()> {
        match payload {
            Payload::TypeSection(section) => self.types(section),
            Payload::ImportSection(section) => self.imports(section),
            Payload::FunctionSection(section) => self.functions(section),
            Payload::TableSection(section) => {
                for table in section {
                    let size = table?.ty.initial;
                    let size = u32::try_from(size).expect("the validator refuses larger tables");
                    let name = format!("table{}", self.module.tables.len());
                    self.module.tables.push(TableDecl { name, size });
                }
                Ok(())
            }
            Payload::MemorySection(section) => {
                for memory in section {
                    let memory = memory?;
                    let pages = |n: u64| u32::try_from(n).expect("the validator refuses more than 65536 pages");
                    let name = format!("memory{}", self.module.memories.len());
                    let (min_pages, max_pages) = (pages(memory.initial), memory.maximum.map(pages));
                    self.module.memories.push(MemoryDecl { name, min_pages, max_pages });
                }
                Ok(())
            }
            Payload::GlobalSection(section) => self.globals(section),
            Payload::ExportSection(section) => self.exports(section),
            Payload::StartSection { func, .. } => {
                self.module.start = Some(Func::from_u32(func));
                Ok(())
            }
            Payload::ElementSection(section) => self.elements(section),
            Payload::DataSection(section) => self.data(section),
            _ => Ok(()), // nothing to keep: version, counts, custom sections, the end
        }
    }

    fn types(&mut self, section: TypeSectionReader<'a>) -> Result<()> {
        for item in section.into_iter_with_offsets() {
            let (offset, group) = item?;
            for ty in group.into_types() {
                let signature = self.signature(ty.unwrap_func(), offset)?;
                let sigs = &mut self.module.sigs;
                let sig = *self.sig_of.entry(signature).or_insert_with_key(|s| sigs.push(s.clone()));
                self.types.push(sig);
            }
        }
        Ok(())
    }

    fn signature(&mut self, ty: &FuncType, offset: u64) -> Result<Signature> {
        let mut signature = Signature::default();
        // The types of long lists are in a table that grows by doubling, twice: here and as a key.
        self.budget.charge(8 * ty.params().len() as u64, offset)?;
        for param in ty.params() {
            signature.params.push(number_type(*param, offset)?);
        }
        for result in ty.results() {
            signature.results.push(number_type(*result, offset)?);
        }
        Ok(signature)
    }

    fn imports(&mut self, section: ImportSectionReader<'a>) -> Result<()> {
        let mut names = UniqueNames::default();
        for item in section.into_imports_with_offsets() {
            let (offset, import) = item?;
            let what = match import.ty {
                TypeRef::Func(ty) => {
                    let name = format!("{}.{}", import.module, import.name);
                    self.budget.charge(cost::NAME_BYTE * name.len() as u64, offset)?;
                    let (module, field) = (import.module.to_owned(), import.name.to_owned());
                    let (name, sig) = (names.unique(&name), self.types[ty as usize]);
                    self.module.funcs.push(FuncDecl { name, sig, import: Some(ImportName { module, field }) });
                    continue;
                }
                TypeRef::Table(_) => "table",
                TypeRef::Memory(_) => "memory",
                TypeRef::Global(_) => "global",
                TypeRef::Tag(_) => "tag",
                TypeRef::FuncExact(_) => "exact function",
            };
            let what = format!("imported {what} {}.{}", import.module, import.name);
            return Err(ImportError::unsupported(what, offset));
        }
        Ok(())
    }

    /// Declares the functions that the module defines, with their names.
    fn functions(&mut self, section: FunctionSectionReader<'a>) -> Result<()> {
        let imported = self.module.funcs.len();
        let names = match &self.name_section {
            Some(names) => {
                self.budget.charge(cost::NAME_BYTE * names.len() as u64, section.original_position())?;
                names.funcs(imported + section.count() as usize)
            }
            None => Vec::new(),
        };
        let mut unique = UniqueNames::default();
        for decl in self.module.funcs.values() {
            unique.unique(&decl.name);
        }
        for (index, ty) in (imported..).zip(section) {
            let name = match names.get(index).copied().flatten() {
                Some(name) => unique.unique(name),
                None => unique.unique(&format!("func{index}")),
            };
            self.module.funcs.push(FuncDecl { name, sig: self.types[ty? as usize], import: None });
        }
        Ok(())
    }

    fn globals(&mut self, section: GlobalSectionReader<'a>) -> Result<()> {
        let names = match &self.name_section {
            Some(names) => {
                self.budget.charge(cost::NAME_BYTE * names.len() as u64, section.original_position())?;
                names.globals(section.count() as usize)
            }
            None => Vec::new(),
        };
        let mut unique = UniqueNames::default();
        for (index, item) in section.into_iter_with_offsets().enumerate() {
            let (offset, global) = item?;
            let name = match names.get(index).copied().flatten() {
                Some(name) => unique.unique(name),
                None => unique.unique(&format!("global{index}")),
            };
            let (ty, mutable) = (number_type(global.ty.content_type, offset)?, global.ty.mutable);
            let init = self.constant(&global.init_expr)?;
            self.module.globals.push(GlobalDecl { name, ty, mutable, init });
        }
        Ok(())
    }

    fn exports(&mut self, section: ExportSectionReader<'a>) -> Result<()> {
        for item in section.into_iter_with_offsets() {
            let (offset, export) = item?;
            // Memories and globals are exported for hosts that look into them; ours are handed the memories.
            if export.kind == ExternalKind::Func {
                self.budget.charge(cost::NAME_BYTE * export.name.len() as u64, offset)?;
                let (name, func) = (export.name.to_owned(), Func::from_u32(export.index));
                self.module.exports.push(Export { name, func });
            }
        }
        Ok(())
    }

    fn elements(&mut self, section: ElementSectionReader<'a>) -> Result<()> {
        for segment in section.into_iter_with_offsets() {
            let (offset, segment) = segment?;
            let (ElementKind::Active { table_index, offset_expr }, ElementItems::Functions(items)) =
                (segment.kind, segment.items)
            else {
                return Err(ImportError::unsupported("element segment of this kind", offset));
            };
            let table = Table::from_u32(table_index.unwrap_or(0));
            let offset = self.constant(&offset_expr)?;
            let mut funcs = Vec::new();
            for func in items.into_iter_with_offsets() {
                let (at, func) = func?;
                self.budget.charge(cost::ELEMENT, at)?;
                funcs.push(Some(Func::from_u32(func)));
            }
            funcs.shrink_to_fit();
            self.module.elements.push(ElementSegment { table, offset, funcs });
        }
        Ok(())
    }

    fn data(&mut self, section: DataSectionReader<'a>) -> Result<()> {
        for segment in section.into_iter_with_offsets() {
            let (at, segment) = segment?;
            let DataKind::Active { memory_index, offset_expr } = segment.kind else {
                return Err(ImportError::unsupported("passive data segment", at));
            };
            self.budget.charge(segment.data.len() as u64, at)?;
            let (memory, offset) = (Memory::from_u32(memory_index), self.constant(&offset_expr)?);
            self.module.data.push(DataSegment { memory, offset, bytes: segment.data.to_vec() });
        }
        Ok(())
    }

    /// The bits of a constant expression that the validator has accepted.
    fn constant(&self, expr: &ConstExpr<'a>) -> Result<u64> {
        let operator = expr.get_operators_reader().read()?;
        Ok(match operator {
            Operator::GlobalGet { global_index } => self.module.globals[Global::from_u32(global_index)].init,
            _ => operators::constant(&operator).expect("the validator allows constants and globals only").1,
        })
    }

    fn body(&mut self, func: FuncToValidate<ValidatorResources>, body: &FunctionBody<'a>) -> Result<()> {
        let id = Func::from_u32(func.index);
        let mut validator = func.into_validator(std::mem::take(&mut self.allocations));
        let context = Context { module: &self.module, types: &self.types };
        let function = function::translate(context, id, body, &mut validator, &mut self.budget)?;
        self.module.bodies[id] = Some(function);
        self.allocations = validator.into_allocations();
        Ok(())
    }
}

fn check_constant(expr: &ConstExpr<'_>) -> Result<()> {
    let mut operators = expr.get_operators_reader();
    while !operators.eof() {
        let (operator, offset) = operators.read_with_offset()?;
        check_supported(&operator, offset)?;
        if let Operator::I32Add
        | Operator::I32Sub
        | Operator::I32Mul
        | Operator::I64Add
        | Operator::I64Sub
        | Operator::I64Mul = operator
        {
            let what = format!("extended_const instruction {} in a constant", operators::name(&operator));
            return Err(ImportError::unsupported(what, offset));
        }
    }
    Ok(())
}
