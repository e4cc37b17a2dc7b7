//! An interpreter of one's own that counts, and a policy that does the rest: it chooses what to
//! assume, makes native code that leaves to the interpreter, and makes a row of a landing table
//! where an assumption fails again.
//!
//!     cargo run --release --example policy
//!
//! `examples/bytecode.rs` does these steps one by one, for a bytecode with registers. Here a
//! "bytecode" of four instructions is written out by hand, to show the policy alone.

use osier::ir::{
    FinishedFunction, FrameState, FrameStates, Func, Function, FunctionBuilder, Inst, Module,
    Opcode, Point, Signature, Type,
};
use osier::jit::{CallbackEnd, Config, DeoptFrame, Embedder, Engine, Slot, Vm};
use osier::landing::LandingRow;
use osier::passes::Pipeline;
use osier::profile::OwnCounts;
use osier::speculate::{SpeculateError, Speculative, SuggestOptions};
use osier::tiers::{Compiled, Observer, ROW_AFTER, Tiered};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const N: usize = 0;
const LIMIT: usize = 1;
const I: usize = 2;
const TOTAL: usize = 3;
type Registers = [u64; 4];

/// `for i in 0..n { total += i; if limit < total { total -= limit } }`, with the program counters
/// 0 (the test of the loop), 1 (the sum and its test), 2 (the subtraction) and 3 (the next `i`).
struct CompiledSum {
    function: Function,
    states: FrameStates,
    /// The branches of the base at program counters 0 and 1.
    branches: [Inst; 2],
}

fn compile() -> Result<CompiledSum, Box<dyn Error>> {
    let signature = Signature::new(&[Type::I64, Type::I64], &[Type::I64]);
    let mut b = FunctionBuilder::new("sum", signature);
    let entry = b.create_block();
    let params = [N, LIMIT].map(|_| b.append_param(entry, Type::I64));
    b.switch_to(entry);
    let registers = [N, LIMIT, I, TOTAL].map(|_| b.declare_var(Type::I64));
    let zero = b.constant(Type::I64, 0);
    for (register, value) in registers.into_iter().zip([params[N], params[LIMIT], zero, zero]) {
        b.def_var(register, value);
    }
    let [at0, at1, at2, at3, end] = [(); 5].map(|()| b.reserve_block());
    b.jump(at0, &[]);
    let starts = |b: &mut FunctionBuilder, block, pc| {
        b.place_block(block);
        b.switch_to(block);
        let values = registers.map(|register| b.use_var(register));
        b.frame_state(FrameState::of_values(0, pc, (0..).zip(values)));
        values
    };
    let r = starts(&mut b, at0, 0);
    let goes_on = b.op(Opcode::Ult, Type::I64, &[r[I], r[N]]);
    let turns = b.br_if(goes_on, at1, end);
    let r = starts(&mut b, at1, 1);
    let total = b.op(Opcode::Add, Type::I64, &[r[TOTAL], r[I]]);
    b.def_var(registers[TOTAL], total);
    let exceeds = b.op(Opcode::Ult, Type::I64, &[r[LIMIT], total]);
    let rare = b.br_if(exceeds, at2, at3);
    let r = starts(&mut b, at2, 2);
    let less = b.op(Opcode::Sub, Type::I64, &[r[TOTAL], r[LIMIT]]);
    b.def_var(registers[TOTAL], less);
    b.jump(at3, &[]);
    let r = starts(&mut b, at3, 3);
    let one = b.constant(Type::I64, 1);
    let next = b.op(Opcode::Add, Type::I64, &[r[I], one]);
    b.def_var(registers[I], next);
    b.jump(at0, &[]);
    b.place_block(end);
    b.switch_to(end);
    let result = b.use_var(registers[TOTAL]);
    b.ret(&[result]);
    let FinishedFunction { function, states, ids, .. } = b.finish()?;
    let found = |inst| ids.inst(inst).ok_or("the builder keeps it");
    let branches = [found(turns)?, found(rare)?];
    Ok(CompiledSum { function, states, branches })
}

/// The interpreter. The policy reads its counts when it makes code.
struct Interpreter {
    branches: [Inst; 2],
    counts: Arc<Mutex<OwnCounts>>,
    exits: u64,
}

