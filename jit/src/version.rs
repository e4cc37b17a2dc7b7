//! Compiled versions with OSR points, and continuations: the compiled form of transitions into
//! them.

use crate::calls::ContextCode;
use crate::code::MachineCode;
use crate::config::Interruption;
use crate::counters::NativeCounts;
use crate::direct::BoundFunctions;
use crate::engine::{Engine, Request};
use crate::error::{CompileError, ContinueError};
use crate::lower::CodeKind;
use crate::observe::PieceKind;
use crate::points::{Cell, Trigger};
use crate::spec::VersionSpec;
use crate::stubs::Stub;
use crate::vm::block::Current;
use check::CheckedEntry;
use cranelift_entity::EntityRef;
use ir::{Func, Function, Inst, Module, Opcode, Point, Value};
use resume::{
    Condition, InstrumentError, Instrumented, Origins, PointSpec, instrument,
    instrument_for_entries,
};
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transition::VersionKey;
use transition::copy::InlinedSites;

/// A compiled version of a function, with the OSR points through which a run may exit it.
#[derive(Debug)]
pub struct Version {
    pub(crate) func: Func,
    pub(crate) key: VersionKey,
    /// The engine that compiled the version. Together with `module` it limits the machines that may
    /// run the version.
    pub(crate) engine: Engine,
    pub(crate) module: Arc<Module>,
    /// Shared with the module, if it is the body there.
    pub(crate) function: Arc<Function>,
    pub(crate) code: Arc<MachineCode>,
    pub(crate) points: Vec<PointSpec>,
    pub(crate) cells: Arc<[Cell]>,
    /// The counters of a version that counts.
    pub(crate) counters: Option<Arc<NativeCounts>>,
    /// The sites of its inlined code, if it has any.
    pub(crate) sites: Option<Arc<InlinedSites>>,
    /// The functions that its code, and that of continuations into it, calls without a shim.
    pub(crate) bound: BoundFunctions,
    /// How its code has OSR points, for continuations into the version.
    pub(crate) inserted: InsertedPoints,
    /// The stubs of the points; `None` without points.
    pub(crate) stubs: Option<PointStubs>,
    /// The machine that has adopted the version. Only versions with points or counters are claimed.
    /// Every change of a flag holds the lock.
    pub(crate) machine: Mutex<Option<Current>>,
    /// What enters `code`.
    pub(crate) begins: Beginning,
    /// Its calls with cells, and its assumptions without tests.
    pub(crate) contexts: ContextCode,
}

/// What enters the code of a version at its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Beginning {
    /// Calls.
    Calls,
    /// Transitions, which store its parameters to the buffer.
    Transitions,
    /// Calls that make its untested assumptions true.
    KnownCalls,
    /// Nothing: the version stands for the landing point of one transition ([`Engine::probe`]).
    Nowhere,
}

/// How the code of a version has OSR points.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum InsertedPoints {
    /// It has none, or continuations into the version have none.
    Nowhere,
    /// [`instrument`] has inserted them.
    Everywhere,
    /// [`instrument_for_entries`] has.
    ForEntries,
}

/// The stubs that a version with OSR points needs.
#[derive(Debug)]
pub(crate) struct PointStubs {
    /// The initial target of every cell: asks the machine where control continues.
    pub(crate) leave: Arc<MachineCode>,
    /// Returns the results that lie in the buffer, on behalf of the function.
    pub(crate) back: Arc<MachineCode>,
}

impl Version {
    /// The function of this version.
    pub fn func(&self) -> Func {
        self.func
    }

    /// The key of the version.
    pub fn key(&self) -> VersionKey {
        self.key
    }

    /// The version as given to the engine, without its OSR points.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// The OSR points, by number.
    pub fn points(&self) -> &[PointSpec] {
        &self.points
    }

    /// The size of the machine code in bytes.
    pub fn code_size(&self) -> usize {
        self.code.size()
    }

    /// The addresses of the machine code, for tools that show it. They stay the same as long as the
    /// version exists.
    pub fn addresses(&self) -> Range<usize> {
        self.code.range()
    }

    /// The function and the instruction that the code at an address comes from. For inlined code:
    /// the callee, and an instruction of its base. `None` if the address lies outside, or the code
    /// there comes from no instruction. Logarithmic cost.
    pub fn inst_at(&self, address: usize) -> Option<(Func, Inst)> {
        let address = Some(address).filter(|address| self.addresses().contains(address))?;
        let (func, inst) = self.code.site_at(address);
        Some((func, inst?))
    }

    /// The size of the stack maps of its exits in bytes, beside the code
    /// ([`crate::Exits::Described`]).
    pub fn described_size(&self) -> usize {
        self.code.described()
    }

