//! Finished code and its lifetime.
//!
//! Each piece of code has a place of its own in the arena of its engine ([`crate::arena`]), and is
//! freed separately. Code is reference-counted. The handles of the embedder, the [`crate::Vm`] that
//! has installed it, and a run that may have a frame in it each hold a count.

use crate::arena::{CodeArena, CodeSpace};
use crate::calls::ContextCode;
use crate::counters::NativeCounts;
use crate::direct::BoundFunctions;
use crate::error::CompileError;
use crate::exits::StackMaps;
use crate::linked::linked;
use crate::lower::{Lowered, inst_of};
use crate::observe::{CodeObserver, Piece, PieceKind, PiecePart};
use crate::points::Cell;
use crate::roots::RootMaps;
use crate::sys::ExitFrame;
use crate::sys::registry::{Registration, register};
use crate::sys::traps::TrapTable;
use crate::traps::{is_of_a_load, load_code};
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::{CompiledCode, Context as Compilation};
use cranelift_entity::packed_option::PackedOption;
use ir::{Func, Inst, InstData, Signature};
use std::io;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use transition::copy::InlinedSites;

/// The number of pieces of code that exist in this process, over all virtual machines. Tests for
/// leaks read it.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// The number of pieces of native code that exist in this process now, stubs included. Constant
/// cost.
pub fn live_code() -> usize {
    LIVE.load(Ordering::Relaxed)
}

/// Maps offsets of the code to instructions.
#[derive(Debug, Default)]
struct Places {
    /// The ends of source ranges in ascending order, each with the instruction that the range comes
    /// from. Ranges side by side have different ones.
    ends: Box<[(u32, PackedOption<Inst>)]>,
}

impl Places {
    fn of(compiled: &Compilation) -> Places {
        let buffer = &compiled_of(compiled).buffer;
        let mut ends: Vec<(u32, PackedOption<Inst>)> = Vec::new();
        for range in buffer.get_srclocs_sorted() {
            let inst = inst_of(range.loc).into();
            match ends.last_mut().filter(|last| last.1 == inst) {
                Some(last) => last.0 = range.end,
                None => ends.push((range.end, inst)),
            }
        }
        Places { ends: ends.into() }
    }

    fn at(&self, offset: u32) -> Option<Inst> {
        let at = self.ends.partition_point(|(end, _)| *end <= offset);
        self.ends.get(at)?.1.expand()
    }
}

/// The loads that Cranelift made a part of the instruction that uses them, by offset of the code.
/// The source location there names the user (`a_load_inside_another_instruction_has_its_place`).
fn inner_loads(compiled: &Compilation, places: &Places, lowered: &Lowered) -> Box<[(u32, Inst)]> {
    let traps = compiled_of(compiled).buffer.traps().iter();
    let mut inner: Vec<(u32, Inst)> = Vec::new();
    for trap in traps.filter(|trap| is_of_a_load(trap.code)) {
        let user = places.at(trap.offset);
        let before = user.map_or(lowered.loads.len(), |user| lowered.loads_before[user] as usize);
        // A load is the first one that is not lowered before it.
        let is_itself = user.is_some() && lowered.loads.get(before).copied() == user;
        let last = (0..before).rev().find(|&load| load_code(load) == trap.code);
        let load = last.map(|load| lowered.loads[load]).filter(|_| !is_itself);
        inner.extend(load.map(|load| (trap.offset, load)));
    }
    inner.sort_unstable();
    inner.into()
}

