//! The rewrites of each pass, and the cases it declines, on small functions.

extern crate osier_passes as passes;

mod adce;
mod cfg_clean;
mod cse;
mod gvn;
mod inline;
mod licm;
mod limits;
mod loop_canon;
mod registry;
mod sccp;
mod simplify;

use ir::edit::{ActionLog, Fuel, apply, check_replay};
use ir::text::{parse_module, print_function};
use ir::verifier::verify_function;
use ir::{Func, Module};

/// Parses the module of a test. Returns it with its last function, the function under test.
fn module(text: &str) -> (Module, Func) {
    let text = format!("memory @m 1\nglobal @g: mut i32 = 0\n{text}");
    let module = parse_module(&text).unwrap_or_else(|e| panic!("{}\n{text}", e[0]));
    let (func, _) = module.defined().last().expect("a function");
    (module, func)
}

/// Runs a pipeline. Returns the printed result and the log, after checking well-formedness and
/// replay.
fn run(pipeline: &str, text: &str) -> (String, ActionLog) {
    let (module, func) = module(text);
    let base = module.body(func).expect("a body");
    let mut function = base.clone();
    let mut log = ActionLog::empty_for(base);
    for pass in passes::parse(pipeline).expect("known passes").passes() {
        let (after, actions) = apply(&function, *pass, &mut Fuel::UNLIMITED.clone()).into_parts();
        assert_eq!(verify_function(&module, &after), [], "after {}", pass.name());
        log.extend(actions);
        function = after;
    }
    assert_eq!(check_replay(base, &log, &function), Ok(()));
    (print_function(&module, &function), log)
}

/// Asserts that a pipeline turns `before` into `after`. New values and blocks have the ids after
/// the last of `before`.
#[track_caller]
fn becomes(pipeline: &str, before: &str, after: &str) {
    let (text, log) = run(pipeline, before);
    let lines = |text: &str| {
        text.lines().map(|l| l.trim().to_owned()).filter(|l| !l.is_empty()).collect::<Vec<_>>()
    };
    let actions: String = log.actions().iter().map(|a| format!("{a}\n")).collect();
    assert_eq!(lines(&text), lines(after), "\nthe function became\n{text}\nby\n{actions}");
    assert!(!log.is_empty());
}

/// Asserts that a pipeline changes nothing: the log is empty.
#[track_caller]
fn declines(pipeline: &str, text: &str) {
    let (_, log) = run(pipeline, text);
    let actions: String = log.actions().iter().map(|a| format!("{a}\n")).collect();
    assert!(log.is_empty(), "{pipeline} did\n{actions}");
}
