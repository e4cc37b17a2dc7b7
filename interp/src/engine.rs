//! The interface for engines that run native code on the state of a machine. It gives raw access to
//! memories, globals and tables, and performs the operations that native code hands back. It
//! records calls of native code in the trace, and ends runs that native code ends.
//!
//! An engine works on a machine only while [`Machine::run`] is not executing: between two calls of
//! `run`, or while a run waits for the results of a call.
//!
//! Native code writes memories, globals and tables directly, and these writes do not update the
//! digests. So once an engine has requested raw access, every function here that adds to the trace
//! or resumes the interpreter recomputes the digests first. Where memory is tracked
//! ([`super::Options::track_memory`]), each recomputation costs the size of memories and tables.

use super::bulk::{Bulk, BulkRequest};
use super::calls;
use super::globals::observed_digest;
use super::host::{Host, HostError};
use super::machine::Machine;
use super::outcome::{EarlyEnd, Outcome, Site};
use ir::entity::{Func, Memory, Sig, Table};
use ir::inst::InstData;
use ir::trap::TrapKind;

impl Machine {
    /// The bytes of a memory, for native code to write. The slice moves when the memory grows,
    /// unless the memory lies in a region that keeps its base. Writes leave the digests stale: see
    /// [`Machine::refresh_digests`].
    ///
    /// # Panics
    /// When the module declares no such memory.
    pub fn memory_bytes_mut(&mut self, memory: Memory) -> &mut [u8] {
        self.raw = true;
        self.memories.bytes_raw(memory)
    }

    /// The bits of the globals in order of declaration, for native code to write. Bits outside the
    /// type of a global must be 0. The slice moves only in [`Machine::extend`]. Writes leave the
    /// digests stale.
    #[inline]
    pub fn globals_mut(&mut self) -> &mut [u64] {
        self.raw = true;
        self.globals.values_raw()
    }

    /// The bits of the entries of a table ([`ir::reference`]), for native code to write. The
    /// slice moves when the table grows. Writes leave the digests stale.
    ///
    /// # Panics
    /// When the module declares no such table.
    pub fn table_entries_mut(&mut self, table: Table) -> &mut [u64] {
        self.raw = true;
        self.globals.tables.entries_raw(table)
    }

    /// Recomputes the digests after native code wrote memories, globals or tables. An engine calls
    /// this before [`Machine::memory_digest`]; the functions of this module call it themselves.
    /// Cost: the number of globals; where memory is tracked, also the size of memories and tables.
    #[inline]
    pub fn refresh_digests(&mut self) {
        self.memories.refresh();
        self.globals.refresh();
        self.globals.tables.refresh();
    }

    /// Calls [`Machine::refresh_digests`] if native code may have written anything.
    pub(super) fn take_back(&mut self) {
        if self.raw {
            self.refresh_digests();
        }
    }

    /// Performs an operation on memories, tables or segments other than a load or store:
    /// `memory_size`, `memory_grow`, operations on ranges, all operations on tables, and dropping
    /// segments.
    ///
    /// `args` are the contents of the operands, with bits outside their types clear. Returns the
    /// result of the instruction, if it has one. Growth is recorded in the trace. The call takes no
    /// fuel: see [`Machine::charge`]. Cost: the length of the range, or the amount of growth.
    ///
    /// # Errors
    /// The kind of trap; nothing is changed then. The trap enters the trace only with
    /// [`Machine::end_in_native`].
    ///
    /// # Panics
    /// When the instruction is of another kind, belongs to another module, or has another number of
    /// operands.
    pub fn perform(&mut self, inst: &InstData, args: &[u64]) -> Result<Option<u64>, TrapKind> {
        let operation = BulkRequest::new(inst, args);
        if operation.is_traced() && self.is_tracing() {
            self.take_back();
        }
        let Machine { program, memories, globals, trace, .. } = self;
        let declarations = program.declarations();
        let bits = Bulk { declarations, memories, globals, trace }.perform(operation)?;
        Ok((!inst.results.is_empty()).then_some(bits))
    }

    /// The fuel the operation takes beyond the single unit of every instruction. If less fuel is
    /// left, the run is out of fuel and must not perform the operation. Cost: constant.
    ///
    /// # Panics
    /// As [`Machine::perform`].
    pub fn charge(&self, inst: &InstData, args: &[u64]) -> u64 {
        BulkRequest::new(inst, args).extra_fuel(&self.memories, &self.globals.tables)
    }

    /// Calls an imported function and records the call and the return in the trace. On success
    /// `results` holds the results; its length must be their number.
    ///
    /// # Errors
    /// When the host ends the run (pass the error to [`Machine::end_in_native`]); `results` is
    /// unchanged then.
    ///
    /// # Panics
    /// When the function is not imported, or `results` has another length than the signature's
    /// results.
    pub fn call_imported(
        &mut self,
        func: Func,
        args: &[u64],
        host: &mut dyn Host,
        results: &mut [u64],
    ) -> Result<(), HostError> {
        if self.is_tracing() {
            self.take_back();
        }
        let Machine { program, memories, globals, trace, .. } = self;
        let is_traced = program.effect(func).is_traced();
        if is_traced {
            trace.call_host(func, args, observed_digest(memories, globals));
        }
        let returned = calls::call_host(program, func, args, host, memories)?;
        if is_traced {
            trace.ret_host(&returned, observed_digest(memories, globals));
        }
        results.copy_from_slice(&returned);
        Ok(())
    }