/// A piece of native code. Dropping the last reference frees its memory.
pub struct MachineCode {
    /// The memory. Taken out when the code is dropped.
    space: ManuallyDrop<CodeSpace>,
    range: Range<usize>,
    /// Registers the trapping instructions with the signal handler. Dropped before the code is
    /// freed.
    registration: ManuallyDrop<Registration>,
    places: Places,
    /// See [`inner_loads`].
    inner_loads: Box<[(u32, Inst)]>,
    exits: StackMaps,
    roots: RootMaps,
    /// The observers to call when the code is freed.
    observers: Arc<[Arc<dyn CodeObserver>]>,
    /// The bytes of this code, counted against the engine's limit.
    _share: BudgetShare,
    /// The function of each direct call, in the order of instructions.
    callees: Box<[(Inst, Func)]>,
    /// The number of each `userN` trap, in the order of instructions.
    numbers: Box<[(Inst, u32)]>,
    /// Data whose addresses are part of the code; `_cells` and `_counters` likewise.
    _performed: Box<[Box<InstData>]>,
    _cells: Arc<[Cell]>,
    _counters: Option<Arc<NativeCounts>>,
    /// The words of the buffer that the code uses.
    pub(crate) buffer: usize,
    /// The bytes of stack below the frame pointer.
    frame: u32,
    /// Whether the prologue compares the stack with its limit.
    pub(crate) checks_stack: bool,
    pub(crate) func: Func,
    /// Maps each compiled instruction to the instruction of the version it is a copy of. `None` is
    /// the identity.
    pub(crate) origins: Option<Box<[Option<Inst>]>>,
    /// The sites of inlined code, by instruction of the version.
    pub(crate) sites: Option<Arc<InlinedSites>>,
    /// See [`About::lazy`].
    pub(crate) lazy: LazyStubs,
    /// The stubs whose addresses are part of the code.
    _cold: LazyStubs,
    /// The functions that the code calls without a shim. Keeps their data.
    pub(crate) bound: BoundFunctions,
    _contexts: ContextCode,
}

/// The stubs of functions without code, by signature.
pub(crate) type LazyStubs = Box<[(Signature, Arc<MachineCode>)]>;

impl std::fmt::Debug for MachineCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MachineCode({}, {} bytes)", self.func, self.range.len())
    }
}

/// The bytes of machine code that an engine has made and that still exist, their limit, and their
/// memory.
#[derive(Clone, Debug)]
pub(crate) struct CodeBudget {
    used: Arc<AtomicUsize>,
    limit: usize,
    arena: CodeArena,
}

impl CodeBudget {
    pub(crate) fn new(limit: usize) -> CodeBudget {
        CodeBudget { used: Arc::default(), limit, arena: CodeArena::new() }
    }

    /// Takes `bytes` from the budget. Returns `None`, and takes nothing, if fewer are left.
    fn take(&self, bytes: usize) -> Option<BudgetShare> {
        let taken = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).ok()?;
        Some(BudgetShare { used: Arc::clone(&self.used), bytes })
    }
}

