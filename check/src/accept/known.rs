//! Calls whose arguments are known: assumptions about parameters that such a call makes true.
//!
//! Example: a caller has `%three = const.i32 3` and `call @f(%x, %three)`. A version of `@f` begins
//! with `assume.i32 %b, 3`, where `%b` is the second parameter. In the activation that this call
//! begins, the assumption holds.
//!
//! *Why.* A run that executes the call begins an activation of `@f` whose parameters have the
//! contents of the arguments. The result of a constant instruction has the bits of its literal in
//! every run. A parameter of the entry block never changes in an activation: the verifier admits no
//! edge to the entry block. So wherever the version executes the assumption, its operand has the
//! bits of the literal. If the assumption has these bits, it does not fail, and code without its
//! test does the same. No certificate takes part. The claim is about this call alone.

use ir::{Function, Imm, Inst, Opcode, ValueDef};
use std::collections::BTreeSet;
use std::fmt;
use transition::VersionKey;

/// A call that makes assumptions of a version of its callee true. Only [`known_call`] makes one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownCall {
    caller: VersionKey,
    call: Inst,
    callee: VersionKey,
    holds: BTreeSet<Inst>,
}

impl KnownCall {
    /// The version that calls.
    pub fn caller(&self) -> VersionKey {
        self.caller
    }

    /// The call.
    pub fn call(&self) -> Inst {
        self.call
    }

    /// The version of the callee.
    pub fn callee(&self) -> VersionKey {
        self.callee
    }

    /// The assumptions of the callee that hold in the activation which this call begins.
    pub fn holds(&self) -> &BTreeSet<Inst> {
        &self.holds
    }
}

/// Why a call does not make an assumption true.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KnownCallFault {
    /// The caller has no such direct call, or with another number of arguments.
    NoCall(Inst),
    /// The version has no such assumption.
    NoAssumption(Inst),
    /// The assumption is not about a parameter.
    NoParameter(Inst),
    /// The argument is no constant, or has other bits.
    NotKnown(Inst),
}

impl fmt::Display for KnownCallFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KnownCallFault::NoCall(inst) => write!(f, "no call with these arguments: {inst}"),
            KnownCallFault::NoAssumption(inst) => write!(f, "no assumption: {inst}"),
            KnownCallFault::NoParameter(inst) => {
                write!(f, "the assumption {inst} is not about a parameter")
            }
            KnownCallFault::NotKnown(inst) => {
                write!(f, "the call does not fix the bits that the assumption {inst} expects")
            }
        }
    }
}

impl std::error::Error for KnownCallFault {}

/// Checks that a call makes these assumptions of a version of its callee true. The caller of this
/// function answers for the callee: the version is one of the function that the call names. Cost:
/// logarithmic for each assumption.
///
/// # Errors
/// The first assumption that need not hold.
pub fn known_call(
    caller: &Function,
    call: Inst,
    version: &Function,
    assumptions: &BTreeSet<Inst>,
) -> Result<KnownCall, KnownCallFault> {
    let no_call = KnownCallFault::NoCall(call);
    let data = caller.has_inst(call).then(|| caller.inst(call)).ok_or(no_call)?;
    let params = version.block_params(version.entry());
    let is_direct = data.opcode == Opcode::Call && matches!(data.imm, Imm::Func(_));
    if !is_direct || data.args.len() != params.len() {
        return Err(no_call);
    }
    for inst in assumptions {
        let made = version.has_inst(*inst).then(|| version.inst(*inst));
        let made = made.and_then(|data| Some((data.args.first()?, data.assumed()?.1)));
        let (operand, bits) = made.ok_or(KnownCallFault::NoAssumption(*inst))?;
        let param = params.iter().position(|param| param == operand);
        let param = param.ok_or(KnownCallFault::NoParameter(*inst))?;
        if literal(caller, data.args[param]) != Some(bits) {
            return Err(KnownCallFault::NotKnown(*inst));
        }
    }
    let [caller, callee] = [caller, version].map(VersionKey::of);
    Ok(KnownCall { caller, call, callee, holds: assumptions.clone() })
}

/// The bits of a value that is the result of a constant instruction.
fn literal(f: &Function, value: ir::Value) -> Option<u64> {
    let ValueDef::Result(inst, _) = f.value_def(value) else { return None };
    let data = f.inst(inst);
    match data.imm {
        Imm::Bits(bits) if data.opcode == Opcode::Const => Some(bits),
        _ => None,
    }
}
