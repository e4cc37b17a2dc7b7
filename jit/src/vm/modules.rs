//! The modules of a machine: the current module and all earlier ones.

use super::stop::RunError;
use crate::engine::Engine;
use crate::version::Version;
use interp::{Machine, Program, VersionId};
use ir::{Func, Module};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// The least length of the list of earlier modules at which dropped modules are removed from it.
const LEAST_CROWD: usize = 16;

/// The engine and the modules whose code a machine runs, and their program in the interpreter.
pub(super) struct ModuleChain {
    pub(super) engine: Engine,
    /// The module that the machine took up last.
    pub(super) current: Arc<Module>,
    /// The existing earlier modules, by address. Code that was compiled for them stays valid
    /// ([`super::Vm::extend`]). The weak references keep their addresses from being reused, so
    /// `fits` may compare addresses.
    earlier: BTreeMap<usize, Weak<Module>>,
    /// The length of `earlier` at which dropped modules are removed from it.
    crowded: usize,
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
            earlier: BTreeMap::new(),
            crowded: LEAST_CROWD,
            program: program.clone(),
            bases: BTreeMap::new(),
        }
    }

    /// Takes up a module that begins like the current one.
    pub(super) fn extend(&mut self, module: &Arc<Module>, program: Program) {
        let earlier = Arc::downgrade(&self.current);
        self.earlier.insert(Weak::as_ptr(&earlier).addr(), earlier);
        self.current = Arc::clone(module);
        self.program = program;
        // No version belongs to a dropped module: versions own their modules.
        if self.earlier.len() >= self.crowded {
            self.earlier.retain(|_, module| module.strong_count() > 0);
            self.crowded = (2 * self.earlier.len()).max(LEAST_CROWD);
        }
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
    /// [`RunError::Exchanged`] if the machine runs another program.
    pub(super) fn require_own(&self, machine: &Machine) -> Result<(), RunError> {
        if machine.program().is(&self.program) { Ok(()) } else { Err(RunError::Exchanged) }
    }

    /// Whether the machine can run a version: the same engine compiled it, for the current module
    /// or an earlier one. A declaration of an earlier module means the same in the later ones
    /// ([`super::Vm::extend`]). Logarithmic in the modules.
    pub(super) fn fits(&self, version: &Version) -> bool {
        let module = Arc::as_ptr(&version.module);
        let is_known =
            module == Arc::as_ptr(&self.current) || self.earlier.contains_key(&module.addr());
        version.engine.is(&self.engine) && is_known
    }
}
