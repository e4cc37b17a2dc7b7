//! Compiled versions with OSR points, and continuations: what control goes on in after a
//! transition.

use crate::code::Code;
use crate::engine::{Engine, Request};
use crate::error::{CompileError, ContinueError};
use crate::lower::Kind;
use crate::points::{Cell, Trigger};
use crate::stubs::Stub;
use check::{CheckedEntry, Unproved};
use cranelift_entity::EntityRef;
use ir::{Func, Function, Imm, Inst, Module, Opcode, Point, Value};
use resume::{Condition, InstrumentError, Instrumented, Origins, PointSpec, instrument};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use transition::VersionKey;

/// A version of a function, compiled, with the points through which a run may leave it.
#[derive(Debug)]
pub struct Version {
    pub(crate) func: Func,
    pub(crate) key: VersionKey,
    /// What it was compiled by and for: it runs in machines of these alone.
    pub(crate) engine: Engine,
    pub(crate) module: Arc<Module>,
    pub(crate) function: Function,
    pub(crate) code: Arc<Code>,
    pub(crate) points: Vec<PointSpec>,
    pub(crate) cells: Arc<[Cell]>,
    /// With the points in it; `None` when there are none.
    pub(crate) instrumented: Option<Instrumented>,
    /// What its points lead to as long as they lead nowhere else, and what returns for it; `None`
    /// without points.
    pub(crate) stubs: Option<PointStubs>,
    /// Set once it is installed in a machine.
    pub(crate) claimed: AtomicBool,
    /// Whether its code is that of the whole function: what stands for a landing alone
    /// ([`Engine::probe`]) cannot be called.
    pub(crate) callable: bool,
}

/// The stubs that a version with OSR points needs.
#[derive(Debug)]
pub(crate) struct PointStubs {
    /// Asks where to go on.
    pub(crate) leave: Arc<Code>,
    /// Returns what is in the buffer.
    pub(crate) back: Arc<Code>,
}

impl Version {
    /// The function it is a version of.
    pub fn func(&self) -> Func {
        self.func
    }

    /// Which version it is.
    pub fn key(&self) -> VersionKey {
        self.key
    }

    /// The version as it was given, without its OSR points.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// Its OSR points.
    pub fn points(&self) -> &[PointSpec] {
        &self.points
    }

    /// Bytes of its machine code.
    pub fn code_size(&self) -> usize {
        self.code.size()
    }

    /// Bytes that describe its exits, beside the code ([`crate::Exits::Described`]).
    pub fn described_size(&self) -> usize {
        self.code.described()
    }

    /// Makes a point that waits for its flag fire at its next visit, in this version and its
    /// continuations. Cost: constant.
    pub(crate) fn set_armed(&self, number: usize, armed: bool) {
        self.cells[number].armed.store(u32::from(armed), Ordering::SeqCst);
    }

    /// Claims it for one machine. False when another has it.
    pub(crate) fn claim(&self) -> bool {
        !self.claimed.swap(true, Ordering::SeqCst)
    }
}

/// A transition, compiled: code that takes the values an entry requires, computes what the target
/// version needs, and goes on there.
#[derive(Debug)]
pub struct Continuation {
    pub(crate) code: Arc<Code>,
    pub(crate) source: VersionKey,
    pub(crate) at: Point,
    /// What it takes from the buffer, in order.
    pub(crate) requires: Vec<Value>,
    pub(crate) target: Arc<Version>,
    /// Instructions of its function.
    pub(crate) instructions: usize,
}

impl Continuation {
    /// The version it leads from, and the point there.
    pub fn source(&self) -> (VersionKey, Point) {
        (self.source, self.at)
    }

    /// The version it leads to.
    pub fn target(&self) -> &Arc<Version> {
        &self.target
    }

    /// The values it takes, in order.
    pub fn requires(&self) -> &[Value] {
        &self.requires
    }

    /// Bytes of its machine code.
    pub fn code_size(&self) -> usize {
        self.code.size()
    }

    /// Instructions of its function.
    pub fn instructions(&self) -> usize {
        self.instructions
    }
}

impl Version {
    /// What is left of the version behind where an entry lands, its points included; its ids are
    /// those of the code with the points.
    pub(crate) fn rest(
        &self,
        name: &str,
        source: &Function,
        entry: CheckedEntry<'_>,
    ) -> Result<resume::Continuation, ContinueError> {
        let made = match &self.instrumented {
            None => resume::continuation(name, source, &self.function, entry),
            Some(instrumented) => {
                resume::continuation_with_points(name, source, &self.function, instrumented, entry)
            }
        };
        let function = || source.name().to_owned();
        made.map_err(|error| ContinueError::NotBuilt {
            function: function(),
            what: error.to_string(),
        })
    }

