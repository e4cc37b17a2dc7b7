//! The sources of cases that the command line selects: generated programs and the corpus.

use super::corpus::{CorpusProgram, CorpusReader};
use crate::cmd::failure::CommandFailure;
use fuzz::{CampaignOptions, Case, CaseSource, Drawn};
use osr::Level;
use passes::registry::StaticPass;
use std::ops::Range;

/// Generated programs. Case `n` uses the seed of the options plus `n`.
pub(super) struct Generated {
    pub(super) options: CampaignOptions,
}

impl CaseSource for Generated {
    fn case(&self, number: u64) -> Drawn {
        Drawn::Case(Box::new(self.options.generated(self.options.seed.wrapping_add(number))))
    }
}

/// WebAssembly programs, each with every selected pipeline and level: one *round* of cases. With a
/// limit on time, further rounds follow, each with the next seed. Without selected pipelines, the
/// seed draws those of the further rounds.
pub(super) struct CorpusPrograms {
    programs: Vec<CorpusProgram>,
    pipelines: Vec<Vec<StaticPass>>,
    levels: Vec<Level>,
    options: CampaignOptions,
    /// Whether further rounds follow the first.
    repeats: bool,
}

/// The place of a case among the programs of the corpus.
struct CorpusPlace {
    program: usize,
    pipeline: usize,
    level: usize,
    round: u64,
}

impl CorpusPrograms {
    /// Creates a source. Without pipelines in the options it uses `O1` and `canonical`; without
    /// levels it uses `avail`, the highest.
    pub(super) fn new(
        programs: Vec<CorpusProgram>,
        options: &CampaignOptions,
        repeats: bool,
    ) -> CorpusPrograms {
        let named =
            |name| passes::parse(name).expect("a pipeline of the registry").passes().to_vec();
        let pipelines = match options.pipelines.as_slice() {
            [] => ["O1", "canonical"].map(named).to_vec(),
            pipelines => pipelines.to_vec(),
        };
        let levels =
            if options.levels.is_empty() { vec![Level::Avail] } else { options.levels.clone() };
        CorpusPrograms { programs, pipelines, levels, options: options.clone(), repeats }
    }

    /// The number of cases of a round: programs times pipelines times levels.
    fn round(&self) -> u64 {
        (self.programs.len() * self.pipelines.len() * self.levels.len()) as u64
    }

    /// The number of cases.
    pub(super) fn len(&self) -> u64 {
        if self.repeats { u64::MAX } else { self.round() }
    }

    /// Reads the programs of all cases, or of these. A case has to be read before it is drawn.
    ///
    /// # Errors
    /// If a file cannot be read or is not a program.
    pub(super) fn read(
        &self,
        cases: Option<Range<u64>>,
        reader: &CorpusReader,
    ) -> Result<(), CommandFailure> {
        match cases {
            None => self.programs.iter().try_for_each(|program| reader.read(program)),
            Some(cases) => cases
                .take_while(|number| *number < self.len())
                .try_for_each(|number| reader.read(&self.programs[self.place(number).program])),
        }
    }

    /// The program of a case and its arguments, in the form that `--corpus` accepts.
    pub(super) fn command(&self, number: u64) -> &str {
        &self.programs[self.place(number).program].command
    }

    /// The options under which the program alone is this case.
    pub(super) fn options(&self, number: u64) -> CampaignOptions {
        let place = self.place(number);
        let is_drawn = place.round > 0 && self.options.pipelines.is_empty();
        // Each case of a round with drawn passes has other passes.
        let step = match is_drawn {
            true => place.round * self.pipelines.len() as u64 + place.pipeline as u64,
            false => place.round,
        };
        let seed = self.options.seed.wrapping_add(step);
        let pipeline = match is_drawn {
            true => CampaignOptions { seed, ..self.options.clone() }.drawn_passes(seed),
            false => self.pipelines[place.pipeline].clone(),
        };
        let levels = vec![self.levels[place.level]];
        CampaignOptions { seed, pipelines: vec![pipeline], levels, ..self.options.clone() }
    }

    /// The level varies fastest.
    fn place(&self, number: u64) -> CorpusPlace {
        let (round, number) = (number / self.round(), (number % self.round()) as usize);
        let (rest, level) = (number / self.levels.len(), number % self.levels.len());
        let (program, pipeline) = (rest / self.pipelines.len(), rest % self.pipelines.len());
        CorpusPlace { program, pipeline, level, round }
    }
}

impl CaseSource for CorpusPrograms {
    fn case(&self, number: u64) -> Drawn {
        if number >= self.len() {
            return Drawn::End;
        }
        let program = &self.programs[self.place(number).program];
        let options = self.options(number);
        let case = Case {
            steps: options.steps(options.seed, &options.pipelines[0]),
            level: options.levels[0],
            seed: options.seed,
            // The inlining oracle looks at each instruction, and programs execute many.
            options: CampaignOptions { inlining: options.only_inlining, ..options },
            ..program.case()
        };
        Drawn::Case(Box::new(case))
    }
}
