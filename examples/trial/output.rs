//! The output oracle: fires an entry at the first visit of its source point, and compares only the
//! end of the run.

use super::cases::{self, Case};
use check::CheckedEntry;
use interp::{
    Control, Machine, NoObserver, Observer, Options, Outcome, Program, Run, Scope, VersionId, View,
};
use ir::{Inst, Point};
use std::collections::BTreeSet;
use transition::mapping::Mapping;
use transition::{Pair, Side};
use verify::generate::{CountingHost, Program as Generated};

/// Pauses at every marked point.
struct Stop;

impl Observer for Stop {
    const SCOPE: Scope = Scope::Marked;

    fn before(&mut self, _view: &View<'_>, _inst: Inst) -> Control {
        Control::Pause
    }
}

/// The source points of a case's mapping whose entry changes the end of a run. All other functions
/// run as they are in the module.
pub(crate) fn killed(
    program: &Generated,
    case: &Case,
    side: Side,
    mapping: &Mapping,
) -> BTreeSet<Point> {
    let mut killed = BTreeSet::new();
    let code = Program::new(&program.module);
    let limits = cases::oracle_options(program, 0).limits;
    let checked = Options { poison: true, track_memory: true, ..Options::traced() };
    for args in &program.arguments {
        let machine = Machine::with_options(&code, limits, checked);
        let mut machine = machine.expect("generated modules can be instantiated");
        let ids: Pair<_> =
            case.versions.as_ref().map(|v| machine.add_version(&program.module, case.func, v));
        machine.set_current(case.func, ids[side]);
        let mut plain = machine.clone();
        plain.start(program.main, args);
        let expected = finish(&mut plain, &mut CountingHost::default(), ids, &case.mappings.after);
        let expected = (shown(&expected), plain.memory_digest());
        machine.mark(ids[side], mapping.entries().map(|(point, _)| point.inst()));
        machine.start(program.main, args);
        let (mut tried, mut host) = (BTreeSet::new(), CountingHost::default());
        while let Run::Paused = machine.run(&mut host, &mut Stop) {
            let view = machine.view().expect("a paused machine has an activation");
            let point = Point::before(view.inst());
            let Some(entry) = mapping.entry(point).filter(|_| tried.insert(point)) else {
                continue;
            };
            let mut other = machine.clone();
            let (source, target) = (mapping.source(), mapping.target());
            let entry = CheckedEntry::unproved(source, target, point, entry);
            if other.fire(ids[side.other()], entry).is_err() {
                killed.insert(point);
                continue;
            }
            let ended = finish(&mut other, &mut host.clone(), ids, &case.mappings.after);
            if (shown(&ended), other.memory_digest()) != expected {
                killed.insert(point);
            }
        }
    }
    killed
}

/// Runs to the end. Where an assumption of the version after fails, the run leaves by its entry to
/// the version before.
pub(crate) fn finish(
    machine: &mut Machine,
    host: &mut CountingHost,
    ids: Pair<VersionId>,
    exits: &Mapping,
) -> Outcome {
    loop {
        match machine.run(host, &mut NoObserver) {
            Run::Done(outcome) => return outcome,
            Run::Paused | Run::Called { .. } => {}
            Run::Failed { reason } => {
                let view = machine.view().expect("a failed run is paused");
                let (version, point) = (view.version(), Point::before(view.inst()));
                let entry = exits.entry(point).filter(|_| version == ids.after);
                let (source, target) = (exits.source(), exits.target());
                let left = entry.is_some_and(|entry| {
                    let entry = CheckedEntry::unproved(source, target, point, entry);
                    machine.fire(ids.before, entry).is_ok()
                });
                if !left {
                    return machine.fail(reason);
                }
            }
        }
    }
}

/// The end of a run, without its place.
pub(crate) fn shown(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Trapped { kind, operand: None, .. } => format!("trap: {kind}"),
        Outcome::Trapped { kind, operand: Some(bits), .. } => format!("trap: {kind} with {bits}"),
        other => other.to_string(),
    }
}
