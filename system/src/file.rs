//! Files of the machine, and their properties.

use crate::errors::errno;
use cap_std::fs::{Metadata, MetadataExt};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl};
use std::fs::{File, FileTimes};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::FileExt;
use std::time::{Duration, SystemTime};
use wasm::wasi::{self, Errno, FileKind, FileStatus, SetTime};

/// A file of the machine.
#[derive(Debug)]
pub(crate) struct MachineFile {
    file: File,
    /// Pipes and terminals are not regular: they have no places.
    is_regular: bool,
}

impl MachineFile {
    pub(crate) fn new(file: File, properties: &Metadata) -> MachineFile {
        MachineFile { file, is_regular: properties.is_file() }
    }
}

/// Repeats a call that a signal interrupted.
fn uninterrupted(mut call: impl FnMut() -> io::Result<usize>) -> Result<usize, Errno> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other.map_err(errno),
        }
    }
}

impl wasi::GuestFile for MachineFile {
    fn read_at(&self, bytes: &mut [u8], at: u64) -> Result<usize, Errno> {
        uninterrupted(|| match self.is_regular {
            true => FileExt::read_at(&self.file, bytes, at),
            false => (&self.file).read(bytes),
        })
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> Result<usize, Errno> {
        uninterrupted(|| match self.is_regular {
            true => FileExt::write_at(&self.file, bytes, at),
            false => (&self.file).write(bytes),
        })
    }

    fn append(&self, bytes: &[u8]) -> Result<(usize, u64), Errno> {
        // The file has the flag of the system, so that the write cannot overwrite the writes of
        // other processes.
        let written = uninterrupted(|| (&self.file).write(bytes))?;
        let end = if self.is_regular { (&self.file).stream_position().map_err(errno)? } else { 0 };
        Ok((written, end))
    }

    fn set_append(&self, append: bool) -> Result<(), Errno> {
        let flags = fcntl_getfl(&self.file).map_err(|error| errno(error.into()))?;
        let flags = if append { flags | OFlags::APPEND } else { flags - OFlags::APPEND };
        fcntl_setfl(&self.file, flags).map_err(|error| errno(error.into()))
    }

    fn status(&self) -> Result<FileStatus, Errno> {
        Metadata::from_file(&self.file).map(|properties| status(&properties)).map_err(errno)
    }

    fn set_size(&self, bytes: u64) -> Result<(), Errno> {
        self.file.set_len(bytes).map_err(errno)
    }

    fn set_times(&self, accessed: SetTime, modified: SetTime) -> Result<(), Errno> {
        let mut times = FileTimes::new();
        if let Some(time) = time(accessed)? {
            times = times.set_accessed(time);
        }
        if let Some(time) = time(modified)? {
            times = times.set_modified(time);
        }
        self.file.set_times(times).map_err(errno)
    }

    fn sync(&self, contents_only: bool) -> Result<(), Errno> {
        let done = if contents_only { self.file.sync_data() } else { self.file.sync_all() };
        done.map_err(errno)
    }
}

/// The time to set; `None` if it stays.
pub(crate) fn time(time: SetTime) -> Result<Option<SystemTime>, Errno> {
    match time {
        SetTime::Keep => Ok(None),
        SetTime::Now => Ok(Some(SystemTime::now())),
        SetTime::At(nanoseconds) => {
            let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(nanoseconds));
            time.map(Some).ok_or(Errno::Inval)
        }
    }
}

/// Nanoseconds since 1970; 0 before.
fn nanoseconds(seconds: i64, rest: i64) -> u64 {
    let of_seconds = u64::try_from(seconds).unwrap_or(0).saturating_mul(1_000_000_000);
    of_seconds.saturating_add(u64::try_from(rest).unwrap_or(0))
}

/// The properties of a file.
pub(crate) fn status(properties: &Metadata) -> FileStatus {
    FileStatus {
        device: properties.dev(),
        serial: properties.ino(),
        kind: kind(properties.mode()),
        links: properties.nlink(),
        size: properties.size(),
        accessed: nanoseconds(properties.atime(), properties.atime_nsec()),
        modified: nanoseconds(properties.mtime(), properties.mtime_nsec()),
        changed: nanoseconds(properties.ctime(), properties.ctime_nsec()),
    }
}

/// The kind of a file with this mode. A pipe has no kind in WASI.
fn kind(mode: u32) -> FileKind {
    match FileType::from_raw_mode(mode) {
        FileType::RegularFile => FileKind::Regular,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::SymbolicLink,
        FileType::CharacterDevice => FileKind::CharacterDevice,
        FileType::BlockDevice => FileKind::BlockDevice,
        FileType::Socket => FileKind::StreamSocket,
        _ => FileKind::Unknown,
    }
}
