//! Wrong mappings: entries with one random damage, to see which judge finds it (pool P2 in
//! `docs/testing.md`). A damaged entry is otherwise well-formed: it lists the values that it reads
//! as required, and the dead values among them as kept. [`garble`] damages certificates without
//! such care.

use crate::prng::Prng;
use ir::{Block, Function, Global, Imm, Inst, Memory, Opcode, Point, Shape, Type, Value, ValueDef};
use ir::{cfg::Cfg, dom::DomTree, liveness::Liveness};
use std::collections::BTreeMap;
use std::fmt;
use transition::certificate::{By, Certificate, MappingFacts, NO_TERM, TermKind};
use transition::mapping::{Assign, Entry, Mapping, Operand, Replay, Step};
use transition::{Pair, Side};

/// A kind of damage.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Damage {
    /// An assigned value, or an operand of a step, comes from another value of its type.
    WrongSource,
    /// A step is missing. Its readers read one of its operands.
    DroppedStep,
    /// Two steps, or the sources of two assignments, are exchanged.
    Reordered,
    /// A step has another opcode of its shape.
    WrongOperation,
    /// An operand of a step is another value or step.
    WrongOperand,
    /// A constant is off by one.
    OffByOne,
    /// The target point is one instruction later or earlier.
    WrongTarget,
    /// An assigned value comes from a block parameter of the source version.
    StaleParameter,
    /// A value is not provided.
    NotProvided,
    /// An additional value is provided, from any source.
    Invented,
    /// A replayed store is missing.
    DroppedReplay,
    /// A replayed store writes another value, to another place, or after the next store.
    WrongReplay,
    /// A value that is read is not listed as required.
    NotRequired,
    /// A required value that is not live is not listed as kept.
    NotKept,
}

impl Damage {
    /// Every kind.
    pub const ALL: [Damage; 14] = [
        Damage::WrongSource,
        Damage::DroppedStep,
        Damage::Reordered,
        Damage::WrongOperation,
        Damage::WrongOperand,
        Damage::OffByOne,
        Damage::WrongTarget,
        Damage::StaleParameter,
        Damage::NotProvided,
        Damage::Invented,
        Damage::DroppedReplay,
        Damage::WrongReplay,
        Damage::NotRequired,
        Damage::NotKept,
    ];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Damage::WrongSource => "wrong source",
            Damage::DroppedStep => "dropped step",
            Damage::Reordered => "reordered",
            Damage::WrongOperation => "wrong operation",
            Damage::WrongOperand => "wrong operand",
            Damage::OffByOne => "constant off by one",
            Damage::WrongTarget => "wrong target",
            Damage::StaleParameter => "stale parameter",
            Damage::NotProvided => "not provided",
            Damage::Invented => "invented",
            Damage::DroppedReplay => "dropped replay",
            Damage::WrongReplay => "wrong replay",
            Damage::NotRequired => "not required",
            Damage::NotKept => "not kept",
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Damages entries from one version to another.
#[derive(Debug)]
pub struct Damager<'a> {
    source: &'a Function,
    target: &'a Function,
    dom: [DomTree; 2],
    live: BTreeMap<Inst, Vec<Value>>,
    values: [Vec<Value>; 2],
}

