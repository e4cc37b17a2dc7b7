//! Points in versions, and transitions at them without compensation code.

use check::Checked;
use ir::cfg::Cfg;
use ir::decided::Decided;
use ir::liveness::Liveness;
use ir::loops::LoopForest;
use ir::{Func, Function, Module, Point, Value};
use jit::{Action, Engine, VersionSpec};
use osier::speculate::{Assumption, Plan, speculate};
use osr::VersionTree;
use passes::Pipeline;
use resume::{Condition, PointSpec};
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use transition::mapping::{Assign, Entry, Mapping, Operand};

/// The first points of loop headers.
pub(crate) fn headers(function: &Function) -> Vec<Point> {
    let cfg = Cfg::new(function);
    let forest = LoopForest::new(function, &cfg);
    forest.loops().map(|l| Point::before(function.first_inst(forest.header(l)))).collect()
}

/// A version with assumptions that no pass uses, and the actions of its exits: the run continues in
/// the interpreter.
pub(crate) fn assuming(
    engine: &Engine,
    module: &Arc<Module>,
    func: Func,
    assume: &[Assumption],
) -> Result<(Arc<jit::Version>, Vec<Action>), Box<dyn Error>> {
    let base = module.body(func).ok_or("it is defined")?;
    let mut tree = VersionTree::new(base.clone());
    let nothing = Pipeline::of(Vec::new());
    let made = speculate(module, &mut tree, VersionTree::BASE, &Plan::new(assume, &nothing))?;
    if made.exits.len() < assume.len() {
        return Err("each assumption has an exit where nothing is optimized".into());
    }
    let back = Arc::new(made.backward[&VersionTree::BASE].clone());
    let optimized = tree.function(made.optimized);
    let version = engine.version(
        module,
        func,
        optimized,
        VersionSpec::leaving(optimized, |_| Some(&**back))?,
    )?;
    Ok((version, vec![Action::Interpret(back); made.exits.len()]))
}

/// Every reachable point. An unreachable point has no live values; no run could continue there.
pub(crate) fn everywhere(function: &Function) -> Vec<Point> {
    let decided = Decided::new(function);
    let blocks = function.blocks().filter(|block| decided.cfg().is_reachable(*block));
    blocks.flat_map(|block| function.block_insts(block)).map(Point::before).collect()
}

/// The live values at points of a version, analyzed once.
pub(crate) struct Live<'f> {
    function: &'f Function,
    liveness: Liveness,
}

impl<'f> Live<'f> {
    pub(crate) fn new(function: &'f Function) -> Live<'f> {
        let liveness = Liveness::of_run(function, &Decided::new(function), &BTreeMap::new());
        Live { function, liveness }
    }

    /// The values live at a point, in ascending order.
    pub(crate) fn at(&self, point: Point) -> Vec<Value> {
        self.liveness.live_before(self.function, point).iter().collect()
    }

    /// A point that hands over the live values.
    pub(crate) fn point(&self, at: Point, condition: Condition) -> PointSpec {
        PointSpec { at, condition, values: self.at(at) }
    }

    /// The entry into the same version at the same point.
    pub(crate) fn entry(&self, at: Point) -> Entry {
        let requires = self.at(at);
        let assigns = requires
            .iter()
            .map(|value| Assign { value: *value, from: Operand::Source(*value) })
            .collect();
        Entry {
            target: at,
            steps: Vec::new(),
            replays: Vec::new(),
            assigns,
            requires,
            kept: Vec::new(),
            inner: Box::default(),
        }
    }

    /// The mapping from the version to itself at some points.
    pub(crate) fn mapping(&self, points: impl IntoIterator<Item = Point>) -> Checked<Mapping> {
        let mut mapping = Mapping::new(self.function, self.function);
        points.into_iter().for_each(|at| mapping.insert(at, self.entry(at)));
        Checked::unproved(mapping)
    }
}
