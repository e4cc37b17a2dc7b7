//! Accesses: a place in memory together with the address that its offset counts from.
//!
//! [`crate::place`] derives facts from the distance of two addresses; this module computes that
//! distance. It represents an address as a base value plus a constant, by stripping additions and
//! subtractions of constants. Two addresses with the same base have a known distance. A pass that
//! knows equal values can make them count as one base.

use crate::entity::{Inst, Value};
use crate::function::Function;
use crate::opcode::Opcode;
use crate::place::Place;
use crate::types::Type;

/// The number of additions and subtractions stripped off an address at most. Earlier passes merge
/// several additions of constants into one. The limit is also needed for termination: in
/// unreachable code, additions may form a cycle.
const ADDITIONS: usize = 8;

/// An address operand: a value plus a constant, modulo 2^32.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Address {
    base: Option<Value>,
    offset: u32,
}

impl Address {
    /// Decomposes an `i32` value into a base and a constant. `leader` maps each value to the
    /// representative of the values equal to it. Cost: constant.
    ///
    /// # Panics
    /// When the function does not have the value.
    pub fn of(function: &Function, value: Value, leader: impl Fn(Value) -> Value) -> Address {
        let (mut base, mut offset) = (leader(value), 0u32);
        for _ in 0..ADDITIONS {
            match addend(function, base) {
                Some((rest, constant)) => {
                    (base, offset) = (leader(rest), offset.wrapping_add(constant))
                }
                None => break,
            }
        }
        match function.constant(base) {
            Some(bits) => Address { base: None, offset: offset.wrapping_add(bits as u32) },
            None => Address { base: Some(base), offset },
        }
    }

    /// The operand of an access without bytes: it tells accesses of one place apart.
    fn operand(value: Value) -> Address {
        Address { base: Some(value), offset: 0 }
    }

    /// The value that the constant is added to; `None` if the address is a constant.
    pub fn base(self) -> Option<Value> {
        self.base
    }

    /// The address `other` minus this address, modulo 2^32; `None` if the bases differ.
    pub fn distance_to(self, other: Address) -> Option<u32> {
        (self.base == other.base).then(|| other.offset.wrapping_sub(self.offset))
    }
}

/// The operand and the constant of an addition or a subtraction of a constant; `None` for any other
/// value.
fn addend(function: &Function, value: Value) -> Option<(Value, u32)> {
    let data = function.inst(function.defining_inst(value)?);
    let [a, b] = *data.args.as_slice() else { return None };
    let constant = |value: Value| function.constant(value).map(|bits| bits as u32);
    match (data.opcode, data.ty) {
        (Opcode::Add, Type::I32) => {
            constant(b).map(|c| (a, c)).or_else(|| constant(a).map(|c| (b, c)))
        }
        (Opcode::Sub, Type::I32) => constant(b).map(|c| (a, c.wrapping_neg())),
        _ => None,
    }
}

/// The memory access of one read or write.
///
/// Comparing two accesses is valid only if both executed without a trap, and if both refer to the
/// same instances of their base values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Access {
    /// The accessed place.
    pub place: Place,
    /// The address that the place is relative to; in [`Place::Layout`], the operand whose
    /// counterpart is read. `None` for globals and sizes.
    pub address: Option<Address>,
}

impl Access {
    /// The access of an instruction that reads. `None` if it reads no place, or more than one.
    /// `leader` is as in [`Address::of`].
    ///
    /// # Panics
    /// When the function does not have the instruction.
    pub fn read(
        function: &Function,
        inst: Inst,
        leader: impl Fn(Value) -> Value,
    ) -> Option<Access> {
        let data = function.inst(inst);
        Place::read(data.opcode, data.ty, &data.imm)
            .map(|place| Access::at(function, inst, place, leader))
    }

    /// The access of an instruction that writes. `None` if it writes no place, or more than one.
    /// `leader` is as in [`Address::of`].
    ///
    /// # Panics
    /// When the function does not have the instruction.
    pub fn written(
        function: &Function,
        inst: Inst,
        leader: impl Fn(Value) -> Value,
    ) -> Option<Access> {
        let data = function.inst(inst);
        Place::written(data.opcode, data.ty, &data.imm)
            .map(|place| Access::at(function, inst, place, leader))
    }

