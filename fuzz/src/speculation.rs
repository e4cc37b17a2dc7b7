//! The speculation oracle: versions that assume the observations of a run, and their exits.
//!
//! The first list of arguments is the profile: a run of the program on it shows the contents of
//! random values at random places. The oracle assumes the common contents of the first visits, one
//! to three by seed. So many assumptions fail in later visits and on other arguments
//! ([`verify::generate::Weights::with_facts`]). [`speculate()`] makes a version of each function
//! under these assumptions.
//!
//! In a third of the programs, a second speculation makes half of the assumptions on the optimized
//! version of the first. The state oracle compares every entry between any two of base and
//! optimized versions. So it compares every exit at every visit of its assumption, holding and
//! failing. Chains of random transitions leave where assumptions fail, and must end like runs of
//! the base. The same runs go through landing tables ([`tables`]).

use super::case::Case;
use super::figures::SpeculationFigures;
use super::oracle::{FuzzFinding, FuzzOracle};
use super::states::{none_of, oracle_of, run_chains};
use super::suggested::chosen;
use super::tables;
use check::compose;
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::{Block, Func, Function, Inst, Module, Opcode, Point};
use osier::speculate::{Assumption, Exit, Pins, Plan, SpeculateError, Speculative, speculate};
use osr::{VersionPair, VersionTree};
use passes::{Pipeline, parse};
use petgraph::algo::is_cyclic_directed;
use petgraph::graph::DiGraph;
use std::collections::{BTreeMap, BTreeSet};
use transition::mapping::Mapping;
use verify::hops::{self, FunctionGraph};
use verify::prng::Prng;
use verify::state_oracle::{FunctionPair, OracleOptions, SeenAssumption};

/// The base of a function, and one or two versions that make assumptions, each derived from the
/// previous version.
pub(super) struct Speculated {
    func: Func,
    tree: VersionTree,
    all: Vec<Speculative>,
    /// The pairs of versions whose transitions are compared, each in a run of its own: the base and
    /// the first version, the first and the second, the base and the second.
    pairs: [Option<Compared>; 3],
}

/// Two versions to run side by side.
struct Compared {
    before: osr::Version,
    after: osr::Version,
    /// The bounding anchors that are common to both versions and all versions between.
    anchors: BTreeSet<Inst>,
    forward: Mapping,
    backward: Mapping,
}

/// The pairs of [`Speculated`] whose first version is the base.
pub(super) const TO_BASE: [usize; 2] = [0, 2];

/// Judges speculative versions of the functions of a case.
///
/// # Errors
/// A transition to a wrong state, or a run with transitions whose end differs from the base's.
pub(super) fn run(case: &Case, figures: &mut SpeculationFigures) -> Result<(), Vec<FuzzFinding>> {
    if !case.options.only_tables {
        judge_versions(case, figures)?;
    }
    match case.options.only_exits {
        true => Ok(()),
        false => tables::run(case, &mut figures.tables),
    }
}

fn judge_versions(case: &Case, figures: &mut SpeculationFigures) -> Result<(), Vec<FuzzFinding>> {
    let all = versions(case, figures)?;
    if all.is_empty() {
        return Ok(());
    }
    let mut seen = Seen::new();
    for number in 0..3 {
        let pairs: Vec<FunctionPair<'_>> =
            all.iter().filter_map(|made| made.compared(number)).collect();
        if !pairs.is_empty() {
            compare_states(case, &pairs, &mut seen, figures)?;
        }
    }
    figures.visited += seen.values().filter(|(visited, _)| *visited).count() as u64;
    figures.failing += seen.values().filter(|(_, failing)| *failing).count() as u64;
    if case.options.chains == 0 {
        return Ok(());
    }
    let parts: Vec<_> = all.iter().map(Speculated::graph).collect();
    let graphs = all.iter().zip(&parts);
    let graphs: Vec<FunctionGraph<'_>> = graphs
        .map(|(one, (versions, edges))| FunctionGraph { func: one.func, versions, edges })
        .collect();
    run_chains(case, &graphs, &mut figures.hops, &|message| finding(case, message))
}

