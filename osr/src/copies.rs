//! The claim that a version with inlined code is a copy, from the log of the inlining.

use ir::edit::{ActionKind, ActionLog, InlinedBody};
use ir::{Func, Function, Imm, Inst};
use std::collections::BTreeMap;
use transition::copy::{CopyClaim, CopyInstance, InstanceId};

/// The claim about the version that a log leads to from the base of a function. `None` if the log
/// has an action other than `inline`. Cost: linear in the base and the log.
pub fn copy_claim(func: Func, base: &Function, log: &ActionLog) -> Option<CopyClaim> {
    let mut claims = Claims::new(func, base);
    for action in log.actions() {
        let ActionKind::Inline { call, body } = action.kind() else { return None };
        claims.add(*call, body)?;
    }
    Some(claims.claim)
}

struct Claims<'a> {
    claim: CopyClaim,
    /// By instance: its original.
    bodies: Vec<&'a Function>,
    /// The copies of instructions in inlined code. Another instruction is its own original.
    origins: BTreeMap<Inst, (InstanceId, Inst)>,
}

impl<'a> Claims<'a> {
    fn new(func: Func, base: &'a Function) -> Claims<'a> {
        let params = base.blocks().flat_map(|block| base.block_params(block));
        let results = base.all_insts().flat_map(|inst| &base.inst(inst).results);
        let values = params.chain(results).map(|value| (*value, *value)).collect();
        let blocks = base.blocks().map(|block| (block, (0, base.first_inst(block)))).collect();
        let instances = vec![CopyInstance { func, caller: None, values }];
        Claims {
            claim: CopyClaim { instances, blocks },
            bodies: vec![base],
            origins: BTreeMap::new(),
        }
    }

    /// Adds the instance of an inlined body. `None` if the instruction is no call of an original.
    fn add(&mut self, call: Inst, body: &'a InlinedBody) -> Option<()> {
        let (caller, at) = self.origins.get(&call).copied().unwrap_or((0, call));
        let original = self.bodies.get(caller).copied().filter(|f| f.has_inst(at))?;
        let Imm::Func(func) = original.inst(at).imm else { return None };
        let (callee, id) = (body.callee.function(), self.bodies.len());
        let starts = body.blocks.iter().map(|(of, copy)| (*copy, (id, callee.first_inst(*of))));
        self.claim.blocks.extend(starts);
        self.claim.blocks.insert(body.rest, (caller, original.next_inst(at)?));
        self.origins.extend(body.insts.iter().map(|(of, copy)| (*copy, (id, *of))));
        self.claim.instances.push(CopyInstance {
            func,
            caller: Some((caller, at)),
            values: body.values.iter().copied().collect(),
        });
        self.bodies.push(callee);
        Some(())
    }
}