    /// Makes runs stop at calls of imported functions, like at calls of external functions
    /// ([`Run::Called`](super::Run::Called)), instead of calling the host. The engine calls the
    /// function itself, between [`Machine::enter_imported`] and [`Machine::leave_imported`]; the
    /// machine is free for nested runs meanwhile. Off in a new machine.
    #[inline]
    pub fn stop_at_imports(&mut self, stops: bool) {
        self.stops_at_imports = stops;
    }

    /// Records the call of an imported function that an engine makes itself.
    ///
    /// # Panics
    /// When the function is not imported.
    pub fn enter_imported(&mut self, func: Func, args: &[u64]) {
        assert!(self.is_imported(func), "interp: {func} is not imported");
        if self.traces_call_of(func) {
            self.take_back();
            self.trace.call_host(func, args, observed_digest(&self.memories, &self.globals));
        }
    }

    /// Records the return of the latest imported function that has not returned. Clears bits of the
    /// results outside their types.
    ///
    /// # Panics
    /// When the number of results differs from the signature.
    pub fn leave_imported(&mut self, func: Func, results: &mut [u64]) {
        let types = &self.program.declarations().signature(func).results;
        assert_eq!(types.len(), results.len(), "interp: wrong number of results for {func}");
        results.iter_mut().zip(types).for_each(|(bits, ty)| *bits &= ty.mask());
        if self.traces_call_of(func) {
            self.take_back();
            self.trace.ret_host(results, observed_digest(&self.memories, &self.globals));
        }
    }

    /// Whether the trace records calls of an imported function. It has no calls of functions that
    /// are declared `reads` or `pure`, since versions may differ in these.
    fn traces_call_of(&self, func: Func) -> bool {
        self.is_tracing() && self.program.effect(func).is_traced()
    }

    /// Whether the trace records anything. If not, [`Machine::trace_call`] and
    /// [`Machine::trace_return`] do nothing.
    #[inline]
    pub fn is_tracing(&self) -> bool {
        !self.trace.is_off()
    }

    /// Records that native code calls a function.
    pub fn trace_call(&mut self, func: Func, args: &[u64]) {
        if self.is_tracing() {
            self.take_back();
            self.trace.call(func, args, observed_digest(&self.memories, &self.globals));
        }
    }

    /// Records that the latest function called from native code returns to native code.
    #[inline]
    pub fn trace_return(&mut self, results: &[u64]) {
        if self.is_tracing() {
            self.take_back();
            self.trace.ret(results, observed_digest(&self.memories, &self.globals));
        }
    }

    /// The callee of an indirect call, imported or not. Cost: constant; a comparison of two
    /// signatures when they have different ids.
    ///
    /// # Errors
    /// The trap that the call ends in.
    ///
    /// # Panics
    /// When the module declares no such table or signature.
    pub fn indirect_callee(&self, sig: Sig, table: Table, index: u64) -> Result<Func, TrapKind> {
        calls::indirect_callee(&self.program, &self.globals.tables, sig, table, index)
    }

    /// Ends the run because native code does not return, be it code that the run called or code
    /// that runs without one. Records a trap or an exit in the trace and drops the activations of
    /// the run, as [`Machine::abandon`] does. Returns the outcome that the interpreter would give;
    /// `site` is the place where native code ended.
    pub fn end_in_native(&mut self, end: EarlyEnd, site: Site) -> Outcome {
        self.take_back();
        self.end_early(end, site)
    }

    /// Ends the current run without a return: drops its activations and records a trap or exit.
    pub(super) fn end_early(&mut self, end: EarlyEnd, site: Site) -> Outcome {
        self.abandon();
        let digest = observed_digest(&self.memories, &self.globals);
        match end {
            EarlyEnd::Trap { kind, operand } => {
                self.trace.trap(kind, operand, digest);
                Outcome::Trapped { kind, operand, site }
            }
            EarlyEnd::Host(HostError::Trap(kind)) => {
                self.trace.trap(kind, None, digest);
                Outcome::Trapped { kind, operand: None, site }
            }
            EarlyEnd::Host(HostError::Exit(status)) => {
                self.trace.exit(status, digest);
                Outcome::Exited(status)
            }
            EarlyEnd::Host(HostError::Failed(error)) => Outcome::HostFailed { error, site },
            EarlyEnd::StackOverflow => Outcome::StackOverflow(site),
            EarlyEnd::OutOfFuel => Outcome::OutOfFuel(site),
            EarlyEnd::Left(point, values) => Outcome::Left { point, values, site },
            EarlyEnd::Failed(reason) => Outcome::Failed { reason, site },
        }
    }
}
