//! Features of operands, by which most rules are left out before they are matched.

use crate::table::{ClassTable, TermForm};
use crate::{MAX_MEMBERS, TermIndex};
use ir::Opcode;
use ir::rules::Pat;

/// Features of the operands of an operation. A rule whose pattern needs a feature fits no operation
/// without it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OperandFeatures {
    /// Some operand is a constant.
    is_constant: bool,
    /// The two operands are the same.
    are_same: bool,
    /// The opcodes of the operations that compute an operand, as a set; some share a member.
    opcodes: u64,
}

impl OperandFeatures {
    /// The features of operands. Cost: bounded.
    pub fn of<F: TermForm>(table: &ClassTable<F>, args: &[TermIndex]) -> OperandFeatures {
        let mut features = OperandFeatures {
            are_same: matches!(args, [a, b] if a == b),
            ..OperandFeatures::default()
        };
        for &class in args {
            if table.constant(class).is_some() {
                features.is_constant = true;
                continue;
            }
            let members = table.members(class).take(MAX_MEMBERS);
            let opcodes = members.filter_map(|id| table.operation(id));
            features.opcodes |= opcodes.fold(0, |all, of| all | opcode_bit(of.opcode));
        }
        features
    }

    /// The features that the operands of a pattern need.
    pub(crate) fn of_pattern(operands: &[Pat]) -> OperandFeatures {
        let mut needed = OperandFeatures {
            are_same: matches!(operands, [Pat::X, Pat::X]),
            ..OperandFeatures::default()
        };
        for pat in operands {
            match pat {
                Pat::X | Pat::Y => {}
                Pat::Op(opcode, _) => needed.opcodes |= opcode_bit(*opcode),
                Pat::Zero
                | Pat::One
                | Pat::Ones
                | Pat::NonZero
                | Pat::Bits(_)
                | Pat::C
                | Pat::D => needed.is_constant = true,
            }
        }
        needed
    }

    /// Whether the operands have all features of others.
    pub(crate) fn have(self, needed: OperandFeatures) -> bool {
        (self.is_constant || !needed.is_constant)
            && (self.are_same || !needed.are_same)
            && needed.opcodes & !self.opcodes == 0
    }
}

/// A set of one opcode. Opcodes may share a bit, so an operand may seem to have more of them.
fn opcode_bit(opcode: Opcode) -> u64 {
    1 << (opcode as u32 % u64::BITS)
}
