//! Tests of the strictness of the format: each breaks one rule, and the runner must fail.

use super::run;
use crate::file::ACTIONS;
use libtest_mimic::{Failed, Trial};

/// A module with one function that doubles its argument.
const MODULE: &str = "func @f(%a: i32) -> i32 {\nentry:\n  %b = add.i32 %a, %a\n  return %b\n}\n";

/// A broken file and part of the message it must fail with.
struct Broken {
    rule: &'static str,
    /// Lines before the module.
    head: &'static str,
    /// Lines after it.
    tail: &'static str,
    message: &'static str,
}

const BROKEN: &[Broken] = &[
    Broken {
        rule: "no_purpose",
        head: ";@ run: @f(1) == 2",
        tail: "",
        message: "begin with its purpose",
    },
    Broken {
        rule: "empty_purpose",
        head: ";;\n;@ run: @f(1) == 2",
        tail: "",
        message: "begin with its purpose",
    },
    Broken { rule: "no_assertion", head: ";; p", tail: "", message: "asserts nothing" },
    Broken {
        rule: "pipeline_alone",
        head: ";; p\n;@ pipeline: gvn",
        tail: "",
        message: "asserts nothing",
    },
    Broken {
        rule: "unknown_directive",
        head: ";; p\n;@ runs: @f(1) == 2",
        tail: "",
        message: "unknown directive `runs`",
    },
    Broken {
        rule: "no_colon",
        head: ";; p\n;@ run @f(1) == 2",
        tail: "",
        message: "expected `;@ directive: ...`",
    },
    Broken {
        rule: "empty_directive",
        head: ";; p\n;@ run:",
        tail: "",
        message: "`run` says nothing",
    },
    Broken {
        rule: "indented_directive",
        head: ";; p\n;@ run: @f(1) == 2\n  ;@ run: @f(1) == 3",
        tail: "",
        message: "start of a line",
    },
    Broken {
        rule: "second_pipeline",
        head: ";; p\n;@ pipeline: gvn\n;@ pipeline: gvn\n;@ run: @f(1) == 2",
        tail: "",
        message: "a second `pipeline`",
    },
    Broken {
        rule: "unknown_pass",
        head: ";; p\n;@ pipeline: nosuch\n;@ run: @f(1) == 2",
        tail: "",
        message: "nosuch",
    },
    Broken {
        rule: "unknown_expectation",
        head: ";; p\n;@ expect: words",
        tail: "",
        message: "expected `text`",
    },
    Broken {
        rule: "missing_block",
        head: ";; p\n;@ expect: text",
        tail: "",
        message: "block `text` is missing",
    },
    Broken {
        rule: "orphan_block",
        head: ";; p\n;@ run: @f(1) == 2",
        tail: ";= text\n",
        message: "nothing expects the block `text`",
    },
    Broken {
        rule: "unknown_block",
        head: ";; p\n;@ run: @f(1) == 2",
        tail: ";= words\n",
        message: "unknown block `words`",
    },
    Broken {
        rule: "second_block",
        head: ";; p\n;@ expect: text",
        tail: ";= text\n;= text\n",
        message: "a second block `text`",
    },
    Broken {
        rule: "wrong_block",
        head: ";; p\n;@ expect: text",
        tail: ";= text\nfunc\n",
        message: "expected `func`, found `func @f",
    },
    Broken {
        rule: "wrong_result",
        head: ";; p\n;@ run: @f(1) == 3",
        tail: "",
        message: "expected Returns([3]), before optimization Returns([2])",
    },
    Broken {
        rule: "exit_that_does_not_happen",
        head: ";; p\n;@ run: @f(1) leaves 3 (1, 2)",
        tail: "",
        message: "expected Leaves(3, [1, 2])",
    },
    Broken {
        rule: "exit_without_values",
        head: ";; p\n;@ run: @f(1) leaves 3",
        tail: "",
        message: "expected `@function(arguments) == results`",
    },
    Broken {
        rule: "trap_that_does_not_happen",
        head: ";; p\n;@ run: @f(1) traps unreachable",
        tail: "",
        message: "expected Traps(Unreachable, None)",
    },
    Broken {
        rule: "operand_that_the_trap_lacks",
        head: ";; p\n;@ run: @f(1) traps unreachable with 1",
        tail: "",
        message: "expected Traps(Unreachable, Some(1))",
    },
    Broken {
        rule: "unknown_trap",
        head: ";; p\n;@ run: @f(1) traps badly",
        tail: "",
        message: "there is no trap `badly`",
    },
    Broken {
        rule: "unknown_function",
        head: ";; p\n;@ run: @g(1) == 2",
        tail: "",
        message: "there is no function @g",
    },
    Broken {
        rule: "wrong_number_of_arguments",
        head: ";; p\n;@ run: @f(1, 2) == 2",
        tail: "",
        message: "2 values where the signature has 1",
    },
    Broken {
        rule: "literal_that_does_not_fit",
        head: ";; p\n;@ run: @f(4294967296) == 0",
        tail: "",
        message: "fits i32",
    },
    Broken {
        rule: "run_line_without_ending",
        head: ";; p\n;@ run: @f(1)",
        tail: "",
        message: "expected `@function(arguments) == results`",
    },
    Broken {
        rule: "error_that_does_not_occur",
        head: ";; p",
        tail: "func @g() -> () {\nb:\n  return ;~ error: SSA-DOM-1 dominated\n}\n",
        message: "no SSA-DOM-1 here",
    },
    Broken {
        rule: "error_with_another_message",
        head: ";; p",
        tail: "func @g() -> () {\nb:\n  bogus ;~ error: PARSE nothing like it\n}\n",
        message: "no PARSE with `nothing like it` here",
    },
    Broken {
        rule: "unexpected_error",
        head: ";; p\n;@ run: @f(1) == 2",
        tail: "func @g() -> () {\nb:\n  bogus\n}\n",
        message: "PARSE: expected an instruction",
    },
    Broken {
        rule: "error_without_rule",
        head: ";; p",
        tail: "func @g() -> () {\nb:\n  bogus ;~ something\n}\n",
        message: "expected `;~ error: RULE substring`",
    },
    Broken {
        rule: "error_on_a_line_of_its_own",
        head: ";; p",
        tail: "func @g() -> () {\nb:\n  ;~ error: PARSE expected\n  bogus\n}\n",
        message: "on the line that gives the error",
    },
    Broken {
        rule: "error_and_run",
        head: ";; p\n;@ run: @f(1) == 2",
        tail: "func @g() -> () {\nb:\n  bogus ;~ error: PARSE expected\n}\n",
        message: "a file with errors has no module",
    },
    Broken {
        rule: "forbid_without_pipeline",
        head: ";; p\n;@ forbid: hoist",
        tail: "",
        message: "there is no `pipeline`",
    },
    Broken {
        rule: "forbid_of_nothing",
        head: ";; p\n;@ pipeline: gvn\n;@ forbid: hoists",
        tail: "",
        message: "there is no action `hoists`",
    },
    Broken {
        rule: "fuel_that_is_no_number",
        head: ";; p\n;@ pipeline: gvn\n;@ fuel: all\n;@ run: @f(1) == 2",
        tail: "",
        message: "not a number of rewrites",
    },
    Broken {
        rule: "osr_without_run",
        head: ";; p\n;@ pipeline: gvn\n;@ osr: every-point both",
        tail: "",
        message: "`osr` needs `run` lines",
    },
    Broken {
        rule: "osr_of_some_points",
        head: ";; p\n;@ pipeline: gvn\n;@ osr: some\n;@ run: @f(1) == 2",
        tail: "",
        message: "expected `every-point`",
    },
    Broken {
        rule: "unproved_and_all_are_proved",
        head: ";; p\n;@ pipeline: cse\n;@ unproved: entry-memory\n;@ osr: every-point both\n;@ run: @g(1) == 2",
        tail: "func @g(%a: i32) -> i32 {\nb:\n  %x = add.i32 %a, %a\n  %y = add.i32 %a, %a\n  %z = or.i32 %x, %y\n  return %z\n}\n",
        message: "every entry passes the check `entry-memory`",
    },
    Broken {
        rule: "passing_xfail",
        head: ";; p\n;@ xfail: not built\n;@ run: @f(1) == 2",
        tail: "",
        message: "it passes, and is marked as failing",
    },
    Broken {
        rule: "xfail_excuses_no_fault",
        head: ";; p\n;@ xfail: not built\n;@ runs: @f(1) == 3",
        tail: "",
        message: "unknown directive `runs`",
    },
];

