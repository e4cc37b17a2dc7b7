//! Outcomes that carry over from one source point to the next.
//!
//! Neighbouring points want nearly the same values, and an entry of a large function may compute a
//! hundred of them. Where the path from a point binds nothing, the outcome for a value depends on
//! the point only by the values live there. So a change of liveness forgets only the outcomes that
//! depend on it.

use crate::derive::{Deriver, MAX_IN_VAIN};
use crate::goal::LostValues;
use crate::level::Level;
use crate::node::SearchNode;
use crate::scratch::Scratch;
use crate::source::SourcePoint;
use ir::{Point, Value};
use smallvec::SmallVec;
use std::collections::BTreeSet;
use transition::ascending::differences;

/// The largest number of expressions with which outcomes carry over. Expressions of forgotten
/// outcomes stay in the list and count.
const MAX_CARRIED: usize = 1 << 12;

/// Instructions between two source points up to which kept values carry over.
const MAX_APART: usize = 16;

/// Results of the search for kept values that carry over together.
const MAX_KEPT: usize = 16;

/// Sets of kept values with which outcomes carry over together. The landing points tried from one
/// source point often need different kept values.
const MAX_KEEPERS: usize = 4;

/// The last source point of a deriver, and the dependencies of its outcomes.
#[derive(Debug, Default)]
pub(crate) struct CarriedOutcomes {
    /// Whether the path from the source point binds nothing. `false` before the first point.
    is_plain: bool,
    /// The values live at the source point.
    live: Vec<Value>,
    /// By value: the last of its dependents in `links`.
    dependents: Scratch<u32>,
    /// Dependents, each with the index of the dependent before.
    links: Vec<(Value, Option<u32>)>,
    /// The last source point.
    point: Option<Point>,
    /// Results of the search for kept values.
    kept: SmallVec<[CarriedKept; 2]>,
    /// The values that these searches have looked at.
    watched: Scratch<bool>,
    /// Of a deriver that keeps values: these, ascending.
    keeps: Vec<Value>,
}

/// The result of a search for kept values.
#[derive(Debug)]
struct CarriedKept {
    lost: LostValues,
    kept: BTreeSet<Value>,
    /// The nodes that the search has looked at.
    nodes: usize,
    /// The values that it has given up.
    given_up: SmallVec<[Value; 4]>,
}

impl CarriedOutcomes {
    /// Forgets all dependencies.
    pub(crate) fn clear(&mut self) {
        self.dependents.clear();
        self.links.clear();
        self.forget_kept();
    }

    fn forget_kept(&mut self) {
        self.kept.clear();
        self.watched.clear();
    }

    /// Forgets the kept values if a search for them has looked at this value.
    fn touch(&mut self, value: Value) {
        if self.watched.get(value.as_u32() as usize).is_some() {
            self.forget_kept();
        }
    }

    fn depend(&mut self, value: Value, on: Value) {
        let index = on.as_u32() as usize;
        let before = self.dependents.get(index);
        self.dependents.set(index, self.links.len() as u32);
        self.links.push((value, before));
    }
}

impl<'a, 'v> Deriver<'a, 'v> {
    /// Comes to a source point. Call it before the first question there: outcomes that depend on a
    /// value live at one of the two points alone would read values that are not live here.
    pub(crate) fn come_to(&mut self, here: &SourcePoint) {
        let carries = self.carried.is_plain && here.is_plain() && self.exprs.len() <= MAX_CARRIED;
        if carries && !self.is_near_limit() {
            self.touch_defined(here);
            self.forget_changes(here);
        } else {
            self.restart();
        }
        self.renew_budgets();
        self.arrive(here);
    }

    /// As [`Deriver::come_to`], for a deriver that keeps these values. Its outcomes depend on them
    /// as well. All of them are available at the source point.
    pub(crate) fn come_to_keeping(&mut self, here: &SourcePoint, kept: &BTreeSet<Value>) {
        self.turn_to(kept);
        let carries = self.carried.is_plain
            && here.is_plain()
            && self.exprs.len() <= MAX_CARRIED
            && !self.is_cut_off()
            && self.carried.keeps.iter().eq(kept);
        if carries {
            self.forget_changes(here);
        } else {
            // With an outcome of other kept values, the entry would read, and so keep, one of them.
            self.restart();
            kept.iter().for_each(|v| self.keep(*v));
            self.carried.keeps.clear();
            self.carried.keeps.extend(kept);
        }
        self.arrive(here);
    }

    /// Switches to the deriver that keeps these values. Without such a deriver, it makes a new one,
    /// or beyond [`MAX_KEEPERS`] reuses the least recently used deriver.
    fn turn_to(&mut self, kept: &BTreeSet<Value>) {
        if self.carried.keeps.iter().eq(kept) {
            return;
        }
        let mut others = std::mem::take(&mut self.others);
        let known = others.iter().position(|other| other.carried.keeps.iter().eq(kept));
        let mut other = match known {
            Some(index) => others.remove(index),
            None if others.len() + 1 < MAX_KEEPERS => {
                Deriver::new(self.pair, self.p, self.q, self.level)
            }
            None => others.remove(0),
        };
        std::mem::swap(self, &mut other);
        others.push(other);
        self.others = others;
    }

    /// Forgets the outcomes that depend on a value live at one of the two points alone.
    fn forget_changes(&mut self, here: &SourcePoint) {
        if self.carried.point == here.point() {
            return;
        }
        let last = std::mem::take(&mut self.carried.live);
        differences(&last, here.live_values(), |value, _| self.forget(value));
        self.carried.live = last;
    }

