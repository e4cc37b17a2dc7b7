//! Imports segments and constant expressions.

use crate::budget::cost;
use crate::constant;
use crate::error::ImportError;
use crate::function::value_type;
use crate::module::Importer;
use ir::init::InitExpr;
use ir::module::{DataSegment, ElementSegment};
use ir::{Elem, Imm, Type, reference};
use wasmparser::{
    ConstExpr, DataKind, DataSectionReader, Element, ElementItems, ElementKind,
    ElementSectionReader, RefType,
};

type Result<T> = std::result::Result<T, ImportError>;

impl<'a> Importer<'a, '_> {
    pub(crate) fn elements(&mut self, section: ElementSectionReader<'a>) -> Result<()> {
        for segment in section.into_iter_with_offsets() {
            let (offset, segment) = segment?;
            let table = match segment.kind {
                ElementKind::Active { table_index, .. } => Some(table_index.unwrap_or(0)),
                _ => None,
            };
            let read = self.segment(segment, offset).or_else(|error| -> Result<_> {
                let feature = self.placeholder_for(error)?;
                let elem = Elem::from_u32(self.module.elements.len() as u32);
                let table = table.map(|table| self.index.table(table));
                let unsupported = self.unsupported.as_mut().expect("placeholders are possible");
                unsupported.elements.insert(elem, feature);
                // Its entries are unknown (`a_table_lacks_no_segment_that_is_left_out`).
                unsupported.tables.extend(table.map(|table| (table, feature)));
                Ok(ElementSegment::passive(Type::ExternRef, Vec::new()))
            })?;
            self.module.elements.push(read);
        }
        Ok(())
    }

    fn segment(&mut self, segment: Element<'a>, offset: u64) -> Result<ElementSegment> {
        let mut read = self.entries(segment.items, offset)?;
        read.active = match segment.kind {
            ElementKind::Active { table_index, offset_expr } => {
                let table = self.index.table(table_index.unwrap_or(0));
                self.check_declared(Imm::Table(table), offset)?;
                Some((table, self.constant(&offset_expr)?))
            }
            ElementKind::Passive => None,
            // A declared segment only lists functions that code may reference. At run time it is
            // empty.
            ElementKind::Declared => {
                read.entries.clear();
                read.from_globals.clear();
                None
            }
        };
        read.entries.shrink_to_fit();
        Ok(read)
    }

    /// Fails if an immediate names a declaration with a placeholder.
    fn check_declared(&self, imm: Imm, offset: u64) -> Result<()> {
        let feature = self.unsupported.as_ref().and_then(|all| all.of(imm, &self.module));
        feature.map_or(Ok(()), |feature| Err(ImportError::of_feature(feature, offset)))
    }

    /// A passive segment of items.
    fn entries(&mut self, items: ElementItems<'a>, offset: u64) -> Result<ElementSegment> {
        let mut read = ElementSegment::passive(Type::FuncRef, Vec::new());
        match items {
            ElementItems::Functions(items) => {
                for func in items.into_iter_with_offsets() {
                    let (at, func) = func?;
                    self.budget.charge(cost::ELEMENT, at)?;
                    read.entries.push(reference::of_func(Some(self.index.func(func))));
                }
            }
            ElementItems::Expressions(ty, items) => {
                for item in items.into_iter_with_offsets() {
                    let (at, expr) = item?;
                    self.budget.charge(cost::ELEMENT, at)?;
                    let value = self.constant(&expr)?;
                    let index = read.entries.len() as u32;
                    self.budget.charge(cost::ELEMENT * value.globals().count() as u64, at)?;
                    read.from_globals.extend(value.globals().map(|global| (index, global)));
                    read.entries.push(value.known().unwrap_or(reference::NULL));
                }
                // References that are never null are references.
                let ty = if ty == RefType::FUNC { RefType::FUNCREF } else { ty };
                read.ty = value_type(wasmparser::ValType::Ref(ty), offset)?;
            }
        }
        Ok(read)
    }

    pub(crate) fn data(&mut self, section: DataSectionReader<'a>) -> Result<()> {
        for segment in section.into_iter_with_offsets() {
            let (at, segment) = segment?;
            let active = match segment.kind {
                DataKind::Active { memory_index, offset_expr } => {
                    let memory = self.index.memory(memory_index);
                    match self.check_declared(Imm::Memory(memory), at) {
                        Ok(()) => Some((memory, self.constant(&offset_expr)?)),
                        // Dropped once it is written, as far as the functions that are kept see.
                        Err(error) => {
                            self.placeholder_for(error)?;
                            self.module.data.push(DataSegment { active: None, bytes: Vec::new() });
                            continue;
                        }
                    }
                }
                DataKind::Passive => None,
            };
            self.budget.charge(segment.data.len() as u64, at)?;
            self.module.data.push(DataSegment { active, bytes: segment.data.to_vec() });
        }
        Ok(())
    }

    /// A constant expression that the validator has accepted.
    pub(crate) fn constant(&mut self, expr: &ConstExpr<'a>) -> Result<InitExpr> {
        let placeholders = self.unsupported.as_ref();
        let (value, start) = constant::value(expr, &self.module, &self.index, placeholders)?;
        if value.known().is_none() {
            self.budget.charge(cost::INIT_OP * value.ops().count() as u64, start)?;
        }
        Ok(value)
    }
}
