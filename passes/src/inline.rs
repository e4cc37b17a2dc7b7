//! Puts the code of small functions in the place of calls of them.
//!
//! *Does*: replaces direct calls of functions whose base is small, those in inlined code included,
//! as long as the caller stays within its growth.
//!
//! *Does not*: inline functions that assume or have OSR points, or a function into itself, directly
//! or through others. Inline through tables: [`crate::ResolveCalls`] makes such calls direct.
//!
//! *Needs on entry*: the module of the function.
//!
//! *Holds on exit*: nothing that later passes rely on.
//!
//! *Actions emitted*: `inline`.
//!
//! *Effect on mappings*: no entry leads from or to points behind an inlined call, since the effects
//! of the callee take its place. The version is a copy of the functions that it is made of
//! (`check::copy`).
//!
//! *Why correct*: a run of the copy executes the instructions that the callee would, on copies of
//! its values.
//!
//! *Cost*: linear in the code of the version after it.

use ir::edit::{Editor, Pass};
use ir::{Func, Function, Imm, Inst, Module, Opcode};
use std::collections::VecDeque;

/// Which calls are inlined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InlinePolicy {
    /// The most instructions of a callee.
    pub size: usize,
    /// The most calls one inside the other.
    pub depth: usize,
    /// The most instructions that a function gains, in hundredths of its own.
    pub growth: usize,
    /// The instructions that each function may gain besides.
    pub allowance: usize,
}

impl Default for InlinePolicy {
    fn default() -> InlinePolicy {
        InlinePolicy { size: 30, depth: 3, growth: 30, allowance: 20 }
    }
}

/// The pass. See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct Inline<'m> {
    /// The module that declares the functions.
    pub module: &'m Module,
    /// The function that is changed.
    pub func: Func,
    /// Which calls are inlined.
    pub policy: InlinePolicy,
}

/// A call that may be inlined.
struct CallSite {
    call: Inst,
    callee: Func,
    /// The functions whose code the call is in, outermost first.
    within: Vec<Func>,
}

impl Pass for Inline<'_> {
    fn name(&self) -> &'static str {
        "inline"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        let size = ed.func().inst_count();
        let mut left = (size * self.policy.growth / 100).saturating_add(self.policy.allowance);
        let sites = |f: &Function, insts: &mut dyn Iterator<Item = Inst>, within: &[Func]| {
            let site = |call| {
                let callee = callee(f, call)?;
                Some(CallSite { call, callee, within: within.to_vec() })
            };
            insts.filter_map(site).collect::<VecDeque<CallSite>>()
        };
        let mut open = sites(ed.func(), &mut ed.func().all_insts(), &[self.func]);
        // Outer calls first, so that the growth is spread over all.
        while let Some(site) = open.pop_front() {
            let Some(body) = self.module.body(site.callee) else { continue };
            let size = body.inst_count();
            if size > left || !self.wants(&site, body) || !ed.plan("call") {
                continue;
            }
            left -= size;
            let made = ed.inline(site.call, body);
            if site.within.len() < self.policy.depth {
                let within = [&site.within[..], &[site.callee]].concat();
                let copies = &mut made.insts.iter().map(|(_, copy)| *copy);
                open.extend(sites(ed.func(), copies, &within));
            }
        }
    }
}

impl Inline<'_> {
    fn wants(&self, site: &CallSite, body: &Function) -> bool {
        let is_plain = |inst: Inst| {
            !matches!(body.inst(inst).opcode, Opcode::Assume | Opcode::OsrTest | Opcode::OsrExit)
        };
        body.inst_count() <= self.policy.size
            && !site.within.contains(&site.callee)
            && body.all_insts().all(is_plain)
    }
}

/// The function that a direct call calls.
fn callee(f: &Function, call: Inst) -> Option<Func> {
    let data = f.inst(call);
    match (data.opcode, data.imm) {
        (Opcode::Call, Imm::Func(func)) => Some(func),
        _ => None,
    }
}