impl<'a> Damager<'a> {
    /// Prepares the analyses of both versions. Cost: near linear in versions and live values.
    pub fn new(source: &'a Function, target: &'a Function) -> Damager<'a> {
        let cfg = Cfg::new(source);
        let liveness = Liveness::of_needed(source, &cfg, &BTreeMap::new());
        let mut live = BTreeMap::new();
        for &block in cfg.rpo() {
            liveness.for_each_point(source, block, |point, values| {
                live.insert(point.inst(), values.as_slice().to_vec());
            });
        }
        let dom = [source, target].map(|f| DomTree::new(f, &Cfg::new(f)));
        Damager { source, target, dom, live, values: [source, target].map(values) }
    }

    /// The entry with one damage of this kind; `None` if the entry has no part that such a damage
    /// applies to.
    pub fn damage(
        &self,
        prng: &mut Prng,
        kind: Damage,
        point: Point,
        entry: &Entry,
    ) -> Option<Entry> {
        let mut entry = entry.clone();
        match kind {
            Damage::WrongSource => self.wrong_source(prng, point, &mut entry)?,
            Damage::DroppedStep => drop_step(prng, &mut entry)?,
            Damage::Reordered => self.reorder(prng, &mut entry)?,
            Damage::WrongOperation => wrong_operation(prng, &mut entry)?,
            Damage::WrongOperand => self.wrong_operand(prng, point, &mut entry)?,
            Damage::OffByOne => off_by_one(prng, &mut entry)?,
            Damage::WrongTarget => self.wrong_target(prng, &mut entry)?,
            Damage::StaleParameter => self.stale_parameter(prng, point, &mut entry)?,
            Damage::NotProvided => {
                (!entry.assigns.is_empty()).then_some(())?;
                entry.assigns.remove(prng.index(entry.assigns.len()));
            }
            Damage::Invented => self.invent(prng, point, &mut entry)?,
            Damage::DroppedReplay => {
                (!entry.replays.is_empty()).then_some(())?;
                entry.replays.remove(prng.index(entry.replays.len()));
            }
            Damage::WrongReplay => self.wrong_replay(prng, point, &mut entry)?,
            // These two kinds damage the lists, so `list` must not compute them again.
            Damage::NotRequired | Damage::NotKept => return unlist(prng, kind, entry),
        }
        self.list(point, &mut entry);
        Some(entry)
    }

    /// Lists the values that the entry reads as required, and the required values that are not live
    /// at `point` as kept.
    fn list(&self, point: Point, entry: &mut Entry) {
        let written = entry.replays.iter().flat_map(|r| r.args.iter().copied());
        let reads = entry.steps.iter().flat_map(|s| s.args.iter().copied()).chain(written);
        let reads = reads.chain(entry.assigns.iter().map(|a| a.from));
        let mut requires: Vec<Value> = reads
            .filter_map(|operand| match operand {
                Operand::Source(value) => Some(value),
                Operand::Step(_) => None,
            })
            .collect();
        requires.sort_unstable();
        requires.dedup();
        let live = self.live.get(&point.inst()).map_or(&[][..], Vec::as_slice);
        entry.kept = requires.iter().copied().filter(|v| !live.contains(v)).collect();
        entry.requires = requires;
    }

    fn other(&self, prng: &mut Prng, point: Point, ty: Type, than: Option<Value>) -> Option<Value> {
        self.pick(prng, point, |v| self.source.value_type(v) == ty && Some(v) != than)
    }

    fn pick(&self, prng: &mut Prng, point: Point, fits: impl Fn(Value) -> bool) -> Option<Value> {
        let available = |v: &Value| self.dom[0].available_at(self.source, *v, point);
        let found: Vec<Value> =
            self.values[0].iter().copied().filter(|v| fits(*v)).filter(available).collect();
        (!found.is_empty()).then(|| prng.pick(&found))
    }

    fn type_of(&self, entry: &Entry, operand: Operand) -> Option<Type> {
        match operand {
            Operand::Source(value) => Some(self.source.value_type(value)),
            Operand::Step(index) => {
                entry.steps.get(index as usize).and_then(|s| s.opcode.result_type(s.ty))
            }
        }
    }

    fn wrong_source(&self, prng: &mut Prng, point: Point, entry: &mut Entry) -> Option<()> {
        (!entry.assigns.is_empty()).then_some(())?;
        let index = prng.index(entry.assigns.len());
        let old = entry.assigns[index].from;
        let ty = self.type_of(entry, old)?;
        let than = if let Operand::Source(value) = old { Some(value) } else { None };
        entry.assigns[index].from = Operand::Source(self.other(prng, point, ty, than)?);
        Some(())
    }

    fn wrong_operand(&self, prng: &mut Prng, point: Point, entry: &mut Entry) -> Option<()> {
        let step = some_step(prng, entry, |s| !s.args.is_empty())?;
        let arg = prng.index(entry.steps[step].args.len());
        let old = entry.steps[step].args[arg];
        let ty = self.type_of(entry, old)?;
        let steps: Vec<u32> = (0..step as u32)
            .filter(|i| {
                Operand::Step(*i) != old && self.type_of(entry, Operand::Step(*i)) == Some(ty)
            })
            .collect();
        let than = if let Operand::Source(value) = old { Some(value) } else { None };
        entry.steps[step].args[arg] = match self.other(prng, point, ty, than) {
            Some(value) if steps.is_empty() || prng.chance(50) => Operand::Source(value),
            _ if steps.is_empty() => return None,
            _ => Operand::Step(prng.pick(&steps)),
        };
        Some(())
    }

    fn reorder(&self, prng: &mut Prng, entry: &mut Entry) -> Option<()> {
        if entry.steps.len() > 1 && prng.chance(50) {
            let first = prng.index(entry.steps.len() - 1);
            entry.steps.swap(first, first + 1);
            return Some(());
        }
        let (a, b) = (prng.index(entry.assigns.len()), prng.index(entry.assigns.len()));
        let [x, y] = [a, b].map(|i| entry.assigns.get(i).copied());
        let (x, y) = (x?, y?);
        let same_type = self.target.value_type(x.value) == self.target.value_type(y.value);
        (same_type && x.from != y.from).then_some(())?;
        (entry.assigns[a].from, entry.assigns[b].from) = (y.from, x.from);
        Some(())
    }

    fn wrong_replay(&self, prng: &mut Prng, point: Point, entry: &mut Entry) -> Option<()> {
        let index = some_index(prng, entry.replays.len())?;
        if index > 0 && prng.chance(30) {
            entry.replays.swap(index - 1, index);
            return Some(());
        }
        if let Imm::Address(_, offset) | Imm::HostAddress(_, offset) = &mut entry.replays[index].imm
            && prng.chance(30)
        {
            *offset = offset.checked_add(1)?;
            return Some(());
        }
        let arg = some_index(prng, entry.replays[index].args.len())?;
        let old = entry.replays[index].args[arg];
        let than = if let Operand::Source(value) = old { Some(value) } else { None };
        let other = self.other(prng, point, self.type_of(entry, old)?, than)?;
        entry.replays[index].args[arg] = Operand::Source(other);
        Some(())
    }

    fn wrong_target(&self, prng: &mut Prng, entry: &mut Entry) -> Option<()> {
        let at = entry.target.inst();
        let (before, after) = (self.target.prev_inst(at), self.target.next_inst(at));
        let next = if prng.chance(50) { before.or(after) } else { after.or(before) };
        entry.target = Point::before(next?);
        Some(())
    }

    fn stale_parameter(&self, prng: &mut Prng, point: Point, entry: &mut Entry) -> Option<()> {
        (!entry.assigns.is_empty()).then_some(())?;
        let index = prng.index(entry.assigns.len());
        let Assign { value, from } = entry.assigns[index];
        let ty = self.target.value_type(value);
        let is_param = |v| matches!(self.source.value_def(v), ValueDef::Param(..));
        let fits = |v| is_param(v) && self.source.value_type(v) == ty && Operand::Source(v) != from;
        entry.assigns[index].from = Operand::Source(self.pick(prng, point, fits)?);
        Some(())
    }

    fn invent(&self, prng: &mut Prng, point: Point, entry: &mut Entry) -> Option<()> {
        let missing = |v: &Value| {
            !entry.provides_value(*v) && self.dom[1].available_at(self.target, *v, entry.target)
        };
        let missing: Vec<Value> = self.values[1].iter().copied().filter(missing).collect();
        (!missing.is_empty()).then_some(())?;
        let value = prng.pick(&missing);
        let from = self.other(prng, point, self.target.value_type(value), Some(value))?;
        // Assignments ascend by value. The damage must not be found by their order.
        let at = entry.assigns.partition_point(|a| a.value < value);
        entry.assigns.insert(at, Assign { value, from: Operand::Source(from) });
        Some(())
    }
}

