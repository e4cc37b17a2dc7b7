//! Memory SSA: which write a read sees.
//!
//! Memory as a whole (bytes, sizes and globals) is treated as one variable in SSA form: each write
//! defines it anew, and where different definitions meet a *merge* does. [`MemorySsa`] has for each
//! reachable block the definition at its start, and for each instruction that reads or writes the
//! one before it. Merges stand only where they are needed: at the iterated dominance frontier of
//! the blocks that write, by the linear algorithm of Sreedhar and Gao ("A linear time algorithm for
//! placing phi-nodes", 1995).
//!
//! One chain for all of memory says little by itself. [`Clobbers`] walks it upward for one place,
//! past writes that are apart from it (Novillo, "Memory SSA", 2007): the definition it ends at is
//! the last that may have changed the place.

use crate::access::Access;
use crate::cfg::{Cfg, check_stamp};
use crate::dom::DomTree;
use crate::entity::{Block, Inst, Value};
use crate::function::Function;
use crate::opcode::Effects;
use cranelift_entity::EntityRef;
use fixedbitset::FixedBitSet;
use std::collections::{BTreeSet, HashMap};

/// How many definitions one question walks past.
pub const STEPS: u32 = 32;

/// Where memory got the contents it has at some place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Definition {
    /// The start of the function.
    Entry,
    /// An instruction that writes.
    Write(Inst),
    /// The start of a block where different definitions meet.
    Merge(Block),
}

/// The definitions of memory, and which of them each read and each block sees.
///
/// Holds for one stamp of one function; queries that take the function panic on another.
#[derive(Clone, Debug)]
pub struct MemorySsa {
    stamp: u64,
    /// By block index; `None` of unreachable blocks.
    start: Vec<Option<Definition>>,
    end: Vec<Option<Definition>>,
    /// By instruction index: of those that read or write, in reachable blocks.
    before: Vec<Option<Definition>>,
    merges: Vec<Block>,
}

impl MemorySsa {
    /// Cost: linear in blocks, edges and instructions.
    ///
    /// # Panics
    /// When `dom` is stale.
    pub fn new(function: &Function, dom: &DomTree) -> MemorySsa {
        dom.check(function);
        let merges = merges(function, dom);
        let mut ssa = MemorySsa {
            stamp: function.stamp(),
            start: vec![None; function.block_bound()],
            end: vec![None; function.block_bound()],
            before: vec![None; function.inst_bound()],
            merges: Vec::new(),
        };
        for (number, &block) in dom.cfg().rpo().iter().enumerate() {
            let above = dom.idom(block).map(|b| ssa.end[b.index()].expect("dominators come first"));
            let start = match above {
                Some(_) if merges.contains(number) => {
                    ssa.merges.push(block);
                    Definition::Merge(block)
                }
                Some(above) => above,
                None => Definition::Entry,
            };
            ssa.start[block.index()] = Some(start);
            ssa.end[block.index()] = Some(ssa.visit(function, block, start));
        }
        ssa
    }

    /// Goes down a block; the definition at its end.
    fn visit(&mut self, function: &Function, block: Block, start: Definition) -> Definition {
        let mut at = start;
        for inst in function.block_insts(block) {
            let effects = function.inst(inst).opcode.effects();
            if effects.has(Effects::READS) || effects.has(Effects::WRITES) {
                self.before[inst.index()] = Some(at);
            }
            if effects.has(Effects::WRITES) {
                at = Definition::Write(inst);
            }
        }
        at
    }

    /// The stamp of the function this was computed on.
    pub fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Checks that the function has not changed since.
    ///
    /// # Panics
    /// When it has.
    pub fn check(&self, function: &Function) {
        check_stamp("MemorySsa", self.stamp, function);
    }

    /// The definition at the start of a block; `None` if it is unreachable.
    pub fn at_start(&self, block: Block) -> Option<Definition> {
        self.start.get(block.index()).copied().flatten()
    }

    /// The definition at the end of a block; `None` if it is unreachable.
    pub fn at_end(&self, block: Block) -> Option<Definition> {
        self.end.get(block.index()).copied().flatten()
    }

