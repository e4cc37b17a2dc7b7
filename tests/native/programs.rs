//! Generated programs, unoptimized and after `O1`, in every setting, with native code for all
//! functions and for every second function.

use crate::both::{Share, Twins, on_a_large_stack, settings};
use interp::{Limits, Options, TraceLevel};
use ir::{Func, Module};
use osier::driver::{NoObserver, Vigilance, optimize};
use std::sync::Arc;
use verify::generate::{CountingHost, Weights, generate};

/// The number of programs, unless the environment sets another.
const PROGRAMS: u64 = 200;

/// Runs all argument lists in a row on one instance of each kind. Returns the number of runs.
fn compare(
    module: &Arc<Module>,
    main: Func,
    arguments: &[Vec<u64>],
    seed: u64,
    each: bool,
) -> Result<usize, String> {
    let options = Options { trace: TraceLevel::Full, ..Options::traced() };
    let mut runs = 0;
    for (index, setting) in settings().iter().enumerate() {
        for share in Share::EVERY {
            // Each program mixes frames in one setting, or in all settings if `each` is set.
            if share != Share::All && !each && seed as usize % settings().len() != index {
                continue;
            }
            let (mut host, mut native) = (CountingHost::default(), CountingHost::default());
            let mut twins = Twins::new(module, Limits::default(), options, setting, share)?;
            for args in arguments {
                twins
                    .call(main, args, [&mut host, &mut native])
                    .map_err(|what| format!("{args:x?}: {what}"))?;
                runs += 1;
            }
            twins.compare()?;
        }
    }
    Ok(runs)
}

#[test]
fn generated_programs_run_alike() {
    let asked = std::env::var("OSIER_NATIVE_PROGRAMS")
        .ok()
        .map(|count| count.parse().expect("a number of programs"));
    all_run_alike(&Weights::default(), asked.unwrap_or(PROGRAMS), asked.is_some());
}

/// Programs with host memories whose bytes the machine has.
#[test]
fn generated_programs_with_host_memories_run_alike() {
    all_run_alike(&Weights::default().and_host_memories(), 40, false);
}

/// Programs that call functions with declared effects.
#[test]
fn generated_programs_with_declared_calls_run_alike() {
    all_run_alike(&Weights::default().and_declared_calls(), 40, false);
}

/// Runs the programs of the first `count` seeds. `each` has the meaning it has in [`compare`].
fn all_run_alike(weights: &Weights, count: u64, each: bool) {
    let pipeline = passes::parse("O1").expect("there is one");
    let (mut runs, mut wrong) = (0, Vec::new());
    on_a_large_stack(|| {
        for seed in 0..count {
            let made = generate(seed, 100, weights);
            let after = optimize(&made.module, &pipeline, Vigilance::Off, &mut NoObserver);
            for (which, module) in [("", made.module), (" after O1", after)] {
                let module = Arc::new(module);
                match compare(&module, made.main, &made.arguments, seed, each) {
                    Ok(compared) => runs += compared,
                    Err(what) => wrong.push(format!("program {seed}{which}: {what}")),
                }
            }
        }
    });
    assert!(wrong.is_empty(), "{} of {count} programs: {wrong:#?}", wrong.len());
    assert!(runs as u64 > count * 50, "{runs} runs of {count} programs");
}
