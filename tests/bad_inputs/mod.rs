//! Wrong or extreme input through the whole library. The result is an error message that names the
//! fault and its place, or a module that every part handles. `docs/testing.md` lists the cases with
//! their tests.

mod damaged;
mod mappings;
mod text;
mod wasm;

use interp::{Limits, Machine, NoHost, NoObserver, Outcome};
use ir::Module;
use osier::Format;
use osier::driver::{self, Vigilance, derive, prove};
use osr::Level;
use passes::Pipeline;

/// The error message for a module that the driver rejects.
fn refusal(format: Format, bytes: &[u8]) -> String {
    match osier::load(format, bytes) {
        Ok(_) => panic!("accepted: {}", String::from_utf8_lossy(&bytes[..bytes.len().min(300)])),
        Err(error) => error.to_string(),
    }
}

/// Optimizes a module, and synthesizes, checks and explains its mappings. Returns the number of
/// accepted entries.
fn put_through(module: &Module) -> usize {
    let mut held = 0;
    for (_, base) in module.defined() {
        let derived =
            derive(module, base, &Pipeline::default(), Vigilance::On, &mut driver::NoObserver);
        let certified = prove(module, base, &derived, &[Level::Avail], &mut driver::NoObserver);
        held += certified
            .levels
            .iter()
            .map(|(_, made)| made.before.mapping.len() + made.after.mapping.len())
            .sum::<usize>();
    }
    held
}

/// The outcome of a call of an exported or named function, with little fuel.
fn run(module: &Module, name: &str, args: &[u64]) -> Outcome {
    let limits = Limits { fuel: 10_000_000, ..Limits::default() };
    let mut machine = Machine::new(module, limits).expect("it can be instantiated");
    let func = module.lookup(name).expect("the function is there");
    machine.invoke(func, args, &mut NoHost, &mut NoObserver)
}
