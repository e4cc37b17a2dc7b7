//! A WASI preview 1 host, with the functions that C programs use: arguments, environment, standard
//! streams, clocks, random bytes, and files below directories that the embedder opens.
//!
//! The host is deterministic unless the embedder passes it something that is not. Without
//! [`Process::with_clocks`], time is a counter of readings; random bytes come from a seed; and
//! without [`Process::with_directory`] a program has no files. The output of a program then depends
//! on its arguments, environment and input alone.
//!
//! Addresses, lengths and signatures come from the program and are untrusted: an access outside of
//! its memory returns `EFAULT`. Sockets and signals return `ENOSYS`.
//!
//! # Clones
//! A [`Process`] is the host without its streams, and `Clone`. A clone has arguments, environment,
//! clocks, random bytes, descriptors and their positions of its own, so two runs from clones of a
//! process without directories see the same host. Directories and open files are shared: a clone
//! reads what the original wrote, and both write the same file. Oracles that repeat runs must not
//! use directories. Clocks of the embedder are shared too.

mod clocks;
mod descriptors;
mod errno;
mod files;
mod memory;
mod paths;
mod random;
mod rights;
mod streams;

pub use clocks::{ClockId, Clocks};
pub use errno::Errno;
pub use files::{Directory, FileKind, FileStatus, GuestFile, ListedFile, OpenHow, Opened, SetTime};

use clocks::ProcessClocks;
use descriptors::Descriptors;
use interp::{Host, HostError, Memories};
use ir::module::ImportName;
use ir::{Func, Memory};
use memory::{CHUNK, Guest};
use random::RandomBytes;
use std::io::{Read, Write};
use std::sync::Arc;

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

/// A WASI process without its streams: everything that a clone of a host has of its own.
///
/// The program must keep its data in the first memory of its module.
#[derive(Clone, Debug)]
pub struct Process {
    args: Vec<String>,
    /// Each as `NAME=VALUE`.
    environment: Vec<String>,
    clocks: ProcessClocks,
    random: RandomBytes,
    descriptors: Descriptors,
}

/// The standard streams of a process, lent for one call.
pub struct Streams<'s> {
    /// Descriptor 0.
    pub stdin: &'s mut (dyn Read + 's),
    /// Descriptor 1. The host flushes it after each write, so that the program sees write errors.
    pub stdout: &'s mut (dyn Write + 's),
    /// Descriptor 2, likewise.
    pub stderr: &'s mut (dyn Write + 's),
}

/// A WASI process with its standard streams.
pub struct Wasi<'a> {
    process: Process,
    stdin: Box<dyn Read + 'a>,
    stdout: Box<dyn Write + 'a>,
    stderr: Box<dyn Write + 'a>,
}

/// The result of a function: done, or an error number.
type Answer = Result<(), Errno>;

impl Process {
    /// A process with these arguments, starting with the name of the program. The process starts
    /// without environment and directories, with clocks that count readings, and with the seed 0.
    pub fn new(args: Vec<String>) -> Process {
        Process {
            args,
            environment: Vec::new(),
            clocks: ProcessClocks::Counted(0),
            random: RandomBytes::new(0),
            descriptors: Descriptors::new(),
        }
    }

