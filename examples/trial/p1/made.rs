//! The versions, logs and mappings that passes, editor and makers produce while a bug is on.

use super::programs::Subject;
use crate::cases::Case;
use ir::edit::{ActionLog, Fuel, Pass, apply, check_replay};
use ir::verifier::verify_function;
use ir::{Func, Function, Inst, Module, Opcode};
use mutants::switch::with;
use mutants::table::Mutant;
use osier::transition::compose;
use osr::{Level, Version, VersionGraph, VersionPair, VersionTree, synthesize};
use passes::{PinnedAssumption, Refine, ResolveCalls, Speculate};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use transition::Demand;
use transition::certificate::{Certificate, MappingFacts};
use transition::mapping::Mapping;
use transition::{Pair, Side};

/// The most rewrites of a pass, since a wrong rule may apply to its own result forever.
const MOST_REWRITES: u64 = 2000;

/// The versions of a program's functions, and the mappings between them.
#[derive(Default)]
pub(crate) struct Made {
    /// Whether the editor rejected an edit, a log did not replay, or a maker panicked on
    /// well-formed versions.
    pub(crate) refused: bool,
    /// Whether the verifier rejects a version.
    pub(crate) ill_formed: bool,
    pub(crate) families: Vec<Family>,
}

/// The versions of one function.
pub(crate) struct Family {
    pub(crate) func: Func,
    /// Whether the second version makes assumptions. The pair of the first and the last version
    /// then has composed mappings, and no certificate.
    pub(crate) is_speculative: bool,
    pub(crate) versions: Vec<Function>,
    /// All mappings between them that were synthesized together, with the indices of the versions.
    pub(crate) edges: Vec<(usize, usize, Mapping)>,
    pub(crate) pairs: Vec<Judged>,
}

/// Two versions, with a mapping in each direction.
pub(crate) struct Judged {
    /// The versions and the kind of the mappings; pairs with equal keys run together.
    pub(crate) key: (usize, usize, How),
    pub(crate) case: Case,
    /// By side: the armed mappings out of this version.
    pub(crate) armed: Pair<Vec<Mapping>>,
    /// `None` if the certifier panicked.
    pub(crate) certificate: Option<(Certificate, Pair<MappingFacts>)>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum How {
    /// Synthesized with all others, to their common fixpoint.
    Built,
    /// Composed of built mappings.
    Composed,
    /// Composed of mappings of neighbors, each pair synthesized by itself.
    ComposedApart,
}

impl Made {
    pub(crate) fn new(subject: &Subject, bug: Option<&Mutant>) -> Made {
        let mut made = Made::default();
        for (func, base) in subject.program.module.defined() {
            let make = || made.function(subject, func, base);
            with(bug.map(|bug| bug.id), make);
        }
        made
    }

    pub(crate) fn is_sound(&self) -> bool {
        !self.refused && !self.ill_formed
    }

    pub(crate) fn is_same_as(&self, other: &Made) -> bool {
        let alike = |a: &Family, b: &Family| {
            let same_code = a.versions.iter().zip(&b.versions).all(|(a, b)| a.same_as(b).is_ok());
            let made = |p: &'_ Judged| (p.case.mappings.clone(), p.certificate.clone());
            let cases = a.pairs.iter().map(made).eq(b.pairs.iter().map(made));
            a.versions.len() == b.versions.len() && same_code && a.edges == b.edges && cases
        };
        let flags = |m: &Made| (m.refused, m.ill_formed, m.families.len());
        flags(self) == flags(other)
            && self.families.iter().zip(&other.families).all(|(a, b)| alike(a, b))
    }