    /// Its calls with a cell ([`VersionSpec::dispatching`]), by number: the instruction, and the
    /// function that it calls.
    pub fn calls(&self) -> &[(Inst, Func)] {
        &self.contexts.calls
    }

    /// The counters, if the version counts ([`VersionSpec::counting`]). They hold what has happened
    /// so far in the version and in continuations into it.
    pub fn counters(&self) -> Option<&NativeCounts> {
        self.counters.as_deref()
    }

    /// Sets the flag of a point with [`crate::Condition::Flag`], from any thread. The point fires
    /// at its next visit, in this version and in continuations into it, and at every visit until it
    /// is disarmed. No effect on points with another condition. Constant cost. Takes a lock, so the
    /// handler of a signal must not call it.
    ///
    /// # Panics
    /// If the version has no point of this number.
    pub fn arm(&self, number: usize) {
        self.set_flag(number, true);
    }

    /// Clears the flag of a point. See [`Version::arm`].
    ///
    /// # Panics
    /// If the version has no point of this number.
    pub fn disarm(&self, number: usize) {
        self.set_flag(number, false);
    }

    fn machine(&self) -> MutexGuard<'_, Option<Current>> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_flag(&self, number: usize, is_set: bool) {
        let cell = &self.cells[number];
        let machine = self.machine();
        cell.armed.store(u32::from(is_set), Ordering::SeqCst);
        if let (Some(machine), Some(word)) = (&*machine, cell.word()) {
            machine.show_flag(word, is_set);
        }
    }

    /// Claims the version for one machine, which sees its flags from now on. Returns false if a
    /// machine has claimed it before. Linear in the points.
    pub(crate) fn claim(&self, by: Current) -> bool {
        let mut machine = self.machine();
        if machine.is_some() {
            return false;
        }
        for cell in self.cells.iter() {
            if let Some(word) = cell.word() {
                // Another version may have used the word before, and have left it set.
                by.show_flag(word, cell.armed.load(Ordering::SeqCst) != 0);
            }
        }
        *machine = Some(by);
        true
    }
}

/// A compiled transition. Its code takes the values that an entry requires, computes the values
/// that the target version needs, and continues at the landing point.
#[derive(Debug)]
pub struct Continuation {
    pub(crate) code: Arc<MachineCode>,
    pub(crate) source: VersionKey,
    pub(crate) at: Point,
    /// The values that the code reads from the buffer, in order.
    pub(crate) requires: Vec<Value>,
    /// Whether the continuation takes values that are dead at the source point.
    pub(crate) keeps: bool,
    pub(crate) target: Arc<Version>,
    /// The number of instructions of the continuation's function.
    pub(crate) instructions: usize,
}

impl Continuation {
    /// The source version and the source point.
    pub fn source(&self) -> (VersionKey, Point) {
        (self.source, self.at)
    }

    /// The target version.
    pub fn target(&self) -> &Arc<Version> {
        &self.target
    }

    /// The values that the continuation takes, in order.
    pub fn requires(&self) -> &[Value] {
        &self.requires
    }

    /// Whether the continuation takes values that are dead at the source point. A run in the fast
    /// loop of the interpreter cannot provide these.
    pub fn keeps_values(&self) -> bool {
        self.keeps
    }

    /// The size of the machine code in bytes; 0 if the continuation is the code of the target
    /// itself, which begins behind a landing point.
    pub fn code_size(&self) -> usize {
        if Arc::ptr_eq(&self.code, &self.target.code) && self.target.is_entered_at_start() {
            return 0;
        }
        self.code.size()
    }

    /// The number of instructions of the continuation's function; 0 without code of its own.
    pub fn instructions(&self) -> usize {
        self.instructions
    }
}

impl Version {
    /// Whether transitions enter the version at its start ([`VersionSpec::behind_landing`]).
    pub(crate) fn is_entered_at_start(&self) -> bool {
        self.begins == Beginning::Transitions
    }

    /// The function with its OSR points; `None` without. Made anew, linear in the function: keeping
    /// it would take as much memory as the function, and few versions get continuations.
    pub(crate) fn instrumented(&self) -> Option<Instrumented> {
        let made = match self.inserted {
            InsertedPoints::Nowhere => return None,
            InsertedPoints::Everywhere => instrument(&self.function, &self.points),
            InsertedPoints::ForEntries => instrument_for_entries(&self.function, &self.points),
        };
        Some(made.expect("jit: the points were inserted when the version was made"))
    }

