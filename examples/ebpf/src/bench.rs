//! Measures programs against the runtime's own compiler, by turns.
#![allow(unsafe_code, reason = "the runtime borrows a packet for its whole life")]

use crate::interpreter::{Profile, profile};
use crate::kernels::{Kernel, mix};
use crate::program::Program;
use crate::runtime::{Mode, Native};
use osier::inlining::PassPlan;
use osier::passes::parse;
use rbpf::ebpf::Helper;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One way to run a program, in several placements.
#[derive(Clone, Debug)]
pub struct Row {
    pub name: &'static str,
    pub compile: Duration,
    /// The median over placements, in nanoseconds a run.
    pub run: f64,
    pub bytes: usize,
    pub assumptions: usize,
}

/// A function that runs the program this often.
type Run = Box<dyn FnMut(u32) -> u64>;

/// The runs between two looks at the clock, and of a session.
const RUNS: u32 = 64;

/// The shortest of many short measurements by turns, in nanoseconds a run. A turn is shorter than
/// the time that a busy system leaves to a process at once.
fn measure(runs: &mut [(usize, Run)], times: &mut [f64]) {
    for _ in 0..80 {
        for (way, run) in runs.iter_mut() {
            let mut count = 0_u32;
            let start = Instant::now();
            while start.elapsed() < Duration::from_micros(150) {
                black_box(run(RUNS));
                count += RUNS;
            }
            let taken = start.elapsed().as_nanos() as f64 / f64::from(count);
            times[*way] = times[*way].min(taken);
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn peer(kernel: &Kernel, bytes: &'static [u8]) -> Result<(Duration, Run), String> {
    let mut vm = rbpf::EbpfVmRaw::new(Some(bytes)).map_err(|error| error.to_string())?;
    vm.register_helper(1, mix).map_err(|error| error.to_string())?;
    let packet: &'static mut [u8] = Box::leak(kernel.packet.clone().into());
    let (at, length) = (packet.as_mut_ptr(), packet.len());
    let start = Instant::now();
    // Its Cranelift knows no calls of local functions, but its own compiler does.
    let has_locals = kernel.has_local_calls;
    let made = if has_locals { vm.jit_compile() } else { vm.cranelift_compile() };
    made.map_err(|error| error.to_string())?;
    let taken = start.elapsed();
    let once = move || {
        // SAFETY: the packet is leaked, and each run has ended before the next one.
        let packet = unsafe { std::slice::from_raw_parts_mut(at, length) };
        let end = if has_locals {
            // SAFETY: the program was verified, and reads its packet alone.
            unsafe { vm.execute_program_jit(packet) }
        } else {
            vm.execute_program_cranelift(packet)
        };
        black_box(end.unwrap_or(u64::MAX))
    };
    let run = move |count: u32| (0..count).fold(0, |_, _| once());
    Ok((taken, Box::new(run)))
}

/// Measures a program in every way. With `slow`, also assumptions in long programs.
///
/// # Errors
/// If a program fails, or results differ.
pub fn rows(kernel: &Kernel, placements: usize, slow: bool) -> Result<Vec<Row>, String> {
    let bytes: &'static [u8] = Box::leak(kernel.bytes()?.into());
    let program = Arc::new(Program::new(bytes, |_| 256)?);
    let helpers: Arc<HashMap<u32, Helper>> = Arc::new(HashMap::from([(1, mix as Helper)]));
    let mut seen = Profile::default();
    let wanted = profile(&program, &helpers, &mut kernel.packet.clone(), &mut seen)?;
    let mut modes: Vec<(&'static str, Mode)> = Vec::new();
    for name in ["O0", "O1", "O3"] {
        modes.push((name, Mode::Native(PassPlan::parse(name)?)));
    }
    if slow || program.insns.len() < 500 {
        let pipeline = parse("O1").map_err(|error| error.to_string())?;
        modes.push(("assuming", Mode::Assuming(pipeline, seen)));
    }
    let names = std::iter::once("peer").chain(modes.iter().map(|(name, _)| *name));
    let row = |name| Row { name, compile: Duration::MAX, run: 0.0, bytes: 0, assumptions: 0 };
    let mut rows: Vec<Row> = names.map(row).collect();
    let mut found = vec![Vec::new(); rows.len()];
    for placement in 0..placements {
        let (taken, run) = peer(kernel, bytes)?;
        rows[0].compile = rows[0].compile.min(taken);
        let mut runs = vec![(0, run)];
        for (way, (name, mode)) in modes.iter().enumerate() {
            // A version with many assumptions takes seconds to make.
            if *name == "assuming" && placement > 0 && program.insns.len() >= 500 {
                continue;
            }
            let start = Instant::now();
            // SAFETY: kernels access their packet and stack alone; the helper does not panic.
            let native = unsafe { Native::new(&program, &helpers, &kernel.allowed, false, mode) };
            let mut native = native?;
            let row = &mut rows[way + 1];
            row.compile = row.compile.min(start.elapsed());
            (row.bytes, row.assumptions) = (native.counts().0, native.assumed.0);
            let mut packet = kernel.packet.clone();
            let run = move |count| native.run_often(&mut packet, count).unwrap_or(0);
            runs.push((way + 1, Box::new(run)));
        }
        for (way, run) in &mut runs {
            let result = run(1);
            if result != wanted {
                let way = rows[*way].name;
                return Err(format!("{} {way}: {result:#x}, not {wanted:#x}", kernel.name));
            }
        }
        let mut times = vec![f64::MAX; rows.len()];
        measure(&mut runs, &mut times);
        for (way, _) in &runs {
            found[*way].push(times[*way]);
        }
    }
    for (row, times) in rows.iter_mut().zip(found) {
        row.run = median(times);
    }
    Ok(rows)
}

/// The table of all programs, as Markdown.
///
/// # Errors
/// As [`rows`].
pub fn table(
    kernels: &[Kernel],
    placements: usize,
    slow: bool,
    print: &mut dyn FnMut(&str),
) -> Result<(), String> {
    print("| program | peer: compile, run | O0 | O1 | O3 | assuming |");
    print("|---|---|---|---|---|---|");
    let mut products = [(0.0, 0.0_f64); 5];
    for kernel in kernels {
        let rows = rows(kernel, placements, slow)?;
        let mut line = format!("| {} |", kernel.name);
        let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
        let _ = write!(line, " {:.0} us, {:.1} ns |", micros(rows[0].compile), rows[0].run);
        for (way, row) in rows.iter().enumerate().skip(1) {
            let ratio = row.run / rows[0].run;
            products[way].0 += ratio.ln() / kernels.len() as f64;
            products[way].1 = products[way].1.max(ratio);
            let _ =
                write!(line, " {:.0} us, {:.1} ns, **{ratio:.2}**", micros(row.compile), row.run);
            if row.assumptions > 0 {
                let _ = write!(line, ", {} assumptions", row.assumptions);
            }
            line.push_str(" |");
        }
        print(&line);
    }
    let mut line = "| mean, worst | |".to_owned();
    for (mean, worst) in products.iter().skip(1) {
        let _ = write!(line, " **{:.2}**, {worst:.2} |", mean.exp());
    }
    print(&line);
    Ok(())
}
