//! The judgment of one module: it runs in every engine after every pipeline, and its mappings are
//! checked.

use crate::process::{Ended, run};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::path::Path;
use std::process::Command;

/// The options of the runs. Interpreter and native code run the module as imported and after each
/// pipeline; O1 is the default. Tiers begin in the base, so a run enters the optimized code in the
/// middle: at the second call or repetition, where the costs say so, and with assumptions.
const RUNS: [&[&str]; 19] = [
    &["interp"],
    &["interp", "--pipeline", "O0"],
    &["interp", "--pipeline", "O1"],
    &["interp", "--pipeline", "O2"],
    &["interp", "--pipeline", "O3"],
    &["interp", "--pipeline", "canonical"],
    &["jit"],
    &["jit", "--pipeline", "O0"],
    &["jit", "--pipeline", "O1"],
    &["jit", "--pipeline", "O2"],
    &["jit", "--pipeline", "O3"],
    &["jit", "--pipeline", "canonical"],
    &["tiered"],
    &["tiered", "--pipeline", "O1"],
    &["tiered", "--pipeline", "O0", "--on-the-spot", "--hot", "2"],
    &["tiered", "--pipeline", "O1", "--on-the-spot", "--hot", "2"],
    &["tiered", "--pipeline", "O2", "--on-the-spot", "--hot", "2"],
    &["tiered", "--pipeline", "canonical", "--on-the-spot", "--hot", "2"],
    &["tiered", "--pipeline", "O1", "--speculate", "--hot", "2"],
];

/// The pipelines whose mappings are checked.
const CHECKED: [&str; 5] = ["O0", "O1", "O2", "O3", "canonical"];

/// Seconds of wall time for a process. Programs end in [`super::program`] after hundredths.
const LIMIT: f64 = 300.0;

/// The status of `osier check` if the checker refutes an entry; the verdicts are printed all the
/// same.
const REFUTED: i32 = 1;

/// The counts of judgments of modules.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct CsmithCounts {
    /// The programs that ran.
    pub programs: u64,
    /// The seeds whose native code, or a tool, takes too long, or whose native code crashes.
    pub skipped: u64,
    /// The modules, one for each level of the compiler.
    pub modules: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The runs of modules.
    pub runs: u64,
    /// The entries that hold.
    pub held: u64,
    /// The entries that the checker dropped.
    pub dropped: u64,
    /// The dropped entries that it refuted.
    pub refuted: u64,
    /// The rewrites that passes announced in functions whose mappings were checked.
    pub rewrites: u64,
    /// The rewrites given up so that entries hold.
    pub given_up: u64,
    /// The places of the rewrites given up.
    pub places: Vec<String>,
    /// Seconds of processor time of the command.
    pub processor: f64,
    /// Seconds of wall time of its longest process, and its options.
    pub longest: (f64, String),
}

impl AddAssign for CsmithCounts {
    fn add_assign(&mut self, other: CsmithCounts) {
        self.programs += other.programs;
        self.skipped += other.skipped;
        self.modules += other.modules;
        self.bytes += other.bytes;
        self.runs += other.runs;
        self.held += other.held;
        self.dropped += other.dropped;
        self.refuted += other.refuted;
        self.rewrites += other.rewrites;
        self.given_up += other.given_up;
        self.places.extend(other.places);
        self.processor += other.processor;
        if other.longest.0 > self.longest.0 {
            self.longest = other.longest;
        }
    }
}

/// Runs and checks a module. Returns the counts and the findings, each with the options of the
/// command.
///
/// # Errors
/// If the command cannot be started.
pub(super) fn judge(
    osier: &Path,
    module: &Path,
    expected: &[u8],
) -> Result<(CsmithCounts, Vec<String>), String> {
    let mut judgment =
        ModuleJudgment { osier, module, counts: CsmithCounts::default(), found: Vec::new() };
    judgment.counts.modules = 1;
    judgment.counts.bytes = std::fs::metadata(module).map_or(0, |data| data.len());
    for options in RUNS {
        judgment.judge_run(options, expected)?;
    }
    for pipeline in CHECKED {
        judgment.judge_mappings(pipeline)?;
    }
    Ok((judgment.counts, judgment.found))
}

struct ModuleJudgment<'a> {
    osier: &'a Path,
    module: &'a Path,
    counts: CsmithCounts,
    found: Vec<String>,
}

