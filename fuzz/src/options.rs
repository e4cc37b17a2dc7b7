//! The settings of a campaign, and the case that each seed stands for.

use super::case::{Case, World};
use super::stress::Stress;
use ir::{Func, Module};
use osr::Level;
use passes::registry::{PASSES, StaticPass, parse};
use std::fmt;
use verify::generate::{Weights, arguments, generate};
use verify::prng::Prng;
use verify::state_oracle::Policy;

/// The most versions of a program.
pub const MAX_VERSIONS: u32 = 6;

/// Passes of a sequence drawn at random.
const RANDOM_PASSES: std::ops::Range<u32> = 2..11;

/// One program in so many has more than two versions.
const CHAIN_ONE_IN: u32 = 12;

/// The settings of a campaign. With them, a seed stands for one case, whatever was judged before.
#[derive(Clone)]
pub struct Options {
    /// The seed of the first program; the others follow.
    pub seed: u64,
    /// About the number of instructions of a generated program's main function.
    pub size: u32,
    /// Argument lists each generated program is run with.
    pub inputs: u32,
    /// What compensation code may read; empty: mostly everything, by seed.
    pub levels: Vec<Level>,
    /// The passes between a program and its last version, one list by seed; empty: named pipelines,
    /// shuffled ones and random ones.
    pub pipelines: Vec<Vec<StaticPass>>,
    /// Whether the passes of each list are put in a random order.
    pub shuffle: bool,
    /// The number of versions; `None`: mostly two, up to [`MAX_VERSIONS`] by seed.
    pub versions: Option<u32>,
    /// Visits of one run and direction from which it goes on in the other version.
    pub going_on: u32,
    /// Whether every entry's certificate is made and checked.
    pub certificates: bool,
    /// Chains of random transitions among all versions, for each argument list.
    pub chains: u32,
    /// Transitions made whatever is sampled.
    pub stress: Stress,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 0,
            size: 150,
            inputs: 12,
            levels: Vec::new(),
            pipelines: Vec::new(),
            shuffle: false,
            versions: None,
            going_on: 1,
            certificates: true,
            chains: 1,
            stress: Stress::default(),
        }
    }
}

/// How a case is made of a program: drawn from the seed alone, in a stream of its own, so that the
/// program does not depend on it.
struct Plan {
    steps: Vec<Vec<StaticPass>>,
    level: Level,
}

impl Options {
    /// The generated program of a seed, and what is done with it. Cost: that of [`generate`].
    pub fn generated(&self, seed: u64) -> Case {
        let program = generate(seed, self.size, &Weights::default());
        let params = program.module.signature(program.main).params.clone();
        let arguments = arguments(seed, &params, self.inputs as usize);
        self.case(seed, program.module, program.main, arguments, 2 * program.steps + 1000)
    }

    /// What a seed does with a program that imports nothing.
    pub fn case(
        &self,
        seed: u64,
        module: Module,
        entry: Func,
        arguments: Vec<Vec<u64>>,
        fuel: u64,
    ) -> Case {
        let Plan { steps, level } = self.plan(seed);
        Case {
            module,
            entry,
            arguments,
            fuel,
            world: World::Nothing,
            steps,
            level,
            policy: Policy::Every,
            going_on: self.going_on,
            certificates: self.certificates,
            chains: self.chains,
            stress: self.stress,
            seed,
        }
    }

    /// The passes of a list from each version to the next, for a program that is given and not
    /// generated: two versions where nothing is said.
    pub fn steps(&self, seed: u64, passes: &[StaticPass]) -> Vec<Vec<StaticPass>> {
        let mut prng = Prng::new(seed).fork(0x73_74_65_70);
        let passes =
            if self.shuffle { shuffled(passes.to_vec(), &mut prng) } else { passes.to_vec() };
        let versions = self.versions.unwrap_or(2).clamp(2, MAX_VERSIONS);
        cut(&passes, versions as usize - 1, &mut prng)
    }

    fn plan(&self, seed: u64) -> Plan {
        let mut prng = Prng::new(seed).fork(0x66_75_7a_7a);
        let level = match self.levels.as_slice() {
            [] => prng.pick(&[
                Level::Avail,
                Level::Avail,
                Level::Avail,
                Level::Avail,
                Level::Avail,
                Level::Alias,
            ]),
            levels => prng.pick(levels),
        };
        let versions = match self.versions {
            Some(versions) => versions.clamp(2, MAX_VERSIONS),
            None if prng.below(CHAIN_ONE_IN) == 0 => prng.between(3, MAX_VERSIONS),
            None => 2,
        };
        let passes = self.draw_passes(&mut prng);
        Plan { steps: cut(&passes, versions as usize - 1, &mut prng), level }
    }

    fn draw_passes(&self, prng: &mut Prng) -> Vec<StaticPass> {
        let named = |name| parse(name).expect("a pipeline of the registry").passes().to_vec();
        let random = |prng: &mut Prng| -> Vec<StaticPass> {
            (0..prng.between(RANDOM_PASSES.start, RANDOM_PASSES.end - 1))
                .map(|_| prng.pick(PASSES))
                .collect()
        };
        let mut passes = match (self.pipelines.as_slice(), prng.below(8)) {
            ([], 0..=2) => named("O1"),
            ([], 3) => named(prng.pick(&["canonical", "O2"])),
            ([], 4 | 5) => shuffled(named(prng.pick(&["O1", "O2", "canonical"])), prng),
            ([], 6) => vec![prng.pick(PASSES)],
            ([], _) => random(prng),
            (pipelines, _) => pipelines[prng.index(pipelines.len())].clone(),
        };
        if self.shuffle {
            passes = shuffled(passes, prng);
        }
        passes
    }
}

/// A random order (Fisher and Yates).
fn shuffled(mut passes: Vec<StaticPass>, prng: &mut Prng) -> Vec<StaticPass> {
    for last in (1..passes.len()).rev() {
        passes.swap(last, prng.index(last + 1));
    }
    passes
}

/// Cuts a list in so many parts, at random places.
fn cut(passes: &[StaticPass], parts: usize, prng: &mut Prng) -> Vec<Vec<StaticPass>> {
    let mut places: Vec<usize> = (1..parts).map(|_| prng.index(passes.len() + 1)).collect();
    places.sort_unstable();
    let starts = std::iter::once(0).chain(places.iter().copied());
    let ends = places.iter().copied().chain([passes.len()]);
    starts.zip(ends).map(|(start, end)| passes[start..end].to_vec()).collect()
}

impl fmt::Display for Options {
    /// The options of `osier fuzz` that say the same, without the seed; those that hold anyway are
    /// left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { size, inputs, going_on, chains, .. } = self;
        write!(f, "--size {size} --inputs {inputs} --going-on {going_on} --chains {chains}")?;
        for level in &self.levels {
            write!(f, " --level {level}")?;
        }
        for passes in &self.pipelines {
            let names: Vec<&str> = passes.iter().map(|p| p.name()).collect();
            write!(f, " --pipeline {}", names.join(","))?;
        }
        if self.shuffle {
            f.write_str(" --shuffle")?;
        }
        if !self.certificates {
            f.write_str(" --no-certificates")?;
        }
        if let Some(versions) = self.versions {
            write!(f, " --versions {versions}")?;
        }
        write!(f, "{}", self.stress)
    }
}
