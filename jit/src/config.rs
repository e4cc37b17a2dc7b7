//! The configuration of an engine.

use std::num::NonZeroU32;

/// The way to keep accesses to linear memory in bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Bounds {
    /// Each memory lies in a reservation of 6 GiB of address space, so an out-of-bounds access
    /// faults. An access costs nothing extra.
    #[default]
    Guarded,
    /// Every access compares its address with the size of its memory. Works where address space is
    /// limited.
    Checked,
}

/// The way to end a run of native code from outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Interruption {
    /// Nothing ends a run before the program does. Only interpreted code, and operations on ranges
    /// of memories and tables, use the machine's fuel.
    #[default]
    Never,
    /// An [`crate::Interrupt`] ends the run at the next loop header or function entry.
    Signal,
    /// The run ends when its fuel is used up. Every block pays for its instructions before it runs.
    Fuel,
}

/// The effort that Cranelift spends on optimization.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Effort {
    /// Compiles quickly.
    Least,
    /// Runs Cranelift's optimizations and its better register allocator.
    #[default]
    Most,
}

/// The code of the side exits at OSR points.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Exits {
    /// The exit stores its values to the buffer. For transitions that fire often.
    #[default]
    Stored,
    /// The exit is a call with a stack map. The values stay in registers and in the frame, and the
    /// stack map lists their locations. Code is smaller where many values are live. A transition
    /// takes 3 to 15 times as long, and hot loops with a point get slower (docs/native.md has the
    /// figures). For many points that hardly ever fire. `code_bytes` does not count the stack maps.
    Described,
}

/// The bits of the NaNs that arithmetic on floats gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Nans {
    /// The canonical NaN wherever the bits can be seen, so native code and the interpreter agree
    /// bit by bit.
    #[default]
    Canonical,
    /// The NaN that the processor gives, which the WebAssembly standard allows. Stores, calls and
    /// returns of floats cost nothing extra. Results, memory and transitions then agree with the
    /// interpreter except for the bits of NaNs; `docs/native.md` has the details.
    Platform,
}

/// The configuration of an engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// The way to keep accesses in bounds.
    pub bounds: Bounds,
    /// The way to end a run from outside.
    pub interruption: Interruption,
    /// The effort that Cranelift spends.
    pub effort: Effort,
    /// The bits of the NaNs that arithmetic gives.
    pub nans: Nans,
    /// The code of side exits. The examples `osr_cost size` and `osr_cost transition` measure both
    /// kinds.
    pub exits: Exits,
    /// Records calls, returns and growth in the machine's trace, as the interpreter does. Slow: for
    /// tests.
    pub trace: bool,
    /// Makes Cranelift verify its input and check its register allocation. Slow: for tests.
    pub checked: bool,
    /// Takes one exit in so many tests of assumptions, on average, whether or not the assumption
    /// holds. The gaps between such exits are pseudo-random, uniform between 1 and twice the mean,
    /// and the same in each machine; the first test of a machine fails. Results stay the same: an
    /// accepted exit never mentions the condition. A test costs a decrement of a word in memory
    /// more. For tests, and for measurements as Ř's (Flückiger et al., "Deoptless", PLDI 2022).
    pub fails_one_in: Option<NonZeroU32>,
    /// The limit on the bytes of machine code that exist at the same time. Compilation beyond it
    /// fails with [`crate::CompileError::OutOfMemory`].
    pub code_bytes: usize,
}

impl Default for Config {
    /// Guarded bounds, no interruption, most effort, canonical NaNs, exits that store and are taken
    /// where assumptions fail, and 1 GiB of code.
    fn default() -> Config {
        Config {
            bounds: Bounds::default(),
            interruption: Interruption::default(),
            effort: Effort::default(),
            nans: Nans::default(),
            exits: Exits::default(),
            trace: false,
            checked: false,
            fails_one_in: None,
            code_bytes: 1 << 30,
        }
    }
}
