//! The versions of a machine: which it has, and which new activations execute.

use super::{Machine, NO_VERSION};
use crate::code::{Code, DecodeSource};
use crate::counts;
use crate::host::HostError;
use crate::version::{MachineVersion, VersionId};
use cranelift_entity::EntityRef;
use ir::entity::{Func, Inst};
use ir::function::Function;
use ir::module::Module;
use ir::text::AtName;
use std::sync::Arc;
use transition::copy::InlinedSites;

impl Machine {
    /// Takes up the body of a function that awaited it ([`Module::define_later`]). `module` is the
    /// module of the machine, which has the body now. Does nothing if the function has a version.
    /// Runs in progress continue. Constant cost; the body is decoded at its first use.
    ///
    /// # Panics
    /// When the module has no body of the function.
    pub fn take_up(&mut self, module: &Arc<Module>, func: Func) {
        if self.current(func).is_some() {
            return;
        }
        // The source may have moved on, to a module with the same body.
        let source = self.program.source().map_or_else(|| DecodeSource::new(module), Arc::clone);
        let code = Code::later(&source, module, func);
        let code = code.unwrap_or_else(|| panic!("interp: {func} has no body yet"));
        let version = self.add_code(func, Arc::new(code));
        self.set_current(func, version);
    }

    /// Adds a version of a function. `module` is the module of this machine. Cost: one
    /// [`Code::new`].
    ///
    /// # Panics
    /// As [`Code::new`] and [`Machine::add_code`].
    pub fn add_version(&mut self, module: &Module, func: Func, function: &Function) -> VersionId {
        self.add_code(func, Arc::new(Code::new(module, function)))
    }

    /// Tells where the inlined code of a version comes from: a run that ends there reports the site
    /// in the base, however inlined.
    ///
    /// # Panics
    /// When the machine has no such version.
    pub fn set_sites(&mut self, version: VersionId, sites: Arc<InlinedSites>) {
        self.versions[version.index()].sites = Some(sites);
    }

    /// Adds a pre-decoded version of a function. Cost: constant.
    ///
    /// # Panics
    /// When the version has another number of arguments than the function.
    pub fn add_code(&mut self, func: Func, code: Arc<Code>) -> VersionId {
        let params = self.declarations().signature(func).params.len();
        assert_eq!(
            code.params as usize, params,
            "interp: a version of {func} has the wrong number of parameters"
        );
        self.push_version(func, code)
    }

    /// Adds a version of the code behind a landing point of a function. It has parameters of its
    /// own, so transitions alone enter it. Cost: one [`Code::new`].
    ///
    /// # Panics
    /// As [`Code::new`].
    pub fn add_rest(&mut self, module: &Module, func: Func, function: &Function) -> VersionId {
        self.push_version(func, Arc::new(Code::new(module, function)))
    }

    fn push_version(&mut self, func: Func, code: Arc<Code>) -> VersionId {
        if self.counting {
            counts::add_version(&mut self.counts, &mut self.counted, &code);
        }
        self.visits.add_version();
        self.versions.push(MachineVersion { func, code, sites: None });
        VersionId::from_u32(self.versions.len() as u32 - 1)
    }

    /// Makes new activations of a function execute this version.
    ///
    /// # Panics
    /// When the version belongs to another function, or begins at a landing point and has another
    /// number of arguments.
    pub fn set_current(&mut self, func: Func, version: VersionId) {
        let of = &self.versions[version.index()];
        let params = self.declarations().signature(func).params.len();
        assert_eq!(
            (of.func, of.code.params as usize),
            (func, params),
            "interp: calls of {func} cannot run {version}"
        );
        let external = self.is_external(func);
        self.current[func.index()] = version.as_u32();
        self.set_external(func, external);
    }

    /// Makes a function external, or undoes that. A call of an external function, and a run that
    /// starts with one, stops with [`crate::Run::Called`], so that an engine can execute the
    /// function. Existing activations, and activations that [`Machine::begin_nested`] begins, are
    /// interpreted nevertheless. Cost: constant. Calls of other functions are as fast as before.
    ///
    /// # Panics
    /// When the function is imported, or awaits its body.
    pub fn set_external(&mut self, func: Func, external: bool) {
        let version = self.current[func.index()];
        assert!(version != NO_VERSION, "interp: {func} {}", self.why_no_version(func));
        self.entered[func.index()] = if external { NO_VERSION } else { version };
    }

    /// The version that a run starts with.
    ///
    /// # Panics
    /// When the function has no version.
    pub(crate) fn startable(&self, func: Func) -> VersionId {
        self.current(func).unwrap_or_else(|| {
            panic!("interp: {func} {} and cannot be started", self.why_no_version(func))
        })
    }

    /// Why a function has no version, for messages.
    fn why_no_version(&self, func: Func) -> &'static str {
        if self.is_imported(func) { "is imported" } else { "awaits its body" }
    }

    /// Whether a function is imported. Constant cost.
    pub(crate) fn is_imported(&self, func: Func) -> bool {
        self.program.is_imported(func)
    }

    /// Whether a function awaits its body. Constant cost.
    #[inline]
    pub fn awaits_body(&self, func: Func) -> bool {
        self.current(func).is_none() && !self.is_imported(func)
    }

    /// Whether a function is external: see [`Machine::set_external`].
    pub fn is_external(&self, func: Func) -> bool {
        self.current[func.index()] != NO_VERSION && self.entered[func.index()] == NO_VERSION
    }

    /// The error of a call of a function whose body has not come.
    pub fn body_missing(&self, func: Func) -> HostError {
        let name = AtName(&self.declarations().funcs[func].name);
        HostError::failed(format!("the body of {name} has not come"))
    }

    /// The version that new activations of a function execute; `None` for an imported function, and
    /// for one that awaits its body.
    pub fn current(&self, func: Func) -> Option<VersionId> {
        Some(self.current[func.index()]).filter(|v| *v != NO_VERSION).map(VersionId::from_u32)
    }

    /// The pre-decoded form of a version.
    ///
    /// # Panics
    /// When the machine has no such version.
    pub fn code(&self, version: VersionId) -> &Code {
        &self.versions[version.index()].code
    }

    /// Marks instructions of a version for observers of scope `Marked`. Instructions that the
    /// version lacks are skipped. Cost: the number of instructions. If other machines share the
    /// code, the first mark copies it.
    ///
    /// # Panics
    /// When the machine has no such version.
    pub fn mark(&mut self, version: VersionId, insts: impl IntoIterator<Item = Inst>) {
        Arc::make_mut(&mut self.versions[version.index()].code).set_marks(insts, true);
    }

    /// Clears marks.
    ///
    /// # Panics
    /// When the machine has no such version.
    pub fn unmark(&mut self, version: VersionId, insts: impl IntoIterator<Item = Inst>) {
        Arc::make_mut(&mut self.versions[version.index()].code).set_marks(insts, false);
    }
}
