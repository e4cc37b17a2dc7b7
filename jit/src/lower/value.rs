//! Lowers operations on values.

use super::Lowering;
use crate::abi;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
use cranelift_codegen::ir::{self as clif, InstBuilder, MemFlagsData, types};
use ir::eval::makes_nans;
use ir::{InstData, Opcode, Type};

impl Lowering<'_, '_> {
    /// Lowers an operation on values, and returns its result.
    pub(super) fn value_op(&mut self, data: &InstData) -> clif::Value {
        match data.opcode {
            Opcode::Const => self.constant(data),
            Opcode::Select => self.select(data),
            Opcode::Fcopysign | Opcode::Fabs | Opcode::Fneg => self.on_bits(data),
            opcode if makes_nans(opcode) => self.arithmetic(data),
            Opcode::Feq | Opcode::Fne | Opcode::Flt | Opcode::Fle | Opcode::Fgt | Opcode::Fge => {
                self.compare_floats(data)
            }
            Opcode::Clz | Opcode::Ctz | Opcode::Popcnt => self.count_bits(data),
            Opcode::SaddOverflows | Opcode::SsubOverflows | Opcode::SmulOverflows => {
                self.overflow_flag(data)
            }
            _ => match int_condition(data.opcode) {
                Some(condition) => self.compare(condition, data),
                None if data.args.len() == 2 => self.int_binary(data),
                None => self.convert(data),
            },
        }
    }

    fn constant(&mut self, data: &InstData) -> clif::Value {
        self.literal(data.ty, data.constant().expect("jit: a constant has bits"))
    }

    pub(super) fn literal(&mut self, ty: Type, bits: u64) -> clif::Value {
        match ty {
            Type::F32 => self.builder.ins().f32const(Ieee32::with_bits(bits as u32)),
            Type::F64 => self.builder.ins().f64const(Ieee64::with_bits(bits)),
            ty => self.builder.ins().iconst(abi::held(ty), bits as i64),
        }
    }

    /// A selection is raw or exact as a whole. The operands of an exact selection must be exact.
    fn select(&mut self, data: &InstData) -> clif::Value {
        let raw = data.result().is_some_and(|result| self.is_raw(result));
        let condition = self.value(data.args[0]);
        let [then, otherwise] = [1, 2]
            .map(|i| if raw { self.value(data.args[i]) } else { self.observed(data.args[i]) });
        self.builder.ins().select(condition, then, otherwise)
    }

    /// Lowers operations on floats that move bits. They keep the sign and payload of a NaN, so the
    /// operands must have the interpreter's bits.
    fn on_bits(&mut self, data: &InstData) -> clif::Value {
        let x = self.observed(data.args[0]);
        match data.opcode {
            Opcode::Fabs => self.builder.ins().fabs(x),
            Opcode::Fneg => self.builder.ins().fneg(x),
            _ => {
                let sign = self.observed(data.args[1]);
                self.builder.ins().fcopysign(x, sign)
            }
        }
    }

    fn arithmetic(&mut self, data: &InstData) -> clif::Value {
        let x = self.value(data.args[0]);
        let y = data.args.get(1).map(|y| self.value(*y));
        let ins = self.builder.ins();
        match (data.opcode, y) {
            (Opcode::Fadd, Some(y)) => ins.fadd(x, y),
            (Opcode::Fsub, Some(y)) => ins.fsub(x, y),
            (Opcode::Fmul, Some(y)) => ins.fmul(x, y),
            (Opcode::Fdiv, Some(y)) => ins.fdiv(x, y),
            (Opcode::Fmin, Some(y)) => ins.fmin(x, y),
            (Opcode::Fmax, Some(y)) => ins.fmax(x, y),
            (Opcode::Fceil, _) => ins.ceil(x),
            (Opcode::Ffloor, _) => ins.floor(x),
            (Opcode::Ftrunc, _) => ins.trunc(x),
            (Opcode::Fnearest, _) => ins.nearest(x),
            (Opcode::Fsqrt, _) => ins.sqrt(x),
            (Opcode::Fpromote, _) => ins.fpromote(types::F64, x),
            (Opcode::Fdemote, _) => ins.fdemote(types::F32, x),
            (opcode, _) => unreachable!("jit: {} is no arithmetic on floats", opcode.name()),
        }
    }

    fn compare_floats(&mut self, data: &InstData) -> clif::Value {
        let condition = match data.opcode {
            Opcode::Feq => FloatCC::Equal,
            Opcode::Fne => FloatCC::NotEqual,
            Opcode::Flt => FloatCC::LessThan,
            Opcode::Fle => FloatCC::LessThanOrEqual,
            Opcode::Fgt => FloatCC::GreaterThan,
            _ => FloatCC::GreaterThanOrEqual,
        };
        let [x, y] = [0, 1].map(|i| self.value(data.args[i]));
        let truth = self.builder.ins().fcmp(condition, x, y);
        self.builder.ins().uextend(types::I32, truth)
    }

    fn compare(&mut self, condition: IntCC, data: &InstData) -> clif::Value {
        let x = self.value(data.args[0]);
        let truth = match data.args.get(1) {
            Some(y) => {
                let y = self.value(*y);
                self.builder.ins().icmp(condition, x, y)
            }
            None => self.builder.ins().icmp_imm_s(condition, x, 0),
        };
        self.builder.ins().uextend(types::I32, truth)
    }

