//! Which objects are not needed: a walk over a version with the objects at each place.

use super::{ObjectPlaces, ObjectPlan, RemovedForm, RemovedObject, RemovedObjects};
use ir::cfg::Cfg;
use ir::{Block, Function, Imm, Inst, InstData, Memory, Opcode, Type, Value, ValueDef};
use std::collections::{BTreeMap, BTreeSet};

/// The walk.
pub(super) struct ObjectWalk<'a> {
    f: &'a Function,
    cfg: Cfg,
    places: &'a ObjectPlaces,
    /// The values that are forms of an object, each with the call that makes it.
    forms: BTreeMap<Value, (Inst, RemovedForm)>,
    /// The calls whose objects are needed.
    needed: BTreeSet<Inst>,
    /// The results of removed loads, each with the value stored, and of decided operations.
    loaded: BTreeMap<Value, Value>,
    decided: BTreeMap<Value, (Type, u64)>,
    /// The blocks at whose start an object is alive, each with the call that made it.
    live: BTreeSet<(Block, Inst)>,
    at_end: BTreeMap<Block, RemovedObjects>,
}

impl<'a> ObjectWalk<'a> {
    pub(super) fn new(
        f: &'a Function,
        sites: &BTreeSet<Inst>,
        places: &'a ObjectPlaces,
    ) -> ObjectWalk<'a> {
        let result = |site: &Inst| f.inst(*site).result().map(|result| (result, *site));
        let of = sites.iter().filter_map(result);
        let forms = of.map(|(value, site)| (value, (site, RemovedForm::Reference))).collect();
        ObjectWalk {
            f,
            cfg: Cfg::new(f),
            places,
            forms,
            needed: BTreeSet::new(),
            loaded: BTreeMap::new(),
            decided: BTreeMap::new(),
            live: BTreeSet::new(),
            at_end: BTreeMap::new(),
        }
    }

    /// The plan, or the calls whose objects are needed.
    pub(super) fn run(mut self) -> Result<ObjectPlan, BTreeSet<Inst>> {
        self.find_forms();
        self.find_escapes();
        self.find_live();
        self.find_entered();
        if self.needed.is_empty() {
            self.flow();
        }
        if self.needed.is_empty() {
            let plan = self.plan();
            if self.needed.is_empty() {
                return Ok(plan);
            }
        }
        Err(self.needed)
    }

    /// Finds the words and addresses of objects. Definitions precede uses in reverse postorder.
    fn find_forms(&mut self) {
        for block in self.cfg.rpo() {
            for inst in self.f.block_insts(*block) {
                let data = self.f.inst(inst);
                let (Some(arg), Some(result)) = (data.args.first(), data.result()) else {
                    continue;
                };
                let Some((site, form)) = self.forms.get(arg).copied() else { continue };
                let derived = match (data.opcode, form) {
                    (Opcode::RefBits, RemovedForm::Reference) => RemovedForm::Word,
                    (Opcode::Wrap, RemovedForm::Word) if data.ty == Type::I32 => {
                        RemovedForm::Address
                    }
                    _ => continue,
                };
                self.forms.insert(result, (site, derived));
            }
        }
    }

    /// Finds objects with a form that an instruction reads which has to stay. In unreachable code
    /// too, where the editor would find the use.
    fn find_escapes(&mut self) {
        for inst in self.f.all_insts() {
            let data = self.f.inst(inst);
            for (index, value) in data.operands().enumerate() {
                let Some((site, form)) = self.forms.get(&value).copied() else { continue };
                let is_removed = self.cfg.is_reachable(self.f.inst_block(inst))
                    && self.is_about(data, index, form);
                if !is_removed {
                    self.needed.insert(site);
                }
            }
        }
    }

    /// Whether an instruction may go that reads a form as this operand.
    fn is_about(&self, data: &InstData, index: usize, form: RemovedForm) -> bool {
        match form {
            RemovedForm::Reference => data.opcode == Opcode::RefBits,
            RemovedForm::Word => {
                (data.opcode == Opcode::Wrap && data.ty == Type::I32)
                    || self.decides(data).is_some()
            }
            RemovedForm::Address => {
                matches!(data.opcode, Opcode::Load | Opcode::Store)
                    && index == 0
                    && self.accessed(data).is_some()
            }
        }
    }

    /// The call, and the offset, of an access of an object's bytes.
    fn accessed(&self, data: &InstData) -> Option<(Inst, u64)> {
        let (site, form) = self.forms.get(data.args.first()?).copied()?;
        let Imm::Address(memory, offset) = data.imm else { return None };
        let size = self.argument(site, 0);
        let is_inside = offset.checked_add(u64::from(data.ty.bytes()))? <= size;
        let is_first = memory == Memory::from_u32(0);
        (form == RemovedForm::Address && is_first && is_inside).then_some((site, offset))
    }

    fn argument(&self, site: Inst, index: usize) -> u64 {
        self.f.constant(self.f.inst(site).args[index]).expect("the arguments are constants")
    }

    /// The result of an operation about one word, if the upper half of the word decides it.
    fn decides(&self, data: &InstData) -> Option<u64> {
        let [a, b] = data.args[..] else { return None };
        let of = |value: Value| self.forms.get(&value).copied();
        let with = |low: u64| {
            let bits = |value: Value| match of(value) {
                Some((site, RemovedForm::Word)) => {
                    Some(self.argument(site, 1) & !0xffff_ffff | low)
                }
                Some(_) => None,
                None => self.f.constant(value),
            };
            let (a, b) = (bits(a)?, bits(b)?);
            match data.opcode {
                _ if data.ty != Type::I64 => None,
                Opcode::Ushr if of(data.args[1]).is_none() => Some(a >> (b & 63)),
                Opcode::Eq => Some(u64::from(a == b)),
                Opcode::Ne => Some(u64::from(a != b)),
                Opcode::Ult => Some(u64::from(a < b)),
                _ => None,
            }
        };
        if of(a).is_some() == of(b).is_some() {
            return None;
        }
        // The operations are monotone in the lower half, or equal but for the constant's.
        let constant = self.f.constant(a).or(self.f.constant(b))? & 0xffff_ffff;
        let [least, most, same] = [0, 0xffff_ffff, constant].map(with);
        least.filter(|_| least == most && most == same)
    }

    /// By call: the blocks at whose start its object is alive, because an instruction or a run that
    /// leaves reads a form. A use in the block of the call stands behind the call.
    fn find_live(&mut self) {
        let mut open: Vec<(Block, Inst)> = Vec::new();
        for inst in self.f.all_insts() {
            let block = self.f.inst_block(inst);
            let taken = self.places.taken.get(&inst).into_iter().flatten().copied();
            let values = self.f.inst(inst).operands().chain(taken);
            let sites = values.filter_map(|value| self.forms.get(&value)).map(|(site, _)| *site);
            open.extend(sites.map(|site| (block, site)));
        }
        while let Some((block, site)) = open.pop() {
            if block != self.f.inst_block(site) && self.live.insert((block, site)) {
                let edges = self.f.predecessors(block).iter();
                open.extend(edges.map(|edge| (self.f.inst_block(edge.inst), site)));
            }
        }
    }

    /// Objects that runs lack which enter behind their call: these are needed.
    fn find_entered(&mut self) {
        for entered in &self.places.entered {
            let block = self.f.inst_block(*entered);
            let before = self.f.block_insts(block).take_while(|inst| inst != entered);
            let made: Vec<Inst> = before.filter(|inst| self.is_site(*inst)).collect();
            let live = self.live.iter().filter(|(at, _)| *at == block).map(|(_, site)| *site);
            self.needed.extend(live.chain(made));
        }
    }

    fn is_site(&self, inst: Inst) -> bool {
        let result = self.f.inst(inst).result();
        let form = result.and_then(|result| self.forms.get(&result));
        form.is_some_and(|(site, _)| *site == inst)
    }

    /// Walks until the objects at the ends of blocks stay as they are. They only lose.
    fn flow(&mut self) {
        loop {
            let mut changed = false;
            for index in 0..self.cfg.rpo().len() {
                let block = self.cfg.rpo()[index];
                let mut objects = self.at_start(block);
                for inst in self.f.block_insts(block) {
                    self.execute(inst, &mut objects, false);
                }
                if self.at_end.get(&block) != Some(&objects) {
                    self.at_end.insert(block, objects);
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// The objects that all edges into a block agree on. An edge that the walk has not reached
    /// agrees with all.
    fn at_start(&self, block: Block) -> RemovedObjects {
        let edges = self.f.predecessors(block).iter().map(|edge| self.f.inst_block(edge.inst));
        let mut known = edges.filter_map(|from| self.at_end.get(&from));
        let mut objects = known.next().cloned().unwrap_or_default();
        objects.retain(|site, _| self.live.contains(&(block, *site)));
        for other in known {
            objects.retain(|site, object| {
                let Some(other) = other.get(site) else { return false };
                let before = object.fields.len().max(other.fields.len());
                object.fields.retain(|at, value| other.fields.get(at) == Some(value));
                object.forms.retain(|value, _| other.forms.contains_key(value));
                object.is_lost |= other.is_lost || object.fields.len() < before;
                true
            });
        }
        objects
    }

    /// Executes an instruction. The last walk also notes what becomes of results, and which objects
    /// are needed.
    fn execute(&mut self, inst: Inst, objects: &mut RemovedObjects, is_last: bool) {
        let data = self.f.inst(inst);
        if is_last {
            self.check_taken(inst, objects);
        }
        if self.is_site(inst) {
            let result = data.result().expect("a call that makes an object has a result");
            let forms = BTreeMap::from([(result, RemovedForm::Reference)]);
            let fields = BTreeMap::new();
            objects.insert(inst, RemovedObject { site: inst, forms, fields, is_lost: false });
            return;
        }
        if let Some((site, offset)) = self.accessed(data) {
            return self.access(data, site, offset, objects, is_last);
        }
        let form = data.result().and_then(|result| Some((result, *self.forms.get(&result)?)));
        if let Some((result, (site, form))) = form {
            match objects.get_mut(&site) {
                Some(object) => drop(object.forms.insert(result, form)),
                None => self.need(site, is_last),
            }
        } else if let Some(bits) = self.decides(data).filter(|_| is_last) {
            let result = data.result().expect("an operation has a result");
            self.decided.insert(result, (self.f.value_type(result), bits));
        }
        if data.opcode.may_move_objects() {
            self.move_objects(objects);
        }
    }

    /// Forgets what a move of objects may change.
    fn move_objects(&self, objects: &mut RemovedObjects) {
        for object in objects.values_mut() {
            let before = object.fields.len();
            object.fields.retain(|_, value| self.is_fixed(*value));
            object.is_lost |= object.fields.len() < before;
        }
    }

    fn need(&mut self, site: Inst, is_last: bool) {
        if is_last {
            self.needed.insert(site);
        }
    }

    fn access(
        &mut self,
        data: &InstData,
        site: Inst,
        offset: u64,
        objects: &mut RemovedObjects,
        is_last: bool,
    ) {
        let Some(object) = objects.get_mut(&site) else { return self.need(site, is_last) };
        let f = self.f;
        match (data.opcode, data.result()) {
            (Opcode::Load, Some(result)) => {
                let stored = object.fields.get(&offset).copied();
                match stored.filter(|stored| f.value_type(*stored) == f.value_type(result)) {
                    Some(stored) => {
                        self.loaded.insert(result, stored);
                    }
                    None => self.need(site, is_last),
                }
            }
            _ => {
                let stored = self.known_as(data.args[1]);
                let bytes = u64::from(data.ty.bytes());
                let is_beside = |(at, value): (&u64, &Value)| {
                    let end = at + u64::from(f.value_type(*value).bytes());
                    end <= offset || offset + bytes <= *at || (*at, end) == (offset, offset + bytes)
                };
                if object.fields.iter().all(is_beside) {
                    object.fields.insert(offset, stored);
                } else {
                    self.need(site, is_last);
                }
            }
        }
    }

    /// The value that stays in the place of one that may be a removed load's.
    fn known_as(&self, value: Value) -> Value {
        let mut known = value;
        while let Some(stored) = self.loaded.get(&known) {
            known = *stored;
        }
        known
    }

    /// Whether a value does not depend on where objects lie.
    fn is_fixed(&self, value: Value) -> bool {
        if self.f.constant(value).is_some() || self.f.value_type(value).is_float() {
            return true;
        }
        let ValueDef::Result(inst, _) = self.f.value_def(value) else { return false };
        let inst = self.f.inst(inst);
        inst.opcode == Opcode::Bitcast && inst.args.iter().all(|a| self.f.value_type(*a).is_float())
    }

    /// Objects of which bytes are lost where a run takes them along are needed.
    fn check_taken(&mut self, inst: Inst, objects: &RemovedObjects) {
        let taken = self.places.taken.get(&inst).into_iter().flatten();
        for (site, _) in taken.filter_map(|value| self.forms.get(value)) {
            if objects.get(site).is_none_or(|object| object.is_lost) {
                self.needed.insert(*site);
            }
        }
    }

    /// The last walk.
    fn plan(&mut self) -> ObjectPlan {
        let mut plan = ObjectPlan::default();
        for index in 0..self.cfg.rpo().len() {
            let block = self.cfg.rpo()[index];
            let mut objects = self.at_start(block);
            if !objects.is_empty() {
                plan.at_start.insert(block, objects.clone());
            }
            for inst in self.f.block_insts(block) {
                self.execute(inst, &mut objects, true);
                if self.is_removed(inst) {
                    plan.removed.push(inst);
                }
            }
        }
        plan.loaded = self.loaded.keys().map(|load| (*load, self.known_as(*load))).collect();
        plan.decided = self.decided.iter().map(|(of, (ty, bits))| (*of, *ty, *bits)).collect();
        plan
    }

    fn is_removed(&self, inst: Inst) -> bool {
        let data = self.f.inst(inst);
        let is_known = |value: Value| {
            self.forms.contains_key(&value)
                || self.loaded.contains_key(&value)
                || self.decided.contains_key(&value)
        };
        data.result().is_some_and(is_known) || self.accessed(data).is_some()
    }
}