fn values(f: &Function) -> Vec<Value> {
    let of_block = |b| {
        let results = f.block_insts(b).flat_map(move |i| f.inst(i).results.iter().copied());
        f.block_params(b).iter().copied().chain(results)
    };
    f.blocks().flat_map(of_block).collect()
}

fn some_index(prng: &mut Prng, count: usize) -> Option<usize> {
    (count > 0).then(|| prng.index(count))
}

fn some_step(prng: &mut Prng, entry: &Entry, fits: impl Fn(&Step) -> bool) -> Option<usize> {
    let found: Vec<usize> = (0..entry.steps.len()).filter(|i| fits(&entry.steps[*i])).collect();
    (!found.is_empty()).then(|| prng.pick(&found))
}

/// Removes a step. Its first operand takes its place.
fn drop_step(prng: &mut Prng, entry: &mut Entry) -> Option<()> {
    let at = some_step(prng, entry, |s| !s.args.is_empty())?;
    let gone = entry.steps.remove(at);
    let instead = gone.args[0];
    let renumber = |operand: &mut Operand| match *operand {
        Operand::Step(index) if index as usize == at => *operand = instead,
        Operand::Step(index) if index as usize > at => *operand = Operand::Step(index - 1),
        _ => {}
    };
    entry.steps.iter_mut().flat_map(|s| s.args.iter_mut()).for_each(renumber);
    entry.replays.iter_mut().flat_map(|r| r.args.iter_mut()).for_each(renumber);
    entry.assigns.iter_mut().map(|a| &mut a.from).for_each(renumber);
    Some(())
}

