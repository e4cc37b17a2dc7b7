//! The interpreter on whole programs.

mod control;
mod effects;
mod limits;
mod memory;
mod observe;
mod support;
mod values;
