//! Rejected texts, with the location and message of each error.

use crate::{SAMPLE, check_any_text, check_places, errors, parse};
use osier_ir::Func;
use osier_ir::text::{MAX_ERRORS, print_module};
use osier_ir::verifier::verify_module;

/// Asserts that the parser rejects the text with exactly these errors. Each message must contain
/// the given part.
fn refused(text: &str, expected: &[(u32, u32, &str)]) {
    let errors = errors(text);
    check_places(text, &errors);
    let found: Vec<String> = errors.iter().map(|e| e.to_string()).collect();
    assert_eq!(errors.len(), expected.len(), "{text}: {found:#?}");
    for (error, (line, column, message)) in errors.iter().zip(expected) {
        assert_eq!((error.line(), error.column()), (*line, *column), "{error}");
        assert!(error.message().contains(message), "{error}\nlacks {message}");
    }
}

/// A function with this body. The first line of the body is line 2.
fn body(lines: &str) -> String {
    format!("func @f(%a: i32) -> i32 {{\n{lines}\n}}\n")
}

#[test]
fn errors_are_located_and_several_at_a_time() {
    let text = "func @f(%a: i32) -> i32 {\nb:\n  %c = bogus.i32 %a\n  %d = add.i32 %c, 5\n  return %a\n}\n\
                export \"x\" @nosuch\nfunc @g() -> () {\nb:\n  jump away\n}\n";
    refused(
        text,
        &[(3, 8, "found `bogus.i32`"), (4, 20, "a value"), (7, 12, "@nosuch"), (10, 8, "`away`")],
    );
    let shown = errors(text)[2].to_string();
    assert_eq!(
        shown,
        "7:12: function `@nosuch` is not defined\n7 | export \"x\" @nosuch\n  |            ^"
    );
    let many = "bogus\n".repeat(1000);
    assert_eq!(errors(&many).len(), MAX_ERRORS);
}

#[test]
fn carets_count_characters() {
    refused("export \"日本\" @nosuch", &[(1, 13, "@nosuch")]);
    let shown = errors("\texport \"é\" @nosuch")[0].to_string();
    assert!(shown.ends_with("1 |  export \"é\" @nosuch\n  |             ^"), "{shown}");
}

#[test]
fn names_are_defined_once_and_used_defined() {
    refused(&body("b:\n  return %nosuch"), &[(3, 10, "value `%nosuch` is not defined")]);
    refused(
        &body("b:\n  %a = const.i32 1\n  return %a"),
        &[(3, 3, "`%a` is already defined on line 1")],
    );
    refused(
        &body("b:\n  jump b2\nb2:\n  return %a\nb2:\n  return %a"),
        &[(6, 1, "block `b2` is already defined on line 4")],
    );
    refused(
        &body("b:\n  jump b2(%a)\nb2(%x: i32, %x: i32):\n  return %x"),
        &[(4, 13, "`%x` is already defined on line 4")],
    );
    let twice = "memory @x 1\nglobal @x: i32 = 1\ntable @x 1\nmemory @x 1\nglobal @x: i32 = 1\ntable @x 1\n";
    refused(twice, &[(4, 8, "memory"), (5, 8, "global"), (6, 7, "table")]);
    refused(
        "import func @f \"a\" \"b\" ()\nfunc @f() {\nb:\n  return\n}",
        &[(2, 6, "function `@f`")],
    );
    let uses = "b:\n  %x = load.i32 @m[%a]\n  return %x";
    refused(&body(uses), &[(3, 17, "memory `@m` is not defined")]);
    refused(
        "start @a\nstart @b\nelem @t 0 []\ndata @m 0 \"\"",
        &[
            (1, 7, "function `@a`"),
            (2, 7, "function `@b`"),
            (3, 6, "table `@t`"),
            (4, 6, "memory `@m`"),
        ],
    );
    refused(
        "import func @f \"\" \"\" ()\nstart @f\nstart @f",
        &[(3, 7, "already has a start function")],
    );
}

#[test]
fn use_before_definition_is_for_the_verifier() {
    let module = parse(&body("b:\n  %x = add.i32 %y, %a\n  %y = add.i32 %x, %a\n  return %y"));
    let found: Vec<&str> = verify_module(&module).iter().map(|f| f.rule().id()).collect();
    assert_eq!(found, ["SSA-DOM-1"]);
}

#[test]
fn blocks_begin_with_a_label_and_end_with_a_terminator() {
    refused(&body("  return %a"), &[(2, 3, "label of the first block")]);
    refused(&body("b:"), &[(2, 1, "does not end in a terminator")]);
    refused(&body("b:\n  return %a\n  return %a"), &[(4, 3, "follows the terminator")]);
    refused(&body(""), &[(1, 6, "no block")]);
    refused(&body("b(%x: i32):\n  return %a"), &[(2, 2, "parameters of the first block")]);
    refused("func @f() {\nb:\n  return\n", &[(1, 6, "not closed")]);
    refused(
        "func @f() {\nb:\n  return\nfunc @g() {\nb:\n  return\n}\nstart @f",
        &[(1, 6, "not closed")],
    );
    refused("}", &[(1, 1, "expected `memory`")]);
}

