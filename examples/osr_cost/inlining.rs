//! Programs after `O3` beside the same programs after `O2`: times, and the size of code.

use super::measure::{Times, geometric_mean, timed};
use super::programs::{NAMES, module, no_program, padded, size, start};
use super::{Arguments, Report};
use interp::{Limits, Options, Outcome};
use ir::Module;
use jit::{Quiet, Vm};
use osier::driver::{NoObserver, Vigilance};
use osier::inlining::PassPlan;
use osier::{Format, load};
use serde_json::json;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use wasm::wasi::Wasi;

/// Kernels of `tests/corpus`, with sizes for which a run takes some tenths of a second.
const KERNELS: [(&str, &str); 5] = [
    ("calls", "2000000"),
    ("sort", "400000"),
    ("vm", "150000"),
    ("mixed", "400000"),
    ("queens", "9"),
];
/// The number of code places at which each function of each variant is compiled.
const PLACES: usize = 4;
/// `O2`, `O2` again, `O3`.
const PIPELINES: [&str; 3] = ["O2", "O2", "O3"];

struct Row {
    times: Vec<Times>,
    /// Instructions and bytes of code, by variant.
    sizes: Vec<(usize, usize)>,
}

impl Row {
    /// How many times as fast a variant is.
    fn gain(&self, variant: usize) -> f64 {
        self.times[0].best() / self.times[variant].best()
    }

    fn mean_gain(&self, variant: usize) -> f64 {
        self.times[0].mean() / self.times[variant].mean()
    }
}

/// A program.
pub(crate) struct ProgramSubject {
    pub(crate) name: String,
    pub(crate) module: Arc<Module>,
    pub(crate) args: Vec<String>,
}

/// The programs.
fn subjects(arguments: &Arguments) -> Result<Vec<ProgramSubject>, Box<dyn Error>> {
    let mut subjects = Vec::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    for (name, size) in KERNELS {
        for route in ["", ".o2"] {
            let label = format!("{name}{route}");
            if label.contains(&arguments.only) {
                let bytes = std::fs::read(folder.join(format!("{label}.wasm")))?;
                let module = load(Format::Wasm, &bytes).map_err(|e| e.in_file(&label))?;
                let args = vec![name.to_owned(), size.to_owned()];
                subjects.push(ProgramSubject { name: label, module: Arc::new(module), args });
            }
        }
    }
    for name in NAMES.into_iter().filter(|name| name.contains(&arguments.only)) {
        if let Some(module) = module(arguments, name)? {
            let args = vec![name.to_owned(), size(name).to_owned()];
            subjects.push(ProgramSubject { name: name.to_owned(), module, args });
        }
    }
    Ok(subjects)
}

/// Compiles everything and runs the program. Returns its time, its output, and the bytes of its
/// code.
pub(crate) fn execute(
    arguments: &Arguments,
    module: &Arc<Module>,
    args: &[String],
) -> Result<(f64, Vec<u8>, usize), Box<dyn Error>> {
    let engine = arguments.engine()?;
    let options = Options::default();
    let mut vm = Vm::new(&engine, module, Limits::default(), options)?;
    vm.set_tiering(Box::new(Quiet));
    let mut bytes = 0;
    for (func, function) in module.defined() {
        let version = engine.version(module, func, function, &[])?;
        bytes += version.code_size();
        vm.install(&version, Vec::new())?;
    }
    let mut printed = Vec::new();
    let (seconds, outcome) = {
        let mut host = Wasi::new(args.to_vec(), std::io::empty(), &mut printed, std::io::sink());
        let start = start(module)?;
        timed(|| vm.invoke(start, &[], &mut host))
    };
    match outcome? {
        Outcome::Returned(_) | Outcome::Exited(0) => Ok((seconds, printed, bytes)),
        other => Err(format!("{} does not end as it should: {other}", args[0]).into()),
    }
}

fn measure(
    arguments: &Arguments,
    ProgramSubject { name, module, args }: &ProgramSubject,
    rounds: usize,
) -> Result<Row, Box<dyn Error>> {
    let mut variants = Vec::new();
    let mut row = Row { times: vec![Times::new(PLACES); PIPELINES.len()], sizes: Vec::new() };
    for pipeline in PIPELINES {
        let plan = PassPlan::parse(pipeline)?;
        let made = Arc::new(plan.optimize(module, Vigilance::Off, &mut NoObserver).module);
        let instructions = made.defined().map(|(_, f)| f.inst_count()).sum();
        row.sizes.push((instructions, 0));
        variants.push((0..PLACES).map(|by| padded(&made, by)).collect::<Vec<_>>());
    }
    let (_, expected, _) = execute(arguments, module, args)?;
    for _ in 0..rounds {
        for place in 0..PLACES {
            for (index, variant) in variants.iter().enumerate() {
                let (seconds, printed, bytes) = execute(arguments, &variant[place], args)?;
                if printed != expected {
                    return Err(
                        format!("{name} prints something else after {}", PIPELINES[index]).into()
                    );
                }
                row.times[index].note(place, seconds);
                row.sizes[index].1 = bytes;
            }
        }
    }
    Ok(row)
}

pub(crate) fn run(arguments: &Arguments) -> Result<Report, Box<dyn Error>> {
    let rounds = arguments.rounds.unwrap_or(3);
    let mut table = format!(
        "{:<12}{:>10}{:>10}{:>8}{:>8}{:>9}{:>12}{:>8}\n",
        "program", "O2, s", "O3, s", "again", "gain", "by mean", "instr.", "bytes"
    );
    let (mut rows, mut gains) = (Vec::new(), Vec::new());
    for subject in subjects(arguments)? {
        let row = measure(arguments, &subject, rounds)?;
        let growth = |late: usize, early: usize| late as f64 / early.max(1) as f64;
        let (early, late) = (row.sizes[0], row.sizes[2]);
        let (instructions, bytes) = (growth(late.0, early.0), growth(late.1, early.1));
        let name = &subject.name;
        table += &format!(
            "{name:<12}{:>10.4}{:>10.4}{:>8.3}{:>8.3}{:>9.3}{instructions:>12.3}{bytes:>8.3}\n",
            row.times[0].best(),
            row.times[2].best(),
            row.gain(1),
            row.gain(2),
            row.mean_gain(2),
        );
        if NAMES.contains(&name.as_str()) {
            gains.push((name.clone(), row.gain(2)));
        }
        rows.push(json!({ "program": name, "o2_seconds": row.times[0].best(),
            "o3_seconds": row.times[2].best(), "again": row.gain(1), "gain": row.gain(2),
            "mean_gain": row.mean_gain(2), "instructions": instructions, "bytes": bytes }));
    }
    for route in ["m2r", "o2"] {
        let of: Vec<f64> = gains.iter().filter(|(n, _)| n.contains(route)).map(|g| g.1).collect();
        if !of.is_empty() {
            let mean = geometric_mean(&of);
            table += &format!("{route}: geometric mean of the gains of programs {mean:.3}\n");
        }
    }
    table += "gain: the time after O2 over that after O3, at the best place of each; again: O2 compiled twice\n";
    if rows.is_empty() {
        return Err(no_program(arguments));
    }
    Ok(Report { table, json: json!(rows) })
}
