//! Coalesces values into shared slots of fast code, so that loops need no moves on their back
//! edges.
//!
//! For example, take `%j = add %i, %one` at the end of a loop, where `%i` is a block parameter. If
//! no later instruction reads `%i`, the addition can write the slot of `%i`. An argument of an edge
//! and its block parameter may share a slot when neither is written while the other value is live
//! ([`Coalescer::interfere`]). The move between them then disappears.
//!
//! The method is aggressive coalescing (Chaitin, "Register Allocation and Spilling via Graph
//! Coloring", 1982). Its groups are the phi congruence classes of Sreedhar et al., "Translating Out
//! of Static Single Assignment Form" (1999). There is no interference graph: a merge tests the
//! members of two groups pairwise.
//!
//! Constants are never coalesced, because they have slots of their own. Functions without loops are
//! skipped.

use crate::decoded::Decoded;
use cranelift_entity::EntityRef;
use ir::cfg::Cfg;
use ir::entity::{Block, Point, Value};
use ir::function::Function;
use ir::loops::LoopForest;
use ir::opcode::Opcode;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Most values in one group. A merge tests two groups member by member, so this bounds its cost.
const LARGEST: usize = 16;

/// The entry of `Coalescer::group_of` for a value without a group.
const ALONE: u32 = u32::MAX;

/// The values whose slots are not chosen freely.
pub(super) struct SlotChoice<P, A> {
    /// Whether a value keeps its own slot. Others may share it.
    pub(super) pinned: P,
    /// Whether a value shares no slot, since a run may read it after its last use.
    pub(super) apart: A,
}

/// Lists the values that lose their own slot, in order of ids. Each comes with the root of its
/// group, the value whose slot it uses from now on. Pinned values and the arguments of the function
/// keep their own slots.
///
/// Cost: a look at each branch in a function without loops that pass arguments. Otherwise the cost
/// of [`Cfg`] and [`LoopForest`], plus the uses and live blocks of the values passed within loops.
/// ([`ir::liveness`] would compute liveness for all values.) Each argument passed in a loop
/// takes at most 256 tests, each logarithmic in the live range.
pub(super) fn coalesce(
    function: &Function,
    exact: &Decoded,
    choice: SlotChoice<impl Fn(Value) -> bool, impl Fn(Value) -> bool>,
) -> Vec<(Value, Value)> {
    if !has_loop_with_arguments(function, exact) {
        return Vec::new();
    }
    let cfg = Cfg::new(function);
    let copies = copies(function, exact, &cfg);
    let group_of = vec![ALONE; function.value_bound()];
    let SlotChoice { pinned, apart } = choice;
    let pinned = |value: Value| pinned(value) || function.arguments().contains(&value);
    let seen = vec![None; cfg.rpo().len()];
    let (groups, ranges) = (Vec::new(), BTreeMap::new());
    let mut coalescer = Coalescer { function, exact, cfg, pinned, group_of, groups, ranges, seen };
    for (param, arg) in copies {
        if !apart(param) && !apart(arg) {
            coalescer.try_merge(param, arg);
        }
    }
    coalescer.finish()
}

/// The pc of the first instruction of a block.
fn start(function: &Function, exact: &Decoded, block: Block) -> u32 {
    pc(exact, Point::before(function.first_inst(block)))
}

fn pc(exact: &Decoded, point: Point) -> u32 {
    exact.pc_of(point).expect("interp: the code has every instruction")
}

/// Whether some branch passes arguments to its own block or to an earlier block in the layout.
/// Every loop has a backward branch. A loop that passes arguments only on forward branches is
/// missed, which costs moves and nothing else.
fn has_loop_with_arguments(function: &Function, exact: &Decoded) -> bool {
    function.blocks().any(|block| {
        let at = pc(exact, Point::before(function.terminator(block)));
        let mut targets = function.successors(block).iter();
        targets.any(|target| !target.args.is_empty() && start(function, exact, target.block) <= at)
    })
}

/// The pairs of block parameter and argument on edges within loops, most profitable first. Inner
/// loops precede outer loops; at one depth, back edges precede forward edges.
fn copies(function: &Function, exact: &Decoded, cfg: &Cfg) -> Vec<(Value, Value)> {
    let loops = LoopForest::new(function, cfg);
    let mut copies = Vec::new();
    for &block in cfg.rpo() {
        let depth = loops.depth_of(block);
        if depth == 0 {
            continue;
        }
        let at = start(function, exact, block);
        for target in function.successors(block) {
            let forward = start(function, exact, target.block) > at;
            for (param, arg) in function.block_params(target.block).iter().zip(&target.args) {
                if param != arg && !is_constant(function, *arg) {
                    copies.push((Reverse(depth), forward, *param, *arg));
                }
            }
        }
    }
    copies.sort_by_key(|(depth, forward, ..)| (*depth, *forward)); // stable: ties keep block order
    copies.into_iter().map(|(_, _, param, arg)| (param, arg)).collect()
}

