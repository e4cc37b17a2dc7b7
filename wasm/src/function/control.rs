//! Operators that direct control: structures open and close, branches leave them.

use super::{Exit, Frame, Kind, Result, Translator, number_type};
use crate::budget::cost;
use crate::error::ImportError;
use ir::{Block, Edge, Imm, Inst, InstSpec, Opcode, Target, TrapKind, Type, Value};
use std::collections::HashMap;
use wasmparser::{BlockType, BrTable};

impl Translator<'_> {
    pub(super) fn push_frame(&mut self, kind: Kind, result: Option<Type>) {
        let height = self.stack.len() as u32;
        self.frames.push(Frame { kind, exit: Exit::Unused, height, result, variable: None });
    }

    pub(super) fn open(&mut self, kind: Kind, ty: BlockType) -> Result<()> {
        if self.frames.len() > self.built.deepest {
            self.built.deepest = self.frames.len();
            self.work(cost::LEVEL)?;
        }
        let result = match ty {
            BlockType::Empty => None,
            BlockType::Type(ty) => Some(number_type(ty, self.offset)?),
            BlockType::FuncType(_) => {
                return Err(ImportError::unsupported("blocks with parameters or several results", self.offset));
            }
        };
        self.push_frame(kind, result);
        Ok(())
    }

    pub(super) fn open_loop(&mut self, ty: BlockType) -> Result<()> {
        let head = self.create_block()?;
        self.jump(head)?;
        self.builder.switch_to(head);
        self.open(Kind::Loop(head), ty)
    }

    pub(super) fn open_if(&mut self, ty: BlockType) -> Result<()> {
        let condition = self.pop();
        let (then, otherwise) = (self.create_block()?, self.reserve_block()?);
        let branch = self.br_if(condition, then, otherwise)?;
        self.builder.switch_to(then);
        self.open(Kind::If(branch, otherwise), ty)
    }

    /// `else`: the first arm leaves, the second starts.
    pub(super) fn otherwise(&mut self) -> Result<()> {
        let index = self.frames.len() - 1;
        if self.unreachable.is_none() {
            self.leave(index)?;
        }
        let frame = &mut self.frames[index];
        let Kind::If(_, otherwise) = std::mem::replace(&mut frame.kind, Kind::Block) else {
            unreachable!("importer: the validator lets `else` stand in an `if` only");
        };
        self.stack.truncate(frame.height as usize);
        self.builder.place_block(otherwise);
        self.builder.switch_to(otherwise);
        self.unreachable = None;
        Ok(())
    }

    /// `end`: goes on behind the structure, if anything leads there.
    pub(super) fn end(&mut self) -> Result<()> {
        let index = self.frames.len() - 1;
        match self.frames[index].kind {
            Kind::Loop(_) => {}
            Kind::Block => self.end_block(index)?,
            Kind::If(branch, otherwise) => self.end_if(index, branch, otherwise)?,
        }
        let frame = self.frames.pop().expect("the validator pairs every `end`");
        if self.unreachable.is_some() {
            self.stack.truncate(frame.height as usize);
        }
        if self.frames.is_empty() && self.unreachable.is_none() {
            self.ret(frame.result)?;
        }
        Ok(())
    }

    fn end_block(&mut self, index: usize) -> Result<()> {
        let reachable = self.unreachable.is_none();
        match (self.frames[index].exit, reachable) {
            (Exit::Unused, _) => return Ok(()),
            (Exit::Open(block), false) => self.builder.switch_to(block),
            (Exit::Open(_) | Exit::Made(_), _) => {
                if reachable {
                    self.leave(index)?;
                }
                let exit = self.exit_block(index)?;
                self.builder.place_block(exit);
                self.builder.switch_to(exit);
            }
        }
        self.unreachable = None;
        let frame = self.frames[index];
        self.stack.truncate(frame.height as usize);
        if let Some(variable) = frame.variable {
            let value = self.use_var(variable)?;
            self.push(value)?;
        }
        Ok(())
    }

    /// An `if` without an `else`, which has no result.
    fn end_if(&mut self, index: usize, branch: Inst, otherwise: Block) -> Result<()> {
        match self.frames[index].exit {
            // The two ways from the branch and from a `br` meet in one block, not one behind another.
            Exit::Made(exit) => self.builder.redirect(Edge { inst: branch, index: 1 }, exit),
            Exit::Open(block) => {
                self.jump_from(block, otherwise)?;
                self.frames[index].exit = Exit::Made(otherwise);
            }
            Exit::Unused => self.frames[index].exit = Exit::Made(otherwise),
        }
        self.end_block(index)
    }

    /// Ends the current block by leaving a structure that is not a loop.
    fn leave(&mut self, index: usize) -> Result<()> {
        self.set_result(index)?;
        match self.frames[index].exit {
            Exit::Unused => {
                let block = self.builder.current().expect("reachable code has an open block");
                self.frames[index].exit = Exit::Open(block);
            }
            Exit::Open(_) | Exit::Made(_) => {
                let exit = self.exit_block(index)?;
                self.jump(exit)?;
            }
        }
        Ok(())
    }

    /// The block behind a structure that is not a loop.
    fn exit_block(&mut self, index: usize) -> Result<Block> {
        if let Exit::Made(block) = self.frames[index].exit {
            return Ok(block);
        }
        let exit = self.reserve_block()?;
        if let Exit::Open(block) = std::mem::replace(&mut self.frames[index].exit, Exit::Made(exit)) {
            self.jump_from(block, exit)?;
        }
        Ok(exit)
    }

    /// Makes the top of the stack the result of a structure, for those who leave it here.
    fn set_result(&mut self, index: usize) -> Result<()> {
        let Frame { kind, result: Some(ty), variable, .. } = self.frames[index] else { return Ok(()) };
        if matches!(kind, Kind::Loop(_)) {
            return Ok(()); // a branch to a loop goes to its head, which takes nothing
        }
        let variable = match variable {
            Some(variable) => variable,
            None => self.builder.declare_var(ty),
        };
        self.frames[index].variable = Some(variable);
        let value = *self.stack.last().expect("the validator sees to the result");
        self.def_var(variable, value)
    }

    /// Where a branch to a structure goes that cannot leave its block open.
    fn label(&mut self, index: usize) -> Result<Block> {
        match self.frames[index].kind {
            Kind::Loop(head) => {
                self.loop_heads.insert(head);
                Ok(head)
            }
            Kind::Block | Kind::If(..) => self.exit_block(index),
        }
    }

    fn frame_index(&self, depth: u32) -> usize {
        self.frames.len() - 1 - depth as usize
    }

    pub(super) fn branch(&mut self, depth: u32) -> Result<()> {
        let index = self.frame_index(depth);
        match self.frames[index].kind {
            _ if index == 0 => return self.return_from_function(),
            Kind::Loop(_) => {
                let head = self.label(index)?;
                self.jump(head)?;
            }
            Kind::Block | Kind::If(..) => self.leave(index)?,
        }
        self.unreachable = Some(0);
        Ok(())
    }

    pub(super) fn branch_if(&mut self, depth: u32) -> Result<()> {
        let condition = self.pop();
        let index = self.frame_index(depth);
        self.set_result(index)?;
        let (target, next) = (self.label(index)?, self.create_block()?);
        self.br_if(condition, target, next)?;
        self.builder.switch_to(next);
        Ok(())
    }

    pub(super) fn branch_table(&mut self, table: &BrTable<'_>) -> Result<()> {
        let selector = self.pop();
        if table.is_empty() {
            return self.branch(table.default());
        }
        // The reader has seen as many targets: the table does not just claim them.
        self.work(cost::BUILT_TARGET * u64::from(table.len()))?;
        let mut targets = Vec::with_capacity(table.len() as usize + 1);
        // A table may name one target a million times.
        let mut seen: HashMap<u32, Block> = HashMap::new();
        for depth in table.targets().chain([Ok(table.default())]) {
            let depth = depth?;
            let block = match seen.get(&depth) {
                Some(block) => *block,
                None => {
                    let index = self.frame_index(depth);
                    self.set_result(index)?;
                    self.label(index)?
                }
            };
            seen.insert(depth, block);
            targets.push(Target::new(block, &[]));
        }
        self.insert(InstSpec::terminator(Opcode::Switch, &[selector], targets))?;
        self.unreachable = Some(0);
        Ok(())
    }

    pub(super) fn return_from_function(&mut self) -> Result<()> {
        self.ret(self.frames[0].result)?;
        self.unreachable = Some(0);
        Ok(())
    }

    /// Ends the current block by returning the top of the stack, if the function has a result.
    fn ret(&mut self, result: Option<Type>) -> Result<()> {
        let values: Vec<Value> = result.map(|_| self.pop()).into_iter().collect();
        self.insert(InstSpec::terminator(Opcode::Return, &values, Vec::new()))?;
        Ok(())
    }

    pub(super) fn trap(&mut self) -> Result<()> {
        self.insert(InstSpec::new(Opcode::Trap, Type::I32, Imm::Trap(TrapKind::Unreachable), &[]))?;
        self.unreachable = Some(0);
        Ok(())
    }

    pub(super) fn create_block(&mut self) -> Result<Block> {
        let block = self.reserve_block()?;
        self.builder.place_block(block);
        Ok(block)
    }

    fn reserve_block(&mut self) -> Result<Block> {
        self.work(cost::BUILT_BLOCK)?;
        self.built.blocks += 1;
        Ok(self.builder.reserve_block())
    }

    fn jump(&mut self, block: Block) -> Result<Inst> {
        self.insert(InstSpec::terminator(Opcode::Jump, &[], vec![Target::new(block, &[])]))
    }

    /// Ends a block left open with a jump, and goes on where the builder was.
    fn jump_from(&mut self, from: Block, to: Block) -> Result<()> {
        let current = self.builder.current();
        self.builder.switch_to(from);
        self.jump(to)?;
        if let Some(current) = current {
            self.builder.switch_to(current);
        }
        Ok(())
    }

    fn br_if(&mut self, condition: Value, then: Block, otherwise: Block) -> Result<Inst> {
        let targets = vec![Target::new(then, &[]), Target::new(otherwise, &[])];
        self.insert(InstSpec::terminator(Opcode::BrIf, &[condition], targets))
    }
}
