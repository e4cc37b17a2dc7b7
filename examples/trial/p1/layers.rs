//! The layers that may detect a bug, each by itself.

use super::made::{How, Judged, Made};
use crate::cases::Case;
use crate::cases::oracle_options;
use crate::output;
use check::relate;
use check::verdict::{Check, Options};
use interp::{Limits, Machine};
use ir::{Func, Inst, Point};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use transition::VersionKey;
use transition::certificate::{Certificate, VersionTerms};
use transition::{Pair, Side};
use verify::generate::{CountingHost, Program};
use verify::hops::{Edge, FunctionGraph, HopOptions, Hopper};
use verify::state_oracle::{FunctionPair, Oracle};

/// A layer that may detect a bug.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Layer {
    /// The editor rejects an edit, or a log does not replay.
    Editor,
    /// The verifier of the IR rejects a version.
    Verifier,
    /// The checker rejects an entry that it accepts without the bug.
    Checker,
    /// The state oracle sees a difference.
    State,
    /// A chain of hops diverges.
    Hops,
    /// A run has another outcome.
    Output,
    /// The oracle of speculation of `osier fuzz` sees a difference. It judges the bugs of the
    /// search for exits, and no other layer does.
    Speculation,
    /// The state oracle of native code sees a difference, or its process dies. It alone judges the
    /// bugs of native code.
    Native,
    /// The state oracle sees a difference. It judges the bugs of inlining, and of the interpreter's
    /// transitions into several activations.
    Frames,
    /// A forgery gets through. These judge the bugs of the checker on copies, and no other layer
    /// does.
    Forgeries,
}

impl Layer {
    pub(crate) const ALL: [Layer; 10] = [
        Layer::Editor,
        Layer::Verifier,
        Layer::Checker,
        Layer::State,
        Layer::Hops,
        Layer::Output,
        Layer::Speculation,
        Layer::Native,
        Layer::Frames,
        Layer::Forgeries,
    ];
    /// The layers that judge further programs until they kill a bug.
    pub(crate) const JUDGES: [Layer; 3] = [Layer::Checker, Layer::State, Layer::Output];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Layer::Editor => "editor",
            Layer::Verifier => "ssa",
            Layer::Checker => "checker",
            Layer::State => "state",
            Layer::Hops => "hops",
            Layer::Output => "output",
            Layer::Speculation => "spec",
            Layer::Native => "native",
            Layer::Frames => "frames",
            Layer::Forgeries => "forged",
        }
    }
}

type Judge = fn(&Program, &Made) -> bool;

/// The layers that run programs. A machine requires well-formed versions, so these layers detect
/// nothing in ill-formed versions.
pub(crate) const ORACLES: &[(Layer, Judge)] =
    &[(Layer::State, state), (Layer::Hops, hops), (Layer::Output, output)];

/// An entry that an oracle blames.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BlamedEntry {
    func: Func,
    /// The versions and their kind.
    key: (usize, usize, How),
    /// The side of the source version.
    side: usize,
    point: Point,
}

/// A part of a version pair that the checker rejects.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Part {
    /// All entries.
    Whole,
    /// An anchor: the entries near it are listed by themselves.
    Anchor(Inst),
    /// An entry: its source side and its source point.
    Entry(usize, Point),
}

/// The parts of version pairs that the checker rejects.
pub(crate) type Rejected = BTreeSet<(Func, (usize, usize, How), Part)>;

/// The parts of version pairs that the checker rejects.
pub(crate) fn checker(program: &Program, made: &Made) -> Rejected {
    let mut rejected = Rejected::new();
    for pair in made.families.iter().flat_map(|f| &f.pairs) {
        let parts = rejects(program, pair).into_iter();
        rejected.extend(parts.map(|part| (pair.case.func, pair.key, part)));
    }
    // An exit is composed of accepted entries, so it is as good as the pairs that it leads through.
    for family in made.families.iter().filter(|family| family.is_speculative) {
        let is_doubtful = rejected.iter().any(|(func, ..)| *func == family.func);
        let composed = family.pairs.iter().filter(|pair| is_doubtful && pair.certificate.is_none());
        rejected.extend(composed.map(|pair| (family.func, pair.key, Part::Whole)));
    }
    rejected
}

