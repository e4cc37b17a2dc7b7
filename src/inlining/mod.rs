//! Inlining: versions with the code of other functions, and the ways into them and out of them.
//!
//! Example: `@f` calls `@g`. [`inline()`] makes a version of `@f` that has the body of `@g` in the
//! place of the call, optimizes it, and proves two mappings: from the base of `@f` into it, and
//! from it out into *frames*. At a point of the inlined body, the run goes on in two activations:
//! the base of `@g` in the middle, and the base of `@f` within its call.
//!
//! Each inlining adds three versions to a tree:
//!
//! ```text
//! base --first passes--> cleaned --inline--> copy --last passes--> optimized
//! ```
//!
//! Two of the steps are ordinary pairs, proved like all others. The one between is a copy, which
//! the checker judges as such ([`check::copy`]). The ways in and out are composed of the three
//! ([`check::enter_copy`], [`check::leave_copy`]). `docs/osr.md` has a worked example.

mod landings;
mod plan;

use crate::driver::{
    CheckCounts, Observer, Step, VersionPoints, Vigilance, certify_graph_at, derive,
};
use crate::report::UNPROVED;
use check::{Checked, Copies, FrameLanding, FrameRefusal};
use ir::cfg::Cfg;
use ir::edit::{ActionLog, Fuel, apply};
use ir::{Func, Function, Inst, Module, Point};
pub use landings::CalleeLandings;
use osr::{CopyLink, EdgeOrigin, Level, Version, VersionGraph, VersionTree};
use passes::Inline;
pub use plan::{InlinePlan, InlinedModule, ModuleSites, O3, PassPlan};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use transition::copy::{CopyClaim, InstanceId};
use transition::frames::FrameMapping;
use transition::mapping::Mapping;
use transition::{Demand, Refusal};

/// A version with inlined code, and the mappings into it and out of it.
#[derive(Clone, Debug)]
pub struct Inlined {
    /// The versions: the base, then each derived from the one before it.
    pub tree: VersionTree,
    /// The version after the first passes.
    pub cleaned: Version,
    /// The copy with the inlined code.
    pub copy: Version,
    /// The optimized copy.
    pub optimized: Version,
    /// What the copy consists of.
    pub copies: Checked<Copies>,
    /// From the base to the optimized version.
    pub up: Checked<Mapping>,
    /// From the optimized version to frames of bases.
    pub down: Checked<FrameMapping>,
    /// The points of the base, and those of the optimized version, that have no entry, ascending,
    /// each with the name of the reason.
    pub lost: [Vec<(Point, &'static str)>; 2],
    /// The reachable points of both.
    pub points: [Vec<Point>; 2],
    /// The instructions of the optimized version that its run and that of the bases execute one for
    /// one.
    pub events: BTreeSet<Inst>,
    /// Counts of the verdicts on the entries of the two pairs.
    pub checked: CheckCounts,
}

/// Why a function has no version with inlined code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotInlined {
    /// The policy wants no call of the function, or it has none.
    NoCall,
    /// The checker does not accept the version as a copy. A bug of ours.
    NoCopy(check::CopyError),
}

impl fmt::Display for NotInlined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotInlined::NoCall => f.write_str("the policy inlines no call of the function"),
            NotInlined::NoCopy(error) => write!(f, "the version is no copy: {error}"),
        }
    }
}

impl std::error::Error for NotInlined {}

/// Inlines calls of a function and optimizes it, and proves the ways into the version and out of
/// it. Cost: that of two pairs of versions.
///
/// # Errors
/// [`NotInlined`].
///
/// # Panics
/// As [`derive()`], and if the function has no body.
pub fn inline(
    module: &Module,
    func: Func,
    plan: &InlinePlan,
    landings: &CalleeLandings<'_>,
    observer: &mut dyn Observer,
) -> Result<Inlined, NotInlined> {
    let made = InlinedVersions::new(module, func, plan, observer)?;
    let copies = made.judged(module, func)?;
    Ok(made.with_mappings(module, (func, copies), landings, observer))
}

