//! Operations on ranges of memories, on tables and on segments: what is too rare or too long for the loop.
//!
//! Bounds are checked before anything is written.

use super::memory::{Globals, Memories};
use super::program::Program;
use super::tables::{SegmentKind, Tables, within};
use super::trace::Trace;
use crate::inst::Imm;
use crate::opcode::Opcode;
use crate::trap::TrapKind;
use cranelift_entity::EntityRef;

/// One operation, pre-decoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct BulkOp {
    pub(super) opcode: Opcode,
    pub(super) imm: Imm,
    /// The slots of the operands, as many as there are.
    pub(super) args: [u32; 3],
    /// The slot of the result, if there is one.
    pub(super) result: Option<u32>,
}

/// Bytes and entries that one unit of fuel pays for.
const PER_FUEL: u64 = 1024;

impl BulkOp {
    /// The fuel it needs beyond that of any instruction: else one that fills memory would cost what a sum costs. What is out
    /// of bounds moves nothing, and costs no more.
    pub(super) fn extra_fuel(&self, slots: &[u64], memories: &Memories, tables: &Tables) -> u64 {
        let (index, most) = match (self.opcode, self.imm) {
            (Opcode::TableGrow, _) => (1, u64::from(tables.entries_left())),
            (_, Imm::Memory(to) | Imm::Memories(to, _) | Imm::MemoryData(to, _)) => {
                (2, memories.bytes(to).len() as u64)
            }
            (Opcode::TableFill, Imm::Table(to)) => (2, tables.size(to).into()),
            (_, Imm::Tables(to, _) | Imm::TableElem(to, _)) => (2, tables.size(to).into()),
            _ => return 0,
        };
        let count = self.arg(slots, index);
        if count > most { 0 } else { count / PER_FUEL }
    }

    /// The bits of an operand. A poisoned one, which only a wrong transition makes, is whatever its bits are.
    fn arg(&self, slots: &[u64], index: usize) -> u64 {
        slots[self.args[index] as usize]
    }
}

/// What an operation works on.
pub(super) struct Bulk<'a> {
    pub(super) program: &'a Program,
    pub(super) memories: &'a mut Memories,
    pub(super) globals: &'a mut Globals,
    pub(super) trace: &'a mut Trace,
}

impl Bulk<'_> {
    /// Performs an operation on the values of a frame.
    pub(super) fn perform(&mut self, op: BulkOp, slots: &mut [u64]) -> Result<(), TrapKind> {
        let args = [0, 1, 2].map(|index| op.arg(slots, index));
        let result = self.evaluate(op, args)?;
        if let Some(slot) = op.result {
            slots[slot as usize] = result;
        }
        Ok(())
    }

    fn tables(&mut self) -> &mut Tables {
        &mut self.globals.tables
    }

    fn evaluate(&mut self, op: BulkOp, [a, b, c]: [u64; 3]) -> Result<u64, TrapKind> {
        match op.imm {
            Imm::Memory(_) | Imm::Memories(..) | Imm::MemoryData(..) => {
                self.on_memory(op.imm, [a, b, c]).ok_or(TrapKind::MemoryOutOfBounds).map(|()| 0)
            }
            Imm::Data(segment) => {
                self.tables().drop_segment(SegmentKind::Data, segment.index());
                Ok(0)
            }
            Imm::Elem(segment) => {
                self.tables().drop_segment(SegmentKind::Elem, segment.index());
                Ok(0)
            }
            _ => self.on_table(op, [a, b, c]).ok_or(TrapKind::TableOutOfBounds),
        }
    }

    fn on_memory(&mut self, imm: Imm, [to, b, count]: [u64; 3]) -> Option<()> {
        match imm {
            Imm::Memory(memory) => self.memories.fill(memory, to, b as u8, count).ok(),
            Imm::Memories(target, source) => self.memories.copy((target, to), (source, b), count).ok(),
            Imm::MemoryData(memory, segment) => {
                let bytes = &self.program.declarations().data[segment.index()].bytes;
                let bytes = self.globals.tables.contents(SegmentKind::Data, segment.index(), bytes);
                let from = within(bytes.len(), b, count).ok()?;
                self.memories.write(memory, to, &bytes[from]).ok()
            }
            _ => unreachable!("interp: {imm:?} is of no memory"),
        }
    }

    fn on_table(&mut self, op: BulkOp, [a, b, c]: [u64; 3]) -> Option<u64> {
        let tables = &mut self.globals.tables;
        match (op.opcode, op.imm) {
            (Opcode::TableGet, Imm::Table(table)) => return tables.get(table, a),
            (Opcode::TableSet, Imm::Table(table)) => tables.fill(table, a, b, 1).ok()?,
            (Opcode::TableSize, Imm::Table(table)) => return Some(tables.size(table).into()),
            (Opcode::TableFill, Imm::Table(table)) => tables.fill(table, a, b, c).ok()?,
            (Opcode::TableGrow, Imm::Table(table)) => {
                let by = b as u32;
                let result = tables.grow(table, a, by).unwrap_or(u32::MAX);
                let digest = super::exec::observed_digest(self.memories, self.globals);
                self.trace.grow_table(table, a, by, result, digest);
                return Some(result.into());
            }
            (_, Imm::Tables(to, from)) => tables.copy((to, a), (from, b), c).ok()?,
            (_, Imm::TableElem(table, segment)) => {
                let entries = &self.program.declarations().elements[segment.index()].entries;
                let entries = tables.contents(SegmentKind::Elem, segment.index(), entries);
                tables.write(table, a, b, c, entries).ok()?;
            }
            (opcode, imm) => unreachable!("interp: {} has immediate {imm:?}", opcode.name()),
        }
        Some(0)
    }
}
