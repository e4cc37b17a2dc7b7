//! Tests of `wasm::load`.

use super::*;

#[test]
fn segments_outside_their_memory_are_refused() {
    for text in [
        "(module (memory 1) (data (i32.const 65534) \"abc\"))",
        "(module (table 1 funcref) (func $f) (elem (i32.const 1) $f))",
    ] {
        let error = load(Format::Wat, text.as_bytes()).expect_err("it lies outside").to_string();
        assert!(error.starts_with("the module cannot be instantiated: MOD-"), "{error}");
    }
}

#[test]
fn the_extension_decides_and_else_the_contents() {
    assert_eq!(Format::of(Some("oir"), b"\0asm"), Format::Oir);
    assert_eq!(Format::of(Some("txt"), b"\0asm\x01"), Format::Wasm);
    assert_eq!(
        Format::of(None, b"\xef\xbb\xbf ;; a comment\n ; and another\n (module)"),
        Format::Wat
    );
    assert_eq!(Format::of(None, b"(; a comment ;) (module)"), Format::Wat);
    assert_eq!(Format::of(None, b"; (a comment)\nfunc @f() {"), Format::Oir);
    assert_eq!(Format::of(None, b"; nothing else"), Format::Oir);
}
