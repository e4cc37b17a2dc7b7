//! Imports types, and the declarations of tables, memories and globals.

use crate::error::ImportError;
use crate::function::value_type;
use crate::module::Importer;
use crate::unsupported::{Placeholders, func_type};
use ir::init::InitExpr;
use ir::module::{GlobalDecl, ImportName, MemoryDecl, MemoryKind, TableDecl};
use ir::verifier::MAX_TABLE_ENTRIES;
use ir::{Module, Signature, Type};
use wasmparser::{FuncType, GlobalType, MemoryType, TableType, TypeSectionReader};

type Result<T> = std::result::Result<T, ImportError>;

impl<'a> Importer<'a, '_> {
    pub(crate) fn types(&mut self, section: TypeSectionReader<'a>) -> Result<()> {
        for item in section.into_iter_with_offsets() {
            let (offset, group) = item?;
            for ty in group.types() {
                let signature = match func_type(ty, &group) {
                    Ok(func) => self.signature(func, offset),
                    Err(feature) => Err(ImportError::of_feature(feature, offset)),
                };
                self.declare_type(signature)?;
            }
        }
        Ok(())
    }

    /// Declares a type, or a placeholder for it.
    fn declare_type(&mut self, signature: Result<Signature>) -> Result<()> {
        let (signature, feature) = match (signature, &self.unsupported) {
            (Ok(signature), _) => (signature, None),
            (Err(error), Some(unsupported)) => {
                let feature = self.placeholder_for(error)?;
                (unsupported.placeholder(feature), Some(feature))
            }
            (Err(error), None) => return Err(error),
        };
        let sigs = &mut self.module.sigs;
        let sig = *self.sig_of.entry(signature).or_insert_with_key(|s| sigs.push(s.clone()));
        self.types.push(sig);
        if let (Some(feature), Some(unsupported)) = (feature, &mut self.unsupported) {
            unsupported.sigs.insert(sig, feature);
        }
        Ok(())
    }

    /// The unsupported part that an error names, if a placeholder may stand for it.
    pub(crate) fn placeholder_for(&self, error: ImportError) -> Result<&'static str> {
        match (&self.unsupported, error.feature()) {
            (Some(_), Some(feature)) => Ok(feature),
            _ => Err(error),
        }
    }

    fn signature(&mut self, ty: &FuncType, offset: u64) -> Result<Signature> {
        let mut signature = Signature::default();
        // A long list of types lies in a buffer that grows by doubling. The signature is stored
        // twice, in the module and as a key of `sig_of`.
        self.budget.charge(8 * (ty.params().len() + ty.results().len()) as u64, offset)?;
        for param in ty.params() {
            signature.params.push(value_type(*param, offset)?);
        }
        for result in ty.results() {
            signature.results.push(value_type(*result, offset)?);
        }
        Ok(signature)
    }

    /// Notes that the next declaration has a placeholder.
    fn mark<T>(&mut self, insert: impl FnOnce(&mut Placeholders, &Module) -> T) {
        self.unsupported.as_mut().map(|unsupported| insert(unsupported, &self.module));
    }

    pub(crate) fn declare_table(
        &mut self,
        ty: &TableType,
        name: &str,
        import: Option<ImportName>,
        offset: u64,
    ) -> Result<()> {
        let known = match ty.table64 || ty.shared {
            false => value_type(wasmparser::ValType::Ref(ty.element_type), offset),
            true => Err(ImportError::of_feature("memory64", offset)),
        };
        let (known, ty) = match known {
            Ok(known) => (known, *ty),
            Err(error) => {
                let feature = self.placeholder_for(error)?;
                self.mark(|unsupported, module| {
                    unsupported.tables.insert(module.tables.next_key(), feature)
                });
                (Type::ExternRef, TableType { initial: 0, maximum: None, ..*ty })
            }
        };
        if ty.initial > MAX_TABLE_ENTRIES.into() {
            let size = ty.initial;
            let message = format!("a table of {size} entries; the limit is {MAX_TABLE_ENTRIES}");
            return Err(ImportError::too_large(message, offset));
        }
        let entries = |n: u64| u32::try_from(n).expect("the validator rejects larger tables");
        let (size, max_size) = (entries(ty.initial), ty.maximum.map(entries));
        let name = self.names.tables.unique(name);
        self.index.tables.push(self.module.tables.push(TableDecl {
            name,
            ty: known,
            size,
            max_size,
            import,
            fixed: false,
        }));
        Ok(())
    }

    pub(crate) fn declare_memory(
        &mut self,
        ty: &MemoryType,
        name: &str,
        import: Option<ImportName>,
    ) {
        let feature = match (ty.memory64, ty.page_size_log2) {
            (false, None | Some(16)) => None,
            (true, _) => Some("memory64"),
            (false, Some(_)) => Some("custom page sizes"),
        };
        if let Some(feature) = feature {
            self.mark(|unsupported, module| {
                unsupported.memories.insert(module.memories.next_key(), feature)
            });
        }
        let pages = |n: u64| u32::try_from(n).expect("the validator rejects more than 65536 pages");
        let (min_pages, max_pages) = match feature {
            None => (pages(ty.initial), ty.maximum.map(pages)),
            Some(_) => (0, None),
        };
        let name = self.names.memories.unique(name);
        self.index.memories.push(self.module.memories.push(MemoryDecl {
            name,
            min_pages,
            max_pages,
            import,
            kind: MemoryKind::Linear,
        }));
    }

    pub(crate) fn declare_global(
        &mut self,
        ty: &GlobalType,
        name: &str,
        init: Result<InitExpr>,
        import: Option<ImportName>,
        offset: u64,
    ) -> Result<()> {
        let (name, mutable) = (self.names.globals.unique(name), ty.mutable);
        let known = value_type(ty.content_type, offset).and_then(|ty| Ok((ty, init?)));
        let (ty, init) = match known {
            Ok(known) => known,
            Err(error) => {
                let feature = self.placeholder_for(error)?;
                self.mark(|unsupported, module| {
                    unsupported.globals.insert(module.globals.next_key(), feature)
                });
                (Type::I32, 0.into())
            }
        };
        self.index.globals.push(self.module.globals.push(GlobalDecl {
            name,
            ty,
            mutable,
            init,
            import,
        }));
        Ok(())
    }
}
