//! Tests of the translation of small functions: results, graphs and names.

use ir::{Function, Module, Opcode};
use osier_wasm::{ImportLimits, import_wat, is_wasm};

fn import(text: &str) -> Module {
    let module =
        import_wat(text, &ImportLimits::default()).unwrap_or_else(|e| panic!("{e}: {text}"));
    let findings = ir::verifier::verify_module(&module);
    assert!(findings.is_empty(), "{text}: {}", findings[0]);
    module
}

/// The results of the exported function `f` of a module on these arguments.
fn results(text: &str, args: &[u64]) -> Vec<u64> {
    let module = import(text);
    let outcome = interp::run(&module, "f", args).expect("instantiable");
    outcome.returned().unwrap_or_else(|| panic!("{text}: {outcome}")).to_vec()
}

fn i32_function(params: usize, body: &str) -> String {
    format!(
        "(module (memory 1) (func (export \"f\") (param {}) (result i32) (local i32 i32) {body}))",
        "i32 ".repeat(params)
    )
}

/// The number of blocks of a function, and the number of parameters of all blocks but the entry.
fn shape(body: &str) -> (usize, usize) {
    let module = import(&i32_function(2, body));
    let function: &Function = module.body(ir::Func::from_u32(0)).expect("defined");
    let params = function.blocks().skip(1).map(|b| function.block_params(b).len()).sum();
    (function.block_count(), params)
}

/// Structures with parameters and several results compute the right values.
#[test]
fn structures_take_and_give_several_values() {
    let cases: [(&str, &[(u64, u64)]); 7] = [
        ("(i32.const 3) (i32.const 4) (block (param i32 i32) (result i32) (i32.sub))", &[(0, 0xffff_ffff)]),
        // Both arms receive the values that were on the stack before the condition.
        (
            "(i32.const 9) (i32.const 4) (local.get 0)
            (if (param i32 i32) (result i32) (then (i32.sub)) (else (i32.add)))",
            &[(0, 13), (1, 5)],
        ),
        // An `if` without an `else` passes its parameters on as results.
        ("(i32.const 9) (local.get 0) (if (param i32) (result i32) (then (i32.eqz)))", &[(0, 9), (1, 0)]),
        (
            "(i32.const 9) (local.get 0) (if $l (param i32) (result i32) (then (br_if $l (local.get 0)) (i32.eqz)))",
            &[(0, 9), (1, 9)],
        ),
        // A loop that carries two values and no local: the sum, and the next number to add.
        (
            "(i32.const 0) (local.get 0) (loop $top (param i32 i32) (result i32)
                (local.set 1) (i32.add (local.get 1)) (i32.sub (local.get 1) (i32.const 1))
                (br_if $top (i32.ne (local.get 1) (i32.const 1))) (drop))",
            &[(1, 1), (100, 5050)],
        ),
        // Branches carry two results, in order, and drop the values below them.
        (
            "(block $l (result i32 i32) (i32.const 77) (i32.const 7) (i32.const 5) (br_if $l (local.get 0))
                (drop) (drop) (drop) (i32.const 1) (i32.const 2)) (i32.sub)",
            &[(0, 0xffff_ffff), (1, 2)],
        ),
        (
            "(block $a (result i32 i32) (block $b (result i32 i32)
                (i32.const 1) (i32.const 2) (br_table $a $b (local.get 0))) (i32.add) (i32.const 10)) (i32.add)",
            &[(0, 3), (1, 13)],
        ),
    ];
    for (body, expected) in cases {
        for (argument, result) in expected {
            assert_eq!(
                results(&i32_function(1, body), &[*argument]),
                [*result],
                "{body} of {argument}"
            );
        }
    }
    let swap = "(module (func $swap (param i32 i64) (result i64 i32) (local.get 1) (local.get 0))
        (func (export \"f\") (result i64 i32 i32) (call $swap (i32.const 1) (i64.const 2)) (i32.const 3)))";
    assert_eq!(results(swap, &[]), [2, 1, 3]);
}

#[test]
fn conversions_saturate_instead_of_trapping() {
    let text = "(module (func (export \"f\") (param f64) (result i32 i64)
        (i32.trunc_sat_f64_s (local.get 0)) (i64.trunc_sat_f64_u (local.get 0))))";
    assert_eq!(results(text, &[f64::NAN.to_bits()]), [0, 0]);
    assert_eq!(results(text, &[(-1e300f64).to_bits()]), [0x8000_0000, 0]);
    assert_eq!(results(text, &[1e300f64.to_bits()]), [0x7fff_ffff, u64::MAX]);
}

