//! Code made of versions: versions with points to exit at, and continuations behind landing points.

#[path = "../common/mod.rs"]
mod common;
mod continuation;
mod instrument;
