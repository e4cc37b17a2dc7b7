//! Pool P3: each check of the checker left out in turn. A check whose absence lets nothing through is redundant,
//! or untested.

use crate::cases::{Case, cases};
use ir::certificate::{Certificate, MappingFacts};
use ir::mapping::Mapping;
use osier::{ir, verify};
use std::collections::BTreeMap;
use std::io::Write as _;
use verify::checker::relate;
use verify::damage::{Damage, Damager, garble_once};
use verify::generate::Program;
use verify::prng::Prng;
use verify::state_oracle::Direction;
use verify::verdict::{Check, Options, Verdict};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Stop after this many programs, whatever has been let through
    #[arg(long, default_value_t = 400)]
    programs: u64,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The size of the programs
    #[arg(long, default_value_t = 24)]
    size: u32,
    /// Mutants of each program
    #[arg(long, default_value_t = 60)]
    mutants: u32,
}

/// A wrong mapping or certificate.
struct Mutant {
    certificate: Certificate,
    facts: [MappingFacts; 2],
    mappings: [Mapping; 2],
}

pub(crate) fn run(args: &Args) -> bool {
    // By check: the mutants it alone stopped, and the first of them.
    let mut through: BTreeMap<Check, (u64, String)> = BTreeMap::new();
    let mut mutants = 0u64;
    for seed in args.seed..args.seed + args.programs {
        let (program, cases) = cases(seed, args.size);
        let mut prng = Prng::new(seed ^ 0x7e57_c4ec);
        for case in &cases {
            let plain = [&case.mappings[0], &case.mappings[1]];
            let (certificate, facts) = case.certificate(plain);
            for number in 0..args.mutants {
                let mutant = mutate(&mut prng, case, &certificate, &facts);
                mutants += 1;
                let full = verdicts(&program, case, &mutant, Options::default());
                let Some(check) = stopped_by(&full) else { continue };
                let weakened = Options { without: Some(check), ..Options::default() };
                let weak = verdicts(&program, case, &mutant, weakened);
                let passes = full.iter().zip(&weak).any(|(f, w)| !f.holds() && w.holds());
                if passes {
                    let first = || (0, format!("seed {seed}, @{}, mutant {number}", case.versions[0].name()));
                    through.entry(check).or_insert_with(first).0 += 1;
                }
            }
        }
    }
    let mut text = format!("{mutants} mutants\n");
    for check in Check::ALL {
        let line = match through.get(check) {
            Some((count, first)) => format!("{:<16} {count:>8}  {first}\n", check.name()),
            None => format!("{:<16} {:>8}\n", check.name(), "none"),
        };
        text.push_str(&line);
    }
    std::io::stdout().write_all(text.as_bytes()).expect("standard output can be written");
    Check::ALL.iter().all(|check| through.contains_key(check))
}

/// A check that stopped an entry; a different one each time there are several.
fn stopped_by(verdicts: &[Verdict]) -> Option<Check> {
    verdicts.iter().find_map(|v| v.finding()).map(|f| f.check)
}

fn mutate(prng: &mut Prng, case: &Case, certificate: &Certificate, facts: &[MappingFacts; 2]) -> Mutant {
    let mut mutant = Mutant { certificate: certificate.clone(), facts: facts.clone(), mappings: case.mappings.clone() };
    if prng.chance(50) {
        garble_once(prng, &mut mutant.certificate, &mut mutant.facts, &mut mutant.mappings);
        return mutant;
    }
    let side = prng.index(2);
    let damager = Damager::new(&case.versions[side], &case.versions[1 - side]);
    let entries: Vec<_> = mutant.mappings[side].entries().map(|(p, e)| (p, e.clone())).collect();
    let index = prng.index(entries.len());
    if let Some((point, entry)) = entries.get(index) {
        let kind = prng.pick(&Damage::ALL);
        if let Some(damaged) = damager.damage(prng, kind, *point, entry) {
            mutant.mappings[side].insert(*point, damaged);
            (mutant.certificate, mutant.facts) = case.certificate([&mutant.mappings[0], &mutant.mappings[1]]);
        }
    }
    mutant
}

fn verdicts(program: &Program, case: &Case, mutant: &Mutant, options: Options) -> Vec<Verdict> {
    let relation = relate(&program.module, case.versions(), &mutant.certificate, options);
    let judge = |side: usize| match &relation {
        Ok(relation) => {
            let armed = [&mutant.mappings[1 - side]];
            relation.judge(Direction::BOTH[side], &mutant.mappings[side], &mutant.facts[side], &armed)
        }
        Err(verdict) => vec![*verdict; mutant.mappings[side].len()],
    };
    judge(0).into_iter().chain(judge(1)).collect()
}
