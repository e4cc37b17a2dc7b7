//! One try to make a version with all of a list of assumptions.

use super::{Exit, MAX_PINS, Plan, SpeculationSearch, Speculative};
use crate::driver::{
    Missing, NoObserver, ProvedGraph, Vigilance, Why, composed_along, derive, prove_graph,
};
use check::Checked;
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::edit::{ActionKind, ActionLog, Fuel, apply, apply_to};
use ir::liveness::Liveness;
use ir::{Function, Imm, Inst, Module, Opcode, Point, Value};
use osr::{Level, Version, VersionGraph, VersionTree};
use passes::{Assumption, Expected, PinnedAssumption, Pipeline, Refine, ResolveCalls, Speculate};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use transition::mapping::Mapping;
use transition::{Demand, VersionKey};

/// The versions of one try, and the accepted mappings between them.
pub(super) struct SpeculationAttempt {
    /// The tree with both new versions.
    tree: VersionTree,
    /// The result, if no exit is missing.
    made: Speculative,
    without_exit: Vec<MissingExit>,
}

/// An assumption of the optimized version.
pub(crate) struct MadeExit {
    pub(crate) exit: Exit,
    /// The index among the tried assumptions; `None` for an assumption of an earlier speculation.
    pub(crate) index: Option<usize>,
}

/// An assumption to try.
pub(crate) struct TriedAssumption {
    pub(crate) pinned: PinnedAssumption,
    /// Whether the version speculated on already makes this assumption. The try repeats such an
    /// assumption to pin values; it does not belong to the plan
    /// (`an_assumption_repeated_for_its_pins_is_none_of_the_plan`).
    pub(crate) is_repeated: bool,
}

/// An assumption without an exit.
pub(crate) struct MissingExit {
    pub(crate) missing: Missing,
    /// The index among the tried assumptions; `None` for an assumption of an earlier speculation.
    pub(crate) index: Option<usize>,
    /// The values to keep for the exit: the missing values that the reason names.
    pub(crate) to_keep: Vec<Value>,
    /// All values that are live there in the version speculated on and that the optimized version
    /// lacks. A reason names only one of them.
    pub(crate) gone: Vec<Value>,
}

impl SpeculationAttempt {
    pub(super) fn new(
        module: &Module,
        tree: &VersionTree,
        from: Version,
        made: &[TriedAssumption],
        plan: &Plan<'_>,
    ) -> SpeculationAttempt {
        let mut tree = tree.clone();
        let (assuming, log, insts) = assume(tree.function(from), made);
        // Without a new assumption, optimizing gains nothing, and might lose exits of earlier
        // assumptions (`runs_that_leave_at_any_assumption_end_as_the_base_does`).
        let nothing = Pipeline::of(Vec::new());
        // A base may assume, too (`a_base_that_assumes_keeps_its_exits`).
        let is_assume = |inst| assuming.inst(inst).opcode == Opcode::Assume;
        let has_earlier = || from != VersionTree::BASE || assuming.all_insts().any(is_assume);
        let pipeline = if made.is_empty() && has_earlier() { &nothing } else { plan.pipeline };
        let derived = optimize(module, &assuming, pipeline);
        let own = "the log leads to the version derived";
        let assuming = tree.add(from, assuming, log).expect(own);
        let optimized = tree.add(assuming, derived.0, derived.1).expect(own);
        let (exits, settled) = sort(&tree, from, optimized, made, &insts);
        let ways = Ways::new(&tree, [from, assuming, optimized], &exits);
        let events = ways.events();
        let (forward, backward, without_exit) = ways.prove(module, &exits);
        let exits = exits.into_iter().map(|made| made.exit).collect();
        let (dropped, work) = (Vec::new(), 0);
        let made = Speculative {
            from,
            assuming,
            optimized,
            exits,
            settled,
            dropped,
            forward,
            backward,
            events,
            work,
        };
        SpeculationAttempt { tree, made, without_exit }
    }

    /// The assumptions of the optimized version without an exit.
    pub(super) fn without_exit(&self) -> &[MissingExit] {
        &self.without_exit
    }

