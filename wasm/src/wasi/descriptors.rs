//! The descriptors of a process, and the functions on them whose names begin with `fd_`.

use super::errno::Errno;
use super::files::{Directory, FileKind, FileStatus, GuestFile, ListedFile, SetTime};
use super::memory::Guest;
use super::{Answer, Process, Streams, rights};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most descriptors of a process, the usual limit of POSIX systems.
const MAX_DESCRIPTORS: u32 = 1024;

/// The descriptors that are open.
#[derive(Clone, Debug)]
pub(super) struct Descriptors(BTreeMap<u32, Descriptor>);

/// An open descriptor.
#[derive(Clone, Debug)]
pub(super) struct Descriptor {
    pub(super) object: Object,
    pub(super) flags: u16,
    pub(super) rights: u64,
    /// The rights of files opened below this directory.
    pub(super) inheriting: u64,
}

/// The thing that a descriptor is open on.
#[derive(Clone, Debug)]
pub(super) enum Object {
    /// The standard stream of this number.
    Stream {
        number: u8,
        is_terminal: bool,
    },
    File(OpenFile),
    Directory(OpenDirectory),
}

#[derive(Clone, Debug)]
pub(super) struct OpenFile {
    pub(super) file: Arc<dyn GuestFile>,
    pub(super) kind: FileKind,
    pub(super) position: u64,
}

#[derive(Clone, Debug)]
pub(super) struct OpenDirectory {
    pub(super) directory: Arc<dyn Directory>,
    /// The path by which the program names the directory, if the embedder opened it.
    pub(super) preopened: Option<String>,
    /// The files in the directory when the program began to list them.
    pub(super) listed: Vec<ListedFile>,
}

impl Descriptors {
    /// The standard streams.
    pub(super) fn new() -> Descriptors {
        let stream = |number| {
            let rights = if number == 0 { rights::OF_INPUT } else { rights::OF_OUTPUT };
            let object = Object::Stream { number, is_terminal: false };
            (u32::from(number), Descriptor { object, flags: 0, rights, inheriting: 0 })
        };
        Descriptors((0..3).map(stream).collect())
    }

    pub(super) fn set_terminals(&mut self, terminals: [bool; 3]) {
        for descriptor in self.0.values_mut() {
            if let Object::Stream { number, is_terminal } = &mut descriptor.object {
                *is_terminal = terminals[usize::from(*number)];
            }
        }
    }

    /// Adds a directory behind all others, beyond the limit too: the embedder decides.
    pub(super) fn add_preopened(&mut self, path: &str, directory: Arc<dyn Directory>) {
        let number = self.0.keys().next_back().map_or(0, |last| last + 1);
        let preopened = Some(path.to_owned());
        let object = Object::Directory(OpenDirectory { directory, preopened, listed: Vec::new() });
        let rights = rights::OF_DIRECTORIES;
        let inheriting = rights::ALL;
        self.0.insert(number, Descriptor { object, flags: 0, rights, inheriting });
    }

    /// Whether one more descriptor may be opened.
    pub(super) fn check_room(&self) -> Answer {
        if self.0.len() < MAX_DESCRIPTORS as usize { Ok(()) } else { Err(Errno::Mfile) }
    }

    /// Adds a descriptor under the lowest free number.
    pub(super) fn add(&mut self, descriptor: Descriptor) -> Result<u32, Errno> {
        self.check_room()?;
        let free = self.0.keys().zip(0..).find(|(used, number)| *used != number);
        let number = free.map_or(self.0.len() as u32, |(_, number)| number);
        self.0.insert(number, descriptor);
        Ok(number)
    }

    pub(super) fn get(&self, fd: u64) -> Result<&Descriptor, Errno> {
        u32::try_from(fd).ok().and_then(|fd| self.0.get(&fd)).ok_or(Errno::Badf)
    }

    pub(super) fn get_mut(&mut self, fd: u64) -> Result<&mut Descriptor, Errno> {
        u32::try_from(fd).ok().and_then(|fd| self.0.get_mut(&fd)).ok_or(Errno::Badf)
    }

    fn remove(&mut self, fd: u64) -> Result<Descriptor, Errno> {
        u32::try_from(fd).ok().and_then(|fd| self.0.remove(&fd)).ok_or(Errno::Badf)
    }

