//! Large, odd and borderline cases: many parameters and results, wide branches, long functions and
//! infinite recursion. Further cases are growth, addresses at the end of memories, tables with odd
//! contents, hosts that end runs, and every amount of fuel.

use crate::both::{Setting, Share, Twins, on_a_large_stack, settings};
use interp::{Host, HostError, Limits, Memories, NoHost, Options, Outcome, TraceLevel};
use ir::module::ImportName;
use ir::text::parse_module;
use ir::{Func, Module, Table, TrapKind};
use jit::{Bounds, Config, Effort, Engine, Interruption};
use std::fmt::Write;
use std::sync::Arc;

fn parsed(text: &str) -> Arc<Module> {
    let module = parse_module(text).unwrap_or_else(|errors| panic!("{}", errors[0]));
    let findings = ir::verifier::verify_module(&module);
    assert!(findings.is_empty(), "{}", findings[0]);
    Arc::new(module)
}

const OPTIONS: Options = Options { poison: false, track_memory: true, trace: TraceLevel::Full };

/// Calls `@f` in all settings and shares, with fresh instances. Returns the outcomes in the
/// interpreter, which are the same each time.
fn everywhere(
    module: &Arc<Module>,
    limits: Limits,
    calls: &[&[u64]],
    host: impl Fn() -> Ender,
) -> Vec<Outcome> {
    let func = module.lookup("f").expect("the text has it");
    let mut outcomes = Vec::new();
    for setting in settings() {
        for share in Share::EVERY {
            let twins = Twins::new(module, limits, OPTIONS, setting, share);
            let mut twins = twins.unwrap_or_else(|what| panic!("{what}"));
            let mut made = Vec::new();
            let mut hosts = [host(), host()];
            for args in calls {
                let [one, other] = &mut hosts;
                made.push(
                    twins
                        .call(func, args, [one, other])
                        .unwrap_or_else(|what| panic!("{args:x?}: {what}")),
                );
            }
            twins.compare().unwrap_or_else(|what| panic!("{what}"));
            assert!(outcomes.is_empty() || outcomes == made, "{made:?}");
            outcomes = made;
        }
    }
    outcomes
}

/// Calls `@f` of a function so large that the checks of Cranelift, whose cost is more than linear,
/// would take minutes.
fn unchecked(module: &Arc<Module>, calls: &[&[u64]]) -> Vec<Outcome> {
    let func = module.lookup("f").expect("the text has it");
    let mut outcomes = Vec::new();
    for (name, effort) in [("most", Effort::Most), ("least", Effort::Least)] {
        let engine = Engine::new(Config { effort, ..Config::default() })
            .expect("native code is supported where it is tested");
        let twins = Twins::new(
            module,
            Limits::default(),
            Options::traced(),
            &Setting { name, engine },
            Share::All,
        );
        let mut twins = twins.unwrap_or_else(|what| panic!("{what}"));
        let call = |args: &&[u64]| twins.call(func, args, [&mut NoHost, &mut NoHost]);
        outcomes = calls
            .iter()
            .map(call)
            .collect::<Result<_, _>>()
            .unwrap_or_else(|what| panic!("{what}"));
    }
    outcomes
}

/// A host that answers `calls` calls with the sum of the arguments, and then with `end`.
#[derive(Clone)]
struct Ender {
    calls: u32,
    end: HostError,
}

impl Host for Ender {
    fn call(
        &mut self,
        _import: &ImportName,
        _func: Func,
        args: &[u64],
        _memories: &mut Memories,
        results: &mut [u64],
    ) -> Result<(), HostError> {
        if self.calls == 0 {
            return Err(self.end.clone());
        }
        self.calls -= 1;
        let sum = args.iter().fold(0, |sum: u64, arg| sum.wrapping_add(*arg));
        results.iter_mut().zip(sum..).for_each(|(result, number)| *result = number);
        Ok(())
    }
}

fn patient() -> Ender {
    Ender { calls: u32::MAX, end: HostError::Exit(0) }
}

