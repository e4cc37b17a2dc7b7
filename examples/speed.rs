//! The cost of optimizing a program, compared with LLVM's `opt` on the same program, with
//! optimizing without the log, and with mapping and checking. All are timed in one process,
//! alternating, and the fastest of several rounds counts.
//!
//!     cargo run --release --example speed -- CORPUS/sqlite.m2r.wasm \
//!         --bitcode CORPUS/objects/sqlite.m2r
//!
//! `--bitcode` names a folder with the LLVM bitcode from which the module was made (`*.m2r.bc`;
//! `tests/corpus/build` leaves it). The time of reading alone is subtracted from the time of `opt`.
//! `opt` runs the passes nearest to the passes of the pipeline and writes no output.

use clap::Parser;
use ir::edit::{Fuel, apply, apply_without_log};
use ir::{Function, Module};
use osier::driver::{NoObserver, Vigilance, derive, prove};
use osier::{Format, load};
use osr::Level;
use passes::Pipeline;
use std::error::Error;
use std::hint::black_box;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

/// Times optimizing a program, beside LLVM
#[derive(Debug, Parser)]
struct Args {
    /// The program, WebAssembly
    file: PathBuf,
    /// A folder with the bitcode the program was made from
    #[arg(long, value_name = "DIR")]
    bitcode: Option<PathBuf>,
    /// The passes
    #[arg(long, value_name = "P", default_value = "O1")]
    pipeline: String,
    /// The LLVM passes to compare with
    #[arg(
        long,
        value_name = "P",
        default_value = "function(sccp,simplifycfg,instsimplify,early-cse<memssa>,gvn,instsimplify,loop-simplify,lcssa,loop-mssa(licm),early-cse,adce,simplifycfg)"
    )]
    llvm: String,
    /// Rounds; the fastest counts
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: u32,
}

/// The fastest time of each kind of work, in seconds.
struct Times {
    kinds: Vec<(&'static str, f64)>,
}

impl Times {
    fn take(&mut self, kind: &'static str, work: impl FnOnce()) {
        let start = Instant::now();
        work();
        let seconds = start.elapsed().as_secs_f64();
        match self.kinds.iter_mut().find(|(name, _)| *name == kind) {
            Some((_, least)) => *least = least.min(seconds),
            None => self.kinds.push((kind, seconds)),
        }
    }

    fn of(&self, kind: &str) -> Option<f64> {
        self.kinds.iter().find(|(name, _)| *name == kind).map(|(_, seconds)| *seconds)
    }
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            writeln!(io::stderr(), "speed: {error}").ok();
            ExitCode::from(2)
        }
    }
}

fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let bytes =
        std::fs::read(&args.file).map_err(|error| format!("{}: {error}", args.file.display()))?;
    let module =
        load(Format::Wasm, &bytes).map_err(|error| format!("{}: {error}", args.file.display()))?;
    let pipeline = passes::parse(&args.pipeline)?;
    let bitcode = args.bitcode.as_deref().map(bitcode_in).transpose()?.unwrap_or_default();
    let mut times = Times { kinds: Vec::new() };
    for round in 0..args.rounds {
        times.take("import", || drop(black_box(load(Format::Wasm, &bytes))));
        times.take("optimize, no log", || {
            optimize(&module, &pipeline, |f, pass| apply_without_log(f, pass, &mut all()))
        });
        times.take("optimize", || {
            optimize(&module, &pipeline, |f, pass| {
                let (function, log) = apply(f, pass, &mut all()).into_parts();
                black_box(log);
                function
            });
        });
        for (kind, passes) in [("opt, reading", ""), ("opt", args.llvm.as_str())] {
            if !bitcode.is_empty() {
                let mut outcome = Ok(());
                times.take(kind, || outcome = opt(&bitcode, passes));
                outcome?;
            }
        }
        if round == 0 {
            times.take("map and check", || prove_all(&module, &pipeline));
        }
    }
    print(&times)?;
    Ok(())
}

fn all() -> Fuel {
    Fuel::UNLIMITED
}

fn optimize(
    module: &Module,
    pipeline: &Pipeline,
    run: impl Fn(&Function, &dyn ir::edit::Pass) -> Function,
) {
    for (_, base) in module.defined() {
        let mut function = base.clone();
        for pass in pipeline.passes() {
            function = run(&function, *pass);
        }
        black_box(function);
    }
}

fn prove_all(module: &Module, pipeline: &Pipeline) {
    for (_, base) in module.defined() {
        let derived = derive(module, base, pipeline, Vigilance::Off, &mut NoObserver);
        black_box(prove(module, base, &derived, &[Level::Avail], &mut NoObserver));
    }
}

/// The bitcode files of a folder, sorted.
fn bitcode_in(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    files.retain(|path| path.to_string_lossy().ends_with(".m2r.bc"));
    files.sort();
    if files.is_empty() {
        Err(format!("{}: no bitcode there", folder.display()).into())
    } else {
        Ok(files)
    }
}

fn opt(files: &[PathBuf], passes: &str) -> Result<(), Box<dyn Error>> {
    for file in files {
        let mut command = Command::new("opt-19");
        command.arg("-disable-output").arg(file).stdout(Stdio::null());
        if !passes.is_empty() {
            command.arg(format!("-passes={passes}"));
        }
        let status = command.status().map_err(|error| format!("opt-19: {error}"))?;
        if !status.success() {
            return Err(format!("opt-19 fails on {}", file.display()).into());
        }
    }
    Ok(())
}

fn print(times: &Times) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for (kind, seconds) in &times.kinds {
        writeln!(out, "{kind:<20} {seconds:>8.3} s")?;
    }
    if let (Some(logged), Some(plain)) = (times.of("optimize"), times.of("optimize, no log")) {
        let (more, share) = (1000.0 * (logged - plain), 100.0 * (logged / plain - 1.0));
        writeln!(out, "logging              {more:>8.1} ms, {share:.1} % of optimizing")?;
        if let (Some(all), Some(reading)) = (times.of("opt"), times.of("opt, reading")) {
            writeln!(out, "beside opt           {:>8.2} x", plain / (all - reading))?;
        }
    }
    Ok(())
}
