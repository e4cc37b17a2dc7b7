//! The versions of one function, and the log that made each.

use crate::accesses::LeastSizes;
use cranelift_entity::{PrimaryMap, entity_impl};
use ir::edit::{ActionLog, ReplayError, check_replay};
use ir::{FrameStateError, FrameStates, Function, Module, Point, Value};
use std::collections::BTreeSet;
use std::sync::Arc;
use transition::VersionKey;
use transition::mapping::{Assign, Entry, Mapping, Operand};

/// A version of a function, in its [`VersionTree`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(u32);
entity_impl!(Version, "version");

#[derive(Clone, Debug)]
struct TreeNode {
    /// Shared by copies of the tree, as the log is.
    function: Arc<Function>,
    /// The parent and the log that leads from it to this version; `None` for the base.
    parent: Option<(Version, Arc<ActionLog>)>,
    /// The number of derivations from the base.
    depth: u32,
    /// The values that frame states require, as mappings that leave from this version.
    armed: Vec<Arc<Mapping>>,
    /// The points at which entries may land; `None` for all.
    landings: Option<BTreeSet<Point>>,
    /// Whether entries prefer the place of their source point to other points of equal cost.
    in_place: bool,
    /// The points at which entries may leave; `None` for all.
    departures: Option<BTreeSet<Point>>,
}

impl TreeNode {
    fn new(function: Function, parent: Option<(Version, Arc<ActionLog>)>, depth: u32) -> TreeNode {
        let function = Arc::new(function);
        let (armed, landings, departures) = Default::default();
        TreeNode { function, parent, depth, armed, landings, in_place: false, departures }
    }
}

/// All versions of one function: the base, and versions that a pipeline of passes derived each from
/// another version.
#[derive(Clone, Debug)]
pub struct VersionTree {
    nodes: PrimaryMap<Version, TreeNode>,
    /// The sizes of memories on which entries may rely.
    least: LeastSizes,
}

impl VersionTree {
    /// The base: version 0, the root of all derivations.
    pub const BASE: Version = Version(0);

    /// A tree of the base alone.
    pub fn new(base: Function) -> VersionTree {
        let mut nodes = PrimaryMap::new();
        nodes.push(TreeNode::new(base, None, 0));
        VersionTree { nodes, least: LeastSizes::default() }
    }

    /// Says that the versions belong to a function of this module: see
    /// [`crate::VersionPair::in_module`]. Say so before a graph is built.
    pub fn set_module(&mut self, module: &Module) {
        self.least = LeastSizes::of(module);
    }

    /// The sizes of memories on which entries of graphs of this tree may rely.
    pub(crate) fn least(&self) -> &LeastSizes {
        &self.least
    }

    /// Adds a version. Cost: one replay of the log.
    ///
    /// # Errors
    /// When the log does not lead from the parent to the version. The tree is unchanged then.
    ///
    /// # Panics
    /// When the tree has no such parent.
    pub fn add(
        &mut self,
        parent: Version,
        function: Function,
        log: ActionLog,
    ) -> Result<Version, ReplayError> {
        check_replay(&self.nodes[parent].function, &log, &function)?;
        Ok(self.add_replayed(parent, function, log))
    }

    /// As [`VersionTree::add`], without a replay: for a version whose log was replayed when it was
    /// made. With a log that leads elsewhere, mappings are wrong, and the checker refuses them.
    /// Cost: constant.
    ///
    /// # Panics
    /// When the tree has no such parent.
    pub fn add_replayed(&mut self, parent: Version, function: Function, log: ActionLog) -> Version {
        let depth = self.nodes[parent].depth + 1;
        let parent = Some((parent, Arc::new(log)));
        self.nodes.push(TreeNode::new(function, parent, depth))
    }

    /// Arms frame states of a version, such as the states of a base: an embedder's interpreter
    /// continues where entries land. So entries of graphs of this tree land at points with a state
    /// alone, and provide the values that the state names. An entry that lands above such a point
    /// provides them, too, if a run comes there without computing them. Several tables count
    /// together. Arm states before a graph is built.
    ///
    /// # Errors
    /// The first state that does not fit the version.
    ///
    /// # Panics
    /// When the tree has no such version.
    pub fn arm_states(
        &mut self,
        version: Version,
        states: &FrameStates,
    ) -> Result<(), FrameStateError> {
        states.check(self.function(version))?;
        let mapping = required(self.function(version), states);
        self.arm(version, Arc::new(mapping));
        Ok(())
    }

    /// Arms a mapping that leaves from a version, as [`VersionTree::arm_states`] arms states:
    /// entries of graphs of this tree land at its source points alone, and provide the values that
    /// its entries require. For runs that go on by the mapping.
    ///
    /// # Panics
    /// When the tree has no such version.
    pub fn arm(&mut self, version: Version, mapping: Arc<Mapping>) {
        let mut points: BTreeSet<Point> = mapping.points().collect();
        self.nodes[version].armed.push(mapping);
        points.extend(self.landings(version).into_iter().flatten());
        self.land_at(version, points);
    }

