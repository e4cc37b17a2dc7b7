//! The machine's directories and clocks, for WASI programs.
//!
//! The host of WASI programs, `wasm::wasi`, reads no clock and opens no file. An embedder hands
//! a program's host the objects of this crate: [`directory`] and [`MachineClocks`].
//!
//! cap-std resolves the paths of a program: it opens the parts in turn below the directory, or has
//! the kernel do so. It refuses `..` that leads out, absolute paths, and symbolic links that lead
//! out, also while other processes rename files. A program can use all files below the directory
//! with the permissions of this process. Hard links and mounts below the directory count as its
//! files.

#[cfg(unix)]
mod clocks;
#[cfg(unix)]
mod directory;
#[cfg(unix)]
mod errors;
#[cfg(unix)]
mod file;

#[cfg(unix)]
pub use clocks::MachineClocks;
#[cfg(unix)]
pub use directory::directory;
