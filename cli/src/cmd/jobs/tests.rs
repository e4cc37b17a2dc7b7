//! Tests of `cli::jobs`.

use super::*;
use ir::Module;
use osier::{Format, load};

fn module() -> Module {
    let function = |name: &str| format!("func @{name}() {{\nentry:\n  return\n}}\n");
    let text: String = ["f", "g", "h", "i", "j"].into_iter().map(function).collect();
    load(Format::Oir, text.as_bytes()).expect("well-formed")
}

fn names(jobs: usize) -> Vec<String> {
    let module = module();
    let functions: Vec<_> = module.defined().collect();
    let mut names = Vec::new();
    let work = |function: &Function, _: &mut Stopwatch| function.name().to_owned();
    let done = each_function(jobs, &functions, work, |worked| {
        assert!(!worked.interrupted);
        names = worked.results;
        Ok(())
    });
    done.expect("nothing fails");
    names
}

#[test]
fn results_are_in_module_order_for_any_number_of_threads() {
    for jobs in 1..5 {
        assert_eq!(names(jobs), ["f", "g", "h", "i", "j"]);
    }
}

#[test]
fn a_panic_of_a_thread_ends_the_command() {
    let module = module();
    let functions: Vec<_> = module.defined().collect();
    for jobs in [1, 3] {
        let work =
            |function: &Function, _: &mut Stopwatch| assert!(function.name() != "g", "bug on @g");
        let all = || each_function(jobs, &functions, work, |_| panic!("nothing is handed over"));
        let panic = catch_unwind(AssertUnwindSafe(all)).expect_err("it panics");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"bug on @g"));
    }
}
