//! The types of the runtime, over this back end. Its own tests run on them (`osier-ebpf tests`).
//!
//! They have the functions of the runtime, which are safe where their callers vouch for something:
//! `register_allowed_memory` for a range, `register_helper` for a function that does not panic, and
//! `execute_program` of a machine with a buffer for a program that does not write what was lent for
//! reading. [`Native::new`] and [`Native::run_at`] say so.
#![allow(unsafe_code, reason = "the runtime has these functions")]

use crate::interpreter::ByteRegion;
use crate::program::Program;
use crate::runtime::{Mode, Native};
use osier::inlining::PassPlan;
use rbpf::ebpf::{self, Helper};
use std::any::Any;
use std::collections::HashMap;
use std::io::Error;
use std::ops::{Deref, DerefMut, Range};
use std::sync::{Arc, Mutex, PoisonError};

/// A verifier of programs.
pub type Verifier = fn(&[u8]) -> Result<(), Error>;
/// Computes the bytes of stack of a function.
pub type StackUsageCalculator = fn(&[u8], usize, &mut dyn Any) -> u16;

/// A machine whose programs get a metadata buffer and a packet.
pub struct EbpfVmMbuff<'a> {
    bytes: Option<&'a [u8]>,
    verifier: Option<Verifier>,
    helpers: HashMap<u32, Helper>,
    allowed: Vec<Range<u64>>,
    frames: HashMap<usize, u16>,
    has_buffer: bool,
    native: Mutex<Option<Native>>,
}

/// A machine that makes the metadata buffer itself.
pub struct EbpfVmFixedMbuff<'a> {
    inner: EbpfVmMbuff<'a>,
    at: [usize; 2],
    buffer: Vec<u8>,
}

/// A machine whose programs get a packet.
pub struct EbpfVmRaw<'a>(EbpfVmMbuff<'a>);

/// A machine whose programs get nothing.
pub struct EbpfVmNoData<'a>(EbpfVmMbuff<'a>);

/// The runtime's own verifier.
fn standard(bytes: &[u8]) -> Result<(), Error> {
    rbpf::EbpfVmNoData::new(Some(bytes)).map(|_| ())
}

