//! The layer of native code, in a child process, since wrong code may do anything.

use fuzz::{CampaignOptions, Case, Clock, judge_native};
use mutants::switch::everywhere;
use mutants::table::{Mutant, Table};
use osier::ir::text::parse_module;
use osier::passes;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Address space and processor time of a child, in bytes and seconds.
const LIMITS: jit::process::Resources =
    jit::process::Resources { address_space: 256 << 30, cpu_seconds: 120 };
/// Bytes of stack of the thread that judges.
const STACK: usize = 64 << 20;
/// The exit status of a child that has detected the bug, which neither Rust nor the shell uses.
const FOUND: i32 = 77;

/// A program with indirect calls of every kind of table entry. Generated programs lack indirect
/// calls, since they would hardly ever reach their end. The additions are there for passes to
/// change.
const INDIRECT: &str = "\
table @t 4
elem @t 0 [@double, @square, null, @other]
export \"main\" @main
func @double(%a: i32) -> i32 {
entry:
  %b = add.i32 %a, %a
  return %b
}
func @square(%a: i32) -> i32 {
entry:
  %b = mul.i32 %a, %a
  return %b
}
func @other(%a: i64) -> i32 {
entry:
  %b = wrap.i32 %a
  return %b
}
func @main(%which: i32, %a: i32) -> i32 {
entry:
  %one = const.i32 1
  %two = add.i32 %one, %one
  %c = add.i32 %a, %two
  %d = add.i32 %a, %two
  %b = call_indirect @t (i32) -> i32 [%which](%c)
  %e = add.i32 %b, %d
  return %e
}
";
/// The number of cases with such calls, before the generated cases.
const DIRECTED: usize = 8;

fn indirect(seed: u64) -> Case {
    let module = parse_module(INDIRECT).expect("the text is right");
    let main = module.func_named("main").expect("the function");
    let options = CampaignOptions {
        pipelines: vec![passes::parse("O1").expect("a pipeline").passes().to_vec()],
        ..CampaignOptions::default()
    };
    let wild = u64::from(u32::MAX);
    let arguments = [0, 1, 2, 3, 4, 9, wild].map(|which| vec![which, 5]).to_vec();
    options.case(seed, module, main, arguments, 1000)
}

/// The number of the first of `programs` programs that detects a bug of native code; `None` if no
/// program does. A child that fails while it judges a program detects the bug.
///
/// # Panics
/// If no child can be started, or the child fails before it judges a program.
pub(crate) fn noticed(bug: &Mutant, programs: usize) -> Option<usize> {
    let exe = std::env::current_exe().expect("the path of this program");
    let child = Command::new(exe)
        .args(["native-bug", bug.name.as_str(), "--programs", &programs.to_string()])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .output()
        .expect("a process for native code");
    let printed = String::from_utf8_lossy(&child.stdout);
    let last = printed.lines().filter_map(|line| line.parse().ok()).next_back();
    (!child.status.success()).then(|| last.expect("the child judges a program before it fails"))
}

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The bug
    name: String,
    /// The most programs
    #[arg(long, default_value_t = 100)]
    programs: usize,
}

/// The child process: prints the number of each program before judging it, and exits with [`FOUND`]
/// if it detects the bug.
pub(crate) fn child(args: &Args) -> bool {
    let table = Table::read().expect("the table of mutants");
    let bug = table.mutant(&args.name).expect("a bug").id;
    jit::process::limit(&LIMITS).expect("limits of the process");
    let judge = || {
        let started = Instant::now();
        let clock: Clock = Arc::new(move || -> Duration { started.elapsed() });
        for seed in 0..args.programs {
            writeln!(std::io::stdout(), "{seed}").expect("standard output can be written");
            let case = if seed < DIRECTED {
                indirect(seed as u64)
            } else {
                CampaignOptions::default().generated(seed as u64)
            };
            // A judge that fails without the bug would detect every bug.
            let clean = judge_native(&case, &clock);
            assert!(clean.findings.is_empty(), "without the bug: {}", clean.findings[0]);
            // Threads beside the run compile, too.
            let judged = everywhere(bug, || judge_native(&case, &clock));
            if let Some(finding) = judged.findings.first() {
                writeln!(std::io::stderr(), "{finding}").expect("standard error can be written");
                std::process::exit(FOUND);
            }
        }
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, judge);
        thread.expect("a thread").join().is_ok()
    })
}
