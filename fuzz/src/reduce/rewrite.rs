//! Smaller functions: a set of changes applied while a function is built anew.

use ir::cfg::Cfg;
use ir::{
    Block, Function, FunctionBuilder, Inst, InstSpec, Opcode, Signature, Target, Value, ValueDef,
};
use std::collections::{BTreeMap, BTreeSet};

/// One way to make a function smaller.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Change {
    /// A terminator becomes a return of zeros.
    Return(Inst),
    /// A terminator becomes a jump to one of its targets.
    Jump(Inst, usize),
    /// An instruction is dropped; its results become zeros.
    Drop(Inst),
    /// An instruction is dropped; its result becomes its first operand of the same type.
    Forward(Inst),
    /// A block parameter is dropped and becomes zero.
    DropParam(Value),
    /// A block that only one jump leads to is put at its end.
    Merge(Block),
    /// A constant becomes another.
    Constant(Inst, u64),
}

/// The changes that could be made to a function, kind by kind, those that take most away first.
pub(super) fn possible(function: &Function) -> Vec<Vec<Change>> {
    let mut kinds: [Vec<Change>; 8] = Default::default();
    for block in function.blocks() {
        if block != function.entry() {
            kinds[3].extend(function.block_params(block).iter().map(|p| Change::DropParam(*p)));
            kinds[4].extend(can_merge(function, block).then_some(Change::Merge(block)));
        }
        for inst in function.block_insts(block) {
            let data = function.inst(inst);
            if data.opcode.is_terminator() {
                kinds[0].extend((data.opcode != Opcode::Return).then_some(Change::Return(inst)));
                let targets = if data.targets.len() > 1 { data.targets.len() } else { 0 };
                kinds[1].extend((0..targets).map(|target| Change::Jump(inst, target)));
                continue;
            }
            match data.constant() {
                Some(bits) => {
                    kinds[7].extend(
                        [0, 1].into_iter().filter(|b| *b < bits).map(|b| Change::Constant(inst, b)),
                    );
                    kinds[2].extend(
                        function.users(data.results[0]).is_empty().then_some(Change::Drop(inst)),
                    );
                }
                None => kinds[2].push(Change::Drop(inst)),
            }
            kinds[6].extend(forwarded(function, inst).map(|_| Change::Forward(inst)));
        }
    }
    // From the end: what is used goes after what uses it.
    kinds[2].reverse();
    kinds.into_iter().filter(|kind| !kind.is_empty()).collect()
}

/// The operand that may stand for the result of an instruction.
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

/// The function with changes; `None` when they do not go together.
pub(super) fn changed(function: &Function, changes: &[Change]) -> Option<Function> {
    let mut rewriter = Rewriter {
        function,
        changes: changes.iter().copied().collect(),
        builder: FunctionBuilder::new(function.name(), function.signature().clone()),
        values: BTreeMap::new(),
        blocks: BTreeMap::new(),
    };
    rewriter.rewrite();
    rewriter.builder.finish().ok()
}

struct Rewriter<'a> {
    function: &'a Function,
    changes: BTreeSet<Change>,
    builder: FunctionBuilder,
    /// What stands for each value.
    values: BTreeMap<Value, Value>,
    blocks: BTreeMap<Block, Block>,
}

impl Rewriter<'_> {
    fn has(&self, change: Change) -> bool {
        self.changes.contains(&change)
    }

    /// The targets of a terminator, changes made.
    fn targets(&self, inst: Inst) -> Vec<Target> {
        let targets = &self.function.inst(inst).targets;
        let jump = (0..targets.len()).find(|t| self.has(Change::Jump(inst, *t)));
        match jump {
            _ if self.has(Change::Return(inst)) => Vec::new(),
            Some(target) => vec![targets[target].clone()],
            None => targets.clone(),
        }
    }

    /// Blocks that can still be reached, each after those that dominate it.
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
            if self.has(Change::Merge(block)) {
                continue;
            }
            let new = self.builder.create_block();
            self.blocks.insert(block, new);
            for &param in self.function.block_params(block) {
                if !self.has(Change::DropParam(param)) {
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

    /// Everything in a block, and in those merged into it.
    fn block(&mut self, block: Block) {
        let mut block = Some(block);
        while let Some(at) = block {
            for &param in self.function.block_params(at) {
                if self.has(Change::DropParam(param)) && !self.values.contains_key(&param) {
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

    /// A zero for a value.
    fn zero(&mut self, value: Value) {
        let zero = self.builder.constant(self.function.value_type(value), 0);
        self.values.insert(value, zero);
    }

    /// What stands for a value; a new zero for one that is not defined any more.
    fn value(&mut self, value: Value) -> Value {
        match self.values.get(&value) {
            Some(stands) => *stands,
            None => self.builder.constant(self.function.value_type(value), 0),
        }
    }

    fn inst(&mut self, inst: Inst) {
        let data = self.function.inst(inst);
        if self.has(Change::Drop(inst)) {
            for &result in data.results.iter().filter(|r| !self.function.users(**r).is_empty()) {
                self.zero(result);
            }
            return;
        }
        if self.has(Change::Forward(inst))
            && let Some(operand) = forwarded(self.function, inst)
        {
            let stands = self.value(operand);
            self.values.insert(data.results[0], stands);
            return;
        }
        let args: Vec<Value> = data.args.iter().map(|a| self.value(*a)).collect();
        let constant = [0, 1].into_iter().find(|bits| self.has(Change::Constant(inst, *bits)));
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

    /// Ends the open block, or goes on with the block merged into it.
    fn terminator(&mut self, inst: Inst) -> Option<Block> {
        let targets = self.targets(inst);
        if let [target] = targets.as_slice()
            && self.has(Change::Merge(target.block))
        {
            let values: Vec<Value> = target.args.iter().map(|a| self.value(*a)).collect();
            for (param, value) in self.function.block_params(target.block).iter().zip(values) {
                if !self.has(Change::DropParam(*param)) {
                    self.values.insert(*param, value);
                }
            }
            return Some(target.block);
        }
        let data = self.function.inst(inst);
        if self.has(Change::Return(inst)) {
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
        let kept =
            params.iter().zip(&target.args).filter(|(p, _)| !self.has(Change::DropParam(**p)));
        let kept: Vec<Value> = kept.map(|(_, a)| *a).collect();
        let args: Vec<Value> = kept.into_iter().map(|a| self.value(a)).collect();
        let block = self.blocks[&target.block];
        Target::new(block, &args)
    }
}

/// The function without the argument with this number, which becomes zero.
pub(super) fn without_argument(function: &Function, index: usize) -> Option<Function> {
    let mut params = function.signature().params.to_vec();
    params.remove(index);
    let signature = Signature::new(&params, &function.signature().results);
    let mut rewriter = Rewriter {
        function,
        changes: BTreeSet::from([Change::DropParam(function.arguments()[index])]),
        builder: FunctionBuilder::new(function.name(), signature),
        values: BTreeMap::new(),
        blocks: BTreeMap::new(),
    };
    debug_assert!(matches!(function.value_def(function.arguments()[index]), ValueDef::Param(..)));
    rewriter.rewrite();
    rewriter.builder.finish().ok()
}