const PARAMS: usize = 130;
const RESULTS: usize = 23;

/// Functions with many parameters and results of all types call each other directly and through a
/// table, and call the host.
#[test]
fn many_parameters_and_results() {
    let types = ["i8", "i64", "f32", "i16", "f64", "i32"];
    let of =
        |count: usize| (0..count).map(|i| types[i % types.len()]).collect::<Vec<_>>().join(", ");
    let params: Vec<String> =
        (0..PARAMS).map(|i| format!("%p{i}: {}", types[i % types.len()])).collect();
    let args: Vec<String> = (0..PARAMS).map(|i| format!("%p{i}")).collect();
    let named =
        |prefix: &str| (0..RESULTS).map(|i| format!("%{prefix}{i}")).collect::<Vec<_>>().join(", ");
    let (params, args, results) = (params.join(", "), args.join(", "), of(RESULTS));
    // The offset is a multiple of the number of types, so each result has its parameter's type.
    let picked: Vec<String> =
        (0..RESULTS).map(|i| format!("%p{}", i + 6 * ((PARAMS - RESULTS) / 6))).collect();
    let text = format!(
        "table @t 1\nelem @t 0 [@g]\nimport func @h \"host\" \"h\" ({}) -> ({results})\n\
         func @g({params}) -> ({results}) {{\nentry:\n  return {}\n}}\n\
         func @f({params}) -> ({results}) {{\nentry:\n  {} = call @g({args})\n  %zero = const.i32 0\n  \
         {} = call_indirect @t ({}) -> ({results}) [%zero]({args})\n  {} = call @h({args})\n  \
         %x = add.i64 %a1, %b1\n  %y = fadd.f64 %b4, %c4\n  %z = add.i8 %a0, %c0\n  {} = call @g({})\n  return {}\n}}\n",
        of(PARAMS),
        picked.join(", "),
        named("a"),
        named("b"),
        of(PARAMS),
        named("c"),
        named("d"),
        args.replace("%p127", "%x").replace("%p124", "%y").replace("%p126", "%z"),
        named("d"),
    );
    let module = parsed(&text);
    let args: Vec<u64> =
        (0..PARAMS as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let outcomes =
        everywhere(&module, Limits::default(), &[&args, &vec![u64::MAX; PARAMS]], patient);
    assert!(
        outcomes.iter().all(|o| o.returned().is_some_and(|values| values.len() == RESULTS)),
        "{outcomes:?}"
    );
}

/// Results that just fit the registers, and one integer or one float more. Each function also
/// returns from the interpreter and from the host.
#[test]
fn results_at_the_limit_of_the_registers() {
    for (ints, floats) in [(8, 8), (9, 0), (0, 9), (9, 8), (8, 9), (5, 4)] {
        let types: Vec<&str> = (0..ints.max(floats))
            .flat_map(|at| {
                let int = (at < ints).then_some(["i64", "i8", "i32"][at % 3]);
                int.into_iter().chain((at < floats).then_some(["f32", "f64"][at % 2]))
            })
            .collect();
        let list = |name: &str| {
            (0..types.len()).map(|at| format!("%{name}{at}")).collect::<Vec<_>>().join(", ")
        };
        let params: Vec<String> =
            types.iter().enumerate().map(|(at, ty)| format!("%p{at}: {ty}")).collect();
        let (params, all) = (params.join(", "), types.join(", "));
        let text = format!(
            "table @t 1\nelem @t 0 [@g]\nimport func @h \"host\" \"h\" ({all}) -> ({all})\n\
             func @g({params}) -> ({all}) {{\nentry:\n  return {}\n}}\n\
             func @f({params}) -> ({all}) {{\nentry:\n  {} = call @g({})\n  %zero = const.i32 0\n  \
             {} = call_indirect @t ({all}) -> ({all}) [%zero]({})\n  {} = call @h({})\n  \
             return {}\n}}\n",
            list("p"),
            list("a"),
            list("p"),
            list("b"),
            list("a"),
            list("c"),
            list("b"),
            list("c"),
        );
        let args: Vec<u64> =
            (1..=types.len() as u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let outcomes = everywhere(&parsed(&text), Limits::default(), &[&args], patient);
        let count = outcomes[0].returned().map(<[u64]>::len);
        assert_eq!(count, Some(types.len()), "{ints} integers, {floats} floats: {outcomes:?}");
    }
}

/// A switch with thousands of arms, each with a separate argument.
#[test]
fn a_wide_switch() {
    const ARMS: u64 = 5_000;
    let mut text = String::from("func @f(%i: i32) -> i32 {\nentry:\n");
    let arms: Vec<String> =
        (0..ARMS).map(|n| format!("{}(%v{n})", if n % 3 == 0 { "even" } else { "odd" })).collect();
    (0..=ARMS).for_each(|n| writeln!(text, "  %v{n} = const.i32 {}", n * 7).expect("it fits"));
    write!(
        text,
        "  switch %i, [{}], default odd(%v{ARMS})\neven(%e: i32):\n  return %e\nodd(%o: i32):\n  %r = sub.i32 %o, %i\n  return %r\n}}\n",
        arms.join(", ")
    )
    .expect("it fits");
    let calls =
        [0, 1, 2, 3, ARMS - 1, ARMS, ARMS + 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff].map(|i| [i]);
    let calls: Vec<&[u64]> = calls.iter().map(|call| call.as_slice()).collect();
    let outcomes = unchecked(&parsed(&text), &calls);
    assert_eq!(outcomes[3], Outcome::Returned(vec![21]));
}

/// A function of 10^5 instructions, half of whose values are live at once.
#[test]
fn a_long_function() {
    const LENGTH: u64 = 50_000;
    let mut text = String::from("func @f(%x: i64) -> i64 {\nentry:\n  %v0 = add.i64 %x, %x\n");
    for n in 1..LENGTH {
        let opcode = ["add", "xor", "mul", "rotl"][n as usize % 4];
        writeln!(text, "  %v{n} = {opcode}.i64 %v{}, %v{}", n - 1, n / 2).expect("it fits");
    }
    text.push_str("  %s0 = add.i64 %v0, %x\n");
    (1..LENGTH)
        .for_each(|n| writeln!(text, "  %s{n} = add.i64 %s{}, %v{n}", n - 1).expect("it fits"));
    writeln!(text, "  return %s{}\n}}", LENGTH - 1).expect("it fits");
    let outcomes = unchecked(&parsed(&text), &[&[12345]]);
    assert!(outcomes[0].returned().is_some(), "{}", outcomes[0]);
}

/// Infinite recursion ends with a stack overflow, however the engines alternate, and the machine
/// remains usable.
#[test]
fn recursion_without_end() {
    let text = "func @f(%x: i64) -> i64 {\nentry:\n  %one = const.i64 1\n  %y = add.i64 %x, %one\n  %r = call @g(%y)\n  \
                %s = add.i64 %r, %x\n  return %s\n}\n\
                func @g(%x: i64) -> i64 {\nentry:\n  br_if %x, on, end\non:\n  %r = call @f(%x)\n  return %r\nend:\n  return %x\n}\n";
    let module = parsed(text);
    let func = module.lookup("f").expect("the text has it");
    for setting in settings() {
        for share in Share::EVERY {
            let outcomes = on_a_large_stack(|| {
                let options = Options::default();
                let mut twins = Twins::new(&module, Limits::default(), options, setting, share)
                    .unwrap_or_else(|what| panic!("{what}"));
                [1, u64::MAX, 2].map(|x| twins.call(func, &[x], [&mut NoHost, &mut NoHost]))
            });
            let [
                Ok(Outcome::StackOverflow(_)),
                Ok(Outcome::Returned(end)),
                Ok(Outcome::StackOverflow(_)),
            ] = outcomes
            else {
                panic!("{} {share:?}: {outcomes:?}", setting.name);
            };
            assert_eq!(end, [u64::MAX]);
        }
    }
}

/// Growth up to and beyond the maximum and the limits, and accesses around the end of a memory.
#[test]
fn growth_and_addresses() {
    let text = "memory @a 1 5\nmemory @none 0 0\nmemory @b 2 9\ntable @t 1 4\n\
        func @f(%which: i32, %at: i32, %n: i32) -> (i32, i64) {\nentry:\n  %x = const.i64 0x1122334455667788\n  \
        switch %which, [g, h, t, s, l, o, p, q, n], default e\n\
        g:\n  %ga = memory_grow @a, %n\n  %gb = memory_size @a\n  %gc = uextend.i64 %gb\n  return %ga, %gc\n\
        h:\n  %ha = memory_grow @b, %n\n  %hb = memory_size @b\n  %hc = uextend.i64 %hb\n  return %ha, %hc\n\
        t:\n  %fa = call @null()\n  %ta = table_grow.funcref @t, %fa, %n\n  %tb = table_size @t\n  %tc = uextend.i64 %tb\n  return %ta, %tc\n\
        s:\n  store.i64 @a[%at], %x\n  %sa = uload16.i64 @a[%at]\n  return %at, %sa\n\
        l:\n  %la = load.i64 @b[%at + 5]\n  return %at, %la\n\
        o:\n  %oa = load.i64 @a[%at + 4294967288]\n  return %at, %oa\n\
        p:\n  store16.i64 @a[%at + 2147483647], %x\n  return %at, %x\n\
        q:\n  %qa = uload8.i64 @a[%at + 18446744073709551615]\n  return %at, %qa\n\
        n:\n  store8.i64 @none[%at], %x\n  return %at, %x\n\
        e:\n  memory_fill @b, %at, %which, %n\n  memory_copy @a @b, %at, %n, %n\n  return %at, %x\n}\n\
        func @null() -> funcref {\nentry:\n  %v = const.funcref null\n  return %v\n}\n";
    let module = parsed(text);
    let edges = [
        0,
        1,
        0xfff8,
        0xfff9,
        0xffff,
        0x1_0000,
        0x1_fff3,
        0x2_fff8,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_fff8,
        0xffff_ffff,
    ];
    let mut calls: Vec<[u64; 3]> = Vec::new();
    for round in 0..4 {
        for which in 3..10 {
            calls.extend(edges.map(|at| [which, at, [0, 1, 5, 0xffff][round]]));
        }
        calls.extend([
            [0, 0, 2],
            [1, 0, 3],
            [2, 0, 2],
            [0, 0, 0xffff_ffff],
            [2, 0, 0x8000_0000],
            [1, 0, 0],
        ]);
    }
    let calls: Vec<&[u64]> = calls.iter().map(|call| call.as_slice()).collect();
    for limits in
        [Limits::default(), Limits { memory_pages: 5, table_entries: 2, ..Limits::default() }]
    {
        let outcomes = everywhere(&module, limits, &calls, patient);
        let traps =
            outcomes.iter().filter(|o| o.trap() == Some(TrapKind::MemoryOutOfBounds)).count();
        let returned = outcomes.iter().filter(|o| o.returned().is_some()).count();
        assert!(
            traps > 150 && returned > 50 && traps + returned == calls.len(),
            "{traps} traps, {returned} returned"
        );
    }
}

/// Tables may hold bits that are no function: numbers that an embedder writes, and references of
/// another kind.
#[test]
fn tables_with_odd_contents() {
    let text = "table @t 6\nelem @t 0 [@one, null, @other]\n\
        func @f(%i: i32) -> i32 {\nentry:\n  %r = call_indirect @t () -> i32 [%i]()\n  return %r\n}\n\
        func @one() -> i32 {\nentry:\n  %r = const.i32 1\n  return %r\n}\n\
        func @other(%x: i32) -> i32 {\nentry:\n  return %x\n}\n";
    let module = parsed(text);
    let func = module.lookup("f").expect("the text has it");
    for setting in settings() {
        for share in Share::EVERY {
            let twins = Twins::new(&module, Limits::default(), OPTIONS, setting, share);
            let mut twins = twins.unwrap_or_else(|what| panic!("{what}"));
            for (index, bits) in [(3, 4), (4, u64::MAX), (5, 1 << 32)] {
                twins.each(|machine| {
                    assert!(machine.set_table_entry(Table::from_u32(0), index, bits))
                });
            }
            for index in (0..8).chain([0x8000_0000, 0xffff_ffff]) {
                let outcome = twins.call(func, &[index], [&mut NoHost, &mut NoHost]);
                let outcome = outcome.unwrap_or_else(|what| panic!("entry {index}: {what}"));
                assert_eq!(outcome.returned().is_some(), index == 0, "entry {index}: {outcome}");
            }
            twins.compare().unwrap_or_else(|what| panic!("{what}"));
        }
    }
}

/// The host traps, exits and fails in nested calls, from either engine, directly and through a
/// table.
#[test]
fn hosts_that_end_runs() {
    let text = "global @g: mut i32 = 0\ntable @t 2\nelem @t 0 [@h, @f]\nimport func @h \"host\" \"h\" (i32) -> i32\n\
        func @f(%n: i32) -> i32 {\nentry:\n  global_set.i32 @g, %n\n  %zero = const.i32 0\n  %one = const.i32 1\n  %m = sub.i32 %n, %one\n  \
        br_if %n, on, end\n\
        on:\n  %a = call @h(%n)\n  %b = call @k(%m)\n  %c = call_indirect @t (i32) -> i32 [%zero](%b)\n  return %c\n\
        end:\n  return %n\n}\n\
        func @k(%n: i32) -> i32 {\nentry:\n  %one = const.i32 1\n  %r = call_indirect @t (i32) -> i32 [%one](%n)\n  %s = call @h(%r)\n  return %s\n}\n";
    let module = parsed(text);
    for end in
        [HostError::Trap(TrapKind::User(u32::MAX)), HostError::Exit(7), HostError::failed("no")]
    {
        for calls in 0..9 {
            let outcomes = everywhere(&module, Limits::default(), &[&[3], &[0], &[3]], || Ender {
                calls,
                end: end.clone(),
            });
            assert!(
                outcomes[0].returned().is_none() && outcomes[1].returned().is_some(),
                "{calls}: {outcomes:?}"
            );
        }
    }
}

/// Every amount of fuel gives the outcome of the interpreter.
#[test]
fn any_fuel() {
    let text = "memory @m 1\nimport func @h \"host\" \"h\" (i32) -> i32\n\
        func @f(%n: i32) -> i32 {\nentry:\n  %zero = const.i32 0\n  jump head(%zero, %zero)\n\
        head(%i: i32, %s: i32):\n  %one = const.i32 1\n  %j = add.i32 %i, %one\n  %t = call @g(%j)\n  %u = add.i32 %s, %t\n  \
        %more = ult.i32 %j, %n\n  br_if %more, head(%j, %u), done\n\
        done:\n  %q = udiv.i32 %u, %n\n  return %q\n}\n\
        func @g(%n: i32) -> i32 {\nentry:\n  %size = const.i32 2048\n  memory_fill @m, %n, %n, %size\n  %r = call @h(%n)\n  return %r\n}\n";
    let module = parsed(text);
    let mut ends = [0, 0];
    for args in [[5], [0]] {
        for fuel in 0..120 {
            let outcomes =
                everywhere(&module, Limits { fuel, ..Limits::default() }, &[&args], patient);
            ends[usize::from(matches!(outcomes[0], Outcome::OutOfFuel(_)))] += 1;
        }
    }
    assert!(
        ends.iter().all(|count| *count > 50),
        "{ends:?} ended by themselves, and for want of fuel"
    );
    let fueled = settings().iter().filter(|s| s.engine.config().interruption == Interruption::Fuel);
    assert!(
        fueled.map(|s| s.engine.config().bounds).eq([Bounds::Guarded, Bounds::Checked]),
        "settings that pay"
    );
}
