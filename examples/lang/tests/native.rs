//! Native code behaves like the interpreter.

use osier::tiers::TableUse;
use std::fs;
use std::path::Path;
use std::process::Command;
use wicker::native::{CallUse, Counts, NativeError, RowEvents, Tuning};
use wicker::{Machine, Uncaught};

/// Makes code at once, and makes it anew after a few exits.
fn eager() -> Tuning {
    Tuning { calls: 2, turns: 3, exits: 4, leaves_objects_out: true, ..Tuning::default() }
}

/// Runs a program in the interpreter, natively, natively with guards that fail at random, and with
/// a collection at every allocation. All must print the same. Returns the counts of the native run.
fn same(text: &str) -> Counts {
    let text = text.to_owned();
    // Runs of native code and of the interpreter nest.
    let run = std::thread::Builder::new().stack_size(512 << 20).spawn(move || compared(&text));
    run.expect("a thread starts").join().expect("the ways agree")
}

fn compared(text: &str) -> Counts {
    let mut machine = Machine::new(text).expect("the program is well-formed");
    let ended: Result<(), Uncaught> = machine.run();
    let wanted = (machine.take_output(), ended);
    let mut stressed = Machine::new(text).expect("the program is well-formed");
    stressed.stress();
    let ended = stressed.run();
    assert_eq!((stressed.take_output(), ended), wanted, "collecting: {text}");
    let run = |tuning: Tuning, is_collecting: bool| {
        let mut machine = Machine::new(text).expect("the program is well-formed");
        if is_collecting {
            machine.stress();
        }
        let ended = machine.run_native(tuning);
        let counts = ended.clone().unwrap_or_default();
        let ended = match ended {
            Ok(_) => Ok(()),
            Err(NativeError::Uncaught(uncaught)) => Err(uncaught),
            Err(NativeError::Failed(what)) => panic!("{what}\n{text}"),
        };
        ((machine.take_output(), ended), counts)
    };
    for seed in [3, 5, 7] {
        let tuning = Tuning { chaos: Some(seed), ..eager() };
        assert_eq!(run(tuning, seed == 5).0, wanted, "{text}");
    }
    assert_eq!(run(eager(), true).0, wanted, "collecting: {text}");
    for (seed, is_collecting) in [(None, false), (None, true), (Some(11), false)] {
        let tuning = Tuning { tables: Some(TableUse::Everywhere), chaos: seed, ..eager() };
        assert_eq!(run(tuning, is_collecting).0, wanted, "with tables, {seed:?}: {text}");
    }
    let (got, counts) = run(eager(), false);
    assert_eq!(got, wanted, "{text}");
    counts
}

#[test]
fn hot_functions_and_loops_run_natively() {
    let calls = "func f(n) { if n < 2 { return n; } return f(n - 1) + f(n - 2); } print(f(15));";
    assert_eq!(same(calls).refused, [""; 0]);
    assert!(same(calls).compiled > 0);
    let counts = same("var s = 0; for i in 0..1000 { s = s + i * 0.5; } print(s);");
    assert!(counts.entered > 0, "{counts:?}");
}

/// Numbers come in phases: int32, doubles, int32 of objects, int32. Code assumes the kinds, and the
/// run goes from row to row where they change; few exits lead to the interpreter.
#[test]
fn phases_of_kinds_lead_from_row_to_row() {
    let text = "
        func total(a, boxed) {
            var s = 0;
            for i in 0..len(a) {
                var x = a[i];
                if boxed { x = x.v; }
                s = (s * 31 + x) % 8191;
            }
            return s;
        }
        var kinds = [[], [], []];
        for i in 0..100 { push(kinds[0], i); push(kinds[1], i + 0.5); push(kinds[2], {v: i}); }
        func phase(kind, turns) {
            var s = 0;
            for i in 0..turns { s = total(kinds[kind], kind == 2); }
            return s;
        }
        for round in 0..3 { for kind in 0..3 { print(phase(kind, 200)); } print(phase(0, 200)); }";
    let mut machine = Machine::new(text).expect("it is well-formed");
    assert_eq!(machine.run(), Ok(()));
    let wanted = machine.take_output();
    let tables = Some(TableUse::Everywhere);
    let (output, counts) = with(text, Tuning { tables, calls: 10, turns: 50, ..Tuning::default() });
    assert_eq!(String::from_utf8_lossy(&output), String::from_utf8_lossy(&wanted));
    let RowEvents { made, entered, left, linked, .. } = counts.rows;
    assert!(made > 0 && entered > 0 && left > 0 && linked > 0, "{counts:?}");
    assert!(counts.exits < 200, "12 phases, 40,000 elements a phase: {counts:?}");
    assert_eq!(counts.refused, [""; 0]);
}

