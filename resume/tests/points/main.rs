//! Code made of versions: with points to leave at, and from where entries land.

#[path = "../../../osr/tests/common/mod.rs"]
mod common;
mod continuation;
mod instrument;
