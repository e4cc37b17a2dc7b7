//! The programs and sizes that engines are compared on.
//!
//! Sizes were chosen by the time of one engine alone (`osier run --engine jit`), and no program was
//! left out for its result. Some rows changed after first trials had shown numbers. The tree walk
//! of QuickJS changed since the stack of node overflowed; several sizes changed after a trial with
//! one program; and `lua` by m2r went from 1200 to 900, since its own check fails at 1200 in every
//! engine. Do not change a row after a comparison; add a row instead, and compare anew.

/// A program with its size, run from its start to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Program {
    /// The module.
    pub module: &'static str,
    /// The route by which the module was built.
    pub route: &'static str,
    /// The argument.
    pub size: &'static str,
    /// Why the program is in the list.
    pub why: &'static str,
}

impl Program {
    /// The name in tables.
    pub fn label(&self) -> String {
        format!("{}.{} {}", self.module, self.route, self.size)
    }
}

/// The program that only starts and ends. Its time is the time to start the engine.
pub const EMPTY: Program =
    Program { module: "empty", route: "wat", size: "0", why: "the start of the engine" };

/// The text of [`EMPTY`].
pub const EMPTY_TEXT: &str = "(module (memory (export \"memory\") 1) (func (export \"_start\")))";

const fn program(
    module: &'static str,
    route: &'static str,
    size: &'static str,
    why: &'static str,
) -> Program {
    Program { module, route, size, why }
}

/// Programs that compiled code runs in 1 ms to 2 s, from short to long, after [`EMPTY`].
pub const PROGRAMS: &[Program] = &[
    EMPTY,
    // A millisecond: nothing but the start and the first code can matter.
    program("matmul", "m2r", "40", "1 ms, one loop nest of floats"),
    program("hash", "m2r", "10000", "1 ms, loops over bytes"),
    program("mandel", "o2", "16", "2 ms, one loop nest without memory"),
    program("words", "m2r", "40", "2 ms, reads its input; many small calls"),
    // Some milliseconds: code pays where it is made at once.
    program("queens", "o2", "7", "5 ms, recursion"),
    program("calls", "o2", "40000", "5 ms, calls through tables"),
    program("sort", "m2r", "8000", "5 ms, recursion and loops"),
    // Tens of milliseconds, where compiling everything takes longer than the run.
    program("edit", "o2", "1200", "25 ms, dynamic programming"),
    program("nbody", "m2r", "100000", "25 ms, floats in memory"),
    program("vm", "o2", "60000", "30 ms, a switch in a loop"),
    program("bzip2", "m2r", "20000", "30 ms, a few large functions"),
    program("zlib", "o2", "20000", "30 ms, a few large functions"),
    program("lua", "m2r", "4", "90 ms, an interpreter with large functions, 1003 functions"),
    // Hundreds of milliseconds.
    program("zlib", "m2r", "400000", "100 ms, some hot loops"),
    program("lua", "o2", "300", "200 ms, one hot function of 6,000 instructions"),
    program("scan", "o2", "16000000", "300 ms, a state machine"),
    program("stencil", "m2r", "20000", "400 ms, one loop nest of floats"),
    // A second, where steady state decides.
    program("bzip2", "o2", "2000000", "1 s, memory and branches"),
    program("lua", "m2r", "900", "0.6 s, an interpreter"),
    program("zlib", "o2", "10000000", "1.5 s, memory and branches"),
    // Modules above 500 kB, where loading matters.
    program("sqlite", "m2r", "500", "1.6 MB, hardly more than loading"),
    program("sqlite", "o2", "4000", "1.1 MB, 0.1 s"),
    program("sqlite", "m2r", "120000", "1.6 MB, 2 s"),
    program("quickjs", "m2r", "10", "1.5 MB, an engine for JavaScript, little more than loading"),
    program("quickjs", "o2", "200", "1.1 MB, 0.3 s, an engine for JavaScript"),
    program("zstd", "m2r", "40000", "1.9 MB, a packer of many specialized loops, 0.1 s"),
    program("zstd", "o2", "1000000", "0.5 MB, a packer of many specialized loops, 0.3 s"),
];

