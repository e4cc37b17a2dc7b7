//! The time to make and prove versions with inlined code, beside versions without.

use super::program;
use ir::{Func, Function, Module};
use osier::driver::{Observer, Step, Vigilance, derive, prove};
use osier::inlining::{CalleeLandings, InlinePlan, Inlined, inline};
use osr::Level;
use passes::Callers;
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;
use std::io::{self, Write as _};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Programs
    #[arg(required = true)]
    programs: Vec<String>,
    /// Rounds; the fastest counts
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: u32,
    /// Print the seconds of each kind of work, too
    #[arg(long)]
    steps: bool,
}

/// Processor time, by kind of work.
#[derive(Clone, Copy)]
struct StepTimes {
    step: Option<Step>,
    since: f64,
    seconds: [f64; Step::ALL.len()],
}

impl StepTimes {
    fn new() -> StepTimes {
        StepTimes { step: None, since: 0.0, seconds: [0.0; Step::ALL.len()] }
    }
}

impl Observer for StepTimes {
    fn begin(&mut self, step: Option<Step>) {
        let now = seconds();
        if let Some(step) = self.step {
            self.seconds[step as usize] += now - self.since;
        }
        (self.since, self.step) = (now, step);
    }
}

/// The work on some functions.
#[derive(Clone, Copy)]
struct Work {
    /// In all, including time outside all steps.
    seconds: f64,
    steps: StepTimes,
    /// The entries that the checker judged or composed.
    entries: u64,
}

impl Work {
    fn none() -> Work {
        Work { seconds: 0.0, steps: StepTimes::new(), entries: 0 }
    }

    fn add(&mut self, other: &Work) {
        self.seconds += other.seconds;
        self.entries += other.entries;
        let steps = self.steps.seconds.iter_mut().zip(other.steps.seconds);
        steps.for_each(|(sum, seconds)| *sum += seconds);
    }

    fn rate(&self) -> f64 {
        self.entries as f64 / self.steps.seconds[Step::Check as usize]
    }
}

/// The functions of a program with inlined code.
struct Program<'m> {
    module: &'m Module,
    plan: InlinePlan,
    functions: Vec<(Func, &'m Function)>,
    /// The instructions of their bases, and the instructions of the inlined calls.
    instructions: [usize; 2],
}

pub(super) fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout().lock();
    writeln!(out, "{:>23} {:>26} {:>26}", "", "ns an instruction", "entries a second")?;
    let heads = ["base", "inlined", "O2", "O2, all", "O3", "ratio", "O2", "O3"];
    let heads: Vec<String> = heads.iter().map(|head| format!("{head:>8}")).collect();
    writeln!(out, "{}  program", heads.join(" "))?;
    for text in &args.programs {
        let (module, _) = program(text)?;
        let program = Program::new(&module);
        let fastest = |work: &dyn Fn() -> Work| {
            let rounds = (0..args.rounds.max(1)).map(|_| work());
            rounds.min_by(|a, b| a.seconds.total_cmp(&b.seconds)).expect("there is a round")
        };
        let plain = fastest(&|| program.plain(&[Level::Avail]));
        let all = fastest(&|| program.plain(&Level::ALL));
        let inlined = fastest(&|| program.inlined());
        let [base, more] = program.instructions;
        let each = |work: &Work, count: usize| work.seconds * 1e9 / count as f64;
        let [o2, all, o3] = [each(&plain, base), each(&all, base), each(&inlined, base + more)];
        writeln!(
            out,
            "{base:8} {more:8} {o2:8.0} {all:8.0} {o3:8.0} {:8.3} {:8.0} {:8.0}  {text}",
            o3 / o2,
            plain.rate(),
            inlined.rate()
        )?;
        if args.steps {
            for (name, work) in [("O2", &plain), ("O3", &inlined)] {
                let steps = Step::ALL.map(|step| work.steps.seconds[step as usize]);
                let rest = work.seconds - steps.iter().sum::<f64>();
                let [optimize, replay, map, check, _] = steps;
                writeln!(
                    out,
                    "    {name}: optimize {optimize:.3} s, verify and replay {replay:.3} s, \
                     map {map:.3} s, check {check:.3} s, rest {rest:.3} s"
                )?;
            }
        }
        out.flush()?;
    }
    Ok(())
}

impl<'m> Program<'m> {
    fn new(module: &'m Module) -> Program<'m> {
        let (plan, callers) = (InlinePlan::o3(), Callers::new(module));
        let mut program = Program { module, plan, functions: Vec::new(), instructions: [0; 2] };
        for (func, base) in module.defined() {
            let mut nobody = osier::driver::NoObserver;
            if program.plan.inlines(&callers, func, &mut nobody) {
                program.functions.push((func, base));
            }
        }
        let landings = CalleeLandings::new(module, &program.plan);
        for (func, base) in &program.functions {
            let mut nobody = osier::driver::NoObserver;
            let made = inline(module, *func, &program.plan, &landings, &mut nobody);
            program.instructions[0] += base.inst_count();
            program.instructions[1] += made.map_or(0, |made| inlined_insts(module, &made));
        }
        program
    }

    /// The functions after `O2`, with mappings.
    fn plain(&self, levels: &[Level]) -> Work {
        let mut work = Work::none();
        for (_, base) in &self.functions {
            let (mut steps, before) = (StepTimes::new(), seconds());
            let module = self.module;
            let derived = derive(module, base, &self.plan.first, Vigilance::On, &mut steps);
            let made = prove(module, base, &derived, levels, &mut steps);
            let seconds = seconds() - before;
            work.add(&Work { seconds, steps, entries: made.checked().held });
        }
        work
    }

    /// The functions after `O3`, with mappings, and the landings of inlined functions.
    fn inlined(&self) -> Work {
        let (mut work, before) = (Work::none(), seconds());
        let landings = CalleeLandings::new(self.module, &self.plan);
        work.seconds += seconds() - before;
        for (func, _) in &self.functions {
            let (mut steps, before) = (StepTimes::new(), seconds());
            let made = inline(self.module, *func, &self.plan, &landings, &mut steps);
            let made = made.expect("the plan inlines a call of the function");
            let seconds = seconds() - before;
            work.add(&Work { seconds, steps, entries: made.all_checked().held });
        }
        work
    }
}

/// The instructions of all bodies that were inlined.
fn inlined_insts(module: &Module, made: &Inlined) -> usize {
    let inlined = made.copies.instances()[1..].iter();
    inlined.filter_map(|one| module.body(one.func)).map(Function::inst_count).sum()
}

/// The processor time of this thread.
fn seconds() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}
