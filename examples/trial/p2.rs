//! Pool P2: random damage to mappings.

use super::cases::{Case, cases, oracle_options};
use super::output;
use check::relate;
use check::verdict::{Options, Verdict};
use ir::Point;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write as _};
use transition::Side;
use transition::mapping::Mapping;
use verify::damage::{Damage, Damager};
use verify::generate::Program;
use verify::prng::Prng;
use verify::state_oracle::{FunctionPair, Oracle};

/// The settings of an experiment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// The least number of damaged entries.
    pub(crate) damages: u64,
    /// The first seed.
    pub(crate) seed: u64,
    /// The size of the programs.
    pub(crate) size: u32,
    /// How often the entries of one program are damaged.
    pub(crate) rounds: u32,
}

/// Damages entries until there are enough, and gives them to the checker and the oracles. Returns
/// the results and the number of programs.
pub(crate) fn measure(settings: Settings) -> (Table, u64) {
    let mut table = Table::new();
    let (mut done, mut programs) = (0, 0);
    while done < settings.damages {
        let seed = settings.seed + programs;
        programs += 1;
        let (program, cases) = cases(seed, settings.size);
        let mut prng = Prng::new(seed ^ 0xda3a_9e00);
        for round in 0..settings.rounds {
            for side in Side::BOTH {
                done += one_round(&program, &cases, side, seed, round == 0, &mut prng, &mut table);
            }
        }
    }
    (table, programs)
}

/// The sum of the rows of all kinds of damage.
pub(crate) fn total(table: &Table) -> Row {
    let mut all = Row::default();
    table.values().for_each(|row| all.add(row));
    all
}

/// The results for damaged entries of one kind.
#[derive(Clone, Copy, Default)]
pub(crate) struct Row {
    pub(crate) damages: u64,
    pub(crate) accepted: u64,
    pub(crate) refuted: u64,
    pub(crate) undecided: u64,
    /// Killed by the state oracle in a run.
    pub(crate) killed: u64,
    pub(crate) killed_refuted: u64,
    /// Accepted by the checker and killed by a run: must be 0.
    pub(crate) escaped: u64,
    /// In the rounds with the output oracle: all entries, and the entries killed by either oracle.
    pub(crate) sampled: u64,
    pub(crate) sampled_state: u64,
    pub(crate) sampled_output: u64,
}

impl Row {
    fn add(&mut self, other: &Row) {
        self.damages += other.damages;
        self.accepted += other.accepted;
        self.refuted += other.refuted;
        self.undecided += other.undecided;
        self.killed += other.killed;
        self.killed_refuted += other.killed_refuted;
        self.escaped += other.escaped;
        self.sampled += other.sampled;
        self.sampled_state += other.sampled_state;
        self.sampled_output += other.sampled_output;
    }
}

pub(crate) type Table = BTreeMap<Damage, Row>;

/// Damages every entry of one direction once, and gives them to the checker and the oracles.
fn one_round(
    program: &Program,
    cases: &[Case],
    side: Side,
    seed: u64,
    with_output: bool,
    prng: &mut Prng,
    table: &mut Table,
) -> u64 {
    let damaged: Vec<(Mapping, BTreeMap<Point, Damage>)> =
        cases.iter().map(|c| damage(c, side, prng)).collect();
    let mut pairs: Vec<FunctionPair<'_>> = Vec::new();
    for (case, (mapping, _)) in cases.iter().zip(&damaged) {
        let mut mappings = case.mappings.as_ref();
        mappings[side] = mapping;
        pairs.push(case.pair(mappings));
    }
    let options = oracle_options(program, seed);
    let mut oracle =
        Oracle::new(&program.module, &pairs, options).expect("the mappings are of their pairs");
    program.arguments.iter().for_each(|args| oracle.run(program.main, args, &interp::NoHost));
    let mut killed: BTreeSet<(String, Point)> = BTreeSet::new();
    for divergence in &oracle.report().divergences {
        if let Some(entry) = divergence.entry.as_ref().filter(|e| e.visit.is_some()) {
            killed.insert((entry.function.clone(), entry.point));
        }
    }
    let mut done = 0;
    for (case, (mapping, kinds)) in cases.iter().zip(&damaged) {
        let verdicts = judge(program, case, side, mapping);
        let by_output = if with_output {
            output::killed(program, case, side, mapping)
        } else {
            BTreeSet::new()
        };
        for ((point, _), verdict) in mapping.entries().zip(verdicts) {
            let Some(kind) = kinds.get(&point) else { continue };
            let is_killed = killed.contains(&(case.versions.before.name().to_owned(), point));
            if verdict.holds() && is_killed {
                let what = format!(
                    "escaped: seed {seed}, side {side}, {kind} at {point:?}, {}\n",
                    case.versions.before.name()
                );
                io::stderr().write_all(what.as_bytes()).expect("standard error can be written");
            }
            let sampled = u64::from(with_output);
            table.entry(*kind).or_default().add(&Row {
                damages: 1,
                accepted: u64::from(verdict.holds()),
                refuted: u64::from(verdict.is_refuted()),
                undecided: u64::from(matches!(verdict, Verdict::Undecided(_))),
                killed: u64::from(is_killed),
                killed_refuted: u64::from(is_killed && verdict.is_refuted()),
                escaped: u64::from(is_killed && verdict.holds()),
                sampled,
                sampled_state: sampled * u64::from(is_killed),
                sampled_output: sampled * u64::from(by_output.contains(&point)),
            });
            done += 1;
        }
    }
    done
}

/// The mapping with every possible entry damaged, and the kind of each damage.
fn damage(case: &Case, side: Side, prng: &mut Prng) -> (Mapping, BTreeMap<Point, Damage>) {
    let [source, target] = [side, side.other()].map(|side| &case.versions[side]);
    let damager = Damager::new(source, target);
    let (mut mapping, mut kinds) = (Mapping::new(source, target), BTreeMap::new());
    for (point, entry) in case.mappings[side].entries() {
        let kind = prng.pick(&Damage::ALL);
        match damager.damage(prng, kind, point, entry).filter(|d| d != entry) {
            Some(damaged) => {
                mapping.insert(point, damaged);
                kinds.insert(point, kind);
            }
            None => mapping.insert(point, entry.clone()),
        }
    }
    (mapping, kinds)
}

/// The verdicts on a mapping, with the best facts that the certifier finds for it.
fn judge(program: &Program, case: &Case, side: Side, mapping: &Mapping) -> Vec<Verdict> {
    let mut mappings = case.mappings.as_ref();
    mappings[side] = mapping;
    let (certificate, facts) = case.certificate(mappings);
    match relate(&program.module, case.versions.as_ref(), &certificate, Options::default()) {
        Ok(relation) => {
            relation.judge(side, mapping, &facts[side], &[&case.mappings[side.other()]])
        }
        Err(verdict) => vec![verdict; mapping.len()],
    }
}
