//! The ways into a base: from its arguments, and at loop headers.

use super::lower::{DEPTH, Lower};
use super::registers::{Known, Rep, State, has};
use crate::bytecode::{Op, Pc, Reg};
use crate::heap::OPERANDS;
use crate::profile::kind;
use osier::ir::{Opcode, Target, Type, Value};

/// Depths from here on tell the base to continue at a loop header, see [`Lower::entrances`].
const ENTRANCES: i32 = i32::MIN;

impl Lower<'_> {
    /// The entry block. Arguments of one kind of number are unboxed here, for all loops.
    pub(super) fn arguments(&mut self) {
        let entry = self.e.b.create_block();
        self.e.b.switch_to(entry);
        let closure = self.e.b.append_param(entry, Type::Ref);
        self.e.b.def_var(self.closure, closure);
        let depth = self.e.b.append_param(entry, Type::I32);
        self.e.b.def_var(self.depth, depth);
        for register in 0..self.proto.params {
            let word = self.e.b.append_param(entry, Type::Ref);
            self.set_reference(register, word, Known::Nothing);
        }
        self.entrances();
        self.before.clone_from(&self.state);
        for register in 0..self.proto.params {
            if !has(&self.live[0], register) {
                continue;
            }
            match self.profile().params[usize::from(register)] {
                kind::INT => _ = self.int(register),
                kind::DOUBLE => {
                    self.double(register, kind::DOUBLE);
                }
                _ => {}
            }
        }
        self.place_exit();
        // An edge must not lead to the entry block.
        if self.leaders.contains_key(&0) {
            self.edge(0);
        }
    }

    /// Paths from the start to all loop headers, with any contents of the registers. No run takes
    /// them. So far, the base has only code that the interpreter has executed. Without these paths,
    /// passes would prove facts that hold for this code alone, and a run that comes up from the
    /// interpreter may have executed more.
    fn entrances(&mut self) {
        let headers = self.leaders.iter().filter(|(_, is_header)| **is_header);
        let headers: Vec<Pc> = headers.map(|(pc, _)| *pc).collect();
        if headers.is_empty() {
            return;
        }
        let (arguments, depth) = (self.state.clone(), self.e.b.use_var(self.depth));
        let first = self.e.int(ENTRANCES);
        let is_usual = self.e.op(Opcode::Ult, Type::I32, &[depth, first]);
        let (usual, mut other) = self.e.fork(is_usual);
        for (index, pc) in (0..).zip(headers) {
            let Some(state) = self.entries.get(&pc).cloned() else { continue };
            self.entered.insert(pc);
            self.e.place(other);
            let this = self.e.int(ENTRANCES + index);
            let is_this = self.e.op(Opcode::Eq, Type::I32, &[depth, this]);
            let (here, next) = self.e.fork(is_this);
            self.e.place(here);
            self.contents(&state);
            if let Some(less) = self.is_below_end(pc) {
                let inside = self.e.b.reserve_block();
                self.e.b.br_if(less, Target::new(inside, &[]), Target::new(next, &[]));
                self.e.place(inside);
            }
            self.edge(pc);
            other = next;
        }
        self.e.place(other);
        self.e.b.jump(usual, &[]);
        self.e.place(usual);
        (self.state, self.is_open) = (arguments, true);
    }

    /// Whether the counter of a `for` loop is below its end, at the header of the loop, if both are
    /// int32. In the interpreter it always is: the test before the loop and `ForNext` see to that,
    /// and nothing else writes the two registers.
    fn is_below_end(&mut self, header: Pc) -> Option<Value> {
        let ends = |op: &Op| match *op {
            Op::ForNext(counter, end, to) if to == header => Some([counter, end]),
            _ => None,
        };
        let registers = self.proto.code.iter().find_map(ends)?;
        let is_int = registers.iter().all(|register| self.rep(*register) == Rep::Int);
        let [counter, end] = registers.map(|register| self.ints[usize::from(register)]);
        is_int.then(|| {
            let operands = [self.e.b.use_var(counter), self.e.b.use_var(end)];
            self.e.op(Opcode::Slt, Type::I32, &operands)
        })
    }

    /// Sets all registers of a state to words in memory.
    fn contents(&mut self, state: &State) {
        let base = self.e.int(0);
        for (register, rep) in (0..).zip(state) {
            let register: Reg = register;
            let offset = OPERANDS + u32::from(register) * 8;
            let (ty, variables) = match rep {
                Rep::Dead => continue,
                Rep::Int => (Type::I32, &self.ints),
                Rep::Double => (Type::F64, &self.doubles),
                Rep::Word(_) => (Type::I64, &self.words),
            };
            let variable = variables[usize::from(register)];
            let mut value = self.e.load(ty, base, offset);
            if let Rep::Word(_) = rep {
                value = self.e.reference(value);
            }
            self.e.b.def_var(variable, value);
        }
        let depth = self.e.load(Type::I32, base, OPERANDS + DEPTH * 8);
        self.e.b.def_var(self.depth, depth);
        self.state.clone_from(state);
    }
}
