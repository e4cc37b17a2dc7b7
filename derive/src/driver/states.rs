//! Derives a version for an embedder whose interpreter runs in the frame states of the base: with a
//! way up at each *entrance*, such as a loop header, and a way down at each *exit*.
//!
//! Example: a guard of the base branches to a block with `trap user0`, and a frame state stands in
//! front of the trap. The trap never runs: the embedder places an OSR point there. The version is
//! useful only with an entry back to the base at each such trap that it still reaches. So the
//! driver makes entries at these points alone, and gives up the rewrites that lose such an entry.

use super::prove_graph::prove_graph;
use super::retry::{Answer, RewriteSearch};
use super::{
    Derived, GivenUp, NoObserver, Observer, ProvedMapping, Recipe, Retried, Secured, Step,
    derive_within,
};
use ir::decided::Decided;
use ir::edit::{ActionLog, Fuel};
use ir::{
    Effects, FrameState, FrameStateError, FrameStates, Function, Module, Point, Value, ValueDef,
};
use osr::{Level, VersionGraph, VersionTree};
use std::collections::BTreeSet;
use transition::{Demand, Pair};

/// The points of a base at which runs change between an embedder's interpreter and a version.
#[derive(Clone, Copy, Debug)]
pub struct StatePoints<'a> {
    /// The frames of the interpreter, by point of the base. Entries back land at these points
    /// alone, and provide the values that the states name.
    pub states: &'a FrameStates,
    /// The points at which runs enter the version, such as loop headers.
    pub entrances: &'a BTreeSet<Point>,
    /// The points at which runs leave the version, if their instructions are still reachable.
    /// Derived versions keep the ids of instructions, so these are points of the version, too. Each
    /// instruction must be a terminator or an effect: a pass may move or delete any other
    /// instruction, and the exit with it.
    pub exits: &'a BTreeSet<Point>,
}

/// A version, and its mappings from the base and back.
pub type SecuredStates = Secured<Pair<ProvedMapping>>;

impl SecuredStates {
    /// From the base, at the entrances.
    pub fn up(&self) -> &ProvedMapping {
        &self.proved.before
    }

    /// Back to the base, at the reachable exits. The embedder places OSR points at the exits with
    /// an entry.
    pub fn down(&self) -> &ProvedMapping {
        &self.proved.after
    }
}

/// The most rounds that keep further values: after each round, passes may lose other values.
const ROUNDS: usize = 4;

/// A mistake in [`StatePoints`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StatePointError {
    /// A state does not fit the base.
    State(FrameStateError),
    /// The base lacks an entrance or an exit.
    NoSuchPoint(Point),
    /// The instruction behind an exit is no effect and no terminator.
    Movable(Point),
    /// The instruction behind an exit of inlined code is a call that is inlined, or a return of the
    /// callee: the version has a jump instead.
    Inlined(Point),
    /// The function has places, and no states.
    NoStates,
}

impl std::fmt::Display for StatePointError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StatePointError::State(error) => write!(f, "{error}"),
            StatePointError::NoSuchPoint(point) => {
                write!(f, "the function lacks {}, an entrance or exit", point.inst())
            }
            StatePointError::Movable(point) => {
                write!(f, "an exit is in front of {}, which passes move", point.inst())
            }
            StatePointError::Inlined(point) => {
                write!(f, "an exit is in front of {}, which inlining replaces", point.inst())
            }
            StatePointError::NoStates => f.write_str("the function has places, and no states"),
        }
    }
}

impl std::error::Error for StatePointError {}

impl StatePoints<'_> {
    /// Checks that the points are points of the base. Cost: linear in the points and states.
    pub(crate) fn check(&self, base: &Function) -> Result<(), StatePointError> {
        self.states.check(base).map_err(StatePointError::State)?;
        let mut points = self.entrances.iter().chain(self.exits);
        if let Some(point) = points.find(|point| !base.has_inst(point.inst())) {
            return Err(StatePointError::NoSuchPoint(*point));
        }
        let is_movable = |point: &&Point| base.inst(point.inst()).opcode.is_effect_free();
        self.exits.iter().find(is_movable).map_or(Ok(()), |at| Err(StatePointError::Movable(*at)))
    }
}

