//! Dead store elimination.
//!
//! *Does*: removes a store, or a write of a global, that no instruction observes. On every path
//! from it, other writes cover its place before any instruction reads the place, leaves the
//! function or may trap.
//!
//! *Does not*: follow control past a block with several predecessors, so the paths form a tree (a
//! certificate must say for every point between which write covers the store on which path);
//! combine several writes to cover one; search beyond a few blocks; remove a store of the value
//! that memory already holds; treat the end of the function as the end of memory.
//!
//! *Needs on entry*: nothing. `cse` run before makes equal addresses one value, and `load_elim`
//! removes reads between stores.
//!
//! *Holds on exit*: nothing.
//!
//! *Actions emitted*: `delete`.
//!
//! *Effect on mappings*: between the place of the store and the writes that cover it, the memory of
//! the optimized version is behind. The optimized code cannot observe that, but a backward
//! transition there must replay the store.
//!
//! *Why correct*: memory is observed only at reads, calls, growth, traps and returns. Between the
//! store and its covering writes, reads and other writes access disjoint places, and no instruction
//! traps. An access that may trap counts as safe if an earlier access *vouches for* it: one of at
//! least as many bytes at the same address value (`Place::vouches_for`), possibly the store itself.
//! A read of bytes that several later writes left in parts counts as an observer. It does not
//! observe the store, but its value depends on all the memory below the parts. Certificates follow
//! a read to one write only. The trap of the store itself is kept. Either a dominating access
//! vouches for the store, or the next access in its block traps in its place, with the same memory.
//! The pass decides on stores from the last to the first, each as if the stores already chosen were
//! deleted. The checker requires the same conditions of a lone write.
//!
//! *Cost*: linear in instructions, times a constant for each write (the limits below).

use ir::access::Access;
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::edit::{Editor, Pass};
use ir::place::{Place, gives_back};
use ir::{Block, Effects, Function, Inst, Memory, Opcode, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The number of instructions after a store that the pass examines at most: a bound on cost.
const INSTRUCTIONS: usize = 64;
/// The number of successor blocks that the pass follows from a store at most: a bound on cost.
const BLOCKS: usize = 8;

/// The pass. See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct Dse;

impl Pass for Dse {
    fn name(&self) -> &'static str {
        "dse"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        let mut kept = BTreeSet::new();
        while let Some(refused) = delete_overwritten(ed, &kept) {
            if !(ed.has_fuel() && kept.insert(refused)) {
                return;
            }
        }
    }
}

/// Deletes all overwritten stores except the stores to keep. Stops at the first refused deletion
/// and returns its store: it may observe that an earlier store is missing, so the caller decides on
/// the remaining stores anew.
fn delete_overwritten(ed: &mut Editor<'_>, kept: &BTreeSet<Inst>) -> Option<Inst> {
    for store in OverwriteSearch::run(ed.func(), kept) {
        if !ed.plan("overwritten") {
            return Some(store);
        }
        ed.delete(store);
    }
    None
}

struct OverwriteSearch<'f> {
    function: &'f Function,
    /// For an access, the dominating access of most bytes at its address.
    voucher: BTreeMap<Inst, Inst>,
    /// The stores chosen for deletion.
    gone: BTreeSet<Inst>,
    /// The chosen stores whose trap the next access reproduces. Memory before them must not change.
    relying: BTreeSet<Inst>,
}

/// The effect of an instruction after a store on the store's visibility.
enum Sight {
    /// It cannot observe the store.
    Nothing,
    /// It may observe that the store is missing.
    Seen,
    /// It overwrites every byte that the store has written.
    Covered,
}