/// Whether an entry is among those that the checker rejects.
pub(crate) fn is_rejected(rejected: &Rejected, entry: &BlamedEntry) -> bool {
    let has = |part| rejected.contains(&(entry.func, entry.key, part));
    has(Part::Whole) || has(Part::Entry(entry.side, entry.point))
}

/// Whether the checker rejects the versions of another function that runs together with an entry.
/// Then the entry may be correct, and blamed for a difference that the other function made.
pub(crate) fn is_beside_refused(rejected: &Rejected, entry: &BlamedEntry) -> bool {
    let is_of_versions = |part: &Part| matches!(part, Part::Whole | Part::Anchor(_));
    rejected.iter().any(|(_, key, part)| *key == entry.key && is_of_versions(part))
}

/// The parts of a pair that the checker rejects.
fn rejects(program: &Program, pair: &Judged) -> Vec<Part> {
    let versions = pair.case.versions.as_ref();
    let Some((certificate, facts)) = &pair.certificate else {
        // The certifier panicked. An empty certificate still shows whether the versions are wrong,
        // since the checker looks at them first.
        let nothing = || VersionTerms {
            values: Vec::new(),
            memory: Vec::new(),
            writes: Vec::new(),
            ranges: Vec::new(),
        };
        let empty = Certificate {
            versions: [VersionKey::of(versions.before), VersionKey::of(versions.after)],
            terms: Vec::new(),
            sides: [nothing(), nothing()],
            anchors: Vec::new(),
        };
        let said = relate(&program.module, versions, &empty, Options::default()).err();
        let is_ill_formed = said.and_then(|v| v.finding()).is_some_and(|f| f.check == Check::Ssa);
        return is_ill_formed.then_some(Part::Whole).into_iter().collect();
    };
    let related = relate(&program.module, versions, certificate, Options::default());
    let Ok(relation) = related else { return vec![Part::Whole] };
    let mut rejected: Vec<Part> =
        relation.unproved().iter().map(|unproved| Part::Anchor(unproved.anchor)).collect();
    for side in Side::BOTH {
        let armed: Vec<_> = pair.armed[side.other()].iter().collect();
        let mapping = &pair.case.mappings[side];
        let verdicts = relation.judge(side, mapping, &facts[side], &armed);
        let entries = mapping.entries().zip(verdicts).filter(|(_, verdict)| !verdict.holds());
        rejected.extend(entries.map(|((point, _), _)| Part::Entry(side as usize, point)));
    }
    rejected
}

/// The entries that a run under the state oracle shows to be wrong.
pub(crate) fn blamed(program: &Program, made: &Made) -> BTreeSet<BlamedEntry> {
    let mut blamed = BTreeSet::new();
    for (key, pairs) in together(made).iter().filter(|_| !made.ill_formed) {
        let found = catch_unwind(AssertUnwindSafe(|| {
            let mut oracle =
                Oracle::new(&program.module, pairs, oracle_options(program, 0)).ok()?;
            program
                .arguments
                .iter()
                .for_each(|args| oracle.run(program.main, args, &CountingHost::default()));
            Some(oracle.report().divergences.clone())
        }));
        // An oracle that cannot be set up, or panics, blames no entry; `state` counts both as a
        // detected bug, and the matrix shows such a bug as detected by the state oracle.
        let divergences = found.ok().flatten().unwrap_or_default();
        for entry in divergences.into_iter().filter_map(|d| d.entry).filter(|e| e.visit.is_some()) {
            let func =
                program.module.func_named(&entry.function).expect("a function of the program");
            let side = usize::from(entry.direction == Side::After);
            blamed.insert(BlamedEntry { func, key: *key, side, point: entry.point });
        }
    }
    blamed
}