fn is_constant(function: &Function, value: Value) -> bool {
    function.defining_inst(value).is_some_and(|inst| function.inst(inst).opcode == Opcode::Const)
}

/// The live range of a value.
struct Range {
    /// The pcs of the uses, ascending.
    uses: Vec<u32>,
    /// The numbers of the blocks in which the value is live-in, ascending. The defining block is
    /// never one of them.
    live_in: Vec<u32>,
}

struct Coalescer<'a, P> {
    function: &'a Function,
    exact: &'a Decoded,
    cfg: Cfg,
    pinned: P,
    /// For each value index, the group of the value, or `ALONE`.
    group_of: Vec<u32>,
    /// The groups. No two members of a group interfere, and at most one is pinned. A group merged
    /// into another group is empty.
    groups: Vec<Vec<Value>>,
    /// Live ranges, computed on first request.
    ranges: BTreeMap<Value, Range>,
    /// For each block number, the value last found live-in there. `range` uses it as a visited
    /// mark.
    seen: Vec<Option<Value>>,
}

impl<P: Fn(Value) -> bool> Coalescer<'_, P> {
    /// Merges the groups of two values if no two members interfere and the group stays small
    /// enough.
    fn try_merge(&mut self, a: Value, b: Value) {
        let (into, from) = (self.group(a), self.group(b));
        if into == from || self.groups[into].len() + self.groups[from].len() > LARGEST {
            return;
        }
        // Both groups are taken out, because `may_share` caches live ranges in `self`.
        let moved = std::mem::take(&mut self.groups[from]);
        let kept = std::mem::take(&mut self.groups[into]);
        if self.may_share(&kept, &moved) {
            for value in &moved {
                self.group_of[value.index()] = into as u32;
            }
            self.groups[into] = [kept, moved].concat();
        } else {
            (self.groups[into], self.groups[from]) = (kept, moved);
        }
    }

    /// The number of a value's group. A value without a group gets a new group.
    fn group(&mut self, value: Value) -> usize {
        let group = &mut self.group_of[value.index()];
        if *group == ALONE {
            *group = self.groups.len() as u32;
            self.groups.push(vec![value]);
        }
        *group as usize
    }

    fn may_share(&mut self, some: &[Value], others: &[Value]) -> bool {
        let pinned = some.iter().chain(others).filter(|value| (self.pinned)(**value)).count();
        pinned <= 1 && !some.iter().any(|a| others.iter().any(|b| self.interfere(*a, *b)))
    }

    /// Whether two values interfere: one value is defined while the other value is live, or both
    /// are defined at the same place. A definition counts even if no instruction reads the value.
    fn interfere(&mut self, a: Value, b: Value) -> bool {
        let ((home_a, from_a), (home_b, from_b)) = (self.definition(a), self.definition(b));
        let is_same_place = (home_a, from_a) == (home_b, from_b);
        is_same_place || self.is_live(a, home_b, from_b) || self.is_live(b, home_a, from_a)
    }

    /// The first point at which a value exists: its block, and the pc of the first instruction that
    /// can read it.
    fn definition(&self, value: Value) -> (Block, u32) {
        let block = self.function.value_block(value);
        let pc = match self.function.defining_inst(value) {
            Some(inst) => pc(self.exact, Point::before(inst)) + 1,
            None => start(self.function, self.exact, block),
        };
        (block, pc)
    }

    /// Whether a value is live before the instruction at a pc: defined before it, and read there or
    /// later.
    fn is_live(&mut self, value: Value, block: Block, at: u32) -> bool {
        let (home, from) = self.definition(value);
        if !self.ranges.contains_key(&value) {
            let range = self.range(value, home);
            self.ranges.insert(value, range);
        }
        // Live here means available here, and then either read in the rest of this block or live-in
        // at a successor.
        let Range { uses, live_in } = &self.ranges[&value];
        let is_live_in = |block: Block| {
            self.cfg.number(block).is_some_and(|n| live_in.binary_search(&n).is_ok())
        };
        let is_there = if home == block { from <= at } else { is_live_in(block) };
        if !is_there {
            return false;
        }
        let last = pc(self.exact, Point::before(self.function.terminator(block)));
        let next = uses.partition_point(|pc| *pc < at);
        uses.get(next).is_some_and(|pc| *pc <= last)
            || self.function.successors(block).iter().any(|target| is_live_in(target.block))
    }

    /// Computes the live range of a value defined in `home`: walks from each use backward over
    /// predecessors until it reaches `home`.
    fn range(&mut self, value: Value, home: Block) -> Range {
        let users = self.function.users(value);
        let mut uses: Vec<u32> =
            users.iter().map(|inst| pc(self.exact, Point::before(*inst))).collect();
        uses.sort_unstable();
        let home = self.cfg.number(home);
        let mut live_in = Vec::new();
        let mut work: Vec<u32> = users
            .iter()
            .filter_map(|inst| self.cfg.number(self.function.inst_block(*inst)))
            .collect();
        while let Some(n) = work.pop() {
            if Some(n) != home && self.seen[n as usize].replace(value) != Some(value) {
                live_in.push(n);
                work.extend(self.cfg.preds(n));
            }
        }
        live_in.sort_unstable();
        Range { uses, live_in }
    }

    fn finish(self) -> Vec<(Value, Value)> {
        let mut shared = Vec::new();
        for group in &self.groups {
            // The pinned member must be the root, because only the root keeps its slot.
            let Some(root) =
                group.iter().copied().min_by_key(|value| (!(self.pinned)(*value), *value))
            else {
                continue;
            };
            shared.extend(group.iter().filter(|value| **value != root).map(|value| (*value, root)));
        }
        shared.sort_unstable();
        shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::decode;
    use ir::text::parse_module;

    /// The coalesced values of `@f`, each as "value in root", by name.
    fn shared(text: &str, pinned: &[&str]) -> Vec<String> {
        let module = parse_module(text).unwrap_or_else(|errors| panic!("{errors:?}"));
        let function =
            module.body(module.lookup("f").expect("the text has it")).expect("it has a body");
        let exact = decode(&module, function);
        let name = |value: Value| function.value_name(value).expect("the text names every value");
        let choice = SlotChoice { pinned: |value| pinned.contains(&name(value)), apart: |_| false };
        let pairs = coalesce(function, &exact, choice);
        pairs.iter().map(|(value, root)| format!("{} in {}", name(*value), name(*root))).collect()
    }

    const SUM: &str = r"
func @f(%n: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump head(%zero, %zero)
head(%i: i32, %acc: i32):
  %sum = add.i32 %acc, %i
  %j = add.i32 %i, %one
  %more = ult.i32 %j, %n
  br_if %more, head(%j, %sum), done
done:
  return %sum
}";

    #[test]
    fn values_that_a_loop_carries_need_no_moves() {
        assert_eq!(shared(SUM, &[]), ["sum in acc", "j in i"]);
    }

    #[test]
    fn a_pinned_value_keeps_its_slot() {
        assert_eq!(shared(SUM, &["j"]), ["i in j", "sum in acc"]);
        assert_eq!(shared(SUM, &["j", "i", "sum"]), ["acc in sum"]);
    }

    #[test]
    fn values_that_are_read_late_stay_apart() {
        // `i` is read after `j` is defined, and `acc` is read after the loop.
        let late = SUM.replace("ult.i32 %j", "ult.i32 %i").replace("return %sum", "return %acc");
        assert_eq!(shared(&late, &[]), [""; 0]);
    }

    #[test]
    fn parameters_of_one_block_stay_apart() {
        let swapped = SUM.replace("head(%j, %sum)", "head(%sum, %j)");
        // `acc` is dead where `j` is defined, but `i` is live where `sum` is defined.
        assert_eq!(shared(&swapped, &[]), ["j in acc"]);
        let twice = SUM.replace("head(%j, %sum)", "head(%j, %j)");
        assert_eq!(shared(&twice, &[]), ["j in i"]);
    }

    /// Liveness alone would let `a` and `b` share a slot, because neither is ever live. Both are
    /// defined at the block start, so they interfere.
    #[test]
    fn unread_parameters_stay_apart() {
        let dead = SUM
            .replace("jump head(%zero, %zero)", "jump head(%zero, %zero, %zero)")
            .replace("head(%i: i32, %acc: i32)", "head(%i: i32, %a: i32, %b: i32)")
            .replace("add.i32 %acc, %i", "add.i32 %i, %i")
            .replace("head(%j, %sum)", "head(%j, %sum, %sum)");
        assert_eq!(shared(&dead, &[]), ["sum in a", "j in i"]);
    }

    #[test]
    fn arguments_of_edges_into_a_join_within_a_loop() {
        let text = r"
func @f(%n: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump head(%zero)
head(%i: i32):
  %j = add.i32 %i, %one
  %odd = and.i32 %j, %one
  br_if %odd, twice, latch(%j)
twice:
  %k = add.i32 %j, %j
  jump latch(%k)
latch(%l: i32):
  %more = ult.i32 %l, %n
  br_if %more, head(%l), done
done:
  return %l
}";
        assert_eq!(shared(text, &[]), ["l in i", "j in i", "k in i"]);
    }

    #[test]
    fn functions_without_loops_are_left_alone() {
        let text = SUM.replace("br_if %more, head(%j, %sum), done", "jump done");
        assert_eq!(shared(&text, &[]), [""; 0]);
    }
}