/// The versions of an inlining.
struct InlinedVersions {
    tree: VersionTree,
    cleaned: Version,
    copy: Version,
    optimized: Version,
    claim: CopyClaim,
}

impl InlinedVersions {
    fn new(
        module: &Module,
        func: Func,
        plan: &InlinePlan,
        observer: &mut dyn Observer,
    ) -> Result<InlinedVersions, NotInlined> {
        let base = module.body(func).expect("the function has a body");
        let first = derive(module, base, &plan.first, Vigilance::default(), observer);
        observer.begin(Some(Step::Optimize));
        let pass = Inline { module, func, policy: plan.policy };
        let (copy, log) = apply(&first.function, &pass, &mut Fuel::UNLIMITED.clone()).into_parts();
        observer.begin(None);
        if log.is_empty() {
            return Err(NotInlined::NoCall);
        }
        let claim = osr::copy_claim(func, &first.function, &log).expect("the pass inlines alone");
        let last = derive(module, &copy, &plan.last, Vigilance::default(), observer);
        let mut tree = VersionTree::new(base.clone());
        let mut add = |from: Version, function: Function, log: ActionLog| {
            tree.add(from, function, log).expect("the log leads to the version")
        };
        let cleaned = add(VersionTree::BASE, first.function, first.log);
        let copy = add(cleaned, copy, log);
        let optimized = add(copy, last.function, last.log);
        Ok(InlinedVersions { tree, cleaned, copy, optimized, claim })
    }

    /// The checker's word on the copy.
    fn judged(&self, module: &Module, func: Func) -> Result<Checked<Copies>, NotInlined> {
        let cleaned = self.tree.function(self.cleaned);
        let is_cleaned = |key| transition::VersionKey::of(cleaned) == key;
        let original = |func, key| match is_cleaned(key) {
            true => Some(cleaned),
            false => module.body(func),
        };
        check::copy(self.tree.function(self.copy), func, original, self.claim.clone())
            .map_err(NotInlined::NoCopy)
    }

    fn with_mappings(
        self,
        module: &Module,
        (func, copies): (Func, Checked<Copies>),
        landings: &CalleeLandings<'_>,
        observer: &mut dyn Observer,
    ) -> Inlined {
        let InlinedVersions { tree, cleaned, copy, optimized, claim } = self;
        observer.begin(Some(Step::Map));
        let callees: Vec<&Function> =
            claim.instances[1..].iter().filter_map(|one| module.body(one.func)).collect();
        let link = CopyLink {
            before: cleaned,
            after: copy,
            lands_in: Some(VersionTree::BASE),
            claim: &claim,
            callees: &callees,
        };
        let pairs = [(VersionTree::BASE, cleaned), (copy, optimized)];
        let depth = (Level::Avail, Demand::default());
        let mut graph = VersionGraph::build_across(&tree, &pairs, &[link], depth)
            .expect("each version is derived from the one before");
        let asked = VersionPoints::from([(VersionTree::BASE, behind_calls(&tree, &claim))]);
        let certified = certify_graph_at(module, &mut graph, &asked, observer);
        // The order of the edges is that of the pairs, forward before backward.
        let [to_cleaned, to_base, ahead, back] = &certified.mappings[..] else {
            unreachable!("two pairs have four edges")
        };
        observer.begin(Some(Step::Check));
        let own = "the versions are those of the tree";
        let entered = check::enter_copy(to_cleaned, &copies, ahead).expect(own);
        let base = certified.live.get(&VersionTree::BASE);
        let left = check::leave_copy(back, &copies, |of, key| {
            if of == func && key == copies.instances()[0].version {
                let version = tree.function(VersionTree::BASE);
                return Some(FrameLanding { on: Some(to_base), version, live: base? });
            }
            landings.of(of, key)
        });
        let left = left.expect(own);
        observer.begin(None);
        let points = [VersionTree::BASE, optimized].map(|version| reachable(&tree, version));
        let [own, of] = &points;
        let why = |refusal: &Refusal| refusal.name();
        let up_lost =
            lost(own, |p| entered.mapping.entry(p).is_some(), &graph, (0, &entered.refused), why);
        let why = |refusal: &FrameRefusal| refusal.name();
        let down_lost =
            lost(of, |p| left.mapping.entry(p).is_some(), &graph, (3, &left.refused), why);
        let lost = [up_lost, down_lost];
        let events = events(&graph, &copies);
        let (up, down, checked) = (entered.mapping, left.mapping, certified.counts);
        drop(graph);
        Inlined { tree, cleaned, copy, optimized, copies, up, down, lost, points, events, checked }
    }
}

