//! The sources of cases that the command line selects: generated programs and the corpus.

use super::corpus::CorpusProgram;
use fuzz::{CampaignOptions, Case, CaseSource, Drawn};
use osr::Level;
use passes::registry::StaticPass;

/// Generated programs. Case `n` uses the seed of the options plus `n`.
pub(super) struct Generated {
    pub(super) options: CampaignOptions,
}

impl CaseSource for Generated {
    fn case(&self, number: u64) -> Drawn {
        Drawn::Case(Box::new(self.options.generated(self.options.seed.wrapping_add(number))))
    }
}

/// WebAssembly programs, each with every selected pipeline and level.
pub(super) struct CorpusPrograms {
    programs: Vec<CorpusProgram>,
    pipelines: Vec<Vec<StaticPass>>,
    levels: Vec<Level>,
    options: CampaignOptions,
}

impl CorpusPrograms {
    /// Creates a source. Without pipelines in the options it uses `O1` and `canonical`; without
    /// levels it uses `avail`, the highest.
    pub(super) fn new(programs: Vec<CorpusProgram>, options: &CampaignOptions) -> CorpusPrograms {
        let named =
            |name| passes::parse(name).expect("a pipeline of the registry").passes().to_vec();
        let pipelines = match options.pipelines.as_slice() {
            [] => ["O1", "canonical"].map(named).to_vec(),
            pipelines => pipelines.to_vec(),
        };
        let levels =
            if options.levels.is_empty() { vec![Level::Avail] } else { options.levels.clone() };
        CorpusPrograms { programs, pipelines, levels, options: options.clone() }
    }

    /// The number of cases: programs times pipelines times levels.
    pub(super) fn len(&self) -> u64 {
        (self.programs.len() * self.pipelines.len() * self.levels.len()) as u64
    }

    /// The program of a case and its arguments, in the form that `--corpus` accepts.
    pub(super) fn command(&self, number: u64) -> &str {
        &self.programs[self.place(number).0].command
    }

    /// The indices of the program, the pipeline and the level of a case. The level varies fastest.
    fn place(&self, number: u64) -> (usize, usize, usize) {
        let (number, levels) = (number as usize, self.levels.len());
        let (rest, level) = (number / levels, number % levels);
        (rest / self.pipelines.len(), rest % self.pipelines.len(), level)
    }
}

impl CaseSource for CorpusPrograms {
    fn case(&self, number: u64) -> Drawn {
        if number >= self.len() {
            return Drawn::End;
        }
        let (program, pipeline, level) = self.place(number);
        let program = &self.programs[program];
        let steps = self.options.steps(self.options.seed, &self.pipelines[pipeline]);
        let case = Case {
            steps,
            level: self.levels[level],
            // The inlining oracle looks at each instruction, and programs execute many.
            options: CampaignOptions {
                inlining: self.options.only_inlining,
                ..self.options.clone()
            },
            seed: self.options.seed,
            ..program.case.clone()
        };
        Drawn::Case(Box::new(case))
    }
}
