//! Makes functions smaller: applies a set of changes while it builds the function again.

use ir::cfg::Cfg;
use ir::{
    Block, Function, FunctionBuilder, Inst, InstSpec, Opcode, Signature, Target, Value, ValueDef,
};
use std::collections::{BTreeMap, BTreeSet};

/// A change that makes a function smaller.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum ReductionStep {
    /// Replaces a terminator by a return of zeros.
    Return(Inst),
    /// Replaces a terminator by a jump to one of its targets.
    Jump(Inst, usize),
    /// Removes an instruction. Zeros replace its results.
    Drop(Inst),
    /// Removes an instruction. Its first operand of the same type replaces its result.
    Forward(Inst),
    /// Removes a block parameter. A zero replaces it.
    DropParam(Value),
    /// Merges a block into its only predecessor, which must end in a jump.
    Merge(Block),
    /// Replaces a constant by another.
    Constant(Inst, u64),
}

/// The changes that are possible in a function, grouped by kind. Kinds that remove most come first.
pub(super) fn possible(function: &Function) -> Vec<Vec<ReductionStep>> {
    let mut kinds: [Vec<ReductionStep>; 8] = Default::default();
    for block in function.blocks() {
        if block != function.entry() {
            kinds[3]
                .extend(function.block_params(block).iter().map(|p| ReductionStep::DropParam(*p)));
            kinds[4].extend(can_merge(function, block).then_some(ReductionStep::Merge(block)));
        }
        for inst in function.block_insts(block) {
            let data = function.inst(inst);
            if data.opcode.is_terminator() {
                kinds[0]
                    .extend((data.opcode != Opcode::Return).then_some(ReductionStep::Return(inst)));
                let targets = if data.targets.len() > 1 { data.targets.len() } else { 0 };
                kinds[1].extend((0..targets).map(|target| ReductionStep::Jump(inst, target)));
                continue;
            }
            match data.constant() {
                Some(bits) => {
                    kinds[7].extend(
                        [0, 1]
                            .into_iter()
                            .filter(|b| *b < bits)
                            .map(|b| ReductionStep::Constant(inst, b)),
                    );
                    kinds[2].extend(
                        function
                            .users(data.results[0])
                            .is_empty()
                            .then_some(ReductionStep::Drop(inst)),
                    );
                }
                None => kinds[2].push(ReductionStep::Drop(inst)),
            }
            kinds[6].extend(forwarded(function, inst).map(|_| ReductionStep::Forward(inst)));
        }
    }
    // Users come after definitions, so remove from the end: a removed user leaves its operands
    // unused.
    kinds[2].reverse();
    kinds.into_iter().filter(|kind| !kind.is_empty()).collect()
}

/// The operand that can replace the result of an instruction.
fn forwarded(function: &Function, inst: Inst) -> Option<Value> {
    let data = function.inst(inst);
    let ty = function.value_type(data.result()?);
    data.args.iter().copied().find(|a| function.value_type(*a) == ty)
}

fn can_merge(function: &Function, block: Block) -> bool {
    match function.predecessors(block) {
        [edge] => {
            function.inst(edge.inst).opcode == Opcode::Jump
                && function.inst_block(edge.inst) != block
        }
        _ => false,
    }
}

/// The function after the changes. `None` if the changes conflict.
pub(super) fn changed(function: &Function, changes: &[ReductionStep]) -> Option<Function> {
    let mut rewriter = Rewriter {
        function,
        changes: changes.iter().copied().collect(),
        builder: FunctionBuilder::new(function.name(), function.signature().clone()),
        values: BTreeMap::new(),
        blocks: BTreeMap::new(),
    };
    rewriter.rewrite();
    rewriter.builder.finish().ok().map(|finished| finished.function)
}

struct Rewriter<'a> {
    function: &'a Function,
    changes: BTreeSet<ReductionStep>,
    builder: FunctionBuilder,
    /// The replacement of each value.
    values: BTreeMap<Value, Value>,
    blocks: BTreeMap<Block, Block>,
}

