//! Objects that the originals of a copy make, and the copy does not
//! ([`transition::copy::ObjectClaim`]): what the walk of a copy ([`super::copy`]) knows of them.
//!
//! The walk has, at each place, the objects of the originals that the copy lacks. Of each it knows
//! the bytes written and not lost, as values of the copy.
//!
//! - A removed call of an allocator with constant arguments begins an object. The axioms of
//!   [`ir::DeclaredEffect::is_allocator`] say that nothing else refers to it.
//! - A removed store at the object's address adds a field. It lies in the object's bytes, so it
//!   does not trap.
//! - The name of a removed load is the field that the load reads as a whole.
//! - The name of a removed operation about the object's word is the constant that the upper half of
//!   the word determines.
//! - No other instruction has a form of the object as an operand: an operand needs a name, and a
//!   form has no name. So the object stays unknown to all code but the instructions removed.
//! - A call that may move objects loses the fields that a move may change in the original: the copy
//!   keeps numbers, and the collector changes words in the object. Constants and floats do not
//!   depend on where objects lie (axiom 4).
//! - A definition of the copy that a field names ends the field's truth: such a copy is refused.
//! - Along an edge, the objects of the block that it leads to are among those before, with no form
//!   and no field that they lacked.
//!
//! *Why a run of the copy needs no object.* The induction is that of [`super::copy`]. At each
//! place, the originals have the claimed objects, and their written bytes are the fields. The
//! rest of the originals' state is the copy's: no instruction that the copy has reads or writes the
//! bytes, by the third axiom and the rule about operands. The calls themselves change nothing that
//! the program observes. A removed call may move objects in some runs of the originals. The copy
//! behaves as a run of the originals in which such calls move none.
//!
//! *Entries into the copy.* A run that enters has executed the removed calls, and they may have
//! moved objects. The field of the real object has changed then, and the value stored has not. So
//! no entry provides a value that has ever been a field across a removed call, unless a move cannot
//! change it ([`Objects::may_move`], `no_run_enters_with_a_field_that_has_moved`). An object that
//! is alive where a run enters has no other fields that a removed call may have changed.

use ir::{Function, Imm, Inst, InstData, Memory, Module, Opcode, Target, Type, Value, ValueDef};
use std::collections::BTreeMap;
use std::sync::Arc;
use transition::copy::{InstanceId, ObjectForm, ObjectState};

/// The objects at a place of the walk, at most one of each call. Places share what stays as it is,
/// so N objects in a row take N steps each, and not N copies.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Objects(Arc<Vec<Arc<ObjectState>>>);

/// A removed instruction that does nothing the rules know. The walk refuses the copy.
pub(super) struct NotRemovable;

/// What the walk knows of an original of an instance, at a removed instruction.
pub(super) struct Removed<'a> {
    pub(super) module: Option<&'a Module>,
    pub(super) copy: &'a Function,
    pub(super) body: &'a Function,
    pub(super) id: InstanceId,
    pub(super) inst: Inst,
}

impl Objects {
    /// The claimed objects at a start of a block. `None` if two are of one call.
    pub(super) fn claimed(states: &[ObjectState]) -> Option<Objects> {
        let is_new = |(index, state): (usize, &ObjectState)| {
            states[..index].iter().all(|other| other.site != state.site)
        };
        let shared = || states.iter().cloned().map(Arc::new).collect();
        states.iter().enumerate().all(is_new).then(|| Objects(Arc::new(shared())))
    }

    pub(super) fn states(&self) -> &Arc<Vec<Arc<ObjectState>>> {
        &self.0
    }

    fn state_mut(&mut self, object: usize) -> &mut ObjectState {
        Arc::make_mut(&mut Arc::make_mut(&mut self.0)[object])
    }

    fn of(&self, id: InstanceId, value: Value) -> Option<(usize, ObjectForm)> {
        let found = |(index, state): (usize, &Arc<ObjectState>)| {
            state.forms.get(&(id, value)).map(|form| (index, *form))
        };
        self.0.iter().enumerate().find_map(found)
    }

    /// Whether a value of an original is a form of an object.
    pub(super) fn has(&self, id: InstanceId, value: Value) -> bool {
        self.of(id, value).is_some()
    }

    /// Executes a removed instruction. `name` gives the claimed name of a value.
    pub(super) fn execute(
        &mut self,
        at: &Removed<'_>,
        name: impl Fn(Value) -> Option<Value>,
    ) -> Result<(), NotRemovable> {
        let inst = at.body.inst(at.inst);
        match inst.opcode {
            Opcode::Call => self.begin(at, inst),
            Opcode::Store => self.store(at, inst, name),
            Opcode::Load => self.load(at, inst, name),
            Opcode::RefBits => self.derive(at, inst, ObjectForm::Reference, ObjectForm::Word),
            Opcode::Wrap if inst.ty == Type::I32 => {
                self.derive(at, inst, ObjectForm::Word, ObjectForm::Address)
            }
            _ => self.decide(at, inst, name),
        }
        .ok_or(NotRemovable)
    }

