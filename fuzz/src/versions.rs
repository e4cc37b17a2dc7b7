//! Derives the versions of a program's functions and makes the mappings between them.

use super::case::Case;
use super::figures::Figures;
use super::oracle::{FuzzFinding, FuzzOracle};
use ir::edit::{ActionLog, Fuel, apply, check_replay};
use ir::verifier::verify_function;
use ir::{Func, Function, Module};
use osr::{Edge, EdgeOrigin, Level, Version, VersionGraph, VersionTree};
use passes::registry::StaticPass;
use std::collections::BTreeMap;
use transition::Demand;
use verify::state_oracle::FunctionPair;

/// All versions of one function.
pub(super) struct FunctionVersions {
    pub(super) func: Func,
    /// The tree of versions. A step that changed nothing adds no version.
    pub(super) tree: VersionTree,
    /// The function's version in each version of the program.
    pub(super) at: Vec<Version>,
}

impl FunctionVersions {
    pub(super) fn function(&self, number: usize) -> &Function {
        self.tree.function(self.at[number])
    }

    fn last(&self) -> Version {
        self.at[self.at.len() - 1]
    }

    /// The actions from the first to the last version; `None` if they are the same.
    pub(super) fn log(&self) -> Option<ActionLog> {
        self.tree.log(VersionTree::BASE, self.last())
    }
}

/// Derives the versions of every function. Verifies each version and replays each log after every
/// pass: this is the [`FuzzOracle::Ssa`] oracle.
///
/// # Errors
/// If a version is not well-formed or a log does not replay.
pub(super) fn derive(
    case: &Case,
    figures: &mut Figures,
) -> Result<Vec<FunctionVersions>, FuzzFinding> {
    let mut acted: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut families = Vec::new();
    let mut fuel = Fuel::rewrites(case.rewrites);
    for (func, base) in case.module.defined() {
        let (mut tree, mut at) = (VersionTree::new(base.clone()), vec![VersionTree::BASE]);
        tree.set_module(&case.module);
        for (number, passes) in case.steps.iter().enumerate() {
            let parent = at[number];
            let finding = |message| FuzzFinding {
                oracle: FuzzOracle::Ssa,
                versions: [number, number + 1],
                message,
            };
            let derived =
                derive_one(&case.module, tree.function(parent), passes, &mut fuel, &mut acted);
            let (function, log) = derived.map_err(finding)?;
            let replayed = |e| {
                finding(format!("@{}: the log of several passes does not replay: {e}", base.name()))
            };
            let changed = !log.is_empty();
            at.push(if changed {
                tree.add(parent, function, log).map_err(replayed)?
            } else {
                parent
            });
        }
        families.push(FunctionVersions { func, tree, at });
    }
    figures.count_passes(&acted);
    Ok(families)
}

/// Runs passes over one version and adds the number of actions of each to `acted`.
///
/// # Errors
/// Like [`derive()`], as text.
fn derive_one(
    module: &Module,
    base: &Function,
    passes: &[StaticPass],
    fuel: &mut Fuel,
    acted: &mut BTreeMap<&'static str, u64>,
) -> Result<(Function, ActionLog), String> {
    let mut version = base.clone();
    let mut log = ActionLog::empty_for(base);
    for pass in passes {
        let (function, actions) = apply(&version, *pass, fuel).into_parts();
        let place = || format!("pass {} on @{}", pass.name(), base.name());
        check_replay(&version, &actions, &function)
            .map_err(|e| format!("{}: its log does not replay: {e}", place()))?;
        if let Some(finding) = verify_function(module, &function).first() {
            return Err(format!("{}: its version is not well-formed: {finding}", place()));
        }
        *acted.entry(pass.name()).or_default() += actions.len() as u64;
        version = function;
        log.extend(actions);
    }
    Ok((version, log))
}

/// A function that damages the mappings of an edge before the oracles judge them. Tests use it to
/// show that the oracles detect wrong mappings.
pub type EdgeDamage = fn(&mut Edge);

/// The mappings between all versions of a function.
pub(super) struct Mapped<'f> {
    pub(super) family: &'f FunctionVersions,
    graph: VersionGraph<'f>,
    damaged: Option<Vec<Edge>>,
}

