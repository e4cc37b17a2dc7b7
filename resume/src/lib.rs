//! Functions made of versions: versions with OSR points, and continuations behind landing points.
//!
//! [`instrument`] copies a version and puts OSR points into it. [`continuation()`] makes a function
//! of the code of a version behind a landing point, and [`frame_continuation`] one of the code
//! behind several frames. The entry block of either runs the compensation code and jumps to the
//! landing point. All build through [`ir::FunctionBuilder`], into families of their own. The
//! results are ordinary functions: verified, optimized, interpreted and compiled like any other.

mod claim;
mod continuation;
mod copy;
mod frames;
mod instrument;

pub use continuation::{Continuation, ContinuationError, continuation, continuation_with_points};
pub use copy::Origins;
pub use frames::{FrameContinuation, frame_continuation};
pub use instrument::{
    Condition, InstrumentError, Instrumented, PointInfo, PointSpec, Truth, instrument,
    instrument_for_entries,
};
