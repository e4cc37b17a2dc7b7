//! Wrong and extreme modules in the text form.

use crate::bad_inputs::{put_through, refusal, run};
use insta::assert_snapshot;
use interp::Outcome;
use ir::Module;
use osier::{Format, load};

fn body(lines: &str) -> String {
    format!("func @f(%a: i32) -> i32 {{\n{lines}\n}}\n")
}

fn accepted(text: &str) -> Module {
    load(Format::Oir, text.as_bytes())
        .unwrap_or_else(|e| panic!("{e}\n{}", &text[..text.len().min(300)]))
}

#[test]
fn wrong_text_is_refused_with_line_and_cause() {
    let texts = [
        "memory @m 1\n\0".to_owned(),
        body("b:\n  %x = const.i1 1\n  return %a"),
        body("b:\n  %x = const.i128 1\n  return %a"),
        "func @f(%a: i128) {\nb:\n  return\n}".to_owned(),
        body("b:\n  %x = const.i64 18446744073709551616\n  return %a"),
        "global @g: f64 = nan:0x7ff0000000000000".to_owned(),
        "global @g: f64 = infinity".to_owned(),
        body("b:\n  %a = const.i32 1\n  return %a"),
        body("b:\n  return %x"),
        body("b:\n  jump c"),
        body("b:\n  %x = add.i32 %y, %a\n  %y = add.i32 %a, %a\n  return %x"),
        body("b:\n  %x = add.i32 %x, %a\n  return %x"),
        body("b:\n  br_if %a, l, r\nl:\n  %x = add.i32 %a, %a\n  jump r\nr:\n  return %x"),
        body("b:\n  jump c(%a, %a)\nc(%x: i32):\n  return %x"),
        body("b:\n  jump c(%a)\nc(%x: i64):\n  return %a"),
        body("b:\n  %x = add.i32 %a, %a"),
        body("b:\n  br_if %a, b, c\nc:\n  return %a"),
        "func @f() {\nb:\n".to_owned(),
        "(".repeat(1_000_000),
    ];
    let mut refusals = String::new();
    for text in texts {
        let message = refusal(Format::Oir, text.as_bytes());
        assert!(message.len() < 2000, "messages are short: {} bytes", message.len());
        refusals += &format!("{:?}\n{message}\n\n", &text[..text.len().min(300)]);
    }
    for bytes in [&b"func @f\xe9() {}"[..], b"; fine\n; f\xc3"] {
        refusals += &format!("\"{}\"\n{}\n\n", bytes.escape_ascii(), refusal(Format::Oir, bytes));
    }
    assert_snapshot!(refusals);
}

#[test]
fn a_line_of_a_hundred_megabytes_is_refused_with_a_short_message() {
    let mut text = "x".repeat(100 << 20);
    let message = refusal(Format::Oir, text.as_bytes());
    assert!(
        message.starts_with("1:1: expected") && message.len() < 2000,
        "{} bytes",
        message.len()
    );
    text.replace_range(..1, ";");
    assert!(accepted(&text).defined().next().is_none(), "as a comment it is nothing");
}

#[test]
fn an_empty_text_is_a_module() {
    for text in ["", "\u{feff}", "\r\n\r\n", "; nothing\r\n", "memory @m 1\n"] {
        let module = accepted(text);
        assert_eq!(put_through(&module), 0, "{text:?}");
    }
}

#[test]
fn odd_graphs_go_through_everything() {
    let text = "\u{feff}func @self_loop() {\r\nb:\r\n  jump c\r\nc:\r\n  jump c\r\n}\r\n\
        func @endless(%a: i32) {\nb:\n  jump c(%a)\nc(%x: i32):\n  %y = add.i32 %x, %a\n  jump d\nd:\n  jump c(%y)\n}\n\
        func @unreached(%a: i32) -> i32 {\nb:\n  return %a\nc:\n  jump d\nd:\n  jump c\n}\n\
        func @irreducible(%a: i32) -> i32 {\nb:\n  br_if %a, l, r\nl:\n  %x = sub.i32 %a, %a\n  br_if %x, r, done\n\
        r:\n  br_if %a, l, done\ndone:\n  return %a\n}\n\
        func @recursive(%a: i32) -> i32 {\nb:\n  %x = call @recursive(%a)\n  return %x\n}\n\
        func @traps() -> i64 {\nb:\n  trap unreachable\n}\n";
    let module = accepted(text);
    assert!(put_through(&module) > 20);
    assert!(matches!(run(&module, "self_loop", &[]), Outcome::OutOfFuel(_)));
    assert!(matches!(run(&module, "endless", &[1]), Outcome::OutOfFuel(_)));
    assert!(matches!(run(&module, "recursive", &[1]), Outcome::StackOverflow(_)));
    assert_eq!(run(&module, "unreached", &[7]).returned(), Some(&[7][..]));
    assert_eq!(run(&module, "irreducible", &[0]).returned(), Some(&[0][..]));
    assert_eq!(run(&module, "irreducible", &[1]).returned(), Some(&[1][..]));
}

/// The concatenation of `count` texts, one for each number.
fn repeated(count: usize, text: impl Fn(usize) -> String) -> String {
    (0..count).map(text).collect()
}

#[test]
fn large_functions_go_through_everything() {
    const MANY: usize = 100_000;
    let cases = repeated(MANY, |n| format!("{}c{}", if n == 0 { "" } else { ", " }, n % 2));
    let switch = body(&format!(
        "b:\n  switch %a, [{cases}], default c0\nc0:\n  return %a\nc1:\n  %x = add.i32 %a, %a\n  return %x"
    ));
    let params = repeated(MANY, |n| format!("{}%p{n}: i32", if n == 0 { "" } else { ", " }));
    let many_params =
        format!("func @f({params}) -> i32 {{\nb:\n  %x = add.i32 %p0, %p99999\n  return %x\n}}\n");
    // Certificates of long chains cost more than linear time, so this case is smaller.
    const CHAIN: usize = 10_000;
    let chain = body(&format!(
        "b:\n  %v0 = add.i32 %a, %a\n{}  return %v{CHAIN}",
        repeated(CHAIN, |n| { format!("  %v{} = add.i32 %v{n}, %a\n", n + 1) })
    ));
    // The pass merges these blocks in turn, and no path of a certificate follows so many jumps. The
    // case is smaller, and needs no entries.
    const BLOCKS: usize = 5_000;
    let blocks = body(&format!(
        "b:\n  jump b0\n{}b{BLOCKS}:\n  return %a",
        repeated(BLOCKS, |n| { format!("b{n}:\n  jump b{}\n", n + 1) })
    ));
    for (what, text) in
        [("switch", switch), ("parameters", many_params), ("chain", chain), ("blocks", blocks)]
    {
        let module = accepted(&text);
        assert!(put_through(&module) > 0 || what == "blocks", "{what}");
        let args = vec![1; module.defined().next().expect("one function").1.arguments().len()];
        assert!(run(&module, "f", &args).returned().is_some(), "{what}");
    }
}
