//! The functions on paths, whose names begin with `path_`. Every path starts at an open directory;
//! the directory refuses paths that lead outside.

use super::descriptors::{Descriptor, Object, OpenDirectory, OpenFile, times, write_status};
use super::errno::Errno;
use super::files::{OpenHow, Opened};
use super::memory::Guest;
use super::{Answer, Process, rights};

/// The flag of a look-up that follows a symbolic link at the end of the path.
const FOLLOW: u64 = 1;

/// Flags of `path_open`.
const CREATE: u64 = 1;
const DIRECTORY: u64 = 2;
const EXCLUSIVE: u64 = 4;
const TRUNCATE: u64 = 8;

impl Process {
    /// Performs the call of a function on paths by name.
    pub(super) fn answer_path(
        &mut self,
        memory: &mut Guest<'_>,
        field: &str,
        args: &[u64],
    ) -> Answer {
        match (field, args) {
            ("path_open", &[fd, look, path, length, flags, rights, inheriting, mode, to]) => {
                let path = memory.path([path, length])?;
                self.path_open(memory, fd, &path, [look, flags, rights, inheriting, mode, to])
            }
            ("path_filestat_get", &[fd, look, path, length, to]) => {
                let path = memory.path([path, length])?;
                let directory = self.descriptors.directory(fd)?;
                write_status(memory, to, directory.status(&path, look & FOLLOW != 0)?)
            }
            ("path_filestat_set_times", &[fd, look, path, length, accessed, modified, flags]) => {
                let path = memory.path([path, length])?;
                let [accessed, modified] = times([accessed, modified, flags])?;
                let directory = self.descriptors.directory(fd)?;
                directory.set_times(&path, look & FOLLOW != 0, accessed, modified)
            }
            ("path_create_directory", &[fd, path, length]) => {
                let path = memory.path([path, length])?;
                self.descriptors.directory(fd)?.create_directory(&path)
            }
            ("path_remove_directory", &[fd, path, length]) => {
                let path = memory.path([path, length])?;
                self.descriptors.directory(fd)?.remove_directory(&path)
            }
            ("path_unlink_file", &[fd, path, length]) => {
                let path = memory.path([path, length])?;
                self.descriptors.directory(fd)?.unlink(&path)
            }
            ("path_rename", &[fd, from, from_length, target, to, to_length]) => {
                let (from, to) = (memory.path([from, from_length])?, memory.path([to, to_length])?);
                let target = self.descriptors.directory(target)?;
                self.descriptors.directory(fd)?.rename(&from, &**target, &to)
            }
            ("path_link", &[fd, look, from, from_length, target, to, to_length]) => {
                let (from, to) = (memory.path([from, from_length])?, memory.path([to, to_length])?);
                if look & FOLLOW != 0 {
                    return Err(Errno::Inval);
                }
                let target = self.descriptors.directory(target)?;
                self.descriptors.directory(fd)?.link(&from, &**target, &to)
            }
            ("path_symlink", &[contents, contents_length, fd, path, length]) => {
                let contents = memory.path([contents, contents_length])?;
                let path = memory.path([path, length])?;
                self.descriptors.directory(fd)?.symlink(&contents, &path)
            }
            ("path_readlink", &[fd, path, length, to, room, told]) => {
                let path = memory.path([path, length])?;
                let contents = self.descriptors.directory(fd)?.read_link(&path)?;
                let room = usize::try_from(room).unwrap_or(usize::MAX).min(contents.len());
                memory.write(to, &contents.as_bytes()[..room])?;
                memory.write_u32(told, room as u32) // a path has less bytes
            }
            _ => Err(Errno::Nosys),
        }
    }

    /// Opens a file or a directory. The rights that the program requests say whether it reads or
    /// writes.
    fn path_open(
        &mut self,
        memory: &mut Guest<'_>,
        fd: u64,
        path: &str,
        [look, flags, asked, inheriting, mode, to]: [u64; 6],
    ) -> Answer {
        memory.read(to, 4)?; // a bad result address must not create a file
        self.descriptors.check_room()?;
        let directory = self.descriptors.directory(fd)?;
        let above = self.descriptors.get(fd)?.inheriting;
        let asked = asked & above;
        let mode = u16::try_from(mode).ok().filter(|mode| mode & !rights::FLAGS == 0);
        let mode = mode.ok_or(Errno::Inval)?;
        let how = OpenHow {
            create: flags & CREATE != 0,
            exclusive: flags & EXCLUSIVE != 0,
            truncate: flags & TRUNCATE != 0,
            directory: flags & DIRECTORY != 0,
            follow: look & FOLLOW != 0,
            read: asked & rights::READ != 0,
            write: asked & rights::WRITE != 0,
            append: mode & rights::APPEND != 0,
        };
        if how.directory && (how.create || how.exclusive || how.truncate) {
            return Err(Errno::Inval);
        }
        let descriptor = match directory.open(path, &how)? {
            Opened::File(file) => {
                let kind = file.status()?.kind;
                let object = Object::File(OpenFile { file, kind, position: 0 });
                Descriptor::of(object, mode, asked & rights::OF_FILES, 0)
            }
            Opened::Directory(directory) => {
                let open = OpenDirectory { directory, preopened: None, listed: Vec::new() };
                let rights = rights::OF_DIRECTORIES;
                Descriptor::of(Object::Directory(open), mode, rights, inheriting & above)
            }
        };
        let number = self.descriptors.add(descriptor)?;
        memory.write_u32(to, number)
    }
}
