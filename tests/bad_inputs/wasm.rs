//! WebAssembly modules that the importer rejects, and programs that must trap, optimized or not.

use crate::bad_inputs::{put_through, refusal, run};
use interp::{Limits, Machine, NoHost, NoObserver, Outcome};
use ir::{Module, TrapKind};
use osier::driver::{self, Vigilance, optimize};
use osier::{Format, load};
use passes::Pipeline;

fn accepted(text: &str) -> Module {
    load(Format::Wat, text.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// A module with one function without parameters and results, with these declarations of locals and
/// this body.
fn one_body(locals: &[u8], code: &[u8]) -> Vec<u8> {
    let body = [locals, code].concat();
    let mut bytes = b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x0a".to_vec();
    let length = leb(body.len() as u32);
    let section = [vec![1], length, body].concat();
    bytes.extend(leb(section.len() as u32));
    bytes.extend(section);
    bytes
}

fn leb(mut value: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

#[test]
fn malformed_modules_are_refused_with_an_offset() {
    let end = b"\x0b".as_slice();
    // Two declarations of 2^32 - 1 locals each: their sum does not fit 32 bits.
    let two_huge = b"\x02\xff\xff\xff\xff\x0f\x7f\xff\xff\xff\xff\x0f\x7f".as_slice();
    let cases: [(&str, Vec<u8>, &str); 10] = [
        ("magic", b"\0asn\x01\0\0\0".to_vec(), "magic"),
        ("version", b"\0asm\x02\0\0\0".to_vec(), "version"),
        (
            "overlong number",
            b"\0asm\x01\0\0\0\x01\x84\x80\x80\x80\x80\0\x01\x60\0\0".to_vec(),
            "too long",
        ),
        ("number of 33 bits", b"\0asm\x01\0\0\0\x01\xff\xff\xff\xff\x1f".to_vec(), "too large"),
        ("sections out of order", b"\0asm\x01\0\0\0\x03\x01\0\x01\x01\0".to_vec(), "out of order"),
        (
            "section twice",
            b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x01\x04\x01\x60\0\0".to_vec(),
            "out of order",
        ),
        ("2^33 locals", one_body(two_huge, end), "too many locals"),
        ("50,001 locals", one_body(b"\x01\xd1\x86\x03\x7f", end), "too many locals"),
        ("unknown operator", one_body(b"\0", b"\xff\x0b"), "illegal opcode"),
        (
            "bytes behind the end",
            one_body(b"\0", b"\x0b\x01"),
            "operators remaining after end of function",
        ),
    ];
    for (what, bytes, cause) in cases {
        let message = refusal(Format::Wasm, &bytes);
        assert!(message.contains(cause) && message.contains(" at offset 0x"), "{what}: {message}");
    }
}

#[test]
fn tables_beyond_the_limit_are_refused_when_imported_too() {
    for text in [
        "(module (table 46553610 funcref) (func (export \"f\")))",
        "(module (import \"env\" \"t\" (table 46553610 externref)))",
    ] {
        let message = refusal(Format::Wat, text.as_bytes());
        let cause = "too large: a table of 46553610 entries; the limit is 10000000 at offset 0x";
        assert!(message.starts_with(cause), "{message}");
    }
}

#[test]
fn types_are_checked_behind_unreachable_too() {
    for (body, cause) in [
        ("unreachable i32.const 1 i64.add drop", "type mismatch"),
        ("unreachable (br 7)", "unknown label"),
        ("unreachable (local.get 3)", "unknown local"),
    ] {
        let message = refusal(Format::Wat, format!("(module (func {body}))").as_bytes());
        assert!(message.contains(cause), "{body}: {message}");
    }
    assert!(put_through(&accepted("(module (func (result i32) unreachable i32.add (br 0)))")) > 0);
}

#[test]
fn wide_branches_and_deep_blocks_go_through_everything() {
    let wide = format!(
        "(module (func (export \"f\") (param i32) (result i32) (block (block (br_table {} 1 (local.get 0)))
        (return (i32.const 2))) (i32.const 3)))",
        "0 1 ".repeat(20_000)
    );
    let deep = format!(
        "(module (func (export \"f\") (param i32) (result i32) {} nop {} local.get 0))",
        "block ".repeat(20_000),
        "end ".repeat(20_000)
    );
    for (text, result) in [(wide, 3), (deep, 1)] {
        let module = accepted(&text);
        assert!(put_through(&module) > 0);
        assert_eq!(run(&module, "f", &[1]).returned(), Some(&[result][..]));
    }
}

