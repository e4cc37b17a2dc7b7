//! Runs in which transitions are really made, where a switch says.
//!
//! The state oracle compares states and, but for a sample, makes no transition. A stress switch
//! makes them: at every visit of the n-th mapped point (`at_static`), at the n-th visit of any
//! (`at_dynamic`), at every n-th visit (`every`). A run starts in the version before and changes
//! sides at each; frames it enters hold poison in all that the entry does not provide. It must end
//! as the run that stayed.
//!
//! An entry may lead back within the gap between two anchors, so a run that moved at every point
//! could move forever. After a transition the next one is not made before an anchor has been
//! executed: anchors are executed in the same order by both versions, so the run goes on.

use super::case::Case;
use super::figures::Figures;
use super::judge::hop_limits;
use super::oracle::{Finding, Oracle};
use check::CheckedEntry;
use interp::{
    Control, Machine, Observer, Options, Outcome, Program, Run, Scope, TraceLevel, VersionId, View,
};
use ir::{Func, Inst, Module, Point};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use transition::mapping::{Entry, Mapping};
use verify::prng::Prng;
use verify::state_oracle::FunctionPair;

/// Where transitions are made in any case. None is the usual.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stress {
    /// At every visit of a mapped point whose number is a multiple of this.
    pub every: Option<u64>,
    /// At every visit of the mapped point with this number, counted from 1 over the functions of a
    /// pair of versions in order, first those of the version before.
    pub at_static: Option<u64>,
    /// At the visit of a mapped point with this number, counted from 1 over a run.
    pub at_dynamic: Option<u64>,
    /// Decides at which visit counting starts, below the number of `every`; without it, at the
    /// first.
    pub seed: Option<u64>,
}

impl Stress {
    /// Whether any switch is on.
    pub fn is_on(&self) -> bool {
        self.every.is_some() || self.at_static.is_some() || self.at_dynamic.is_some()
    }

    /// Whether a transition is made at a visit of this number, at a point of this number.
    pub(super) fn fires(&self, visit: u64, point: u64, offset: u64) -> bool {
        self.every.is_some_and(|n| n > 0 && (visit + offset).is_multiple_of(n))
            || self.at_static == Some(point)
            || self.at_dynamic == Some(visit)
    }

    /// By how much counting for `every` is shifted in a run.
    pub(super) fn offset(&self, run: u64) -> u64 {
        match (self.every, self.seed) {
            (Some(every @ 1..), Some(seed)) => Prng::new(seed).fork(run).next_u64() % every,
            _ => 0,
        }
    }
}

impl fmt::Display for Stress {
    /// The options of the command that say the same, each with a blank before it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let switches = [
            ("--osr-every", self.every),
            ("--osr-at-static", self.at_static),
            ("--osr-at-dynamic", self.at_dynamic),
            ("--stress-seed", self.seed),
        ];
        for (name, number) in switches {
            if let Some(number) = number {
                write!(f, " {name} {number}")?;
            }
        }
        Ok(())
    }
}

/// The versions in one machine, and what may be done where.
struct Sides<'m> {
    /// By version, in order of their ids in the machine: the other version and the mapping to it.
    leaving: BTreeMap<VersionId, (VersionId, &'m Mapping)>,
    /// The numbers of mapped points.
    numbers: BTreeMap<(VersionId, Inst), u64>,
    /// The anchors of each version.
    anchors: BTreeMap<VersionId, &'m BTreeSet<Inst>>,
}

impl<'m> Sides<'m> {
    /// Adds the versions to a machine, with every mapped point marked. New activations run the
    /// version before.
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

/// Pauses where a transition is due.
struct Watcher<'s, 'm> {
    sides: &'s Sides<'m>,
    stress: Stress,
    offset: u64,
    /// Visits of mapped points at which a transition could be made.
    visits: u64,
    /// Whether no anchor has been executed since the last transition.
    waits: bool,
}

impl Watcher<'_, '_> {
    fn is_anchor(&self, version: VersionId, inst: Inst) -> bool {
        self.sides.anchors[&version].contains(&inst)
    }
}

impl Observer for Watcher<'_, '_> {
    const SCOPE: Scope = Scope::Marked;

