//! Continuations, on functions made by hand: from every point of graphs of all shapes, and the
//! entries that are refused.

use crate::common::{edited, function, inst, value};
use interp::{Limits, Machine, NoHost, NoObserver, Outcome, PauseAlways, Program, Run};
use ir::decided::Decided;
use ir::liveness::Liveness;
use ir::module::FuncDecl;
use ir::text::{parse_module, print_module};
use ir::verifier::verify_module;
use ir::{Block, Func, Function, Imm, Inst, Module, Opcode, Point, Type, Value};
use osier_osr::{
    Condition, Continuation, ContinuationError, Level, PointSpec, VersionPair, continuation,
    continuation_with_points, instrument, synthesize,
};
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeMap;
use transition::mapping::{Assign, Entry, Operand, Replay, Step};

/// A loop in a loop. The inner loop is one block; the outer loop sets values that the inner one
/// reads.
const NESTED: &str = "\
global @g: mut i32 = 0
func @f(%n: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump outer(%zero, %zero)
outer(%i: i32, %sum: i32):
  %square = mul.i32 %i, %i
  %limit = add.i32 %i, %one
  jump inner(%zero, %sum)
inner(%k: i32, %s: i32):
  %t = add.i32 %s, %square
  %j = add.i32 %k, %one
  global_set.i32 @g, %t
  %more = slt.i32 %j, %limit
  br_if %more, inner(%j, %t), next
next:
  %again = slt.i32 %limit, %n
  br_if %again, outer(%limit, %t), done
done:
  return %t
}
";

/// A loop with two entries, a switch with two edges to one block that pass different values, and a
/// block that swaps its parameters.
const TANGLED: &str = "\
func @f(%n: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  %two = const.i32 2
  %odd = and.i32 %n, %one
  br_if %odd, left(%n), right(%zero)
left(%a: i32):
  %b = add.i32 %a, %two
  jump right(%b)
right(%c: i32):
  %d = mul.i32 %c, %two
  %e = sub.i32 %n, %d
  switch %e, [left(%d), swap(%c, %d), left(%e)], default other
other:
  %f = and.i32 %d, %two
  %g = slt.i32 %n, %d
  br_if %g, swap(%d, %e), left(%d)
swap(%x: i32, %y: i32):
  %h = sub.i32 %x, %y
  %more = slt.i32 %one, %h
  br_if %more, swap(%y, %h), done
done:
  %r = add.i32 %h, %c
  return %r
}
";

/// An endless loop that divides by its own counter.
const ENDLESS: &str = "\
func @f(%n: i32) -> i32 {
entry:
  %one = const.i32 1
  jump head(%n)
head(%i: i32):
  %q = sdiv.i32 %n, %i
  %unused = add.i32 %q, %i
  %j = sub.i32 %i, %one
  jump head(%j)
}
";

/// The entry at a point that copies every value that a run needs behind it.
fn identity(f: &Function, at: Inst) -> Entry {
    let target = Point::before(at);
    let decided = Decided::new(f);
    let live = Liveness::of_run(f, &decided, &BTreeMap::new()).live_before(f, target);
    of_values(at, live.as_slice())
}

/// The entry at a point that copies these values.
fn of_values(at: Inst, values: &[Value]) -> Entry {
    let mut requires = values.to_vec();
    requires.sort_unstable();
    let assigns =
        requires.iter().map(|v| Assign { value: *v, from: Operand::Source(*v) }).collect();
    let target = Point::before(at);
    Entry { target, steps: Vec::new(), replays: Vec::new(), assigns, requires, kept: Vec::new() }
}

fn rest(f: &Function, entry: &Entry) -> Continuation {
    continuation("rest", f, f, entry).unwrap_or_else(|e| panic!("{e}"))
}

fn refused(f: &Function, entry: &Entry) -> ContinuationError {
    continuation("rest", f, f, entry).expect_err("it is no entry")
}

/// Adds a function to the module of a text, and has the verifier check the result.
fn with(text: &str, function: &Function) -> (Module, Func) {
    let mut module = parse_module(text).unwrap_or_else(|e| panic!("{}", e[0]));
    let sig = module.sig(function.signature());
    let func = module.funcs.push(FuncDecl { name: function.name().to_owned(), sig, import: None });
    module.bodies[func] = Some(function.clone());
    let findings = verify_module(&module);
    assert!(findings.is_empty(), "{}\n{}", findings[0], print_module(&module));
    (module, func)
}