    fn function(&mut self, subject: &Subject, func: Func, base: &Function) {
        let module = &subject.program.module;
        let mut tree = VersionTree::new(base.clone());
        tree.set_module(module);
        let mut last = VersionTree::BASE;
        let assumptions = subject.assume.get(&func);
        let is_speculative = assumptions.is_some();
        if let Some(assumptions) = assumptions {
            let Some((function, log)) = self.assume(module, base, assumptions) else { return };
            match tree.add(last, function, log) {
                Ok(version) => last = version,
                Err(_) => {
                    self.refused = true;
                    return;
                }
            }
        }
        for pipeline in &subject.steps {
            let parent = tree.function(last).clone();
            let made = self.derive(module, &parent, pipeline, is_speculative);
            let Some((function, log)) = made else { return };
            if log.is_empty() {
                continue;
            }
            match tree.add(last, function, log) {
                Ok(version) => last = version,
                Err(_) => {
                    self.refused = true;
                    return;
                }
            }
        }
        if self.ill_formed {
            self.families.extend(Family::without_mappings(func, &tree));
            return;
        }
        let family = catch_unwind(AssertUnwindSafe(|| Family::new(func, &tree, is_speculative)));
        match family {
            Ok(family) if !family.pairs.is_empty() => self.families.push(family),
            Ok(_) => {}
            Err(_) => self.refused = true,
        }
    }

    /// Adds assumptions, and makes uses behind them read their results; `None` as for a pipeline.
    fn assume(
        &mut self,
        module: &Module,
        base: &Function,
        assumptions: &[PinnedAssumption],
    ) -> Option<(Function, ActionLog)> {
        let mut log = ActionLog::empty_for(base);
        let assuming = self.pass(module, base, &Speculate { assumptions }, &mut log)?;
        let is_added =
            |inst: &Inst| assuming.inst(*inst).opcode == Opcode::Assume && !base.has_inst(*inst);
        let added: Vec<Inst> = assuming.all_insts().filter(is_added).collect();
        if self.ill_formed {
            return Some((assuming, log));
        }
        let refined = self.pass(module, &assuming, &Refine { added: &added }, &mut log)?;
        Some((refined, log))
    }

    /// Runs one pass, and adds its actions to a log.
    fn pass(
        &mut self,
        module: &Module,
        version: &Function,
        pass: &dyn Pass,
        log: &mut ActionLog,
    ) -> Option<Function> {
        let run = || apply(version, pass, &mut Fuel::rewrites(MOST_REWRITES)).into_parts();
        let Ok((function, actions)) = catch_unwind(AssertUnwindSafe(run)) else {
            self.refused = true;
            return None;
        };
        if check_replay(version, &actions, &function).is_err() {
            // A log that does not replay describes no version, so there is no mapping from it.
            self.refused = true;
            return None;
        }
        self.ill_formed |= !verify_function(module, &function).is_empty();
        log.extend(actions);
        Some(function)
    }

    /// Runs a pipeline, behind the pass that resolves calls where `resolves` says so. `None` if the
    /// editor rejects an edit or a log does not replay.
    fn derive(
        &mut self,
        module: &Module,
        base: &Function,
        pipeline: &passes::Pipeline,
        resolves: bool,
    ) -> Option<(Function, ActionLog)> {
        let (mut version, mut log) = (base.clone(), ActionLog::empty_for(base));
        let resolve = ResolveCalls { module };
        let first = resolves.then_some(&resolve as &dyn Pass);
        let passes = pipeline.passes().iter().map(|pass| *pass as &dyn Pass);
        for pass in first.into_iter().chain(passes) {
            version = self.pass(module, &version, pass, &mut log)?;
            if self.ill_formed {
                // Passes and makers require well-formed versions; some would loop forever on
                // others.
                break;
            }
        }
        Some((version, log))
    }
}

impl Family {
    fn new(func: Func, tree: &VersionTree, is_speculative: bool) -> Family {
        let versions: Vec<Function> = tree.versions().map(|v| tree.function(v).clone()).collect();
        let (edges, pairs) = (Vec::new(), Vec::new());
        let mut family = Family { func, is_speculative, versions, edges, pairs };
        let ids: Vec<Version> = tree.versions().collect();
        let later = |first: usize| ids[first + 1..].iter().map(move |last| (first, *last));
        let mut ends: Vec<(Version, Version)> =
            (0..ids.len()).flat_map(later).map(|(first, last)| (ids[first], last)).collect();
        if is_speculative {
            // One certificate cannot explain the versions around an assumption together.
            ends.retain(|(first, last)| tree.path(*first, *last).len() == 2);
        }
        let mut graph = VersionGraph::build(tree, &ends, Level::Avail, Demand::Needed)
            .expect("the logs were replayed");
        if ids.len() > 2 {
            let back: Vec<Version> = ids.iter().rev().copied().collect();
            graph.add_composed(&ids).expect("neighbors have edges");
            graph.add_composed(&back).expect("neighbors have edges");
        }
        let place = |v: Version| v.as_u32() as usize;
        family.edges =
            graph.edges().iter().map(|e| (place(e.from), place(e.to), e.mapping.clone())).collect();
        for both in graph.edges().chunks(2) {
            let [there, back] = both else { continue };
            let how = if family.pairs.len() < ends.len() { How::Built } else { How::Composed };
            let mappings = Pair::new(there.mapping.clone(), back.mapping.clone());
            family.add(tree, there.from, there.to, how, mappings, there.anchors.clone());
        }
        if let ([first, middle, last], false) = (ids.as_slice(), is_speculative) {
            family.add_apart(tree, [*first, *middle, *last]);
        }
        family
    }