/// Bytes of a module from which on it counts as large.
pub const LARGE: u64 = 500_000;

/// An exported function that consists of one long loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelFunction {
    /// The module.
    pub module: &'static str,
    /// The route by which the module was built.
    pub route: &'static str,
    /// The export.
    pub name: &'static str,
    /// The type of the result.
    pub result: &'static str,
    /// Arguments, by blanks, with which a call takes 2 s or more in compiled code.
    pub long: &'static str,
    /// Arguments with which it takes some tens of milliseconds.
    pub short: &'static str,
}

impl KernelFunction {
    /// The name in tables.
    pub fn label(&self) -> String {
        format!("{}.{} {}", self.module, self.route, self.name)
    }
}

const fn function(
    module: &'static str,
    route: &'static str,
    name: &'static str,
    result: &'static str,
    long: &'static str,
    short: &'static str,
) -> KernelFunction {
    KernelFunction { module, route, name, result, long, short }
}

/// Functions whose calls spend their time in one activation: no call except the first call, and
/// calls of small functions in the loop, would reach better code. Half of them by each route.
pub const FUNCTIONS: &[KernelFunction] = &[
    function("divide", "o2", "collatz", "i64", "i32:10000000", "i32:150000"),
    function("edit", "m2r", "edit", "i32", "i32:24000 i32:3", "i32:3000 i32:3"),
    function("hash", "o2", "hash", "i64", "i32:240000000 i32:5", "i32:3000000 i32:5"),
    function("mandel", "o2", "mandel", "i32", "i32:2000 i32:800", "i32:250 i32:200"),
    function("matmul", "m2r", "matmul", "f64", "i32:950", "i32:300"),
    function("mixed", "o2", "mixed", "i64", "i32:50000000 i32:2", "i32:600000 i32:2"),
    function("nbody", "o2", "nbody", "f64", "i32:14000000", "i32:200000"),
    function("sieve", "m2r", "sieve", "i32", "i32:350000000", "i32:8000000"),
    function("stencil", "m2r", "stencil", "f64", "i32:160000 f64:12.5", "i32:1500 f64:12.5"),
    function("vm", "m2r", "vm", "i32", "i32:0 i32:1400000", "i32:0 i32:60000"),
];

#[cfg(test)]
mod tests {
    use super::{EMPTY, FUNCTIONS, PROGRAMS};
    use std::collections::BTreeSet;

    #[test]
    fn the_list_of_programs_is_complete() {
        assert_eq!(PROGRAMS[0], EMPTY);
        let labels: BTreeSet<String> = PROGRAMS.iter().map(|program| program.label()).collect();
        assert_eq!(labels.len(), PROGRAMS.len(), "a program stands twice");
        // Twenty programs, and three large modules by both routes.
        let is_large = |module| matches!(module, "sqlite" | "quickjs" | "zstd");
        assert_eq!(PROGRAMS[1..].iter().filter(|one| !is_large(one.module)).count(), 20);
        for module in ["bzip2", "lua", "zlib", "sqlite", "quickjs", "zstd"] {
            for route in ["m2r", "o2"] {
                let is_there = |one: &super::Program| one.module == module && one.route == route;
                assert!(PROGRAMS.iter().any(is_there), "{module}.{route}");
            }
        }
        assert!(PROGRAMS.iter().all(|program| !program.why.is_empty()));
    }

    #[test]
    fn the_list_of_functions_names_those_that_kernels_export() {
        let listed = include_str!("../../../tests/corpus/invoke");
        assert_eq!(FUNCTIONS.len(), 10);
        assert_eq!(FUNCTIONS.iter().filter(|one| one.route == "m2r").count(), 5);
        for one in FUNCTIONS {
            let line = format!("{} {} {} ", one.module, one.name, one.result);
            let line = listed.lines().find_map(|listed| listed.strip_prefix(&line));
            let types = |text: &str| -> Vec<String> {
                text.split(' ').filter_map(|a| Some(a.split_once(':')?.0.to_owned())).collect()
            };
            let wanted = types(line.expect("a kernel exports it"));
            assert_eq!(types(one.long), wanted, "{}", one.label());
            assert_eq!(types(one.short), wanted, "{}", one.label());
        }
    }
}
