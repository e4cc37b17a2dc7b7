//! Calls of functions: a comparison with each function that the call has led to, and behind it a
//! direct call, or the code of a small function inlined.
//!
//! *Small* functions have no loops or handlers. Arguments and results of inlined code stay unboxed.
//! Where a guard of inlined code fails, the run leaves with two frames of the interpreter: the
//! frame of the function, and the frame of its caller, which waits behind the call.
//!
//! Where a call has had several callees, code inlines those callees alone that have no effects or
//! calls: the code of several functions with effects takes longer to make than it gains. A complete
//! base inlines no others at all. It has no exits, so where a guard of inlined code fails, the
//! interpreter makes the whole call.

use super::CallUse;
use super::lower::{Around, Lower, MOST_INLINED, liveness};
use super::registers::{Known, Rep, State, accesses, leaders, leads};
use crate::bytecode::{Op, Pc, Proto, Reg};
use crate::interp::MOST_FRAMES;
use crate::library::Builtin;
use crate::value::tag;
use osier::ir::{Block, FrameState, Opcode, Type, Value, Variable};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The most instructions of a small function.
const SMALL: usize = 24;
/// The most calls inlined in one another.
const MOST_NESTED: usize = 2;
/// The most registers of a small function; one more is for its result.
const MOST_REGISTERS: u32 = 254;

/// How values are kept where paths of calls join. A function is built again until these facts
/// change no more.
#[derive(Default)]
pub(super) struct Joins {
    /// By call and function: the entries of inlined code, and its own joins.
    inlined: BTreeMap<(Pc, u32), (BTreeMap<Pc, State>, Joins)>,
    /// By call: its result.
    results: BTreeMap<Pc, Rep>,
    /// By call in a complete base: the small functions whose code calls the runtime, which may
    /// throw in an activation of the function. These functions are called
    /// (`a_function_that_joins_strings_is_called`).
    called: BTreeSet<(Pc, u32)>,
}

/// A call whose callee is inlined.
pub(super) struct InlinedCall<'a> {
    /// The frame of the interpreter in front of it.
    pub(super) state: Arc<FrameState>,
    /// The function of the call, and the call that it is itself inlined in.
    number: u32,
    around: Option<&'a InlinedCall<'a>>,
    /// Where the caller continues if the callee throws.
    pub(super) throws: OnceCell<Block>,
}

impl InlinedCall<'_> {
    /// The functions around, the innermost first.
    fn functions(&self) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(self), |call| call.around).map(|call| call.number)
    }
}

/// A value, and how it is kept.
#[derive(Clone, Copy)]
struct KeptValue {
    rep: Rep,
    value: Value,
}

/// The function that a call compares its callee with.
struct Callee {
    number: u32,
    closure: Value,
    depth: Value,
}

/// Where the paths of a call join: the block, and the variable of the result.
#[derive(Default)]
struct CallEnd(Option<(Block, Rep, Variable)>);

/// Whether code may inline a function.
fn is_small(proto: &Proto, may_have_effects: bool) -> bool {
    let is_forward = |(pc, op): (usize, &Op)| leads(*op).0.is_none_or(|to| to as usize > pc);
    let is_plain = |op: &Op| match op {
        Op::Const(..) | Op::Move(..) | Op::Add(..) | Op::Sub(..) | Op::Mul(..) => true,
        Op::AddInt(..) | Op::Arith(..) | Op::Negate(..) | Op::Not(..) | Op::Compare(..) => true,
        Op::GetGlobal(..) | Op::GetUp(..) | Op::GetField(..) | Op::GetIndex(..) => true,
        Op::Return(_) => true,
        Op::Builtin(which, ..) => matches!(
            which,
            Builtin::Sqrt | Builtin::Floor | Builtin::Len | Builtin::Byte | Builtin::Char
        ),
        // Jumps, which lead forward.
        _ => leads(*op).0.is_some(),
    };
    proto.code.len() <= SMALL
        && proto.registers <= MOST_REGISTERS
        && proto.handlers.is_empty()
        && proto.code.iter().enumerate().all(is_forward)
        && (may_have_effects || proto.code.iter().all(is_plain))
}

