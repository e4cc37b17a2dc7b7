//! Functions made of versions: versions with OSR points, and continuations behind landing points.
//!
//! [`instrument`] copies a version and puts OSR points into it. [`continuation()`] makes a function
//! of the code behind the landing point of an entry, or behind all its landings. The entry block
//! runs the compensation code and jumps to the landing point. All build through
//! [`ir::FunctionBuilder`], into families of their own. The results are ordinary functions:
//! verified, optimized, interpreted and compiled like any other.

mod claim;
mod continuation;
mod copy;
mod frames;
mod instrument;
mod passage;

pub use continuation::{
    Continuation, ContinuationError, continuation, continuation_leaving, continuation_with_points,
};
pub use copy::Origins;
pub use instrument::{
    Condition, InstrumentError, Instrumented, PointInfo, PointSpec, Truth, instrument,
    instrument_for_entries,
};
pub use passage::passage;
