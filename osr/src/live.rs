//! What is live at the points of a version, armed entries counted.
//!
//! Two answers, where constants decide branches ([`ir::decided`]). What an entry may read without
//! keeping it is what the text of its version still reads. What an entry has to *provide* is what a
//! run of its version still reads: less, where only code that never runs reads a value, which the
//! other version may have lost together with that code. What entries require is provided to those
//! that land before them, live in the text or not ([`add_required`]).

use crate::pair::Demand;
use ir::cfg::Cfg;
use ir::decided::Decided;
use ir::liveness::Liveness;
use ir::mapping::{Entry, Mapping};
use ir::{Function, Inst, Point, Value};
use std::collections::BTreeMap;

/// Live values of a version, summed over its points, beyond which it gets no mappings: an entry
/// names every value it provides, so a mapping has the size of this sum.
const MAX_LIVE_VALUES: usize = 1 << 24;

/// Values that entries read, as uses at source points.
pub(crate) type ExtraUses = BTreeMap<Inst, Vec<Value>>;

/// Adds what entries of a mapping read that is not live in a run of its source version to the uses
/// of that version; says whether there are new ones.
pub(crate) fn add_unlive(mapping: &Mapping, in_run: &LiveTable, uses: &mut ExtraUses) -> bool {
    let mut grew = false;
    for (point, entry) in mapping.entries().filter(|(_, e)| !e.requires.is_empty()) {
        let live = in_run.live(point);
        for &value in entry.requires.iter().filter(|v| live.binary_search(v).is_err()) {
            let at = uses.entry(point.inst()).or_default();
            if !at.contains(&value) {
                at.push(value);
                grew = true;
            }
        }
    }
    grew
}

/// Adds all that the entries of a mapping require to the uses of its source version. What is live
/// in any case adds nothing to what is live.
pub(crate) fn add_required(mapping: &Mapping, uses: &mut ExtraUses) {
    for (point, entry) in mapping.entries() {
        uses.entry(point.inst()).or_default().extend(&entry.requires);
    }
}

/// What is live at each point of a version, by instruction index.
pub(crate) struct LiveTable {
    at: Vec<Box<[Value]>>,
}

impl LiveTable {
    /// What is live in the text of a version; `None` beyond [`MAX_LIVE_VALUES`].
    pub(crate) fn of_text(f: &Function, cfg: &Cfg, demand: Demand) -> Option<LiveTable> {
        let none = ExtraUses::new();
        let liveness = match demand {
            Demand::Needed => Liveness::of_needed(f, cfg, &none),
            Demand::Live => Liveness::with_extra_uses(f, cfg, &none),
        };
        LiveTable::of(f, cfg, &liveness)
    }

    /// What has to be provided where transitions land, when the listed values are used as well;
    /// `None` beyond [`MAX_LIVE_VALUES`]. Nothing in code that never runs: there is no landing
    /// there.
    pub(crate) fn of_run(
        f: &Function,
        decided: &Decided,
        demand: Demand,
        uses: &ExtraUses,
    ) -> Option<LiveTable> {
        match demand {
            Demand::Needed => LiveTable::of(f, decided.cfg(), &Liveness::of_run(f, decided, uses)),
            Demand::Live => {
                let cfg = Cfg::new(f);
                LiveTable::of(f, &cfg, &Liveness::with_extra_uses(f, &cfg, uses))
            }
        }
    }

    fn of(f: &Function, cfg: &Cfg, liveness: &Liveness) -> Option<LiveTable> {
        let mut at = vec![Box::default(); f.inst_bound()];
        let mut total = 0;
        for &block in cfg.rpo() {
            liveness.for_each_point(f, block, |point, live| {
                total += live.len();
                if total <= MAX_LIVE_VALUES {
                    at[point.inst().as_u32() as usize] = live.as_slice().into();
                }
            });
        }
        (total <= MAX_LIVE_VALUES).then_some(LiveTable { at })
    }

    pub(crate) fn live(&self, point: Point) -> &[Value] {
        &self.at[point.inst().as_u32() as usize]
    }

    /// The points of a mapping whose entries do not provide all that is live where they land in
    /// this version.
    pub(crate) fn lacking(&self, mapping: &Mapping) -> Vec<Point> {
        let provides_all = |e: &Entry| self.live(e.target).iter().all(|v| e.provides_value(*v));
        mapping.entries().filter(|(_, e)| !provides_all(e)).map(|(p, _)| p).collect()
    }
}
