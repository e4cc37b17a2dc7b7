//! The state of a machine that runs natively.

use super::block::{Block, Current};
use super::deopt::Handler;
use super::link::{Link, Transition};
use super::region::Addresses;
use super::stop::{RunError, Stop};
use super::tiering::{Profile, Quiet, Tiering};
use super::{helpers, stop};
use crate::code::Code;
use crate::context::{Context, MemoryView, TableView};
use crate::engine::{BUFFER_WORDS, Engine};
use crate::error::CompileError;
use crate::lower::call::canonical_signatures;
use crate::stubs::Stub;
use crate::version::Version;
use cranelift_entity::EntityRef;
use interp::{EarlyEnd, Host, Machine, Program, VersionId};
use ir::{Func, Memory, Module, Table};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};
use std::ptr::NonNull;
use std::sync::{Arc, Weak};

/// The state behind a [`super::Vm`].
///
/// While native code runs, helpers reach the state through the pointer in the context, one at a
/// time. The function that entered native code keeps no reference to the state meanwhile.
pub(super) struct State {
    pub(super) engine: Engine,
    pub(super) module: Arc<Module>,
    /// The modules before `module`. Code that was compiled for them stays valid
    /// ([`super::Vm::extend`]). The weak references keep their addresses from being reused, so
    /// `fits` may compare addresses.
    pub(super) earlier: Vec<Weak<Module>>,
    pub(super) machine: Machine,
    /// The program that the machine was made with or extended to. A different program shows that
    /// the embedder has exchanged the machine.
    pub(super) program: Program,
    pub(super) block: Arc<Block>,
    /// The current block, for threads that end runs from outside.
    pub(super) interrupts: Current,
    /// The words through which values cross. Native code holds their address.
    pub(super) buffer: Box<[u64]>,
    /// The address ranges of the guarded memories. A fault at another address is not a trap of the
    /// program.
    pub(super) guarded: Addresses,
    memories: Box<[MemoryView]>,
    tables: Box<[TableView]>,
    signatures: Box<[u32]>,
    /// The base version of each function in the interpreter.
    pub(super) bases: BTreeMap<Func, VersionId>,
    /// The installed version of each function.
    pub(super) installed: BTreeMap<Func, Arc<Version>>,
    /// The links of all OSR points, by the address of the point's cell.
    pub(super) links: BTreeMap<usize, Link>,
    /// All code that may be executed, by its first address.
    pub(super) codes: BTreeMap<usize, Arc<Code>>,
    /// Whether `codes` may contain code that is not needed any more.
    pub(super) is_stale: bool,
    /// The stubs of functions without code, by number of the function.
    pub(super) lazy: Vec<Arc<Code>>,
    pub(super) tiering: Option<Box<dyn Tiering + Send>>,
    pub(super) profile: Profile,
    pub(super) handler: Option<Box<dyn Handler + Send>>,
    /// Whether the handler runs. `handler` is then empty.
    pub(super) is_handling: bool,
    /// The transitions that the interpreter made, and those of cells that were read. Cells count
    /// the rest.
    pub(super) transitions: BTreeMap<Transition, u64>,
    /// The host of the current run.
    pub(super) host: Option<NonNull<dyn Host>>,
    /// The reason why native code stops, if it has a site or needs none.
    pub(super) stop: Option<Stop>,
    /// The reason why native code stops, if its site is the call of the helper.
    pub(super) early: Option<EarlyEnd>,
    /// The number of entries into native code and runs of the interpreter that have not ended.
    pub(super) depth: usize,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let installed: Vec<&Func> = self.installed.keys().collect();
        f.debug_struct("State").field("installed", &installed).finish_non_exhaustive()
    }
}

