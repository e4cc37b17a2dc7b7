//! A module that is pre-decoded once for any number of machines.

use super::code::Code;
use ir::effect::DeclaredEffect;
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
    /// The module, if functions are pre-decoded at their first use.
    source: Option<Arc<Module>>,
}

impl Program {
    /// Pre-decodes a module, which must be verified. Cost: linear in the module, including data
    /// segments.
    ///
    /// # Panics
    /// As [`Code::new`].
    pub fn new(module: &Module) -> Program {
        let code = |func| module.body(func).map(|body| Code::new(module, body));
        Program::with_codes(module, None, &[], code)
    }

    /// The program of a module, which must be verified, with functions that are pre-decoded at
    /// their first use. Cost: linear in the declarations, including data segments.
    ///
    /// # Panics
    /// At the first use of a function, as [`Code::new`].
    pub fn on_demand(module: &Arc<Module>) -> Program {
        let source = Some(Arc::clone(module));
        Program::with_codes(module, source, &[], |func| Code::later(module, func))
    }

    /// Whether one program is a clone of the other. Cost: constant.
    pub fn is(&self, other: &Program) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// As [`Program::on_demand`], of a larger module that starts with the declarations of this one.
    /// The two programs share the code of the common functions.
    ///
    /// # Panics
    /// As [`Program::on_demand`].
    pub fn extended(&self, module: &Arc<Module>) -> Program {
        self.inner.codes.iter().flatten().for_each(|code| code.settle(module));
        let source = Some(Arc::clone(module));
        Program::with_codes(module, source, &self.inner.codes, |func| Code::later(module, func))
    }

    /// The code of the first functions is taken from `known`, and `make` makes that of the others.
    fn with_codes(
        module: &Module,
        source: Option<Arc<Module>>,
        known: &[Option<Arc<Code>>],
        make: impl Fn(Func) -> Option<Code>,
    ) -> Program {
        // A function whose body has come meanwhile has no code in `known`.
        let known = |func: Func| known.get(func.as_u32() as usize)?.clone();
        let code = |func: Func| known(func).or_else(|| make(func).map(Arc::new));
        let codes = module.funcs.keys().map(code).collect();
        let declarations = module.without_bodies();
        Program { inner: Arc::new(ProgramData { declarations, codes, source }) }
    }

    /// The module without its bodies.
    pub fn declarations(&self) -> &Module {
        &self.inner.declarations
    }

    /// The module of which functions are still to be pre-decoded.
    pub(super) fn source(&self) -> Option<&Arc<Module>> {
        self.inner.source.as_ref()
    }

    /// Whether a function is imported. Constant cost.
    #[inline]
    pub(super) fn is_imported(&self, func: Func) -> bool {
        self.inner.declarations.funcs[func].import.is_some()
    }

    /// The declared effect of a function. Constant cost.
    #[inline]
    pub(super) fn effect(&self, func: Func) -> DeclaredEffect {
        self.inner.declarations.funcs[func].effect
    }

    /// The base version of a function, if it had a body when the program was made.
    pub fn code(&self, func: Func) -> Option<&Arc<Code>> {
        self.inner.codes.get(func.as_u32() as usize)?.as_ref()
    }
}
