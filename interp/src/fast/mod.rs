//! The fast tier: a second form of the code, for runs without an observer.
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
//! Operations keep the pcs that they have in the exact code (`decoded`). A fused operation takes
//! fuel for every instruction it executes. So a run that runs out of fuel, traps or exits stops at
//! the same instruction as the exact loop, with the same memory.
//!
//! The exact loop executes every instruction that has no fast operation, one at a time. A new
//! opcode is therefore correct without any change here. `tests/tiers.rs` compares both tiers at
//! every amount of fuel.
//!
//! The tier earns its code where a user waits. Without it, with [`exec::applies`] false and nothing
//! decoded for it, programs take this multiple of the processor time (`osier run --engine E PROGRAM
//! -- SIZE` with programs of `judges/src/engines/programs.rs`, in turn with the tier, the least of
//! nine runs each):
//!
//! | program | interp | tiered |
//! |---|---|---|
//! | edit.o2 1200 | 1.51 | 1.21 |
//! | bzip2.m2r 20000 | 1.27 | 1.33 |
//! | lua.m2r 4 | 1.19 | 1.47 |
//! | zlib.o2 20000 | 1.14 | 1.64 |
//! | sqlite.m2r 500 | 1.13 | 1.00 |
//!
//! Programs that run for a second in native code do not notice (0.97 to 1.04: lua.o2 300, sqlite.o2
//! 4000, stencil.m2r 20000, zlib.m2r 400000). The fuzzer, whose runs are observed, would take 0.84
//! of its time, probably because it decodes fast code in vain (`osier fuzz --seed 7 --programs 40
//! --jobs 1`).
//!
//! Slots are 16-bit numbers, and a frame is a window of 65,536 values on the stack, so the compiler
//! can omit bounds checks. A function whose values and constants may exceed the window has no fast
//! code; a run that calls one continues in the exact loop.

mod coalesce;
pub(super) mod code;
pub(super) mod counted;
pub(super) mod decode;
pub(super) mod exec;
mod frames;
mod op;
pub(super) mod poll;
