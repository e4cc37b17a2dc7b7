//! A machine: an instance of a module, with its memories, its versions, and the activations of a
//! run.
//!
//! The files of `machine/` have the functions of one part each. No file that holds a part knows the
//! machine. The loops (`exec`, `fast::exec`) execute a machine; `run`, `engine`, `nested` and
//! `fire`, which start and change runs, are above them.

mod count_events;
mod count_visits;
mod move_refs;
mod storage;
mod versions;

use super::activations::Activations;
use super::calls::ValueList;
use super::counts::VersionCounts;
use super::fast::counted::CountedOp;
use super::globals::Globals;
use super::host::HostError;
use super::instantiate::{
    InstantiateError, StorageCounts, add_storage, check_least, write_segments,
};
use super::limits::{Limits, Options};
use super::memory::Memories;
use super::objects::Allocator;
use super::outcome::{Outcome, Site};
use super::program::Program;
use super::ref_roots::StressCollector;
use super::region::Region;
use super::state::{AwaitedCall, RunState, Suspended};
use super::tables::Tables;
use super::trace::Trace;
use super::version::{MachineVersion, VersionId};
use super::view::View;
use super::visits::VisitCounters;
use cranelift_entity::EntityRef;
use ir::entity::{Func, Inst};
use ir::module::{FuncDecl, MemoryDecl, Module};
use std::sync::Arc;

/// The entry of `Machine::current` for a function without a body.
const NO_VERSION: u32 = u32::MAX;

/// An instance of a module. [`crate`] gives an overview.
#[derive(Clone, Debug)]
pub struct Machine {
    pub(super) program: Program,
    pub(super) versions: Vec<MachineVersion>,
    /// For each function, the version that new activations execute.
    current: Vec<u32>,
    /// The same table as calls read it. External functions have `NO_VERSION` here.
    pub(super) entered: Vec<u32>,
    pub(super) activations: Activations,
    pub(super) memories: Memories,
    pub(super) globals: Globals,
    pub(super) trace: Trace,
    pub(super) fuel: u64,
    pub(super) state: RunState,
    /// The suspended runs below the current one, innermost last.
    pub(super) suspended: Vec<Suspended>,
    /// Whether runs are counted.
    pub(super) counting: bool,
    /// While runs are counted, the counters of each version. Empty otherwise.
    pub(super) counts: Vec<VersionCounts>,
    /// While runs are counted, the fast code of each version with its counters. Empty otherwise.
    pub(super) counted: Vec<Vec<CountedOp>>,
    /// The counters of visits.
    pub(super) visits: VisitCounters,
    /// Whether an engine may write memories, globals and tables without updating their digests.
    pub(super) raw: bool,
    /// Whether runs stop at calls of imported functions ([`Machine::stop_at_imports`]).
    pub(super) stops_at_imports: bool,
    /// The collector of [`Machine::stress_collector`].
    pub(super) collector: Option<StressCollector>,
    /// Makes the objects of transitions.
    pub(super) allocator: Option<Arc<dyn Allocator>>,
}

impl Machine {
    /// Instantiates a verified module, to compare its runs ([`Options::traced`]). Does not run the
    /// start function.
    ///
    /// # Errors
    /// When a memory or table exceeds a limit, a segment is out of bounds, or a function has
    /// neither an import nor a body.
    ///
    /// # Panics
    /// As [`crate::Code::new`].
    pub fn new(module: &Module, limits: Limits) -> Result<Machine, InstantiateError> {
        Machine::with_options(&Program::new(module), limits, Options::traced())
    }

    /// Instantiates a pre-decoded module. Does not run the start function.
    ///
    /// # Errors
    /// As [`Machine::new`].
    pub fn with_options(
        program: &Program,
        limits: Limits,
        options: Options,
    ) -> Result<Machine, InstantiateError> {
        Machine::with_regions(program, limits, options, &mut |_| None)
    }

