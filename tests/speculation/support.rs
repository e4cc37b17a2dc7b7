//! Versions that assume, and runs of them. Wherever an assumption fails, the run continues by the
//! exit.

use interp::{
    Limits, Machine, NoHost, NoObserver, Options, Outcome, Program, Run, TraceLevel, View,
};
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::text::parse_module;
use ir::{Func, Function, Inst, Module, Point, Value};
use osier::jit::{Action, Engine, VersionSpec, Vm};
use osier::osr::VersionTree;
use osier::speculate::{Assumption, Plan, SpeculateError, Speculative, speculate};
use passes::Pipeline;
use std::sync::Arc;

const STEPS: u64 = 200_000;

/// Poison: a value outside the provided values differs from activation to activation.
const OPTIONS: Options = Options { trace: TraceLevel::Digest, track_memory: true, poison: true };

pub(crate) fn machine(program: &Program) -> Machine {
    machine_with(program, OPTIONS)
}

fn machine_with(program: &Program, options: Options) -> Machine {
    let limits = Limits { fuel: STEPS, ..Limits::default() };
    Machine::with_options(program, limits, options).expect("it is instantiated")
}

/// The end of a run, without the place of a trap, which passes move.
pub(crate) fn end(machine: &Machine, outcome: &Outcome) -> (String, u64, u64) {
    let how = match outcome {
        Outcome::Returned(values) => format!("{values:x?}"),
        Outcome::Trapped { kind, operand, .. } => format!("{kind} {operand:?}"),
        other => other.to_string(),
    };
    (how, machine.memory_digest(), machine.trace().digest())
}

/// A tree of versions, and the speculations in it.
pub(crate) struct Made {
    pub(crate) tree: VersionTree,
    pub(crate) all: Vec<Speculative>,
}

impl Made {
    /// Speculates on a base, and pins values on demand.
    pub(crate) fn new(
        module: &Module,
        base: &Function,
        assume: &[Assumption],
        pipeline: &Pipeline,
    ) -> Result<Made, SpeculateError> {
        let mut made = Made { tree: VersionTree::new(base.clone()), all: Vec::new() };
        made.again(module, &Plan::new(assume, pipeline))?;
        Ok(made)
    }

    /// Speculates on the last version.
    pub(crate) fn again(&mut self, module: &Module, plan: &Plan<'_>) -> Result<(), SpeculateError> {
        let from = self.all.last().map_or(VersionTree::BASE, |last| last.optimized);
        self.all.push(speculate(module, &mut self.tree, from, plan)?);
        Ok(())
    }

    pub(crate) fn last(&self) -> &Speculative {
        self.all.last().expect("there is one")
    }

    pub(crate) fn function(&self) -> &Function {
        self.tree.function(self.last().optimized)
    }
}

/// The assumptions made, left out and settled.
pub(crate) fn counts(made: &Made) -> (usize, usize, usize) {
    let Speculative { exits, dropped, settled, .. } = made.last();
    (exits.len(), dropped.len(), settled.len())
}

/// Runs a function whose version makes assumptions, in both tiers of the interpreter. Returns the
/// end of the exact run and the number of exits taken
/// (`runs_that_leave_keep_values_in_both_tiers`).
pub(crate) fn run(
    module: &Module,
    program: &Program,
    func: Func,
    made: &Made,
    entry: Func,
    args: &[u64],
) -> (Outcome, Machine, u64) {
    let fast = Options { trace: TraceLevel::Off, track_memory: false, poison: false };
    let (outcome, exact, exits) = run_in(machine(program), module, func, made, entry, args);
    let fast = run_in(machine_with(program, fast), module, func, made, entry, args);
    let state = |machine: &Machine| (machine.fuel(), machine.computed_memory_digest());
    assert_eq!(
        (&fast.0, state(&fast.1), &fast.2),
        (&outcome, state(&exact), &exits),
        "@{entry:?} {args:x?}"
    );
    (outcome, exact, exits.len() as u64)
}

/// A run at an assumption that fails.
#[derive(PartialEq, Debug)]
struct FailedRun {
    inst: Inst,
    /// The contents of all values available there, including dead values. Empty behind an exit,
    /// which provides no dead values.
    available: Vec<(Value, u64)>,
}

impl FailedRun {
    fn new(view: &View<'_>, f: &Function, is_first: bool) -> FailedRun {
        let at = Point::before(view.inst());
        let dom = DomTree::new(f, &Cfg::new(f));
        let params = f.blocks().flat_map(|block| f.block_params(block));
        let results = f.all_insts().flat_map(|inst| &f.inst(inst).results);
        let available = params.chain(results).filter(|v| is_first && dom.available_at(f, **v, at));
        let available = available.map(|value| (*value, view.value(*value))).collect();
        FailedRun { inst: view.inst(), available }
    }
}

