//! Tests of the interpreter on whole programs.

mod control;
mod effects;
mod engine;
mod limits;
mod memory;
mod nested;
mod observe;
mod regions;
mod support;
mod transition;
mod values;
