//! The settings of a campaign, and the case that a seed denotes under them.

use super::case::{Case, World};
use super::stress::Stress;
use ir::{Func, Module};
use jit::Nans;
use osr::Level;
use passes::registry::{PASSES, StaticPass, parse};
use std::fmt;
use verify::generate::{CountingHost, Weights, arguments, generate};
use verify::prng::Prng;
use verify::state_oracle::Policy;

/// The most versions of a program.
pub const MAX_VERSIONS: u32 = 6;

/// The range for the length of a random sequence of passes.
const RANDOM_PASSES: std::ops::Range<u32> = 2..11;

/// One program in this many has more than two versions.
const CHAIN_ONE_IN: u32 = 12;

/// One generated program in this many has facts that hold at first and then break.
const FACTS_ONE_IN: u64 = 3;

/// Of the programs that the inlining oracle alone judges, one in this many has no trees of calls.
const TREES_NOT_ONE_IN: u64 = 5;

/// The settings of a campaign. Under the same settings a seed always denotes the same case,
/// regardless of other cases.
#[derive(Clone)]
pub struct CampaignOptions {
    /// The seed of the first program. Each later program takes the next seed.
    pub seed: u64,
    /// The approximate number of instructions of a generated program's main function.
    pub size: u32,
    /// The number of lists of arguments that each generated program runs with.
    pub inputs: u32,
    /// The levels of the mappings, drawn by seed. If empty: mostly `avail`.
    pub levels: Vec<Level>,
    /// The passes between a program and its last version, one list drawn by seed. If empty: named
    /// pipelines, shuffled ones and random ones.
    pub pipelines: Vec<Vec<StaticPass>>,
    /// Whether each list of passes is shuffled.
    pub shuffle: bool,
    /// The number of versions. `None`: mostly two, sometimes up to [`MAX_VERSIONS`], by seed.
    pub versions: Option<u32>,
    /// The number of transitions per run and direction after which the run continues to its end.
    pub going_on: u32,
    /// Whether the certificate of every entry is made and checked.
    pub certificates: bool,
    /// The number of chains of random transitions per list of arguments.
    pub chains: u32,
    /// Transitions that extra runs make in addition.
    pub stress: Stress,
    /// The most assumptions that a speculative version of a function makes; 0 for no such versions.
    pub assumptions: u32,
    /// Whether the speculation oracle alone judges the programs.
    pub only_speculation: bool,
    /// Whether the inlining oracle judges versions with inlined code.
    pub inlining: bool,
    /// Whether the inlining oracle alone judges the programs.
    pub only_inlining: bool,
    /// Whether the speculation oracle compares states at assumptions alone. Chains then have no way
    /// into a version that assumes.
    pub only_exits: bool,
    /// Whether the speculation oracle judges landing tables alone.
    pub only_tables: bool,
    /// Whether programs have references, which a collector moves at each call of the host.
    pub stress_gc: bool,
    /// Whether programs have host memories.
    pub host_memory: bool,
    /// Whether programs call functions with declared effects.
    pub declared_calls: bool,
    /// The NaNs of native code. With [`Nans::Platform`], the native oracle changes the program so
    /// that it observes no NaN from arithmetic.
    pub nans: Nans,
}

impl Default for CampaignOptions {
    fn default() -> CampaignOptions {
        CampaignOptions {
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
            assumptions: 8,
            only_speculation: false,
            inlining: true,
            only_inlining: false,
            only_exits: false,
            only_tables: false,
            stress_gc: false,
            host_memory: false,
            declared_calls: false,
            nans: Nans::default(),
        }
    }
}

/// The passes and the level of a case. A separate random stream draws them, so that the generated
/// program does not depend on them.
struct CasePlan {
    steps: Vec<Vec<StaticPass>>,
    level: Level,
}

impl CampaignOptions {
    /// The case of a generated program. Cost: one [`generate`].
    pub fn generated(&self, seed: u64) -> Case {
        let program = generate(seed, self.size, &self.weights(seed));
        let params = program.module.signature(program.main).params.clone();
        let arguments = arguments(seed, &params, self.inputs as usize);
        self.case(seed, program.module, program.main, arguments, 2 * program.steps + 1000)
    }