/// A loop calls a function value, which changes while the loop runs. The run enters the middle of
/// the loop in a row that assumes the function. It leaves that row where the function changes, for
/// a row that assumes the next one.
#[test]
fn a_function_value_is_assumed_in_a_loop_and_left_where_it_changes() {
    let text = "
        func decay(t, y) { return t - 2 * y; }
        func wave(t, y) { return y * (1 - y) - 0.25 * t; }
        func euler(f, g, y, n) {
            var h = 1 / n;
            var t = 0;
            for i in 0..n {
                if i % 1000 == 999 { var old = f; f = g; g = old; }
                y = y + h * f(t, y);
                t = t + h;
            }
            return y;
        }
        print(floor(euler(decay, wave, 2.5, 20000) * 1000000));";
    let mut machine = Machine::new(text).expect("it is well-formed");
    assert_eq!(machine.run(), Ok(()));
    let wanted = machine.take_output();
    let tables = Some(TableUse::Everywhere);
    let (output, counts) = with(text, Tuning { tables, turns: 50, ..Tuning::default() });
    assert_eq!(String::from_utf8_lossy(&output), String::from_utf8_lossy(&wanted));
    let RowEvents { made, entered, left, linked, .. } = counts.rows;
    assert!(made > 0 && entered > 0 && left > 0 && linked > 0, "{counts:?}");
    assert!(counts.exits < 100, "20 changes in 20,000 turns: {counts:?}");
    assert!(counts.inlined > 0, "{counts:?}");
    assert_eq!(counts.refused, [""; 0]);
}

/// The run of a program with this tuning.
fn with(text: &str, tuning: Tuning) -> (Vec<u8>, Counts) {
    let text = text.to_owned();
    let run = std::thread::Builder::new().stack_size(512 << 20).spawn(move || {
        let mut machine = Machine::new(&text).expect("it is well-formed");
        let counts = machine.run_native(tuning).expect("it ends");
        (machine.take_output(), counts)
    });
    run.expect("a thread starts").join().expect("it ends")
}

/// A loop reads a variable of the outermost level, which optimized code reads in front of the loop.
/// So the run enters a row there, which assumes nothing.
#[test]
fn a_loop_that_reads_a_global_is_entered_in_the_middle() {
    let text = "
        var g = 3;
        func f(n) { var s = 0; for i in 0..n { s = (s + g) % 1000; } return s; }
        print(f(10000));";
    let (output, counts) =
        with(text, Tuning { tables: Some(TableUse::Everywhere), turns: 50, ..Tuning::default() });
    assert_eq!(output, b"0\n");
    assert_eq!((counts.rows.plain, counts.rows.made, counts.entered), (1, 0, 1), "{counts:?}");
}