/// Derives a version of `base` and makes its entries at `points`. Values that the states of
/// reachable exits alone name, such as a block parameter, are kept from the start. If an exit lacks
/// other values that the version does not have, the driver derives the version again and keeps
/// these, too. If exits or entrances still lack entries, the driver gives up rewrites like
/// [`super::derive_proved`], within the bounds of the recipe: [`super::Retry::BRIEF`] suits a
/// program that waits. With [`super::Retry::OFF`], the driver
/// neither keeps values nor gives up rewrites. It never gives up rewrites for a point without an
/// entry from the base to itself. The result loses no more points than the version of the whole
/// pipeline. The level is the last level of the recipe, or [`Level::Avail`].
///
/// Cost: the pipeline, once more where states alone name values, one certificate, and a verdict for
/// each point; the same again for each of a few rounds and for each probe.
///
/// # Errors
/// The first mistake in the points.
///
/// # Panics
/// Like [`super::derive()`].
pub fn derive_with_states(
    module: &Module,
    base: &Function,
    points: StatePoints<'_>,
    recipe: &Recipe<'_>,
    observer: &mut dyn Observer,
) -> Result<SecuredStates, StatePointError> {
    derive_waiting(module, base, points, &BTreeSet::new(), recipe, observer)
}

/// The same for a version that calls will be inlined into. `waits` are the points behind them with
/// a state, at which frames wait: the version keeps the values that these states name, too.
pub(crate) fn derive_waiting(
    module: &Module,
    base: &Function,
    points: StatePoints<'_>,
    waits: &BTreeSet<Point>,
    recipe: &Recipe<'_>,
    observer: &mut dyn Observer,
) -> Result<SecuredStates, StatePointError> {
    points.check(base)?;
    let deriver = StateDeriver { module, base, points, waits, recipe };
    let is_searching = recipe.retry.rewrites > 0;
    let mut made = deriver.first(is_searching, observer);
    if missing(&made.proved) > 0 && !made.retried.kept.is_empty() {
        // What keeping values loses, the version without them may have.
        let plain = deriver.derive(BTreeSet::new(), &[], observer);
        if missing(&plain.proved) < missing(&made.proved) {
            made = plain;
        }
    }
    for _ in 0..ROUNDS {
        let kept: BTreeSet<Value> =
            deriver.lacking(&made).union(&made.retried.kept).copied().collect();
        if kept.len() == made.retried.kept.len() || !is_searching {
            break;
        }
        let next = deriver.derive(kept, &[], observer);
        if missing(&next.proved) > missing(&made.proved) {
            break;
        }
        made = next;
    }
    if is_searching && answer(&made, &BTreeSet::new()).drops() {
        observer.begin(Some(Step::Retry));
        made = deriver.give_up(made, observer);
    }
    observer.begin(None);
    Ok(made)
}

/// The inputs of the derivation and of its judgement. The states fit the base.
struct StateDeriver<'a> {
    module: &'a Module,
    base: &'a Function,
    points: StatePoints<'a>,
    waits: &'a BTreeSet<Point>,
    recipe: &'a Recipe<'a>,
}

