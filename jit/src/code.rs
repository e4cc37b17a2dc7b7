//! Finished code, and how long it lives.
//!
//! Each piece of code has a Cranelift module of its own, so that its memory can be given back. Code
//! is reference-counted: the embedder's handles, the [`crate::Vm`] it is installed in, and a run
//! that may still have a frame in it each hold a count.

use crate::error::CompileError;
use crate::exits::Exits;
use crate::lower::{Lowered, inst_of};
use crate::points::Cell;
use crate::sys::ExitFrame;
use crate::sys::traps::{Registration, TrapTable};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::{CompiledCode, Context as Compilation};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module as _, ModuleError, default_libcall_names};
use ir::{Func, Inst};
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Pieces of code that exist in this process, of all virtual machines: what tests of leaks count.
/// Stubs are among them.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// Pieces of native code that exist in this process now, stubs included. Cost: constant.
pub fn live_code() -> usize {
    LIVE.load(Ordering::Relaxed)
}

/// Which instruction stands at which offset.
#[derive(Debug, Default)]
struct Places {
    /// Ends of ranges of code, ascending, with the instruction each comes from.
    ends: Vec<(u32, Option<Inst>)>,
}

impl Places {
    fn of(compiled: &Compilation) -> Places {
        let buffer = &compiled_of(compiled).buffer;
        let ranges = buffer.get_srclocs_sorted().iter();
        Places { ends: ranges.map(|range| (range.end, inst_of(range.loc))).collect() }
    }

    fn at(&self, offset: u32) -> Option<Inst> {
        let at = self.ends.partition_point(|(end, _)| *end <= offset);
        self.ends.get(at)?.1
    }
}

/// A piece of native code. Dropping the last count frees its memory.
pub struct Code {
    /// Taken out when the code is dropped.
    module: ManuallyDrop<JITModule>,
    range: Range<usize>,
    /// Tells the signal handler which instructions may trap. Gone before the code is.
    registration: ManuallyDrop<Registration>,
    places: Places,
    exits: Exits,
    /// Counts the bytes of all code of the engine.
    _share: Share,
    /// What the code has addresses of.
    _kept: Lowered,
    _cells: Arc<[Cell]>,
    pub(crate) func: Func,
    pub(crate) name: String,
    /// For each instruction of what was compiled, that of the version it is a copy of; as it is,
    /// without.
    pub(crate) origins: Option<Box<[Option<Inst>]>>,
}

// SAFETY: the code is never changed after it was finished, `JITModule` is only moved and dropped,
// and everything else is shared data or atomic. Which threads may *execute* it is `Vm`'s to say.
unsafe impl Send for Code {}
// SAFETY: as above; no method changes anything.
unsafe impl Sync for Code {}

impl std::fmt::Debug for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Code({}, {} bytes)", self.name, self.range.len())
    }
}

/// The bytes of machine code that an engine has made and that still exist.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    used: Arc<AtomicUsize>,
    limit: usize,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Budget {
        Budget { used: Arc::default(), limit }
    }

    /// Takes so many bytes; `None` when there are not as many left.
    fn take(&self, bytes: usize) -> Option<Share> {
        let taken = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).ok()?;
        Some(Share { used: Arc::clone(&self.used), bytes })
    }
}

