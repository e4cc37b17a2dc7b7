//! Operations on ranges of memories, on tables and on segments. They are too rare or too long to be
//! inlined in the dispatch loop.
//!
//! Every operation checks its bounds before it writes anything.

use super::globals::{Globals, observed_digest};
use super::memory::{Memories, MemoryAddress, within};
use super::tables::{SegmentKind, TableSlot, Tables};
use super::trace::Trace;
use cranelift_entity::EntityRef;
use ir::entity::Memory;
use ir::inst::{Imm, InstData};
use ir::module::Module;
use ir::opcode::{Opcode, Shape};
use ir::trap::TrapKind;

/// One operation, pre-decoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct BulkOp {
    pub(super) opcode: Opcode,
    pub(super) imm: Imm,
    /// The slots of the operands; unused entries are 0.
    pub(super) args: [u32; 3],
    /// The slot of the result, if there is one.
    pub(super) result: Option<u32>,
}

impl BulkOp {
    /// Reads the operands from the slots of a frame. A poisoned operand, which only a wrong
    /// transition can produce, is used as its raw bits.
    pub(super) fn on(&self, slots: &[u64]) -> BulkRequest {
        BulkRequest {
            opcode: self.opcode,
            imm: self.imm,
            args: self.args.map(|slot| slots[slot as usize]),
        }
    }
}

/// The bytes or table entries that a unit of fuel pays for.
const PER_FUEL: u64 = 1024;

/// One operation together with the contents of its operands.
#[derive(Clone, Copy, Debug)]
pub(super) struct BulkRequest {
    opcode: Opcode,
    imm: Imm,
    args: [u64; 3],
}

impl BulkRequest {
    /// The operation that `inst` performs on `args`.
    ///
    /// # Panics
    /// When the opcode is not an operation on memories, tables or segments, or when the number of
    /// operands is wrong.
    pub(super) fn new(inst: &InstData, args: &[u64]) -> BulkRequest {
        let name = inst.opcode.name();
        assert!(
            is_operation(inst.opcode),
            "interp: {name} is not an operation on memories, tables or segments"
        );
        assert_eq!(inst.args.len(), args.len(), "interp: wrong number of operands for {name}");
        let mut all = [0; 3];
        all[..args.len()].copy_from_slice(args);
        BulkRequest { opcode: inst.opcode, imm: inst.imm, args: all }
    }

    /// Whether the operation is an effect that the trace records: growth of a memory or table.
    pub(super) fn is_traced(&self) -> bool {
        matches!(self.opcode, Opcode::MemoryGrow | Opcode::TableGrow)
    }

    /// The fuel the operation takes beyond the single unit of every instruction, so that filling a
    /// memory costs more than adding two numbers. An operation that is out of bounds writes nothing
    /// and takes no extra fuel.
    pub(super) fn extra_fuel(&self, memories: &Memories, tables: &Tables) -> u64 {
        let (index, most) = match (self.opcode, self.imm) {
            (Opcode::MemorySize | Opcode::MemoryGrow, _) => return 0,
            (Opcode::TableGrow, _) => (1, u64::from(tables.entries_left())),
            (_, Imm::Memory(to) | Imm::Memories(to, _) | Imm::MemoryData(to, _)) => {
                (2, memories.bytes(to).len() as u64)
            }
            (Opcode::TableFill, Imm::Table(to)) => (2, tables.size(to).into()),
            (_, Imm::Tables(to, _) | Imm::TableElem(to, _)) => (2, tables.size(to).into()),
            _ => return 0,
        };
        let count: u64 = self.args[index];
        if count > most { 0 } else { count / PER_FUEL }
    }
}

/// Whether [`Bulk::perform`] implements the opcode.
fn is_operation(opcode: Opcode) -> bool {
    use Shape::*;
    let on_memory = matches!(
        opcode.shape(),
        MemorySize | MemoryGrow | MemoryCopy | MemoryFill | MemoryInit | DataDrop
    );
    let on_table = matches!(
        opcode.shape(),
        TableGet | TableSet | TableSize | TableGrow | TableFill | TableCopy
    );
    on_memory || on_table || matches!(opcode.shape(), TableInit | ElemDrop)
}

/// The parts of a machine that an operation reads and writes.
pub(super) struct Bulk<'a> {
    pub(super) declarations: &'a Module,
    pub(super) memories: &'a mut Memories,
    pub(super) globals: &'a mut Globals,
    pub(super) trace: &'a mut Trace,
}

