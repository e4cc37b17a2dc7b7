//! Pool P1: seeded bugs, each judged by every layer independently.

mod declared;
mod directed;
mod inlining;
mod layers;
mod made;
mod matrix;
pub(crate) mod native;
mod programs;
#[path = "../../tests/inlining/wrong/mod.rs"]
mod wrong;

use fuzz::CampaignOptions;
use layers::{Layer, Rejected};
use made::Made;
use matrix::Row;
use mutants::switch::{IS_COPY, with};
use mutants::table::{Mutant, Table};
use programs::{DEMANDS, INLINING, LANDING, NATIVE, Programs, SPECULATING, Subject};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use verify::prng::Prng;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The most programs for one bug, including the programs of `tests/oir`
    #[arg(long, default_value_t = 1000)]
    programs: usize,
    /// The size of generated programs
    #[arg(long, default_value_t = 40)]
    size: u32,
    /// Threads
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Only the bugs whose name or area contains this; several are joined
    #[arg(long)]
    bug: Vec<String>,
    /// Only this number of these bugs, drawn by --seed
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// Decides which bugs --sample draws
    #[arg(long, default_value_t = 1, requires = "sample")]
    seed: u64,
}

impl Args {
    /// The bugs to try, in the order of the table.
    fn chosen<'t>(&self, table: &'t Table) -> Vec<&'t Mutant> {
        let contains = |b: &Mutant, part: &str| b.name.contains(part) || b.area.contains(part);
        let is_wanted =
            |b: &&Mutant| self.bug.is_empty() || self.bug.iter().any(|part| contains(b, part));
        let mut bugs: Vec<&Mutant> = table.mutants.iter().filter(is_wanted).collect();
        if let Some(sample) = self.sample {
            let mut prng = Prng::new(self.seed);
            while bugs.len() > sample {
                bugs.remove(prng.index(bugs.len()));
            }
        }
        bugs
    }
}

/// The least number of programs for every bug, even if a layer kills it earlier, so that editor and
/// verifier get programs to judge, too.
const AT_LEAST: usize = 100;

/// Runs the trial in the copy of the workspace that has the bugs; there, runs it.
pub(crate) fn run(args: &Args) -> bool {
    if !IS_COPY {
        return run_in_copy();
    }
    let table = Table::read().expect("the copy was made with the table");
    // The editor and the makers panic thousands of times here. The trial counts the panics, so
    // their messages would be noise.
    std::panic::set_hook(Box::new(|_| {}));
    let bugs = args.chosen(&table);
    let next = AtomicUsize::new(0);
    let rows: Mutex<BTreeMap<usize, Row<'_>>> = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..args.jobs.max(1) {
            scope.spawn(|| {
                let mut trial = Trial::new(args);
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(bug) = bugs.get(number) else { return };
                    let row = trial.try_bug(bug);
                    rows.lock().expect("no trial panics").insert(number, row);
                }
            });
        }
    });
    let rows: Vec<Row<'_>> = rows.into_inner().expect("no trial panics").into_values().collect();
    let text = matrix::text(&rows);
    std::io::stdout().write_all(text.as_bytes()).expect("standard output can be written");
    !rows.is_empty() && rows.iter().all(|r| r.killed_by_any() && r.escaped == 0)
}

/// Makes and builds the copy, and runs the same command there.
fn run_in_copy() -> bool {
    let status = mutants::copy::build("trial").and_then(|program| {
        let mut trial = Command::new(&program);
        trial.args(std::env::args_os().skip(1));
        trial.status().map_err(|e| format!("{}: {e}", program.display()))
    });
    match status {
        Ok(status) => status.success(),
        Err(why) => {
            writeln!(std::io::stderr(), "{why}").expect("standard error can be written");
            false
        }
    }
}

/// Whether the oracle of speculation detects a bug by the program of a seed.
///
/// # Panics
/// If it finds something without the bug.
fn is_seen_by_speculation(bug: &Mutant, seed: usize) -> bool {
    let options = CampaignOptions { only_speculation: true, ..CampaignOptions::default() };
    let case = options.generated(seed as u64);
    let clean = fuzz::judge(&case);
    assert!(clean.findings.is_empty(), "without the bug: {}", clean.findings[0]);
    !with(Some(bug.id), || fuzz::judge(&case)).findings.is_empty()
}