fn wrong_operation(prng: &mut Prng, entry: &mut Entry) -> Option<()> {
    let at = some_step(prng, entry, |s| s.opcode != Opcode::Const)?;
    let step = &mut entry.steps[at];
    let same_shape = |op: &Opcode| {
        *op != step.opcode
            && op.shape() == step.opcode.shape()
            && op.allows_type(step.ty)
            && op.is_step()
    };
    let others: Vec<Opcode> = Opcode::ALL.iter().copied().filter(same_shape).collect();
    (!others.is_empty() && step.opcode.shape() != Shape::Const).then_some(())?;
    step.opcode = prng.pick(&others);
    Some(())
}

fn off_by_one(prng: &mut Prng, entry: &mut Entry) -> Option<()> {
    let at = some_step(prng, entry, |s| s.opcode == Opcode::Const)?;
    let step = &mut entry.steps[at];
    let by = if prng.chance(50) { 1 } else { u64::MAX };
    step.bits = step.bits.wrapping_add(by) & step.ty.mask();
    Some(())
}

fn unlist(prng: &mut Prng, kind: Damage, mut entry: Entry) -> Option<Entry> {
    let list = if kind == Damage::NotRequired { &mut entry.requires } else { &mut entry.kept };
    (!list.is_empty()).then_some(())?;
    let value = list.remove(prng.index(list.len()));
    if kind == Damage::NotRequired {
        entry.kept.retain(|v| *v != value);
    }
    Some(entry)
}

/// Damages a certificate, facts or mappings once: out-of-range ids, later terms, short lists.
pub fn garble_once(
    prng: &mut Prng,
    certificate: &mut Certificate,
    facts: &mut Pair<MappingFacts>,
    mappings: &mut Pair<Mapping>,
) {
    match prng.below(10) {
        0..=4 => garble_term(prng, certificate),
        5 | 6 => garble_claims(prng, certificate),
        7 => {
            let facts = &mut facts[Side::BOTH[prng.index(2)]];
            let index = prng.index(facts.len());
            if let Some(entry) = facts.get_mut(index) {
                let list = match prng.below(10) {
                    0..=4 => &mut entry.here,
                    5..=7 => &mut entry.far,
                    _ => &mut entry.replays,
                };
                let at = prng.index(list.len());
                match list.get_mut(at) {
                    Some(term) => *term = near(prng, *term),
                    None => *list = vec![prng.below(8); 2].into(),
                }
            }
        }
        _ => {
            let side = Side::BOTH[prng.index(2)];
            garble_entry(prng, &mut mappings[side]);
        }
    }
}

/// Applies [`garble_once`] one to eight times.
pub fn garble(
    prng: &mut Prng,
    certificate: &mut Certificate,
    facts: &mut Pair<MappingFacts>,
    mappings: &mut Pair<Mapping>,
) {
    for _ in 0..prng.between(1, 8) {
        garble_once(prng, certificate, facts, mappings);
    }
}

/// Another number: a neighbor, any, or one of the two largest.
fn near(prng: &mut Prng, number: u32) -> u32 {
    match prng.below(8) {
        0..=3 => number.wrapping_add(1),
        4 | 5 => number.wrapping_sub(1),
        6 => prng.below(1 << 12),
        _ => u32::MAX - prng.below(2),
    }
}

