//! From bytecode and its profile to a function of the IR: the *base* of a function.
//!
//! A number that the profile has seen as int32 is kept as an `i32`, a double as an `f64`, and all
//! else as a word. Where a register has another kind than the profile says, the base leaves: it
//! branches to a block that traps, with a frame state in front. Osier never executes that trap; an
//! OSR point in front of it hands the frame to the interpreter.
//!
//! How registers are kept where paths join follows from a fixpoint: the function is built again
//! until no path changes the state of a place ([`super::registers::join`]).

use super::CallUse;
use super::complete::Dispatch;
use super::emit::Emit;
use super::inline::{InlinedCall, Joins};
use super::registers::{Known, Registers, Rep, State, has, join, leaders, live};
use super::runtime::Imports;
use crate::bytecode::{Capture, Compare, Op, Pc, Program, Proto, Reg};
use crate::heap::EXCEPTION;
use crate::profile::ProtoProfile;
use crate::value::{FALSE, NIL, Word, is_double, is_int, tag, tag_of};
use osier::ir::{
    Block, FrameState, FrameStates, Func, Function, Local, LocalContent, Opcode, Point, Target,
    Type, Value, Variable,
};
use osier::ir::{FinishedFunction, FunctionBuilder, Signature};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The slot of the closure in a frame state, behind the slots of the registers.
pub(super) const CLOSURE: u32 = 254;
/// The slot of the depth of the activation.
pub(super) const DEPTH: u32 = 255;
/// The most instructions of callees that a function inlines.
pub(super) const MOST_INLINED: usize = 128;
/// Marks the program counter of the state of a loop header.
pub(super) const HEADER: u32 = 1 << 31;
/// The representations of frame states: a word, an int32, a double.
pub(super) const WORD: u32 = 0;
pub(super) const INT: u32 = 1;
pub(super) const DOUBLE: u32 = 2;
/// A word with this tag: the sum of this number and the low 16 bits of the tag.
pub(super) const TAGGED: u32 = 3;
/// An object: the sum of this number and its shape.
pub(super) const SHAPED: u32 = 1 << 17;
/// The parts that a function is lowered from.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    pub(super) program: &'a Program,
    pub(super) number: u32,
    /// The name of the function of the IR.
    pub(super) name: &'a str,
    /// By function of the program.
    pub(super) constants: &'a [Vec<Word>],
    pub(super) profiles: &'a [ProtoProfile],
    pub(super) imports: &'a Imports,
    /// By function of the program: the function of the IR that calls lead to.
    pub(super) funcs: &'a [Func],
    /// By shape: the slots in its objects.
    pub(super) inside: &'a dyn Fn(u32) -> u32,
    /// Whether guards fail at random.
    pub(super) is_chaotic: bool,
    /// Whether the base is complete: where a guard fails, it calls the interpreter, and it tells
    /// int32 from doubles where both were seen. So code can assume which of both comes
    /// ([`Dispatch`]).
    pub(super) is_complete: bool,
    /// What the code of calls is.
    pub(super) callees: CallUse,
    /// Whether a call of [`Imports::new`] makes each object.
    pub(super) calls_new: bool,
}

/// The base of a function.
pub(super) struct Lowered {
    pub(super) function: Function,
    pub(super) states: FrameStates,
    /// The functions of the program that it calls.
    pub(super) callees: BTreeSet<u32>,
    pub(super) dispatches: Vec<Dispatch>,
    /// The paths of calls whose callee is inlined.
    pub(super) inlined_calls: u32,
}

/// By instruction of a function of the program: the live registers in front of it.
pub(super) fn liveness(program: &Program, number: u32) -> Vec<Registers> {
    let captured = |number: u32| {
        let captures = &program.protos[number as usize].captures;
        let local = |capture: &Capture| match capture {
            Capture::Local(register) => Some(*register),
            Capture::Up(_) => None,
        };
        captures.iter().filter_map(local).collect()
    };
    live(&program.protos[number as usize], captured)
}

/// The signature of a function with this many parameters: closure, depth, arguments.
pub(super) fn signature(params: u8) -> Signature {
    let mut types = vec![Type::Ref, Type::I32];
    types.extend((0..params).map(|_| Type::Ref));
    Signature::new(&types, &[Type::Ref])
}