impl Rewriter<'_> {
    fn has(&self, change: ReductionStep) -> bool {
        self.changes.contains(&change)
    }

    /// The targets of a terminator after the changes.
    fn targets(&self, inst: Inst) -> Vec<Target> {
        let targets = &self.function.inst(inst).targets;
        let jump = (0..targets.len()).find(|t| self.has(ReductionStep::Jump(inst, *t)));
        match jump {
            _ if self.has(ReductionStep::Return(inst)) => Vec::new(),
            Some(target) => vec![targets[target].clone()],
            None => targets.clone(),
        }
    }

    /// The blocks that remain reachable, each behind its dominators.
    fn order(&self) -> Vec<Block> {
        let mut seen = BTreeSet::from([self.function.entry()]);
        let mut work = vec![self.function.entry()];
        while let Some(block) = work.pop() {
            for target in self.targets(self.function.terminator(block)) {
                if seen.insert(target.block) {
                    work.push(target.block);
                }
            }
        }
        let cfg = Cfg::new(self.function);
        cfg.rpo().iter().copied().filter(|b| seen.contains(b)).collect()
    }

    fn rewrite(&mut self) {
        let order = self.order();
        for &block in &order {
            if self.has(ReductionStep::Merge(block)) {
                continue;
            }
            let new = self.builder.create_block();
            self.blocks.insert(block, new);
            for &param in self.function.block_params(block) {
                if !self.has(ReductionStep::DropParam(param)) {
                    let value = self.builder.append_param(new, self.function.value_type(param));
                    self.values.insert(param, value);
                }
            }
        }
        for &block in &order {
            if let Some(&new) = self.blocks.get(&block) {
                self.builder.switch_to(new);
                self.block(block);
            }
        }
    }

    /// Builds a block and the blocks that are merged into it.
    fn block(&mut self, block: Block) {
        let mut block = Some(block);
        while let Some(at) = block {
            for &param in self.function.block_params(at) {
                if self.has(ReductionStep::DropParam(param)) && !self.values.contains_key(&param) {
                    self.zero(param);
                }
            }
            for inst in self.function.block_insts(at) {
                if !self.function.inst(inst).opcode.is_terminator() {
                    self.inst(inst);
                }
            }
            block = self.terminator(self.function.terminator(at));
        }
    }

    /// Replaces a value by zero.
    fn zero(&mut self, value: Value) {
        let zero = self.builder.constant(self.function.value_type(value), 0);
        self.values.insert(value, zero);
    }

    /// The replacement of a value. If its definition is gone, a new zero replaces this use.
    fn value(&mut self, value: Value) -> Value {
        match self.values.get(&value) {
            Some(stands) => *stands,
            None => self.builder.constant(self.function.value_type(value), 0),
        }
    }

    fn inst(&mut self, inst: Inst) {
        let data = self.function.inst(inst);
        if self.has(ReductionStep::Drop(inst)) {
            for &result in data.results.iter().filter(|r| !self.function.users(**r).is_empty()) {
                self.zero(result);
            }
            return;
        }
        if self.has(ReductionStep::Forward(inst))
            && let Some(operand) = forwarded(self.function, inst)
        {
            let stands = self.value(operand);
            self.values.insert(data.results[0], stands);
            return;
        }
        let args: Vec<Value> = data.args.iter().map(|a| self.value(*a)).collect();
        let constant =
            [0, 1].into_iter().find(|bits| self.has(ReductionStep::Constant(inst, *bits)));
        let spec = match constant {
            Some(bits) => InstSpec::constant(data.ty, bits),
            None => InstSpec {
                result_types: data.results.iter().map(|r| self.function.value_type(*r)).collect(),
                ..InstSpec::new(data.opcode, data.ty, data.imm, &args)
            },
        };
        let made = self.builder.insert(spec);
        let results = self.builder.function().inst(made).results.clone();
        self.values.extend(data.results.iter().copied().zip(results));
    }

    /// Ends the open block. If its successor is merged into it, returns the successor instead.
    fn terminator(&mut self, inst: Inst) -> Option<Block> {
        let targets = self.targets(inst);
        if let [target] = targets.as_slice()
            && self.has(ReductionStep::Merge(target.block))
        {
            let values: Vec<Value> = target.args.iter().map(|a| self.value(*a)).collect();
            for (param, value) in self.function.block_params(target.block).iter().zip(values) {
                if !self.has(ReductionStep::DropParam(*param)) {
                    self.values.insert(*param, value);
                }
            }
            return Some(target.block);
        }
        let data = self.function.inst(inst);
        if self.has(ReductionStep::Return(inst)) {
            let types = self.function.signature().results.clone();
            let zeros: Vec<Value> = types.iter().map(|ty| self.builder.constant(*ty, 0)).collect();
            self.builder.ret(&zeros);
        } else if targets.len() == data.targets.len() {
            let args: Vec<Value> = data.args.iter().map(|a| self.value(*a)).collect();
            let targets = targets.iter().map(|t| self.target(t)).collect();
            let spec = InstSpec { targets, ..InstSpec::new(data.opcode, data.ty, data.imm, &args) };
            self.builder.insert(spec);
        } else {
            let target = self.target(&targets[0]);
            self.builder.jump(target.block, &target.args);
        }
        None
    }

    fn target(&mut self, target: &Target) -> Target {
        let params = self.function.block_params(target.block);
        let kept = params
            .iter()
            .zip(&target.args)
            .filter(|(p, _)| !self.has(ReductionStep::DropParam(**p)));
        let kept: Vec<Value> = kept.map(|(_, a)| *a).collect();
        let args: Vec<Value> = kept.into_iter().map(|a| self.value(a)).collect();
        let block = self.blocks[&target.block];
        Target::new(block, &args)
    }
}

/// The function without the parameter of this number. A zero replaces it.
pub(super) fn without_argument(function: &Function, index: usize) -> Option<Function> {
    let mut params = function.signature().params.to_vec();
    params.remove(index);
    let signature = Signature::new(&params, &function.signature().results);
    let mut rewriter = Rewriter {
        function,
        changes: BTreeSet::from([ReductionStep::DropParam(function.arguments()[index])]),
        builder: FunctionBuilder::new(function.name(), signature),
        values: BTreeMap::new(),
        blocks: BTreeMap::new(),
    };
    debug_assert!(matches!(function.value_def(function.arguments()[index]), ValueDef::Param(..)));
    rewriter.rewrite();
    rewriter.builder.finish().ok().map(|finished| finished.function)
}
