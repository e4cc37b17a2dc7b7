//! A lower bound for the cost of an entry that keeps values, found without a derivation.
//!
//! The first landing point tried is mostly the best. The bound rules out most of the others before
//! their values are derived: in a long block, the values of a landing point far ahead are computed
//! from hundreds of others, and the search would run into its limits at every source point.
//!
//! Example: the best entry keeps two values, and its code has size 12. A landing point needs two
//! values that only keeping gives, so an entry that keeps no third reads nothing else that is
//! dead. The values of the landing point that then have to be computed take 12 operations or more:
//! no entry that lands there is better.

use crate::derive::{Alternative, Deriver, MAX_VISITS, SearchNode};
use crate::entry::{DerivationCost, EntryGoal};
use crate::scratch::Scratch;
use crate::source::SourcePoint;
use ir::Value;
use std::ops::ControlFlow;

/// The ways to have a wanted value from a source point whose path binds nothing.
#[derive(Clone, Copy, Default, Debug)]
enum Outlook {
    /// No entry has it.
    #[default]
    Hopeless,
    /// An entry reads it without keeping a value.
    Read,
    /// Another value of the target version stands for it.
    Replaced,
    /// An entry must keep this value for it.
    Forced(Value),
    /// An entry makes it by a step of its own, or keeps a value for it.
    Constant,
    /// An entry computes it from its operands by a step of its own, or, if `is_keepable`, keeps a
    /// value for it.
    Computed { is_keepable: bool },
}

/// Whether the search for a value ends within its limit of visits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Near,
    /// It depends on the kept values.
    Unclear,
    Far,
}

/// The ways to have wanted values from the source point at hand.
#[derive(Debug, Default)]
pub(crate) struct Outlooks {
    known: Scratch<Outlook>,
    /// Values that the bound at hand has met.
    met: Scratch<bool>,
    /// Values that every entry for the goal at hand keeps, ascending.
    forced: Vec<Value>,
    work: Vec<Value>,
}

impl Outlooks {
    /// Forgets the values, for another source point.
    pub(crate) fn clear(&mut self) {
        self.known.clear();
    }
}

impl Deriver<'_, '_> {
    /// Whether an entry for this goal is known to fail or to cost no less than `best`. With a
    /// keeper, the entry may keep values. Cost: the values of the goal, and for each at most half
    /// of [`MAX_VISITS`] operations.
    pub(crate) fn rules_out(
        &mut self,
        keeper: Option<&Deriver<'_, '_>>,
        here: &SourcePoint,
        goal: &EntryGoal<'_>,
        best: Option<DerivationCost>,
    ) -> bool {
        // A path that binds something has other ways to a value.
        if !here.is_plain() {
            return false;
        }
        let mut outlooks = std::mem::take(&mut self.outlooks);
        let best = best.filter(|best| best.arguments == 0);
        let is_out = match (outlooks.find_forced(self, here, goal), best) {
            (None, _) => true,
            (Some(1..), _) if keeper.is_none() => true,
            (Some(forced), Some(best)) if forced > best.kept => true,
            // Without a value to spare, the entry reads no other value that is dead. An entry that
            // keeps fewer values than the best may have code of any size.
            (Some(forced), Some(best)) if forced == best.kept => {
                outlooks.reaches_size(self, here, goal, best.size)
            }
            _ => false,
        };
        let is_out = is_out || outlooks.is_far(self, keeper, here, goal);
        self.outlooks = outlooks;
        is_out
    }

    /// Whether the search has an expression for a value, with these or other kept values.
    fn has_found(&self, value: Value) -> bool {
        let has = |deriver: &Deriver<'_, '_>| {
            deriver.consult(SearchNode::Wanted(value)).is_some_and(|found| found.is_some())
        };
        has(self) || self.others.iter().any(has)
    }

    fn outlook(&self, here: &SourcePoint, value: Value) -> Outlook {
        let mut unreadable = None;
        let found =
            self.each_alternative(here, SearchNode::Wanted(value), false, |found| match found {
                Alternative::Read(value) if !self.may_read(here, value) => {
                    unreadable.get_or_insert(value);
                    ControlFlow::Continue(())
                }
                Alternative::Read(_) => ControlFlow::Break(Outlook::Read),
                Alternative::Same(_) => ControlFlow::Break(Outlook::Replaced),
                Alternative::Constant { .. } => ControlFlow::Break(Outlook::Constant),
                Alternative::Execute { .. } => {
                    let is_keepable = unreadable.is_some();
                    ControlFlow::Break(Outlook::Computed { is_keepable })
                }
            });
        found.or(unreadable.map(Outlook::Forced)).unwrap_or_default()
    }
}