/// Lowers a function. `None` if it cannot be built.
pub(super) fn lower(input: &Input<'_>) -> Option<Lowered> {
    let proto = &input.program.protos[input.number as usize];
    let (live, leaders) = (liveness(input.program, input.number), leaders(proto));
    let (mut entries, mut joins) = (BTreeMap::new(), Joins::default());
    // Each turn moves some register up a lattice of height 3.
    for _ in 0..proto.code.len() * 3 + MOST_INLINED * 3 + 8 {
        let b = FunctionBuilder::new(input.name, signature(proto.params));
        let mut e = Emit { b, is_chaotic: input.is_chaotic };
        let around = Around { live: &live, leaders: &leaders, entries: &mut entries };
        let mut lowerer = Lower::new(input, proto.registers, &mut e, around, &mut joins);
        lowerer.function();
        let Lower { is_changed, callees, asked, inlined_calls, .. } = lowerer;
        if !is_changed {
            let FinishedFunction { function, states, ids, .. } = e.b.finish().ok()?;
            let dispatch = |asked: &Value| {
                let holds = ids.value(*asked)?;
                let block = function.value_block(holds);
                Some(Dispatch { at: Point::before(function.terminator(block)), holds })
            };
            let dispatches = asked.iter().filter_map(dispatch).collect();
            return Some(Lowered { function, states, callees, dispatches, inlined_calls });
        }
    }
    None
}

pub(super) struct Lower<'a> {
    pub(super) input: &'a Input<'a>,
    pub(super) proto: &'a Proto,
    pub(super) live: &'a [Registers],
    pub(super) leaders: &'a BTreeMap<Pc, bool>,
    /// By block: how its registers are kept at its start.
    pub(super) entries: &'a mut BTreeMap<Pc, State>,
    /// The same of inlined code, and of results.
    pub(super) joins: &'a mut Joins,
    /// Whether a path has changed `entries`, so that the function must be built again.
    pub(super) is_changed: bool,
    pub(super) e: &'a mut Emit,
    blocks: BTreeMap<Pc, Block>,
    /// By register: its variables as `i32`, `f64` and word.
    pub(super) ints: Vec<Variable>,
    pub(super) doubles: Vec<Variable>,
    pub(super) words: Vec<Variable>,
    pub(super) closure: Variable,
    pub(super) depth: Variable,
    pub(super) state: State,
    /// The state in front of the instruction.
    pub(super) before: State,
    pub(super) pc: Pc,
    /// The block that leaves in front of the instruction.
    pub(super) exit: Option<Block>,
    /// Whether control reaches the end of the code so far.
    pub(super) is_open: bool,
    pub(super) callees: BTreeSet<u32>,
    /// The loop headers with a path from the start.
    pub(super) entered: BTreeSet<Pc>,
    /// The conditions of dispatches.
    pub(super) asked: Vec<Value>,
    /// The instructions inlined.
    pub(super) inlined: usize,
    /// The paths of calls inlined.
    pub(super) inlined_calls: u32,
    /// In inlined code: the call.
    pub(super) within: Option<&'a InlinedCall<'a>>,
    /// Whether inlined code of a complete base would call the runtime.
    pub(super) needs_runtime: bool,
}

/// The facts about the blocks of a function.
pub(super) struct Around<'a> {
    pub(super) live: &'a [Registers],
    pub(super) leaders: &'a BTreeMap<Pc, bool>,
    pub(super) entries: &'a mut BTreeMap<Pc, State>,
}

