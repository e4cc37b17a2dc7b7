//! Memory SSA: for each read, the write whose result it reads.
//!
//! The analysis treats the whole memory (bytes, sizes and globals) as one variable in SSA form.
//! Each write defines it anew, and a *merge* defines it where different definitions meet.
//! [`MemorySsa`] gives for each reachable block the definition at its start. For each instruction
//! that reads or writes, it gives the definition before the instruction. Merges exist only at the
//! iterated dominance frontier of the blocks that write. The linear algorithm of Sreedhar and Gao
//! computes that frontier ("A linear time algorithm for placing phi-nodes", 1995).
//!
//! A single chain for all of memory is imprecise. [`Clobbers`] therefore walks the chain upward for
//! one place and skips writes of disjoint places (Novillo, "Memory SSA", 2007). The walk ends at
//! the last definition that may have changed the place.

use crate::access::Access;
use crate::cfg::{Cfg, check_stamp};
use crate::dom::DomTree;
use crate::entity::{Block, Inst, Value};
use crate::function::Function;
use crate::opcode::Effects;
use cranelift_entity::EntityRef;
use fixedbitset::FixedBitSet;
use std::collections::{BTreeSet, HashMap};

/// The most definitions that a query walks past.
pub const STEPS: u32 = 32;

/// The origin of the contents of memory at a point.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Definition {
    /// The start of the function.
    Entry,
    /// An instruction that writes.
    Write(Inst),
    /// The start of a block where different definitions meet.
    Merge(Block),
}

/// The definitions of memory, and for each read and each block the definition that reaches it.
///
/// The result is valid for one stamp of one function. Queries that take the function panic on any
/// other stamp.
#[derive(Clone, Debug)]
pub struct MemorySsa {
    stamp: u64,
    /// By block index; `None` for unreachable blocks.
    start: Vec<Option<Definition>>,
    end: Vec<Option<Definition>>,
    /// By instruction index; `Some` for reads and writes in reachable blocks.
    before: Vec<Option<Definition>>,
    merges: Vec<Block>,
}

impl MemorySsa {
    /// Computes the analysis. Cost: linear in the number of blocks, edges and instructions.
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

    /// Records the definition before each read and write of a block, and returns the definition at
    /// its end.
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

    /// The stamp of the function that the analysis was computed on.
    pub fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Checks that the function has not changed since the analysis was computed.
    ///
    /// # Panics
    /// When the function has changed.
    pub fn check(&self, function: &Function) {
        check_stamp("MemorySsa", self.stamp, function);
    }

    /// The definition at the start of a block; `None` if the block is unreachable.
    pub fn at_start(&self, block: Block) -> Option<Definition> {
        self.start.get(block.index()).copied().flatten()
    }

    /// The definition at the end of a block; `None` if the block is unreachable.
    pub fn at_end(&self, block: Block) -> Option<Definition> {
        self.end.get(block.index()).copied().flatten()
    }

    /// The definition that a read reads or a write replaces; `None` for other instructions and in
    /// unreachable blocks.
    pub fn before(&self, inst: Inst) -> Option<Definition> {
        self.before.get(inst.index()).copied().flatten()
    }

    /// The blocks that begin with a merge, in reverse postorder.
    pub fn merges(&self) -> &[Block] {
        &self.merges
    }
}

/// The blocks that need a merge, by reverse-postorder number: the iterated dominance frontier of
/// the blocks that write.
fn merges(function: &Function, dom: &DomTree) -> FixedBitSet {
    let cfg = dom.cfg();
    let levels = levels(dom);
    let writes = |block: &Block| {
        let mut insts = function.block_insts(*block);
        insts.any(|i| function.inst(i).opcode.effects().has(Effects::WRITES))
    };
    // The queue yields the deepest block first, so the walk visits each subtree of the dominator
    // tree once.
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
                // An edge from the subtree to a block no deeper than the root leaves the region
                // that the root dominates. Its target is in the root's dominance frontier. A merge
                // is itself a definition and enters the queue.
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

/// The depth of each block in the dominator tree, by reverse-postorder number.
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
/// A walk goes past a write whose place is disjoint from the queried place. It goes past a merge
/// under two conditions:
///
/// - The walks from all incoming edges end at the same definition, apart from the merge itself.
/// - The base of the address is bound strictly above the merge, so the address is the same in every
///   iteration.
///
/// The walk ends at every other definition, because calls and memory growth may write anything. It
/// also ends after [`STEPS`] definitions. The answer is then still correct, but may be less
/// precise.
///
/// *Why the base must be bound above the merge*: a walk compares addresses that use one instance of
/// their base. While the walk passes no merge, its definitions dominate each other, and no base is
/// bound anew between them. Around a loop, a base may be bound anew. The `store [x + 4]` of the
/// previous iteration may then overlap the `load [x]` of the current one.
#[derive(Debug)]
pub struct Clobbers<'a> {
    function: &'a Function,
    dom: &'a DomTree,
    ssa: &'a MemorySsa,
    /// By value: the representative of a value that was equated with another.
    leader: HashMap<Value, Value>,
    /// Answers to complete queries, by the access over representatives. The map is never iterated,
    /// so its hash order cannot reach a result.
    memo: HashMap<(Access, Definition), Definition>,
}