/// A trial for each rule.
pub(crate) fn trials() -> Vec<Trial> {
    let mut trials: Vec<Trial> = BROKEN.iter().map(trial).collect();
    trials.push(Trial::test("strict::a_right_file_passes", right_file_passes));
    trials.push(Trial::test("strict::a_failing_xfail_passes", failing_xfail_passes));
    trials.push(Trial::test("strict::blessing_writes_blocks_alone", blessing_writes_blocks_alone));
    trials
        .push(Trial::test("strict::every_action_can_be_forbidden", every_action_can_be_forbidden));
    trials.push(Trial::test("strict::an_entry_that_is_not_proved", unproved_entry_fails));
    trials.push(Trial::test(
        "strict::a_folder_without_files_is_refused",
        folder_without_files_is_refused,
    ));
    trials
}

fn trial(broken: &'static Broken) -> Trial {
    let text = format!("{}\n{MODULE}{}", broken.head, broken.tail);
    Trial::test(format!("strict::{}", broken.rule), move || {
        let failures = run(&text, false).failures.join("\n");
        if failures.contains(broken.message) {
            return Ok(());
        }
        Err(format!("expected a failure with `{}`, found `{failures}` for\n{text}", broken.message)
            .into())
    })
}

fn demand(holds: bool, message: impl Into<String>) -> Result<(), Failed> {
    if holds { Ok(()) } else { Err(message.into().into()) }
}