impl OverwriteSearch<'_> {
    /// The stores to delete, in an order in which each deletion is correct after the deletions
    /// before it.
    fn run(function: &Function, kept: &BTreeSet<Inst>) -> Vec<Inst> {
        let dom = DomTree::new(function, &Cfg::new(function));
        let mut search = OverwriteSearch {
            function,
            voucher: vouchers(function, &dom),
            gone: BTreeSet::new(),
            relying: BTreeSet::new(),
        };
        let mut found = Vec::new();
        // Last first: the accesses that dominate a store are still present when it is decided on.
        for &block in dom.cfg().rpo().iter().rev() {
            let mut stores: Vec<Inst> = function.block_insts(block).collect();
            stores.retain(|i| written(function, *i).is_some());
            for &store in stores.iter().rev().filter(|store| !kept.contains(store)) {
                let is_relying = search.may_trap(store);
                let is_trap_kept = !is_relying || search.next_traps_like(store);
                if is_trap_kept && search.is_overwritten(store) {
                    search.gone.insert(store);
                    if is_relying {
                        search.relying.insert(store);
                    }
                    found.push(store);
                }
            }
        }
        found
    }

    /// Whether no instruction can observe that a store is missing.
    fn is_overwritten(&self, store: Inst) -> bool {
        let access = written(self.function, store).expect("a store writes one place");
        let first = self.function.next_inst(store).expect("a store is not a terminator");
        // The start of each open path with the number of writes passed before it. The paths form a
        // tree; the walk is depth first, so truncating `passed` restores the writes of a path.
        let mut ways = vec![(first, 0)];
        let mut passed: Vec<Inst> = Vec::new();
        let (mut instructions, mut blocks) = (0, 0);
        while let Some((mut next, writes)) = ways.pop() {
            passed.truncate(writes);
            loop {
                instructions += 1;
                if instructions > INSTRUCTIONS {
                    return false;
                }
                match self.sight(store, &access, next) {
                    Sight::Seen => return false,
                    // This path is done; every other path must be covered too.
                    Sight::Covered => break,
                    Sight::Nothing if self.reads_parts(next, &passed) => return false,
                    Sight::Nothing => {}
                }
                if written(self.function, next).is_some() && !self.gone.contains(&next) {
                    passed.push(next);
                }
                if let Some(inst) = self.function.next_inst(next) {
                    next = inst;
                    continue;
                }
                let Some(on) = self.ways_on(next) else { return false };
                blocks += on.len();
                ways.extend(on.into_iter().map(|start| (start, passed.len())));
                break;
            }
            if blocks > BLOCKS {
                return false;
            }
        }
        true
    }

    /// The first instructions of the successor blocks; `None` if control leaves the function or
    /// enters a block with other predecessors.
    fn ways_on(&self, end: Inst) -> Option<Vec<Inst>> {
        let targets = &self.function.inst(end).targets;
        let is_tree = |block: Block| self.function.predecessors(block).len() == 1;
        let all_trees = !targets.is_empty() && targets.iter().all(|t| is_tree(t.block));
        all_trees.then(|| targets.iter().map(|t| self.function.first_inst(t.block)).collect())
    }

    /// Classifies an instruction after a store.
    fn sight(&self, store: Inst, access: &Access, inst: Inst) -> Sight {
        let data = self.function.inst(inst);
        if self.relying.contains(&inst) {
            return Sight::Seen;
        }
        if self.gone.contains(&inst)
            || matches!(data.opcode, Opcode::Jump | Opcode::BrIf | Opcode::Switch)
        {
            return Sight::Nothing;
        }
        if data.opcode.is_terminator() || self.may_trap_behind(store, inst) {
            return Sight::Seen;
        }
        let effects = data.opcode.effects();
        if !effects.has(Effects::READS) && !effects.has(Effects::WRITES) {
            return Sight::Nothing;
        }
        if let Some(read) = read(self.function, inst) {
            return if read.is_apart_from(access) { Sight::Nothing } else { Sight::Seen };
        }
        match written(self.function, inst) {
            Some(written) if written.covers(access) && self.has_like_address(store, inst) => {
                Sight::Covered
            }
            Some(written) if written.is_apart_from(access) => Sight::Nothing,
            // A transition that replays the store later would overwrite a part of this write.
            Some(_) => Sight::Seen,
            None => Sight::Seen,
        }
    }

    /// Whether an instruction reads bytes that the given writes have left in parts, or reads them
    /// as another type than they were written. The criterion is the last of these writes that may
    /// overlap the read: the read must give back exactly its operand. The test
    /// `a_read_of_parts_keeps_what_lies_below` fails without this.
    fn reads_parts(&self, inst: Inst, writes: &[Inst]) -> bool {
        let f = self.function;
        let Some(read) = read(f, inst) else { return false };
        let written = |write: &Inst| written(f, *write).map(|access| (*write, access));
        let last =
            writes.iter().rev().filter_map(written).find(|(_, access)| !read.is_apart_from(access));
        let data = f.inst(inst);
        last.is_some_and(|(write, access)| {
            let by = f.inst(write);
            let is_whole = gives_back(by.opcode, by.ty, data.opcode, data.ty);
            !(read.covers(&access) && access.covers(&read) && is_whole)
        })
    }

    /// Whether an instruction after a store may trap although the store has not.
    fn may_trap_behind(&self, store: Inst, inst: Inst) -> bool {
        self.may_trap(inst) && !vouches(self.function, store, inst)
    }

    fn may_trap(&self, inst: Inst) -> bool {
        self.function.may_trap(inst) && !self.is_vouched(inst)
    }

    /// Whether the next instruction of the block that may trap, leave, read or write, and is not
    /// chosen for deletion, traps whenever the store does.
    fn next_traps_like(&self, store: Inst) -> bool {
        let f = self.function;
        let counts = |inst: Inst| {
            let effects = f.inst(inst).opcode.effects();
            // A run may leave at an assumption, and then no later access traps in place of the
            // store (`a_store_that_traps_before_an_assumption_stays`).
            let kinds = [Effects::READS, Effects::WRITES, Effects::LEAVES];
            let is_plain = !kinds.into_iter().any(|kind| effects.has(kind)) && !f.may_trap(inst);
            !is_plain && !self.gone.contains(&inst)
        };
        let mut behind =
            std::iter::successors(f.next_inst(store), |i| f.next_inst(*i)).take(INSTRUCTIONS);
        behind.find(|i| counts(*i)).is_some_and(|next| vouches(f, next, store))
    }

    /// Whether two accesses have the same address value or two constant addresses. Comparing sums
    /// would find more, but certificates do not compare sums where a write hides another. Globals
    /// have no address.
    fn has_like_address(&self, store: Inst, other: Inst) -> bool {
        let f = self.function;
        match (f.inst(store).args.as_slice(), f.inst(other).args.as_slice()) {
            ([x, _], [y, _]) => x == y || (f.constant(*x).is_some() && f.constant(*y).is_some()),
            _ => true,
        }
    }

    /// Whether an access cannot trap because a dominating access that stays has not trapped.
    fn is_vouched(&self, inst: Inst) -> bool {
        self.voucher.get(&inst).is_some_and(|v| !self.gone.contains(v))
    }
}