impl<'a> Lower<'a> {
    pub(super) fn new(
        input: &'a Input<'a>,
        registers: u32,
        e: &'a mut Emit,
        Around { live, leaders, entries }: Around<'a>,
        joins: &'a mut Joins,
    ) -> Lower<'a> {
        let b = &mut e.b;
        let mut declare = |ty| (0..registers).map(|_| b.declare_var(ty)).collect();
        let (ints, doubles, words) = (declare(Type::I32), declare(Type::F64), declare(Type::Ref));
        let (closure, depth) = (b.declare_var(Type::Ref), b.declare_var(Type::I32));
        let state = vec![Rep::Dead; registers as usize];
        Lower {
            input,
            proto: &input.program.protos[input.number as usize],
            live,
            leaders,
            entries,
            joins,
            is_changed: false,
            e,
            blocks: BTreeMap::new(),
            ints,
            doubles,
            words,
            closure,
            depth,
            before: state.clone(),
            state,
            pc: 0,
            exit: None,
            is_open: true,
            callees: BTreeSet::new(),
            asked: Vec::new(),
            entered: BTreeSet::new(),
            inlined: 0,
            inlined_calls: 0,
            within: None,
            needs_runtime: false,
        }
    }

    fn function(&mut self) {
        self.arguments();
        self.code();
        // A header that this turn has found needs its path from the start.
        let is_missed = |(pc, is_header): (&Pc, &bool)| {
            *is_header && self.entries.contains_key(pc) && !self.entered.contains(pc)
        };
        self.is_changed |= self.leaders.iter().any(is_missed);
    }

    /// The code of all instructions.
    pub(super) fn code(&mut self) {
        for pc in 0..self.proto.code.len() as Pc {
            if self.leaders.contains_key(&pc) {
                self.begin(pc);
            }
            if !self.is_open {
                continue;
            }
            self.pc = pc;
            self.before.clone_from(&self.state);
            self.instruction(self.proto.code[pc as usize]);
            self.place_exit();
        }
    }

    /// Begins the block of an instruction, if a path leads there.
    pub(super) fn begin(&mut self, pc: Pc) {
        if self.is_open && (pc != 0 || !self.blocks.contains_key(&0)) {
            self.edge(pc);
        }
        self.is_open = false;
        let Some(state) = self.entries.get(&pc) else { return };
        self.state = state.clone();
        let block = self.block(pc);
        self.e.place(block);
        self.is_open = true;
        if self.leaders[&pc] {
            let state = self.frame_state(pc | HEADER, pc);
            self.e.b.frame_state(state);
        }
    }

    fn block(&mut self, pc: Pc) -> Block {
        let b = &mut self.e.b;
        *self.blocks.entry(pc).or_insert_with(|| b.reserve_block())
    }

    /// Continues at an instruction, with registers kept as all paths there agree.
    pub(super) fn edge(&mut self, to: Pc) {
        let mut path = self.state.clone();
        for (register, rep) in (0..).zip(&mut path) {
            if !has(&self.live[to as usize], register) {
                *rep = Rep::Dead;
            } else if *rep == Rep::Dead {
                *rep = Rep::ANY;
            }
        }
        match self.entries.get_mut(&to) {
            Some(known) => self.is_changed |= join(known, &path),
            None => {
                self.entries.insert(to, path);
                // A loop may have read the state of its header without this path.
                self.is_changed |= to <= self.pc && self.leaders.contains_key(&to);
            }
        }
        let wanted = self.entries[&to].clone();
        for (register, rep) in (0..).zip(wanted) {
            match (self.state[usize::from(register)], rep) {
                (Rep::Int, Rep::Double) => {
                    let value = self.double(register, 0);
                    self.e.b.def_var(self.doubles[usize::from(register)], value);
                }
                (Rep::Int | Rep::Double | Rep::Dead, Rep::Word(_)) => {
                    let word = self.reference(register);
                    self.e.b.def_var(self.words[usize::from(register)], word);
                }
                _ => {}
            }
        }
        let block = self.block(to);
        self.e.b.jump(block, &[]);
        self.is_open = false;
    }

    /// The frame of the interpreter at an instruction.
    pub(super) fn frame_state(&mut self, pc: u32, at: Pc) -> FrameState {
        let mut locals = Vec::new();
        for register in 0..self.proto.registers as Reg {
            if !has(&self.live[at as usize], register) {
                continue;
            }
            let index = usize::from(register);
            let (variable, representation) = match self.before_or(pc)[index] {
                Rep::Dead => continue,
                Rep::Int => (self.ints[index], INT),
                Rep::Double => (self.doubles[index], DOUBLE),
                Rep::Word(Known::Nothing) => (self.words[index], WORD),
                Rep::Word(Known::Tag(tag)) => (self.words[index], TAGGED + tag as u32),
                Rep::Word(Known::Shape(shape)) => (self.words[index], SHAPED + shape),
            };
            let content = LocalContent::Value(self.e.b.use_var(variable));
            locals.push(Local { slot: u32::from(register), content, representation });
        }
        for (slot, variable) in [(CLOSURE, self.closure), (DEPTH, self.depth)] {
            let content = LocalContent::Value(self.e.b.use_var(variable));
            locals.push(Local { slot, content, representation: WORD });
        }
        let caller = self.within.map(|call| Arc::clone(&call.state));
        FrameState { caller, ..FrameState::new(self.input.number, pc, locals) }
    }

    fn before_or(&self, pc: u32) -> &State {
        if pc & HEADER == 0 { &self.before } else { &self.state }
    }

    /// Continues only if a condition holds, and leaves in front of the instruction otherwise.
    pub(super) fn guard(&mut self, holds: Value) {
        let exit = self.exit_block();
        let holds = self.e.failing(holds);
        self.e.branch_to(holds, exit);
    }

    /// Leaves in front of the instruction if a condition holds.
    pub(super) fn guard_not(&mut self, fails: Value) {
        if self.e.is_chaotic {
            let holds = self.e.op(Opcode::Eqz, Type::I32, &[fails]);
            return self.guard(holds);
        }
        let (exit, good) = (self.exit_block(), self.e.b.reserve_block());
        self.e.b.br_if(fails, Target::new(exit, &[]), Target::new(good, &[]));
        self.e.place(good);
    }

    fn exit_block(&mut self) -> Block {
        let b = &mut self.e.b;
        *self.exit.get_or_insert_with(|| b.reserve_block())
    }

    /// Leaves in front of the instruction.
    pub(super) fn leave(&mut self) {
        let exit = self.exit_block();
        self.e.b.jump(exit, &[]);
        self.is_open = false;
    }

    pub(super) fn place_exit(&mut self) {
        if self.within.is_some() && self.input.is_complete {
            return;
        }
        let Some(exit) = self.exit.take() else { return };
        let current = self.e.b.current().filter(|_| self.is_open);
        self.e.place(exit);
        if self.input.is_complete {
            self.e.b.mark_cold(exit);
            self.go_on();
        } else {
            self.note_state();
            self.e.trap();
        }
        if let Some(current) = current {
            self.e.b.switch_to(current);
        }
    }

    /// Notes the frame of the interpreter in front of the instruction.
    pub(super) fn note_state(&mut self) {
        let state = match self.within {
            Some(call) if self.input.is_complete => FrameState::clone(&call.state),
            _ => self.frame_state(self.pc, self.pc),
        };
        self.e.b.frame_state(state);
    }

    /// The observations in the function.
    pub(super) fn profile(&self) -> &'a ProtoProfile {
        &self.input.profiles[self.input.number as usize]
    }

    /// The kinds of the operands that the interpreter has seen.
    pub(super) fn kinds(&self) -> [u16; 2] {
        self.profile().operands[self.pc as usize]
    }

    /// Whether the interpreter has never executed the instruction.
    pub(super) fn is_never(&self) -> bool {
        self.kinds() == [0; 2]
    }

    pub(super) fn rep(&self, register: Reg) -> Rep {
        self.state[usize::from(register)]
    }

    pub(super) fn set_word(&mut self, register: Reg, word: Value, known: Known) {
        let reference = self.e.reference(word);
        self.set_reference(register, reference, known);
    }

    pub(super) fn set_reference(&mut self, register: Reg, value: Value, known: Known) {
        self.e.b.def_var(self.words[usize::from(register)], value);
        self.state[usize::from(register)] = Rep::Word(known);
    }

    pub(super) fn set_int(&mut self, register: Reg, value: Value) {
        self.e.b.def_var(self.ints[usize::from(register)], value);
        self.state[usize::from(register)] = Rep::Int;
    }

    pub(super) fn set_double(&mut self, register: Reg, value: Value) {
        self.e.b.def_var(self.doubles[usize::from(register)], value);
        self.state[usize::from(register)] = Rep::Double;
    }

    /// Sets a register to a value that is kept so.
    pub(super) fn set(&mut self, register: Reg, rep: Rep, value: Value) {
        match rep {
            Rep::Int => self.set_int(register, value),
            Rep::Double => self.set_double(register, value),
            Rep::Word(known) => self.set_reference(register, value, known),
            Rep::Dead => self.set_reference(register, value, Known::Tag(tag::SPECIAL)),
        }
    }

    /// A register as it is kept.
    pub(super) fn kept(&mut self, register: Reg) -> Value {
        let index = usize::from(register);
        match self.state[index] {
            Rep::Int => self.e.b.use_var(self.ints[index]),
            Rep::Double => self.e.b.use_var(self.doubles[index]),
            Rep::Word(_) => self.e.b.use_var(self.words[index]),
            Rep::Dead => self.e.fixed(NIL),
        }
    }

    /// A register as a word, which is valid until the next call.
    pub(super) fn word(&mut self, register: Reg) -> Value {
        let kept = self.kept(register);
        match self.rep(register) {
            Rep::Int => self.e.boxed(kept),
            Rep::Double => self.e.op(Opcode::Bitcast, Type::I64, &[kept]),
            Rep::Word(_) | Rep::Dead => self.e.bits(kept),
        }
    }

    /// A register as a reference, which a collection finds.
    pub(super) fn reference(&mut self, register: Reg) -> Value {
        match self.rep(register) {
            Rep::Int | Rep::Double => {
                let word = self.word(register);
                self.e.reference(word)
            }
            Rep::Word(_) | Rep::Dead => self.kept(register),
        }
    }

    /// Registers as references.
    pub(super) fn references(&mut self, from: Reg, count: u8) -> Vec<Value> {
        (from..from + count).map(|register| self.reference(register)).collect()
    }

    /// The address of a reference, whose tag is guarded if it is not known.
    pub(super) fn address(&mut self, register: Reg, tag: u64) -> Value {
        let word = self.word(register);
        if self.rep(register).tag() != Some(tag) {
            let is = self.e.has_tag(word, tag);
            self.guard(is);
            if let Rep::Word(_) = self.rep(register) {
                self.state[usize::from(register)] = Rep::Word(Known::Tag(tag));
            }
        }
        self.e.op(Opcode::Wrap, Type::I32, &[word])
    }

    /// Forgets the shapes of objects, which a call may have changed.
    pub(super) fn forget_shapes(&mut self) {
        for rep in &mut self.state {
            if let Rep::Word(Known::Shape(_)) = rep {
                *rep = Rep::Word(Known::Tag(tag::OBJECT));
            }
        }
    }

    fn instruction(&mut self, op: Op) {
        match op {
            Op::Const(d, index) => {
                let constants = &self.input.constants[self.input.number as usize];
                self.constant(d, constants[index as usize]);
            }
            Op::Move(d, a) => {
                let (kept, rep) = (self.kept(a), self.rep(a));
                self.set(d, rep, kept);
            }
            Op::Jump(to) | Op::JumpBack(to) => self.edge(to),
            Op::JumpIf(a, to) => self.jump_if(a, to, true),
            Op::JumpUnless(a, to) => self.jump_if(a, to, false),
            Op::JumpLt(a, b, to) => self.jump(Compare::Lt, a, b, to, true),
            Op::JumpNotLt(a, b, to) => self.jump(Compare::Lt, a, b, to, false),
            Op::JumpLe(a, b, to) => self.jump(Compare::Le, a, b, to, true),
            Op::JumpNotLe(a, b, to) => self.jump(Compare::Le, a, b, to, false),
            Op::JumpEq(a, b, to) => self.jump(Compare::Eq, a, b, to, true),
            Op::JumpNe(a, b, to) => self.jump(Compare::Eq, a, b, to, false),
            Op::Not(d, a) => {
                let holds = self.truth(a);
                let not = self.e.op(Opcode::Eqz, Type::I32, &[holds]);
                self.set_bool(d, not);
            }
            Op::Call(d, callee, args) => self.call(d, callee, args),
            Op::Return(a) if self.within.is_some() => self.return_inlined(a),
            Op::Return(a) => {
                let word = self.reference(a);
                self.e.b.ret(&[word]);
                self.is_open = false;
            }
            Op::Throw(a) => {
                let word = self.word(a);
                let at = self.e.int(EXCEPTION as i32);
                self.e.store(at, 0, word);
                self.note_place();
                self.throw_on();
                self.is_open = false;
            }
            _ if self.is_never() && needs_profile(op) => self.leave(),
            Op::Compare(kind, d, a, b) => {
                let holds = self.compare(kind, a, b);
                self.set_bool(d, holds);
            }
            Op::GetField(..) | Op::SetField(..) | Op::GetIndex(..) | Op::SetIndex(..) => {
                self.access(op);
            }
            Op::Builtin(which, d, from, count) => self.builtin(which, d, from, count),
            Op::NewCell(..) | Op::Closure(..) | Op::NewObject(..) | Op::NewArray(..) => {
                self.allocation(op);
            }
            _ if needs_profile(op) => self.numbers(op),
            other => self.variables(other),
        }
    }

    fn constant(&mut self, d: Reg, word: Word) {
        if is_int(word) {
            let value = self.e.int(word as i32);
            self.set_int(d, value);
        } else if is_double(word) {
            let value = self.e.double(f64::from_bits(word));
            self.set_double(d, value);
        } else {
            let value = self.e.fixed(word);
            self.set_reference(d, value, Known::Tag(tag_of(word)));
        }
    }

    pub(super) fn set_bool(&mut self, d: Reg, holds: Value) {
        let wide = self.e.op(Opcode::Uextend, Type::I64, &[holds]);
        let no = self.e.word(FALSE);
        let word = self.e.op(Opcode::Add, Type::I64, &[no, wide]);
        self.set_word(d, word, Known::Tag(tag::SPECIAL));
    }
}

/// Whether code for an instruction depends on its profile.
fn needs_profile(op: Op) -> bool {
    matches!(
        op,
        Op::Add(..)
            | Op::Sub(..)
            | Op::Mul(..)
            | Op::AddInt(..)
            | Op::Arith(..)
            | Op::Negate(..)
            | Op::Compare(..)
            | Op::ForNext(..)
            | Op::GetField(..)
            | Op::SetField(..)
            | Op::GetIndex(..)
            | Op::SetIndex(..)
            | Op::Builtin(..)
    )
}