    /// As [`Machine::with_options`], with memories in regions of the embedder. `regions` is called
    /// for each memory in order of declaration; for `None`, the interpreter allocates the memory
    /// itself. A clone of the machine holds copies of all memories in its own allocations.
    ///
    /// # Errors
    /// As [`Machine::new`]; also when a region has no room for the initial pages.
    ///
    /// # Panics
    /// When a region is not empty.
    pub fn with_regions(
        program: &Program,
        limits: Limits,
        options: Options,
        regions: &mut dyn FnMut(&MemoryDecl) -> Option<Box<dyn Region>>,
    ) -> Result<Machine, InstantiateError> {
        let mut machine = Machine {
            program: program.clone(),
            versions: Vec::new(),
            current: Vec::new(),
            entered: Vec::new(),
            activations: Activations::new(&limits, options.poison),
            memories: Memories::new(&limits, options.track_memory),
            globals: Globals::new(Tables::new(limits.table_entries, options.track_memory)),
            trace: Trace::new(options.trace),
            fuel: limits.fuel,
            state: RunState::default(),
            suspended: Vec::new(),
            counting: false,
            counts: Vec::new(),
            counted: Vec::new(),
            visits: VisitCounters::default(),
            raw: false,
            stops_at_imports: false,
            collector: None,
            allocator: None,
        };
        machine.extend_with_regions(program, regions)?;
        Ok(machine)
    }

    /// Extends the machine to a larger module that starts with the declarations the machine already
    /// has. Several modules can thus share functions, memories, tables and globals. Creates the new
    /// declarations and writes the new active segments. Does not run the start function, and drops
    /// all runs. Cost: linear in the new declarations, plus the size of the new memories and
    /// tables.
    ///
    /// # Errors
    /// As [`Machine::new`], and when the module declares a memory that exists with more pages than
    /// it has. When a segment is out of bounds ([`InstantiateError::is_of_segment`]), the new
    /// declarations exist and the segments before it are written. After any other error the machine
    /// is unchanged.
    ///
    /// # Panics
    /// When the module declares fewer functions than the machine has.
    pub fn extend(&mut self, program: &Program) -> Result<(), InstantiateError> {
        self.extend_with_regions(program, &mut |_| None)
    }

    /// As [`Machine::extend`], with regions for the new memories: see [`Machine::with_regions`].
    ///
    /// # Errors
    /// As [`Machine::extend`] and [`Machine::with_regions`].
    ///
    /// # Panics
    /// As [`Machine::extend`] and [`Machine::with_regions`].
    pub fn extend_with_regions(
        &mut self,
        program: &Program,
        regions: &mut dyn FnMut(&MemoryDecl) -> Option<Box<dyn Region>>,
    ) -> Result<(), InstantiateError> {
        let declared = program.declarations();
        assert!(
            self.current.len() <= declared.funcs.len(),
            "interp: the module declares fewer functions than the machine"
        );
        let mut new = declared.funcs.iter_from(self.current.len());
        let has_none = |(func, decl): &(Func, &FuncDecl)| {
            decl.import.is_none() && program.code(*func).is_none() && !declared.is_later(*func)
        };
        if let Some((_, decl)) = new.find(has_none) {
            return Err(InstantiateError::NoBody { function: decl.name.clone() });
        }
        let has = StorageCounts::of(&self.memories, &self.globals);
        let mut provide = |decl: &MemoryDecl| {
            let region = regions(decl);
            // The provider of a region may write its bytes at any time.
            self.raw |= region.is_some();
            region
        };
        check_least(declared, &self.memories)?;
        // Everything that a limit can reject comes first, so that an error leaves the current run
        // in place (test `an_extension_without_room_changes_nothing`).
        add_storage(declared, has, &mut self.memories, &mut self.globals, &mut provide)?;
        self.give_up();
        let before = std::mem::replace(&mut self.program, program.clone());
        if let Some(source) = program.source()
            && before.source().is_none_or(|before| !Arc::ptr_eq(before, source))
        {
            self.versions.iter().for_each(|version| version.code.settle(source));
        }
        for (func, _) in declared.funcs.iter_from(self.current.len()) {
            self.current.push(NO_VERSION);
            self.entered.push(NO_VERSION);
            if let Some(code) = program.code(func) {
                let version = self.add_code(func, Arc::clone(code));
                self.set_current(func, version);
            }
        }
        write_segments(declared, has, &mut self.memories, &mut self.globals)
    }

