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
    /// The floors that the figures fall below, as sentences: figures of generated programs, and the
    /// compared transitions of each program of the corpus, of which there must be one.
    pub below_floors: Vec<String>,
    /// The programs of the corpus in which no transition was compared, in the form that `--corpus`
    /// accepts: the oracles of transitions judged nothing there. Example: a program that ends at
    /// once.
    pub idle: Vec<String>,
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
    /// The error that kept the command from judging further cases. The document then covers the
    /// cases judged by then. `null` if there was none.
    pub broken: Option<String>,
    /// The duration of the command in seconds. It covers making programs, optimizing, verifying,
    /// mapping, running and comparing.
    pub seconds: f64,
}

impl FuzzReport {
    /// The verdict about the programs that were judged: `Ok` if no oracle found anything, no
    /// program took too long, some program was judged, and no figure is below its floor. `floors`
    /// says whether floors count.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn verdict(&self, floors: bool) -> Result<(), String> {
        match (self.failures.len(), self.late.len()) {
            (0, 0) => {}
            (0, 1) => return Err("1 program took longer than --case-time".to_owned()),
            (0, late) => return Err(format!("{late} programs took longer than --case-time")),
            (1, _) => return Err("1 program with findings".to_owned()),
            (failed, _) => return Err(format!("{failed} programs with findings")),
        }
        if self.all.programs == 0 {
            let is_early = self.interrupted || self.broken.is_some();
            let words = match self.unfinished.is_empty() || is_early {
                true => "no program was judged",
                false => "the time was up before any program was judged",
            };
            return Err(words.to_owned());
        }
        match floors && !self.below_floors.is_empty() {
            true => Err(self.below_floors.join("; ")),
            false => Ok(()),
        }
    }

    /// The reason in words why the campaigns ended before their limits, if they did. Texts of
    /// errors are not among them.
    pub(super) fn early_end(&self) -> Option<&'static str> {
        match (&self.broken, self.interrupted) {
            (Some(_), _) => Some("ended by an error"),
            (None, true) => Some("interrupted"),
            (None, false) => None,
        }
    }
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
    /// first failure of the generated programs; with `--findings`, but for the smallest failure
    /// with each key. `null` for a program of the corpus with `--engine jit`.
    pub test: Option<String>,
}

/// The number of programs in which each oracle found something. `None` for an oracle that did not
/// run.
pub fn by_oracle(figures: &Figures) -> BTreeMap<&'static str, Option<u64>> {
    let found = |oracle: &FuzzOracle| figures.findings.get(oracle).copied().unwrap_or(0);
    FuzzOracle::ALL.iter().map(|o| (o.name(), figures.has_run(*o).then(|| found(o)))).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::{CampaignOptions, judge};
    use ir::text::parse_module;

    /// The report of a campaign that judged so many programs and found nothing.
    pub(crate) fn report(programs: u64) -> FuzzReport {
        let mut all = Figures { programs, ..Figures::default() };
        let not_run = [FuzzOracle::Native, FuzzOracle::Speculation, FuzzOracle::Inlining];
        let run = FuzzOracle::ALL.into_iter().filter(|oracle| !not_run.contains(oracle));
        all.ran = run.filter(|_| programs > 0).map(|oracle| (oracle, programs)).collect();
        FuzzReport {
            schema: 1,
            seed: 0,
            settings: String::new(),
            jobs: 1,
            corpus: None,
            smith: None,
            generated: None,
            oracles: by_oracle(&all),
            all,
            below_floors: Vec::new(),
            idle: Vec::new(),
            failures: Vec::new(),
            transitions: 0,
            unfinished: Vec::new(),
            late: Vec::new(),
            killed: 0,
            interrupted: false,
            broken: None,
            seconds: 1.0,
        }
    }

    /// The report of a campaign in which the state oracle found these keys, each in a program.
    pub(crate) fn failing(keys: &[&str]) -> FuzzReport {
        let mut report = report(9);
        keys.iter().for_each(|_| report.all.count_finding(FuzzOracle::State));
        report.oracles = by_oracle(&report.all);
        let failure = |key: &&str| FuzzFailure {
            key: (*key).to_owned(),
            oracle: "state",
            message: "state, versions 0 and 1:\n  a value differs".to_owned(),
            reproduce: "osier fuzz --seed 3 --pipeline 'licm|x'".to_owned(),
            reproduced: Some(true),
            guilty: None,
            test: None,
        };
        report.failures = keys.iter().map(failure).collect();
        report
    }

    /// `--only-inlining` of programs without calls counted all other oracles as judges.
    #[test]
    fn an_oracle_that_did_not_run_has_no_number() {
        let text = "func @f(%x: i32) -> i32 {\nentry:\n  %y = add.i32 %x, %x\n  return %y\n}\n";
        let ran = |options: CampaignOptions| {
            let module = parse_module(text).expect("it is well-formed");
            let f = module.func_named("f").expect("the text has it");
            let judged = judge(&options.case(1, module, f, vec![vec![8]], 1000));
            assert_eq!(judged.findings, []);
            let all = by_oracle(&judged.figures);
            all.into_iter().filter_map(|(name, found)| found.map(|_| name)).collect::<Vec<_>>()
        };
        let options = CampaignOptions { versions: Some(3), ..CampaignOptions::default() };
        let all = FuzzOracle::ALL.map(FuzzOracle::name);
        let mut interpreted: Vec<_> = all.into_iter().filter(|name| *name != "native").collect();
        interpreted.sort_unstable();
        assert_eq!(ran(options.clone()), interpreted);
        let alone = CampaignOptions { only_inlining: true, ..options.clone() };
        assert_eq!(ran(alone), ["inlining", "panic"]);
        let alone = CampaignOptions { only_speculation: true, ..options.clone() };
        assert_eq!(ran(alone), ["panic", "speculation"]);
        let few = CampaignOptions { chains: 0, going_on: 0, assumptions: 0, ..options };
        let few = CampaignOptions { certificates: false, inlining: false, ..few };
        assert_eq!(ran(few), ["composition", "lockstep", "panic", "ssa", "state"]);
    }

    #[test]
    fn a_campaign_without_a_program_has_no_good_end() {
        let verdict = |report: FuzzReport| report.verdict(false);
        assert_eq!(verdict(report(1)), Ok(()));
        assert_eq!(verdict(report(0)), Err("no program was judged".to_owned()));
        let unfinished = vec!["osier fuzz --seed 0".to_owned()];
        let why = "the time was up before any program was judged".to_owned();
        assert_eq!(verdict(FuzzReport { unfinished, ..report(0) }), Err(why));
        assert_eq!(report(0).oracles.values().flatten().count(), 0, "no oracle ran");
        assert_eq!(verdict(failing(&["a"])), Err("1 program with findings".to_owned()));
    }
}
