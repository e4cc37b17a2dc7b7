//! Code made of versions: with OSR points to exit through, and from where entries land.
//!
//! [`instrument`] copies a version and puts OSR points into it; [`continuation()`] makes the rest
//! of a version behind an entry a function of its own, whose entry block runs the compensation code
//! and jumps to the landing point. Both build through [`ir::FunctionBuilder`], into families of
//! their own, and the results are ordinary functions: verified, optimized, interpreted and compiled
//! like any other.

mod continuation;
mod copy;
mod instrument;

pub use continuation::{Continuation, ContinuationError, continuation, continuation_with_points};
pub use copy::Origins;
pub use instrument::{
    Condition, InstrumentError, Instrumented, PointInfo, PointSpec, Truth, instrument,
};