impl ModuleJudgment<'_> {
    fn process(&mut self, options: &[&str]) -> Result<Ended, String> {
        let mut command = Command::new(self.osier);
        command.args(options).arg(self.module);
        let ended = run(command, None, LIMIT)?;
        self.counts.processor += ended.processor;
        if ended.wall > self.counts.longest.0 {
            self.counts.longest = (ended.wall, options.join(" "));
        }
        Ok(ended)
    }

    fn judge_run(&mut self, options: &[&str], expected: &[u8]) -> Result<(), String> {
        let options = [&["run", "--engine"], options].concat();
        let ended = self.process(&options)?;
        self.counts.runs += 1;
        let options = options.join(" ");
        if !ended.is_well() {
            self.found.push(format!("{options}: {}", ended.how()));
        } else if ended.output != expected {
            let [ours, native] = [&ended.output, expected].map(String::from_utf8_lossy);
            self.found.push(format!("{options}: printed {ours:?}, native code {native:?}"));
        }
        Ok(())
    }

    fn judge_mappings(&mut self, pipeline: &str) -> Result<(), String> {
        let options = ["check", "--jobs", "1", "--format", "json", "--pipeline", pipeline];
        let ended = self.process(&options)?;
        let verdicts = match ended.status.and_then(|status| status.code()) {
            Some(0 | REFUTED) => serde_json::from_slice::<Verdicts>(&ended.output).ok(),
            _ => None,
        };
        let Some(verdicts) = verdicts else {
            self.found.push(format!("check --pipeline {pipeline}: {}", ended.how()));
            return Ok(());
        };
        self.counts.held += verdicts.held;
        self.counts.dropped += verdicts.all_dropped();
        self.counts.refuted += verdicts.refuted;
        for function in &verdicts.functions {
            self.counts.rewrites += function.rewrites;
            self.counts.given_up += function.refused;
        }
        self.counts.places.extend(verdicts.places(pipeline));
        self.found.extend(verdicts.finding(pipeline));
        Ok(())
    }
}

/// The part of `osier::schema::CheckReport` that is judged.
#[derive(Deserialize)]
struct Verdicts {
    held: u64,
    dropped: BTreeMap<String, u64>,
    refuted: u64,
    functions: Vec<FunctionVerdicts>,
}

/// The part of `osier::schema::CheckedFunction` that is judged.
#[derive(Deserialize)]
struct FunctionVerdicts {
    name: String,
    dropped: BTreeMap<String, u64>,
    rewrites: u64,
    refused: u64,
    given_up: Vec<RefusedRewrite>,
}

/// The part of `osier::driver::GivenUp` that is shown.
#[derive(Deserialize)]
struct RefusedRewrite {
    pass: String,
    rule: String,
    check: String,
}

impl Verdicts {
    fn all_dropped(&self) -> u64 {
        self.dropped.values().sum()
    }

    /// The entries that do not hold, with the functions that lose the most.
    fn finding(&self, pipeline: &str) -> Option<String> {
        let dropped = self.all_dropped();
        if dropped == 0 && self.refuted == 0 {
            return None;
        }
        let all = self.held + dropped;
        let mut text = format!("check --pipeline {pipeline}: {dropped} of {all} entries dropped");
        text += &format!(", {} refuted", self.refuted);
        let lost = |function: &FunctionVerdicts| function.dropped.values().sum::<u64>();
        let mut worst: Vec<&FunctionVerdicts> =
            self.functions.iter().filter(|f| lost(f) > 0).collect();
        worst.sort_by_key(|function| std::cmp::Reverse(lost(function)));
        for function in worst.iter().take(3) {
            let checks: Vec<String> =
                function.dropped.iter().map(|(check, count)| format!("{check} {count}")).collect();
            text += &format!("; @{}: {}", function.name, checks.join(", "));
        }
        Some(text)
    }

    /// The rewrites given up, each with its function.
    fn places(&self, pipeline: &str) -> Vec<String> {
        let of_function = |function: &FunctionVerdicts| {
            let name = function.name.clone();
            let of_rewrite = move |rewrite: &RefusedRewrite| {
                let RefusedRewrite { pass, rule, check } = rewrite;
                format!("check --pipeline {pipeline}: @{name}: {pass}/{rule}, {check}")
            };
            function.given_up.iter().map(of_rewrite).collect::<Vec<String>>()
        };
        self.functions.iter().flat_map(of_function).collect()
    }
}