fn run_in(
    mut machine: Machine,
    module: &Module,
    func: Func,
    made: &Made,
    entry: Func,
    args: &[u64],
) -> (Outcome, Machine, Vec<FailedRun>) {
    let base = machine.current(func).expect("it is not imported");
    let mut versions = vec![(VersionTree::BASE, base)];
    for made_one in &made.all {
        let f = made.tree.function(made_one.optimized);
        versions.push((made_one.optimized, machine.add_version(module, func, f)));
    }
    machine.set_current(func, versions.last().expect("there is one").1);
    machine.start(entry, args);
    let mut exits: Vec<FailedRun> = Vec::new();
    let outcome = loop {
        match machine.run(&mut NoHost, &mut NoObserver) {
            Run::Done(outcome) => break outcome,
            Run::Failed { .. } => {
                let view = machine.view().expect("a failed run is paused");
                let (at, inst) = (view.version(), view.inst());
                // A run that has left may be in an earlier speculation, and leave this one, too.
                let (current, _) = versions.iter().find(|(_, id)| *id == at).expect("it is known");
                let of = made.all.iter().find(|one| one.optimized == *current);
                let of = of.expect("the base assumes nothing");
                let f = made.tree.function(of.optimized);
                exits.push(FailedRun::new(&view, f, exits.is_empty()));
                let (to, exit) = of.exit(inst).expect("each assumption has an exit");
                let (_, to) = versions.iter().find(|(v, _)| *v == to).expect("it is known");
                machine.fire(*to, exit).expect("an exit fires");
            }
            Run::Paused | Run::Called { .. } => unreachable!("nobody pauses it"),
        }
    };
    (outcome, machine, exits)
}

/// As [`run`], natively, with the first speculation alone. Returns how often assumptions failed,
/// too.
pub(crate) fn run_natively(
    engine: &Engine,
    module: &Arc<Module>,
    func: Func,
    made: &Made,
    entry: Func,
    args: &[u64],
) -> (Outcome, Vm, u64) {
    let one = &made.all[0];
    let back = Arc::new(one.backward[&VersionTree::BASE].clone());
    let optimized = made.tree.function(one.optimized);
    let exits = VersionSpec::leaving(optimized, |_| Some(&**back)).expect("each has an exit");
    let version = engine.version(module, func, optimized, exits).expect("compiled");
    assert_eq!(version.points().len(), one.exits.len(), "each assumption has a point");
    let options = Options { track_memory: false, ..OPTIONS };
    let mut vm = Vm::new(engine, module, Limits::default(), options).expect("it is instantiated");
    let actions = vec![Action::Interpret(back); one.exits.len()];
    vm.install(&version, actions).expect("it fits");
    let outcome = vm.invoke(entry, args, &mut NoHost).expect("the run ends");
    let failed = vm.transitions().iter().map(|made| made.count).sum();
    (outcome, vm, failed)
}

pub(crate) fn value(f: &Function, name: &str) -> Value {
    let named = |v: &Value| f.value_name(*v) == Some(name);
    let insts = f.all_insts().flat_map(|i| f.inst(i).results.to_vec());
    let params = f.blocks().flat_map(|b| f.block_params(b).to_vec());
    params.chain(insts).find(named).unwrap_or_else(|| panic!("no {name}"))
}

pub(crate) fn inst(f: &Function, name: &str) -> Inst {
    f.defining_inst(value(f, name)).expect("a result")
}

pub(crate) fn first(module: &Module) -> (Func, &Function) {
    module.defined().next().expect("the module has a function")
}

pub(crate) fn parsed(text: &str) -> Module {
    parse_module(text).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// Compares runs of the version with runs of the base. Returns the exits that each takes.
pub(crate) fn exits(module: &Module, made: &Made, inputs: &[&[u64]]) -> Vec<u64> {
    let program = Program::new(module);
    let (func, _) = first(module);
    let one = |args: &&[u64]| {
        let mut plain = machine(&program);
        let expected = plain.invoke(func, args, &mut NoHost, &mut NoObserver);
        let (outcome, after, taken) = run(module, &program, func, made, func, args);
        assert_eq!(end(&after, &outcome), end(&plain, &expected), "{args:x?}");
        taken
    };
    inputs.iter().map(one).collect()
}