    /// A call with constant arguments of a function that makes objects.
    fn begin(&mut self, at: &Removed<'_>, inst: &InstData) -> Option<()> {
        let Imm::Func(func) = inst.imm else { return None };
        let is_allocator = at.module?.funcs.get(func)?.effect.is_allocator();
        let are_constants = inst.args.iter().all(|arg| at.body.constant(*arg).is_some());
        if !is_allocator || !are_constants {
            return None;
        }
        let site = (at.id, at.inst);
        let states = Arc::make_mut(&mut self.0);
        // The object that this call made before has no name any more.
        states.retain(|state| state.site != site);
        let forms = BTreeMap::from([((at.id, inst.result()?), ObjectForm::Reference)]);
        let (fields, is_lost) = (BTreeMap::new(), false);
        states.push(Arc::new(ObjectState { site, forms, fields, is_lost }));
        Some(())
    }

    fn derive(
        &mut self,
        at: &Removed<'_>,
        inst: &InstData,
        from: ObjectForm,
        to: ObjectForm,
    ) -> Option<()> {
        let (object, form) = self.of(at.id, *inst.args.first()?)?;
        let result = inst.result()?;
        (form == from).then(|| self.state_mut(object).forms.insert((at.id, result), to))?;
        Some(())
    }

    /// The object whose address is the first operand, with the offset of the access, if this
    /// lies in the bytes of the object.
    fn accessed(&self, at: &Removed<'_>, inst: &InstData, ty: Type) -> Option<(usize, u64)> {
        let (object, form) = self.of(at.id, *inst.args.first()?)?;
        let Imm::Address(memory, offset) = inst.imm else { return None };
        let size = self.argument(at, object, 0)?;
        let is_inside = offset.checked_add(u64::from(ty.bytes()))? <= size;
        let is_right = form == ObjectForm::Address && memory == Memory::from_u32(0) && is_inside;
        is_right.then_some((object, offset))
    }

    fn store(
        &mut self,
        at: &Removed<'_>,
        inst: &InstData,
        name: impl Fn(Value) -> Option<Value>,
    ) -> Option<()> {
        let [_, stored] = inst.args[..] else { return None };
        let (object, offset) = self.accessed(at, inst, inst.ty)?;
        // A form has no name.
        let value = name(stored)?;
        let bytes = u64::from(inst.ty.bytes());
        if at.copy.value_type(value) != inst.ty {
            return None;
        }
        // A store over a part of another field would leave the rest of the field.
        let ends =
            |(start, value): (&u64, &Value)| start + u64::from(at.copy.value_type(*value).bytes());
        let fields = &mut self.state_mut(object).fields;
        let is_apart =
            |(start, of): (&u64, &Value)| ends((start, of)) <= offset || offset + bytes <= *start;
        let is_over = |(start, of): (&u64, &Value)| {
            *start == offset && at.copy.value_type(*of).bytes() == inst.ty.bytes()
        };
        if !fields.iter().all(|field| is_apart(field) || is_over(field)) {
            return None;
        }
        fields.insert(offset, value);
        Some(())
    }

    fn load(
        &self,
        at: &Removed<'_>,
        inst: &InstData,
        name: impl Fn(Value) -> Option<Value>,
    ) -> Option<()> {
        let (object, offset) = self.accessed(at, inst, inst.ty)?;
        let value = *self.0[object].fields.get(&offset)?;
        let is_field = at.copy.value_type(value) == inst.ty && name(inst.result()?) == Some(value);
        is_field.then_some(())
    }

