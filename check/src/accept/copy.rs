//! Copies: checks the claim that a version consists of the code of others
//! ([`transition::copy`]).
//!
//! Every reachable block of the copy is walked once, beside the code of its instance from the
//! claimed instruction on:
//!
//! - An instruction has the opcode, type, immediate, operands and results of the original, under
//!   the names of the instance.
//! - A branch leads to blocks that the claim puts at the starts of the original's targets, in the
//!   same instance, with the same arguments.
//! - In the place of a direct call stands a jump to a block at the start of the callee's original,
//!   in an instance for this call, with the arguments of the call.
//! - In the place of a `return` of such an instance stands a jump to a block behind the call, in
//!   the instance of the caller, with the results as arguments.
//! - The parameters of a block at the start of an original block are the original's parameters
//!   under the names of the instance. The parameters of a block behind a call are the results of
//!   the call.
//! - An instruction that the claim calls removed is about an object that the copy lacks
//!   ([`super::objects`]), and one that it calls added is a constant.
//!
//! *Why this suffices.* By induction over a run of the copy: at each step there is a stack of
//! activations of originals. It has one activation for each instance from the first to the instance
//! of the block, each at its place. Every value available there has the contents of its name in the
//! copy. A definition of an original and its copy execute together, so a name holds the contents of
//! the latest execution. By the dominance of the verified original, this is the execution of the
//! current activation. A later activation of an instance overwrites names of an earlier activation
//! only after the earlier one has returned.
//!
//! Cost: linear in the copy, but for lookups.

use super::Checked;
use super::objects::{Objects, Removed};
use cranelift_entity::EntityRef;
use ir::{Block, Family, Func, Function, Imm, Inst, Module, Opcode, Target, Type, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use transition::VersionKey;
use transition::copy::{
    CopyClaim, CopyInstance, InlinedSites, InstanceId, ObjectForm, ObjectState, ObjectsAt,
};
use transition::objects::{MadeField, MadeObject};

/// A version that is a copy, as the checker has accepted it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Copies {
    version: VersionKey,
    claim: CopyClaim,
    origins: BTreeMap<Inst, (InstanceId, Inst)>,
    /// By instruction of the first instance's original: its copy there; `None` if it has several.
    places: BTreeMap<Inst, Option<Inst>>,
    /// The names: values that reachable code of the copy defines, each with its instance and the
    /// value of the original. Ascending.
    names: Vec<(Value, InstanceId, Value)>,
    /// By instance: the family of its original.
    families: Vec<Family>,
    /// By instruction of the copy: the objects that the originals have there, and the copy has not.
    /// An instruction without any is absent.
    objects: ObjectsAt,
    /// By call of an original that makes such objects.
    sites: BTreeMap<(InstanceId, Inst), ObjectSite>,
    /// The values of the copy that were fields across removed calls, which may have moved objects.
    moved: BTreeSet<Value>,
    /// The fields by value of the copy: type, and contents.
    fields: BTreeMap<Value, (Type, MadeField)>,
}

/// A call of an original that makes objects, with the types and bits of its arguments.
#[derive(Clone, PartialEq, Eq, Debug)]
struct ObjectSite {
    func: Func,
    args: Vec<(Type, u64)>,
}

impl Copies {
    /// The version that is the copy.
    pub fn version(&self) -> VersionKey {
        self.version
    }

    /// The instances.
    pub fn instances(&self) -> &[CopyInstance] {
        &self.claim.instances
    }

    /// The claim that the checker has accepted.
    pub fn claim(&self) -> &CopyClaim {
        &self.claim
    }

    /// The instance of a reachable instruction of the copy, and the instruction of the original
    /// that it stands for.
    pub fn origin(&self, inst: Inst) -> Option<(InstanceId, Inst)> {
        self.origins.get(&inst).copied()
    }

    /// The instructions of inlined code, each with the function and the instruction that it stands
    /// for. Cost: linear in the copy.
    pub fn sites(&self) -> InlinedSites {
        let inlined = self.origins.iter().filter(|(_, (id, _))| *id != 0);
        inlined.map(|(inst, (id, at))| (*inst, (self.claim.instances[*id].func, *at))).collect()
    }

