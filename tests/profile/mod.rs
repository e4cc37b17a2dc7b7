//! Profiles: the counts of both tiers of the interpreter and of native code, the file format, and
//! the suggestions of profiles.

mod counting;
mod derived;
mod files;
mod native;
mod suggestions;

use interp::{Limits, Machine, NoHost, NoObserver, Options, Program, TraceLevel};
use ir::text::parse_module;
use ir::{Func, Module};
use osier::profile::Profile;
use osier::{Format, load};
use std::path::Path;
use verify::generate::{Weights, generate};
use wasm::wasi::Wasi;

const FUEL: u64 = 1 << 20;

fn machine(program: &Program, fuel: u64, trace: TraceLevel) -> Machine {
    let limits = Limits { fuel, ..Limits::default() };
    let options = Options { trace, ..Options::traced() };
    let mut machine = Machine::with_options(program, limits, options).expect("it is instantiated");
    machine.count();
    machine
}

/// The profiles of a run in the exact tier, which executes runs with a trace, and in the fast tier.
fn both(module: &Module, program: &Program, func: Func, args: &[u64], fuel: u64) -> [Profile; 2] {
    [TraceLevel::Digest, TraceLevel::Off].map(|trace| {
        let mut machine = machine(program, fuel, trace);
        let arguments = vec!["program".to_owned(), "3".to_owned()];
        let mut wasi = Wasi::new(arguments, &[][..], std::io::sink(), std::io::sink());
        machine.invoke(func, args, &mut wasi, &mut NoObserver);
        Profile::collect(module, &machine)
    })
}

/// Programs that cover all constructs of the generator, with arguments.
fn programs() -> impl Iterator<Item = (u64, Module, Func, Vec<Vec<u64>>)> {
    (0..120).map(|seed| {
        let made = generate(seed, 100, &Weights::default());
        (seed, made.module, made.main, made.arguments)
    })
}

fn kernel(name: &str) -> Module {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/corpus/{name}.wasm"));
    load(Format::Wasm, &std::fs::read(file).expect("it is in the repository"))
        .expect("it is imported")
}

/// A loop of %n rounds that never takes a side, and calls one function through a table.
const LOOP: &str = r#"
global @limit: i32 = 100
table @calls 2 fixed
elem @calls 0 [@one, @two]
func @one(%x: i32) -> i32 {
entry:
  return %x
}
func @two(%x: i32) -> i32 {
entry:
  return %x
}
func @f(%n: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump head(%zero, %zero)
head(%i: i32, %index: i32):
  %limit = global_get.i32 @limit
  %over = ugt.i32 %i, %limit
  br_if %over, slow, rest
slow:
  %seen = call @two(%i)
  jump rest
rest:
  %x = call_indirect @calls (i32) -> i32 [%index](%i)
  %j = add.i32 %i, %one
  %more = ult.i32 %j, %n
  br_if %more, head(%j, %index), done
done:
  return %x
}
"#;

fn parsed(text: &str) -> Module {
    let module = parse_module(text).unwrap_or_else(|errors| panic!("{errors:?}"));
    assert_eq!(ir::verifier::verify_module(&module), []);
    module
}

/// The profile of one call of `@f`.
fn profiled(module: &Module, args: &[u64]) -> Profile {
    let func = module.lookup("f").expect("the text has it");
    let mut machine = machine(&Program::new(module), FUEL, TraceLevel::Off);
    machine.invoke(func, args, &mut NoHost, &mut NoObserver);
    Profile::collect(module, &machine)
}

/// The events in the profiles that a test has compared, so that the test cannot pass on empty
/// profiles.
#[derive(Default, Debug)]
struct Events {
    runs: usize,
    sides: usize,
    values: usize,
    targets: usize,
}

impl Events {
    /// Adds the profile of a run.
    fn add(&mut self, profile: &Profile) {
        self.runs += 1;
        for function in profile.functions.values() {
            self.sides += function.branches.len();
            self.values += function.values.len();
            self.targets += function.targets.len();
        }
    }

    fn require_many(&self) {
        let Events { runs, sides, values, targets } = *self;
        assert!(runs > 300 && sides > 2_000 && values > 500 && targets > 60, "{self:?}");
    }
}
