//! The embedding interface of native code: rejected inputs, lifetimes, ends of runs, extended
//! machines and threads.

mod addresses;
mod background;
mod churn;
mod collector;
mod declared;
mod direct;
mod ends;
mod entered;
mod exits;
mod extended;
mod flags;
mod lent;
mod lifetime;
mod misuse;
mod nested;
mod observed;
mod refused;
mod sessions;
mod speculating;
mod stack;
mod stack_arguments;
mod supplied;
mod support;
mod threads;
mod transitions;