impl Lower<'_> {
    pub(super) fn call(&mut self, d: Reg, callee: Reg, args: u8) {
        let cases = self.profile().calls[self.pc as usize].clone();
        let is_any = cases.is_many || self.input.callees == CallUse::Any;
        let fits = |number: &&u32| self.input.program.protos[**number as usize].params == args;
        let mut seen: Vec<u32> = cases.seen.iter().filter(fits).copied().collect();
        if seen.is_empty() && !cases.is_many {
            return self.leave();
        }
        if self.input.callees == CallUse::Any {
            seen.clear();
        }
        // The definition came before the first call that was seen, and it alone sets the variable.
        let is_known = self.defined(callee).is_some_and(|function| seen == [function]);
        let number = (!is_known).then(|| {
            let address = self.address(callee, tag::CLOSURE);
            self.e.load(Type::I32, address, 0)
        });
        let (depth, one) = (self.e.b.use_var(self.depth), self.e.int(1));
        let depth = self.e.op(Opcode::Add, Type::I32, &[depth, one]);
        let most = self.e.int(MOST_FRAMES as i32);
        let is_shallow = self.e.op(Opcode::Ult, Type::I32, &[depth, most]);
        self.guard(is_shallow);
        let closure = self.reference(callee);
        let is_variable = self.input.is_complete && self.is_variable(callee);
        let mut end = CallEnd::default();
        for (index, case) in seen.iter().enumerate() {
            // Behind a first assumption, others would be about code that no run reaches.
            let is_asked = is_variable && index == 0;
            if is_asked {
                self.note_state();
            }
            let is_last = index + 1 == seen.len() && !is_any;
            let next = number.and_then(|number| self.is_case(number, *case, is_last, is_asked));
            self.is_open = true;
            self.case(Callee { number: *case, closure, depth }, callee + 1, args, &mut end);
            if let Some(next) = next {
                self.e.place(next);
                self.is_open = true;
            }
        }
        if is_any {
            self.call_any(closure, depth, callee + 1, args, &mut end);
        }
        self.is_open = end.0.is_some();
        if let Some((block, rep, variable)) = end.0 {
            self.e.place(block);
            self.forget_shapes();
            let value = self.e.b.use_var(variable);
            self.set(d, rep, value);
        }
    }

    /// Continues if a callee is a certain function. Returns the block for other functions, if there
    /// are more.
    fn is_case(
        &mut self,
        number: Value,
        case: u32,
        is_last: bool,
        is_asked: bool,
    ) -> Option<Block> {
        let wanted = self.e.int(case as i32);
        let is_it = self.e.op(Opcode::Eq, Type::I32, &[number, wanted]);
        if is_asked {
            self.asked.push(is_it);
        } else if is_last {
            self.guard(is_it);
            return None;
        }
        let (it, other) = self.e.fork(is_it);
        if is_last {
            self.e.place(other);
            self.leave();
        }
        self.e.place(it);
        (!is_last).then_some(other)
    }

    /// The last instruction in front of the call that sets its callee, in the order of the text:
    /// a path that jumps past the instruction may bring another value.
    fn setter(&self, callee: Reg) -> Option<(Pc, Op)> {
        let mut before = (0..self.pc).zip(&self.proto.code).rev();
        before.find(|(_, op)| accesses(**op).1 == Some(callee)).map(|(pc, op)| (pc, *op))
    }

    /// Whether the callee of the call is a local variable or a parameter, which seldom changes in a
    /// loop. A name of the outermost level changes still less, and a field more often.
    fn is_variable(&self, callee: Reg) -> bool {
        let setter = self.setter(callee).map(|(_, op)| op);
        matches!(setter, None | Some(Op::Move(..) | Op::GetCell(..) | Op::GetUp(..)))
    }

    /// The function of the callee, if the callee is a variable that its definition alone sets. No
    /// path may join between the read of the variable and the call: it would bring another callee.
    fn defined(&self, callee: Reg) -> Option<u32> {
        let Some((pc, Op::GetGlobal(_, global))) = self.setter(callee) else { return None };
        let is_joined = self.leaders.range(pc + 1..=self.pc).next().is_some();
        let function = self.input.program.functions.get(&global).copied();
        function.filter(|_| !is_joined)
    }

    /// The path of a call to a function that it has led to.
    fn case(&mut self, callee: Callee, from: Reg, args: u8, end: &mut CallEnd) {
        let proto = &self.input.program.protos[callee.number as usize];
        let around: Vec<u32> = self.within.into_iter().flat_map(InlinedCall::functions).collect();
        let is_recursive = callee.number == self.input.number || around.contains(&callee.number);
        // The code of several functions with effects takes longer to make than it gains.
        let is_alone = self.profile().calls[self.pc as usize].seen.len() == 1;
        let is_inlined = self.input.callees == CallUse::Inlined
            && !self.joins.called.contains(&(self.pc, callee.number))
            && is_small(proto, is_alone && !self.input.is_complete)
            && !is_recursive
            && around.len() < MOST_NESTED
            && self.inlined + proto.code.len() <= MOST_INLINED;
        if is_inlined {
            self.inlined += proto.code.len();
            self.inlined_calls += 1;
            if let Some(result) = self.inline(&callee, from, args) {
                self.join(result, end);
            }
            return;
        }
        self.callees.insert(callee.number);
        let mut given = vec![callee.closure, callee.depth];
        given.extend(self.references(from, args));
        let value = self.e.call(self.input.funcs[callee.number as usize], &given);
        self.check(value, false);
        self.join(KeptValue { rep: Rep::ANY, value }, end);
    }

    /// The path of a call to any function, through the interpreter.
    fn call_any(&mut self, closure: Value, depth: Value, from: Reg, args: u8, end: &mut CallEnd) {
        self.note_place();
        let words: Vec<Value> = (from..from + args).map(|register| self.word(register)).collect();
        self.give(&words);
        let count = self.e.int(words.len() as i32);
        let value = self.e.call(self.input.imports.call, &[closure, depth, count]);
        self.check(value, false);
        self.join(KeptValue { rep: Rep::ANY, value }, end);
    }

    /// The code of a small function, in the place of a call. Its result, unless each path leaves.
    fn inline(&mut self, callee: &Callee, from: Reg, args: u8) -> Option<KeptValue> {
        let call = InlinedCall {
            state: Arc::new(self.frame_state(self.pc, self.pc)),
            number: self.input.number,
            around: self.within,
            throws: OnceCell::new(),
        };
        let program = self.input.program;
        let proto = &program.protos[callee.number as usize];
        let (mut live, mut leaders) = (liveness(program, callee.number), leaders(proto));
        let (end, result) = (proto.code.len(), proto.registers as Reg);
        live[end][usize::from(result) / 64] |= 1 << (result % 64);
        leaders.insert(end as Pc, false);
        let given: Vec<KeptValue> = (from..from + args)
            .map(|register| KeptValue { rep: self.rep(register), value: self.kept(register) })
            .collect();
        let place = (self.pc, callee.number);
        let (mut entries, mut joins) = self.joins.inlined.remove(&place).unwrap_or_default();
        let input = super::lower::Input { number: callee.number, ..*self.input };
        let around = Around { live: &live, leaders: &leaders, entries: &mut entries };
        let mut inner = Lower::new(&input, proto.registers + 1, self.e, around, &mut joins);
        inner.within = Some(&call);
        if input.is_complete {
            inner.exit = self.exit;
        }
        inner.inlined = self.inlined;
        inner.e.b.def_var(inner.closure, callee.closure);
        inner.e.b.def_var(inner.depth, callee.depth);
        (0..).zip(&given).for_each(|(register, kept)| inner.set(register, kept.rep, kept.value));
        inner.code();
        inner.begin(end as Pc);
        let kept =
            inner.is_open.then(|| KeptValue { rep: inner.rep(result), value: inner.kept(result) });
        let Lower { exit, asked, is_changed, needs_runtime, callees, inlined, .. } = inner;
        let inlined_calls = inner.inlined_calls;
        if self.input.is_complete {
            self.exit = exit;
        }
        self.asked.extend(asked);
        self.callees.extend(callees);
        self.is_changed |= is_changed || needs_runtime;
        (self.inlined, self.inlined_calls) = (inlined, self.inlined_calls + inlined_calls);
        self.joins.inlined.insert(place, (entries, joins));
        if needs_runtime {
            self.joins.called.insert(place);
        }
        self.catch(&call);
        kept
    }

    /// Places the block where the caller continues if inlined code throws.
    fn catch(&mut self, call: &InlinedCall<'_>) {
        let Some(throws) = call.throws.get() else { return };
        let current = self.e.b.current();
        self.e.place(*throws);
        self.throw_on();
        if let Some(current) = current {
            self.e.b.switch_to(current);
        }
    }

    /// Ends inlined code with the value of a register.
    pub(super) fn return_inlined(&mut self, a: Reg) {
        let (rep, kept) = (self.rep(a), self.kept(a));
        self.set(self.proto.registers as Reg, rep, kept);
        self.edge(self.proto.code.len() as Pc);
    }

    /// Ends a path of a call with its result, kept as on all paths.
    fn join(&mut self, KeptValue { rep, value }: KeptValue, end: &mut CallEnd) {
        let rep = if rep == Rep::Dead { Rep::Word(Known::Tag(tag::SPECIAL)) } else { rep };
        let known = self.joins.results.entry(self.pc).or_insert(rep);
        let wanted = known.join(rep);
        self.is_changed |= *known != wanted;
        *known = wanted;
        let (block, wanted, variable) = *end.0.get_or_insert_with(|| {
            let ty = match wanted {
                Rep::Int => Type::I32,
                Rep::Double => Type::F64,
                Rep::Word(_) | Rep::Dead => Type::Ref,
            };
            (self.e.b.reserve_block(), wanted, self.e.b.declare_var(ty))
        });
        let value = match (rep, wanted) {
            (Rep::Int, Rep::Double) => Some(self.e.op(Opcode::FloatFromSint, Type::F64, &[value])),
            (Rep::Int, Rep::Word(_)) => {
                let word = self.e.boxed(value);
                Some(self.e.reference(word))
            }
            (Rep::Double, Rep::Word(_)) => {
                let word = self.e.op(Opcode::Bitcast, Type::I64, &[value]);
                Some(self.e.reference(word))
            }
            (Rep::Int, Rep::Int) | (Rep::Double, Rep::Double) | (Rep::Word(_), Rep::Word(_)) => {
                Some(value)
            }
            // The path has changed how the result is kept: the function is built again.
            _ => None,
        };
        value.into_iter().for_each(|value| self.e.b.def_var(variable, value));
        self.e.b.jump(block, &[]);
        self.is_open = false;
    }
}
