//! The counts of both tiers of the interpreter, and the visits that follow.

use super::{Events, FUEL, LOOP, both, kernel, machine, parsed, profiled, programs};
use interp::{
    CallTarget, CallTargets, Control, Limits, MAX_TARGETS, Machine, NoHost, NoObserver, Observer,
    Outcome, Program, Scope, TraceLevel, View,
};
use ir::{Func, Inst, Module, Opcode, Shape};
use osier::profile::{FunctionProfile, Profile};
use std::collections::{BTreeMap, BTreeSet};
use verify::prng::Prng;

/// Makes a profile from the state before each instruction, without the counters.
struct Naive<'a> {
    module: &'a Module,
    functions: BTreeMap<Func, FunctionProfile>,
    /// The polymorphic loads.
    varied: BTreeSet<(Func, Inst)>,
    activations: BTreeSet<u64>,
    /// The load or indirect call that the run executes, with the index of the call. It takes effect
    /// if the run continues.
    pending: Option<(Func, Inst, u64)>,
}

impl Naive<'_> {
    fn enter(&mut self, view: &View<'_>) {
        let func = view.func();
        let body = self.module.body(func).expect("it runs");
        let args = body.arguments().iter().map(|arg| view.value(*arg));
        let profile = self.functions.entry(func).or_default();
        if profile.calls == 0 {
            profile.arguments = args.map(Some).collect();
        } else {
            for (known, arg) in profile.arguments.iter_mut().zip(args) {
                *known = known.filter(|known| *known == arg);
            }
        }
        profile.calls += 1;
    }

    fn finish_pending(&mut self, view: &View<'_>) {
        let Some((func, inst, index)) = self.pending.take() else { return };
        let data = self.module.body(func).expect("it runs").inst(inst);
        let profile = self.functions.entry(func).or_default();
        if data.opcode == Opcode::CallIndirect {
            let CallTargets { targets, others } = profile.targets.entry(inst).or_default();
            // The run is in the callee now.
            let func = view.func();
            match targets.iter().position(|known| (known.index, known.func) == (index, func)) {
                Some(known) => targets[known].calls += 1,
                None if targets.len() < MAX_TARGETS => {
                    targets.push(CallTarget { index, func, calls: 1 });
                }
                None => *others += 1,
            }
        } else if !self.varied.contains(&(func, inst)) {
            let value = view.value(data.result().expect("a load has a result"));
            if *profile.values.entry(inst).or_insert(value) != value {
                profile.values.remove(&inst);
                self.varied.insert((func, inst));
            }
        }
    }
}

impl Observer for Naive<'_> {
    const SCOPE: Scope = Scope::Everything;

    fn before(&mut self, view: &View<'_>, inst: Inst) -> Control {
        self.finish_pending(view);
        if self.activations.insert(view.activation()) {
            self.enter(view);
        }
        let func = view.func();
        let data = self.module.body(func).expect("it runs").inst(inst);
        match data.opcode.shape() {
            Shape::BrIf | Shape::Switch => {
                let last = data.targets.len() as u64 - 1;
                let side = match (data.opcode, view.value(data.args[0])) {
                    (Opcode::BrIf, condition) => u64::from(condition == 0),
                    (_, index) => index.min(last),
                };
                let profile = self.functions.entry(func).or_default();
                let none = || vec![0; data.targets.len()];
                profile.branches.entry(inst).or_insert_with(none)[side as usize] += 1;
            }
            Shape::Load(_) | Shape::GlobalGet => self.pending = Some((func, inst, 0)),
            Shape::CallIndirect => {
                let index = view.value(*data.args.last().expect("it has an index"));
                self.pending = Some((func, inst, index));
            }
            _ => {}
        }
        Control::Continue
    }
}

#[test]
fn both_tiers_count_what_an_observer_sees() {
    let mut events = Events::default();
    for (seed, module, entry, arguments) in programs() {
        let program = Program::new(&module);
        for args in arguments {
            let mut observed = machine(&program, FUEL, TraceLevel::Off);
            let (functions, varied) = Default::default();
            let (activations, pending) = Default::default();
            let module = &module;
            let mut naive = Naive { module, functions, varied, activations, pending };
            let outcome = observed.invoke(entry, &args, &mut NoHost, &mut naive);
            if matches!(outcome, Outcome::OutOfFuel(_)) {
                continue; // an instruction may have executed that no event follows
            }
            let expected = Profile { functions: naive.functions };
            let what = format!("program {seed} with {args:x?}");
            assert_eq!(Profile::collect(module, &observed), expected, "{what}, observed");
            let [exact, fast] = both(module, &program, entry, &args, FUEL);
            assert_eq!(exact, expected, "{what}, exact tier");
            assert_eq!(fast, expected, "{what}, fast tier");
            events.add(&expected);
        }
    }
    events.require_many();
}

#[test]
fn both_tiers_count_alike_with_any_fuel() {
    for name in ["vm", "calls", "sort", "scan", "words.o2", "mixed"] {
        let module = kernel(name);
        let entry = module.lookup("_start").expect("it is exported");
        let program = Program::new(&module);
        let mut prng = Prng::new(7);
        for fuel in (0..200).chain((0..60).map(|_| prng.next_u64() % 20_000)) {
            let [exact, fast] = both(&module, &program, entry, &[], fuel);
            assert_eq!(exact, fast, "{name} with fuel {fuel}");
        }
    }
}