fn end(machine: &mut Machine) -> Outcome {
    match machine.run(&mut NoHost, &mut NoObserver) {
        Run::Done(outcome) => outcome,
        other => panic!("nobody pauses it: {other:?}"),
    }
}

/// The outcome of a run, without the place of a trap or an exit.
fn shown(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Trapped { kind, .. } => format!("trap {kind}"),
        Outcome::Left { point, values, .. } => format!("left at {point} with {values:?}"),
        other => other.to_string(),
    }
}

/// Compares, at every visit of every instruction of a run, the end of the run with the end of a
/// continuation started with the run's values. Returns the number of visits compared.
fn goes_on_everywhere(text: &str, argument: u64) -> usize {
    let f = function(text);
    let rests: BTreeMap<Inst, (Entry, Module, Func)> = f
        .all_insts()
        .map(|at| {
            let entry = identity(&f, at);
            let (module, func) = with(text, &rest(&f, &entry).function);
            (at, (entry, module, func))
        })
        .collect();
    let limits = Limits { fuel: 3000, ..Limits::default() };
    let module = parse_module(text).expect("read before");
    let func = module.lookup("f").expect("the function");
    let mut machine = Machine::new(&module, limits).expect("it instantiates");
    machine.start(func, &[argument]);
    let mut compared = 0;
    while machine.run(&mut NoHost, &mut PauseAlways) == Run::Paused {
        let view = machine.view().expect("it is paused");
        let (entry, module, rest) = &rests[&view.inst()];
        let values: Vec<u64> = entry.requires.iter().map(|v| view.value(*v)).collect();
        // Clones run to the end, while the original steps from pause to pause: both ends start from
        // the state of this visit.
        let mut on = machine.clone();
        let expected = end(&mut on);
        let mut other = machine.clone();
        other.extend(&Program::new(module)).expect("the module begins alike");
        other.start(*rest, &values);
        assert_eq!(
            shown(&end(&mut other)),
            shown(&expected),
            "from {} with {values:?}",
            view.inst()
        );
        assert!(other.same_memory(&on));
        compared += 1;
    }
    compared
}

#[test]
fn from_every_point_of_every_round() {
    assert!(goes_on_everywhere(NESTED, 4) > 60);
    assert!((0..8).map(|n| goes_on_everywhere(TANGLED, n)).sum::<usize>() > 100);
    assert!(goes_on_everywhere(ENDLESS, 3) > 10);
}

fn block(f: &Function, name: &str) -> Block {
    f.blocks().find(|b| f.block_name(*b) == Some(name)).unwrap_or_else(|| panic!("no {name}"))
}

/// No part of a split block is copied twice. An entry at the start of a block does not split it.
#[test]
fn a_block_that_control_comes_back_to_is_split_once() {
    let f = function(NESTED);
    let inner = block(&f, "inner");
    let count = |at: Inst| {
        let made = rest(&f, &identity(&f, at));
        let copies = |of: Inst| {
            made.function.all_insts().filter(|i| made.origins.inst(*i) == Some(of)).count()
        };
        assert!(f.block_insts(inner).all(|i| copies(i) == 1));
        made.function.block_count()
    };
    assert_eq!(
        count(f.first_inst(inner)),
        5,
        "a block that enters, and the four of the loops and behind"
    );
    // One block more: the part of `inner` above the landing point.
    assert_eq!(count(inst(&f, "j")), 6);
    assert_eq!(count(f.terminator(inner)), 6);
}

/// A landing point behind the loops leaves them out. One in the entry block leaves out the
/// instructions above it, and splits nothing.
#[test]
fn what_is_not_come_to_is_left_out() {
    let f = function(NESTED);
    let made = rest(&f, &identity(&f, f.terminator(block(&f, "done"))));
    assert_eq!((made.function.block_count(), made.function.inst_count()), (1, 1));
    assert_eq!(made.function.signature().params.len(), 1);
    let made = rest(&f, &identity(&f, inst(&f, "one")));
    assert_eq!(made.function.block_count(), f.block_count());
    let arguments = f.arguments().len();
    assert_eq!(
        made.function.signature().params.len(),
        arguments + 1,
        "the argument, and what stands before"
    );
}

