//! Blame on trial: of points without an entry, the share that has one without the action to blame.

use clap::Args as ClapArgs;
use ir::{Function, Module};
use osier::driver::counterfactual::{Counterfactual, CulpritEffort, Culprits, Fate, SourcePoint};
use osier::driver::{NoObserver, Recipe, Secured, Vigilance, derive_certified, load};
use osr::{Level, Unmapped};
use passes::Pipeline;
use std::collections::BTreeMap;
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
    /// The share of the points without an entry of which the blame of a report is tested
    #[arg(long, default_value_t = 0.05)]
    share: f64,
    /// The share of these for which a smallest set of rewrites is searched, as `osier explain` does
    #[arg(long, default_value_t = 0.2)]
    searched: f64,
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
    /// Searches, by the number of rewrites found: one, two, three, more.
    sets: [u64; 4],
    not_found: u64,
}

impl Row {
    fn add(&mut self, other: &Row) {
        self.points += other.points;
        self.unnamed += other.unnamed;
        self.back += other.back;
        self.gone += other.gone;
        self.sets.iter_mut().zip(other.sets).for_each(|(mine, theirs)| *mine += theirs);
        self.not_found += other.not_found;
    }
}

/// A point without an entry.
#[derive(Clone, Copy)]
struct Lacking<'a> {
    level: Level,
    side: Side,
    unmapped: &'a Unmapped,
}

type Key = (&'static str, &'static str, &'static str);

/// The results by level, direction and reason.
type Rows = BTreeMap<Key, Row>;

impl Lacking<'_> {
    fn key(&self) -> Key {
        (self.level.name(), self.side.direction(), self.unmapped.reason.name())
    }

    fn at(&self) -> SourcePoint {
        (self.side, self.unmapped.point)
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
            let secured = derive_certified(&module, base, &recipe, &mut NoObserver);
            one_function((&module, base), (&secured, &pipeline), args, &mut prng, &mut rows);
        }
    }
    print(&rows).expect("standard output can be written");
    rows.values().all(|row| row.not_found == 0)
}

fn module(path: &Path) -> Module {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let is_text = path.extension().is_some_and(|extension| extension == "oir");
    let format = if is_text { osier::driver::Format::Oir } else { osier::driver::Format::Wasm };
    load(format, &bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn one_function(
    (module, base): (&Module, &Function),
    (secured, pipeline): (&Secured, &Pipeline),
    args: &Args,
    prng: &mut Prng,
    rows: &mut Rows,
) {
    let given_up = secured.retried.given_up.iter().map(|given_up| given_up.numbers()).collect();
    let mut test = Counterfactual::new(module, (base, &secured.derived), pipeline, given_up);
    let picks =
        |prng: &mut Prng, share: f64| (prng.below(1 << 20) as f64) < share * (1 << 20) as f64;
    let actions = secured.derived.log.actions();
    let mut blamed: BTreeMap<(Level, u64), Vec<Lacking<'_>>> = BTreeMap::new();
    let mut searched = Vec::new();
    for lacking in all_lacking(secured) {
        if !picks(prng, args.share) {
            continue;
        }
        let row = rows.entry(lacking.key()).or_default();
        row.points += 1;
        match lacking.unmapped.blame {
            None => row.unnamed += 1,
            Some(action) => {
                let rewrite = actions[action].origin().rewrite();
                blamed.entry((lacking.level, rewrite)).or_default().push(lacking);
            }
        }
        searched.extend(picks(prng, args.searched).then_some(lacking));
    }
    for ((level, rewrite), lacking) in blamed {
        let points: Vec<SourcePoint> = lacking.iter().map(Lacking::at).collect();
        for (lacking, fate) in lacking.iter().zip(test.fates_without(rewrite, level, &points)) {
            let row = rows.entry(lacking.key()).or_default();
            row.back += u64::from(fate == Fate::Entry);
            row.gone += u64::from(fate == Fate::Gone);
        }
    }
    for lacking in searched {
        let row = rows.entry(lacking.key()).or_default();
        match test.culprits(lacking.at(), lacking.level, CulpritEffort::default()) {
            Culprits::Found { culprits, .. } => row.sets[culprits.len().clamp(1, 4) - 1] += 1,
            Culprits::NotFound => row.not_found += 1,
        }
    }
}

/// The points of a function without an entry, at every level from `live` on.
fn all_lacking(secured: &Secured) -> Vec<Lacking<'_>> {
    let mut all = Vec::new();
    for (place, made) in secured.certified.levels.iter().enumerate() {
        let level = made.level;
        for side in Side::BOTH.into_iter().filter(|_| level >= Level::Live) {
            let lower = &secured.certified.levels[..place];
            let is_lower = |unmapped: &&Unmapped| {
                lower.iter().any(|made| made.of(side).mapping.entry(unmapped.point).is_some())
            };
            let lacking = made.of(side).unmapped.iter().filter(|unmapped| !is_lower(unmapped));
            all.extend(lacking.map(|unmapped| Lacking { level, side, unmapped }));
        }
    }
    all
}

fn print(rows: &Rows) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{:36}{:>8}{:>8}{:>8}{:>8}{:>8} |{:>7}{:>7}{:>7}{:>7}{:>7}",
        "", "points", "unnamed", "back", "gone", "right", "one", "two", "three", "more", "none"
    )?;
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
    writeln!(out, "{:>7}", row.not_found)
}
