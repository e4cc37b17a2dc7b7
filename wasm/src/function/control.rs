//! Translates control operators: structures, branches and returns.
//!
//! A loop starts a header block, and each arm of an `if` starts a block. The exit of a structure
//! gets a block only if it needs one. The first branch that leaves a structure ends its block
//! without a terminator ([`FrameExit::Open`]). If control cannot fall through to the `end`, the
//! code that follows simply continues that block. A second branch forces a block for the exit, and
//! the open block then gets a jump to it.

use super::{ControlFrame, FrameExit, FrameKind, Result, Translator, value_type};
use crate::budget::cost;
use ir::{Block, Edge, Imm, Inst, InstSpec, Opcode, Target, TrapKind, Type, TypeList, Value};
use std::collections::HashMap;
use wasmparser::{BlockType, BrTable};

impl Translator<'_> {
    /// Opens a structure that takes the top `params` values of the stack and gives `results`.
    pub(super) fn push_frame(
        &mut self,
        kind: FrameKind,
        params: usize,
        results: TypeList,
    ) -> Result<()> {
        if self.frames.len() > self.built.deepest {
            self.built.deepest = self.frames.len();
            self.work(cost::LEVEL)?;
        }
        // A block of two bytes may have a type of a thousand values, so the values are charged too.
        self.work(cost::STACK * (params + results.len()) as u64)?;
        let below = self.stack.len() - params;
        let params = self.stack[below..].to_vec();
        let (exit, height) = (FrameExit::Unused, below as u32);
        self.frames.push(ControlFrame {
            kind,
            exit,
            height,
            params,
            results,
            variables: Vec::new(),
        });
        Ok(())
    }

    /// The number of values that a structure takes, and the types of the values it gives.
    fn block_type(&self, ty: BlockType) -> Result<(usize, TypeList)> {
        Ok(match ty {
            BlockType::Empty => (0, TypeList::new()),
            BlockType::Type(ty) => (0, TypeList::from_slice(&[value_type(ty, self.offset)?])),
            BlockType::FuncType(index) => {
                let sig = self.context.types[index as usize];
                self.context.check_sig(sig, self.offset)?;
                let signature = &self.context.module.sigs[sig];
                (signature.params.len(), signature.results.clone())
            }
        })
    }

    pub(super) fn open(&mut self, ty: BlockType) -> Result<()> {
        let (params, results) = self.block_type(ty)?;
        self.push_frame(FrameKind::Block, params, results)
    }

    pub(super) fn open_loop(&mut self, ty: BlockType) -> Result<()> {
        let (params, results) = self.block_type(ty)?;
        let head = self.create_block()?;
        self.push_frame(FrameKind::Loop(head), params, results)?;
        let index = self.frames.len() - 1;
        self.set_label_values(index)?;
        self.jump(head)?;
        self.builder.switch_to(head);
        self.take_label_values(index)
    }

    pub(super) fn open_if(&mut self, ty: BlockType) -> Result<()> {
        let (params, results) = self.block_type(ty)?;
        let condition = self.pop();
        let (then, otherwise) = (self.create_block()?, self.reserve_block()?);
        let branch = self.br_if(condition, then, otherwise)?;
        self.builder.switch_to(then);
        self.push_frame(FrameKind::If(branch, otherwise), params, results)
    }

    /// Translates `else`: ends the first arm and starts the second.
    pub(super) fn otherwise(&mut self) -> Result<()> {
        let index = self.frames.len() - 1;
        if self.unreachable.is_none() {
            self.leave(index)?;
        }
        let frame = &mut self.frames[index];
        let FrameKind::If(_, otherwise) = std::mem::replace(&mut frame.kind, FrameKind::Block)
        else {
            unreachable!("importer: the validator accepts `else` only in an `if`");
        };
        self.stack.truncate(frame.height as usize);
        self.stack.append(&mut frame.params);
        self.builder.place_block(otherwise);
        self.builder.switch_to(otherwise);
        self.unreachable = None;
        Ok(())
    }

    /// Translates `end`: continues after the structure, if control can reach that place.
    pub(super) fn end(&mut self) -> Result<()> {
        let index = self.frames.len() - 1;
        match self.frames[index].kind {
            FrameKind::Loop(_) => {}
            FrameKind::Block => self.end_block(index)?,
            FrameKind::If(branch, otherwise) => self.end_if(index, branch, otherwise)?,
        }
        let frame = self.frames.pop().expect("the validator pairs every `end`");
        if self.unreachable.is_some() {
            self.stack.truncate(frame.height as usize);
        }
        if self.frames.is_empty() && self.unreachable.is_none() {
            self.ret(frame.results.len())?;
        }
        Ok(())
    }

    fn end_block(&mut self, index: usize) -> Result<()> {
        let reachable = self.unreachable.is_none();
        match (self.frames[index].exit, reachable) {
            (FrameExit::Unused, _) => return Ok(()),
            (FrameExit::Open(block), false) => self.builder.switch_to(block),
            (FrameExit::Open(_) | FrameExit::Made(_), _) => {
                if reachable {
                    self.leave(index)?;
                }
                let exit = self.exit_block(index)?;
                self.builder.place_block(exit);
                self.builder.switch_to(exit);
            }
        }
        self.unreachable = None;
        self.take_label_values(index)
    }

    /// Ends an `if` without an `else`. The results, if any, are the values that the `if` took, and
    /// an empty second arm passes them on.
    fn end_if(&mut self, index: usize, branch: Inst, otherwise: Block) -> Result<()> {
        if !self.frames[index].results.is_empty() {
            self.otherwise()?;
            return self.end_block(index);
        }
        match self.frames[index].exit {
            // The false edge of the branch and the exits by `br` meet in one block. Without the
            // redirection, the false edge would go through a block of its own.
            FrameExit::Made(exit) => self.builder.redirect(Edge { inst: branch, index: 1 }, exit),
            // Otherwise the target of the false edge becomes the exit block.
            FrameExit::Open(block) => {
                self.jump_from(block, otherwise)?;
                self.frames[index].exit = FrameExit::Made(otherwise);
            }
            FrameExit::Unused => self.frames[index].exit = FrameExit::Made(otherwise),
        }
        self.end_block(index)
    }

    /// Ends the current block with an exit from a structure that is not a loop.
    fn leave(&mut self, index: usize) -> Result<()> {
        self.set_label_values(index)?;
        match self.frames[index].exit {
            FrameExit::Unused => {
                let block = self.builder.current().expect("reachable code has an open block");
                self.frames[index].exit = FrameExit::Open(block);
                if let Some(notes) = &mut self.notes {
                    notes.left_open(block, self.offset);
                }
            }
            FrameExit::Open(_) | FrameExit::Made(_) => {
                let exit = self.exit_block(index)?;
                self.jump(exit)?;
            }
        }
        Ok(())
    }

    /// The block that follows a structure other than a loop; created on demand.
    fn exit_block(&mut self, index: usize) -> Result<Block> {
        if let FrameExit::Made(block) = self.frames[index].exit {
            return Ok(block);
        }
        let exit = self.reserve_block()?;
        if let FrameExit::Open(block) =
            std::mem::replace(&mut self.frames[index].exit, FrameExit::Made(exit))
        {
            self.jump_from(block, exit)?;
        }
        Ok(exit)
    }

    /// Assigns the top values of the stack to the variables of a structure. A branch carries these
    /// values: the parameters of a loop, or the results of any other structure.
    fn set_label_values(&mut self, index: usize) -> Result<()> {
        let frame = &self.frames[index];
        let count = match frame.kind {
            FrameKind::Loop(_) => frame.params.len(),
            FrameKind::Block | FrameKind::If(..) => frame.results.len(),
        };
        let first = self.stack.len() - count;
        // The first branch declares the variables, with the types of its values.
        if frame.variables.is_empty() {
            let types =
                self.stack[first..].iter().map(|value| self.builder.function().value_type(*value));
            let types: TypeList = types.collect();
            self.frames[index].variables =
                types.iter().map(|ty| self.builder.declare_var(*ty)).collect();
        }
        for place in 0..count {
            self.def_var(self.frames[index].variables[place], self.stack[first + place])?;
        }
        Ok(())
    }

    /// Replaces the values that a structure has left on the stack by the values of its variables,
    /// which the branches to it carried.
    fn take_label_values(&mut self, index: usize) -> Result<()> {
        let (height, count) =
            (self.frames[index].height as usize, self.frames[index].variables.len());
        self.stack.truncate(height);
        for place in 0..count {
            let value = self.use_var(self.frames[index].variables[place])?;
            self.push(value)?;
        }
        Ok(())
    }

    /// The target block of a branch to a structure, for a branch that cannot leave its block open.
    fn label(&mut self, index: usize) -> Result<Block> {
        match self.frames[index].kind {
            FrameKind::Loop(head) => {
                self.loop_heads.insert(head);
                Ok(head)
            }
            FrameKind::Block | FrameKind::If(..) => self.exit_block(index),
        }
    }

    fn frame_index(&self, depth: u32) -> usize {
        self.frames.len() - 1 - depth as usize
    }

    pub(super) fn branch(&mut self, depth: u32) -> Result<()> {
        let index = self.frame_index(depth);
        match self.frames[index].kind {
            _ if index == 0 => return self.return_from_function(),
            FrameKind::Loop(_) => {
                self.set_label_values(index)?;
                let head = self.label(index)?;
                self.jump(head)?;
            }
            FrameKind::Block | FrameKind::If(..) => self.leave(index)?,
        }
        self.unreachable = Some(0);
        Ok(())
    }

    pub(super) fn branch_if(&mut self, depth: u32) -> Result<()> {
        let condition = self.pop();
        let index = self.frame_index(depth);
        self.set_label_values(index)?;
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
        // The reader has read all targets already, so a false count cannot exhaust the budget here.
        self.work(cost::BUILT_TARGET * u64::from(table.len()))?;
        let mut targets = Vec::with_capacity(table.len() as usize + 1);
        // A table may name one target a million times, so each target is resolved once.
        let mut seen: HashMap<u32, Block> = HashMap::new();
        for depth in table.targets().chain([Ok(table.default())]) {
            let depth = depth?;
            let block = match seen.get(&depth) {
                Some(block) => *block,
                None => {
                    let index = self.frame_index(depth);
                    self.set_label_values(index)?;
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
        self.ret(self.frames[0].results.len())?;
        self.unreachable = Some(0);
        Ok(())
    }

    /// Ends the current block with a return of the top values of the stack.
    fn ret(&mut self, count: usize) -> Result<()> {
        let values: Vec<Value> = self.stack.split_off(self.stack.len() - count);
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

    /// Ends an open block with a jump, and restores the current block of the builder.
    fn jump_from(&mut self, from: Block, to: Block) -> Result<()> {
        let current = self.builder.current();
        self.builder.switch_to(from);
        let jump = self.jump(to)?;
        if let Some(notes) = &mut self.notes {
            notes.jumped(from, jump);
        }
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
