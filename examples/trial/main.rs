//! The checker, the oracles and the blame of reports on trial: the share of wrong mappings that
//! each detects, the share of points whose entry comes back without the action to blame.
//!
//!     cargo run --release --example trial -- p1
//!     cargo run --release --example trial -- p2 --damages 1000000
//!     cargo run --release --example trial -- p3
//!     cargo run --release --example trial -- garbage --certificates 10000000
//!     cargo run --release --example trial -- blame tests/corpus/*.wasm
//!     cargo run --release --example trial -- forge M module FILE --seed 1
//!
//! `docs/testing.md` defines the pools and holds the tables that these commands print.

mod blame;
mod cases;
mod forge;
mod garbage;
mod output;
mod p1;
mod p2;
mod p2_table;
mod p3;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Debug, Parser)]
#[command(about = "The checker and the oracles on trial")]
struct Args {
    #[command(subcommand)]
    pool: Pool,
}

#[derive(Debug, Subcommand)]
enum Pool {
    /// Wrong changes of our own code, in a copy of the workspace that has them
    P1(p1::Args),
    /// One wrong change of native code, in a process that may crash; P1 starts it
    #[command(hide = true)]
    NativeBug(p1::native::Args),
    /// Random damage to mappings
    P2(p2_table::Args),
    /// Checkers without one of their checks
    P3(p3::Args),
    /// Garbled certificates
    Garbage(garbage::Args),
    /// The actions that reports blame for points without an entry
    Blame(blame::Args),
    /// Damaged mappings as files, which `proof/agree` has two checkers judge
    Forge(forge::Args),
}

fn main() -> ExitCode {
    let passed = match Args::parse().pool {
        Pool::P1(args) => p1::run(&args),
        Pool::NativeBug(args) => p1::native::child(&args),
        Pool::P2(args) => p2_table::run(&args),
        Pool::P3(args) => p3::run(&args),
        Pool::Garbage(args) => garbage::run(&args),
        Pool::Blame(args) => blame::run(&args),
        Pool::Forge(args) => forge::run(&args),
    };
    ExitCode::from(u8::from(!passed))
}
