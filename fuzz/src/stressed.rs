//! Runs that make transitions wherever a stress switch demands one.
//!
//! The state oracle compares states and makes only a sample of the transitions. A stress switch
//! makes all demanded transitions: at every visit of the n-th mapped point (`at_static`), at the
//! n-th visit of any mapped point (`at_dynamic`), or at every n-th visit (`every`). A run starts in
//! the version before and changes versions at each transition. The new frame holds poison in all
//! values that the entry does not provide. The run must end like the run without transitions.
//!
//! An entry may land earlier in the same gap, so a run with a transition at every point could
//! alternate forever. After a transition the next one therefore waits until the run has executed an
//! anchor. Both versions execute anchors in the same order, so the run makes progress.

use super::case::Case;
use super::figures::StressFigures;
use super::oracle::{FuzzFinding, FuzzOracle};
use super::stress::Stress;
use check::CheckedEntry;
use interp::{
    Control, Machine, Observer, Options, Outcome, Program, Run, Scope, TraceLevel, VersionId, View,
};
use ir::{Func, Inst, Module, Point};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use transition::mapping::{Entry, Mapping};
use verify::state_oracle::FunctionPair;

/// The versions in one machine, and the mapped points and anchors of each.
struct Sides<'m> {
    /// For each version, the other version and the mapping to it. The order of ids in the machine
    /// determines the numbers of points.
    leaving: BTreeMap<VersionId, (VersionId, &'m Mapping)>,
    /// The number of each mapped point.
    numbers: BTreeMap<(VersionId, Inst), u64>,
    /// The anchors of each version.
    anchors: BTreeMap<VersionId, &'m BTreeSet<Inst>>,
}

impl<'m> Sides<'m> {
    /// Adds the versions to a machine and marks every mapped point and anchor. New activations run
    /// the version before.
    fn new(machine: &mut Machine, module: &Module, pairs: &[FunctionPair<'m>]) -> Sides<'m> {
        let mut sides =
            Sides { leaving: BTreeMap::new(), numbers: BTreeMap::new(), anchors: BTreeMap::new() };
        for pair in pairs {
            let ids = [pair.before, pair.after]
                .map(|version| machine.add_version(module, pair.func, version));
            machine.set_current(pair.func, ids[0]);
            for id in ids {
                sides.anchors.insert(id, pair.anchors);
                machine.mark(id, pair.anchors.iter().copied());
            }
            sides.leaving.insert(ids[0], (ids[1], pair.forward));
            sides.leaving.insert(ids[1], (ids[0], pair.backward));
        }
        for (version, (_, mapping)) in &sides.leaving {
            machine.mark(*version, mapping.entries().map(|(point, _)| point.inst()));
        }
        let points = sides
            .leaving
            .iter()
            .flat_map(|(v, (_, m))| m.entries().map(|(point, _)| (*v, point.inst())));
        sides.numbers = points.zip(1..).collect();
        sides
    }
}

/// An observer that pauses the run where a transition is due.
struct StressWatcher<'s, 'm> {
    sides: &'s Sides<'m>,
    stress: Stress,
    offset: u64,
    /// The number of visits of mapped points at which a transition was permitted.
    visits: u64,
    /// Whether the run has executed no anchor since the last transition.
    waits: bool,
}

impl StressWatcher<'_, '_> {
    fn is_anchor(&self, version: VersionId, inst: Inst) -> bool {
        self.sides.anchors[&version].contains(&inst)
    }
}

impl Observer for StressWatcher<'_, '_> {
    const SCOPE: Scope = Scope::Marked;

    fn before(&mut self, view: &View<'_>, inst: Inst) -> Control {
        // Before the anchor the run has not executed it yet, so a transition at the anchor itself
        // still waits.
        let waited = self.waits;
        self.waits &= !self.is_anchor(view.version(), inst);
        let number = self.sides.numbers.get(&(view.version(), inst)).filter(|_| !waited);
        let Some(number) = number else { return Control::Continue };
        self.visits += 1;
        match self.stress.fires(self.visits, *number, self.offset) {
            true => Control::Pause,
            false => Control::Continue,
        }
    }
}

/// The end of a run without its place: an instruction that traps may have moved.
#[derive(PartialEq, Eq)]
struct ComparedEnd {
    how: String,
    memory: u64,
    effects: (u64, u64),
}

impl ComparedEnd {
    fn of(machine: &Machine, outcome: &Outcome) -> ComparedEnd {
        let how = match outcome {
            Outcome::Trapped { kind, operand, .. } => format!("trap {kind} {operand:?}"),
            Outcome::Left { point, values, .. } => format!("left at {point} with {values:?}"),
            outcome => outcome.to_string(),
        };
        ComparedEnd {
            how,
            memory: machine.memory_digest(),
            effects: (machine.trace().count(), machine.trace().digest()),
        }
    }
}

impl fmt::Display for ComparedEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "[{}; memory {:#x}; {} effects, {:#x}]",
            self.how, self.memory, self.effects.0, self.effects.1
        )
    }
}

