//! A version that assumes what every call so far has shown. The function tests whether an array is
//! sorted by a comparator that it calls through a table.
//!
//!     cargo run --release --example isord
//!
//! Every call so far has come with the comparator `up`. So a version assumes that, and calls `up`
//! without looking into the table. The checker has proved the exit of the assumption. A later call
//! with another comparator takes the exit, and continues in the interpreter.

use osier::interp::{Limits, NoHost, Options};
use osier::ir::Point;
use osier::jit::{Action, Config, Engine, VersionSpec, Vm};
use osier::osr::VersionTree;
use osier::passes::Pipeline;
use osier::speculate::{Assumption, Expected, Plan, speculate};
use osier::{Format, load};
use std::error::Error;
use std::io::{self, Write as _};
use std::sync::Arc;

const PROGRAM: &[u8] = br#"
memory @mem 4
table @comparators 2 fixed
elem @comparators 0 [@up, @down]
func @up(%a: i32, %b: i32) -> i32 {
entry:
  %fine = sle.i32 %a, %b
  return %fine
}
func @down(%a: i32, %b: i32) -> i32 {
entry:
  %fine = sge.i32 %a, %b
  return %fine
}
func @isord(%n: i32, %comparator: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  %two = const.i32 2
  %four = const.i32 4
  jump head(%one)
head(%i: i32):
  %more = slt.i32 %i, %n
  br_if %more, body, yes
body:
  %at = shl.i32 %i, %two
  %before = sub.i32 %at, %four
  %a = load.i32 @mem[%before]
  %b = load.i32 @mem[%at]
  %fine = call_indirect @comparators (i32, i32) -> i32 [%comparator](%a, %b)
  %j = add.i32 %i, %one
  br_if %fine, head(%j), no
yes:
  return %one
no:
  return %zero
}
"#;
const LENGTH: u64 = 50_000;

fn main() -> Result<(), Box<dyn Error>> {
    let module = Arc::new(load(Format::Oir, PROGRAM).map_err(|error| error.in_file("isord.oir"))?);
    let func = module.func_named("isord").ok_or("the program has isord")?;
    let base = module.body(func).ok_or("isord has a body")?;
    let engine = Engine::new(Config::default())?;
    let mut vm = Vm::new(&engine, &module, Limits::default(), Options::default())?;
    let memory = module.memories.keys().next().ok_or("the program has a memory")?;
    for i in 0..LENGTH {
        vm.machine_mut().memories_mut().write(memory, 4 * i, &(i as u32).to_le_bytes())?;
    }

    let at = Point::before(base.first_inst(base.entry()));
    let up = Assumption { at, value: base.arguments()[1], expected: Expected::Is(0), reason: 1 };
    let mut tree = VersionTree::new(base.clone());
    let pipeline = Pipeline::default();
    let made = speculate(&module, &mut tree, VersionTree::BASE, &Plan::new(&[up], &pipeline))?;
    let back = Arc::new(made.backward[&VersionTree::BASE].clone());
    let optimized = tree.function(made.optimized);
    let exits = VersionSpec::leaving(optimized, |_| Some(&**back))?;
    let version = engine.version(&module, func, optimized, exits)?;
    vm.install(&version, vec![Action::Interpret(back); made.exits.len()])?;

    for (comparator, expected) in [(0, 1), (0, 1), (1, 0)] {
        let outcome = vm.invoke(func, &[LENGTH, comparator], &mut NoHost)?;
        writeln!(io::stdout(), "isord by comparator {comparator}: {outcome}")?;
        let sorted = "numbers that grow are sorted upwards alone";
        assert_eq!(outcome.returned(), Some([expected].as_slice()), "{sorted}");
    }
    let made = vm.transitions().into_iter();
    let made = made.map(|made| format!("{} {:?} from before {}", made.count, made.kind, made.at));
    Ok(writeln!(io::stdout(), "transitions: {}", made.collect::<Vec<_>>().join(", "))?)
}