fn read(function: &Function, inst: Inst) -> Option<Access> {
    Access::read(function, inst, |v| v)
}

fn written(function: &Function, inst: Inst) -> Option<Access> {
    Access::written(function, inst, |v| v)
}

fn access(function: &Function, inst: Inst) -> Option<Access> {
    read(function, inst).or_else(|| written(function, inst))
}

/// Whether an access that did not trap proves a second access at the same address value safe.
fn vouches(function: &Function, inst: Inst, other: Inst) -> bool {
    let address = |i: Inst| function.inst(i).args.first().copied();
    let accesses = access(function, inst).zip(access(function, other));
    address(inst) == address(other) && accesses.is_some_and(|(a, b)| a.vouches_for(&b))
}

/// The voucher of each access with a voucher. Candidates are the dominating accesses with at least
/// as many bytes at the same address; the voucher is the first candidate with most bytes.
fn vouchers(function: &Function, dom: &DomTree) -> BTreeMap<Inst, Inst> {
    // A block to enter, or the table entry to restore once the subtree of a block is done.
    enum VoucherStep {
        Enter(Block),
        Restore((Memory, Value), Option<(Access, Inst)>),
    }
    // By address: among the accesses that dominate the current block, the access with most bytes.
    // The walk only looks keys up, so hash order cannot reach the output.
    let mut table: HashMap<(Memory, Value), (Access, Inst)> = HashMap::new();
    let mut found = BTreeMap::new();
    let mut steps = vec![VoucherStep::Enter(function.entry())];
    while let Some(step) = steps.pop() {
        let block = match step {
            VoucherStep::Restore(key, Some(entry)) => {
                table.insert(key, entry);
                continue;
            }
            VoucherStep::Restore(key, None) => {
                table.remove(&key);
                continue;
            }
            VoucherStep::Enter(block) => block,
        };
        for inst in function.block_insts(block) {
            let Some(access) = access(function, inst) else { continue };
            let (Place::Bytes { memory, .. }, Some(&address)) =
                (access.place, function.inst(inst).args.first())
            else {
                continue;
            };
            let key = (memory, address);
            match table.get(&key) {
                Some((most, voucher)) if most.vouches_for(&access) => {
                    _ = found.insert(inst, *voucher)
                }
                _ => steps.push(VoucherStep::Restore(key, table.insert(key, (access, inst)))),
            }
        }
        steps.extend(dom.children(block).iter().map(|b| VoucherStep::Enter(*b)));
    }
    found
}
