//! Tests of `wasm::operators`.

use super::*;

#[test]
fn names_are_those_of_the_text_format() {
    let names = [
        ("i32x4_add", "i32x4.add"),
        ("i32_atomic_rmw8_add_u", "i32.atomic.rmw8.add_u"),
        ("memory_atomic_wait32", "memory.atomic.wait32"),
        ("i64_atomic_load8_u", "i64.atomic.load8_u"),
        ("atomic_fence", "atomic.fence"),
        ("v128_load8x8_s", "v128.load8x8_s"),
        ("return_call_indirect", "return_call_indirect"),
        ("i32_trunc_sat_f32_s", "i32.trunc_sat_f32_s"),
    ];
    for (visit, text) in names {
        assert_eq!(text_name(visit), text);
    }
    assert_eq!(
        (proposal(&Operator::I32x4Add), name(&Operator::I32x4Add)),
        ("simd", "i32x4.add".to_owned())
    );
}

/// Every supported operator without immediates, with the arity that wasmparser declares for it.
fn supported() -> Vec<(Operator<'static>, &'static str)> {
    let mut all = Vec::new();
    macro_rules! list {
            ($(
            @$proposal:ident $op:ident $({ $($arg:ident: $argty:ty),* })?
            => $visit:ident ($($ann:tt)*)
        )*) => {
                $( list!(one $proposal $op $({ $($arg)* })? stringify!($($ann)*)); )*
            };
            (one $proposal:ident $op:ident { $($arg:ident)* } $arity:expr) => {};
            (one $proposal:ident $op:ident $arity:expr) => {
                if is_supported(stringify!($proposal)) {
                    all.push((Operator::$op, $arity));
                }
            };
        }
    wasmparser::for_each_operator!(list);
    all
}

#[test]
fn the_table_has_every_operator_on_values_alone() {
    use ir::Shape::{FloatBinary, FloatCompare, IntBinary, IntCompare};
    let mut plain_ones = 0;
    for (operator, arity) in supported() {
        let Some((opcode, ty)) = plain(&operator) else {
            let others =
                ["unreachable", "nop", "else", "end", "return", "drop", "select", "ref.is_null"];
            assert!(
                others.contains(&name(&operator).as_str()),
                "no table lists {}",
                name(&operator)
            );
            continue;
        };
        plain_ones += 1;
        let binary = matches!(opcode.shape(), IntBinary | IntCompare | FloatBinary | FloatCompare);
        let expected = if binary { "arity 2 -> 1" } else { "arity 1 -> 1" };
        assert_eq!(arity, expected, "{}", name(&operator));
        assert!(opcode.allows_type(ty), "{}: {} {ty}", name(&operator), opcode.name());
        // The name starts with the type of the result; for comparisons, with the type of the
        // operands.
        assert!(
            name(&operator).starts_with(ty.name()),
            "{}: {} {ty}",
            name(&operator),
            opcode.name()
        );
    }
    assert_eq!(plain_ones, 136);
}