    /// Adds a variable of the environment. If a name comes twice, C programs read the first.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: &str) -> Process {
        self.environment.push(format!("{name}={value}"));
        self
    }

    /// Opens a directory for the program, under the path by which the program names it. The first
    /// has descriptor 3, the next 4, and so on.
    #[must_use]
    pub fn with_directory(mut self, path: &str, directory: Arc<dyn Directory>) -> Process {
        self.descriptors.add_preopened(path, directory);
        self
    }

    /// Replaces the counted clocks. The runs of the program can then differ.
    #[must_use]
    pub fn with_clocks(mut self, clocks: Arc<dyn Clocks>) -> Process {
        self.clocks = ProcessClocks::Outside(clocks);
        self
    }

    /// Sets the seed of random bytes. They do not suit secrets with any seed.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Process {
        self.random = RandomBytes::new(seed);
        self
    }

    /// Says which of the standard streams are terminals. C programs write to a terminal line by
    /// line, and to other streams in blocks.
    #[must_use]
    pub fn with_terminals(mut self, terminals: [bool; 3]) -> Process {
        self.descriptors.set_terminals(terminals);
        self
    }

    fn random_get(&mut self, memory: &mut Guest<'_>, address: u64, length: u64) -> Answer {
        memory.read(address, length)?; // a bad length must not take long
        let mut bytes = [0; CHUNK as usize];
        let (mut address, mut left) = (address, length);
        while left > 0 {
            let piece = &mut bytes[..left.min(CHUNK) as usize];
            self.random.fill(piece);
            memory.write(address, piece)?;
            address += piece.len() as u64;
            left -= piece.len() as u64;
        }
        Ok(())
    }

    /// Performs the call of a function by name.
    fn answer(
        &mut self,
        streams: &mut Streams<'_>,
        memory: &mut Guest<'_>,
        field: &str,
        args: &[u64],
    ) -> Answer {
        match (field, args) {
            ("args_sizes_get", &[count, bytes]) => sizes(&self.args, memory, count, bytes),
            ("args_get", &[pointers, bytes]) => strings(&self.args, memory, pointers, bytes),
            ("environ_sizes_get", &[count, bytes]) => {
                sizes(&self.environment, memory, count, bytes)
            }
            ("environ_get", &[pointers, bytes]) => {
                strings(&self.environment, memory, pointers, bytes)
            }
            ("clock_res_get", &[clock, to]) => self.clock_res_get(memory, clock, to),
            ("clock_time_get", &[clock, _, to]) => self.clock_time_get(memory, clock, to),
            ("poll_oneoff", &[subscriptions, events, count, told]) => {
                self.poll_oneoff(memory, [subscriptions, events, count, told])
            }
            ("random_get", &[address, length]) => self.random_get(memory, address, length),
            ("sched_yield", []) => Ok(()),
            _ if field.starts_with("fd_") => self.answer_fd(streams, memory, field, args),
            _ if field.starts_with("path_") => self.answer_path(memory, field, args),
            ("sock_accept" | "sock_recv" | "sock_send" | "sock_shutdown", &[fd, ..]) => {
                self.descriptors.get(fd).and(Err(Errno::Notsock))
            }
            _ => Err(Errno::Nosys),
        }
    }

    /// Performs a call of the function `field` of [`MODULE`]. Returns the result of the function,
    /// if any.
    ///
    /// # Errors
    /// When the program exits, or when the number of arguments is wrong.
    pub fn call_on(
        &mut self,
        streams: &mut Streams<'_>,
        memory: &mut dyn GuestMemory,
        field: &str,
        args: &[u64],
    ) -> Result<Option<u32>, HostError> {
        let known = PARAMETERS.iter().find(|(name, _)| *name == field);
        if let Some((_, params)) = known.filter(|(_, params)| *params != args.len()) {
            let results = usize::from(field != EXIT);
            return Err(HostError::failed(format!(
                "{MODULE}.{field} has {params} parameters and {results} results, but the module imports it with another signature"
            )));
        }
        if let (EXIT, &[status]) = (field, args) {
            return Err(HostError::Exit(status as u32 as i32));
        }
        let answer = self.answer(streams, &mut Guest(memory), field, args);
        Ok(Some(answer.map_or_else(|errno| errno as u32, |()| 0)))
    }

    /// As [`Host::call`], with the streams of the process.
    ///
    /// # Errors
    /// When the program exits, the import is not of [`MODULE`], or its signature is wrong.
    pub fn call(
        &mut self,
        streams: &mut Streams<'_>,
        import: &ImportName,
        args: &[u64],
        memories: &mut Memories,
        results: &mut [u64],
    ) -> Result<(), HostError> {
        let ImportName { module, field } = import;
        if module != MODULE {
            return Err(HostError::failed(format!(
                "no host module {module}, needed by the call of {module}.{field}"
            )));
        }
        let expected = usize::from(field != EXIT);
        if results.len() != expected {
            let found = results.len();
            let message = format!(
                "{module}.{field} has {expected} results, but the module imports it with {found}"
            );
            return Err(HostError::failed(message));
        }
        let answer = self.call_on(streams, memories, field, args)?;
        for (result, answer) in results.iter_mut().zip(answer) {
            *result = answer.into();
        }
        Ok(())
    }
}

/// The function that ends the program. It alone has no result.
const EXIT: &str = "proc_exit";

