//! Lowers the flags of overflow: `sadd_overflows`, `ssub_overflows`, `smul_overflows`.
//!
//! If one operand is a constant, the operation overflows for values of the other operand outside an
//! interval. The flag is then a comparison, which fuses with a branch on the flag. Otherwise one
//! instruction of Cranelift computes the flag together with the sum, difference or product of the
//! same operands, so the operation itself needs no second instruction. Cranelift 0.135 stores that
//! flag to a register and tests it there: it has no branch on the overflow flag of the processor.

use super::Lowering;
use cranelift_codegen::ir::{self as clif, InstBuilder, condcodes::IntCC, types};
use cranelift_entity::EntityRef;
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::eval::sign_extend;
use ir::{Block, Function, InstData, Opcode, Type, Value};
use std::collections::BTreeMap;

/// The operation whose overflow a flag reports, and its operands: `Add`, `Sub` or `Mul`. The
/// operands of commutative operations are sorted.
type Checked = (Opcode, Value, Value);

/// The checked operations of a function.
pub(super) struct Overflows {
    /// By operation: the block that computes it, with the result and the flag in 8 bits. Empty
    /// before the first use.
    made: BTreeMap<Checked, Option<(Block, [clif::Value; 2])>>,
    dom: Option<DomTree>,
}

impl Overflows {
    /// Finds the flags of operations on values that are not constants. Linear in the function, and
    /// the cost of its dominators if it has such a flag.
    pub(super) fn new(function: &Function, cfg: &Cfg) -> Overflows {
        let mut made = BTreeMap::new();
        for block in cfg.rpo() {
            for inst in function.block_insts(*block) {
                let data = function.inst(inst);
                if checked_by(data.opcode).is_some() && constant_operand(function, data).is_none() {
                    made.extend(checked(data).map(|operation| (operation, None)));
                }
            }
        }
        let dom = (!made.is_empty()).then(|| DomTree::new(function, cfg));
        Overflows { made, dom }
    }
}

impl Lowering<'_, '_> {
    /// Lowers a flag of overflow.
    pub(super) fn overflow_flag(&mut self, data: &InstData) -> clif::Value {
        let flag = match constant_operand(self.unit.function, data) {
            Some((at, constant)) => {
                let (from, to) = fitting(data.opcode, data.ty, constant, at);
                let x = self.value(data.args[1 - at]);
                match self.outside(data.ty, x, from, to) {
                    Some(flag) => flag,
                    None => return self.builder.ins().iconst(types::I32, 0),
                }
            }
            None => {
                let pair = self.with_flag(data);
                pair.expect("jit: every flag of two variables was found before").1
            }
        };
        self.builder.ins().uextend(types::I32, flag)
    }

    /// The result and the flag of an operation whose flag the function uses. `None` without such a
    /// use.
    pub(super) fn with_flag(&mut self, data: &InstData) -> Option<(clif::Value, clif::Value)> {
        let key = checked(data)?;
        let made = *self.overflows.made.get(&key)?;
        let inst = self.inst.expect("an instruction is being lowered");
        let block = self.unit.function.inst_block(inst);
        if let Some((home, [result, flag])) = made
            && self.reaches(home, block)
        {
            return Some((result, flag));
        }
        let (x, y) = (self.value(key.1), self.value(key.2));
        let ins = self.builder.ins();
        let (result, flag) = match key.0 {
            Opcode::Add => ins.sadd_overflow(x, y),
            Opcode::Sub => ins.ssub_overflow(x, y),
            _ => ins.smul_overflow(x, y),
        };
        self.overflows.made.insert(key, Some((block, [result, flag])));
        Some((result, flag))
    }

    /// Whether the results of block `home` are available in `block`. Edges may pass a block without
    /// executing it, so results of a passable block are available only inside it.
    fn reaches(&self, home: Block, block: Block) -> bool {
        let dominates = || self.overflows.dom.as_ref().is_some_and(|d| d.dominates(home, block));
        home == block || (!self.passable.contains(home.index()) && dominates())
    }