    /// Builds the continuation of an entry into this version: the code reachable from the landing
    /// point, with the OSR points in it. The origins of the continuation refer to instructions of
    /// the code with points.
    ///
    /// # Errors
    /// [`ContinueError::NotBuilt`] if the entry does not fit the versions.
    pub(crate) fn rest(
        &self,
        name: &str,
        source: &Function,
        entry: CheckedEntry<'_>,
        instrumented: Option<&Instrumented>,
    ) -> Result<resume::Continuation, ContinueError> {
        let made = match instrumented {
            None => resume::continuation(name, source, &[&self.function], entry),
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

    /// Maps each instruction of the continuation's function to its original in the version without
    /// points. `None` if the instruction is no copy.
    pub(crate) fn origins_of(
        rest: &Origins,
        bound: usize,
        instrumented: Option<&Instrumented>,
    ) -> Box<[Option<Inst>]> {
        let mut origins = listed(rest, bound);
        if let Some(instrumented) = instrumented {
            origins
                .iter_mut()
                // Two steps: from the continuation to the code with points, and from there to the
                // version.
                .for_each(|inst| *inst = inst.and_then(|inst| instrumented.origins.inst(inst)));
        }
        origins
    }
}

impl Engine {
    /// Compiles a version: with a list of OSR points, or as a [`VersionSpec`] says. Costs one
    /// compilation by Cranelift, about linear in the function.
    ///
    /// # Errors
    /// - [`CompileError::Point`] if a point or a value of a point does not exist in the function,
    ///   or the function already has OSR points of its own.
    /// - [`CompileError::Invalid`] if the verifier rejects the function, or its signature is not
    ///   that of `func`.
    /// - The other [`CompileError`]s if the function exceeds a limit or code generation fails.
    pub fn version<'p>(
        &self,
        module: &Arc<Module>,
        func: Func,
        function: &Function,
        spec: impl Into<VersionSpec<'p>>,
    ) -> Result<Arc<Version>, CompileError> {
        self.make_version(module, func, function, spec.into())
    }

    fn make_version(
        &self,
        module: &Arc<Module>,
        func: Func,
        function: &Function,
        VersionSpec { points, counts, sites, bound, is_rest, calls, untested }: VersionSpec<'_>,
    ) -> Result<Arc<Version>, CompileError> {
        if is_rest && !untested.is_empty() {
            // Passages lead to such code, and prove nothing of what it assumes
            // (`code_behind_a_landing_tests_what_it_assumes`).
            return Err(CompileError::Point {
                function: function.name().to_owned(),
                what: "code behind a landing tests its assumptions: no call proves them".to_owned(),
            });
        }
        let (kind, begins) = match is_rest {
            true => (CodeKind::Resumed, Beginning::Transitions),
            false if !untested.is_empty() => (CodeKind::Called, Beginning::KnownCalls),
            false => (CodeKind::Called, Beginning::Calls),
        };
        let contexts = ContextCode::new(function, &calls, untested);
        let points = &points[..];
        let counters = counts.then(|| Arc::new(NativeCounts::new(function)));
        if !points.is_empty() && has_points(function) {
            return Err(CompileError::Point {
                function: function.name().to_owned(),
                what: "the function already has OSR points of its own, whose numbers would clash \
                       with those of the list"
                    .to_owned(),
            });
        }
        let stubs = self.point_stubs(function, points)?;
        let cells: Arc<[Cell]> = match points {
            // All versions without points share this one.
            [] => Arc::default(),
            points => points.iter().map(|point| self.cell(point.condition)).collect(),
        };
        let instrumented = match points {
            [] => None,
            points => {
                let what = |error: InstrumentError| error.to_string();
                let made = instrument(function, points).map_err(what);
                Some(made.map_err(|what| CompileError::Point {
                    function: function.name().to_owned(),
                    what,
                })?)
            }
        };
        let origins =
            instrumented.as_ref().map(|made| listed(&made.origins, made.function.inst_bound()));
        let watches = self.config().trace || self.config().checked;
        let bound = match watches || bound.0.is_empty() {
            true => BoundFunctions::default(),
            false => bound.called(module, function),
        };
        let code = self.compile(Request {
            module,
            func,
            function: instrumented.as_ref().map_or(function, |made| &made.function),
            kind,
            piece: PieceKind::Version(VersionKey::of(function)),
            cells: Arc::clone(&cells),
            counters: counters.clone(),
            origins,
            sites: sites.clone(),
            bound: bound.clone(),
            contexts: contexts.clone(),
        })?;
        if let Some(stubs) = &stubs {
            // A point may fire before an action is linked; until then its cell leads to the stub
            // that asks.
            cells.iter().for_each(|cell| cell.lead_to(stubs.leave.entry()));
        }
        Ok(Arc::new(Version {
            func,
            key: VersionKey::of(function),
            engine: self.clone(),
            module: Arc::clone(module),
            function: shared(module, func, function),
            code: Arc::new(code),
            points: points.to_vec(),
            cells,
            counters,
            sites,
            bound,
            inserted: match points {
                [] => InsertedPoints::Nowhere,
                _ => InsertedPoints::Everywhere,
            },
            stubs,
            machine: Mutex::default(),
            begins,
            contexts,
        }))
    }

    /// The cell of a point with this condition, which leads nowhere yet.
    pub(crate) fn cell(&self, condition: Condition) -> Cell {
        match condition {
            Condition::Countdown(visits) => Cell::new(Trigger::Countdown, visits),
            // Without polls, code tests the cell, whose address is a constant. The context would
            // take a register of the loop.
            Condition::Flag if self.config().interruption == Interruption::Signal => {
                Cell::with_flag(self.flag_words())
            }
            Condition::Failing => Cell::new(Trigger::Assumption, 0),
            Condition::Flag | Condition::Guard { .. } | Condition::Always => {
                Cell::new(Trigger::Armed, 0)
            }
        }
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

    /// Compiles an accepted entry, from `source` into a compiled target version. An entry to the
    /// start of a version behind a landing point ([`VersionSpec::behind_landing`]) is its
    /// compensation code alone, or no code at all. Otherwise, building is linear
    /// in the part of the target version that is reachable from the landing point, or in all of it
    /// if the target has OSR points; the cost of Cranelift comes on top.
    ///
    /// # Errors
    /// - [`ContinueError::OtherEngine`] if another engine compiled `target`.
    /// - [`ContinueError::OtherSource`] and [`ContinueError::OtherTarget`] if the entry does not
    ///   lead from `source` to `target`.
    /// - [`ContinueError::NotBuilt`] if the entry does not fit the versions.
    /// - [`ContinueError::Compile`] if code generation fails.
    pub fn continuation(
        &self,
        source: &Function,
        entry: CheckedEntry<'_>,
        target: &Arc<Version>,
    ) -> Result<Arc<Continuation>, ContinueError> {
        self.require_between(source, &entry, target)?;
        if let Some(made) = self.to_start(source, entry, target)? {
            return Ok(made);
        }
        let at = entry.point();
        let name = format!("{}.from.{}", source.name(), at.inst());
        let instrumented = target.instrumented();
        let made = target.rest(&name, source, entry, instrumented.as_ref())?;
        let bound = made.function.inst_bound();
        let origins = Version::origins_of(&made.origins, bound, instrumented.as_ref());
        let function = made.function;
        let instructions = function.inst_count();
        let code = self
            .compile(Request {
                module: &target.module,
                func: target.func,
                function: &function,
                kind: CodeKind::Resumed,
                piece: PieceKind::Continuation { at, target: target.key },
                cells: Arc::clone(&target.cells),
                counters: target.counters.clone(),
                origins: Some(origins),
                sites: target.sites.clone(),
                bound: target.bound.clone(),
                contexts: target.contexts.clone(),
            })
            .map_err(ContinueError::Compile)?;
        Ok(Arc::new(Continuation {
            code: Arc::new(code),
            source: VersionKey::of(source),
            at,
            requires: entry.entry().requires.clone(),
            keeps: !entry.entry().kept.is_empty(),
            target: Arc::clone(target),
            instructions,
        }))
    }

    /// Rejects an entry between other versions, and a target of another engine.
    pub(crate) fn require_between(
        &self,
        source: &Function,
        entry: &CheckedEntry<'_>,
        target: &Version,
    ) -> Result<(), ContinueError> {
        let function = || source.name().to_owned();
        // Code of another engine may rely on other guards: this engine's machines may reserve no
        // address space behind their memories.
        if !self.is(&target.engine) {
            return Err(ContinueError::OtherEngine { function: function() });
        }
        if entry.source() != VersionKey::of(source) {
            return Err(ContinueError::OtherSource { function: function() });
        }
        if entry.target() != target.key {
            return Err(ContinueError::OtherTarget { function: function() });
        }
        if target.begins == Beginning::KnownCalls {
            let what = "calls that make its assumptions true enter the version, and no transition";
            return Err(ContinueError::NotBuilt { function: function(), what: what.to_owned() });
        }
        Ok(())
    }
}

/// A function behind a shared pointer: the pointer of the module if the function is the body there.
fn shared(module: &Module, func: Func, function: &Function) -> Arc<Function> {
    match module.shared_body(func) {
        Some(body) if std::ptr::eq(&**body, function) => Arc::clone(body),
        _ => Arc::new(function.clone()),
    }
}

/// Whether the text of the function contains OSR points.
pub(crate) fn has_points(function: &Function) -> bool {
    function
        .all_insts()
        .any(|inst| matches!(function.inst(inst).opcode, Opcode::OsrTest | Opcode::OsrExit))
}

/// Lists the original of each instruction up to `bound`.
pub(crate) fn listed(origins: &Origins, bound: usize) -> Box<[Option<Inst>]> {
    (0..bound).map(|index| origins.inst(Inst::new(index))).collect()
}
