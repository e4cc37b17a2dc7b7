//! Programs, their output, and how wrong programs end.

use std::fs;
use std::path::Path;
use std::process::Command;
use wicker::Machine;

/// The output of a program, and the exception that ends it.
fn run(text: &str) -> (String, Option<String>) {
    let mut machine = Machine::new(text).expect("the program is well-formed");
    let ended = machine.run().err().map(|uncaught| uncaught.to_string());
    (String::from_utf8(machine.take_output()).expect("it prints text"), ended)
}

#[track_caller]
fn prints(text: &str, expected: &str) {
    assert_eq!(run(text), (expected.to_owned(), None), "{text}");
}

#[track_caller]
fn throws(text: &str, expected: &str) {
    let (_, ended) = run(text);
    assert_eq!(ended.as_deref(), Some(expected), "{text}");
}

#[track_caller]
fn refused(text: &str, expected: &str) {
    assert_eq!(Machine::new(text).expect_err("it is wrong").to_string(), expected);
}

#[test]
fn numbers_are_of_one_type() {
    prints(
        "print(1 / 2 + 0.5 == 1, 7 // 2, -7 // 2, -7 % 3, 2147483647 + 1);",
        "true 3 -4 2 2147483648\n",
    );
    prints("print(0 * -5, 1 / (0 * -5), 65536 * 65536);", "0 -inf 4294967296\n");
    prints("print(6 & 3, 6 | 3, 6 ^ 3, 1 << 4, -16 >> 2, 0 / 0);", "2 7 5 16 -4 nan\n");
    prints("print(1 + 2 * 3 - 4, (1 + 2) * 3, 1e20, 0.1 + 0.2);", "3 9 1e20 0.30000000000000004\n");
}

#[test]
fn conditions_take_the_first_operand_that_decides() {
    prints(
        "print(nil or 3, false and 4, 0 and 5, !nil, 1 < 2 and 2 < 1);",
        "3 false 5 true false\n",
    );
    prints(
        "func f(x) { x = x and x + 1; x = nil or x; return x; } print(f(1), f(nil));",
        "2 nil\n",
    );
    let all = "var a = [true, false]; for i in 0..2 { for j in 0..2 {
        if a[i] and a[j] or !a[i] and !a[j] { print(i, j); } else if a[i] { print(\"first\"); }
        } }";
    prints(all, "0 0\nfirst\n1 1\n");
}

#[test]
fn loops_count_break_and_continue() {
    prints("for i in 0..5 { if i == 1 { continue; } if i == 3 { break; } print(i); }", "0\n2\n");
    prints("var i = 0; while true { i = i + 1; if i > 9 { break; } } print(i);", "10\n");
    // The body changes its own variable, and not the number of rounds.
    prints("for i in 0..3 { var j = i; i = 10; print(j, i); }", "0 10\n1 10\n2 10\n");
}

#[test]
fn closures_share_variables() {
    let counters = "func counter() { var n = 0; return {up: func () { n = n + 1; return n; },
        now: func () { return n; }}; }
        var a = counter(); var b = counter(); a.up(); a.up(); b.up(); print(a.now(), b.now());";
    prints(counters, "2 1\n");
    prints(
        "var l = []; for i in 0..3 { push(l, func () { return i; }); } print(l[0](), l[2]());",
        "0 2\n",
    );
    prints(
        "func outer(n) { func even(k) { if k == 0 { return true; } return !even(k - 1); }
        return even(n); } print(outer(4), outer(7));",
        "true false\n",
    );
}

#[test]
fn objects_grow_by_fields() {
    let grown = "var o = {}; o.a = 1; o.b = 2; o.c = 3; o.d = 4; o.e = 5; o.f = 6; o.g = 7;
        o.h = 8; o.i = 9; o.j = 10; print(o.a, o.d, o.e, o.h, o.i, o.j, o.k);";
    prints(grown, "1 4 5 8 9 10 nil\n");
    // One access site sees two shapes in turn.
    prints(
        "func x(o) { return o.x; } for i in 0..2 { print(x({x: 1, y: 2}), x({y: 3, x: 4})); }",
        "1 4\n1 4\n",
    );
    prints("var o = {n: 3, add: func (self, k) { return self.n + k; }}; print(o:add(4));", "7\n");
}

