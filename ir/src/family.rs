//! The id space of a family of versions.

use crate::entity::{Block, Inst, Value};
use crate::function::Function;
use cranelift_entity::EntityRef;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The allocator of `Inst`, `Value` and `Block` ids, shared by all versions of one source function.
///
/// Versions derived independently draw from the same counters, so they never share a new id. An id
/// that occurs in two versions therefore refers to the same entity in both. An action records the
/// ids of its new entities. Replay takes the ids from there instead of this allocator, and so
/// produces equal ids.
#[derive(Clone, Debug, Default)]
pub struct Family {
    next: Arc<Counters>,
}

#[derive(Debug, Default)]
struct Counters {
    inst: AtomicU32,
    value: AtomicU32,
    block: AtomicU32,
}

impl PartialEq for Family {
    /// As [`Family::same_as`].
    fn eq(&self, other: &Family) -> bool {
        self.same_as(other)
    }
}

impl Eq for Family {}

impl Family {
    /// A new family without ids.
    pub fn new() -> Family {
        Family::default()
    }

    /// A family in which all ids below these bounds are already taken.
    pub(crate) fn drawn(insts: u32, values: u32, blocks: u32) -> Family {
        let (inst, value, block) =
            (AtomicU32::new(insts), AtomicU32::new(values), AtomicU32::new(blocks));
        Family { next: Arc::new(Counters { inst, value, block }) }
    }

    /// A new family in which all ids drawn from this family so far are taken.
    pub(crate) fn fork(&self) -> Family {
        let Counters { inst, value, block } = &*self.next;
        let drawn = |counter: &AtomicU32| counter.load(Ordering::Relaxed);
        Family::drawn(drawn(inst), drawn(value), drawn(block))
    }

    /// Whether two handles draw from the same counters.
    pub fn same_as(&self, other: &Family) -> bool {
        Arc::ptr_eq(&self.next, &other.next)
    }

    pub(crate) fn new_inst(&self) -> Inst {
        Inst::new(draw(&self.next.inst))
    }

    pub(crate) fn new_value(&self) -> Value {
        Value::new(draw(&self.next.value))
    }

    pub(crate) fn new_block(&self) -> Block {
        Block::new(draw(&self.next.block))
    }
}

impl Function {
    /// A copy of this version in a family of its own. The ids that this family has drawn so far are
    /// taken there; from then on both families draw the same ids, for different entities. So
    /// versions of the two families must never meet. For versions that are made on trial and
    /// dropped: they leave no gap in the ids of this family. Cost: linear in the function.
    #[must_use]
    pub fn fork(&self) -> Function {
        Function { family: self.family.fork(), ..self.clone() }
    }
}

/// Draws the next id. Panics when a family runs out of its 2^32 - 2 ids.
fn draw(counter: &AtomicU32) -> usize {
    let id = counter.fetch_add(1, Ordering::Relaxed);
    assert!(id < u32::MAX - 1, "a family ran out of ids");
    id as usize
}
