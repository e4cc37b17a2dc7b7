//! How instructions mention declarations of the module, and literals.

use super::literal::write_literal;
use super::names::write_name;
use crate::entity::{Func, Global, Memory, Table};
use crate::module::Module;
use crate::reference;
use crate::types::Type;
use std::fmt;
use std::fmt::Write;

/// Writes ` @name`, or ` @memory7` if the entity does not exist. The verifier checks that names are
/// unique among the entities of one kind, so this function resolves no clash.
fn write_entity(out: &mut dyn Write, name: Option<&str>, id: &dyn fmt::Display) -> fmt::Result {
    out.write_str(" @")?;
    match name {
        Some(name) => write_name(out, name),
        None => write!(out, "{id}"),
    }
}

pub(super) fn write_memory(out: &mut dyn Write, module: &Module, memory: Memory) -> fmt::Result {
    write_entity(out, module.memories.get(memory).map(|d| &*d.name), &memory)
}

pub(super) fn write_global(out: &mut dyn Write, module: &Module, global: Global) -> fmt::Result {
    write_entity(out, module.globals.get(global).map(|d| &*d.name), &global)
}

pub(super) fn write_table(out: &mut dyn Write, module: &Module, table: Table) -> fmt::Result {
    write_entity(out, module.tables.get(table).map(|d| &*d.name), &table)
}

pub(super) fn write_func(out: &mut dyn Write, module: &Module, func: Func) -> fmt::Result {
    write_entity(out, module.funcs.get(func).map(|d| &*d.name), &func)
}

/// Writes ` literal`, or ` @f` for a reference to a function of the module.
pub(super) fn write_bits(out: &mut dyn Write, module: &Module, ty: Type, bits: u64) -> fmt::Result {
    match reference::func(bits).filter(|func| ty == Type::FuncRef && module.funcs.is_valid(*func)) {
        Some(func) => write_func(out, module, func),
        None => {
            out.write_char(' ')?;
            write_literal(out, ty, bits)
        }
    }
}
