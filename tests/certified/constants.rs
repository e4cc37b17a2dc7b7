//! Accesses at constant addresses, as C programs access their globals: all points have entries.

use osier::driver::{NoObserver, ProvedMapping, Recipe, derive_proved};
use osier::{Format, load};
use osr::{Level, Reason};
use passes::Pipeline;
use transition::Pair;

/// The mappings of the first function, at the level `avail`.
fn made(format: Format, text: &str, pipeline: &Pipeline) -> Pair<ProvedMapping> {
    let module = load(format, text.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let (_, base) = module.defined().next().expect("a function");
    let levels = [Level::Avail];
    let recipe = Recipe::new(pipeline, &levels);
    let made = derive_proved(&module, base, &recipe, &mut NoObserver);
    assert!(!made.derived.log.is_empty(), "the passes do nothing\n{text}");
    made.proved.into_highest()
}

/// The reasons of the points without an entry in both directions. Fails if an entry was dropped.
fn lost(format: Format, text: &str, pipeline: &str) -> Vec<Reason> {
    let made = made(format, text, &passes::parse(pipeline).expect("passes"));
    let sides = [&made.before, &made.after];
    let rejected: Vec<_> = sides.iter().flat_map(|side| side.missing.rejected()).collect();
    assert!(rejected.is_empty(), "{pipeline}: {rejected:?}\n{text}");
    sides
        .iter()
        .flat_map(|side| side.missing.obstacles().map(|missing| missing.why.reason))
        .collect()
}

/// A load whose value a pass forwards from a store. In the first two cases, the addresses are
/// constants, each an instruction of its own; in the last case, an argument.
#[test]
fn a_forwarded_load_bars_no_landing() {
    let cases = [
        include_str!("constants/stored_before.wat"),
        include_str!("constants/stored_in_a_nest.wat"),
        include_str!("constants/at_an_argument.wat"),
    ];
    for text in cases {
        for pipeline in ["O1", "O2", "canonical,load_elim,dse,adce"] {
            assert_eq!(lost(Format::Wat, text, pipeline), [], "{pipeline}\n{text}");
        }
    }
}

/// The same without pages that the memory has in every run: the store has to vouch for the load, in
/// another spelling of the address.
#[test]
fn an_access_at_a_constant_vouches_in_every_spelling() {
    let spellings = [("64", "", "64", ""), ("64", "", "0", " + 64"), ("8", " + 60", "66", "")];
    for (stored, plus, read, more) in spellings {
        let text = format!(
            "memory @m 0\nfunc @f(%n: i32, %x: i32) -> i32 {{\nentry:\n  %a = const.i32 {stored}\n  \
             store.i32 @m[%a{plus}], %x\n  br_if %n, one, two\none:\n  %b = const.i32 {read}\n  \
             %v = uload16.i32 @m[%b{more}]\n  %w = uload16.i32 @m[%b{more}]\n  \
             %s = add.i32 %v, %w\n  return %s\ntwo:\n  return %n\n}}\n"
        );
        assert_eq!(lost(Format::Oir, &text, "cse,load_elim,adce"), [], "{text}");
    }
}

/// A program with a read of one global at the end of a loop, which passes move: `memory` is its
/// declaration, and the address is `%a` plus the offset.
fn global(memory: &str, address: &str, offset: u64) -> String {
    format!(
        "memory @m {memory}\nfunc @f(%n: i32, %x: i32) -> i32 {{\nentry:\n{address}  \
         %zero = const.i32 0\n  %one = const.i32 1\n  jump head(%zero, %zero)\n\
         head(%i: i32, %sum: i32):\n  %g = load.i32 @m[%a + {offset}]\n  \
         %more = slt.i32 %i, %n\n  br_if %more, body, done\nbody:\n  \
         %s = add.i32 %sum, %g\n  %next = add.i32 %i, %one\n  jump head(%next, %s)\ndone:\n  \
         return %sum\n}}\n"
    )
}

/// `licm` hoists the read. An entry up before its old place would have to land behind its new
/// place. Where the read ends within the least size, whatever the spelling, no run has trapped
/// there: the value alone is missing, since no entry reads memory.
#[test]
fn a_read_below_the_least_size_bars_no_landing() {
    let constant = |bits: u64| format!("  %a = const.i32 {bits}\n");
    let sum = |one: u64, other: u64| {
        format!("  %b = const.i32 {one}\n  %c = const.i32 {other}\n  %a = add.i32 %b, %c\n")
    };
    let all = u64::from(u32::MAX);
    let cases = [
        ("1", constant(64), 0, true),
        ("1", constant(65532), 0, true),
        ("1", constant(65533), 0, false),
        ("1", constant(0), 65532, true),
        ("1", constant(0), 65533, false),
        ("1", constant(4), 65528, true),
        ("2", constant(65533), 0, true),
        ("0", constant(0), 0, false),
        // The sum of constant and offset does not wrap; the sum of two values does.
        ("1", constant(all), 65, false),
        ("1", sum(all, 65), 0, true),
        ("1", sum(60, 4), 8, true),
        ("1", sum(65530, 2), 1, false),
        ("65536", constant(all - 3), 0, true),
    ];
    for (memory, address, offset, never_traps) in cases {
        let text = global(memory, &address, offset);
        for pipeline in ["preheaders,licm", "O1"] {
            let lost = lost(Format::Oir, &text, pipeline);
            let reason = if never_traps { Reason::Load } else { Reason::TrapNotReached };
            assert_eq!(lost, [reason], "{pipeline}\n{text}");
        }
    }
}

/// The import of a memory declares a minimum, too: whatever a host provides has it.
#[test]
fn an_imported_memory_has_its_least_size() {
    let text = include_str!("constants/stored_before.wat");
    let imported = text.replace("(memory 1)", "(import \"env\" \"mem\" (memory 1))");
    assert_ne!(imported, text);
    for pipeline in ["O1", "O2", "canonical,load_elim,dse,adce"] {
        assert_eq!(lost(Format::Wat, &imported, pipeline), [], "{pipeline}");
    }
}
