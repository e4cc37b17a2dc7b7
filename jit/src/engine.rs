//! Compiles a version of a function to native code, for one configuration.

use crate::abi;
use crate::calls::ContextCode;
use crate::code::{About, CodeBudget, LazyStubs, MachineCode};
use crate::config::{Config, Effort, Nans};
use crate::counters::NativeCounts;
use crate::direct::{BoundFunctions, DirectFunction};
use crate::error::CompileError;
use crate::lower::cold::cold_calls;
use crate::lower::counting::Counting;
use crate::lower::{CodeKind, LEAF_FRAME, Lowered, Unit, is_short_leaf, lower};
use crate::observe::{CodeObserver, PieceKind};
use crate::points::{Cell, FlagWords};
use crate::stubs::Stub;
use crate::sys::{self, Unsupported};
use cranelift_codegen::isa::{OwnedTargetIsa, TargetFrontendConfig};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_codegen::{Context as Compilation, ir as clif};
use cranelift_frontend::FunctionBuilderContext;
use ir::eval::is_nan;
use ir::verifier::verify_function;
use ir::{Func, Function, Imm, Inst, Module, Signature};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use transition::copy::InlinedSites;

/// The length of the buffer in words. Arguments, results and the values of an OSR point cross
/// between native code and Rust through the buffer. The number stays below the 2^16 values at which
/// Cranelift panics (see `most_values`).
pub(crate) const BUFFER_WORDS: usize = 60_000;

/// A compiler for one configuration. Cloning is cheap, and any number of threads may compile at the
/// same time.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<EngineInner>,
}

struct EngineInner {
    config: Config,
    isa: OwnedTargetIsa,
    budget: CodeBudget,
    observers: Arc<[Arc<dyn CodeObserver>]>,
    flag_words: Arc<FlagWords>,
    /// The stubs made so far, one for each kind and signature. Each is compiled at its first use.
    stubs: Mutex<HashMap<Stub, Arc<MachineCode>>>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("config", &self.inner.config).finish_non_exhaustive()
    }
}

/// One function to compile.
pub(crate) struct Request<'a> {
    pub(crate) module: &'a Module,
    pub(crate) func: Func,
    pub(crate) function: &'a Function,
    pub(crate) kind: CodeKind,
    /// The kind of the code, for observers.
    pub(crate) piece: PieceKind,
    pub(crate) cells: Arc<[Cell]>,
    /// The counters of the version, if it counts.
    pub(crate) counters: Option<Arc<NativeCounts>>,
    /// Maps each instruction of `function` to the instruction of the version it is a copy of.
    /// `None` is the identity.
    pub(crate) origins: Option<Box<[Option<Inst>]>>,
    /// The sites of inlined code, by instruction of the version.
    pub(crate) sites: Option<Arc<InlinedSites>>,
    /// The functions that the code calls without a shim.
    pub(crate) bound: BoundFunctions,
    /// The calls with cells, and the assumptions without tests, of the version.
    pub(crate) contexts: ContextCode,
}

impl Engine {
    /// An engine for the processor of this host.
    ///
    /// # Errors
    /// [`Unsupported`] if native code cannot run on this host.
    pub fn new(config: Config) -> Result<Engine, Unsupported> {
        Engine::observed(config, Vec::new())
    }

    /// Like [`Engine::new`], and reports to the observers each piece of code that the engine makes
    /// and frees.
    ///
    /// # Errors
    /// As [`Engine::new`].
    pub fn observed(
        config: Config,
        observers: Vec<Arc<dyn CodeObserver>>,
    ) -> Result<Engine, Unsupported> {
        sys::supported()?;
        let isa = isa(&config)?;
        Ok(Engine {
            inner: Arc::new(EngineInner {
                config,
                isa,
                budget: CodeBudget::new(config.code_bytes),
                observers: observers.into(),
                flag_words: Arc::default(),
                stubs: Mutex::default(),
            }),
        })
    }

    /// Whether `other` is this engine or one of its clones.
    pub(crate) fn is(&self, other: &Engine) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// The context words that versions of this engine test for flags.
    pub(crate) fn flag_words(&self) -> &Arc<FlagWords> {
        &self.inner.flag_words
    }

