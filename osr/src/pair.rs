//! Two versions of a function and what is known about them together.

use crate::facts::{Era, Facts};
use crate::lines::Lines;
use crate::stores::LoneWrites;
use crate::traps::Traps;
use cranelift_entity::SecondaryMap;
use fixedbitset::FixedBitSet;
use ir::cfg::Cfg;
use ir::decided::Decided;
use ir::dom::DomTree;
use ir::edit::{ActionLog, ReplayError};
use ir::place::Place;
use ir::{Block, Function, Inst, Opcode, Point, Value, ValueDef};
use smallvec::SmallVec;

/// The direction of a mapping.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Heading {
    /// From the version before the log to the one after.
    Forward,
    /// From the version after the log to the one before.
    Backward,
}

/// What an entry has to provide at its landing point.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Demand {
    /// What an effect, a trap, a branch or a result still depends on ([`ir::needed`]). Values that
    /// feed dead code alone hold anything afterwards, and count as not live wherever the levels
    /// ask.
    #[default]
    Needed,
    /// Everything live, dead code's operands included: what a debugger wants.
    Live,
}

/// One of the two versions, with its analyses.
#[derive(Debug)]
pub(crate) struct Side<'v> {
    pub(crate) f: &'v Function,
    pub(crate) cfg: Cfg,
    pub(crate) dom: DomTree,
    pub(crate) decided: Decided,
    pub(crate) lines: Lines,
    pub(crate) era: Era,
    /// For each id of a class, the values of this version whose chain leads to it.
    holders: SecondaryMap<Value, SmallVec<[Value; 2]>>,
    /// Accesses to memory by their address; of pairs with lone writes.
    accesses: SecondaryMap<Value, SmallVec<[Inst; 2]>>,
    pub(crate) lone_writes: LoneWrites,
}

impl<'v> Side<'v> {
    fn new(f: &'v Function, era: Era, facts: &Facts, anchors: &FixedBitSet) -> Side<'v> {
        let cfg = Cfg::new(f);
        let dom = DomTree::new(f, &cfg);
        let decided = Decided::new(f);
        let lines = Lines::new(f, &cfg, &decided, anchors, facts);
        let mut holders: SecondaryMap<Value, SmallVec<[Value; 2]>> = SecondaryMap::new();
        for value in values(f) {
            for id in facts.chain(value, era) {
                holders[id].push(value);
            }
        }
        let mut side = Side {
            f,
            cfg,
            dom,
            decided,
            lines,
            era,
            holders,
            accesses: SecondaryMap::new(),
            lone_writes: LoneWrites::default(),
        };
        side.lone_writes = LoneWrites::new(&side, anchors, facts);
        side
    }

    /// The values of this version that links lead from to an id, in layout order.
    pub(crate) fn holders(&self, id: Value) -> &[Value] {
        &self.holders[id]
    }

    /// Whether a value is an argument of the function.
    pub(crate) fn is_argument(&self, value: Value) -> bool {
        matches!(self.f.value_def(value), ValueDef::Param(block, _) if block == self.f.entry())
    }

    fn index_accesses(&mut self) {
        for inst in self.cfg.rpo().iter().flat_map(|b| self.f.block_insts(*b)) {
            if let (Some(_), [address, ..]) =
                (self.accessed(inst), self.f.inst(inst).args.as_slice())
            {
                self.accesses[*address].push(inst);
            }
        }
    }

    /// The bytes that an instruction reads or writes.
    fn accessed(&self, inst: Inst) -> Option<Place> {
        let data = self.f.inst(inst);
        let place = Place::read(data.opcode, data.ty, &data.imm).or(Place::written(
            data.opcode,
            data.ty,
            &data.imm,
        ));
        place.filter(|p| matches!(p, Place::Bytes { .. }))
    }

    /// Whether an access at an address has passed that shows that another there cannot trap. Asked
    /// only of pairs with lone writes.
    pub(crate) fn vouches(&self, address: Value, place: &Place, at: Point) -> bool {
        let vouches = |i: &Inst| self.accessed(*i).is_some_and(|p| p.vouches_for(place));
        let passed = |i: &Inst| *i != at.inst() && self.dom.inst_dominates(self.f, *i, at.inst());
        self.accesses[address].iter().any(|i| vouches(i) && passed(i))
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

/// Two versions of one function and the log that leads from one to the other, with everything about
/// them that mappings in both directions and at every level need, computed once.
#[derive(Debug)]
pub struct VersionPair<'v> {
    pub(crate) sides: [Side<'v>; 2],
    pub(crate) facts: Facts,
    pub(crate) anchors: FixedBitSet,
    pub(crate) demand: Demand,
    traps: [Traps; 2],
}

impl<'v> VersionPair<'v> {
    /// Prepares two versions. Cost: near linear in their size and the log's.
    ///
    /// # Errors
    /// When the log does not apply to `before`.
    pub fn new(
        before: &'v Function,
        after: &'v Function,
        log: &ActionLog,
    ) -> Result<VersionPair<'v>, ReplayError> {
        let facts = Facts::new(before, log)?;
        let anchors = bounding_anchors(before, after, &facts);
        let mut sides = [
            Side::new(before, Era::Before, &facts, &anchors),
            Side::new(after, Era::After, &facts, &anchors),
        ];
        if sides.iter().any(|side| side.lone_writes.exist) {
            sides.iter_mut().for_each(Side::index_accesses);
        }
        let traps = [
            Traps::new(&sides[1], &sides[0], &facts, &anchors),
            Traps::new(&sides[0], &sides[1], &facts, &anchors),
        ];
        Ok(VersionPair { sides, facts, anchors, demand: Demand::default(), traps })
    }

    /// The same pair, with entries that provide something else.
    #[must_use]
    pub fn providing(self, demand: Demand) -> VersionPair<'v> {
        VersionPair { demand, ..self }
    }

    /// The bounding anchors: instructions both versions have, moved nowhere between them, that are
    /// terminators, have effects or may trap. Both versions execute the same ones in the same
    /// order.
    pub fn bounding_anchors(&self) -> impl Iterator<Item = Inst> + '_ {
        self.anchors.ones().map(|i| Inst::from_u32(i as u32))
    }

