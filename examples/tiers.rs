//! Runs a WebAssembly program in tiers: the interpreter first, then native code that a second
//! thread makes.
//!
//! `cargo run --release --example tiers -- tests/corpus/queens.wasm 9`

use osier::jit::{Config, Engine, Vm};
use osier::passes::Pipeline;
use osier::tiers::{Costs, Tiered};
use osier::wasm::wasi::Wasi;
use osier::{Format, load};
use std::error::Error;
use std::io::{self, Write};
use std::sync::Arc;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    if args.is_empty() {
        args = ["tests/corpus/queens.wasm", "9"].map(str::to_owned).to_vec();
    }
    let bytes = std::fs::read(&args[0])?;
    let module = Arc::new(load(Format::Wasm, &bytes).map_err(|error| error.in_file(&args[0]))?);
    let start = module.lookup("_start").ok_or("the program exports no _start")?;

    let engine = Engine::new(Config::default())?;
    let mut vm = Vm::new(&engine, &module, Default::default(), Default::default())?;
    // The costs of the tiers determine the hot code. At most 64 MB of code are made.
    let policy = Tiered::by_costs(Costs::MEASURED, Pipeline::default()).with_code_limit(64 << 20);
    // A second thread compiles, if there is a processor for it.
    let alone = std::thread::available_parallelism().is_ok_and(|threads| threads.get() == 1);
    let policy = if alone { policy } else { policy.in_background() };
    vm.set_tiering(Box::new(policy));

    let mut host = Wasi::new(args, io::stdin(), io::stdout(), io::stderr());
    let outcome = vm.invoke(start, &[], &mut host)?;
    let native = module.defined().filter(|(func, _)| vm.installed(*func).is_some()).count();
    let functions = module.defined().count();
    Ok(writeln!(io::stderr(), "{outcome}; {native} of {functions} functions are native by now")?)
}
