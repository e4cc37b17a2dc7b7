//! Operations on ranges of memory, on tables of references, and on segments.

use super::TABLE_SIZE;
use super::body::GeneratedBody;
use super::feature::Feature;
use ir::{Imm, InstSpec, Opcode, Type, Value, reference};

impl GeneratedBody<'_> {
    /// An operation on a range of memory, or on a data segment; mostly in bounds.
    pub(super) fn range(&mut self) {
        let (memory, segment) = (self.around.memory, self.around.segments.0);
        let choices = [Opcode::MemoryCopy, Opcode::MemoryFill, Opcode::MemoryInit];
        let opcode = if self.prng.chance(15) { Opcode::DataDrop } else { self.prng.pick(&choices) };
        let (imm, from) = match opcode {
            Opcode::MemoryCopy => (Imm::Memories(memory, memory), 40),
            Opcode::MemoryFill => (Imm::Memory(memory), 255),
            Opcode::MemoryInit => (Imm::MemoryData(memory, segment), 8),
            _ => {
                self.insert(InstSpec::new(opcode, Type::I32, Imm::Data(segment), &[]));
                return self.plant(Feature::Range);
            }
        };
        // A dropped segment has no bytes, so `memory_init` is in bounds only if it copies none.
        let most = if opcode == Opcode::MemoryInit && self.prng.chance(90) { 0 } else { 8 };
        let operands = [self.small(60), self.small(from), self.small(most)];
        self.insert(InstSpec::new(opcode, Type::I32, imm, &operands));
        self.plant(Feature::Range);
    }

    /// An operation on the table of references, mostly in bounds. A reference that it reads is only
    /// tested for null.
    pub(super) fn table(&mut self) {
        let (table, segment) = (self.around.references, self.around.segments.1);
        let choices = [
            Opcode::TableGet,
            Opcode::TableSet,
            Opcode::TableSize,
            Opcode::TableGrow,
            Opcode::TableFill,
            Opcode::TableCopy,
            Opcode::TableInit,
            Opcode::ElemDrop,
        ];
        let ty = Type::FuncRef;
        match self.prng.pick(&choices) {
            Opcode::TableGet => {
                let index = self.small(TABLE_SIZE - 1);
                let entry =
                    self.hidden(InstSpec::new(Opcode::TableGet, ty, Imm::Table(table), &[index]));
                self.value(InstSpec::new(Opcode::RefIsNull, ty, Imm::None, &[entry]));
            }
            Opcode::TableSet => {
                let operands = [self.small(TABLE_SIZE - 1), self.reference()];
                self.insert(InstSpec::new(Opcode::TableSet, ty, Imm::Table(table), &operands));
            }
            Opcode::TableSize => {
                self.value(InstSpec::new(Opcode::TableSize, Type::I32, Imm::Table(table), &[]));
            }
            Opcode::TableGrow => {
                let operands = [self.reference(), self.small(2)];
                let size =
                    self.hidden(InstSpec::new(Opcode::TableGrow, ty, Imm::Table(table), &operands));
                self.scope.push(size, Type::I32);
            }
            Opcode::TableFill => {
                let operands = [self.small(1), self.reference(), self.small(TABLE_SIZE - 1)];
                self.insert(InstSpec::new(Opcode::TableFill, ty, Imm::Table(table), &operands));
            }
            Opcode::TableCopy => {
                let operands = [self.small(1), self.small(1), self.small(TABLE_SIZE - 1)];
                self.insert(InstSpec::new(
                    Opcode::TableCopy,
                    Type::I32,
                    Imm::Tables(table, table),
                    &operands,
                ));
            }
            Opcode::TableInit => {
                let most = if self.prng.chance(90) { 0 } else { 3 };
                let operands =
                    [self.small(TABLE_SIZE), self.constant(Type::I32, 0), self.small(most)];
                self.insert(InstSpec::new(
                    Opcode::TableInit,
                    Type::I32,
                    Imm::TableElem(table, segment),
                    &operands,
                ));
            }
            _ => {
                self.insert(InstSpec::new(Opcode::ElemDrop, Type::I32, Imm::Elem(segment), &[]));
            }
        }
        self.plant(Feature::Table);
    }

    /// A constant from 0 to `most`.
    fn small(&mut self, most: u32) -> Value {
        let bits = self.prng.below(most + 1);
        self.constant(Type::I32, u64::from(bits))
    }

    /// A reference to an earlier function, or null.
    fn reference(&mut self) -> Value {
        let callees = self.around.callees.len();
        let func = (callees > 0 && self.prng.chance(60))
            .then(|| self.around.callees[self.prng.index(callees)].func);
        self.constant(Type::FuncRef, reference::of_func(func))
    }
}
