//! The action `inline`: the code of a function replaces a call of the function.
//!
//! Example: the block `%a = ...; %r = call @f(%a); return %r` becomes
//!
//! ```text
//!   %a = ...
//!   jump f_entry(%a)
//! f_entry(%x: i32):
//!   %y = add.i32 %x, %x
//!   jump rest(%y)
//! rest(%r: i32):
//!   return %r
//! ```
//!
//! The copies of the callee's blocks, instructions and values have new ids of the caller's family.
//! The copy of a `return` is a jump to the rest. The results of the call become the parameters of
//! the rest under their own ids, so the code behind the call stays as it is. Unreachable blocks of
//! the callee are not copied.

use super::perform::{Check, has_inst, jump_data, no_block, no_inst, no_value, require};
use crate::cfg::Cfg;
use crate::entity::{Block, Inst, Value};
use crate::function::Function;
use crate::inst::{Imm, InstData, Target};
use crate::mutate::InsertPosition;
use crate::opcode::Opcode;
use crate::types::Type;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The version whose code an action inlines. Two are equal if equal actions led to equal texts.
#[derive(Clone, Debug)]
pub struct InlinedCallee(Arc<Function>);

impl InlinedCallee {
    /// The version.
    pub fn function(&self) -> &Function {
        &self.0
    }
}

impl PartialEq for InlinedCallee {
    fn eq(&self, other: &InlinedCallee) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.0.history() == other.0.history() && self.0.same_as(&other.0).is_ok())
    }
}

impl Eq for InlinedCallee {}

impl Hash for InlinedCallee {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.0.name(), self.0.history()).hash(state);
    }
}

/// The copy of a callee in a caller.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct InlinedBody {
    /// The callee.
    pub callee: InlinedCallee,
    /// The reachable blocks of the callee in layout order, each with its copy.
    pub blocks: Vec<(Block, Block)>,
    /// The values of these blocks in order, each with its copy.
    pub values: Vec<(Value, Value)>,
    /// The instructions of these blocks in order, each with its copy.
    pub insts: Vec<(Inst, Inst)>,
    /// The jump to the copy, which takes the place of the call.
    pub jump: Inst,
    /// The block of the instructions behind the call. Its parameters are the results of the call.
    pub rest: Block,
}

impl InlinedBody {
    /// A copy with ids that are new in the family of the caller. Cost: linear in the callee.
    pub(super) fn new(caller: &Function, callee: &Function) -> InlinedBody {
        let family = caller.family();
        let Original { blocks, values, insts } = Original::of(callee);
        InlinedBody {
            callee: InlinedCallee(Arc::new(callee.clone())),
            blocks: blocks.into_iter().map(|block| (block, family.new_block())).collect(),
            values: values.into_iter().map(|value| (value, family.new_value())).collect(),
            insts: insts.into_iter().map(|inst| (inst, family.new_inst())).collect(),
            jump: family.new_inst(),
            rest: family.new_block(),
        }
    }
}

/// The code of a callee that is copied.
struct Original {
    blocks: Vec<Block>,
    values: Vec<Value>,
    insts: Vec<Inst>,
}

impl Original {
    fn of(callee: &Function) -> Original {
        let cfg = Cfg::new(callee);
        let blocks: Vec<Block> = callee.blocks().filter(|block| cfg.is_reachable(*block)).collect();
        let insts: Vec<Inst> = blocks.iter().flat_map(|block| callee.block_insts(*block)).collect();
        let params = blocks.iter().flat_map(|block| callee.block_params(*block));
        let results = insts.iter().flat_map(|inst| &callee.inst(*inst).results);
        let values = params.chain(results).copied().collect();
        Original { blocks, values, insts }
    }
}

/// Puts the copy of a callee in the place of a call.
pub(super) fn inline(f: &mut Function, call: Inst, body: &InlinedBody) -> Check {
    check(f, call, body)?;
    let callee = body.callee.function();
    let args: Vec<Value> = f.inst(call).args.to_vec();
    let before = f.inst_block(call);
    let is_cold = f.is_cold(before);
    f.split_behind(call, body.rest);
    let copier = BodyCopier {
        callee,
        blocks: body.blocks.iter().copied().collect(),
        values: body.values.iter().copied().collect(),
        insts: body.insts.iter().copied().collect(),
        rest: body.rest,
    };
    copier.copy(f, body);
    if is_cold {
        f.cold.insert(body.rest);
        f.cold.extend(body.blocks.iter().map(|(_, copy)| *copy));
    }
    let entry = Target::new(copier.blocks[&callee.entry()], &args);
    f.insert_inst(body.jump, jump_data(entry), &[], InsertPosition::End(before));
    Ok(())
}