#[test]
fn each_access_is_of_the_memory_it_names() {
    let text = "(module (memory 1) (memory $m 2 3) (data (memory $m) (i32.const 8) \"\\05\")
        (func (export \"f\") (result i32 i32 i32 i32)
        (i32.store (i32.const 8) (i32.const 7)) (i32.load $m (i32.const 8))
        (memory.grow $m (i32.const 1))
        (memory.size $m) (memory.size 0)))";
    assert_eq!(results(text, &[]), [5, 2, 3, 1]);
}

#[test]
fn structures_compute_the_right_results() {
    let table = "(block $c (block $b (block $a (br_table $a $b $a $c (local.get 0))) (return (i32.const 10)))
        (return (i32.const 20))) (i32.const 30)";
    let cases: [(&str, &[(u64, u64)]); 9] = [
        (table, &[(0, 10), (1, 20), (2, 10), (3, 30), (0xffff_ffff, 30)]),
        ("(select (i32.const 1) (i32.const 2) (local.get 0))", &[(0, 2), (5, 1)]),
        (
            "(if (result i32) (local.get 0) (then (i32.const 7)) (else (i32.const 8)))",
            &[(0, 8), (9, 7)],
        ),
        // A loop with its exit in the middle computes triangular numbers.
        (
            "(block $out (loop $top (br_if $out (i32.eqz (local.get 0)))
                (local.set 1 (i32.add (local.get 1) (local.get 0)))
                (local.set 0 (i32.sub (local.get 0) (i32.const 1))) (br $top))) (local.get 1)",
            &[(0, 0), (1, 1), (100, 5050)],
        ),
        // A branch carries one result, and the other result falls through.
        (
            "(block $l (result i32) (drop (br_if $l (i32.const 5) (local.get 0))) (i32.const 6))",
            &[(0, 6), (1, 5)],
        ),
        // Values below a structure on the stack survive it.
        (
            "(i32.const 100) (block $l (br_if $l (local.get 0)) (local.set 1 (i32.const 1))) (local.get 1) (i32.add)",
            &[(0, 101), (1, 100)],
        ),
        // A table of branches carries results to structures of the same type.
        (
            "(block $a (result i32) (i32.add (i32.const 1) (block $b (result i32)
                (br_table $a $b (i32.const 40) (local.get 0)))))",
            &[(0, 40), (1, 41)],
        ),
        // Code after a branch is skipped, including nested structures.
        (
            "(block $l (br $l) (if (i32.const 0) (then (unreachable)) (else (loop $m (br $m)))) (unreachable)) (local.get 0)",
            &[(3, 3)],
        ),
        // A local that only one path sets is zero on the other path.
        ("(if (local.get 0) (then (local.set 2 (i32.const 4)))) (local.get 2)", &[(0, 0), (1, 4)]),
    ];
    for (body, runs) in cases {
        for (arg, expected) in runs {
            assert_eq!(results(&i32_function(1, body), &[*arg]), [*expected], "{body} of {arg}");
        }
    }
}

