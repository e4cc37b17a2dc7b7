//! Continuations that contain one loop: a run that leaves the loop goes back to the base.

use crate::calls::ContextCode;
use crate::direct::BoundFunctions;
use crate::engine::{Engine, Request};
use crate::error::ContinueError;
use crate::lower::CodeKind;
use crate::observe::PieceKind;
use crate::points::Cell;
use crate::version::{Beginning, Continuation, InsertedPoints, Version, has_points, listed};
use check::CheckedEntry;
use ir::{Func, Function, Inst, Module, Point};
use resume::{Condition, PointSpec, instrument_for_entries};
use std::sync::{Arc, Mutex};
use transition::VersionKey;
use transition::mapping::Mapping;

/// Where runs leave the code of a region.
#[derive(Clone, Copy, Debug)]
pub struct RegionExits<'a> {
    /// The mapping by which a run goes back.
    pub back: &'a Mapping,
    /// The points at which it does, each with an entry of `back` (`osr::LoopRegion::cut`).
    pub points: &'a [Point],
}

impl Engine {
    /// Compiles the code of a version behind an accepted entry, up to some points at which a run
    /// goes back: a region instead of the rest of the function. The mapping back was accepted
    /// together with `entry`. Each of the points becomes an OSR point that always fires, so the
    /// code behind it is left out.
    ///
    /// The target of the continuation is no version that calls may run. Adopt it
    /// ([`crate::Vm::adopt`], [`crate::Tier::adopt`]) with one action for each of the points, in
    /// order, before a run enters it: [`crate::Action::Interpret`], say. To enter the loop again
    /// after an exit, a policy asks with [`crate::Tier::ask_again`].
    ///
    /// Points before the landing instruction count from its second visit on.
    ///
    /// Cost: building is linear in the version; Cranelift compiles the region alone. The target
    /// keeps a copy of the version.
    ///
    /// # Errors
    /// - [`ContinueError::OtherSource`] and [`ContinueError::OtherTarget`] if the entry or the
    ///   mapping back is of other versions.
    /// - [`ContinueError::NotBuilt`] if a point has no entry back, the version has points of its
    ///   own, or the entry does not fit the versions.
    /// - [`ContinueError::Compile`] if code generation fails.
    pub fn region(
        &self,
        module: &Arc<Module>,
        func: Func,
        source: &Function,
        version: &Function,
        entry: CheckedEntry<'_>,
        RegionExits { back, points: cut }: RegionExits<'_>,
    ) -> Result<Arc<Continuation>, ContinueError> {
        let function = || source.name().to_owned();
        let not_built = |what: String| ContinueError::NotBuilt { function: function(), what };
        let (from, to) = (VersionKey::of(source), VersionKey::of(version));
        if entry.source() != from {
            return Err(ContinueError::OtherSource { function: function() });
        }
        if entry.target() != to || back.source() != to {
            return Err(ContinueError::OtherTarget { function: function() });
        }
        // The cut's numbers would collide with the numbers of existing points.
        if has_points(version) {
            return Err(not_built("the version has points of its own".to_owned()));
        }
        let point = |at: &Point| {
            PointSpec::of_entry(back, *at, Condition::Always)
                .ok_or_else(|| not_built(format!("{} has no entry back", at.inst())))
        };
        let points = cut.iter().map(point).collect::<Result<Vec<_>, _>>()?;
        let instrumented = instrument_for_entries(version, &points)
            .map_err(|error| not_built(error.to_string()))?;
        let at = entry.point();
        let name = format!("{}.region.{}", source.name(), at.inst());
        let made = resume::continuation_with_points(&name, source, version, &instrumented, entry);
        let made = made.map_err(|error| not_built(error.to_string()))?;
        let mut origins: Box<[Option<Inst>]> = listed(&made.origins, made.function.inst_bound());
        // From the continuation to the code with points, and from there to the version.
        origins
            .iter_mut()
            .for_each(|inst| *inst = inst.and_then(|inst| instrumented.origins.inst(inst)));
        let stubs = self.point_stubs(version, &points).map_err(ContinueError::Compile)?;
        let cells: Arc<[Cell]> = points.iter().map(|point| self.cell(point.condition)).collect();
        if let Some(stubs) = &stubs {
            cells.iter().for_each(|cell| cell.lead_to(stubs.leave.entry()));
        }
        let request = Request {
            module,
            func,
            function: &made.function,
            kind: CodeKind::Resumed,
            piece: PieceKind::Continuation { at, target: to },
            cells: Arc::clone(&cells),
            counters: None,
            origins: Some(origins),
            sites: None,
            bound: BoundFunctions::default(),
            contexts: ContextCode::default(),
        };
        let code = Arc::new(self.compile(request).map_err(ContinueError::Compile)?);
        let target = Arc::new(Version {
            func,
            key: to,
            engine: self.clone(),
            module: Arc::clone(module),
            function: Arc::new(version.clone()),
            code: Arc::clone(&code),
            points,
            cells,
            counters: None,
            sites: None,
            bound: BoundFunctions::default(),
            contexts: ContextCode::default(),
            inserted: InsertedPoints::ForEntries,
            stubs,
            machine: Mutex::default(),
            begins: Beginning::Nowhere,
        });
        let (requires, instructions) = (entry.entry().requires.clone(), made.function.inst_count());
        let keeps = !entry.entry().kept.is_empty();
        Ok(Arc::new(Continuation { code, source: from, at, requires, keeps, target, instructions }))
    }
}
