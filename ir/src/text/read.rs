//! Reading of the parts that lines of several kinds have: lists, signatures, types and literals.

use super::error::TextFault;
use super::items::BitsItem;
use super::lex::{Cursor, Token};
use super::literal;
use crate::reference;
use crate::types::{Signature, Type, TypeList};

/// Reads the items between the opening mark, which the caller has taken, and the closing mark,
/// separated by commas.
pub(super) fn read_list<'a, T>(
    cursor: &mut Cursor<'a>,
    close: char,
    mut read: impl FnMut(&mut Cursor<'a>) -> Result<T, TextFault>,
) -> Result<Vec<T>, TextFault> {
    let mut list = Vec::new();
    if cursor.eat(close)? {
        return Ok(list);
    }
    loop {
        list.push(read(cursor)?);
        if cursor.eat(close)? {
            return Ok(list);
        }
        if !cursor.eat(',')? {
            return cursor.expected(&format!("`,` or `{close}`"));
        }
    }
}

pub(super) fn read_signature(cursor: &mut Cursor<'_>) -> Result<Signature, TextFault> {
    cursor.punct('(')?;
    let params = read_list(cursor, ')', read_type)?.into();
    Ok(Signature { params, results: read_results(cursor)? })
}

/// Reads `-> i32`, `-> (i32, i64)`, `-> ()`, or nothing, which means `-> ()`.
pub(super) fn read_results(cursor: &mut Cursor<'_>) -> Result<TypeList, TextFault> {
    if *cursor.peek()? != Token::Arrow {
        return Ok(TypeList::new());
    }
    cursor.next()?;
    if cursor.eat('(')? {
        return read_list(cursor, ')', read_type).map(TypeList::from);
    }
    read_type(cursor).map(|ty| TypeList::from_slice(&[ty]))
}

pub(super) fn read_type(cursor: &mut Cursor<'_>) -> Result<Type, TextFault> {
    let ty = match cursor.peek()? {
        Token::Word(word) => Type::from_name(word),
        _ => None,
    };
    match ty {
        Some(ty) => cursor.next().map(|_| ty),
        None => cursor.expected("a type: i8, i16, i32, i64, f32, f64, funcref, externref or ref"),
    }
}

/// Reads a literal of a type. A reference to a function may also be the function's name.
pub(super) fn read_bits<'a>(cursor: &mut Cursor<'a>, ty: Type) -> Result<BitsItem<'a>, TextFault> {
    if ty == Type::FuncRef && matches!(cursor.peek()?, Token::Entity(_)) {
        return cursor.entity("a function").map(BitsItem::Func);
    }
    read_literal(cursor, ty).map(BitsItem::Bits)
}

/// Reads the bits of a literal of a type.
pub(super) fn read_literal(cursor: &mut Cursor<'_>, ty: Type) -> Result<u64, TextFault> {
    let what = match ty {
        Type::FuncRef => "a function or `null`",
        Type::ExternRef => "`null`",
        Type::F32 | Type::F64 => "a number, `inf`, `-inf` or `nan:0x` bits",
        _ => "an integer",
    };
    let at = cursor.offset();
    match cursor.peek()? {
        Token::Word("null") if ty.is_ref() => cursor.next().map(|_| reference::NULL),
        Token::Word("ref") if ty.is_ref() => {
            cursor.next()?;
            cursor.punct(':')?;
            read_unsigned(cursor, "the bits of a reference", ty.mask())
        }
        Token::Number(text) if !ty.is_ref() => {
            let bits = if ty.is_int() || ty == Type::Ref {
                literal::int_bits(text, ty)
            } else {
                literal::float_bits(text, ty)
            };
            match bits {
                Some(bits) => cursor.next().map(|_| bits),
                None => cursor.expected(&format!("{what} that fits {ty}")),
            }
        }
        Token::Word("inf") if ty.is_float() => {
            cursor.next().map(|_| literal::infinity_bits(false, ty))
        }
        Token::Word("-inf") if ty.is_float() => {
            cursor.next().map(|_| literal::infinity_bits(true, ty))
        }
        Token::Word("nan") if ty.is_float() => {
            cursor.next()?;
            cursor.punct(':')?;
            let bits = read_unsigned(cursor, "the bits of a NaN", ty.mask())?;
            let message = || TextFault::new(at, format!("{bits:#x} is not a NaN of {ty}"));
            if literal::is_nan(bits, ty) { Ok(bits) } else { Err(message()) }
        }
        _ => cursor.expected(what),
    }
}

pub(super) fn read_u32(cursor: &mut Cursor<'_>, what: &str) -> Result<u32, TextFault> {
    let number = read_unsigned(cursor, what, u64::from(u32::MAX))?;
    Ok(u32::try_from(number).expect("the limit was given"))
}

pub(super) fn read_unsigned(
    cursor: &mut Cursor<'_>,
    what: &str,
    max: u64,
) -> Result<u64, TextFault> {
    let number = match cursor.peek()? {
        Token::Number(text) => literal::unsigned(text, max),
        _ => return cursor.expected(&format!("{what} (a number)")),
    };
    match number {
        Some(number) => cursor.next().map(|_| number),
        None => cursor.expected(&format!("{what}, a number of at most {max}")),
    }
}
