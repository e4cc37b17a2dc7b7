//! The modules of a machine: the one that it runs, and those before it.

use super::stop::RunError;
use crate::engine::Engine;
use crate::version::Version;
use interp::{Machine, Program, VersionId};
use ir::{Func, Module};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// The engine and the modules whose code a machine runs, and their program in the interpreter.
pub(super) struct ModuleChain {
    pub(super) engine: Engine,
    /// The module that the machine took up last.
    pub(super) current: Arc<Module>,
    /// The modules before it. Code that was compiled for them stays valid ([`super::Vm::extend`]).
    /// The weak references keep their addresses from being reused, so `fits` may compare addresses.
    earlier: Vec<Weak<Module>>,
    /// The program that the machine was made with or extended to. A different program shows that
    /// the embedder has exchanged the machine.
    program: Program,
    /// The base version of each function in the interpreter.
    bases: BTreeMap<Func, VersionId>,
}

impl ModuleChain {
    pub(super) fn new(engine: &Engine, module: &Arc<Module>, program: &Program) -> ModuleChain {
        ModuleChain {
            engine: engine.clone(),
            current: Arc::clone(module),
            earlier: Vec::new(),
            program: program.clone(),
            bases: BTreeMap::new(),
        }
    }

    /// Takes up a module that begins like the current one.
    pub(super) fn extend(&mut self, module: &Arc<Module>, program: Program) {
        self.earlier.push(Arc::downgrade(&self.current));
        self.current = Arc::clone(module);
        self.program = program;
    }

    /// Notes the base version of a function.
    pub(super) fn add_base(&mut self, func: Func, base: VersionId) {
        self.bases.insert(func, base);
    }

    /// The base version of a function in the interpreter. `None` if the function is imported, or
    /// awaits its body.
    pub(super) fn base(&self, func: Func) -> Option<VersionId> {
        self.bases.get(&func).copied()
    }

    /// Whether the function has no body.
    pub(super) fn is_imported(&self, func: Func) -> bool {
        self.current.funcs[func].import.is_some()
    }

    /// Checks that a machine runs the program of these modules.
    ///
    /// # Errors
    /// [`RunError::Exchanged`] if it runs another one.
    pub(super) fn require_own(&self, machine: &Machine) -> Result<(), RunError> {
        if machine.program().is(&self.program) { Ok(()) } else { Err(RunError::Exchanged) }
    }

    /// Whether the machine can run a version: the same engine compiled it, for the machine's module
    /// or one of the modules before. A declaration of an earlier module means the same in the later
    /// ones ([`super::Vm::extend`]).
    pub(super) fn fits(&self, version: &Version) -> bool {
        let module = Arc::as_ptr(&version.module);
        let mut modules = std::iter::once(Arc::as_ptr(&self.current))
            .chain(self.earlier.iter().map(Weak::as_ptr));
        version.engine.is(&self.engine) && modules.any(|one| one == module)
    }
}