#[test]
fn small_functions_are_inlined() {
    let counts = same("func f(a, b) { return a * b; } for i in 0..50 { print(f(i, 2)); }");
    assert!(counts.inlined > 0, "{counts:?}");
    // Guards of inlined code leave in front of the call: int32 and doubles, overflow, exceptions.
    same(
        "func f(a, b) { return a * b + 1; }
        func loop(x, n) { var s = 0; for i in 0..n { s = f(x, i) % 1000; } return s; }
        for i in 0..9 { print(loop(3, 40), loop(0.5, 40), loop(2147483647, 40)); }
        try { loop(nil, 40); } catch e { print(e); }",
    );
    // Branches, results of several kinds, no result, cells, fields and elements.
    same(
        "func kind(i) { if i % 3 == 0 { return 1; } if i % 3 == 1 { return 0.5; } return \"s\"; }
        func none(i) { var x = i; }
        func counter(n) { return func (i) { return n + i; }; }
        func read(o, i) { return o.x + o.a[i % 2]; }
        var c = counter(0.25);
        var s = 0;
        for i in 0..60 { print(kind(i), none(i), c(i), read({x: i, a: [1, 2.5]}, i)); }",
    );
    // Several callees, and one with other parameters.
    same(
        "func a(x) { return x + 1; } func b(x) { return x * 0.5; } func c(x) { return nil; }
        func many(list, n) {
            var s = 0;
            for i in 0..n { var f = list[i % len(list)]; var y = f(s); if y != nil { s = y; } }
            return s;
        }
        print(many([a], 40), many([a, b], 40), many([a, b, c], 40), many([a, b, c, many], 3));",
    );
    same(
        "func leaf(n) { return n - 1; }
        func deep(n) { if n == 0 { return 0; } return deep(leaf(n)) + 1; }
        print(deep(500)); try { deep(1000000); } catch e { print(e); }",
    );
}

/// A guard of inlined code that fails behind an effect leaves with the frames of both functions.
#[test]
fn effects_of_inlined_functions_happen_once() {
    let counts = same(
        "func count(o, x) { o.n = o.n + 1; o.sum = o.sum + x; return o.n; }
        func twice(o, x) { count(o, x); return count(o, x) * 2; }
        func loop(o, x, n) { var s = 0; for i in 0..n { s = s + twice(o, x); } return s; }
        var o = {n: 0, sum: 0};
        for i in 0..4 { for x in 0..3 { print(loop(o, [1, 0.5, 2147483647][x], 9), o.n, o.sum); } }
        try { loop(o, nil, 3); } catch e { print(e, o.n, o.sum); }",
    );
    assert!(counts.inlined > 1, "{counts:?}");
    // A handler of the caller, and one around all functions.
    same(
        "func put(a, i, x) { a[i] = x; if x % 7 == 6 { throw {x: x}; } return i; }
        func through(a, i, x) { return put(a, i, x) + 1; }
        func fill(a, n) {
            var last = 0;
            for i in 0..n { try { last = through(a, i % 3, i); } catch e { last = -e.x; } }
            return last;
        }
        for i in 0..30 { print(fill([], i)); }
        var a = [];
        for i in 0..30 { try { print(through(a, 0, i)); } catch e { print(e.x, a[0]); } }",
    );
    // Allocations, and calls of functions that are not inlined.
    same(
        "func pair(a, b) { return {a: a, b: [b, str(b)], get: func () { return a; }}; }
        func both(i) { return pair(i, pair(0, i).b[0]); }
        func sums(n) {
            var s = 0;
            for i in 0..n { var p = both(i); s = s + p.a + p.get() + len(p.b[1]); }
            return s;
        }
        for i in 0..20 { print(sums(i)); }
        func down(n) { if n == 0 { return 0; } return 1 + step(n); }
        func step(n) { return down(n - 1); }
        print(down(500)); try { down(1000000); } catch e { print(e); }",
    );
}

/// A variable with a function is no constant if the program also assigns it.
#[test]
fn names_of_functions_are_constants_unless_assigned() {
    same(
        "func f(x) { return x + 1; } func g(x) { return f(x) * 2; }
        func loop(n) { var s = 0; for i in 0..n { s = s + f(i) - g(i); } return s; }
        for i in 0..9 { print(loop(20)); if i == 4 { f = func (x) { return x * 3; }; } }
        func early() { return late() + late(); }
        try { early(); } catch e { print(e); }
        func late() { return 1; }
        for i in 0..20 { print(early()); }",
    );
    // Another path brings another callee to the call of a name.
    same(
        "func f(x) { return 1000; }
        func g(x) { return 1; }
        func run(h, n) { var s = 0; for i in 0..n { s = s + (h or g)(i); } return s; }
        print(run(nil, 40), run(f, 10));
        func pick(c) { return (c and f or g)(1); }
        for i in 0..20 { pick(false); }
        print(pick(true));
        run(5, 10);",
    );
}

