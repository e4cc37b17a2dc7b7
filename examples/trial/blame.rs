//! Blame on trial: of points without an entry, the share that has one without the action to blame.

use clap::Args as ClapArgs;
use ir::edit::ActionLog;
use ir::{Function, Module};
use osier::driver::counterfactual::{
    Counterfactual, CulpritEffort, Culprits, Fate, SearchBound, SourcePoint,
};
use osier::driver::{NoObserver, Recipe, Secured, Vigilance, derive_proved};
use osier::load;
use osr::{Level, Missing, Obstacle};
use passes::Pipeline;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use transition::Side;
use verify::prng::Prng;

#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// The modules
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The pipeline
    #[arg(long, default_value = "O1")]
    pipeline: String,
    /// The tested share of the points without an entry: the blame of a report, and the smallest set
    /// of rewrites that `osier report --blame-check` finds
    #[arg(long, default_value_t = 0.05)]
    share: f64,
    /// The most work of each search, in instructions: one for each function and level
    #[arg(long, default_value_t = CulpritEffort::default().work)]
    work: u64,
    /// Print each point whose entry does not come back without the action that the log suggests
    #[arg(long)]
    wrong: bool,
    /// The seed of the sample
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The results for points of one level, direction and reason.
#[derive(Clone, Copy, Default)]
struct Row {
    points: u64,
    /// Points for which the log names no action.
    unnamed: u64,
    /// Points with an entry without the action to blame, and points that are not there then.
    back: u64,
    gone: u64,
    /// The points by the number of rewrites found: one, two, three, more.
    sets: [u64; 4],
    not_found: u64,
    over_work: u64,
}

impl Row {
    fn add(&mut self, other: &Row) {
        self.points += other.points;
        self.unnamed += other.unnamed;
        self.back += other.back;
        self.gone += other.gone;
        self.sets.iter_mut().zip(other.sets).for_each(|(mine, theirs)| *mine += theirs);
        self.not_found += other.not_found;
        self.over_work += other.over_work;
    }

    /// Counts the answer of a search for a point.
    fn add_answer(&mut self, culprits: &Culprits) {
        match culprits {
            Culprits::Found { culprits, .. } => self.sets[culprits.len().clamp(1, 4) - 1] += 1,
            Culprits::NotFound(SearchBound::Work) => self.over_work += 1,
            Culprits::NotFound(_) => self.not_found += 1,
        }
    }
}

/// A point without an entry.
#[derive(Clone, Copy)]
struct MissingEntry {
    level: Level,
    side: Side,
    missing: Missing<Obstacle>,
}