    /// The version speculated on.
    pub(super) fn from(&self) -> &Function {
        self.tree.function(self.made.from)
    }

    /// The instructions of all versions from the base to the optimized one.
    pub(super) fn work(&self) -> u64 {
        let line = self.tree.path(VersionTree::BASE, self.made.optimized);
        line.into_iter().map(|version| self.tree.function(version).inst_count() as u64).sum()
    }

    /// Adds the versions to `tree`, with which the try began.
    pub(super) fn publish(self, tree: &mut VersionTree, search: SpeculationSearch) -> Speculative {
        *tree = self.tree;
        Speculative { dropped: search.dropped, work: search.spent, ..self.made }
    }
}

/// Repeats an assumption of an earlier speculation, so that it pins values. A pass then removes the
/// earlier assumption, whose operand has become the constant. A run that leaves at the repeated
/// assumption lands in the version speculated on, which makes the assumption, too, and leaves that
/// version in turn. `None` without values.
pub(crate) fn repeated(from: &Function, inst: Inst, values: &[Value]) -> Option<TriedAssumption> {
    let data = from.inst(inst);
    let (value, bits) = data.assumed()?;
    let Imm::Assumed(_, reason) = data.imm else { return None };
    let (expected, at) = (Expected::Is(bits), Point::before(inst));
    let assumption = Assumption { at, value, expected, reason };
    let pins: Vec<Value> = values.iter().copied().take(MAX_PINS).collect();
    let pinned = PinnedAssumption { assumption, pins };
    (!pinned.pins.is_empty()).then_some(TriedAssumption { pinned, is_repeated: true })
}

/// The version that makes the assumptions, the log that leads there, and the instructions of the
/// assumptions, in order.
pub(crate) fn assume(
    from: &Function,
    made: &[TriedAssumption],
) -> (Function, ActionLog, Vec<Inst>) {
    let unlimited = || Fuel::UNLIMITED.clone();
    let assumptions: Vec<PinnedAssumption> = made.iter().map(|a| a.pinned.clone()).collect();
    let pass = Speculate { assumptions: &assumptions };
    let (assuming, mut log) = apply(from, &pass, &mut unlimited()).into_parts();
    let insts = added(&log);
    let refine = Refine { added: &insts };
    let (assuming, refined) = apply_to(assuming, &refine, &mut unlimited()).into_parts();
    log.extend(refined);
    (assuming, log, insts)
}

/// The optimized version and the log that leads there. Calls with an assumed index are resolved
/// first, so that the pipeline sees fewer indices.
pub(crate) fn optimize(
    module: &Module,
    assuming: &Function,
    pipeline: &Pipeline,
) -> (Function, ActionLog) {
    let resolve = ResolveCalls { module };
    let (resolved, mut log) = apply(assuming, &resolve, &mut Fuel::UNLIMITED.clone()).into_parts();
    let derived = derive(module, &resolved, pipeline, Vigilance::Off, &mut NoObserver);
    log.extend(derived.log);
    (derived.function, log)
}

/// The instructions of the assumptions that a log adds, in order.
fn added(log: &ActionLog) -> Vec<Inst> {
    let adds = log.actions().iter().filter_map(|action| match action.kind() {
        ActionKind::Add { inst, data, .. } if data.opcode == Opcode::Assume => Some(*inst),
        _ => None,
    });
    adds.collect()
}

