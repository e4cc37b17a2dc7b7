//! The state of a machine that runs natively.

use super::access::HostedRun;
use super::entrance::KnownEntrance;
use super::ledger::TransitionCounts;
use super::linear::Addresses;
use super::modules::ModuleChain;
use super::native_stack::NativeStack;
use super::table::CodeTable;
use super::tiering::TieringPolicy;
use super::view::NativeView;
use crate::context::Helpers;
use crate::engine::Engine;
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
    /// All state that native code reads and writes.
    pub(super) view: NativeView,
    pub(super) table: CodeTable,
    /// How calls from outside enter native code, by function.
    pub(super) entrances: Vec<Option<KnownEntrance>>,
    /// The native frames of the run in progress.
    pub(super) native: NativeStack,
    pub(super) counts: TransitionCounts,
    pub(super) policy: TieringPolicy,
    /// The run in progress.
    pub(super) run: Option<HostedRun>,
    /// Whether the embedder has given the promises of [`super::Vm::with_host_memory`].
    pub(super) has_host_memory: bool,
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
        helpers: Helpers,
    ) -> Box<VmState> {
        let view = NativeView::new(module, guarded, engine.config().interruption, helpers);
        let mut state = Box::new(VmState {
            modules: ModuleChain::new(engine, module, machine.program()),
            machine,
            policy: TieringPolicy::new(view.heeded()),
            view,
            table: CodeTable::default(),
            entrances: Vec::new(),
            native: NativeStack::default(),
            counts: TransitionCounts::default(),
            has_host_memory: false,
            run: None,
        });
        state.lay_out(0);
        state.count_visits();
        state
    }

    /// Allocates the views for all declarations of the module, and points the calls of new
    /// functions to their code or their stub: of all but the first `known`. Linear in the memories,
    /// tables and new functions.
    pub(super) fn lay_out(&mut self, known: usize) {
        let module = Arc::clone(&self.modules.current);
        self.view.lay_out(&module);
        for (func, _) in module.funcs.iter_from(known) {
            if let Some(base) = self.machine.current(func) {
                self.modules.add_base(func, base);
            }
            self.point_at_current(func);
        }
    }

    /// Makes calls of a function run its installed version, or else its stub, which asks for code.
    /// No code calls a function that has neither.
    pub(super) fn point_at_current(&mut self, func: Func) {
        let stub = || self.table.stub(self.modules.current.signature(func));
        let code = self.table.installed(func).map(|version| &version.code);
        let code = match code.or_else(|| self.direct_code(func)) {
            Some(code) => code.entry(),
            None => stub().map_or(std::ptr::null(), |stub| stub.entry()),
        };
        self.view.point_at(func, code);
    }

    /// Points calls of functions without code to their stubs, for signatures that are new in code
    /// of the table. Runs before each entry into native code, and before native code continues
    /// behind a helper (`a_call_of_a_function_without_code_finds_a_stub`). Linear in the functions
    /// for each such signature.
    pub(super) fn point_at_fresh_stubs(&mut self) {
        let fresh = self.table.take_fresh();
        if fresh.is_empty() {
            return;
        }
        let module = Arc::clone(&self.modules.current);
        for signature in fresh {
            let called = module.funcs.keys().filter(|func| *module.signature(*func) == signature);
            called.for_each(|func| self.point_at_current(func));
        }
    }

    /// Frees retired code. Does nothing during a run, which may have frames in such code: safe
    /// points ([`super::reclaim`]) and the end of the run free it.
    pub(super) fn sweep(&mut self) {
        if self.run.is_none() && self.table.retired() > 0 {
            self.table.free_retired(&BTreeSet::new());
        }
    }
}
