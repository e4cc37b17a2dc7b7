//! Machines with native code, and the interpreter beside them; rows, and interpreted runs that
//! enter them at their landings.

use interp::{
    Control, Limits, Machine, NoHost, NoObserver, Observer, Options, Outcome, Program, Run, Scope,
    TraceLevel, VersionId, View,
};
use ir::{Func, Inst, Module, Point};
use osier::jit::{Config, Engine, RunError, Vm};
use osier::landing::{LandingCode, LandingRow};
use osier::tiers::{self, Tiered};
use passes::parse;
use std::collections::BTreeMap;
use std::sync::Arc;
use verify::prng::Prng;

/// The visits after which a place is hot in these tests.
const HOT: u32 = 10;

/// An engine of this host.
pub(super) fn engine(config: Config) -> Engine {
    Engine::new(config).expect("the tests run where native code does")
}

/// A machine with native code, which has no policy yet.
pub(super) fn native(module: &Arc<Module>, config: Config) -> Vm {
    let vm = Vm::new(&engine(config), module, Limits::default(), Options::default());
    vm.expect("it is instantiated")
}

/// A policy that compiles early, with `O2`.
pub(super) fn policy<O: tiers::Observer>(observer: O) -> Tiered<O> {
    Tiered::new_observed(HOT, parse("O2").expect("a pipeline"), observer)
}

/// Calls a function of a machine once for each list of arguments. Each call must return the
/// interpreter's results, and leave the interpreter's memories.
///
/// # Errors
/// If the native run fails, for example without room for code.
pub(super) fn compared(vm: &mut Vm, func: Func, arguments: &[&[u64]]) -> Result<(), RunError> {
    let mut plain = Machine::new(vm.module(), Limits::default()).expect("it is instantiated");
    for args in arguments {
        let wanted = plain.invoke(func, args, &mut NoHost, &mut NoObserver);
        assert!(matches!(wanted, Outcome::Returned(_)), "{wanted}");
        assert_eq!(vm.invoke(func, args, &mut NoHost)?, wanted, "{args:?}");
        let memories = [vm.machine(), &plain].map(Machine::computed_memory_digest);
        assert_eq!(memories[0], memories[1], "{args:?}");
    }
    Ok(())
}

/// The rows of one landing, each with its version in a machine.
pub(crate) struct Rows {
    pub(crate) func: Func,
    pub(crate) code: LandingCode,
    pub(crate) rows: Vec<LandingRow>,
}

/// Pauses before landings of bases, now and then.
struct AtLandings<'t> {
    tables: &'t [Rows],
    bases: BTreeMap<Func, VersionId>,
    prng: Prng,
    often: u32,
}

impl Observer for AtLandings<'_> {
    const SCOPE: Scope = Scope::Everything;

    fn before(&mut self, view: &View<'_>, inst: Inst) -> Control {
        let at = (view.func(), Point::before(inst));
        let is_base = self.bases.get(&at.0) == Some(&view.version());
        let is_landing = || self.tables.iter().any(|rows| (rows.func, rows.code.at()) == at);
        match is_base && is_landing() && self.prng.below(self.often) == 0 {
            true => Control::Pause,
            false => Control::Continue,
        }
    }
}

/// What a run through tables did.
#[derive(Default, Debug)]
pub(crate) struct Hops {
    pub(crate) entered: u64,
    pub(crate) left: u64,
    /// The exits that lead to frame states.
    pub(crate) handed: u64,
}

/// Poison: a value outside the provided values differs from activation to activation.
const OPTIONS: Options = Options { trace: TraceLevel::Digest, track_memory: true, poison: true };

/// The instructions of a run. A run through tables repeats few.
pub(crate) const FUEL: u64 = 400_000;

pub(crate) fn machine(program: &Program) -> Machine {
    let limits = Limits { fuel: FUEL, ..Limits::default() };
    Machine::with_options(program, limits, OPTIONS).expect("it is instantiated")
}

/// Runs a function, and enters a random row at one of `often` visits of a landing. A run leaves a
/// row where an assumption fails.
pub(crate) fn run(
    module: &Module,
    program: &Program,
    tables: &[Rows],
    entry: Func,
    args: &[u64],
    prng: Prng,
    often: u32,
) -> (Outcome, Machine, Hops) {
    let mut machine = machine(program);
    let bases: BTreeMap<Func, VersionId> = module
        .defined()
        .map(|(func, _)| (func, machine.current(func).expect("it has a body")))
        .collect();
    let mut of_version: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
    let mut versions: BTreeMap<(usize, usize), VersionId> = BTreeMap::new();
    for (table, rows) in tables.iter().enumerate() {
        for (row, made) in rows.rows.iter().enumerate() {
            let id = machine.add_rest(module, rows.func, &made.function);
            of_version.insert(id.as_u32(), (table, row));
            versions.insert((table, row), id);
        }
    }
    let mut observer = AtLandings { tables, bases: bases.clone(), prng, often };
    let mut hops = Hops::default();
    machine.start(entry, args);
    let outcome = loop {
        match machine.run(&mut NoHost, &mut observer) {
            Run::Done(outcome) => break outcome,
            Run::Paused => {
                let view = machine.view().expect("the run is paused");
                let at = (view.func(), Point::before(view.inst()));
                let table = tables.iter().position(|rows| (rows.func, rows.code.at()) == at);
                let table = table.expect("it pauses at landings");
                let row = observer.prng.below(tables[table].rows.len() as u32) as usize;
                let entry = tables[table].rows[row].enter.checked_entry(at.1).expect("a row");
                machine.fire(versions[&(table, row)], entry).expect("a row is entered");
                hops.entered += 1;
            }
            Run::Failed { .. } => {
                let view = machine.view().expect("a failed run is paused");
                let (table, row) = of_version[&view.version().as_u32()];
                let row = &tables[table].rows[row];
                // With frame states, a run leaves in the place of the assumption or at a state.
                let hand = row.hand.as_ref().filter(|_| observer.prng.below(2) == 0);
                hops.handed += u64::from(hand.is_some());
                let exit = hand.unwrap_or(&row.back).checked_entry(Point::before(view.inst()));
                let base = bases[&tables[table].func];
                machine.fire(base, exit.expect("each has an exit")).expect("an exit fires");
                hops.left += 1;
            }
            Run::Called { .. } => unreachable!("nothing is external"),
        }
    };
    (outcome, machine, hops)
}