/// Sorts the assumptions: returns the exits of the optimized version, and the tried assumptions
/// that the version no longer makes.
pub(crate) fn sort(
    tree: &VersionTree,
    from: Version,
    optimized: Version,
    made: &[TriedAssumption],
    insts: &[Inst],
) -> (Vec<MadeExit>, Vec<Assumption>) {
    let f = tree.function(optimized);
    let cfg = Cfg::new(f);
    // An assumption in unreachable code never fails, and has no exit.
    let makes = |inst: Inst| f.has_inst(inst) && cfg.is_reachable(f.inst_block(inst));
    let earlier = tree.function(from);
    let inherited = earlier.all_insts().filter(|i| earlier.inst(*i).opcode == Opcode::Assume);
    let inherited = inherited.filter(|inst| makes(*inst)).map(|inst| {
        let to = nearest_without(tree, from, inst);
        let exit = Exit { inst, assumption: None, to, pins: Vec::new() };
        MadeExit { exit, index: None }
    });
    let mut exits: Vec<MadeExit> = inherited.collect();
    let mut settled = Vec::new();
    for (index, (TriedAssumption { pinned, is_repeated }, inst)) in
        made.iter().zip(insts).enumerate()
    {
        let assumption = (!is_repeated).then_some(pinned.assumption);
        if makes(*inst) {
            let exit = Exit { inst: *inst, assumption, to: from, pins: pinned.pins.clone() };
            exits.push(MadeExit { exit, index: Some(index) });
        } else {
            settled.extend(assumption);
        }
    }
    // Assumptions of the plan come last.
    exits.sort_by_key(|made| made.exit.assumption.is_some());
    (exits, settled)
}

/// The nearest ancestor of a version that lacks an instruction.
fn nearest_without(tree: &VersionTree, version: Version, inst: Inst) -> Version {
    let mut at = version;
    while tree.function(at).has_inst(inst)
        && let Some(parent) = tree.parent(at)
    {
        at = parent;
    }
    at
}

/// The mappings between consecutive versions from the base to the optimized one, and the targets of
/// the mappings composed of them.
struct Ways<'t> {
    graph: VersionGraph<'t>,
    /// The version speculated on, the assuming version, and the optimized version.
    row: [Version; 3],
    targets: BTreeSet<Version>,
}