    /// The configuration of the engine.
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// Compiles one function. Costs one compilation by Cranelift, about linear in the function; two
    /// for a short leaf with a large frame.
    ///
    /// # Errors
    /// - [`CompileError::TooManyValues`] if the function passes more values at once than the buffer
    ///   or a call can hold.
    /// - [`CompileError::Invalid`] if the verifier rejects the function, or its signature differs
    ///   from `func`'s.
    /// - [`CompileError::Codegen`] and [`CompileError::OutOfMemory`] from code generation.
    pub(crate) fn compile(&self, request: Request<'_>) -> Result<MachineCode, CompileError> {
        let name = || request.function.name().to_owned();
        let Request { module, func, function, kind, .. } = request;
        // The three limits come before `check` and the lowering: Cranelift panics on functions
        // beyond them.
        let needed = most_values(function);
        if needed > BUFFER_WORDS {
            return Err(CompileError::TooManyValues {
                function: name(),
                needed,
                limit: BUFFER_WORDS,
            });
        }
        let passed = most_arguments(function, kind);
        if passed > abi::MOST_ARGUMENTS {
            return Err(CompileError::TooManyValues {
                function: name(),
                needed: passed,
                limit: abi::MOST_ARGUMENTS,
            });
        }
        check(module, func, function, kind)?;
        self.check_assumptions(function)?;
        if is_short_leaf(function) {
            let code = self.generate(&request, false)?;
            // The frame is known only now. A short function rarely has a large one.
            if code.frame() <= LEAF_FRAME {
                return Ok(code);
            }
        }
        self.generate(&request, true)
    }

    /// Rejects an assumption about the bits of a NaN, which under [`Nans::Platform`] no code may
    /// rely on: passes put the literal in place of the value
    /// (`an_assumed_nan_needs_canonical_nans`).
    fn check_assumptions(&self, function: &Function) -> Result<(), CompileError> {
        if self.inner.config.nans == Nans::Canonical {
            return Ok(());
        }
        let of_nan = |inst: &Inst| {
            let data = function.inst(*inst);
            matches!(data.imm, Imm::Assumed(bits, _) if is_nan(data.ty, bits))
        };
        match function.all_insts().find(of_nan) {
            None => Ok(()),
            Some(inst) => Err(CompileError::Invalid {
                function: function.name().to_owned(),
                what: format!(
                    "{inst} assumes the bits of a NaN, which `Nans::Platform` leaves open"
                ),
            }),
        }
    }

    /// Lowers a function that has passed all checks, and compiles it.
    fn generate(
        &self,
        request: &Request<'_>,
        checks_stack: bool,
    ) -> Result<MachineCode, CompileError> {
        let Request { module, func, function, kind, .. } = *request;
        let name = function.name().to_owned();
        let (cells, origins) = (Arc::clone(&request.cells), request.origins.clone());
        let (counters, sites) = (request.counters.clone(), request.sites.clone());
        let counting =
            counters.as_deref().map(|counters| Counting { counters, origins: origins.as_deref() });
        let config = &self.inner.config;
        let cold = self.cold_stubs(module, function)?;
        let cells_of = &*cells;
        let bound = request.bound.clone();
        let contexts = request.contexts.clone();
        let origins_of = origins.clone();
        let unit = Unit {
            module,
            function,
            kind,
            config,
            cells: cells_of,
            counting,
            checks_stack,
            cold: &cold,
            bound: &bound.0,
            contexts: &contexts,
            origins: origins_of.as_deref(),
        };
        let mut compilation = Compilation::new();
        let target = self.inner.isa.frontend_config();
        let lowered =
            lower(unit, &mut compilation.func, &mut FunctionBuilderContext::new(), target);
        if lowered.buffer > BUFFER_WORDS {
            return Err(CompileError::TooManyValues {
                function: name,
                needed: lowered.buffer,
                limit: BUFFER_WORDS,
            });
        }
        let lazy = self.lazy_stubs(module, function)?;
        MachineCode::compile(
            &self.inner.isa,
            &self.inner.budget,
            &mut compilation,
            About {
                func,
                name,
                piece: (module.funcs[func].name.clone(), request.piece),
                observers: Arc::clone(&self.inner.observers),
                origins,
                sites,
                lowered,
                cells,
                counters,
                checks_stack,
                lazy,
                cold,
                bound,
                contexts: contexts.clone(),
            },
        )
    }

