//! The arguments of the command.

use clap::{Parser, ValueEnum};
use std::path::PathBuf;

/// The bounds of a random C program
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ProgramSize {
    /// Four functions at most, and small blocks and expressions; 300 lines in the mean
    Small,
    /// Six functions at most, and blocks nested to a depth of four; 600 lines
    Medium,
    /// The bounds that csmith has by default; 1,300 lines, and minutes of work for each program
    Full,
}

/// Judges random C programs in every engine beside native code, and their mappings before the
/// checker.
#[derive(Parser, Debug, Clone)]
#[command(name = "osier-csmith")]
pub struct CsmithArguments {
    /// How many programs; those whose native code takes too long or crashes are skipped
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    pub programs: u64,
    /// The seed of the first program; each next one has the next seed
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The bounds of the programs
    #[arg(long, value_enum, default_value_t = ProgramSize::Small)]
    pub size: ProgramSize,
    /// Fail if fewer programs run
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    pub least: u64,
    /// Threads [default: the number of processors]
    #[arg(long)]
    pub jobs: Option<usize>,
    /// Keep the programs and their modules in this folder, each seed in a folder of its own
    #[arg(long, value_name = "DIR")]
    pub write: Option<PathBuf>,
    /// The command osier [default: the one beside this command]
    #[arg(long, value_name = "FILE")]
    pub osier: Option<PathBuf>,
}
