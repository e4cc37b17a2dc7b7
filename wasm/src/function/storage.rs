//! Maps operators on whole memories, tables and segments to IR operations.

use crate::index::Index;
use ir::{Imm, Opcode};
use wasmparser::Operator;

/// The IR operation of an operator with its immediate, and the number of its operands.
pub(super) fn operation(operator: &Operator<'_>, index: &Index) -> Option<(Opcode, Imm, usize)> {
    let memory = |n: u32| Imm::Memory(index.memory(n));
    let table = |n: u32| Imm::Table(index.table(n));
    Some(match *operator {
        Operator::MemorySize { mem } => (Opcode::MemorySize, memory(mem), 0),
        Operator::MemoryGrow { mem } => (Opcode::MemoryGrow, memory(mem), 1),
        Operator::MemoryFill { mem } => (Opcode::MemoryFill, memory(mem), 3),
        Operator::MemoryCopy { dst_mem, src_mem } => {
            (Opcode::MemoryCopy, Imm::Memories(index.memory(dst_mem), index.memory(src_mem)), 3)
        }
        Operator::MemoryInit { data_index, mem } => {
            (Opcode::MemoryInit, Imm::MemoryData(index.memory(mem), index.data(data_index)), 3)
        }
        Operator::DataDrop { data_index } => {
            (Opcode::DataDrop, Imm::Data(index.data(data_index)), 0)
        }
        Operator::TableGet { table: n } => (Opcode::TableGet, table(n), 1),
        Operator::TableSet { table: n } => (Opcode::TableSet, table(n), 2),
        Operator::TableSize { table: n } => (Opcode::TableSize, table(n), 0),
        Operator::TableGrow { table: n } => (Opcode::TableGrow, table(n), 2),
        Operator::TableFill { table: n } => (Opcode::TableFill, table(n), 3),
        Operator::TableCopy { dst_table, src_table } => {
            (Opcode::TableCopy, Imm::Tables(index.table(dst_table), index.table(src_table)), 3)
        }
        Operator::TableInit { elem_index, table } => {
            (Opcode::TableInit, Imm::TableElem(index.table(table), index.elem(elem_index)), 3)
        }
        Operator::ElemDrop { elem_index } => {
            (Opcode::ElemDrop, Imm::Elem(index.elem(elem_index)), 0)
        }
        _ => return None,
    })
}