impl State {
    pub(super) fn new(
        engine: &Engine,
        module: &Arc<Module>,
        machine: Machine,
        guarded: Addresses,
    ) -> Result<Box<State>, CompileError> {
        let stubs = lazy_stubs(engine, module, 0)?;
        let block = Block::new(module.funcs.len());
        let mut state = Box::new(State {
            engine: engine.clone(),
            module: Arc::clone(module),
            earlier: Vec::new(),
            program: machine.program().clone(),
            machine,
            interrupts: Current::new(Arc::clone(&block)),
            block,
            buffer: vec![0; BUFFER_WORDS].into(),
            guarded,
            memories: [].into(),
            tables: [].into(),
            signatures: [].into(),
            bases: BTreeMap::new(),
            installed: BTreeMap::new(),
            links: BTreeMap::new(),
            codes: BTreeMap::new(),
            is_stale: false,
            lazy: Vec::new(),
            tiering: None,
            profile: Profile::new(&Quiet, None),
            handler: None,
            is_handling: false,
            transitions: BTreeMap::new(),
            host: None,
            stop: None,
            early: None,
            depth: 0,
        });
        state.lay_out(stubs);
        state.profile = Profile::new(&Quiet, state.heeded());
        state.mark_loops(0);
        Ok(state)
    }

    /// Allocates the views for all declarations of the module, and points the calls of each
    /// function to its code or its stub. `stubs` are those of the functions that are new. Linear in
    /// the declarations.
    pub(super) fn lay_out(&mut self, stubs: Vec<Arc<Code>>) {
        let module = Arc::clone(&self.module);
        let none = MemoryView { base: std::ptr::null_mut(), bytes: 0 };
        self.memories = vec![none; module.memories.len()].into();
        self.tables =
            vec![TableView { entries: std::ptr::null(), count: 0 }; module.tables.len()].into();
        self.signatures = canonical_signatures(&module);
        for stub in stubs {
            let func = Func::new(self.lazy.len());
            self.bases.extend(self.machine.current(func).map(|base| (func, base)));
            self.codes.insert(stub.range().start, Arc::clone(&stub));
            self.lazy.push(stub);
        }
        for func in module.funcs.keys() {
            match self.installed.get(&func).map(|version| version.code.entry()) {
                Some(code) => self.point_at(func, code),
                None => self.point_at_stub(func),
            }
        }
        self.fill_context();
    }

    /// Writes the fields of the context that stay the same while native code runs. The addresses
    /// remain valid: each lies in a box, which does not move its contents.
    fn fill_context(&mut self) {
        let context = self.block.context();
        let vm = std::ptr::from_mut(self).cast();
        // SAFETY: this state owns the block of the context. `new` and `extend` call this outside of
        // a run, so no native code reads the block.
        unsafe {
            (*context).buffer = self.buffer.as_mut_ptr();
            (*context).tables = self.tables.as_ptr();
            (*context).memories = self.memories.as_ptr();
            (*context).signatures = self.signatures.as_ptr();
            (*context).functions = self.signatures.len() as u64;
            (*context).vm = vm;
            (*context).helpers = helpers::TABLE;
        }
    }

    /// Makes calls of a function run some code.
    pub(super) fn point_at(&mut self, func: Func, code: *const u8) {
        // SAFETY: `func` is a function of `self.module`, for which `new` or `extend` made the
        // block. Native code reads the word only while this thread runs it, and it does not run
        // now.
        unsafe { *self.block.function(func.index()) = code }
    }

    /// Makes calls of a function run its stub, which asks for code.
    pub(super) fn point_at_stub(&mut self, func: Func) {
        let code = self.lazy[func.index()].entry();
        self.point_at(func, code);
    }

