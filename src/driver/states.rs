//! Derives a version for an embedder whose interpreter runs in the frame states of the base: with a
//! way up at each *entrance*, such as a loop header, and a way down at each *exit*.
//!
//! Example: a guard of the base branches to a block with `trap user0`, and a frame state stands in
//! front of the trap. The trap never runs: the embedder places an OSR point there. The version is
//! useful only with an entry back to the base at each such trap that it still reaches. So the
//! driver makes entries at these points alone, and gives up the rewrites that lose one.

use super::certified_graph::{CertifiedGraph, certify_graph};
use super::retry::{Answer, RewriteSearch};
use super::{Derived, GivenUp, NoObserver, Observer, Recipe, Retried, Step, derive_within};
use check::Checked;
use check::verdict::{Check, Verdict};
use ir::decided::Decided;
use ir::edit::Fuel;
use ir::{
    Effects, FrameState, FrameStateError, FrameStates, Function, Module, Point, Value, ValueDef,
};
use osr::{EdgeOrigin, Level, Unmapped, VersionGraph, VersionTree};
use std::collections::BTreeSet;
use transition::Demand;
use transition::mapping::Mapping;

/// The points of a base at which runs change between an embedder's interpreter and a version.
#[derive(Clone, Copy, Debug)]
pub struct StatePoints<'a> {
    /// The frames of the interpreter, by point of the base. Entries back land at these points
    /// alone, and provide what the states name.
    pub states: &'a FrameStates,
    /// The points at which runs come up, such as loop headers.
    pub entrances: &'a BTreeSet<Point>,
    /// The points at which the version leaves, if it still reaches their instructions. Derived
    /// versions keep the ids of instructions, so these are points of the version, too.
    pub exits: &'a BTreeSet<Point>,
}

/// A point without an accepted entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LostPoint {
    /// Synthesis found no entry.
    Unmapped(Unmapped),
    /// The checker did not accept the entry.
    Rejected(Point, Verdict),
}

impl LostPoint {
    /// The point, in the version that the entry would leave.
    pub fn point(&self) -> Point {
        match self {
            LostPoint::Unmapped(unmapped) => unmapped.point,
            LostPoint::Rejected(point, _) => *point,
        }
    }
}

impl std::fmt::Display for LostPoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no entry in front of {}: ", self.point().inst())?;
        match self {
            LostPoint::Unmapped(unmapped) => {
                f.write_str(unmapped.reason.name())?;
                unmapped.value.map_or(Ok(()), |value| write!(f, " ({value})"))
            }
            LostPoint::Rejected(_, verdict) => write!(f, "{verdict}"),
        }
    }
}

/// A version, the ways between it and the base, and the points without a way.
#[derive(Clone, Debug)]
pub struct SecuredStates {
    /// The version.
    pub derived: Derived,
    /// From the base, at the entrances.
    pub up: Checked<Mapping>,
    /// Back to the base, at the exits.
    pub down: Checked<Mapping>,
    /// The exits that the version reaches and has an entry for, ascending: where OSR points belong.
    pub exits: Vec<Point>,
    /// The entrances without an entry.
    pub lost_entrances: Vec<LostPoint>,
    /// The exits that the version reaches, without an entry back. Empty if the search for rewrites
    /// to give up was not bounded: a version without rewrites is the base.
    pub lost_exits: Vec<LostPoint>,
    /// The values of the base that count as used in the version, because a state alone names them.
    pub kept: BTreeSet<Value>,
    /// The rewrites that the version lacks.
    pub retried: Retried,
}

/// The most rounds in which values are kept. A round may make other passes lose other values.
const ROUNDS: usize = 4;

