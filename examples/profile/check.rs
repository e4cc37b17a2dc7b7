//! The rate at which the checker judges the entries of versions with assumptions.

use super::pins::{EVERY, profile};
use super::{ProfiledPrograms, program};
use ir::{Function, Module};
use osier::driver::{NoObserver as Unobserved, Observer, Step, Vigilance, derive, prove_graph};
use osier::speculate::{Assumption, Plan, Suggester, speculate};
use osr::{Level, Version, VersionGraph, VersionTree};
use passes::Pipeline;
use std::error::Error;
use std::io::{self, Write as _};
use std::time::{Duration, Instant};
use transition::Demand;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    profiled: ProfiledPrograms,
    /// Rounds; the fastest counts
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: u32,
}

/// The time spent in the checker.
#[derive(Default)]
struct CheckTime {
    since: Option<Instant>,
    spent: Duration,
}

impl Observer for CheckTime {
    fn begin(&mut self, step: Option<Step>) {
        self.spent += self.since.map_or(Duration::ZERO, |since| since.elapsed());
        self.since = (step == Some(Step::Check)).then(Instant::now);
    }
}

/// The judged entries and the time spent.
#[derive(Clone, Copy, Default)]
struct Judged {
    entries: u64,
    spent: Duration,
}

impl Judged {
    fn add(&mut self, other: Judged) {
        self.entries += other.entries;
        self.spent += other.spent;
    }

    fn columns(&self) -> String {
        let seconds = self.spent.as_secs_f64();
        let rate = if self.entries == 0 { 0.0 } else { self.entries as f64 / seconds };
        format!("{:9} {seconds:8.3} {rate:11.0}", self.entries)
    }
}

pub(super) fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let (input, pipeline) = (args.profiled.input()?, args.profiled.pipeline());
    let mut out = io::stdout().lock();
    writeln!(out, "{:>30}   {:>30}", "without assumptions", "with assumptions")?;
    let columns = format!("{:>9} {:>8} {:>11}", "entries", "seconds", "a second");
    writeln!(out, "{columns}   {columns}  program")?;
    for text in &args.profiled.programs {
        let (module, arguments) = program(text)?;
        let profile = profile(&module, &arguments, &input)?;
        let suggester = Suggester::new(&module, &profile, EVERY);
        let mut sums = [Judged::default(); 2];
        for (func, base) in module.defined() {
            let assume: Vec<Assumption> =
                suggester.of(func).iter().map(|suggestion| suggestion.assumption).collect();
            if assume.is_empty() {
                continue;
            }
            let trees = [
                plain(&module, base, &pipeline),
                speculative(&module, base, &Plan::new(&assume, &pipeline))?,
            ];
            for (sum, (tree, last)) in sums.iter_mut().zip(&trees) {
                let rounds = (0..args.rounds.max(1)).map(|_| judged(&module, tree, *last));
                sum.add(rounds.min_by_key(|judged| judged.spent).expect("there is a round"));
            }
        }
        let [plain, speculative] = sums.map(|sum| sum.columns());
        writeln!(out, "{plain}   {speculative}  {text}")?;
        out.flush()?;
    }
    Ok(())
}

fn plain(module: &Module, base: &Function, pipeline: &Pipeline) -> (VersionTree, Version) {
    let derived = derive(module, base, pipeline, Vigilance::Off, &mut Unobserved);
    let mut tree = VersionTree::new(base.clone());
    let last = tree
        .add(VersionTree::BASE, derived.function, derived.log)
        .expect("the log leads to the version derived");
    (tree, last)
}

fn speculative(
    module: &Module,
    base: &Function,
    plan: &Plan<'_>,
) -> Result<(VersionTree, Version), Box<dyn Error>> {
    let mut tree = VersionTree::new(base.clone());
    let made = speculate(module, &mut tree, VersionTree::BASE, plan)?;
    Ok((tree, made.optimized))
}

/// Judges the mappings of each two neighbors between the base and a version.
fn judged(module: &Module, tree: &VersionTree, last: Version) -> Judged {
    let line = tree.path(VersionTree::BASE, last);
    let pairs: Vec<(Version, Version)> = line.windows(2).map(|w| (w[0], w[1])).collect();
    let mut graph = VersionGraph::build(tree, &pairs, Level::Avail, Demand::default())
        .expect("each version is derived from the one before");
    let entries = graph.edges().iter().map(|edge| edge.mapping.len() as u64).sum();
    let mut time = CheckTime::default();
    prove_graph(module, &mut graph, &mut time);
    Judged { entries, spent: time.spent }
}