/// The mappings of all functions between two versions, to run together.
fn together(made: &Made) -> BTreeMap<(usize, usize, How), Vec<FunctionPair<'_>>> {
    let mut groups: BTreeMap<(usize, usize, How), Vec<FunctionPair<'_>>> = BTreeMap::new();
    for pair in made.families.iter().flat_map(|f| &f.pairs) {
        groups.entry(pair.key).or_default().push(pair.case.pair(pair.case.mappings.as_ref()));
    }
    groups
}

fn state(program: &Program, made: &Made) -> bool {
    !made.ill_formed
        && together(made).values().any(|pairs| {
            quietly(|| {
                let options = oracle_options(program, 0);
                let Ok(mut oracle) = Oracle::new(&program.module, pairs, options) else {
                    return true;
                };
                program
                    .arguments
                    .iter()
                    .for_each(|args| oracle.run(program.main, args, &CountingHost::default()));
                oracle.report().divergence_count > 0
            })
        })
}

fn hops(program: &Program, made: &Made) -> bool {
    if made.ill_formed {
        return false;
    }
    let parts: Vec<(Vec<&ir::Function>, Vec<Edge<'_>>)> = made.families.iter().map(parts).collect();
    let graphs: Vec<FunctionGraph<'_>> = made
        .families
        .iter()
        .zip(&parts)
        .map(|(family, (versions, edges))| FunctionGraph { func: family.func, versions, edges })
        .collect();
    let limits = Limits { fuel: 4 * (2 * program.steps + 1000), ..Limits::default() };
    quietly(|| {
        let options = HopOptions { limits, ..HopOptions::default() };
        let Ok(mut hopper) = Hopper::new(&program.module, &graphs, options) else { return true };
        program
            .arguments
            .iter()
            .for_each(|args| hopper.run(program.main, args, &CountingHost::default()));
        hopper.report().divergence_count > 0
    })
}

fn parts(family: &super::made::Family) -> (Vec<&ir::Function>, Vec<Edge<'_>>) {
    let edges =
        family.edges.iter().map(|(from, to, mapping)| Edge { from: *from, to: *to, mapping });
    (family.versions.iter().collect(), edges.collect())
}

fn output(program: &Program, made: &Made) -> bool {
    let cases = || made.families.iter().flat_map(|f| &f.pairs).map(|p| &p.case);
    !made.ill_formed
        && cases().any(|case| {
            quietly(|| {
                let fails = |side: Side| {
                    !output::killed(program, case, side, &case.mappings[side]).is_empty()
                };
                versions_differ(program, case) || Side::BOTH.into_iter().any(fails)
            })
        })
}

/// Whether the two versions of a case, run from the start, end otherwise for some arguments.
fn versions_differ(program: &Program, case: &Case) -> bool {
    let code = interp::Program::new(&program.module);
    let limits = oracle_options(program, 0).limits;
    program.arguments.iter().any(|args| {
        let checked = interp::Options { track_memory: true, ..interp::Options::traced() };
        let machine = Machine::with_options(&code, limits, checked);
        let mut machine = machine.expect("generated modules can be instantiated");
        let ids =
            case.versions.as_ref().map(|v| machine.add_version(&program.module, case.func, v));
        let Pair { before, after } = ids.map(|id| {
            let mut machine = machine.clone();
            machine.set_current(case.func, id);
            machine.start(program.main, args);
            let mut host = CountingHost::default();
            let outcome = output::finish(&mut machine, &mut host, ids, &case.mappings.after);
            (output::shown(&outcome), machine.memory_digest())
        });
        before != after
    })
}

/// The answer of a judge. `false` if it panics: a judge requires versions that fit its contract,
/// and a bug may break them.
fn quietly(judge: impl FnOnce() -> bool) -> bool {
    catch_unwind(AssertUnwindSafe(judge)).unwrap_or(false)
}
