//! Refutation: evaluates an unproved entry for chosen contents of the leaves.
//!
//! An entry without a proof may still be right. The entry is refuted if, for some contents of the
//! leaves, it computes other bits than the target version has, or leaves other bits in memory.
//! These contents are the witness. Nothing here can make an entry hold: this file only tells
//! *refuted* from *undecided*.
//!
//! The contents of leaves are chosen freely, by number of a valuation. A memory is a list of writes
//! on top of a leaf. A read takes its bytes from the last writes to them; bytes that no write has
//! written are chosen by the leaf and the address. A leaf is not free if the certificate claims the
//! results of merged reads from it. Its contents are unknown, so nothing is refuted by them.

use crate::accept::paths::Bindings;
use crate::accept::product::CrossProduct;
use crate::verdict::Witness;
use ir::eval::{eval, is_evaluated, sign_extend};
use ir::place::Place;
use ir::{Global, Imm, Memory, Opcode, Point, Type};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::collections::BTreeSet;
use transition::certificate::{NO_TERM, TermId, TermKind, is_well_typed};
use transition::mapping::{Entry, Operand};
use transition::{Pair, Side};

/// The number of valuations. Each costs an evaluation of the table. Four have special integers,
/// four have random bits.
const VALUATIONS: u32 = 8;

/// The largest number of terms evaluated for entries whose paths bind leaves, over all entries.
/// Such an entry needs a table of its own. Beyond the limit, an unproved entry stays undecided.
const MAX_EVALUATED: usize = 1 << 26;

/// Special integers, at which operations overflow, shift out, or change sign. Floats take random
/// bits.
const EDGES: [u64; 12] =
    [0, 1, 2, 3, 7, 0x7f, 0x80, 0xff, 0x7fff_ffff, 0x8000_0000, u64::MAX, u64::MAX - 1];

/// The most writes that a read looks through. Beyond it, its result is unknown.
const MAX_WRITES: usize = 64;

/// The contents of all terms under each valuation, computed at the first use.
#[derive(Default)]
pub(crate) struct Witnesses {
    /// By valuation: the contents of each term at the start of paths.
    tables: Vec<Vec<Option<u64>>>,
    /// How many terms have been evaluated for entries whose paths bind leaves.
    evaluated: usize,
    /// Memory leaves whose contents merged reads constrain.
    constrained: BTreeSet<TermId>,
}

