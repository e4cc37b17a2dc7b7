//! The task of one entry: the landing point, the values to provide, and the cost to stay below.

use crate::pair::analyzed::Analyzed;
use crate::source::SourcePoint;
use ir::{Function, Inst, Point, Value};
use smallvec::SmallVec;
use std::cell::OnceCell;
use transition::ascending::missing;
use transition::mapping::EntryParts;

/// The cost of an entry, compared in the order of the fields.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct DerivationCost {
    /// Kept values that are not arguments.
    pub(crate) kept: usize,
    /// Kept arguments.
    pub(crate) arguments: usize,
    /// The size of the compensation code: steps, replays, and values assigned from another id.
    pub(crate) size: usize,
}

/// The writes that an entry replays, in order.
pub(crate) type Replays<'g> = std::borrow::Cow<'g, [Inst]>;

/// The task of one entry: the landing point, the values, the replays.
#[derive(Clone)]
pub(crate) struct EntryGoal<'g> {
    pub(crate) target: Point,
    /// The values it provides, exactly these, ascending.
    pub(crate) needed: &'g [Value],
    /// The odd values: provided values that are not live at the source point under their own id,
    /// ascending. The entry copies all other provided values to their own ids. They are computed on
    /// demand: many landing points are never better than the first, and far landing points have
    /// many odd values.
    odd: OnceCell<OddValues>,
    /// A lower bound of the number of odd values.
    least_odd: usize,
    /// The writes of the target version that it replays.
    pub(crate) replays: Replays<'g>,
}

type OddValues = SmallVec<[Value; 4]>;

impl<'g> EntryGoal<'g> {
    pub(crate) fn new(
        here: &SourcePoint,
        target: Point,
        needed: &'g [Value],
        replays: Replays<'g>,
    ) -> EntryGoal<'g> {
        let least_odd = needed.len().saturating_sub(here.live_values().len());
        EntryGoal { target, needed, odd: OnceCell::new(), least_odd, replays }
    }

    /// Whether the empty entry does: nothing to replay, and every value needed is live at the
    /// source point under its own id.
    pub(crate) fn is_met_as_is(&self, p: &Analyzed<'_>, here: &SourcePoint) -> bool {
        self.replays.is_empty() && self.least_odd == 0 && self.odd_at(p, here).next().is_none()
    }

    fn odd_at<'o, 'v>(
        &self,
        p: &'o Analyzed<'v>,
        here: &'o SourcePoint,
    ) -> impl Iterator<Item = Value> + use<'o, 'g, 'v> {
        // Each live value reads itself where the path binds nothing. Elsewhere all values are
        // tested.
        let live = if here.is_plain() { here.live_values() } else { &[] };
        let is_plain = here.is_plain();
        missing(live, self.needed).filter(move |v| is_plain || !here.reads_itself(p, *v))
    }

    /// Finds the odd values. Call it before any question but for the least cost.
    pub(crate) fn find_odd(&self, p: &Analyzed<'_>, here: &SourcePoint) {
        self.odd.get_or_init(|| {
            let mut odd = OddValues::new();
            for value in self.odd_at(p, here) {
                // Most goals have no odd value or many: at most two allocations.
                if odd.len() == 4 {
                    odd.reserve(32);
                }
                odd.push(value);
            }
            odd
        });
    }

    /// Whether at least `count` values are odd. Cost: few steps for each of `count` values.
    fn has_odd(&self, p: &Analyzed<'_>, here: &SourcePoint, count: usize) -> bool {
        match self.odd.get() {
            Some(odd) => odd.len() >= count,
            None => self.least_odd >= count || self.odd_at(p, here).take(count).count() == count,
        }
    }

    /// Whether no entry for this goal costs less than this. A landing point far away has many odd
    /// values, and needs not all of them to be found.
    pub(crate) fn is_no_less(
        &self,
        p: &Analyzed<'_>,
        here: &SourcePoint,
        cost: DerivationCost,
    ) -> bool {
        (cost.kept, cost.arguments) == (0, 0)
            && self.has_odd(p, here, cost.size.saturating_sub(self.replays.len()))
    }

    /// Whether no entry for this goal that keeps values costs less than this, given the values that
    /// the entry of this cost loses: all that
    /// [`least_cost_of_more`](crate::entry::least_cost_of_more) says, without the odd values.
    pub(crate) fn loses_no_less(
        &self,
        p: &Analyzed<'_>,
        here: &SourcePoint,
        cost: DerivationCost,
        lost: &[Value],
    ) -> bool {
        let odd = (cost.size + cost.kept).saturating_sub(self.replays.len());
        cost.arguments == 0
            && !lost.is_empty()
            && lost.iter().all(|value| self.wants(p, here, *value))
            && self.has_odd(p, here, odd)
    }

    /// Whether a value is odd.
    pub(crate) fn wants(&self, p: &Analyzed<'_>, here: &SourcePoint, value: Value) -> bool {
        let has = if here.is_plain() { here.is_live(value) } else { here.reads_itself(p, value) };
        !has && self.needed.binary_search(&value).is_ok()
    }

    /// The odd values, if [`EntryGoal::find_odd`] has found them.
    pub(crate) fn odd(&self) -> &[Value] {
        self.odd.get().map_or(&[], |odd| odd)
    }

    /// Whether an entry for another goal needs the same expressions, and so costs the same. Also
    /// `false` if the odd values of `other` were never computed: `other` was no better than the
    /// best entry, and neither is this goal then.
    pub(crate) fn costs_as(&self, other: &EntryGoal<'_>) -> bool {
        other.odd.get().is_some() && self.odd() == other.odd() && self.replays == other.replays
    }

    /// A cost that no entry for this goal undercuts.
    pub(crate) fn least_cost(&self) -> DerivationCost {
        let odd = self.odd.get().map_or(self.least_odd, |odd| odd.len());
        DerivationCost { kept: 0, arguments: 0, size: odd + self.replays.len() }
    }

    /// The number of writes that it replays.
    pub(crate) fn replay_count(&self) -> usize {
        self.replays.len()
    }

    /// The empty entry: it copies every value to its own id.
    pub(crate) fn as_is(&self) -> EntryParts<'g> {
        EntryParts {
            target: self.target,
            steps: Vec::new(),
            replays: Vec::new(),
            provided: self.needed,
            changed: Vec::new(),
            read: Vec::new(),
            kept: Vec::new(),
        }
    }

    /// The odd values, followed by the operands of the replayed writes.
    pub(crate) fn wanted(&self, q: &Function) -> impl Iterator<Item = Value> {
        let written = self.replays.iter().flat_map(move |i| q.inst(*i).args.iter().copied());
        self.odd().iter().copied().chain(written)
    }
}

/// Values that an entry needs and that are lost, some more than once.
pub(crate) type LostValues = SmallVec<[Value; 8]>;
