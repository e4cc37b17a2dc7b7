//! Redundant load elimination.
//!
//! *Does*: removes a read of memory, a global or a size whose value is known. Either an equal read
//! dominates it (same operation, same address) and no write in between may change the place; or the
//! last write that may have changed the place is a store of the whole value to exactly that place,
//! and the read gives the operand of the store (*store-to-load forwarding*). Two addresses are the
//! same if they are one value, or one value plus equal constants. Values that the pass has found
//! equal count as one value.
//!
//! *Does not*: add a parameter where a value is known on each incoming edge but differs among them;
//! forward to a read of another width, or of part of the stored bytes; look past more than
//! [`ir::memory_ssa::STEPS`] writes and merges; distinguish pointers other than by constants.
//!
//! *Needs on entry*: nothing. The pass finds most equal addresses after `cse`.
//!
//! *Holds on exit*: nothing.
//!
//! *Actions emitted*: `replace_all`, `delete`.
//!
//! *Effect on mappings*: links the removed read with the known value, whose live range may grow. A
//! backward transition takes that value for the base's read.
//!
//! *Why correct*: [`ir::memory_ssa::Clobbers`] names a definition (a write, a merge or the entry)
//! that dominates the read. No write between the definition and the read changes the place. Two
//! equal reads with the same definition read the same contents. The first read dominates, so its
//! latest result belongs to the same iteration. The operand of a dominating write is available
//! likewise. A read that may trap goes too: an access of the same bytes at the same address
//! dominates it and has not trapped.
//!
//! *Cost*: linear in instructions, times a constant for each read (the limit above).

use crate::scopes::{DominatorScopes, walk_scopes};
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::edit::{Editor, Pass};
use ir::memory_ssa::{Clobbers, Definition, MemorySsa};
use ir::place::gives_back;
use ir::{Block, Function, Inst, Opcode, Type, Value};
use std::collections::HashMap;

/// The pass. See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct LoadElim;

impl Pass for LoadElim {
    fn name(&self) -> &'static str {
        "load_elim"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        for KnownRead { read, value, rule } in plan(ed.func()) {
            // A read that stays only reads again: the remaining reads are known as before.
            if !ed.plan(rule) {
                continue;
            }
            let result = ed.func().inst(read).result().expect("a read has one result");
            ed.replace_all(result, value);
            ed.delete(read);
        }
    }
}

/// A read whose value is known.
struct KnownRead {
    read: Inst,
    value: Value,
    rule: &'static str,
}

fn plan(function: &Function) -> Vec<KnownRead> {
    let dom = DomTree::new(function, &Cfg::new(function));
    let ssa = MemorySsa::new(function, &dom);
    let clobbers = Clobbers::new(function, &dom, &ssa);
    ReadWalk { function, clobbers, table: HashMap::new(), entered: Vec::new(), found: Vec::new() }
        .run(&dom)
}

/// The fields that determine the result of a read: its operation, its place, and the definition of
/// memory it reads.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct AvailableRead {
    opcode: Opcode,
    ty: Type,
    access: ir::access::Access,
    since: Definition,
}

/// A walk down the dominator tree with a table of the reads that dominate the current block. The
/// walk only looks keys up and never iterates the table, so hash order cannot reach the output.
struct ReadWalk<'a> {
    function: &'a Function,
    clobbers: Clobbers<'a>,
    table: HashMap<AvailableRead, Value>,
    /// The keys entered on the way down, which the walk removes on the way up.
    entered: Vec<AvailableRead>,
    found: Vec<KnownRead>,
}

impl DominatorScopes for ReadWalk<'_> {
    fn enter(&mut self, block: Block) {
        self.function.block_insts(block).for_each(|inst| self.visit(inst));
    }

    fn depth(&self) -> usize {
        self.entered.len()
    }

    fn leave(&mut self, depth: usize) {
        for key in self.entered.drain(depth..) {
            self.table.remove(&key);
        }
    }
}

impl ReadWalk<'_> {
    /// The reads with known values, in an order in which each replacement is correct after the
    /// replacements before it.
    fn run(mut self, dom: &DomTree) -> Vec<KnownRead> {
        walk_scopes(dom, self.function.entry(), &mut self);
        self.found
    }

    fn visit(&mut self, inst: Inst) {
        let data = self.function.inst(inst);
        let (Some(result), Some(access)) = (data.result(), self.clobbers.read(inst)) else {
            return;
        };
        let since = self.clobbers.of_read(inst).expect("a read in a reachable block");
        if let Some(stored) = self.stored(inst, since) {
            self.replace(inst, result, stored, "stored-value");
            return;
        }
        let key = AvailableRead { opcode: data.opcode, ty: data.ty, access, since };
        match self.table.get(&key) {
            Some(&other) => self.replace(inst, result, other, "redundant-load"),
            None => {
                self.table.insert(key, result);
                self.entered.push(key);
            }
        }
    }

    /// The operand of a write, if a read of the written place gives exactly that.
    fn stored(&self, read: Inst, since: Definition) -> Option<Value> {
        let Definition::Write(write) = since else { return None };
        let (written, by) = (self.clobbers.written(write)?, self.function.inst(write));
        let (is_read, data) = (self.clobbers.read(read)?, self.function.inst(read));
        let operand = *by.args.last().expect("a write has an operand");
        let is_whole = gives_back(by.opcode, by.ty, data.opcode, data.ty);
        (is_whole && written == is_read).then(|| self.clobbers.leader(operand))
    }

    fn replace(&mut self, read: Inst, result: Value, value: Value, rule: &'static str) {
        self.clobbers.equate(result, value);
        self.found.push(KnownRead { read, value, rule });
    }
}