type Key = (&'static str, &'static str, &'static str);

/// The results by level, direction and reason.
type Rows = BTreeMap<Key, Row>;

impl MissingEntry {
    fn key(&self) -> Key {
        (self.level.name(), self.side.direction(), self.missing.why.reason.name())
    }

    fn at(&self) -> SourcePoint {
        (self.side, self.missing.point)
    }
}

/// Prints the shares. Passes if every search ends with a set.
pub(crate) fn run(args: &Args) -> bool {
    let pipeline = passes::parse(&args.pipeline).expect("known passes");
    let mut rows = Rows::new();
    let mut prng = Prng::new(args.seed);
    for path in &args.files {
        let module = module(path);
        for (_, base) in module.defined() {
            let recipe =
                Recipe { vigilance: Vigilance::Off, ..Recipe::new(&pipeline, &Level::ALL) };
            let secured = derive_proved(&module, base, &recipe, &mut NoObserver);
            one_function(&module, base, &secured, &pipeline, args, &mut prng, &mut rows);
        }
    }
    print(&rows).expect("standard output can be written");
    rows.values().all(|row| row.not_found == 0)
}

fn module(path: &Path) -> Module {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let is_text = path.extension().is_some_and(|extension| extension == "oir");
    let format = if is_text { osier::Format::Oir } else { osier::Format::Wasm };
    load(format, &bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn one_function(
    module: &Module,
    base: &Function,
    secured: &Secured,
    pipeline: &Pipeline,
    args: &Args,
    prng: &mut Prng,
    rows: &mut Rows,
) {
    let given_up = secured.retried.given_up.iter().map(|given_up| given_up.numbers()).collect();
    let mut test = Counterfactual::new(module, base, &secured.derived, pipeline, given_up);
    let picks =
        |prng: &mut Prng, share: f64| (prng.below(1 << 20) as f64) < share * (1 << 20) as f64;
    let mut sample: BTreeMap<Level, Vec<MissingEntry>> = BTreeMap::new();
    for lacking in all_lacking(secured) {
        if picks(prng, args.share) {
            sample.entry(lacking.level).or_default().push(lacking);
        }
    }
    for (level, sample) in sample {
        let log = &secured.derived.log;
        let wrong = suggested(&mut test, log, &sample, rows);
        let points: Vec<SourcePoint> = sample.iter().map(MissingEntry::at).collect();
        let effort = CulpritEffort { work: args.work, ..CulpritEffort::default() };
        for answer in test.culprits_of(&points, level, effort) {
            for point in &answer.points {
                let row = rows.entry(sample[*point].key()).or_default();
                row.add_answer(&answer.culprits);
                if args.wrong && wrong.contains(point) {
                    show(base, log, &sample[*point], &answer.culprits).expect("standard output");
                }
            }
        }
    }
}

/// Tests the actions that the log suggests for points of one level. Returns the points, by number,
/// that have no entry without them.
fn suggested(
    test: &mut Counterfactual<'_>,
    log: &ActionLog,
    sample: &[MissingEntry],
    rows: &mut Rows,
) -> BTreeSet<usize> {
    let mut blamed: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    let mut wrong = BTreeSet::new();
    for (number, lacking) in sample.iter().enumerate() {
        let row = rows.entry(lacking.key()).or_default();
        row.points += 1;
        wrong.insert(number);
        match lacking.missing.why.blame {
            None => row.unnamed += 1,
            Some(blame) => {
                let rewrite = log.actions()[blame.action].origin().rewrite();
                blamed.entry(rewrite).or_default().push(number);
            }
        }
    }
    for (rewrite, numbers) in blamed {
        let points: Vec<SourcePoint> = numbers.iter().map(|number| sample[*number].at()).collect();
        let fates = test.fates_without(rewrite, sample[numbers[0]].level, &points);
        for (number, fate) in numbers.into_iter().zip(fates.unwrap_or_default()) {
            let row = rows.entry(sample[number].key()).or_default();
            row.back += u64::from(fate == Fate::Entry);
            row.gone += u64::from(fate == Fate::Gone);
            if fate.is_mended() {
                wrong.remove(&number);
            }
        }
    }
    wrong
}

/// Prints a point with the action that the log suggests and the rewrites that the search found.
fn show(
    base: &Function,
    log: &ActionLog,
    lacking: &MissingEntry,
    culprits: &Culprits,
) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let Missing { point, why: Obstacle { value, inst, blame, .. } } = lacking.missing;
    let (level, direction, reason) = lacking.key();
    writeln!(out, "@{} {level} {direction} {reason} {point:?} {value:?} {inst:?}", base.name())?;
    let blame = blame.map_or("none".to_owned(), |blame| log.actions()[blame.action].to_string());
    writeln!(out, "    log suggests {blame}")?;
    match culprits {
        Culprits::NotFound(bound) => writeln!(out, "    not found: {}", bound.name()),
        Culprits::Found { culprits, .. } => culprits.iter().try_for_each(|culprit| {
            let (log, other) = match &culprit.run {
                None => (log, ""),
                Some(run) => (&run.1.log, ", in another run"),
            };
            writeln!(out, "    found {}{other}", log.actions()[culprit.action])
        }),
    }
}

/// The points of a function without an entry, at every level from `live` on.
fn all_lacking(secured: &Secured) -> Vec<MissingEntry> {
    let mut all = Vec::new();
    for (place, (level, made)) in secured.proved.levels.iter().enumerate() {
        let level = *level;
        for side in Side::BOTH.into_iter().filter(|_| level >= Level::Live) {
            let lower = &secured.proved.levels[..place];
            let is_lower = |missing: &Missing<Obstacle>| {
                lower.iter().any(|(_, made)| made[side].mapping.entry(missing.point).is_some())
            };
            let lacking = made[side].missing.obstacles().filter(|missing| !is_lower(missing));
            all.extend(lacking.map(|missing| MissingEntry { level, side, missing }));
        }
    }
    all
}

fn print(rows: &Rows) -> io::Result<()> {
    let mut out = io::stdout().lock();
    write!(out, "{:36}{:>8}{:>8}{:>8}{:>8}", "", "points", "unnamed", "back", "gone")?;
    write!(out, "{:>8} |{:>7}{:>7}{:>7}", "right", "one", "two", "three")?;
    writeln!(out, "{:>7}{:>7}{:>7}", "more", "none", "work")?;
    let mut sums: BTreeMap<&str, Row> = BTreeMap::new();
    let mut all = Row::default();
    for ((level, direction, reason), row) in rows {
        line(&mut out, &format!("{level} {direction} {reason}"), row)?;
        sums.entry(level).or_default().add(row);
        all.add(row);
    }
    for (level, row) in &sums {
        line(&mut out, level, row)?;
    }
    line(&mut out, "all", &all)
}

/// One row: the test of blame in reports, and the numbers of rewrites that searches named.
fn line(out: &mut impl io::Write, name: &str, row: &Row) -> io::Result<()> {
    let right = 100.0 * (row.back + row.gone) as f64 / row.points.max(1) as f64;
    write!(
        out,
        "{name:36}{:>8}{:>8}{:>8}{:>8}{right:>7.1}% |",
        row.points, row.unnamed, row.back, row.gone
    )?;
    row.sets.iter().try_for_each(|count| write!(out, "{count:>7}"))?;
    writeln!(out, "{:>7}{:>7}", row.not_found, row.over_work)
}