    /// Lets entries of graphs of this tree land in a version at these points alone.
    ///
    /// # Panics
    /// When the tree has no such version.
    pub fn land_at(&mut self, version: Version, points: BTreeSet<Point>) {
        self.nodes[version].landings = Some(points);
    }

    /// The points at which entries may land in a version; `None` for all.
    ///
    /// # Panics
    /// When the tree has no such version.
    pub fn landings(&self, version: Version) -> Option<&BTreeSet<Point>> {
        self.nodes[version].landings.as_ref()
    }

    /// Lets entries of graphs of this tree land in a version in the place of their source point:
    /// the next instruction of its block that this version has, too. Elsewhere they land if that
    /// costs less. Without this, of points of equal cost the earliest counts: runs repeat more, and
    /// later passes lose fewer entries.
    ///
    /// # Panics
    /// When the tree has no such version.
    pub fn land_in_place(&mut self, version: Version) {
        self.nodes[version].in_place = true;
    }

    /// Whether entries land in a version as [`VersionTree::land_in_place`] says.
    ///
    /// # Panics
    /// When the tree has no such version.
    pub fn lands_in_place(&self, version: Version) -> bool {
        self.nodes[version].in_place
    }

    /// Lets entries of graphs of this tree leave a version at these points alone. Points that the
    /// version lacks are ignored. Live+ counts these entries and no others.
    ///
    /// # Panics
    /// When the tree has no such version.
    pub fn leave_at(&mut self, version: Version, points: BTreeSet<Point>) {
        self.nodes[version].departures = Some(points);
    }

    /// The points at which entries may leave a version; `None` for all.
    ///
    /// # Panics
    /// When the tree has no such version.
    pub fn departures(&self, version: Version) -> Option<&BTreeSet<Point>> {
        self.nodes[version].departures.as_ref()
    }

    /// The values that the frame states armed in a version require.
    ///
    /// # Panics
    /// When the tree has no such version.
    pub fn armed(&self, version: Version) -> impl Iterator<Item = &Mapping> {
        self.nodes[version].armed.iter().map(|mapping| &**mapping)
    }

    /// Every version, in the order of addition.
    pub fn versions(&self) -> impl ExactSizeIterator<Item = Version> + use<> {
        self.nodes.keys()
    }

    /// The code of a version.
    ///
    /// # Panics
    /// When the tree lacks the version; the other methods panic then, too.
    pub fn function(&self, version: Version) -> &Function {
        &self.nodes[version].function
    }

    /// The version that a version was derived from; `None` for the base.
    pub fn parent(&self, version: Version) -> Option<Version> {
        self.nodes[version].parent.as_ref().map(|(parent, _)| *parent)
    }

    /// Whether a version is another, or was derived from it, over any number of steps. Cost: linear
    /// in the steps.
    pub fn is_derived(&self, before: Version, after: Version) -> bool {
        std::iter::successors(Some(after), |at| self.parent(*at)).any(|at| at == before)
    }

    /// The log that leads from a version to one derived from it, over any number of steps: the logs
    /// of the steps, one after the other. `None` when `after` was not derived from `before`. Cost:
    /// linear in the log.
    pub fn log(&self, before: Version, after: Version) -> Option<ActionLog> {
        let mut steps = Vec::new();
        let mut at = after;
        while at != before {
            let (parent, log) = self.nodes[at].parent.as_ref()?;
            steps.push(log);
            at = *parent;
        }
        let mut whole = ActionLog::empty_for(self.function(before));
        steps.into_iter().rev().for_each(|log| whole.extend(ActionLog::clone(log)));
        Some(whole)
    }

    /// The path from one version to another along derivations, both included: up to the last
    /// version that both were derived from, and down. Cost: linear in its length.
    pub fn path(&self, from: Version, to: Version) -> Vec<Version> {
        let (mut up, mut down) = (vec![from], vec![to]);
        loop {
            // The deeper end climbs, so both ends reach their last common ancestor at the same
            // time. Of two at one depth, `from` climbs first.
            let (a, b) = (up[up.len() - 1], down[down.len() - 1]);
            if a == b {
                // Both lists end in the common ancestor, which belongs on the path once.
                down.pop();
                up.extend(down.into_iter().rev());
                return up;
            }
            let (climbing, at) = if self.nodes[a].depth >= self.nodes[b].depth {
                (&mut up, a)
            } else {
                (&mut down, b)
            };
            climbing.push(self.parent(at).expect("every two versions of a tree share the base"));
        }
    }
}

/// A mapping that requires, at each point of a version with a frame state, the values that the
/// state names. Only its requirements count: no run fires its entries. It is armed where entries
/// into the version are accepted. Cost: near linear in the states.
pub fn required(version: &Function, states: &FrameStates) -> Mapping {
    let key = VersionKey::of(version);
    let mut mapping = Mapping::between(key, key);
    for (target, values) in states.required(version) {
        let same = |value: &Value| Assign { value: *value, from: Operand::Source(*value) };
        let assigns = values.iter().map(same).collect();
        let (steps, replays, kept) = (Vec::new(), Vec::new(), Vec::new());
        let requires = values.into_iter().collect();
        mapping.insert(
            target,
            Entry { target, steps, replays, assigns, requires, kept, inner: Box::default() },
        );
    }
    mapping
}
