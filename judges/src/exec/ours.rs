//! Functions in the engines of Osier.

use super::literal::Scalar;
use super::{ExecEngine, ProgramInstance};
use crate::speed::start;
use interp::{Limits, Machine, NoObserver, Options, Outcome, Program};
use ir::{Func, Module, Type};
use jit::{Config, Vm};
use osier::tiers::{Eager, NoObserver as NoNativeObserver, Tiered, invoke};
use osier::{Format, load};
use passes::Pipeline;
use std::sync::Arc;
use wasm::wasi::Wasi;

/// The threshold of `osier run`.
const HOT: u32 = 1000;

enum Runner {
    Interpreter(Box<Machine>),
    Native(Box<Vm>, ExecEngine),
}

pub(super) struct OsierInstance {
    module: Arc<Module>,
    runner: Runner,
    host: Wasi<'static>,
}

impl OsierInstance {
    pub(super) fn new(
        bytes: &[u8],
        engine: ExecEngine,
        host: Wasi<'static>,
    ) -> Result<OsierInstance, String> {
        let module = load(Format::Wasm, bytes).map_err(|error| error.in_file("module"))?;
        let module = Arc::new(module);
        let limits = Limits { fuel: u64::MAX, ..Limits::default() };
        let options = Options::default();
        if engine == ExecEngine::Interp {
            let machine = Machine::with_options(&Program::new(&module), limits, options);
            let machine = machine.map_err(|error| error.to_string())?;
            let runner = Runner::Interpreter(Box::new(machine));
            return Ok(OsierInstance { module, runner, host });
        }
        let native = jit::Engine::new(Config::default()).map_err(|error| error.to_string())?;
        let vm = Vm::new(&native, &module, limits, options);
        let mut vm = vm.map_err(|error| error.to_string())?;
        let tiered = || Tiered::new(HOT, Pipeline::default());
        vm.set_tiering(match engine {
            ExecEngine::Tiered => Box::new(tiered().in_background()),
            ExecEngine::Spot => Box::new(tiered()),
            _ => Box::new(Eager::new(NoNativeObserver)),
        });
        Ok(OsierInstance { module, runner: Runner::Native(Box::new(vm), engine), host })
    }

    fn invoke(&mut self, func: Func, args: &[u64]) -> Result<Outcome, String> {
        let host = &mut self.host;
        match &mut self.runner {
            Runner::Interpreter(machine) => Ok(machine.invoke(func, args, host, &mut NoObserver)),
            Runner::Native(vm, ExecEngine::Jit) => {
                invoke(vm, func, args, host).map_err(|error| error.to_string())
            }
            Runner::Native(vm, _) => vm.invoke(func, args, host).map_err(|e| e.to_string()),
        }
    }
}

impl ProgramInstance for OsierInstance {
    fn start(&mut self) -> Result<i32, String> {
        let entry = start(&self.module)?;
        match self.invoke(entry, &[])? {
            Outcome::Returned(_) => Ok(0),
            Outcome::Exited(status) => Ok(status),
            other => Err(other.to_string()),
        }
    }

    fn call(&mut self, name: &str, args: &[u64]) -> Result<Vec<Scalar>, String> {
        let func = self.module.lookup(name).ok_or_else(|| format!("no function {name}"))?;
        let signature = self.module.signature(func).clone();
        if signature.params.len() != args.len() {
            return Err(format!("{name} takes {} arguments", signature.params.len()));
        }
        match self.invoke(func, args)? {
            Outcome::Returned(values) => {
                let results = values.iter().zip(&signature.results);
                results.map(|(bits, ty)| scalar(*bits, *ty)).collect()
            }
            other => Err(other.to_string()),
        }
    }
}

fn scalar(bits: u64, ty: Type) -> Result<Scalar, String> {
    Ok(match ty {
        Type::I32 => Scalar::I32(bits as u32 as i32),
        Type::I64 => Scalar::I64(bits as i64),
        Type::F32 => Scalar::F32(bits as u32),
        Type::F64 => Scalar::F64(bits),
        other => return Err(format!("a result of type {other}")),
    })
}