impl StateDeriver<'_> {
    /// Makes the version that keeps the values `kept` and lacks the rewrites `given_up`, and its
    /// entries.
    fn derive(
        &self,
        kept: BTreeSet<Value>,
        given_up: &[GivenUp],
        observer: &mut dyn Observer,
    ) -> SecuredStates {
        let fuel = Fuel::UNLIMITED.without(given_up.iter().map(GivenUp::numbers));
        let mut fuel = fuel.keeping(kept.clone());
        let made = self.run(&mut fuel, observer);
        self.secured(made, &fuel, kept, observer)
    }

    /// Makes the entries of a version that passes have made with this fuel.
    fn secured(
        &self,
        made: Derived,
        fuel: &Fuel,
        kept: BTreeSet<Value>,
        observer: &mut dyn Observer,
    ) -> SecuredStates {
        let made = self.secure(self.base, made, observer);
        let (announced, refused) = (fuel.planned(), fuel.refused());
        let retried = Retried { kept, announced, refused, ..Retried::default() };
        Secured { retried, ..made }
    }

    /// Runs the passes.
    fn run(&self, fuel: &mut Fuel, observer: &mut dyn Observer) -> Derived {
        let Recipe { pipeline, vigilance, .. } = *self.recipe;
        derive_within(self.module, self.base, pipeline, vigilance, fuel, observer)
    }

    /// Makes the version that keeps the values which the states of reachable exits and of `waits`
    /// alone name. Passes remove these, since nothing else reads them, and the mapping would only
    /// tell that their exits are lost. Unless `is_searching`, the version keeps no values.
    fn first(&self, is_searching: bool, observer: &mut dyn Observer) -> SecuredStates {
        let mut fuel = Fuel::UNLIMITED.clone();
        let made = self.run(&mut fuel, observer);
        let exits = reached(&made.function, self.points.exits);
        let named = exits.iter().chain(self.waits).flat_map(|point| self.named(*point));
        let kept = self.leaves(&made.function, named);
        match kept.is_empty() || !is_searching {
            true => self.secured(made, &fuel, BTreeSet::new(), observer),
            false => self.derive(kept, &[], observer),
        }
    }

    /// The values that the state of a point names.
    fn named(&self, point: Point) -> impl Iterator<Item = Value> + '_ {
        self.points.states.get(point).into_iter().flat_map(FrameState::all_values)
    }

    /// Gives up rewrites that lose points. Returns `made` if this does not lose fewer points.
    fn give_up(&self, made: SecuredStates, observer: &mut dyn Observer) -> SecuredStates {
        // An entrance or exit without an entry from the base to itself is lost in every version.
        let log = ActionLog::empty_for(self.base);
        let same = Derived { function: self.base.clone(), log };
        let same = self.secure(self.base, same, &mut NoObserver);
        let hopeless = same.proved.iter().flat_map(|way| way.missing.iter());
        let hopeless: BTreeSet<Point> = hopeless.map(|missing| missing.point).collect();
        let first = answer(&made, &hopeless);
        if !first.drops() {
            return made;
        }
        let ask = |base: &Function, derived: &Derived, _| {
            answer(&self.secure(base, derived.clone(), &mut NoObserver), &hopeless)
        };
        let Recipe { pipeline, retry, .. } = *self.recipe;
        let search = RewriteSearch::new(self.module, self.base, pipeline, retry, &ask);
        let kept = made.retried.kept.clone();
        let mut search = search.keeping(kept.clone());
        let given_up = search.run(first, made.retried.announced);
        let retried = Retried { given_up, probes: search.probes(), ..made.retried.clone() };
        made.or_without(retried, |given_up| self.derive(kept, given_up, observer), missing)
    }

    /// The values of the base that lost exits lack: of the values that their states name, and of
    /// the values that synthesis reports as missing.
    fn lacking(&self, made: &SecuredStates) -> BTreeSet<Value> {
        let exits = made.down().missing.obstacles();
        let of_exits =
            exits.flat_map(|exit| exit.why.value.into_iter().chain(self.named(exit.point)));
        let of_waits = self.waits.iter().flat_map(|point| self.named(*point));
        self.leaves(&made.derived.function, of_exits.chain(of_waits))
    }

    /// The values of the base that a version and compensation code lack of `wanted`: where an entry
    /// can rebuild a value from others, these instead.
    fn leaves(&self, version: &Function, wanted: impl Iterator<Item = Value>) -> BTreeSet<Value> {
        let mut work: Vec<Value> = wanted.collect();
        let (mut seen, mut leaves) = (BTreeSet::new(), BTreeSet::new());
        while let Some(value) = work.pop() {
            if !self.base.has_value(value) || version.has_value(value) || !seen.insert(value) {
                continue;
            }
            match sources(self.base, value) {
                Some(sources) => work.extend(sources),
                None => _ = leaves.insert(value),
            }
        }
        leaves
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
        tree.set_module(self.module);
        tree.arm_states(VersionTree::BASE, states).expect("the caller has checked the states");
        let last = tree.add_replayed(VersionTree::BASE, function, log);
        tree.leave_at(VersionTree::BASE, entrances.clone());
        tree.leave_at(last, exits);
        let pairs = [(VersionTree::BASE, last)];
        let graph = VersionGraph::build(&tree, &pairs, level, Demand::default());
        let mut graph = graph.expect("the log leads from the base to the version");
        let proved = prove_graph(self.module, &mut graph, observer);
        let [mut up, mut down]: [ProvedMapping; 2] =
            proved.mappings.try_into().expect("a pair has two directions");
        // No run needs an entry at a point that the certificate shows unreachable.
        [&mut up, &mut down].into_iter().for_each(|way| way.missing.keep_lost());
        let derived = Derived {
            function: tree.function(last).clone(),
            log: tree.log(VersionTree::BASE, last).expect("derived from the base"),
        };
        Secured { derived, proved: Pair::new(up, down), retried: Retried::default() }
    }
}