/// The bytes taken from a budget, until this value is dropped.
#[derive(Debug)]
struct BudgetShare {
    used: Arc<AtomicUsize>,
    bytes: usize,
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The properties of a function that its code keeps.
pub(crate) struct About {
    pub(crate) func: Func,
    pub(crate) name: String,
    /// The name of the function or stub, and the kind of the code, for observers.
    pub(crate) piece: (String, PieceKind),
    pub(crate) observers: Arc<[Arc<dyn CodeObserver>]>,
    pub(crate) origins: Option<Box<[Option<Inst>]>>,
    pub(crate) sites: Option<Arc<InlinedSites>>,
    pub(crate) lowered: Lowered,
    pub(crate) cells: Arc<[Cell]>,
    pub(crate) counters: Option<Arc<NativeCounts>>,
    pub(crate) checks_stack: bool,
    /// The stubs of all signatures with which the code calls: a callee may have no code.
    pub(crate) lazy: LazyStubs,
    /// The stubs for calls in cold blocks.
    pub(crate) cold: LazyStubs,
    /// The functions that the code calls without a shim.
    pub(crate) bound: BoundFunctions,
    /// The cells of calls, whose addresses are part of the code.
    pub(crate) contexts: ContextCode,
}

impl MachineCode {
    /// Compiles the function lowered into `compilation`, makes its code executable and registers
    /// its traps. Costs one compilation by Cranelift.
    ///
    /// # Errors
    /// [`CompileError::OutOfMemory`] beyond the budget or if the system has no memory, and
    /// [`CompileError::Codegen`] for all other failures. The memory is freed in each case.
    pub(crate) fn compile(
        isa: &OwnedTargetIsa,
        budget: &CodeBudget,
        compilation: &mut Compilation,
        about: About,
    ) -> Result<MachineCode, CompileError> {
        let failed = |what: String| CompileError::Codegen { function: about.name.clone(), what };
        compilation
            .compile(&**isa, &mut ControlPlane::default())
            .map_err(|error| failed(error.inner.to_string()))?;
        let compiled = compiled_of(compilation);
        let bytes = linked(compiled).map_err(failed)?;
        let exits = StackMaps::of(compiled, &about.lowered).map_err(failed)?;
        let roots = RootMaps::of(compiled).map_err(failed)?;
        let frame = compiled.buffer.frame_layout();
        let frame = frame.map_or(u32::MAX, |layout| layout.frame_to_fp_offset);
        let traps = compiled.buffer.traps();
        let table = TrapTable::new(traps.iter().map(|trap| (trap.offset, trap.code)));
        let places = Places::of(compilation);
        let inner_loads = inner_loads(compilation, &places, &about.lowered);
        let share = budget.take(bytes.len()).ok_or(CompileError::OutOfMemory)?;
        let space = budget.arena.place(&bytes).map_err(|error| match error.kind() {
            io::ErrorKind::OutOfMemory => CompileError::OutOfMemory,
            _ => failed(error.to_string()),
        })?;
        let range = space.range();
        let registration = match register([(range.clone(), Arc::new(table))]) {
            Ok(registration) => registration,
            Err(error) => {
                // SAFETY: the registration failed, so the signal handler's list has no entry for
                // the code. No caller has its address yet, so no thread can execute it.
                unsafe { space.free() };
                return Err(failed(error.to_string()));
            }
        };
        LIVE.fetch_add(1, Ordering::Relaxed);
        let code = MachineCode {
            space: ManuallyDrop::new(space),
            range,
            observers: about.observers,
            registration: ManuallyDrop::new(registration),
            places,
            inner_loads,
            exits,
            roots,
            _share: share,
            buffer: about.lowered.buffer,
            callees: about.lowered.callees.into_iter().collect(),
            numbers: about.lowered.numbers.into_iter().collect(),
            _performed: about.lowered.performed.into(),
            _cells: about.cells,
            _counters: about.counters,
            frame,
            checks_stack: about.checks_stack,
            func: about.func,
            origins: about.origins,
            sites: about.sites,
            lazy: about.lazy,
            _cold: about.cold,
            bound: about.bound,
            _contexts: about.contexts,
        };
        let (name, kind) = &about.piece;
        code.announce(name, *kind);
        Ok(code)
    }

    /// Tells the observers of this code.
    fn announce(&self, name: &str, kind: PieceKind) {
        if self.observers.is_empty() {
            return;
        }
        // SAFETY: the range contains finished code, which is readable, and which nobody changes.
        // The slice ends before the code can be freed, since `self` is borrowed.
        let bytes = unsafe { std::slice::from_raw_parts(self.entry(), self.range.len()) };
        let parts = self.parts();
        let piece = Piece { name, kind, address: self.range.start, bytes, parts: &parts };
        self.observers.iter().for_each(|observer| observer.added(&piece));
    }

    /// The parts of the code that come from instructions.
    fn parts(&self) -> Vec<PiecePart> {
        let mut start = 0;
        let mut parts = Vec::new();
        for &(end, _) in &self.places.ends {
            let bytes = std::mem::replace(&mut start, end)..end;
            let (func, inst) = self.site_at(self.range.start + bytes.start as usize);
            parts.extend(inst.map(|inst| PiecePart { bytes, func, inst }));
        }
        parts
    }

    /// The size of the machine code in bytes.
    pub fn size(&self) -> usize {
        self.range.len()
    }

    /// The bytes of stack below the frame pointer.
    pub(crate) fn frame(&self) -> u32 {
        self.frame
    }

    /// The size of the stack maps of its exits in bytes ([`crate::Exits::Described`]).
    pub fn described(&self) -> usize {
        self.exits.size()
    }

    /// Copies the values of an exit into the buffer, and returns the number of its OSR point.
    /// Returns `None` if this code has no such exit.
    ///
    /// # Safety
    /// [`crate::sys::exit`] made the frame for a call from this code and has not popped it.
    pub(crate) unsafe fn read_exit(
        &self,
        frame: *const ExitFrame,
        buffer: &mut [u64],
    ) -> Option<u32> {
        // SAFETY: the caller guarantees that `sys::exit` made the frame, return address included,
        // and has not popped it.
        let returns_to = unsafe { (*frame).returns_to } as usize;
        let offset = returns_to.checked_sub(self.range.start)?;
        // SAFETY: the caller guarantees a live frame that `sys::exit` made for a call from this
        // code, and `self.exits` describes this code.
        unsafe { self.exits.read(offset as u32, frame, buffer) }
    }