/// A function is called natively alone, with arguments of another kind than the interpreter has
/// seen. The next generation knows both kinds.
#[test]
fn arguments_of_native_calls_are_observed_where_their_guards_fail() {
    let text = "
        func less(a, b) { if a < b { return 1; } return 0; }
        func loop(a, n) { var s = 0; for i in 0..n { s = s + less(i, a[0]); } return s; }
        for i in 0..600 { loop([i], 9); }
        print(loop([0.5], 100000));";
    let (output, counts) =
        with(text, Tuning { callees: CallUse::Direct, turns: 50, ..Tuning::default() });
    assert_eq!(output, b"1\n");
    assert!(counts.exits < 300, "100,000 calls: {counts:?}");
}

/// In a complete base, inlined code cannot call the runtime, which throws in an activation of its
/// own.
#[test]
fn a_function_that_joins_strings_is_called() {
    let text = "
        func f(a) { return a + a; }
        func loop(x, n) { var s = 0; for i in 0..n { s = f(x); } return s; }
        for i in 0..1000 { f(i); f(\"s\"); }
        print(loop(\"s\", 100000));";
    for tables in [None, Some(TableUse::Everywhere)] {
        let (output, counts) = with(text, Tuning { tables, ..Tuning::default() });
        assert_eq!(output, b"ss\n");
        assert_eq!(counts.inlined == 0, tables.is_some(), "{counts:?}");
        assert!(counts.exits < 60, "100,000 turns: {counts:?}");
    }
}

#[test]
fn guards_that_fail_leave_into_the_interpreter() {
    let counts = same(
        "func f(a, b) { return a * b + 1; }
        for i in 0..50 { f(i, 2); }
        print(f(2147483647, 2), f(1.5, 2), f(0, -1));
        for i in 0..50 { f(i + 0.5, 2); } print(f(3, 0.5));",
    );
    assert!(counts.exits > 0, "{counts:?}");
    same("func f(a) { return -a; } for i in 1..50 { f(i); } print(1 / f(0), f(-2147483648));");
    same(
        "func f(a, b) { return a // b; } for i in 1..50 { f(i, 3); }
        print(f(7, -2), 1 / f(0, -3), f(7, 0));",
    );
    same("func f(o) { return o.x; } for i in 0..50 { f({x: i}); } print(f({y: 1, x: 2}), f({}));");
}

#[test]
fn exceptions_cross_native_code() {
    same(
        "func deep(n) { if n == 0 { throw {code: 7}; } return deep(n - 1); }
        var s = 0;
        for i in 0..40 { try { deep(i); } catch e { s = s + e.code; } } print(s);",
    );
    same("func f(a) { return a.x; } for i in 0..40 { f({x: 1}); } f(nil);");
    same("func f(a, i) { return a[i]; } for i in 0..40 { f([1, 2], 1); } f([1, 2], 2);");
    same("func f() { return f(); } try { f(); } catch e { print(e); }");
}

/// A loop in a region with a handler is entered, and throws out of the activation.
#[test]
fn an_exception_out_of_an_entered_loop_passes_its_activation_once() {
    same(
        "func f(n) {
            try { for i in 0..n { if i == 40 { throw i; } } } catch e { print(e); throw e + 1; }
        }
        try { f(50); } catch e { print(\"out\", e); }",
    );
}

#[test]
fn heap_objects_are_those_of_the_interpreter() {
    same(
        "func counter() { var n = 0; return {up: func () { n = n + 1; return n; }}; }
        var c = counter(); var s = 0; for i in 0..50 { s = s + c.up(); } print(s);",
    );
    same(
        "func grow(o) { o.a = 1; o.b = 2; o.c = 3; o.d = 4; o.e = 5; o.f = o.e + 1; return o; }
        var s = 0; for i in 0..50 { s = s + grow({}).f; } print(s);",
    );
    same(
        "var a = []; for i in 0..50 { a[i] = i; push(a, i); pop(a); } print(len(a), a[49], pop(a));
        for i in 0..60 { if i % 7 == 3 { push(a, {i: i}); } pop(a); } print(pop(a), len(a));
        var t = \"\"; for i in 0..50 { t = t + char(48 + i % 10) + str(i / 2); }
        print(t, byte(t, 4), slice(t, 3, 9));",
    );
}

/// Values of several kinds are compared by their words, but strings and doubles are not.
#[test]
fn equality_is_that_of_the_interpreter() {
    same(
        "func has(a, x) { for i in 0..len(a) { if a[i] == x { return i; } } return nil; }
        var o = {}; var a = [nil, 3, o, {}, 7, true, [1], has];
        for round in 0..6 {
            print(has(a, o), has(a, 7), has(a, has), has(a, true), has(a, {}));
            if round > 2 { a[1] = 2.5; a[4] = \"s\"; print(has(a, 2.5), has(a, \"\" + \"s\")); }
            if round > 4 { a[1] = 0 / 0; print(has(a, a[1]), has([1.0], 1), has([0 * -1], 0)); }
        }",
    );
    // Inlined, a comparison of objects compares an int32 that it has never seen with a double.
    let counts = same(
        "func same(a, b, c) { if c { return false; } return a == b; }
        var o = {};
        for k in 0..40 { same(o, o, false); }
        var g = 90 / 2;
        func hits(n, from) {
            var s = 0;
            for i in 0..n { if same(i, g, i < from) { s = s + 1; } }
            return s;
        }
        print(hits(50, 44));",
    );
    assert!(counts.inlined > 0, "{counts:?}");
}

/// Each program prints the recorded output, which its twins in Lua and JavaScript print, too. The
/// rounds that make it long are left out. With optimization, as the long judge `native` runs this,
/// guards fail at random, too.
#[test]
fn programs_print_what_is_expected() {
    let seeds: &[_] = if cfg!(debug_assertions) { &[None] } else { &[None, Some(3)] };
    let ran = |file: &Path| {
        let text = fs::read_to_string(file).expect("it is text");
        let short = text.lines().map(|line| match line.starts_with("var rounds = ") {
            true => "var rounds = 0;",
            false => line,
        });
        let text = short.collect::<Vec<_>>().join("\n");
        let expected = fs::read(file.with_extension("expected")).expect("it is there");
        let mut machine = Machine::new(&text).expect("it is well-formed");
        assert_eq!(machine.run(), Ok(()), "{file:?}");
        assert_eq!(machine.take_output(), expected, "{file:?}");
        for tables in [None, Some(TableUse::Everywhere)] {
            for chaos in seeds {
                let (output, _) =
                    with(&text, Tuning { tables, chaos: *chaos, ..Tuning::default() });
                assert_eq!(output, expected, "{file:?}, {tables:?}, {chaos:?}");
            }
        }
    };
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    std::thread::scope(|scope| {
        for entry in fs::read_dir(directory).expect("it is there") {
            let file = entry.expect("it is listed").path();
            if file.extension().is_some_and(|extension| extension == "wk") {
                let run = std::thread::Builder::new().stack_size(512 << 20);
                run.spawn_scoped(scope, move || ran(&file)).expect("a thread starts");
            }
        }
    });
}

/// Moved objects are found in registers of the interpreter and in frames of native code.
#[test]
fn collections_move_what_is_alive() {
    same(
        "func list(n) {
            var l = nil;
            for i in 0..n { l = {next: l, value: [i, str(i)], get: func () { return i; }}; }
            return l;
        }
        func sum(l) {
            var s = 0;
            var t = \"\";
            while l != nil { s = s + l.value[0] + l.get(); t = t + l.value[1]; l = l.next; }
            return [s, t];
        }
        for i in 0..12 { var both = sum(list(i)); print(both[0], both[1]); }",
    );
    same(
        "func deep(n, o) {
            var own = {n: n};
            if n == 0 { return o; }
            var r = deep(n - 1, own);
            return {n: r.n + own.n};
        }
        for i in 0..10 { print(deep(i, {n: 5}).n); }
        func thrower(n) {
            var s = \"a\" + str(n);
            try { if n % 3 == 0 { throw s + \"!\"; } return s; } catch e { return e + s; }
        }
        for i in 0..20 { print(thrower(i)); }",
    );
    let text = "var o = {x: 0};
        for i in 0..400000 { o = {x: o.x + 1, more: \"text\" + str(i)}; } print(o.x);";
    let mut machine = Machine::new(text).expect("it compiles");
    assert_eq!(machine.run(), Ok(()));
    assert!(machine.collections() > 1, "{}", machine.collections());
}

/// An activation that continues in native code leaves no registers behind as roots. Half of the
/// heap has space for one string of 64 MiB, but not to make another beside it.
#[test]
fn registers_of_an_entered_activation_are_no_roots() {
    let text = "
        func big(n) { var t = \"0123456789abcdef\"; for i in 0..n { t = t + t; } return t; }
        var p = big(22);
        var c = 0;
        while c < 20000 { if byte(p, c) == 48 { c = c + 1; } else { c = c + 2; } }
        p = nil;
        var q = big(22);
        print(len(q), c);";
    for tables in [None, Some(TableUse::Everywhere)] {
        let (output, counts) = with(text, Tuning { tables, ..Tuning::default() });
        assert_eq!(output, b"67108864 20001\n");
        assert!(counts.entered > 0, "{counts:?}");
    }
}

/// Random programs, by the command. Raise the number to search longer.
#[test]
fn random_programs_print_the_same() {
    let output = Command::new(env!("CARGO_BIN_EXE_wicker")).args(["fuzz", "1", "30"]).output();
    let output = output.expect("the command runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The last call adds a double, which the code has not seen: the run leaves with both vectors.
#[test]
fn an_exit_makes_the_object_that_code_has_left_out() {
    let text = "func shift(v, by) { return {x: v.x + by, y: v.y}; }
        var more = 1;
        func step(i) {
            var from = {x: i, y: i + 1};
            var to = shift(from, 2);
            var sum = to.x + more;
            return sum + from.y * to.y + from.x;
        }
        var total = 0;
        for i in 0..2000 { total = total + step(i); }
        more = 0.5;
        total = total + step(7);
        print(total);";
    let counts = same(text);
    assert!(counts.objects >= 2 && counts.objects_made >= 2, "{counts:?}");
    let (_, made) = with(text, Tuning { calls: 10, ..Tuning::default() });
    let (_, without) =
        with(text, Tuning { calls: 10, leaves_objects_out: true, ..Tuning::default() });
    // Each step has two objects of 24 bytes.
    assert_eq!((made.objects, made.bytes - without.bytes > 1900 * 48), (0, true), "{without:?}");
}

/// The object of the exit is what the heap has no space for. No collection at every allocation: the
/// heap is full of objects.
#[test]
fn a_heap_that_is_full_at_an_exit_is_caught() {
    let text = "var g = 1; var l = nil; var out = 0;
         func f(x) { var o = {a: x, b: 2}; var y = x + g; return o.a + y; }
         func more() { try { while true { l = {next: l}; } } catch e { return e; } }
         for i in 0..1000 { f(i); }
         more();
         g = 0.5;
         try { f(1); } catch e { out = e; }
         l = nil;
         print(out);";
    let run = std::thread::Builder::new().stack_size(512 << 20).spawn(move || {
        let mut machine = Machine::new(text).expect("the program is well-formed");
        let counts = machine.run_native(eager()).expect("it ends");
        (machine.take_output(), counts)
    });
    let (output, counts) = run.expect("a thread starts").join().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output), "out of memory\n");
    assert!(counts.objects > 0, "{counts:?}");
}