/// Derives a version of `base` and makes its entries at `points`. If an exit lacks values that the
/// version does not have, such as a block parameter that the state alone names, the driver derives
/// the version again and keeps them. If entries are still lost, at an exit or an entrance, the
/// driver gives up rewrites until none is, as [`super::derive_certified`] does, within the bounds
/// of the recipe. The level is the last of the recipe; [`Level::Avail`] if there is none.
///
/// Cost: the pipeline, one certificate, and a verdict for each point; the same again for each round
/// and each probe.
///
/// # Errors
/// The first state that does not fit the base.
///
/// # Panics
/// Like [`super::derive()`].
pub fn derive_with_states(
    module: &Module,
    base: &Function,
    points: StatePoints<'_>,
    recipe: &Recipe<'_>,
    observer: &mut dyn Observer,
) -> Result<SecuredStates, FrameStateError> {
    points.states.check(base)?;
    let search = StateDeriver { module, base, points, recipe };
    let (mut made, mut planned) = search.derive(BTreeSet::new(), &[], observer);
    for _ in 0..ROUNDS {
        let lacking = search.lacking(&made);
        if lacking.is_empty() || recipe.retry.rewrites == 0 {
            break;
        }
        let kept = made.kept.union(&lacking).copied().collect();
        (made, planned) = search.derive(kept, &[], observer);
    }
    let answer = made.answer();
    if !answer.drops() || recipe.retry.rewrites == 0 {
        return Ok(made);
    }
    observer.begin(Some(Step::Retry));
    let ask = |base: &Function, derived: &Derived, _| {
        search.secure(base, derived.clone(), &mut NoObserver).answer()
    };
    let rewrites = RewriteSearch::new(module, base, recipe.pipeline, recipe.retry, &ask);
    let mut rewrites = rewrites.keeping(made.kept.clone());
    let given_up = rewrites.run(answer, planned);
    let retried = Retried { given_up, probes: rewrites.probes(), ..Retried::default() };
    if retried.given_up.is_empty() {
        return Ok(SecuredStates { retried, ..made });
    }
    let (fewer, _) = search.derive(made.kept, &retried.given_up, observer);
    let retried = Retried { refused: fewer.retried.refused, ..retried };
    Ok(SecuredStates { retried, ..fewer })
}

/// What versions are derived from, and what they are judged by. The states fit the base.
struct StateDeriver<'a> {
    module: &'a Module,
    base: &'a Function,
    points: StatePoints<'a>,
    recipe: &'a Recipe<'a>,
}

impl StateDeriver<'_> {
    /// Makes the version that keeps some values and lacks some rewrites, and its entries. Returns
    /// the number of rewrites announced, too.
    fn derive(
        &self,
        kept: BTreeSet<Value>,
        given_up: &[GivenUp],
        observer: &mut dyn Observer,
    ) -> (SecuredStates, u64) {
        let Recipe { pipeline, vigilance, .. } = *self.recipe;
        let fuel = Fuel::UNLIMITED.without(given_up.iter().map(GivenUp::numbers));
        let mut fuel = fuel.keeping(kept.clone());
        let made = derive_within(self.module, self.base, pipeline, vigilance, &mut fuel, observer);
        let made = self.secure(self.base, made, observer);
        let retried = Retried { refused: fuel.refused(), ..Retried::default() };
        (SecuredStates { kept, retried, ..made }, fuel.planned())
    }

    /// The values of the base that lost exits lack, because the version lacks them: the one that
    /// synthesis names, and others that the same state names.
    fn lacking(&self, made: &SecuredStates) -> BTreeSet<Value> {
        let version = &made.derived.function;
        let unmapped = made.lost_exits.iter().filter_map(|lost| match lost {
            LostPoint::Unmapped(unmapped) => Some(unmapped),
            LostPoint::Rejected(..) => None,
        });
        let named =
            |point| self.points.states.get(point).into_iter().flat_map(FrameState::all_values);
        let all = unmapped.flat_map(|lost| lost.value.into_iter().chain(named(lost.point)));
        all.filter(|value| {
            self.base.has_value(*value)
                && !version.has_value(*value)
                && !is_computed_again(self.base, *value)
        })
        .collect()
    }

    /// Makes the entries of a version.
    fn secure(
        &self,
        base: &Function,
        Derived { function, log }: Derived,
        observer: &mut dyn Observer,
    ) -> SecuredStates {
        observer.begin(Some(Step::Map));
        let StatePoints { states, entrances, exits } = self.points;
        let level = self.recipe.levels.last().copied().unwrap_or(Level::Avail);
        let exits = reached(&function, exits);
        let mut tree = VersionTree::new(base.clone());
        tree.arm_states(VersionTree::BASE, states).expect("the caller has checked the states");
        let last = tree.add_replayed(VersionTree::BASE, function, log);
        tree.leave_at(VersionTree::BASE, entrances.clone());
        tree.leave_at(last, exits);
        let pairs = [(VersionTree::BASE, last)];
        let graph = VersionGraph::build(&tree, &pairs, level, Demand::default());
        let mut graph = graph.expect("the log leads from the base to the version");
        let certified = certify_graph(self.module, &mut graph, observer);
        let [lost_entrances, lost_exits] = [0, 1].map(|edge| lost(&graph, &certified, edge));
        let [up, down]: [Checked<Mapping>; 2] =
            certified.mappings.try_into().expect("a pair has two directions");
        let derived = Derived {
            function: tree.function(last).clone(),
            log: tree.log(VersionTree::BASE, last).expect("derived from the base"),
        };
        let exits = down.entries().map(|(point, _)| point).collect();
        let (kept, retried) = (BTreeSet::new(), Retried::default());
        SecuredStates { derived, up, down, exits, lost_entrances, lost_exits, kept, retried }
    }
}

