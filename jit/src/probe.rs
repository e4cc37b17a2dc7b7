//! Probes: transitions that stop at their landing point and hand over their values. Tests of
//! transitions use them.

use crate::calls::ContextCode;
use crate::code::MachineCode;
use crate::direct::BoundFunctions;
use crate::engine::{Engine, Request};
use crate::error::ContinueError;
use crate::lower::CodeKind;
use crate::observe::PieceKind;
use crate::points::{Cell, Trigger};
use crate::version::{Beginning, Continuation, InsertedPoints, Version, listed};
use check::CheckedEntry;
use cranelift_entity::EntityRef;
use ir::{Func, Function, Inst, Point, Value};
use resume::{Condition, Instrumented, PointSpec, instrument};
use std::sync::{Arc, Mutex};
use transition::VersionKey;

/// The entry block of a continuation up to the landing point, followed by an exit with the provided
/// values.
struct Cut {
    instrumented: Instrumented,
    /// Maps each instruction of the continuation's function to the instruction of the version.
    origins: Box<[Option<Inst>]>,
    /// The values of the target version that the exit hands over.
    values: Vec<Value>,
}

impl Engine {
    /// Compiles a transition that stops at its landing point. The code executes the compensation
    /// code and the replayed stores of the entry, and then exits through an OSR point at the
    /// landing point. The exit hands over the provided values that the target version or its points
    /// read.
    ///
    /// The target of the continuation is no version that calls may run: it stands for the landing
    /// point alone. Adopt it ([`crate::Vm::adopt`]) with one action, the place where control
    /// continues. Building is linear in the target; Cranelift compiles the compensation code alone.
    ///
    /// # Errors
    /// The errors of [`Engine::continuation`].
    pub fn probe(
        &self,
        func: Func,
        source: &Function,
        entry: CheckedEntry<'_>,
        target: &Version,
    ) -> Result<Arc<Continuation>, ContinueError> {
        let function = source.name().to_owned();
        self.require_between(source, &entry, target)?;
        let at = entry.point();
        let name = format!("{function}.probe.{}", at.inst());
        let points = target.instrumented();
        let cut = cut(target.rest(&name, source, entry, points.as_ref())?, points.as_ref());
        let cells: Arc<[Cell]> = Arc::from([Cell::new(Trigger::Armed, 0)]);
        let body = &cut.instrumented.function;
        let mut origins = listed(&cut.instrumented.origins, body.inst_bound());
        origins.iter_mut().for_each(|inst| *inst = inst.and_then(|inst| cut.origins[inst.index()]));
        let request = Request {
            module: &target.module,
            func,
            function: body,
            kind: CodeKind::Resumed,
            piece: PieceKind::Probe { at },
            cells: Arc::clone(&cells),
            counters: None,
            origins: Some(origins),
            sites: None,
            bound: BoundFunctions::default(),
            contexts: ContextCode::default(),
        };
        let code = Arc::new(self.compile(request).map_err(ContinueError::Compile)?);
        let point = PointSpec {
            at: entry.entry().target,
            condition: Condition::Always,
            values: cut.values,
        };
        let landing = self.landing(func, target, point, cells, Arc::clone(&code))?;
        Ok(Arc::new(Continuation {
            instructions: body.inst_count(),
            code,
            source: VersionKey::of(source),
            at,
            requires: entry.entry().requires.clone(),
            keeps: !entry.entry().kept.is_empty(),
            target: Arc::new(landing),
        }))
    }

    /// The target of a probe: the target version with the one point at the landing point.
    fn landing(
        &self,
        func: Func,
        target: &Version,
        point: PointSpec,
        cells: Arc<[Cell]>,
        code: Arc<MachineCode>,
    ) -> Result<Version, ContinueError> {
        let points = vec![point];
        let stubs = self.point_stubs(&target.function, &points).map_err(ContinueError::Compile)?;
        let leave = stubs.as_ref().map(|stubs| stubs.leave.entry());
        leave.into_iter().for_each(|leave| cells[0].lead_to(leave));
        Ok(Version {
            func,
            key: VersionKey::of(&target.function),
            engine: self.clone(),
            module: Arc::clone(&target.module),
            function: Arc::clone(&target.function),
            code,
            points,
            cells,
            counters: None,
            sites: None,
            bound: BoundFunctions::default(),
            contexts: ContextCode::default(),
            inserted: InsertedPoints::Nowhere,
            stubs,
            machine: Mutex::default(),
            begins: Beginning::Nowhere,
        })
    }
}

/// Cuts a continuation into a version, with these points, off at its landing point.
fn cut(made: resume::Continuation, points: Option<&Instrumented>) -> Cut {
    let function = &made.function;
    let entry = function.entry();
    // The landing point is the first instruction that is a copy: compensation code has no origins.
    let first = function.block_insts(entry).find(|inst| made.origins.inst(*inst).is_some());
    let at = Point::before(first.unwrap_or_else(|| function.terminator(entry)));
    let of_version = |value: Value| match points {
        None => value,
        Some(instrumented) => {
            instrumented.origins.value(value).expect("entries provide values of the version")
        }
    };
    let (values, copies) =
        made.provided.iter().map(|(value, copy)| (of_version(*value), *copy)).unzip();
    let point = PointSpec { at, condition: Condition::Always, values: copies };
    let instrumented = instrument(function, &[point])
        .expect("jit: provided values are defined before the landing point");
    Cut {
        instrumented,
        origins: Version::origins_of(&made.origins, function.inst_bound(), points),
        values,
    }
}
