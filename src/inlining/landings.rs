//! Where frames of inlined functions land: their bases, with the values live there.

use certify::Certifier;
use check::verdict::Options;
use check::{Checked, FrameLanding, LivePoints, relate};
use ir::edit::ActionLog;
use ir::{Func, Function, Module, Point};
use osr::VersionPair;
use std::collections::BTreeMap;
use transition::{Side, VersionKey};

/// The bases of the functions of a module as landing versions. Nothing is armed in them: a run that
/// has landed there may take entries that require live values alone.
#[derive(Debug)]
pub struct CalleeLandings<'m> {
    module: &'m Module,
    /// By function: the values live at all points of its base. Functions whose base is not proved
    /// to correspond to itself are absent.
    live: BTreeMap<Func, Checked<LivePoints>>,
}

impl<'m> CalleeLandings<'m> {
    /// The landings of a module, for functions of at most this many instructions: those that a
    /// policy inlines. Cost: for each of these, that of a pair of versions of its size.
    pub fn new(module: &'m Module, most: usize) -> CalleeLandings<'m> {
        let small = module.defined().filter(|(_, base)| base.inst_count() <= most);
        let live = small.filter_map(|(func, base)| Some((func, found(module, base)?)));
        CalleeLandings { module, live: live.collect() }
    }

    /// The landing of a function whose original is its base; `None` for another original, and for a
    /// function that is larger. Cost: constant.
    pub fn of(&self, func: Func, key: VersionKey) -> Option<FrameLanding<'_>> {
        let version = self.module.body(func).filter(|base| VersionKey::of(base) == key)?;
        Some(FrameLanding { on: None, version, live: self.live.get(&func)? })
    }
}

/// The values live at all points of a base, from its pair with itself.
fn found(module: &Module, base: &Function) -> Option<Checked<LivePoints>> {
    let pair = VersionPair::new(base, base, &ActionLog::empty_for(base)).ok()?;
    let common = pair.correspondence();
    let certificate = Certifier::new(&common).into_certificate();
    let relation = relate(module, common.versions, &certificate, Options::default());
    let points = base.all_insts().map(Point::before);
    relation.ok()?.live_at(Side::Before, points, &[]).ok()
}
