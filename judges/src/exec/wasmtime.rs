//! Programs in wasmtime, with Cranelift or Winch.

use super::ProgramInstance;
use super::literal::Scalar;
use crate::native::peer::{exit_status, link};
use wasm::wasi::Wasi;
use wasmtime::ValType;
use wasmtime::{Config, Engine, Error, Instance as Linked, Linker, Module, Store, Strategy, Val};

pub(super) struct WasmtimeInstance {
    store: Store<Wasi<'static>>,
    instance: Linked,
}

fn text(error: Error) -> String {
    format!("wasmtime: {error:?}")
}

impl WasmtimeInstance {
    /// Compiles a module on one thread per core, and instantiates it.
    pub(super) fn new(
        bytes: &[u8],
        is_winch: bool,
        host: Wasi<'static>,
    ) -> Result<WasmtimeInstance, String> {
        let mut config = Config::new();
        config.strategy(if is_winch { Strategy::Winch } else { Strategy::Cranelift });
        let engine = Engine::new(&config).map_err(text)?;
        let module = Module::new(&engine, bytes).map_err(text)?;
        let mut linker = Linker::new(&engine);
        link(&mut linker, &module)?;
        let mut store = Store::new(&engine, host);
        let instance = linker.instantiate(&mut store, &module).map_err(text)?;
        Ok(WasmtimeInstance { store, instance })
    }

    fn function(&mut self, name: &str) -> Result<wasmtime::Func, String> {
        let func = self.instance.get_func(&mut self.store, name);
        func.ok_or_else(|| format!("no function {name}"))
    }
}

impl ProgramInstance for WasmtimeInstance {
    fn start(&mut self) -> Result<i32, String> {
        let entry = self.function("_start")?;
        match entry.call(&mut self.store, &[], &mut []) {
            Ok(()) => Ok(0),
            Err(error) => exit_status(&error).ok_or_else(|| text(error)),
        }
    }

    fn call(&mut self, name: &str, args: &[u64]) -> Result<Vec<Scalar>, String> {
        let func = self.function(name)?;
        let ty = func.ty(&self.store);
        let value = |(bits, ty): (&u64, ValType)| match ty {
            ValType::I32 => Some(Val::I32(*bits as i32)),
            ValType::I64 => Some(Val::I64(*bits as i64)),
            ValType::F32 => Some(Val::F32(*bits as u32)),
            ValType::F64 => Some(Val::F64(*bits)),
            _ => None,
        };
        let args: Option<Vec<Val>> = args.iter().zip(ty.params()).map(value).collect();
        let args = args.ok_or_else(|| format!("{name} takes arguments of other types"))?;
        let mut results = vec![Val::I32(0); ty.results().len()];
        func.call(&mut self.store, &args, &mut results).map_err(text)?;
        let scalar = |value: &Val| match *value {
            Val::I32(v) => Ok(Scalar::I32(v)),
            Val::I64(v) => Ok(Scalar::I64(v)),
            Val::F32(v) => Ok(Scalar::F32(v)),
            Val::F64(v) => Ok(Scalar::F64(v)),
            _ => Err("a result of another type".to_owned()),
        };
        results.iter().map(scalar).collect()
    }
}