fn check(f: &Function, call: Inst, body: &InlinedBody) -> Check {
    let callee = body.callee.function();
    has_inst(f, call)?;
    let data = f.inst(call);
    require(matches!((data.opcode, data.imm), (Opcode::Call, Imm::Func(_))), || {
        format!("{call} is no direct call")
    })?;
    let types = |values: &[Value]| values.iter().map(|v| f.value_type(*v)).collect::<Vec<Type>>();
    let signature = callee.signature();
    let fits = types(&data.args) == *signature.params && types(&data.results) == *signature.results;
    require(fits, || format!("{call} has another signature than @{}", callee.name()))?;
    let is_point =
        |inst: &Inst| matches!(callee.inst(*inst).opcode, Opcode::OsrTest | Opcode::OsrExit);
    require(!callee.all_insts().any(|inst| is_point(&inst)), || {
        format!("@{} has OSR points, whose numbers are those of its own", callee.name())
    })?;
    let Original { blocks, values, insts } = Original::of(callee);
    let has_all = blocks.iter().eq(body.blocks.iter().map(|(of, _)| of))
        && values.iter().eq(body.values.iter().map(|(of, _)| of))
        && insts.iter().eq(body.insts.iter().map(|(of, _)| of));
    require(has_all, || format!("the copy is not one of all of @{}", callee.name()))?;
    are_new(body.blocks.iter().map(|(_, copy)| *copy).chain([body.rest]), |b| no_block(f, b))?;
    are_new(body.values.iter().map(|(_, copy)| *copy), |v| no_value(f, v))?;
    are_new(body.insts.iter().map(|(_, copy)| *copy).chain([body.jump]), |i| no_inst(f, i))
}

/// Checks that ids are new and different.
fn are_new<T: Ord + Copy + std::fmt::Display>(
    ids: impl Iterator<Item = T>,
    is_new: impl Fn(T) -> Check,
) -> Check {
    let mut seen = BTreeSet::new();
    for id in ids {
        is_new(id)?;
        require(seen.insert(id), || format!("{id} is the copy of two"))?;
    }
    Ok(())
}

struct BodyCopier<'a> {
    callee: &'a Function,
    blocks: BTreeMap<Block, Block>,
    values: BTreeMap<Value, Value>,
    insts: BTreeMap<Inst, Inst>,
    rest: Block,
}

impl BodyCopier<'_> {
    fn copy(&self, f: &mut Function, body: &InlinedBody) {
        for (block, copy) in &body.blocks {
            f.insert_block_before(*copy, self.rest);
            if self.callee.is_cold(*block) {
                f.cold.insert(*copy);
            }
            for param in self.callee.block_params(*block) {
                f.append_param(*copy, self.values[param], self.callee.value_type(*param));
            }
        }
        // In reverse postorder, so that operands exist before their users.
        for block in Cfg::new(self.callee).rpo() {
            for inst in self.callee.block_insts(*block) {
                let data = self.data(self.callee.inst(inst));
                let types: Vec<Type> = (self.callee.inst(inst).results.iter())
                    .map(|result| self.callee.value_type(*result))
                    .collect();
                let end = InsertPosition::End(self.blocks[block]);
                f.insert_inst(self.insts[&inst], data, &types, end);
            }
        }
    }

    fn data(&self, of: &InstData) -> InstData {
        let copies = |values: &[Value]| -> Vec<Value> {
            values.iter().map(|value| self.values[value]).collect()
        };
        if of.opcode == Opcode::Return {
            return jump_data(Target::new(self.rest, &copies(&of.args)));
        }
        let target =
            |target: &Target| Target::new(self.blocks[&target.block], &copies(&target.args));
        InstData {
            opcode: of.opcode,
            ty: of.ty,
            imm: of.imm,
            args: copies(&of.args).into(),
            results: copies(&of.results).into(),
            targets: of.targets.iter().map(target).collect(),
        }
    }
}
