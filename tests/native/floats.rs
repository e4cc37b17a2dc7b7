//! NaNs with signs and payloads on every path through a function, and at every operation that
//! exposes bits.
//!
//! Native arithmetic may give any NaN, and the compiler makes it canonical where its bits are
//! observed. Each function here joins two floats, by a `select`, at a block or around a loop, and
//! then exposes the result in every way.

use crate::both::{PLATFORM, Share, Twins, settings};
use crate::operations::special;
use interp::{Host, HostError, Limits, Memories, Options};
use ir::module::ImportName;
use ir::text::parse_module;
use ir::{Func, Memory, Type};
use std::fmt::Write;
use std::sync::Arc;

/// A host that returns its first argument.
struct Echo;

impl Host for Echo {
    fn call(
        &mut self,
        _import: &ImportName,
        _func: Func,
        args: &[u64],
        _memories: &mut Memories,
        results: &mut [u64],
    ) -> Result<(), HostError> {
        results.fill(args.first().copied().unwrap_or_default());
        Ok(())
    }
}

/// The sources of a float: lines that define `%N`. `T` stands for its type, `I` for the integer
/// type of the same width. There are parameters `%p` and `%q` of type `T`, and `%i` of type `I`.
const SOURCES: &[&str] = &[
    "  %N = fadd.T %p, %q",
    "  %N = fsqrt.T %q",
    "  %N = bitcast.T %i",
    "  %N.s = fmul.T %p, %q\n  %N = fneg.T %N.s",
    "  %N.s = fsub.T %p, %q\n  %N.t = fabs.T %p\n  %N = fcopysign.T %N.t, %N.s",
    "  %N.a = const.i32 8\n  store.T @m[%N.a], %q\n  %N = load.T @m[%N.a]",
    "  %N = const.T nan:NAN",
    "  %N = const.T 1.5",
    "  %N = call @pass(%p)",
    "  %N = call @sum(%p, %q)",
    "  %N = global_get.T @g",
    "  %N = float_from_sint.T %i",
];

/// The source that takes its sign from another float. With the NaNs of the processor, a program
/// that observes the sign of a NaN may compute another number.
const SIGNED: usize = 4;

/// Ways to join two floats `%x` and `%y` as `%v`. `%c` selects one, or is the number of iterations.
const JOINS: &[&str] = &[
    "  %v = select.T %c, %x, %y",
    "  br_if %c, join(%x), join(%y)\njoin(%v: T):",
    "  %zero = const.i32 0\n  jump head(%x, %zero)\nhead(%v: T, %n: i32):\n  %one = const.i32 1\n  %m = add.i32 %n, %one\n  \
     %more = ult.i32 %n, %c\n  br_if %more, head(%y, %m), done\ndone:",
    "  %zero = const.i32 0\n  jump head(%x, %zero)\nhead(%w: T, %n: i32):\n  %one = const.i32 1\n  %m = add.i32 %n, %one\n  \
     %more = ult.i32 %n, %c\n  %next = fadd.T %w, %y\n  br_if %more, head(%next, %m), done(%w)\ndone(%v: T):",
];

/// Every operation that exposes the bits of `%v`. The last line returns the observed bits.
const SHOWN: &str = "  %bits = bitcast.I %v
  %neg = fneg.T %v
  %nbits = bitcast.I %neg
  %abs = fabs.T %v
  %abits = bitcast.I %abs
  %sign = fcopysign.T %q, %v
  %signed = fcopysign.T %v, %q
  %at = const.i32 16
  store.T @m[%at], %v
  %back = load.I @m[%at]
  global_set.T @g, %v
  %word = call @bits(%v)
  %third = const.i32 3
  %far = call_indirect @t (T) -> I [%third](%v)
  %host = call @echo(%v)
  %sum = fadd.T %v, %p
  %less = flt.T %v, %p
  return %bits, %nbits, %abits, %sign, %signed, %back, %word, %far, %host, %sum, %less, %v
}
";

/// Of the functions without an observed NaN, one in this number is called. The number shares no
/// factor with the numbers of sources and joins, so every source and join occurs.
const SOME: usize = 5;

