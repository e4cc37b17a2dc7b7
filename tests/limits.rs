//! Limits: the manual lists each with its default, and an input that exceeds one is reported.

use osier::wasm::ImportLimits;
use osier::{ExceededLimit, Format, Limits, load_within};

/// The limits on inputs with their options and defaults, and the limits on runs.
fn rows() -> Vec<(&'static str, &'static str, u64)> {
    // Destructured without `..`, so that a new limit fails to compile here until it has a row.
    let Limits { input_bytes, function_instructions, import, run } = Limits::default();
    let ImportLimits { base_bytes, bytes_per_input_byte, threads } = import;
    assert_eq!(threads, 1, "a library starts no threads that nobody asked for");
    assert_eq!(bytes_per_input_byte, 64, "help and manual say so");
    let interp::Limits { fuel, memory_pages, table_entries, call_depth, stack_values } = run;
    vec![
        ("input_bytes", "--max-input-bytes", input_bytes),
        ("function_instructions", "--max-function-instructions", function_instructions),
        ("import.base_bytes", "--max-import-bytes", base_bytes),
        ("run.fuel", "--fuel", fuel),
        ("run.memory_pages", "--max-memory-pages", memory_pages.into()),
        ("run.table_entries", "--max-table-entries", table_entries.into()),
        ("run.call_depth", "--max-call-depth", call_depth.into()),
        ("run.stack_values", "--max-stack-values", stack_values),
    ]
}

#[test]
fn every_limit_is_in_the_manual() {
    let manual =
        std::fs::read_to_string("docs/oir.md").expect("tests run in the root of the package");
    for (field, option, default) in rows() {
        let row = format!("| `{field}` | `{option}` | {default}");
        assert!(manual.contains(&row), "{row}");
    }
}

#[test]
fn inputs_beyond_a_limit_are_refused() {
    let text = b"func @f() {\nentry:\n  return\n}\nfunc @\"g\\u{1b}\"(%a: i32) {\nentry:\n  %b = add.i32 %a, %a\n  return\n}\n";
    let load = |limits: Limits| {
        load_within(Format::Oir, text, &limits).map(|_| ()).map_err(|e| e.to_string())
    };
    let exactly =
        Limits { input_bytes: text.len() as u64, function_instructions: 2, ..Limits::default() };
    assert_eq!(load(exactly), Ok(()));
    let most = text.len() - 1;
    assert_eq!(
        load(Limits { input_bytes: most as u64, ..exactly }),
        Err(format!("the input has {} bytes; the limit is {most}", text.len()))
    );
    let refused = load(Limits { function_instructions: 1, ..exactly });
    assert_eq!(refused, Err("@g\\u{1b} has 2 instructions; the limit is 1".to_owned()));
    let mut small = Limits::default();
    (small.import.base_bytes, small.import.bytes_per_input_byte) = (100, 0);
    let refused = load_within(Format::Wat, b"(module (func))", &small)
        .expect_err("it needs more")
        .to_string();
    assert!(refused.contains("the import would need more memory"), "{refused}");
    let limit = |format, text: &[u8], limits: &Limits| {
        load_within(format, text, limits).err().and_then(|error| error.limit())
    };
    assert_eq!(limit(Format::Wat, b"(module (func))", &small), Some(ExceededLimit::ImportBytes));
    let short = Limits { function_instructions: 1, ..exactly };
    assert_eq!(limit(Format::Oir, text, &short), Some(ExceededLimit::FunctionInstructions));
    let small = Limits { input_bytes: most as u64, ..exactly };
    assert_eq!(limit(Format::Oir, text, &small), Some(ExceededLimit::InputBytes));
    assert_eq!(limit(Format::Oir, b"no module", &exactly), None);
}
