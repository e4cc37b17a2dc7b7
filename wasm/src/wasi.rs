//! A WASI preview 1 host for programs that take arguments, read standard input, write standard
//! output and error, and exit.
//!
//! All other functions return `ENOSYS`, including those for time and randomness. The output of a
//! program thus depends only on its arguments and input. Addresses, lengths and signatures come
//! from the program and are untrusted: an access outside of its memory returns `EFAULT`.

use interp::{Host, HostError, Memories};
use ir::module::ImportName;
use ir::{Func, Memory};
use std::io::{self, Read, Write};

/// The name of the import module that [`Wasi`] implements.
pub const MODULE: &str = "wasi_snapshot_preview1";

/// The memory of a program as WASI accesses it. Other engines implement it to run programs on this
/// host.
pub trait GuestMemory {
    /// A range of the memory; `None` when it is out of bounds.
    fn read(&self, address: u64, length: u64) -> Option<&[u8]>;

    /// Writes bytes. Returns false, and writes nothing, when the range is out of bounds.
    fn write(&mut self, address: u64, bytes: &[u8]) -> bool;
}

/// A WASI process with the descriptors 0, 1 and 2. It has no files and no environment.
///
/// The program must keep its data in the first memory of its module.
pub struct Wasi<'a> {
    args: Vec<String>,
    stdin: Box<dyn Read + 'a>,
    stdout: Box<dyn Write + 'a>,
    stderr: Box<dyn Write + 'a>,
    /// For each descriptor, whether it is open.
    open: [bool; 3],
}

/// The WASI error numbers that this host uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Errno {
    Badf = 8,
    Fault = 21,
    Inval = 28,
    Io = 29,
    Nosys = 52,
    Overflow = 61,
    Pipe = 64,
    Spipe = 70,
}

type Answer = Result<(), Errno>;

/// Most buffers in one call, the usual limit of POSIX systems.
const MAX_BUFFERS: u64 = 1024;

/// Most bytes that one call reads. A program that wants more calls again.
const READ_BYTES: u64 = 1 << 16;

impl<'a> Wasi<'a> {
    /// A process with these arguments, starting with the name of the program. Output is flushed
    /// after each write, so that the program sees write errors.
    pub fn new(
        args: Vec<String>,
        stdin: impl Read + 'a,
        stdout: impl Write + 'a,
        stderr: impl Write + 'a,
    ) -> Wasi<'a> {
        Wasi {
            args,
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            stderr: Box::new(stderr),
            open: [true; 3],
        }
    }

    fn args_sizes_get(&self, memory: &mut Guest<'_>, count: u64, bytes: u64) -> Answer {
        let total: usize = self.args.iter().map(|a| a.len() + 1).sum();
        memory.write_u32(count, u32::try_from(self.args.len()).map_err(|_| Errno::Overflow)?)?;
        memory.write_u32(bytes, u32::try_from(total).map_err(|_| Errno::Overflow)?)
    }

    fn args_get(&self, memory: &mut Guest<'_>, mut pointers: u64, mut bytes: u64) -> Answer {
        for arg in &self.args {
            memory.write_u32(pointers, u32::try_from(bytes).map_err(|_| Errno::Fault)?)?;
            memory.write(bytes, arg.as_bytes())?;
            bytes += arg.len() as u64;
            memory.write(bytes, &[0])?;
            (pointers, bytes) = (pointers + 4, bytes + 1);
        }
        Ok(())
    }

    fn fd_write(
        &mut self,
        memory: &mut Guest<'_>,
        fd: u64,
        [list, count, written]: [u64; 3],
    ) -> Answer {
        self.check_open(fd)?;
        let output = match fd {
            1 => &mut self.stdout,
            2 => &mut self.stderr,
            _ => return Err(Errno::Badf),
        };
        memory.read(written, 4)?; // a bad result address must not write output
        let buffers = memory.buffers(list, count)?;
        let mut total = 0u32;
        let mut pieces = Vec::new();
        for (address, length) in buffers {
            total = total.checked_add(length).ok_or(Errno::Inval)?;
            pieces.push(memory.read(address.into(), length.into())?);
        }
        // All buffers are checked before the first is written, because a program may assume that a
        // call with a bad buffer wrote nothing.
        for piece in pieces {
            output.write_all(piece).map_err(errno)?;
        }
        output.flush().map_err(errno)?;
        memory.write_u32(written, total)
    }

    fn fd_read(
        &mut self,
        memory: &mut Guest<'_>,
        fd: u64,
        [list, count, read]: [u64; 3],
    ) -> Answer {
        self.check_open(fd)?;
        if fd != 0 {
            return Err(Errno::Badf);
        }
        memory.read(read, 4)?; // a bad result address must not consume input
        let buffers = memory.buffers(list, count)?;
        // WASI allows short reads, so one read fills one buffer.
        let Some((address, length)) = buffers.into_iter().find(|(_, length)| *length > 0) else {
            return memory.write_u32(read, 0);
        };
        let (address, length) = (u64::from(address), u64::from(length).min(READ_BYTES));
        memory.read(address, length)?;
        let mut bytes = vec![0; length as usize];
        let got = loop {
            match self.stdin.read(&mut bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other.map_err(errno)?,
            }
        };
        memory.write(address, &bytes[..got])?;
        memory.write_u32(read, u32::try_from(got).expect("at most READ_BYTES"))
    }

    /// Writes the status of a descriptor. Its type is unknown, so that a libc neither seeks nor
    /// assumes a terminal. It has no flags, and the right to read or to write.
    fn fd_fdstat_get(&self, memory: &mut Guest<'_>, fd: u64, status: u64) -> Answer {
        self.check_open(fd)?;
        let mut bytes = [0; 24];
        bytes[8] = if fd == 0 { RIGHT_READ } else { RIGHT_WRITE };
        memory.write(status, &bytes)
    }

    fn fd_close(&mut self, fd: u64) -> Answer {
        self.check_open(fd)?;
        self.open[fd as usize] = false;
        Ok(())
    }

    fn check_open(&self, fd: u64) -> Answer {
        let open = usize::try_from(fd).ok().and_then(|fd| self.open.get(fd));
        if open == Some(&true) { Ok(()) } else { Err(Errno::Badf) }
    }

    /// Performs the call of a function by name. If the number of arguments is wrong, the error is
    /// the number of parameters.
    fn answer(
        &mut self,
        field: &str,
        args: &[u64],
        memory: &mut Guest<'_>,
    ) -> Result<Answer, usize> {
        Ok(match field {
            "args_sizes_get" => {
                let &[count, bytes] = args else { return Err(2) };
                self.args_sizes_get(memory, count, bytes)
            }
            "args_get" => {
                let &[pointers, bytes] = args else { return Err(2) };
                self.args_get(memory, pointers, bytes)
            }
            "environ_sizes_get" => {
                let &[count, bytes] = args else { return Err(2) };
                memory.write_u32(count, 0).and_then(|()| memory.write_u32(bytes, 0))
            }
            "environ_get" => {
                let &[_, _] = args else { return Err(2) };
                Ok(())
            }
            "fd_write" => {
                let &[fd, list, count, written] = args else { return Err(4) };
                self.fd_write(memory, fd, [list, count, written])
            }
            "fd_read" => {
                let &[fd, list, count, read] = args else { return Err(4) };
                self.fd_read(memory, fd, [list, count, read])
            }
            "fd_fdstat_get" => {
                let &[fd, status] = args else { return Err(2) };
                self.fd_fdstat_get(memory, fd, status)
            }
            "fd_seek" => {
                let &[fd, _, _, _] = args else { return Err(4) };
                self.check_open(fd).and(Err(Errno::Spipe))
            }
            "fd_close" => {
                let &[fd] = args else { return Err(1) };
                self.fd_close(fd)
            }
            // This answer tells a libc that no directory is open.
            "fd_prestat_get" => Err(Errno::Badf),
            _ => Err(Errno::Nosys),
        })
    }
}