/// The entry provides `%limit`, and the next iteration of the outer loop sets it again. The two
/// definitions meet in block parameters.
#[test]
fn what_is_set_again_has_two_definitions() {
    let f = function(NESTED);
    let made = rest(&f, &identity(&f, inst(&f, "j")));
    let (function, limit) = (&made.function, value(&f, "limit"));
    let joins: Vec<Block> = function
        .blocks()
        .filter(|b| function.block_params(*b).iter().any(|p| made.origins.value(*p) == Some(limit)))
        .collect();
    assert_eq!(
        joins.len(),
        2,
        "where the landing meets the inner loop, and where the outer one does"
    );
    let given = made.provided.iter().find(|(of, _)| *of == limit).expect("it is provided").1;
    assert!(function.block_params(function.entry()).contains(&given));
    let defined: Vec<Value> =
        function.all_insts().flat_map(|i| function.inst(i).results.to_vec()).collect();
    assert_eq!(defined.iter().filter(|v| made.origins.value(**v) == Some(limit)).count(), 1);
    assert!(
        made.provided
            .iter()
            .all(|(of, _)| *of != value(&f, "zero") || function.signature().params.len() > 1)
    );
}

#[test]
fn what_nobody_reads_is_left_out() {
    let f = function(ENDLESS);
    let made = rest(&f, &identity(&f, inst(&f, "q")));
    let has = |name: &str| {
        made.function.all_insts().any(|i| made.origins.inst(i) == Some(inst(&f, name)))
    };
    assert!(has("q") && has("j") && !has("unused"), "what may trap stays");
    // The only reader of `%q` is an operation that nothing needs, so entries behind the division
    // omit `%q`.
    let (entry, q) = (identity(&f, inst(&f, "unused")), value(&f, "q"));
    assert!(!entry.provides_value(q), "nothing depends on it");
    assert!(rest(&f, &entry).provided.iter().all(|(v, _)| *v != q));
}

/// Compensation code has only the steps that the code needs, and replayed stores precede all copied
/// code.
#[test]
fn compensation_code_comes_first() {
    let f = function(NESTED);
    let n = f.arguments()[0];
    let step = |opcode, bits, args: SmallVec<[Operand; 2]>| Step {
        opcode,
        ty: Type::I32,
        operand_ty: Type::I32,
        bits,
        args,
    };
    let read = Operand::Source(n);
    let steps = vec![
        step(Opcode::Const, 3, SmallVec::new()),
        step(Opcode::Mul, 0, smallvec![read, read]),
        step(Opcode::Add, 0, smallvec![Operand::Step(0), read]),
        step(Opcode::Sub, 0, smallvec![Operand::Step(0), Operand::Step(2)]),
    ];
    let at = f.first_inst(block(&f, "next"));
    let mut assigns: Vec<Assign> =
        [("limit", read), ("n", read), ("t", Operand::Step(2)), ("sum", Operand::Step(1))]
            .map(|(name, from)| Assign { value: value(&f, name), from })
            .to_vec();
    assigns.sort_unstable();
    let set =
        f.all_insts().find(|i| f.inst(*i).opcode == Opcode::GlobalSet).expect("it sets the global");
    let Imm::Global(global) = f.inst(set).imm else { panic!("a global is set") };
    let replay = Replay {
        inst: set,
        opcode: Opcode::GlobalSet,
        ty: Type::I32,
        imm: Imm::Global(global),
        args: smallvec![Operand::Step(0)],
    };
    let entry = Entry {
        target: Point::before(at),
        steps,
        replays: vec![replay],
        assigns,
        requires: vec![n],
        kept: Vec::new(),
    };
    // Either may be reported: the order in which the search meets them is not part of the contract.
    let constants = ["zero", "one"].map(|name| ContinuationError::NotProvided(value(&f, name)));
    assert!(constants.contains(&refused(&f, &entry)), "the loop reads constants");
    let mut whole = entry;
    for name in ["zero", "one"] {
        // Any contents do: the run at the end reads neither constant.
        whole.assigns.push(Assign { value: value(&f, name), from: Operand::Step(0) });
    }
    whole.assigns.sort_unstable();
    let mut missing = whole.clone();
    missing.assigns.retain(|a| a.value != value(&f, "t"));
    assert_eq!(refused(&f, &missing), ContinuationError::NotProvided(value(&f, "t")));
    let made = rest(&f, &whole);
    let opcodes =
        made.function.block_insts(made.function.entry()).map(|i| made.function.inst(i).opcode);
    let first: Vec<Opcode> = opcodes.take(3).collect();
    assert_eq!(
        first,
        [Opcode::Const, Opcode::Add, Opcode::GlobalSet],
        "the steps that nothing reads are left out"
    );
    let (module, func) = with(NESTED, &made.function);
    let mut machine = Machine::new(&module, Limits::default()).expect("it instantiates");
    assert_eq!(shown(&machine.invoke(func, &[5], &mut NoHost, &mut NoObserver)), "returned 8");
    assert_eq!(machine.globals(), [3]);
}

