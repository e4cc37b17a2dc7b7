//! Helpers of the dispatch loops for calls: entering and leaving activations, and calling the host.

use super::activations::Activations;
use super::decoded::Decoded;
use super::host::{Host, HostError};
use super::memory::Memories;
use super::program::Program;
use super::tables::Tables;
use super::version::MachineVersion;
use ir::entity::{Func, Sig, Table};
use ir::reference;
use ir::text::AtName;
use ir::trap::TrapKind;
use smallvec::{SmallVec, smallvec};

/// A short list of values.
pub(super) type ValueList = SmallVec<[u64; 8]>;

/// Begins an activation of `version`, copies its arguments from the slots of the caller, and
/// returns the base of its slots. Returns `None` when a limit is reached.
#[inline]
pub(super) fn enter(
    activations: &mut Activations,
    version: u32,
    callee: &Decoded,
    arg_slots: &[u32],
    results_at: u32,
) -> Option<usize> {
    let caller = activations.top().base;
    let base = activations.push(version, callee, results_at)?;
    let (below, above) = activations.stack.split_at_mut(base);
    for (to, from) in above.iter_mut().zip(arg_slots) {
        *to = below[caller + *from as usize];
    }
    Some(base)
}

/// The arguments of a call of an external function, read from these slots of the caller. Returns
/// `None` when the call depth limit forbids another activation.
#[cold]
pub(super) fn arguments<S: Copy + Into<u32>>(
    activations: &Activations,
    base: usize,
    slots: &[S],
) -> Option<Vec<u64>> {
    let value = |slot: &S| activations.stack[base + (*slot).into() as usize];
    (!activations.are_full()).then(|| slots.iter().map(value).collect())
}

/// Pops the top activation and copies the values of `slots` into the result slots of its caller.
/// Returns false, without copying, when the run has no caller.
#[inline]
pub(super) fn leave(
    activations: &mut Activations,
    versions: &[MachineVersion],
    slots: &[u32],
) -> bool {
    let callee = activations.pop();
    let Some(caller) = activations.of_run().last() else { return false };
    let (base, pool) = (caller.base, &versions[caller.version as usize].code.pool);
    let result_slots = &pool[callee.results_at as usize..][..slots.len()];
    let (below, above) = activations.stack.split_at_mut(callee.base);
    for (to, from) in result_slots.iter().zip(slots) {
        below[base + *to as usize] = above[*from as usize];
    }
    true
}

/// The callee of an indirect call, or the trap that the call ends in.
pub(super) fn indirect_callee(
    program: &Program,
    tables: &Tables,
    sig: Sig,
    table: Table,
    index: u64,
) -> Result<Func, TrapKind> {
    let entry = tables.get(table, index).ok_or(TrapKind::TableOutOfBounds)?;
    let module = program.declarations();
    // Only the embedder can write bits that name no function; they count as a null reference.
    let func = reference::func(entry)
        .filter(|func| module.funcs.is_valid(*func))
        .ok_or(TrapKind::NullFunction)?;
    let found = module.funcs[func].sig;
    if found != sig && module.sigs[found] != module.sigs[sig] {
        return Err(TrapKind::SignatureMismatch);
    }
    Ok(func)
}

/// Calls an imported function and returns its results, with bits outside their types cleared.
///
/// # Errors
/// As the host, and [`HostError::Failed`] if the function does more than its declared effect.
pub(super) fn call_host(
    program: &Program,
    func: Func,
    args: &[u64],
    host: &mut dyn Host,
    memories: &mut Memories,
) -> Result<ValueList, HostError> {
    let decl = &program.declarations().funcs[func];
    if !decl.effect.is_bounded() {
        return call_undeclared(program, func, args, host, memories);
    }
    let exceeds = |what: &str| {
        let (name, effect) = (AtName(&decl.name), decl.effect);
        HostError::failed(format!("{name} is declared `{effect}`, but {what}"))
    };
    let (is_tracked, before) = (memories.tracked(), memories.tracked_digest());
    let results =
        call_undeclared(program, func, args, host, memories).map_err(|error| match error {
            HostError::Trap(kind) if decl.effect.is_none() => exceeds(&format!("it traps: {kind}")),
            HostError::Exit(_) if decl.effect.is_none() => exceeds("it exits"),
            error => error,
        })?;
    if memories.tracked_digest() != before {
        return Err(exceeds("it wrote memory"));
    }
    // A function without effect may run twice, and then gives the same result.
    if is_tracked
        && decl.effect.is_none()
        && call_undeclared(program, func, args, host, memories)? != results
    {
        return Err(exceeds("two calls with equal arguments gave different results"));
    }
    Ok(results)
}

fn call_undeclared(
    program: &Program,
    func: Func,
    args: &[u64],
    host: &mut dyn Host,
    memories: &mut Memories,
) -> Result<ValueList, HostError> {
    let module = program.declarations();
    let types = &module.signature(func).results;
    let import =
        module.funcs[func].import.as_ref().expect("interp: a host call is of an imported function");
    let mut results: ValueList = smallvec![0; types.len()];
    host.call(import, func, args, memories, &mut results)?;
    for (result, ty) in results.iter_mut().zip(types) {
        *result &= ty.mask();
    }
    Ok(results)
}
