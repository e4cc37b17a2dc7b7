//! Targets that read texts which belong to a program: files of mappings with their certificates,
//! profiles, and older reports. The program is the same in every run.

use crate::CampaignOptions;
use interp::{Limits, Machine, NoObserver};
use ir::{Function, Module};
use osier::driver::{Derived, NoObserver as Unobserved, Proved, Vigilance, derive, prove};
use osier::exchange::{self, recheck};
use osier::profile::Profile;
use osier::report;
use osier::schema::{Report, ReportedProgram};
use osr::Level;
use passes::Pipeline;
use verify::generate::CountingHost;

/// The most bytes of an input.
const MOST_BYTES: usize = 1 << 18;

/// The seed and the size of the program: it has several functions, calls and loops.
const PROGRAM: (u64, u32) = (7, 40);

/// The text of an input within the limits. `None` without one.
fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok().filter(|text| text.len() <= MOST_BYTES)
}

/// A generated program and how to run it.
pub(super) fn program() -> crate::Case {
    let (seed, size) = PROGRAM;
    CampaignOptions { size, inputs: 3, ..CampaignOptions::default() }.generated(seed)
}

/// The optimized version of a function, and what the checker proves of the mappings.
fn proved(module: &Module, base: &Function) -> (Derived, Proved) {
    let pipeline = Pipeline::default();
    let derived = derive(module, base, &pipeline, Vigilance::Off, &mut Unobserved);
    let proved = prove(module, base, &derived, &[Level::Avail], &mut Unobserved);
    (derived, proved)
}

/// A file of mappings and certificates, read and judged.
pub(super) fn mapping_files(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let Ok(file) = exchange::read(text) else { return };
    let module = program().module;
    let _ = file.check_sizes(&module);
    entries_that_hold(&file, &module);
}

/// The number of entries of a file that hold. A function whose lines are wrong has no lines.
pub(super) fn entries_that_hold(file: &exchange::Exported<'_>, module: &Module) -> u64 {
    let mut held = 0;
    for function in &file.functions {
        let Some((_, base)) =
            module.defined().find(|(_, body)| exchange::escaped(body.name()) == function.name)
        else {
            continue;
        };
        let (derived, _) = proved(module, base);
        let versions = [base, &derived.function];
        if let Ok(parts) = function.parts(versions) {
            let found = recheck(module, base, versions[1], &parts, &mut Unobserved);
            held += found.counts.held;
            assert!(
                found.counts.held <= found.entries.len() as u64,
                "more entries hold than exist"
            );
        }
    }
    held
}

/// The file of mappings of each function of the program.
pub(super) fn mapping_file_seeds() -> Vec<Vec<u8>> {
    let module = program().module;
    let of = |base: &Function| {
        let (derived, proved) = proved(&module, base);
        let made = proved.highest();
        let mut text = exchange::header("O1", "avail", 1);
        let mappings = [&made.before, &made.after].map(|m| (&*m.mapping, &m.facts));
        let versions = [base, &derived.function];
        exchange::write(&mut text, versions, &[], &proved.certificate, mappings);
        text.into_bytes()
    };
    module.defined().map(|(_, base)| of(base)).collect()
}

/// The first words of the lines of a file of mappings.
pub(super) fn mapping_file_words() -> Vec<Vec<u8>> {
    first_words(&mapping_file_seeds())
}

/// Different first words of lines, sorted.
fn first_words(texts: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let lines = texts.iter().flat_map(|text| text.split(|byte| *byte == b'\n'));
    let word = |line: &[u8]| {
        let line = line.trim_ascii_start();
        line.split(|byte| !byte.is_ascii_alphabetic() && *byte != b'-').next().map(<[u8]>::to_vec)
    };
    let mut words: Vec<Vec<u8>> = lines.filter_map(word).filter(|word| word.len() > 1).collect();
    words.sort();
    words.dedup();
    words
}

/// A file of a profile. One that fits the program is written as it was read.
pub(super) fn profiles(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let module = program().module;
    let Ok(profile) = Profile::read(text, &module) else { return };
    let written = profile.write(&module);
    assert_eq!(Profile::read(&written, &module), Ok(profile.clone()), "{written}");
    for (func, found) in &profile.functions {
        let base = module.body(*func).expect("a profile is one of the module");
        let _ = found.visits(base);
    }
}

/// The profile of a run of the program.
pub(super) fn profile_seeds() -> Vec<Vec<u8>> {
    let case = program();
    let limits = Limits { fuel: case.fuel, ..Limits::default() };
    let mut machine = Machine::new(&case.module, limits).expect("a generated program");
    machine.count();
    for arguments in &case.arguments {
        let mut host = CountingHost::default();
        machine.set_fuel(case.fuel);
        drop(machine.invoke(case.entry, arguments, &mut host, &mut NoObserver));
    }
    vec![Profile::collect(&case.module, &machine).write(&case.module).into_bytes()]
}

pub(super) fn profile_words() -> Vec<Vec<u8>> {
    let words = "\"profile\":1 \"functions\":[ \"func\":0 \"name\": \"key\": \"calls\": \"at\": \"0x0\" \
                 18446744073709551615";
    words.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

/// An older report, compared with itself and printed in each form.
pub(super) fn past_reports(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let Ok(reports) = report::read_past(text) else { return };
    for mut one in reports.clone() {
        one.against = report::compare(&one, &reports, "old.json", reports.len() == 1, None);
        let options = report::TextOptions { verbose: true, colored: false };
        drop((report::text(&one, options), report::markdown(&[&one], &[])));
    }
}

/// The report on the program.
pub(super) fn past_report_seeds() -> Vec<Vec<u8>> {
    let module = program().module;
    let (pipeline, levels) = (Pipeline::default(), Level::ALL);
    let recipe = osier::driver::Recipe::new(&pipeline, &levels);
    let figures = |base: &Function| {
        let made = osier::driver::derive_proved(&module, base, &recipe, &mut Unobserved);
        report::function_report(base, &made, Level::Avail)
    };
    let functions = module.defined().map(|(_, base)| figures(base)).collect();
    let path = "program".to_owned();
    let program = ReportedProgram { path, functions: 0, instructions: 0, left_out: Vec::new() };
    let names = pipeline.names().into_iter().map(str::to_owned).collect();
    let report: Report = report::report(program, names, Level::Avail, functions);
    vec![serde_json::to_vec(&report).expect("a report has a JSON form")]
}
