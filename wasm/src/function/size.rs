//! Bounds the size of a function before its translation.
//!
//! A table that grows has up to twice the size that it needs, and holds two copies while it moves.
//! In a function of 200,000 instructions, that is more memory than all of its contents.

use super::ModuleContext;
use super::locals::LocalMap;
use crate::operators;
use ir::Shape;
use wasmparser::{BlockType, FunctionBody, Operator};

/// Upper bounds on the entries of a function's tables, and the bytes for them.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct TableSizes {
    pub(super) insts: usize,
    /// Results, parameters, and placeholders for reads of locals.
    pub(super) values: usize,
}

impl TableSizes {
    /// Reads the operators of a body that nothing has validated yet, up to the first that is not
    /// well-formed. The bounds hold for a valid body. They are larger than needed where no code
    /// reaches the end of a structure: the code behind that end is unreachable, and counts. Cost: a
    /// fraction of the translation.
    pub(super) fn of(body: &FunctionBody<'_>, context: &ModuleContext<'_>) -> TableSizes {
        // The entry block creates at most one zero for each type.
        let mut counter = Counter {
            context,
            sizes: TableSizes { insts: 8, values: 8 },
            dead: None,
            stretch: 0,
            seen: LocalMap::default(),
        };
        let Ok(mut operators) = body.get_operators_reader() else { return counter.sizes };
        while !operators.eof() {
            let Ok(operator) = operators.read() else { break };
            counter.count(&operator);
        }
        counter.sizes
    }
}

struct Counter<'c> {
    context: &'c ModuleContext<'c>,
    sizes: TableSizes,
    /// In unreachable code, the number of structures opened within it.
    dead: Option<u32>,
    /// The number of control operators so far. Between two control operators there is one block.
    stretch: u32,
    /// By local: the stretch that accessed it last.
    seen: LocalMap<u32>,
}

impl Counter<'_> {
    fn count(&mut self, operator: &Operator<'_>) {
        use Operator::{Block, Else, End, If, Loop};
        if let Some(depth) = self.dead {
            self.dead = match operator {
                Block { .. } | Loop { .. } | If { .. } => Some(depth + 1),
                End if depth > 0 => Some(depth - 1),
                End | Else if depth == 0 => None,
                _ => Some(depth),
            };
            if self.dead.is_some() {
                return;
            }
        }
        match *operator {
            Block { blockty } | Loop { blockty } | If { blockty } => {
                self.control(2);
                self.sizes.values += self.carried(blockty);
            }
            // Two jumps end the arms, and one the block of the first branch to the end.
            End => self.control(3),
            Else | Operator::BrIf { .. } => self.control(2),
            Operator::Br { .. }
            | Operator::BrTable { .. }
            | Operator::Return
            | Operator::Unreachable => {
                self.control(2);
                self.dead = Some(0);
            }
            Operator::LocalGet { local_index } => self.access(local_index, 1),
            Operator::LocalSet { local_index } | Operator::LocalTee { local_index } => {
                self.access(local_index, 0)
            }
            Operator::Call { function_index } => {
                let func = self.context.index.funcs.get(function_index as usize);
                let results = func.map(|f| self.context.module.signature(*f).results.len());
                self.inst(results.unwrap_or(0));
            }
            Operator::CallIndirect { type_index, .. } => {
                let sig = self.context.types.get(type_index as usize);
                self.inst(sig.map_or(0, |sig| self.context.module.sigs[*sig].results.len()));
            }
            Operator::Nop | Operator::Drop => {}
            _ => {
                let access = operators::memory_access(operator);
                let stores = access.is_some_and(|a| matches!(a.0.shape(), Shape::Store(_)));
                self.inst(usize::from(!stores));
            }
        }
    }

    fn inst(&mut self, results: usize) {
        self.sizes.insts += 1;
        self.sizes.values += results;
    }

    fn control(&mut self, insts: usize) {
        self.sizes.insts += insts;
        self.stretch += 1;
    }

    /// Counts an access to a local. Only the first in a block makes a placeholder, if it is a read.
    fn access(&mut self, local: u32, reads: usize) {
        if self.seen.insert(local, self.stretch) != Some(self.stretch) {
            self.sizes.values += reads;
        }
    }

    /// The number of values that branches to a structure carry, at most.
    fn carried(&self, ty: BlockType) -> usize {
        match ty {
            BlockType::Empty => 0,
            BlockType::Type(_) => 1,
            BlockType::FuncType(index) => {
                let sig = self.context.types.get(index as usize);
                let signature = sig.map(|sig| &self.context.module.sigs[*sig]);
                signature.map_or(0, |s| s.params.len() + s.results.len())
            }
        }
    }
}