#[test]
fn profiles_of_several_runs_add_up() {
    let module = parsed(LOOP);
    let program = Program::new(&module);
    let func = module.lookup("f").expect("the text has it");
    let run = |rounds: &[u64]| {
        let mut machine = machine(&program, FUEL, TraceLevel::Off);
        for rounds in rounds {
            machine.invoke(func, &[*rounds], &mut NoHost, &mut NoObserver);
        }
        Profile::collect(&module, &machine)
    };
    let mut sum = run(&[5]);
    sum.add(&run(&[7, 5]));
    assert_eq!(sum, run(&[5, 7, 5]));
    // A function that an exit alone entered, and that called through a table.
    let mut entered = sum.clone();
    let profile = entered.functions.get_mut(&func).expect("it ran");
    *profile = FunctionProfile { targets: profile.targets.clone(), ..FunctionProfile::default() };
    entered.add(&sum);
    assert!(entered.functions[&func].values.is_empty(), "a load may have varied there");
    let mut none = Profile::default();
    none.add(&sum);
    none.add(&Profile::default());
    assert_eq!(none, sum);
    let mut huge = sum.clone();
    huge.functions.values_mut().for_each(|profile| profile.calls = u64::MAX);
    huge.add(&sum);
    assert_eq!(huge.functions[&func].calls, u64::MAX);
}

/// The fast loop hands a run over to the exact loop at a call of a function without fast code.
#[test]
fn calls_of_functions_without_fast_code_count_once() {
    // More values than the window of a frame.
    let many: String = (0..65_200).map(|n| format!("  %c{n} = const.i32 {n}\n")).collect();
    let branch = "  %always = const.i32 1\n  br_if %always, out, many\nmany:\n";
    let code = format!("entry:\n{branch}{many}  jump out\nout:\n");
    let text = LOOP.replacen("entry:\n", &code, 1);
    let module = parsed(&text);
    let func = module.lookup("f").expect("the text has it");
    let [exact, fast] = both(&module, &Program::new(&module), func, &[150], FUEL);
    let calls: Vec<u64> =
        fast.functions[&func].targets.values().map(|t| t.targets[0].calls).collect();
    assert_eq!(calls, [150]);
    assert_eq!(exact, fast);
}

/// A version that is added later counts, too, and apart from the other versions.
#[test]
fn versions_count_apart() {
    let module = parsed(LOOP);
    let func = module.lookup("f").expect("the text has it");
    let body = module.body(func).expect("it has a body");
    let mut machine = machine(&Program::new(&module), FUEL, TraceLevel::Off);
    machine.invoke(func, &[3], &mut NoHost, &mut NoObserver);
    let base = machine.current(func).expect("it has a body");
    let other = machine.add_version(&module, func, body);
    machine.set_current(func, other);
    machine.invoke(func, &[4], &mut NoHost, &mut NoObserver);
    let last = body.all_insts().find(|inst| body.inst(*inst).opcode == Opcode::BrIf);
    let sides = [base, other].map(|version| {
        machine.counts(version).and_then(|counts| counts.sides(last.expect("a branch")))
    });
    assert_eq!(sides, [Some(vec![0, 3]), Some(vec![0, 4])]);
}

#[test]
fn a_machine_that_does_not_count_has_no_profile() {
    let module = parsed(LOOP);
    let mut machine = Machine::new(&module, Limits::default()).expect("it is instantiated");
    let func = module.lookup("f").expect("the text has it");
    machine.invoke(func, &[5], &mut NoHost, &mut NoObserver);
    assert_eq!(Profile::collect(&module, &machine), Profile::default());
    // Counting begins at zero.
    machine.count();
    machine.invoke(func, &[5], &mut NoHost, &mut NoObserver);
    machine.count();
    machine.invoke(func, &[3], &mut NoHost, &mut NoObserver);
    let profile = Profile::collect(&module, &machine);
    assert_eq!(profile.functions[&func].calls, 1);
    assert_eq!(profile.functions[&func].arguments, [Some(3)]);
}

#[test]
fn visits_of_blocks_follow_from_sides_and_jumps() {
    let module = parsed(LOOP);
    let func = module.lookup("f").expect("the text has it");
    let base = module.body(func).expect("it has a body");
    let profile = profiled(&module, &[150]);
    let visits = profile.functions[&func].visits(base);
    let visits: Vec<(&str, u64)> = base
        .blocks()
        .map(|block| {
            let name = base.block_name(block).expect("the text names every block");
            (name, visits[block.as_u32() as usize])
        })
        .collect();
    let expected = [("entry", 1), ("head", 150), ("slow", 49), ("rest", 150), ("done", 1)];
    assert_eq!(visits, expected);
    // Jumps in a circle, which a run enters and never leaves.
    let text = "func @f() {\nentry:\n  jump a\na:\n  jump b\nb:\n  jump a\n}\n";
    let module = parsed(text);
    let func = module.lookup("f").expect("the text has it");
    let base = module.body(func).expect("it has a body");
    let visits = profiled(&module, &[]).functions[&func].visits(base);
    assert_eq!(visits, [1, 1, 0]);
}