    /// Notes the source point.
    fn arrive(&mut self, here: &SourcePoint) {
        self.carried.point = here.point();
        self.carried.is_plain = here.is_plain();
        self.carried.live.clear();
        self.carried.live.extend_from_slice(here.live_values());
    }

    /// Forgets the kept values unless the point is a little below the last point in its block, and
    /// the search has looked at no value defined between the two. The values available decide which
    /// values can be kept.
    fn touch_defined(&mut self, here: &SourcePoint) {
        let f = self.p.f;
        let (last, to) = (self.carried.point, here.point().map(Point::inst));
        let mut at = last.map(Point::inst).filter(|_| !self.carried.kept.is_empty());
        for _ in 0..MAX_APART {
            let Some(inst) = at.filter(|inst| Some(*inst) != to) else { break };
            f.inst(inst).results.iter().for_each(|v| self.carried.touch(*v));
            at = f.next_inst(inst);
        }
        if at.is_none() || at != to {
            self.carried.forget_kept();
        }
    }

    /// Notes that the search for kept values looks at these nodes: its result depends on the values
    /// that each may be computed from.
    pub(crate) fn watch(&mut self, nodes: &[SearchNode]) {
        if !self.carried.is_plain {
            return;
        }
        for node in nodes {
            let SearchNode::Wanted(value) = node else { continue };
            self.carried.watched.set(value.as_u32() as usize, true);
            for source in self.sources(*value) {
                self.carried.watched.set(source.as_u32() as usize, true);
            }
        }
    }

    /// Keeps the result of a search for kept values, for the next source points. `nodes` is the
    /// budget before it, `given_up` the number of values given up before it. A search that
    /// exhausted its budget may find more with another budget.
    pub(crate) fn carry_kept(
        &mut self,
        lost: &[Value],
        kept: &BTreeSet<Value>,
        nodes: usize,
        given_up: usize,
    ) {
        if self.carried.is_plain && !self.is_out_of_nodes() {
            let nodes = nodes - self.nodes_left();
            let given_up = self.all_given_up[given_up..].into();
            let (lost, kept) = (lost.into(), kept.clone());
            self.carried.kept.push(CarriedKept { lost, kept, nodes, given_up });
        }
    }

    /// The result that the search for kept values had for the same lost values, if it would have
    /// it again, at the same cost.
    pub(crate) fn kept_again(&mut self, lost: &[Value]) -> Option<BTreeSet<Value>> {
        let known = self.carried.kept.iter().position(|known| *known.lost == *lost);
        let is_given_up = lost.iter().any(|value| self.is_given_up(*value));
        if let Some(index) = known.filter(|_| !is_given_up)
            && self.spend_all(self.carried.kept[index].nodes)
        {
            let known = self.carried.kept.swap_remove(index);
            known.given_up.iter().for_each(|value| self.give_up(*value));
            let kept = known.kept.clone();
            self.carried.kept.push(known);
            return Some(kept);
        }
        // Before the next search, which notes the values that it looks at.
        if known.is_some() || self.carried.kept.len() == MAX_KEPT {
            self.carried.forget_kept();
        }
        None
    }

    /// The nodes left in the budget of the search for kept values.
    pub(crate) fn nodes_left(&self) -> usize {
        self.nodes_left
    }

    /// Takes this many nodes from that budget. If too few remain, takes none and returns `false`.
    pub(crate) fn spend_all(&mut self, nodes: usize) -> bool {
        let remain = self.nodes_left > nodes;
        self.nodes_left -= if remain { nodes } else { 0 };
        remain
    }

    /// Takes one node from the budget of the search for kept values; `false` without a node left.
    pub(crate) fn spend(&mut self) -> bool {
        self.nodes_left = self.nodes_left.saturating_sub(1);
        self.nodes_left > 0
    }

    /// Whether the search for kept values has used up its budget of nodes. A value that it did not
    /// find may still be derivable.
    pub(crate) fn is_out_of_nodes(&self) -> bool {
        self.nodes_left == 0
    }

    /// Whether the search for kept values has given up a value.
    pub(crate) fn is_given_up(&self, value: Value) -> bool {
        self.given_up.get(value.as_u32() as usize).is_some()
    }

    /// Whether no set of kept values gives a value from this source point.
    pub(crate) fn is_hopeless(&self, value: Value) -> bool {
        self.given_up.get(value.as_u32() as usize) == Some(true)
    }

    /// Records that the search for kept values did not find a value from this source point.
    pub(crate) fn give_up(&mut self, value: Value) {
        let is_hopeless = !self.is_out_of_nodes();
        self.all_given_up.push(value);
        self.given_up.set(value.as_u32() as usize, is_hopeless);
    }

    /// Begins another search at the same source point, again without kept values. Outcomes stay.
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
            self.carried.touch(value);
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
        for source in self.sources(value) {
            self.carried.depend(value, *source);
        }
    }

    /// The values that a wanted value may be computed from.
    fn sources(&self, value: Value) -> impl Iterator<Item = &'a Value> + use<'a, 'v> {
        let (q, pair) = (self.q, self.pair);
        let known = pair.known_of(q.side, value);
        let operands = q.f.defining_inst(value).map(|inst| q.f.inst(inst).args.as_slice());
        known.members.iter().chain(operands.unwrap_or_default()).chain(&known.shared)
    }
}
