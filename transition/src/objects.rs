//! Objects that entries make: those that the originals of a copy have at a place, and the copy has
//! not ([`crate::copy::ObjectClaim`]).
//!
//! Example: `call @new(24, WORD)` made a point in the original, and two stores filled it. The entry
//! has these steps and replays, which read the values of the fields where the copy has them:
//!
//! ```text
//! $0 = const.i32 24
//! $1 = const.i64 WORD
//! $2 = call @new $0, $1
//! $3 = ref_bits.i64 $2
//! $4 = wrap.i32 $3
//! store.i64 @memory0[$4 + 8], %a
//! store.i64 @memory0[$4 + 16], %b
//! ```
//!
//! All calls precede the words, because a call may move the objects made before.

use crate::compose::ComposedCode;
use crate::copy::ObjectForm;
use crate::mapping::{Assign, Operand, Replay, Step};
use ir::{Func, Imm, Inst, Memory, Opcode, Type, Value};
use smallvec::{SmallVec, smallvec};

/// An object to make.
#[derive(Clone, Debug)]
pub struct MadeObject {
    /// The call of the original that made it.
    pub site: Inst,
    /// The allocator.
    pub func: Func,
    /// The arguments of the call: types and bits.
    pub args: Vec<(Type, u64)>,
    /// The fields: offset, type, and what was stored.
    pub fields: Vec<(u64, Type, MadeField)>,
    /// The values of frames that are the object's reference, word or address, each with the index
    /// of its frame.
    pub names: Vec<(usize, Value, ObjectForm)>,
}

/// The contents of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MadeField {
    /// Bits that each run has there. No entry needs to provide them
    /// (`objects_of_inlined_code_are_made_at_exits`).
    Constant(u64),
    /// The contents of a value of the copy.
    Value(Value),
}

/// The steps that compute the forms of an object.
struct ObjectSteps {
    reference: Operand,
    word: Operand,
    address: Operand,
}

impl ComposedCode {
    /// Appends code that makes objects. `given` are the operands that hold values of the copy,
    /// ascending. Objects of which a field has no operand are left out. Returns the assignments to
    /// frames.
    pub(crate) fn make_objects(
        &mut self,
        objects: &[MadeObject],
        given: &[Assign],
    ) -> Vec<(usize, Assign)> {
        let operand = |value: Value| {
            let at = given.binary_search_by_key(&value, |assign| assign.value).ok()?;
            Some(given[at].from)
        };
        let is_known = |field: &MadeField| match field {
            MadeField::Constant(_) => true,
            MadeField::Value(value) => operand(*value).is_some(),
        };
        let has_fields = |of: &&MadeObject| of.fields.iter().all(|(_, _, field)| is_known(field));
        let objects: Vec<&MadeObject> = objects.iter().filter(has_fields).collect();
        let references: Vec<Operand> = objects.iter().map(|of| self.call(of)).collect();
        let mut assigns = Vec::new();
        for (of, reference) in objects.iter().zip(references) {
            let steps = self.forms(reference);
            for (offset, ty, field) in &of.fields {
                let value = match field {
                    MadeField::Constant(bits) => self.constant(*ty, *bits),
                    MadeField::Value(value) => {
                        operand(*value).expect("objects without are left out")
                    }
                };
                self.replay(Replay {
                    inst: of.site,
                    opcode: Opcode::Store,
                    ty: *ty,
                    imm: Imm::Address(Memory::from_u32(0), *offset),
                    args: smallvec![steps.address, value],
                });
            }
            assigns.extend(of.names.iter().map(|(frame, value, form)| {
                let from = match form {
                    ObjectForm::Reference => steps.reference,
                    ObjectForm::Word => steps.word,
                    ObjectForm::Address => steps.address,
                };
                (*frame, Assign { value: *value, from })
            }));
        }
        assigns
    }

    fn call(&mut self, of: &MadeObject) -> Operand {
        let args = of.args.iter().map(|(ty, bits)| self.constant(*ty, *bits)).collect();
        self.add_step(Step::object(of.func, self.object_count(), args))
    }

    fn constant(&mut self, ty: Type, bits: u64) -> Operand {
        let (opcode, args) = (Opcode::Const, SmallVec::new());
        self.add_step(Step { opcode, ty, operand_ty: ty, bits, args })
    }

    fn forms(&mut self, reference: Operand) -> ObjectSteps {
        let mut step = |opcode, ty, operand_ty, arg| {
            self.add_step(Step { opcode, ty, operand_ty, bits: 0, args: smallvec![arg] })
        };
        let word = step(Opcode::RefBits, Type::I64, Type::Ref, reference);
        let address = step(Opcode::Wrap, Type::I32, Type::I64, word);
        ObjectSteps { reference, word, address }
    }
}

/// Removes the replays into objects that nothing else reads. The steps for these objects go with
/// all other unread steps. Cost: linear in the code, for each object that others hold.
pub(crate) fn without_unread_objects<'a>(
    steps: &[Step],
    replays: &mut Vec<Replay>,
    assigns: impl Iterator<Item = &'a Assign>,
) {
    if !steps.iter().any(|step| step.allocator().is_some()) {
        return;
    }
    let fills: Vec<Option<usize>> =
        replays.iter().map(|replay| filled(steps, *replay.args.first()?)).collect();
    let mut read = vec![false; steps.len()];
    assigns.for_each(|assign| mark(steps, assign.from, &mut read));
    let mut open: Vec<usize> = (0..replays.len()).collect();
    loop {
        // A replay counts that fills no object, or one that is read. Its operands are read then.
        let (counted, rest): (Vec<usize>, Vec<usize>) =
            open.into_iter().partition(|at| fills[*at].is_none_or(|object| read[object]));
        if counted.is_empty() {
            break;
        }
        let args = counted.iter().flat_map(|at| &replays[*at].args);
        args.for_each(|arg| mark(steps, *arg, &mut read));
        open = rest;
    }
    let mut of = fills.iter();
    replays.retain(|_| of.next().copied().flatten().is_none_or(|object| read[object]));
}

/// The step that makes the object whose address an operand is.
fn filled(steps: &[Step], address: Operand) -> Option<usize> {
    let mut at = address;
    while let Operand::Step(index) = at {
        let step = steps.get(index as usize)?;
        match step.opcode {
            Opcode::Call => return Some(index as usize),
            Opcode::RefBits | Opcode::Wrap => at = *step.args.first()?,
            _ => return None,
        }
    }
    None
}

/// Marks the steps from which an operand is computed: any of them may read an object
/// (`objects_are_filled_whatever_reads_them`).
fn mark(steps: &[Step], operand: Operand, read: &mut [bool]) {
    let mut open = vec![operand];
    while let Some(operand) = open.pop() {
        let Operand::Step(index) = operand else { continue };
        let Some(step) = steps.get(index as usize) else { continue };
        if !std::mem::replace(&mut read[index as usize], true) {
            open.extend(step.args.iter().copied());
        }
    }
}