/// Runs the case on each input with the transitions that its switches demand, between two versions
/// of every function.
///
/// # Errors
/// If an entry does not fit the version, or a run ends differently from the run without
/// transitions.
pub(super) fn run(
    case: &Case,
    module: &Module,
    versions: [usize; 2],
    pairs: &[FunctionPair<'_>],
    figures: &mut StressFigures,
) -> Result<(), Vec<FuzzFinding>> {
    let finding =
        |message: String| vec![FuzzFinding { oracle: FuzzOracle::Hops, versions, message }];
    let options = Options { poison: true, track_memory: true, trace: TraceLevel::Digest };
    let mut pristine = Machine::with_options(&Program::new(module), case.hop_limits(), options)
        .map_err(|e| finding(e.to_string()))?;
    pristine.stress_collector(case.options.stress_gc);
    let sides = Sides::new(&mut pristine, module, pairs);
    for (number, args) in (0..).zip(&case.arguments) {
        let stayed = end_of(&pristine, case, args, None)?;
        let watcher = StressWatcher {
            sides: &sides,
            stress: case.options.stress,
            offset: case.options.stress.offset(number),
            visits: 0,
            waits: false,
        };
        let mut chain = StressedRun { watcher, hops: Vec::new() };
        let hopped = end_of(&pristine, case, args, Some(&mut chain)).map_err(|mut e| {
            e.iter_mut().for_each(|f| f.versions = versions);
            e
        })?;
        figures.stressed += 1;
        figures.stress_hops += chain.hops.len() as u64;
        let (Some(stayed), Some(hopped)) = (stayed, hopped) else {
            figures.stressed_exhausted += 1;
            continue;
        };
        if stayed != hopped {
            return Err(finding(chain.described(module, args, &stayed, &hopped)));
        }
    }
    Ok(())
}

/// A run with transitions.
struct StressedRun<'s, 'm> {
    watcher: StressWatcher<'s, 'm>,
    /// The function, the source version and the source point of each transition.
    hops: Vec<(Func, VersionId, Point)>,
}

impl StressedRun<'_, '_> {
    /// Makes the transition at which the machine has paused.
    ///
    /// # Errors
    /// If the machine rejects the entry.
    fn hop(&mut self, machine: &mut Machine) -> Result<(), String> {
        let view = machine.view().expect("the run is paused");
        let (version, func, point) = (view.version(), view.func(), Point::before(view.inst()));
        let (to, mapping) = self.watcher.sides.leaving[&version];
        let entry: &Entry = mapping.entry(point).expect("only mapped points have a number");
        let claimed = CheckedEntry::unproved(mapping.source(), mapping.target(), point, entry);
        machine.fire(to, claimed).map_err(|e| e.to_string())?;
        // If the run lands at an anchor, it executes that anchor next without a pause.
        self.watcher.waits = !self.watcher.is_anchor(to, entry.target.inst());
        self.hops.push((func, version, point));
        Ok(())
    }

    fn described(
        &self,
        module: &Module,
        args: &[u64],
        stayed: &ComparedEnd,
        hopped: &ComparedEnd,
    ) -> String {
        const SHOWN: usize = 20;
        let args: Vec<String> = args.iter().map(|bits| format!("{bits:#x}")).collect();
        let hop = |(func, version, point): &(Func, VersionId, Point)| {
            format!("  @{} {version} {}\n", module.funcs[*func].name, point.inst())
        };
        let hops: String = self.hops.iter().take(SHOWN).map(hop).collect();
        let more = if self.hops.len() > SHOWN { "  ...\n" } else { "" };
        let count = self.hops.len();
        format!(
            "  the run ends in {hopped}; the run without transitions ends in {stayed}\n  on input ({})\n  {count} transitions:\n{hops}{more}",
            args.join(", ")
        )
    }
}

/// The end of a run of the start function and the entry, with transitions or without. `None` if a
/// limit ended the run.
///
/// # Errors
/// If the machine rejects an entry.
fn end_of(
    pristine: &Machine,
    case: &Case,
    args: &[u64],
    mut chain: Option<&mut StressedRun<'_, '_>>,
) -> Result<Option<ComparedEnd>, Vec<FuzzFinding>> {
    let (mut machine, mut world) = (pristine.clone(), case.world.clone());
    let start = machine.start_function().map(|start| (start, [].as_slice()));
    let mut outcome = Outcome::Returned(Vec::new());
    for (func, args) in start.into_iter().chain([(case.entry, args)]) {
        if outcome.returned().is_none() {
            break;
        }
        machine.start(func, args);
        outcome = loop {
            let run = match &mut chain {
                Some(chain) => machine.run(&mut world, &mut chain.watcher),
                None => machine.run(&mut world, &mut interp::NoObserver),
            };
            match (run, &mut chain) {
                (Run::Done(outcome), _) => break outcome,
                (Run::Failed { reason }, _) => break machine.fail(reason),
                (Run::Called { .. }, _) => unreachable!("no function runs elsewhere"),
                (Run::Paused, Some(chain)) => chain.hop(&mut machine).map_err(|message| {
                    vec![FuzzFinding { oracle: FuzzOracle::Hops, versions: [0, 0], message }]
                })?,
                (Run::Paused, None) => {}
            }
        };
    }
    let exhausted = matches!(outcome, Outcome::OutOfFuel(_) | Outcome::StackOverflow(_));
    Ok((!exhausted).then(|| ComparedEnd::of(&machine, &outcome)))
}
