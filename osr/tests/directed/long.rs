//! Searches that run into a limit.

use super::*;
use ir::{Imm, InstSpec, Type};

/// A function that stores `values` sums of a loaded value, and adds its argument as often.
fn sums(values: usize) -> String {
    let mut text =
        String::from("memory @m 1\nfunc @f(%a: i32) -> i32 {\nentry:\n  %l = load.i32 @m[%a]\n");
    for i in 0..values {
        text += &format!("  %c{i} = const.i32 {}\n  %k{i} = add.i32 %l, %c{i}\n", i + 1);
    }
    for i in 0..values {
        text += &format!("  store.i32 @m[%a + {}], %k{i}\n", 4 * i);
    }
    text += "  store8.i32 @m[%a], %a\n  %s0 = add.i32 %a, %a\n";
    for i in 0..values {
        text += &format!("  %s{} = add.i32 %s{i}, %a\n", i + 1);
    }
    text + &format!("  return %s{values}\n}}")
}

#[test]
fn an_entry_survives_the_end_of_the_deep_search() {
    // Behind the stores the version after needs, for each sum, a product that only it has. The base
    // can give the product from its sum, which is dead there, or all of them from %l. The shallow
    // search finds the sums. The deep search ends before it has seen all sums, so the cut through
    // its graph gives nothing.
    const SUMS: usize = 170;
    let base = function(&sums(SUMS));
    let applied = edited(&base, |ed| {
        for i in 0..SUMS {
            let (k, user) =
                (value(ed.func(), &format!("k{i}")), inst(ed.func(), &format!("s{}", i + 1)));
            let first_store = ed.func().next_inst(inst(ed.func(), &format!("k{}", SUMS - 1)));
            let product = InstSpec::new(Opcode::Mul, Type::I32, Imm::None, &[k, k]);
            let product = ed.add_value(product, first_store.expect("a store"));
            ed.replace_operand(user, 1, product);
        }
    });
    let synthesis = mappings(&base, &applied, Level::Avail);
    let entry = entry(&synthesis.forward, Point::before(inst(&base, "s0")));
    for i in 0..SUMS {
        assert!(entry.kept.contains(&value(&base, &format!("k{i}"))), "%k{i} is not kept");
    }
}

/// Makes the last operation read the end of a chain of `length` products, which starts with
/// `first` and stands before the store.
fn add_chain(ed: &mut Editor<'_>, length: usize, first: Value) {
    let (a, r) = (value(ed.func(), "a"), inst(ed.func(), "r"));
    let store = ed.func().prev_inst(r).expect("the store");
    let mut last = first;
    for _ in 0..length {
        last = ed.add_value(InstSpec::new(Opcode::Mul, Type::I32, Imm::None, &[last, a]), store);
    }
    ed.replace_operand(r, 1, last);
}

const STORE: &str = "
memory @m 1
func @f(%a: i32) -> i32 {
entry:
  store.i32 @m[%a], %a
  %r = add.i32 %a, %a
  return %r
}";

#[test]
fn a_search_for_kept_values_without_end_is_too_long() {
    // Every product can be computed from the argument. The search for kept values stops before it
    // gets there. So does the search for a single value.
    let base = function(STORE);
    let applied = edited(&base, |ed| add_chain(ed, 1400, value(ed.func(), "a")));
    for level in [Level::Live, Level::Avail] {
        let forward = mappings(&base, &applied, level).forward;
        assert_eq!(reason(&forward, Point::before(inst(&base, "r"))), Reason::TooLong, "{level}");
    }
}

#[test]
fn a_long_chain_is_lost_for_the_read_at_its_end() {
    // The search for the end of the chain stops at its limit. The search for kept values continues
    // to the read of memory, which only the version after has.
    let base = function(STORE);
    let applied = edited(&base, |ed| {
        let store = ed.func().prev_inst(inst(ed.func(), "r")).expect("the store");
        let memory = Imm::Memory(ir::Memory::from_u32(0));
        let size = ed.add_value(InstSpec::new(Opcode::MemorySize, Type::I32, memory, &[]), store);
        add_chain(ed, 300, size);
    });
    let reason_at = |level: Level| {
        let forward = mappings(&base, &applied, level).forward;
        reason(&forward, Point::before(inst(&base, "r")))
    };
    assert_eq!(reason_at(Level::Live), Reason::TooLong);
    assert_eq!(reason_at(Level::Avail), Reason::Load);
}