    /// For each instruction of the rest, that of the version without points.
    pub(crate) fn origins_of(&self, rest: &Origins, bound: usize) -> Box<[Option<Inst>]> {
        let mut origins = listed(rest, bound);
        if let Some(instrumented) = &self.instrumented {
            origins
                .iter_mut()
                .for_each(|inst| *inst = inst.and_then(|inst| instrumented.origins.inst(inst)));
        }
        origins
    }
}

impl Engine {
    /// Compiles a version with OSR points. Point k of the list is number k of the version. Cost:
    /// that of Cranelift, about linear.
    ///
    /// # Errors
    /// When a point or a value of it is not there, the version has OSR points of its own, or the
    /// code cannot be made.
    pub fn version(
        &self,
        module: &Arc<Module>,
        func: Func,
        function: &Function,
        points: &[PointSpec],
    ) -> Result<Arc<Version>, CompileError> {
        self.compile_version(module, func, function, points, |function| function)
    }

    /// As [`Engine::version`], with code that nobody has proved: `improve` edits the instrumented
    /// function before it is compiled, for example to rely, behind a guard, on the guarded fact. It
    /// is not called for a version without points.
    ///
    /// Not proved, and left to the caller: that the edited function is verified; that instructions
    /// keep their meaning where `improve` leaves them alone; that the values the points hand over
    /// stay those of the version; and that the function does what the version does wherever no guard
    /// fires. The mappings of the version were accepted for the code before the edit.
    ///
    /// # Errors
    /// As [`Engine::version`].
    pub fn version_with(
        &self,
        module: &Arc<Module>,
        func: Func,
        function: &Function,
        points: &[PointSpec],
        improve: impl FnOnce(Function) -> Function,
        _: Unproved,
    ) -> Result<Arc<Version>, CompileError> {
        self.compile_version(module, func, function, points, improve)
    }

    fn compile_version(
        &self,
        module: &Arc<Module>,
        func: Func,
        function: &Function,
        points: &[PointSpec],
        improve: impl FnOnce(Function) -> Function,
    ) -> Result<Arc<Version>, CompileError> {
        if !points.is_empty() && has_points(function) {
            return Err(CompileError::Point {
                function: function.name().to_owned(),
                what: "it has some of its own, whose numbers would be taken for those of the list"
                    .to_owned(),
            });
        }
        let stubs = self.point_stubs(function, points)?;
        let cells: Arc<[Cell]> = points.iter().map(|point| cell(point.condition)).collect();
        let instrumented = match points {
            [] => None,
            points => {
                let what = |error: InstrumentError| error.to_string();
                let made = instrument(function, points).map_err(what);
                let mut made = made.map_err(|what| CompileError::Point {
                    function: function.name().to_owned(),
                    what,
                })?;
                made.function = improve(made.function);
                exits_fit(&made.function, function, points)?;
                Some(made)
            }
        };
        let origins =
            instrumented.as_ref().map(|made| listed(&made.origins, made.function.inst_bound()));
        let code = self.compile(Request {
            module,
            func,
            function: instrumented.as_ref().map_or(function, |made| &made.function),
            kind: Kind::Called,
            cells: Arc::clone(&cells),
            origins,
        })?;
        if let Some(stubs) = &stubs {
            cells.iter().for_each(|cell| cell.lead_to(stubs.leave.entry()));
        }
        Ok(Arc::new(Version {
            func,
            key: VersionKey::of(function),
            engine: self.clone(),
            module: Arc::clone(module),
            function: function.clone(),
            code: Arc::new(code),
            points: points.to_vec(),
            cells,
            instrumented,
            stubs,
            claimed: AtomicBool::new(false),
            callable: true,
        }))
    }

    pub(crate) fn point_stubs(
        &self,
        function: &Function,
        points: &[PointSpec],
    ) -> Result<Option<PointStubs>, CompileError> {
        if points.is_empty() {
            return Ok(None);
        }
        let results = function.signature().results.to_vec();
        let leave = self.stub(Stub::Leave(results.clone()))?;
        Ok(Some(PointStubs { leave, back: self.stub(Stub::Return(results))? }))
    }

    /// Compiles an accepted entry from `source` into a compiled version. Cost: building is linear in
    /// the part of the target version that is reachable from the landing point; then that of
    /// Cranelift.
    ///
    /// # Errors
    /// When the entry is not one from `source` to `target`, `target` is another engine's, or the code
    /// cannot be made.
    pub fn continuation(
        &self,
        source: &Function,
        entry: CheckedEntry<'_>,
        target: &Arc<Version>,
    ) -> Result<Arc<Continuation>, ContinueError> {
        self.compile_continuation(source, entry, target, |function| function)
    }