/// Whether an entry may find a value that its version lacks: compensation code executes its
/// operation again, or another value is equal to it.
fn is_computed_again(base: &Function, value: Value) -> bool {
    match base.value_def(value) {
        ValueDef::Result(inst, _) => {
            let opcode = base.inst(inst).opcode;
            opcode.is_effect_free() && !opcode.effects().has(Effects::READS)
        }
        ValueDef::Param(block, index) => {
            let edges = base.predecessors(block).iter();
            let incoming: BTreeSet<Value> =
                edges.map(|edge| base.target(*edge).args[index as usize]).collect();
            incoming.iter().filter(|arg| **arg != value).count() == 1
        }
    }
}

impl SecuredStates {
    fn answer(&self) -> Answer {
        let points = |lost: &[LostPoint]| lost.iter().map(LostPoint::point).collect();
        let dropped = [points(&self.lost_entrances), points(&self.lost_exits)];
        Answer::of_points(dropped, self.up.len() + self.down.len())
    }
}

/// The points of these whose instructions a version has in reachable code. Constants may decide
/// that a guard never fails.
fn reached(version: &Function, points: &BTreeSet<Point>) -> BTreeSet<Point> {
    let decided = Decided::new(version);
    let is_reached = |point: &&Point| {
        let inst = point.inst();
        version.has_inst(inst) && decided.cfg().is_reachable(version.inst_block(inst))
    };
    points.iter().filter(is_reached).copied().collect()
}

/// The points without an accepted entry on a built edge, but for those that no run reaches.
fn lost(graph: &VersionGraph<'_>, certified: &CertifiedGraph, edge: usize) -> Vec<LostPoint> {
    let EdgeOrigin::Built { unmapped, .. } = &graph.edges()[edge].origin else {
        return Vec::new();
    };
    let rejected = certified.rejected.get(&edge).into_iter().flatten();
    let is_idle = |verdict: &Verdict| {
        verdict.finding().is_some_and(|finding| finding.check == Check::SourceReached)
    };
    let rejected = rejected
        .filter(|(_, verdict)| !is_idle(verdict))
        .map(|(point, verdict)| LostPoint::Rejected(*point, *verdict));
    unmapped.iter().cloned().map(LostPoint::Unmapped).chain(rejected).collect()
}
