//! Copies: the claim that a version with inlined code is a copy, from the log of the inlining, and
//! the values that transitions across a copy need.
//!
//! Let I be a copy of p1 with inlined code, and q an optimized version of I. Entries from q land in
//! I, and the run continues from there into the frames that the copy stands for. Entries into I
//! come from p1, and the run continues to q. No search makes the steps across the copy, since names
//! say it all. Both sides have to provide for them, though:
//!
//! - An entry from q provides at a point of I the values of all frames there.
//! - An entry into p1 provides at a point the values that the entry from the copy of this point to
//!   q requires. That entry must not read values of inlined code, which p1 lacks.

use crate::live::{ExtraUses, LiveTable};
use crate::tree::Version;
use cranelift_entity::SecondaryMap;
use ir::dom::DomTree;
use ir::edit::{ActionKind, ActionLog, InlinedBody};
use ir::{FrameStates, Func, Function, Imm, Inst, Point, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use transition::VersionKey;
use transition::copy::{CopyClaim, CopyInstance, InstanceId, ObjectClaim, ObjectsAt};
use transition::mapping::Mapping;

/// The claim about the version that a log leads to from another version of a function. `None` if
/// the log has an action other than `inline`. Cost: linear in that version and the log.
pub fn copy_claim(func: Func, base: &Function, log: &ActionLog) -> Option<CopyClaim> {
    let mut claims = Claims::new(func, base);
    for action in log.actions() {
        let ActionKind::Inline { call, body } = action.kind() else { return None };
        claims.add(*call, body)?;
    }
    Some(claims.claim)
}

struct Claims<'a> {
    claim: CopyClaim,
    /// By instance: its original.
    bodies: Vec<&'a Function>,
    /// The copies of instructions in inlined code. Another instruction is its own original.
    origins: BTreeMap<Inst, (InstanceId, Inst)>,
}

impl<'a> Claims<'a> {
    fn new(func: Func, base: &'a Function) -> Claims<'a> {
        let params = base.blocks().flat_map(|block| base.block_params(block));
        let results = base.all_insts().flat_map(|inst| &base.inst(inst).results);
        let values = params.chain(results).map(|value| (*value, *value)).collect();
        let blocks = base.blocks().map(|block| (block, (0, base.first_inst(block)))).collect();
        let version = VersionKey::of(base);
        let instances = vec![CopyInstance { func, version, caller: None, values }];
        Claims {
            claim: CopyClaim { instances, blocks, objects: ObjectClaim::default() },
            bodies: vec![base],
            origins: BTreeMap::new(),
        }
    }

    /// Adds the instance of an inlined body. `None` if the instruction is no call of an original.
    fn add(&mut self, call: Inst, body: &'a InlinedBody) -> Option<()> {
        let (caller, at) = self.origins.get(&call).copied().unwrap_or((0, call));
        let original = self.bodies.get(caller).copied().filter(|f| f.has_inst(at))?;
        let Imm::Func(func) = original.inst(at).imm else { return None };
        let (callee, id) = (body.callee.function(), self.bodies.len());
        let starts = body.blocks.iter().map(|(of, copy)| (*copy, (id, callee.first_inst(*of))));
        self.claim.blocks.extend(starts);
        self.claim.blocks.insert(body.rest, (caller, original.next_inst(at)?));
        self.origins.extend(body.insts.iter().map(|(of, copy)| (*copy, (id, *of))));
        self.claim.instances.push(CopyInstance {
            func,
            version: VersionKey::of(callee),
            caller: Some((caller, at)),
            values: body.values.iter().copied().collect(),
        });
        self.bodies.push(callee);
        Some(())
    }
}

/// A copy with inlined code between two versions of a graph: transitions go across it.
#[derive(Clone, Copy, Debug)]
pub struct CopyLink<'c> {
    /// The original of the function itself.
    pub before: Version,
    /// The copy.
    pub after: Version,
    /// The versions through which frames of that original continue, edge by edge; the last is the
    /// version where they land. Empty if they land in the original.
    pub lands_by: &'c [Version],
    /// The claim.
    pub claim: &'c CopyClaim,
    /// By instruction of the copy: the objects that the originals have there, and the copy has not.
    pub objects: &'c ObjectsAt,
    /// By instance but the first: the original of inlined code.
    pub callees: &'c [&'c Function],
    /// By instance but the first: the frame states of that original, if it has some.
    pub states: &'c [Option<&'c FrameStates>],
}

impl CopyLink<'_> {
    /// The edges over which frames of the original continue.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (Version, Version)> {
        let from = std::iter::once(self.before).chain(self.lands_by.iter().copied());
        from.zip(self.lands_by.iter().copied())
    }
}

