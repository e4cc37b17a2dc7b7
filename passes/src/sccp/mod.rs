//! Sparse conditional constant propagation (Wegman and Zadeck, TOPLAS 1991), over block parameters.
//!
//! *Does*: finds the values that are always one constant and the parameters that always receive one
//! value, assuming as few edges taken as possible. It folds the branches that these facts decide,
//! removes the blocks that become unreachable, and replaces the values. The result of an assumption
//! is the constant assumed; an assumption whose operand has that constant anyway is deleted.
//!
//! *Does not*: fold an operation that would trap; follow values through memory; use the facts about
//! a condition that hold beyond its branch.
//!
//! *Needs on entry*: nothing.
//!
//! *Holds on exit*: no reachable branch has a condition that this analysis knows. No parameter, and
//! no set of parameters that pass each other on, receives a constant or a single other value. No
//! unreachable block is left.
//!
//! *Actions emitted*: `fold_branch`, `remove_unreachable`, `add` (constants), `replace_all`,
//! `delete`, `remove_block_param`.
//!
//! *Effect on mappings*: a replaced value is linked to its constant, which compensation code
//! materializes without a kept value. A replaced parameter is linked to a value that dominates it.
//! Points in removed blocks are unreachable, not infeasible.
//!
//! *Why correct*: the fixpoint is a set of facts about all executions: facts only move down, and
//! each follows from facts about operands. A branch is folded to the only edge ever taken. A
//! parameter that receives `v` or itself on every taken edge equals `v`. On any path, its first
//! argument is `v`, so `v` dominates the parameter once the other edges are removed. And `v` cannot
//! execute again before control binds the parameter again: otherwise a path would reach a use of
//! the parameter around the parameter. The pass folds branches first, so each rewrite is correct
//! after the rewrites before it.
//!
//! *Cost*: the constants are linear in operands and arguments of edges: a value moves at most
//! twice, and each move visits its uses. The single values are near linear in the arguments.

mod copies;
#[cfg(test)]
mod tests;

use cranelift_entity::EntityRef;
use fixedbitset::FixedBitSet;
use ir::cfg::Cfg;
use ir::edit::{Editor, Pass};
use ir::eval::{fold, is_evaluated};
use ir::{Block, Edge, Function, Imm, Inst, InstSpec, Opcode, Value, ValueDef};

use crate::edges::EdgeIndex;

/// The pass. See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct Sccp;

impl Pass for Sccp {
    fn name(&self) -> &'static str {
        "sccp"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        let plan = SccpRewrites::new(ed.func());
        let are_all_folded = plan.fold_branches(ed);
        if plan.remove_blocks(ed, are_all_folded) {
            plan.replace_values(ed, are_all_folded);
            plan.delete_proved(ed);
        }
    }
}

/// The knowledge about a value. Facts only move down this list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fact {
    /// Not computed yet on any path taken so far.
    Unknown,
    /// Always these bits.
    Constant(u64),
    /// Different bits on different executions, or not known.
    Varying,
}

impl Fact {
    /// The meet: the fact about a value that is either of two values.
    fn and(self, other: Fact) -> Fact {
        match (self, other) {
            (Fact::Unknown, fact) | (fact, Fact::Unknown) => fact,
            (a, b) if a == b => a,
            _ => Fact::Varying,
        }
    }
}

/// The analysis: facts, and the edges that may be taken.
struct Analysis<'f> {
    function: &'f Function,
    facts: Vec<Fact>,
    edges: EdgeIndex,
    receivers: Receivers,
    taken: FixedBitSet,
    entered: FixedBitSet,
    /// The blocks just entered, and the instructions with an operand whose fact just changed.
    blocks: Vec<Block>,
    insts: Vec<Inst>,
    /// Values whose fact just changed and has not reached their receivers.
    sent: Vec<Value>,
    /// The number of facts that were sent to receivers.
    #[cfg(test)]
    work: usize,
}