    /// The directory of a descriptor.
    pub(super) fn directory(&self, fd: u64) -> Result<&Arc<dyn Directory>, Errno> {
        match &self.get(fd)?.object {
            Object::Directory(open) => Ok(&open.directory),
            Object::File(_) => Err(Errno::Notdir),
            Object::Stream { .. } => Err(Errno::Badf),
        }
    }

    fn directory_mut(&mut self, fd: u64) -> Result<&mut OpenDirectory, Errno> {
        match &mut self.get_mut(fd)?.object {
            Object::Directory(open) => Ok(open),
            Object::File(_) => Err(Errno::Notdir),
            Object::Stream { .. } => Err(Errno::Badf),
        }
    }

    /// The file of a descriptor. Directories have no contents, and streams no position.
    pub(super) fn file_mut(&mut self, fd: u64) -> Result<&mut OpenFile, Errno> {
        match &mut self.get_mut(fd)?.object {
            Object::File(open) => Ok(open),
            Object::Directory(_) => Err(Errno::Badf),
            Object::Stream { .. } => Err(Errno::Spipe),
        }
    }
}

impl Descriptor {
    pub(super) fn of(object: Object, flags: u16, rights: u64, inheriting: u64) -> Descriptor {
        Descriptor { object, flags, rights, inheriting }
    }

    /// Fails unless the descriptor has a right to its contents.
    pub(super) fn check(&self, right: u64) -> Answer {
        if self.rights & right == right { Ok(()) } else { Err(Errno::Badf) }
    }

    fn kind(&self) -> FileKind {
        match &self.object {
            // Without a terminal the kind is unknown, so that a libc neither seeks nor writes
            // line by line.
            Object::Stream { is_terminal: false, .. } => FileKind::Unknown,
            Object::Stream { is_terminal: true, .. } => FileKind::CharacterDevice,
            Object::File(open) => open.kind,
            Object::Directory(_) => FileKind::Directory,
        }
    }

    fn status(&self) -> Result<FileStatus, Errno> {
        match &self.object {
            Object::Stream { .. } => Ok(FileStatus {
                device: 0,
                serial: 0,
                kind: self.kind(),
                links: 0,
                size: 0,
                accessed: 0,
                modified: 0,
                changed: 0,
            }),
            Object::File(open) => open.file.status(),
            Object::Directory(open) => open.directory.status(".", true),
        }
    }
}

/// Writes the properties of a file in the layout of the program.
pub(super) fn write_status(memory: &mut Guest<'_>, to: u64, status: FileStatus) -> Answer {
    let FileStatus { device, serial, kind, links, size, accessed, modified, changed } = status;
    let words = [device, serial, kind as u64, links, size, accessed, modified, changed];
    memory.write(to, words.map(u64::to_le_bytes).as_flattened())
}

/// The two times that a program sets: of the last access and of the last change.
pub(super) fn times([accessed, modified, flags]: [u64; 3]) -> Result<[SetTime; 2], Errno> {
    let time = |value, flags| match flags & 3 {
        0 => Ok(SetTime::Keep),
        1 => Ok(SetTime::At(value)),
        2 => Ok(SetTime::Now),
        _ => Err(Errno::Inval),
    };
    if flags > 15 {
        return Err(Errno::Inval);
    }
    Ok([time(accessed, flags)?, time(modified, flags >> 2)?])
}

/// The head of a directory entry in bytes; the name follows.
const ENTRY: usize = 24;

