//! The text form of values that a module computes when it is instantiated: `(@base, 16, add)`.

use super::build::ModuleScope;
use super::error::TextFault;
use super::items::{BitsItem, EntryItem, InitItem, InitOpItem};
use super::lex::{Cursor, Token};
use super::mentions::{write_bits, write_global};
use super::read::{read_bits, read_list, read_literal, read_unsigned};
use crate::init::{InitExpr, InitOp};
use crate::module::{ElementSegment, Module};
use crate::reference;
use crate::types::Type;
use std::fmt::{self, Write};

/// Reads a literal of a type, or an expression: `(@base, 16, add)`.
pub(super) fn read_init<'a>(cursor: &mut Cursor<'a>, ty: Type) -> Result<InitItem<'a>, TextFault> {
    if cursor.eat('(')? {
        let read = |cursor: &mut Cursor<'a>| read_init_op(cursor, ty);
        return Ok(InitItem::Computed(read_list(cursor, ')', read)?));
    }
    read_bits(cursor, ty).map(InitItem::Bits)
}

pub(super) fn read_init_op<'a>(
    cursor: &mut Cursor<'a>,
    ty: Type,
) -> Result<InitOpItem<'a>, TextFault> {
    let named = |word: &str| InitOp::BINARY.iter().find(|(_, name)| *name == word);
    match cursor.peek()? {
        Token::Entity(_) => cursor.entity("a global").map(InitOpItem::Global),
        Token::Word(word) if let Some((op, _)) = named(word) => {
            cursor.next()?;
            Ok(InitOpItem::Op(*op))
        }
        _ => read_literal(cursor, ty).map(|bits| InitOpItem::Op(InitOp::Bits(bits))),
    }
}

/// Reads a reference, or the value of a global: `(@handler)`.
pub(super) fn read_entry<'a>(
    cursor: &mut Cursor<'a>,
    ty: Type,
) -> Result<EntryItem<'a>, TextFault> {
    if !cursor.eat('(')? {
        return read_bits(cursor, ty).map(EntryItem::Bits);
    }
    let global = cursor.entity("a global")?;
    cursor.punct(')')?;
    Ok(EntryItem::Global(global))
}

/// Reads the place of a segment: a number, or an expression.
pub(super) fn read_place<'a>(
    cursor: &mut Cursor<'a>,
    what: &str,
) -> Result<InitItem<'a>, TextFault> {
    if cursor.peek()? == &Token::Punct('(') {
        return read_init(cursor, Type::I32);
    }
    let place = read_unsigned(cursor, what, u64::MAX)?;
    Ok(InitItem::Bits(BitsItem::Bits(place)))
}

impl<'a> ModuleScope<'a, '_> {
    /// Resolves the names of an initial value, or of the place of a segment.
    pub(super) fn init(&self, item: InitItem<'a>) -> Result<InitExpr, TextFault> {
        let op = |item| match item {
            InitOpItem::Global(name) => Ok(InitOp::Global(self.globals.find(&name)?)),
            InitOpItem::Op(op) => Ok(op),
        };
        match item {
            InitItem::Bits(bits) => self.bits(bits).map(InitExpr::Bits),
            InitItem::Computed(ops) => {
                ops.into_iter().map(op).collect::<Result<_, _>>().map(InitExpr::Computed)
            }
        }
    }

    /// Adds an entry to an element segment.
    pub(super) fn add_entry(
        &self,
        segment: &mut ElementSegment,
        item: EntryItem<'a>,
    ) -> Result<(), TextFault> {
        let bits = match item {
            EntryItem::Bits(bits) => self.bits(bits)?,
            EntryItem::Global(name) => {
                let index = segment.entries.len() as u32;
                segment.from_globals.push((index, self.globals.find(&name)?));
                reference::NULL
            }
        };
        segment.entries.push(bits);
        Ok(())
    }
}

/// Writes ` 16`, or an expression, ` (@base, 16, add)`.
pub(super) fn write_init(
    out: &mut dyn Write,
    module: &Module,
    ty: Type,
    init: &InitExpr,
) -> fmt::Result {
    if let Some(bits) = init.known() {
        return write_bits(out, module, ty, bits);
    }
    out.write_str(" (")?;
    for (index, op) in init.ops().enumerate() {
        out.write_str(if index > 0 { ", " } else { "" })?;
        let mut text = String::new();
        match op {
            InitOp::Bits(bits) => write_bits(&mut text, module, ty, bits)?,
            InitOp::Global(global) => write_global(&mut text, module, global)?,
            op => text
                .extend(InitOp::BINARY.iter().filter(|(of, _)| *of == op).map(|(_, name)| *name)),
        }
        out.write_str(text.trim_start())?;
    }
    out.write_char(')')
}

/// Writes the place of a segment.
pub(super) fn write_place(out: &mut dyn Write, module: &Module, place: &InitExpr) -> fmt::Result {
    match place.known() {
        Some(place) => write!(out, " {place}"),
        None => write_init(out, module, Type::I32, place),
    }
}

/// Writes the entries of an element segment: ` [@f, null, (@handler)]`.
pub(super) fn write_entries(
    out: &mut dyn Write,
    module: &Module,
    segment: &ElementSegment,
) -> fmt::Result {
    let mut from_globals = segment.from_globals.iter().peekable();
    out.write_str(" [")?;
    for (index, bits) in segment.entries.iter().enumerate() {
        let mut text = String::new();
        match from_globals.next_if(|(at, _)| *at as usize == index) {
            Some((_, global)) => {
                write_init(&mut text, module, segment.ty, &InitExpr::of_global(*global))?;
            }
            None => write_bits(&mut text, module, segment.ty, *bits)?,
        }
        out.write_str(if index > 0 { ", " } else { "" })?;
        out.write_str(text.trim_start())?;
    }
    out.write_char(']')
}
