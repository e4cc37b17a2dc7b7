//! Versions that assume, run on inputs on which their assumptions hold and fail. Wherever an
//! assumption fails, the run continues in the base by the exit, and ends like a run of the base.

mod cases;
mod directed;
mod growth;
pub(crate) mod random;
mod shapes;
pub(crate) mod support;