    /// Writes the current addresses of memories, tables and globals, and the fuel, to the context.
    /// Linear in their number.
    ///
    /// # Errors
    /// [`RunError::Exchanged`] if they are not those that the machine was made with. Embedders and
    /// hosts get mutable references to the machine and its memories, and may exchange them
    /// (`memories_that_were_exchanged_are_refused`). Native code relies on the guards behind
    /// memories and on the number of globals.
    pub(super) fn share(&mut self) -> Result<(), RunError> {
        if !self.machine.program().is(&self.program) {
            return Err(RunError::Exchanged);
        }
        for (index, view) in self.memories.iter_mut().enumerate() {
            let bytes = self.machine.memory_bytes_mut(Memory::new(index));
            if self.guarded.get(index).is_some_and(|range| range.start != bytes.as_ptr().addr()) {
                return Err(RunError::Exchanged);
            }
            *view = MemoryView { base: bytes.as_mut_ptr(), bytes: bytes.len() as u64 };
        }
        if self.machine.globals_mut().len() < self.module.globals.len() {
            return Err(RunError::Exchanged);
        }
        for (index, view) in self.tables.iter_mut().enumerate() {
            let entries = self.machine.table_entries_mut(Table::new(index));
            *view = TableView { entries: entries.as_ptr(), count: entries.len() as u64 };
        }
        let globals = self.machine.globals_mut().as_mut_ptr();
        let fuel = i64::try_from(self.machine.fuel()).unwrap_or(i64::MAX);
        // SAFETY: this state owns the block of the context. Native code does not run: the caller is
        // about to enter it, or is a helper for which it waits.
        unsafe {
            (*self.context()).globals = globals;
            (*self.context()).fuel = fuel;
        }
        Ok(())
    }

    /// Reads the fuel back from the context, if code counts it. Native code writes memories and
    /// globals in place.
    pub(super) fn take_back(&mut self) {
        if self.engine.config().interruption == crate::Interruption::Fuel {
            // SAFETY: this state owns the block of the context. Native code does not run: it has
            // returned, or waits for the helper that calls.
            let fuel = unsafe { (*self.context()).fuel };
            self.machine.set_fuel(fuel.max(0) as u64);
        }
    }

    pub(super) fn context(&self) -> *mut Context {
        self.block.context()
    }

    /// The piece of code that contains an address.
    pub(super) fn code_at(&self, pc: usize) -> Option<&Arc<Code>> {
        let (_, code) = self.codes.range(..=pc).next_back()?;
        code.range().contains(&pc).then_some(code)
    }

    /// Keeps code as long as it may be executed.
    pub(super) fn keep(&mut self, code: &Arc<Code>) {
        if let Entry::Vacant(place) = self.codes.entry(code.range().start) {
            place.insert(Arc::clone(code));
            self.is_stale = true;
        }
    }

    /// Releases code that no call and no OSR point leads to any more. Does nothing during a run,
    /// which may have frames in such code. Linear in functions and points if a link or version has
    /// changed.
    pub(super) fn sweep(&mut self) {
        if self.depth > 0 || !std::mem::take(&mut self.is_stale) {
            return;
        }
        let installed = self.installed.values().map(|version| &version.code);
        let linked = self.links.values().flat_map(Link::codes);
        let needed: HashSet<usize> = self
            .lazy
            .iter()
            .chain(installed)
            .chain(linked)
            .map(|code| code.range().start)
            .collect();
        self.codes.retain(|start, _| needed.contains(start));
    }

    /// The block in which the interpreter looks for interrupts. `None` without
    /// [`crate::Interruption::Signal`].
    pub(super) fn heeded(&self) -> Option<Arc<Block>> {
        let asks = self.engine.config().interruption == crate::Interruption::Signal;
        asks.then(|| Arc::clone(&self.block))
    }

    pub(super) fn set_tiering(&mut self, tiering: Box<dyn Tiering + Send>) {
        self.profile = Profile::new(&*tiering, self.heeded());
        self.tiering = Some(tiering);
        self.mark_loops(0);
    }

    /// Takes the reason why native code stops; [`RunError::Lost`] if no helper has left one.
    pub(super) fn take_stop(&mut self) -> Stop {
        self.stop.take().unwrap_or(Stop::Failed(stop::RunError::Lost))
    }
}

/// The stubs of all functions except the first `has`. Functions with the same signature share one.
pub(super) fn lazy_stubs(
    engine: &Engine,
    module: &Module,
    has: usize,
) -> Result<Vec<Arc<Code>>, CompileError> {
    module
        .funcs
        .keys()
        .skip(has)
        .map(|func| engine.stub(Stub::Lazy(module.signature(func).clone())))
        .collect()
}