    /// The first and the last version, for the layers that judge versions alone; `None` if there is
    /// only one version.
    fn without_mappings(func: Func, tree: &VersionTree) -> Option<Family> {
        let [first, .., last] = tree.versions().collect::<Vec<_>>()[..] else { return None };
        let mut family = Family {
            func,
            is_speculative: false,
            versions: Vec::new(),
            edges: Vec::new(),
            pairs: Vec::new(),
        };
        let versions = Pair::new(first, last).map(|v| tree.function(v).clone());
        let Pair { before, after } = versions.as_ref();
        let mappings = Pair::new(Mapping::new(before, after), Mapping::new(after, before));
        let log = tree.log(first, last).expect("versions form a chain");
        let case = Case { func, versions, log, anchors: BTreeSet::new(), mappings };
        family.pairs.push(Judged {
            key: (0, 1, How::Built),
            case,
            armed: Pair::default(),
            certificate: None,
        });
        Some(family)
    }

    /// Adds mappings of neighbors, each pair synthesized by itself, and their composition.
    fn add_apart(&mut self, tree: &VersionTree, [first, middle, last]: [Version; 3]) {
        let made = |before: Version, after: Version| {
            let log = tree.log(before, after).expect("versions form a chain");
            let pair = VersionPair::new(tree.function(before), tree.function(after), &log)
                .expect("replayed");
            let made = synthesize(&pair, Level::Avail);
            (made, pair.bounding_anchors().collect::<BTreeSet<Inst>>())
        };
        let ((lower, mut anchors), (upper, others)) = (made(first, middle), made(middle, last));
        anchors.retain(|a| others.contains(a));
        let there =
            compose(&lower.forward.mapping, &upper.forward.mapping).expect("a chain").mapping;
        let back =
            compose(&upper.backward.mapping, &lower.backward.mapping).expect("a chain").mapping;
        self.add(tree, first, last, How::ComposedApart, Pair::new(there, back), anchors);
    }

    fn add(
        &mut self,
        tree: &VersionTree,
        from: Version,
        to: Version,
        how: How,
        mappings: Pair<Mapping>,
        anchors: BTreeSet<Inst>,
    ) {
        let versions = Pair::new(from, to).map(|v| tree.function(v).clone());
        let log = tree.log(from, to).expect("versions form a chain");
        let leaving = |version: Version| match how {
            // A mapping synthesized outside the graph is armed without the graph's mappings.
            How::ComposedApart => {
                vec![mappings[if version == to { Side::After } else { Side::Before }].clone()]
            }
            _ => {
                let edges =
                    self.edges.iter().filter(|(from, ..)| *from == version.as_u32() as usize);
                edges.map(|(_, _, mapping)| mapping.clone()).collect()
            }
        };
        let armed = Pair::new(leaving(from), leaving(to));
        let case = Case { func: self.func, versions, log, anchors, mappings };
        let is_explained = !(self.is_speculative && how == How::Composed);
        let explain = || case.certificate(case.mappings.as_ref());
        let certificate =
            is_explained.then(|| catch_unwind(AssertUnwindSafe(explain)).ok()).flatten();
        let key = (from.as_u32() as usize, to.as_u32() as usize, how);
        self.pairs.push(Judged { key, case, armed, certificate });
    }
}
