//! Parts of WebAssembly that are not supported, in a module that is imported without them.
//!
//! Example: of the 9,900 functions of a database, 12 use SIMD. A report on the others is worth more
//! than a refusal, so these 12 are left out: they stay declared, and their bodies are unknown.
//!
//! A declaration whose type is not supported gets a placeholder, since its number counts. A
//! function whose body mentions such a declaration is left out, too, so no instruction has a
//! placeholder as its type. The placeholder of a signature takes a [`Type::Ref`], which WebAssembly
//! does not have: no supported signature equals it.

use crate::error::ImportError;
use ir::{Elem, Func, Global, Imm, Memory, Module, Sig, Signature, Table, Type};
use std::collections::BTreeMap;
use wasmparser::{
    AbstractHeapType, CompositeInnerType, FuncType, HeapType, RecGroup, SubType, ValType,
};

/// A function that is left out of a module, since its body or type uses a part of WebAssembly that
/// is not supported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnsupportedBody {
    /// The function, which is declared and has no body.
    pub func: Func,
    /// The common name of the part, as in `SIMD`.
    pub feature: &'static str,
    /// The offset in bytes of the first use, from the start of the module.
    pub offset: u64,
}

/// The declarations that have placeholders, with the part of WebAssembly that each needs.
#[derive(Clone, Default, Debug)]
pub(crate) struct Placeholders {
    pub(crate) sigs: BTreeMap<Sig, &'static str>,
    pub(crate) globals: BTreeMap<Global, &'static str>,
    pub(crate) memories: BTreeMap<Memory, &'static str>,
    pub(crate) tables: BTreeMap<Table, &'static str>,
    pub(crate) elements: BTreeMap<Elem, &'static str>,
}

impl Placeholders {
    /// The part of WebAssembly that the declarations need which an immediate names.
    pub(crate) fn of(&self, imm: Imm, module: &Module) -> Option<&'static str> {
        let memory = |memory| self.memories.get(&memory).copied();
        let table = |table| self.tables.get(&table).copied();
        match imm {
            Imm::Address(at, _) | Imm::HostAddress(at, _) | Imm::Memory(at) => memory(at),
            Imm::MemoryData(at, _) => memory(at),
            Imm::Memories(to, from) => memory(to).or_else(|| memory(from)),
            Imm::Global(global) => self.globals.get(&global).copied(),
            Imm::Func(func) => self.sig(module.funcs[func].sig),
            Imm::Indirect(sig, at) => self.sig(sig).or_else(|| table(at)),
            Imm::Table(at) => table(at),
            Imm::Tables(to, from) => table(to).or_else(|| table(from)),
            Imm::TableElem(at, elem) => table(at).or_else(|| self.elements.get(&elem).copied()),
            Imm::Elem(elem) => self.elements.get(&elem).copied(),
            Imm::None | Imm::Bits(_) | Imm::Trap(_) | Imm::Data(_) => None,
            Imm::Exit(_) | Imm::Assumed(..) => None,
        }
    }

    /// The signature that stands for types that need a part of WebAssembly: one for each part.
    pub(crate) fn placeholder(&self, feature: &str) -> Signature {
        let known = self.sigs.values().position(|other| *other == feature);
        Signature::new(&vec![Type::Ref; 1 + known.unwrap_or(self.sigs.len())], &[])
    }

    /// The part of WebAssembly that a signature needs.
    pub(crate) fn sig(&self, sig: Sig) -> Option<&'static str> {
        self.sigs.get(&sig).copied()
    }

    /// Fails if a signature needs a part that is not supported.
    pub(crate) fn check_sig(&self, sig: Sig, offset: u64) -> Result<(), ImportError> {
        self.sig(sig).map_or(Ok(()), |feature| Err(ImportError::of_feature(feature, offset)))
    }
}

/// The common name of the part of WebAssembly that has a type.
pub(crate) fn feature_of(ty: ValType) -> &'static str {
    let ValType::Ref(ty) = ty else { return "SIMD" };
    match ty.heap_type() {
        HeapType::Abstract { ty: AbstractHeapType::Exn | AbstractHeapType::NoExn, .. } => {
            "exceptions"
        }
        HeapType::Abstract { ty: AbstractHeapType::Cont | AbstractHeapType::NoCont, .. } => {
            "stack switching"
        }
        HeapType::Abstract { ty: AbstractHeapType::Func | AbstractHeapType::Extern, .. } => {
            "function references"
        }
        _ => "GC",
    }
}

/// The type of a function, or the part of WebAssembly that a type needs. Types that differ from
/// others by more than parameters and results count as parts of GC.
pub(crate) fn func_type<'t>(
    ty: &'t SubType,
    group: &RecGroup,
) -> Result<&'t FuncType, &'static str> {
    match &ty.composite_type.inner {
        CompositeInnerType::Func(func)
            if ty.is_final
                && ty.supertype_idxs.is_empty()
                && group.types().len() == 1
                && !ty.composite_type.shared =>
        {
            Ok(func)
        }
        _ if ty.composite_type.shared => Err("shared-everything threads"),
        CompositeInnerType::Cont(_) => Err("stack switching"),
        _ => Err("GC"),
    }
}