impl Outlooks {
    fn of(&mut self, deriver: &Deriver<'_, '_>, here: &SourcePoint, value: Value) -> Outlook {
        let index = value.as_u32() as usize;
        self.known.get(index).unwrap_or_else(|| {
            let outlook = deriver.outlook(here, value);
            self.known.set(index, outlook);
            outlook
        })
    }

    /// Finds the values that every entry for this goal keeps. Returns their number; `None` if the
    /// goal has no entry.
    fn find_forced(
        &mut self,
        deriver: &Deriver<'_, '_>,
        here: &SourcePoint,
        goal: &EntryGoal<'_>,
    ) -> Option<usize> {
        self.forced.clear();
        for value in goal.wanted(deriver.q.f) {
            match self.of(deriver, here, value) {
                Outlook::Hopeless => return None,
                Outlook::Forced(kept) => self.forced.push(kept),
                _ => {}
            }
        }
        self.forced.sort_unstable();
        self.forced.dedup();
        Some(self.forced.len())
    }

    /// Whether the code of each entry for this goal that keeps the forced values and no others has
    /// at least this size. Also if there is no such entry.
    ///
    /// Each value made or computed takes a step of its own ([`Deriver::derive`] makes an expression
    /// for each), and it needs its operands in turn. An odd value is also copied to its own id,
    /// unless it is kept under this id.
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
            if self.met.get(index).is_some() {
                continue;
            }
            self.met.set(index, true);
            let outlook = self.of(deriver, here, value);
            let members = &deriver.pair.known_of(deriver.q.side, value).members;
            let reads = || self.is_kept(&value) || members.iter().any(|m| self.is_kept(m));
            match outlook {
                Outlook::Read | Outlook::Replaced => {}
                Outlook::Hopeless => is_lost = true,
                Outlook::Forced(_) => is_lost = !reads(),
                Outlook::Constant | Outlook::Computed { .. } if reads() => {}
                Outlook::Constant => least += 1,
                Outlook::Computed { .. } => {
                    least += 1;
                    let inst = deriver.q.f.defining_inst(value);
                    work.extend(inst.iter().flat_map(|inst| &deriver.q.f.inst(*inst).args));
                }
            }
        }
        self.work = work;
        is_lost || least >= size
    }

    /// Whether a value of the goal is out of reach: the search for it fails or stops at
    /// [`MAX_VISITS`], whatever the entry keeps.
    ///
    /// The search visits each node that it does not know once, and once more the node that needs
    /// it. Nodes that a search with other kept values knows count as known.
    fn is_far(
        &mut self,
        deriver: &Deriver<'_, '_>,
        keeper: Option<&Deriver<'_, '_>>,
        here: &SourcePoint,
        goal: &EntryGoal<'_>,
    ) -> bool {
        let mut work = std::mem::take(&mut self.work);
        self.met.clear();
        let mut reach = Reach::Near;
        for wanted in goal.wanted(deriver.q.f) {
            work.clear();
            work.push(wanted);
            reach = self.reach(deriver, keeper, here, &mut work);
            // The nodes that the search for an unclear value visits may be known behind it.
            if reach != Reach::Near {
                break;
            }
        }
        self.work = work;
        reach == Reach::Far
    }

    /// The reach of a value, given that the search has found all values met.
    fn reach(
        &mut self,
        deriver: &Deriver<'_, '_>,
        keeper: Option<&Deriver<'_, '_>>,
        here: &SourcePoint,
        work: &mut Vec<Value>,
    ) -> Reach {
        let (mut reach, mut nodes) = (Reach::Near, 0);
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
                return Reach::Far;
            }
            match self.of(deriver, here, value) {
                Outlook::Hopeless => return Reach::Far,
                Outlook::Forced(_) if keeper.is_none() => return Reach::Far,
                Outlook::Computed { is_keepable } if !is_keepable || keeper.is_none() => {
                    let inst = deriver.q.f.defining_inst(value);
                    work.extend(inst.iter().flat_map(|inst| &deriver.q.f.inst(*inst).args));
                }
                Outlook::Computed { .. } | Outlook::Replaced => reach = Reach::Unclear,
                Outlook::Read | Outlook::Constant | Outlook::Forced(_) => {}
            }
        }
        reach
    }

    fn is_kept(&self, value: &Value) -> bool {
        self.forced.binary_search(value).is_ok()
    }
}
