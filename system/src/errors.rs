//! Errors of the machine as numbers of WASI.

use std::io;
use wasm::wasi::Errno;

/// The answer for an error of the machine.
pub(crate) fn errno(error: io::Error) -> Errno {
    use rustix::io::Errno as Os;
    let Some(number) = Os::from_io_error(&error) else { return Errno::from(error) };
    match number {
        Os::ACCESS => Errno::Acces,
        Os::AGAIN => Errno::Again,
        Os::BADF => Errno::Badf,
        Os::BUSY => Errno::Busy,
        Os::DQUOT => Errno::Dquot,
        Os::EXIST => Errno::Exist,
        Os::FBIG => Errno::Fbig,
        Os::ILSEQ => Errno::Ilseq,
        Os::INTR => Errno::Intr,
        Os::INVAL => Errno::Inval,
        Os::ISDIR => Errno::Isdir,
        Os::LOOP => Errno::Loop,
        Os::MFILE => Errno::Mfile,
        Os::MLINK => Errno::Mlink,
        Os::NAMETOOLONG => Errno::Nametoolong,
        Os::NFILE => Errno::Nfile,
        Os::NODEV => Errno::Nodev,
        Os::NOENT => Errno::Noent,
        Os::NOMEM => Errno::Nomem,
        Os::NOSPC => Errno::Nospc,
        Os::NOTDIR => Errno::Notdir,
        Os::NOTEMPTY => Errno::Notempty,
        Os::OPNOTSUPP => Errno::Notsup,
        Os::NXIO => Errno::Nxio,
        Os::OVERFLOW => Errno::Overflow,
        Os::PERM => Errno::Perm,
        Os::PIPE => Errno::Pipe,
        Os::ROFS => Errno::Rofs,
        Os::SPIPE => Errno::Spipe,
        Os::TXTBSY => Errno::Txtbsy,
        Os::XDEV => Errno::Xdev,
        _ => Errno::Io,
    }
}
