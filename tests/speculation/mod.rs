//! Versions that assume, run on inputs on which their assumptions hold and fail. Wherever one
//! fails, the run goes on in the base by the exit, and ends as a run of the base does.

mod cases;
mod directed;
mod growth;
mod random;
mod shapes;
mod support;
