//! Accesses: a place in memory together with the address that its offset counts from.
//!
//! [`crate::place`] derives facts from the distance of two addresses; this module computes that
//! distance. It represents an address as a base value plus a constant, by stripping additions and
//! subtractions of constants. Two addresses with the same base have a known distance. A pass that
//! knows equal values can make them count as one base.

use crate::entity::{Inst, Memory, Value};
use crate::function::Function;
use crate::opcode::Opcode;
use crate::place::Place;
use crate::types::Type;

/// The number of additions and subtractions stripped off an address at most. Earlier passes merge
/// several additions of constants into one. The limit is also needed for termination: in
/// unreachable code, additions may form a cycle.
const ADDITIONS: usize = 8;

/// An address operand: a value plus a constant, modulo 2^32 or 2^64, as its type says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Address {
    base: Option<Value>,
    /// Below 2^32 for an `i32`.
    offset: u64,
}

impl Address {
    /// Decomposes an `i32` or `i64` value into a base and a constant. `leader` maps each value to
    /// the representative of the values equal to it. Cost: constant.
    ///
    /// # Panics
    /// When the function lacks the value.
    pub fn of(function: &Function, value: Value, leader: impl Fn(Value) -> Value) -> Address {
        let ty = function.value_type(value);
        let (mut base, mut offset) = (leader(value), 0u64);
        for _ in 0..ADDITIONS {
            match addend(function, ty, base) {
                Some((rest, constant)) => {
                    (base, offset) = (leader(rest), offset.wrapping_add(constant))
                }
                None => break,
            }
        }
        match function.constant(base) {
            Some(bits) => Address { base: None, offset: offset.wrapping_add(bits) & ty.mask() },
            None => Address { base: Some(base), offset: offset & ty.mask() },
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

    /// The constant that the address is; `None` if it has a base.
    pub fn constant(self) -> Option<u64> {
        self.base.is_none().then_some(self.offset)
    }

    /// The address if its base has these bits. An address without a base stays as it is.
    #[must_use]
    pub fn with_base(self, ty: Type, bits: u64) -> Address {
        let plus = if self.base.is_some() { bits } else { 0 };
        Address { base: None, offset: self.offset.wrapping_add(plus) & ty.mask() }
    }

    /// The address `other` minus this address, modulo 2^64; `None` if the bases differ. For `i32`
    /// addresses, it is meaningful modulo 2^32.
    pub fn distance_to(self, other: Address) -> Option<u64> {
        (self.base == other.base).then(|| other.offset.wrapping_sub(self.offset))
    }
}

/// The operand and the constant of an addition or a subtraction of a constant, at type `ty`; `None`
/// for any other value.
fn addend(function: &Function, ty: Type, value: Value) -> Option<(Value, u64)> {
    let data = function.inst(function.defining_inst(value)?);
    let [a, b] = *data.args.as_slice() else { return None };
    let constant = |value: Value| function.constant(value);
    match data.opcode {
        Opcode::Add if data.ty == ty => {
            constant(b).map(|c| (a, c)).or_else(|| constant(a).map(|c| (b, c)))
        }
        Opcode::Sub if data.ty == ty => constant(b).map(|c| (a, c.wrapping_neg())),
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
    /// `leader` has the meaning it has in [`Address::of`].
    ///
    /// # Panics
    /// When the function lacks the instruction.
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
    /// `leader` has the meaning it has in [`Address::of`].
    ///
    /// # Panics
    /// When the function lacks the instruction.
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
    /// for equal addresses, and for constant addresses of a linear memory.
    pub fn vouches_for(&self, other: &Access) -> bool {
        let ((one, place), (two, p)) = (self.above_zero(), other.above_zero());
        one == two && place.vouches_for(&p)
    }

    /// A key that accesses share if one of them may vouch for the other; `None` for an access of
    /// anything but bytes.
    pub fn voucher_key(&self) -> Option<(Memory, Option<Address>)> {
        match self.above_zero() {
            (address, Place::Bytes { memory, .. }) => Some((memory, address)),
            _ => None,
        }
    }

    /// Whether the access is at a constant address below the size that `least` gives for its linear
    /// memory ([`Module::least_bytes`](crate::Module::least_bytes)): then it never traps.
    pub fn is_within(&self, least: impl Fn(Memory) -> u64) -> bool {
        matches!(self.above_zero(), (None, place) if place.ends_within(least))
    }

    /// The place, with the address that it counts from. An access at a constant address of a linear
    /// memory counts from 0, without an address.
    fn above_zero(&self) -> (Option<Address>, Place) {
        let constant = self.address.and_then(Address::constant);
        let counted = constant.and_then(|constant| self.place.at_constant(constant));
        counted.map_or((self.address, self.place), |place| (None, place))
    }

    fn distance_to(&self, other: &Access) -> Option<u64> {
        self.address?.distance_to(other.address?)
    }
}

#[cfg(test)]
mod tests;
