//! Judges landing points without a search: rules those out whose entries fail, or cost no less than
//! the best entry so far.
//!
//! The first landing point tried is mostly the best. Other landing points of a long block would
//! cost more than the first: the values of one far ahead are computed from hundreds of others, and
//! the search for them would run into its limits at every source point. A walk over the operations
//! that an entry cannot do without stops earlier, and finds no expression.
//!
//! 1. A value that is nowhere available and that no operation computes: the entry fails.
//! 2. More values to keep than the best entry keeps: the entry costs more.
//! 3. As many values to keep, so that all others are computed, by code of at least the size of the
//!    best: the entry costs no less.
//! 4. A value computed from more nodes than the search visits: the search for it stops at its
//!    limit, and the entry fails.
//!
//! Example: the best entry keeps two values, and its code has size 12. Another landing point needs
//! two values that only keeping gives, and six values that ten operations compute from live values.
//! The size is 10 for the steps and 6 for the copies: the search does not try this landing point.

use crate::derive::{Deriver, MAX_VISITS};
use crate::goal::{DerivationCost, EntryGoal};
use crate::level::Level;
use crate::node::SearchNode;
use crate::scratch::Scratch;
use crate::source::{Here, Outlook, SourcePoint};
use ir::Value;
use std::cmp::Ordering;

/// Landing points of one source point up to which a search at each costs less than judgments.
pub(crate) const FEW_LANDINGS: usize = 8;

/// The judgment of a landing point without a search.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ruling {
    /// Only a search tells.
    Open,
    /// An entry that lands there fails, or costs no less than the best.
    Out,
    /// It fails, since no entry from this source point has this value.
    Lost(Value),
}

/// Whether the search for a value ends within its limit of visits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SearchReach {
    Near,
    /// It depends on the kept values.
    Unclear,
    Far,
}

/// The tables of the judgment at hand.
#[derive(Debug, Default)]
pub(crate) struct Outlooks {
    /// By value: whether keeping a value gives it, for [`Outlook::Computed`].
    keepable: Scratch<bool>,
    /// The values met.
    met: Scratch<bool>,
    /// Values that every entry for the goal keeps, ascending.
    forced: Vec<Value>,
    work: Vec<Value>,
    /// The values that the last goal out of reach needs, in their order, up to the value that is
    /// out of reach. Empty if the search may have found values since, which bring others into
    /// reach.
    far: Vec<Value>,
}

impl Outlooks {
    /// Forgets the last goal, for another source point.
    pub(crate) fn clear(&mut self) {
        self.keepable.clear();
        self.far.clear();
    }
}

impl Deriver<'_, '_> {
    /// Judges a landing point by the cost of the best entry so far. With a keeper, its entry may
    /// keep values. Cost: the values of the goal, and for each at most half of [`MAX_VISITS`]
    /// operations.
    ///
    /// If the answer is [`Ruling::Open`], search. An answer counts on all expressions found before
    /// the call, and no others.
    pub(crate) fn rule(
        &mut self,
        keeper: Option<&Deriver<'_, '_>>,
        here: &SourcePoint,
        goal: &EntryGoal<'_>,
        best: Option<DerivationCost>,
    ) -> Ruling {
        // A path that binds something has other ways to a value.
        if !here.is_plain() {
            return Ruling::Open;
        }
        let mut outlooks = std::mem::take(&mut self.outlooks);
        let ruling = outlooks.rule(self, keeper, here, goal, best);
        self.outlooks = outlooks;
        ruling
    }

    /// Whether no entry for this goal that keeps values costs less than `best`. Also if the search
    /// has given up a value of the goal, or has lost one and has no node left to look for values
    /// to keep.
    pub(crate) fn rules_out(
        &mut self,
        keeper: &Deriver<'_, '_>,
        here: &SourcePoint,
        goal: &EntryGoal<'_>,
        best: Option<DerivationCost>,
    ) -> bool {
        let is_out_of_nodes = self.is_out_of_nodes();
        let fails = |v: Value| self.is_given_up(v) || (is_out_of_nodes && self.is_lost(v));
        goal.wanted(self.q.f).any(fails)
            || self.rule(Some(keeper), here, goal, best) != Ruling::Open
    }