    /// The copy of an instruction of the function's own original, outside inlined code. `None`
    /// without such an instruction or with several.
    pub fn place(&self, inst: Inst) -> Option<Inst> {
        self.places.get(&inst).copied().flatten()
    }

    /// The values that a value of the copy names, each with its instance.
    pub fn named(&self, value: Value) -> impl Iterator<Item = (InstanceId, Value)> {
        let from = self.names.partition_point(|(name, ..)| *name < value);
        let same = self.names[from..].iter().take_while(move |(name, ..)| *name == value);
        same.map(|(_, id, of)| (*id, *of))
    }

    /// The objects that the originals have before an instruction of the copy, and the copy has not.
    pub fn objects(&self, inst: Inst) -> &[Arc<ObjectState>] {
        self.objects.get(&inst).map_or(&[], |objects| objects)
    }

    /// The name of a value of the function itself that an entry into the copy may provide: the
    /// contents of a name that was a field across a removed call may be those from before a move.
    pub(super) fn entered_name(&self, value: Value) -> Option<Value> {
        let name = self.claim.instances[0].values.get(&value).copied();
        name.filter(|name| !self.moved.contains(name))
    }

    /// The objects at all instructions.
    pub fn all_objects(&self) -> &ObjectsAt {
        &self.objects
    }

    /// The objects without lost bytes before an instruction of the copy, to make for frames.
    /// `frame` gives the index of an instance's frame.
    pub(super) fn to_make(
        &self,
        inst: Inst,
        frame: impl Fn(InstanceId) -> Option<usize>,
    ) -> Vec<MadeObject> {
        let made = |state: &Arc<ObjectState>| {
            let ObjectSite { func, args } = self.sites.get(&state.site)?.clone();
            let field = |(offset, value): (&u64, &Value)| {
                let (ty, field) = *self.fields.get(value)?;
                Some((*offset, ty, field))
            };
            let fields = state.fields.iter().map(field).collect::<Option<_>>()?;
            let name = |((id, value), form): (&(InstanceId, Value), &ObjectForm)| {
                frame(*id).map(|frame| (frame, *value, *form))
            };
            let names = state.forms.iter().filter_map(name).collect();
            Some(MadeObject { site: state.site.1, func, args, fields, names })
        };
        self.objects(inst).iter().filter(|state| !state.is_lost).filter_map(made).collect()
    }

    /// The family of the original of an instance.
    pub(super) fn family(&self, id: InstanceId) -> &Family {
        &self.families[id]
    }

    /// An instance and those that it is called from, the innermost first, each with the place in
    /// its original: the given one, then calls.
    pub fn stack(&self, id: InstanceId, at: Inst) -> impl Iterator<Item = (InstanceId, Inst)> {
        std::iter::successors(Some((id, at)), |(id, _)| self.claim.instances[*id].caller)
    }
}

/// Why a version is no copy as claimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopyError {
    /// An original that is missing or another version, an instance that names a later instance as
    /// its caller, or a first instance that is not the function itself.
    Instances,
    /// A reachable block has no claim, or its claim names a missing instruction.
    Unclaimed(Block),
    /// A block has other parameters than its place.
    Params(Block),
    /// An instruction differs from the original.
    Differs(Inst),
    /// The code before a block does not lead to the objects claimed at its start.
    Objects(Block),
    /// An original is removed that is about no object, or about one that other code needs.
    Removed(Inst),
    /// An edge leads elsewhere than the original's edge.
    Leads(Inst),
}

impl fmt::Display for CopyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CopyError::Instances => f.write_str("the instances are not those of a copy"),
            CopyError::Unclaimed(block) => write!(f, "nothing is claimed of {block}"),
            CopyError::Params(block) => write!(f, "{block} has other parameters"),
            CopyError::Differs(inst) => write!(f, "{inst} differs from the original"),
            CopyError::Objects(block) => {
                write!(f, "the objects claimed at the start of {block} are not those before")
            }
            CopyError::Removed(inst) => {
                write!(f, "{inst} of an original is removed, and is no access of an unseen object")
            }
            CopyError::Leads(inst) => write!(f, "{inst} leads elsewhere than the original"),
        }
    }
}

impl std::error::Error for CopyError {}