#[test]
fn memory_globals_and_calls_keep_their_operands_in_order() {
    let text = "(module (memory 1) (global $g (mut i64) (i64.const 5)) (table 2 funcref) (elem (i32.const 1) $minus)
        (data (i32.const 16) \"\\fe\\ff\\ff\\ff\")
        (type $binary (func (param i32 i32) (result i32)))
        (func $minus (type $binary) (i32.sub (local.get 0) (local.get 1)))
        (func (export \"f\") (param i32) (result i32)
          (i64.store offset=32 (i32.const 8)
            (i64.mul (global.get $g) (i64.load32_s offset=8 (i32.const 8))))
          (global.set $g (i64.load (i32.const 40)))
          (call_indirect (type $binary) (call $minus (i32.const 50) (local.get 0)) (i32.wrap_i64 (global.get $g)) (i32.const 1))))";
    // (50 - arg) - (5 * -2)
    assert_eq!(results(text, &[8]), [52]);
}

/// A module as compilers make dynamic libraries, and its text in the form of the IR. The embedder
/// tells the bases of memory and table, and a function.
const LIBRARY: &str = "(module
  (type $value (func (result i32)))
  (import \"env\" \"__memory_base\" (global $base i32))
  (import \"env\" \"__table_base\" (global $first i32))
  (import \"env\" \"handler\" (global $handler funcref))
  (import \"env\" \"memory\" (memory 1))
  (import \"env\" \"table\" (table $t 8 funcref))
  (global $second i32 (i32.add (global.get $base) (i32.const 4)))
  (global $product i32 (i32.mul (i32.sub (i32.const 3) (global.get $base)) (global.get $first)))
  (global $copy funcref (global.get $handler))
  (data (global.get $base) \"\\05\\00\\00\\00\\07\\00\\00\\00\")
  (elem (table $t) (offset (i32.add (global.get $first) (i32.const 1))) func $one)
  (elem (table $t) (i32.const 0) funcref (item (global.get $handler)) (item (ref.func $one)))
  (elem $late funcref (item (ref.func $one)) (item (global.get $handler)))
  (func $one (type $value) (i32.const 1))
  (func $nine (export \"nine\") (type $value) (i32.const 9))
  (func $call (param i32) (result i32) (call_indirect $t (type $value) (local.get 0)))
  (func (export \"f\") (result i32 i32 i32 i32 i32 i32 i32)
    (table.init $t $late (i32.const 5) (i32.const 0) (i32.const 2))
    (i32.load (global.get $base)) (i32.load (global.get $second)) (global.get $product)
    (call $call (i32.add (global.get $first) (i32.const 1)))
    (call $call (i32.const 0))
    (call $call (i32.const 6))
    (table.set $t (i32.const 7) (global.get $copy)) (call $call (i32.const 7))))";

#[test]
fn places_and_values_depend_on_imported_globals() {
    let mut module = import(LIBRARY);
    let text = ir::text::print_module(&module);
    let again = ir::text::parse_module(&text).unwrap_or_else(|errors| panic!("{errors:?}"));
    assert_eq!(ir::text::print_module(&again), text);
    for (module, base) in [(&mut module, 16), (&mut again.clone(), 65_528)] {
        let nine = module.func_named("nine").expect("defined");
        let values = [base, 2, ir::reference::of_func(Some(nine))];
        module.globals.values_mut().zip(values).for_each(|(decl, bits)| decl.init = bits.into());
        let outcome = interp::run(module, "f", &[]).expect("instantiable");
        let product = u64::from(3_u32.wrapping_sub(base as u32).wrapping_mul(2));
        assert_eq!(outcome.returned(), Some(&[5, 7, product, 1, 9, 9, 9][..]), "{base}");
    }
    // The segment ends behind the memory.
    module.globals.values_mut().take(1).for_each(|decl| decl.init = 65_529.into());
    let error = interp::run(&module, "f", &[]).expect_err("it does not fit");
    assert_eq!(error.to_string(), "data segment 0 is out of bounds of memory env.memory");
}

/// Calls through a table of which a segment is unknown stay calls through the table.
#[test]
fn a_table_with_an_unknown_segment_is_not_fixed() {
    let fixed = |place: &str, item: &str| {
        let text = format!(
            "(module (import \"env\" \"p\" (global $p i32)) (import \"env\" \"g\" (global $g funcref))
            (table 4 funcref) (elem (offset {place}) funcref (item {item})) (func $f))"
        );
        import(&text).tables.values().all(|decl| decl.fixed)
    };
    assert!(fixed("(i32.const 1)", "(ref.func $f)"));
    assert!(!fixed("(global.get $p)", "(ref.func $f)"));
    assert!(!fixed("(i32.const 1)", "(global.get $g)"));
}

#[test]
fn every_plain_operator_has_its_meaning() {
    let unary = |op: &str, from: &str, to: &str, arg: u64| {
        results(
            &format!(
                "(module (func (export \"f\") (param {from}) (result {to}) ({op} (local.get 0))))"
            ),
            &[arg],
        )[0]
    };
    assert_eq!(unary("i32.extend8_s", "i32", "i32", 0x80), 0xffff_ff80);
    assert_eq!(unary("i64.extend32_s", "i64", "i64", 0x8000_0000), 0xffff_ffff_8000_0000);
    assert_eq!(unary("i64.extend_i32_u", "i32", "i64", 0xffff_ffff), 0xffff_ffff);
    assert_eq!(unary("i64.extend_i32_s", "i32", "i64", 0xffff_ffff), u64::MAX);
    assert_eq!(unary("i32.trunc_f64_s", "f64", "i32", (-3.9f64).to_bits()), 0xffff_fffd);
    assert_eq!(unary("i64.trunc_f32_u", "f32", "i64", u64::from(3.9f32.to_bits())), 3);
    assert_eq!(unary("f64.convert_i32_u", "i32", "f64", 0xffff_ffff), 4294967295.0f64.to_bits());
    assert_eq!(unary("f32.convert_i64_s", "i64", "f32", u64::MAX), u64::from((-1.0f32).to_bits()));
    assert_eq!(unary("f32.reinterpret_i32", "i32", "f32", 0x7fa0_0000), 0x7fa0_0000);
    assert_eq!(
        unary("f64.promote_f32", "f32", "f64", u64::from(1.5f32.to_bits())),
        1.5f64.to_bits()
    );
    assert_eq!(unary("f64.nearest", "f64", "f64", 2.5f64.to_bits()), 2.0f64.to_bits());
    let binary = |op: &str, ty: &str, to: &str, a: u64, b: u64| {
        let text = format!(
            "(module (func (export \"f\") (param {ty} {ty}) (result {to}) ({op} (local.get 0) (local.get 1))))"
        );
        results(&text, &[a, b])[0]
    };
    assert_eq!(binary("i32.shr_s", "i32", "i32", 0x8000_0000, 33), 0xc000_0000);
    assert_eq!(binary("i64.shr_u", "i64", "i64", 1 << 63, 63), 1);
    assert_eq!(binary("i32.rem_s", "i32", "i32", 0x8000_0000, 0xffff_ffff), 0);
    assert_eq!(binary("i32.div_u", "i32", "i32", 0xffff_ffff, 2), 0x7fff_ffff);
    assert_eq!(binary("i32.lt_s", "i32", "i32", 0xffff_ffff, 0), 1);
    assert_eq!(binary("i32.lt_u", "i32", "i32", 0xffff_ffff, 0), 0);
    assert_eq!(
        binary("f64.copysign", "f64", "f64", 1.0f64.to_bits(), (-2.0f64).to_bits()),
        (-1.0f64).to_bits()
    );
    assert_eq!(
        binary("f32.ge", "f32", "i32", u64::from(2.0f32.to_bits()), u64::from(2.0f32.to_bits())),
        1
    );
}

#[test]
fn graphs_have_the_blocks_that_control_needs() {
    // Each case: body, number of blocks, number of parameters.
    let cases = [
        ("(local.get 0)", 1, 0),
        ("(block) (block (block)) (local.get 0)", 1, 0),
        ("(block $l (br $l)) (local.get 0)", 1, 0),
        ("(if (local.get 0) (then (local.set 1 (i32.const 1)))) (local.get 1)", 3, 1),
        (
            "(if (result i32) (local.get 0) (then (i32.const 1)) (else (return (i32.const 2))))",
            3,
            0,
        ),
        ("(if (result i32) (local.get 0) (then (i32.const 1)) (else (i32.const 2)))", 4, 1),
        ("(block $l (br_if $l (local.get 0)) (local.set 1 (i32.const 1))) (local.get 1)", 3, 1),
        // The arm that contains only a jump is no block.
        (
            "(block $a (block $b (br_if $b (local.get 0)) (br $a)) (local.set 1 (i32.const 1))) (local.get 1)",
            3,
            1,
        ),
        (
            "(block $a (block $b (block $c (br_if $c (local.get 0)) (local.set 1 (i32.const 1))))) (local.get 1)",
            3,
            1,
        ),
        (
            "(loop $l (local.set 0 (i32.sub (local.get 0) (i32.const 1))) (br_if $l (local.get 0))) (local.get 0)",
            3,
            1,
        ),
        ("(loop) (local.get 0)", 2, 0),
        ("(unreachable)", 1, 0),
        ("(return (local.get 0)) (loop $l (br $l))", 1, 0),
        ("(loop $l (br $l)) (local.get 0)", 2, 0),
    ];
    for (body, blocks, params) in cases {
        assert_eq!(shape(body), (blocks, params), "{body}");
    }
}

#[test]
fn the_entry_has_no_predecessor_even_if_a_loop_starts_the_function() {
    let module = import(&i32_function(1, "(loop $l (br_if $l (local.get 0))) (local.get 0)"));
    let function = module.body(ir::Func::from_u32(0)).expect("defined");
    assert!(function.predecessors(function.entry()).is_empty());
    assert_eq!(function.inst(function.terminator(function.entry())).opcode, Opcode::Jump);
}

#[test]
fn names_are_unique_and_from_the_name_section_where_there_are_some() {
    let module = import(
        "(module (import \"env\" \"puts\" (func $ignored (param i32))) (import \"env\" \"puts\" (func (param i64)))
            (global $sp (mut i32) (i32.const 0)) (global i32 (i32.const 0))
            (func $f) (func) (func $\"odd name\") (func (@name \"f\")) (func (@name \"f.1\")) (func (@name \"func3\")))",
    );
    let names: Vec<&str> = module.funcs.values().map(|f| f.name.as_str()).collect();
    assert_eq!(
        names,
        ["env.puts", "env.puts.1", "f", "func3", "odd name", "f.1", "f.1.1", "func3.1"]
    );
    let globals: Vec<&str> = module.globals.values().map(|g| g.name.as_str()).collect();
    assert_eq!(globals, ["sp", "global1"]);
    for (func, body) in module.defined() {
        assert_eq!(body.name(), module.funcs[func].name);
    }
}

#[test]
fn binary_modules_are_recognized_by_their_first_bytes() {
    assert!(is_wasm(b"\0asm\x01\0\0\0"));
    assert!(!is_wasm(b"(module)") && !is_wasm(b"\0as") && !is_wasm(b""));
}

/// The import keeps the start function and the exports of functions.
#[test]
fn exports_and_the_start_function_are_kept() {
    let module = import(
        "(module (memory (export \"m\") 1) (func $s) (func (export \"a\") (export \"b\")) (start $s))",
    );
    let exports: Vec<(&str, u32)> =
        module.exports.iter().filter_map(|e| Some((e.name.as_str(), e.func()?.as_u32()))).collect();
    assert_eq!(exports, [("a", 1), ("b", 1)]);
    assert_eq!(module.start, Some(ir::Func::from_u32(0)));
}
