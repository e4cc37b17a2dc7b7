//! Liveness: the values that a use after a point still reads.
//!
//! The analysis processes one value at a time. It walks from each use upward, block by block, to
//! the definition (Boissinot et al., "Computing Liveness Sets for SSA-Form Programs", 2011). The
//! cost is proportional to the size of the result instead of blocks times values. Values are
//! visited in id order, so every set is built in sorted order.
//!
//! The arguments that a terminator passes to a target are uses by the terminator. A block parameter
//! is defined at the start of its block.

mod local;

pub use local::{CountedUses, LocalLiveness};

use crate::cfg::{Cfg, check_stamp};
use crate::decided::Decided;
use crate::entity::{Block, Inst, Point, Value};
use crate::function::Function;
use crate::needed::Needed;
use cranelift_entity::EntityRef;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// A set of values, in id order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LiveSet {
    /// The members in ascending order, each once. A sorted vector, because live sets have tens of
    /// members out of thousands of values. A bit set over all values would be larger, and slower to
    /// iterate.
    values: Vec<Value>,
}

impl LiveSet {
    /// Whether the value is a member. Cost: logarithmic.
    pub fn contains(&self, value: Value) -> bool {
        self.values.binary_search(&value).is_ok()
    }

    /// The members, ascending.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Value> + '_ {
        self.values.iter().copied()
    }

    /// The members, ascending.
    pub fn as_slice(&self) -> &[Value] {
        &self.values
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    fn insert(&mut self, value: Value) {
        if let Err(at) = self.values.binary_search(&value) {
            self.values.insert(at, value);
        }
    }

    fn remove(&mut self, value: Value) {
        if let Ok(at) = self.values.binary_search(&value) {
            self.values.remove(at);
        }
    }

    /// Appends a value that is no smaller than any member. Returns `false` if the value was already
    /// a member.
    fn push(&mut self, value: Value) -> bool {
        debug_assert!(
            self.values.last().is_none_or(|l| *l <= value),
            "values are visited in id order"
        );
        let fresh = self.values.last() != Some(&value);
        if fresh {
            self.values.push(value);
        }
        fresh
    }
}

/// The live values at the start and the end of every block. Liveness at all other points follows
/// from these.
///
/// Unreachable blocks have empty sets at both ends, so at their points only values used later in
/// the same block are live. The result is valid for one stamp of one function. Queries that take
/// the function panic on any other stamp.
#[derive(Clone, Debug)]
pub struct Liveness {
    stamp: u64,
    /// By block index.
    live_in: Vec<LiveSet>,
    live_out: Vec<LiveSet>,
    extra: BTreeMap<Inst, Vec<Value>>,
    /// The uses that count; `None` if all uses count.
    needed: Option<Needed>,
}

impl Liveness {
    /// Computes liveness. Cost: linear in the number of values and uses, and in the sizes of the
    /// sets. A set counts once for each edge that leads to its block.
    ///
    /// # Panics
    /// When `cfg` is stale.
    pub fn new(function: &Function, cfg: &Cfg) -> Liveness {
        Liveness::with_extra_uses(function, cfg, &BTreeMap::new())
    }

    /// Computes liveness as if each value in `extra` had a use at the point before its instruction.
    /// If the definition of such a value does not dominate the point, the value is live into the
    /// entry block. Cost: as [`Liveness::new`].
    ///
    /// # Panics
    /// When `cfg` is stale, or the function lacks one of the instructions or values.
    pub fn with_extra_uses(
        function: &Function,
        cfg: &Cfg,
        extra: &BTreeMap<Inst, Vec<Value>>,
    ) -> Liveness {
        Liveness::compute(function, cfg, extra, None)
    }

    /// Computes liveness over needed uses only ([`Needed`]): a value that feeds only dead
    /// computations is not live. `extra` has the meaning it has in [`Liveness::with_extra_uses`].
    /// Cost: as [`Liveness::new`].
    ///
    /// # Panics
    /// As [`Liveness::with_extra_uses`].
    pub fn of_needed(
        function: &Function,
        cfg: &Cfg,
        extra: &BTreeMap<Inst, Vec<Value>>,
    ) -> Liveness {
        Liveness::compute(function, cfg, extra, Some(Needed::new(function, cfg, extra)))
    }

