//! A module in the interpreter and in native code.

use super::module::Sample;
use super::state::{CallEnd, InstanceState};
use interp::{Limits, Machine, NoHost, NoObserver, Options, Outcome, Program, TraceLevel};
use ir::reference::NULL;
use ir::{Func, Global, Memory, Module, Table, Type};
use osier::jit::{Config, Engine, Interruption, Vm};
use osier::tiers::{self, Eager};
use std::sync::Arc;
use wasmparser::ExternalKind;

/// The fuel of an instance, which is more than the rounds of its module need.
const FUEL: u64 = 1 << 26;

/// A fresh instance after its start function, or the end of that function. With a trace the exact
/// tier of the interpreter runs it, otherwise the fast tier.
pub(super) fn instance(program: &Program, trace: TraceLevel) -> Result<Machine, CallEnd> {
    let limits = Limits { fuel: FUEL, ..Limits::default() };
    let machine = Machine::with_options(program, limits, Options { trace, ..Options::traced() });
    let mut machine = machine.map_err(|e| CallEnd::Refused(e.to_string()))?;
    if let Some(start) = machine.start_function() {
        match call(&mut machine, start, &[]) {
            CallEnd::Returned(_) => {}
            end => return Err(end),
        }
    }
    Ok(machine)
}

/// Calls a function.
pub(super) fn call(machine: &mut Machine, func: Func, args: &[u64]) -> CallEnd {
    let outcome = machine.invoke(func, args, &mut NoHost, &mut NoObserver);
    end(machine, func, outcome)
}

/// The compiler of a campaign.
///
/// # Errors
/// On a host that native code does not support.
pub(super) fn engine() -> Result<Engine, String> {
    let config = Config { interruption: Interruption::Fuel, ..Config::default() };
    Engine::new(config).map_err(|error| error.to_string())
}

/// Like [`instance`], with every function compiled at its first call.
pub(super) fn native_instance(engine: &Engine, module: &Arc<Module>) -> Result<Vm, CallEnd> {
    let limits = Limits { fuel: FUEL, ..Limits::default() };
    let options = Options::default();
    let mut vm =
        Vm::new(engine, module, limits, options).map_err(|e| CallEnd::Refused(e.to_string()))?;
    vm.set_tiering(Box::new(Eager::new(tiers::NoObserver)));
    if let Some(start) = module.start {
        match native_call(&mut vm, start, &[]) {
            CallEnd::Returned(_) => {}
            end => return Err(end),
        }
    }
    Ok(vm)
}

/// Calls a function natively.
pub(super) fn native_call(vm: &mut Vm, func: Func, args: &[u64]) -> CallEnd {
    match tiers::invoke(vm, func, args, &mut NoHost) {
        Ok(outcome) => end(vm.machine(), func, outcome),
        Err(error) => CallEnd::Refused(error.to_string()),
    }
}

fn end(machine: &Machine, func: Func, outcome: Outcome) -> CallEnd {
    match outcome {
        Outcome::Returned(results) => {
            let types = &machine.declarations().signature(func).results;
            CallEnd::Returned(
                results.iter().zip(types).map(|(bits, ty)| seen(*ty, *bits)).collect(),
            )
        }
        Outcome::Trapped { kind, .. } => CallEnd::Trapped(kind),
        Outcome::OutOfFuel(_) | Outcome::StackOverflow(_) => CallEnd::Unfinished,
        other => CallEnd::Refused(other.to_string()),
    }
}

/// The observable state of the instance.
pub(super) fn state(machine: &Machine, sample: &Sample) -> InstanceState {
    let mut state = InstanceState::default();
    for (_, kind, index) in &sample.exports {
        match kind {
            ExternalKind::Global => {
                let ty = machine.declarations().globals[Global::from_u32(*index)].ty;
                state.globals.insert(*index, seen(ty, machine.globals()[*index as usize]));
            }
            ExternalKind::Memory => {
                let memory = Memory::from_u32(*index);
                state.memories.insert(*index, machine.memories().bytes(memory).to_vec());
            }
            ExternalKind::Table => {
                let entries =
                    machine.table(Table::from_u32(*index)).iter().map(|bits| *bits != NULL);
                state.tables.insert(*index, entries.collect());
            }
            _ => {}
        }
    }
    state
}

/// The compared part of a value: the bits of a number, and whether a reference is null.
fn seen(ty: Type, bits: u64) -> u64 {
    match ty {
        Type::FuncRef | Type::ExternRef => u64::from(bits != NULL),
        _ => bits,
    }
}
