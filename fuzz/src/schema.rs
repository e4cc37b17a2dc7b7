//! The document that `osier fuzz --format json` prints.

use super::figures::Figures;
use super::oracle::FuzzOracle;
use std::collections::BTreeMap;

/// The document that `osier fuzz --format json` prints.
#[derive(Clone, Debug, serde::Serialize)]
pub struct FuzzReport {
    /// [`osier::schema::SCHEMA`].
    pub schema: u32,
    /// The seed of the first program.
    pub seed: u64,
    /// The other options that affect the cases, in the form that the command accepts.
    pub settings: String,
    /// The number of threads. Other figures except times do not depend on it, unless the time was
    /// the limit.
    pub jobs: u64,
    /// The figures of the WebAssembly programs of the corpus. `null` if none were requested.
    pub corpus: Option<Figures>,
    /// The figures of random WebAssembly modules. `null` if none were requested.
    pub smith: Option<Figures>,
    /// The figures of generated programs. `null` if none were requested.
    pub generated: Option<Figures>,
    /// The sums of these figures.
    pub all: Figures,
    /// The number of programs in which each oracle found something. `null` for an oracle that did
    /// not run.
    pub oracles: BTreeMap<&'static str, Option<u64>>,
    /// The floors that the figures of generated programs fall below, as sentences. The figures of
    /// native code have no floors.
    pub below_floors: Vec<String>,
    /// The programs with findings.
    pub failures: Vec<FuzzFailure>,
    /// The number of compared transitions.
    pub transitions: u64,
    /// The commands of the programs in work when the time was up or the command was interrupted. No
    /// figure counts them.
    pub unfinished: Vec<String>,
    /// The commands of the programs that took longer than `--case-time` (`--engine interp`). No
    /// figure counts them. With `--engine jit`, such a program is a failure.
    pub late: Vec<String>,
    /// The number of programs whose processes others killed, and that a second process judged
    /// (`--engine jit`).
    pub killed: u64,
    /// Whether the command was interrupted. The document then covers the cases judged by then.
    pub interrupted: bool,
    /// The duration of the command in seconds. It covers making programs, optimizing, verifying,
    /// mapping, running and comparing.
    pub seconds: f64,
}

/// A program with findings.
#[derive(Clone, Debug, serde::Serialize)]
pub struct FuzzFailure {
    /// The name of the finding ([`FindingKey`](crate::FindingKey)), equal for programs that show
    /// the same finding.
    pub key: String,
    /// The oracle of the findings.
    pub oracle: &'static str,
    /// The description of the findings.
    pub message: String,
    /// The command that reproduces the findings.
    pub reproduce: String,
    /// Whether the same oracle found something when the command judged the program again. `null` if
    /// there was no time, or if the program had taken longer than `--case-time`.
    pub reproduced: Option<bool>,
    /// The rewrite without which the findings disappear. `null` if there is none, if there was no
    /// time, or if the findings were not reproduced. With `--engine jit` also `null` for programs
    /// of the corpus, and with `--nans platform`. It is part of the key.
    pub guilty: Option<String>,
    /// The program as a test in the format of `tests/oir/`, reduced if possible. `null` but for the
    /// first failure of the generated programs; with `--findings`, but for the first failure with
    /// each key. `null` for a program of the corpus with `--engine jit`.
    pub test: Option<String>,
}

/// The number of programs in which each oracle found something. `None` for an oracle that did not
/// run.
pub fn by_oracle(figures: &Figures) -> BTreeMap<&'static str, Option<u64>> {
    let found = |oracle: &FuzzOracle| figures.findings.get(oracle).copied().unwrap_or(0);
    FuzzOracle::ALL.iter().map(|o| (o.name(), figures.asked(*o).then(|| found(o)))).collect()
}
