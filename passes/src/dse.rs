//! Dead store elimination.
//!
//! *Does*: removes a store, or a write of a global, that nothing can see: on every way on from it
//! other writes cover its place before anything reads it, leaves the function or may trap.
//!
//! *Does not*: follow control past a block that several edges lead to, so that what it looks
//! through is a tree of blocks: which write overwrites on which way must be told of every point
//! between; join several writes to cover one; look further than a few blocks; remove a store of
//! what is there already; take the end of the function for the end of memory.
//!
//! *Needs on entry*: nothing; equal addresses are found best behind `cse`, and reads in between are
//! gone behind `load_elim`.
//!
//! *Holds on exit*: nothing.
//!
//! *Actions emitted*: `delete`.
//!
//! *Effect on mappings*: between the place of the store and the writes that cover it, the optimized
//! version is behind in memory. Nothing can see that, but who leaves for the base there must make
//! up for the store.
//!
//! *Why correct*: of contents, only those at reads, calls, growth, traps and returns count. Between
//! the store and what covers it, reads and other writes are of places apart and nothing traps: what
//! could is vouched for by an access of at least as many bytes at the same value of an address that
//! has passed (`Place::vouches_for`), be it the store itself. A read that finds what other writes
//! since the store left in parts is taken to see it: it does not, but to say what it finds takes
//! all the memory below them, the store included, and certificates follow reads to one write only.
//! The trap of the store itself is kept: an access that dominates vouches for it, or the next
//! access in its block does and traps in its stead, with memory as it would have been. Stores are
//! decided on one after the other, the later first, and each as if those decided on were gone.
//! These are the conditions that the checker asks of a write one version lacks.
//!
//! *Cost*: linear in instructions, times a constant for each write (the limits below).

use ir::access::Access;
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::edit::{Editor, Pass};
use ir::place::{Place, gives_back};
use ir::{Block, Effects, Function, Inst, Memory, Opcode, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// How many instructions behind a store are looked at.
const INSTRUCTIONS: usize = 64;
/// And how many blocks that control goes on to.
const BLOCKS: usize = 8;

/// The pass. See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct Dse;

impl Pass for Dse {
    fn name(&self) -> &'static str {
        "dse"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        for store in Search::run(ed.func()) {
            if !ed.plan("overwritten") {
                return;
            }
            ed.delete(store);
        }
    }
}

struct Search<'f> {
    function: &'f Function,
    /// For an access, the one of most bytes at its address that dominates it.
    voucher: BTreeMap<Inst, Inst>,
    /// What was decided to go.
    gone: BTreeSet<Inst>,
    /// Those of them whose trap the next access has: memory before them must stay as it is.
    relying: BTreeSet<Inst>,
}

/// What an instruction behind a store means for it.
enum Sight {
    /// It cannot see the store.
    Nothing,
    /// It may see that the store is gone.
    Seen,
    /// It overwrites all that the store has written.
    Covered,
}

