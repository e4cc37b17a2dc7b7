//! The gain of each pass natively: kernels and real programs after `O2`, after `O2` without one of
//! its passes, and after none.
//!
//! Every variant is compiled at several places, and all variants run in turn. A ratio compares the
//! fastest runs, each at the best of its places. The column `again` is the base, compiled a second
//! time: differences as small mean nothing.

use super::inlining::{ProgramSubject, execute};
use super::measure::{Times, geometric_mean, highest};
use super::programs::{NAMES, module, padded, size};
use super::{Arguments, Report};
use ir::Module;
use osier::driver::{NoObserver, Vigilance, optimize};
use osier::passes::{self, Pipeline};
use osier::{Format, load};
use serde_json::json;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

/// All kernels of `tests/corpus`, with sizes for which a run takes about a tenth of a second.
const KERNELS: [(&str, &str); 15] = [
    ("calls", "2000000"),
    ("divide", "150000"),
    ("edit", "3000"),
    ("hash", "3000000"),
    ("mandel", "400"),
    ("matmul", "400"),
    ("mixed", "1500000"),
    ("nbody", "600000"),
    ("queens", "11"),
    ("scan", "6000000"),
    ("sieve", "6000000"),
    ("sort", "250000"),
    ("stencil", "9000"),
    ("vm", "60000"),
    ("words", "60000"),
];

/// The number of code places at which each function of each variant is compiled.
const PLACES: usize = 3;

/// A pipeline with the name of its column.
struct Variant {
    name: String,
    pipeline: Pipeline,
}

/// The variants on the command line, or else `O2` and `O2` without each pass. The base comes first,
/// twice.
fn variants(arguments: &Arguments) -> Result<Vec<Variant>, Box<dyn Error>> {
    let nothing = || Pipeline::of(Vec::new());
    let mut all = vec![
        Variant { name: "base".to_owned(), pipeline: nothing() },
        Variant { name: "again".to_owned(), pipeline: nothing() },
    ];
    if !arguments.pipelines.is_empty() {
        for name in &arguments.pipelines {
            all.push(Variant { name: name.clone(), pipeline: passes::parse(name)? });
        }
        return Ok(all);
    }
    let whole = passes::parse("O2")?;
    all.push(Variant { name: "O2".to_owned(), pipeline: whole.clone() });
    let mut names = whole.names();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let rest = whole.passes().iter().copied().filter(|pass| pass.name() != name);
        all.push(Variant { name: format!("-{name}"), pipeline: Pipeline::of(rest.collect()) });
    }
    Ok(all)
}

/// The kernels and programs that `--only` selects.
fn subjects(arguments: &Arguments) -> Result<Vec<ProgramSubject>, Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut subjects = Vec::new();
    for (name, size) in KERNELS {
        for (route, file) in [("m2r", format!("{name}.wasm")), ("o2", format!("{name}.o2.wasm"))] {
            let label = format!("{name}.{route}");
            if arguments.selects(&label) {
                let bytes = std::fs::read(folder.join(file))?;
                let module = load(Format::Wasm, &bytes).map_err(|e| e.in_file(&label))?;
                let args = vec![name.to_owned(), size.to_owned()];
                subjects.push(ProgramSubject { name: label, module: Arc::new(module), args });
            }
        }
    }
    for name in NAMES.into_iter().filter(|name| arguments.selects(name)) {
        if let Some(module) = module(arguments, name)? {
            let args = vec![name.to_owned(), size(name).to_owned()];
            subjects.push(ProgramSubject { name: name.to_owned(), module, args });
        }
    }
    Ok(subjects)
}

/// The fastest times of each variant of a program.
fn measure(
    arguments: &Arguments,
    ProgramSubject { name, module, args }: &ProgramSubject,
    variants: &[Variant],
    rounds: usize,
) -> Result<Vec<Times>, Box<dyn Error>> {
    let made: Vec<Vec<Arc<Module>>> = variants
        .iter()
        .map(|variant| {
            let module = optimize(module, &variant.pipeline, Vigilance::Off, &mut NoObserver);
            let module = Arc::new(module);
            (0..PLACES).map(|by| padded(&module, by)).collect()
        })
        .collect();
    let (_, expected, _) = execute(arguments, module, args)?;
    let mut times = vec![Times::new(PLACES); variants.len()];
    for _ in 0..rounds {
        for place in 0..PLACES {
            for (index, variant) in variants.iter().enumerate() {
                let (seconds, printed, _) = execute(arguments, &made[index][place], args)?;
                if printed != expected {
                    return Err(format!("{name} prints something else: {}", variant.name).into());
                }
                times[index].note(place, seconds);
            }
        }
    }
    Ok(times)
}

pub(crate) fn run(arguments: &Arguments) -> Result<Report, Box<dyn Error>> {
    let (rounds, variants) = (arguments.rounds.unwrap_or(2), variants(arguments)?);
    let width = |variant: &Variant| variant.name.len().max(6) + 2;
    let mut table = format!("{:<12}{:>9}", "program", "base, s");
    for variant in &variants[1..] {
        table += &format!("{:>w$}", variant.name, w = width(variant));
    }
    table += "\n";
    let mut rows: Vec<(String, Vec<f64>)> = Vec::new();
    let mut found = Vec::new();
    for subject in subjects(arguments)? {
        let times = measure(arguments, &subject, &variants, rounds)?;
        let ratios: Vec<f64> = times.iter().map(|t| t.best() / times[0].best()).collect();
        table +=
            &line(&subject.name, &format!("{:.4}", times[0].best()), &variants, &ratios, width);
        let by_name = variants.iter().zip(&times);
        let seconds: serde_json::Map<_, _> =
            by_name.map(|(v, t)| (v.name.clone(), json!(t.best()))).collect();
        found.push(json!({ "program": subject.name, "seconds": seconds }));
        rows.push((subject.name, ratios));
    }
    if rows.is_empty() {
        return Err("--only selects no kernel and no program that is built".into());
    }
    for route in ["m2r", "o2"] {
        let of = |variant: usize| -> Vec<f64> {
            rows.iter().filter(|(n, _)| n.ends_with(route)).map(|(_, r)| r[variant]).collect()
        };
        if !of(0).is_empty() {
            let means: Vec<f64> = (0..variants.len()).map(|v| geometric_mean(&of(v))).collect();
            let worst: Vec<f64> = (0..variants.len()).map(|v| highest(&of(v))).collect();
            table += &line(route, "mean", &variants, &means, width);
            table += &line(route, "highest", &variants, &worst, width);
        }
    }
    table += "ratios to the base, at the best place of each; again: the base, compiled twice\n";
    Ok(Report { table, json: json!(found) })
}

fn line(
    name: &str,
    second: &str,
    variants: &[Variant],
    ratios: &[f64],
    width: impl Fn(&Variant) -> usize,
) -> String {
    let mut line = format!("{name:<12}{second:>9}");
    for (variant, ratio) in variants.iter().zip(ratios).skip(1) {
        line += &format!("{ratio:>w$.3}", w = width(variant));
    }
    line + "\n"
}
