//! A machine: an instance of a module, with its memories, its versions, and the activations of a
//! run.

use super::activations::Activations;
use super::calls::ValueList;
use super::code::{Code, DecodeSource};
use super::counts::{self, VersionCounts};
use super::fast::counted::CountedOp;
use super::globals::{self, Globals};
use super::host::HostError;
use super::instantiate::{
    InstantiateError, StorageCounts, add_storage, check_least, write_segments,
};
use super::limits::{Limits, Options};
use super::memory::{Memories, OutOfBounds};
use super::outcome::{Outcome, Site};
use super::program::Program;
use super::refs::StressCollector;
use super::region::Region;
use super::state::{AwaitedCall, RunState, Suspended};
use super::tables::Tables;
use super::trace::Trace;
use super::version::{MachineVersion, VersionId};
use super::view::View;
use super::visits::VisitCounters;
use cranelift_entity::EntityRef;
use ir::entity::{Func, Global, Inst, Table};
use ir::function::Function;
use ir::module::{FuncDecl, MemoryDecl, Module};
use std::sync::Arc;
use transition::copy::InlinedSites;
use transition::mapping::Write;

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
    /// As [`Code::new`].
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
        write_segments(declared, has, &mut self.memories, &mut self.globals.tables)
    }

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
    /// When the version belongs to another function.
    pub fn set_current(&mut self, func: Func, version: VersionId) {
        assert_eq!(
            self.versions[version.index()].func,
            func,
            "interp: {version} is not a version of {func}"
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
    pub(super) fn startable(&self, func: Func) -> VersionId {
        self.current(func).unwrap_or_else(|| {
            panic!("interp: {func} {} and cannot be started", self.why_no_version(func))
        })
    }

    /// Why a function has no version, for messages.
    fn why_no_version(&self, func: Func) -> &'static str {
        if self.is_imported(func) { "is imported" } else { "awaits its body" }
    }

    /// Whether a function is imported. Constant cost.
    pub(super) fn is_imported(&self, func: Func) -> bool {
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
        let name = &self.declarations().funcs[func].name;
        HostError::Failed(format!("the body of @{name} has not come"))
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
            HostError::Trap(kind) => Outcome::Trapped { kind, site },
            HostError::Failed(message) => Outcome::HostFailed { message, site },
        }
    }

    /// Executes a store that belongs to a transition ([`transition::mapping::Entry::run`]).
    ///
    /// # Errors
    /// When the store is out of bounds; nothing is written then.
    pub fn write(&mut self, write: &Write) -> Result<(), OutOfBounds> {
        globals::execute(&mut self.memories, &mut self.globals, write)
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

    /// The memories.
    pub fn memories(&self) -> &Memories {
        &self.memories
    }

    /// The memories, for the embedder to change between runs.
    pub fn memories_mut(&mut self) -> &mut Memories {
        &mut self.memories
    }

    /// The bits of the globals, in order of declaration.
    pub fn globals(&self) -> &[u64] {
        self.globals.values()
    }

    /// Sets a global, mutable or not, since the embedder decides the value of an imported one. Bits
    /// outside its type are cleared.
    ///
    /// # Panics
    /// When the module declares no such global.
    pub fn set_global(&mut self, global: Global, bits: u64) {
        let ty = self.declarations().globals[global].ty;
        self.globals.set(global.index(), bits & ty.mask());
    }

    /// The bits of the entries of a table.
    ///
    /// # Panics
    /// When the module declares no such table.
    pub fn table(&self, table: Table) -> &[u64] {
        self.globals.tables.entries(table)
    }

    /// Sets an entry of a table. Returns false, and changes nothing, when the index is out of
    /// bounds, or the entry is an initial one of a fixed table ([`ir::module::TableDecl::fixed`]).
    ///
    /// # Panics
    /// When the module declares no such table.
    pub fn set_table_entry(&mut self, table: Table, index: u64, bits: u64) -> bool {
        // Versions may call the function of such an entry without reading the table
        // (`no_embedder_writes_a_fixed_table`).
        let decl = &self.declarations().tables[table];
        if decl.fixed && index < u64::from(decl.size) {
            return false;
        }
        self.globals.tables.fill(table, index, bits, 1).is_ok()
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

    /// A digest of memories, their sizes, globals, tables and dropped segments. Cost: constant
    /// where memory is tracked ([`Options::track_memory`]), else the size of memories and tables.
    pub fn memory_digest(&self) -> u64 {
        self.memories.digest().wrapping_add(self.globals.digest())
    }

    /// The same digest, computed from the contents. Tests compare it with the tracked one. Cost:
    /// the size of memories and tables.
    pub fn computed_memory_digest(&self) -> u64 {
        self.memories.computed_digest().wrapping_add(self.globals.computed_digest())
    }

    /// Whether two machines have equal memories, globals, tables and dropped segments. Cost: the
    /// size of memories and tables.
    pub fn same_memory(&self, other: &Machine) -> bool {
        self.memories == other.memories
            && self.globals.values() == other.globals.values()
            && self.globals.tables == other.globals.tables
    }

    /// Names an instruction of a function, or with `None` the function itself, as a site.
    ///
    /// # Panics
    /// When the module declares no such function.
    pub fn site(&self, func: Func, inst: Option<Inst>) -> Site {
        Site { func, function: self.declarations().funcs[func].name.clone(), inst }
    }
}