/// Makes the speculative versions of the functions of a case. Functions without such a version are
/// omitted.
///
/// # Errors
/// If a version cannot make the assumptions that the profile suggests.
pub(super) fn versions(
    case: &Case,
    figures: &mut SpeculationFigures,
) -> Result<Vec<Speculated>, Vec<FuzzFinding>> {
    let prng = Prng::new(case.seed).fork(0x61_73_73_75);
    let assumptions = chosen(case, prng.fork(0)).map_err(|e| vec![finding(case, e)])?;
    let mut prng = prng.fork(1);
    let pipeline = pipeline(case, &mut prng);
    let pins =
        prng.pick(&[Pins::OnDemand, Pins::OnDemand, Pins::OnDemand, Pins::Never, Pins::Live]);
    let is_twice = prng.chance(30);
    let mut all = Vec::new();
    for (func, base) in case.module.defined() {
        let Some(assumptions) = assumptions.get(&func) else { continue };
        let count = if is_twice { assumptions.len().div_ceil(2) } else { assumptions.len() };
        let (first, later) = assumptions.split_at(count);
        let mut made = Speculated::new(func, base);
        let plan = Plan { pins, ..Plan::new(first, &pipeline) };
        let refused = |why: String| vec![finding(case, format!("@{}: {why}", base.name()))];
        made.speculate(&case.module, &plan, figures).map_err(|e| refused(e.to_string()))?;
        made.require_exits().map_err(refused)?;
        let later = possible(made.last(), later);
        if !later.is_empty() {
            let plan = Plan { assume: &later, ..plan };
            match made.speculate(&case.module, &plan, figures) {
                // The exit of an earlier assumption comes first, so the plan is refused as a whole.
                Err(SpeculateError::LosesExit { .. }) => figures.dropped += later.len() as u64,
                made => made.map_err(|e| refused(e.to_string()))?,
            }
            made.require_exits().map_err(refused)?;
        }
        if made.all.iter().any(|one| !one.exits.is_empty()) {
            made.pair_up();
            if case.options.only_exits {
                made.keep_exits();
            }
            all.push(made);
        }
    }
    figures.versions += all.iter().map(|made| made.all.len() as u64).sum::<u64>();
    Ok(all)
}

/// By function and assumption: whether a run reached the assumption, and whether it failed in a
/// run. Two pairs may share an assumption.
type Seen = BTreeMap<(Func, Inst), (bool, bool)>;

/// The assumptions that a version can make: it has the place, and the value is available there.
fn possible(f: &Function, assumptions: &[Assumption]) -> Vec<Assumption> {
    let cfg = Cfg::new(f);
    let dom = DomTree::new(f, &cfg);
    let can = |a: &&Assumption| {
        f.has_inst(a.at.inst())
            && f.has_value(a.value)
            && cfg.is_reachable(f.inst_block(a.at.inst()))
            && dom.available_at(f, a.value, a.at)
            && f.constant(a.value).is_none_or(|bits| a.expected.holds(bits))
    };
    assumptions.iter().filter(can).copied().collect()
}

impl Speculated {
    fn new(func: Func, base: &Function) -> Speculated {
        Speculated {
            func,
            tree: VersionTree::new(base.clone()),
            all: Vec::new(),
            pairs: [None, None, None],
        }
    }

    fn last_version(&self) -> osr::Version {
        self.all.last().map_or(VersionTree::BASE, |last| last.optimized)
    }

    fn last(&self) -> &Function {
        self.tree.function(self.last_version())
    }

    /// Speculates on the last version, and counts the assumptions.
    fn speculate(
        &mut self,
        module: &Module,
        plan: &Plan<'_>,
        figures: &mut SpeculationFigures,
    ) -> Result<(), SpeculateError> {
        let from = self.last_version();
        let made = speculate(module, &mut self.tree, from, plan)?;
        let own = |exit: &&Exit| exit.assumption.is_some();
        figures.wanted += plan.assume.len() as u64;
        figures.made += made.exits.iter().filter(own).count() as u64;
        figures.settled += made.settled.len() as u64;
        figures.dropped += made.dropped.len() as u64;
        figures.pinned += made.exits.iter().filter(|exit| !exit.pins.is_empty()).count() as u64;
        self.all.push(made);
        Ok(())
    }

