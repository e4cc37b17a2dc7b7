//! Code made of versions: versions with points to exit at, and continuations behind landing points.

#[path = "../../../osr/tests/common/mod.rs"]
mod common;
mod continuation;
mod failing;
mod instrument;
