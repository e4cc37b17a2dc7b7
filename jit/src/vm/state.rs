//! What a machine that runs natively consists of.

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
/// While native code runs, it is reached through the pointer in the context alone, by helpers, one
/// at a time: whoever entered native code has no reference left.
pub(super) struct State {
    pub(super) engine: Engine,
    pub(super) module: Arc<Module>,
    /// The modules before it: what was compiled for them is as good ([`super::Vm::extend`]).
    pub(super) earlier: Vec<Weak<Module>>,
    pub(super) machine: Machine,
    /// What the machine runs, as long as it is the one made here.
    pub(super) program: Program,
    pub(super) block: Arc<Block>,
    /// The same, for those who end runs from outside.
    pub(super) interrupts: Current,
    /// Where values cross; native code has its address.
    pub(super) buffer: Box<[u64]>,
    /// Where guarded memories lie: a fault elsewhere is none of the program's.
    pub(super) guarded: Addresses,
    memories: Box<[MemoryView]>,
    tables: Box<[TableView]>,
    signatures: Box<[u32]>,
    /// The base version of each function in the interpreter.
    pub(super) bases: BTreeMap<Func, VersionId>,
    /// The installed version of each function.
    pub(super) installed: BTreeMap<Func, Arc<Version>>,
    /// The version of each OSR point and where it leads, by the address of its cell.
    pub(super) links: BTreeMap<usize, Link>,
    /// All code that may be executed, by its first address.
    pub(super) codes: BTreeMap<usize, Arc<Code>>,
    /// Whether `codes` may have code that is not needed any more.
    pub(super) is_stale: bool,
    /// The stubs that stand for functions without code, by function.
    pub(super) lazy: Vec<Arc<Code>>,
    pub(super) tiering: Option<Box<dyn Tiering + Send>>,
    pub(super) profile: Profile,
    pub(super) handler: Option<Box<dyn Handler + Send>>,
    /// Whether it runs, and so is not there.
    pub(super) is_handling: bool,
    /// Transitions of links that are no more, and those the interpreter made.
    pub(super) transitions: BTreeMap<Transition, u64>,
    /// The host of the run that is under way.
    pub(super) host: Option<NonNull<dyn Host>>,
    /// Why native code is being left.
    pub(super) stop: Option<Stop>,
    /// The same, where the place is that of the call of a helper.
    pub(super) early: Option<EarlyEnd>,
    /// Entries into native code and runs of the interpreter that have not ended.
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

    /// Makes room for all that the module declares, and makes calls of each function go where they
    /// have to. The stubs are those of the functions that are new. Cost: linear in the
    /// declarations.
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

    /// Writes what stays the same while native code runs. The addresses stay right: boxes do not
    /// move what they hold.
    fn fill_context(&mut self) {
        let context = self.block.context();
        let vm = std::ptr::from_mut(self).cast();
        // SAFETY: the block is ours, and no native code runs.
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

    /// Makes calls of a function go to some code.
    pub(super) fn point_at(&mut self, func: Func, code: *const u8) {
        // SAFETY: the module has the function.
        unsafe { *self.block.function(func.index()) = code }
    }

    /// Makes calls of a function ask for code.
    pub(super) fn point_at_stub(&mut self, func: Func) {
        let code = self.lazy[func.index()].entry();
        self.point_at(func, code);
    }

    /// Tells native code where memories, tables and globals are now, and how much fuel is left.
    /// Cost: their number.
    ///
    /// # Errors
    /// When they are not those the machine was made with: embedders and hosts get mutable
    /// references to machine and memories, and might exchange them
    /// (`memories_that_were_exchanged_are_refused`). Native code relies on guards behind memories
    /// and on the number of globals.
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
        // SAFETY: the block is ours, and native code waits.
        unsafe {
            (*self.context()).globals = globals;
            (*self.context()).fuel = fuel;
        }
        Ok(())
    }

    /// Takes back what native code has changed besides memory.
    pub(super) fn take_back(&mut self) {
        if self.engine.config().interruption == crate::Interruption::Fuel {
            // SAFETY: the block is ours, and native code waits.
            let fuel = unsafe { (*self.context()).fuel };
            self.machine.set_fuel(fuel.max(0) as u64);
        }
    }

    pub(super) fn context(&self) -> *mut Context {
        self.block.context()
    }

    /// The piece of code that an address lies in.
    pub(super) fn code_at(&self, pc: usize) -> Option<&Arc<Code>> {
        let (_, code) = self.codes.range(..=pc).next_back()?;
        code.range().contains(&pc).then_some(code)
    }

    /// Keeps code for as long as it may be executed.
    pub(super) fn keep(&mut self, code: &Arc<Code>) {
        if let Entry::Vacant(place) = self.codes.entry(code.range().start) {
            place.insert(Arc::clone(code));
            self.is_stale = true;
        }
    }

    /// Lets go of code that no call and no OSR point leads to any more, unless a run is under way,
    /// which may have frames in it. Cost: the number of functions and points, when something has
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

    /// What the interpreter looks at to see that it is to end, if it may be asked to.
    pub(super) fn heeded(&self) -> Option<Arc<Block>> {
        let asks = self.engine.config().interruption == crate::Interruption::Signal;
        asks.then(|| Arc::clone(&self.block))
    }

    pub(super) fn set_tiering(&mut self, tiering: Box<dyn Tiering + Send>) {
        self.profile = Profile::new(&*tiering, self.heeded());
        self.tiering = Some(tiering);
        self.mark_loops(0);
    }

    /// The stop that is under way.
    pub(super) fn take_stop(&mut self) -> Stop {
        self.stop.take().unwrap_or(Stop::Failed(stop::RunError::Lost))
    }
}

/// The stub of each function but the first `has`; functions with the same signature share one.
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