impl Search<'_> {
    /// The stores to delete, in an order in which each is right after those before it.
    fn run(function: &Function) -> Vec<Inst> {
        let dom = DomTree::new(function, &Cfg::new(function));
        let mut search = Search {
            function,
            voucher: vouchers(function, &dom),
            gone: BTreeSet::new(),
            relying: BTreeSet::new(),
        };
        let mut found = Vec::new();
        // Later ones first: what dominates a store is still there when it is decided on.
        for &block in dom.cfg().rpo().iter().rev() {
            let mut stores: Vec<Inst> = function.block_insts(block).collect();
            stores.retain(|i| written(function, *i).is_some());
            for &store in stores.iter().rev() {
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

    /// Whether nothing can see that a store is missing.
    fn is_overwritten(&self, store: Inst) -> bool {
        let access = written(self.function, store).expect("a store writes one place");
        let first = self.function.next_inst(store).expect("a store is no terminator");
        // Where a way goes on, and how many of the writes it has passed: it is a tree, walked in
        // depth.
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

    /// The starts of the blocks that control goes on to; `None` where it leaves the function or
    /// meets another way.
    fn ways_on(&self, end: Inst) -> Option<Vec<Inst>> {
        let targets = &self.function.inst(end).targets;
        let is_tree = |block: Block| self.function.predecessors(block).len() == 1;
        let all_trees = !targets.is_empty() && targets.iter().all(|t| is_tree(t.block));
        all_trees.then(|| targets.iter().map(|t| self.function.first_inst(t.block)).collect())
    }

    /// What an instruction behind a store means for it.
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
            // Who makes up for the store later would undo a part of what this one wrote.
            Some(_) => Sight::Seen,
            None => Sight::Seen,
        }
    }

    /// Whether an instruction reads what writes have left in parts, or as another type than they
    /// wrote it: the last of them that is not apart from it does not give it back. Breaks
    /// `a_read_of_parts_keeps_what_lies_below`.
    fn reads_parts(&self, inst: Inst, writes: &[Inst]) -> bool {
        let f = self.function;
        let Some(read) = read(f, inst) else { return false };
        let written = |write: &Inst| written(f, *write).map(|access| (*write, access));
        let last =
            writes.iter().rev().filter_map(written).find(|(_, access)| !read.is_apart_from(access));
        let of = |i: Inst| (f.inst(i).opcode, f.inst(i).ty);
        last.is_some_and(|(write, access)| {
            !(read.covers(&access) && access.covers(&read) && gives_back(of(write), of(inst)))
        })
    }

    /// Whether an instruction behind a store may trap when the store has not.
    fn may_trap_behind(&self, store: Inst, inst: Inst) -> bool {
        self.may_trap(inst) && !vouches(self.function, store, inst)
    }

    fn may_trap(&self, inst: Inst) -> bool {
        self.function.may_trap(inst) && !self.is_vouched(inst)
    }

    /// Whether the next instruction of the block that stays, and may trap, read or write, traps
    /// whenever a store does.
    fn next_traps_like(&self, store: Inst) -> bool {
        let f = self.function;
        let counts = |inst: Inst| {
            let effects = f.inst(inst).opcode.effects();
            let is_plain =
                !effects.has(Effects::READS) && !effects.has(Effects::WRITES) && !f.may_trap(inst);
            !is_plain && !self.gone.contains(&inst)
        };
        let mut behind =
            std::iter::successors(f.next_inst(store), |i| f.next_inst(*i)).take(INSTRUCTIONS);
        behind.find(|i| counts(*i)).is_some_and(|next| vouches(f, next, store))
    }

    /// Whether the addresses of two accesses are one value or two constants: how sums compare is
    /// not seen where a write hides another. Globals have none.
    fn has_like_address(&self, store: Inst, other: Inst) -> bool {
        let f = self.function;
        match (f.inst(store).args.as_slice(), f.inst(other).args.as_slice()) {
            ([x, _], [y, _]) => x == y || (f.constant(*x).is_some() && f.constant(*y).is_some()),
            _ => true,
        }
    }

    /// Whether an access cannot trap because another that dominates it, and stays, has not.
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

/// Whether an access that has not trapped shows that another at the same value of an address does
/// not.
fn vouches(function: &Function, inst: Inst, other: Inst) -> bool {
    let address = |i: Inst| function.inst(i).args.first().copied();
    let accesses = access(function, inst).zip(access(function, other));
    address(inst) == address(other) && accesses.is_some_and(|(a, b)| a.vouches_for(&b))
}

/// For each access that one of as many bytes at the same address dominates, the first of these with
/// most bytes.
fn vouchers(function: &Function, dom: &DomTree) -> BTreeMap<Inst, Inst> {
    // A block still to be entered, or what the table held before.
    enum Step {
        Enter(Block),
        Restore((Memory, Value), Option<(Access, Inst)>),
    }
    // The access of most bytes at an address, of those that dominate the place at hand. Asked and
    // never iterated.
    let mut table: HashMap<(Memory, Value), (Access, Inst)> = HashMap::new();
    let mut found = BTreeMap::new();
    let mut steps = vec![Step::Enter(function.entry())];
    while let Some(step) = steps.pop() {
        let block = match step {
            Step::Restore(key, Some(entry)) => {
                table.insert(key, entry);
                continue;
            }
            Step::Restore(key, None) => {
                table.remove(&key);
                continue;
            }
            Step::Enter(block) => block,
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
                _ => steps.push(Step::Restore(key, table.insert(key, (access, inst)))),
            }
        }
        steps.extend(dom.children(block).iter().map(|b| Step::Enter(*b)));
    }
    found
}
