//! Stack overflow and leaves. A short leaf does not compare the stack with its limit, because its
//! caller has done so.

use super::support::{engine, invoke, module, vm};
use osier::interp::Outcome;
use osier::jit::{Config, Vm};
use osier::tiers::{Eager, NoObserver};
use std::fmt::Write as _;
use std::hint::black_box;

/// Runs a closure on a stack of this size.
fn on_a_stack_of(bytes: usize, run: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(bytes).spawn(run).expect("a thread");
    thread.join().expect("the run is right");
}

/// A leaf whose live values need some hundred bytes of stack.
fn small() -> String {
    let mut text = String::from("func @leaf(%x: i64) -> i64 {\nentry:\n  %v0 = mul.i64 %x, %x\n");
    for at in 1..60 {
        writeln!(text, "  %v{at} = mul.i64 %v{}, %x", at - 1).expect("it fits");
    }
    text += "  %s59 = xor.i64 %v59, %x\n";
    for at in (0..59).rev() {
        writeln!(text, "  %s{at} = add.i64 %s{}, %v{at}", at + 1).expect("it fits");
    }
    text + "  return %s0\n}\n"
}

/// The number of results of [`large`].
const RESULTS: usize = 400;

/// A leaf of few instructions that needs some thousand bytes of stack.
fn large() -> String {
    let list = |of: &dyn Fn(usize) -> String| (0..RESULTS).map(of).collect::<Vec<_>>().join(", ");
    let turns = |one: &'static str, other: &'static str| {
        move |at: usize| (if at.is_multiple_of(2) { one } else { other }).to_owned()
    };
    format!(
        "func @leaf(%x: i64) -> ({}) {{\nentry:\n  %y = add.i64 %x, %x\n  br_if %x, on({}), on({})\n\
         on({}):\n  return {}\n}}\n",
        list(&|_| "i64".to_owned()),
        list(&turns("%x", "%y")),
        list(&turns("%y", "%x")),
        list(&|at| format!("%p{at}: i64")),
        list(&|at| format!("%p{at}")),
    )
}

/// A function that calls the leaf, whose results are `results`, and then itself, until its argument
/// is zero.
fn recursion(results: &str) -> String {
    format!(
        "func @f(%x: i64) -> i64 {{\nentry:\n  br_if %x, on, end\non:\n  {results} = call @leaf(%x)\n  \
         %one = const.i64 1\n  %y = sub.i64 %x, %one\n  %r = call @f(%y)\n  %s = add.i64 %r, %r0\n  \
         return %s\nend:\n  return %x\n}}\n"
    )
}

/// A machine in which all functions are native.
fn native(text: &str) -> Vm {
    let module = module(text);
    let mut vm = vm(&engine(Config::default()), &module);
    vm.set_tiering(Box::new(Eager::new(NoObserver)));
    for (func, _) in module.defined() {
        vm.demand(func).expect("it can be compiled");
    }
    vm
}

/// Recursion through leaves ends as a stack overflow, at every size of the stack, and the machine
/// remains usable. A short leaf relies on its caller, so the overflow is never its own. One with a
/// large frame checks for itself.
#[test]
fn recursion_ends_in_no_leaf() {
    let results: Vec<String> = (0..RESULTS).map(|at| format!("%r{at}")).collect();
    let cases = [("f", small(), "%r0".to_owned()), ("leaf", large(), results.join(", "))];
    for (ends_in, leaf, results) in cases {
        for pages in [256, 257, 300, 511] {
            let text = leaf.clone() + &recursion(&results);
            on_a_stack_of(pages << 12, move || {
                let mut vm = native(&text);
                let func = module(&text).lookup("f").expect("the text has it");
                for _ in 0..3 {
                    let ended = invoke(&mut vm, func, &[u64::MAX]).expect("an outcome");
                    let Outcome::StackOverflow(site) = &ended else { panic!("{ended}") };
                    assert_eq!(site.function, ends_in, "{pages} pages");
                    let ended = invoke(&mut vm, func, &[1]).expect("an outcome");
                    assert!(ended.returned().is_some(), "{ended}");
                }
            });
        }
    }
}

/// Uses more than `bytes` of stack below `top`, and then invokes the function.
#[inline(never)]
fn deep(vm: &mut Vm, text: &str, top: usize, bytes: usize) -> Outcome {
    let room = black_box([0u8; 2048]);
    let here = room.as_ptr().addr();
    if top - here < bytes {
        return black_box(deep(vm, text, top, bytes));
    }
    let func = module(text).lookup("leaf").expect("the text has it");
    invoke(vm, func, &[3]).expect("an outcome")
}

/// Rust makes the check on behalf of a leaf that it calls: a run that begins below the limit ends
/// at once.
#[test]
fn a_leaf_below_the_limit_does_not_run() {
    on_a_stack_of(2 << 20, || {
        let text = small();
        let mut vm = native(&text);
        let top = 0u8;
        let top = (&raw const top).addr();
        let run = |vm: &mut Vm, bytes| deep(vm, &text, top, bytes);
        let returned = run(&mut vm, 16 << 10);
        assert!(returned.returned().is_some(), "{returned}");
        let ended = run(&mut vm, 1800 << 10);
        assert!(
            matches!(&ended, Outcome::StackOverflow(site) if site.function == "leaf"),
            "{ended}"
        );
        assert_eq!(run(&mut vm, 16 << 10), returned, "used again");
    });
}
