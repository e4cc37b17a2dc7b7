//! The types that operations take and give.

use super::{Opcode, Shape};
use crate::types::Type;

impl Opcode {
    /// Whether the text form writes the controlling type after the mnemonic.
    pub const fn has_type_suffix(self) -> bool {
        !matches!(
            self.shape(),
            Shape::MemorySize
                | Shape::MemoryGrow
                | Shape::MemoryCopy
                | Shape::MemoryFill
                | Shape::MemoryInit
                | Shape::DataDrop
                | Shape::TableSize
                | Shape::TableCopy
                | Shape::TableInit
                | Shape::ElemDrop
                | Shape::Call
                | Shape::CallIndirect
                | Shape::RefCompare
                | Shape::RefBits
                | Shape::RefOf
                | Shape::OsrTest
                | Shape::Jump
                | Shape::BrIf
                | Shape::Switch
                | Shape::Return
                | Shape::Trap
                | Shape::OsrExit
        )
    }

    /// Whether `ty` may be the controlling type of the operation. For operations without a suffix
    /// the controlling type is `i32` by convention.
    pub const fn allows_type(self, ty: Type) -> bool {
        match self.shape() {
            Shape::Const | Shape::Select | Shape::GlobalGet | Shape::GlobalSet | Shape::Assume => {
                true
            }
            Shape::IntUnary => match self {
                Opcode::Sext8 => ty.is_int() && ty.bits() > 8,
                Opcode::Bswap => ty.is_int() && ty.bits() > 16,
                Opcode::Sext16 => ty.is_int() && ty.bits() > 16,
                Opcode::Sext32 => ty.is_int() && ty.bits() > 32,
                _ => ty.is_int(),
            },
            Shape::IntBinary | Shape::IntTest | Shape::IntCompare => ty.is_int(),
            Shape::FloatUnary | Shape::FloatBinary | Shape::FloatCompare | Shape::IntToFloat => {
                ty.is_float()
            }
            Shape::Extend => ty.is_int() && ty.bits() > 8,
            Shape::Wrap => ty.is_int() && ty.bits() < 64,
            Shape::FloatToInt => matches!(ty, Type::I32 | Type::I64),
            Shape::CallValue => ty.is_number(),
            Shape::Promote => matches!(ty, Type::F64),
            Shape::Demote => matches!(ty, Type::F32),
            Shape::Bitcast => ty.bits() >= 32 && ty.is_number(),
            Shape::RefTest
            | Shape::TableGet
            | Shape::TableSet
            | Shape::TableGrow
            | Shape::TableFill => ty.is_ref(),
            Shape::Load(0) | Shape::Store(0) => ty.is_number(),
            Shape::Load(n) | Shape::Store(n) => ty.is_int() && ty.bytes() > n as u32,
            _ => matches!(ty, Type::I32),
        }
    }

    /// The type of the only result. `None` if the operation has no result, or if its immediate
    /// decides (calls).
    pub const fn result_type(self, ty: Type) -> Option<Type> {
        match self.shape() {
            Shape::IntTest | Shape::IntCompare | Shape::FloatCompare | Shape::RefTest => {
                Some(Type::I32)
            }
            Shape::RefBits => Some(Type::I64),
            Shape::RefOf => Some(Type::Ref),
            Shape::RefCompare
            | Shape::MemorySize
            | Shape::MemoryGrow
            | Shape::TableSize
            | Shape::TableGrow
            | Shape::OsrTest => Some(Type::I32),
            Shape::Store(_) | Shape::GlobalSet | Shape::Call | Shape::CallIndirect => None,
            Shape::MemoryCopy | Shape::MemoryFill | Shape::MemoryInit | Shape::DataDrop => None,
            Shape::TableSet
            | Shape::TableFill
            | Shape::TableCopy
            | Shape::TableInit
            | Shape::ElemDrop => None,
            Shape::Jump
            | Shape::BrIf
            | Shape::Switch
            | Shape::Return
            | Shape::Trap
            | Shape::OsrExit => None,
            _ => Some(ty),
        }
    }
}