impl<'f> Analysis<'f> {
    fn run(function: &'f Function) -> Analysis<'f> {
        let edges = EdgeIndex::new(function);
        let mut analysis = Analysis {
            function,
            facts: vec![Fact::Unknown; function.value_bound()],
            taken: FixedBitSet::with_capacity(edges.len()),
            receivers: Receivers::new(function, &edges),
            edges,
            entered: FixedBitSet::with_capacity(function.block_bound()),
            blocks: Vec::new(),
            insts: Vec::new(),
            sent: Vec::new(),
            #[cfg(test)]
            work: 0,
        };
        analysis.enter(function.entry());
        for &argument in function.arguments() {
            analysis.lower(argument, Fact::Varying);
        }
        loop {
            // Entering a block visits all its instructions, so users in blocks that are not
            // entered yet need no visit now.
            if let Some(value) = analysis.sent.pop() {
                analysis.send(value);
            } else if let Some(inst) = analysis.insts.pop() {
                if analysis.entered.contains(function.inst_block(inst).index()) {
                    analysis.visit(inst);
                }
            } else if let Some(block) = analysis.blocks.pop() {
                function.block_insts(block).for_each(|i| analysis.visit(i));
            } else {
                return analysis;
            }
        }
    }

    fn fact(&self, value: Value) -> Fact {
        self.facts[value.index()]
    }

    fn enter(&mut self, block: Block) {
        if !self.entered.put(block.index()) {
            self.blocks.push(block);
        }
    }

    /// Records a new fact, and queues the instructions that compute with the value or branch on it
    /// for another visit, and the value for its receivers.
    fn lower(&mut self, value: Value, fact: Fact) {
        if std::mem::replace(&mut self.facts[value.index()], fact) != fact {
            let function = self.function;
            for &user in function.users(value) {
                let data = function.inst(user);
                // Arguments of edges are no operands. A visit to the terminator would look at all
                // of them for each that changes
                // (`values_passed_around_many_loops_cost_linear_time`).
                let reads = !data.opcode.is_terminator() || data.args.contains(&value);
                // A switch that passes the value on many edges is listed once for each, in a row.
                if reads && self.insts.last() != Some(&user) {
                    self.insts.push(user);
                }
            }
            if !self.receivers.of(value).is_empty() {
                self.sent.push(value);
            }
        }
    }

    /// Lowers the facts about the parameters that receive a value on edges that may be taken.
    fn send(&mut self, value: Value) {
        for at in self.receivers.range(value) {
            let (edge, param) = self.receivers.list[at];
            if self.taken.contains(edge as usize) {
                self.receive(param, value);
            }
        }
    }

    fn receive(&mut self, param: Value, arg: Value) {
        #[cfg(test)]
        {
            self.work += 1;
        }
        self.lower(param, self.fact(param).and(self.fact(arg)));
    }

    fn visit(&mut self, inst: Inst) {
        let data = self.function.inst(inst);
        if data.opcode.is_terminator() {
            self.visit_terminator(inst);
        } else if let Some(result) = data.result() {
            let fact = self.evaluate(inst);
            self.lower(result, fact);
        } else {
            for &result in &data.results {
                self.lower(result, Fact::Varying);
            }
        }
    }

    /// Computes the fact about the single result of an instruction.
    fn evaluate(&self, inst: Inst) -> Fact {
        let data = self.function.inst(inst);
        if let Some(bits) = data.constant() {
            return Fact::Constant(bits);
        }
        // Its result is available only where the assumption has held.
        if let Imm::Assumed(bits, _) = data.imm {
            return Fact::Constant(bits);
        }
        if !is_evaluated(data.opcode) {
            return Fact::Varying;
        }
        let mut bits = [0u64; 3];
        for (slot, arg) in bits.iter_mut().zip(&data.args) {
            match self.fact(*arg) {
                Fact::Constant(b) => *slot = b,
                Fact::Unknown => return Fact::Unknown,
                Fact::Varying => return Fact::Varying,
            }
        }
        let source = self.function.value_type(data.args[0]);
        fold(data.opcode, data.ty, source, &bits[..data.args.len()])
            .map_or(Fact::Varying, Fact::Constant)
    }

    fn visit_terminator(&mut self, inst: Inst) {
        match self.decision(inst) {
            PossibleTargets::Undecided => {}
            PossibleTargets::Target(index) => self.take(Edge { inst, index }),
            PossibleTargets::Any => {
                for index in 0..self.function.inst(inst).targets.len() as u32 {
                    self.take(Edge { inst, index });
                }
            }
        }
    }

    /// The targets at which a terminator may continue.
    fn decision(&self, inst: Inst) -> PossibleTargets {
        let data = self.function.inst(inst);
        let Some(&condition) =
            data.args.first().filter(|_| matches!(data.opcode, Opcode::BrIf | Opcode::Switch))
        else {
            return PossibleTargets::Any;
        };
        match (self.fact(condition), data.opcode) {
            (Fact::Unknown, _) => PossibleTargets::Undecided,
            (Fact::Varying, _) => PossibleTargets::Any,
            (Fact::Constant(bits), Opcode::BrIf) => PossibleTargets::Target(u32::from(bits == 0)),
            (Fact::Constant(bits), _) => {
                PossibleTargets::Target(bits.min(data.targets.len() as u64 - 1) as u32)
            }
        }
    }

    /// Marks an edge as taken. The first time, all its arguments arrive; arguments whose facts
    /// change later are sent. The facts about the parameters already include the arguments of other
    /// edges. Facts only move down, so no argument needs a second meet. The cost of a block with
    /// many predecessors is therefore linear in their number (the test
    /// `a_block_with_many_predecessors_costs_linear_time`).
    fn take(&mut self, edge: Edge) {
        if self.taken.put(self.edges.of(edge)) {
            return;
        }
        let function = self.function;
        let target = function.target(edge);
        self.enter(target.block);
        for (&param, &arg) in function.block_params(target.block).iter().zip(&target.args) {
            self.receive(param, arg);
        }
    }

    fn is_taken(&self, edge: Edge) -> bool {
        self.taken.contains(self.edges.of(edge))
    }
}

/// By value: the parameters that receive it, each with the number of the edge.
struct Receivers {
    /// The receivers of the value with index `n` are `list[start[n]..start[n + 1]]`.
    start: Vec<u32>,
    list: Vec<(u32, Value)>,
}

impl Receivers {
    /// Cost: linear in values and arguments of edges.
    fn new(function: &Function, edges: &EdgeIndex) -> Receivers {
        let mut start = vec![0u32; function.value_bound() + 1];
        each_argument(function, |_, _, arg| start[arg.index() + 1] += 1);
        for n in 1..start.len() {
            start[n] += start[n - 1];
        }
        let mut fill = start.clone();
        let mut list = vec![(0, Value::new(0)); start[start.len() - 1] as usize];
        each_argument(function, |edge, param, arg| {
            let at = &mut fill[arg.index()];
            list[*at as usize] = (edges.of(edge) as u32, param);
            *at += 1;
        });
        Receivers { start, list }
    }