#[test]
fn results_are_named_one_by_one() {
    refused(&body("b:\n  add.i32 %a, %a\n  return %a"), &[(3, 3, "1 result, but 0")]);
    refused(&body("b:\n  %x, %y = call @f(%a)\n  return %a"), &[(3, 3, "1 result, but 2")]);
    refused(&body("b:\n  %x = return %a"), &[(3, 3, "0 results, but 1")]);
    refused(&body("b:\n  %x, %x = call @f(%a)\n  return %x"), &[(3, 3, "1 result, but 2")]);
}

#[test]
fn mnemonics_have_the_right_suffix() {
    refused(&body("b:\n  %x = add %a, %a\n  return %x"), &[(3, 8, "needs a type")]);
    refused(&body("b:\n  %x = add.i33 %a, %a\n  return %x"), &[(3, 8, "`add.` and a type")]);
    refused(&body("b:\n  return.i32 %a"), &[(3, 3, "takes no type")]);
    refused(&body("b:\n  trap nosuch"), &[(3, 8, "kind of trap")]);
    refused(&body("b:\n  trap user65536"), &[(3, 8, "kind of trap")]);
    refused(&body("b:\n  switch %a, [b]"), &[(3, 17, "expected `,`, found the end")]);
    refused(&body("b:\n  br_if %a, b"), &[(3, 14, "expected `,`")]);
}

#[test]
fn numbers_must_fit() {
    for (ty, literal) in [
        ("i8", "256"),
        ("i8", "-129"),
        ("i32", "4294967296"),
        ("i64", "18446744073709551616"),
        ("i64", "-9223372036854775809"),
        ("i64", "340282366920938463463374607431768211456"),
        ("i64", "0x"),
        ("i64", "1.5"),
        ("i64", "0x+1"),
        ("i64", "-0x-1"),
        ("i64", "12ab"),
        ("i32", "1_000"),
        ("f64", "1e309"),
        ("f32", "1e39"),
        ("f64", "1e"),
        ("f64", "--1"),
        ("f64", "0x10"),
        ("f64", "1.5.2"),
    ] {
        refused(
            &format!("global @g: {ty} = {literal}"),
            &[(1, 15 + ty.len() as u32, &format!("that fits {ty}"))],
        );
    }
    refused("global @g: f64 = nan:0x7ff0000000000000", &[(1, 18, "is not a NaN of f64")]);
    refused("global @g: f32 = nan:0x7ff8000000000001", &[(1, 22, "at most 4294967295")]);
    refused("global @g: i32 = inf", &[(1, 18, "an integer")]);
    refused("memory @m 4294967296", &[(1, 11, "at most 4294967295")]);
    refused("memory @m -1", &[(1, 11, "at most 4294967295")]);
    refused("data @m 18446744073709551616 \"\"", &[(1, 9, "at most 18446744073709551615")]);
}

#[test]
fn strings_are_closed_and_escapes_known() {
    refused("export \"a", &[(1, 8, "does not end")]);
    refused("export \"a\\", &[(1, 10, "escape")]);
    refused("export \"\\q\" @f", &[(1, 9, "escape")]);
    refused("export \"\\0\" @f", &[(1, 9, "escape")]);
    refused("export \"\\u{110000}\" @f", &[(1, 9, "hexadecimal")]);
    refused("export \"\\u{d800}\" @f", &[(1, 9, "hexadecimal")]);
    refused("export \"\\u{41\" @f", &[(1, 9, "hexadecimal")]);
    refused("export \"\\ff\" @f", &[(1, 8, "UTF-8")]);
    refused("memory @\"\\ff\" 1", &[(1, 9, "UTF-8")]);
    refused("memory @ 1", &[(1, 8, "a name after `@`")]);
}

#[test]
fn odd_bytes_are_located() {
    refused("memory @m 1\n\0", &[(2, 1, "unexpected character `\\0`")]);
    refused("memory @m\u{a0}1", &[(1, 10, "unexpected character")]);
    refused("memory @m 1\rmemory @n 1", &[(1, 12, "unexpected character `\\r`")]);
    let with_mark = format!("\u{feff}{}", SAMPLE.replace('\n', "\r\n"));
    assert_eq!(print_module(&parse(&with_mark)), print_module(&parse(SAMPLE)));
    refused("\u{feff}bogus", &[(1, 1, "found `bogus`")]);
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
    refused(&"(".repeat(million), &[(1, 1, "found `(`")]);
    refused(&body(&format!("b:\n  jump b{}", "(".repeat(million))), &[(3, 10, "a value")]);
    refused(
        &body(&format!("b:\n  %x = const.i32 {}", "9".repeat(million))),
        &[(3, 18, "fits i32")],
    );
    refused(&"x".repeat(million), &[(1, 1, "found `xxx")]);
    refused(&format!("export \"{}", "\\41".repeat(million)), &[(1, 8, "does not end")]);
    let at_the_end = format!("export \"{}\" @nosuch", "é".repeat(million));
    refused(&at_the_end, &[(1, million as u32 + 11, "@nosuch")]);
    // The parser must not allocate memory according to sizes that the text claims.
    let claims =
        parse("memory @m 4294967295\ntable @t 4294967295\ndata @m 18446744073709551615 \"\"\n");
    assert!(!verify_module(&claims).is_empty());
    let labels: String = (0..100_000).map(|i| format!("b{i}:\n  jump b{i}\n")).collect();
    assert_eq!(
        parse(&body(&labels)).body(Func::from_u32(0)).expect("f has a body").block_count(),
        100_000
    );
}