    /// The weights of the generator. Facts that break serve the speculation oracle; the other
    /// oracles mostly judge programs without such facts. Trees of calls serve the inlining oracle.
    fn weights(&self, seed: u64) -> Weights {
        let breaks = self.only_speculation
            || (self.only_inlining && seed.is_multiple_of(2))
            || seed % FACTS_ONE_IN == FACTS_ONE_IN - 1;
        let weights = match self.assumptions > 0 && breaks {
            true => Weights::with_facts(),
            false => Weights::default(),
        };
        let has_trees = self.only_inlining && !seed.is_multiple_of(TREES_NOT_ONE_IN);
        let weights = if has_trees { weights.and_trees() } else { weights };
        let weights = if self.host_memory { weights.and_host_memories() } else { weights };
        let weights = if self.declared_calls { weights.and_declared_calls() } else { weights };
        if self.stress_gc { weights.and_references() } else { weights }
    }

    /// The case of a given program, whose imports [`CountingHost`] provides.
    pub fn case(
        &self,
        seed: u64,
        module: Module,
        entry: Func,
        arguments: Vec<Vec<u64>>,
        fuel: u64,
    ) -> Case {
        let CasePlan { steps, level } = self.plan(seed);
        Case {
            module,
            entry,
            arguments,
            fuel,
            world: World::Counting(CountingHost::default()),
            steps,
            rewrites: u64::MAX,
            level,
            policy: Policy::Every,
            options: self.clone(),
            seed,
        }
    }

    /// Distributes a list of passes over the versions of a given program. There are two versions
    /// unless the settings say otherwise.
    pub fn steps(&self, seed: u64, passes: &[StaticPass]) -> Vec<Vec<StaticPass>> {
        let mut prng = Prng::new(seed).fork(0x73_74_65_70);
        let passes =
            if self.shuffle { shuffled(passes.to_vec(), &mut prng) } else { passes.to_vec() };
        let versions = self.versions.unwrap_or(2).clamp(2, MAX_VERSIONS);
        cut(&passes, versions as usize - 1, &mut prng)
    }

    /// The list of passes that a seed draws for a given program.
    pub fn drawn_passes(&self, seed: u64) -> Vec<StaticPass> {
        self.draw_passes(&mut Prng::new(seed).fork(0x70_61_73_73))
    }

    fn plan(&self, seed: u64) -> CasePlan {
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
        CasePlan { steps: cut(&passes, versions as usize - 1, &mut prng), level }
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

/// Shuffles uniformly (Fisher and Yates).
fn shuffled(mut passes: Vec<StaticPass>, prng: &mut Prng) -> Vec<StaticPass> {
    for last in (1..passes.len()).rev() {
        passes.swap(last, prng.index(last + 1));
    }
    passes
}

/// Cuts a list into `parts` parts at random places. Parts may be empty.
fn cut(passes: &[StaticPass], parts: usize, prng: &mut Prng) -> Vec<Vec<StaticPass>> {
    let mut places: Vec<usize> = (1..parts).map(|_| prng.index(passes.len() + 1)).collect();
    places.sort_unstable();
    let starts = std::iter::once(0).chain(places.iter().copied());
    let ends = places.iter().copied().chain([passes.len()]);
    starts.zip(ends).map(|(start, end)| passes[start..end].to_vec()).collect()
}

impl fmt::Display for CampaignOptions {
    /// Prints the options of `osier fuzz` that denote these settings, without the seed. Unset
    /// lists, switches and numbers are omitted.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CampaignOptions { size, inputs, going_on, chains, .. } = self;
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
        let usual = CampaignOptions::default().assumptions;
        if self.assumptions != usual {
            write!(f, " --assumptions {}", self.assumptions)?;
        }
        if self.only_speculation {
            f.write_str(" --only-speculation")?;
        }
        if !self.inlining {
            f.write_str(" --no-inlining")?;
        }
        if self.only_inlining {
            f.write_str(" --only-inlining")?;
        }
        if self.only_exits {
            f.write_str(" --only-exits")?;
        }
        if self.only_tables {
            f.write_str(" --only-tables")?;
        }
        if self.stress_gc {
            f.write_str(" --stress-gc")?;
        }
        if self.host_memory {
            f.write_str(" --host-memory")?;
        }
        if self.declared_calls {
            f.write_str(" --declared-calls")?;
        }
        if self.nans == Nans::Platform {
            f.write_str(" --nans platform")?;
        }
        write!(f, "{}", self.stress)
    }
}