impl<'t> Ways<'t> {
    fn new(tree: &'t VersionTree, row: [Version; 3], exits: &[MadeExit]) -> Ways<'t> {
        let [from, _, optimized] = row;
        let line = tree.path(VersionTree::BASE, optimized);
        let pairs: Vec<(Version, Version)> = line.windows(2).map(|w| (w[0], w[1])).collect();
        let graph = VersionGraph::build(tree, &pairs, Level::Avail, Demand::default())
            .expect("each version is derived from the one before");
        // Native code continues in the base wherever the interpreter takes over.
        let targets = exits.iter().map(|made| made.exit.to).chain([from, VersionTree::BASE]);
        Ways { graph, row, targets: targets.collect() }
    }

    /// The anchors that the three versions share.
    fn events(&self) -> BTreeSet<Inst> {
        let pairs: Vec<(Version, Version)> = self.row.windows(2).map(|w| (w[0], w[1])).collect();
        let edges = self.graph.edges().iter().filter(|edge| pairs.contains(&(edge.from, edge.to)));
        let shared = |all: BTreeSet<Inst>, more: &BTreeSet<Inst>| &all & more;
        edges
            .map(|edge| edge.anchors.clone())
            .reduce(|all, more| shared(all, &more))
            .unwrap_or_default()
    }

    /// Drops all entries that the checker does not accept. Returns the mapping into the optimized
    /// version, the mappings out of the version, and the assumptions without an exit.
    fn prove(
        mut self,
        module: &Module,
        exits: &[MadeExit],
    ) -> (Checked<Mapping>, BTreeMap<Version, Checked<Mapping>>, Vec<MissingExit>) {
        // A composed entry requires nothing but what its first part requires, so the mappings are
        // proved without composed edges. Entries are composed once, after the proof.
        let ProvedGraph { mappings, .. } = prove_graph(module, &mut self.graph, &mut NoObserver);
        let (optimized, tree) = (self.row[2], self.graph.tree());
        let composed = |path: &[Version]| {
            let ends = [path[0], path[path.len() - 1]].map(|v| VersionKey::of(tree.function(v)));
            let nothing = || Checked::nothing(ends[0], ends[1]);
            composed_along(&self.graph, &mappings, path).unwrap_or_else(nothing)
        };
        let forward = composed(&self.row);
        let back = |to: &Version| (*to, composed(&tree.path(optimized, *to)));
        let backward: BTreeMap<Version, Checked<Mapping>> = self.targets.iter().map(back).collect();
        let leads = |exit: &Exit, here: Point| backward[&exit.to].has_entry(here);
        // Their composition tells why two steps do not compose.
        let lacks = |made: &&MadeExit| !leads(&made.exit, Point::before(made.exit.inst));
        let targets: BTreeSet<Version> =
            exits.iter().filter(lacks).map(|made| made.exit.to).collect();
        for to in targets {
            let path = tree.path(optimized, to);
            self.graph.add_composed(&path).expect("the graph has the edges of the path");
        }
        let without_exit = missing_exits(tree, self.row, exits, |exit, here| {
            let path = || tree.path(optimized, exit.to);
            (!leads(exit, here)).then(|| Why::along(&self.graph, &mappings, &path(), here))
        });
        (forward, backward, without_exit)
    }
}

/// The assumptions without an exit. `row` has the version before the assumptions, the assuming
/// version, and the optimized version. `why` says why an exit has no entry at its point; `None` if
/// it has one.
pub(crate) fn missing_exits(
    tree: &VersionTree,
    row: [Version; 3],
    exits: &[MadeExit],
    why: impl Fn(&Exit, Point) -> Option<Why>,
) -> Vec<MissingExit> {
    let [before, assuming, _] = row.map(|version| tree.function(version));
    let (dom, live) = (OnceCell::new(), OnceCell::new());
    let missing = |MadeExit { exit, index }: &MadeExit| {
        let point = Point::before(exit.inst);
        let why = why(exit, point)?;
        let dom = dom.get_or_init(|| DomTree::new(assuming, &Cfg::new(assuming)));
        // The operands of a write that one arm executes are not available behind the join
        // (`the_operands_of_a_write_in_one_arm_are_not_pinned_behind_it`).
        let mut to_keep = why.values_to_keep(before, assuming);
        to_keep.retain(|value| dom.available_at(assuming, *value, point));
        let gone = live.get_or_init(|| LiveThere::new(tree, row)).gone(exit.inst);
        Some(MissingExit { missing: Missing { point, why }, index: *index, to_keep, gone })
    };
    exits.iter().filter_map(missing).collect()
}

/// Finds the values live at an assumption that the optimized version lacks there.
struct LiveThere<'t> {
    from: &'t Function,
    assuming: &'t Function,
    optimized: &'t Function,
    live: Liveness,
    dom: DomTree,
}

impl<'t> LiveThere<'t> {
    fn new(tree: &'t VersionTree, row: [Version; 3]) -> LiveThere<'t> {
        let [from, assuming, optimized] = row.map(|version| tree.function(version));
        let mut named = BTreeMap::<Inst, Vec<Value>>::new();
        for (point, entry) in tree.armed(row[0]).flat_map(|mapping| mapping.entries()) {
            named.entry(point.inst()).or_default().extend(&entry.requires);
        }
        let live = Liveness::with_extra_uses(from, &Cfg::new(from), &named);
        let dom = DomTree::new(optimized, &Cfg::new(optimized));
        LiveThere { from, assuming, optimized, live, dom }
    }

    /// The values that are live at the place of an assumption in the version speculated on, and not
    /// available there in the optimized version.
    fn gone(&self, assumption: Inst) -> Vec<Value> {
        // The place of the assumption in `from`: before the next instruction that `from` has.
        let behind = std::iter::successors(self.assuming.next_inst(assumption), |inst| {
            self.assuming.next_inst(*inst)
        });
        let Some(at) = behind.into_iter().find(|inst| self.from.has_inst(*inst)) else {
            return Vec::new();
        };
        let (at, here) = (Point::before(at), Point::before(assumption));
        let f = self.optimized;
        let is_there = |v: Value| f.has_value(v) && self.dom.available_at(f, v, here);
        let live = self.live.live_before(self.from, at);
        live.iter().filter(|value| !is_there(*value)).collect()
    }
}