impl Process {
    /// Performs the call of a function on descriptors by name.
    pub(super) fn answer_fd(
        &mut self,
        streams: &mut Streams<'_>,
        memory: &mut Guest<'_>,
        field: &str,
        args: &[u64],
    ) -> Answer {
        let descriptors = &mut self.descriptors;
        match (field, args) {
            ("fd_read", &[fd, list, count, told]) => {
                self.fd_read(streams, memory, fd, None, [list, count, told])
            }
            ("fd_pread", &[fd, list, count, at, told]) => {
                self.fd_read(streams, memory, fd, Some(at), [list, count, told])
            }
            ("fd_write", &[fd, list, count, told]) => {
                self.fd_write(streams, memory, fd, None, [list, count, told])
            }
            ("fd_pwrite", &[fd, list, count, at, told]) => {
                self.fd_write(streams, memory, fd, Some(at), [list, count, told])
            }
            ("fd_seek", &[fd, offset, whence, to]) => {
                self.fd_seek(memory, fd, [offset, whence, to])
            }
            ("fd_tell", &[fd, to]) => memory.write_u64(to, descriptors.file_mut(fd)?.position),
            ("fd_close", &[fd]) => descriptors.remove(fd).map(drop),
            ("fd_renumber", &[from, to]) => self.fd_renumber(from, to),
            ("fd_fdstat_get", &[fd, to]) => self.fd_fdstat_get(memory, fd, to),
            ("fd_fdstat_set_flags", &[fd, flags]) => self.fd_fdstat_set_flags(fd, flags),
            ("fd_fdstat_set_rights", &[fd, rights, inheriting]) => {
                let descriptor = descriptors.get_mut(fd)?;
                if rights & !descriptor.rights != 0 || inheriting & !descriptor.inheriting != 0 {
                    return Err(Errno::Notcapable);
                }
                (descriptor.rights, descriptor.inheriting) = (rights, inheriting);
                Ok(())
            }
            ("fd_filestat_get", &[fd, to]) => {
                write_status(memory, to, descriptors.get(fd)?.status()?)
            }
            ("fd_filestat_set_size", &[fd, size]) => {
                // POSIX has this number for a file that is not open for writing.
                descriptors.get(fd)?.check(rights::WRITE).map_err(|_| Errno::Inval)?;
                descriptors.file_mut(fd)?.file.set_size(size)
            }
            ("fd_filestat_set_times", &[fd, accessed, modified, flags]) => {
                self.fd_filestat_set_times(fd, times([accessed, modified, flags])?)
            }
            ("fd_sync", &[fd]) => self.fd_sync(fd, false),
            ("fd_datasync", &[fd]) => self.fd_sync(fd, true),
            ("fd_advise", &[fd, _, _, advice]) => match descriptors.file_mut(fd) {
                Ok(_) if advice > 5 => Err(Errno::Inval),
                answer => answer.map(drop),
            },
            ("fd_allocate", &[fd, _, _]) => descriptors.file_mut(fd).and(Err(Errno::Notsup)),
            ("fd_readdir", &[fd, to, length, cookie, told]) => {
                self.fd_readdir(memory, fd, [to, length, cookie, told])
            }
            ("fd_prestat_get", &[fd, to]) => {
                let length = descriptors.preopened(fd)?.len();
                let length = u64::try_from(length).map_err(|_| Errno::Overflow)?;
                memory.write_u64(to, length << 32) // the kind, 0 for a directory, and the length
            }
            ("fd_prestat_dir_name", &[fd, to, length]) => {
                let path = descriptors.preopened(fd)?.as_bytes();
                if length < path.len() as u64 {
                    return Err(Errno::Nametoolong);
                }
                memory.write(to, path)
            }
            _ => Err(Errno::Nosys),
        }
    }

    fn fd_renumber(&mut self, from: u64, to: u64) -> Answer {
        self.descriptors.get(to)?;
        let descriptor = self.descriptors.remove(from)?;
        *self.descriptors.get_mut(to)? = descriptor;
        Ok(())
    }

    fn fd_fdstat_get(&self, memory: &mut Guest<'_>, fd: u64, to: u64) -> Answer {
        let descriptor = self.descriptors.get(fd)?;
        let mut bytes = [0; 24];
        bytes[0] = descriptor.kind() as u8;
        bytes[2..4].copy_from_slice(&descriptor.flags.to_le_bytes());
        bytes[8..16].copy_from_slice(&descriptor.rights.to_le_bytes());
        bytes[16..].copy_from_slice(&descriptor.inheriting.to_le_bytes());
        memory.write(to, &bytes)
    }

    fn fd_fdstat_set_flags(&mut self, fd: u64, flags: u64) -> Answer {
        let flags = u16::try_from(flags).ok().filter(|flags| flags & !rights::FLAGS == 0);
        let flags = flags.ok_or(Errno::Inval)?;
        let descriptor = self.descriptors.get_mut(fd)?;
        match &descriptor.object {
            // The streams of the embedder wait as they like.
            Object::Stream { .. } if flags & rights::NONBLOCK != 0 => return Err(Errno::Notsup),
            Object::File(open) if (flags ^ descriptor.flags) & rights::APPEND != 0 => {
                open.file.set_append(flags & rights::APPEND != 0)?;
            }
            _ => {}
        }
        descriptor.flags = flags;
        Ok(())
    }

