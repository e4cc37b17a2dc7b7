//! Uses behind an assumption read its result.
//!
//! *Does*: replaces the operand of an assumption by its result in every use that the assumption
//! dominates. Example: behind `%y = assume.i32 %x, 7, 1`, `add.i32 %x, %k` becomes
//! `add.i32 %y, %k`, and `sccp` knows the operand. If the operand is `ne.i32 %x, 0`, branches
//! behind the assumption that test `%x` test the result instead.
//!
//! *Does not*: replace the operand in the assumption itself, nor in uses that only some paths reach
//! over the assumption; look at values computed from the operand.
//!
//! *Needs on entry*: the log that it runs in adds the assumptions of its list. In a pair whose
//! versions both make an assumption, its result is the constant and no longer the operand, and the
//! certifier cannot explain the use ([`crate::speculate`]).
//!
//! *Holds on exit*: no assumption of the list dominates a use of its operand by another
//! instruction.
//!
//! *Actions emitted*: `replace_operand`.
//!
//! *Effect on mappings*: none of its own. In the pair whose log adds the assumption, operand and
//! result are one class.
//!
//! *Why correct*: where the result is available, the assumption has held, so operand and result
//! have the same bits. A branch tests whether its operand is zero, and so does `ne.i32 %x, 0`.
//!
//! *Cost*: one dominator tree, and near linear in the assumptions and the uses of their operands.

use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::edit::{Editor, Pass};
use ir::{Function, Inst, Opcode, Type, Value};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The pass. See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct Refine<'a> {
    /// The assumptions added by the log, in any order. Uses are to read their results.
    pub added: &'a [Inst],
}

impl Pass for Refine<'_> {
    fn name(&self) -> &'static str {
        "refine"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        for ((user, index), result) in uses_behind(ed.func(), self.added) {
            if ed.plan("use-behind-assumption") {
                ed.replace_operand(user, index, result);
            }
        }
    }
}

/// The operands to replace, each an instruction and an index, with the results to read.
fn uses_behind(f: &Function, added: &[Inst]) -> BTreeMap<(Inst, usize), Value> {
    let cfg = Cfg::new(f);
    let dom = DomTree::new(f, &cfg);
    let order = Preorder::new(f, &dom);
    let mut found = BTreeMap::new();
    for (value, claims) in claims(f, &cfg, added) {
        let mut dominates = |a: Inst, b: Inst| dom.inst_dominates(f, a, b);
        let users = order.sorted(f.users(value).iter().chain(claims.keys()).copied());
        read_nearest(f, value, &claims, &users, &mut dominates, &mut found);
    }
    found
}

/// An assumption as a claim about one value.
#[derive(Clone, Copy)]
struct ReadClaim {
    /// Its result, which uses read.
    result: Value,
    /// Whether only branches that test the value may read it.
    in_branches_alone: bool,
}

/// By value: the assumptions about it that a run reaches.
fn claims(f: &Function, cfg: &Cfg, added: &[Inst]) -> BTreeMap<Value, BTreeMap<Inst, ReadClaim>> {
    let mut all: BTreeMap<Value, BTreeMap<Inst, ReadClaim>> = BTreeMap::new();
    for &inst in added.iter().filter(|inst| cfg.is_reachable(f.inst_block(**inst))) {
        let data = f.inst(inst);
        let (Opcode::Assume, [operand, ..], Some(result)) =
            (data.opcode, &data.args[..], data.result())
        else {
            continue;
        };
        let mut claim = |value: Value, in_branches_alone: bool| {
            all.entry(value).or_default().insert(inst, ReadClaim { result, in_branches_alone });
        };
        claim(*operand, false);
        if let Some(tested) = tested(f, *operand) {
            claim(tested, true);
        }
    }
    all
}

/// The reachable instructions in a preorder of the dominator tree: the instructions that an
/// instruction dominates are one stretch behind it.
struct Preorder<'f> {
    f: &'f Function,
    /// By index of a block; `None` if it is unreachable.
    place: Vec<Option<u32>>,
}

impl<'f> Preorder<'f> {
    fn new(f: &'f Function, dom: &DomTree) -> Preorder<'f> {
        let mut place = vec![None; f.block_bound()];
        for (index, block) in (0..).zip(dom.preorder()) {
            place[block.as_u32() as usize] = Some(index);
        }
        Preorder { f, place }
    }

    /// Instructions in preorder, each once, without unreachable instructions.
    fn sorted(&self, insts: impl Iterator<Item = Inst>) -> Vec<Inst> {
        let placed =
            |inst: Inst| Some((self.place[self.f.inst_block(inst).as_u32() as usize]?, inst));
        let mut all: Vec<(u32, Inst)> = insts.filter_map(placed).collect();
        let in_block = |a: Inst, b: Inst| match (a == b, self.f.stands_before(a, b)) {
            (true, _) => Ordering::Equal,
            (false, true) => Ordering::Less,
            (false, false) => Ordering::Greater,
        };
        all.sort_unstable_by(|(a, x), (b, y)| a.cmp(b).then_with(|| in_block(*x, *y)));
        all.dedup();
        all.into_iter().map(|(_, inst)| inst).collect()
    }
}

/// The results that the uses of a value read: each use reads the result of the nearest assumption
/// above it about the value. Cost: two questions about dominance for each of `users`, which are in
/// the order of [`Preorder`] (`each_use_costs_two_questions_about_dominance`).
fn read_nearest(
    f: &Function,
    value: Value,
    claims: &BTreeMap<Inst, ReadClaim>,
    users: &[Inst],
    dominates: &mut impl FnMut(Inst, Inst) -> bool,
    found: &mut BTreeMap<(Inst, usize), Value>,
) {
    // The assumptions that dominate the instruction at hand, the nearest last, each with the
    // results that branches and other uses read behind it. An assumption that does not dominate it
    // dominates no later instruction in a preorder.
    let mut above: Vec<(Inst, Value, Option<Value>)> = Vec::new();
    for &user in users {
        while above.last().is_some_and(|(inst, ..)| !dominates(*inst, user)) {
            above.pop();
        }
        let nearest = above.last().map(|(_, in_branches, elsewhere)| (*in_branches, *elsewhere));
        let data = f.inst(user);
        for (index, _) in data.operands().enumerate().filter(|(_, v)| *v == value) {
            // The operands of a branch behind the first are arguments of the targets.
            let is_asked = data.opcode == Opcode::BrIf && index == 0;
            let read = nearest.and_then(|(result, elsewhere)| match is_asked {
                true => Some(result),
                false => elsewhere,
            });
            found.extend(read.map(|result| ((user, index), result)));
        }
        if let Some(ReadClaim { result, in_branches_alone }) = claims.get(&user).copied() {
            let elsewhere = nearest.and_then(|(_, elsewhere)| elsewhere);
            above.push((user, result, if in_branches_alone { elsewhere } else { Some(result) }));
        }
    }
}

/// The operand of `ne.i32 %x, 0`.
fn tested(f: &Function, value: Value) -> Option<Value> {
    let data = f.inst(f.defining_inst(value)?);
    let [x, zero] = &data.args[..] else { return None };
    let is_test = data.opcode == Opcode::Ne && f.constant(*zero) == Some(0);
    (is_test && data.ty == Type::I32).then_some(*x)
}

#[cfg(test)]
mod tests;
