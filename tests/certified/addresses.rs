//! Alias arguments of passes in every spelling of an address. Each program has a rewrite that a
//! single alias argument allows; the certifier has to explain the rewrite with the same argument.

use check::verdict::Verdict;
use osier::driver::{NoObserver, Vigilance, derive, prove};
use osier::{Format, load};
use osr::Level;
use std::fmt::Write;
use verify::prng::Prng;

/// The verdicts on the dropped entries of both directions, and the number of actions of the passes.
fn dropped(text: &str, pipeline: &str) -> (Vec<Verdict>, usize) {
    let module = load(Format::Oir, text.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let (_, base) = module.defined().next().expect("a function");
    let passes = passes::parse(pipeline).expect("passes");
    let derived = derive(&module, base, &passes, Vigilance::On, &mut NoObserver);
    let made = prove(&module, base, &derived, &[Level::Avail], &mut NoObserver);
    let sides = [&made.levels[0].1.before, &made.levels[0].1.after];
    let rejected = sides.iter().flat_map(|m| m.missing.rejected().map(|(_, verdict)| verdict));
    (rejected.collect(), derived.log.len())
}

/// Ways to write `%x + k`: lines that define `%NAME`, and the constant that is left for the
/// immediate of the access.
const SPELLINGS: u32 = 8;

/// The lines of a spelling of the address `%BASE + k` as `%NAME`. The access adds the rest, which
/// is returned.
fn spell(text: &mut String, name: &str, base: &str, k: i32, spelling: u32) -> i32 {
    let mut line = |rest: String| writeln!(text, "  {rest}").expect("strings take all");
    let mut constant = |suffix: &str, bits: i32| {
        line(format!("%{name}{suffix} = const.i32 {bits}"));
        format!("%{name}{suffix}")
    };
    // Each way in two steps, so that chains have both kinds of operations on either side.
    let lines: Vec<String> = match spelling {
        0 => vec![format!("%{name} = add.i32 %{base}, {}", constant("a", 0))],
        1 => vec![format!("%{name} = add.i32 %{base}, {}", constant("a", k))],
        2 => vec![format!("%{name} = add.i32 {}, %{base}", constant("a", k))],
        3 => vec![format!("%{name} = sub.i32 %{base}, {}", constant("a", -k))],
        _ => {
            let (first, second) = match spelling {
                4 => ("add", "add"),
                5 => ("add", "sub"),
                6 => ("sub", "add"),
                _ => ("sub", "sub"),
            };
            let of = |op: &str, bits: i32| if op == "add" { bits } else { -bits };
            let one = constant("a", of(first, 12));
            let other = constant("b", of(second, k - 12));
            vec![
                format!("%{name}m = {first}.i32 %{base}, {one}"),
                format!("%{name} = {second}.i32 %{name}m, {other}"),
            ]
        }
    };
    lines.into_iter().for_each(&mut line);
    if spelling == 0 { k } else { 0 }
}

/// A frame below a stack pointer that only a subtraction makes, and two addresses in it.
fn framed(
    body: impl FnOnce(&mut String, [(&str, i32); 2]),
    [s, t]: [u32; 2],
    [j, k]: [i32; 2],
) -> String {
    let mut text = "memory @m 1\nglobal @sp: mut i32 = 65536\n\
        func @f(%a: i32, %b: i32) -> i32 {\nentry:\n  %p = global_get.i32 @sp\n"
        .to_owned();
    text.push_str("  %size = const.i32 48\n  %x = sub.i32 %p, %size\n");
    let (one, other) = (spell(&mut text, "y", "x", j, s), spell(&mut text, "z", "x", k, t));
    body(&mut text, [("y", one), ("z", other)]);
    text.push_str("}\n");
    text
}

fn line(text: &mut String, line: &str) {
    writeln!(text, "  {line}").expect("strings take all");
}

/// A read of the place stored to, past a store that is apart: `load_elim` forwards the value.
fn forwarded(spellings: [u32; 2], k: i32) -> String {
    let body = |text: &mut String, [(y, i), (z, j)]: [(&str, i32); 2]| {
        line(text, &format!("store.i32 @m[%{y} + {}], %a", i + 64));
        line(text, &format!("store.i32 @m[%{z} + {}], %b", j + 64));
        line(text, &format!("%r = load.i32 @m[%{y} + {}]", i + 64));
        line(text, "return %r");
    };
    framed(body, spellings, [8, k])
}

/// A second read of one place, in another spelling where `load_elim` sees through it.
fn read_twice(spellings: [u32; 2], k: i32) -> String {
    let body = |text: &mut String, [(y, i), (z, j)]: [(&str, i32); 2]| {
        line(text, &format!("%v = load.i32 @m[%{y} + {}]", i + 64));
        line(text, &format!("store.i32 @m[%{z} + {}], %b", j + 64));
        line(text, &format!("%w = load.i32 @m[%{y} + {}]", i + 64));
        line(text, "%r = add.i32 %v, %w");
        line(text, "return %r");
    };
    framed(body, spellings, [8, k])
}

/// A store that another store covers, with an access of another place in between.
fn overwritten(spellings: [u32; 2], k: i32) -> String {
    let body = |text: &mut String, [(y, i), (z, j)]: [(&str, i32); 2]| {
        line(text, &format!("%v = load.i32 @m[%{y} + {}]", i + 64));
        line(text, &format!("%q = load.i32 @m[%{z} + {}]", j + 64));
        line(text, &format!("store.i32 @m[%{y} + {}], %a", i + 64));
        line(text, &format!("%w = load.i32 @m[%{z} + {}]", j + 64));
        line(text, &format!("store.i32 @m[%{y} + {}], %b", i + 64));
        line(text, "%s = add.i32 %v, %w");
        line(text, "%r = add.i32 %s, %q");
        line(text, "return %r");
    };
    framed(body, spellings, [8, k])
}

#[test]
fn every_spelling_of_an_address_is_certified() {
    let programs: [fn([u32; 2], i32) -> String; 3] = [forwarded, read_twice, overwritten];
    let mut rewritten = [0; 3];
    for (kind, program) in programs.iter().enumerate() {
        for pair in 0..SPELLINGS * SPELLINGS {
            let spellings = [pair / SPELLINGS, pair % SPELLINGS];
            for k in [8, 12, 4, -20, 9] {
                let text = program(spellings, k);
                for pipeline in ["load_elim", "dse", "simplify,load_elim,dse", "O1"] {
                    let (rejected, gone) = dropped(&text, pipeline);
                    assert_eq!(rejected, Vec::new(), "{spellings:?}, {k}, {pipeline}\n{text}");
                    rewritten[kind] += usize::from(gone > 0);
                }
            }
        }
    }
    assert!(rewritten.iter().all(|count| *count > 400), "{rewritten:?}");
}

/// Stores and loads of all widths around one frame; most of them overlap others.
fn overlapping(seed: u64) -> String {
    let mut prng = Prng::new(seed);
    let mut below = |bound: u32| prng.below(bound);
    let mut text = "memory @m 1\nglobal @sp: mut i32 = 65536\n\
        func @f(%a: i32, %b: i32) -> i32 {\nentry:\n  %p = global_get.i32 @sp\n  %size = const.i32 48\n  \
        %x = sub.i32 %p, %size\n  %r0 = add.i32 %a, %b\n  %l = uextend.i64 %a\n"
        .to_owned();
    let mut sum = 0;
    for n in 0..4 + below(24) {
        let (k, spelling) = (below(20) as i32, below(SPELLINGS));
        let rest = spell(&mut text, &format!("y{n}"), "x", k, spelling);
        let at = format!("@m[%y{n} + {}]", rest + 64);
        match below(8) {
            0 => line(&mut text, &format!("store8.i32 {at}, %a")),
            1 => line(&mut text, &format!("store16.i32 {at}, %r{sum}")),
            2 | 3 => line(&mut text, &format!("store.i32 {at}, %r{sum}")),
            4 => line(&mut text, &format!("store.i64 {at}, %l")),
            kind => {
                let load = ["load", "uload8", "uload16"][kind as usize - 5];
                line(&mut text, &format!("%v{n} = {load}.i32 {at}"));
                line(&mut text, &format!("%r{} = add.i32 %r{sum}, %v{n}", sum + 1));
                sum += 1;
            }
        }
    }
    writeln!(text, "  return %r{sum}\n}}").expect("strings take all");
    text
}

#[test]
fn overlapping_accesses_of_all_widths_cost_no_entries() {
    let mut rewritten = 0;
    for seed in 0..300 {
        let text = overlapping(seed);
        for pipeline in ["load_elim", "dse", "O1"] {
            let (rejected, gone) = dropped(&text, pipeline);
            assert_eq!(rejected, Vec::new(), "seed {seed}, {pipeline}\n{text}");
            rewritten += usize::from(gone > 0);
        }
    }
    assert!(rewritten > 300, "{rewritten}");
}

/// A frame of many slots, each stored and read through an address of its own.
#[test]
fn long_frames_cost_no_entries() {
    for rounds in [50, 250, 500] {
        let mut text = String::new();
        line(&mut text, "memory @mem 4\nglobal @sp: mut i32 = 65536");
        line(&mut text, "func @f(%a: i32) -> i32 {\nentry:\n  %s = global_get.i32 @sp");
        line(&mut text, &format!("  %z = const.i32 {}\n  %f = sub.i32 %s, %z", 8 * rounds));
        line(&mut text, "  global_set.i32 @sp, %f\n  %t0 = add.i32 %a, %z");
        for n in 0..rounds {
            line(&mut text, &format!("  %c{n} = const.i32 {}\n  %p{n} = add.i32 %f, %c{n}", 8 * n));
            line(&mut text, &format!("  store.i32 @mem[%p{n}], %t{n}"));
            line(&mut text, &format!("  %q{n} = load.i32 @mem[%p{n}]"));
            line(&mut text, &format!("  %t{} = add.i32 %t{n}, %q{n}", n + 1));
            line(&mut text, &format!("  store.i32 @mem[%a], %t{}", n + 1));
        }
        line(&mut text, &format!("  global_set.i32 @sp, %s\n  return %t{rounds}\n}}"));
        let (rejected, actions) = dropped(&text, "O1");
        assert!(rejected.is_empty() && actions > rounds, "{rounds}: {actions}, {rejected:?}");
    }
}

/// In a host memory, each access vouches for its own bytes alone, and the checker compares an
/// access with the nearest 256 at its address. A store that covers a deleted one is left out of the
/// anchors only where both know that it cannot trap.
#[test]
fn many_fields_of_a_host_memory_cost_no_entry() {
    for fields in [200, 300] {
        let mut text = "memory @h host 65536 1\nfunc @f(%at: i64, %v: i64) -> i64 {\nentry:\n  \
                        %l = load.i64 @h[%at]\n"
            .to_owned();
        let mut line = |rest: String| writeln!(text, "  {rest}").expect("strings take all");
        (0..fields).for_each(|n| line(format!("%f{n} = load.i64 @h[%at + {}]", 8 * (n + 1))));
        line("%s0 = add.i64 %l, %v".to_owned());
        (0..fields).for_each(|n| line(format!("%s{} = add.i64 %s{n}, %f{n}", n + 1)));
        line("store.i64 @h[%at], %v".to_owned());
        line(format!("%y = mul.i64 %s{fields}, %v"));
        line("store.i64 @h[%at], %y".to_owned());
        line("return %y\n}".to_owned());
        let (dropped, actions) = dropped(&text, "dse");
        assert!(dropped.is_empty() && actions > 0, "{fields}: {} of {actions}", dropped.len());
    }
}
