//! Programs in wasmi, in its default mode: functions are translated at their first call.

use super::ProgramInstance;
use super::literal::Scalar;
use crate::engine::link;
use wasm::wasi::Wasi;
use wasmi::{Engine, Error, F32, F64, Instance as Linked, Linker, Module, Store, Val, ValType};

pub(super) struct WasmiInstance {
    store: Store<Wasi<'static>>,
    instance: Linked,
}

fn text(error: Error) -> String {
    format!("wasmi: {error}")
}

impl WasmiInstance {
    pub(super) fn new(bytes: &[u8], host: Wasi<'static>) -> Result<WasmiInstance, String> {
        let engine = Engine::default();
        let module = Module::new(&engine, bytes).map_err(text)?;
        let mut linker = Linker::new(&engine);
        link(&mut linker, &module)?;
        let mut store = Store::new(&engine, host);
        let instance = linker.instantiate_and_start(&mut store, &module).map_err(text)?;
        Ok(WasmiInstance { store, instance })
    }

    fn function(&self, name: &str) -> Result<wasmi::Func, String> {
        let func = self.instance.get_func(&self.store, name);
        func.ok_or_else(|| format!("no function {name}"))
    }
}

impl ProgramInstance for WasmiInstance {
    fn start(&mut self) -> Result<i32, String> {
        let entry = self.function("_start")?;
        match entry.call(&mut self.store, &[], &mut []) {
            Ok(()) => Ok(0),
            Err(error) => error.i32_exit_status().ok_or_else(|| text(error)),
        }
    }

    fn call(&mut self, name: &str, args: &[u64]) -> Result<Vec<Scalar>, String> {
        let func = self.function(name)?;
        let ty = func.ty(&self.store);
        let value = |(bits, ty): (&u64, &ValType)| match ty {
            ValType::I32 => Some(Val::I32(*bits as i32)),
            ValType::I64 => Some(Val::I64(*bits as i64)),
            ValType::F32 => Some(Val::F32(F32::from_bits(*bits as u32))),
            ValType::F64 => Some(Val::F64(F64::from_bits(*bits))),
            _ => None,
        };
        let args: Option<Vec<Val>> = args.iter().zip(ty.params()).map(value).collect();
        let args = args.ok_or_else(|| format!("{name} takes arguments of other types"))?;
        let mut results = vec![Val::I32(0); ty.results().len()];
        func.call(&mut self.store, &args, &mut results).map_err(text)?;
        let scalar = |value: &Val| match value {
            Val::I32(v) => Ok(Scalar::I32(*v)),
            Val::I64(v) => Ok(Scalar::I64(*v)),
            Val::F32(v) => Ok(Scalar::F32(v.to_bits())),
            Val::F64(v) => Ok(Scalar::F64(v.to_bits())),
            _ => Err("a result of another type".to_owned()),
        };
        results.iter().map(scalar).collect()
    }
}
