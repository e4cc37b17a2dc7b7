//! Sums beside the flag that tells their overflow.

use interp::{Limits, NoHost, NoObserver, Options};
use ir::text::parse_module;
use jit::{Config, Engine, Vm};
use std::sync::Arc;

/// The numbers of Cranelift instructions that compute a sum, and that compute a sum with its flag,
/// in the code of a function of three numbers. Native code and the interpreter compute the same.
fn sums(text: &str) -> [usize; 2] {
    let module = Arc::new(parse_module(text).unwrap_or_else(|errors| panic!("{}", errors[0])));
    let (func, body) = module.defined().next().expect("a function");
    let engine = Engine::new(Config::default()).expect("native code runs here");
    let clif = engine.clif(&module, body);
    let limits = Limits::default();
    let mut vm = Vm::new(&engine, &module, limits, Options::traced()).expect("a machine");
    let mut machine = interp::Machine::new(&module, limits).expect("an instance");
    let edges = [0, 1, 2, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];
    for args in edges.iter().flat_map(|a| edges.iter().flat_map(|b| edges.map(|c| [*a, *b, c]))) {
        let expected = machine.invoke(func, &args, &mut NoHost, &mut NoObserver);
        assert_eq!(vm.invoke(func, &args, &mut NoHost).expect("it runs"), expected, "{args:?}");
    }
    [" iadd", " sadd_overflow"].map(|name| clif.lines().filter(|line| line.contains(name)).count())
}

#[test]
fn a_sum_and_its_flag_are_one_instruction() {
    let both = "func @f(%a: i32, %b: i32, %c: i32) -> (i32, i32) {\nentry:\n\
        %s = add.i32 %a, %b\n%o = sadd_overflows.i32 %b, %a\nreturn %s, %o\n}";
    assert_eq!(sums(both), [0, 1]);
    let others = both.replace("sadd_overflows.i32 %b, %a", "sadd_overflows.i32 %b, %c");
    assert_eq!(sums(&others), [1, 1]);
}

/// The pass `sink` moves the sum into the arm that uses it.
#[test]
fn a_sum_below_its_flag_is_computed_with_it() {
    let below = "func @f(%a: i32, %b: i32, %c: i32) -> i32 {\nentry:\n\
        %o = sadd_overflows.i32 %a, %b\nbr_if %o, over, fits\n\
        over:\nreturn %c\nfits:\n%s = add.i32 %a, %b\nreturn %s\n}";
    assert_eq!(sums(below), [0, 1]);
}

/// An edge that passes a block does not compute the values of the block.
#[test]
fn a_sum_below_a_block_that_an_edge_passes_is_computed_again() {
    let passed = "func @f(%a: i32, %b: i32, %c: i32) -> i32 {\nentry:\n%no = const.i32 0\n\
        br_if %c, middle(%no), middle(%b)\nmiddle(%p: i32):\n%o = sadd_overflows.i32 %a, %b\n\
        br_if %p, left, right\nleft:\nreturn %c\nright:\n%s = add.i32 %a, %b\nreturn %s\n}";
    assert_eq!(sums(passed), [0, 2]);
}

#[test]
fn the_flag_of_a_constant_is_a_comparison() {
    let constant = "func @f(%a: i32, %b: i32, %c: i32) -> (i32, i32) {\nentry:\n\
        %two = const.i32 2\n%s = add.i32 %a, %two\n%o = sadd_overflows.i32 %two, %a\n\
        return %s, %o\n}";
    assert_eq!(sums(constant), [1, 0]);
}