    /// An operation on the word of an object and constants, whose result the upper half of the word
    /// decides.
    fn decide(
        &self,
        at: &Removed<'_>,
        inst: &InstData,
        name: impl Fn(Value) -> Option<Value>,
    ) -> Option<()> {
        let result = inst.result()?;
        let word = |low: u64| {
            let bits = |arg: &Value| match self.of(at.id, *arg) {
                Some((object, ObjectForm::Word)) => self.word(at, object, low),
                Some(_) => None,
                None => at.body.constant(*arg),
            };
            let bits: Vec<u64> = inst.args.iter().map(bits).collect::<Option<_>>()?;
            match (inst.opcode, &bits[..]) {
                (Opcode::Ushr, [word, by]) if inst.ty == Type::I64 => Some(word >> (by & 63)),
                (Opcode::Eq, [a, b]) if inst.ty == Type::I64 => Some(u64::from(a == b)),
                (Opcode::Ne, [a, b]) if inst.ty == Type::I64 => Some(u64::from(a != b)),
                (Opcode::Ult, [a, b]) if inst.ty == Type::I64 => Some(u64::from(a < b)),
                _ => None,
            }
        };
        let is_about_word =
            |arg: &Value| matches!(self.of(at.id, *arg), Some((_, ObjectForm::Word)));
        if inst.args.iter().filter(|arg| is_about_word(arg)).count() != 1 {
            return None;
        }
        // Each of these operations is monotone in the lower half of the word, or equal but for one
        // word, if the other operand is a constant. So equal results for the least and the greatest
        // lower half, and for the constant's, are the results for all. A shift by the word is
        // neither: equal results for the shifts by 0 and by 63 are results about 0.
        let constants = inst.args.iter().filter_map(|arg| at.body.constant(*arg));
        let halves = [0, u64::from(u32::MAX)].into_iter().chain(constants.map(|c| c & 0xffff_ffff));
        let mut results = halves.map(word);
        let first = results.next()??;
        let is_decided = results.all(|other| other == Some(first));
        let constant = name(result).filter(|name| at.copy.has_value(*name))?;
        // A frame gets the constant as the contents of the result.
        let has_type = at.copy.value_type(constant) == at.body.value_type(result);
        let is_right = is_decided && at.copy.constant(constant) == Some(first);
        (is_right && has_type).then_some(())
    }

    /// The word of an object with this lower half.
    fn word(&self, at: &Removed<'_>, object: usize, low: u64) -> Option<u64> {
        Some(self.argument(at, object, 1)? & !0xffff_ffff | low)
    }

    /// A constant argument of the call that made an object. `None` for an object of another
    /// instance, which no removed instruction of this one is about.
    fn argument(&self, at: &Removed<'_>, object: usize, index: usize) -> Option<u64> {
        let (id, site) = self.0[object].site;
        let is_here = id == at.id && at.body.has_inst(site);
        let call = is_here.then(|| at.body.inst(site))?;
        at.body.constant(*call.args.get(index)?)
    }

    /// The fields that a move of objects may change, as values of the copy.
    pub(super) fn may_move<'a>(&'a self, copy: &'a Function) -> impl Iterator<Item = Value> + 'a {
        let fields = self.0.iter().flat_map(|state| state.fields.values().copied());
        fields.filter(|value| !is_fixed(copy, *value))
    }

    /// Forgets what a move of objects may change.
    pub(super) fn move_objects(&mut self, copy: &Function) {
        let moves = |state: &Arc<ObjectState>| !state.fields.values().all(|of| is_fixed(copy, *of));
        if !self.0.iter().any(moves) {
            return;
        }
        for state in Arc::make_mut(&mut self.0).iter_mut().filter(|state| moves(state)) {
            let state = Arc::make_mut(state);
            let before = state.fields.len();
            state.fields.retain(|_, value| is_fixed(copy, *value));
            state.is_lost |= state.fields.len() < before;
        }
    }

    /// Whether a field is the value of a definition, which is about to be executed anew.
    pub(super) fn name_one_of(&self, values: &[Value]) -> bool {
        self.0.iter().any(|state| state.fields.values().any(|field| values.contains(field)))
    }

    /// Whether the objects claimed where an edge leads are objects here.
    pub(super) fn lead_to(&self, claimed: &[ObjectState], params: &[Value], to: &Target) -> bool {
        let has = |wanted: &ObjectState| {
            let Some(here) = self.0.iter().find(|state| state.site == wanted.site) else {
                return false;
            };
            let field = |(offset, value): (&u64, &Value)| {
                // A parameter of the block has the contents of its argument.
                let value = match params.iter().position(|param| param == value) {
                    Some(index) => to.args.get(index),
                    None => Some(value),
                };
                here.fields.get(offset) == value
            };
            let forms =
                wanted.forms.iter().all(|(value, form)| here.forms.get(value) == Some(form));
            let keeps_all =
                wanted.is_lost || !here.is_lost && wanted.fields.len() == here.fields.len();
            forms && keeps_all && wanted.fields.iter().all(field)
        };
        claimed.iter().all(has)
    }
}

/// Whether the contents of a value do not depend on where objects lie: a constant, a float, or the
/// bits of a float.
fn is_fixed(copy: &Function, value: Value) -> bool {
    if copy.constant(value).is_some() || copy.value_type(value).is_float() {
        return true;
    }
    let ValueDef::Result(inst, _) = copy.value_def(value) else { return false };
    let inst = copy.inst(inst);
    let is_float = |arg: &Value| copy.value_type(*arg).is_float();
    inst.opcode == Opcode::Bitcast && inst.args.iter().all(is_float)
}