/// Bytes taken from a budget, until this is dropped.
#[derive(Debug)]
struct Share {
    used: Arc<AtomicUsize>,
    bytes: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// What is known of code besides the code.
pub(crate) struct About {
    pub(crate) func: Func,
    pub(crate) name: String,
    pub(crate) origins: Option<Box<[Option<Inst>]>>,
    pub(crate) lowered: Lowered,
    pub(crate) cells: Arc<[Cell]>,
}

impl Code {
    /// Compiles what was lowered into `compilation`. Cost: that of Cranelift.
    pub(crate) fn compile(
        isa: &OwnedTargetIsa,
        budget: &Budget,
        compilation: &mut Compilation,
        about: About,
    ) -> Result<Code, CompileError> {
        let failed = |what: String| CompileError::Codegen { function: about.name.clone(), what };
        let mut module = JITModule::new(JITBuilder::with_isa(isa.clone(), default_libcall_names()));
        let id = match define(&mut module, compilation) {
            Ok(id) => id,
            Err(error) => {
                // SAFETY: nothing of the module was handed out.
                unsafe { module.free_memory() };
                return Err(match *error {
                    ModuleError::Allocation { .. } => CompileError::OutOfMemory,
                    error => failed(error.to_string()),
                });
            }
        };
        let start = module.get_finalized_function(id).addr();
        let buffer = &compiled_of(compilation).buffer;
        let range = start..start + buffer.data().len();
        let Some(share) = budget.take(range.len()) else {
            // SAFETY: as above.
            unsafe { module.free_memory() };
            return Err(CompileError::OutOfMemory);
        };
        let table = TrapTable::new(buffer.traps().iter().map(|trap| (trap.offset, trap.code)));
        let places = Places::of(compilation);
        let exits = match Exits::of(compiled_of(compilation), &about.lowered) {
            Ok(exits) => exits,
            Err(what) => {
                // SAFETY: as above.
                unsafe { module.free_memory() };
                return Err(failed(what));
            }
        };
        let registration = match crate::sys::traps::register([(range.clone(), Arc::new(table))]) {
            Ok(registration) => registration,
            Err(error) => {
                // SAFETY: as above.
                unsafe { module.free_memory() };
                return Err(failed(error.to_string()));
            }
        };
        LIVE.fetch_add(1, Ordering::Relaxed);
        Ok(Code {
            module: ManuallyDrop::new(module),
            range,
            registration: ManuallyDrop::new(registration),
            places,
            exits,
            _share: share,
            _kept: about.lowered,
            _cells: about.cells,
            func: about.func,
            name: about.name,
            origins: about.origins,
        })
    }

    /// Bytes of machine code.
    pub fn size(&self) -> usize {
        self.range.len()
    }

    /// Bytes that describe its exits ([`crate::Exits::Described`]).
    pub fn described(&self) -> usize {
        self.exits.size()
    }

    /// Puts what an exit hands over into the buffer; the number of its OSR point. `None` when the
    /// code has no such exit.
    ///
    /// # Safety
    /// The frame was made by [`crate::sys::exit`] and is still there.
    pub(crate) unsafe fn read_exit(
        &self,
        frame: *const ExitFrame,
        buffer: &mut [u64],
    ) -> Option<u32> {
        // SAFETY: the caller's contract.
        let returns_to = unsafe { (*frame).returns_to } as usize;
        let offset = returns_to.checked_sub(self.range.start)?;
        // SAFETY: as above; the address tells that it was this code that called.
        unsafe { self.exits.read(offset as u32, frame, buffer) }
    }

    /// The function it was made from.
    pub fn func(&self) -> Func {
        self.func
    }

    pub(crate) fn entry(&self) -> *const u8 {
        std::ptr::with_exposed_provenance(self.range.start)
    }

    pub(crate) fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// The instruction that an address of the code belongs to.
    pub(crate) fn inst_at(&self, pc: usize) -> Option<Inst> {
        let inst = self.places.at((pc - self.range.start) as u32)?;
        match &self.origins {
            Some(origins) => *origins.get(inst.as_u32() as usize)?,
            None => Some(inst),
        }
    }
}

fn compiled_of(compilation: &Compilation) -> &CompiledCode {
    compilation.compiled_code().expect("jit: the function was compiled")
}

/// Compiles one function and makes it executable.
fn define(
    module: &mut JITModule,
    compilation: &mut Compilation,
) -> Result<FuncId, Box<ModuleError>> {
    let id = module.declare_function("code", Linkage::Local, &compilation.func.signature)?;
    module.define_function(id, compilation)?;
    module.finalize_definitions()?;
    Ok(id)
}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: both are taken once, here. Nobody executes the code: whoever may holds a count,
        // so this is not dropped (`code_outlives_the_run_that_is_in_it`). The registration goes
        // first, so that no handler sees freed code.
        unsafe {
            ManuallyDrop::drop(&mut self.registration);
            ManuallyDrop::take(&mut self.module).free_memory();
        }
        LIVE.fetch_sub(1, Ordering::Relaxed);
    }
}