    /// Checks that each reachable assumption of the last version has an exit.
    ///
    /// # Errors
    /// The assumption without an exit.
    fn require_exits(&self) -> Result<(), String> {
        let Some(last) = self.all.last() else { return Ok(()) };
        let f = self.last();
        let cfg = Cfg::new(f);
        let made = cfg.rpo().iter().flat_map(|block| f.block_insts(*block));
        let mut assumptions = made.filter(|inst| f.inst(*inst).opcode == Opcode::Assume);
        match assumptions.find(|inst| last.exit(*inst).is_none()) {
            Some(inst) => Err(format!("the assumption at {inst} has no exit")),
            None => Ok(()),
        }
    }

    /// Finds the pairs of versions to compare.
    ///
    /// A pair is left out if a loop of its second version has no shared anchor: the two steps may
    /// have different anchors in the loop. A gap then contains several visits of a point, and the
    /// state oracle does not know the visit that an entry means
    /// (`a_loop_without_a_shared_anchor_is_left_to_chains`). Chains take these entries, too.
    fn pair_up(&mut self) {
        let pair = |made: &Speculative| {
            let anchors = self.shared_anchors(made.from, made.optimized)?;
            Some(Compared {
                before: made.from,
                after: made.optimized,
                anchors,
                forward: (*made.forward).clone(),
                backward: (*made.backward[&made.from]).clone(),
            })
        };
        let joined = || match &self.all[..] {
            [first, second] => self.joined(first, second),
            _ => None,
        };
        self.pairs = [self.all.first().and_then(pair), self.all.get(1).and_then(pair), joined()];
    }

    /// Leaves the entries at assumptions alone.
    fn keep_exits(&mut self) {
        for pair in self.pairs.iter_mut().flatten() {
            let [before, after] = [pair.before, pair.after].map(|v| self.tree.function(v));
            pair.forward = Mapping::new(before, after);
            let all = std::mem::replace(&mut pair.backward, Mapping::new(after, before));
            for (point, entry) in all.entries() {
                if after.inst(point.inst()).opcode == Opcode::Assume {
                    pair.backward.insert(point, entry.clone());
                }
            }
        }
    }

    /// The base and the second version. An exit to the first version is extended by the entry from
    /// there to the base. `None` if the first version lacks this entry at a landing point: the run
    /// then continues in a third version.
    fn joined(&self, first: &Speculative, second: &Speculative) -> Option<Compared> {
        let shared = self.shared_anchors(VersionTree::BASE, second.optimized)?;
        let chain = "each mapping leads on from the one before";
        let forward = compose(&first.forward, &second.forward).expect(chain).mapping;
        let to_base = &first.backward[&VersionTree::BASE];
        let backward = compose(&second.backward[&second.from], to_base).expect(chain).mapping;
        let mut backward = (*backward).clone();
        let direct = second.backward.get(&VersionTree::BASE);
        for (point, entry) in direct.iter().flat_map(|mapping| mapping.entries()) {
            backward.insert(point, entry.clone());
        }
        let leads_to_base = |exit: &Exit| backward.entry(Point::before(exit.inst)).is_some();
        second.exits.iter().all(leads_to_base).then(|| Compared {
            before: VersionTree::BASE,
            after: second.optimized,
            anchors: shared,
            forward: (*forward).clone(),
            backward,
        })
    }

    /// The anchors that a version and its derived version share with all versions between. `None`
    /// if a loop of the derived version contains no such anchor.
    fn shared_anchors(&self, first: osr::Version, last: osr::Version) -> Option<BTreeSet<Inst>> {
        let shared = anchors(&self.tree, first, last);
        (!has_loop_without(self.tree.function(last), &shared)).then_some(shared)
    }

