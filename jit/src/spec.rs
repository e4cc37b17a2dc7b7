//! What a version is compiled with.

use crate::direct::BoundFunctions;
#[cfg(doc)]
use crate::engine::Engine;
use crate::error::CompileError;
use ir::{Function, Inst, Point};
use resume::PointSpec;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use transition::copy::InlinedSites;
use transition::mapping::Mapping;

/// What a version is compiled with.
#[derive(Clone, Debug, Default)]
pub struct VersionSpec<'p> {
    pub(crate) points: Cow<'p, [PointSpec]>,
    pub(crate) counts: bool,
    pub(crate) sites: Option<Arc<InlinedSites>>,
    pub(crate) bound: BoundFunctions,
    pub(crate) is_rest: bool,
    pub(crate) calls: BTreeSet<Inst>,
    pub(crate) untested: BTreeSet<Inst>,
}

impl<'p> VersionSpec<'p> {
    /// Counters of calls and arguments, of the sides of branches, of the targets of indirect calls,
    /// and of the results of loads and of reads of globals. One machine may run the version.
    pub fn counting() -> VersionSpec<'p> {
        VersionSpec { counts: true, ..VersionSpec::default() }
    }

    /// A point before each assumption of a version, that fires when the assumption fails. `exits`
    /// names the mapping whose entry the run takes there, for each assumption that a run may reach.
    /// The points have the order of the assumptions in reverse postorder.
    ///
    /// # Errors
    /// [`CompileError::Point`] if an assumption has no exit, or is about a reference that is not
    /// null.
    pub fn leaving<'m>(
        function: &Function,
        mut exits: impl FnMut(Inst) -> Option<&'m Mapping>,
    ) -> Result<VersionSpec<'p>, CompileError> {
        let points = PointSpec::of_assumptions(function, |inst| {
            Some(&exits(inst)?.entry(Point::before(inst))?.requires[..])
        });
        let points = points.map_err(|inst| {
            let what = format!("the assumption {inst} has no exit");
            CompileError::Point { function: function.name().to_owned(), what }
        })?;
        Ok(VersionSpec { points: points.into(), ..VersionSpec::default() })
    }

    /// The same, for a version with inlined code: `sites` tells where that comes from, so that a
    /// trap names the function and the instruction of the base, in continuations into the version,
    /// too.
    #[must_use]
    pub fn with_sites(self, sites: Arc<InlinedSites>) -> VersionSpec<'p> {
        VersionSpec { sites: Some(sites), ..self }
    }

    /// The same, for a version of the code behind a landing point, which has the results of its
    /// function and parameters of its own. Calls do not run it ([`crate::LinkError::NotCallable`]):
    /// adopt it ([`crate::Vm::adopt`], [`crate::Tier::adopt`]), and enter it at its start, by
    /// continuations ([`Engine::continuation`]).
    #[must_use]
    pub fn behind_landing(self) -> VersionSpec<'p> {
        VersionSpec { is_rest: true, ..self }
    }

    /// The same, with a cell for each of these direct calls, so that it may lead to a version of
    /// its callee that only this call may enter ([`crate::Tier::link_call`]). Until then, it leads
    /// to the code that other calls run. The code counts such calls
    /// ([`crate::Version::call_counts`]), at the cost of an addition each. Calls in blocks marked
    /// cold have no cell.
    #[must_use]
    pub fn dispatching(self, calls: BTreeSet<Inst>) -> VersionSpec<'p> {
        VersionSpec { calls, ..self }
    }

    /// The same, without tests of these assumptions, which then have no point. The version is
    /// entered by calls that make them true ([`crate::Tier::link_call`]), and by no other
    /// ([`crate::LinkError::NotCallable`]): adopt it ([`crate::Tier::adopt`]).
    #[must_use]
    pub fn untested(self, assumptions: BTreeSet<Inst>) -> VersionSpec<'p> {
        let mut points = self.points.into_owned();
        points.retain(|point| !assumptions.contains(&point.at.inst()));
        VersionSpec { points: points.into(), untested: assumptions, ..self }
    }

    /// The same, for machines with these functions ([`crate::Vm::bound`]): the code calls them at
    /// their addresses, as fast as C code does, and so do continuations into the version. Other
    /// machines reject the version ([`crate::LinkError::NotBound`]). No effect if the engine traces
    /// or checks, on calls through tables, and on calls in blocks marked cold.
    #[must_use]
    pub fn calling(self, bound: &BoundFunctions) -> VersionSpec<'p> {
        VersionSpec { bound: bound.clone(), ..self }
    }
}

impl<'p> From<&'p [PointSpec]> for VersionSpec<'p> {
    /// OSR points. Point k of the list gets number k.
    fn from(points: &'p [PointSpec]) -> VersionSpec<'p> {
        VersionSpec { points: points.into(), ..VersionSpec::default() }
    }
}

impl<'p, const N: usize> From<&'p [PointSpec; N]> for VersionSpec<'p> {
    fn from(points: &'p [PointSpec; N]) -> VersionSpec<'p> {
        points[..].into()
    }
}

impl<'p> From<&'p Vec<PointSpec>> for VersionSpec<'p> {
    fn from(points: &'p Vec<PointSpec>) -> VersionSpec<'p> {
        points[..].into()
    }
}