impl<'a> EbpfVmMbuff<'a> {
    /// A machine with a verified program.
    ///
    /// # Errors
    /// As all functions here, in the words of the runtime.
    pub fn new(bytes: Option<&'a [u8]>) -> Result<EbpfVmMbuff<'a>, Error> {
        EbpfVmMbuff::with(bytes, true)
    }

    fn with(bytes: Option<&'a [u8]>, has_buffer: bool) -> Result<EbpfVmMbuff<'a>, Error> {
        if let Some(bytes) = bytes {
            standard(bytes)?;
        }
        Ok(EbpfVmMbuff {
            bytes,
            verifier: None,
            helpers: HashMap::new(),
            allowed: Vec::new(),
            frames: HashMap::new(),
            has_buffer,
            native: Mutex::new(None),
        })
    }

    fn changed(&mut self) {
        *self.native.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub fn set_program(&mut self, bytes: &'a [u8]) -> Result<(), Error> {
        self.verifier.unwrap_or(standard)(bytes)?;
        self.bytes = Some(bytes);
        self.changed();
        Ok(())
    }

    pub fn set_verifier(&mut self, verifier: Verifier) -> Result<(), Error> {
        self.bytes.map_or(Ok(()), verifier)?;
        self.verifier = Some(verifier);
        Ok(())
    }

    pub fn set_stack_usage_calculator(
        &mut self,
        calculator: StackUsageCalculator,
        mut data: Box<dyn Any>,
    ) -> Result<(), Error> {
        let Some(bytes) = self.bytes else { return Ok(()) };
        for pc in 0..bytes.len() / ebpf::INSN_SIZE {
            self.frames.insert(pc, calculator(bytes, pc, &mut *data));
        }
        self.changed();
        Ok(())
    }

    pub fn register_helper(&mut self, key: u32, function: Helper) -> Result<(), Error> {
        self.helpers.insert(key, function);
        self.changed();
        Ok(())
    }

    pub fn register_allowed_memory(&mut self, range: Range<u64>) {
        self.allowed.push(range);
        self.changed();
    }

    /// The back end has memory of its own for code, so the call does nothing.
    pub fn set_jit_exec_memory(&mut self, _memory: &'a mut [u8]) -> Result<(), Error> {
        Ok(())
    }

    fn made(&self) -> Result<Native, Error> {
        let no_program = || Error::other("Error: No program set, call prog_set() to load one");
        let bytes = self.bytes.ok_or_else(no_program)?;
        let frame = |pc: usize| {
            self.frames.get(&pc).copied().unwrap_or(ebpf::LOCAL_FUNCTION_STACK_SIZE).into()
        };
        let program = Arc::new(Program::new(bytes, frame).map_err(Error::other)?);
        let mode = Mode::Native(PassPlan::parse("O1").map_err(Error::other)?);
        let helpers = Arc::new(self.helpers.clone());
        // SAFETY: as in the runtime, whoever allows a range or registers a helper vouches for it.
        unsafe { Native::new(&program, &helpers, &self.allowed, self.has_buffer, &mode) }
            .map_err(Error::other)
    }

    fn run(&self, packet: ByteRegion, buffer: ByteRegion) -> Result<u64, Error> {
        let mut native = self.native.lock().unwrap_or_else(PoisonError::into_inner);
        if native.is_none() {
            *native = Some(self.made()?);
        }
        let native = native.as_mut().expect("made above");
        // SAFETY: the caller of the function above has lent these bytes.
        unsafe { native.run_at(packet, buffer) }.map_err(Error::other)
    }

    /// Names what the runtime's compilers refuse, as they do.
    fn refused(&self, name: &str) -> Result<(), Error> {
        for (pc, insn) in self.bytes.iter().flat_map(|bytes| ebpf::to_insn_vec(bytes)).enumerate() {
            if insn.opc == ebpf::CALL
                && insn.src == 0
                && !self.helpers.contains_key(&(insn.imm as u32))
            {
                let id = insn.imm as u32;
                return Err(Error::other(format!(
                    "[{name}] Error: unknown helper function (id: {id:#x})"
                )));
            }
            if insn.opc == ebpf::CALL && insn.src > 1 {
                let what = format!("unexpected call type #{} (insn #{pc})", insn.src);
                return Err(Error::other(format!("[{name}] Error: {what}")));
            }
        }
        Ok(())
    }

    pub fn jit_compile(&mut self) -> Result<(), Error> {
        self.refused("JIT")?;
        *self.native.get_mut().unwrap_or_else(PoisonError::into_inner) = Some(self.made()?);
        Ok(())
    }

    pub fn cranelift_compile(&mut self) -> Result<(), Error> {
        self.refused("CRANELIFT")?;
        *self.native.get_mut().unwrap_or_else(PoisonError::into_inner) = Some(self.made()?);
        Ok(())
    }
}

impl EbpfVmMbuff<'_> {
    /// As in the runtime, the program may write to both: a caller that lends bytes for reading
    /// promises that it does not.
    pub fn execute_program(&self, packet: &[u8], buffer: &[u8]) -> Result<u64, Error> {
        let region = |bytes: &[u8]| ByteRegion {
            at: bytes.as_ptr().expose_provenance() as u64,
            length: bytes.len() as u64,
        };
        self.run(region(packet), region(buffer))
    }

    /// # Safety
    /// None is needed; the runtime has the word.
    pub unsafe fn execute_program_jit(
        &self,
        packet: &mut [u8],
        buffer: &mut [u8],
    ) -> Result<u64, Error> {
        self.execute_program(packet, buffer)
    }

    pub fn execute_program_cranelift(
        &self,
        packet: &mut [u8],
        buffer: &mut [u8],
    ) -> Result<u64, Error> {
        self.execute_program(packet, buffer)
    }
}

/// The rest of a machine is the one of [`EbpfVmMbuff`].
macro_rules! deref {
    ($($machine:ident $field:tt)+) => {$(
        impl<'a> Deref for $machine<'a> {
            type Target = EbpfVmMbuff<'a>;
            fn deref(&self) -> &EbpfVmMbuff<'a> {
                &self.$field
            }
        }
        impl<'a> DerefMut for $machine<'a> {
            fn deref_mut(&mut self) -> &mut EbpfVmMbuff<'a> {
                &mut self.$field
            }
        }
    )+};
}
deref! { EbpfVmRaw 0 EbpfVmNoData 0 EbpfVmFixedMbuff inner }

