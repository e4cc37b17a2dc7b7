//! Reading of the lines that declare memories, tables, globals, segments, imports and exports.

use super::error::TextFault;
use super::init::{read_entry, read_init, read_place};
use super::items::{BitsItem, ExternalKind, InitItem, Item};
use super::lex::{Cursor, Token};
use super::read::{read_list, read_signature, read_type, read_u32, read_unsigned};
use crate::effect::DeclaredEffect;
use crate::module::{ImportName, MemoryKind};
use crate::types::Type;

pub(super) fn read_memory<'a>(cursor: &mut Cursor<'a>) -> Result<Item<'a>, TextFault> {
    let name = cursor.entity("a memory")?;
    if cursor.eat_word("host")? {
        let (kind, min) = read_host(cursor)?;
        return Ok(Item::Memory { name, min, max: None, import: None, kind });
    }
    let (min, max) = read_sizes(cursor, "pages")?;
    Ok(Item::Memory { name, min, max, import: None, kind: MemoryKind::Linear })
}

/// Reads the part behind `host`: nothing, or an address and a number of pages.
fn read_host(cursor: &mut Cursor<'_>) -> Result<(MemoryKind, u32), TextFault> {
    if !matches!(cursor.peek()?, Token::Number(_)) {
        return Ok((MemoryKind::Host, 0));
    }
    let first = read_unsigned(cursor, "the address of the first byte", u64::MAX)?;
    Ok((MemoryKind::HostFrom(first), read_u32(cursor, "the number of pages")?))
}

/// Reads the initial size and the optional maximum size.
fn read_sizes(cursor: &mut Cursor<'_>, what: &str) -> Result<(u32, Option<u32>), TextFault> {
    let min = read_u32(cursor, &format!("the initial number of {what}"))?;
    let bounded = matches!(cursor.peek()?, Token::Number(_));
    let max = if bounded {
        Some(read_u32(cursor, &format!("the maximum number of {what}"))?)
    } else {
        None
    };
    Ok((min, max))
}

pub(super) fn read_global<'a>(cursor: &mut Cursor<'a>) -> Result<Item<'a>, TextFault> {
    let name = cursor.entity("a global")?;
    cursor.punct(':')?;
    let mutable = cursor.eat_word("mut")?;
    let ty = read_type(cursor)?;
    cursor.punct('=')?;
    let init = read_init(cursor, ty)?;
    Ok(Item::Global { name, mutable, ty, init, import: None })
}

pub(super) fn read_table<'a>(cursor: &mut Cursor<'a>) -> Result<Item<'a>, TextFault> {
    let name = cursor.entity("a table")?;
    let (size, max, ty) = read_table_type(cursor)?;
    let fixed = cursor.eat_word("fixed")?;
    Ok(Item::Table { fixed, name, ty, size, max, import: None })
}

/// Reads `10`, `10 20`, `10 : externref`.
fn read_table_type(cursor: &mut Cursor<'_>) -> Result<(u32, Option<u32>, Type), TextFault> {
    let (size, max) = read_sizes(cursor, "entries")?;
    let ty = if cursor.eat(':')? { read_type(cursor)? } else { Type::FuncRef };
    Ok((size, max, ty))
}

pub(super) fn read_data<'a>(cursor: &mut Cursor<'a>) -> Result<Item<'a>, TextFault> {
    let active = match cursor.peek()? {
        Token::Entity(_) => {
            let memory = cursor.entity("a memory")?;
            Some((memory, read_place(cursor, "the address of the first byte")?))
        }
        _ => None,
    };
    let bytes = cursor.quoted("a memory, or the bytes as a string")?;
    Ok(Item::Data { active, bytes })
}

pub(super) fn read_elem<'a>(cursor: &mut Cursor<'a>) -> Result<Item<'a>, TextFault> {
    let active = match cursor.peek()? {
        Token::Entity(_) => {
            let table = cursor.entity("a table")?;
            Some((table, read_place(cursor, "the index of the first entry")?))
        }
        _ => None,
    };
    let ty = if cursor.eat(':')? { read_type(cursor)? } else { Type::FuncRef };
    cursor.punct('[')?;
    let entries = read_list(cursor, ']', |cursor| read_entry(cursor, ty))?;
    Ok(Item::Elem { ty, active, entries })
}

pub(super) fn read_import<'a>(cursor: &mut Cursor<'a>) -> Result<Item<'a>, TextFault> {
    let kind = match cursor.peek()? {
        Token::Word(word @ ("func" | "memory" | "table" | "global")) => *word,
        _ => return cursor.expected("`func`, `memory`, `table` or `global`"),
    };
    cursor.next()?;
    let name = cursor.entity("a name")?;
    let module = cursor.quoted_text("the name of the providing module as a string")?;
    let field = cursor.quoted_text("the name within that module as a string")?;
    let import = ImportName { module, field };
    match kind {
        "memory" => {
            let (min, max) = read_sizes(cursor, "pages")?;
            Ok(Item::Memory { name, min, max, import: Some(import), kind: MemoryKind::Linear })
        }
        "table" => {
            let (size, max, ty) = read_table_type(cursor)?;
            Ok(Item::Table { fixed: false, name, ty, size, max, import: Some(import) })
        }
        "global" => {
            cursor.punct(':')?;
            let mutable = cursor.eat_word("mut")?;
            let ty = read_type(cursor)?;
            Ok(Item::Global {
                name,
                mutable,
                ty,
                init: InitItem::Bits(BitsItem::Bits(0)),
                import: Some(import),
            })
        }
        _ => {
            let signature = read_signature(cursor)?;
            let effect = read_effect(cursor)?;
            Ok(Item::Bodiless { name, import: Some(import), signature, effect })
        }
    }
}

/// Reads `effect(pure)`, or nothing.
pub(super) fn read_effect(cursor: &mut Cursor<'_>) -> Result<DeclaredEffect, TextFault> {
    if !cursor.eat_word("effect")? {
        return Ok(DeclaredEffect::Any);
    }
    cursor.punct('(')?;
    let effect = match cursor.peek()? {
        Token::Word(word) => DeclaredEffect::from_name(word),
        _ => None,
    };
    let Some(effect) = effect else {
        return cursor.expected("`any`, `allocates`, `outside`, `reads` or `pure`");
    };
    cursor.next()?;
    cursor.punct(')')?;
    Ok(effect)
}

/// Reads the rest of `later func @name (i32) -> i32`.
pub(super) fn read_later<'a>(cursor: &mut Cursor<'a>) -> Result<Item<'a>, TextFault> {
    if !cursor.eat_word("func")? {
        return cursor.expected("`func`");
    }
    let name = cursor.entity("a function")?;
    let (signature, effect) = (read_signature(cursor)?, DeclaredEffect::Any);
    Ok(Item::Bodiless { name, import: None, signature, effect })
}

pub(super) fn read_export<'a>(cursor: &mut Cursor<'a>) -> Result<Item<'a>, TextFault> {
    let name = cursor.quoted_text("the exported name as a string")?;
    let kind = match cursor.peek()? {
        Token::Word("memory") => ExternalKind::Memory,
        Token::Word("table") => ExternalKind::Table,
        Token::Word("global") => ExternalKind::Global,
        _ => ExternalKind::Func,
    };
    if !matches!(kind, ExternalKind::Func) {
        cursor.next()?;
    }
    let item = cursor.entity("a function, `memory`, `table` or `global`")?;
    Ok(Item::Export { name, kind, item })
}
