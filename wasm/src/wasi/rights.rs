//! Rights and flags of descriptors, as numbers of the program.

/// Read from the file.
pub(super) const READ: u64 = 1 << 1;
/// Move the position.
const SEEK: u64 = 1 << 2;
/// Query the position.
const TELL: u64 = 1 << 5;
/// Write to the file.
pub(super) const WRITE: u64 = 1 << 6;
/// Wait for the descriptor.
const POLL: u64 = 1 << 27;

/// All rights; a file below a directory may get them.
pub(super) const ALL: u64 = (1 << 30) - 1;

/// Set flags, and wait until contents or all properties are on the device.
const KEEP: u64 = 1 << 3 | 1 | 1 << 4;
/// Advise how the file will be used, and allocate its place.
const PLAN: u64 = 1 << 7 | 1 << 8;
/// Make, open, list, link, rename, query and set properties: everything on paths but removal.
const PATHS: u64 = 0xfff << 9;
/// Make symbolic links, remove directories and files.
const REMOVE: u64 = 7 << 24;
/// Query properties.
const STATUS: u64 = 1 << 21;
/// Set the size.
const SET_SIZE: u64 = 1 << 22;
/// Set the times.
const SET_TIMES: u64 = 1 << 23;

/// The rights of files.
pub(super) const OF_FILES: u64 =
    READ | SEEK | TELL | WRITE | POLL | KEEP | PLAN | STATUS | SET_SIZE | SET_TIMES;

/// The rights of directories.
pub(super) const OF_DIRECTORIES: u64 = PATHS | REMOVE | KEEP | STATUS | SET_TIMES;

/// The rights of the standard input.
pub(super) const OF_INPUT: u64 = READ | POLL;

/// The rights of the standard output and the standard error.
pub(super) const OF_OUTPUT: u64 = WRITE | POLL;

/// Writes go to the end of the file.
pub(super) const APPEND: u16 = 1;

/// Reads and writes do not wait.
pub(super) const NONBLOCK: u16 = 4;

/// Writes wait until contents are on the device; one of three such flags.
pub(super) const DSYNC: u16 = 2;

/// All properties too.
pub(super) const SYNC: u16 = 8 | 16;

/// The flags that exist.
pub(super) const FLAGS: u16 = 31;
