//! The error numbers of WASI preview 1 that this host and its files answer with.

use std::io;

/// An error number of WASI preview 1. Its value is the number that the program gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum Errno {
    /// Permission denied.
    Acces = 2,
    /// Try again.
    Again = 6,
    /// No such open descriptor, or a descriptor of the wrong kind.
    Badf = 8,
    /// The file or directory is in use.
    Busy = 10,
    /// The quota of the disk is used up.
    Dquot = 19,
    /// The file exists.
    Exist = 20,
    /// An address lies outside of the program's memory.
    Fault = 21,
    /// The file would become too large.
    Fbig = 22,
    /// A path is not UTF-8.
    Ilseq = 25,
    /// A signal interrupted the call.
    Intr = 27,
    /// An argument is invalid.
    Inval = 28,
    /// An error of a device, or one without a number of its own.
    Io = 29,
    /// The path leads to a directory.
    Isdir = 31,
    /// Too many symbolic links, or a link where none may be followed.
    Loop = 32,
    /// Too many descriptors are open.
    Mfile = 33,
    /// Too many hard links.
    Mlink = 34,
    /// A path is too long.
    Nametoolong = 37,
    /// Too many files are open in the whole system.
    Nfile = 41,
    /// No such device.
    Nodev = 43,
    /// No such file or directory.
    Noent = 44,
    /// Not enough memory.
    Nomem = 48,
    /// No space is left on the device.
    Nospc = 51,
    /// The host does not have this function.
    Nosys = 52,
    /// A part of the path is not a directory.
    Notdir = 54,
    /// The directory is not empty.
    Notempty = 55,
    /// The descriptor is not a socket.
    Notsock = 57,
    /// The host does not support this use of the function.
    Notsup = 58,
    /// No such device or address.
    Nxio = 60,
    /// A number does not fit its place.
    Overflow = 61,
    /// The operation is not permitted; a path that leads out of its directory gets this answer.
    Perm = 63,
    /// The reader of the pipe is gone.
    Pipe = 64,
    /// The file system can only be read.
    Rofs = 69,
    /// The descriptor has no position.
    Spipe = 70,
    /// The file is a program that runs.
    Txtbsy = 74,
    /// The two paths are on different devices.
    Xdev = 75,
    /// The descriptor lacks a right.
    Notcapable = 76,
}

/// The answer for an error of a stream or a file that names no number of the system.
impl From<io::Error> for Errno {
    fn from(error: io::Error) -> Errno {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Errno::Pipe,
            io::ErrorKind::WouldBlock => Errno::Again,
            io::ErrorKind::Interrupted => Errno::Intr,
            io::ErrorKind::InvalidInput => Errno::Inval,
            // Directories of cap-std give this kind, without a number of the system, to a path
            // that leads out of them.
            io::ErrorKind::PermissionDenied => Errno::Perm,
            _ => Errno::Io,
        }
    }
}
