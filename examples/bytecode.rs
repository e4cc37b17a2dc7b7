//! A bytecode interpreter of one's own, with native code above it: up into a loop, down in the
//! middle of one, and up again.
//!
//!     cargo run --release --example bytecode
//!
//! The front end compiles bytecode to the IR, and notes at each instruction where its interpreter
//! would continue and the contents of each register. No compiled code reads the register `last`,
//! but its frames still have it. [docs/embedding.md] goes through the steps.

use osier::ir::{
    Block, FinishedFunction, FrameState, FrameStates, Func, FunctionBuilder, Module, Opcode, Point,
    Signature, Type, Value, Variable,
};
use osier::jit::{
    CallbackEnd, Config, Contents, DeoptFrame, Embedder, Engine, Entered, HotLoop, Slot, Vm,
};
use osier::osr::VersionTree;
use osier::passes::Pipeline;
use osier::speculate::{Assumption, Plan, speculate};
use osier::tiers::{Tiered, install_handing};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Write as _};
use std::sync::Arc;

/// An instruction; operands are registers.
#[derive(Clone, Copy)]
enum Op {
    Const(usize, u64),
    Copy(usize, usize),
    Binary(Opcode, usize, usize, usize),
    /// Goes to an instruction unless the first register is less than the second.
    UnlessLess(usize, usize, usize),
    Goto(usize),
    Return(usize),
}
use Op::*;

const REGISTERS: usize = 7;
const N: usize = 0;
const LIMIT: usize = 1;
const I: usize = 2;
const TOTAL: usize = 3;
const LAST: usize = 4;
const T: usize = 5;
const ONE: usize = 6;

/// `for i in 0..n { last = total; total += i * i; if limit < total { total -= limit } }`
const CODE: &[Op] = &[
    Const(I, 0),
    Const(TOTAL, 0),
    Const(LAST, 0),
    UnlessLess(12, I, N),
    Copy(LAST, TOTAL),
    Binary(Opcode::Mul, T, I, I),
    Binary(Opcode::Add, TOTAL, TOTAL, T),
    UnlessLess(9, LIMIT, TOTAL),
    Binary(Opcode::Sub, TOTAL, TOTAL, LIMIT),
    Const(ONE, 1),
    Binary(Opcode::Add, I, I, ONE),
    Goto(3),
    Return(TOTAL),
];
/// The loop header.
const HEADER: usize = 3;
/// The test that hardly ever holds.
const RARE: usize = 7;

/// The compiler of the front end.
struct Compiler {
    builder: FunctionBuilder,
    registers: Vec<Variable>,
    /// The block of each instruction that a jump leads to, or that follows one.
    blocks: BTreeMap<usize, Block>,
}

impl Compiler {
    /// The code as a function, and a frame state in front of each instruction.
    fn compile() -> Result<FinishedFunction, Box<dyn Error>> {
        let signature = Signature::new(&[Type::I64, Type::I64], &[Type::I64]);
        let mut builder = FunctionBuilder::new("sums", signature);
        let entry = builder.create_block();
        builder.switch_to(entry);
        let registers: Vec<Variable> =
            (0..REGISTERS).map(|_| builder.declare_var(Type::I64)).collect();
        for register in [N, LIMIT] {
            let value = builder.append_param(entry, Type::I64);
            builder.def_var(registers[register], value);
        }
        let starts = (0..CODE.len()).flat_map(|pc| match CODE[pc] {
            UnlessLess(to, ..) => vec![pc + 1, to],
            Goto(to) => vec![to],
            _ => vec![],
        });
        let starts: Vec<usize> = starts.collect();
        let blocks = starts.into_iter().map(|pc| (pc, builder.reserve_block())).collect();
        let mut compiler = Compiler { builder, registers, blocks };
        (0..CODE.len()).for_each(|pc| compiler.instruction(pc));
        Ok(compiler.builder.finish()?)
    }

    fn get(&mut self, register: usize) -> Value {
        self.builder.use_var(self.registers[register])
    }

    fn set(&mut self, register: usize, value: Value) {
        self.builder.def_var(self.registers[register], value);
    }

    fn instruction(&mut self, pc: usize) {
        if let Some(block) = self.blocks.get(&pc).copied() {
            if self.builder.current().is_some() {
                self.builder.jump(block, &[]);
            }
            self.builder.place_block(block);
            self.builder.switch_to(block);
        }
        self.note(pc);
        match CODE[pc] {
            Const(to, bits) => {
                let value = self.builder.constant(Type::I64, bits);
                self.set(to, value);
            }
            Copy(to, from) => {
                let value = self.get(from);
                self.set(to, value);
            }
            Binary(opcode, to, a, b) => {
                let args = [self.get(a), self.get(b)];
                let value = self.builder.op(opcode, Type::I64, &args);
                self.set(to, value);
            }
            UnlessLess(to, a, b) => {
                let args = [self.get(a), self.get(b)];
                let less = self.builder.op(Opcode::Ult, Type::I64, &args);
                self.builder.br_if(less, self.blocks[&(pc + 1)], self.blocks[&to]);
            }
            Goto(to) => _ = self.builder.jump(self.blocks[&to], &[]),
            Return(from) => {
                let value = self.get(from);
                self.builder.ret(&[value]);
            }
        }
    }

    /// Notes in front of an instruction where the interpreter continues, and its registers.
    fn note(&mut self, pc: usize) {
        let values = self.registers.iter().map(|register| self.builder.use_var(*register));
        let state = FrameState::of_values(0, pc as u32, (0..).zip(values));
        self.builder.frame_state(state);
    }
}

/// The interpreter of the front end.
struct Interpreter {
    func: Func,
    states: Arc<FrameStates>,
    /// The visits of the loop header so far.
    visits: usize,
}

