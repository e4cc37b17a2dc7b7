//! The cost of counting.

use super::{host, program};
use interp::{Limits, Machine, NoObserver, Options, Outcome, Program};
use ir::Module;
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;
use std::io::{self, Write as _};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Programs: FILE or FILE:ARGUMENT
    #[arg(required = true)]
    programs: Vec<String>,
    /// Rounds; the fastest counts
    #[arg(long, value_name = "N", default_value_t = 7)]
    rounds: u32,
    /// The standard input of the programs
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let input = args.input.as_ref().map(std::fs::read).transpose()?.unwrap_or_default();
    let mut out = io::stdout().lock();
    writeln!(out, "{:>9} {:>9} {:>7}  program", "plain s", "counted s", "ratio")?;
    let mut logs = 0.0;
    for text in &args.programs {
        let (module, arguments) = program(text)?;
        let decoded = Program::new(&module);
        let mut least = [f64::INFINITY; 2];
        for _ in 0..args.rounds {
            for counted in [false, true] {
                let seconds = timed(&module, &decoded, &arguments, &input, counted)?;
                let least = &mut least[usize::from(counted)];
                *least = least.min(seconds);
            }
        }
        let ratio = least[1] / least[0];
        logs += ratio.ln();
        writeln!(out, "{:9.3} {:9.3} {ratio:7.3}  {text}", least[0], least[1])?;
    }
    let mean = (logs / args.programs.len() as f64).exp();
    writeln!(out, "{mean:27.3}  geometric mean")?;
    Ok(())
}

/// The processor seconds of one run of a program, without the time to make the machine.
fn timed(
    module: &Module,
    decoded: &Program,
    arguments: &[String],
    input: &[u8],
    counted: bool,
) -> Result<f64, Box<dyn Error>> {
    let options = Options::default();
    let mut machine = Machine::with_options(decoded, Limits::default(), options)?;
    machine.set_fuel(u64::MAX);
    if counted {
        machine.count();
    }
    let entry = module.lookup("_start").ok_or("the program has no _start")?;
    let mut host = host(arguments.to_vec(), input);
    let before = seconds();
    let outcome = machine.invoke(entry, &[], &mut host, &mut NoObserver);
    let taken = seconds() - before;
    match outcome {
        Outcome::Returned(_) | Outcome::Exited(0) => Ok(taken),
        other => Err(format!("the program ended early: {other}").into()),
    }
}

/// The processor time of this thread.
fn seconds() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}
