//! Deoptimization into a foreign interpreter with frames of its own.
//!
//!     cargo run --release --example foreign
//!
//! A toy language has a register machine of a few lines, whose numbers have 128 bits, standing for
//! numbers without bound. The toy's compiler translates its code to the IR, with numbers of 64
//! bits. In native code, a guard at the loop header watches the sum. When the sum comes near the
//! limit, the run exits to the toy's interpreter in the middle of the loop, with each value in the
//! register where the toy keeps it.

use osier::driver::{self, Vigilance, derive, prove};
use osier::interp::{Limits, Options};
use osier::ir::edit::{Editor, Fuel, Pass, apply};
use osier::ir::{
    FrameState, FrameStates, Function, Imm, Inst, InstSpec, Local, LocalContent, Opcode, Point,
    Type, Value,
};
use osier::jit::{
    Action, CallbackEnd, Condition, Config, DeoptFrame, Embedder, Engine, PointSpec, Slot, Vm,
};
use osier::osr::Level;
use osier::passes::Pipeline;
use osier::resume::Truth;
use osier::{Format, load};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Write as _};
use std::sync::Arc;

/// An instruction of the toy; operands are registers.
#[derive(Clone, Copy)]
enum Op {
    /// Jumps to an instruction unless the first register is less than the second.
    UnlessLess(usize, usize, usize),
    AddProduct(usize, usize, usize),
    AddOne(usize),
    Goto(usize),
    /// The remainder by 10^9 + 7.
    Return(usize),
}

/// `for i in 0..n { sum += i * i } return sum`: the registers are sum, n, i.
const SUM: usize = 0;
const N: usize = 1;
const I: usize = 2;
const CODE: [Op; 5] = [
    Op::UnlessLess(4, I, N),
    Op::AddProduct(SUM, I, I),
    Op::AddOne(I),
    Op::Goto(0),
    Op::Return(SUM),
];
const MODULUS: u128 = 1_000_000_007;

/// The toy's interpreter: runs from an instruction with registers, and returns the result.
fn interpret(mut pc: usize, mut registers: [u128; 3]) -> u64 {
    loop {
        pc += 1;
        match CODE[pc - 1] {
            Op::UnlessLess(to, a, b) if registers[a] >= registers[b] => pc = to,
            Op::UnlessLess(..) => {}
            Op::AddProduct(to, a, b) => registers[to] += registers[a] * registers[b],
            Op::AddOne(a) => registers[a] += 1,
            Op::Goto(to) => pc = to,
            Op::Return(a) => return (registers[a] % MODULUS) as u64,
        }
    }
}

/// The output of the toy's compiler for the code. Blocks are named after the instructions they
/// start with, values after their registers.
const TRANSLATED: &[u8] = br#"
func @squares(%n: i64) -> i64 {
entry:
  %zero = const.i64 0
  jump pc0(%zero, %zero)
pc0(%sum: i64, %i: i64):
  %less = ult.i64 %i, %n
  br_if %less, pc1, pc4
pc1:
  %product = mul.i64 %i, %i
  %sum.next = add.i64 %sum, %product
  %one = const.i64 1
  %i.next = add.i64 %i, %one
  jump pc0(%sum.next, %i.next)
pc4:
  %modulus = const.i64 1000000007
  %result = urem.i64 %sum, %modulus
  return %result
}
"#;

/// Continues in the toy's interpreter, at the instruction of the frame state.
struct Toy;

impl Embedder for Toy {
    fn resume(&mut self, frame: &mut DeoptFrame<'_>) -> Result<Vec<Slot>, CallbackEnd> {
        let activation = &frame.activations[0];
        let pc = activation.pc as usize;
        let register =
            |at: usize| activation.slot(at as u32).map_or(0, |contents| u128::from(contents.bits));
        let registers = [SUM, N, I].map(register);
        let _ = writeln!(io::stderr(), "the toy continues at {pc} with {registers:?}");
        Ok(vec![Slot { ty: Type::I64, bits: interpret(pc, registers) }])
    }
}

/// Computes, before the branch of the loop, whether the sum comes near the limit of 64 bits.
struct Watch;

impl Pass for Watch {
    fn name(&self) -> &'static str {
        "watch"
    }

    fn run(&self, editor: &mut Editor<'_>) {
        let (sum, before) = sum_at_head(editor.func());
        assert!(editor.plan("watch"));
        let limit = editor.add_value(InstSpec::constant(Type::I64, i64::MAX as u64 / 2), before);
        editor.add(InstSpec::new(Opcode::Ugt, Type::I64, Imm::None, &[sum, limit]), before);
    }
}

/// The value of the sum at the loop header, and the instruction that decides whether the loop
/// continues.
fn sum_at_head(function: &Function) -> (Value, Inst) {
    let head = function
        .blocks()
        .find(|block| function.block_params(*block).len() == 2 && *block != function.entry());
    let head = head.expect("the loop's head has the sum and the counter");
    (function.block_params(head)[0], function.terminator(head))
}

fn main() -> Result<(), Box<dyn Error>> {
    let module =
        Arc::new(load(Format::Oir, TRANSLATED).map_err(|error| error.in_file("squares.oir"))?);
    let (func, base) = module.defined().next().ok_or("the program has a function")?;
    let mut derived =
        derive(&module, base, &Pipeline::default(), Vigilance::On, &mut driver::NoObserver);
    let (watched, log) =
        apply(&derived.function, &Watch, &mut Fuel::UNLIMITED.clone()).into_parts();
    derived.log.extend(log);
    derived.function = watched;
    let maps = prove(&module, base, &derived, &[Level::Avail], &mut driver::NoObserver);
    let back = Arc::new(maps.highest().after.mapping.clone());

    let (_, branch) = sum_at_head(&derived.function);
    let large =
        derived.function.prev_inst(branch).and_then(|inst| derived.function.inst(inst).result());
    let guard =
        Condition::Guard { value: large.ok_or("the guard's condition")?, when: Truth::NonZero };
    let point = PointSpec::of_entry(&back, Point::before(branch), guard).ok_or("a way back")?;

    // The toy's frame where the run lands: the instruction, and the contents of each register. The
    // toy does not need the other values of the IR, for example the comparison.
    let (sum, landing) = sum_at_head(base);
    let (n, i) = (base.arguments()[0], base.block_params(base.inst_block(landing))[1]);
    let entry = back.entry(point.at).ok_or("a way back")?;
    let local = |slot: usize, value| {
        let content = LocalContent::Value(value);
        Local { slot: slot as u32, content, representation: 0 }
    };
    let locals = vec![local(SUM, sum), local(N, n), local(I, i)];
    let mut states = FrameStates::new();
    states.set(entry.target, FrameState::new(0, 0, locals));
    let engine = Engine::new(Config::default())?;
    let mut vm = Vm::new(&engine, &module, Limits::default(), Options::default())?;
    vm.install(
        &engine.version(&module, func, &derived.function, &[point])?,
        vec![Action::Hand(back, Arc::new(BTreeMap::from([(func, Arc::new(states))])))],
    )?;
    for n in [1000, 5_000_000] {
        let outcome = vm.run(func, &[n], &mut Toy)?;
        writeln!(io::stdout(), "the squares below {n}: {outcome}")?;
        assert_eq!(outcome.returned(), Some([interpret(0, [0, n.into(), 0])].as_slice()));
    }
    let out: u64 = vm.transitions().iter().map(|made| made.count).sum();
    Ok(writeln!(io::stdout(), "{out} time out into the toy's interpreter")?)
}
