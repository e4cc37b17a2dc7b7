//! Common subexpression elimination.
//!
//! *Does*: removes an operation when an equal one dominates it: same opcode, types, immediate and
//! operands (of commutative operations in either order). Also removes a parameter that receives on
//! every edge what another parameter of its block receives.
//!
//! *Does not*: look at memory, globals or sizes; find equal values that are computed differently;
//! see that two parameters of a loop are equal because of what it replaces inside the loop (a
//! second run does); share constants between blocks, though operations on equal constants are
//! equal. A constant costs less to make anew than to hold: shared over a whole function, constants
//! were most of what is live anywhere, and four in five steps of compensation code.
//!
//! *Needs on entry*: nothing.
//!
//! *Holds on exit*: no value-determined operation is dominated by an equal one, but constants by
//! those of other blocks.
//!
//! *Actions emitted*: `replace_all`, `delete`, `remove_block_param`.
//!
//! *Effect on mappings*: links the removed value with the one that stays, which may thereby live
//! longer.
//!
//! *Why correct*: equal operations on equal operands give equal results; the one that stays
//! dominates. An operation that may trap goes too: the one that dominates it has executed with the
//! same operands and has not trapped.
//!
//! *Cost*: linear in instructions and operands, with hashing.

use cranelift_entity::EntityRef;
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::edit::{Editor, Pass};
use ir::{Block, Function, Imm, Inst, Opcode, Type, Value, ValueDef};
use smallvec::SmallVec;
use std::collections::HashMap;

/// The pass. See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct Cse;

impl Pass for Cse {
    fn name(&self) -> &'static str {
        "cse"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        for (before, after) in Search::run(ed.func()) {
            if !ed.plan("dominating-equal") {
                return;
            }
            ed.replace_all(before, after);
            match ed.func().value_def(before) {
                ValueDef::Result(inst, _) => ed.delete(inst),
                ValueDef::Param(block, index) => ed.remove_block_param(block, index as usize),
            }
        }
    }
}

/// What decides the result of an operation.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    opcode: Opcode,
    ty: Type,
    imm: Imm,
    args: SmallVec<[Value; 3]>,
}

/// A walk down the dominator tree with the operations that dominate the place it is at. The table
/// is only asked, never iterated, so its order does not matter.
struct Search<'f> {
    function: &'f Function,
    dom: DomTree,
    table: HashMap<Key, Value>,
    /// The keys entered on the way down, to be taken out on the way up.
    entered: Vec<Key>,
    /// By value index: what stands for a value in keys, if it is not the value itself.
    leader: Vec<Option<Value>>,
    /// The first constant seen with these bits, which stands for all of them in keys.
    constants: HashMap<(Type, u64), Value>,
    /// The constants of the block at hand.
    local: HashMap<(Type, u64), Value>,
    found: Vec<(Value, Value)>,
}

impl Search<'_> {
    /// The replacements, in an order in which each is right after those before it.
    fn run(function: &Function) -> Vec<(Value, Value)> {
        let dom = DomTree::new(function, &Cfg::new(function));
        let leader = vec![None; function.value_bound()];
        let (table, entered, found) = (HashMap::new(), Vec::new(), Vec::new());
        let (constants, local) = (HashMap::new(), HashMap::new());
        let mut search = Search { function, dom, table, entered, leader, constants, local, found };
        // A block still to be entered, or the number of keys to go back to once its subtree is
        // done.
        enum Step {
            Enter(Block),
            Leave(usize),
        }
        let mut steps = vec![Step::Enter(function.entry())];
        while let Some(step) = steps.pop() {
            match step {
                Step::Enter(block) => {
                    steps.push(Step::Leave(search.entered.len()));
                    search.visit(block);
                    steps.extend(search.dom.children(block).iter().rev().map(|b| Step::Enter(*b)));
                }
                Step::Leave(count) => {
                    for key in search.entered.drain(count..) {
                        search.table.remove(&key);
                    }
                }
            }
        }
        search.found
    }

    fn visit(&mut self, block: Block) {
        self.equal_params(block);
        self.local.clear();
        for inst in self.function.block_insts(block) {
            let data = self.function.inst(inst);
            let is_shared = data.opcode.is_value_determined();
            let Some(result) = data.result().filter(|_| is_shared) else { continue };
            if let Some(bits) = data.constant() {
                self.visit_constant(result, (data.ty, bits));
                continue;
            }
            let key = self.key(inst);
            match self.table.get(&key) {
                Some(&other) => self.replace(result, other),
                None => {
                    self.table.insert(key.clone(), result);
                    self.entered.push(key);
                }
            }
        }
    }

    fn visit_constant(&mut self, result: Value, bits: (Type, u64)) {
        match self.local.get(&bits) {
            Some(&other) => self.replace(result, other),
            None => {
                self.local.insert(bits, result);
                let first = *self.constants.entry(bits).or_insert(result);
                self.leader[result.index()] = Some(first);
            }
        }
    }

    fn key(&self, inst: Inst) -> Key {
        let data = self.function.inst(inst);
        let mut args: SmallVec<[Value; 3]> = data.args.iter().map(|v| self.leader(*v)).collect();
        if data.opcode.is_commutative() {
            args.sort_unstable();
        }
        Key { opcode: data.opcode, ty: data.ty, imm: data.imm, args }
    }

    fn leader(&self, value: Value) -> Value {
        self.leader[value.index()].unwrap_or(value)
    }

    fn replace(&mut self, before: Value, after: Value) {
        self.leader[before.index()] = Some(self.leader(after));
        self.found.push((before, after));
    }

    /// Finds the parameters of a block that receive the same as an earlier one on every edge.
    /// Around a loop two parameters are assumed equal where they hand themselves on: by induction
    /// over the iterations.
    fn equal_params(&mut self, block: Block) {
        let function = self.function;
        let params = function.block_params(block);
        if block == function.entry() || params.len() < 2 {
            return;
        }
        let mut seen: HashMap<Vec<Option<Value>>, Value> = HashMap::new();
        for (index, &param) in params.iter().enumerate() {
            let args = function.predecessors(block).iter().map(|e| {
                Some(self.leader(function.target(*e).args[index])).filter(|v| *v != param)
            });
            // The type is part of what is received unless every argument is the parameter itself,
            // which only an unreachable block could have.
            match seen.entry(args.collect()) {
                std::collections::hash_map::Entry::Occupied(first) => {
                    let first = *first.get();
                    self.replace(param, first);
                }
                std::collections::hash_map::Entry::Vacant(slot) => {
                    slot.insert(param);
                }
            }
        }
    }
}
