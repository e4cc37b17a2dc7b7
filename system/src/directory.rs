//! Directories of the machine.

use crate::errors::errno;
use crate::file::{self, MachineFile};
use cap_fs_ext::{
    DirExt, FileTypeExt, FollowSymlinks, OpenOptionsFollowExt, OpenOptionsMaybeDirExt,
    SystemTimeSpec,
};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, FileType, Metadata, OpenOptions};
use std::any::Any;
use std::io;
use std::os::unix::fs::DirEntryExt;
use std::path::Path;
use std::sync::Arc;
use wasm::wasi::{
    Directory, Errno, FileKind, FileStatus, GuestFile as _, ListedFile, OpenHow, Opened, SetTime,
};

/// A directory of the machine, open.
#[derive(Debug)]
struct MachineDirectory(Dir);

/// Opens a directory for programs.
///
/// # Errors
/// When the directory is missing, or the process has no permission to open it.
pub fn directory(path: &Path) -> io::Result<Arc<dyn Directory>> {
    Ok(Arc::new(MachineDirectory(Dir::open_ambient_dir(path, ambient_authority())?)))
}

impl MachineDirectory {
    /// The directory of an operation on two.
    fn beside(target: &dyn Directory) -> Result<&Dir, Errno> {
        let target: &dyn Any = target;
        target.downcast_ref::<MachineDirectory>().map(|found| &found.0).ok_or(Errno::Xdev)
    }

    fn open_directory(&self, path: &str, follow: bool) -> io::Result<Opened> {
        let opened = match follow {
            true => self.0.open_dir(path),
            false => self.0.open_dir_nofollow(path),
        };
        Ok(Opened::Directory(Arc::new(MachineDirectory(opened?))))
    }
}

/// The kind of a file in a list, which the system tells without opening the file.
fn kind(ty: FileType) -> FileKind {
    match () {
        () if ty.is_dir() => FileKind::Directory,
        () if ty.is_file() => FileKind::Regular,
        () if ty.is_symlink() => FileKind::SymbolicLink,
        () if ty.is_block_device() => FileKind::BlockDevice,
        () if ty.is_char_device() => FileKind::CharacterDevice,
        () if ty.is_socket() => FileKind::StreamSocket,
        () => FileKind::Unknown,
    }
}

/// The time in the form of cap-std.
fn time(time: SetTime) -> Result<Option<SystemTimeSpec>, Errno> {
    if time == SetTime::Now {
        return Ok(Some(SystemTimeSpec::SymbolicNow));
    }
    let absolute = file::time(time)?.map(cap_std::time::SystemTime::from_std);
    Ok(absolute.map(SystemTimeSpec::Absolute))
}

impl Directory for MachineDirectory {
    fn open(&self, path: &str, how: &OpenHow) -> Result<Opened, Errno> {
        if how.directory {
            return self.open_directory(path, how.follow).map_err(errno);
        }
        let mut options = OpenOptions::new();
        let changes = how.write || how.create || how.truncate;
        options
            // A file that is opened for its properties alone is opened for reading.
            .read(how.read || !changes)
            .write(changes)
            .create(how.create && !how.exclusive)
            .create_new(how.create && how.exclusive)
            .truncate(how.truncate)
            .maybe_dir(true)
            .follow(if how.follow { FollowSymlinks::Yes } else { FollowSymlinks::No });
        let file = self.0.open_with(path, &options).map_err(errno)?.into_std();
        let properties = Metadata::from_file(&file).map_err(errno)?;
        if properties.is_dir() {
            return Ok(Opened::Directory(Arc::new(MachineDirectory(Dir::from_std_file(file)))));
        }
        let file = MachineFile::new(file, &properties);
        if how.append {
            // Not an option of opening: options of opening do not combine it with truncation.
            file.set_append(true)?;
        }
        Ok(Opened::File(Arc::new(file)))
    }

    fn status(&self, path: &str, follow: bool) -> Result<FileStatus, Errno> {
        let found = match follow {
            true => self.0.metadata(path),
            false => self.0.symlink_metadata(path),
        };
        found.map(|properties| file::status(&properties)).map_err(errno)
    }

    fn set_times(
        &self,
        path: &str,
        follow: bool,
        accessed: SetTime,
        modified: SetTime,
    ) -> Result<(), Errno> {
        let (accessed, modified) = (time(accessed)?, time(modified)?);
        let done = match follow {
            true => DirExt::set_times(&self.0, path, accessed, modified),
            false => self.0.set_symlink_times(path, accessed, modified),
        };
        done.map_err(errno)
    }

    fn list(&self) -> Result<Vec<ListedFile>, Errno> {
        let mut files = Vec::new();
        for entry in self.0.entries().map_err(errno)? {
            let entry = entry.map_err(errno)?;
            let name = entry.file_name().into_string().map_err(|_| Errno::Ilseq)?;
            let kind = kind(entry.file_type().map_err(errno)?);
            files.push(ListedFile { name, serial: entry.ino(), kind });
        }
        Ok(files)
    }

    fn create_directory(&self, path: &str) -> Result<(), Errno> {
        self.0.create_dir(path).map_err(errno)
    }

    fn remove_directory(&self, path: &str) -> Result<(), Errno> {
        self.0.remove_dir(path).map_err(errno)
    }

    fn unlink(&self, path: &str) -> Result<(), Errno> {
        self.0.remove_file(path).map_err(errno)
    }

    fn rename(&self, from: &str, target: &dyn Directory, to: &str) -> Result<(), Errno> {
        self.0.rename(from, Self::beside(target)?, to).map_err(errno)
    }

    fn link(&self, from: &str, target: &dyn Directory, to: &str) -> Result<(), Errno> {
        self.0.hard_link(from, Self::beside(target)?, to).map_err(errno)
    }

    fn symlink(&self, contents: &str, path: &str) -> Result<(), Errno> {
        DirExt::symlink(&self.0, contents, path).map_err(errno)
    }

    fn read_link(&self, path: &str) -> Result<String, Errno> {
        let contents = self.0.read_link(path).map_err(errno)?;
        contents.into_os_string().into_string().map_err(|_| Errno::Ilseq)
    }
}