/// The state of one query.
struct MemoryQuery<'w> {
    access: Access,
    /// Whether the address is the same at every visit of a block.
    is_fixed_at: &'w dyn Fn(Block) -> bool,
    /// The merges whose incoming edges the query is walking. They stop the recursion around a loop.
    open: Vec<Block>,
    left: u32,
}

impl<'a> Clobbers<'a> {
    /// Prepares queries, at no cost. Each query costs up to [`STEPS`] steps.
    ///
    /// # Panics
    /// When `dom` or `ssa` is stale.
    pub fn new(function: &'a Function, dom: &'a DomTree, ssa: &'a MemorySsa) -> Clobbers<'a> {
        dom.check(function);
        ssa.check(function);
        Clobbers { function, dom, ssa, leader: HashMap::new(), memo: HashMap::new() }
    }

    /// Declares that `value` equals `leader` wherever both are available. The definition of
    /// `leader` must dominate the definition of `value`.
    pub fn equate(&mut self, value: Value, leader: Value) {
        let leader = self.leader(leader);
        self.leader.insert(value, leader);
    }

    /// The representative of a value.
    pub fn leader(&self, value: Value) -> Value {
        self.leader.get(&value).copied().unwrap_or(value)
    }

    /// As [`Access::read`], over representatives.
    pub fn read(&self, inst: Inst) -> Option<Access> {
        Access::read(self.function, inst, |v| self.leader(v))
    }

    /// As [`Access::written`], over representatives.
    pub fn written(&self, inst: Inst) -> Option<Access> {
        Access::written(self.function, inst, |v| self.leader(v))
    }

    /// The last definition that may have changed the place that an instruction reads. `None` if the
    /// instruction is unreachable, or does not read exactly one place.
    ///
    /// The definition dominates the instruction. No write between its last execution and the
    /// instruction changes the place.
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

    /// As [`Clobbers::of_read`], with further blocks at which the address is fixed. `is_fixed_at`
    /// must return `true` only for blocks at which the address is the same at every visit. It may
    /// also return `true` for a block where the base is not bound strictly above.
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
        let mut walk = MemoryQuery { access, is_fixed_at, open: Vec::new(), left: STEPS };
        self.upward(&mut walk, from)
    }

    /// Walks until it reaches a definition that may have changed the place. The recursion through
    /// merges is no deeper than the number of steps left.
    fn upward(&self, walk: &mut MemoryQuery<'_>, from: Definition) -> Definition {
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

    fn past_write(&self, walk: &mut MemoryQuery<'_>, inst: Inst) -> Option<Definition> {
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

    /// The single definition at which the walks from all incoming edges end; `None` if they differ.
    fn past_merge(&self, walk: &mut MemoryQuery<'_>, block: Block) -> Option<Definition> {
        // The query is already walking the edges of an open merge, and has come back to it around a
        // loop. The walk ends here; `agreed` ignores the edge if it belongs to the same merge.
        if walk.open.contains(&block) || !(walk.is_fixed_at)(block) {
            return None;
        }
        walk.left = walk.left.checked_sub(1)?;
        walk.open.push(block);
        let agreed = self.agreed(walk, block);
        walk.open.pop();
        agreed
    }

    fn agreed(&self, walk: &mut MemoryQuery<'_>, block: Block) -> Option<Definition> {
        let cfg: &Cfg = self.dom.cfg();
        let number = cfg.number(block).expect("merges are reachable");
        let mut agreed = None;
        for &from in cfg.preds(number) {
            let end = self.ssa.at_end(cfg.block(from)).expect("reachable predecessors");
            let found = self.upward(walk, end);
            // Around a loop without a write to the place, the walk returns to this merge: the edge
            // adds no new definition.
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