    pub(super) fn compared(&self, number: usize) -> Option<FunctionPair<'_>> {
        let pair = self.pairs[number].as_ref()?;
        Some(FunctionPair {
            func: self.func,
            before: self.tree.function(pair.before),
            after: self.tree.function(pair.after),
            anchors: &pair.anchors,
            forward: &pair.forward,
            backward: &pair.backward,
            copies: None,
        })
    }

    /// The base and the optimized versions, and mappings between them that may be used together.
    /// The way into a version comes from the last speculation, since mappings accepted apart must
    /// not be mixed. Earlier speculations contribute their exits.
    fn graph(&self) -> (Vec<&Function>, Vec<hops::Edge<'_>>) {
        let mut versions = vec![VersionTree::BASE];
        versions.extend(self.all.iter().map(|made| made.optimized));
        let place =
            |version| versions.iter().position(|v| *v == version).expect("an optimized version");
        let mut edges = Vec::new();
        for made in &self.all {
            edges.extend(made.backward.iter().map(|(back, mapping)| hops::Edge {
                from: place(made.optimized),
                to: place(*back),
                mapping,
            }));
        }
        let into =
            self.pairs[2].as_ref().or(self.pairs[0].as_ref().filter(|_| self.all.len() == 1));
        edges.extend(into.map(|pair| hops::Edge {
            from: place(pair.before),
            to: place(pair.after),
            mapping: &pair.forward,
        }));
        (versions.into_iter().map(|version| self.tree.function(version)).collect(), edges)
    }
}

fn finding(case: &Case, message: String) -> FuzzFinding {
    FuzzFinding { oracle: FuzzOracle::Speculation, versions: [0, case.steps.len()], message }
}

/// The passes behind the assumptions: the passes of the case, or a named pipeline.
fn pipeline(case: &Case, prng: &mut Prng) -> Pipeline {
    match prng.below(2) {
        0 => Pipeline::of(case.steps.concat()),
        _ => parse(prng.pick(&["O1", "O2", "canonical"])).expect("a pipeline of the registry"),
    }
}

/// The anchors that a version and its derived version share with all versions between.
fn anchors(tree: &VersionTree, first: osr::Version, last: osr::Version) -> BTreeSet<Inst> {
    let versions = tree.path(first, last);
    let mut shared: Option<BTreeSet<Inst>> = None;
    for ends in versions.windows(2) {
        let log = tree.log(ends[0], ends[1]).expect("each version is derived from the one before");
        let pair = VersionPair::new(tree.function(ends[0]), tree.function(ends[1]), &log)
            .expect("the log of a tree was replayed");
        let common: BTreeSet<Inst> = pair.bounding_anchors().collect();
        shared = Some(match shared {
            Some(shared) => shared.intersection(&common).copied().collect(),
            None => common,
        });
    }
    shared.unwrap_or_default()
}

/// Whether a run of a version may go around a loop without executing an anchor.
fn has_loop_without(f: &Function, anchors: &BTreeSet<Inst>) -> bool {
    let cfg = Cfg::new(f);
    let is_cut = |block: Block| f.block_insts(block).any(|inst| anchors.contains(&inst));
    let uncut: BTreeSet<Block> = cfg.rpo().iter().copied().filter(|b| !is_cut(*b)).collect();
    let edges = uncut.iter().flat_map(|block| {
        let next = f.successors(*block).iter().map(|target| target.block);
        let next = next.filter(|next| uncut.contains(next));
        next.map(|next| (block.as_u32(), next.as_u32()))
    });
    is_cyclic_directed(&DiGraph::<(), ()>::from_edges(edges))
}

/// Compares the states at all transitions between two versions of each function.
fn compare_states(
    case: &Case,
    pairs: &[FunctionPair<'_>],
    seen: &mut Seen,
    figures: &mut SpeculationFigures,
) -> Result<(), Vec<FuzzFinding>> {
    let options = OracleOptions {
        policy: case.policy,
        // A run that leaves executes the code between landing point and assumption again.
        limits: case.hop_limits(),
        ..OracleOptions::default()
    };
    let to_finding = |message: String| finding(case, message);
    let oracle = oracle_of(case, &case.module, pairs, options, &to_finding)?;
    for SeenAssumption { func, point, visited, failing } in oracle.assumptions() {
        let seen = seen.entry((func, point.inst())).or_default();
        *seen = (seen.0 | visited, seen.1 | failing);
    }
    let mut report = oracle.report().clone();
    let found = std::mem::take(&mut report.divergences);
    figures.state.add(&report);
    none_of(found.iter().map(|d| finding(case, d.to_string())).collect())
}