/// The places of a copy: by instruction, its instance and the instruction that it stands for.
/// Instructions whose block has no claim are left out. Cost: near linear in the copy.
#[doc(hidden)]
pub fn places(
    copy: &Function,
    claim: &CopyClaim,
    originals: &[&Function],
) -> BTreeMap<Inst, (InstanceId, Inst)> {
    let mut places = BTreeMap::new();
    for (block, (id, start)) in &claim.blocks {
        let Some(original) = originals.get(*id).filter(|f| f.has_inst(*start)) else { continue };
        if !copy.has_block(*block) {
            continue;
        }
        let objects = &claim.objects;
        let of = std::iter::successors(Some(*start), |inst| original.next_inst(*inst));
        let of = of.map(|inst| (*id, inst)).filter(|of| !objects.removed.contains(of));
        let copies = copy.block_insts(*block).filter(|inst| !objects.added.contains(inst));
        places.extend(copies.zip(of));
    }
    places
}

/// The uses that a link adds to the versions on both sides of the copy.
pub(crate) struct LinkedUses<'c> {
    /// The indices of three versions: the original, the copy, and the version where frames of the
    /// original land.
    pub(crate) versions: [usize; 3],
    /// The arrows over which frames of the original continue, in order.
    pub(crate) on: Vec<usize>,
    /// The arrows that leave the copy for versions derived from it.
    pub(crate) ahead: Vec<usize>,
    pub(crate) claim: &'c CopyClaim,
    pub(crate) objects: &'c ObjectsAt,
    /// By instance: the names of the values of its original.
    pub(crate) names: Vec<NameTable>,
    /// The values of the first instance by their names.
    pub(crate) own: NameTable,
    pub(crate) places: BTreeMap<Inst, (InstanceId, Inst)>,
    /// The points of the copy at which entries may land; `None` if they may at all points.
    pub(crate) lands: Option<&'c BTreeSet<Point>>,
    pub(crate) copy: &'c Function,
    pub(crate) callees: &'c [&'c Function],
    /// By instance but the first: the values live in the original. `None` for the version where
    /// frames of the first instance land: its live+ grows with the entries that leave it.
    pub(crate) live: Vec<Option<Arc<LiveTable>>>,
    /// The version where frames of the first instance land.
    pub(crate) landing: &'c Function,
    /// The original, and its dominators.
    pub(crate) original: &'c Function,
    pub(crate) dominators: DomTree,
}

/// For each value, the corresponding value in a copy or in an original.
pub(crate) type NameTable = SecondaryMap<Value, Option<Value>>;

/// The names of the values of each instance, and the values of the first instance by their names.
/// Cost: linear in the claim, and for each instance in the ids of its original.
pub(crate) fn name_tables(claim: &CopyClaim) -> (Vec<NameTable>, NameTable) {
    let names = |instance: &CopyInstance| {
        let mut table = NameTable::new();
        // The last value first, so that the table grows once.
        instance.values.iter().rev().for_each(|(of, name)| table[*of] = Some(*name));
        table
    };
    let mut own = NameTable::new();
    let first = claim.instances.iter().take(1).flat_map(|instance| &instance.values);
    // A removed load has the name of the value stored, which was there before.
    first.for_each(|(of, name)| {
        if own[*name].is_none() || of == name {
            own[*name] = Some(*of);
        }
    });
    (claim.instances.iter().map(names).collect(), own)
}

