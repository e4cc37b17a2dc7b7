//! Memory at the start of blocks, and reads from it.

use super::*;

/// Two edges into a loop without writes that contains a load.
const READS: &str = "
memory @m 1 1
func @f(%a: i32, %b: i32) -> i32 {
entry:
  %zero = const.i32 0
  br_if %a, left, right
left:
  store.i32 @m[%zero], %a
  jump head(%zero, %a)
right:
  jump head(%a, %b)
head(%i: i32, %p: i32):
  %v = load.i32 @m[%p]
  %j = add.i32 %i, %v
  br_if %j, head(%j, %p), done
done:
  return %j
}";

/// Puts a preheader on the two edges into the loop, and hoists the load into it.
fn hoist_load(ed: &mut Editor<'_>) {
    let f = ed.func();
    let edges = ["left", "right"].map(|name| Edge { inst: f.terminator(block(f, name)), index: 0 });
    let head = block(f, "head");
    let load = inst(f, "v");
    let new = ed.join_edges(&edges);
    let q = ed.func().block_params(new)[1];
    ed.replace_all(value(ed.func(), "p"), q);
    ed.remove_block_param(head, 1);
    let jump = ed.func().terminator(new);
    ed.hoist(load, jump);
}

#[test]
fn parameters_of_joined_edges_bind_the_leaves_of_the_block_behind() {
    let f = function(READS);
    let applied = edited(&f, hoist_load);
    let c = certified(&f, &applied);
    let after = applied.function();
    let (v, i, p) = (value(&f, "v"), value(&f, "i"), value(&f, "p"));
    let q = after.inst(inst(&f, "v")).args[0];
    assert_eq!(class(&c, 1, q), class(&c, 0, p));
    // The load has the same term in both versions, because it reads the same memory.
    assert_eq!((class(&c, 0, v), class(&c, 0, i)), (class(&c, 1, v), class(&c, 1, i)));
    assert_eq!(class(&c, 0, value(&f, "j")), class(&c, 1, value(&f, "j")));
}

#[test]
fn a_loop_that_writes_has_a_memory_of_its_own() {
    let text =
        READS.replace("%j = add.i32 %i, %v\n", "%j = add.i32 %i, %v\n  store.i32 @m[%j], %v\n");
    let f = function(&text);
    let applied = edited(&f, |ed| {
        let edges = ["left", "right"]
            .map(|name| Edge { inst: ed.func().terminator(block(ed.func(), name)), index: 0 });
        ed.join_edges(&edges);
    });
    let c = certified(&f, &applied);
    let memory = |side: usize, b| {
        c.sides[side].memory.iter().find(|(m, _)| *m == b).expect("a live block").1
    };
    let head = block(&f, "head");
    let new = applied.function().blocks().find(|b| !f.has_block(*b)).expect("the new block");
    assert_eq!(memory(0, head), memory(1, head));
    assert_ne!(memory(1, new), memory(1, head));
}

#[test]
fn equal_arms_are_one_class_in_either_operand_order() {
    let f = function(
        "
func @f(%a: i32, %b: i32, %c: i32) -> i32 {
entry:
  br_if %c, left, right
left:
  %s = add.i32 %a, %b
  jump join(%s)
right:
  %t = add.i32 %b, %a
  jump join(%t)
join(%x: i32):
  return %x
}",
    );
    let c = alone(&f);
    let of = |name| class(&c, 0, value(&f, name));
    assert_eq!((of("x"), of("t")), (of("s"), of("s")));
}

/// Stores to `fields` places, all of them `times` times, without a read between. Each time ends in
/// an anchor.
fn written_again(fields: usize, times: usize) -> String {
    let mut text = "memory @m 1\nglobal @g: mut i32 = 0\n\
        func @f(%a: i32, %x: i32) -> i32 {\nentry:\n  %v0 = load.i32 @m[%a + 256]\n"
        .to_owned();
    for time in 0..times {
        for field in 0..fields {
            text += &format!("  store.i32 @m[%a + {}], %v{time}\n", 4 * field);
        }
        let next = time + 1;
        text += &format!("  global_set.i32 @g, %v{time}\n  %v{next} = add.i32 %v{time}, %x\n");
    }
    text + &format!("  return %v{times}\n}}")
}

/// The writes that the certifier looks at for each store of such a function and each field, with
/// the facts of all entries back. The version after has the last store of each field alone.
fn compared(fields: usize, times: usize) -> usize {
    let base = function(&written_again(fields, times));
    let is_store = |i: &Inst| base.inst(*i).opcode == Opcode::Store;
    let stores: Vec<Inst> = base.block_insts(base.entry()).filter(is_store).collect();
    let gone = &stores[..fields * (times - 1)];
    let applied = edited(&base, |ed| gone.iter().for_each(|store| ed.delete(*store)));
    let pair = VersionPair::new(&base, applied.function(), applied.log()).expect("the log replays");
    let common = pair.correspondence();
    let mut certifier = Certifier::new(&common);
    let back = synthesize(&pair, Level::Avail).backward.mapping;
    let facts = certifier.facts(Side::After, &back);
    let replays: usize = facts.iter().map(|facts| facts.replays.len()).sum();
    assert!(replays >= stores.len() / 2, "{replays} replays of {} stores", stores.len());
    assert!(facts.iter().all(|facts| !facts.replays.contains(&NO_TERM)));
    certifier.compared() / (stores.len() * fields)
}

/// Each lone write looks at the writes of one memory, and each entry that replays some as well. A
/// look at all of them for each write made again, or for each replay, would make it their cube.
#[test]
fn lone_writes_look_at_the_writes_of_one_memory_each() {
    let few = compared(8, 12);
    assert!((1..=9).contains(&few), "{few} for each store and field");
    for (fields, times) in [(16, 12), (32, 12), (8, 24)] {
        let more = compared(fields, times);
        assert!(more <= few + 1, "{few} to {more} for each store and field");
    }
}