/// Programs with the end that WebAssembly prescribes: a trap or a result.
const ENDS: &[(&str, Result<u64, TrapKind>)] = &[
    ("(i32.div_s (i32.const 0x80000000) (i32.const -1))", Err(TrapKind::IntegerOverflow)),
    ("(i32.rem_s (i32.const 0x80000000) (i32.const -1))", Ok(0)),
    ("(i32.div_u (i32.const 1) (i32.const 0))", Err(TrapKind::DivisionByZero)),
    ("(i32.rem_u (i32.const 1) (i32.const 0))", Err(TrapKind::DivisionByZero)),
    ("(i32.trunc_f64_s (f64.const nan))", Err(TrapKind::InvalidConversion)),
    ("(i32.trunc_f64_s (f64.const 2147483648))", Err(TrapKind::IntegerOverflow)),
    ("(i32.trunc_f32_u (f32.const -1))", Err(TrapKind::IntegerOverflow)),
    ("(i32.shl (i32.const 1) (i32.const 33))", Ok(2)),
    ("(i32.wrap_i64 (i64.shr_u (i64.const 4) (i64.const 65)))", Ok(2)),
    ("(i32.rotl (i32.const 1) (i32.const 32))", Ok(1)),
    ("(i32.reinterpret_f32 (f32.add (f32.const nan:0x200000) (f32.const 1)))", Ok(0x7fc0_0000)),
    ("(i32.reinterpret_f32 (f32.neg (f32.const nan:0x200000)))", Ok(0xffa0_0000)),
    ("(i32.load (i32.const 65533))", Err(TrapKind::MemoryOutOfBounds)),
    ("(i32.load (i32.const 65532))", Ok(0)),
    ("(i32.load offset=0xffffffff (i32.const 0xffffffff))", Err(TrapKind::MemoryOutOfBounds)),
    ("(i32.load8_u offset=1 (i32.const 0xffffffff))", Err(TrapKind::MemoryOutOfBounds)),
    ("(memory.grow (i32.const 1))", Ok(1)),
    ("(memory.grow (i32.const 2))", Ok(0xffff_ffff)),
    ("(memory.grow (i32.const 0xffffffff))", Ok(0xffff_ffff)),
    ("(call_indirect (result i32) (i32.const 0))", Ok(7)),
    ("(call_indirect (result i32) (i32.const 1))", Err(TrapKind::SignatureMismatch)),
    ("(call_indirect (result i32) (i32.const 2))", Err(TrapKind::NullFunction)),
    ("(call_indirect (result i32) (i32.const 3))", Err(TrapKind::TableOutOfBounds)),
    ("unreachable", Err(TrapKind::Unreachable)),
];

#[test]
fn programs_trap_exactly_where_prescribed() {
    for (body, ends) in ENDS {
        let module = accepted(&format!(
            "(module (memory 1 2) (table 3 funcref) (elem (i32.const 0) $seven $other)
               (func $seven (result i32) (i32.const 7)) (func $other (param i64))
               (func (export \"f\") (result i32) {body}))"
        ));
        let optimized =
            optimize(&module, &Pipeline::default(), Vigilance::On, &mut driver::NoObserver);
        for module in [&module, &optimized] {
            let outcome = run(module, "f", &[]);
            match ends {
                Ok(value) => {
                    assert_eq!(outcome.returned(), Some(&[*value][..]), "{body}: {outcome}")
                }
                Err(kind) => assert_eq!(outcome.trap(), Some(*kind), "{body}: {outcome}"),
            }
        }
        put_through(&module);
    }
}

#[test]
fn segments_start_functions_and_imports_fail_in_their_own_way() {
    let outside = refusal(Format::Wat, b"(module (memory 1) (data (i32.const 65536) \"x\"))");
    assert!(outside.contains("cannot be instantiated"), "{outside}");
    let module = accepted("(module (func $s unreachable) (start $s))");
    let mut machine = Machine::new(&module, Limits::default()).expect("it can be instantiated");
    let start = machine.start_function().expect("there is one");
    let outcome = machine.invoke(start, &[], &mut NoHost, &mut NoObserver);
    assert_eq!(outcome.trap(), Some(TrapKind::Unreachable));
    let module =
        accepted("(module (import \"env\" \"gone\" (func $g)) (func (export \"f\") (call $g)))");
    match run(&module, "f", &[]) {
        Outcome::HostFailed { error, .. } => assert!(error.to_string().contains("gone"), "{error}"),
        other => panic!("{other}"),
    }
}