    /// As [`Liveness::of_needed`], for runs from the start of the function. Code behind edges that
    /// constants exclude has no uses. Blocks reachable only over such edges have empty sets.
    ///
    /// The result also holds for a run that continues from a state in which only the live values
    /// are correct and all others are arbitrary. Compare it with the run that has the complete
    /// state. The continued run reads only live values, among them the conditions of branches. It
    /// therefore computes the same results, takes the same edges, and never takes an edge that no
    /// run takes.
    ///
    /// # Panics
    /// As [`Liveness::with_extra_uses`].
    pub fn of_run(
        function: &Function,
        decided: &Decided,
        extra: &BTreeMap<Inst, Vec<Value>>,
    ) -> Liveness {
        Liveness::compute(
            function,
            decided.cfg(),
            extra,
            Some(Needed::of_run(function, decided, extra)),
        )
    }

    fn compute(
        function: &Function,
        cfg: &Cfg,
        extra: &BTreeMap<Inst, Vec<Value>>,
        needed: Option<Needed>,
    ) -> Liveness {
        cfg.check(function);
        let mut uses: Vec<(Value, Inst)> =
            extra.iter().flat_map(|(inst, values)| values.iter().map(|v| (*v, *inst))).collect();
        if let Some(needed) = &needed {
            for inst in cfg.rpo().iter().flat_map(|b| function.block_insts(*b)) {
                uses.extend(needed.operands(function, inst).map(|v| (v, inst)));
            }
        }
        // Sorted by value, so that the loop below consumes the uses in id order. `LiveSet::push`
        // needs that order.
        uses.sort_unstable();
        uses.dedup();
        let mut walk = LiveWalk {
            function,
            cfg,
            live_in: vec![LiveSet::default(); function.block_bound()],
            live_out: vec![LiveSet::default(); function.block_bound()],
            work: Vec::new(),
        };
        let mut listed_uses = uses.into_iter().peekable();
        for value in (0..function.value_bound()).map(Value::new).filter(|v| function.has_value(*v))
        {
            if needed.is_none() {
                walk.start(value, function.users(value).iter().copied());
            }
            while let Some((_, inst)) = listed_uses.next_if(|(v, _)| *v == value) {
                walk.start(value, std::iter::once(inst));
            }
        }
        let lost = listed_uses.next();
        assert!(
            lost.is_none(),
            "an extra use names a value that {} lacks: {lost:?}",
            function.name()
        );
        let LiveWalk { live_in, live_out, .. } = walk;
        Liveness { stamp: function.stamp(), live_in, live_out, extra: extra.clone(), needed }
    }

    /// The stamp of the function that liveness was computed on.
    pub fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Checks that the function has not changed since liveness was computed.
    ///
    /// # Panics
    /// When the function has changed.
    pub fn check(&self, function: &Function) {
        check_stamp("Liveness", self.stamp, function);
    }

    /// The values from other blocks that are live at the start of a block. The parameters of the
    /// block are not members.
    ///
    /// # Panics
    /// When the id of the block is above the ids of the function's blocks.
    pub fn live_in(&self, block: Block) -> &LiveSet {
        &self.live_in[block.index()]
    }

    /// The values live after the terminator: the union of the values live into the successors. An
    /// edge argument is a member only if it is live there for another reason.
    ///
    /// # Panics
    /// When the id of the block is above the ids of the function's blocks.
    pub fn live_out(&self, block: Block) -> &LiveSet {
        &self.live_out[block.index()]
    }

    /// Visits the points of a block from last to first, each with its live values. A value is live
    /// at a point if the instruction of the point or a later use reads it. At the first point the
    /// set includes the used parameters of the block. Cost: linear in the number of instructions,
    /// plus one insertion into a sorted set for each use.
    ///
    /// # Panics
    /// When liveness is stale, or the function lacks the block.
    pub fn for_each_point(
        &self,
        function: &Function,
        block: Block,
        visit: impl FnMut(Point, &LiveSet),
    ) {
        self.check(function);
        let live = self.live_out(block).clone();
        visit_points(function, block, live, self.needed.as_ref(), &self.extra, visit);
    }

