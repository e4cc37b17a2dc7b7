//! Rejected texts, with the location and message of each error.

use crate::text::{SAMPLE, check_any_text, check_places, errors, parse};
use insta::assert_snapshot;
use osier_ir::Func;
use osier_ir::text::{MAX_ERRORS, print_module};
use osier_ir::verifier::verify_module;

/// Each text, shortened, and below it the errors with which the parser rejects it.
fn refusals(texts: &[&str]) -> String {
    let mut shown = String::new();
    for text in texts {
        let errors = errors(text);
        check_places(text, &errors);
        let first: String = text.chars().take(400).collect();
        shown += &format!("{first:?}\n");
        errors.iter().for_each(|error| shown += &format!("{error}\n"));
        shown.push('\n');
    }
    shown
}

/// A function with this body. The first line of the body is line 2.
fn body(lines: &str) -> String {
    format!("func @f(%a: i32) -> i32 {{\n{lines}\n}}\n")
}

#[test]
fn errors_are_located_and_several_at_a_time() {
    let text = "func @f(%a: i32) -> i32 {\nb:\n  %c = bogus.i32 %a\n  %d = add.i32 %c, 5\n  return %a\n}\n\
                export \"x\" @nosuch\nfunc @g() -> () {\nb:\n  jump away\n}\n";
    let many = "bogus\n".repeat(1000);
    assert_eq!(errors(&many).len(), MAX_ERRORS);
    let shown = refusals(&[text]);
    assert_snapshot!(shown);
}

#[test]
fn carets_count_characters() {
    let shown = refusals(&["export \"日本\" @nosuch", "\texport \"é\" @nosuch"]);
    assert_snapshot!(shown);
}

#[test]
fn names_are_defined_once_and_used_defined() {
    let twice = "memory @x 1\nglobal @x: i32 = 1\ntable @x 1\nmemory @x 1\nglobal @x: i32 = 1\ntable @x 1\n";
    let uses = "b:\n  %x = load.i32 @m[%a]\n  return %x";
    let shown = refusals(&[
        &body("b:\n  return %nosuch"),
        &body("b:\n  %a = const.i32 1\n  return %a"),
        &body("b:\n  jump b2\nb2:\n  return %a\nb2:\n  return %a"),
        &body("b:\n  jump b2(%a)\nb2(%x: i32, %x: i32):\n  return %x"),
        twice,
        "import func @f \"a\" \"b\" ()\nfunc @f() {\nb:\n  return\n}",
        &body(uses),
        "start @a\nstart @b\nelem @t 0 []\ndata @m 0 \"\"",
        "import func @f \"\" \"\" ()\nstart @f\nstart @f",
        "later func @f ()\nfunc @f() {\nb:\n  return\n}\nlater @g ()\nlater func @h",
    ]);
    assert_snapshot!(shown);
}

#[test]
fn effects_are_known() {
    for (effect, wanted) in [
        ("effect(odd)", "expected `any`, `allocates`, `outside`, `reads` or `pure`"),
        ("effect pure", "expected `(`"),
        ("effect(pure", "expected `)`"),
    ] {
        let found = errors(&format!("import func @f \"a\" \"b\" () -> i32 {effect}\n"));
        assert!(found[0].to_string().contains(wanted), "{effect}: {}", found[0]);
    }
}

#[test]
fn use_before_definition_is_for_the_verifier() {
    let module = parse(&body("b:\n  %x = add.i32 %y, %a\n  %y = add.i32 %x, %a\n  return %y"));
    let found: Vec<&str> = verify_module(&module).iter().map(|f| f.rule().id()).collect();
    assert_eq!(found, ["SSA-DOM-1"]);
}

#[test]
fn blocks_begin_with_a_label_and_end_with_a_terminator() {
    let shown = refusals(&[
        &body("  return %a"),
        &body("b:"),
        &body("b:\n  return %a\n  return %a"),
        &body(""),
        &body("b(%x: i32):\n  return %a"),
        "func @f() {\nb:\n  return\n",
        "func @f() {\nb:\n  return\nfunc @g() {\nb:\n  return\n}\nstart @f",
        "}",
    ]);
    assert_snapshot!(shown);
}

#[test]
fn results_are_named_one_by_one() {
    let shown = refusals(&[
        &body("b:\n  add.i32 %a, %a\n  return %a"),
        &body("b:\n  %x, %y = call @f(%a)\n  return %a"),
        &body("b:\n  %x = return %a"),
        &body("b:\n  %x, %x = call @f(%a)\n  return %x"),
    ]);
    assert_snapshot!(shown);
}

