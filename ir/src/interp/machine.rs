//! An instance of a module: its memories, its versions, and the activations of a run.

use super::activations::{Activations, fill_poison};
use super::code::Code;
use super::exec::execute;
use super::host::{Host, HostError};
use super::instantiate::{Counts, InstantiateError, add_storage, write_segments};
use super::limits::{Limits, Options};
use super::memory::{self, Globals, Memories, OutOfBounds};
use super::outcome::{Outcome, Site};
use super::program::Program;
use super::tables::Tables;
use super::trace::Trace;
use super::view::{Observer, View};
use crate::entity::{Func, Global, Inst, Point, Table, Value};
use crate::function::Function;
use crate::mapping::{CompensationFault, Entry, Write};
use crate::module::Module;
use cranelift_entity::{EntityRef, entity_impl};
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// A version of a function, in one machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VersionId(u32);
entity_impl!(VersionId, "version");

/// What `Machine::current` holds for functions without a body.
const NO_VERSION: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub(super) struct Version {
    pub(super) func: Func,
    pub(super) code: Arc<Code>,
}

/// Whether a run goes on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Run {
    /// The observer paused it before an instruction; [`Machine::run`] goes on.
    Paused,
    /// It ended.
    Done(Outcome),
}

/// Why a transfer is refused. The machine is unchanged then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransferError {
    /// No run is paused.
    NotPaused,
    /// The version is one of another function.
    OtherFunction,
    /// The version does not have the instruction of the point.
    NoSuchPoint(Point),
    /// The version does not have the value.
    NoSuchValue(Value),
    /// The frame of the version is larger than the limits allow.
    StackOverflow,
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransferError::NotPaused => f.write_str("no run is paused"),
            TransferError::OtherFunction => f.write_str("the version is one of another function"),
            TransferError::NoSuchPoint(point) => write!(f, "the version does not have {}", point.inst()),
            TransferError::NoSuchValue(value) => write!(f, "the version does not have {value}"),
            TransferError::StackOverflow => f.write_str("the frame is larger than the limits allow"),
        }
    }
}

impl std::error::Error for TransferError {}

/// Why an entry cannot be fired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FireError {
    /// The compensation code fails.
    Code(CompensationFault),
    /// The transfer is refused.
    Transfer(TransferError),
    /// A store that belongs to the transition does not lie within its memory.
    Store(OutOfBounds),
}

impl fmt::Display for FireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FireError::Code(fault) => write!(f, "{fault}"),
            FireError::Transfer(error) => write!(f, "{error}"),
            FireError::Store(error) => write!(f, "a store of the compensation code fails: {error}"),
        }
    }
}

impl std::error::Error for FireError {}

/// An instance of a module. See the documentation of [`crate::interp`].
#[derive(Clone, Debug)]
pub struct Machine {
    pub(super) program: Program,
    pub(super) versions: Vec<Version>,
    /// The version that new activations of each function run.
    pub(super) current: Vec<u32>,
    pub(super) activations: Activations,
    pub(super) memories: Memories,
    pub(super) globals: Globals,
    pub(super) trace: Trace,
    pub(super) fuel: u64,
    /// Whether the observer was already asked about the instruction at which the run goes on.
    pub(super) asked: bool,
    /// The function that could not be started for want of stack.
    refused: Option<Func>,
    /// Whether the run goes on exactly, whoever watches: it was transferred, and has values that fast code would not miss
    /// if the transfer forgot them; or it reached a function that has no fast code.
    pub(super) exact: bool,
}

impl Machine {
    /// An instance of a verified module with default options. Does not run the start function.
    ///
    /// # Errors
    /// When a limit has no room for a memory or table, a segment does not lie within its memory or table,
    /// or a function has no body.
    ///
    /// # Panics
    /// As [`Code::new`].
    pub fn new(module: &Module, limits: Limits) -> Result<Machine, InstantiateError> {
        Machine::with_options(&Program::new(module), limits, Options::default())
    }