/// Uses of `%v` that observe no bits of a NaN.
const UNSEEN: &str = "  %sum = fadd.T %v, %p
  %less = flt.T %v, %p
  %number = uint_from_float_sat.i64 %v
  return %sum, %less, %number
}
";

/// Uses of `%v` whose results are floats again, or observe no bits of a NaN.
const FLOATS: &str = "  %neg = fneg.T %v
  %abs = fabs.T %v
  %signed = fcopysign.T %v, %q
  %at = const.i32 16
  store.T @m[%at], %v
  %back = load.T @m[%at]
  global_set.T @g, %v
  %held = global_get.T @g
  %passed = call @pass(%v)
  %host = call @echo(%v)
  %sum = fadd.T %v, %p
  %less = flt.T %v, %p
  return %neg, %abs, %signed, %back, %held, %passed, %host, %sum, %less, %v
}
";

fn module(ty: Type) -> String {
    let mut text = String::from(
        "memory @m 1\nglobal @g: mut T = 0.0\ntable @t 4\nelem @t 3 [@bits]\n\
         import func @echo \"host\" \"echo\" (T) -> T\n\
         func @bits(%v: T) -> I {\nentry:\n  %b = bitcast.I %v\n  return %b\n}\n\
         func @pass(%v: T) -> T {\nentry:\n  return %v\n}\n\
         func @sum(%v: T, %w: T) -> T {\nentry:\n  %s = fadd.T %v, %w\n  return %s\n}\n\
         func @leaves(%v: T, %w: T) -> () {\nentry:\n  %s = fmul.T %v, %w\n  %n = fneg.T %s\n  osr_exit 3(%s, %v, %n)\n}\n",
    );
    let source = |name: &str, number: usize| SOURCES[number].replace("%N", &format!("%{name}"));
    for (index, (x, y, join)) in combinations().enumerate() {
        let (x, y) = (source("x", x), source("y", y));
        write!(
            text,
            "func @f{index}(%c: i32, %p: T, %q: T, %i: I) -> (I, I, I, T, T, I, I, I, T, T, i32, T) {{\nentry:\n{x}\n{y}\n{join}\n{SHOWN}",
            join = JOINS[join]
        )
        .expect("writing to a string succeeds");
        if index % SOME != 0 {
            continue;
        }
        write!(
            text,
            "func @u{index}(%c: i32, %p: T, %q: T, %i: I) -> (T, i32, i64) {{\nentry:\n{x}\n{y}\n{join}\n{UNSEEN}\
             func @n{index}(%c: i32, %p: T, %q: T, %i: I) -> (T, T, T, T, T, T, T, T, i32, T) {{\nentry:\n{x}\n{y}\n{join}\n{FLOATS}",
            join = JOINS[join]
        )
        .expect("writing to a string succeeds");
    }
    let (int, nan) =
        if ty == Type::F32 { ("i32", "0xffc12345") } else { ("i64", "0xfff8000000012345") };
    let text = text.replace("nan:NAN", &format!("nan:{nan}"));
    // A type follows a dot, a colon or a parenthesis.
    let mut out = String::new();
    for word in
        text.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_' && c != '@' && c != '%')
    {
        let (name, end) =
            word.split_at(word.len() - word.chars().next_back().map_or(0, char::len_utf8));
        match name {
            "T" => out.push_str(&ty.to_string()),
            "I" => out.push_str(int),
            name => out.push_str(name),
        }
        out.push_str(end);
    }
    out
}

/// Every pair of sources at every join.
fn combinations() -> impl Iterator<Item = (usize, usize, usize)> {
    let count = SOURCES.len();
    (0..count * count * JOINS.len()).map(move |n| (n % count, n / count % count, n / count / count))
}

/// A signaling NaN, the canonical NaN, a NaN with sign and payload, infinity, and a number.
fn operands(ty: Type) -> Vec<u64> {
    if ty == Type::F32 {
        vec![0x7f80_0001, 0x7fc0_0000, 0xffc0_0005, 0xff80_0000, 0x3fc0_0000]
    } else {
        vec![0x7ff0_0000_0000_0001, 0x7ff8 << 48, 0xfff8_0000_0000_0005, 0xfff0 << 48, 0x3ff8 << 48]
    }
}

