//! What is live at the points of a version, armed entries counted.

use crate::pair::Demand;
use ir::cfg::Cfg;
use ir::liveness::Liveness;
use ir::mapping::{Entry, Mapping};
use ir::{Function, Inst, Point, Value};
use std::collections::BTreeMap;

/// Live values of a version, summed over its points, beyond which it gets no mappings: an entry names every
/// value it provides, so a mapping has the size of this sum.
const MAX_LIVE_VALUES: usize = 1 << 24;

/// Kept values, as uses at source points.
pub(crate) type ExtraUses = BTreeMap<Inst, Vec<Value>>;

/// Adds the kept values of a mapping to the uses of its source version; says whether there are new ones.
pub(crate) fn add_kept(mapping: &Mapping, uses: &mut ExtraUses) -> bool {
    let mut grew = false;
    for (point, entry) in mapping.entries().filter(|(_, e)| !e.kept.is_empty()) {
        let at = uses.entry(point.inst()).or_default();
        for &value in &entry.kept {
            if !at.contains(&value) {
                at.push(value);
                grew = true;
            }
        }
    }
    grew
}

/// Adds all that the entries of a mapping require to the uses of its source version. What is live in any case adds
/// nothing to what is live, so this is as good as the kept values, and trusts nobody.
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
    /// What is live when the listed values are used as well; `None` beyond [`MAX_LIVE_VALUES`].
    pub(crate) fn new(f: &Function, cfg: &Cfg, demand: Demand, uses: &ExtraUses) -> Option<LiveTable> {
        let liveness = match demand {
            Demand::Needed => Liveness::of_needed(f, cfg, uses),
            Demand::Live => Liveness::with_extra_uses(f, cfg, uses),
        };
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

    /// The points of a mapping whose entries do not provide all that is live where they land in this version.
    pub(crate) fn lacking(&self, mapping: &Mapping) -> Vec<Point> {
        let provides_all = |e: &Entry| self.live(e.target).iter().all(|v| e.provides_value(*v));
        mapping.entries().filter(|(_, e)| !provides_all(e)).map(|(p, _)| p).collect()
    }
}