    /// An instance of a pre-decoded module. Does not run the start function.
    ///
    /// # Errors
    /// As [`Machine::new`].
    pub fn with_options(program: &Program, limits: Limits, options: Options) -> Result<Machine, InstantiateError> {
        let mut machine = Machine {
            program: program.clone(),
            versions: Vec::new(),
            current: Vec::new(),
            activations: Activations::new(&limits, options.poison),
            memories: Memories::new(&limits, options.track_memory),
            globals: Globals::new(Tables::new(limits.table_entries, options.track_memory)),
            trace: Trace::new(options.trace),
            fuel: limits.fuel,
            asked: false,
            refused: None,
            exact: false,
        };
        machine.extend(program)?;
        Ok(machine)
    }

    /// Takes up a module that begins like the one the machine has and declares more, so that several modules share
    /// functions, memories, tables and globals: makes what is new, and writes its segments. Does not run the start
    /// function. A run that is paused is given up. Cost: the declarations, and what is new.
    ///
    /// # Errors
    /// As [`Machine::new`]. When a segment does not lie within its memory or table, what is new is there, and
    /// the segments before it are written; otherwise the machine is of no further use.
    ///
    /// # Panics
    /// When the module declares less than the machine has.
    pub fn extend(&mut self, program: &Program) -> Result<(), InstantiateError> {
        let declared = program.declarations();
        assert!(self.current.len() <= declared.funcs.len(), "interp: the module declares less than the machine has");
        self.activations.clear();
        self.program = program.clone();
        let has = Counts::of(&self.memories, &self.globals);
        add_storage(declared, has, &mut self.memories, &mut self.globals)?;
        for (func, decl) in declared.funcs.iter().skip(self.current.len()) {
            self.current.push(NO_VERSION);
            match program.code(func) {
                Some(code) => {
                    let version = self.add_code(func, Arc::clone(code));
                    self.set_current(func, version);
                }
                None if decl.import.is_some() => {}
                None => return Err(InstantiateError::NoBody { function: decl.name.clone() }),
            }
        }
        write_segments(declared, has, &mut self.memories, &mut self.globals.tables)
    }

    /// The module, without bodies.
    pub fn declarations(&self) -> &Module {
        self.program.declarations()
    }

    /// The function run when the module is instantiated, if there is one: invoke it first.
    pub fn start_function(&self) -> Option<Func> {
        self.declarations().start
    }

    /// Adds a version of a function. `module` is the one the machine was made of. Cost: that of
    /// [`Code::new`].
    ///
    /// # Panics
    /// As [`Code::new`] and [`Machine::add_code`].
    pub fn add_version(&mut self, module: &Module, func: Func, function: &Function) -> VersionId {
        self.add_code(func, Arc::new(Code::new(module, function)))
    }

    /// Adds a pre-decoded version of a function. Cost: constant.
    ///
    /// # Panics
    /// When the version takes another number of arguments than the function.
    pub fn add_code(&mut self, func: Func, code: Arc<Code>) -> VersionId {
        let params = self.declarations().signature(func).params.len();
        assert_eq!(code.params as usize, params, "interp: arguments of a version of {func}");
        self.versions.push(Version { func, code });
        VersionId::from_u32(self.versions.len() as u32 - 1)
    }

    /// Makes new activations of a function run this version.
    ///
    /// # Panics
    /// When the version is one of another function.
    pub fn set_current(&mut self, func: Func, version: VersionId) {
        assert_eq!(self.versions[version.0 as usize].func, func, "interp: the function of {version}");
        self.current[func.as_u32() as usize] = version.0;
    }

    /// The version that new activations of a function run; `None` for an imported function.
    pub fn current(&self, func: Func) -> Option<VersionId> {
        Some(self.current[func.as_u32() as usize]).filter(|v| *v != NO_VERSION).map(VersionId)
    }

    /// The pre-decoded form of a version.
    ///
    /// # Panics
    /// When the machine has no such version.
    pub fn code(&self, version: VersionId) -> &Code {
        &self.versions[version.0 as usize].code
    }

    /// Marks instructions of a version for observers of scope `Marked`; instructions that the version
    /// does not have are passed over. Cost: the number of instructions; the first mark copies the code
    /// if other machines share it.
    ///
    /// # Panics
    /// When the machine has no such version.
    pub fn mark(&mut self, version: VersionId, insts: impl IntoIterator<Item = Inst>) {
        Arc::make_mut(&mut self.versions[version.0 as usize].code).set_marks(insts, true);
    }