/// As [`near`], for ids. The largest number is no id.
fn near_id(prng: &mut Prng, number: u32) -> u32 {
    near(prng, number).min(u32::MAX - 1)
}

fn garble_term(prng: &mut Prng, certificate: &mut Certificate) {
    let count = certificate.terms.len();
    let index = prng.index(count);
    let other = certificate.terms.get(prng.index(count)).cloned();
    let Some((term, other)) = certificate.terms.get_mut(index).zip(other) else { return };
    match prng.below(11) {
        0 => term.class = near(prng, term.class),
        1 => (term.class, term.by) = (other.class, other.by),
        2 => term.by = By::Folding,
        3 => {
            let (rule, swapped, result) =
                (prng.below(96), prng.below(4) as u8, near(prng, index as u32));
            let inner = (0..prng.below(3)).map(|_| near(prng, index as u32)).collect();
            (term.by, term.class) = (By::Rule { rule, swapped, inner, result }, other.class);
        }
        4 => term.kind = other.kind,
        5 => term.ty = other.ty,
        6 => certificate.terms.truncate(index),
        7 => match &mut term.by {
            By::Rule { rule, .. } if prng.chance(50) => *rule = near(prng, *rule),
            By::Rule { swapped, .. } if prng.chance(30) => *swapped ^= 1,
            By::Rule { inner, .. } if !inner.is_empty() && prng.chance(50) => {
                let at = prng.index(inner.len());
                inner[at] = near(prng, inner[at]);
            }
            By::Rule { result, .. } | By::Sum { result } => *result = near(prng, *result),
            by => garble_memory(prng, by),
        },
        8 => (term.by, term.class) = (about_memory(prng, index as u32), other.class),
        9 => garble_memory(prng, &mut term.by),
        _ => match &mut term.kind {
            TermKind::Op { imm: Imm::Bits(bits), .. } => *bits = bits.wrapping_add(1),
            TermKind::Op { imm: Imm::Address(_, offset) | Imm::HostAddress(_, offset), .. }
                if prng.chance(30) =>
            {
                *offset = offset.wrapping_add(1)
            }
            TermKind::Op { args, .. } if !args.is_empty() => {
                let at = prng.index(args.len());
                args[at] = near(prng, args[at]);
            }
            TermKind::Argument(index) | TermKind::Result(_, index) => *index = near(prng, *index),
            TermKind::MemoryAfter(inst) => *inst = Inst::from_u32(near_id(prng, inst.as_u32())),
            _ => term.kind = TermKind::MemoryParam,
        },
    }
}

/// A random reason of memory or sums for the term with this index, which names nearby terms.
fn about_memory(prng: &mut Prng, id: u32) -> By {
    let [one, other, inner, result] = [0; 4].map(|_| near(prng, id));
    let via = if prng.chance(50) { [NO_TERM; 2] } else { [one, other] };
    match prng.below(6) {
        0 => By::Apart { via, result },
        1 => By::Stored { via },
        2 => By::Covers { result },
        3 => By::Swaps { via, inner, result },
        4 => By::Sum { result },
        _ => By::Merged { reads: [one, other].into_iter().collect() },
    }
}

/// Changes a memory reason. Other reasons stay as they are.
fn garble_memory(prng: &mut Prng, by: &mut By) {
    match by {
        By::Apart { via, .. } | By::Stored { via } | By::Swaps { via, .. } if prng.chance(50) => {
            let at = prng.index(2);
            via[at] = if prng.chance(30) { NO_TERM } else { near(prng, via[at]) };
        }
        By::Swaps { inner, .. } if prng.chance(50) => *inner = near(prng, *inner),
        By::Apart { result, .. } | By::Covers { result } | By::Swaps { result, .. } => {
            *result = near(prng, *result)
        }
        By::Merged { reads } => match some_index(prng, reads.len()) {
            Some(at) if prng.chance(50) => reads[at] = near(prng, reads[at]),
            Some(at) => drop(reads.remove(at)),
            None => reads.push(prng.below(1 << 12)),
        },
        By::Itself | By::Folding | By::Sum { .. } | By::Rule { .. } | By::Stored { .. } => {}
    }
}