impl<'a> EbpfVmRaw<'a> {
    pub fn new(bytes: Option<&'a [u8]>) -> Result<EbpfVmRaw<'a>, Error> {
        Ok(EbpfVmRaw(EbpfVmMbuff::with(bytes, false)?))
    }
    pub fn execute_program(&self, packet: &mut [u8]) -> Result<u64, Error> {
        self.0.execute_program(packet, &[])
    }
    /// # Safety
    /// As [`EbpfVmMbuff::execute_program_jit`].
    pub unsafe fn execute_program_jit(&self, packet: &mut [u8]) -> Result<u64, Error> {
        self.execute_program(packet)
    }
    pub fn execute_program_cranelift(&self, packet: &mut [u8]) -> Result<u64, Error> {
        self.execute_program(packet)
    }
}

impl<'a> EbpfVmNoData<'a> {
    pub fn new(bytes: Option<&'a [u8]>) -> Result<EbpfVmNoData<'a>, Error> {
        Ok(EbpfVmNoData(EbpfVmMbuff::with(bytes, false)?))
    }
    pub fn execute_program(&self) -> Result<u64, Error> {
        self.0.execute_program(&[], &[])
    }
    /// # Safety
    /// As [`EbpfVmMbuff::execute_program_jit`].
    pub unsafe fn execute_program_jit(&self) -> Result<u64, Error> {
        self.execute_program()
    }
    pub fn execute_program_cranelift(&self) -> Result<u64, Error> {
        self.execute_program()
    }
}

impl<'a> EbpfVmFixedMbuff<'a> {
    pub fn new(
        bytes: Option<&'a [u8]>,
        start: usize,
        end: usize,
    ) -> Result<EbpfVmFixedMbuff<'a>, Error> {
        let buffer = vec![0; start.max(end) + 8];
        Ok(EbpfVmFixedMbuff { inner: EbpfVmMbuff::with(bytes, true)?, at: [start, end], buffer })
    }
    pub fn set_program(&mut self, bytes: &'a [u8], start: usize, end: usize) -> Result<(), Error> {
        (self.at, self.buffer) = ([start, end], vec![0; start.max(end) + 8]);
        self.inner.set_program(bytes)
    }
    pub fn execute_program(&mut self, packet: &mut [u8]) -> Result<u64, Error> {
        let start = packet.as_ptr() as u64;
        for (at, bits) in self.at.into_iter().zip([start, start + packet.len() as u64]) {
            self.buffer[at..at + 8].copy_from_slice(&bits.to_le_bytes());
        }
        self.inner.execute_program(packet, &self.buffer)
    }
    /// # Safety
    /// As [`EbpfVmMbuff::execute_program_jit`].
    pub unsafe fn execute_program_jit(&mut self, packet: &mut [u8]) -> Result<u64, Error> {
        self.execute_program(packet)
    }
    pub fn execute_program_cranelift(&mut self, packet: &mut [u8]) -> Result<u64, Error> {
        self.execute_program(packet)
    }
}