    /// Whether a number is outside the interval from `from` to `to`, in 8 bits. `None` if the
    /// interval has all numbers.
    fn outside(&mut self, ty: Type, x: clif::Value, from: i64, to: i64) -> Option<clif::Value> {
        let (least, most) = bounds(ty);
        let ins = self.builder.ins();
        Some(match (from, to) {
            whole if whole == (least, most) => return None,
            (from, to) if from == least => ins.icmp_imm_s(IntCC::SignedGreaterThan, x, to),
            (from, to) if to == most => ins.icmp_imm_s(IntCC::SignedLessThan, x, from),
            (from, to) => {
                let above = self.builder.ins().iadd_imm_s(x, from.wrapping_neg());
                let length = self.literal(ty, to.wrapping_sub(from) as u64 & ty.mask());
                self.builder.ins().icmp(IntCC::UnsignedGreaterThan, above, length)
            }
        })
    }
}

/// The operation on values whose overflow an opcode reports.
fn checked_by(opcode: Opcode) -> Option<Opcode> {
    match opcode {
        Opcode::SaddOverflows => Some(Opcode::Add),
        Opcode::SsubOverflows => Some(Opcode::Sub),
        Opcode::SmulOverflows => Some(Opcode::Mul),
        _ => None,
    }
}

/// The checked operation that an instruction, a flag or not, belongs to.
fn checked(data: &InstData) -> Option<Checked> {
    let operation = checked_by(data.opcode).unwrap_or(data.opcode);
    match (operation, data.args[..].first(), data.args[..].get(1)) {
        (Opcode::Sub, Some(x), Some(y)) => Some((operation, *x, *y)),
        (Opcode::Add | Opcode::Mul, Some(x), Some(y)) => Some((operation, *x.min(y), *x.max(y))),
        _ => None,
    }
}

/// The position of an operand that is a constant, and its number.
fn constant_operand(function: &Function, data: &InstData) -> Option<(usize, i64)> {
    [1, 0].into_iter().find_map(|at| {
        let inst = function.defining_inst(data.args[at])?;
        let bits = function.inst(inst).constant()?;
        Some((at, sign_extend(bits, data.ty.bits())))
    })
}

/// The least and the greatest number of a type.
fn bounds(ty: Type) -> (i64, i64) {
    let unused = 64 - ty.bits();
    (i64::MIN >> unused, i64::MAX >> unused)
}

/// The interval of numbers with which an operation on a constant does not overflow. The constant is
/// the operand at the given position.
fn fitting(opcode: Opcode, ty: Type, constant: i64, at: usize) -> (i64, i64) {
    let (least, most) = bounds(ty);
    let (low, high, c) = (i128::from(least), i128::from(most), i128::from(constant));
    let (from, to) = match (opcode, at) {
        (Opcode::SaddOverflows, _) => (low - c, high - c),
        (Opcode::SsubOverflows, 1) => (low + c, high + c),
        (Opcode::SsubOverflows, _) => (c - high, c - low),
        _ if c == 0 => (low, high),
        // Both quotients are rounded toward zero, into the interval.
        _ if c > 0 => (low / c, high / c),
        _ => (high / c, low / c),
    };
    (from.max(low) as i64, to.min(high) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir::eval::eval;

    #[test]
    fn intervals_have_the_numbers_that_fit() {
        for opcode in Opcode::ALL.iter().copied().filter(|op| checked_by(*op).is_some()) {
            for (constant, at) in (i8::MIN..=i8::MAX).flat_map(|c| [(c, 0), (c, 1)]) {
                let (from, to) = fitting(opcode, Type::I8, constant.into(), at);
                for x in i8::MIN..=i8::MAX {
                    let mut args = [x as u8, constant as u8];
                    if at == 0 {
                        args.reverse();
                    }
                    let flag = eval(opcode, Type::I8, Type::I8, &args.map(u64::from));
                    let fits = (from..=to).contains(&x.into());
                    assert_eq!(flag, Ok(u64::from(!fits)), "{} {args:?}", opcode.name());
                }
            }
        }
    }
}