const RIGHT_READ: u8 = 1 << 1;
const RIGHT_WRITE: u8 = 1 << 6;

/// The error number for an error of the embedder's streams.
fn errno(error: io::Error) -> Errno {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Errno::Pipe,
        _ => Errno::Io,
    }
}

impl Wasi<'_> {
    /// Performs a call of the function `field` of [`MODULE`]. Returns the result of the function;
    /// `None` if it has none.
    ///
    /// # Errors
    /// When the program exits, or when the number of arguments is wrong.
    pub fn call_on(
        &mut self,
        memory: &mut dyn GuestMemory,
        field: &str,
        args: &[u64],
    ) -> Result<Option<u32>, HostError> {
        let wrong_signature = |params: usize, results: usize| {
            let message = format!(
                "{MODULE}.{field} has {params} parameters and {results} results, but the module imports it with another signature"
            );
            HostError::Failed(message)
        };
        if field == "proc_exit" {
            let &[status] = args else { return Err(wrong_signature(1, 0)) };
            return Err(HostError::Exit(status as u32 as i32));
        }
        let answer = self
            .answer(field, args, &mut Guest(memory))
            .map_err(|params| wrong_signature(params, 1))?;
        Ok(Some(answer.map_or_else(|errno| errno as u32, |()| 0)))
    }
}

impl Host for Wasi<'_> {
    fn call(
        &mut self,
        import: &ImportName,
        _func: Func,
        args: &[u64],
        memories: &mut Memories,
        results: &mut [u64],
    ) -> Result<(), HostError> {
        let ImportName { module, field } = import;
        if module != MODULE {
            return Err(HostError::Failed(format!(
                "no host module {module}, needed by the call of {module}.{field}"
            )));
        }
        let expected = usize::from(field != "proc_exit");
        if results.len() != expected {
            let found = results.len();
            let message = format!(
                "{module}.{field} has {expected} results, but the module imports it with {found}"
            );
            return Err(HostError::Failed(message));
        }
        let answer = self.call_on(memories, field, args)?;
        for (result, answer) in results.iter_mut().zip(answer) {
            *result = answer.into();
        }
        Ok(())
    }
}

/// Accesses the first memory of a module.
impl GuestMemory for Memories {
    fn read(&self, address: u64, length: u64) -> Option<&[u8]> {
        if self.count() == 0 {
            return None;
        }
        Memories::read(self, Memory::from_u32(0), address, length)
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> bool {
        self.count() > 0 && Memories::write(self, Memory::from_u32(0), address, bytes).is_ok()
    }
}

/// The memory of the program. Every access is checked.
struct Guest<'a>(&'a mut dyn GuestMemory);

impl Guest<'_> {
    fn read(&self, address: u64, length: u64) -> Result<&[u8], Errno> {
        self.0.read(address, length).ok_or(Errno::Fault)
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Answer {
        if self.0.write(address, bytes) { Ok(()) } else { Err(Errno::Fault) }
    }

    fn write_u32(&mut self, address: u64, value: u32) -> Answer {
        self.write(address, &value.to_le_bytes())
    }

    /// Reads a list of buffers: the address and length of each.
    fn buffers(&self, list: u64, count: u64) -> Result<Vec<(u32, u32)>, Errno> {
        if count > MAX_BUFFERS {
            return Err(Errno::Inval);
        }
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        let entries = self.read(list, 8 * count)?.chunks_exact(8);
        Ok(entries.map(|entry| (word(&entry[..4]), word(&entry[4..]))).collect())
    }
}
