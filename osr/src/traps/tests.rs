//! Tests of `osr::traps`.

use super::*;
use crate::VersionPair;
use crate::paths::TakenJump;
use crate::source::Here;
use ir::edit::{Editor, Fuel, Pass, apply};
use ir::{Edge, Function, Opcode};
use std::fmt::Write as _;
use transition::Side;

/// Hoists each load in front of its loop.
struct Hoist(Vec<(Inst, Inst)>);

impl Pass for Hoist {
    fn name(&self) -> &'static str {
        "hoist"
    }

    fn run(&self, editor: &mut Editor<'_>) {
        assert!(editor.plan("by_hand"));
        self.0.iter().for_each(|(load, to)| editor.hoist(*load, *to));
    }
}

/// The jumps from a point to the next branch, as if none were an anchor.
fn jumps_from(f: &Function, point: Point) -> Vec<TakenJump> {
    let mut jumps = Vec::new();
    let mut end = f.terminator(f.inst_block(point.inst()));
    while f.inst(end).opcode == Opcode::Jump && jumps.len() < 4 {
        let edge = Edge { inst: end, index: 0 };
        let to = f.target(edge).block;
        let joins = f.predecessors(to).len() > 1;
        jumps.push(TakenJump { edges: SmallVec::from_iter([edge]), joins });
        end = f.terminator(to);
    }
    jumps
}

/// Asks about each landing at the instruction of its source point, with notes and without, and
/// compares. Returns the blocks entered, the witnesses tested with notes, and the landings
/// barred.
fn asked_everywhere(pair: &VersionPair<'_>) -> [usize; 3] {
    let (p, q) = (pair.source(Side::Before), pair.target(Side::Before));
    let (traps, mut noted) = (pair.traps(Side::Before), PassedTraps::default());
    let (mut here, mut barred) = (SourcePoint::default(), 0);
    for point in p.f.all_insts().map(Point::before) {
        here.enter(p, &pair.facts, point, &[], &jumps_from(p.f, point));
        let from = LandingSource { p, here: &here };
        let ask = |noted: &mut PassedTraps, from| {
            let has = |w| !matches!(here.look_up(p, w), Here::Member(_) | Here::Absent);
            traps.skipped(q, point, from, noted, has)
        };
        let skipped = ask(&mut noted, Some(&from));
        assert_eq!(skipped, ask(&mut PassedTraps::default(), None), "{point:?}");
        barred += usize::from(skipped.is_some());
    }
    [traps.entered, noted.asked, barred]
}

/// The blocks entered and the witnesses tested, with loops in a row. Each loop has a load in an
/// inner loop, or in an arm that joins another arm: then no anchor closes the window of the
/// load. Notes must not change an answer.
fn work(loops: usize, is_in_arm: bool) -> [usize; 2] {
    let mut text =
        "memory @m 1\nfunc @f(%p: i32, %n: i32) -> i32 {\nentry:\n  jump b0\n".to_owned();
    for k in 0..loops {
        let (before, behind) = match is_in_arm {
            true => (format!("br_if %n, h{k}, l{k}"), format!("jump l{k}")),
            false => (format!("jump h{k}"), format!("br_if %a{k}, h{k}, l{k}")),
        };
        write!(
            text,
            "b{k}:\n  {before}\nh{k}:\n  %a{k} = load.i32 @m[%p + {}]\n  {behind}\n\
                 l{k}:\n  br_if %n, b{k}, b{}\n",
            4 * k,
            k + 1
        )
        .expect("a string");
    }
    text += &format!("b{loops}:\n  return %n\n}}\n");
    let module = ir::text::parse_module(&text).expect("well-formed");
    let (_, base) = module.defined().next().expect("one function");
    let loads = base.all_insts().filter(|i| !base.inst(*i).results.is_empty());
    let hoisted = loads.map(|load| {
        let header = base.inst_block(load);
        let enters = base.predecessors(header).iter().map(|edge| edge.inst);
        (load, enters.min_by_key(|i| *i == base.terminator(header)).expect("a jump"))
    });
    let pass = Hoist(hoisted.collect());
    let applied = apply(base, &pass, &mut Fuel::UNLIMITED.clone());
    let pair = VersionPair::new(base, applied.function(), applied.log()).expect("it replays");
    let [entered, asked, barred] = asked_everywhere(&pair);
    assert!(barred >= loops, "before each load, its trap bars");
    [entered, asked]
}

/// The landings barred after the load of a function is hoisted to its first block.
fn barred_by_hoisted_load(blocks: &str) -> usize {
    let text = format!("memory @m 1\nfunc @f(%p: i32, %n: i32) -> i32 {{\n{blocks}}}\n");
    let module = ir::text::parse_module(&text).expect("well-formed");
    let (_, base) = module.defined().next().expect("one function");
    let load = base.all_insts().find(|i| base.inst(*i).opcode == Opcode::Load);
    let pass = Hoist(vec![(load.expect("one load"), base.terminator(base.entry()))]);
    let applied = apply(base, &pass, &mut Fuel::UNLIMITED.clone());
    let pair = VersionPair::new(base, applied.function(), applied.log()).expect("it replays");
    asked_everywhere(&pair)[2]
}

/// The way back from `k` to `b` binds `%a`, which is available at `k`. The block `c` is the
/// last that another edge leads to.
#[test]
fn notes_about_traps_change_no_answer_where_paths_bind_witnesses() {
    let blocks = "entry:\n  jump b
b:
  %a = load.i32 @m[%p]
  %x = add.i32 %a, %n
  jump c
c:\n  br_if %n, k, e
e:\n  br_if %n, c, out
k:\n  jump b
out:\n  return %x\n";
    // At the jumps of `entry` and `k`.
    assert_eq!(barred_by_hoisted_load(blocks), 2);
}

/// From `m`, the path leads to `j`, where `%a` is not available.
#[test]
fn notes_about_traps_hold_where_the_path_leads_too() {
    let blocks = "entry:\n  br_if %n, l, r
l:
  %a = load.i32 @m[%p]
  br_if %a, m, j
m:
  %x = add.i32 %a, %n
  jump j
r:\n  jump j
j:\n  return %n\n";
    // At all points but the load and the branch behind it.
    assert_eq!(barred_by_hoisted_load(blocks), 5);
}

#[test]
fn traps_of_loops_in_a_row_take_near_linear_work() {
    for is_in_arm in [false, true] {
        let (one, two) = (work(64, is_in_arm), work(128, is_in_arm));
        for (one, two) in one.into_iter().zip(two) {
            assert!(one > 0 && 10 * two <= 23 * one, "{one} to {two}, in an arm: {is_in_arm}");
        }
    }
}
