//! A module that is pre-decoded once for any number of machines.

use super::code::{Code, DecodeSource};
use ir::ChunkedMap;
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
    /// The module; without its bodies if all functions are pre-decoded.
    declarations: Arc<Module>,
    /// The base version of every function that had a body.
    codes: ChunkedMap<Func, Option<Arc<Code>>>,
    /// The functions that awaited their bodies.
    awaiting: Vec<Func>,
    /// The source of the functions that are pre-decoded at their first use.
    source: Option<Arc<DecodeSource>>,
}

/// The functions among `funcs` that may still get code: their bodies had not come when `codes` was
/// made. Bodies that another thread supplies meanwhile do not change the result.
fn awaiting(
    module: &Module,
    codes: &ChunkedMap<Func, Option<Arc<Code>>>,
    funcs: impl Iterator<Item = Func>,
) -> Vec<Func> {
    funcs.filter(|func| codes[*func].is_none() && module.is_later(*func)).collect()
}

impl Program {
    /// Pre-decodes a module, which must be verified. Cost: linear in the module, including data
    /// segments.
    ///
    /// # Panics
    /// As [`Code::new`].
    pub fn new(module: &Module) -> Program {
        let code = |func| module.body(func).map(|body| Arc::new(Code::new(module, body)));
        let codes: ChunkedMap<Func, Option<Arc<Code>>> = module.funcs.keys().map(code).collect();
        let declarations = Arc::new(module.without_bodies());
        let awaiting = awaiting(module, &codes, module.funcs.keys());
        Program { inner: Arc::new(ProgramData { declarations, codes, awaiting, source: None }) }
    }

    /// The program of a module, which must be verified, with functions that are pre-decoded at
    /// their first use. Cost: linear in the functions.
    ///
    /// # Panics
    /// At the first use of a function, as [`Code::new`].
    pub fn on_demand(module: &Arc<Module>) -> Program {
        Program::with_codes(module, ChunkedMap::new(), &[], DecodeSource::new(module))
    }

    /// Whether two programs are clones. Cost: constant.
    pub fn is(&self, other: &Program) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// As [`Program::on_demand`], for a larger module that starts with the declarations of this
    /// program's module. The two programs share the code of the common functions. Cost: linear in
    /// the new functions and the functions whose bodies arrived, plus one pointer copy per 64 other
    /// functions.
    ///
    /// # Panics
    /// As [`Program::on_demand`].
    pub fn extended(&self, module: &Arc<Module>) -> Program {
        let ProgramData { declarations, codes, awaiting, source } = &*self.inner;
        let moved = source.as_ref().filter(|source| source.move_on(declarations, module));
        let source = moved.map_or_else(|| DecodeSource::new(module), Arc::clone);
        if moved.is_none() {
            codes.values().flatten().for_each(|code| code.settle(&source));
        }
        Program::with_codes(module, codes.clone(), awaiting, source)
    }

    /// The code of the first functions is `codes`, unless their bodies have come meanwhile.
    fn with_codes(
        module: &Arc<Module>,
        mut codes: ChunkedMap<Func, Option<Arc<Code>>>,
        awaited: &[Func],
        source: Arc<DecodeSource>,
    ) -> Program {
        let later = |func| Code::later(&source, module, func).map(Arc::new);
        for func in awaited.iter().filter(|func| !module.awaits_body(**func)) {
            codes[*func] = later(*func);
        }
        let known = codes.len();
        for (func, _) in module.funcs.iter_from(known) {
            codes.push(later(func));
        }
        let new = module.funcs.iter_from(known).map(|(func, _)| func);
        let awaiting = awaiting(module, &codes, awaited.iter().copied().chain(new));
        let (declarations, source) = (Arc::clone(module), Some(source));
        Program { inner: Arc::new(ProgramData { declarations, codes, awaiting, source }) }
    }

    /// The declarations of the module. It may have bodies or not.
    pub fn declarations(&self) -> &Module {
        &self.inner.declarations
    }

    /// The source of functions that are still to be pre-decoded.
    pub(super) fn source(&self) -> Option<&Arc<DecodeSource>> {
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
        self.inner.codes.get(func)?.as_ref()
    }
}