    /// As [`Liveness::for_each_point`], until `visit` breaks, and for the points above one of the
    /// block, if one is given with the values live there. Cost: linear in the points visited.
    ///
    /// # Panics
    /// When liveness is stale, or the function lacks the block or the point's instruction.
    pub fn for_points_above(
        &self,
        function: &Function,
        block: Block,
        from: Option<(Point, LiveSet)>,
        visit: impl FnMut(Point, &LiveSet) -> ControlFlow<()>,
    ) {
        self.check(function);
        let (next, live) = match from {
            Some((point, live)) => (function.prev_inst(point.inst()), live),
            None => (Some(function.terminator(block)), self.live_out(block).clone()),
        };
        visit_from(function, next, live, self.needed.as_ref(), &self.extra, visit);
    }

    /// The live values at a point. Cost: as [`Liveness::for_each_point`] on the whole block. To
    /// query several points of a block, use that method.
    ///
    /// # Panics
    /// When liveness is stale, or the function lacks the point's instruction.
    pub fn live_before(&self, function: &Function, point: Point) -> LiveSet {
        let mut found = LiveSet::default();
        self.for_each_point(function, function.inst_block(point.inst()), |at, live| {
            if at == point {
                found.clone_from(live);
            }
        });
        found
    }
}

/// Visits the points of a block from last to first, given the values live after the terminator.
fn visit_points(
    function: &Function,
    block: Block,
    live: LiveSet,
    needed: Option<&Needed>,
    extra: &BTreeMap<Inst, Vec<Value>>,
    mut visit: impl FnMut(Point, &LiveSet),
) {
    visit_from(function, Some(function.terminator(block)), live, needed, extra, |point, live| {
        visit(point, live);
        ControlFlow::Continue(())
    });
}

/// Visits the points from an instruction upward, given the values live after it, until `visit`
/// breaks.
fn visit_from(
    function: &Function,
    mut next: Option<Inst>,
    mut live: LiveSet,
    needed: Option<&Needed>,
    extra: &BTreeMap<Inst, Vec<Value>>,
    mut visit: impl FnMut(Point, &LiveSet) -> ControlFlow<()>,
) {
    while let Some(inst) = next {
        let data = function.inst(inst);
        data.results.iter().for_each(|v| live.remove(*v));
        match needed {
            None => data.operands().for_each(|v| live.insert(v)),
            Some(needed) => needed.operands(function, inst).for_each(|v| live.insert(v)),
        }
        extra.get(&inst).into_iter().flatten().for_each(|v| live.insert(*v));
        if visit(Point::before(inst), &live).is_break() {
            return;
        }
        next = function.prev_inst(inst);
    }
}

/// The walk from uses to definitions.
struct LiveWalk<'a> {
    function: &'a Function,
    cfg: &'a Cfg,
    live_in: Vec<LiveSet>,
    live_out: Vec<LiveSet>,
    /// The blocks, by reverse-postorder number, to whose `live_in` the walk just added the value.
    work: Vec<u32>,
}

impl LiveWalk<'_> {
    /// Marks `value` live from its definition to these users.
    fn start(&mut self, value: Value, users: impl Iterator<Item = Inst>) {
        let home = self.function.value_block(value);
        for inst in users {
            let block = self.function.inst_block(inst);
            if let Some(n) = self.cfg.number(block)
                && block != home
                && self.live_in[block.index()].push(value)
            {
                self.work.push(n);
            }
        }
        while let Some(n) = self.work.pop() {
            for &p in self.cfg.preds(n) {
                let pred = self.cfg.block(p);
                // The definition itself ends the walk: the value is live out of its block, but not
                // into it.
                self.live_out[pred.index()].push(value);
                if pred != home && self.live_in[pred.index()].push(value) {
                    self.work.push(p);
                }
            }
        }
    }
}