    /// Those of them that both versions execute in the same order, one for one, whichever way
    /// control comes: all but the branches that one version passes by where the way it has come
    /// decides them.
    pub fn common_anchors(&self) -> impl Iterator<Item = Inst> + '_ {
        self.bounding_anchors().filter(|i| !self.is_branch_passed(*i))
    }

    /// Whether one of the versions has a write that the other has not, or has elsewhere: then
    /// memory is not the same in both at every bounding anchor.
    pub(crate) fn has_lone_writes(&self) -> bool {
        self.sides.iter().any(|side| side.lone_writes.exist)
    }

    /// Whether the version after passes by a block of the version before on some ways: an edge that
    /// led to it was sent on past the branch at its end. No anchor stands before that.
    pub(crate) fn is_passed_by(&self, block: Block) -> bool {
        let Side { f, lines, .. } = &self.sides[0];
        let end = f.terminator(block);
        let line = || lines.end(f, f.first_inst(block));
        self.facts.passed_branches.contains(&end)
            && line().is_some_and(|l| l.anchor == end || !l.jumps.is_empty())
    }

    /// Whether a point before a branch that some ways pass by cannot be landed at: the version
    /// after has no more what the block was given on the others.
    pub(crate) fn is_forgotten(&self, block: Block) -> bool {
        let [before, after] = [self.sides[0].f, self.sides[1].f];
        self.is_passed_by(block) && before.block_params(block).iter().any(|p| !after.has_value(*p))
    }

    /// The branches past which an edge was sent on, decided by the way it had come.
    pub(crate) fn passed_branches(&self) -> impl Iterator<Item = Inst> + '_ {
        self.facts.passed_branches.iter().copied().filter(|i| self.is_branch_passed(*i))
    }

    fn is_branch_passed(&self, inst: Inst) -> bool {
        let is_branch = |f: &Function| {
            f.has_inst(inst) && matches!(f.inst(inst).opcode, Opcode::BrIf | Opcode::Switch)
        };
        self.facts.passed_branches.contains(&inst)
            && self.sides.iter().any(|side| is_branch(side.f))
    }

    /// The version transitions in this direction leave from.
    pub(crate) fn source(&self, heading: Heading) -> &Side<'v> {
        &self.sides[heading as usize]
    }

    /// The version transitions in this direction lead to.
    pub(crate) fn target(&self, heading: Heading) -> &Side<'v> {
        &self.sides[1 - heading as usize]
    }

    /// The instructions of the target version that must not be landed behind too early.
    pub(crate) fn traps(&self, heading: Heading) -> &Traps {
        &self.traps[1 - heading as usize]
    }

    /// Whether a block was proved never to run: it is unreachable, constants keep it so, it was
    /// removed as such, or the other version kept it and cannot reach it.
    pub(crate) fn is_unreachable(&self, heading: Heading, block: Block) -> bool {
        let (p, q) = (self.source(heading), self.target(heading));
        let removed = heading == Heading::Forward && self.facts.removed_blocks.contains(&block);
        !p.decided.cfg().is_reachable(block)
            || removed
            || (q.f.has_block(block) && !q.cfg.is_reachable(block))
    }
}

/// The values of `p` that equal `value` of `q`, by usable links alone: the same id first, then the
/// rest of the class, nearest first. Only some of them are available at the point in question.
pub(crate) fn members(
    facts: &Facts,
    p: &Side<'_>,
    q: &Side<'_>,
    value: Value,
) -> SmallVec<[Value; 4]> {
    let mut members: SmallVec<[Value; 4]> = SmallVec::new();
    let mut ids = facts.chain(value, q.era);
    ids.insert(0, value);
    for id in ids {
        if p.f.has_value(id) {
            members.push(id);
        }
        members.extend(p.holders[id].iter().copied());
    }
    members
}

fn bounding_anchors(before: &Function, after: &Function, facts: &Facts) -> FixedBitSet {
    let mut anchors = FixedBitSet::with_capacity(before.inst_bound().max(after.inst_bound()));
    let stays = |i: &Inst| after.has_inst(*i) && !facts.is_moved(*i);
    // One that edges were sent past executes less often in the version after. It bounds nothing
    // where it only leads on.
    let leads_on = |i: Inst| {
        let was_decided = before.inst(i).opcode == Opcode::Jump || facts.folded.contains_key(&i);
        facts.passed_ends.contains(&i) && was_decided && after.inst(i).opcode == Opcode::Jump
    };
    for inst in before.all_insts().filter(stays).filter(|i| !leads_on(*i)) {
        let opcode = before.inst(inst).opcode;
        if !opcode.is_effect_free() || before.may_trap(inst) || after.may_trap(inst) {
            anchors.insert(inst.as_u32() as usize);
        }
    }
    anchors
}
