//! The state of a machine besides its memories: globals, tables and segments.

use super::memory::{Memories, OutOfBounds, mix};
use super::tables::Tables;
use cranelift_entity::EntityRef;
use ir::inst::Imm;
use transition::mapping::Write;

/// The place of a global in the digest. Words of memories have places below 2^61.
fn global_place(index: usize) -> u64 {
    (1 << 63) | index as u64
}

/// The state of one machine besides its memories: globals, tables and segments.
#[derive(Clone, Debug)]
pub(super) struct Globals {
    values: Vec<u64>,
    pub(super) tables: Tables,
    /// The digest of the globals alone.
    digest: u64,
}

impl Globals {
    /// No globals.
    pub(super) fn new(tables: Tables) -> Globals {
        Globals { values: Vec::new(), tables, digest: 0 }
    }

    /// Adds a global with its initial value.
    pub(super) fn add(&mut self, init: u64) {
        self.values.push(0);
        self.set(self.values.len() - 1, init);
    }

    /// The values, and the tables.
    pub(super) fn split(&mut self) -> (&[u64], &mut Tables) {
        (&self.values, &mut self.tables)
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> u64 {
        self.values[index]
    }

    pub(super) fn set(&mut self, index: usize, bits: u64) {
        let place = global_place(index);
        let value = &mut self.values[index];
        self.digest = self.digest.wrapping_sub(mix(place, *value)).wrapping_add(mix(place, bits));
        *value = bits;
    }

    /// Writes a global without updating the digest. [`Globals::refresh`] repairs it.
    #[inline]
    pub(super) fn set_raw(&mut self, index: usize, bits: u64) {
        self.values[index] = bits;
    }

    /// The values, to be written without updating the digest. [`Globals::refresh`] repairs it.
    pub(super) fn values_raw(&mut self) -> &mut [u64] {
        &mut self.values
    }

    /// Recomputes the digest of the globals. Cost: their number.
    pub(super) fn refresh(&mut self) {
        self.digest = self.values_digest();
    }

    pub(super) fn values(&self) -> &[u64] {
        &self.values
    }

    /// The digest of the globals. Where memory is tracked, it covers the tables too.
    #[inline]
    pub(super) fn tracked_digest(&self) -> u64 {
        self.digest.wrapping_add(self.tables.tracked_digest())
    }

    /// The digest of globals and tables. Cost: constant where memory is tracked, else the size of
    /// the tables.
    pub(super) fn digest(&self) -> u64 {
        self.digest.wrapping_add(self.tables.digest())
    }

    pub(super) fn computed_digest(&self) -> u64 {
        self.values_digest().wrapping_add(self.tables.computed_digest())
    }

    /// The contribution of the globals to the digest. Cost: their number.
    fn values_digest(&self) -> u64 {
        let values = self.values.iter().enumerate();
        values
            .fold(0, |digest, (index, value)| digest.wrapping_add(mix(global_place(index), *value)))
    }
}

/// The digest of memory that effects carry; 0 where memory is not tracked.
#[inline]
pub(super) fn observed_digest(memories: &Memories, globals: &Globals) -> u64 {
    if memories.tracked() {
        memories.tracked_digest().wrapping_add(globals.tracked_digest())
    } else {
        0
    }
}

/// Executes a write of one place: a global, or bytes of a memory.
///
/// # Errors
/// When the write is out of bounds, or writes no single place; nothing is written then.
pub(super) fn execute(
    memories: &mut Memories,
    globals: &mut Globals,
    write: &Write,
) -> Result<(), OutOfBounds> {
    match (write.imm, write.args.as_slice()) {
        (Imm::Global(global), [bits]) if global.index() < globals.values.len() => {
            globals.set(global.index(), *bits);
            Ok(())
        }
        _ => memories.store(write),
    }
}
