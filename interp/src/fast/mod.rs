//! The fast tier: a second form of the code, for runs that no one observes.
//!
//! A run without an observer, trace, digests and poison exposes no state between two instructions.
//! Fast code uses this freedom as follows:
//!
//! - Constants are not executed. They have slots of their own after the frame, which entering the
//!   frame fills.
//! - A comparison that only the next branch uses is fused into the branch. An addition that only
//!   computes an address is fused into the load or store.
//! - Values that loops pass around share slots ([`coalesce`]), so most back edges need no moves.
//!   The addition that steps a loop counter is fused into the branch that ends the loop.
//!
//! Operations have the same pcs as in the exact code ([`super::code`]). A fused operation takes
//! fuel for every instruction it executes. So a run that runs out of fuel, traps or exits stops at
//! the same instruction as the exact loop, with the same memory.
//!
//! The exact loop executes every instruction that has no fast operation, one at a time. A new
//! opcode is therefore correct without any change here. `tests/tiers.rs` compares both tiers at
//! every amount of fuel.
//!
//! Slots are 16-bit numbers, and a frame is a window of 65,536 values on the stack, so the compiler
//! can omit bounds checks. A function whose values and constants may exceed the window has no fast
//! code; a run that calls one continues in the exact loop.

mod coalesce;
pub(super) mod counted;
pub(super) mod data;
mod decode;
mod exec;
mod frames;
mod op;
pub(super) mod poll;

pub(super) use decode::decode;
pub(super) use exec::{applies, leave, run, run_to_visit, show_top};