fn compare(ty: Type) -> usize {
    let text = module(ty);
    let module = Arc::new(parse_module(&text).unwrap_or_else(|errors| panic!("{}", errors[0])));
    let mut calls = 0;
    for setting in [&settings()[0], &settings()[3]] {
        let mut twins =
            Twins::new(&module, Limits::default(), Options::traced(), setting, Share::All)
                .unwrap_or_else(|error| panic!("{error}"));
        let leaves = module.lookup("leaves").expect("it is there");
        for args in
            special(ty).into_iter().flat_map(|p| operands(ty).into_iter().map(move |q| [p, q]))
        {
            let outcome = twins
                .call(leaves, &args, [&mut Echo, &mut Echo])
                .unwrap_or_else(|what| panic!("{args:x?}: {what}"));
            assert!(outcome.returned().is_none(), "{outcome}");
            calls += 1;
        }
        let named = |kind: &'static str| {
            let all = combinations().enumerate();
            all.map(move |(index, combination)| (format!("{kind}{index}"), combination))
        };
        let shown = named("f").chain(named("u").step_by(SOME));
        for (name, combination) in shown {
            let func = module.lookup(&name).expect("it is there");
            for (p, q) in
                operands(ty).into_iter().flat_map(|p| operands(ty).into_iter().map(move |q| (p, q)))
            {
                for c in [0, 1, 3] {
                    let args = [c, p, q, p ^ 4];
                    let ended = twins.call(func, &args, [&mut Echo, &mut Echo]);
                    ended.unwrap_or_else(|what| panic!("{combination:?} of {args:x?}: {what}"));
                    calls += 1;
                }
            }
        }
        twins.compare().unwrap_or_else(|what| panic!("{what}"));
    }
    calls
}

/// With the NaNs of the processor, results agree with the interpreter's modulo the bits of NaNs.
/// Returns the numbers of calls, and of results that are another NaN.
fn compare_platform(ty: Type) -> (usize, usize) {
    let text = module(ty);
    let module = Arc::new(parse_module(&text).unwrap_or_else(|errors| panic!("{}", errors[0])));
    let mut twins =
        Twins::new(&module, Limits::default(), Options::traced(), &PLATFORM, Share::All)
            .unwrap_or_else(|error| panic!("{error}"));
    let (mut calls, mut others) = (0, 0);
    let is_blind = |&(_, (x, y, _)): &(usize, (usize, usize, usize))| x != SIGNED && y != SIGNED;
    for (index, combination) in combinations().enumerate().step_by(SOME).filter(is_blind) {
        let func = module.lookup(&format!("n{index}")).expect("it is there");
        for p in operands(ty) {
            for q in operands(ty) {
                let args = [3, p, q, p ^ 4];
                let ended = twins.call(func, &args, [&mut Echo, &mut Echo]);
                let wanted =
                    ended.unwrap_or_else(|what| panic!("{combination:?} of {args:x?}: {what}"));
                let [stored, native] = [twins.machine(), twins.native()].map(|machine| {
                    machine.memories().read(Memory::from_u32(0), 16, ty.bytes().into())
                });
                others += usize::from(stored != native);
                assert!(wanted.returned().is_some(), "{wanted}");
                calls += 1;
            }
        }
    }
    (calls, others)
}

#[test]
fn platform_nans_differ_in_their_bits_alone() {
    for ty in [Type::F32, Type::F64] {
        let (calls, others) = compare_platform(ty);
        assert!(calls > 2_000, "{calls} calls");
        assert!(others > 0, "no stored NaN shows that the option does anything");
    }
}

#[test]
fn nans_of_32_bits() {
    let calls = compare(Type::F32);
    assert!(calls > 80_000, "{calls} calls");
}

#[test]
fn nans_of_64_bits() {
    let calls = compare(Type::F64);
    assert!(calls > 80_000, "{calls} calls");
}
