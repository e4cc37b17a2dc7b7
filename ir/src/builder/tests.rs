//! Tests of `ir::builder`.

use super::*;

/// New ids must continue right after the dense ids. The test is in this crate because no other
/// code can draw ids.
#[test]
fn the_family_continues_after_the_last_id() {
    let mut b = FunctionBuilder::new("f", Signature::new(&[Type::I32], &[Type::I32]));
    let (entry, last) = (b.create_block(), b.reserve_block());
    let arg = b.append_param(entry, Type::I32);
    let variable = b.declare_var(Type::I32);
    b.switch_to(entry);
    b.def_var(variable, arg);
    b.jump(last, &[]);
    b.place_block(last);
    b.switch_to(last);
    let value = b.use_var(variable);
    b.ret(&[value]);
    let function = b.finish().expect("complete");
    assert_eq!(function.family().new_inst(), Inst::from_u32(2));
    assert_eq!(function.family().new_value(), Value::from_u32(1));
    assert_eq!(function.family().new_block(), Block::from_u32(2));
}

#[test]
fn a_block_that_is_left_open_keeps_its_variables() {
    let mut b = FunctionBuilder::new("f", Signature::new(&[Type::I32], &[Type::I32]));
    let (entry, other) = (b.create_block(), b.create_block());
    let arg = b.append_param(entry, Type::I32);
    let (one, two) = (b.declare_var(Type::I32), b.declare_var(Type::I32));
    b.switch_to(entry);
    b.def_var(one, arg);
    // The other block sets both variables, before the entry continues.
    b.switch_to(other);
    let read = b.use_var(one);
    b.def_var(two, read);
    b.switch_to(entry);
    assert_eq!(b.use_var(one), arg);
    b.def_var(two, arg);
    b.switch_to(other);
    assert_eq!((b.use_var(one), b.use_var(two)), (read, read));
    b.switch_to(entry);
    assert_eq!(b.use_var(two), arg);
    assert_eq!(b.accesses(), 4);
    b.jump(other, &[]);
    b.switch_to(other);
    assert_eq!(b.use_var(two), read);
    b.ret(&[read]);
    let function = b.finish().expect("complete");
    let last = function.blocks().nth(1).and_then(|block| function.block_insts(block).last());
    assert_eq!(function.inst(last.expect("a return")).args.first(), Some(&arg));
}
