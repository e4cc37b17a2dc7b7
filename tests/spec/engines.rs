//! The engines that run the modules of a script: both tiers of the interpreter, and native code;
//! and both again with all functions after `O3`.

use interp::{
    Host, HostError, InstantiateError, Limits, Machine, Memories, NoObserver, Options, Outcome,
    Program,
};
use ir::eval::is_nan;
use ir::module::ImportName;
use ir::{Func, Function, Module, TrapKind, Type};
use jit::{Bounds, Config, Effort, Nans, Vm, VmError};
use osier::driver::{NoObserver as NoDriverObserver, Vigilance};
use osier::inlining::InlinePlan;
use osier::passes::{Callers, Pipeline};
use osier::tiers::Tiered;
use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

/// The host for the functions of `spectest`, which do nothing.
struct Silent;

impl Host for Silent {
    fn call(
        &mut self,
        _import: &ImportName,
        _func: Func,
        _args: &[u64],
        _memories: &mut Memories,
        _results: &mut [u64],
    ) -> Result<(), HostError> {
        Ok(())
    }
}

/// An engine with its options.
pub(crate) struct Engine {
    /// The name that failure messages use.
    pub(crate) name: &'static str,
    options: Options,
    /// The native compiler; without one, the interpreter runs everything.
    native: Option<jit::Engine>,
    /// Functions run after this plan, with code inlined.
    plan: Option<InlinePlan>,
    /// Functions begin in the interpreter, and are optimized after this number of calls, or visits
    /// of a loop.
    tiers: Option<u32>,
    /// Another thread makes the code of tiers.
    beside: bool,
}

/// All engines. The outcomes of the first engine are the expected outcomes of all other engines.
pub(crate) static ENGINES: LazyLock<[Engine; 11]> = LazyLock::new(|| {
    let exactly = Options { poison: true, track_memory: true, ..Options::traced() };
    let native = |bounds, effort, nans| {
        let config = Config { bounds, effort, nans, ..Config::default() };
        Some(jit::Engine::new(config).expect("native code is supported where it is tested"))
    };
    let tiered = |name, threshold, beside| Engine {
        name,
        options: Options::default(),
        native: native(Bounds::Guarded, Effort::Least, Nans::Canonical),
        plan: None,
        tiers: Some(threshold),
        beside,
    };
    [
        Engine {
            name: "exactly",
            options: exactly,
            native: None,
            plan: None,
            tiers: None,
            beside: false,
        },
        Engine {
            name: "fast",
            options: Options::traced(),
            native: None,
            plan: None,
            tiers: None,
            beside: false,
        },
        Engine {
            name: "fast, inlined",
            options: Options::traced(),
            native: None,
            plan: Some(InlinePlan::o3()),
            tiers: None,
            beside: false,
        },
        Engine {
            name: "natively, guarded",
            options: exactly,
            native: native(Bounds::Guarded, Effort::Least, Nans::Canonical),
            plan: None,
            tiers: None,
            beside: false,
        },
        Engine {
            name: "natively, checked",
            options: Options::traced(),
            native: native(Bounds::Checked, Effort::Most, Nans::Canonical),
            plan: None,
            tiers: None,
            beside: false,
        },
        Engine {
            name: "natively, inlined",
            options: exactly,
            native: native(Bounds::Guarded, Effort::Least, Nans::Canonical),
            plan: Some(InlinePlan::o3()),
            tiers: None,
            beside: false,
        },
        Engine {
            name: "natively, NaNs of the processor",
            options: Options::traced(),
            native: native(Bounds::Guarded, Effort::Most, Nans::Platform),
            plan: Some(InlinePlan::o3()),
            tiers: None,
            beside: false,
        },
        tiered("tiered, 1", 1, false),
        tiered("tiered, 2", 2, false),
        tiered("tiered, 1000", 1000, false),
        tiered("tiered, 1, in the background", 1, true),
    ]
});

/// A machine that holds all modules of a script as one.
pub(crate) enum Instance {
    Interpreted(Box<Machine>),
    Native(Box<Vm>),
}

impl Instance {
    /// A machine without a module.
    pub(crate) fn new(engine: &Engine) -> Result<Instance, String> {
        let (nothing, limits) = (Arc::new(Module::new()), Limits::default());
        Ok(match &engine.native {
            None => {
                let machine =
                    Machine::with_options(&Program::new(&nothing), limits, engine.options);
                Instance::Interpreted(Box::new(machine.map_err(|e| e.to_string())?))
            }
            Some(native) => {
                let mut vm =
                    Vm::new(native, &nothing, limits, engine.options).map_err(|e| e.to_string())?;
                if let Some(threshold) = engine.tiers {
                    let policy = Tiered::new(threshold, Pipeline::default());
                    let policy = if engine.beside { policy.in_background() } else { policy };
                    vm.set_tiering(Box::new(policy));
                }
                Instance::Native(Box::new(vm))
            }
        })
    }

