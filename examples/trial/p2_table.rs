//! The command that damages mappings at random and prints the results.

use crate::p2::{Row, Settings, Table, measure, total};
use std::io::{self, Write as _};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many damaged entries
    #[arg(long, default_value_t = 100_000)]
    damages: u64,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The size of the programs
    #[arg(long, default_value_t = 40)]
    size: u32,
    /// How often the entries of one program are damaged
    #[arg(long, default_value_t = 12)]
    rounds: u32,
}

pub(crate) fn run(args: &Args) -> bool {
    let &Args { damages, seed, size, rounds } = args;
    let (table, programs) = measure(Settings { damages, seed, size, rounds });
    print(&table, programs).expect("standard output can be written");
    total(&table).escaped == 0
}

fn print(table: &Table, programs: u64) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{programs} programs")?;
    writeln!(
        out,
        "{:<20} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8} | {:>8} {:>7} {:>7}",
        "damage",
        "entries",
        "refuted",
        "undecided",
        "accepted",
        "killed",
        "k&refuted",
        "escaped",
        "sampled",
        "state",
        "output"
    )?;
    let mut line = |name: &str, r: &Row| {
        let share = |part: u64| format!("{:.1}%", 100.0 * part as f64 / r.sampled.max(1) as f64);
        writeln!(
            out,
            "{name:<20} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8} | {:>8} {:>7} {:>7}",
            r.damages,
            r.refuted,
            r.undecided,
            r.accepted,
            r.killed,
            r.killed_refuted,
            r.escaped,
            r.sampled,
            share(r.sampled_state),
            share(r.sampled_output)
        )
    };
    for (kind, row) in table {
        line(kind.name(), row)?;
    }
    line("all", &total(table))
}