    /// The stubs for calls of this function whose callee has no code. The engine makes them here,
    /// not the machine, whose run would wait: a small program would wait for stubs longer than it
    /// runs.
    fn lazy_stubs(&self, module: &Module, function: &Function) -> Result<LazyStubs, CompileError> {
        let called = |inst: Inst| match function.inst(inst).imm {
            Imm::Func(func) => Some(module.signature(func)),
            Imm::Indirect(sig, _) => Some(&module.sigs[sig]),
            _ => None,
        };
        let signatures: BTreeSet<&Signature> = function.all_insts().filter_map(called).collect();
        let stub = |signature: &Signature| {
            Ok((signature.clone(), self.stub(Stub::Lazy(signature.clone()))?))
        };
        signatures.into_iter().map(stub).collect()
    }

    /// The stubs for calls in cold blocks, by signature.
    fn cold_stubs(&self, module: &Module, function: &Function) -> Result<LazyStubs, CompileError> {
        let signatures: BTreeSet<&Signature> = cold_calls(module, function).collect();
        let stub = |signature: &Signature| {
            Ok((signature.clone(), self.stub(Stub::Cold(signature.clone()))?))
        };
        signatures.into_iter().map(stub).collect()
    }

    /// The Cranelift IR of a function as text, for debugging. Linear in the function.
    ///
    /// # Panics
    /// If the function is not well-formed, or takes or passes more values at once than Cranelift
    /// permits ([`CompileError::TooManyValues`]). This function checks neither. If a stub for calls
    /// in cold blocks cannot be compiled.
    pub fn clif(&self, module: &Module, function: &Function) -> String {
        let mut made = clif::Function::new();
        let cold = self.cold_stubs(module, function).expect("jit: the stubs can be compiled");
        let unit = Unit {
            module,
            function,
            kind: CodeKind::Called,
            config: &self.inner.config,
            cells: &[],
            counting: None,
            checks_stack: !is_short_leaf(function),
            cold: &cold,
            bound: &BTreeMap::new(),
            contexts: &ContextCode::default(),
            origins: None,
        };
        lower(
            unit,
            &mut made,
            &mut FunctionBuilderContext::new(),
            self.inner.isa.frontend_config(),
        );
        made.display().to_string()
    }

    /// Returns the code of a stub, and compiles it at the first request. The lock on the map is
    /// held while the stub compiles, so each stub is compiled once.
    ///
    /// # Errors
    /// [`CompileError::TooManyValues`] if the signature passes more values than the buffer or a
    /// call can hold; otherwise the errors of code generation.
    pub(crate) fn stub(&self, stub: Stub) -> Result<Arc<MachineCode>, CompileError> {
        let mut stubs = self.inner.stubs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = stubs.get(&stub) {
            return Ok(Arc::clone(known));
        }
        let name = stub.name();
        if stub.buffer() > BUFFER_WORDS {
            return Err(CompileError::TooManyValues {
                function: name,
                needed: stub.buffer(),
                limit: BUFFER_WORDS,
            });
        }
        if stub.arguments() > abi::MOST_ARGUMENTS {
            let (needed, limit) = (stub.arguments(), abi::MOST_ARGUMENTS);
            return Err(CompileError::TooManyValues { function: name, needed, limit });
        }
        let buffer = stub.buffer();
        let code = self.compile_small(Func::from_u32(0), name, buffer, |to, scratch, target| {
            stub.build(to, scratch, target);
        });
        let code = Arc::new(code?);
        stubs.insert(stub, Arc::clone(&code));
        Ok(code)
    }

    /// Compiles the shim of a function of the embedder.
    ///
    /// # Errors
    /// As [`Engine::stub`].
    pub(crate) fn direct(
        &self,
        func: Func,
        name: &str,
        function: &DirectFunction,
    ) -> Result<MachineCode, CompileError> {
        let needed = function.signature.params.len();
        if needed > abi::MOST_ARGUMENTS {
            let (function, limit) = (name.to_owned(), abi::MOST_ARGUMENTS);
            return Err(CompileError::TooManyValues { function, needed, limit });
        }
        self.compile_small(func, format!("direct.{name}"), 0, |to, scratch, target| {
            function.build(to, scratch, target);
        })
    }

