//! The cost of a point that never fires, in hot loops.

use super::kernels::{Kernel, kernels};
use super::measure::{Times, geometric_mean, highest, timed};
use super::points::{Live, assuming, headers};
use super::{Arguments, Report};
use interp::{Limits, NoHost, Options, Outcome};
use ir::{Func, Memory, Point};
use jit::{Action, Engine, Quiet, Vm};
use osier::speculate::{Assumption, Expected};
use osier::{Format, load};
use resume::{Condition, Truth};
use serde_json::json;
use std::error::Error;
use std::sync::Arc;

/// The number of code places at which each variant is compiled.
const PLACES: usize = 8;
/// Iterations of a run.
const ITERATIONS: u64 = 300_000;
/// The nanoseconds per iteration from which a loop counts as long.
const LONG: f64 = 2.0;

/// The variants; each is compared with the version without a point.
const VARIANTS: [Variant; 6] = [
    Variant::Plain,
    Variant::Again,
    Variant::Flag,
    Variant::Countdown,
    Variant::Guard,
    Variant::Assume,
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Variant {
    Plain,
    Again,
    Flag,
    Countdown,
    Guard,
    /// The version assumes the guard to be 0, and passes do not use this.
    Assume,
}

/// A variant at one place, ready to run.
struct Compiled {
    vm: Vm,
    func: Func,
    version: Option<Arc<jit::Version>>,
}

impl Compiled {
    fn new(
        engine: &Engine,
        kernel: &Kernel,
        variant: Variant,
        padding: usize,
    ) -> Result<Compiled, Box<dyn Error>> {
        let text = kernel.text(padding);
        let module =
            load(Format::Oir, text.as_bytes()).map_err(|error| error.in_file(kernel.name))?;
        let module = Arc::new(module);
        let func = module.lookup("f").ok_or("the kernel has it")?;
        let function = module.body(func).ok_or("it is defined")?;
        let options = Options::default();
        let mut vm = Vm::new(engine, &module, Limits::default(), options)?;
        vm.set_tiering(Box::new(Quiet));
        fill(&mut vm)?;
        for (other, body) in module.defined().filter(|(other, _)| *other != func) {
            vm.install(&engine.version(&module, other, body, &[])?, Vec::new())?;
        }
        let header = headers(function)[0];
        let guard =
            function.inst(header.inst()).result().ok_or("the header begins with the guard")?;
        let behind = Point::before(function.next_inst(header.inst()).ok_or("a header has more")?);
        let (at, condition) = match variant {
            Variant::Plain | Variant::Again => {
                vm.install(&engine.version(&module, func, function, &[])?, Vec::new())?;
                return Ok(Compiled { vm, func, version: None });
            }
            Variant::Flag => (header, Condition::Flag),
            Variant::Countdown => (header, Condition::Countdown(ITERATIONS + 1)),
            Variant::Guard => (behind, Condition::Guard { value: guard, when: Truth::NonZero }),
            Variant::Assume => {
                let expected = Expected::Is(0);
                let never = Assumption { at: behind, value: guard, expected, reason: 0 };
                let (version, actions) = assuming(engine, &module, func, &[never])?;
                vm.install(&version, actions)?;
                return Ok(Compiled { vm, func, version: Some(version) });
            }
        };
        let live = Live::new(function);
        let target = engine.version(&module, func, function, &[])?;
        vm.adopt(&target, Vec::new())?;
        let mapping = live.mapping([at]);
        let entry = mapping.checked_entry(at).ok_or("the mapping has one entry")?;
        let rest = engine.continuation(function, entry, &target)?;
        let version = engine.version(&module, func, function, &[live.point(at, condition)])?;
        vm.install(&version, vec![Action::Continue(rest)])?;
        Ok(Compiled { vm, func, version: Some(version) })
    }

    fn call(&mut self, iterations: u64, stop: u64) -> Result<u64, Box<dyn Error>> {
        match self.vm.invoke(self.func, &[iterations, stop], &mut NoHost)? {
            Outcome::Returned(values) => Ok(values[0]),
            other => Err(format!("the kernel does not return: {other}").into()),
        }
    }

    /// Makes the measured code fire, and returns the number of transitions. `expected` is the
    /// result of one more than twice the measured iterations, which the run must return.
    fn fires(&mut self, variant: Variant, expected: u64) -> Result<u64, Box<dyn Error>> {
        let Some(version) = self.version.clone() else { return Ok(0) };
        if variant == Variant::Flag {
            version.arm(0);
        }
        let guards = matches!(variant, Variant::Guard | Variant::Assume);
        let stop = if guards { ITERATIONS } else { u64::MAX };
        fill(&mut self.vm)?;
        let result = self.call(2 * ITERATIONS + 1, stop)?;
        if result != expected {
            return Err(format!(
                "with a transition the result is {result}, and {expected} without"
            )
            .into());
        }
        Ok(self.vm.transitions().iter().map(|made| made.count).sum())
    }
}

/// Fills the memory with numbers: words at 0, floats between 1 and 2 at 16384.
fn fill(vm: &mut Vm) -> Result<(), Box<dyn Error>> {
    let memories = vm.machine_mut().memories_mut();
    let mut state = 1u64;
    for k in 0..8192u64 {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let bits = if k < 2048 { state >> 7 } else { 0x3ff0_0000_0000_0000 | state >> 12 };
        memories
            .write(Memory::from_u32(0), 8 * k, &bits.to_le_bytes())
            .map_err(|_| "the memory is too small")?;
    }
    Ok(())
}

/// The measurements of a kernel, by variant.
struct Row {
    name: &'static str,
    times: Vec<Times>,
    fired: Vec<u64>,
}

impl Row {
    /// Nanoseconds per iteration at the best place.
    fn nanoseconds(&self, variant: usize) -> f64 {
        self.times[variant].best() / ITERATIONS as f64 * 1e9
    }

    fn ratio(&self, variant: usize) -> f64 {
        self.times[variant].best() / self.times[0].best()
    }

    fn mean_ratio(&self, variant: usize) -> f64 {
        self.times[variant].mean() / self.times[0].mean()
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Report, Box<dyn Error>> {
    let engine = arguments.engine()?;
    let mut rows = Vec::new();
    for kernel in kernels().iter().filter(|kernel| kernel.name.contains(&arguments.only)) {
        rows.push(measure(&engine, kernel, arguments.rounds.unwrap_or(30))?);
    }
    Ok(report(&rows))
}

fn measure(engine: &Engine, kernel: &Kernel, rounds: usize) -> Result<Row, Box<dyn Error>> {
    let mut compiled: Vec<Vec<Compiled>> = Vec::new();
    for variant in VARIANTS {
        let made = (0..PLACES).map(|padding| Compiled::new(engine, kernel, variant, padding));
        compiled.push(made.collect::<Result<_, _>>()?);
    }
    let mut times = vec![Times::new(PLACES); VARIANTS.len()];
    for _ in 0..rounds {
        for place in 0..PLACES {
            for variant in 0..VARIANTS.len() {
                let it = &mut compiled[variant][place];
                let (seconds, result) = timed(|| it.call(ITERATIONS, u64::MAX));
                result?;
                times[variant].note(place, seconds);
            }
        }
    }
    fill(&mut compiled[0][0].vm)?;
    let expected = compiled[0][0].call(2 * ITERATIONS + 1, u64::MAX)?;
    let mut fired = vec![0; VARIANTS.len()];
    for (index, variant) in VARIANTS.into_iter().enumerate() {
        for it in &mut compiled[index] {
            let count = it.fires(variant, expected)?;
            if it.version.is_some() && count == 0 {
                return Err(
                    format!("{}: the point for {variant:?} does not fire", kernel.name).into()
                );
            }
            fired[index] += count;
        }
    }
    Ok(Row { name: kernel.name, times, fired })
}

fn report(rows: &[Row]) -> Report {
    let mut table = format!(
        "{:<12}{:>8}{:>8}{:>20}{:>20}{:>20}{:>20}{:>10}\n",
        "loop", "ns", "again", "flag: ns, ratio", "countdown", "guard", "assume", "fired"
    );
    for row in rows {
        table += &format!("{:<12}{:>8.3}{:>8.3}", row.name, row.nanoseconds(0), row.ratio(1));
        for variant in 2..VARIANTS.len() {
            table += &format!(
                "{:>8.3}{:>6.3}{:>6.3}",
                row.nanoseconds(variant),
                row.ratio(variant),
                row.mean_ratio(variant)
            );
        }
        table += &format!("{:>10}\n", row.fired.iter().sum::<u64>());
    }
    let (long, short): (Vec<&Row>, Vec<&Row>) =
        rows.iter().partition(|row| row.nanoseconds(0) >= LONG);
    let mut summary = Vec::new();
    for (name, rows) in [("at least 2 ns", &long), ("shorter", &short)]
        .into_iter()
        .filter(|(_, rows)| !rows.is_empty())
    {
        for (index, variant) in VARIANTS.iter().enumerate().skip(1) {
            let ratios: Vec<f64> = rows.iter().map(|row| row.ratio(index)).collect();
            let means: Vec<f64> = rows.iter().map(|row| row.mean_ratio(index)).collect();
            let added: Vec<f64> =
                rows.iter().map(|row| row.nanoseconds(index) - row.nanoseconds(0)).collect();
            let (mean, worst, most) = (geometric_mean(&ratios), highest(&ratios), highest(&added));
            table += &format!(
                "{name}, {} loops, {variant:?}: geometric mean {mean:.4}, highest {worst:.4}, most added {most:.3} ns; mean over places {:.4}, highest {:.4}\n",
                rows.len(),
                geometric_mean(&means),
                highest(&means),
            );
            summary.push(json!({ "loops": name, "count": rows.len(), "variant": format!("{variant:?}"), "geometric_mean": mean, "highest": worst, "most_added_ns": most }));
        }
    }
    let loops: Vec<_> = rows
        .iter()
        .map(|row| {
            let ns = |variant: usize| json!({ "ns": row.nanoseconds(variant), "ratio": row.ratio(variant), "mean_ratio": row.mean_ratio(variant), "fired": row.fired[variant] });
            let variants: serde_json::Map<_, _> =
                VARIANTS.iter().enumerate().map(|(index, variant)| (format!("{variant:?}"), ns(index))).collect();
            json!({ "loop": row.name, "variants": variants })
        })
        .collect();
    Report { table, json: json!({ "loops": loops, "summary": summary }) }
}