    /// As [`Engine::continuation`], with code that nobody has proved: `improve` edits the function of
    /// the continuation before it is compiled.
    ///
    /// # Errors
    /// As [`Engine::continuation`], and when `improve` changes parameters, results, or the values that
    /// points hand over.
    pub fn continuation_with(
        &self,
        source: &Function,
        entry: CheckedEntry<'_>,
        target: &Arc<Version>,
        improve: impl FnOnce(Function) -> Function,
        _: Unproved,
    ) -> Result<Arc<Continuation>, ContinueError> {
        self.compile_continuation(source, entry, target, improve)
    }

    /// Refuses an entry between other versions, and a target of another engine.
    pub(crate) fn require_between(
        &self,
        source: &Function,
        entry: &CheckedEntry<'_>,
        target: &Version,
    ) -> Result<(), ContinueError> {
        let function = || source.name().to_owned();
        // Its code would rely on guards that the machines of the other engine do not have.
        if !self.is(&target.engine) {
            return Err(ContinueError::OtherEngine { function: function() });
        }
        if entry.source() != VersionKey::of(source) {
            return Err(ContinueError::OtherSource { function: function() });
        }
        if entry.target() != target.key {
            return Err(ContinueError::OtherTarget { function: function() });
        }
        Ok(())
    }

    fn compile_continuation(
        &self,
        source: &Function,
        entry: CheckedEntry<'_>,
        target: &Arc<Version>,
        improve: impl FnOnce(Function) -> Function,
    ) -> Result<Arc<Continuation>, ContinueError> {
        self.require_between(source, &entry, target)?;
        let at = entry.point();
        let name = format!("{}.from.{}", source.name(), at.inst());
        let made = target.rest(&name, source, entry)?;
        let origins = target.origins_of(&made.origins, made.function.inst_bound());
        let signature = made.function.signature().clone();
        let function = improve(made.function);
        if *function.signature() != signature {
            let what = "improving it changed its parameters or results".to_owned();
            return Err(ContinueError::NotBuilt { function: source.name().to_owned(), what });
        }
        if target.instrumented.is_some() {
            exits_fit(&function, &target.function, &target.points)
                .map_err(ContinueError::Compile)?;
        }
        let instructions = function.inst_count();
        let code = self
            .compile(Request {
                module: &target.module,
                func: target.func,
                function: &function,
                kind: Kind::Resumed,
                cells: Arc::clone(&target.cells),
                origins: Some(origins),
            })
            .map_err(ContinueError::Compile)?;
        Ok(Arc::new(Continuation {
            code: Arc::new(code),
            source: VersionKey::of(source),
            at,
            requires: entry.entry().requires.clone(),
            target: Arc::clone(target),
            instructions,
        }))
    }
}

/// Whether the exits hand over as many values as their points say, still, and of their types. Which
/// they are cannot be seen.
fn exits_fit(
    improved: &Function,
    version: &Function,
    points: &[PointSpec],
) -> Result<(), CompileError> {
    for data in improved.all_insts().map(|inst| improved.inst(inst)) {
        let (Opcode::OsrExit, Imm::Exit(point)) = (data.opcode, data.imm) else { continue };
        let number = point.as_u32() as usize;
        let types = data.args.iter().map(|arg| improved.value_type(*arg));
        let fits = points.get(number).is_some_and(|spec| {
            types.eq(spec.values.iter().map(|value| version.value_type(*value)))
        });
        if !fits {
            let what = format!("improving it changed what point {number} hands over");
            return Err(CompileError::Point { function: version.name().to_owned(), what });
        }
    }
    Ok(())
}

/// Whether OSR points stand in the text of the version.
fn has_points(function: &Function) -> bool {
    function
        .all_insts()
        .any(|inst| matches!(function.inst(inst).opcode, Opcode::OsrTest | Opcode::OsrExit))
}

/// For each instruction, what it is a copy of.
pub(crate) fn listed(origins: &Origins, bound: usize) -> Box<[Option<Inst>]> {
    (0..bound).map(|index| origins.inst(Inst::new(index))).collect()
}

fn cell(condition: Condition) -> Cell {
    match condition {
        Condition::Countdown(visits) => Cell::new(Trigger::Countdown, visits),
        Condition::Flag | Condition::Guard { .. } | Condition::Always => {
            Cell::new(Trigger::Armed, 0)
        }
    }
}