    /// Takes marks away.
    ///
    /// # Panics
    /// When the machine has no such version.
    pub fn unmark(&mut self, version: VersionId, insts: impl IntoIterator<Item = Inst>) {
        Arc::make_mut(&mut self.versions[version.0 as usize].code).set_marks(insts, false);
    }

    /// Begins a run of a function. Bits of arguments outside their types are dropped. A run that is
    /// paused is given up.
    ///
    /// # Panics
    /// When the function is imported, or the number of arguments is not that of its parameters.
    pub fn start(&mut self, func: Func, args: &[u64]) {
        let version = self.current[func.as_u32() as usize];
        assert!(version != NO_VERSION, "interp: {func} is imported and cannot be started");
        self.activations.clear();
        self.asked = false;
        self.refused = None;
        self.exact = false;
        let params = &self.program.declarations().signature(func).params;
        assert_eq!(params.len(), args.len(), "interp: arguments of {func}");
        match self.activations.push(version, &self.versions[version as usize].code, 0) {
            Some(base) => {
                for ((slot, arg), ty) in self.activations.stack[base..].iter_mut().zip(args).zip(params) {
                    *slot = arg & ty.mask();
                }
            }
            None => self.refused = Some(func),
        }
    }

    /// Goes on with the run that was started, until it ends or the observer pauses it.
    ///
    /// # Panics
    /// When no run is under way.
    pub fn run<O: Observer>(&mut self, host: &mut dyn Host, observer: &mut O) -> Run {
        if let Some(func) = self.refused.take() {
            return Run::Done(Outcome::StackOverflow(self.site(func, None)));
        }
        assert!(self.activations.depth() > 0, "interp: no run is under way");
        execute(self, host, O::SCOPE, &mut |view, inst| observer.before(view, inst))
    }

    /// Runs a function to its end: whenever the observer pauses, the run goes on. An imported function is
    /// called directly.
    ///
    /// # Panics
    /// When the number of arguments is not that of the function's parameters.
    pub fn invoke<O: Observer>(&mut self, func: Func, args: &[u64], host: &mut dyn Host, observer: &mut O) -> Outcome {
        if self.current(func).is_none() {
            return self.invoke_import(func, args, host);
        }
        self.start(func, args);
        loop {
            if let Run::Done(outcome) = self.run(host, observer) {
                return outcome;
            }
        }
    }

    fn invoke_import(&mut self, func: Func, args: &[u64], host: &mut dyn Host) -> Outcome {
        let signature = self.program.declarations().signature(func);
        assert_eq!(signature.params.len(), args.len(), "interp: arguments of {func}");
        match super::calls::call_host(&self.program, func, args, host, &mut self.memories) {
            Ok(results) => Outcome::Returned(results.to_vec()),
            Err(error) => self.host_outcome(error, self.site(func, None)),
        }
    }

    pub(super) fn host_outcome(&self, error: HostError, site: Site) -> Outcome {
        match error {
            HostError::Exit(status) => Outcome::Exited(status),
            HostError::Trap(kind) => Outcome::Trapped { kind, site },
            HostError::Failed(message) => Outcome::HostFailed { message, site },
        }
    }

    /// Lets the innermost activation of a paused run go on in another version of its function, at a
    /// point, with exactly the assigned values; all others are [`super::poison`]. The values are given, so all
    /// assignments happen at once. Cost: the frame and the assignments.
    ///
    /// # Errors
    /// See [`TransferError`]; the machine is unchanged then.
    ///
    /// # Panics
    /// When the machine has no such version.
    pub fn transfer(&mut self, to: VersionId, point: Point, assign: &[(Value, u64)]) -> Result<(), TransferError> {
        let from = self.activations.frames.last().filter(|_| self.asked).ok_or(TransferError::NotPaused)?;
        let target = &self.versions[to.0 as usize];
        if self.versions[from.version as usize].func != target.func {
            return Err(TransferError::OtherFunction);
        }
        let code = &target.code;
        let pc = code.pc_of(point).ok_or(TransferError::NoSuchPoint(point))?;
        if let Some((value, _)) = assign.iter().find(|(value, _)| code.slot_of(*value).is_none()) {
            return Err(TransferError::NoSuchValue(*value));
        }
        let (base, replaced) = (from.base, from.consts);
        // The activation that is replaced does not count.
        self.activations.consts -= replaced as usize;
        if !self.activations.reserve(base, code) {
            self.activations.consts += replaced as usize;
            return Err(TransferError::StackOverflow);
        }
        let frame = &mut self.activations.stack[base..base + code.frame_size as usize];
        fill_poison(frame);
        for (value, bits) in assign {
            let slot = code.slot_of(*value).expect("checked above");
            frame[slot as usize] = *bits;
        }
        self.exact = true;
        let consts = code.consts();
        let top = self.activations.top_mut();
        top.consts = consts;
        top.version = to.0;
        top.pc = pc;
        Ok(())
    }

