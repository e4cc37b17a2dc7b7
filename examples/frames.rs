//! Leaving inlined code into a foreign interpreter, in two frames at once.
//!
//!     cargo run --release --example frames
//!
//! A toy language has functions, and frames of its own. `sums` calls `cube`, and native code of
//! `sums` has `cube` inlined. After some visits of the loop of `cube`, the run leaves: the toy gets
//! a frame of `cube`, and a frame of `sums` that waits for the result.

use osier::driver::NoObserver;
use osier::inlining::{CalleeLandings, InlinePlan, inline};
use osier::interp::{HostError, Limits, Options};
use osier::ir::{
    FrameState, FrameStates, Function, Inst, Local, LocalContent, Opcode, Point, Type, Value,
};
use osier::jit::{
    Action, CallbackEnd, Condition, Config, DeoptFrame, Embedder, Engine, HandedActivation,
    PointSpec, Slot, VersionSpec, Vm,
};
use osier::{Format, load};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Write as _};
use std::sync::Arc;

/// An instruction of the toy; operands are registers of the frame.
#[derive(Clone, Copy)]
enum Op {
    UnlessLess(usize, usize, usize),
    UnlessThree(usize, usize),
    Product(usize, usize, usize),
    Sum(usize, usize, usize),
    AddOne(usize),
    /// Calls `cube` with the second register, and puts the result into the first.
    Cube(usize, usize),
    Goto(usize),
    Return(usize),
}
use Op::*;
/// `y = 1; for j in 0..3 { y *= x } return y`; the registers are x, y, j.
const CUBE: &[Op] = &[UnlessThree(4, 2), Product(1, 1, 0), AddOne(2), Goto(0), Return(1)];
/// `for i in 0..n { sum += cube(i) } return sum`; the registers are n, sum, i, result.
const SUMS: &[Op] = &[UnlessLess(5, 2, 0), Cube(3, 2), Sum(1, 1, 3), AddOne(2), Goto(0), Return(1)];

/// Runs code of the toy from an instruction on. Returns its result.
fn interpret(code: &[Op], mut pc: usize, mut at: [u128; 4]) -> u128 {
    loop {
        pc += 1;
        match code[pc - 1] {
            UnlessLess(to, a, b) if at[a] >= at[b] => pc = to,
            UnlessThree(to, a) if at[a] >= 3 => pc = to,
            UnlessLess(..) | UnlessThree(..) => {}
            Product(to, a, b) => at[to] = at[a] * at[b],
            Sum(to, a, b) => at[to] = at[a] + at[b],
            AddOne(a) => at[a] += 1,
            Cube(to, a) => at[to] = interpret(CUBE, 0, [at[a], 1, 0, 0]),
            Goto(to) => pc = to,
            Return(a) => return at[a],
        }
    }
}

/// The output of the toy's compiler.
const TRANSLATED: &[u8] = br#"
func @cube(%x: i64) -> i64 {
entry:
  %zero = const.i64 0
  %one = const.i64 1
  jump head(%one, %zero)
head(%y: i64, %j: i64):
  %three = const.i64 3
  %less = ult.i64 %j, %three
  br_if %less, body, done
body:
  %product = mul.i64 %y, %x
  %next = add.i64 %j, %one
  jump head(%product, %next)
done:
  return %y
}
func @sums(%n: i64) -> i64 {
entry:
  %zero = const.i64 0
  jump head(%zero, %zero)
head(%sum: i64, %i: i64):
  %less = ult.i64 %i, %n
  br_if %less, body, done
body:
  %c = call @cube(%i)
  %next = add.i64 %sum, %c
  %one = const.i64 1
  %j = add.i64 %i, %one
  jump head(%next, %j)
done:
  return %sum
}
"#;

/// Continues in the toy's interpreter: at the loop of `cube`, then behind the call.
struct Toy;