    fn fd_filestat_set_times(&mut self, fd: u64, [accessed, modified]: [SetTime; 2]) -> Answer {
        match &self.descriptors.get(fd)?.object {
            Object::Stream { .. } => Err(Errno::Badf),
            Object::File(open) => open.file.set_times(accessed, modified),
            Object::Directory(open) => open.directory.set_times(".", true, accessed, modified),
        }
    }

    fn fd_sync(&mut self, fd: u64, contents_only: bool) -> Answer {
        match &self.descriptors.get(fd)?.object {
            Object::Stream { .. } => Err(Errno::Inval),
            Object::File(open) => open.file.sync(contents_only),
            // A directory has no contents of its own that a program could have changed unseen.
            Object::Directory(_) => Ok(()),
        }
    }

    fn fd_seek(
        &mut self,
        memory: &mut Guest<'_>,
        fd: u64,
        [offset, whence, to]: [u64; 3],
    ) -> Answer {
        let open = self.descriptors.file_mut(fd)?;
        memory.read(to, 8)?; // a bad result address must not move
        let base = match whence {
            0 => 0,
            1 => open.position,
            2 => open.file.status()?.size,
            _ => return Err(Errno::Inval),
        };
        let position = base.checked_add_signed(offset.cast_signed()).ok_or(Errno::Inval)?;
        i64::try_from(position).map_err(|_| Errno::Inval)?;
        open.position = position;
        memory.write_u64(to, position)
    }

    /// Writes directory entries, the last entry possibly in part. The cookie of an entry is its
    /// number; a program that requests the first entry begins a new list.
    fn fd_readdir(
        &mut self,
        memory: &mut Guest<'_>,
        fd: u64,
        [to, length, cookie, told]: [u64; 4],
    ) -> Answer {
        let open = self.descriptors.directory_mut(fd)?;
        memory.read(to, length)?;
        if cookie == 0 {
            open.listed = listed(&*open.directory)?;
        }
        let skipped = usize::try_from(cookie).unwrap_or(usize::MAX);
        let mut written = 0;
        for (file, next) in open.listed.iter().zip(1u64..).skip(skipped) {
            let mut entry = [0; ENTRY].to_vec();
            entry[..8].copy_from_slice(&next.to_le_bytes());
            entry[8..16].copy_from_slice(&file.serial.to_le_bytes());
            let name = u32::try_from(file.name.len()).map_err(|_| Errno::Overflow)?;
            entry[16..20].copy_from_slice(&name.to_le_bytes());
            entry[20] = file.kind as u8;
            entry.extend_from_slice(file.name.as_bytes());
            entry.truncate(usize::try_from(length - written).unwrap_or(usize::MAX));
            memory.write(to + written, &entry)?;
            written += entry.len() as u64;
            if written == length {
                break;
            }
        }
        memory.write_u32(told, u32::try_from(written).map_err(|_| Errno::Overflow)?)
    }

    /// The bytes that a read or a write of a descriptor finds ready, where that is known.
    pub(super) fn ready(&self, fd: u64) -> Result<u64, Errno> {
        match &self.descriptors.get(fd)?.object {
            Object::Stream { .. } => Ok(1),
            Object::File(open) => Ok(open.file.status()?.size.saturating_sub(open.position)),
            Object::Directory(_) => Err(Errno::Badf),
        }
    }
}

impl Descriptors {
    /// The path of a directory that the embedder opened. A libc queries the descriptors from 3 on
    /// until this answer is an error.
    fn preopened(&self, fd: u64) -> Result<&str, Errno> {
        match &self.get(fd)?.object {
            Object::Directory(OpenDirectory { preopened: Some(path), .. }) => Ok(path),
            _ => Err(Errno::Badf),
        }
    }
}

/// The list of a directory: itself, its parent, and its files by name. The order of a file system
/// would make runs differ.
fn listed(directory: &dyn Directory) -> Result<Vec<ListedFile>, Errno> {
    let serial = directory.status(".", true)?.serial;
    let own = |name: &str| ListedFile { name: name.to_owned(), serial, kind: FileKind::Directory };
    let mut files = directory.list()?;
    files.sort_unstable();
    // The parent may lie outside; its number is not for the program.
    Ok([own("."), own("..")].into_iter().chain(files).collect())
}