impl Interpreter {
    /// The point of the base in front of an instruction, and its frame state.
    fn place(&self, pc: usize) -> (HotLoop, FrameState) {
        let (at, state) =
            self.states.noted().find(|(_, state)| state.pc == pc as u32).expect("noted");
        (HotLoop { func: self.func, at }, state.clone())
    }

    /// Interprets from an instruction on. At every thousandth visit of the loop header, requests
    /// native code with `enter`, which returns the result of the function if the run has continued
    /// there.
    fn interpret<E>(
        &mut self,
        mut pc: usize,
        mut registers: [u64; REGISTERS],
        mut enter: impl FnMut(&mut Self, HotLoop, Contents<'_>) -> Result<Option<u64>, E>,
    ) -> Result<u64, E> {
        loop {
            self.visits += usize::from(pc == HEADER);
            if pc == HEADER && self.visits.is_multiple_of(1000) {
                let (place, state) = self.place(pc);
                let contents = |value| Some(registers[state.slot_of(value)? as usize]);
                if let Some(result) = enter(self, place, &contents)? {
                    return Ok(result);
                }
            }
            let r = &mut registers;
            pc += 1;
            match CODE[pc - 1] {
                Const(to, bits) => r[to] = bits,
                Copy(to, from) => r[to] = r[from],
                Binary(Opcode::Mul, to, a, b) => r[to] = r[a].wrapping_mul(r[b]),
                Binary(Opcode::Sub, to, a, b) => r[to] = r[a].wrapping_sub(r[b]),
                Binary(_, to, a, b) => r[to] = r[a].wrapping_add(r[b]),
                UnlessLess(to, a, b) if r[a] >= r[b] => pc = to,
                UnlessLess(..) => {}
                Goto(to) => pc = to,
                Return(from) => return Ok(r[from]),
            }
        }
    }
}

impl Embedder for Interpreter {
    /// Goes on where native code has left, and perhaps in native code again.
    fn resume(&mut self, frame: &mut DeoptFrame<'_>) -> Result<Vec<Slot>, CallbackEnd> {
        let activation = &frame.activations[0];
        let registers = std::array::from_fn(|register| {
            activation.slot(register as u32).map_or(0, |slot| slot.bits)
        });
        let pc = activation.pc as usize;
        let (i, last) = (registers[I], registers[LAST]);
        let _ = writeln!(io::stderr(), "down at {pc} with i = {i} and last = {last}");
        let bits = self.interpret(pc, registers, |toy, place, contents| {
            let entered = frame.back().enter(toy, place, contents)?;
            Ok::<_, CallbackEnd>(entered.map(|results| results[0]))
        })?;
        Ok(vec![Slot { ty: Type::I64, bits }])
    }
}

/// A version that assumes that the rare test never holds, with a way down to the interpreter.
fn assuming(module: &Module, toy: &Interpreter, vm: &mut Vm) -> Result<(), Box<dyn Error>> {
    let base = module.body(toy.func).ok_or("it has a body")?;
    let test = toy.place(RARE).0.at.inst();
    let at = Point::before(base.next_inst(test).ok_or("a branch follows")?);
    let assume = [Assumption::is(at, base.inst(test).results[0], 0)];
    // The entries that lead to the base provide the values that the frame states name.
    let mut tree = VersionTree::new(base.clone());
    tree.arm_states(VersionTree::BASE, &toy.states)?;
    let pipeline = Pipeline::default();
    let made = speculate(module, &mut tree, VersionTree::BASE, &Plan::new(&assume, &pipeline))?;
    let back = made.backward.get(&VersionTree::BASE).ok_or("a way back")?;
    install_handing(vm, toy.func, tree.function(made.optimized), back, &toy.states)?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let FinishedFunction { function, states, .. } = Compiler::compile()?;
    let mut module = Module::new();
    let func = module.add(function);
    let module = Arc::new(module);
    let mut toy = Interpreter { func, states: Arc::new(states), visits: 0 };
    let engine = Engine::new(Config::default())?;
    let mut vm = Vm::new(&engine, &module, Default::default(), Default::default())?;
    vm.set_tiering(Box::new(Tiered::new(1, Pipeline::default())));

    let mut alone = |registers| toy_alone(&mut toy, registers);
    let [short, long] = [[3_000, u64::MAX, 0, 0, 0, 0, 0], [30_000, 1 << 40, 0, 0, 0, 0, 0]];
    let wanted = [short, long].map(&mut alone);

    // Up: the interpreter has visited the header a thousand times.
    let result = toy.interpret(0, short, |toy, place, contents| {
        Ok::<_, Box<dyn Error>>(match vm.enter(place, contents, toy)? {
            Entered::NotYet => None,
            Entered::Ended(outcome) => Some(outcome.returned().ok_or("it returns")?[0]),
        })
    })?;
    assert_eq!(result, wanted[0]);

    // Down and up again: the rare test holds at last, in the middle of the loop.
    assuming(&module, &toy, &mut vm)?;
    let outcome = vm.run(func, &long[..2], &mut toy)?;
    assert_eq!(outcome.returned(), Some(&[wanted[1]][..]));
    for made in vm.transitions() {
        writeln!(io::stdout(), "{:?} at {}: {}", made.kind, made.at, made.count)?;
    }
    Ok(())
}

/// The result of the interpreter without native code.
fn toy_alone(toy: &mut Interpreter, registers: [u64; REGISTERS]) -> u64 {
    let never = |_: &mut Interpreter, _: HotLoop, _: Contents<'_>| Ok(None);
    let Ok(result) = toy.interpret::<std::convert::Infallible>(0, registers, never);
    result
}
