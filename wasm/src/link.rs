//! Linking: resolves the imports of a module to definitions of the modules before it.

use crate::error::ImportError;
use crate::function::value_type;
use ir::module::External;
use ir::{Module, Sig, Type};
use wasmparser::{TypeRef, ValType};

/// Resolves the imports of a module for [`crate::import_linked`].
#[derive(Clone, Copy)]
pub struct Linker<'l> {
    /// The modules before, as one module. The linker compares declared sizes. For growth at run
    /// time to count, the embedder must set the declared size of a memory or table to its current
    /// one.
    pub modules: &'l Module,
    /// The definition for the names of a module and of a field, if it is provided.
    pub provided: &'l dyn Fn(&str, &str) -> Option<External>,
}

impl std::fmt::Debug for Linker<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Linker")
            .field("functions", &self.modules.funcs.len())
            .finish_non_exhaustive()
    }
}

impl Linker<'_> {
    /// The modules before, as the start of the next module. Exports and start function are removed,
    /// because only the exports and the start function of the module linked last count.
    pub(crate) fn before(&self) -> Module {
        let mut module = self.modules.clone();
        module.exports.clear();
        module.start = None;
        module
    }

    /// The definition of an import. Fails when it is not provided, or has another type.
    pub(crate) fn find(
        &self,
        module: &Module,
        types: &[Sig],
        from: &str,
        field: &str,
        ty: &TypeRef,
        offset: u64,
    ) -> Result<External, ImportError> {
        let Some(found) = (self.provided)(from, field) else {
            return Err(ImportError::unlinkable(format!("unknown import {from}.{field}"), offset));
        };
        match fits(module, types, found, ty, offset)? {
            true => Ok(found),
            false => Err(ImportError::unlinkable(
                format!("incompatible import type of {from}.{field}"),
                offset,
            )),
        }
    }
}

fn fits(
    module: &Module,
    types: &[Sig],
    found: External,
    ty: &TypeRef,
    offset: u64,
) -> Result<bool, ImportError> {
    // The size must be at least the requested one, and the maximum at most the requested one.
    let within = |has: (u32, Option<u32>), (min, max): (u64, Option<u64>)| {
        u64::from(has.0) >= min
            && max.is_none_or(|max| has.1.is_some_and(|has| u64::from(has) <= max))
    };
    let is = |ours: Type, theirs: ValType| value_type(theirs, offset).map(|theirs| ours == theirs);
    Ok(match (found, ty) {
        (External::Func(func), TypeRef::Func(ty)) => module.funcs[func].sig == types[*ty as usize],
        (External::Global(global), TypeRef::Global(ty)) => {
            let decl = &module.globals[global];
            decl.mutable == ty.mutable && is(decl.ty, ty.content_type)?
        }
        (External::Memory(memory), TypeRef::Memory(ty)) => {
            let decl = &module.memories[memory];
            within((decl.min_pages, decl.max_pages), (ty.initial, ty.maximum))
        }
        (External::Table(table), TypeRef::Table(ty)) => {
            let decl = &module.tables[table];
            let sizes = within((decl.size, decl.max_size), (ty.initial, ty.maximum));
            sizes && is(decl.ty, ValType::Ref(ty.element_type))?
        }
        _ => false,
    })
}
