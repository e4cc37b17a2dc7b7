//! Modules that are imported without the functions that use unsupported parts of WebAssembly.

use osier_wasm::{ErrorKind, Format, ImportLimits, Limits, SupportedParts, import_wat, load_parts};

fn parts(text: &str) -> SupportedParts {
    load_parts(Format::Wat, text.as_bytes(), &Limits::default(), false)
        .unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The names of the functions that are left out, with what they need.
fn left_out(text: &str) -> Vec<(String, &'static str)> {
    let parts = parts(text);
    let name = |func| parts.module.funcs[func].name.clone();
    parts.left_out.iter().map(|one| (name(one.func), one.feature)).collect()
}

/// Declarations of all kinds, most of them not supported.
const DECLARED: &str = "
  (type $plain (func (param i32) (result i32)))
  (type $vector (func (param v128) (result v128)))
  (type $pair (struct (field i32)))
  (rec (type $one (func (param i32))) (type $other (func (param i32))))
  (import \"env\" \"tag\" (tag $imported (param i32)))
  (import \"env\" \"splat\" (func $splat (param i32) (result v128)))
  (memory $m 1) (memory $wide i64 1) (memory $shared 1 1 shared)
  (table $t 4 funcref) (table $refs 4 anyref)
  (tag $tag)
  (global $lanes (mut v128) (v128.const i32x4 1 2 3 4))
  (global $object (ref null any) (ref.null any))
  (data (memory $wide) (i64.const 0) \"wide\")
  (elem $objects anyref (item (ref.null any)))
  (elem (table $t) (i32.const 0) func $id)
  (export \"tag\" (tag $tag))
  (func $id (type $plain) (local.get 0))
  (func $kept (export \"kept\") (param i32) (result i32)
    (i32.add (call $id (local.get 0)) (i32.load $shared (local.get 0))))";

#[test]
fn functions_that_use_unsupported_parts_are_left_out_by_name() {
    let cases = [
        ("(drop (v128.const i32x4 0 0 0 0))", "SIMD"),
        ("(local v128)", "SIMD"),
        ("(drop (global.get $lanes))", "SIMD"),
        ("(drop (call $splat (i32.const 1)))", "SIMD"),
        ("(block (result v128) unreachable) drop", "SIMD"),
        ("(drop (i32x4.relaxed_trunc_f32x4_s (unreachable)))", "relaxed SIMD"),
        ("(drop (i32.atomic.load $shared (i32.const 0)))", "threads"),
        ("(throw $tag)", "exceptions"),
        ("(return_call $id (i32.const 1)) ", "tail calls"),
        ("(drop (i32.load $wide (i64.const 0)))", "memory64"),
        ("(drop (memory.size $wide))", "memory64"),
        ("(drop (struct.new $pair (i32.const 1)))", "GC"),
        ("(drop (table.get $refs (i32.const 0)))", "GC"),
        ("(elem.drop $objects)", "GC"),
        ("(drop (global.get $object))", "GC"),
        ("(call_indirect (type $other) (i32.const 1) (i32.const 0))", "GC"),
    ];
    for (body, feature) in cases {
        let result = if body.starts_with("(return_call") { "(result i32)" } else { "" };
        let text = format!("(module {DECLARED} (func $f {result} {body}))");
        assert_eq!(left_out(&text), [("f".to_owned(), feature)], "{body}");
    }
    // Unreachable code is dropped, and nothing of it is left to be unsupported.
    let dead = "unreachable (drop (call $splat (i32.const 1)))";
    assert_eq!(left_out(&format!("(module {DECLARED} (func $f {dead}))")), []);
    let typed = format!("(module {DECLARED} (func $f (type $vector) (local.get 0)))");
    assert_eq!(left_out(&typed), [("f".to_owned(), "SIMD")]);
    let strict = import_wat(&typed, &ImportLimits::default()).expect_err("it is refused");
    assert_eq!(strict.kind(), ErrorKind::Unsupported);
}

/// Functions that are kept are the same as without the others, and the others stay declared.
#[test]
fn the_other_functions_are_whole() {
    let text = format!("(module {DECLARED} (func $f (export \"f\") (drop (global.get $lanes))))");
    let SupportedParts { module, left_out, .. } = parts(&text);
    let names: Vec<&str> = module.defined().map(|(_, body)| body.name()).collect();
    assert_eq!(names, ["id", "kept"]);
    let [one] = &left_out[..] else { panic!("{left_out:?}") };
    assert!(module.awaits_body(one.func));
    assert_eq!(module.lookup("f"), Some(one.func));
    assert!(ir::verifier::verify_module(&module).is_empty());
    let printed = ir::text::print_module(&module);
    assert_eq!(
        ir::text::print_module(&ir::text::parse_module(&printed).expect("it is text")),
        printed
    );
}

#[test]
fn functions_that_are_left_out_may_write_tables() {
    let fixed = |body: &str| {
        let text = format!("(module (table 1 funcref) (func $f) (elem (i32.const 0) $f) {body})");
        parts(&text).module.tables.values().all(|decl| decl.fixed)
    };
    assert!(fixed("(func (drop (i32.const 1)))"));
    assert!(!fixed("(func (local v128) (table.set (i32.const 0) (ref.null func)))"));
}

/// A body is validated to its end, also if it is left out.
#[test]
fn an_invalid_body_is_no_body_to_leave_out() {
    for body in ["(drop (v128.const i32x4 0 0 0 0)) (drop)", "(local v128) (i32.const 1)"] {
        let text = format!("(module (func {body}))");
        let error = load_parts(Format::Wat, text.as_bytes(), &Limits::default(), false);
        let error = error.expect_err("it is invalid").to_string();
        assert!(error.starts_with("invalid module"), "{error}");
    }
}

/// Threads that translate bodies leave out the same functions.
#[test]
fn several_threads_leave_out_the_same() {
    let bodies: String = (0..600)
        .map(|n| match n % 3 {
            0 => "(func (drop (v128.const i32x4 0 0 0 0)))".to_owned(),
            _ => format!("(func (result i32) (i32.add (i32.const {n}) (i32.const 1)))"),
        })
        .collect();
    let text = format!("(module {bodies})");
    let with = |threads| {
        let mut limits = Limits::default();
        limits.import.threads = threads;
        let parts = load_parts(Format::Wat, text.as_bytes(), &limits, false).expect("it is valid");
        (ir::text::print_module(&parts.module), parts.left_out)
    };
    let (module, left_out) = with(1);
    assert_eq!(left_out.len(), 200);
    assert_eq!(with(4), (module, left_out));
}

/// Declarations that need an unsupported part have placeholders, whatever they claim, and functions
/// that mention none of them stay.
#[test]
fn declarations_of_unsupported_parts_have_placeholders() {
    for (text, count) in [
        ("(memory i64 0x1000000000) (func)", 0),
        ("(table i64 0x100000000000 funcref) (func)", 0),
        ("(memory 1 (pagesize 1)) (func (drop (i32.load (i32.const 0))))", 1),
        ("(type $s (sub (struct))) (table 3 (ref null $s)) (func)", 0),
        ("(func $f) (table 2 (ref func) (ref.func $f)) (func (call_indirect (i32.const 0)))", 1),
        ("(func $f) (table 2 funcref (ref.func $f)) (func (call_indirect (i32.const 0)))", 1),
        ("(type $f (func)) (type $c (cont $f)) (func (drop (cont.new $c (ref.null $f))))", 1),
        ("(global (ref i31) (ref.i31 (i32.const 3))) (func (drop (i31.get_s (global.get 0))))", 1),
        ("(global $a (import \"a\" \"b\") (ref func)) (global funcref (global.get $a)) (func)", 0),
        (
            "(func $f) (elem (ref func) (ref.func $f)) (table 3 funcref) (func (table.init 0 0 (i32.const 0) (i32.const 0) (i32.const 1)))",
            0,
        ),
        (
            "(memory 1) (memory i64 1) (func (memory.copy 0 1 (i32.const 0) (i64.const 0) (i32.const 1)))",
            1,
        ),
        (
            "(import \"a\" \"g\" (global $g i64)) (memory i64 1) (data (offset (global.get $g)) \"x\") (func)",
            0,
        ),
        ("(import \"a\" \"m\" (memory i64 1 2 shared)) (export \"m\" (memory 0)) (func)", 0),
        ("(rec (type $a (func)) (type (struct (field (ref $a))))) (func (type $a)) (func)", 1),
        ("(type (shared (struct))) (func)", 0),
        ("(start $f) (func $f (local v128))", 1),
        ("(rec (type $s (func)) (type (struct))) (func $f (type $s)) (start $f)", 1),
        ("(type $s (sub (func))) (func $f (type $s)) (start $f)", 1),
        ("(type $s (shared (func))) (func (type $s))", 1),
    ] {
        let text = format!("(module {text})");
        let module = parts(&text);
        assert_eq!(module.left_out.len(), count, "{text}");
        assert!(ir::verifier::verify_module(&module.module).is_empty(), "{text}");
    }
}

/// The results of `g`, in the module without what is not supported.
fn result(text: &str) -> Vec<u64> {
    let module = parts(text).module;
    let outcome = interp::run(&module, "g", &[]).expect("instantiable");
    outcome.returned().unwrap_or_else(|| panic!("{outcome}")).to_vec()
}

#[test]
fn a_table_lacks_no_segment_that_is_left_out() {
    let module = |segment: &str| {
        format!(
            "(module (type $t (func (result i32))) (table $tab 1 funcref)
            (func $a (type $t) (i32.const 1)) (func $b (type $t) (i32.const 2))
            (elem (table $tab) (i32.const 0) func $a) {segment}
            (func (export \"g\") (result i32) (call_indirect $tab (type $t) (i32.const 0))))"
        )
    };
    assert_eq!(result(&module("(elem (table $tab) (i32.const 0) (ref func) (ref.func $b))")), [2]);
    // Entries of a narrower type: the calls through the table are left out.
    let narrow = "(elem (table $tab) (i32.const 0) (ref $t) (ref.func $b))";
    let left_out = parts(&module(narrow)).left_out;
    assert_eq!(left_out.len(), 1, "{left_out:?}");
}

#[test]
fn a_placeholder_is_no_initial_value() {
    let text = "(module (func $f) (global $a (ref func) (ref.func $f))
        (global $b funcref (global.get $a))
        (table 1 funcref) (elem (i32.const 0) funcref (global.get $a))
        (func $is_null (result i32) (ref.is_null (global.get $b)))
        (func $call (call_indirect (i32.const 0)))";
    let parts = parts(&format!("{text})"));
    assert_eq!(parts.left_out.len(), 2, "{:?}", parts.left_out);
}

/// A group of types counts as its members.
#[test]
fn members_of_a_group_take_memory_each() {
    let text = format!("(module (rec {}))", "(type (func)) ".repeat(100_000));
    let mut limits = Limits::default();
    limits.import.base_bytes = 1 << 20;
    let error = load_parts(Format::Wat, text.as_bytes(), &limits, false).expect_err("too large");
    assert!(error.to_string().starts_with("too large"), "{error}");
}