/// A loop with a branch that a constant decides. Only code behind that branch reads `%x`.
const DECIDED: &str = "\
func @f(%n: i32) -> i32 {
entry:
  %x = mul.i32 %n, %n
  %zero = const.i32 0
  jump head(%n)
head(%i: i32):
  br_if %zero, never, on
never:
  return %x
on:
  %one = const.i32 1
  %j = sub.i32 %i, %one
  br_if %j, head(%j), done
done:
  return %j
}
";

/// An entry does not provide values that only code behind a decided branch reads. The branch then
/// becomes a jump.
#[test]
fn branches_that_constants_decide_become_jumps() {
    let f = function(DECIDED);
    let entry = identity(&f, f.first_inst(block(&f, "on")));
    assert!(!entry.provides_value(value(&f, "x")));
    let made = rest(&f, &entry);
    let branch = f.terminator(block(&f, "head"));
    let copy = made
        .function
        .all_insts()
        .find(|i| made.origins.inst(*i) == Some(branch))
        .expect("it is copied");
    assert_eq!(made.function.inst(copy).opcode, Opcode::Jump);
    assert_eq!(made.function.block_count(), 4, "what never runs is left out");
    assert!(goes_on_everywhere(DECIDED, 3) > 10);
    // With all values provided, no branch has to be decided, and the code of the arm is copied.
    let told = of_values(
        f.first_inst(block(&f, "on")),
        &[value(&f, "i"), value(&f, "x"), value(&f, "zero")],
    );
    let made = rest(&f, &told);
    assert_eq!(made.function.block_count(), 5, "nothing is missing, so all is copied");
}

/// The entry must provide a value that some path reads before it comes to the definition in the
/// loop.
#[test]
fn what_is_defined_on_some_ways_only_is_refused() {
    let f = function(NESTED);
    let at = inst(&f, "j");
    for name in ["square", "t", "k"] {
        let missing = value(&f, name);
        let mut entry = identity(&f, at);
        entry.assigns.retain(|a| a.value != missing);
        let provided = identity(&f, at).provides_value(missing);
        match provided {
            true => {
                assert_eq!(refused(&f, &entry), ContinuationError::NotProvided(missing), "{name}")
            }
            false => assert!(continuation("rest", &f, &f, &entry).is_ok(), "{name}"),
        }
    }
    let square = value(&f, "square");
    assert!(
        identity(&f, at).provides_value(square)
            && refused(&f, &of_values(at, &[])).to_string().contains("read")
    );
}

