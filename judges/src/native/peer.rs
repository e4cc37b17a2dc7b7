//! wasmtime, with which the native code is compared.

use crate::arguments::NativeArguments;
use crate::engine::{Printed, Slice, process};
use crate::speed::{SpeedSubject, Timed, seconds_of_thread};
use interp::HostError;
use std::fmt;
use wasm::wasi::{MODULE, Wasi};
use wasmtime::{Caller, Config, Engine, Error, Extern, ExternType, Linker, Module, Store, Val};

/// The error by which a program's exit unwinds wasmtime.
#[derive(Debug)]
struct WasiExit(i32);

impl fmt::Display for WasiExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exit with status {}", self.0)
    }
}

impl std::error::Error for WasiExit {}

/// Compiles the module and runs the program. Returns the seconds of compilation, and the run.
pub(super) fn run(
    subject: &SpeedSubject,
    arguments: &NativeArguments,
) -> Result<(f64, Timed), String> {
    let text = |error: Error| format!("wasmtime: {error:?}");
    let engine = Engine::new(&config(arguments)).map_err(text)?;
    let begun = seconds_of_thread();
    let module = Module::new(&engine, &subject.bytes).map_err(text)?;
    let compile = seconds_of_thread() - begun;
    let mut linker = Linker::new(&engine);
    link(&mut linker, &module)?;
    let printed = Printed::default();
    let mut store = Store::new(&engine, process(&subject.args, &subject.stdin, &printed));
    let instance = linker.instantiate(&mut store, &module).map_err(text)?;
    let entry = instance.get_func(&mut store, "_start").ok_or("it exports no _start")?;
    let begun = seconds_of_thread();
    let outcome = entry.call(&mut store, &[], &mut []);
    let seconds = seconds_of_thread() - begun;
    match outcome {
        Err(error) if exit_status(&error) != Some(0) => Err(text(error)),
        _ => Ok((compile, Timed { seconds, printed: printed.take() })),
    }
}

/// The status of a program that asked to exit.
pub(crate) fn exit_status(error: &Error) -> Option<i32> {
    error.downcast_ref::<WasiExit>().map(|exit| exit.0)
}

/// The default configuration, with compilation on one thread. With checked accesses, memories have
/// neither a reservation nor a guard.
fn config(arguments: &NativeArguments) -> Config {
    let mut config = Config::new();
    config.parallel_compilation(false).cranelift_nan_canonicalization(arguments.canonical);
    if arguments.checked {
        config.memory_reservation(0).memory_guard_size(0);
    }
    config
}

/// Defines the imports of a module, all of them from WASI.
pub(crate) fn link(linker: &mut Linker<Wasi<'static>>, module: &Module) -> Result<(), String> {
    for import in module.imports() {
        let ExternType::Func(ty) = import.ty() else {
            return Err(format!("{}.{} is not a function", import.module(), import.name()));
        };
        if import.module() != MODULE {
            return Err(format!("no host module {}", import.module()));
        }
        let field = import.name().to_owned();
        let call = move |caller: Caller<'_, Wasi<'static>>, args: &[Val], results: &mut [Val]| {
            answer(caller, &field, args, results)
        };
        linker.func_new(MODULE, import.name(), ty, call).map_err(|e| e.to_string())?;
    }
    Ok(())
}

fn answer(
    mut caller: Caller<'_, Wasi<'static>>,
    field: &str,
    args: &[Val],
    results: &mut [Val],
) -> Result<(), Error> {
    let memory = caller.get_export("memory").and_then(Extern::into_memory);
    let memory = memory.ok_or_else(|| Error::msg("the program exports no memory"))?;
    let args: Vec<u64> = args.iter().filter_map(bits).collect();
    let (bytes, wasi) = memory.data_and_store_mut(&mut caller);
    match wasi.call_on(&mut Slice(bytes), field, &args) {
        Ok(answer) => {
            for (result, answer) in results.iter_mut().zip(answer) {
                *result = Val::I32(answer as i32);
            }
            Ok(())
        }
        Err(HostError::Exit(status)) => Err(Error::new(WasiExit(status))),
        Err(HostError::Failed(error)) => Err(Error::msg(error.to_string())),
        Err(HostError::Trap(kind)) => Err(Error::msg(kind.to_string())),
    }
}

/// The bits of an integer; the functions of WASI take no other type.
fn bits(value: &Val) -> Option<u64> {
    match value {
        Val::I32(v) => Some(u64::from(*v as u32)),
        Val::I64(v) => Some(*v as u64),
        _ => None,
    }
}