    /// Whether the search has an expression for a value, with these or other kept values.
    fn has_found(&self, value: Value) -> bool {
        let has = |deriver: &Deriver<'_, '_>| {
            deriver.consult(SearchNode::Wanted(value)).is_some_and(|found| found.is_some())
        };
        has(self) || self.others.iter().any(has)
    }

    /// The ways to have a wanted value. The source point keeps the answer for all searches.
    fn outlook(&self, here: &SourcePoint, value: Value) -> Outlook {
        here.outlook(value, || {
            // Whether a value that is neither live nor an argument is available costs most, and
            // only values that nothing else gives depend on it.
            let is_argument = |m: Value| self.p.f.has_value(m) && self.p.is_argument(m);
            let is_free = |m: &Value| here.is_live(*m) || is_argument(*m);
            if self.readable_members(here, value, is_free).next().is_some() {
                return Outlook::Read;
            }
            let known = self.pair.known_of(self.q.side, value);
            if known.constant.is_some() {
                return Outlook::Constant;
            }
            if self.operation(value).is_some() {
                return Outlook::Computed;
            }
            if known.shared.is_some() {
                return Outlook::Replaced;
            }
            let kept = self.readable_members(here, value, |_| true).next();
            kept.map_or(Outlook::Hopeless, Outlook::Forced)
        })
    }

    /// The members of a wanted value's class that pass a test and can be read here, live or not.
    fn readable_members<'d>(
        &'d self,
        here: &'d SourcePoint,
        value: Value,
        test: impl Fn(&Value) -> bool + 'd,
    ) -> impl Iterator<Item = Value> + 'd {
        let known = self.pair.known_of(self.q.side, value);
        let members = std::iter::once(value).chain(known.members.iter().copied());
        members.filter(move |m| test(m) && here.readable(self.p, *m) == Here::Value(*m))
    }
}

impl Outlooks {
    fn rule(
        &mut self,
        deriver: &Deriver<'_, '_>,
        keeper: Option<&Deriver<'_, '_>>,
        here: &SourcePoint,
        goal: &EntryGoal<'_>,
        best: Option<DerivationCost>,
    ) -> Ruling {
        self.forced.clear();
        for value in goal.wanted(deriver.q.f) {
            match deriver.outlook(here, value) {
                Outlook::Hopeless => return Ruling::Lost(value),
                Outlook::Forced(_) if keeper.is_none() => return Ruling::Lost(value),
                Outlook::Forced(kept) => self.forced.push(kept),
                _ => {}
            }
        }
        self.forced.sort_unstable();
        self.forced.dedup();
        let best = best.filter(|best| best.arguments == 0);
        let is_worse = best.is_some_and(|best| match self.forced.len().cmp(&best.kept) {
            // An entry that keeps fewer values than the best may have code of any size.
            Ordering::Less => false,
            Ordering::Equal => self.reaches_size(deriver, here, goal, best.size),
            Ordering::Greater => true,
        });
        match is_worse || self.is_far(deriver, keeper, here, goal) {
            true => Ruling::Out,
            false => Ruling::Open,
        }
    }

    /// Whether the code of each entry for this goal that keeps the forced values and no others has
    /// at least this size. Also if there is no such entry.
    ///
    /// Such an entry reads no other dead value. Each value made or computed takes a step of its own
    /// ([`Deriver::derive`] makes an expression for each), and needs its operands in turn. An odd
    /// value is also copied to its own id, unless it is kept under this id.
    fn reaches_size(
        &mut self,
        deriver: &Deriver<'_, '_>,
        here: &SourcePoint,
        goal: &EntryGoal<'_>,
        size: usize,
    ) -> bool {
        let copies = goal.odd().iter().filter(|value| !self.is_kept(value)).count();
        let mut least = copies + goal.replay_count();
        let mut work = std::mem::take(&mut self.work);
        work.clear();
        work.extend(goal.wanted(deriver.q.f));
        self.met.clear();
        let mut is_lost = false;
        while let Some(value) = work.pop().filter(|_| least < size && !is_lost) {
            let index = value.as_u32() as usize;
            if here.is_live(value) || self.met.get(index).is_some() {
                continue;
            }
            self.met.set(index, true);
            let members = &deriver.pair.known_of(deriver.q.side, value).members;
            let reads = || self.is_kept(&value) || members.iter().any(|m| self.is_kept(m));
            match deriver.outlook(here, value) {
                Outlook::Read | Outlook::Replaced => {}
                Outlook::Hopeless => is_lost = true,
                Outlook::Forced(_) => is_lost = !reads(),
                Outlook::Constant | Outlook::Computed if reads() => {}
                Outlook::Constant => least += 1,
                Outlook::Computed => {
                    least += 1;
                    work.extend(deriver.operands(value));
                }
            }
        }
        self.work = work;
        is_lost || least >= size
    }