/// The values of `version` that `wanted` values of `base` are, or that an entry can rebuild them
/// from.
pub(crate) fn kept_sources(
    base: &Function,
    version: &Function,
    wanted: impl IntoIterator<Item = Value>,
) -> BTreeSet<Value> {
    let mut work: Vec<Value> = wanted.into_iter().collect();
    let (mut seen, mut found) = (BTreeSet::new(), BTreeSet::new());
    while let Some(value) = work.pop() {
        if version.has_value(value) {
            found.insert(value);
        } else if base.has_value(value) && seen.insert(value) {
            work.extend(sources(base, value).into_iter().flatten());
        }
    }
    found
}

/// The values from which an entry can rebuild a value that its version lacks: the operands of an
/// operation that compensation code repeats, or the only value that a parameter receives. `None` if
/// an entry cannot rebuild the value.
fn sources(base: &Function, value: Value) -> Option<Vec<Value>> {
    match base.value_def(value) {
        ValueDef::Result(inst, _) => {
            let data = base.inst(inst);
            let is_repeatable = data.opcode.is_effect_free()
                && !data.opcode.effects().has(Effects::READS)
                && !data.opcode.is_call();
            is_repeatable.then(|| data.args.to_vec())
        }
        ValueDef::Param(block, index) => {
            let edges = base.predecessors(block).iter();
            let incoming: BTreeSet<Value> = edges
                .map(|edge| base.target(*edge).args[index as usize])
                .filter(|arg| *arg != value)
                .collect();
            (incoming.len() == 1).then(|| incoming.into_iter().collect())
        }
    }
}

/// The number of entrances and reachable exits without an entry.
fn missing(proved: &Pair<ProvedMapping>) -> usize {
    proved.iter().map(|way| way.missing.len()).sum()
}

/// These points except `hopeless`, as an answer for the search.
fn answer(made: &SecuredStates, hopeless: &BTreeSet<Point>) -> Answer {
    let points = |way: &ProvedMapping| {
        let points = way.missing.iter().map(|missing| missing.point);
        points.filter(|point| !hopeless.contains(point)).collect()
    };
    let ways = [made.up(), made.down()];
    Answer::of_points(ways.map(points), ways.map(|way| way.mapping.len()).iter().sum())
}

/// The subset of `points` whose instructions are reachable in a version. Constants may decide that
/// a guard never fails.
fn reached(version: &Function, points: &BTreeSet<Point>) -> BTreeSet<Point> {
    let decided = Decided::new(version);
    let is_reached = |point: &&Point| {
        let inst = point.inst();
        version.has_inst(inst) && decided.cfg().is_reachable(version.inst_block(inst))
    };
    points.iter().filter(is_reached).copied().collect()
}
