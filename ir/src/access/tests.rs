//! Tests of `ir::access`.

use super::*;
use crate::inst::Imm;
use crate::types::Signature;
use crate::{FunctionBuilder, Memory};

/// `x`, `x + 8`, `4 + (x + 8)`, `x + -8`, `8`, `8 + 4`, `x * 1`, `(x - 8) + 4`, `8 - x`.
fn addresses(ty: Type) -> (Function, Vec<Value>) {
    let mut builder = FunctionBuilder::new("f", Signature::new(&[ty], &[]));
    let entry = builder.create_block();
    let x = builder.append_param(entry, ty);
    builder.switch_to(entry);
    let [four, eight, one] = [4, 8, 1].map(|bits| builder.constant(ty, bits));
    let minus = builder.constant(ty, 8u64.wrapping_neg());
    let add = |builder: &mut FunctionBuilder, a, b| builder.op(Opcode::Add, ty, &[a, b]);
    let sum = add(&mut builder, x, eight);
    let twice = add(&mut builder, four, sum);
    let less = add(&mut builder, x, minus);
    let constants = add(&mut builder, eight, four);
    let product = builder.op(Opcode::Mul, ty, &[x, one]);
    let difference = builder.op(Opcode::Sub, ty, &[x, eight]);
    let frame = add(&mut builder, difference, four);
    let negated = builder.op(Opcode::Sub, ty, &[eight, x]);
    builder.ret(&[]);
    let function = builder.finish().expect("complete");
    let values = [x, sum, twice, less, eight, constants, product, frame, negated];
    (function, values.to_vec())
}

#[test]
fn addresses_are_a_base_and_a_constant() {
    [Type::I32, Type::I64].into_iter().for_each(check_addresses);
}

fn check_addresses(ty: Type) {
    let (function, values) = addresses(ty);
    let all: Vec<Address> = values.iter().map(|v| Address::of(&function, *v, |v| v)).collect();
    let x = values[0];
    let expected = [
        (Some(x), 0),
        (Some(x), 8),
        (Some(x), 12),
        (Some(x), 8u64.wrapping_neg() & ty.mask()),
        (None, 8),
        (None, 12),
    ];
    for (address, (base, offset)) in all.iter().zip(expected) {
        assert_eq!((address.base(), address.offset), (base, offset));
    }
    assert_eq!(
        (all[7].base(), all[7].offset),
        (Some(x), 4u64.wrapping_neg() & ty.mask()),
        "a difference is a sum"
    );
    assert_eq!(all[8].base(), Some(values[8]), "a difference from a constant is no sum");
    assert_eq!(all[6].base(), Some(values[6]), "nothing but sums is looked through");
    assert_eq!(all[3].distance_to(all[2]).map(|d| d & ty.mask()), Some(20), "they wrap around");
    assert_eq!(all[0].distance_to(all[4]), None);
    let product = Address::of(&function, values[6], |v| if v == values[6] { values[1] } else { v });
    assert_eq!(product, all[1], "the representative of a value is decomposed too");
}

#[test]
fn only_one_address_vouches() {
    let (function, values) = addresses(Type::I32);
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
    // Of constants, 8 + 4 and 12 + 0 are one place, and 8 + 0 ends earlier.
    let [eight, twelve] = [4, 5].map(|index| {
        let value = values[index];
        move |offset| access(value, offset)
    });
    assert!(eight(4).vouches_for(&twelve(0)) && twelve(0).vouches_for(&eight(0)));
    assert!(!eight(0).vouches_for(&twelve(0)));
    assert!(!eight(0).vouches_for(&low) && !low.vouches_for(&eight(0)));
    assert_eq!(eight(4).voucher_key(), twelve(0).voucher_key());
    assert_ne!(eight(4).voucher_key(), low.voucher_key());
    assert!(!low.is_apart_from(&access(values[6], 8)));
}

/// A sum with a base never counts as a constant, whatever is added to the base.
#[test]
fn constant_addresses_below_the_least_size_are_within() {
    let (function, values) = addresses(Type::I32);
    let access = |value: Value, offset| {
        let place =
            Place::read(Opcode::Load, Type::I32, &Imm::Address(Memory::from_u32(0), offset));
        Access {
            place: place.expect("a load reads"),
            address: Some(Address::of(&function, value, |v| v)),
        }
    };
    let page = |_: Memory| 65536;
    assert!(access(values[4], 0).is_within(page) && access(values[5], 0).is_within(page));
    assert!(access(values[4], 65524).is_within(page));
    assert!(!access(values[4], 65525).is_within(page), "8 + 65525 + 4 bytes");
    assert!(!access(values[1], 0).is_within(page), "the base of x + 8 is unknown");
    let known = Address::of(&function, values[1], |v| v).with_base(Type::I32, 4);
    assert_eq!(known.constant(), Some(12));
    assert_eq!(known.with_base(Type::I32, 4), known, "it has no base");
}
