//! Pool P3: the checker with each of its checks left out in turn. A check whose absence lets no
//! mutant through is redundant or untested. The mutants are random and hand-written, at least one
//! for each check.

#[allow(dead_code)] // the tests of the checker use more of it
#[path = "../../check/tests/checker/wrong/mod.rs"]
pub(crate) mod wrong;

use crate::cases::{Case, cases};
use check::relate;
use check::verdict::{Check, Options, Verdict};
use ir::{Function, Module};
use std::collections::BTreeMap;
use std::io::Write as _;
use transition::certificate::{Certificate, MappingFacts};
use transition::mapping::Mapping;
use transition::{Pair, Side};
use verify::damage::{Damage, Damager, garble_once};
use verify::prng::Prng;
use wrong::Wrong;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The number of programs
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
    facts: Pair<MappingFacts>,
    mappings: Pair<Mapping>,
}

/// By check: the numbers of hand-written and of random mutants that it alone stopped, and the first
/// of them.
type Through = BTreeMap<Check, (u64, u64, String)>;

pub(crate) fn run(args: &Args) -> bool {
    let mut through = Through::new();
    let by_hand = wrong::all();
    for mutant in &by_hand {
        let judge = |options| {
            let Wrong { module, versions, certificate, mappings, facts, .. } = mutant;
            verdicts(module, versions.as_ref(), certificate, mappings, facts, options)
        };
        let weakened = mutant.options.without(mutant.check);
        if passes(&judge(mutant.options), &judge(weakened)) {
            let first = || (0, 0, mutant.what.to_owned());
            through.entry(mutant.check).or_insert_with(first).0 += 1;
        }
    }
    let compositions = wrong::compose::all();
    for mutant in compositions.iter().filter(|mutant| mutant.needs_its_check()) {
        let first = || (0, 0, mutant.what.to_owned());
        through.entry(mutant.check).or_insert_with(first).0 += 1;
    }
    let by_hand = by_hand.len() + compositions.len();
    let mut random = 0;
    for seed in args.seed..args.seed + args.programs {
        random += one_program(args, seed, &mut through);
    }
    let mut text = format!("{by_hand} mutants written by hand, {random} random ones\n");
    text.push_str(&format!(
        "{:<16} {:>8} {:>8}  {}\n",
        "check", "by hand", "random", "the first that only it stops"
    ));
    for check in Check::ALL {
        let none = (0, 0, "none".to_owned());
        let (by_hand, random, first) = through.get(check).unwrap_or(&none);
        text.push_str(&format!("{:<16} {by_hand:>8} {random:>8}  {first}\n", check.name()));
    }
    std::io::stdout().write_all(text.as_bytes()).expect("standard output can be written");
    Check::ALL.iter().all(|check| through.contains_key(check))
}

/// Tries the mutants of one program. Returns their number.
fn one_program(args: &Args, seed: u64, through: &mut Through) -> u64 {
    let (program, cases) = cases(seed, args.size);
    let mut prng = Prng::new(seed ^ 0x7e57_c4ec);
    for case in &cases {
        let (certificate, facts) = case.certificate(case.mappings.as_ref());
        for number in 0..args.mutants {
            let mutant = mutate(&mut prng, case, &certificate, &facts);
            let judge = |options| {
                let Mutant { certificate, facts, mappings } = &mutant;
                verdicts(
                    &program.module,
                    case.versions.as_ref(),
                    certificate,
                    mappings,
                    facts,
                    options,
                )
            };
            let full = judge(Options::default());
            let Some(check) = stopped_by(&full) else { continue };
            if passes(&full, &judge(Options::default().without(check))) {
                let first = || {
                    (
                        0,
                        0,
                        format!("seed {seed}, @{}, mutant {number}", case.versions.before.name()),
                    )
                };
                through.entry(check).or_insert_with(first).1 += 1;
            }
        }
    }
    u64::from(args.mutants) * cases.len() as u64
}

/// Whether a weakened checker accepts an entry that the full one does not.
fn passes(full: &[Verdict], weakened: &[Verdict]) -> bool {
    full.iter().zip(weakened).any(|(full, weakened)| !full.holds() && weakened.holds())
}

/// The check that stopped the first entry not accepted.
fn stopped_by(verdicts: &[Verdict]) -> Option<Check> {
    verdicts.iter().find_map(|v| v.finding()).map(|f| f.check)
}

fn mutate(
    prng: &mut Prng,
    case: &Case,
    certificate: &Certificate,
    facts: &Pair<MappingFacts>,
) -> Mutant {
    let mut mutant = Mutant {
        certificate: certificate.clone(),
        facts: facts.clone(),
        mappings: case.mappings.clone(),
    };
    if prng.chance(50) {
        garble_once(prng, &mut mutant.certificate, &mut mutant.facts, &mut mutant.mappings);
        return mutant;
    }
    let side = Side::BOTH[prng.index(2)];
    let damager = Damager::new(&case.versions[side], &case.versions[side.other()]);
    let entries: Vec<_> = mutant.mappings[side].entries().map(|(p, e)| (p, e.clone())).collect();
    let index = prng.index(entries.len());
    if let Some((point, entry)) = entries.get(index) {
        let kind = prng.pick(&Damage::ALL);
        if let Some(damaged) = damager.damage(prng, kind, *point, entry) {
            mutant.mappings[side].insert(*point, damaged);
            (mutant.certificate, mutant.facts) = case.certificate(mutant.mappings.as_ref());
        }
    }
    mutant
}

fn verdicts(
    module: &Module,
    versions: Pair<&Function>,
    certificate: &Certificate,
    mappings: &Pair<Mapping>,
    facts: &Pair<MappingFacts>,
    options: Options,
) -> Vec<Verdict> {
    let relation = relate(module, versions, certificate, options);
    let judge = |side: Side| match &relation {
        Ok(relation) => {
            relation.judge(side, &mappings[side], &facts[side], &[&mappings[side.other()]])
        }
        Err(verdict) => vec![*verdict; mappings[side].len()],
    };
    Side::BOTH.into_iter().flat_map(judge).collect()
}