/// Checks that a version of a function is a copy as claimed. `original` gives the version of each
/// instance; the verifier has accepted these and the copy.
///
/// # Errors
/// The first difference.
pub fn copy<'f>(
    version: &Function,
    func: Func,
    original: impl Fn(Func, VersionKey) -> Option<&'f Function>,
    claim: CopyClaim,
) -> Result<Checked<Copies>, CopyError> {
    copy_without_objects(version, func, original, claim, None)
}

/// As [`copy`], for a version that lacks objects of its originals. `module` declares the functions
/// that make objects ([`ir::DeclaredEffect::is_allocator`]).
///
/// # Errors
/// The first difference.
pub fn copy_without_objects<'f>(
    version: &Function,
    func: Func,
    original: impl Fn(Func, VersionKey) -> Option<&'f Function>,
    claim: CopyClaim,
    module: Option<&Module>,
) -> Result<Checked<Copies>, CopyError> {
    let body = |instance: &CopyInstance| {
        let body = original(instance.func, instance.version);
        body.filter(|body| VersionKey::of(body) == instance.version)
    };
    let bodies: Option<Vec<&Function>> = claim.instances.iter().map(body).collect();
    let bodies = bodies.ok_or(CopyError::Instances)?;
    for (id, instance) in claim.instances.iter().enumerate() {
        let is_right = match instance.caller {
            None => id == 0 && instance.func == func,
            Some((caller, call)) => caller < id && bodies[caller].has_inst(call),
        };
        if !is_right {
            return Err(CopyError::Instances);
        }
    }
    if claim.instances.is_empty() {
        return Err(CopyError::Instances);
    }
    let families = bodies.iter().map(|body| body.family().clone()).collect();
    let (origins, names) = (BTreeMap::new(), Vec::new());
    let (objects, moved) = (BTreeMap::new(), BTreeSet::new());
    let mut walk =
        CopyWalk { version, module, claim: &claim, bodies, origins, names, objects, moved };
    walk.run()?;
    let sites = walk.sites();
    let fields = walk.fields();
    let CopyWalk { origins, mut names, objects, moved, .. } = walk;
    let mut places = BTreeMap::new();
    let is_copy = |inst: &Inst| !claim.objects.added.contains(inst);
    let own = origins.iter().filter(|(inst, (id, _))| *id == 0 && is_copy(inst));
    for (inst, (_, at)) in own {
        places.entry(*at).and_modify(|place| *place = None).or_insert(Some(*inst));
    }
    names.sort_unstable();
    let version = VersionKey::of(version);
    let made =
        Copies { version, claim, origins, places, names, families, objects, sites, moved, fields };
    Ok(Checked::accepted(made))
}

struct CopyWalk<'a> {
    version: &'a Function,
    /// Declares the functions that make objects.
    module: Option<&'a Module>,
    claim: &'a CopyClaim,
    /// By instance.
    bodies: Vec<&'a Function>,
    origins: BTreeMap<Inst, (InstanceId, Inst)>,
    /// The names that the walk has met. The claim may give others: to values that no original has,
    /// or of another type, or many to one. Frames must not be assigned them
    /// (`names_that_no_code_defines_are_no_names`).
    names: Vec<(Value, InstanceId, Value)>,
    objects: ObjectsAt,
    moved: BTreeSet<Value>,
}

