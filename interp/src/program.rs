//! A module, pre-decoded once for any number of machines.

use super::code::Code;
use ir::entity::Func;
use ir::module::Module;
use std::sync::Arc;

/// A module, pre-decoded. Cloning is cheap and shares it.
#[derive(Clone, Debug)]
pub struct Program {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// The module without its bodies.
    declarations: Module,
    /// The base version of every function that has a body.
    codes: Vec<Option<Arc<Code>>>,
}

impl Program {
    /// Pre-decodes a module, which must be verified. Cost: linear in the module, data segments
    /// included.
    ///
    /// # Panics
    /// As [`Code::new`].
    pub fn new(module: &Module) -> Program {
        Program::decode(module, &[])
    }

    /// Whether the two are one: a clone of the other. Cost: constant.
    pub fn is(&self, other: &Program) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Pre-decodes a module that begins like this one and declares more: what both have is shared.
    /// Cost: linear in the declarations and in what is new.
    ///
    /// # Panics
    /// As [`Code::new`].
    pub fn extended(&self, module: &Module) -> Program {
        Program::decode(module, &self.inner.codes)
    }

    /// Pre-decodes a module the first functions of which are known.
    fn decode(module: &Module, known: &[Option<Arc<Code>>]) -> Program {
        let code = |func: Func| match known.get(func.as_u32() as usize) {
            Some(code) => code.clone(),
            None => module.body(func).map(|body| Arc::new(Code::new(module, body))),
        };
        let codes = module.funcs.keys().map(code).collect();
        let declarations = Module {
            sigs: module.sigs.clone(),
            funcs: module.funcs.clone(),
            globals: module.globals.clone(),
            memories: module.memories.clone(),
            tables: module.tables.clone(),
            data: module.data.clone(),
            elements: module.elements.clone(),
            exports: module.exports.clone(),
            start: module.start,
            bodies: cranelift_entity::SecondaryMap::new(),
        };
        Program { inner: Arc::new(Inner { declarations, codes }) }
    }

    /// The module without its bodies.
    pub fn declarations(&self) -> &Module {
        &self.inner.declarations
    }

    /// The base version of a function, if it has a body.
    pub fn code(&self, func: Func) -> Option<&Arc<Code>> {
        self.inner.codes.get(func.as_u32() as usize)?.as_ref()
    }
}