impl LinkedUses<'_> {
    /// Adds uses to the original and to the copy. Returns the indices of the versions with new
    /// uses.
    pub(crate) fn add<'m, 'l>(
        &self,
        mapping: impl Fn(usize) -> &'m Mapping,
        live: impl Fn(usize) -> Option<&'l LiveTable>,
        uses: &mut [ExtraUses],
    ) -> BTreeSet<usize> {
        let [original, copy, landing] = self.versions;
        let (Some(in_original), Some(in_copy), Some(in_landing)) =
            (live(original), live(copy), live(landing))
        else {
            return BTreeSet::new();
        };
        let mut grown = BTreeSet::new();
        for arrow in &self.ahead {
            if self.add_entered(mapping(*arrow), in_original, &mut uses[original]) {
                grown.insert(original);
            }
        }
        let on: Vec<&Mapping> = self.on.iter().map(|arrow| mapping(*arrow)).collect();
        if self.add_left(&on, in_landing, in_copy, &mut uses[copy]) {
            grown.insert(copy);
        }
        grown
    }

    /// Adds the values that entries from the copy require, at the originals of their points. Where
    /// inlined code never returns, more dominates in the copy than in the original. So an entry may
    /// require a value that the original does not have at the point on every path, by the
    /// dominators of the whole graph, which engines know. No entry into the original can provide
    /// it, and the entry is skipped (`code_that_never_returns_leaves_values_of_one_arm_alone`).
    fn add_entered(&self, ahead: &Mapping, live: &LiveTable, uses: &mut ExtraUses) -> bool {
        let mut grew = false;
        for (point, entry) in ahead.entries() {
            let Some((0, at)) = self.places.get(&point.inst()) else { continue };
            let at = Point::before(*at);
            let values = || entry.requires.iter().filter_map(|name| self.own[*name]);
            if values().all(|v| self.dominators.available_at(self.original, v, at)) {
                grew |= add_unlive(values(), at, live, uses);
            }
        }
        grew
    }

    /// Adds the values of all frames, at the points of the copy.
    fn add_left(
        &self,
        on: &[&Mapping],
        landing: &LiveTable,
        live: &LiveTable,
        uses: &mut ExtraUses,
    ) -> bool {
        // By instance: the needs of its waiting frames.
        let mut waiting: Vec<Vec<(InstanceId, Value)>> = Vec::new();
        for instance in &self.claim.instances {
            let mut needs = Vec::new();
            if let Some((caller, call)) = instance.caller {
                let behind = self.behind(caller, call, on, landing);
                needs.extend(behind.into_iter().map(|value| (caller, value)));
                needs.extend_from_slice(&waiting[caller]);
            }
            waiting.push(needs);
        }
        let mut grew = false;
        let lands = |inst: &Inst| self.lands.is_none_or(|at| at.contains(&Point::before(*inst)));
        for (inst, (id, at)) in self.places.iter().filter(|(inst, _)| lands(inst)) {
            let at = Point::before(*at);
            let needs: &[Value] = match (id, on.first()) {
                // The entry provides the values that the next edge requires.
                (0, Some(on)) => on.entry(at).map_or(&[], |entry| &entry.requires),
                (0, None) => landing.live(at),
                _ => self.live[*id - 1].as_deref().unwrap_or(landing).live(at),
            };
            let needs = needs.iter().map(|value| (*id, *value));
            let needs = needs.chain(waiting[*id].iter().copied());
            let values = needs.flat_map(|(id, value)| self.held(*inst, id, value));
            grew |= add_unlive(values, Point::before(*inst), live, uses);
        }
        grew
    }

    /// The values that an activation needs which waits for the results of a call.
    fn behind(
        &self,
        id: InstanceId,
        call: Inst,
        on: &[&Mapping],
        landing: &LiveTable,
    ) -> Vec<Value> {
        let (f, live) = match id {
            0 => (self.landing, landing),
            _ => (self.callees[id - 1], self.live[id - 1].as_deref().unwrap_or(landing)),
        };
        let Some(next) = f.has_inst(call).then(|| f.next_inst(call)).flatten() else {
            return Vec::new();
        };
        let results = &f.inst(call).results;
        let live = live.live(Point::before(next)).iter().copied();
        let live: Vec<Value> = live.filter(|value| !results.contains(value)).collect();
        let ways = on.iter().rev().filter(|_| id == 0);
        ways.fold(live, |live, on| {
            let entry = on.entry(Point::before(call)).and_then(|entry| entry.only(&live));
            entry.map(|entry| entry.requires).unwrap_or_default()
        })
    }

    /// The values of the copy that hold a value of an original before an instruction: its name, or
    /// the fields of the object that the value is a form of. No entry needs a constant for a field
    /// ([`transition::objects::MadeField`]).
    fn held(&self, inst: Inst, id: InstanceId, value: Value) -> impl Iterator<Item = Value> {
        let states = self.objects.get(&inst).into_iter().flat_map(|objects| objects.iter());
        let of = states.filter(move |state| state.forms.contains_key(&(id, value)));
        let fields = of.flat_map(|state| state.fields.values().copied());
        let fields = fields.filter(|field| self.copy.constant(*field).is_none());
        self.names[id][value].into_iter().chain(fields)
    }
}

/// Adds values to the uses at a point, unless they are live there anyway. Returns whether one is
/// new.
fn add_unlive(
    values: impl Iterator<Item = Value>,
    at: Point,
    live: &LiveTable,
    uses: &mut ExtraUses,
) -> bool {
    let mut grew = false;
    for value in values.filter(|value| live.live(at).binary_search(value).is_err()) {
        let here = uses.entry(at.inst()).or_default();
        if !here.contains(&value) {
            here.push(value);
            grew = true;
        }
    }
    grew
}