#[test]
fn entries_that_do_not_fit_are_refused() {
    let f = function(NESTED);
    // Each change breaks one thing of an entry that is right otherwise.
    let (at, stray) = (inst(&f, "j"), Value::from_u32(999));
    let good = identity(&f, at);
    let changed = |change: &dyn Fn(&mut Entry)| {
        let mut entry = good.clone();
        change(&mut entry);
        refused(&f, &entry)
    };
    let nowhere = Point::before(Inst::from_u32(999));
    assert_eq!(changed(&|e| e.target = nowhere), ContinuationError::NoSuchPoint(nowhere));
    assert_eq!(changed(&|e| e.requires.push(stray)), ContinuationError::NotInSource(stray));
    let from = Operand::Source(good.requires[0]);
    assert_eq!(
        changed(&|e| e.assigns.push(Assign { value: stray, from })),
        ContinuationError::NotInTarget(stray)
    );
    let first = good.requires[0];
    assert_eq!(
        changed(&|e| e.requires.retain(|v| *v != first)),
        ContinuationError::NotRequired(first)
    );
    assert_eq!(
        changed(&|e| e.assigns[0].from = Operand::Step(0)),
        ContinuationError::NoSuchStep { index: 0 }
    );
    let step = |opcode, ty, args| Step { opcode, ty, operand_ty: Type::I32, bits: 0, args };
    let itself = step(Opcode::Eqz, Type::I32, smallvec![Operand::Step(0)]);
    assert_eq!(
        changed(&|e| e.steps.push(itself.clone())),
        ContinuationError::NoSuchStep { index: 0 }
    );
    for (opcode, ty) in [
        (Opcode::Load, Type::I32),
        (Opcode::Return, Type::I32),
        (Opcode::OsrTest, Type::I32),
        (Opcode::Add, Type::I32),
        (Opcode::Sext32, Type::I32),
        (Opcode::Eqz, Type::F64),
    ] {
        let malformed = step(opcode, ty, smallvec![from]);
        let error = changed(&|e| e.steps.push(malformed.clone()));
        assert_eq!(error, ContinuationError::MalformedStep { index: 0 }, "{}", opcode.name());
    }
    for (opcode, imm) in
        [(Opcode::Call, Imm::Func(Func::from_u32(0))), (Opcode::GlobalSet, Imm::None)]
    {
        let replay = Replay { inst: at, opcode, ty: Type::I32, imm, args: smallvec![from] };
        assert_eq!(
            changed(&|e| e.replays.push(replay.clone())),
            ContinuationError::MalformedReplay { inst: at }
        );
    }
    let wide = Step {
        opcode: Opcode::Const,
        ty: Type::I64,
        operand_ty: Type::I64,
        bits: 7,
        args: SmallVec::new(),
    };
    let error = changed(&|e| {
        e.steps.push(wide.clone());
        e.assigns[0].from = Operand::Step(0);
    });
    let (value, ty) = (good.assigns[0].value, Type::I32);
    assert_eq!(error, ContinuationError::WrongType { value, ty, given: Type::I64 });
    assert_eq!(error.to_string(), format!("{value} is i32 and provided as i64"));
}

/// In unreachable code, definitions need not dominate uses. An entry that lands there is refused
/// where they do not.
#[test]
fn code_that_nothing_leads_to_may_be_refused() {
    let text = "\
func @f(%n: i32) -> i32 {
entry:
  return %n
dead:
  br_if %n, one, two
one:
  %a = add.i32 %n, %n
  jump join
two:
  jump join
join:
  return %a
}
";
    let f = function(text);
    let entry = of_values(f.terminator(block(&f, "dead")), f.arguments());
    assert_eq!(refused(&f, &entry), ContinuationError::NotProvided(value(&f, "a")));
}

/// Points of the target version keep their numbers in a continuation. A continuation can be
/// instrumented in turn.
#[test]
fn points_keep_their_numbers() {
    let f = function(NESTED);
    let (t, again, more) = (inst(&f, "t"), inst(&f, "again"), inst(&f, "more"));
    let spec = |at: Inst, condition, values: &[&str]| PointSpec {
        at: Point::before(at),
        condition,
        values: values.iter().map(|n| value(&f, n)).collect(),
    };
    let points =
        [spec(t, Condition::Flag, &["i"]), spec(again, Condition::Always, &["limit", "t", "n"])];
    let armed = instrument(&f, &points).expect("the values are available");
    let landing = identity(&f, more);
    let entry = armed.entry(&Entry { assigns: all_at(&f, more), ..landing }).expect("it is copied");
    let requires: Vec<Value> =
        entry.assigns.iter().filter_map(|a| armed.origins.value(a.value)).collect();
    let mut entry = Entry { requires, ..entry };
    entry.requires.sort_unstable();
    let made = continuation("rest", &f, &armed.function, &entry).unwrap_or_else(|e| panic!("{e}"));
    let (module, func) = with(NESTED, &made.function);
    let text = print_module(&module);
    assert!(
        text.contains("osr_test 0") && text.contains("osr_exit 0(") && text.contains("osr_exit 1("),
        "{text}"
    );
    let values: Vec<u64> =
        entry.requires.iter().map(|v| 10 + u64::from(*v == value(&f, "limit"))).collect();
    let mut machine = Machine::new(&module, Limits::default()).expect("it instantiates");
    let outcome = machine.invoke(func, &values, &mut NoHost, &mut NoObserver);
    assert!(shown(&outcome).starts_with("left at osr1 with [11, "), "{outcome}");
    let landed = Point::before(made.function.first_inst(made.function.entry()));
    let twice = instrument(
        &made.function,
        &[PointSpec { at: landed, condition: Condition::Always, values: Vec::new() }],
    );
    assert_eq!(twice.expect("no values").function.block_count(), 2);
}

