//! Branches, and the truth of values.

use super::lower::Lower;
use super::registers::Rep;
use crate::bytecode::{Compare, Pc, Reg};
use crate::value::NIL;
use osier::ir::{Opcode, Type, Value};

impl Lower<'_> {
    pub(super) fn jump_if(&mut self, a: Reg, to: Pc, when: bool) {
        let holds = self.truth(a);
        self.branch(holds, to, when);
    }

    pub(super) fn jump(&mut self, kind: Compare, a: Reg, b: Reg, to: Pc, when: bool) {
        if self.is_never() {
            return self.leave();
        }
        let holds = self.compare(kind, a, b);
        self.branch(holds, to, when);
    }

    /// Continues at an instruction if a condition is `when`.
    pub(super) fn branch(&mut self, holds: Value, to: Pc, when: bool) {
        let (yes, no) = self.e.fork(holds);
        let (there, here) = if when { (yes, no) } else { (no, yes) };
        self.e.place(there);
        self.edge(to);
        self.e.place(here);
        self.is_open = true;
    }

    /// Whether a condition holds.
    pub(super) fn truth(&mut self, a: Reg) -> Value {
        match self.rep(a) {
            Rep::Int | Rep::Double => self.e.int(1),
            Rep::Dead => self.e.int(0),
            Rep::Word(_) => {
                let (word, nil) = (self.word(a), self.e.word(NIL));
                let (offset, one) =
                    (self.e.op(Opcode::Sub, Type::I64, &[word, nil]), self.e.word(1));
                self.e.op(Opcode::Ugt, Type::I64, &[offset, one])
            }
        }
    }
}
