//! Values and outcomes in the notation of scripts.

use ir::{TrapKind, Type, reference};
use wast::core::{NanPattern, WastArgCore, WastRetCore};
use wast::{WastArg, WastRet};

/// The bits of an argument.
pub(crate) fn argument(argument: &WastArg<'_>) -> Result<u64, String> {
    match argument {
        WastArg::Core(WastArgCore::I32(x)) => Ok(u64::from(*x as u32)),
        WastArg::Core(WastArgCore::I64(x)) => Ok(*x as u64),
        WastArg::Core(WastArgCore::F32(x)) => Ok(u64::from(x.bits)),
        WastArg::Core(WastArgCore::F64(x)) => Ok(x.bits),
        WastArg::Core(WastArgCore::RefNull(_)) => Ok(reference::NULL),
        WastArg::Core(WastArgCore::RefExtern(n) | WastArgCore::RefHost(n)) => Ok(u64::from(*n) + 1),
        other => Err(format!("an unsupported argument: {other:?}")),
    }
}

/// Whether bits of a type match the expected result.
pub(crate) fn fits(expected: &WastRet<'_>, bits: u64, ty: Type) -> Result<bool, String> {
    let WastRet::Core(expected) = expected else {
        return Err(format!("an unsupported result: {expected:?}"));
    };
    Ok(match expected {
        WastRetCore::I32(x) => ty == Type::I32 && bits == u64::from(*x as u32),
        WastRetCore::I64(x) => ty == Type::I64 && bits == *x as u64,
        WastRetCore::F32(NanPattern::Value(x)) => ty == Type::F32 && bits == u64::from(x.bits),
        WastRetCore::F32(NanPattern::CanonicalNan) => {
            ty == Type::F32 && bits & 0x7fff_ffff == 0x7fc0_0000
        }
        WastRetCore::F32(NanPattern::ArithmeticNan) => {
            ty == Type::F32 && bits & 0x7fc0_0000 == 0x7fc0_0000
        }
        WastRetCore::F64(NanPattern::Value(x)) => ty == Type::F64 && bits == x.bits,
        WastRetCore::F64(NanPattern::CanonicalNan) => {
            ty == Type::F64 && bits & (u64::MAX >> 1) == 0x7ff8 << 48
        }
        WastRetCore::F64(NanPattern::ArithmeticNan) => {
            ty == Type::F64 && bits & (0x7ff8 << 48) == 0x7ff8 << 48
        }
        WastRetCore::RefNull(_) => ty.is_ref() && bits == reference::NULL,
        WastRetCore::RefExtern(Some(n)) => ty == Type::ExternRef && bits == u64::from(*n) + 1,
        WastRetCore::RefExtern(None) => ty == Type::ExternRef && bits != reference::NULL,
        WastRetCore::RefFunc(None) => ty == Type::FuncRef && reference::func(bits).is_some(),
        WastRetCore::Either(any) => {
            for one in any {
                if fits(&WastRet::Core(clone_number(one)?), bits, ty)? {
                    return Ok(true);
                }
            }
            false
        }
        other => return Err(format!("an unsupported result: {other:?}")),
    })
}

/// A copy of a pattern for a number; the parser gives no other pattern for a choice.
fn clone_number(pattern: &WastRetCore<'_>) -> Result<WastRetCore<'static>, String> {
    Ok(match pattern {
        WastRetCore::I32(x) => WastRetCore::I32(*x),
        WastRetCore::I64(x) => WastRetCore::I64(*x),
        WastRetCore::F32(NanPattern::Value(x)) => WastRetCore::F32(NanPattern::Value(*x)),
        WastRetCore::F64(NanPattern::Value(x)) => WastRetCore::F64(NanPattern::Value(*x)),
        other => return Err(format!("an unsupported choice: {other:?}")),
    })
}

/// The trap that a message of a script denotes.
pub(crate) fn trap(message: &str) -> Result<TrapKind, String> {
    // A longer message precedes messages that are its prefixes.
    let kinds = [
        ("integer divide by zero", TrapKind::DivisionByZero),
        ("integer overflow", TrapKind::IntegerOverflow),
        ("invalid conversion to integer", TrapKind::InvalidConversion),
        ("out of bounds memory access", TrapKind::MemoryOutOfBounds),
        ("out of bounds table access", TrapKind::TableOutOfBounds),
        ("undefined", TrapKind::TableOutOfBounds),
        ("uninitialized", TrapKind::NullFunction),
        ("indirect call type mismatch", TrapKind::SignatureMismatch),
        ("unreachable", TrapKind::Unreachable),
    ];
    let found = kinds.iter().find(|(words, _)| message.starts_with(words));
    found.map(|(_, kind)| *kind).ok_or_else(|| format!("unknown trap `{message}`"))
}