    /// Lowers counts of bits. Narrow integers are counted in 32 bits.
    fn count_bits(&mut self, data: &InstData) -> clif::Value {
        let x = self.value(data.args[0]);
        let narrow = data.ty.bits() < 32;
        let wide = if narrow { self.builder.ins().uextend(types::I32, x) } else { x };
        let count = match data.opcode {
            Opcode::Popcnt => self.builder.ins().popcnt(wide),
            Opcode::Clz => {
                let count = self.builder.ins().clz(wide);
                // Do not count the zeros above a narrow value.
                let above = if narrow { 32 - i64::from(data.ty.bits()) } else { 0 };
                if narrow { self.builder.ins().iadd_imm_s(count, -above) } else { count }
            }
            _ => {
                // A bit above the narrow value ends the count of trailing zeros.
                let ended = if narrow {
                    self.builder.ins().bor_imm_u(wide, 1 << data.ty.bits())
                } else {
                    wide
                };
                self.builder.ins().ctz(ended)
            }
        };
        if narrow { self.builder.ins().ireduce(abi::held(data.ty), count) } else { count }
    }

    fn int_binary(&mut self, data: &InstData) -> clif::Value {
        if let Some((result, _)) = self.with_flag(data) {
            return result;
        }
        let [x, y] = [0, 1].map(|i| self.value(data.args[i]));
        let ins = self.builder.ins();
        match data.opcode {
            Opcode::Add => ins.iadd(x, y),
            Opcode::Sub => ins.isub(x, y),
            Opcode::Mul => ins.imul(x, y),
            Opcode::Sdiv => ins.sdiv(x, y),
            Opcode::Udiv => ins.udiv(x, y),
            Opcode::Srem => ins.srem(x, y),
            Opcode::Urem => ins.urem(x, y),
            Opcode::And => ins.band(x, y),
            Opcode::Or => ins.bor(x, y),
            Opcode::Xor => ins.bxor(x, y),
            Opcode::Shl => ins.ishl(x, y),
            Opcode::Sshr => ins.sshr(x, y),
            Opcode::Ushr => ins.ushr(x, y),
            Opcode::Rotl => ins.rotl(x, y),
            Opcode::Rotr => ins.rotr(x, y),
            opcode => unreachable!("jit: {} is no operation on two integers", opcode.name()),
        }
    }

    /// Lowers operations with one operand: conversions, extensions and casts.
    fn convert(&mut self, data: &InstData) -> clif::Value {
        let to = abi::held(data.ty);
        if data.opcode == Opcode::Bitcast {
            let x = self.observed(data.args[0]);
            return self.builder.ins().bitcast(to, MemFlagsData::new(), x);
        }
        let x = self.value(data.args[0]);
        let ins = self.builder.ins();
        match data.opcode {
            Opcode::Sext8 => self.sign_extended(types::I8, to, x),
            Opcode::Sext16 => self.sign_extended(types::I16, to, x),
            Opcode::Sext32 => self.sign_extended(types::I32, to, x),
            Opcode::Bswap => ins.bswap(x),
            Opcode::Sextend => ins.sextend(to, x),
            Opcode::Uextend => ins.uextend(to, x),
            Opcode::Wrap => ins.ireduce(to, x),
            Opcode::FloatFromSint => ins.fcvt_from_sint(to, x),
            Opcode::FloatFromUint => ins.fcvt_from_uint(to, x),
            Opcode::SintFromFloat => ins.fcvt_to_sint(to, x),
            Opcode::UintFromFloat => ins.fcvt_to_uint(to, x),
            Opcode::SintFromFloatSat => ins.fcvt_to_sint_sat(to, x),
            Opcode::UintFromFloatSat => ins.fcvt_to_uint_sat(to, x),
            opcode => unreachable!("jit: {} is no operation on one value", opcode.name()),
        }
    }

    fn sign_extended(&mut self, from: types::Type, to: types::Type, x: clif::Value) -> clif::Value {
        let low = self.builder.ins().ireduce(from, x);
        self.builder.ins().sextend(to, low)
    }
}

/// The condition of an integer comparison. A comparison with one operand compares it with zero.
fn int_condition(opcode: Opcode) -> Option<IntCC> {
    Some(match opcode {
        Opcode::Eqz | Opcode::RefIsNull | Opcode::Eq | Opcode::RefEq => IntCC::Equal,
        Opcode::Ne => IntCC::NotEqual,
        Opcode::Slt => IntCC::SignedLessThan,
        Opcode::Sle => IntCC::SignedLessThanOrEqual,
        Opcode::Sgt => IntCC::SignedGreaterThan,
        Opcode::Sge => IntCC::SignedGreaterThanOrEqual,
        Opcode::Ult => IntCC::UnsignedLessThan,
        Opcode::Ule => IntCC::UnsignedLessThanOrEqual,
        Opcode::Ugt => IntCC::UnsignedGreaterThan,
        Opcode::Uge => IntCC::UnsignedGreaterThanOrEqual,
        _ => return None,
    })
}