/// The landing points up to `%y` need `%l`, which is dead in the base. The landing point behind
/// needs the end of a chain that starts with the argument. Its judgment without a search must not
/// be stricter than the search, which visits 256 nodes: each operation of the chain, and each but
/// the last a second time.
#[test]
fn the_end_of_a_chain_is_in_reach_up_to_the_limit_of_visits() {
    let base = function(
        "
memory @m 1
func @f(%a: i32) -> i32 {
entry:
  %l = load.i32 @m[%a]
  %y = add.i32 %l, %a
  store.i32 @m[%a], %a
  %x = mul.i32 %a, %a
  %r = add.i32 %x, %y
  return %r
}",
    );
    for (length, is_in_reach) in [(128, true), (129, false)] {
        let applied = edited(&base, |ed| {
            let (y, r) = (inst(ed.func(), "y"), inst(ed.func(), "r"));
            let a = value(ed.func(), "a");
            let mut last = a;
            for _ in 0..length {
                let product = InstSpec::new(Opcode::Mul, Type::I32, Imm::None, &[last, a]);
                last = ed.add_value(product, r);
            }
            ed.replace_operand(r, 0, last);
            ed.sink(y, r);
        });
        let [x, r] = ["x", "r"].map(|name| Point::before(inst(&base, name)));
        let at = |level: Level| {
            let forward = mappings(&base, &applied, level).forward;
            forward.mapping.entry(x).map(|entry| (entry.target, entry.kept.len()))
        };
        let far = is_in_reach.then_some((r, 0));
        assert_eq!(at(Level::Live), far, "{length} operations");
        assert_eq!(at(Level::Avail), far.or(Some((x, 1))), "{length} operations");
    }
}

/// A function that loads `words` words, runs a loop and adds them up. At most of its points
/// hundreds of words are live.
fn words(words: usize) -> Function {
    let mut text = String::from("memory @m 1\nfunc @f(%a: i32) -> i32 {\nentry:\n");
    for i in 0..words {
        text += &format!("  %w{i} = load.i32 @m[%a + {}]\n", 4 * i);
    }
    text += "  jump head(%a)\nhead(%i: i32):\n  %n = shl.i32 %i, %i\n  %m = add.i32 %n, %a\n";
    text += "  br_if %m, head(%m), done\ndone:\n  %s0 = add.i32 %a, %a\n";
    for i in 0..words {
        text += &format!("  %s{} = add.i32 %s{i}, %w{i}\n", i + 1);
    }
    text += &format!("  return %s{words}\n}}");
    function(&text)
}

/// Computes a product in the loop.
fn multiply(ed: &mut Editor<'_>) {
    let first = inst(ed.func(), "n");
    let i = value(ed.func(), "i");
    ed.add_value(InstSpec::new(Opcode::Mul, Type::I32, Imm::None, &[i, i]), first);
}

#[test]
fn a_function_with_many_live_values_has_entries_at_all_points() {
    const WORDS: usize = 2_000;
    let base = words(WORDS);
    let applied = edited(&base, multiply);
    let synthesis = mappings(&base, &applied, Level::Avail);
    for mapped in [&synthesis.forward, &synthesis.backward] {
        assert_eq!(mapped.missing, []);
        assert!(mapped.mapping.len() > 2 * WORDS);
        let provided = mapped.mapping.shared_entries().map(|(_, e)| e.get().assigns.len());
        let most = MappingLimits::default().whole;
        assert!(provided.sum::<usize>() > most, "the lists would be short");
    }
}

