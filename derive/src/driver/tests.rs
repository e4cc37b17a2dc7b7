//! Tests of `derive::driver`.

use super::*;
use ir::edit::{Editor, apply};
use ir::text::parse_module;

const TEXT: &str = "func @f(%a: i32) -> i32 {\nentry:\n  %b = add.i32 %a, %a\n  %c = mul.i32 %b, %a\n  return %c\n}\n";

/// A wrong pass: makes the sum read the product, which is defined after it.
struct ReadsTooEarly;

impl Pass for ReadsTooEarly {
    fn name(&self) -> &'static str {
        "reads_too_early"
    }

    fn run(&self, editor: &mut Editor<'_>) {
        let insts: Vec<_> = editor.func().all_insts().collect();
        let product = editor.func().inst(insts[1]).result().expect("one result");
        assert!(editor.plan("wrong"));
        editor.replace_operand(insts[0], 0, product);
    }
}

fn module() -> Module {
    parse_module(TEXT).expect("well-formed")
}

#[test]
#[should_panic(
    expected = "bug in pass reads_too_early on @f: it made a version that is not well-formed: SSA-DOM-1"
)]
fn a_pass_that_breaks_a_rule_is_caught() {
    let module = module();
    let (_, base) = module.defined().next().expect("one function");
    let applied = apply(base, &ReadsTooEarly, &mut Fuel::UNLIMITED.clone());
    check_pass(&module, &ReadsTooEarly, base, applied.log(), applied.function());
}

#[test]
#[should_panic(expected = "bug in pass reads_too_early on @f: its log does not replay")]
fn an_incomplete_log_is_caught() {
    let module = module();
    let (_, base) = module.defined().next().expect("one function");
    let applied = apply(base, &ReadsTooEarly, &mut Fuel::UNLIMITED.clone());
    check_pass(&module, &ReadsTooEarly, base, &ActionLog::empty_for(base), applied.function());
}

#[test]
fn the_log_of_a_pipeline_replays_to_its_result() {
    let module = module();
    let (_, base) = module.defined().next().expect("one function");
    let pipeline = passes::parse("canonical,O1").expect("known");
    let derived = derive(&module, base, &pipeline, Vigilance::On, &mut NoObserver);
    assert_eq!(check_replay(base, &derived.log, &derived.function), Ok(()));
    let optimized = optimize(&module, &pipeline, Vigilance::Off, &mut NoObserver);
    let (_, made) = optimized.defined().next().expect("one function");
    assert_eq!(made.inst_count(), derived.function.inst_count());
}
