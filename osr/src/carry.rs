//! Outcomes that carry over from one source point to the next.
//!
//! Neighbouring points want nearly the same values, and an entry of a large function may compute a
//! hundred of them. Where the path from a point binds nothing, the outcome for a value depends on
//! the point only by the values live there. So a change of liveness forgets the outcomes that
//! depend on it, and no others.

use crate::derive::{Deriver, MAX_IN_VAIN};
use crate::level::Level;
use crate::scratch::Scratch;
use crate::source::SourcePoint;
use ir::Value;
use smallvec::SmallVec;

/// Expressions up to which outcomes carry over: those of forgotten outcomes stay in the list.
const MAX_CARRIED: usize = 1 << 12;

/// The last source point of a deriver, and the dependencies of its outcomes.
#[derive(Debug, Default)]
pub(crate) struct CarriedOutcomes {
    /// Whether the path from the source point binds nothing. `false` before the first point.
    is_plain: bool,
    /// The values live at the source point.
    live: Vec<Value>,
    /// By value: the last of its dependents in `links`.
    dependents: Scratch<u32>,
    /// Dependents, each with the index of the one before.
    links: Vec<(Value, Option<u32>)>,
}

impl CarriedOutcomes {
    /// Forgets all dependencies.
    pub(crate) fn clear(&mut self) {
        self.dependents.clear();
        self.links.clear();
    }

    fn depend(&mut self, value: Value, on: Value) {
        let index = on.as_u32() as usize;
        let before = self.dependents.get(index);
        self.dependents.set(index, self.links.len() as u32);
        self.links.push((value, before));
    }
}

impl Deriver<'_, '_> {
    /// Comes to a source point. Call it before the first question there: outcomes that depend on a
    /// value live at one of the two points alone would read values that are not live here.
    pub(crate) fn come_to(&mut self, here: &SourcePoint) {
        let carries = self.carried.is_plain && here.is_plain() && self.exprs.len() <= MAX_CARRIED;
        if carries && !self.is_near_limit() {
            for value in only_in_one(&self.carried.live, here.live_values()) {
                self.forget(value);
            }
        } else {
            self.restart();
        }
        self.renew_budgets();
        self.carried.is_plain = here.is_plain();
        self.carried.live.clear();
        self.carried.live.extend_from_slice(here.live_values());
    }

    /// Begins another search at the same source point, which keeps nothing either. Outcomes stay.
    pub(crate) fn go_on(&mut self) {
        if self.is_near_limit() {
            self.restart();
        }
        self.renew_budgets();
    }

    /// Whether a budget is used up or nearly. Budgets count searches: with known outcomes, a search
    /// comes further than one that starts anew.
    fn is_near_limit(&self) -> bool {
        self.is_cut_off() || self.in_vain > MAX_IN_VAIN / 4
    }

    /// Forgets the outcome of a value and of all values that depend on it.
    fn forget(&mut self, value: Value) {
        let mut work: SmallVec<[Value; 16]> = SmallVec::from_iter([value]);
        while let Some(value) = work.pop() {
            let index = value.as_u32() as usize;
            self.wanted.unset(index);
            let mut at = self.carried.dependents.get(index);
            // Each list is walked once, which ends the loop.
            self.carried.dependents.unset(index);
            while let Some(link) = at {
                let (dependent, before) = self.carried.links[link as usize];
                work.push(dependent);
                at = before;
            }
        }
    }

    /// Notes all values whose liveness or outcome the outcome of a wanted value may depend on, for
    /// outcomes that may carry over.
    pub(crate) fn note_dependencies(&mut self, value: Value) {
        if !self.carried.is_plain || self.level < Level::Live {
            return;
        }
        let (q, pair) = (self.q, self.pair);
        let known = pair.known_of(q.side, value);
        let operands = q.f.defining_inst(value).map(|inst| q.f.inst(inst).args.as_slice());
        let sources = known.members.iter().chain(operands.unwrap_or_default()).chain(&known.shared);
        for source in sources {
            self.carried.depend(value, *source);
        }
    }
}

/// The values in one of two ascending lists alone.
fn only_in_one(a: &[Value], b: &[Value]) -> SmallVec<[Value; 16]> {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    let mut found = SmallVec::new();
    loop {
        match (a.peek(), b.peek()) {
            (Some(x), Some(y)) if x == y => {
                a.next();
                b.next();
            }
            (Some(x), Some(y)) if x < y => found.extend(a.next().copied()),
            (Some(_), None) => found.extend(a.next().copied()),
            (_, Some(_)) => found.extend(b.next().copied()),
            (None, None) => return found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_one_list_alone_are_found_at_both_ends_and_between() {
        let list = |ids: &[u32]| ids.iter().map(|id| Value::from_u32(*id)).collect::<Vec<_>>();
        let only = |a: &[u32], b: &[u32]| only_in_one(&list(a), &list(b)).to_vec();
        assert_eq!(only(&[1, 2, 3, 7], &[0, 2, 4, 7, 9]), list(&[0, 1, 3, 4, 9]));
        assert_eq!(only(&[], &[5]), list(&[5]));
        assert_eq!(only(&[5, 6], &[5]), list(&[6]));
    }
}
