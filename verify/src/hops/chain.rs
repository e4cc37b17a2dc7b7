//! One chain, from the start of a function to its end.

use super::choose::Choices;
use super::{Hop, HopDifference, HopExit, Hopper};
use crate::end::{EffectScope, RunEnd, is_exhausted};
use crate::waiting::Waiting;
use check::CheckedEntry;
use interp::{FireError, Host, Machine, NoObserver, Observer, Run, View, is_poison};
use ir::{Func, Inst, Point};

/// A chain that has ended.
#[derive(Debug)]
pub(super) struct Chain {
    pub(super) hops: Vec<Hop>,
    /// The end of the run, or the fault of its last hop.
    end: Result<RunEnd, HopDifference>,
}

impl Chain {
    /// Whether a limit of the machine ended the chain.
    pub(super) fn is_exhausted(&self) -> bool {
        self.end.as_ref().is_ok_and(|end| is_exhausted(&end.outcome))
    }

    /// The difference to the run without hops; `None` if they end alike, or if a limit ended the
    /// chain.
    pub(super) fn difference(&self, reference: &RunEnd) -> Option<HopDifference> {
        match &self.end {
            Err(difference) => Some(difference.clone()),
            Ok(end) if is_exhausted(&end.outcome) || end.same(reference) => None,
            Ok(end) => Some(HopDifference::End { expected: reference.text(), found: end.text() }),
        }
    }
}

impl Hopper<'_> {
    /// Runs a function on a copy of the machine `ready`, and hops as `choices` decide.
    pub(super) fn chain<H: Host + Clone>(
        &self,
        ready: &Machine,
        func: Func,
        args: &[u64],
        host: &H,
        mut choices: Choices<'_>,
    ) -> Chain {
        let (mut machine, mut host) = (ready.clone(), host.clone());
        let mut hops = Vec::new();
        // Whether the run stands at a landing point that has entries. The machine pauses before an
        // instruction it *reaches*. It does not pause for this visit, so the visit is counted here.
        let mut landed = false;
        machine.start(func, args);
        while let Some(wait) = choices.wait() {
            if !landed || wait > 0 {
                let mut waiting = Waiting::new(wait - u64::from(landed), |_: &View<'_>| true);
                if let Some(end) = self.continue_run(&mut machine, &mut host, &mut waiting) {
                    return Chain { hops, end };
                }
            }
            let (graph, inst, exits) = self.exits_here(&machine);
            // A chain that is replayed ends where the edge of its next hop has no entry: there is
            // no hop to take.
            let Some(exit) = choices.exit(exits) else { break };
            hops.push(self.graphs[graph].hop(exit.edge, wait, Point::before(inst), exit.entry));
            if let Err(difference) = fire(&mut machine, exit) {
                return Chain { hops, end: Err(difference) };
            }
            landed = !self.exits_here(&machine).2.is_empty();
        }
        // No hops are left: the run continues to its end in the version it is in.
        loop {
            if let Some(end) = self.continue_run(&mut machine, &mut host, &mut NoObserver) {
                return Chain { hops, end };
            }
        }
    }

    /// Runs until the observer pauses the run, which returns `None`, or to the end. Where an
    /// assumption fails, the run leaves for an earlier version and continues there. Without an
    /// entry to one, the run ends.
    fn continue_run<H: Host>(
        &self,
        machine: &mut Machine,
        host: &mut H,
        observer: &mut impl Observer,
    ) -> Option<Result<RunEnd, HopDifference>> {
        loop {
            let reason = match machine.run(host, observer) {
                Run::Done(outcome) => {
                    return Some(Ok(RunEnd::of(machine, outcome, EffectScope::All)));
                }
                Run::Paused | Run::Called { .. } => return None,
                Run::Failed { reason } => reason,
            };
            let Some((graph, exits)) = self.exits_at(machine) else {
                let outcome = machine.fail(reason);
                return Some(Ok(RunEnd::of(machine, outcome, EffectScope::All)));
            };
            // Earlier versions only, so that the run cannot alternate between two that both fail.
            let edges = self.graphs[graph].edges;
            let exit = exits.iter().find(|exit| edges[exit.edge].to < edges[exit.edge].from);
            let Some(exit) = exit else {
                let is_first = self.is_first(machine);
                let outcome = machine.fail(reason);
                let end = RunEnd::of(machine, outcome, EffectScope::All);
                return Some(Ok(if is_first { end } else { end.without_memory() }));
            };
            if let Err(difference) = fire(machine, exit) {
                return Some(Err(difference));
            }
        }
    }

    /// Whether the activation is in the first version of its function.
    fn is_first(&self, machine: &Machine) -> bool {
        let view = machine.view().expect("a chain is under way");
        machine.current(view.func()) == Some(view.version())
    }

    /// The entries at the point where the run is paused, with the index of the graph and the
    /// instruction.
    fn exits_here(&self, machine: &Machine) -> (usize, Inst, &[HopExit<'_>]) {
        let (graph, exits) =
            self.exits_at(machine).expect("a chain waits in a version that has exits");
        (graph, machine.view().expect("a chain is under way").inst(), exits)
    }

    /// The entries at the point where the run is paused, with the index of the graph; `None` in a
    /// function without a graph.
    fn exits_at(&self, machine: &Machine) -> Option<(usize, &[HopExit<'_>])> {
        let view = machine.view().expect("a chain is under way");
        let exits = self.exits.get(view.version().as_u32() as usize)?.as_ref()?;
        Some((exits.graph, exits.at(view.inst())))
    }
}

/// Fires an entry: runs its compensation code on the activation, and continues in the target
/// version.
fn fire(machine: &mut Machine, exit: &HopExit<'_>) -> Result<(), HopDifference> {
    let view = machine.view().expect("a chain is under way");
    // Tested before firing, so that the report names the required value instead of a wrong end
    // later.
    let undefined = exit.entry.requires.iter().find(|v| is_undefined(view.value(**v)));
    if let Some(value) = undefined {
        return Err(HopDifference::Undefined { value: *value });
    }
    let [source, target] = [view.version(), exit.to].map(|version| machine.code(version).key());
    let point = Point::before(view.inst());
    let entry = CheckedEntry::unproved(source, target, point, exit.entry);
    machine.fire(exit.to, entry).map(drop).map_err(|error| match error {
        FireError::Code(fault) => HopDifference::Compensation(fault.to_string()),
        error => HopDifference::Refused(error.to_string()),
    })
}

/// The largest number of slots of a frame whose poison [`is_undefined`] distinguishes from values
/// that a program computes.
const MAX_SLOTS: u64 = 1 << 20;

/// Whether these bits are the poison of a slot to which nothing was written. Random bits look like
/// poison once in 2^44 times, because the number of slots is limited.
fn is_undefined(bits: u64) -> bool {
    is_poison(bits) && (bits & 0xffff_ffff) < MAX_SLOTS
}