    /// Compiles a stub or a shim, which uses so many words of the buffer: code without traps of
    /// instructions and without calls of functions.
    fn compile_small(
        &self,
        func: Func,
        name: String,
        buffer: usize,
        build: impl FnOnce(&mut clif::Function, &mut FunctionBuilderContext, TargetFrontendConfig),
    ) -> Result<MachineCode, CompileError> {
        let mut compilation = Compilation::new();
        let target = self.inner.isa.frontend_config();
        build(&mut compilation.func, &mut FunctionBuilderContext::new(), target);
        let about = About {
            func,
            piece: (name.clone(), PieceKind::Stub),
            name,
            observers: Arc::clone(&self.inner.observers),
            origins: None,
            sites: None,
            lowered: Lowered { buffer, ..Lowered::default() },
            cells: Arc::from([]),
            counters: None,
            checks_stack: false,
            lazy: LazyStubs::default(),
            cold: LazyStubs::default(),
            bound: BoundFunctions::default(),
            contexts: ContextCode::default(),
        };
        MachineCode::compile(&self.inner.isa, &self.inner.budget, &mut compilation, about)
    }
}

/// Checks that a function is well-formed and that a call of `func` may run it. Native code checks
/// neither, so this function must reject every other function
/// (`mismatched_versions_machines_and_functions_are_rejected`).
fn check(
    module: &Module,
    func: Func,
    function: &Function,
    kind: CodeKind,
) -> Result<(), CompileError> {
    if module.funcs[func].import.is_some() {
        return Err(CompileError::Invalid {
            function: function.name().to_owned(),
            what: format!("{func} is imported and cannot have versions"),
        });
    }
    let (wanted, has) = (module.signature(func), function.signature());
    let fits = match kind {
        CodeKind::Called => wanted == has,
        CodeKind::Resumed => wanted.results == has.results,
    };
    let finding = verify_function(module, function).first().map(ToString::to_string);
    let what = match finding {
        Some(finding) => finding,
        None if !fits => format!("its signature is not that of {func}"),
        None => return Ok(()),
    };
    Err(CompileError::Invalid { function: function.name().to_owned(), what })
}

/// The largest number of arguments that the function takes or passes in a call.
fn most_arguments(function: &Function, kind: CodeKind) -> usize {
    let own = if kind == CodeKind::Called { function.signature().params.len() } else { 0 };
    let calls = function.all_insts().map(|inst| function.inst(inst));
    let calls = calls.filter(|data| data.opcode.is_call());
    calls.map(|data| data.args.len()).fold(own, usize::max)
}

/// The largest number of values that a block or instruction of the function takes or defines.
/// Cranelift panics beyond 2^16.
fn most_values(function: &Function) -> usize {
    let params = function.blocks().map(|block| function.block_params(block).len());
    let operands = function.all_insts().map(|inst| {
        let data = function.inst(inst);
        data.operand_count().max(data.results.len())
    });
    params.chain(operands).max().unwrap_or(0)
}

/// Cranelift's target for the processor of this host.
fn isa(config: &Config) -> Result<OwnedTargetIsa, Unsupported> {
    let mut flags = settings::builder();
    let level = if config.effort == Effort::Most { "speed" } else { "none" };
    let allocator = if config.effort == Effort::Most { "backtracking" } else { "single_pass" };
    let checked = if config.checked { "true" } else { "false" };
    let chosen = [
        ("opt_level", level),
        ("regalloc_algorithm", allocator),
        ("regalloc_checker", checked),
        ("enable_verifier", checked),
        ("is_pic", "false"),
        ("use_colocated_libcalls", "false"),
        ("preserve_frame_pointers", "true"),
        ("unwind_info", "false"),
        // A frame can be larger than the guard page of the stack. Its prologue touches each of its
        // pages, so the frame cannot skip the guard page.
        ("enable_probestack", "true"),
        ("probestack_strategy", "inline"),
    ];
    for (flag, value) in chosen {
        flags
            .set(flag, value)
            .unwrap_or_else(|error| panic!("jit: Cranelift has no flag {flag}={value}: {error}"));
    }
    let missing = |_| Unsupported { missing: "a processor that Cranelift knows" };
    let builder = cranelift_native::builder()
        .map_err(|_| Unsupported { missing: "a processor that Cranelift knows" })?;
    builder.finish(settings::Flags::new(flags)).map_err(missing)
}