impl Witnesses {
    /// One scene for each valuation, with the contents at the start of paths.
    fn scenes<'s>(
        &'s mut self,
        product: &'s CrossProduct<'_, '_>,
    ) -> impl Iterator<Item = Scene<'s>> {
        let Witnesses { tables, constrained, .. } = self;
        if tables.is_empty() {
            let memory_of = |id: &TermId| product.terms.read(*id).map(|read| read.memory);
            *constrained = product.terms.merged.iter().filter_map(memory_of).collect();
            tables.extend(
                (0..VALUATIONS)
                    .map(|v| Scene::new(product, constrained, v, None).table.into_owned()),
            );
        }
        let constrained = &*constrained;
        let scene = move |(table, valuation)| Scene {
            product,
            constrained,
            valuation,
            table: Cow::Borrowed(table),
            path: None,
        };
        tables.iter().map(Vec::as_slice).zip(0..).map(scene)
    }

    /// Contents of leaves under which two classes differ; `None` if no valuation shows a
    /// difference.
    pub(crate) fn tell_apart(
        &mut self,
        product: &CrossProduct<'_, '_>,
        Pair { before: a, after: b }: Pair<TermId>,
    ) -> Option<Witness> {
        self.scenes(product).find_map(|scene| match product.terms.ty(a) {
            Some(_) => scene.witness(scene.bits(a)?, Some(scene.bits(b)?)),
            None => scene.memories_differ(scene.layers(a).collect(), scene.layers(b).collect()),
        })
    }

    /// Contents of leaves under which an entry assigns other bits than the target version has, or
    /// leaves other bits in memory. `None` if no valuation shows a difference. Cost: linear in the
    /// table if the path from `point` binds leaves, else in the entry.
    pub(crate) fn refute(
        &mut self,
        product: &CrossProduct<'_, '_>,
        source: Side,
        point: Point,
        entry: &Entry,
        bindings: &mut Bindings,
    ) -> Option<Witness> {
        let (from, to) = (&product.versions[source], &product.versions[source.other()]);
        let path = product.paths[source].from(from, point.inst())?;
        bindings.enter(from, &path);
        // The leaves bound on the path have other contents at its end, so the table is evaluated
        // again.
        if !bindings.is_empty() {
            self.evaluated += VALUATIONS as usize * product.terms.len();
        }
        if self.evaluated > MAX_EVALUATED {
            return None;
        }
        // Without lone writes and replays, memory is the same in both versions, even where its
        // classes differ: the entry is not proved then, and nothing refutes it.
        let has_lone_writes = product.versions.iter().any(|v| !v.lone_writes.is_empty());
        let has_written = has_lone_writes || !entry.replays.is_empty();
        self.scenes(product).find_map(|here| {
            let bound = (!bindings.is_empty()).then(|| {
                Scene::new(product, here.constrained, here.valuation, Some((&here, &*bindings)))
            });
            // The steps run on the contents at the source point; the expected bits are the bits at
            // the anchor.
            let far = bound.as_ref().unwrap_or(&here);
            let results = run(&here, source, entry);
            let wrong_value =
                entry.assigns.iter().filter(|a| to.f.has_value(a.value)).find_map(|assign| {
                    let expected = far.bits(to.class(assign.value))?;
                    here.witness(expected, read(&here, source, assign.from, &results)?)
                });
            wrong_value.or_else(|| {
                // The last replay is the topmost layer.
                let written = entry.replays.iter().rev().map(|replay| {
                    let operand = |arg: &Operand| read(&here, source, *arg, &results).flatten();
                    let place = Place::written(replay.opcode, replay.ty, &replay.imm);
                    let args: SmallVec<[Option<u64>; 2]> =
                        replay.args.iter().map(operand).collect();
                    place.map_or(Layer::Unknown, |place| Layer::of(place, &args))
                });
                let found = written.chain(here.layers(from.memory_before(point.inst())));
                let wanted = far.layers(to.memory_before(entry.target.inst())).collect();
                has_written.then(|| here.memories_differ(wanted, found.collect())).flatten()
            })
        })
    }
}

/// The cells that an access reads or writes: bytes of a memory, a global, or the size of a memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cells {
    Bytes { memory: Memory, first: u64, bytes: u32 },
    Global(Global),
    Size(Memory),
}

impl Cells {
    /// The cells of an access. `None` if its address is unknown, or if the access ends beyond 2^32,
    /// in a host memory beyond 2^64, and so traps.
    fn of(place: Place, address: Option<u64>) -> Option<Cells> {
        match place {
            Place::Bytes { memory, offset, bytes, address: ty } => {
                let first = address?.checked_add(offset)?;
                let last = first.checked_add(u64::from(bytes).saturating_sub(1))?;
                (last <= ty.mask()).then_some(Cells::Bytes { memory, first, bytes })
            }
            Place::Size(memory) => Some(Cells::Size(memory)),
            Place::Global(global) => Some(Cells::Global(global)),
            // The words of all references are no cell of 64 bits.
            Place::Layout => None,
        }
    }
}

/// One layer of a memory, from the last write down to a leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Layer {
    /// Cells and the bits written to them.
    Write(Cells, u64),
    /// A leaf, and the key that chooses its contents; `None` if merged reads constrain them.
    Leaf(TermId, Option<u64>),
    /// Everything below is unknown.
    Unknown,
}

impl Layer {
    fn of(place: Place, operands: &[Option<u64>]) -> Layer {
        let cells = Cells::of(place, operands.first().copied().flatten());
        let written = operands.last().copied().flatten();
        cells.zip(written).map_or(Layer::Unknown, |(cells, bits)| Layer::Write(cells, bits))
    }
}