#[test]
fn arrays_and_strings() {
    prints(
        "var a = [1, \"b\"]; a[2] = 3; push(a, 4); print(len(a), pop(a), len(a), a[1.0]);",
        "4 4 3 b\n",
    );
    prints(
        "var s = \"ab\" + \"c\"; print(s, len(s), s == \"abc\", byte(s, 2), char(65), str(1.5));",
        "abc 3 true 99 A 1.5\n",
    );
    prints(
        "var s = \"abcd\"; print(slice(s, 1, 3), slice(s, 2, 9), slice(s, 3, 1), slice(s, -1, 1));",
        "bc cd  a\n",
    );
}

#[test]
fn exceptions_reach_the_innermost_handler() {
    prints("try { throw 3; } catch e { print(\"got\", e); }", "got 3\n");
    let through = "func deep(n) { if n == 0 { throw {code: 7}; } return deep(n - 1); }
        try { try { deep(50); } catch e { throw e.code + 1; } } catch e { print(e); }";
    prints(through, "8\n");
    prints("try { var x = nil; x.field; } catch e { print(e); }", "a nil has no field field\n");
    // A variable keeps the value that it had when the exception was thrown.
    prints(
        "func f() { var x = 1; try { x = 2; throw 0; } catch e { return x; } } print(f());",
        "2\n",
    );
}

#[test]
fn errors_at_run_time_name_their_place() {
    throws("\nvar a = [1];\nprint(a[5]);", "3:8: uncaught exception: index 5 of an array of 1");
    throws("nil();", "1:4: uncaught exception: a nil is no function");
    throws("func f(a) { } f();", "1:16: uncaught exception: f takes 1 arguments, not 0");
    throws("func f() { return f(); } f();", "1:20: uncaught exception: stack overflow");
    throws("print(1 < nil);", "1:7: uncaught exception: a comparison does not take number and nil");
    throws(
        "var s = \"0123456789abcdef\"; while true { s = s + s; }",
        "1:46: uncaught exception: out of memory",
    );
    throws("var a = []; while true { push(a, {}); }", "1:30: uncaught exception: out of memory");
}

#[test]
fn wrong_texts_are_refused_with_their_place() {
    refused("var x = ;", "1:9: expected an expression");
    refused("print(1)\nvar y = 2;", "2:1: expected ;");
    refused("print(missing);", "1:7: missing is not defined");
    refused("break;", "1:1: this is outside of a loop");
    refused("var s = \"open", "1:14: expected the end of the string on its line");
    refused("len(1, 2);", "1:4: len takes 1 arguments");
    for open in ["(", "[", "{a:", "-", "!", "func () { return ", "1 + ("] {
        let error = Machine::new(&format!("var x = {}", open.repeat(100_000))).expect_err("deep");
        assert!(error.what.contains("nest at most 200 deep"), "{open}: {error}");
    }
}

/// The time is quadratic in the length of a text. With optimization, as the long judge `native`
/// runs this, it has more places.
#[test]
fn cut_and_damaged_texts_end_with_an_error_or_run() {
    let step = if cfg!(debug_assertions) { 71 } else { 13 };
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    for entry in fs::read_dir(directory).expect("it is there") {
        let path = entry.expect("it is listed").path();
        let text = fs::read_to_string(&path).expect("it is text");
        if path.extension().is_none_or(|extension| extension != "wk") {
            continue;
        }
        for (at, c) in text.char_indices().step_by(step) {
            let (cut, rest) = (&text[..at], &text[at + c.len_utf8()..]);
            let _ = wicker::syntax::parse(cut);
            let _ = wicker::syntax::parse(&format!("{cut}{rest}"));
            let _ = wicker::syntax::parse(&format!("{cut}){rest}"));
        }
    }
}

#[test]
fn the_command_ends_with_a_message_and_a_status() {
    let wicker = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_wicker")).args(args).output();
        let output = output.expect("the command runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (status, message) = wicker(&[]);
    assert_eq!(status, Some(2));
    assert!(message.contains("Usage: wicker [OPTIONS] [FILE]"), "{message}");
    let (status, message) = wicker(&["no/such/file.wk"]);
    assert_eq!(status, Some(2));
    assert!(message.starts_with("no/such/file.wk: "), "{message}");
}
