//! The mappings of this process. Tests use them to show that no memory is both writable and
//! executable.

use std::{fs, io};

/// One line of `/proc/self/maps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MappedRange {
    /// The first address.
    pub(crate) start: usize,
    /// The first address after the mapping.
    pub(crate) end: usize,
    /// Whether the mapping may be read.
    pub(crate) readable: bool,
    /// Whether the mapping may be written.
    pub(crate) writable: bool,
    /// Whether the mapping may be executed.
    pub(crate) executable: bool,
}

impl MappedRange {
    /// Parses a line such as `7f10-7f20 rw-p 00000000 00:00 0`.
    fn parse(line: &str) -> Option<MappedRange> {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let &[read, write, execute, _] = rest.as_bytes().first_chunk::<4>()?;
        Some(MappedRange {
            start: usize::from_str_radix(start, 16).ok()?,
            end: usize::from_str_radix(end, 16).ok()?,
            readable: read == b'r',
            writable: write == b'w',
            executable: execute == b'x',
        })
    }
}

/// All mappings, ordered by address.
///
/// # Errors
///
/// If the file cannot be read (as on every host but Linux), or a line is malformed.
pub(crate) fn mappings() -> io::Result<Vec<MappedRange>> {
    let text = fs::read_to_string("/proc/self/maps")?;
    let malformed = |line: &str| {
        io::Error::new(io::ErrorKind::InvalidData, format!("malformed mapping: {line}"))
    };
    text.lines().map(|line| MappedRange::parse(line).ok_or_else(|| malformed(line))).collect()
}

/// The mappings that are both writable and executable.
///
/// # Errors
///
/// The errors of [`mappings`].
pub(crate) fn writable_and_executable() -> io::Result<Vec<MappedRange>> {
    Ok(mappings()?.into_iter().filter(|mapping| mapping.writable && mapping.executable).collect())
}
