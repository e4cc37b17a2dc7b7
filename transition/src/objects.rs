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
    /// The fields: offset, type, and the value of the copy.
    pub fields: Vec<(u64, Type, Value)>,
    /// The values of frames that are the object's reference, word or address, each with the index
    /// of its frame.
    pub names: Vec<(usize, Value, ObjectForm)>,
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
        let has_fields =
            |of: &&MadeObject| of.fields.iter().all(|(_, _, value)| operand(*value).is_some());
        let objects: Vec<&MadeObject> = objects.iter().filter(has_fields).collect();
        let references: Vec<Operand> =
            objects.iter().zip(0..).map(|(of, number)| self.call(of, number)).collect();
        let mut assigns = Vec::new();
        for (of, reference) in objects.iter().zip(references) {
            let steps = self.forms(reference);
            for (offset, ty, value) in &of.fields {
                let value = operand(*value).expect("objects without are left out");
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

    fn call(&mut self, of: &MadeObject, number: u32) -> Operand {
        let constant = |(ty, bits): &(Type, u64)| {
            let (opcode, args) = (Opcode::Const, SmallVec::new());
            self.add_step(Step { opcode, ty: *ty, operand_ty: *ty, bits: *bits, args })
        };
        let args = of.args.iter().map(constant).collect();
        self.add_step(Step::object(of.func, number, args))
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

/// Removes the replays into objects that no assignment and no other replay reads. The steps for
/// these objects go with all other unread steps.
pub(crate) fn without_unread_objects<'a>(
    steps: &[Step],
    replays: &mut Vec<Replay>,
    assigns: impl Iterator<Item = &'a Assign>,
) {
    if !steps.iter().any(|step| step.allocator().is_some()) {
        return;
    }
    let made = |operand: Operand| {
        let mut at = operand;
        while let Operand::Step(index) = at {
            let step = steps.get(index as usize)?;
            match step.opcode {
                Opcode::Call => return Some(index),
                Opcode::RefBits | Opcode::Wrap => at = *step.args.first()?,
                _ => return None,
            }
        }
        None
    };
    let fills = |replay: &Replay| replay.args.first().copied().and_then(made);
    let mut read: Vec<u32> = assigns.filter_map(|assign| made(assign.from)).collect();
    read.extend(
        replays.iter().flat_map(|replay| replay.args.iter().skip(1).copied().map(made)).flatten(),
    );
    replays.retain(|replay| fills(replay).is_none_or(|object| read.contains(&object)));
}
