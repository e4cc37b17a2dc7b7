//! Loops in a row and in nests, with counters in memory, as compilers make them without
//! optimization. The number of loops costs no entries.

use osier::driver::{NoObserver, Vigilance, derive, prove};
use osier::{Format, load};
use osr::Level;

/// The entries held, and the findings on the failed entries, of the last function of a module.
fn held(format: Format, text: &str, pipeline: &str) -> (usize, Vec<String>) {
    let module = load(format, text.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let (_, base) = module.defined().last().expect("a function");
    let passes = passes::parse(pipeline).expect("passes");
    let derived = derive(&module, base, &passes, Vigilance::Off, &mut NoObserver);
    let made = prove(&module, base, &derived, &[Level::Avail], &mut NoObserver);
    let sides = [&made.levels[0].1.before, &made.levels[0].1.after];
    let rejected = sides.iter().flat_map(|m| m.missing.rejected().map(|(_, v)| format!("{v:?}")));
    (sides.iter().map(|m| m.mapping.len()).sum(), rejected.take(4).collect())
}

fn all_hold(text: &str, least: usize) {
    all_hold_of(Format::Wat, text, least);
}

fn all_hold_of(format: Format, text: &str, least: usize) {
    for pipeline in ["O0", "O1", "O2"] {
        let (held, rejected) = held(format, text, pipeline);
        assert_eq!(rejected, Vec::<String>::new(), "{pipeline}");
        assert!(held > least, "{pipeline}: {held}");
    }
}

/// A function around some code. `$sp` is the address of its variables.
fn function(body: &str) -> String {
    format!(
        "(module (memory 1) (func $use (param i32 i32)) (func (export \"t\") \
         (param $sp i32) (param $c i32) (result i32) {body}))"
    )
}

/// A loop that counts to three at an offset from `$sp`.
fn counted(offset: usize, body: &str) -> String {
    let load = format!("(i32.load offset={offset} (local.get $sp))");
    format!(
        "(i32.store offset={offset} (local.get $sp) (i32.const 0)) \
         (block (loop (br_if 1 (i32.eqz (i32.lt_s {load} (i32.const 3)))) {body} \
         (i32.store offset={offset} (local.get $sp) (i32.add {load} (i32.const 1))) (br 0)))\n"
    )
}

const CALL: &str = "(call $use (i32.load offset=16 (local.get $sp)) (i32.const 7))";
const LAST: &str = "(i32.load offset=16 (local.get $sp))";

/// The counter starts as a constant that never ends the loop, so the code behind looks dead until
/// the loop is settled.
#[test]
fn loops_in_a_row_hold_all_entries() {
    for count in [20, 200] {
        all_hold(&function(&(counted(16, CALL).repeat(count) + LAST)), 10 * count);
    }
}

#[test]
fn nests_in_a_row_hold_all_entries() {
    for (count, depth) in [(5, 4), (5, 6), (1, 12)] {
        let nest = (0..depth).rfold(CALL.to_owned(), |body, n| counted(16 + 4 * n, &body));
        all_hold(&function(&(nest.repeat(count) + LAST)), 10 * count * depth);
    }
}

/// Counters in registers take the same number of turns as counters in memory.
#[test]
fn counters_in_registers_hold_all_entries() {
    let loops = "(local.set $c (i32.const 0)) (block (loop \
        (br_if 1 (i32.eqz (i32.lt_s (local.get $c) (i32.const 3)))) (call $use (local.get $c) \
        (local.get $sp)) (local.set $c (i32.add (local.get $c) (i32.const 1))) (br 0)))\n";
    all_hold(&function(&(loops.repeat(100) + "(local.get $c)")), 500);
}

/// A loop may set a flag that it does not read. The code behind the loop reads the flag first, and
/// the code behind a test of the flag looks dead until that read is refuted.
#[test]
fn flags_set_in_loops_hold_all_entries() {
    let flag = |n: usize| {
        let at = 64 + 4 * n;
        let body = format!(
            "(if (local.get $c) (then (i32.store offset={at} (local.get $sp) (i32.const 1))))"
        );
        format!(
            "(i32.store offset={at} (local.get $sp) (i32.const 0)) {} \
             (if (i32.eqz (i32.load offset={at} (local.get $sp))) (then (return (i32.const {n}))))",
            counted(16, &body)
        )
    };
    let loops: String = (0..60).map(flag).collect();
    all_hold(&function(&(loops + LAST)), 600);
}

/// A branch that both edges of a join decide, behind loops. Entries leave out the values that only
/// its dead target reads, so the certificate has to know the branch too.
#[test]
fn a_dead_edge_behind_loops_is_dead_in_the_certificate() {
    let dead = "(block $out (result i32) (i32.const 1) (block $join (result i32) (i32.const 1) \
        (br_if $join (i64.ne (i64.load offset=72 (local.get $sp)) (i64.const 5))) \
        (drop) (i32.const 1)) (i32.eqz (i32.and (i32.const 1))) (br_if $out) \
        (drop) (i32.ne (i32.load offset=64 (local.get $sp)) (i32.const 0)))\n\
        (call $use (i32.load offset=16 (local.get $sp)) (local.get $c))";
    for count in [1, 19, 60] {
        all_hold(&function(&(counted(16, CALL).repeat(count) + dead)), 10 * count);
    }
}

#[test]
fn nests_of_a_random_program_hold_all_entries() {
    all_hold_of(Format::Oir, include_str!("nests.oir"), 180);
}

/// A loop that hands each of its parameters on to the next parameter: they look equal, until the
/// first receives another value, then the second, and so on.
#[test]
fn chains_of_parameters_hold_all_entries() {
    let chain = |count: usize| {
        let list = |of: &dyn Fn(usize) -> String| (0..count).map(of).collect::<Vec<_>>().join(", ");
        let zeros = list(&|_| "%z".to_owned());
        let params = list(&|n| format!("%p{n}: i32"));
        let links = list(&|n| if n == 0 { "%b".to_owned() } else { format!("%p{}", n - 1) });
        format!(
            "func @chain(%n: i32, %u: i32) -> i32 {{\nstart:\n  %z = const.i32 0\n  \
             %a = mul.i32 %u, %u\n  jump head({zeros})\nhead({params}):\n  %b = mul.i32 %u, %u\n  \
             %c = slt.i32 %p0, %n\n  br_if %c, head({links}), done\ndone:\n  \
             %r = add.i32 %a, %p{}\n  return %r\n}}\n",
            count - 1
        )
    };
    for count in [2, 3, 100] {
        all_hold_of(Format::Oir, &chain(count), 10);
    }
}
