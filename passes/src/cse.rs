//! Common subexpression elimination.
//!
//! *Does*: removes an operation that an equal one dominates: same opcode, types, immediate and
//! operands (operands of commutative operations in either order). Also removes a parameter that
//! receives the same argument as another parameter of its block on every edge.
//!
//! *Does not*: look at memory, globals or sizes; find equal values that are computed differently;
//! see that two parameters of a loop are equal because of its own replacements inside the loop (a
//! second execution of the pass does); share constants between blocks, though it treats operations
//! on equal constants as equal. A constant costs less to materialize again than to hold in a
//! register. With constants shared over a whole function, they were most of the live values at any
//! point, and four in five steps of compensation code.
//!
//! *Needs on entry*: nothing.
//!
//! *Holds on exit*: no equal operation dominates a value-determined operation, except that a
//! constant may be repeated in another block.
//!
//! *Actions emitted*: `replace_all`, `delete`, `remove_block_param`.
//!
//! *Effect on mappings*: links the removed value with the remaining one, whose live range may grow.
//!
//! *Why correct*: equal operations on equal operands give equal results, and the remaining
//! operation dominates. An operation that may trap can go too: the dominating operation has
//! executed on the same operands without a trap.
//!
//! *Cost*: linear in instructions and operands, with hashing.

use crate::scopes::{DominatorScopes, walk_scopes};
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
        for (before, after) in CseWalk::run(ed.func()) {
            // The two are equal whether or not their operands have been merged before.
            if !ed.plan("dominating-equal") {
                continue;
            }
            ed.replace_all(before, after);
            match ed.func().value_def(before) {
                ValueDef::Result(inst, _) => ed.delete(inst),
                ValueDef::Param(block, index) => ed.remove_block_param(block, index as usize),
            }
        }
    }
}

/// The fields that determine the result of an operation.
#[derive(Clone, PartialEq, Eq, Hash)]
struct AvailableExpression {
    opcode: Opcode,
    ty: Type,
    imm: Imm,
    args: SmallVec<[Value; 3]>,
}

/// A walk down the dominator tree with a table of the operations that dominate the current block.
/// The walk only looks keys up and never iterates the table, so hash order cannot reach the output.
struct CseWalk<'f> {
    function: &'f Function,
    table: HashMap<AvailableExpression, Value>,
    /// The keys entered on the way down, which the walk removes on the way up.
    entered: Vec<AvailableExpression>,
    /// By value index: the value that represents a value in keys, if not the value itself.
    leader: Vec<Option<Value>>,
    /// The first constant found with these bits, which represents all of them in keys.
    constants: HashMap<(Type, u64), Value>,
    /// The constants of the current block.
    local: HashMap<(Type, u64), Value>,
    found: Vec<(Value, Value)>,
}

impl DominatorScopes for CseWalk<'_> {
    fn enter(&mut self, block: Block) {
        self.equal_params(block);
        self.local.clear();
        for inst in self.function.block_insts(block) {
            let data = self.function.inst(inst);
            let is_shared = data.opcode.is_value_determined();
            let Some(result) = data.result().filter(|_| is_shared) else { continue };
            if let Some(bits) = data.constant() {
                self.visit_constant(result, data.ty, bits);
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

    fn depth(&self) -> usize {
        self.entered.len()
    }

    fn leave(&mut self, depth: usize) {
        for key in self.entered.drain(depth..) {
            self.table.remove(&key);
        }
    }
}

impl CseWalk<'_> {
    /// The replacements as (removed, remaining), in an order in which each is correct after the
    /// replacements before it.
    fn run(function: &Function) -> Vec<(Value, Value)> {
        let dom = DomTree::new(function, &Cfg::new(function));
        let leader = vec![None; function.value_bound()];
        let (table, entered, found) = (HashMap::new(), Vec::new(), Vec::new());
        let (constants, local) = (HashMap::new(), HashMap::new());
        let mut search = CseWalk { function, table, entered, leader, constants, local, found };
        walk_scopes(&dom, function.entry(), &mut search);
        search.found
    }

    fn visit_constant(&mut self, result: Value, ty: Type, bits: u64) {
        let constant = (ty, bits);
        match self.local.get(&constant) {
            Some(&other) => self.replace(result, other),
            None => {
                self.local.insert(constant, result);
                let first = *self.constants.entry(constant).or_insert(result);
                self.leader[result.index()] = Some(first);
            }
        }
    }

    fn key(&self, inst: Inst) -> AvailableExpression {
        let data = self.function.inst(inst);
        let mut args: SmallVec<[Value; 3]> = data.args.iter().map(|v| self.leader(*v)).collect();
        if data.opcode.is_commutative() {
            args.sort_unstable();
        }
        AvailableExpression { opcode: data.opcode, ty: data.ty, imm: data.imm, args }
    }

    fn leader(&self, value: Value) -> Value {
        self.leader[value.index()].unwrap_or(value)
    }

    fn replace(&mut self, before: Value, after: Value) {
        self.leader[before.index()] = Some(self.leader(after));
        self.found.push((before, after));
    }

    /// Finds the parameters of a block that receive the same argument as an earlier parameter on
    /// every edge. Around a loop, two parameters that pass themselves on are assumed equal, which
    /// induction over the iterations justifies.
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
            // Equal argument lists imply equal types, unless every argument is the parameter
            // itself. Only an unreachable block can have such a parameter.
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