/// Checks that a mapping within limits has an entry at the loop header and in each tenth of the
/// function, and that the other points have their reason.
fn is_spread(base: &Function, limits: MappingLimits) {
    let applied = edited(base, multiply);
    let pair = VersionPair::new(base, applied.function(), applied.log()).expect("the log replays");
    let (_, made) = synthesize_within(&pair, &[Level::Avail], limits).pop().expect("one level");
    for mapped in [&made.forward, &made.backward] {
        let header = Point::before(inst(base, "n"));
        assert!(mapped.mapping.entries().any(|(_, e)| e.target == header), "no entry to the loop");
        let has: Vec<Point> = mapped.mapping.points().collect();
        assert_eq!(has.len() + mapped.missing.len() + mapped.unreachable, mapped.points);
        assert!(mapped.missing.len() > mapped.points / 3, "{} left out", mapped.missing.len());
        assert!(mapped.missing.iter().all(|one| one.why.reason == Reason::ManyValues));
        let left_out: Vec<Point> = mapped.missing.iter().map(|u| u.point).collect();
        let mut all: Vec<Point> = has.iter().chain(&left_out).copied().collect();
        all.sort_unstable();
        for tenth in all.chunks(all.len() / 10) {
            assert!(tenth.iter().any(|point| has.contains(point)), "none in {tenth:?}");
        }
    }
}

#[test]
fn a_function_beyond_the_limit_of_values_has_entries_evenly_spread() {
    let base = words(300);
    is_spread(&base, MappingLimits { whole: 0, values: 60_000, ..MappingLimits::default() });
}

#[test]
fn a_function_beyond_the_limit_of_words_has_entries_evenly_spread() {
    let base = words(300);
    is_spread(&base, MappingLimits { whole: 0, words: 16_000, ..MappingLimits::default() });
}

#[test]
fn points_whose_tables_are_too_large_for_a_part_are_mapped_alone() {
    // No part takes two points.
    let base = words(60);
    let applied = edited(&base, multiply);
    let pair = VersionPair::new(&base, applied.function(), applied.log()).expect("the log replays");
    let limits = MappingLimits { whole: 0, part: 1, ..MappingLimits::default() };
    for (level, made) in synthesize_within(&pair, &Level::ALL, limits) {
        let alone = synthesize(&pair, level);
        assert!(made.forward.mapping == alone.forward.mapping, "{level}");
        assert!(made.backward.mapping == alone.backward.mapping, "{level}");
    }
}

/// A function of `blocks` blocks in a row, each with this instruction and a jump.
fn row(blocks: usize, inst: impl Fn(usize) -> String) -> Function {
    let mut text = String::from("func @f(%a: i32) -> i32 {\nentry:\n  %x0 = add.i32 %a, %a\n");
    for at in 1..=blocks {
        text += &format!("  jump b{at}\nb{at}:\n  {}\n", inst(at));
    }
    function(&format!("{text}  return %x{blocks}\n}}"))
}

/// No jump of the row is in both versions. A path through it ends where a pure instruction bounds
/// it.
#[test]
fn pure_instructions_bound_a_long_row_of_blocks() {
    const BLOCKS: usize = 300;
    let base = row(BLOCKS, |at| format!("%x{at} = xor.i32 %x{}, %a", at - 1));
    let applied = edited(&base, |ed| (0..BLOCKS).for_each(|_| ed.merge_blocks(ed.func().entry())));
    let pair = VersionPair::new(&base, applied.function(), applied.log()).expect("the log replays");
    let pure = pair.bounding_anchors().filter(|i| base.inst(*i).opcode == Opcode::Xor).count();
    assert!((5..20).contains(&pure), "{pure}");
    let synthesis = synthesize(&pair, Level::Avail);
    for direction in [&synthesis.forward, &synthesis.backward] {
        assert!(direction.missing.is_empty(), "{:?}", direction.missing);
    }
}

/// Short paths keep their ends: more anchors would make gaps smaller for nothing.
#[test]
fn pure_instructions_bound_no_short_row_of_blocks() {
    const BLOCKS: usize = 30;
    let base = row(BLOCKS, |at| format!("%x{at} = xor.i32 %x{}, %a", at - 1));
    let applied = edited(&base, |ed| (0..BLOCKS).for_each(|_| ed.merge_blocks(ed.func().entry())));
    let pair = VersionPair::new(&base, applied.function(), applied.log()).expect("the log replays");
    assert_eq!(pair.bounding_anchors().count(), 1, "the return");
}