/// The bits of some cells in a memory; `None` if a part of them is unknown.
fn find(layers: impl Iterator<Item = Layer>, cells: Cells) -> Option<u64> {
    // `missing` has a bit set for each bit of the cells that no layer has given yet. A read is up
    // to eight bytes wide, and several narrower writes may give its parts.
    let (mut bits, mut missing) = match cells {
        Cells::Bytes { bytes, .. } => (0, u64::MAX >> (64 - 8 * bytes.clamp(1, 8))),
        Cells::Global(_) | Cells::Size(_) => (0, u64::MAX),
    };
    for layer in layers {
        let (found, there) = match layer {
            Layer::Write(written, value) => overlap(cells, written, value),
            Layer::Leaf(_, key) => (contents(key?, cells), u64::MAX),
            Layer::Unknown => return None,
        };
        bits |= found & there & missing;
        missing &= !there;
        if missing == 0 {
            return Some(bits);
        }
    }
    None
}

/// The part of a write that overlaps some cells: its bits, shifted to their place in the cells, and
/// a mask of these bits.
fn overlap(cells: Cells, written: Cells, value: u64) -> (u64, u64) {
    match (cells, written) {
        (Cells::Bytes { memory, first, .. }, Cells::Bytes { memory: m, first: f, bytes: b })
            if memory == m =>
        {
            let there = u64::MAX >> (64 - 8 * b.clamp(1, 8));
            // Little-endian: a write that begins above the cells gives their high bytes.
            let shift = |bits: u64| match (f.checked_sub(first), first.checked_sub(f)) {
                (Some(up), _) if up < 8 => bits << (8 * up),
                (_, Some(down)) if down < 8 => bits >> (8 * down),
                _ => 0,
            };
            (shift(value & there), shift(there))
        }
        _ if cells == written => (value, u64::MAX),
        _ => (0, 0),
    }
}

/// The bits of some cells in a leaf, as its key chooses them.
fn contents(key: u64, cells: Cells) -> u64 {
    match cells {
        Cells::Bytes { memory, first, bytes } => {
            // Byte by byte, so that overlapping reads of different widths agree.
            let byte = |at: u64| mix(mix(key ^ u64::from(memory.as_u32())) ^ (first + at)) & 0xff;
            (0..u64::from(bytes.min(8))).fold(0, |bits, at| bits | byte(at) << (8 * at))
        }
        Cells::Global(global) => mix(key ^ 1 << 40 ^ u64::from(global.as_u32())),
        // In pages. A memory has at most 2^16 pages, which 32-bit addresses reach.
        Cells::Size(memory) => mix(key ^ 1 << 41 ^ u64::from(memory.as_u32())) % ((1 << 16) + 1),
    }
}

/// The contents of all terms under one valuation.
struct Scene<'s> {
    product: &'s CrossProduct<'s, 's>,
    constrained: &'s BTreeSet<TermId>,
    valuation: u32,
    /// By term: its bits. `None` if its evaluation traps, if they are unknown, and for memory.
    table: Cow<'s, [Option<u64>]>,
    /// For the contents at the end of a path: the scene at its start, and its bindings.
    path: Option<(&'s Scene<'s>, &'s Bindings)>,
}

impl<'s> Scene<'s> {
    /// Evaluates every term. An operand precedes its term in the table, so one pass suffices.
    fn new(
        product: &'s CrossProduct<'_, '_>,
        constrained: &'s BTreeSet<TermId>,
        valuation: u32,
        path: Option<(&'s Scene<'s>, &'s Bindings)>,
    ) -> Scene<'s> {
        let mut scene =
            Scene { product, constrained, valuation, table: Cow::Owned(Vec::new()), path };
        for id in 0..product.terms.len() as TermId {
            let bits = scene.evaluate(id);
            scene.table.to_mut().push(bits);
        }
        scene
    }