fn right_file_passes() -> Result<(), Failed> {
    let report = run(&format!(";; p\n;@ run: @f(1) == 2\n{MODULE}"), false);
    demand(report.failures.is_empty(), report.failures.join("\n"))
}

fn failing_xfail_passes() -> Result<(), Failed> {
    let report =
        run(&format!(";; p\n;@ xfail: wrong on purpose\n;@ run: @f(1) == 3\n{MODULE}"), false);
    demand(report.failures.is_empty(), report.failures.join("\n"))
}

fn blessing_writes_blocks_alone() -> Result<(), Failed> {
    let text = format!(";; p\n;@ expect: text\n{MODULE}");
    let blessed = run(&text, true).blessed.unwrap_or_default();
    demand(blessed == format!("{text};= text\n{MODULE}"), format!("blessed to\n{blessed}"))?;
    let again = run(&blessed, true).blessed.unwrap_or_default();
    demand(again == blessed, format!("blessed again to\n{again}"))?;
    let failures = run(&blessed, false).failures;
    demand(failures.is_empty(), failures.join("\n"))
}

/// The runner's list of action names equals the editor's: the first string of each row of its
/// match.
fn every_action_can_be_forbidden() -> Result<(), Failed> {
    let source = include_str!("../../ir/src/edit/action.rs");
    let rows = source
        .lines()
        .filter_map(|l| l.trim().strip_prefix("ActionKind::")?.split_once("{ .. } => \""));
    let names: Vec<&str> = rows.filter_map(|(_, rest)| rest.strip_suffix("\",")).collect();
    demand(names == ACTIONS, format!("the editor has {names:?}"))
}

/// A path through more blocks than the checker follows leaves the whole function undecided.
fn unproved_entry_fails() -> Result<(), Failed> {
    let jumps: String = (0..300).map(|n| format!("  jump b{n}\nb{n}:\n")).collect();
    let text = format!(
        ";; p\n;@ pipeline: cfg_clean\n;@ run: @f(1) == 2\n;@ osr: every-point both\nfunc @f(%a: i32) -> i32 {{\nentry:\n  \
         %z = const.i32 0\n  %b = add.i32 %a, %z\n{jumps}  %c = add.i32 %b, %a\n  return %c\n}}\n"
    );
    let failures = run(&text, false).failures.join("\n");
    let found = failures.contains("osr at avail: the entry forward from b299:0 of @f: undecided: ");
    demand(found, failures)
}

fn folder_without_files_is_refused() -> Result<(), Failed> {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-oir-files");
    std::fs::create_dir_all(&folder)?;
    demand(crate::trials(&folder, false).is_err(), "a folder without files was accepted")
}