/// Behind a point that always exits, fewer blocks are reachable, and constants decide more branches
/// there than in the version without points. A run that lands behind such a point may take those
/// branches, so only decisions of the version without points count.
#[test]
fn points_decide_nothing() {
    let f = function(DECIDED);
    let (head, on) = (f.first_inst(block(&f, "head")), f.terminator(block(&f, "on")));
    let values = vec![value(&f, "j")];
    let always = PointSpec { at: Point::before(on), condition: Condition::Always, values };
    let armed = instrument(&f, &[always]).expect("the value is available");
    let entry = identity(&f, head);
    // Plain `continuation` must not decide branches in code with points, and so misses `%x`.
    let missing =
        continuation("rest", &f, &armed.function, &armed.entry(&entry).expect("it is copied"));
    let copy = armed.copy_of_value(value(&f, "x")).expect("it is copied");
    assert_eq!(missing.err(), Some(ContinuationError::NotProvided(copy)));
    let made =
        continuation_with_points("rest", &f, &f, &armed, &entry).unwrap_or_else(|e| panic!("{e}"));
    let (module, func) = with(DECIDED, &made.function);
    let mut machine = Machine::new(&module, Limits::default()).expect("it instantiates");
    let args: Vec<u64> =
        entry.requires.iter().map(|v| if *v == value(&f, "i") { 5 } else { 0 }).collect();
    assert_eq!(
        shown(&machine.invoke(func, &args, &mut NoHost, &mut NoObserver)),
        "left at osr0 with [4]"
    );
    let behind = identity(&f, f.terminator(block(&f, "done")));
    let error =
        continuation_with_points("rest", &f, &f, &armed, &behind).expect_err("it was left out");
    assert_eq!(error, ContinuationError::NoSuchPoint(behind.target));
    let late = PointSpec {
        at: Point::before(head),
        condition: Condition::Flag,
        values: vec![value(&f, "x")],
    };
    let armed = instrument(&f, &[late]).expect("the value is available");
    let error =
        continuation_with_points("rest", &f, &f, &armed, &entry).expect_err("the point reads it");
    assert_eq!(error, ContinuationError::NotProvided(value(&f, "x")));
}

/// Assigns every value that is available at an instruction to its own id.
fn all_at(f: &Function, at: Inst) -> Vec<Assign> {
    let dom = ir::dom::DomTree::new(f, &ir::cfg::Cfg::new(f));
    let params = f.blocks().flat_map(|b| f.block_params(b).to_vec());
    let results = f.all_insts().flat_map(|i| f.inst(i).results.to_vec());
    let mut values: Vec<Value> =
        params.chain(results).filter(|v| dom.available_at(f, *v, Point::before(at))).collect();
    values.sort_unstable();
    values.iter().map(|v| Assign { value: *v, from: Operand::Source(*v) }).collect()
}

/// Every entry that synthesis makes of an edit, compensation code included, has a continuation.
#[test]
fn entries_that_are_synthesized() {
    let base = function(NESTED);
    let applied = edited(&base, |ed| {
        let (square, i) = (value(ed.func(), "square"), value(ed.func(), "i"));
        let at = inst(ed.func(), "t");
        let spec = ir::InstSpec::new(Opcode::Mul, Type::I32, Imm::None, &[i, i]);
        let new = ed.add_value(spec, at);
        ed.replace_all(square, new);
        let square = ed.func().defining_inst(square).expect("an instruction");
        ed.delete(square);
    });
    let pair = VersionPair::new(&base, applied.function(), applied.log()).expect("the log replays");
    let synthesis = synthesize(&pair, Level::Avail);
    let mut made = 0;
    for (mapping, source, target) in [
        (&synthesis.forward.mapping, &base, applied.function()),
        (&synthesis.backward.mapping, applied.function(), &base),
    ] {
        for (point, entry) in mapping.entries() {
            let rest = continuation("rest", source, target, entry)
                .unwrap_or_else(|e| panic!("{point:?}: {e}"));
            with(NESTED, &rest.function);
            made += 1;
        }
    }
    assert!(made > 20, "{made} entries");
}
