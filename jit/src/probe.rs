//! Probes: transitions that show what they lead to. For tests of transitions.

use crate::code::Code;
use crate::engine::{Engine, Request};
use crate::error::ContinueError;
use crate::lower::Kind;
use crate::points::{Cell, Trigger};
use crate::version::{Continuation, Version, listed};
use check::CheckedEntry;
use cranelift_entity::EntityRef;
use ir::{Func, Function, Inst, Point, Value};
use resume::{Condition, Instrumented, PointSpec, instrument};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use transition::VersionKey;

/// The entry block of a continuation up to where it lands, and then an exit with what was provided.
struct Cut {
    instrumented: Instrumented,
    /// By instruction of the rest that was cut: that of the version.
    origins: Box<[Option<Inst>]>,
    /// The values of the target version that are handed over.
    values: Vec<Value>,
}

impl Engine {
    /// Compiles a transition that executes the compensation code and the stores of an entry
    /// natively, and then leaves through an OSR point at the landing point, with the values of the
    /// target version that the entry provides and a run reads, or a point of it. What it leads to
    /// is no version to be called: it stands for the landing alone and is to be taken up
    /// ([`crate::Vm::adopt`]) with one action, which says where to go on. Cost: linear in the part
    /// of the target that can be reached from the landing point; Cranelift's, of the compensation
    /// code alone.
    ///
    /// # Errors
    /// As [`Engine::continuation`].
    pub fn probe(
        &self,
        (func, source): (Func, &Function),
        entry: CheckedEntry<'_>,
        target: &Version,
    ) -> Result<Arc<Continuation>, ContinueError> {
        let function = source.name().to_owned();
        self.require_between(source, &entry, target)?;
        let at = entry.point();
        let name = format!("{function}.probe.{}", at.inst());
        let cut = cut(target.rest(&name, source, entry)?, target);
        let cells: Arc<[Cell]> = Arc::from([Cell::new(Trigger::Armed, 0)]);
        let body = &cut.instrumented.function;
        let mut origins = listed(&cut.instrumented.origins, body.inst_bound());
        origins.iter_mut().for_each(|inst| *inst = inst.and_then(|inst| cut.origins[inst.index()]));
        let request = Request {
            module: &target.module,
            func,
            function: body,
            kind: Kind::Resumed,
            cells: Arc::clone(&cells),
            origins: Some(origins),
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
            target: Arc::new(landing),
        }))
    }

    /// What a probe leads to: the target version, as far as its one point.
    fn landing(
        &self,
        func: Func,
        target: &Version,
        point: PointSpec,
        cells: Arc<[Cell]>,
        code: Arc<Code>,
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
            function: target.function.clone(),
            code,
            points,
            cells,
            instrumented: None,
            stubs,
            claimed: AtomicBool::new(false),
            callable: false,
        })
    }
}

/// Cuts a continuation off where it lands.
fn cut(made: resume::Continuation, target: &Version) -> Cut {
    let function = &made.function;
    let entry = function.entry();
    // Compensation code is a copy of nothing.
    let first = function.block_insts(entry).find(|inst| made.origins.inst(*inst).is_some());
    let at = Point::before(first.unwrap_or_else(|| function.terminator(entry)));
    let of_version = |value: Value| match &target.instrumented {
        None => value,
        Some(instrumented) => {
            instrumented.origins.value(value).expect("entries provide values of the version")
        }
    };
    let (values, copies) =
        made.provided.iter().map(|(value, copy)| (of_version(*value), *copy)).unzip();
    let point = PointSpec { at, condition: Condition::Always, values: copies };
    let instrumented =
        instrument(function, &[point]).expect("what is provided is computed before the landing");
    Cut { instrumented, origins: target.origins_of(&made.origins, function.inst_bound()), values }
}
