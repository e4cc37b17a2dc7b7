//! Native code behaves like the interpreter.

use osier::tiers::TableUse;
use std::fs;
use std::path::Path;
use std::process::Command;
use wicker::native::{Counts, NativeError, Tuning};
use wicker::{Machine, Uncaught};

/// Makes code at once, and makes it anew after a few exits.
fn eager() -> Tuning {
    Tuning { calls: 2, turns: 3, exits: 4, ..Tuning::default() }
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
    let text = text.to_owned();
    let run = std::thread::Builder::new().stack_size(512 << 20).spawn(move || {
        let mut machine = Machine::new(&text).expect("it is well-formed");
        let tuning = Tuning {
            tables: Some(TableUse::Everywhere),
            calls: 10,
            turns: 50,
            ..Tuning::default()
        };
        let counts = machine.run_native(tuning).expect("it ends");
        (machine.take_output(), counts)
    });
    let (output, counts) = run.expect("a thread starts").join().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output), String::from_utf8_lossy(&wanted));
    let [rows, linked] = counts.rows;
    assert!(rows > 0 && linked > 0, "{counts:?}");
    assert!(counts.exits < 200, "12 phases, 40,000 elements a phase: {counts:?}");
    assert_eq!(counts.refused, [""; 0]);
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
        "func f(a, b) { return a // b; } for i in 1..50 { f(i, 3); } print(f(7, -2), 1 / f(0, -3), f(7, 0));",
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
        "func f(n) { try { for i in 0..n { if i == 40 { throw i; } } } catch e { print(e); throw e + 1; } }
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
        "var a = []; for i in 0..50 { a[i] = i; push(a, i); pop(a); } print(len(a), a[49]);
        var t = \"\"; for i in 0..50 { t = t + char(48 + i % 10) + str(i / 2); } print(t, byte(t, 4));",
    );
}

/// Each program prints the recorded output of its Lua twin.
#[test]
fn programs_print_natively_what_is_expected() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    for name in ["sum", "fib", "sieve", "strings", "nbody", "richards", "deltablue"] {
        let file = directory.join(format!("{name}.wk"));
        let output = Command::new(env!("CARGO_BIN_EXE_wicker")).arg("--jit").arg(&file).output();
        let output = output.expect("the command runs");
        let expected = fs::read_to_string(file.with_extension("expected")).expect("it is there");
        assert!(output.status.success(), "{name}: {output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{name}");
    }
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

/// Random programs, by the command. Raise the number to search longer.
#[test]
fn random_programs_print_the_same() {
    let output = Command::new(env!("CARGO_BIN_EXE_wicker")).args(["fuzz", "1", "30"]).output();
    let output = output.expect("the command runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
