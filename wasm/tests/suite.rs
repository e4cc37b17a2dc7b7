//! The tests of the importer and of its WASI host, in one binary. `memory.rs` is a binary of its
//! own, because its allocator counts the memory of the whole process.

extern crate osier_wasm as wasm;

mod corpus;
mod damage;
mod features;
mod parts;
mod programs;
mod refusals;
mod source;
mod threads;
mod translation;
mod wasi;