impl Bulk<'_> {
    /// Performs an operation and returns its result, or 0 for an operation without a result.
    pub(super) fn perform(&mut self, op: BulkRequest) -> Result<u64, TrapKind> {
        let [a, b, c] = op.args;
        match (op.opcode, op.imm) {
            (Opcode::MemorySize, Imm::Memory(memory)) => Ok(self.memories.pages(memory).into()),
            (Opcode::MemoryGrow, Imm::Memory(memory)) => {
                Ok(self.grow_memory(memory, a as u32).into())
            }
            (_, Imm::Memory(_) | Imm::Memories(..) | Imm::MemoryData(..)) => {
                self.on_memory(op.imm, [a, b, c]).ok_or(TrapKind::MemoryOutOfBounds).map(|()| 0)
            }
            (_, Imm::Data(segment)) => {
                self.tables().drop_segment(SegmentKind::Data, segment.index());
                Ok(0)
            }
            (_, Imm::Elem(segment)) => {
                self.tables().drop_segment(SegmentKind::Elem, segment.index());
                Ok(0)
            }
            _ => self.on_table(op, [a, b, c]).ok_or(TrapKind::TableOutOfBounds),
        }
    }

    /// Grows a memory and returns its previous size in pages, or `u32::MAX` (-1) when it cannot
    /// grow. The trace records the attempt either way.
    pub(super) fn grow_memory(&mut self, memory: Memory, pages: u32) -> u32 {
        let result = self.memories.grow(memory, pages).unwrap_or(u32::MAX);
        let digest = observed_digest(self.memories, self.globals);
        self.trace.grow(memory, pages, result, digest);
        result
    }

    fn tables(&mut self) -> &mut Tables {
        &mut self.globals.tables
    }

    fn on_memory(&mut self, imm: Imm, [to, b, count]: [u64; 3]) -> Option<()> {
        match imm {
            Imm::Memory(memory) => self.memories.fill(memory, to, b as u8, count).ok(),
            Imm::Memories(target, source) => {
                let to = MemoryAddress { memory: target, address: to };
                let from = MemoryAddress { memory: source, address: b };
                self.memories.copy(to, from, count).ok()
            }
            Imm::MemoryData(memory, segment) => {
                let bytes = &self.declarations.data[segment.index()].bytes;
                let bytes = self.globals.tables.contents(SegmentKind::Data, segment.index(), bytes);
                let from = within(bytes.len(), b, count).ok()?;
                self.memories.write(memory, to, &bytes[from]).ok()
            }
            _ => unreachable!("interp: {imm:?} names no memory"),
        }
    }

    fn on_table(&mut self, op: BulkRequest, [a, b, c]: [u64; 3]) -> Option<u64> {
        let (values, tables) = self.globals.split();
        match (op.opcode, op.imm) {
            (Opcode::TableGet, Imm::Table(table)) => return tables.get(table, a),
            (Opcode::TableSet, Imm::Table(table)) => tables.fill(table, a, b, 1).ok()?,
            (Opcode::TableSize, Imm::Table(table)) => return Some(tables.size(table).into()),
            (Opcode::TableFill, Imm::Table(table)) => tables.fill(table, a, b, c).ok()?,
            (Opcode::TableGrow, Imm::Table(table)) => {
                let by = b as u32;
                let result = tables.grow(table, a, by).unwrap_or(u32::MAX);
                let digest = observed_digest(self.memories, self.globals);
                self.trace.grow_table(table, a, by, result, digest);
                return Some(result.into());
            }
            (_, Imm::Tables(to, from)) => {
                let to = TableSlot { table: to, index: a };
                let from = TableSlot { table: from, index: b };
                tables.copy(to, from, c).ok()?
            }
            (_, Imm::TableElem(table, segment)) => {
                let elements = &self.declarations.elements[segment.index()];
                let all = &elements.entries[..];
                let has = tables.contents(SegmentKind::Elem, segment.index(), all).len();
                let from = within(has, b, c).ok()?;
                let entries = elements.resolved(from, |global| values[global.index()]);
                tables.write(table, a, 0, c, &entries).ok()?;
            }
            (opcode, imm) => {
                unreachable!("interp: {} has the wrong immediate {imm:?}", opcode.name())
            }
        }
        Some(0)
    }
}