fn garble_claims(prng: &mut Prng, certificate: &mut Certificate) {
    let count = certificate.terms.len() as u32;
    let side = &mut certificate.sides[prng.index(2)];
    let (value, block) = (prng.index(side.values.len()), prng.index(side.memory.len()));
    let write = prng.index(side.writes.len());
    match prng.below(11) {
        0 => side.values.truncate(value),
        1 | 2 if !side.values.is_empty() => side.values[value].1 = near(prng, side.values[value].1),
        3 if !side.values.is_empty() => side.values[value].1 = prng.below(count),
        4 if !side.values.is_empty() => {
            side.values[value].0 = Value::from_u32(near_id(prng, side.values[value].0.as_u32()));
        }
        5 if !side.memory.is_empty() => side.memory[block].1 = prng.below(count),
        6 if !side.memory.is_empty() => {
            side.memory[block].0 = Block::from_u32(near_id(prng, side.memory[block].0.as_u32()));
        }
        7 if !side.writes.is_empty() => drop(side.writes.remove(write)),
        8 if !side.writes.is_empty() => side.writes[write].1 = near(prng, side.writes[write].1),
        9 if !side.writes.is_empty() => {
            side.writes[write].0 = Inst::from_u32(near_id(prng, side.writes[write].0.as_u32()));
        }
        _ => {
            let at = prng.index(certificate.anchors.len());
            match certificate.anchors.get_mut(at) {
                Some(anchor) if prng.chance(50) => {
                    *anchor = Inst::from_u32(near_id(prng, anchor.as_u32()))
                }
                Some(_) => {
                    certificate.anchors.remove(at);
                }
                None => certificate.anchors.push(Inst::from_u32(prng.below(100))),
            }
        }
    }
}

fn garble_entry(prng: &mut Prng, mapping: &mut Mapping) {
    let points: Vec<Point> = mapping.entries().map(|(point, _)| point).collect();
    if points.is_empty() {
        return;
    }
    let mut point = prng.pick(&points);
    let Some(mut entry) = mapping.remove(point) else { return };
    let anything = |prng: &mut Prng| match prng.below(3) {
        0 => Operand::Step(prng.below(20)),
        1 => Operand::Step(u32::MAX),
        _ => Operand::Source(Value::from_u32(prng.below(400))),
    };
    let (step, replay) = (prng.index(entry.steps.len()), prng.index(entry.replays.len()));
    match prng.below(13) {
        0 => point = Point::before(Inst::from_u32(near_id(prng, point.inst().as_u32()))),
        1 => {
            entry.target =
                Point::before(Inst::from_u32(near_id(prng, entry.target.inst().as_u32())))
        }
        2 => entry.steps.truncate(step),
        3 if !entry.steps.is_empty() => entry.steps[step].opcode = prng.pick(Opcode::ALL),
        4 if !entry.steps.is_empty() => entry.steps[step].ty = prng.pick(&Type::ALL),
        5 if !entry.steps.is_empty() => {
            let operand = anything(prng);
            entry.steps[step].args.push(operand);
        }
        6 => {
            let from = anything(prng);
            entry.assigns.push(Assign { value: Value::from_u32(prng.below(400)), from });
        }
        7 => entry.requires.push(Value::from_u32(prng.below(400))),
        8 if !entry.replays.is_empty() => drop(entry.replays.remove(replay)),
        9 if !entry.replays.is_empty() => {
            let operand = anything(prng);
            entry.replays[replay].args.pop();
            entry.replays[replay].args.push(operand);
        }
        10 if replay > 0 => entry.replays.swap(replay - 1, replay),
        11 => {
            let opcode = prng.pick(&[Opcode::Store, Opcode::Store8, Opcode::GlobalSet]);
            let ty = prng.pick(&Type::ALL);
            let imm = match opcode {
                Opcode::GlobalSet => Imm::Global(Global::from_u32(prng.below(4))),
                _ => Imm::Address(Memory::from_u32(0), u64::from(prng.below(16))),
            };
            let args = (0..prng.below(4)).map(|_| anything(prng)).collect();
            entry.replays.push(Replay { inst: point.inst(), opcode, ty, imm, args });
        }
        _ => {
            let at = prng.index(entry.assigns.len());
            if let Some(assign) = entry.assigns.get_mut(at) {
                assign.from = anything(prng);
            }
        }
    }
    mapping.insert(point, entry);
}