impl Embedder for Toy {
    fn resume(&mut self, frame: &mut DeoptFrame<'_>) -> Result<Vec<Slot>, CallbackEnd> {
        let of = |activation: &HandedActivation| {
            [0, 1, 2, 3].map(|at| activation.slot(at).map_or(0, |slot| u128::from(slot.bits)))
        };
        let [cube, sums] = frame.activations else {
            return Err(HostError::failed("the run is not in cube").into());
        };
        let (start, behind) = (cube.pc as usize, sums.pc as usize);
        let (cube, mut sums) = (of(cube), of(sums));
        let _ = writeln!(io::stderr(), "cube goes on with {cube:?}, in sums with {sums:?}");
        sums[3] = interpret(CUBE, start, cube);
        Ok(vec![Slot { ty: Type::I64, bits: interpret(SUMS, behind, sums) as u64 }])
    }
}

/// The parameters of the loop header, which is the second block.
fn params_of_head(base: &Function) -> [Value; 2] {
    let head = base.blocks().nth(1).expect("the code has a loop");
    [0, 1].map(|index| base.block_params(head)[index])
}

/// The frame state before an instruction: where the toy continues, and the values of its registers.
fn states(at: Inst, pc: u32, registers: &[Value]) -> Arc<FrameStates> {
    let local = |(slot, value): (u32, &Value)| {
        let content = LocalContent::Value(*value);
        Local { slot, content, representation: 0 }
    };
    let locals = (0..).zip(registers).map(local).collect();
    let mut states = FrameStates::new();
    states.set(Point::before(at), FrameState::new(0, pc, locals));
    Arc::new(states)
}

fn main() -> Result<(), Box<dyn Error>> {
    let module = Arc::new(load(Format::Oir, TRANSLATED).map_err(|e| e.in_file("sums.oir"))?);
    let [(cube, f), (sums, g)] = [0, 1].map(|n| module.defined().nth(n).expect("two functions"));
    // The frames of the toy, beside the bases: at the loop of `cube`, behind the call in `sums`.
    let [y, j] = params_of_head(f);
    let is_call = |inst: &Inst| g.inst(*inst).opcode == Opcode::Call;
    let call = g.all_insts().find(is_call).ok_or("`sums` calls `cube`")?;
    let ([sum, i], result) = (params_of_head(g), g.inst(call).results[0]);
    let behind = g.next_inst(call).ok_or("a call is no terminator")?;
    let states = BTreeMap::from([
        (cube, states(f.first_inst(f.value_block(y)), 0, &[f.arguments()[0], y, j])),
        (sums, states(behind, 2, &[g.arguments()[0], sum, i, result])),
    ]);
    let plan = InlinePlan::o3().with_states(states.clone());
    let landings = CalleeLandings::new(&module, &plan);
    let made = inline(&module, sums, &plan, &landings, &mut NoObserver)?;
    // The test of the inlined loop, and the entry there.
    let version = made.tree.function(made.optimized);
    let is_test = |inst: &Inst| {
        let inlined = made.copies.origin(*inst).is_some_and(|(instance, _)| instance > 0);
        inlined && version.inst(*inst).opcode == Opcode::BrIf
    };
    let test = version.all_insts().find(is_test).ok_or("the branch is inlined")?;
    let at = Point::before(test);
    let entry = made.down.entry(at).ok_or("an entry starts there")?;
    let condition = Condition::Countdown(5_000);
    let point = PointSpec { at, condition, values: entry.requires.clone() };
    let engine = Engine::new(Config::default())?;
    let sites = Arc::new(made.copies.sites());
    let spec = VersionSpec::from(std::slice::from_ref(&point)).with_sites(sites);
    let code = engine.version(&module, sums, version, spec)?;
    let mut vm = Vm::new(&engine, &module, Limits::default(), Options::default())?;
    vm.install(&code, vec![Action::Hand(Arc::new(made.down.clone()), Arc::new(states))])?;
    for n in [1_000, 20_000] {
        let outcome = vm.run(sums, &[n], &mut Toy)?;
        assert_eq!(outcome.returned(), Some(&[interpret(SUMS, 0, [n.into(), 0, 0, 0]) as u64][..]));
        writeln!(io::stdout(), "the sum of {n} cubes: {outcome}")?;
    }
    Ok(())
}
