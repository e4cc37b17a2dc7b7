//! One chain, from the start of a function to its end.

use super::choose::Choices;
use super::{Exit, Hop, HopDifference, Hopper};
use crate::end::{End, is_exhausted};
use check::CheckedEntry;
use interp::{
    Control, FireError, Host, Machine, NoObserver, Observer, Run, Scope, View, is_poison,
};
use ir::{Func, Inst, Point};

/// What became of a chain.
#[derive(Debug)]
pub(super) struct Chain {
    pub(super) hops: Vec<Hop>,
    /// How it ended, or what was wrong with its last hop.
    end: Result<End, HopDifference>,
}

impl Chain {
    /// Whether a limit of the machine ended it.
    pub(super) fn is_exhausted(&self) -> bool {
        self.end.as_ref().is_ok_and(|end| is_exhausted(&end.outcome))
    }

    /// In what it differs from the run without hops.
    pub(super) fn difference(&self, reference: &End) -> Option<HopDifference> {
        match &self.end {
            Err(difference) => Some(difference.clone()),
            Ok(end) if is_exhausted(&end.outcome) || end.same(reference) => None,
            Ok(end) => Some(HopDifference::End { expected: reference.text(), found: end.text() }),
        }
    }
}

impl Hopper<'_> {
    /// Runs a function from a machine that is ready, hopping as is chosen.
    pub(super) fn chain<H: Host + Clone>(
        &self,
        ready: &Machine,
        (func, args): (Func, &[u64]),
        host: &H,
        mut choices: Choices<'_>,
    ) -> Chain {
        let (mut machine, mut host) = (ready.clone(), host.clone());
        let mut hops = Vec::new();
        // Whether the run stands where it landed, and an entry leaves there: a visit like any
        // other.
        let mut landed = false;
        machine.start(func, args);
        while let Some(wait) = choices.wait() {
            if !landed || wait > 0 {
                let mut waiting = Waiting { left: wait - u64::from(landed) };
                if let Run::Done(outcome) = machine.run(&mut host, &mut waiting) {
                    return Chain { hops, end: Ok(End::of(&machine, outcome)) };
                }
            }
            let (graph, inst, exits) = self.exits_here(&machine);
            let Some(exit) = choices.exit(exits) else { break };
            hops.push(self.graphs[graph].hop(exit.edge, wait, Point::before(inst), exit.entry));
            if let Err(difference) = fire(&mut machine, exit) {
                return Chain { hops, end: Err(difference) };
            }
            landed = !self.exits_here(&machine).2.is_empty();
        }
        let outcome = loop {
            if let Run::Done(outcome) = machine.run(&mut host, &mut NoObserver) {
                break outcome;
            }
        };
        Chain { hops, end: Ok(End::of(&machine, outcome)) }
    }

    /// What leaves the point where a run waits, with its graph and instruction.
    fn exits_here(&self, machine: &Machine) -> (usize, Inst, &[Exit<'_>]) {
        let view = machine.view().expect("a chain is under way");
        let exits = self.exits[view.version().as_u32() as usize].as_ref();
        let exits = exits.expect("a chain waits in a version that has exits");
        (exits.graph, view.inst(), exits.at(view.inst()))
    }
}

/// Takes an entry: runs its compensation code on the activation, and goes on in the other version.
fn fire(machine: &mut Machine, exit: &Exit<'_>) -> Result<(), HopDifference> {
    let view = machine.view().expect("a chain is under way");
    let undefined = exit.entry.requires.iter().find(|v| is_undefined(view.value(**v)));
    if let Some(value) = undefined {
        return Err(HopDifference::Undefined { value: *value });
    }
    let keys = (machine.code(view.version()).key(), machine.code(exit.to).key());
    let entry = CheckedEntry::unproved(keys, Point::before(view.inst()), exit.entry);
    machine.fire(exit.to, entry).map(drop).map_err(|error| match error {
        FireError::Code(fault) => HopDifference::Compensation(fault.to_string()),
        error => HopDifference::Refused(error.to_string()),
    })
}

/// Slots that a frame may have for its poison to be told from what a program computes.
const MAX_SLOTS: u64 = 1 << 20;

/// Whether bits are what a slot holds that nothing was written to. Random bits of a program look
/// like it once in 2^44 times: that is why slots are limited.
fn is_undefined(bits: u64) -> bool {
    is_poison(bits) && (bits & 0xffff_ffff) < MAX_SLOTS
}

/// Lets visits of points with entries pass, then pauses.
struct Waiting {
    left: u64,
}

impl Observer for Waiting {
    const SCOPE: Scope = Scope::Marked;

    fn before(&mut self, _view: &View<'_>, _inst: Inst) -> Control {
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                Control::Continue
            }
            None => Control::Pause,
        }
    }
}
