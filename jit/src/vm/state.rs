//! The state of a machine that runs natively.

use super::access::HostedRun;
use super::deopt::HandlerSlot;
use super::frames::NativeStack;
use super::ledger::TransitionCounts;
use super::modules::ModuleChain;
use super::region::Addresses;
use super::table::CodeTable;
use super::tiering::TieringPolicy;
use super::view::NativeView;
use crate::code::MachineCode;
use crate::engine::Engine;
use crate::error::CompileError;
use crate::stubs::Stub;
use cranelift_entity::EntityRef;
use interp::Machine;
use ir::{Func, Module};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The state behind a [`super::Vm`], by owner.
///
/// While native code runs, helpers reach the state through the pointer in the context, one at a
/// time ([`super::access`]).
pub(super) struct VmState {
    pub(super) modules: ModuleChain,
    pub(super) machine: Machine,
    /// All that native code reads and writes. No other part is known to native code.
    pub(super) view: NativeView,
    pub(super) table: CodeTable,
    /// The native frames of the run in progress.
    pub(super) native: NativeStack,
    pub(super) counts: TransitionCounts,
    pub(super) policy: TieringPolicy,
    pub(super) handler: HandlerSlot,
    /// The run in progress.
    pub(super) run: Option<HostedRun>,
}

impl std::fmt::Debug for VmState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let installed: Vec<Func> = self.table.functions().collect();
        f.debug_struct("VmState").field("installed", &installed).finish_non_exhaustive()
    }
}

impl VmState {
    pub(super) fn new(
        engine: &Engine,
        module: &Arc<Module>,
        machine: Machine,
        guarded: Addresses,
    ) -> Result<Box<VmState>, CompileError> {
        let stubs = lazy_stubs(engine, module, 0)?;
        let view = NativeView::new(module, guarded, engine.config().interruption);
        let mut state = Box::new(VmState {
            modules: ModuleChain::new(engine, module, machine.program()),
            machine,
            policy: TieringPolicy::new(view.heeded()),
            view,
            table: CodeTable::default(),
            native: NativeStack::default(),
            counts: TransitionCounts::default(),
            handler: HandlerSlot::Empty,
            run: None,
        });
        state.lay_out(stubs);
        state.count_visits();
        Ok(state)
    }

    /// Allocates the views for all declarations of the module, and points the calls of each
    /// function to its code or its stub. `stubs` are those of the functions that are new. Linear in
    /// the declarations.
    pub(super) fn lay_out(&mut self, stubs: Vec<Arc<MachineCode>>) {
        let module = Arc::clone(&self.modules.current);
        self.view.lay_out(&module);
        for stub in stubs {
            let func = Func::new(self.table.stubs());
            if let Some(base) = self.machine.current(func) {
                self.modules.add_base(func, base);
            }
            self.table.add_stub(stub);
        }
        for func in module.funcs.keys() {
            self.point_at_current(func);
        }
    }

    /// Makes calls of a function run its installed version, or else its stub, which asks for code.
    pub(super) fn point_at_current(&mut self, func: Func) {
        let code = match self.table.installed(func) {
            Some(version) => version.code.entry(),
            None => self.table.stub(func).entry(),
        };
        self.view.point_at(func, code);
    }

    /// Frees retired code. Does nothing during a run, which may have frames in such code: safe
    /// points ([`super::frames`]) and the end of the run free it.
    pub(super) fn sweep(&mut self) {
        if self.run.is_none() {
            self.table.free_retired(&BTreeSet::new());
        }
    }
}

/// The stubs of all functions except the first `has`. Functions with the same signature share one.
pub(super) fn lazy_stubs(
    engine: &Engine,
    module: &Module,
    has: usize,
) -> Result<Vec<Arc<MachineCode>>, CompileError> {
    module
        .funcs
        .keys()
        .skip(has)
        .map(|func| engine.stub(Stub::Lazy(module.signature(func).clone())))
        .collect()
}