    /// Whether a value of the goal is out of reach: the search for it fails or stops at
    /// [`MAX_VISITS`], whatever the entry keeps
    /// (`the_end_of_a_chain_is_in_reach_up_to_the_limit_of_visits`).
    fn is_far(
        &mut self,
        deriver: &Deriver<'_, '_>,
        keeper: Option<&Deriver<'_, '_>>,
        here: &SourcePoint,
        goal: &EntryGoal<'_>,
    ) -> bool {
        if self.is_as_far(deriver, goal) {
            return true;
        }
        self.far.clear();
        self.met.clear();
        let mut work = std::mem::take(&mut self.work);
        let mut reach = SearchReach::Near;
        for wanted in goal.wanted(deriver.q.f) {
            self.far.push(wanted);
            work.clear();
            work.push(wanted);
            reach = self.reach(deriver, keeper, here, &mut work);
            // The nodes that the search for an unclear value visits may be known behind it.
            if reach != SearchReach::Near {
                break;
            }
        }
        self.work = work;
        if reach != SearchReach::Far {
            self.far.clear();
        }
        reach == SearchReach::Far
    }

    /// Whether a goal needs the value that is out of reach for the goal before, and before it no
    /// value that the goal before does not need.
    fn is_as_far(&self, deriver: &Deriver<'_, '_>, goal: &EntryGoal<'_>) -> bool {
        let Some(far) = self.far.last() else { return false };
        let mut before = self.far.iter();
        goal.wanted(deriver.q.f).take_while(|value| before.any(|b| b == value)).any(|v| v == *far)
    }

    /// The reach of the value in `work`, given that the search has found all values met. The search
    /// visits each node that it does not know once, and once more the node that needs it. Nodes
    /// that a search with other kept values knows count as known.
    fn reach(
        &mut self,
        deriver: &Deriver<'_, '_>,
        keeper: Option<&Deriver<'_, '_>>,
        here: &SourcePoint,
        work: &mut Vec<Value>,
    ) -> SearchReach {
        let (mut reach, mut nodes) = (SearchReach::Near, 0);
        while let Some(value) = work.pop() {
            let index = value.as_u32() as usize;
            if here.is_live(value)
                || self.met.get(index).is_some()
                || keeper.unwrap_or(deriver).has_found(value)
            {
                continue;
            }
            self.met.set(index, true);
            nodes += 1;
            if 2 * nodes - 1 > MAX_VISITS {
                return SearchReach::Far;
            }
            match deriver.outlook(here, value) {
                Outlook::Hopeless => return SearchReach::Far,
                Outlook::Forced(_) if keeper.is_none() => return SearchReach::Far,
                Outlook::Computed
                    if keeper.is_none() || !self.is_keepable(deriver, here, value) =>
                {
                    work.extend(deriver.operands(value));
                }
                Outlook::Computed | Outlook::Replaced => reach = SearchReach::Unclear,
                // A lower level may have to compute it.
                Outlook::Read | Outlook::Constant if deriver.level < Level::Alias => {
                    if !deriver.operands(value).is_empty() {
                        deriver.note(Level::Alias);
                        reach = SearchReach::Unclear;
                    }
                }
                Outlook::Read | Outlook::Constant | Outlook::Forced(_) => {}
            }
        }
        reach
    }

    /// Whether an entry can keep a value for a wanted value.
    fn is_keepable(&mut self, deriver: &Deriver<'_, '_>, here: &SourcePoint, value: Value) -> bool {
        let index = value.as_u32() as usize;
        self.keepable.get(index).unwrap_or_else(|| {
            let is_keepable = deriver.readable_members(here, value, |_| true).next().is_some();
            self.keepable.set(index, is_keepable);
            is_keepable
        })
    }

    fn is_kept(&self, value: &Value) -> bool {
        self.forced.binary_search(value).is_ok()
    }
}