    fn bits(&self, id: TermId) -> Option<u64> {
        self.table.get(id as usize).copied().flatten()
    }

    /// The bits of a term, computed from the bits of its operands.
    fn evaluate(&self, id: TermId) -> Option<u64> {
        let terms = &self.product.terms;
        let TermKind::Op { opcode, ty, imm, args } = terms.kind(id)? else {
            // A leaf that the path binds has the contents that its class had at the start of the
            // path.
            return match self.path.and_then(|(here, bindings)| Some((here, bindings.get(id)?))) {
                Some((here, bound)) => here.bits(bound),
                None => {
                    terms.ty(id).map(|_| leaf_bits(self.product, self.valuation, id, terms.ty(id)))
                }
            };
        };
        // Experiments without `TermShape` evaluate terms that are no operations
        // (`weakened_checkers_do_not_panic`).
        let types: SmallVec<[Option<Type>; 4]> = args.iter().map(|a| terms.ty(*a)).collect();
        if !is_well_typed(*opcode, *ty, imm, &types) {
            return None;
        }
        if let Some(read) = terms.read(id) {
            let cells = Cells::of(
                read.place,
                read.operands.first().and_then(|address| self.bits(*address)),
            )?;
            return Some(widened(*opcode, *ty, find(self.layers(read.memory), cells)?));
        }
        let bits: SmallVec<[u64; 4]> = args.iter().map(|a| self.bits(*a)).collect::<Option<_>>()?;
        match imm {
            Imm::Bits(bits) => Some(*bits),
            _ if is_evaluated(*opcode) => {
                eval(*opcode, *ty, types.first().copied().flatten().unwrap_or(*ty), &bits).ok()
            }
            _ => None,
        }
    }

    /// The layers of a memory, from the last write down. After [`MAX_WRITES`] layers, the rest is
    /// unknown.
    fn layers(&self, memory: TermId) -> impl Iterator<Item = Layer> + '_ {
        let (mut at, mut left) = (Some((self, memory)), MAX_WRITES);
        std::iter::from_fn(move || {
            let (mut scene, mut memory) = at.take()?;
            // A memory leaf that the path binds continues with the memory at the start of the path.
            // The operands of its writes have the contents of that scene.
            if scene.product.terms.write(memory).is_none()
                && let Some((here, bound)) =
                    scene.path.and_then(|(here, b)| Some((here, b.get(memory)?)))
            {
                (scene, memory) = (here, bound);
            }
            let Some(write) = scene.product.terms.write(memory) else {
                return Some(scene.leaf(memory));
            };
            if left == 0 {
                return Some(Layer::Unknown);
            }
            (at, left) = (Some((scene, write.memory)), left - 1);
            let operands: SmallVec<[_; 2]> =
                write.operands.iter().map(|o| scene.bits(*o)).collect();
            Some(Layer::of(write.place, &operands))
        })
    }

    /// The layer of a memory that is no write.
    fn leaf(&self, memory: TermId) -> Layer {
        match self.product.terms.kind(memory) {
            Some(TermKind::MemoryAtEntry | TermKind::MemoryParam | TermKind::MemoryAfter(_)) => {
                let key = leaf_bits(self.product, self.valuation, memory, None);
                Layer::Leaf(memory, (!self.constrained.contains(&memory)).then_some(key))
            }
            _ => Layer::Unknown,
        }
    }

    /// A witness, if the two results differ. `found` is `None` if the computation traps.
    fn witness(&self, expected: u64, found: Option<u64>) -> Option<Witness> {
        (found != Some(expected)).then_some(Witness { valuation: self.valuation, expected, found })
    }

    /// A witness if two memories differ in cells that a write of either memory covers. `None` if
    /// they rest on different leaves: different leaves may hold anything.
    fn memories_differ(&self, wanted: Vec<Layer>, found: Vec<Layer>) -> Option<Witness> {
        let ends = [wanted.last()?, found.last()?];
        let [Layer::Leaf(one, _), Layer::Leaf(other, _)] = ends else { return None };
        let same = one == other;
        wanted.iter().chain(&found).filter(|_| same).find_map(|layer| {
            let Layer::Write(cells, _) = layer else { return None };
            let [expected, found] =
                [&wanted, &found].map(|layers| find(layers.iter().copied(), *cells));
            self.witness(expected?, Some(found?))
        })
    }
}

