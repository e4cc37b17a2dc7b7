//! Calls through tables that never change.
//!
//! Only instantiation writes the entries of a fixed table: the verifier of modules (`MOD-TABLE-3`)
//! forbids all other writes. So a call through the table, with an index that is one constant in
//! every run, calls one function. If this function has the signature that the call names, the call
//! cannot trap. Both versions then call the same function with the same arguments
//! (`a_call_through_a_fixed_table_is_a_call_of_its_target`).

use super::version::ProvedVersion;
use ir::{Func, Imm, Inst, InstData, Module, Opcode};
use transition::Pair;

/// Whether an anchor is a call of a function in one version, and in the other version a call
/// through a fixed table that always calls this function.
pub(crate) fn is_resolved(
    module: &Module,
    versions: &Pair<ProvedVersion<'_, '_>>,
    inst: Inst,
) -> bool {
    let Pair { before, after } = versions;
    let calls = |through: &ProvedVersion<'_, '_>, direct: &ProvedVersion<'_, '_>| {
        let (x, y) = (through.f.inst(inst), direct.f.inst(inst));
        let Imm::Func(func) = y.imm else { return false };
        y.opcode == Opcode::Call
            && x.args.len() == y.args.len() + 1
            && target(module, through, x) == Some(func)
    };
    calls(before, after) || calls(after, before)
}

/// The function that a call through a table calls in every run.
fn target(module: &Module, version: &ProvedVersion<'_, '_>, data: &InstData) -> Option<Func> {
    let (Opcode::CallIndirect, Imm::Indirect(sig, table)) = (data.opcode, data.imm) else {
        return None;
    };
    let func = module.fixed_target(table, version.constant(*data.args.last()?)?)?;
    (module.funcs.get(func)?.sig == sig).then_some(func)
}
