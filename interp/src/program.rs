//! A module that is pre-decoded once for any number of machines.

use super::code::Code;
use ir::entity::Func;
use ir::module::Module;
use std::sync::Arc;

/// A pre-decoded module. A clone shares it and costs constant time.
#[derive(Clone, Debug)]
pub struct Program {
    inner: Arc<ProgramData>,
}

#[derive(Debug)]
struct ProgramData {
    /// The module without its bodies.
    declarations: Module,
    /// The base version of every function that has a body.
    codes: Vec<Option<Arc<Code>>>,
}

impl Program {
    /// Pre-decodes a module, which must be verified. Cost: linear in the module, including data
    /// segments.
    ///
    /// # Panics
    /// As [`Code::new`].
    pub fn new(module: &Module) -> Program {
        Program::decode(module, &[])
    }

    /// Whether one program is a clone of the other. Cost: constant.
    pub fn is(&self, other: &Program) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Pre-decodes a larger module that starts with the declarations of this one. The two programs
    /// share the code of the common functions. Cost: linear in the declarations and in the new
    /// functions.
    ///
    /// # Panics
    /// As [`Code::new`].
    pub fn extended(&self, module: &Module) -> Program {
        Program::decode(module, &self.inner.codes)
    }

    /// Pre-decodes a module, and takes the code of its first functions from `known`.
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
        Program { inner: Arc::new(ProgramData { declarations, codes }) }
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