    /// The definition that a read sees or a write replaces; `None` of other instructions and in
    /// unreachable blocks.
    pub fn before(&self, inst: Inst) -> Option<Definition> {
        self.before.get(inst.index()).copied().flatten()
    }

    /// The blocks that begin with a merge, in reverse postorder.
    pub fn merges(&self) -> &[Block] {
        &self.merges
    }
}

/// The blocks that need a merge, by rpo number: the iterated dominance frontier of those that
/// write.
fn merges(function: &Function, dom: &DomTree) -> FixedBitSet {
    let cfg = dom.cfg();
    let levels = levels(dom);
    let writes = |block: &Block| {
        let mut insts = function.block_insts(*block);
        insts.any(|i| function.inst(i).opcode.effects().has(Effects::WRITES))
    };
    // Deepest first, so that each subtree is walked once.
    let mut queue: BTreeSet<(u32, usize)> = cfg
        .rpo()
        .iter()
        .enumerate()
        .filter(|(_, b)| writes(b))
        .map(|(n, _)| (levels[n], n))
        .collect();
    let mut found = FixedBitSet::with_capacity(cfg.rpo().len());
    let mut visited = FixedBitSet::with_capacity(cfg.rpo().len());
    while let Some((level, root)) = queue.pop_last() {
        let mut work = vec![root];
        visited.insert(root);
        while let Some(number) = work.pop() {
            for &to in cfg.succs(number as u32) {
                let to = to as usize;
                if levels[to] <= level && !found.put(to) {
                    queue.insert((levels[to], to));
                }
            }
            let children = dom.children(cfg.block(number as u32)).iter();
            work.extend(children.filter_map(|b| cfg.rpo_index(*b)).filter(|n| !visited.put(*n)));
        }
    }
    found
}

/// The depth of each block in the dominator tree, by rpo number.
fn levels(dom: &DomTree) -> Vec<u32> {
    let cfg = dom.cfg();
    let mut levels = vec![0; cfg.rpo().len()];
    for (number, block) in cfg.rpo().iter().enumerate() {
        let above = dom.idom(*block).and_then(|b| cfg.rpo_index(b));
        levels[number] = above.map_or(0, |n| levels[n] + 1);
    }
    levels
}

/// Finds the last definition that may have changed a place.
///
/// A walk goes past a write of one place apart from the one asked for. It goes past a merge when
/// the walks from all incoming edges end at one definition, this merge itself aside, and the place
/// is counted from the same address on all rounds: the base of the address is bound strictly above
/// the merge. It ends at everything else: calls and growth of memory write anything. It also ends,
/// wherever it is, after [`STEPS`] definitions: what it ends at is always right, if not always the
/// best.
///
/// *Why the base must be bound above the merge*: a walk compares addresses of one instance of their
/// base. As long as it passes no merge it stays among definitions that dominate each other, and no
/// base is bound anew on the way. Around a loop one may be: `store [x + 4]` of the last round is
/// not apart from `load [x]` of this one.
#[derive(Debug)]
pub struct Clobbers<'a> {
    function: &'a Function,
    dom: &'a DomTree,
    ssa: &'a MemorySsa,
    /// By value index: what stands for a value, if not the value itself.
    leader: HashMap<Value, Value>,
    /// Answers to whole questions, of accesses as their leaders were. Asked and never iterated.
    memo: HashMap<(Access, Definition), Definition>,
}

/// A question under way.
struct Walk<'w> {
    access: Access,
    /// Whether the address is the same each time control comes to a block.
    is_fixed_at: &'w dyn Fn(Block) -> bool,
    /// The merges whose incoming edges are being walked.
    open: Vec<Block>,
    left: u32,
}