#[test]
fn mnemonics_have_the_right_suffix() {
    let shown = refusals(&[
        &body("b:\n  %x = add %a, %a\n  return %x"),
        &body("b:\n  %x = add.i33 %a, %a\n  return %x"),
        &body("b:\n  return.i32 %a"),
        &body("b:\n  trap nosuch"),
        &body("b:\n  trap user4294967296"),
        &body("b:\n  switch %a, [b]"),
        &body("b:\n  br_if %a, b"),
    ]);
    assert_snapshot!(shown);
}

#[test]
fn numbers_must_fit() {
    let shown = refusals(&[
        "global @g: i8 = 256",
        "global @g: i8 = -129",
        "global @g: i32 = 4294967296",
        "global @g: i64 = 18446744073709551616",
        "global @g: i64 = -9223372036854775809",
        "global @g: i64 = 340282366920938463463374607431768211456",
        "global @g: i64 = 0x",
        "global @g: i64 = 1.5",
        "global @g: i64 = 0x+1",
        "global @g: i64 = -0x-1",
        "global @g: i64 = 12ab",
        "global @g: i32 = 1_000",
        "global @g: f64 = 1e309",
        "global @g: f32 = 1e39",
        "global @g: f64 = 1e",
        "global @g: f64 = --1",
        "global @g: f64 = 0x10",
        "global @g: f64 = 1.5.2",
        "global @g: f64 = nan:0x7ff0000000000000",
        "global @g: f32 = nan:0x7ff8000000000001",
        "global @g: i32 = inf",
        "memory @m 4294967296",
        "memory @m -1",
        "data @m 18446744073709551616 \"\"",
    ]);
    assert_snapshot!(shown);
}

#[test]
fn strings_are_closed_and_escapes_known() {
    let shown = refusals(&[
        "export \"a",
        "export \"a\\",
        "export \"\\q\" @f",
        "export \"\\0\" @f",
        "export \"\\u{110000}\" @f",
        "export \"\\u{d800}\" @f",
        "export \"\\u{41\" @f",
        "export \"\\ff\" @f",
        "memory @\"\\ff\" 1",
        "memory @ 1",
    ]);
    assert_snapshot!(shown);
}

#[test]
fn odd_bytes_are_located() {
    let with_mark = format!("\u{feff}{}", SAMPLE.replace('\n', "\r\n"));
    assert_eq!(print_module(&parse(&with_mark)), print_module(&parse(SAMPLE)));
    let shown = refusals(&[
        "memory @m 1\n\0",
        "memory @m\u{a0}1",
        "memory @m 1\rmemory @n 1",
        "\u{feff}bogus",
    ]);
    assert_snapshot!(shown);
}

#[test]
fn a_sample_cut_anywhere_is_read_or_refused() {
    let ends = (0..=SAMPLE.len()).filter(|i| SAMPLE.is_char_boundary(*i));
    ends.for_each(|end| check_any_text(&SAMPLE[..end]));
}

#[test]
fn a_sample_with_any_bit_flipped_is_read_or_refused() {
    for at in 0..SAMPLE.len() {
        for bit in 0..8 {
            let mut bytes = SAMPLE.as_bytes().to_vec();
            bytes[at] ^= 1 << bit;
            if let Ok(text) = std::str::from_utf8(&bytes) {
                check_any_text(text);
            }
        }
    }
}

#[test]
fn large_bad_texts_are_refused_in_bounded_time_and_space() {
    let million = 1_000_000;
    let at_the_end = format!("export \"{}\" @nosuch", "é".repeat(million));
    // The parser must not allocate memory according to sizes that the text claims.
    let claims =
        parse("memory @m 4294967295\ntable @t 4294967295\ndata @m 18446744073709551615 \"\"\n");
    assert!(!verify_module(&claims).is_empty());
    let labels: String = (0..100_000).map(|i| format!("b{i}:\n  jump b{i}\n")).collect();
    assert_eq!(
        parse(&body(&labels)).body(Func::from_u32(0)).expect("f has a body").block_count(),
        100_000
    );
    let shown = refusals(&[
        &"(".repeat(million),
        &body(&format!("b:\n  jump b{}", "(".repeat(million))),
        &body(&format!("b:\n  %x = const.i32 {}", "9".repeat(million))),
        &"x".repeat(million),
        &format!("export \"{}", "\\41".repeat(million)),
        &at_the_end,
    ]);
    assert_snapshot!(shown);
}
