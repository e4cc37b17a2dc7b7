//! Where frames of inlined functions land: their bases, with the values live there.

use certify::Certifier;
use check::verdict::Options;
use check::{Checked, FrameLanding, LivePoints, relate};
use ir::edit::ActionLog;
use ir::{Func, Function, Module, Point};
use osr::VersionPair;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use transition::{Side, VersionKey};

/// The bases of the functions of a module as landing versions. Nothing is armed in them: a run that
/// has landed there may take entries that require live values alone.
#[derive(Debug)]
pub struct CalleeLandings<'m> {
    module: &'m Module,
    /// By function: the values live at all points of its base, once asked for; `None` if its base
    /// is not proved to correspond to itself.
    live: BTreeMap<Func, OnceLock<Option<Checked<LivePoints>>>>,
}

impl<'m> CalleeLandings<'m> {
    /// The landings of a module. Cost: linear in its functions.
    pub fn new(module: &'m Module) -> CalleeLandings<'m> {
        let live = module.defined().map(|(func, _)| (func, OnceLock::new())).collect();
        CalleeLandings { module, live }
    }

    /// The landing of a function whose original is its base; `None` for another original. Cost: at
    /// the first question about a function, that of a pair of versions of its size.
    pub fn of(&self, func: Func, key: VersionKey) -> Option<FrameLanding<'_>> {
        let version = self.module.body(func).filter(|base| VersionKey::of(base) == key)?;
        let live = self.live.get(&func)?.get_or_init(|| self.found(version));
        Some(FrameLanding { on: None, version, live: live.as_ref()? })
    }

    fn found(&self, base: &Function) -> Option<Checked<LivePoints>> {
        let pair = VersionPair::new(base, base, &ActionLog::empty_for(base)).ok()?;
        let common = pair.correspondence();
        let certificate = Certifier::new(&common).into_certificate();
        let relation = relate(self.module, common.versions, &certificate, Options::default());
        let points = base.all_insts().map(Point::before);
        relation.ok()?.live_at(Side::Before, points, &[]).ok()
    }
}
