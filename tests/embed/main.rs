//! The embedding interface of native code: what is refused, what is freed, how runs end, machines
//! that take up more, which threads may do what.

mod ends;
mod exits;
mod extended;
mod lifetime;
mod misuse;
mod refused;
mod support;
mod threads;
mod transitions;