    fn range(&self, value: Value) -> std::ops::Range<usize> {
        self.start[value.index()] as usize..self.start[value.index() + 1] as usize
    }

    fn of(&self, value: Value) -> &[(u32, Value)] {
        &self.list[self.range(value)]
    }
}

/// Calls `found` for each edge, parameter and argument, except for parameters that receive
/// themselves, which learn nothing from that.
fn each_argument(function: &Function, mut found: impl FnMut(Edge, Value, Value)) {
    for block in function.blocks() {
        let inst = function.terminator(block);
        for (index, target) in (0..).zip(&function.inst(inst).targets) {
            let received = function.block_params(target.block).iter().zip(&target.args);
            for (&param, &arg) in received.filter(|(param, arg)| param != arg) {
                found(Edge { inst, index }, param, arg);
            }
        }
    }
}

/// The targets at which a terminator may continue.
enum PossibleTargets {
    Undecided,
    Target(u32),
    Any,
}

/// The replacement of a value.
#[derive(Clone, Copy, Debug)]
enum Replacement {
    Constant(u64),
    Value(Value),
}

/// The rewrites, decided on the function before the first rewrite.
struct SccpRewrites {
    folds: Vec<Edge>,
    unreachable: Vec<Block>,
    /// Values in layout order.
    values: Vec<(Value, Replacement)>,
    /// The assumptions whose operand is known to have the bits assumed.
    proved: Vec<Inst>,
}

impl SccpRewrites {
    fn new(function: &Function) -> SccpRewrites {
        let analysis = Analysis::run(function);
        let roots = copies::roots(&analysis);
        let mut plan = SccpRewrites {
            folds: Vec::new(),
            unreachable: Vec::new(),
            values: Vec::new(),
            proved: Vec::new(),
        };
        for block in function.blocks() {
            if !analysis.entered.contains(block.index()) {
                plan.unreachable.push(block);
                continue;
            }
            for &param in function.block_params(block) {
                match (analysis.fact(param), roots[param.index()]) {
                    (Fact::Constant(bits), _) => {
                        plan.values.push((param, Replacement::Constant(bits)))
                    }
                    (_, Some(root)) if root != param => {
                        plan.values.push((param, Replacement::Value(root)))
                    }
                    _ => {}
                }
            }
            for inst in
                function.block_insts(block).filter(|i| function.inst(*i).opcode != Opcode::Const)
            {
                let data = function.inst(inst);
                if let (Imm::Assumed(bits, _), [operand, ..]) = (data.imm, &data.args[..])
                    && matches!(analysis.fact(*operand), Fact::Constant(known) if known == bits)
                {
                    plan.proved.push(inst);
                }
                // A dead result is left to `adce`.
                let results =
                    function.inst(inst).results.iter().filter(|r| !function.users(**r).is_empty());
                for &result in results {
                    if let Fact::Constant(bits) = analysis.fact(result) {
                        plan.values.push((result, Replacement::Constant(bits)));
                    }
                }
            }
            let inst = function.terminator(block);
            if let PossibleTargets::Target(index) = analysis.decision(inst) {
                plan.folds.push(Edge { inst, index });
            }
        }
        plan
    }

