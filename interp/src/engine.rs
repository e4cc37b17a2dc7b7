//! For engines, which run native code on the state of a machine: raw access to it, the operations
//! that native code hands back, the trace, and how runs end in native code.
//!
//! An engine works on a machine while no call of [`Machine::run`] is under way: between two of
//! them, or while a run waits for the results of a call. What it writes into memories, globals and
//! tables itself leaves their digests as they were. So once it has been given raw access,
//! everything here that goes back into the trace or the interpreter computes them anew; where
//! memory is tracked ([`super::Options::track_memory`]), that costs the size of memories and tables
//! each time.

use super::bulk::{Bulk, Operation};
use super::calls;
use super::exec::observed_digest;
use super::host::{Host, HostError};
use super::machine::Machine;
use super::outcome::{EarlyEnd, Outcome, Site};
use ir::entity::{Func, Memory, Sig, Table};
use ir::inst::InstData;
use ir::trap::TrapKind;

impl Machine {
    /// The bytes of a memory, to be written by native code. The slice moves when the memory grows,
    /// unless it lies in a region that does not. Digests go stale: [`Machine::refresh_digests`].
    ///
    /// # Panics
    /// When the module declares no such memory.
    pub fn memory_bytes_mut(&mut self, memory: Memory) -> &mut [u8] {
        self.raw = true;
        self.memories.bytes_raw(memory)
    }

    /// The bits of the globals, in order, to be written by native code: bits outside their types
    /// have to be 0. The slice moves when the machine takes up another module
    /// ([`Machine::extend`]), not before. Digests go stale.
    pub fn globals_mut(&mut self) -> &mut [u64] {
        self.raw = true;
        self.globals.values_raw()
    }

    /// The bits of the entries of a table ([`ir::reference`]), to be written by native code. The
    /// slice moves when the table grows. Digests go stale.
    ///
    /// # Panics
    /// When the module declares no such table.
    pub fn table_entries_mut(&mut self, table: Table) -> &mut [u64] {
        self.raw = true;
        self.globals.tables.entries_raw(table)
    }

    /// Makes the digests right again after native code wrote something. Needed before
    /// [`Machine::memory_digest`] is asked for; what is in this module does it by itself. Cost: the
    /// number of globals; where memory is tracked, the size of memories and tables too.
    pub fn refresh_digests(&mut self) {
        self.memories.refresh();
        self.globals.refresh();
        self.globals.tables.refresh();
    }

    /// As [`Machine::refresh_digests`], if native code may have written anything.
    pub(super) fn take_back(&mut self) {
        if self.raw {
            self.refresh_digests();
        }
    }

    /// Performs an operation on memories, tables or segments that is no load or store:
    /// `memory_size`, `memory_grow`, those on ranges, all on tables, and the dropping of segments.
    /// `args` are the contents of the operands, without bits outside their types; the result is
    /// that of the instruction, if it has one. Growth goes to the trace. Takes no fuel: see
    /// [`Machine::charge`]. Cost: the range; when it grows something, what is grown.
    ///
    /// # Errors
    /// How it traps; nothing is changed then. The trace knows nothing of it before
    /// [`Machine::end_in_native`].
    ///
    /// # Panics
    /// When the instruction is another one, is not of this module, or takes another number of
    /// operands.
    pub fn perform(&mut self, inst: &InstData, args: &[u64]) -> Result<Option<u64>, TrapKind> {
        let operation = Operation::new(inst, args);
        if operation.is_traced() && self.is_tracing() {
            self.take_back();
        }
        let Machine { program, memories, globals, trace, .. } = self;
        let bits = Bulk { program, memories, globals, trace }.perform(operation)?;
        Ok((!inst.results.is_empty()).then_some(bits))
    }

    /// The fuel that an operation needs beyond the one unit of any instruction, before it is
    /// performed: without it, the run is out of fuel. Cost: constant.
    ///
    /// # Panics
    /// As [`Machine::perform`].
    pub fn charge(&self, inst: &InstData, args: &[u64]) -> u64 {
        Operation::new(inst, args).extra_fuel(&self.memories, &self.globals.tables)
    }

    /// Calls an imported function, with the call and the return in the trace. `results` are as many
    /// as it has, and hold them afterwards.
    ///
    /// # Errors
    /// When the run ends here ([`Machine::end_in_native`]); `results` are unchanged then.
    ///
    /// # Panics
    /// When the function is not imported, or the number of results is not that of its signature.
    pub fn call_imported(
        &mut self,
        func: Func,
        args: &[u64],
        host: &mut dyn Host,
        results: &mut [u64],
    ) -> Result<(), HostError> {
        self.trace_call(func, args);
        let Machine { program, memories, globals, trace, .. } = self;
        let returned = calls::call_host(program, func, args, host, memories)?;
        trace.ret(&returned, observed_digest(memories, globals));
        results.copy_from_slice(&returned);
        Ok(())
    }

    /// Whether anything is kept of the effects: without, [`Machine::trace_call`] and
    /// [`Machine::trace_return`] do nothing.
    pub fn is_tracing(&self) -> bool {
        !self.trace.is_off()
    }

    /// Records that a function is called, by native code.
    pub fn trace_call(&mut self, func: Func, args: &[u64]) {
        if self.is_tracing() {
            self.take_back();
            self.trace.call(func, args, observed_digest(&self.memories, &self.globals));
        }
    }

    /// Records that the function called last, of those that have not returned, returns to native
    /// code.
    pub fn trace_return(&mut self, results: &[u64]) {
        if self.is_tracing() {
            self.take_back();
            self.trace.ret(results, observed_digest(&self.memories, &self.globals));
        }
    }

    /// The function that an indirect call calls; imported or not. Cost: constant; when the
    /// signature has another number, a comparison of signatures.
    ///
    /// # Errors
    /// How the call traps.
    ///
    /// # Panics
    /// When the module declares no such table or signature.
    pub fn indirect_callee(&self, sig: Sig, table: Table, index: u64) -> Result<Func, TrapKind> {
        calls::indirect_callee(&self.program, &self.globals.tables, sig, table, index)
    }

    /// Ends the run because native code that it called, or that runs without one, does not return:
    /// records a trap or an exit in the trace, and gives up the activations of the run, as
    /// [`Machine::abandon`] does. The outcome is that of a run that ends so in the interpreter;
    /// `site` is where.
    pub fn end_in_native(&mut self, end: EarlyEnd, site: Site) -> Outcome {
        self.take_back();
        self.end_early(end, site)
    }

    /// Ends the run under way, which does not return.
    pub(super) fn end_early(&mut self, end: EarlyEnd, site: Site) -> Outcome {
        self.abandon();
        let digest = observed_digest(&self.memories, &self.globals);
        match end {
            EarlyEnd::Trap(kind) | EarlyEnd::Host(HostError::Trap(kind)) => {
                self.trace.trap(kind, digest);
                Outcome::Trapped { kind, site }
            }
            EarlyEnd::Host(HostError::Exit(status)) => {
                self.trace.exit(status, digest);
                Outcome::Exited(status)
            }
            EarlyEnd::Host(HostError::Failed(message)) => Outcome::HostFailed { message, site },
            EarlyEnd::StackOverflow => Outcome::StackOverflow(site),
            EarlyEnd::OutOfFuel => Outcome::OutOfFuel(site),
            EarlyEnd::Left(point, values) => Outcome::Left { point, values, site },
        }
    }
}
