//! The embedding interface of native code: what is refused, what is freed, how runs end, which threads may do what.

mod ends;
mod exits;
mod lifetime;
mod misuse;
mod refused;
mod support;
mod threads;
mod transitions;