    /// The module, pre-decoded.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The declarations of the module. It may have bodies or not.
    pub fn declarations(&self) -> &Module {
        self.program.declarations()
    }

    /// The start function of the module, if it has one. The embedder must invoke it first.
    pub fn start_function(&self) -> Option<Func> {
        self.declarations().start
    }

    /// Begins a run of a function. Bits of arguments outside their types are cleared. Any run that
    /// is paused or waits is dropped, together with the runs suspended below it.
    ///
    /// # Panics
    /// When the function is imported or awaits its body, or the number of arguments is wrong.
    pub fn start(&mut self, func: Func, args: &[u64]) {
        let version = self.startable(func);
        let args = self.clean_args(func, args);
        self.give_up();
        if self.is_external(func) {
            self.state.waiting = Some(AwaitedCall { func, args: Some(args.to_vec()) });
        } else if self.begin(version, &args) {
            self.count_first_call(version, &args);
        } else {
            self.state.refused = Some(func);
        }
    }

    /// The arguments of a function, with bits outside their types cleared.
    pub(super) fn clean_args(&self, func: Func, args: &[u64]) -> ValueList {
        let params = &self.declarations().signature(func).params;
        assert_eq!(params.len(), args.len(), "interp: wrong number of arguments for {func}");
        args.iter().zip(params).map(|(arg, ty)| arg & ty.mask()).collect()
    }

    /// Pushes the first activation of the current run. Returns false when a limit is reached.
    pub(super) fn begin(&mut self, version: VersionId, args: &[u64]) -> bool {
        let base = self.activations.push(version.as_u32(), &self.versions[version.index()].code, 0);
        if let Some(base) = base {
            self.activations.stack[base..][..args.len()].copy_from_slice(args);
        }
        base.is_some()
    }

    /// Drops all runs, including suspended ones. Needed after a panic of the host has unwound
    /// through them. Cost: the number of their activations.
    pub fn give_up(&mut self) {
        self.activations.clear();
        self.suspended.clear();
        self.state = RunState::default();
    }

    pub(super) fn host_outcome(&self, error: HostError, site: Site) -> Outcome {
        match error {
            HostError::Exit(status) => Outcome::Exited(status),
            HostError::Trap(kind) => Outcome::Trapped { kind, operand: None, site },
            HostError::Failed(error) => Outcome::HostFailed { error, site },
        }
    }

    /// The state of a run that was started or is paused. `None` when there is no such run, or when
    /// the run waits for the results of a call.
    pub fn view(&self) -> Option<View<'_>> {
        if self.activations.of_run().is_empty() || self.state.waiting.is_some() {
            return None;
        }
        Some(View {
            versions: &self.versions,
            activations: &self.activations,
            memories: &self.memories,
            globals: &self.globals,
            trace: &self.trace,
            fuel: self.fuel,
        })
    }

    /// The effects of all runs so far; empty if the machine keeps no trace
    /// ([`super::TraceLevel::Off`]).
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The fuel left.
    pub fn fuel(&self) -> u64 {
        self.fuel
    }

    /// Sets the fuel left.
    pub fn set_fuel(&mut self, fuel: u64) {
        self.fuel = fuel;
    }

    /// Names an instruction of a function, or with `None` the function itself, as a site.
    ///
    /// # Panics
    /// When the module declares no such function.
    pub fn site(&self, func: Func, inst: Option<Inst>) -> Site {
        Site { func, function: self.declarations().funcs[func].name.clone(), inst }
    }
}