    /// The words of a frame that hold references during the call that returns to an address of this
    /// code ([`RootMaps::of_call`]).
    pub(crate) fn roots_at(&self, returns_to: usize) -> &[u32] {
        self.roots.of_call((returns_to - self.range.start) as u32)
    }

    /// The function of this code.
    pub fn func(&self) -> Func {
        self.func
    }

    /// The address of the first instruction.
    pub(crate) fn entry(&self) -> *const u8 {
        std::ptr::with_exposed_provenance(self.range.start)
    }

    /// The addresses of the code.
    pub(crate) fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// The function and the instruction at an address of the code. For inlined code: the callee,
    /// and an instruction of its base.
    pub(crate) fn site_at(&self, pc: usize) -> (Func, Option<Inst>) {
        self.site_of(self.inst_at(pc))
    }

    /// The function and the instruction that an instruction of the version stands for.
    fn site_of(&self, inst: Option<Inst>) -> (Func, Option<Inst>) {
        let inlined = inst.and_then(|inst| self.sites.as_ref()?.get(&inst));
        inlined.map_or((self.func, inst), |(func, inst)| (*func, Some(*inst)))
    }

    /// The function and the instruction that traps at an address of the code. It differs from
    /// [`MachineCode::site_at`] where an instruction of the processor contains a load.
    pub(crate) fn trap_site_at(&self, pc: usize) -> (Func, Option<Inst>) {
        let offset = (pc - self.range.start) as u32;
        let load = self.inner_loads.binary_search_by_key(&offset, |(at, _)| *at);
        let load = load.ok().map(|index| self.inner_loads[index].1);
        load.map_or_else(|| self.site_at(pc), |load| self.site_of(self.origin(load)))
    }

    /// The function of the direct call at an address of the code. `None` without a direct call
    /// there.
    pub(crate) fn callee_at(&self, pc: usize) -> Option<Func> {
        let inst = self.places.at((pc - self.range.start) as u32)?;
        let at = self.callees.binary_search_by_key(&inst, |(call, _)| *call).ok()?;
        Some(self.callees[at].1)
    }

    /// The number of the `userN` trap at an address of the code. `None` without such a trap there.
    pub(crate) fn number_at(&self, pc: usize) -> Option<u32> {
        let inst = self.places.at((pc - self.range.start) as u32)?;
        let at = self.numbers.binary_search_by_key(&inst, |(trap, _)| *trap).ok()?;
        Some(self.numbers[at].1)
    }

    /// The instruction of the version at an address of the code. `None` if the code there comes
    /// from no instruction.
    pub(crate) fn inst_at(&self, pc: usize) -> Option<Inst> {
        self.origin(self.places.at((pc - self.range.start) as u32)?)
    }

    /// The instruction of the version that a compiled one is a copy of.
    fn origin(&self, inst: Inst) -> Option<Inst> {
        match &self.origins {
            Some(origins) => *origins.get(inst.as_u32() as usize)?,
            None => Some(inst),
        }
    }
}

fn compiled_of(compilation: &Compilation) -> &CompiledCode {
    compilation.compiled_code().expect("jit: the function was compiled")
}

impl Drop for MachineCode {
    fn drop(&mut self) {
        // Call the observers before other code can get the address.
        self.observers.iter().for_each(|observer| observer.freed(self.range.start));
        // SAFETY: both fields are taken once, here, and nothing uses them afterwards. No thread
        // executes the code: each machine whose run may reach it or return to it holds a
        // reference (`vm::reclaim`), so the last such run is gone. The registration goes first, so
        // that no signal handler finds freed code in the list.
        unsafe {
            ManuallyDrop::drop(&mut self.registration);
            ManuallyDrop::take(&mut self.space).free();
        }
        LIVE.fetch_sub(1, Ordering::Relaxed);
    }
}