    /// Folds the decided branches. Returns whether all of them are folded.
    fn fold_branches(&self, ed: &mut Editor<'_>) -> bool {
        let mut is_complete = true;
        for edge in &self.folds {
            if ed.plan("known-branch") {
                ed.fold_branch(edge.inst, edge.index);
            } else {
                is_complete = false;
            }
        }
        is_complete
    }

    /// Removes the blocks to which no edge leads any more. Returns `false` if that is refused.
    fn remove_blocks(&self, ed: &mut Editor<'_>, are_all_folded: bool) -> bool {
        let mut unreachable = self.unreachable.clone();
        if !are_all_folded {
            let cfg = Cfg::new(ed.func());
            unreachable.retain(|block| !cfg.is_reachable(*block));
        }
        if unreachable.is_empty() {
            return true;
        }
        let planned = ed.plan("unreachable");
        if planned {
            ed.remove_unreachable(&unreachable);
        }
        planned
    }

    /// Deletes the assumptions that hold in every run.
    fn delete_proved(&self, ed: &mut Editor<'_>) {
        for &inst in &self.proved {
            if !ed.func().has_inst(inst) || !ed.plan("assumption-holds") {
                continue;
            }
            let data = ed.func().inst(inst);
            let (operand, result) = (data.args[0], data.result());
            let used = result.filter(|r| !ed.func().users(*r).is_empty());
            if let Some(result) = used {
                ed.replace_all(result, operand);
            }
            ed.delete(inst);
        }
    }

    /// Replaces the known values. A constant is known on all executions. Another value dominates
    /// the parameter only if all decided branches are folded.
    fn replace_values(&self, ed: &mut Editor<'_>, are_all_folded: bool) {
        for &(value, replacement) in &self.values {
            let rule = match replacement {
                Replacement::Constant(_) => "constant",
                Replacement::Value(_) if are_all_folded => "one-incoming-value",
                Replacement::Value(_) => continue,
            };
            if ed.plan(rule) {
                replace(ed, value, replacement);
            }
        }
    }
}

/// Replaces every use of a value by its known value, and removes its definition.
fn replace(ed: &mut Editor<'_>, value: Value, replacement: Replacement) {
    let def = ed.func().value_def(value);
    // A folded branch or a removed block may have held the last use.
    if !ed.func().users(value).is_empty() {
        let after = match replacement {
            Replacement::Value(other) => other,
            Replacement::Constant(bits) => {
                let place = match def {
                    ValueDef::Result(inst, _) => inst,
                    ValueDef::Param(block, _) => ed.func().first_inst(block),
                };
                ed.add_value(InstSpec::constant(ed.func().value_type(value), bits), place)
            }
        };
        ed.replace_all(value, after);
    }
    match def {
        ValueDef::Param(block, index) => ed.remove_block_param(block, index as usize),
        ValueDef::Result(inst, _) => {
            if ed.func().inst(inst).opcode.is_effect_free() && !ed.func().may_trap(inst) {
                ed.delete(inst);
            }
        }
    }
}