    fn at(
        function: &Function,
        inst: Inst,
        place: Place,
        leader: impl Fn(Value) -> Value,
    ) -> Access {
        let operand = || *function.inst(inst).args.first().expect("the access has an operand");
        let address = match place {
            Place::Bytes { .. } => Some(Address::of(function, operand(), leader)),
            // Two references have two words (`words_of_two_references_are_two`).
            Place::Layout => Some(Address::operand(leader(operand()))),
            Place::Size(_) | Place::Global(_) => None,
        };
        Access { place, address }
    }

    /// As [`Place::is_apart_from`].
    pub fn is_apart_from(&self, other: &Access) -> bool {
        self.place.is_apart_from(&other.place, self.distance_to(other))
    }

    /// As [`Place::covers`].
    pub fn covers(&self, other: &Access) -> bool {
        self.place.covers(&other.place, self.distance_to(other))
    }

    /// Whether the other access cannot trap after this one did not trap: [`Place::vouches_for`],
    /// for equal addresses.
    pub fn vouches_for(&self, other: &Access) -> bool {
        self.address == other.address && self.place.vouches_for(&other.place)
    }

    fn distance_to(&self, other: &Access) -> Option<u32> {
        self.address?.distance_to(other.address?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inst::Imm;
    use crate::types::Signature;
    use crate::{FunctionBuilder, Memory};

    /// `x`, `x + 8`, `4 + (x + 8)`, `x + -8`, `8`, `8 + 4`, `x * 1`, `(x - 8) + 4`, `8 - x`.
    fn addresses() -> (Function, Vec<Value>) {
        let mut builder = FunctionBuilder::new("f", Signature::new(&[Type::I32], &[]));
        let entry = builder.create_block();
        let x = builder.append_param(entry, Type::I32);
        builder.switch_to(entry);
        let [four, eight, one] = [4, 8, 1].map(|bits| builder.constant(Type::I32, bits));
        let minus = builder.constant(Type::I32, 0xffff_fff8);
        let add = |builder: &mut FunctionBuilder, a, b| builder.op(Opcode::Add, Type::I32, &[a, b]);
        let sum = add(&mut builder, x, eight);
        let twice = add(&mut builder, four, sum);
        let less = add(&mut builder, x, minus);
        let constants = add(&mut builder, eight, four);
        let product = builder.op(Opcode::Mul, Type::I32, &[x, one]);
        let difference = builder.op(Opcode::Sub, Type::I32, &[x, eight]);
        let frame = add(&mut builder, difference, four);
        let negated = builder.op(Opcode::Sub, Type::I32, &[eight, x]);
        builder.ret(&[]);
        let function = builder.finish().expect("complete");
        let values = [x, sum, twice, less, eight, constants, product, frame, negated];
        (function, values.to_vec())
    }

    #[test]
    fn addresses_are_a_base_and_a_constant() {
        let (function, values) = addresses();
        let all: Vec<Address> = values.iter().map(|v| Address::of(&function, *v, |v| v)).collect();
        let x = values[0];
        let expected = [
            (Some(x), 0),
            (Some(x), 8),
            (Some(x), 12),
            (Some(x), 0xffff_fff8),
            (None, 8),
            (None, 12),
        ];
        for (address, (base, offset)) in all.iter().zip(expected) {
            assert_eq!((address.base(), address.offset), (base, offset));
        }
        assert_eq!((all[7].base(), all[7].offset), (Some(x), 0xffff_fffc), "a difference is a sum");
        assert_eq!(all[8].base(), Some(values[8]), "a difference from a constant is no sum");
        assert_eq!(all[6].base(), Some(values[6]), "nothing but sums is looked through");
        assert_eq!(all[3].distance_to(all[2]), Some(20), "distances wrap around");
        assert_eq!(all[0].distance_to(all[4]), None);
        let product =
            Address::of(&function, values[6], |v| if v == values[6] { values[1] } else { v });
        assert_eq!(product, all[1], "the representative of a value is decomposed too");
    }

    #[test]
    fn only_one_address_vouches() {
        let (function, values) = addresses();
        let access = |value: Value, offset| {
            let place =
                Place::read(Opcode::Load, Type::I32, &Imm::Address(Memory::from_u32(0), offset));
            Access {
                place: place.expect("a load reads"),
                address: Some(Address::of(&function, value, |v| v)),
            }
        };
        let (low, high) = (access(values[0], 0), access(values[1], 0));
        assert!(access(values[0], 4).vouches_for(&low) && !low.vouches_for(&access(values[0], 4)));
        assert!(!high.vouches_for(&low), "the sum may have wrapped");
        assert!(low.is_apart_from(&high) && access(values[0], 8).covers(&high));
        assert!(!low.is_apart_from(&access(values[6], 8)));
    }
}