/// The result of a read whose cells hold these bits: extended by its sign, and cut to its type.
fn widened(opcode: Opcode, ty: Type, bits: u64) -> u64 {
    let wide = match opcode {
        Opcode::Sload8 => sign_extend(bits, 8) as u64,
        Opcode::Sload16 => sign_extend(bits, 16) as u64,
        Opcode::Sload32 => sign_extend(bits, 32) as u64,
        _ => bits,
    };
    wide & opcode.result_type(ty).unwrap_or(ty).mask()
}

/// The bits of an operand. The outer option is `None` if they are unknown, the inner if their
/// computation traps.
fn read(
    scene: &Scene<'_>,
    source: Side,
    operand: Operand,
    results: &[Option<Option<u64>>],
) -> Option<Option<u64>> {
    match operand {
        Operand::Step(index) => results.get(index as usize).copied().flatten(),
        Operand::Source(value) => scene.bits(scene.product.versions[source].class(value)).map(Some),
    }
}

/// The results of the steps of an entry, each as for `read`.
fn run(scene: &Scene<'_>, source: Side, entry: &Entry) -> Vec<Option<Option<u64>>> {
    let mut results: Vec<Option<Option<u64>>> = Vec::new();
    let mut types: Vec<Option<Type>> = Vec::new();
    for step in &entry.steps {
        let type_of = |arg: &Operand| match arg {
            Operand::Step(index) => types.get(*index as usize).copied().flatten(),
            Operand::Source(value) => {
                let f = scene.product.versions[source].f;
                f.has_value(*value).then(|| f.value_type(*value))
            }
        };
        let operand_types: Option<SmallVec<[Type; 3]>> = step.args.iter().map(type_of).collect();
        // Forged steps may have operands of wrong types; `eval` must not see them.
        let fits = operand_types.is_some_and(|t| step.accepts(&t));
        let args = step.args.iter().map(|a| read(scene, source, *a, &results));
        let args: Option<SmallVec<[Option<u64>; 3]>> = args.collect();
        let result = args.filter(|_| fits).map(|args| {
            let args: SmallVec<[u64; 3]> = args.into_iter().collect::<Option<_>>()?;
            match step.opcode {
                Opcode::Const => Some(step.bits),
                opcode => eval(opcode, step.ty, step.operand_ty, &args).ok(),
            }
        });
        results.push(result);
        types.push(step.opcode.result_type(step.ty));
    }
    results
}

/// The contents of a leaf under a valuation: special integers under even valuations, random bits
/// under odd valuations.
fn leaf_bits(product: &CrossProduct<'_, '_>, valuation: u32, id: TermId, ty: Option<Type>) -> u64 {
    // Two leaves that only one version binds may stand for the same contents under two names. All
    // of them get the same contents, so that a difference cannot come from the names
    // (`leaves_of_one_version_refute_nothing`).
    let is_shared =
        product.versions.iter().all(|v| v.binders.get(id as usize).copied().flatten().is_some());
    let is_param = matches!(product.terms.kind(id), Some(TermKind::Param | TermKind::MemoryParam));
    let id = if is_shared || !is_param { id } else { NO_TERM };
    let bits = mix(u64::from(id) ^ u64::from(valuation) << 32);
    match ty {
        None => bits,
        Some(ty) if ty.is_int() && valuation.is_multiple_of(2) => {
            EDGES[(bits % EDGES.len() as u64) as usize] & ty.mask()
        }
        Some(ty) => bits & ty.mask(),
    }
}

/// Scatters the bits of a number: the finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
