//! The bits that stand for references.
//!
//! A reference is null or names something; programs can hand it on, keep it and ask whether it is
//! null, and nothing else tells two of them apart. Its bits are 64: 0 for null; of a function of
//! the module one more than its id; of a thing of the host's, whatever the host gave. So a
//! reference to a function is a constant (`const.funcref @f`), and what compares bits, states and
//! traces among them, compares references.

use crate::entity::Func;

/// The bits of null, of either type.
pub const NULL: u64 = 0;

/// The bits of a reference to a function, or of null.
pub fn of_func(func: Option<Func>) -> u64 {
    func.map_or(NULL, |func| u64::from(func.as_u32()) + 1)
}

/// The function that bits refer to; `None` for null, and for bits that are no function's.
pub fn func(bits: u64) -> Option<Func> {
    let id = u32::try_from(bits.checked_sub(1)?).ok()?;
    // `u32::MAX` is the reserved index of `cranelift-entity`.
    (id != u32::MAX).then(|| Func::from_u32(id))
}
