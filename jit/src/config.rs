//! How code is made.

/// How accesses to linear memory are kept within it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Bounds {
    /// Each memory lies in a reservation of 6 GiB of address space, so that what is outside faults.
    /// Costs nothing where memory is accessed.
    #[default]
    Guarded,
    /// Every access is compared with the size of its memory. Works where address space is limited.
    Checked,
}

/// How a run of native code is ended from outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Interruption {
    /// It is not: it ends when the program does. The fuel of the machine is then used by what is
    /// interpreted, and by operations on ranges of memories and tables.
    #[default]
    Never,
    /// By an [`crate::Interrupt`], which loop headers and function entries look for.
    Signal,
    /// When its fuel is used up. Every block pays for its instructions before it is executed.
    Fuel,
}

/// How much Cranelift does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Effort {
    /// Compiles quickly.
    Least,
    /// Its optimizations, and the better register allocator.
    #[default]
    Most,
}

/// What stands where a run leaves through an OSR point.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Exits {
    /// Code of its own, which stores what is handed over: for transitions that are made often.
    #[default]
    Stored,
    /// A call. What is handed over stays in registers and frame, and it is noted beside the code
    /// where, which `code_bytes` does not count. Where much is live, code is smaller; a transition
    /// takes 3 to 15 times as long, and hot loops with a point get slower (docs/native.md has the
    /// figures). For many points that hardly ever fire.
    Described,
}

/// How code is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// How accesses are kept within their memory.
    pub bounds: Bounds,
    /// How a run is ended from outside.
    pub interruption: Interruption,
    /// How much Cranelift does.
    pub effort: Effort,
    /// What stands at OSR points. Figures: `osr_cost size` and `osr_cost transition` (examples).
    pub exits: Exits,
    /// Note calls, returns and growth in the machine's trace, as the interpreter does. Slow: for
    /// tests.
    pub trace: bool,
    /// Have Cranelift verify what it is given, and check register allocation. Slow: for tests.
    pub checked: bool,
    /// Bytes of machine code that may exist at once; more is refused
    /// ([`crate::CompileError::OutOfMemory`]).
    pub code_bytes: usize,
}

impl Default for Config {
    /// Guards, no interruption, all effort, exits that store, and 1 GiB of code.
    fn default() -> Config {
        Config {
            bounds: Bounds::default(),
            interruption: Interruption::default(),
            effort: Effort::default(),
            exits: Exits::default(),
            trace: false,
            checked: false,
            code_bytes: 1 << 30,
        }
    }
}