    /// Makes a transition from where the run is paused: runs the entry's compensation code on the activation, goes on
    /// in the other version, and executes the stores that belong to it. The entry has to be the one that a mapping from the
    /// paused version to `to` has for the instruction it is paused before ([`View::inst`]): an entry does not say where it is from, so any
    /// other is not noticed, and the run goes on with the wrong values. Cost: that of the code, and of a frame.
    ///
    /// # Errors
    /// See [`FireError`]; the machine is unchanged then, unless it is a store that failed.
    ///
    /// # Panics
    /// When no run is under way, the machine has no such version, or the activation's version lacks a value that the
    /// entry reads.
    pub fn fire(&mut self, to: VersionId, entry: &Entry) -> Result<(), FireError> {
        let view = self.view().expect("interp: no run is under way");
        let mut assigned: SmallVec<[(Value, u64); 16]> = SmallVec::new();
        let writes = entry.run(|v| view.value(v), |v, bits| assigned.push((v, bits))).map_err(FireError::Code)?;
        self.transfer(to, entry.target, &assigned).map_err(FireError::Transfer)?;
        writes.iter().try_for_each(|write| self.write(write)).map_err(FireError::Store)
    }

    /// Executes a store that belongs to a transition ([`crate::mapping::Entry::run`]).
    ///
    /// # Errors
    /// When it does not lie within its memory; nothing is written then.
    pub fn write(&mut self, write: &Write) -> Result<(), OutOfBounds> {
        memory::execute(&mut self.memories, &mut self.globals, write)
    }

    /// The state of a paused run; `None` when no run is under way.
    pub fn view(&self) -> Option<View<'_>> {
        if self.activations.depth() == 0 {
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

    /// The memories, to be changed by the embedder between runs.
    pub fn memories_mut(&mut self) -> &mut Memories {
        &mut self.memories
    }

    /// The bits of the globals, in order.
    pub fn globals(&self) -> &[u64] {
        self.globals.values()
    }

    /// Sets a global, mutable or not: what an imported one is, the embedder says. Bits outside its type are dropped.
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

    /// Sets an entry of a table; false, and nothing changed, when it has none at the index.
    ///
    /// # Panics
    /// When the module declares no such table.
    pub fn set_table_entry(&mut self, table: Table, index: u64, bits: u64) -> bool {
        self.globals.tables.fill(table, index, bits, 1).is_ok()
    }

    /// The effects so far, of all runs.
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

    /// A digest of memories, their sizes and globals. Cost: constant when tracked
    /// ([`Options::track_memory`]), else the size of the memories.
    pub fn memory_digest(&self) -> u64 {
        self.memories.digest().wrapping_add(self.globals.digest())
    }

    /// The digest computed anew, to test the one that is kept. Cost: the size of the memories.
    pub fn computed_memory_digest(&self) -> u64 {
        self.memories.computed_digest().wrapping_add(self.globals.computed_digest())
    }

    /// Whether memories, tables, globals and dropped segments are equal. Cost: the size of the memories.
    pub fn same_memory(&self, other: &Machine) -> bool {
        self.memories == other.memories
            && self.globals.values() == other.globals.values()
            && self.globals.tables == other.globals.tables
    }

    pub(super) fn site(&self, func: Func, inst: Option<Inst>) -> Site {
        Site { func, function: self.declarations().funcs[func].name.clone(), inst }
    }
}
