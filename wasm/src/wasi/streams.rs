//! Reading and writing of descriptors: standard streams and files.

use super::descriptors::{Object, OpenFile};
use super::errno::Errno;
use super::memory::{CHUNK, Guest};
use super::{Answer, Process, Streams, rights};
use std::io::{self, Read, Write};

impl Process {
    /// Writes buffers to a stream or a file; to a place of the file, with `at`.
    pub(super) fn fd_write(
        &mut self,
        streams: &mut Streams<'_>,
        memory: &mut Guest<'_>,
        fd: u64,
        at: Option<u64>,
        [list, count, told]: [u64; 3],
    ) -> Answer {
        let descriptor = self.descriptors.get_mut(fd)?;
        descriptor.check(rights::WRITE)?;
        memory.read(told, 4)?; // a bad result address must not write output
        // All buffers are checked before the first is written, because a program may assume that a
        // call with a bad buffer wrote nothing.
        let buffers = memory.buffers(list, count)?;
        let flags = descriptor.flags;
        let total = match &mut descriptor.object {
            Object::Stream { .. } if at.is_some() => return Err(Errno::Spipe),
            Object::Stream { number: 1, .. } => write_stream(streams.stdout, memory, &buffers)?,
            Object::Stream { .. } => write_stream(streams.stderr, memory, &buffers)?,
            Object::File(open) => write_file(open, flags, at, memory, &buffers)?,
            Object::Directory(_) => return Err(Errno::Badf),
        };
        memory.write_u32(told, total)
    }

    /// Fills buffers from a stream or a file; from a place of the file, with `at`.
    pub(super) fn fd_read(
        &mut self,
        streams: &mut Streams<'_>,
        memory: &mut Guest<'_>,
        fd: u64,
        at: Option<u64>,
        [list, count, told]: [u64; 3],
    ) -> Answer {
        let descriptor = self.descriptors.get_mut(fd)?;
        descriptor.check(rights::READ)?;
        memory.read(told, 4)?; // a bad result address must not consume input
        let buffers = memory.buffers(list, count)?;
        let total = match &mut descriptor.object {
            Object::Stream { .. } if at.is_some() => return Err(Errno::Spipe),
            Object::Stream { .. } => read_stream(streams.stdin, memory, &buffers)?,
            Object::File(open) => read_file(open, at, memory, &buffers)?,
            Object::Directory(_) => return Err(Errno::Badf),
        };
        memory.write_u32(told, total)
    }
}

/// Lists of buffers have less than 2^32 bytes, so sums of their lengths fit.
fn sum(total: u64) -> Result<u32, Errno> {
    u32::try_from(total).map_err(|_| Errno::Overflow)
}

fn write_stream(
    output: &mut dyn Write,
    memory: &Guest<'_>,
    buffers: &[(u64, u64)],
) -> Result<u32, Errno> {
    let mut total = 0;
    for (address, length) in buffers {
        output.write_all(memory.read(*address, *length)?)?;
        total += length;
    }
    output.flush()?;
    sum(total)
}

/// WASI allows short reads, so one read fills one buffer.
fn read_stream(
    input: &mut dyn Read,
    memory: &mut Guest<'_>,
    buffers: &[(u64, u64)],
) -> Result<u32, Errno> {
    let Some((address, length)) = buffers.iter().find(|(_, length)| *length > 0) else {
        return Ok(0);
    };
    let mut bytes = vec![0; (*length).min(CHUNK) as usize];
    let got = loop {
        match input.read(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other?,
        }
    };
    memory.write(*address, &bytes[..got])?;
    sum(got as u64)
}

/// The result of an access that ended early: the bytes so far, or the error of the first step.
fn so_far(total: u64, end: Result<(), Errno>) -> Result<u32, Errno> {
    match end {
        Err(errno) if total == 0 => Err(errno),
        _ => sum(total),
    }
}

fn write_file(
    open: &mut OpenFile,
    flags: u16,
    at: Option<u64>,
    memory: &Guest<'_>,
    buffers: &[(u64, u64)],
) -> Result<u32, Errno> {
    let mut total = 0;
    let mut place = at.unwrap_or(open.position);
    let end = buffers.iter().try_for_each(|(address, length)| {
        let mut piece = memory.read(*address, *length)?;
        while !piece.is_empty() {
            let written = if flags & rights::APPEND == 0 {
                let written = open.file.write_at(piece, place)?;
                place = place.saturating_add(written as u64);
                written
            } else {
                let (written, end) = open.file.append(piece)?;
                place = end;
                written
            };
            if written == 0 {
                return Err(Errno::Io); // else the loop would not end
            }
            total += written as u64;
            piece = piece.get(written..).unwrap_or_default();
        }
        Ok(())
    });
    if at.is_none() {
        open.position = place;
    }
    if flags & (rights::SYNC | rights::DSYNC) != 0 {
        open.file.sync(flags & rights::SYNC == 0)?;
    }
    so_far(total, end)
}

/// Fills all buffers, unless the file ends. C programs rely on that for regular files.
fn read_file(
    open: &mut OpenFile,
    at: Option<u64>,
    memory: &mut Guest<'_>,
    buffers: &[(u64, u64)],
) -> Result<u32, Errno> {
    let mut total = 0;
    let start = at.unwrap_or(open.position);
    let longest = buffers.iter().map(|(_, length)| *length).max().unwrap_or(0);
    let mut bytes = vec![0; longest.min(CHUNK) as usize];
    let end = 'buffers: {
        for (address, length) in buffers {
            let mut filled = 0;
            while filled < *length {
                let room = (length - filled).min(CHUNK) as usize;
                let got = match open.file.read_at(&mut bytes[..room], start.saturating_add(total)) {
                    Ok(got) => got.min(room),
                    Err(errno) => break 'buffers Err(errno),
                };
                memory.write(address + filled, &bytes[..got])?;
                filled += got as u64;
                total += got as u64;
                if got < room {
                    break 'buffers Ok(());
                }
            }
        }
        Ok(())
    };
    if at.is_none() {
        open.position = start.saturating_add(total);
    }
    so_far(total, end)
}