    fn before(&mut self, view: &View<'_>, inst: Inst) -> Control {
        // At the anchor itself it has not been executed.
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

/// How a run ended, without where: an instruction that traps may have moved.
#[derive(PartialEq, Eq)]
struct End {
    how: String,
    memory: u64,
    effects: (u64, u64),
}

impl End {
    fn of(machine: &Machine, outcome: &Outcome) -> End {
        let how = match outcome {
            Outcome::Trapped { kind, .. } => format!("trap {kind}"),
            Outcome::Left { point, values, .. } => format!("left at {point} with {values:?}"),
            outcome => outcome.to_string(),
        };
        End {
            how,
            memory: machine.memory_digest(),
            effects: (machine.trace().count(), machine.trace().digest()),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "[{}; memory {:#x}; {} effects, {:#x}]",
            self.how, self.memory, self.effects.0, self.effects.1
        )
    }
}

/// Makes the transitions that the switches of the case ask for, between two versions of every
/// function.
pub(super) fn run(
    case: &Case,
    module: &Module,
    versions: (usize, usize),
    pairs: &[FunctionPair<'_>],
    figures: &mut Figures,
) -> Result<(), Vec<Finding>> {
    let finding = |message: String| vec![Finding { oracle: Oracle::Hops, versions, message }];
    let options = Options { poison: true, track_memory: true, trace: TraceLevel::Digest };
    let mut pristine = Machine::with_options(&Program::new(module), hop_limits(case), options)
        .map_err(|e| finding(e.to_string()))?;
    let sides = Sides::new(&mut pristine, module, pairs);
    for (number, args) in (0..).zip(&case.arguments) {
        let stayed = end_of(&pristine, case, args, None)?;
        let watcher = Watcher {
            sides: &sides,
            stress: case.stress,
            offset: case.stress.offset(number),
            visits: 0,
            waits: false,
        };
        let mut chain = Chain { watcher, hops: Vec::new() };
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
            return Err(finding(chain.told(module, args, &stayed, &hopped)));
        }
    }
    Ok(())
}

/// A run with transitions.
struct Chain<'s, 'm> {
    watcher: Watcher<'s, 'm>,
    /// Where each transition was made: the function, the version left, the point.
    hops: Vec<(Func, VersionId, Point)>,
}

impl Chain<'_, '_> {
    /// Makes the transition at which the machine has paused.
    fn hop(&mut self, machine: &mut Machine) -> Result<(), String> {
        let view = machine.view().expect("the run is paused");
        let (version, func, point) = (view.version(), view.func(), Point::before(view.inst()));
        let (to, mapping) = self.watcher.sides.leaving[&version];
        let entry: &Entry = mapping.entry(point).expect("only mapped points have a number");
        let keys = (mapping.source(), mapping.target());
        machine.fire(to, CheckedEntry::unproved(keys, point, entry)).map_err(|e| e.to_string())?;
        // An anchor that the run lands at is executed next, unasked.
        self.watcher.waits = !self.watcher.is_anchor(to, entry.target.inst());
        self.hops.push((func, version, point));
        Ok(())
    }

    fn told(&self, module: &Module, args: &[u64], stayed: &End, hopped: &End) -> String {
        const SHOWN: usize = 20;
        let args: Vec<String> = args.iter().map(|bits| format!("{bits:#x}")).collect();
        let hop = |(func, version, point): &(Func, VersionId, Point)| {
            format!("  @{} {version} {}\n", module.funcs[*func].name, point.inst())
        };
        let hops: String = self.hops.iter().take(SHOWN).map(hop).collect();
        let more = if self.hops.len() > SHOWN { "  ...\n" } else { "" };
        let count = self.hops.len();
        format!(
            "  the run ends in {hopped}; without transitions in {stayed}\n  on input ({})\n  {count} transitions:\n{hops}{more}",
            args.join(", ")
        )
    }
}

/// Runs the start function and the entry, with transitions or without; `None` when a limit ended
/// the run.
fn end_of(
    pristine: &Machine,
    case: &Case,
    args: &[u64],
    mut chain: Option<&mut Chain<'_, '_>>,
) -> Result<Option<End>, Vec<Finding>> {
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
                (Run::Called { .. }, _) => unreachable!("no function runs elsewhere"),
                (Run::Paused, Some(chain)) => chain.hop(&mut machine).map_err(|message| {
                    vec![Finding { oracle: Oracle::Hops, versions: (0, 0), message }]
                })?,
                (Run::Paused, None) => {}
            }
        };
    }
    let exhausted = matches!(outcome, Outcome::OutOfFuel(_) | Outcome::StackOverflow(_));
    Ok((!exhausted).then(|| End::of(&machine, &outcome)))
}
