//! Files and directories as a WASI host sees them. An embedder implements them; the crate `system`
//! has the files of the machine.

use super::errno::Errno;
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

/// A file that is open. Positions belong to descriptors: each access names its place.
///
/// Clones of a host share its files, so methods take `&self`.
pub trait GuestFile: Debug + Send + Sync {
    /// Reads bytes from a place on. Returns their number: 0 at the end of the file, and otherwise
    /// possibly less than there is room for.
    ///
    /// # Errors
    /// As the file system says.
    fn read_at(&self, bytes: &mut [u8], at: u64) -> Result<usize, Errno>;

    /// Writes bytes from a place on. Returns the number of bytes written.
    ///
    /// # Errors
    /// As the file system says.
    fn write_at(&self, bytes: &[u8], at: u64) -> Result<usize, Errno>;

    /// Writes bytes at the end of the file. Returns the number of bytes written, and the place
    /// behind them.
    ///
    /// # Errors
    /// As the file system says.
    fn append(&self, bytes: &[u8]) -> Result<(usize, u64), Errno>;

    /// Switches between writing at the end of the file and writing at a place.
    ///
    /// # Errors
    /// As the file system says.
    fn set_append(&self, append: bool) -> Result<(), Errno>;

    /// The kind, the size and the times of the file.
    ///
    /// # Errors
    /// As the file system says.
    fn status(&self) -> Result<FileStatus, Errno>;

    /// Cuts the file off, or extends it by zeros.
    ///
    /// # Errors
    /// As the file system says.
    fn set_size(&self, bytes: u64) -> Result<(), Errno>;

    /// Sets the times of the last access and the last change.
    ///
    /// # Errors
    /// As the file system says.
    fn set_times(&self, accessed: SetTime, modified: SetTime) -> Result<(), Errno>;

    /// Waits until the contents of the file are on the device; and, unless `contents_only`, all
    /// its properties.
    ///
    /// # Errors
    /// As the file system says.
    fn sync(&self, contents_only: bool) -> Result<(), Errno>;
}

/// A directory below which a program may use paths.
///
/// An implementation must refuse each path that leads out of the directory, by `..`, as an absolute
/// path or through a symbolic link, with [`Errno::Perm`]. The host hands paths over as the program
/// wrote them.
pub trait Directory: Any + Debug + Send + Sync {
    /// Opens a file or a directory.
    ///
    /// # Errors
    /// As the file system says.
    fn open(&self, path: &str, how: &OpenHow) -> Result<Opened, Errno>;

    /// The properties of a file; of a symbolic link itself unless `follow`.
    ///
    /// # Errors
    /// As the file system says.
    fn status(&self, path: &str, follow: bool) -> Result<FileStatus, Errno>;

    /// Sets the times of a file; of a symbolic link itself unless `follow`.
    ///
    /// # Errors
    /// As the file system says.
    fn set_times(
        &self,
        path: &str,
        follow: bool,
        accessed: SetTime,
        modified: SetTime,
    ) -> Result<(), Errno>;

    /// The files in the directory itself, without `.` and `..`, in any order.
    ///
    /// # Errors
    /// As the file system says.
    fn list(&self) -> Result<Vec<ListedFile>, Errno>;

    /// Makes a directory.
    ///
    /// # Errors
    /// As the file system says.
    fn create_directory(&self, path: &str) -> Result<(), Errno>;

    /// Removes an empty directory.
    ///
    /// # Errors
    /// As the file system says.
    fn remove_directory(&self, path: &str) -> Result<(), Errno>;

    /// Removes a file that is no directory.
    ///
    /// # Errors
    /// As the file system says.
    fn unlink(&self, path: &str) -> Result<(), Errno>;

    /// Moves a file to a path below another directory, which may be the same directory.
    ///
    /// # Errors
    /// As the file system says; [`Errno::Xdev`] for a directory of another implementation.
    fn rename(&self, from: &str, target: &dyn Directory, to: &str) -> Result<(), Errno>;

    /// Makes a second name of a file, below another directory, which may be the same directory.
    ///
    /// # Errors
    /// As the file system says; [`Errno::Xdev`] for a directory of another implementation.
    fn link(&self, from: &str, target: &dyn Directory, to: &str) -> Result<(), Errno>;

    /// Makes a symbolic link at `path` with these contents.
    ///
    /// # Errors
    /// As the file system says.
    fn symlink(&self, contents: &str, path: &str) -> Result<(), Errno>;

    /// The contents of a symbolic link.
    ///
    /// # Errors
    /// As the file system says.
    fn read_link(&self, path: &str) -> Result<String, Errno>;
}

/// The result of [`Directory::open`].
#[derive(Clone, Debug)]
pub enum Opened {
    /// A file that is no directory.
    File(Arc<dyn GuestFile>),
    /// A directory.
    Directory(Arc<dyn Directory>),
}

/// The way in which a program opens a file.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct OpenHow {
    /// Make the file if it does not exist.
    pub create: bool,
    /// Fail if the file exists; with `create`.
    pub exclusive: bool,
    /// Cut the file off at its beginning.
    pub truncate: bool,
    /// Fail if the path does not lead to a directory.
    pub directory: bool,
    /// Follow a symbolic link at the end of the path.
    pub follow: bool,
    /// The program reads.
    pub read: bool,
    /// The program writes.
    pub write: bool,
    /// All writes go to the end of the file.
    pub append: bool,
}

/// A file in a list of a directory.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ListedFile {
    /// Its name.
    pub name: String,
    /// Its serial number on its device.
    pub serial: u64,
    /// Its kind.
    pub kind: FileKind,
}

/// The properties of a file. Times are nanoseconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileStatus {
    /// The number of the device that contains it.
    pub device: u64,
    /// The serial number of the file on its device.
    pub serial: u64,
    /// Its kind.
    pub kind: FileKind,
    /// The number of its names (hard links).
    pub links: u64,
    /// Its size in bytes.
    pub size: u64,
    /// The time of the last access.
    pub accessed: u64,
    /// The time of the last change of its contents.
    pub modified: u64,
    /// The time of the last change of its properties.
    pub changed: u64,
}

/// The kind of a file, with the number that the program gets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum FileKind {
    /// None of the kinds below.
    Unknown = 0,
    /// A block device.
    BlockDevice = 1,
    /// A terminal, or another device of characters.
    CharacterDevice = 2,
    /// A directory.
    Directory = 3,
    /// A regular file.
    Regular = 4,
    /// A socket for packets.
    DatagramSocket = 5,
    /// A socket for streams.
    StreamSocket = 6,
    /// A symbolic link.
    SymbolicLink = 7,
}

/// A new value of a time of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetTime {
    /// The time stays.
    Keep,
    /// The time of the file system's clock.
    Now,
    /// Nanoseconds since 1970.
    At(u64),
}