/// The points of the base behind the inlined calls.
fn behind_calls(tree: &VersionTree, claim: &CopyClaim) -> BTreeSet<Point> {
    let base = tree.function(VersionTree::BASE);
    let calls = claim.instances.iter().filter_map(|one| one.caller);
    let calls = calls.filter(|(id, call)| *id == 0 && base.has_inst(*call));
    calls.filter_map(|(_, call)| base.next_inst(call)).map(Point::before).collect()
}

/// The anchors that the copy shares with the optimized version, and outside inlined code the
/// original with the base.
fn events(graph: &VersionGraph<'_>, copies: &Copies) -> BTreeSet<Inst> {
    let [own, behind] = [0, 2].map(|edge| &graph.edges()[edge].anchors);
    let is_event = |inst: &Inst| match copies.origin(*inst) {
        Some((0, at)) => own.contains(&at),
        origin => origin.is_some(),
    };
    behind.iter().copied().filter(is_event).collect()
}

/// The reachable points of a version.
fn reachable(tree: &VersionTree, version: Version) -> Vec<Point> {
    let f = tree.function(version);
    let decided = ir::decided::Decided::new(f);
    let blocks = decided.cfg().rpo();
    blocks.iter().flat_map(|block| f.block_insts(*block)).map(Point::before).collect()
}

/// The points without an entry, each with the reason: that of the edge that leaves the version, by
/// its index in the graph, or that of the steps across the copy. The checker has dropped the entry
/// of any other.
fn lost<R>(
    points: &[Point],
    has_entry: impl Fn(Point) -> bool,
    graph: &VersionGraph<'_>,
    (edge, refused): (usize, &[(Point, R)]),
    name: impl Fn(&R) -> &'static str,
) -> Vec<(Point, &'static str)> {
    let mut reasons: BTreeMap<Point, &'static str> =
        refused.iter().map(|(point, refusal)| (*point, name(refusal))).collect();
    if let EdgeOrigin::Built { unmapped, .. } = &graph.edges()[edge].origin {
        reasons.extend(unmapped.iter().map(|one| (one.point, one.reason.name())));
    }
    let lost = points.iter().copied().filter(|point| !has_entry(*point));
    lost.map(|point| (point, reasons.get(&point).copied().unwrap_or(UNPROVED))).collect()
}

impl Inlined {
    /// The instance that a point of the optimized version belongs to, and the instruction of its
    /// original: those of the first instruction from the point on, in its block, that the copy has.
    pub fn origin(&self, point: Point) -> Option<(InstanceId, Inst)> {
        let f = self.tree.function(self.optimized);
        let mut from = std::iter::successors(Some(point.inst()), |inst| f.next_inst(*inst));
        from.find_map(|inst| self.copies.origin(inst))
    }

    /// The code that the version gained, in instructions: its own, and those of the version that
    /// the first passes made.
    pub fn growth(&self) -> (usize, usize) {
        let count = |version| {
            let f = self.tree.function(version);
            let cfg = Cfg::new(f);
            cfg.rpo().iter().map(|block| f.block_insts(*block).count()).sum()
        };
        (count(self.cleaned), count(self.optimized))
    }
}
