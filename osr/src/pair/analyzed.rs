//! One of two versions, with its analyses.

use crate::assumed::LoneAssumptions;
use crate::facts::Facts;
use crate::pair::lone_writes::LoneWrites;
use crate::paths::Paths;
use cranelift_entity::SecondaryMap;
use fixedbitset::FixedBitSet;
use ir::access::{Access, Address};
use ir::cfg::Cfg;
use ir::decided::Decided;
use ir::dom::DomTree;
use ir::place::Place;
use ir::{Effects, Function, Inst, Memory, Point, Type, Value, ValueDef};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;
use transition::Side;

/// The number of accesses at one address, nearest first, that the search checks: one of them may
/// make another access harmless. Of a linear memory, the nearest reaches furthest, so the limit
/// loses nothing. In a host memory, each vouches for its own bytes alone.
pub(crate) const MAX_ACCESSES: usize = 256;

/// The accesses of a version by [`Access::voucher_key`]: accesses of one key are compared.
pub(crate) type AccessIndex =
    BTreeMap<Option<(Memory, Option<Address>)>, SmallVec<[(Inst, Access); 1]>>;

/// One of the two versions, with its analyses.
#[derive(Debug)]
pub(crate) struct Analyzed<'v> {
    pub(crate) f: &'v Function,
    pub(crate) cfg: Cfg,
    pub(crate) dom: DomTree,
    pub(crate) decided: Arc<Decided>,
    pub(crate) paths: Paths,
    /// Whether the version stands before the log or after it.
    pub(crate) side: Side,
    /// By id of a class: the values of this version whose chain leads to it.
    holders: SecondaryMap<Value, SmallVec<[Value; 2]>>,
    /// Accesses to memory, by address. Filled only for pairs with lone writes.
    pub(crate) accesses: AccessIndex,
    pub(crate) lone_writes: LoneWrites,
    pub(crate) lone_assumptions: LoneAssumptions,
    /// Values that entries from this version must not read, by index: values of inlined code, which
    /// a run from the original of the copy lacks ([`crate::CopyLink`]).
    pub(crate) hidden: FixedBitSet,
}

impl<'v> Analyzed<'v> {
    /// The analyses that need no bounding anchors; [`Analyzed::bound`] adds the rest.
    pub(crate) fn new(f: &'v Function, side: Side, facts: &Facts) -> Analyzed<'v> {
        let cfg = Cfg::new(f);
        let dom = DomTree::new(f, &cfg);
        let decided = Arc::new(Decided::new(f));
        let mut holders: SecondaryMap<Value, SmallVec<[Value; 2]>> = SecondaryMap::new();
        holders.resize(f.value_bound());
        for value in values(f) {
            for id in facts.chain(value, side) {
                holders[id].push(value);
            }
        }
        Analyzed {
            f,
            cfg,
            dom,
            decided,
            paths: Paths::default(),
            side,
            holders,
            accesses: AccessIndex::new(),
            lone_writes: LoneWrites::default(),
            lone_assumptions: LoneAssumptions::default(),
            hidden: FixedBitSet::new(),
        }
    }

    /// Adds the analyses of the code between anchors.
    pub(crate) fn bound(&mut self, anchors: &FixedBitSet, facts: &Facts) {
        self.paths = Paths::new(self.f, &self.cfg, &self.decided, anchors, facts);
        self.lone_assumptions = LoneAssumptions::new(self.f, self.side, facts, anchors);
    }

    /// Whether the version has a write of memory, a table or a global that is no anchor.
    pub(crate) fn has_lone_writes(&self, anchors: &FixedBitSet) -> bool {
        let writes = |i: &Inst| self.f.inst(*i).opcode.effects().has(Effects::WRITES);
        let mut insts = self.f.all_insts().filter(|i| !anchors.contains(i.as_u32() as usize));
        insts.any(|i| writes(&i))
    }

    /// The values of this version whose links lead to an id, in layout order.
    pub(crate) fn holders(&self, id: Value) -> &[Value] {
        &self.holders[id]
    }

    /// Whether a value is an argument of the function.
    pub(crate) fn is_argument(&self, value: Value) -> bool {
        matches!(self.f.value_def(value), ValueDef::Param(block, _) if block == self.f.entry())
    }

    /// Whether an access that the run has passed at `at` shows that `access` cannot trap. Always
    /// `false` for pairs without lone writes, which have no index of accesses.
    pub(crate) fn vouches(&self, access: &Access, at: Point) -> bool {
        self.vouches_among(access, at, usize::MAX)
    }

    /// As [`Analyzed::vouches`], by the first accesses at an address alone. Most of them dominate
    /// the later accesses.
    pub(crate) fn vouches_early(&self, access: &Access, at: Point) -> bool {
        self.vouches_among(access, at, MAX_ACCESSES)
    }

    /// In a host memory, each access vouches for its own bytes alone, and a checker looks only at
    /// the nearest accesses. The answer is `false` where there are more
    /// (`many_fields_of_a_host_memory_cost_no_entry`).
    fn vouches_among(&self, access: &Access, at: Point, first: usize) -> bool {
        let passed = |i: &Inst| *i != at.inst() && self.dom.inst_dominates(self.f, *i, at.inst());
        let is_host = matches!(access.place, Place::Bytes { address: Type::I64, .. });
        let alike = self.accesses.get(&access.voucher_key());
        let alike = alike.filter(|all| !is_host || all.len() <= MAX_ACCESSES);
        let mut first = alike.into_iter().flatten().take(first);
        first.any(|(inst, other)| other.vouches_for(access) && passed(inst))
    }

    /// Whether a value is available at a point of this version.
    pub(crate) fn available(&self, value: Value, point: Point) -> bool {
        self.dom.available_at(self.f, value, point)
    }
}

/// Every value of a version, in layout order.
fn values(f: &Function) -> impl Iterator<Item = Value> + '_ {
    f.blocks().flat_map(move |b| {
        let results = f.block_insts(b).flat_map(move |i| f.inst(i).results.iter().copied());
        f.block_params(b).iter().copied().chain(results)
    })
}

/// The values of `p` that equal `value` of `q`, by usable links alone: the same id first, then the
/// rest of the class, nearest first. The caller checks which of them are available at its point.
pub(crate) fn members(
    facts: &Facts,
    p: &Analyzed<'_>,
    q: &Analyzed<'_>,
    value: Value,
) -> SmallVec<[Value; 4]> {
    let mut members: SmallVec<[Value; 4]> = SmallVec::new();
    let mut ids = facts.chain(value, q.side);
    ids.insert(0, value);
    // Both directions of a link: the id itself, if `p` still has it, and the values of `p` that
    // lead to it by a link of their own.
    for id in ids {
        if p.f.has_value(id) {
            members.push(id);
        }
        members.extend(p.holders[id].iter().copied());
    }
    members
}
