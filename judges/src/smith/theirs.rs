//! A module in wasmi.

use super::module::Sample;
use super::state::{CallEnd, InstanceState};
use ir::TrapKind;
use wasmi_1::errors::{ErrorKind, TableError};
use wasmi_1::{
    AsContext, Config, Engine, Error, Instance, Linker, Module, Store, TrapCode, Val, ValType,
};
use wasmparser::ExternalKind;

/// The fuel of an instance, which is more than the rounds of its module need.
const FUEL: u64 = 1 << 26;

/// An instance in wasmi with its store.
pub(super) struct Theirs {
    store: Store<()>,
    instance: Instance,
}

/// A module that wasmi has accepted.
pub(super) struct TheirModule {
    engine: Engine,
    module: Module,
}

/// Translates a module in wasmi.
///
/// # Errors
/// If wasmi rejects the module.
pub(super) fn translate(sample: &Sample) -> Result<TheirModule, String> {
    let mut config = Config::default();
    config.consume_fuel(true).wasm_multi_memory(true);
    // Deeper than the rounds of a module allow calls to nest.
    config.set_max_recursion_depth(100_000).set_max_stack_height(64 << 20);
    let engine = Engine::new(&config);
    let module = Module::new(&engine, &sample.bytes).map_err(|e| e.to_string())?;
    Ok(TheirModule { engine, module })
}

impl TheirModule {
    /// A fresh instance after its start function, or the end of that function.
    pub(super) fn instance(&self) -> Result<Theirs, CallEnd> {
        let mut store = Store::new(&self.engine, ());
        store.set_fuel(FUEL).map_err(|e| CallEnd::Refused(e.to_string()))?;
        let linker = Linker::new(&self.engine);
        let instance =
            linker.instantiate_and_start(&mut store, &self.module).map_err(|e| end(&e))?;
        Ok(Theirs { store, instance })
    }
}

impl Theirs {
    /// Calls an exported function.
    pub(super) fn call(&mut self, name: &str, args: &[u64]) -> CallEnd {
        let Some(func) = self.instance.get_func(&self.store, name) else {
            return CallEnd::Refused(format!("no exported function {name}"));
        };
        let ty = func.ty(&self.store);
        let args: Option<Vec<Val>> =
            ty.params().iter().zip(args).map(|(ty, bits)| value(*ty, *bits)).collect();
        let Some(args) = args else {
            return CallEnd::Refused("an argument is a vector".to_owned());
        };
        let mut results = vec![Val::I32(0); ty.results().len()];
        match func.call(&mut self.store, &args, &mut results) {
            Ok(()) => match results.iter().map(bits).collect() {
                Some(results) => CallEnd::Returned(results),
                None => CallEnd::Refused("a result is a vector".to_owned()),
            },
            Err(error) => end(&error),
        }
    }

    /// The observable state of the instance.
    pub(super) fn state(&self, sample: &Sample) -> InstanceState {
        let mut state = InstanceState::default();
        for (name, kind, index) in &sample.exports {
            match kind {
                ExternalKind::Global => {
                    let global = self.instance.get_global(&self.store, name);
                    let bits = global.and_then(|g| bits(&g.get(&self.store)));
                    if let Some(bits) = bits {
                        state.globals.insert(*index, bits);
                    }
                }
                ExternalKind::Memory => {
                    if let Some(memory) = self.instance.get_memory(&self.store, name) {
                        state
                            .memories
                            .insert(*index, memory.data(self.store.as_context()).to_vec());
                    }
                }
                ExternalKind::Table => {
                    if let Some(table) = self.instance.get_table(&self.store, name) {
                        let entries =
                            (0..table.size(&self.store)).map(|at| table.get(&self.store, at));
                        let entries = entries.map(|entry| entry.as_ref().and_then(bits) == Some(1));
                        state.tables.insert(*index, entries.collect());
                    }
                }
                _ => {}
            }
        }
        state
    }
}

/// The end of a call that did not return.
fn end(error: &Error) -> CallEnd {
    match error.as_trap_code() {
        Some(TrapCode::UnreachableCodeReached) => CallEnd::Trapped(TrapKind::Unreachable),
        Some(TrapCode::MemoryOutOfBounds) => CallEnd::Trapped(TrapKind::MemoryOutOfBounds),
        Some(TrapCode::TableOutOfBounds) => CallEnd::Trapped(TrapKind::TableOutOfBounds),
        Some(TrapCode::IndirectCallToNull) => CallEnd::Trapped(TrapKind::NullFunction),
        Some(TrapCode::IntegerDivisionByZero) => CallEnd::Trapped(TrapKind::DivisionByZero),
        Some(TrapCode::IntegerOverflow) => CallEnd::Trapped(TrapKind::IntegerOverflow),
        Some(TrapCode::BadConversionToInteger) => CallEnd::Trapped(TrapKind::InvalidConversion),
        Some(TrapCode::BadSignature) => CallEnd::Trapped(TrapKind::SignatureMismatch),
        Some(TrapCode::StackOverflow | TrapCode::OutOfFuel) => CallEnd::Unfinished,
        // wasmi has no trap code for this trap.
        None if matches!(error.kind(), ErrorKind::Table(TableError::CopyOutOfBounds)) => {
            CallEnd::Trapped(TrapKind::TableOutOfBounds)
        }
        _ => CallEnd::Refused(error.to_string()),
    }
}

/// The compared part of a value: the bits of a number, and whether a reference is null.
fn bits(value: &Val) -> Option<u64> {
    Some(match value {
        Val::I32(v) => u64::from(*v as u32),
        Val::I64(v) => *v as u64,
        Val::F32(v) => u64::from(v.to_bits()),
        Val::F64(v) => v.to_bits(),
        Val::FuncRef(reference) => u64::from(!reference.is_null()),
        Val::ExternRef(reference) => u64::from(!reference.is_null()),
        Val::V128(_) => return None,
    })
}

/// A number with these bits, or null; `None` for other types.
fn value(ty: ValType, bits: u64) -> Option<Val> {
    Some(match ty {
        ValType::I32 => Val::I32(bits as u32 as i32),
        ValType::I64 => Val::I64(bits as i64),
        ValType::F32 => Val::F32(wasmi_1::F32::from_bits(bits as u32)),
        ValType::F64 => Val::F64(wasmi_1::F64::from_bits(bits)),
        ValType::FuncRef | ValType::ExternRef => Val::default(ty),
        ValType::V128 => return None,
    })
}