impl Interpreter {
    /// The lock must not be held while the program calls: native code below the call may ask the
    /// policy for code, which reads the counts.
    fn counts(&self) -> MutexGuard<'_, OwnCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call(&mut self, n: u64, limit: u64) -> u64 {
        self.counts().call(&[n, limit]);
        self.interpret(0, [n, limit, 0, 0])
    }

    fn interpret(&mut self, mut pc: u32, mut r: Registers) -> u64 {
        loop {
            pc = match pc {
                0 => {
                    self.counts().branch(self.branches[0], usize::from(r[I] >= r[N]));
                    if r[I] >= r[N] {
                        return r[TOTAL];
                    }
                    1
                }
                1 => {
                    r[TOTAL] = r[TOTAL].wrapping_add(r[I]);
                    self.counts().branch(self.branches[1], usize::from(r[LIMIT] >= r[TOTAL]));
                    if r[LIMIT] < r[TOTAL] { 2 } else { 3 }
                }
                2 => {
                    r[TOTAL] = r[TOTAL].wrapping_sub(r[LIMIT]);
                    3
                }
                _ => {
                    r[I] += 1;
                    0
                }
            }
        }
    }
}

impl Embedder for Interpreter {
    fn resume(&mut self, frame: &mut DeoptFrame<'_>) -> Result<Vec<Slot>, CallbackEnd> {
        self.exits += 1;
        let activation = &frame.activations[0];
        let registers = std::array::from_fn(|register| {
            activation.slot(register as u32).map_or(0, |slot| slot.bits)
        });
        let bits = self.interpret(activation.pc, registers);
        Ok(vec![Slot { ty: Type::I64, bits }])
    }
}

/// Prints what the policy decides.
struct Printer;

impl Observer for Printer {
    fn step(&mut self, _: Option<osier::driver::Step>) {}
    fn begin(&mut self) {}
    fn compiled(&mut self, _: Compiled) {}

    fn speculated(&mut self, _: Func, made: &Speculative) {
        let _ = writeln!(io::stdout(), "a version with {} assumptions", made.exits.len());
    }

    fn refused(&mut self, _: Func, error: &SpeculateError) {
        let _ = writeln!(io::stdout(), "refused: {error}");
    }

    fn row(&mut self, _: Func, at: Point, made: &LandingRow) {
        let _ = writeln!(io::stdout(), "a row at {} with {}", at.inst(), made.exits.len());
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let CompiledSum { function, states, branches } = compile()?;
    let base = Arc::new(function);
    let counts = Arc::new(Mutex::new(OwnCounts::new(Arc::clone(&base))));
    let mut module = Module::new();
    let func = module.add((*base).clone());
    let module = Arc::new(module);
    let mut toy = Interpreter { branches, counts: Arc::clone(&counts), exits: 0 };
    let profile = move |asked: Func| {
        let counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
        (asked == func).then(|| counts.profile().clone())
    };
    let options = SuggestOptions { visits: 100, ..SuggestOptions::default() };
    let policy = Tiered::new_observed(1, Pipeline::default(), Printer)
        .profiling_own(options, profile)
        .handing(BTreeMap::from([(func, Arc::new(states))]));
    let engine = Engine::new(Config::default())?;
    let mut vm = Vm::new(&engine, &module, Default::default(), Default::default())?;
    vm.set_tiering(Box::new(policy));

    // The interpreter alone, until the function is hot: no sum has exceeded the limit.
    let wanted = toy.call(1000, u64::MAX);
    vm.demand(func)?;
    let mut native = |toy: &mut Interpreter, limit| -> Result<u64, Box<dyn Error>> {
        Ok(vm.run(func, &[1000, limit], toy)?.returned().ok_or("it returns")?[0])
    };
    assert_eq!(native(&mut toy, u64::MAX)?, wanted);
    assert_eq!(toy.exits, 0);
    // Now each sum exceeds its limit. The first exits lead to the interpreter, all others to a row.
    for _ in 0..50 {
        let wanted = toy.call(1000, 5000);
        assert_eq!(native(&mut toy, 5000)?, wanted);
    }
    assert!(toy.exits <= 2 * ROW_AFTER, "{} exits", toy.exits);
    writeln!(io::stdout(), "{} exits", toy.exits)?;
    Ok(())
}
