//! The memory of the program. The host checks every access, because all addresses and lengths come
//! from the program.

use super::errno::Errno;
use super::{Answer, GuestMemory};

/// Most buffers in one call, the usual limit of POSIX systems.
const MAX_BUFFERS: u64 = 1024;

/// Most bytes of a path, the limit of Linux.
const MAX_PATH: u64 = 4096;

/// Most bytes that the host copies at once; longer data take several steps. The bound keeps a
/// program with a large memory from making the host allocate as much.
pub(super) const CHUNK: u64 = 1 << 16;

/// The memory of the program with checked accesses.
pub(super) struct Guest<'a>(pub(super) &'a mut dyn GuestMemory);

impl Guest<'_> {
    pub(super) fn read(&self, address: u64, length: u64) -> Result<&[u8], Errno> {
        self.0.read(address, length).ok_or(Errno::Fault)
    }

    pub(super) fn write(&mut self, address: u64, bytes: &[u8]) -> Answer {
        if self.0.write(address, bytes) { Ok(()) } else { Err(Errno::Fault) }
    }

    pub(super) fn write_u32(&mut self, address: u64, value: u32) -> Answer {
        self.write(address, &value.to_le_bytes())
    }

    pub(super) fn write_u64(&mut self, address: u64, value: u64) -> Answer {
        self.write(address, &value.to_le_bytes())
    }

    /// Reads a list of buffers: the address and length of each.
    ///
    /// # Errors
    /// When the list or a buffer is out of bounds, the list is too long, or the sum of the lengths
    /// does not fit 32 bits.
    pub(super) fn buffers(&self, list: u64, count: u64) -> Result<Vec<(u64, u64)>, Errno> {
        if count > MAX_BUFFERS {
            return Err(Errno::Inval);
        }
        let entries = self.read(list, 8 * count)?.chunks_exact(8);
        let buffers: Vec<(u64, u64)> = entries
            .map(|entry| (u64::from(u32_at(entry, 0)), u64::from(u32_at(entry, 4))))
            .collect();
        let total: u64 = buffers.iter().map(|(_, length)| length).sum();
        u32::try_from(total).map_err(|_| Errno::Inval)?;
        for (address, length) in &buffers {
            self.read(*address, *length)?;
        }
        Ok(buffers)
    }

    /// Reads a path.
    ///
    /// # Errors
    /// When it is out of bounds, too long or not UTF-8.
    pub(super) fn path(&self, [address, length]: [u64; 2]) -> Result<String, Errno> {
        let bytes = self.read(address, length)?;
        if length > MAX_PATH {
            return Err(Errno::Nametoolong);
        }
        let path = std::str::from_utf8(bytes).map_err(|_| Errno::Ilseq)?;
        // A path of the machine ends at such a byte, so it would name another file.
        if path.contains('\0') { Err(Errno::Inval) } else { Ok(path.to_owned()) }
    }
}

/// The word at a place of bytes that the caller has measured.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// The double word at a place of bytes that the caller has measured.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