impl CopyWalk<'_> {
    fn run(&mut self) -> Result<(), CopyError> {
        let entry = self.version.entry();
        let body = self.bodies[0];
        if self.claim.blocks.get(&entry) != Some(&(0, body.first_inst(body.entry()))) {
            return Err(CopyError::Unclaimed(entry));
        }
        if self.claim.objects.at_start.contains_key(&entry) {
            return Err(CopyError::Objects(entry));
        }
        let mut seen = vec![false; self.version.block_bound()];
        let mut open = vec![entry];
        while let Some(block) = open.pop() {
            if !std::mem::replace(&mut seen[block.index()], true) {
                self.block(block)?;
                open.extend(self.version.successors(block).iter().map(|target| target.block));
            }
        }
        Ok(())
    }

    fn name(&self, id: InstanceId, value: Value) -> Option<Value> {
        self.claim.instances[id].values.get(&value).copied()
    }

    /// Whether values of the copy are the names of values of an original, of the same types.
    fn are(&self, id: InstanceId, copies: &[Value], originals: &[Value]) -> bool {
        let is = |copy: &Value, of: &Value| {
            let same_type = self.version.value_type(*copy) == self.bodies[id].value_type(*of);
            same_type && self.name(id, *of) == Some(*copy)
        };
        copies.len() == originals.len() && copies.iter().zip(originals).all(|(c, o)| is(c, o))
    }

    fn note_names(&mut self, id: InstanceId, copies: &[Value], originals: &[Value]) {
        self.names.extend(copies.iter().zip(originals).map(|(name, of)| (*name, id, *of)));
    }

    fn block(&mut self, block: Block) -> Result<(), CopyError> {
        let (id, mut at) = *self.claim.blocks.get(&block).ok_or(CopyError::Unclaimed(block))?;
        let body = *self.bodies.get(id).ok_or(CopyError::Unclaimed(block))?;
        if !body.has_inst(at) {
            return Err(CopyError::Unclaimed(block));
        }
        if !self.are(id, self.version.block_params(block), params(body, at)) {
            return Err(CopyError::Params(block));
        }
        self.note_names(id, self.version.block_params(block), params(body, at));
        let claimed = Objects::claimed(self.claimed(block)).ok_or(CopyError::Objects(block))?;
        let mut objects = claimed;
        for inst in self.version.block_insts(block) {
            let is_added = self.claim.objects.added.contains(&inst);
            if !is_added {
                at = self.skip_removed(id, at, &mut objects)?;
            }
            self.origins.insert(inst, (id, at));
            if !objects.states().is_empty() {
                self.objects.insert(inst, Arc::clone(objects.states()));
            }
            let (copy, of) = (self.version.inst(inst), body.inst(at));
            if objects.name_one_of(&copy.results) {
                return Err(CopyError::Differs(inst));
            }
            if is_added {
                // Whatever the claim calls added is no place to enter at (`Copies::place`).
                let is_constant = copy.opcode == Opcode::Const;
                is_constant.then_some(()).ok_or(CopyError::Differs(inst))?;
                continue;
            }
            if copy.opcode.is_terminator() {
                self.end(id, inst, at)?;
                return self.lead(inst, &objects);
            }
            if copy.opcode.may_move_objects() {
                objects.move_objects(self.version);
            }
            let is_same = (copy.opcode, copy.ty, copy.imm) == (of.opcode, of.ty, of.imm)
                && self.are(id, &copy.args, &of.args)
                && self.are(id, &copy.results, &of.results);
            self.note_names(id, &copy.results, &of.results);
            at = body.next_inst(at).filter(|_| is_same).ok_or(CopyError::Differs(inst))?;
        }
        Ok(())
    }

    /// The calls that make the objects which the walk has met.
    fn sites(&self) -> BTreeMap<(InstanceId, Inst), ObjectSite> {
        let of_site = |(id, call): (InstanceId, Inst)| {
            let (body, call) = (self.bodies[id], self.bodies[id].inst(call));
            let Imm::Func(func) = call.imm else { return None };
            let arg = |arg: &Value| Some((body.value_type(*arg), body.constant(*arg)?));
            let args = call.args.iter().map(arg).collect::<Option<_>>()?;
            Some(ObjectSite { func, args })
        };
        let met = self.objects.values().flat_map(|states| states.iter()).map(|state| state.site);
        met.filter_map(|site| Some((site, of_site(site)?))).collect()
    }

    /// The fields that the walk has met.
    fn fields(&self) -> BTreeMap<Value, (Type, MadeField)> {
        let states = self.objects.values().flat_map(|states| states.iter());
        let met = states.flat_map(|state| state.fields.values());
        let field = |value: Value| match self.version.constant(value) {
            Some(bits) => MadeField::Constant(bits),
            None => MadeField::Value(value),
        };
        met.map(|value| (*value, (self.version.value_type(*value), field(*value)))).collect()
    }

    /// The claimed objects at the start of a block.
    fn claimed(&self, block: Block) -> &[ObjectState] {
        self.claim.objects.at_start.get(&block).map_or(&[], |objects| objects)
    }

    /// Executes the removed originals from an instruction on. Returns the next that stays.
    fn skip_removed(
        &mut self,
        id: InstanceId,
        mut at: Inst,
        objects: &mut Objects,
    ) -> Result<Inst, CopyError> {
        let body = self.bodies[id];
        while self.claim.objects.removed.contains(&(id, at)) {
            let removed = Removed { module: self.module, copy: self.version, body, id, inst: at };
            if body.inst(at).opcode.may_move_objects() {
                self.moved.extend(objects.may_move(self.version));
            }
            let done = objects.execute(&removed, |value| self.name(id, value));
            // A form has no name: otherwise an instruction of the copy could stand for one that
            // reads the object.
            let results = &body.inst(at).results;
            let is_hidden =
                |value: &Value| !objects.has(id, *value) || self.name(id, *value).is_none();
            let is_right = done.is_ok() && results.iter().all(is_hidden);
            for value in results {
                let name = self.name(id, *value);
                self.names.extend(name.map(|name| (name, id, *value)));
            }
            let next = body.next_inst(at).filter(|_| is_right);
            at = next.ok_or(CopyError::Removed(at))?;
        }
        Ok(at)
    }

    /// Checks the objects along the edges of a terminator of the copy.
    fn lead(&self, inst: Inst, objects: &Objects) -> Result<(), CopyError> {
        for target in &self.version.inst(inst).targets {
            let params = self.version.block_params(target.block);
            if !objects.lead_to(self.claimed(target.block), params, target) {
                return Err(CopyError::Objects(target.block));
            }
        }
        Ok(())
    }

    /// Checks the terminator of a block of the copy. `at` is that of the original.
    fn end(&self, id: InstanceId, inst: Inst, at: Inst) -> Result<(), CopyError> {
        let body = self.bodies[id];
        let (copy, of) = (self.version.inst(inst), body.inst(at));
        if let (Opcode::Call, Imm::Func(func)) = (of.opcode, of.imm) {
            let [target] = &copy.targets[..] else { return Err(CopyError::Differs(inst)) };
            let is_start = |(callee, first): &(InstanceId, Inst)| {
                let instance = &self.claim.instances.get(*callee);
                let stands_for_it =
                    instance.is_some_and(|one| one.func == func && one.caller == Some((id, at)));
                stands_for_it && {
                    let body = self.bodies[*callee];
                    *first == body.first_inst(body.entry())
                }
            };
            let leads = self.claim.blocks.get(&target.block).is_some_and(is_start);
            return self.require(inst, leads, id, target, &of.args);
        }
        if let (Opcode::Return, Some((caller, call))) = (of.opcode, self.claim.instances[id].caller)
        {
            let [target] = &copy.targets[..] else { return Err(CopyError::Differs(inst)) };
            let behind = self.bodies[caller].next_inst(call).map(|next| (caller, next));
            let leads = behind.is_some() && self.claim.blocks.get(&target.block) == behind.as_ref();
            return self.require(inst, leads, id, target, &of.args);
        }
        let is_same = (copy.opcode, copy.ty, copy.imm) == (of.opcode, of.ty, of.imm)
            && self.are(id, &copy.args, &of.args)
            && copy.targets.len() == of.targets.len();
        if !is_same {
            return Err(CopyError::Differs(inst));
        }
        let leads = |(copy, of): (&Target, &Target)| {
            let start = (id, body.first_inst(of.block));
            self.claim.blocks.get(&copy.block) == Some(&start) && self.are(id, &copy.args, &of.args)
        };
        match copy.targets.iter().zip(&of.targets).all(leads) {
            true => Ok(()),
            false => Err(CopyError::Leads(inst)),
        }
    }

    /// A jump in the place of a call or `return` hands over its operands.
    fn require(
        &self,
        inst: Inst,
        leads: bool,
        id: InstanceId,
        target: &Target,
        args: &[Value],
    ) -> Result<(), CopyError> {
        let is_jump = self.version.inst(inst).opcode == Opcode::Jump;
        let is_jump = is_jump && leads && self.are(id, &target.args, args);
        if is_jump { Ok(()) } else { Err(CopyError::Leads(inst)) }
    }
}

/// The values that a block of a copy receives at a place: the parameters of the block that begins
/// there, or the results of the call in front of the place.
fn params(body: &Function, at: Inst) -> &[Value] {
    match body.prev_inst(at) {
        None => body.block_params(body.inst_block(at)),
        Some(before) => &body.inst(before).results,
    }
}
