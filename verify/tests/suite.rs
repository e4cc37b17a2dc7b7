//! The tests of the generator and of the oracles, in one binary.

mod generate;
mod oracles;
mod prng;
