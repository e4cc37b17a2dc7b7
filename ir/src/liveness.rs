//! Which values are still used from each point on.
//!
//! Computed value by value: from each use upward, block by block, to the definition (Boissinot et
//! al., "Computing Liveness Sets for SSA-Form Programs", 2011). The cost follows the size of the
//! answer instead of blocks times values, and since values are visited in id order each set comes
//! out sorted.
//!
//! The arguments a terminator passes to a target are uses by the terminator; a block parameter is
//! defined at the start of its block.

use crate::cfg::{Cfg, check_stamp};
use crate::decided::Decided;
use crate::entity::{Block, Inst, Point, Value};
use crate::function::Function;
use crate::needed::Needed;
use cranelift_entity::EntityRef;
use std::collections::BTreeMap;

/// A set of values, in id order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LiveSet {
    /// Ascending, each once. Sorted vectors: live sets have tens of members out of thousands of
    /// values, so a bit set of all values would be larger and slower to walk.
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

    /// Whether there is no member.
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

    /// Adds a value no smaller than any member. False when it was one already.
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

/// The live values at the borders of every block, and from them at every point.
///
/// Unreachable blocks have empty borders: at their points only what the rest of the block uses is
/// live. Holds for one stamp of one function; queries that take the function panic on another.
#[derive(Clone, Debug)]
pub struct Liveness {
    stamp: u64,
    /// By block index.
    live_in: Vec<LiveSet>,
    live_out: Vec<LiveSet>,
    extra: BTreeMap<Inst, Vec<Value>>,
    /// Uses that count; all of them without.
    needed: Option<Needed>,
}

impl Liveness {
    /// Computes liveness. Cost: linear in values, uses and the sizes of the sets (counted once for
    /// each edge that leads to a block).
    ///
    /// # Panics
    /// When `cfg` is stale.
    pub fn new(function: &Function, cfg: &Cfg) -> Liveness {
        Liveness::with_extra_uses(function, cfg, &BTreeMap::new())
    }

    /// Liveness as if each listed value were used at the point before its instruction. A definition
    /// that does not dominate such a point shows as a value live into the entry block. Cost: as
    /// [`Liveness::new`].
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

    /// Liveness that counts only the uses on which something depends ([`Needed`]): a value that
    /// feeds nothing but dead computations is not live. `extra` as in
    /// [`Liveness::with_extra_uses`]. Cost: as [`Liveness::new`].
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

    /// As [`Liveness::of_needed`], for a run from the start of the function: what stands behind
    /// edges that constants keep from being taken uses nothing. Blocks that only those lead to have
    /// empty borders.
    ///
    /// That holds too for a run that goes on from a state handed over in which only what is live
    /// here is right (the others may hold anything): in step with the run whose state it is, it
    /// reads only what is live, conditions of branches among it, so it computes the same, takes the
    /// same edges, and never one that no run takes.
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
        uses.sort_unstable();
        uses.dedup();
        let mut walk = Walk {
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
        let Walk { live_in, live_out, .. } = walk;
        Liveness { stamp: function.stamp(), live_in, live_out, extra: extra.clone(), needed }
    }

    /// The stamp of the function this was computed on.
    pub fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Checks that the function has not changed since.
    ///
    /// # Panics
    /// When it has.
    pub fn check(&self, function: &Function) {
        check_stamp("Liveness", self.stamp, function);
    }

    /// The values defined elsewhere that are live at the start of a block. The block's own
    /// parameters are not among them.
    ///
    /// # Panics
    /// When the function had no block of this or a higher id.
    pub fn live_in(&self, block: Block) -> &LiveSet {
        &self.live_in[block.index()]
    }

    /// The values live once the terminator has run: all that is live into a successor. The
    /// arguments of the edges are not among them for being arguments.
    ///
    /// # Panics
    /// When the function had no block of this or a higher id.
    pub fn live_out(&self, block: Block) -> &LiveSet {
        &self.live_out[block.index()]
    }

    /// Visits the points of a block, the last one first, each with what is live there: used by its
    /// instruction or later. At the first point this includes the block's parameters that are used.
    /// Cost: linear in the instructions, times the insertion into a sorted set for each use.
    ///
    /// # Panics
    /// When stale, or the function lacks the block.
    pub fn for_each_point(
        &self,
        function: &Function,
        block: Block,
        mut visit: impl FnMut(Point, &LiveSet),
    ) {
        self.check(function);
        let mut live = self.live_out(block).clone();
        let mut next = Some(function.terminator(block));
        while let Some(inst) = next {
            let data = function.inst(inst);
            data.results.iter().for_each(|v| live.remove(*v));
            match &self.needed {
                None => data.operands().for_each(|v| live.insert(v)),
                Some(needed) => needed.operands(function, inst).for_each(|v| live.insert(v)),
            }
            self.extra.get(&inst).into_iter().flatten().for_each(|v| live.insert(*v));
            visit(Point::before(inst), &live);
            next = function.prev_inst(inst);
        }
    }

    /// What is live at a point. Cost: as [`Liveness::for_each_point`] on its block; visit the
    /// points of a block together where more than one is wanted.
    ///
    /// # Panics
    /// When stale, or the function lacks the point's instruction.
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

/// The walk from uses to definitions.
struct Walk<'a> {
    function: &'a Function,
    cfg: &'a Cfg,
    live_in: Vec<LiveSet>,
    live_out: Vec<LiveSet>,
    /// Blocks, by rpo number, whose `live_in` just got the value.
    work: Vec<u32>,
}

impl Walk<'_> {
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
                self.live_out[pred.index()].push(value);
                if pred != home && self.live_in[pred.index()].push(value) {
                    self.work.push(p);
                }
            }
        }
    }
}