impl Mapped<'_> {
    /// All edges: first the built ones, forward and backward for each pair, then the composed ones.
    pub(super) fn edges(&self) -> &[Edge] {
        self.damaged.as_deref().unwrap_or(self.graph.edges())
    }

    /// The edges built from logs.
    pub(super) fn built(&self) -> impl Iterator<Item = &Edge> {
        self.edges().iter().filter(|e| matches!(e.origin, EdgeOrigin::Built { .. }))
    }

    /// The mappings between two versions of the program, in the form that the state oracle takes.
    /// `None` if the function is the same in both.
    pub(super) fn pair(&self, [first, last]: [usize; 2]) -> Option<FunctionPair<'_>> {
        let (from, to) = (self.family.at[first], self.family.at[last]);
        let edge = |from, to| self.edges().iter().find(|e| (e.from, e.to) == (from, to));
        (from != to).then(|| {
            self.pair_of([edge(from, to), edge(to, from)].map(|e| e.expect("all pairs were built")))
        })
    }

    /// The composed mappings between the first and the last version. `None` if no version lies
    /// between them.
    pub(super) fn composed(&self) -> Option<FunctionPair<'_>> {
        let mut composed =
            self.edges().iter().filter(|e| matches!(e.origin, EdgeOrigin::Composed { .. }));
        let (there, back) = (composed.next()?, composed.next()?);
        Some(self.pair_of([there, back]))
    }

    fn pair_of<'p>(&'p self, [there, back]: [&'p Edge; 2]) -> FunctionPair<'p> {
        let FunctionVersions { func, tree, .. } = self.family;
        FunctionPair {
            func: *func,
            before: tree.function(there.from),
            after: tree.function(there.to),
            anchors: &there.anchors,
            forward: &there.mapping,
            backward: &back.mapping,
            copies: None,
        }
    }
}

/// Makes the mappings between any two distinct versions of each function, and the composed mappings
/// from the first to the last and back. Functions with a single version are omitted.
///
/// # Errors
/// If the makers of mappings reject the tree of versions.
pub(super) fn map<'f>(
    families: &'f [FunctionVersions],
    level: Level,
    damage: Option<EdgeDamage>,
    figures: &mut Figures,
) -> Result<Vec<Mapped<'f>>, FuzzFinding> {
    let mut mapped = Vec::new();
    for family in families.iter().filter(|f| f.last() != VersionTree::BASE) {
        let versions: Vec<Version> = family.tree.versions().collect();
        let later = |first: usize| versions[first + 1..].iter().map(move |last| (first, *last));
        let pairs: Vec<_> = (0..versions.len())
            .flat_map(later)
            .map(|(first, last)| (versions[first], last))
            .collect();
        let finding = |message| FuzzFinding {
            oracle: FuzzOracle::Ssa,
            versions: [0, family.at.len() - 1],
            message,
        };
        let graph = VersionGraph::build(&family.tree, &pairs, level, Demand::Needed);
        let mut graph =
            graph.map_err(|e| finding(format!("@{}: {e}", family.function(0).name())))?;
        if versions.len() > 2 {
            let back: Vec<Version> = versions.iter().rev().copied().collect();
            graph.add_composed(&versions).map_err(|e| finding(e.to_string()))?;
            graph.add_composed(&back).map_err(|e| finding(e.to_string()))?;
        }
        figures.pairs += pairs.len() as u64;
        count_entries(&graph, figures);
        let damaged = damage.map(|damage| {
            let mut edges = graph.edges().to_vec();
            edges.iter_mut().for_each(damage);
            edges
        });
        mapped.push(Mapped { family, graph, damaged });
    }
    Ok(mapped)
}

fn count_entries(graph: &VersionGraph<'_>, figures: &mut Figures) {
    for edge in graph.edges() {
        match &edge.origin {
            EdgeOrigin::Built { points, unreachable, .. } => {
                figures.points += (points - unreachable) as u64;
                figures.entries += edge.mapping.len() as u64;
            }
            EdgeOrigin::Composed { refused, .. } => {
                figures.composition.composed += edge.mapping.len() as u64;
                figures.composition.not_composed += refused.len() as u64;
            }
            EdgeOrigin::Inserted => {}
        }
    }
}

/// Every pair of versions, the earlier version first. Oracles judge both directions of each pair.
pub(super) fn pairs_of(versions: usize) -> impl Iterator<Item = [usize; 2]> {
    (0..versions).flat_map(move |first| (first + 1..versions).map(move |last| [first, last]))
}

/// The program with every function in the version with this number.
pub(super) fn module_of(module: &Module, families: &[FunctionVersions], number: usize) -> Module {
    let mut module = module.clone();
    if number > 0 {
        for family in families {
            module.define(family.func, family.function(number).clone());
        }
    }
    module
}
