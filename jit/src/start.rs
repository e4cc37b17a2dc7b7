//! Continuations to the start of a version behind a landing point: its own code, or a passage that
//! makes its parameters and jumps there.

use crate::calls::ContextCode;
use crate::direct::BoundFunctions;
use crate::engine::{Engine, Request};
use crate::error::ContinueError;
use crate::lower::CodeKind;
use crate::observe::PieceKind;
use crate::points::{Cell, Trigger};
use crate::version::{Continuation, Version};
use check::CheckedEntry;
use ir::{Function, Point, Value};
use std::sync::Arc;
use transition::VersionKey;
use transition::mapping::{Entry, Operand};

impl Engine {
    /// The continuation of an entry to the start of a version behind a landing point; `None` for
    /// other entries. It shares the code of the version: many transitions lead there. Linear in the
    /// entry and the parameters.
    ///
    /// # Errors
    /// [`ContinueError::NotBuilt`] if the entry does not fit the versions, and
    /// [`ContinueError::Compile`].
    pub(crate) fn to_start(
        &self,
        source: &Function,
        entry: CheckedEntry<'_>,
        target: &Arc<Version>,
    ) -> Result<Option<Arc<Continuation>>, ContinueError> {
        let (at, of) = (entry.point(), entry.entry());
        let params = target.function.block_params(target.function.entry());
        if !target.is_entered_at_start() || !provides_start(of, &target.function) {
            return Ok(None);
        }
        let made = |code, instructions| {
            let (source, requires) = (VersionKey::of(source), of.requires.clone());
            let (keeps, target) = (!of.kept.is_empty(), Arc::clone(target));
            Arc::new(Continuation { code, source, at, requires, keeps, target, instructions })
        };
        // The code of the version reads its parameters where the exit has stored its values.
        if is_in_order(of, params) {
            return Ok(Some(made(Arc::clone(&target.code), 0)));
        }
        let name = format!("{}.to.{}", source.name(), target.function.name());
        let function = resume::passage(&name, source, &target.function, entry);
        let function = function.map_err(|error| ContinueError::NotBuilt {
            function: source.name().to_owned(),
            what: error.to_string(),
        })?;
        // The passage holds the cell, and the link of the point holds both pieces of code
        // (`PointLink::codes`).
        let cell = Cell::new(Trigger::Armed, 0);
        cell.lead_to(target.code.entry());
        let request = Request {
            module: &target.module,
            func: target.func,
            function: &function,
            kind: CodeKind::Resumed,
            piece: PieceKind::Continuation { at, target: target.key },
            cells: Arc::from([cell]),
            counters: None,
            origins: Some(vec![None; function.inst_bound()].into()),
            sites: None,
            bound: BoundFunctions::default(),
            contexts: ContextCode::default(),
        };
        let code = self.compile(request).map_err(ContinueError::Compile)?;
        Ok(Some(made(Arc::new(code), function.inst_count())))
    }
}

/// Whether an entry lands at the start of a function and provides all its parameters.
fn provides_start(entry: &Entry, target: &Function) -> bool {
    let start = target.entry();
    let provides = |param: &Value| entry.assigns.binary_search_by_key(param, |a| a.value).is_ok();
    entry.inner.is_empty()
        && entry.target == Point::before(target.first_inst(start))
        && target.block_params(start).iter().all(provides)
}

/// Whether an entry executes nothing, and requires what it assigns to the parameters, in order.
fn is_in_order(entry: &Entry, params: &[Value]) -> bool {
    let given = |param: &Value| {
        let at = entry.assigns.binary_search_by_key(param, |assign| assign.value).ok()?;
        match entry.assigns[at].from {
            Operand::Source(value) => Some(value),
            Operand::Step(_) => None,
        }
    };
    let required = entry.requires.iter().copied().map(Some);
    entry.steps.is_empty() && entry.replays.is_empty() && params.iter().map(given).eq(required)
}