    pub(crate) fn machine(&self) -> &Machine {
        match self {
            Instance::Interpreted(machine) => machine,
            Instance::Native(vm) => vm.machine(),
        }
    }

    /// A function without native code in an engine that compiles all functions.
    pub(crate) fn interpreted(&self, engine: &Engine) -> Option<Func> {
        let Instance::Native(vm) = self else { return None };
        if engine.tiers.is_some() {
            return None;
        }
        vm.module().defined().map(|(func, _)| func).find(|func| !vm.machine().is_external(*func))
    }

    /// Extends the machine to all modules so far, including the last. A native machine compiles all
    /// its functions, called or not.
    ///
    /// # Panics
    /// If compilation fails.
    pub(crate) fn extend(
        &mut self,
        module: &Arc<Module>,
        engine: &Engine,
    ) -> Result<(), InstantiateError> {
        let known = self.machine().declarations().funcs.len();
        let vm = match self {
            Instance::Interpreted(machine) => {
                let program = machine.program().extended(module);
                machine.extend(&program)?;
                let new = module.defined().filter(|(func, _)| func.as_u32() as usize >= known);
                for (func, body) in new.filter(|_| engine.plan.is_some()) {
                    let version = engine.version(module, func, body);
                    let id = machine.add_version(module, func, &version);
                    machine.set_current(func, id);
                }
                return Ok(());
            }
            Instance::Native(vm) => vm,
        };
        let extended = vm.extend(module).map_err(|error| match error {
            VmError::Instantiate(error) => error,
            error => panic!("the machine is not extended: {error}"),
        });
        if Arc::ptr_eq(vm.module(), module) && engine.tiers.is_none() {
            for (func, body) in module.defined().filter(|(func, _)| func.as_u32() as usize >= known)
            {
                let version = engine.version(module, func, body);
                let version = vm.engine().version(module, func, &version, &[]);
                let version =
                    version.unwrap_or_else(|error| panic!("{func} is not compiled: {error}"));
                vm.install(&version, Vec::new())
                    .unwrap_or_else(|error| panic!("{func} is not installed: {error}"));
            }
        }
        extended
    }

    /// Runs a function to its end.
    ///
    /// # Errors
    /// If a native run ends otherwise than a program can.
    pub(crate) fn invoke(&mut self, func: Func, args: &[u64]) -> Result<Outcome, String> {
        match self {
            Instance::Interpreted(machine) => {
                Ok(machine.invoke(func, args, &mut Silent, &mut NoObserver))
            }
            Instance::Native(vm) => {
                vm.invoke(func, args, &mut Silent).map_err(|error| error.to_string())
            }
        }
    }
}

impl Engine {
    /// Whether native code leaves NaNs as the processor makes them. The assertions of the scripts
    /// still say which NaNs the standard allows.
    pub(crate) fn has_platform_nans(&self) -> bool {
        self.native.as_ref().is_some_and(|engine| engine.config().nans == Nans::Platform)
    }

    /// The version of a function that runs.
    fn version<'f>(&self, module: &Module, func: Func, body: &'f Function) -> Cow<'f, Function> {
        match &self.plan {
            None => Cow::Borrowed(body),
            Some(plan) => {
                let callers = Callers::new(module);
                let observer = &mut NoDriverObserver;
                Cow::Owned(plan.version(&callers, func, body, Vigilance::On, observer).0)
            }
        }
    }

    /// Whether an action may end like this instead of as wanted. The two must be equal, with three
    /// exceptions of native code that the documentation of [`jit::Vm`] lists. The stack may
    /// overflow at another depth, and an out-of-bounds trap may be attributed to another access of
    /// the function. NaNs may have other bits under [`Nans::Platform`]. After passes, a trap may be
    /// attributed to an equal one elsewhere.
    pub(crate) fn may_end(&self, found: &Outcome, wanted: &Outcome) -> bool {
        let limit = |outcome: &Outcome| matches!(outcome, Outcome::StackOverflow(_));
        let outside = |outcome: &Outcome| {
            let is = outcome.trap() == Some(TrapKind::MemoryOutOfBounds);
            outcome.site().filter(|_| is).map(|site| site.func)
        };
        let alike = || {
            (limit(found) && limit(wanted))
                || (outside(found).is_some() && outside(found) == outside(wanted))
        };
        let modulo_nans = || {
            let [found, wanted] = [found, wanted].map(Outcome::returned);
            let (Some(found), Some(wanted)) = (found, wanted) else { return false };
            let alike = |(a, b): (&u64, &u64)| {
                a == b || [Type::F32, Type::F64].iter().any(|ty| is_nan(*ty, *a) && is_nan(*ty, *b))
            };
            found.len() == wanted.len() && found.iter().zip(wanted).all(alike)
        };
        let same_trap = || found.trap().is_some() && found.trap() == wanted.trap();
        found == wanted
            || (self.native.is_some() && alike())
            || (self.has_platform_nans() && modulo_nans())
            || ((self.plan.is_some() || self.tiers.is_some())
                && (same_trap() || (limit(found) && limit(wanted))))
    }
}
