//! Damaged modules through the whole library: each is rejected with a message, or optimized,
//! certified and run to an end.

#[path = "../../wasm/tests/damage/mod.rs"]
mod damage;

use damage::{Random, damaged};
use interp::{Limits, Machine, NoHost, NoObserver};
use ir::Module;
use osier::driver::{self, Vigilance, derive, prove};
use osier::{Format, load};
use osr::Level;
use passes::Pipeline;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The programs of the corpus.
fn corpus() -> Vec<Vec<u8>> {
    let files = std::fs::read_dir("tests/corpus").expect("tests run in the root of the package");
    let mut paths: Vec<_> = files.map(|file| file.expect("readable").path()).collect();
    paths.sort();
    let modules = paths.iter().filter(|path| path.extension().is_some_and(|e| e == "wasm"));
    modules.map(|path| std::fs::read(path).expect("readable")).collect()
}

/// Runs the start function and every exported function, each with little fuel.
fn run_all(module: &Module) {
    let limits =
        Limits { fuel: 20_000, memory_pages: 256, table_entries: 1 << 16, ..Limits::default() };
    let Ok(mut machine) = Machine::new(module, limits) else { return };
    for (func, decl) in module.funcs.iter().filter(|(_, decl)| decl.import.is_none()) {
        let args = vec![3; module.sigs[decl.sig].params.len()];
        machine.set_fuel(20_000);
        drop(machine.invoke(func, &args, &mut NoHost, &mut NoObserver));
    }
}

/// Optimizes and certifies the functions that the damage changed.
fn put_through_changed(module: &Module, undamaged: &BTreeSet<u64>) -> usize {
    let mut count = 0;
    for (_, base) in module.defined().filter(|(_, f)| !undamaged.contains(&f.history())) {
        let derived =
            derive(module, base, &Pipeline::default(), Vigilance::On, &mut driver::NoObserver);
        drop(prove(module, base, &derived, &[Level::Avail], &mut driver::NoObserver));
        count += 1;
    }
    count
}

#[test]
fn damaged_modules_end_with_a_message_or_a_run() {
    let corpus = corpus();
    let mut random = Random::new(7);
    let (mut refused, mut ran, mut changed) = (0, 0, 0);
    for (index, original) in corpus.iter().enumerate() {
        let module = load(Format::Wasm, original).expect("a program of the corpus");
        let undamaged = module.defined().map(|(_, f)| f.history()).collect();
        for round in 0..40 {
            let other = &corpus[random.below(corpus.len())];
            let bytes = damaged(original, other, &mut random);
            let start = Instant::now();
            match load(Format::Wasm, &bytes) {
                Err(_) => refused += 1,
                Ok(module) => {
                    changed += put_through_changed(&module, &undamaged);
                    run_all(&module);
                    ran += 1;
                }
            }
            let time = start.elapsed();
            assert!(time < Duration::from_secs(30), "program {index}, round {round}: {time:?}");
        }
    }
    assert!(refused > 200 && ran > 100 && changed > 100, "{refused} {ran} {changed}");
}
