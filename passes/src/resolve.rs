//! Calls through tables that never change become calls of the functions there.
//!
//! *Does*: replaces `call_indirect` by `call` where the index is a constant or the result of an
//! assumption, and the table is declared `fixed`.
//!
//! *Does not*: look for constants; that is the matter of [`crate::Sccp`]. Resolve calls through
//! tables that code or the embedder may write.
//!
//! *Needs on entry*: the module of the function.
//!
//! *Holds on exit*: no call through a fixed table has an index that is plainly constant, unless the
//! call would trap.
//!
//! *Actions emitted*: `resolve_call`.
//!
//! *Effect on mappings*: none. The call keeps its id and is an anchor of both versions.
//!
//! *Why correct*: instantiation has written the entry of a fixed table at an index, and nothing
//! changes it. A function of the signature that the call names neither traps nor differs.
//!
//! *Cost*: linear in the calls, times the element segments of the module.

use ir::edit::{Editor, Pass};
use ir::{Func, Function, Imm, Inst, Module, Opcode};

/// The pass. See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct ResolveCalls<'m> {
    /// The module that declares the tables.
    pub module: &'m Module,
}

impl Pass for ResolveCalls<'_> {
    fn name(&self) -> &'static str {
        "resolve"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        let calls: Vec<(Inst, Func)> = ed
            .func()
            .all_insts()
            .filter_map(|inst| Some((inst, callee(self.module, ed.func(), inst)?)))
            .collect();
        for (inst, func) in calls {
            if ed.plan("known-callee") {
                ed.resolve_call(inst, func);
            }
        }
    }
}

/// The function that a call through a table calls, if it is known.
fn callee(module: &Module, f: &Function, inst: Inst) -> Option<Func> {
    let data = f.inst(inst);
    let (Opcode::CallIndirect, Imm::Indirect(sig, table)) = (data.opcode, data.imm) else {
        return None;
    };
    let index = *data.args.last()?;
    let assumed = || Some(f.inst(f.defining_inst(index)?).assumed()?.1);
    let func = module.fixed_target(table, f.constant(index).or_else(assumed)?)?;
    (module.funcs.get(func)?.sig == sig).then_some(func)
}