/// An instruction with another operand may be unequal for all that the log shows. The checker
/// would leave everything behind it unproved.
#[test]
fn an_instruction_with_another_operand_bounds_no_path() {
    const BLOCKS: usize = 100;
    let base = row(BLOCKS, |at| format!("%x{at} = xor.i32 %x{}, %a", at - 1));
    let applied = edited(&base, |ed| {
        (0..BLOCKS).for_each(|_| ed.merge_blocks(ed.func().entry()));
        let first = value(ed.func(), "x0");
        for at in 1..=BLOCKS {
            let x = inst(ed.func(), &format!("x{at}"));
            ed.replace_operand(x, 1, first);
        }
    });
    let pair = VersionPair::new(&base, applied.function(), applied.log()).expect("the log replays");
    assert!(pair.bounding_anchors().all(|i| base.inst(i).opcode != Opcode::Xor));
}

/// `%p` stands in a block that was merged before an edge was sent past it, and merged again after.
/// So neither version has `%p` in a block with the terminator that the log names.
#[test]
fn a_skipped_instruction_is_no_anchor() {
    for row in [31, 50] {
        let mut text = "func @f(%a: i32, %c: i32) -> i32 {
entry:
  %zero = const.i32 0
  br_if %c, left, right
left:
  jump b1(%zero)
right:
  %r = add.i32 %a, %c
  jump b1(%c)
b1(%k: i32):
  %p = add.i32 %a, %a
  jump b2
b2:
  jump y0
"
        .to_owned();
        (0..row).for_each(|at| text += &format!("y{at}:\n  jump y{}\n", at + 1));
        let base = function(&format!("{text}y{row}:\n  return %c\n}}"));
        let applied = edited(&base, |ed| {
            let b1 = block(ed.func(), "b1");
            ed.merge_blocks(b1);
            // Past `b1` and all blocks behind it, except the last block.
            let left = ed.func().terminator(block(ed.func(), "left"));
            (0..=row).for_each(|_| ed.redirect(Edge { inst: left, index: 0 }));
            (0..row).for_each(|_| ed.merge_blocks(b1));
        });
        let pair = VersionPair::new(&base, applied.function(), applied.log()).expect("it replays");
        let skipped = inst(&base, "p");
        assert!(pair.bounding_anchors().all(|anchor| anchor != skipped), "{row} jumps");
    }
}

#[test]
fn a_point_that_the_other_version_lacks_has_the_place_of_the_next_one() {
    // Each round of an unrolled hash makes its constant anew, and the version after has only the
    // first constant. Tried in the middle of the block, or at one of its ends, an entry from a
    // removed constant computes dozens of rounds or keeps the words that they have used up.
    const ROUNDS: usize = 90;
    let mut text = String::from("memory @m 1\nfunc @f(%a: i32) -> i32 {\nentry:\n");
    (0..ROUNDS).for_each(|i| text += &format!("  %w{i} = load.i32 @m[%a + {}]\n", 4 * i));
    text += "  %x0 = load.i32 @m[%a + 1024]\n";
    for i in 0..ROUNDS {
        let next = i + 1;
        text += &format!("  %k{i} = const.i32 7\n  %r{i} = rotr.i32 %x{i}, %k{i}\n");
        text += &format!("  %x{next} = xor.i32 %r{i}, %w{i}\n");
    }
    let base = function(&(text + &format!("  return %x{ROUNDS}\n}}")));
    let applied = edited(&base, |ed| {
        let first = value(ed.func(), "k0");
        for i in 1..ROUNDS {
            let (k, at) = (format!("k{i}"), inst(ed.func(), &format!("k{i}")));
            ed.replace_all(value(ed.func(), &k), first);
            ed.delete(at);
        }
    });
    for level in [Level::Live, Level::Avail] {
        let synthesis = mappings(&base, &applied, level);
        for i in 1..ROUNDS {
            let point = |name: &str| Point::before(inst(&base, &format!("{name}{i}")));
            let entry = entry(&synthesis.forward, point("k"));
            assert_eq!(entry.target, point("r"), "round {i}, {level:?}");
            assert_eq!((entry.steps.len(), entry.kept.len()), (1, 0), "round {i}, {level:?}");
        }
    }
}
