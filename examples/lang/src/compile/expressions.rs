//! Expressions and conditions.

use super::{Compiled, Compiler, Home};
use crate::bytecode::{Arith, Compare, Constant, Op, Reg};
use crate::compile::MOST_ARGUMENTS;
use crate::library::Builtin;
use crate::syntax::{BinaryOp, Expr, ExprKind, Offset};
use crate::value::{FALSE, NIL, TRUE, number};

impl Compiler<'_> {
    /// The value of an expression, in some register.
    pub(super) fn expr(&mut self, expr: &Expr) -> Compiled<Reg> {
        if let ExprKind::Name(name) = &expr.kind
            && let Some(Home::Register(register)) = self.home(name)
        {
            return Ok(register);
        }
        let register = self.register(expr.at)?;
        self.expr_to(expr, register)?;
        Ok(register)
    }

    /// The value of an expression, in this register. Operands take registers above.
    pub(super) fn expr_to(&mut self, expr: &Expr, to: Reg) -> Compiled<()> {
        let next = self.unit().next;
        self.value(expr, to)?;
        self.unit().next = next;
        Ok(())
    }

    fn value(&mut self, expr: &Expr, to: Reg) -> Compiled<()> {
        let at = expr.at;
        match &expr.kind {
            ExprKind::Nil => self.constant(at, to, Constant::Word(NIL)),
            ExprKind::Bool(value) => {
                let word = if *value { TRUE } else { FALSE };
                self.constant(at, to, Constant::Word(word));
            }
            ExprKind::Number(value) => self.constant(at, to, Constant::Word(number(*value))),
            ExprKind::Text(text) => self.constant(at, to, Constant::Text(text.clone())),
            ExprKind::Name(name) => {
                let op = match self.home(name) {
                    Some(Home::Register(register)) if register == to => return Ok(()),
                    Some(Home::Register(register)) => Op::Move(to, register),
                    Some(Home::Cell(register)) => Op::GetCell(to, register),
                    Some(Home::Up(up)) => Op::GetUp(to, up),
                    Some(Home::Global(global)) => Op::GetGlobal(to, global),
                    None => return Err((at, format!("{name} is not defined"))),
                };
                self.emit(at, op);
            }
            ExprKind::Array(items) => {
                let from = self.sequence(at, items)?;
                self.emit(at, Op::NewArray(to, from, items.len() as u32));
            }
            ExprKind::Object(fields) => self.object(at, fields, to)?,
            ExprKind::Func(def) => self.closure(def, to)?,
            ExprKind::Negate(inner) => {
                let operand = self.expr(inner)?;
                self.emit(at, Op::Negate(to, operand));
            }
            ExprKind::Not(inner) => {
                let operand = self.expr(inner)?;
                self.emit(at, Op::Not(to, operand));
            }
            ExprKind::Binary(op, a, b) => self.binary(at, *op, a, b, to)?,
            ExprKind::Call(callee, args) => self.call(at, callee, args, to)?,
            ExprKind::Method(of, name, args) => {
                let (function, receiver) = (self.register(at)?, self.register(at)?);
                self.expr_to(of, receiver)?;
                let site = self.site(name);
                self.emit(at, Op::GetField(function, receiver, site));
                self.sequence(at, args)?;
                self.emit(at, Op::Call(to, function, most(at, args.len() + 1)?));
            }
            ExprKind::Field(of, name) => {
                let object = self.expr(of)?;
                let site = self.site(name);
                self.emit(at, Op::GetField(to, object, site));
            }
            ExprKind::Index(of, index) => {
                let (array, index) = (self.expr(of)?, self.expr(index)?);
                self.emit(at, Op::GetIndex(to, array, index));
            }
        }
        Ok(())
    }

    /// Values in successive registers. Returns the first.
    fn sequence(&mut self, at: Offset, items: &[Expr]) -> Compiled<Reg> {
        let from = self.unit().next;
        for item in items {
            let register = self.register(at)?;
            self.expr_to(item, register)?;
        }
        Ok(from as Reg)
    }

    fn object(&mut self, at: Offset, fields: &[(String, Expr)], to: Reg) -> Compiled<()> {
        let values: Vec<Expr> = fields.iter().map(|(_, value)| value.clone()).collect();
        let from = self.sequence(at, &values)?;
        let names: Vec<u32> = fields.iter().map(|(name, _)| self.shapes.name(name)).collect();
        let shape = self.shapes.literal(&names);
        self.emit(at, Op::NewObject(to, shape));
        for slot in 0..fields.len() as u32 {
            self.emit(at, Op::InitSlot(to, from + slot as Reg, slot));
        }
        Ok(())
    }

    fn call(&mut self, at: Offset, callee: &Expr, args: &[Expr], to: Reg) -> Compiled<()> {
        if let ExprKind::Name(name) = &callee.kind
            && self.home(name).is_none()
            && let Some((_, which, count)) = Builtin::ALL.iter().find(|known| known.0 == name)
        {
            if count.is_some_and(|count| count != args.len()) {
                return Err((at, format!("{name} takes {} arguments", count.unwrap_or(0))));
            }
            let from = self.sequence(at, args)?;
            let count = most(at, args.len())?;
            self.emit(at, Op::Builtin(*which, to, from, count));
            return Ok(());
        }
        let function = self.register(at)?;
        self.expr_to(callee, function)?;
        self.sequence(at, args)?;
        self.emit(at, Op::Call(to, function, most(at, args.len())?));
        Ok(())
    }

    fn binary(&mut self, at: Offset, op: BinaryOp, a: &Expr, b: &Expr, to: Reg) -> Compiled<()> {
        match op {
            // In a register of its own: the second operand may read the variable in `to`.
            BinaryOp::And | BinaryOp::Or if self.is_variable(to) => {
                let own = self.register(at)?;
                self.binary(at, op, a, b, own)?;
                self.emit(at, Op::Move(to, own));
            }
            BinaryOp::And | BinaryOp::Or => {
                self.expr_to(a, to)?;
                let over = if op == BinaryOp::And { Op::JumpUnless } else { Op::JumpIf };
                let over = self.emit(at, over(to, 0));
                self.expr_to(b, to)?;
                self.patch(&[over]);
            }
            BinaryOp::Compare(kind, is_swapped, is_negated) => {
                let (x, y) = self.operands(a, b, is_swapped)?;
                self.emit(at, Op::Compare(kind, to, x, y));
                if is_negated {
                    self.emit(at, Op::Not(to, to));
                }
            }
            BinaryOp::Arith(arith) => {
                let op = self.arith(arith, a, b, to)?;
                self.emit(at, op);
            }
        }
        Ok(())
    }

    fn operands(&mut self, a: &Expr, b: &Expr, is_swapped: bool) -> Compiled<(Reg, Reg)> {
        let (x, y) = (self.expr(a)?, self.expr(b)?);
        Ok(if is_swapped { (y, x) } else { (x, y) })
    }

    fn arith(&mut self, arith: Arith, a: &Expr, b: &Expr, to: Reg) -> Compiled<Op> {
        let x = self.expr(a)?;
        if let (Arith::Add | Arith::Sub, ExprKind::Number(n)) = (arith, &b.kind)
            && *n == n.trunc()
            && n.abs() < 1e9
            && *n != 0.0
        {
            let n = if arith == Arith::Add { *n } else { -*n };
            return Ok(Op::AddInt(to, x, n as i32));
        }
        let y = self.expr(b)?;
        Ok(match arith {
            Arith::Add => Op::Add(to, x, y),
            Arith::Sub => Op::Sub(to, x, y),
            Arith::Mul => Op::Mul(to, x, y),
            arith => Op::Arith(arith, to, x, y),
        })
    }

    /// Code that jumps if a condition is `when`, and falls through otherwise. Returns the jumps.
    pub(super) fn branch(&mut self, expr: &Expr, when: bool) -> Compiled<Vec<usize>> {
        let at = expr.at;
        let next = self.unit().next;
        let jumps = match &expr.kind {
            ExprKind::Not(inner) => self.branch(inner, !when)?,
            ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) => {
                // `and` jumps on false from both operands, `or` on true.
                let is_direct = (*op == BinaryOp::Or) == when;
                let mut first = self.branch(a, is_direct == when)?;
                let mut second = self.branch(b, when)?;
                if is_direct {
                    first.append(&mut second);
                    first
                } else {
                    self.patch(&first);
                    second
                }
            }
            ExprKind::Binary(BinaryOp::Compare(kind, is_swapped, is_negated), a, b) => {
                let (x, y) = self.operands(a, b, *is_swapped)?;
                let jump = match (kind, when != *is_negated) {
                    (Compare::Eq, true) => Op::JumpEq(x, y, 0),
                    (Compare::Eq, false) => Op::JumpNe(x, y, 0),
                    (Compare::Lt, true) => Op::JumpLt(x, y, 0),
                    (Compare::Lt, false) => Op::JumpNotLt(x, y, 0),
                    (Compare::Le, true) => Op::JumpLe(x, y, 0),
                    (Compare::Le, false) => Op::JumpNotLe(x, y, 0),
                };
                vec![self.emit(at, jump)]
            }
            _ => {
                let register = self.expr(expr)?;
                let jump = if when { Op::JumpIf(register, 0) } else { Op::JumpUnless(register, 0) };
                vec![self.emit(at, jump)]
            }
        };
        self.unit().next = next;
        Ok(jumps)
    }
}

fn most(at: Offset, count: usize) -> Compiled<u8> {
    match count > MOST_ARGUMENTS {
        true => Err((at, format!("more than {MOST_ARGUMENTS} arguments"))),
        false => Ok(count as u8),
    }
}
