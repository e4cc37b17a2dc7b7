//! The representation of references as bits.
//!
//! A reference is null or refers to an entity. Programs can pass it on, store it, and test whether
//! it is null; no other operation distinguishes two references. Its representation has 64 bits:
//!
//! - Null is 0.
//! - A reference to a function of the module is the function's id plus one.
//! - A reference to an entity of the host has the bits that the host chose.
//!
//! References of type `ref` are others: words of the embedder's heap, which a collector may change
//! in every call. The text form has them as numbers. A `ref` stands for one entity throughout. The
//! word that it has at a time is state, which `ref_bits` and `ref_of` read
//! ([`crate::place::Place::Layout`]). A constant of type `ref` is a word that no collector changes,
//! as the embedder promises.
//!
//! A reference to a function is therefore a constant (`const.funcref @f`). States and traces
//! compare references by their bits.

use crate::entity::Func;
use crate::types::Type;
use cranelift_entity::EntityRef;

/// The bits of a null reference, of either type.
pub const NULL: u64 = 0;

/// The bits of a reference to a function; `None` gives null.
pub fn of_func(func: Option<Func>) -> u64 {
    func.map_or(NULL, |func| u64::from(func.as_u32()) + 1)
}

/// The function that the bits refer to; `None` for null, and for bits that refer to no function.
pub fn func(bits: u64) -> Option<Func> {
    let id = u32::try_from(bits.checked_sub(1)?).ok()?;
    // `u32::MAX` is the reserved index of `cranelift-entity`.
    (id != u32::MAX).then(|| Func::from_u32(id))
}

/// Whether the bits of a reference of this type may be a constant of a module with so many
/// functions: null, or for a `funcref` one of its functions. References to entities of the host are
/// no constants.
pub fn is_constant(funcs: usize, ty: Type, bits: u64) -> bool {
    let is_declared = || func(bits).is_some_and(|func| func.index() < funcs);
    bits == NULL || (ty == Type::FuncRef && is_declared())
}