/// The functions of WASI preview 1, and how many parameters each has. Functions unknown to
/// [`Process::answer`] return `ENOSYS`.
const PARAMETERS: &[(&str, usize)] = &[
    ("args_get", 2),
    ("args_sizes_get", 2),
    ("clock_res_get", 2),
    ("clock_time_get", 3),
    ("environ_get", 2),
    ("environ_sizes_get", 2),
    ("fd_advise", 4),
    ("fd_allocate", 3),
    ("fd_close", 1),
    ("fd_datasync", 1),
    ("fd_fdstat_get", 2),
    ("fd_fdstat_set_flags", 2),
    ("fd_fdstat_set_rights", 3),
    ("fd_filestat_get", 2),
    ("fd_filestat_set_size", 2),
    ("fd_filestat_set_times", 4),
    ("fd_pread", 5),
    ("fd_prestat_dir_name", 3),
    ("fd_prestat_get", 2),
    ("fd_pwrite", 5),
    ("fd_read", 4),
    ("fd_readdir", 5),
    ("fd_renumber", 2),
    ("fd_seek", 4),
    ("fd_sync", 1),
    ("fd_tell", 2),
    ("fd_write", 4),
    ("path_create_directory", 3),
    ("path_filestat_get", 5),
    ("path_filestat_set_times", 7),
    ("path_link", 7),
    ("path_open", 9),
    ("path_readlink", 6),
    ("path_remove_directory", 3),
    ("path_rename", 6),
    ("path_symlink", 5),
    ("path_unlink_file", 3),
    ("poll_oneoff", 4),
    (EXIT, 1),
    ("proc_raise", 1),
    ("random_get", 2),
    ("sched_yield", 0),
    ("sock_accept", 3),
    ("sock_recv", 6),
    ("sock_send", 5),
    ("sock_shutdown", 2),
];

/// Writes the number of strings, and the bytes that they take with their terminators.
fn sizes(list: &[String], memory: &mut Guest<'_>, count: u64, bytes: u64) -> Answer {
    let total: usize = list.iter().map(|string| string.len() + 1).sum();
    memory.write_u32(count, u32::try_from(list.len()).map_err(|_| Errno::Overflow)?)?;
    memory.write_u32(bytes, u32::try_from(total).map_err(|_| Errno::Overflow)?)
}

/// Writes strings with their terminators, and a pointer to each.
fn strings(list: &[String], memory: &mut Guest<'_>, mut pointers: u64, mut bytes: u64) -> Answer {
    for string in list {
        memory.write_u32(pointers, u32::try_from(bytes).map_err(|_| Errno::Fault)?)?;
        memory.write(bytes, string.as_bytes())?;
        bytes += string.len() as u64;
        memory.write(bytes, &[0])?;
        (pointers, bytes) = (pointers + 4, bytes + 1);
    }
    Ok(())
}

impl<'a> Wasi<'a> {
    /// A process with these arguments, starting with the name of the program; see
    /// [`Process::new`].
    pub fn new(
        args: Vec<String>,
        stdin: impl Read + 'a,
        stdout: impl Write + 'a,
        stderr: impl Write + 'a,
    ) -> Wasi<'a> {
        Wasi::with_process(Process::new(args), stdin, stdout, stderr)
    }

    /// A process with its streams. The host flushes output after each write, so that the program
    /// sees write errors.
    pub fn with_process(
        process: Process,
        stdin: impl Read + 'a,
        stdout: impl Write + 'a,
        stderr: impl Write + 'a,
    ) -> Wasi<'a> {
        Wasi { process, stdin: Box::new(stdin), stdout: Box::new(stdout), stderr: Box::new(stderr) }
    }

    /// The process and its streams.
    fn parts(&mut self) -> (&mut Process, Streams<'_>) {
        let Wasi { process, stdin, stdout, stderr } = self;
        (process, Streams { stdin: &mut **stdin, stdout: &mut **stdout, stderr: &mut **stderr })
    }

    /// As [`Process::call_on`].
    ///
    /// # Errors
    /// When the program exits, or when the number of arguments is wrong.
    pub fn call_on(
        &mut self,
        memory: &mut dyn GuestMemory,
        field: &str,
        args: &[u64],
    ) -> Result<Option<u32>, HostError> {
        let (process, mut streams) = self.parts();
        process.call_on(&mut streams, memory, field, args)
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
        let (process, mut streams) = self.parts();
        process.call(&mut streams, import, args, memories, results)
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