/// Whether each forgery that meets the demand which a bug leaves out gets through with it.
///
/// # Panics
/// If one gets through without the bug.
fn gets_through(bug: &Mutant) -> bool {
    let all = wrong::all();
    let own: Vec<_> = all.iter().filter(|forgery| forgery.demand == bug.name).collect();
    for forgery in &own {
        let said = (forgery.judge)();
        let stops = said.as_deref().is_some_and(|said| said.starts_with(forgery.refusal));
        assert!(stops, "without the bug, {}: {said:?}", forgery.what);
    }
    let passes = |forgery: &&wrong::Forgery| with(Some(bug.id), || (forgery.judge)()).is_none();
    !own.is_empty() && own.iter().all(passes)
}

/// The factor of programs tried for a bug of native code: an entry that lands at an assumption is
/// rare (`NativeLandsBehindTest` needs about 900 programs).
const NATIVE_TIMES: usize = 3;

/// The state of one thread.
struct Trial<'a> {
    args: &'a Args,
    programs: Programs,
    /// The programs made without a bug, for one area at a time: by number.
    clean: (String, BTreeMap<usize, Clean>),
}

/// A program made without a bug.
struct Clean {
    made: Made,
    /// The entries of the program that the checker rejects without a bug; computed when first
    /// needed.
    rejected: Option<Rejected>,
}

impl<'a> Trial<'a> {
    fn new(args: &'a Args) -> Trial<'a> {
        Trial { args, programs: Programs::read(args.size), clean: (String::new(), BTreeMap::new()) }
    }

    fn try_bug<'t>(&mut self, bug: &'t Mutant) -> Row<'t> {
        if self.clean.0 != bug.area {
            self.clean = (bug.area.clone(), BTreeMap::new());
        }
        let mut row = Row::new(bug);
        if bug.area == NATIVE {
            let most = self.args.programs * NATIVE_TIMES;
            let noticed = native::noticed(bug, most);
            row.programs = noticed.map_or(most, |number| number + 1);
            row.reached = row.programs;
            row.note(Layer::Native, noticed.unwrap_or(0), noticed.is_some());
            return row;
        }
        if bug.area == SPECULATING {
            let found = (0..self.args.programs).find(|seed| is_seen_by_speculation(bug, *seed));
            row.programs = found.map_or(self.args.programs, |number| number + 1);
            row.reached = row.programs;
            row.note(Layer::Speculation, found.unwrap_or(0), found.is_some());
            return row;
        }
        match bug.area.as_str() {
            DEMANDS => {
                row.programs = 1;
                row.reached = 1;
                row.note(Layer::Forgeries, 0, gets_through(bug));
                return row;
            }
            INLINING => {
                inlining::try_bug(bug, self.args, &mut row);
                return row;
            }
            LANDING => {
                inlining::try_landing(bug, self.args, &mut row);
                return row;
            }
            _ => {}
        }
        for number in 0..self.args.programs {
            if number >= AT_LEAST && Layer::JUDGES.iter().all(|l| row.killed(*l)) {
                break;
            }
            let subject = self.programs.subject(number, &bug.area);
            self.judge(number, &subject, bug, &mut row);
        }
        row
    }

    /// Gives one program, made with the bug, to the remaining layers.
    fn judge(&mut self, number: usize, subject: &Subject, bug: &Mutant, row: &mut Row<'_>) {
        row.programs += 1;
        let made = Made::new(&self.programs.subject(number, &bug.area), Some(bug));
        let clean = self.clean.1.entry(number).or_insert_with(|| {
            let made = Made::new(subject, None);
            assert!(made.is_sound(), "without a bug nothing is refused: program {number}");
            Clean { made, rejected: None }
        });
        if made.is_same_as(&clean.made) {
            return;
        }
        row.reached += 1;
        row.note(Layer::Editor, number, made.refused);
        row.note(Layer::Verifier, number, made.ill_formed);
        if !row.killed(Layer::Checker) {
            let rejected = layers::checker(&subject.program, &made);
            if !rejected.is_empty() {
                let usual = clean
                    .rejected
                    .get_or_insert_with(|| layers::checker(&subject.program, &clean.made));
                row.note(Layer::Checker, number, !rejected.is_subset(usual));
            }
        }
        if !row.killed(Layer::State) {
            let blamed = layers::blamed(&subject.program, &made);
            if !blamed.is_empty() {
                let rejected = layers::checker(&subject.program, &made);
                for place in blamed.iter().filter(|place| !layers::is_rejected(&rejected, place)) {
                    match layers::is_beside_refused(&rejected, place) {
                        true => row.beside += 1,
                        false => row.escaped += 1,
                    }
                }
            }
        }
        for (layer, judge) in layers::ORACLES {
            if !row.killed(*layer) {
                row.note(*layer, number, judge(&subject.program, &made));
            }
        }
    }
}