impl<'a> Clobbers<'a> {
    /// Cost: none; questions cost up to [`STEPS`] steps each.
    ///
    /// # Panics
    /// When `dom` or `ssa` is stale.
    pub fn new(function: &'a Function, dom: &'a DomTree, ssa: &'a MemorySsa) -> Clobbers<'a> {
        dom.check(function);
        ssa.check(function);
        Clobbers { function, dom, ssa, leader: HashMap::new(), memo: HashMap::new() }
    }

    /// Takes a value to equal another, whose definition dominates that of the first, wherever both
    /// are available.
    pub fn equate(&mut self, value: Value, leader: Value) {
        let leader = self.leader(leader);
        self.leader.insert(value, leader);
    }

    /// What stands for a value.
    pub fn leader(&self, value: Value) -> Value {
        self.leader.get(&value).copied().unwrap_or(value)
    }

    /// As [`Access::read`], of values equated.
    pub fn read(&self, inst: Inst) -> Option<Access> {
        Access::read(self.function, inst, |v| self.leader(v))
    }

    /// As [`Access::written`], of values equated.
    pub fn written(&self, inst: Inst) -> Option<Access> {
        Access::written(self.function, inst, |v| self.leader(v))
    }

    /// What may have last changed the place that an instruction reads; `None` if it reads nothing,
    /// or more than one place, or is unreachable.
    ///
    /// The definition dominates the instruction, and nothing that executes between its last
    /// execution and the instruction writes the place.
    pub fn of_read(&mut self, inst: Inst) -> Option<Definition> {
        let access = self.read(inst)?;
        let from = self.ssa.before(inst)?;
        if let Some(known) = self.memo.get(&(access, from)) {
            return Some(*known);
        }
        let found = self.walk(access, from, &|block| self.is_above(access, block));
        self.memo.insert((access, from), found);
        Some(found)
    }

    /// As [`Clobbers::of_read`], where `is_fixed_at` says of blocks at which the base of the
    /// address is not bound strictly above that the address is the same each time control comes
    /// there all the same.
    pub fn of_fixed_read(
        &self,
        inst: Inst,
        is_fixed_at: impl Fn(Block) -> bool,
    ) -> Option<Definition> {
        let access = self.read(inst)?;
        let from = self.ssa.before(inst)?;
        Some(self.walk(access, from, &|block| self.is_above(access, block) || is_fixed_at(block)))
    }

    /// Whether the base of an address is bound strictly above a block.
    fn is_above(&self, access: Access, block: Block) -> bool {
        let Some(base) = access.address.and_then(|a| a.base()) else { return true };
        let home = self.function.value_block(base);
        home != block && self.dom.dominates(home, block)
    }

    fn walk(
        &self,
        access: Access,
        from: Definition,
        is_fixed_at: &dyn Fn(Block) -> bool,
    ) -> Definition {
        let mut walk = Walk { access, is_fixed_at, open: Vec::new(), left: STEPS };
        self.upward(&mut walk, from)
    }

    /// Walks until something may have changed the place. Merges nest no deeper than the steps that
    /// are left.
    fn upward(&self, walk: &mut Walk<'_>, from: Definition) -> Definition {
        let mut at = from;
        loop {
            let next = match at {
                Definition::Entry => None,
                Definition::Write(inst) => self.past_write(walk, inst),
                Definition::Merge(block) => self.past_merge(walk, block),
            };
            match next {
                Some(next) => at = next,
                None => return at,
            }
        }
    }

    fn past_write(&self, walk: &mut Walk<'_>, inst: Inst) -> Option<Definition> {
        let is_apart = match self.written(inst) {
            Some(written) => written.is_apart_from(&walk.access),
            None => false,
        };
        if !is_apart {
            return None;
        }
        walk.left = walk.left.checked_sub(1)?;
        self.ssa.before(inst)
    }

    /// The one definition that the walks from all incoming edges end at.
    fn past_merge(&self, walk: &mut Walk<'_>, block: Block) -> Option<Definition> {
        if walk.open.contains(&block) || !(walk.is_fixed_at)(block) {
            return None;
        }
        walk.left = walk.left.checked_sub(1)?;
        walk.open.push(block);
        let agreed = self.agreed(walk, block);
        walk.open.pop();
        agreed
    }

    fn agreed(&self, walk: &mut Walk<'_>, block: Block) -> Option<Definition> {
        let cfg: &Cfg = self.dom.cfg();
        let number = cfg.number(block).expect("merges are reachable");
        let mut agreed = None;
        for &from in cfg.preds(number) {
            let end = self.ssa.at_end(cfg.block(from)).expect("reachable predecessors");
            let found = self.upward(walk, end);
            if found == Definition::Merge(block) {
                continue;
            }
            if *agreed.get_or_insert(found) != found {
                return None;
            }
        }
        agreed
    }
}
