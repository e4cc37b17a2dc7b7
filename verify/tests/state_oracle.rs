//! The state oracle accepts what is right and names what is wrong, one kind of wrong mapping per test.

use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::edit::{Editor, Fuel, Pass, apply};
use ir::interp::{Limits, NoHost};
use ir::mapping::{Assign, Entry, Mapping, Operand, Step};
use ir::text::parse_module;
use ir::{Edge, Effects, Function, Inst, InstSpec, Module, Opcode, Point, TrapKind, Type, Value};
use osier_verify::generate::{Weights, generate};
use osier_verify::prng::Prng;
use osier_verify::state_oracle::{
    Demand, Difference, Direction, Fault, FunctionPair, Oracle, OracleOptions, Policy, Report, SetupError,
};
use std::collections::BTreeSet;

fn parse(text: &str) -> Module {
    parse_module(text).unwrap_or_else(|errors| panic!("{}\n{text}", errors[0]))
}

/// Terminators, effects, and what may trap.
fn bounds(function: &Function, inst: Inst) -> bool {
    let effects = function.inst(inst).opcode.effects();
    effects.has(Effects::TERMINATOR)
        || effects.has(Effects::WRITES)
        || effects.has(Effects::TRACED)
        || function.may_trap(inst)
}

/// The bounding anchors of two versions between which nothing moved.
fn anchors(before: &Function, after: &Function) -> BTreeSet<Inst> {
    before.all_insts().filter(|i| after.has_inst(*i) && bounds(before, *i) && bounds(after, *i)).collect()
}

fn values(function: &Function) -> BTreeSet<Value> {
    let params = function.blocks().flat_map(|b| function.block_params(b).iter().copied());
    params.chain(function.all_insts().flat_map(|i| function.inst(i).results.iter().copied())).collect()
}

fn copy(value: Value) -> Assign {
    Assign { value, from: Operand::Source(value) }
}

/// An entry that provides these values by copying them.
fn copies(target: Point, provided: &[Value]) -> Entry {
    Entry {
        replays: Vec::new(),
        target,
        steps: Vec::new(),
        assigns: provided.iter().copied().map(copy).collect(),
        requires: provided.to_vec(),
        kept: Vec::new(),
    }
}

/// At every reachable point the entry to the same point, with all values available.
fn identity(source: &Function, target: &Function) -> Mapping {
    let mut mapping = Mapping::new(source, target);
    let cfg = Cfg::new(source);
    let dom = DomTree::new(source, &cfg);
    for inst in source.all_insts().filter(|i| cfg.is_reachable(source.inst_block(*i))) {
        let point = Point::before(inst);
        let provided: Vec<Value> = values(source).into_iter().filter(|v| dom.available_at(source, *v, point)).collect();
        mapping.insert(point, copies(point, &provided));
    }
    mapping
}

/// A function, both of whose versions are the one of a module, and mappings to damage.
struct Case {
    module: Module,
    before: Function,
    after: Function,
    anchors: BTreeSet<Inst>,
    forward: Mapping,
    backward: Mapping,
}

impl Case {
    /// The function `f` of a module with itself.
    fn new(text: &str) -> Case {
        let module = parse(text);
        let before = module.body(module.lookup("f").expect("the module has an f")).expect("f has a body").clone();
        let after = before.clone();
        Case::of(module, before, after)
    }

    /// Two versions, with mappings that are right when they are equal.
    fn of(module: Module, before: Function, after: Function) -> Case {
        let anchors = anchors(&before, &after);
        let forward = Mapping::new(&before, &after);
        let backward = Mapping::new(&after, &before);
        Case { module, before, after, anchors, forward, backward }
    }

    /// The value with this name.
    fn value(&self, name: &str) -> Value {
        let named = |f: &Function| values(f).into_iter().find(|v| f.value_name(*v) == Some(name));
        named(&self.before).unwrap_or_else(|| panic!("no value {name}"))
    }

    /// The point before the instruction that defines a value.
    fn before_definition(&self, name: &str) -> Point {
        Point::before(self.before.defining_inst(self.value(name)).expect("an instruction defines the value"))
    }

    fn point_before(&self, opcode: Opcode) -> Point {
        let found = self.before.all_insts().find(|i| self.before.inst(*i).opcode == opcode);
        Point::before(found.unwrap_or_else(|| panic!("no {}", opcode.name())))
    }

    fn run_with(&self, args: &[&[u64]], options: OracleOptions) -> Report {
        let func = self.module.lookup("f").expect("the module has an f");
        let pair = FunctionPair {
            func,
            before: &self.before,
            after: &self.after,
            anchors: &self.anchors,
            forward: &self.forward,
            backward: &self.backward,
        };
        let mut oracle = Oracle::new(&self.module, &[pair], options).expect("the pair fits");
        for args in args {
            oracle.run(func, args, &NoHost);
        }
        oracle.report().clone()
    }

    fn run(&self, args: &[&[u64]]) -> Report {
        self.run_with(args, OracleOptions::default())
    }

    /// The only difference found.
    fn difference(&self, args: &[&[u64]]) -> Difference {
        let report = self.run(args);
        assert_eq!(report.divergences.len(), 1, "{report:#?}");
        report.divergences[0].difference.clone()
    }
}

const STRAIGHT: &str = "func @f(%a: i32, %b: i32) -> i32 {
entry:
  %sum = add.i32 %a, %b
  %square = mul.i32 %sum, %sum
  %low = and.i32 %square, %a
  return %low
}
";

#[test]
fn the_identity_of_generated_programs_holds_everywhere() {
    let mut total = Report::default();
    let (mut fired, mut all) = (0, 0);
    for seed in 0..300 {
        let program = generate(seed, 30, &Weights::default());
        let bodies: Vec<_> = program.module.defined().collect();
        let mappings: Vec<_> = bodies.iter().map(|(_, f)| (identity(f, f), anchors(f, f))).collect();
        let pairs: Vec<FunctionPair<'_>> = bodies
            .iter()
            .zip(&mappings)
            .map(|((func, body), (mapping, anchors))| FunctionPair {
                func: *func,
                before: body,
                after: body,
                anchors,
                forward: mapping,
                backward: mapping,
            })
            .collect();
        let mut oracle = Oracle::new(&program.module, &pairs, OracleOptions::default()).expect("the pairs fit");
        for arguments in &program.arguments {
            oracle.run(program.main, arguments, &NoHost);
        }
        let report = oracle.report();
        assert_eq!(report.divergence_count, 0, "seed {seed}: {}", report.divergences[0]);
        total.add(report);
        let coverage = oracle.coverage();
        (fired, all) = (fired + coverage.0, all + coverage.1);
    }
    assert_eq!(total.exhausted, 0);
    assert_eq!(total.forward.transitions, total.backward.transitions);
    assert!(total.forward.transitions > 100_000, "{total:?}");
    assert!(total.forward.in_loops > total.forward.transitions / 10, "{total:?}");
    assert!(total.forward.compared > 5 * total.forward.transitions, "{total:?}");
    assert!(total.forward.going_on > 500 && total.backward.going_on > 500, "{total:?}");
    assert!(total.trapped > 10 && total.trapped < total.runs / 2, "{total:?}");
    assert_eq!(total.forward.with_code, 0, "copies of a value to itself are no code");
    assert!(fired > all / 2, "{fired} of {all} entries fired");
}

#[test]
fn a_mapping_with_code_in_a_loop_is_counted() {
    let mut case = Case::new(LOOP);
    case.forward.insert(case.before_definition("twice"), late(&case));
    let report = case.run(&[&[3]]);
    assert_eq!(report.divergence_count, 0, "{:?}", report.divergences);
    let forward = report.forward;
    assert_eq!((forward.transitions, forward.with_code, forward.in_loops), (3, 3, 3), "{forward:?}");
    assert_eq!(forward.compared, 3 * 4);
    assert_eq!(report.backward.transitions, 0);
}

/// Counts `%n` down and sums twice the counter.
const LOOP: &str = "func @f(%n: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump head(%n, %zero)
head(%i: i32, %sum: i32):
  br_if %i, body, done
body:
  %twice = add.i32 %i, %i
  %next = sub.i32 %i, %one
  %more = add.i32 %sum, %twice
  jump head(%next, %more)
done:
  return %sum
}
";

/// Lands behind `%twice` and `%next`, both recomputed; provides what is live there.
fn late(case: &Case) -> Entry {
    let [one, i, sum, twice, next] = ["one", "i", "sum", "twice", "next"].map(|n| case.value(n));
    let step = |opcode, a, b| Step {
        opcode,
        ty: Type::I32,
        operand_ty: Type::I32,
        bits: 0,
        args: [Operand::Source(a), Operand::Source(b)].into(),
    };
    Entry {
        replays: Vec::new(),
        target: case.before_definition("more"),
        steps: vec![step(Opcode::Add, i, i), step(Opcode::Sub, i, one)],
        assigns: sorted(vec![
            copy(one),
            copy(sum),
            Assign { value: twice, from: Operand::Step(0) },
            Assign { value: next, from: Operand::Step(1) },
        ]),
        requires: sorted(vec![one, i, sum]),
        kept: Vec::new(),
    }
}

fn sorted<T: Ord>(mut list: Vec<T>) -> Vec<T> {
    list.sort();
    list
}

#[test]
fn a_wrong_copy_is_found() {
    let mut case = Case::new(STRAIGHT);
    let point = case.before_definition("square");
    let [a, b, sum] = ["a", "b", "sum"].map(|n| case.value(n));
    let mut entry = copies(point, &sorted(vec![a, b, sum]));
    let wrong = entry.assigns.iter_mut().find(|x| x.value == sum).expect("the entry provides the sum");
    wrong.from = Operand::Source(a);
    case.backward.insert(point, entry);
    assert_eq!(case.difference(&[&[3, 4]]), Difference::Value { value: sum, expected: 7, found: 3 });
    // Where the two values are equal there is nothing to find.
    assert_eq!(case.run(&[&[3, 0]]).divergence_count, 0);
}

#[test]
fn a_wrong_copy_of_a_value_that_no_result_depends_on_is_found() {
    let mut case = Case::new(
        "func @f(%a: i32, %b: i32) -> i32 {
entry:
  %dead = add.i32 %a, %b
  %result = mul.i32 %a, %a
  return %result
}
",
    );
    let point = case.point_before(Opcode::Return);
    let [a, dead, result] = ["a", "dead", "result"].map(|n| case.value(n));
    let mut entry = copies(point, &sorted(vec![dead, result]));
    entry.assigns.iter_mut().find(|x| x.value == dead).expect("provided").from = Operand::Source(a);
    entry.requires = sorted(vec![a, result]);
    case.forward.insert(point, entry);
    assert_eq!(case.difference(&[&[2, 5]]), Difference::Value { value: dead, expected: 7, found: 2 });
}

#[test]
fn a_dropped_step_is_found() {
    let mut case = Case::new(LOOP);
    let mut entry = late(&case);
    let next = case.value("next");
    entry.steps.pop();
    entry.assigns.iter_mut().find(|x| x.value == next).expect("provided").from = Operand::Step(0);
    case.forward.insert(case.before_definition("twice"), entry);
    let report = case.run(&[&[3]]);
    let expected = Difference::Value { value: next, expected: 2, found: 6 };
    assert_eq!(report.divergences.iter().map(|d| &d.difference).collect::<Vec<_>>(), [&expected]);
    // Kept once for the entry, counted at every visit.
    assert_eq!(report.divergence_count, 3);
}

const STORE: &str = "memory @m 1
func @f(%a: i32, %v: i32) -> i32 {
entry:
  store.i32 @m[%a], %v
  %w = add.i32 %v, %v
  return %w
}
";

#[test]
fn a_target_across_an_effect_is_found() {
    let mut case = Case::new(STORE);
    let (store, behind) = (case.point_before(Opcode::Store), case.before_definition("w"));
    let v = case.value("v");
    case.forward.insert(store, copies(behind, &[v]));
    assert_eq!(case.difference(&[&[8, 5]]), Difference::NoPartner);
    case.forward.remove(store);
    case.forward.insert(behind, copies(store, &sorted(vec![case.value("a"), v])));
    assert_eq!(case.difference(&[&[8, 5]]), Difference::NoPartner);
}

#[test]
fn memory_that_differs_is_found() {
    let mut case = Case::new(STORE);
    // As if the store had moved: no anchor, so both sides of it are in one gap.
    let store = case.point_before(Opcode::Store);
    case.anchors.remove(&store.inst());
    case.forward.insert(store, copies(case.before_definition("w"), &[case.value("v")]));
    assert_eq!(case.difference(&[&[8, 5]]), Difference::Memory);
    // Storing what was there changes nothing.
    assert_eq!(case.run(&[&[8, 0]]).divergence_count, 0);
}

#[test]
fn effects_that_differ_are_found() {
    let mut case = Case::new(
        "memory @m 1 4
func @f(%a: i32) -> i32 {
entry:
  %zero = const.i32 0
  %size = memory_grow @m, %zero
  %w = add.i32 %a, %a
  return %w
}
",
    );
    let grow = case.point_before(Opcode::MemoryGrow);
    case.anchors.remove(&grow.inst());
    case.forward.insert(grow, copies(case.before_definition("w"), &[case.value("a")]));
    assert_eq!(case.difference(&[&[1]]), Difference::Effects);
}

/// A pass made of a function.
struct Edit<F>(F);

impl<F: Fn(&mut Editor<'_>)> Pass for Edit<F> {
    fn name(&self) -> &'static str {
        "edit"
    }

    fn run(&self, editor: &mut Editor<'_>) {
        assert!(editor.plan("all"), "there is fuel");
        (self.0)(editor);
    }
}

fn edited(case: Case, edit: impl Fn(&mut Editor<'_>)) -> Case {
    let applied = apply(&case.before, &Edit(edit), &mut Fuel::UNLIMITED.clone());
    Case::of(case.module, case.before, applied.into_parts().0)
}

/// The loop, with a block on its back edge in the version after; and the point in it.
fn split_back_edge() -> (Case, Point) {
    let case = edited(Case::new(LOOP), |editor| {
        let back = editor.func().all_insts().filter(|i| editor.func().inst(*i).opcode == Opcode::Jump).last();
        editor.split_edge(Edge { inst: back.expect("the loop has a latch"), index: 0 });
    });
    let added = case.after.all_insts().find(|i| !case.before.has_inst(*i)).expect("the split added a jump");
    (case, Point::before(added))
}

#[test]
fn a_stale_parameter_is_found() {
    let (mut case, on_edge) = split_back_edge();
    let head = case.point_before(Opcode::BrIf);
    let [one, i, sum, next, more] = ["one", "i", "sum", "next", "more"].map(|n| case.value(n));
    // The jump gives the header's parameters their next contents; those of the last round are stale.
    let assigns = vec![
        copy(one),
        Assign { value: i, from: Operand::Source(next) },
        Assign { value: sum, from: Operand::Source(more) },
    ];
    let right = Entry { assigns: sorted(assigns), ..copies(head, &sorted(vec![one, next, more])) };
    case.backward.insert(on_edge, right);
    let report = case.run(&[&[3]]);
    assert_eq!((report.divergence_count, report.backward.transitions), (0, 3), "{:?}", report.divergences);
    assert_eq!(report.backward.with_code, 3);

    case.backward.insert(on_edge, copies(head, &sorted(vec![one, i, sum])));
    assert!(matches!(case.difference(&[&[3]]), Difference::Value { .. }));
}

#[test]
fn a_value_that_is_not_provided_shows_when_the_run_goes_on() {
    let mut case = Case::new(STRAIGHT);
    let point = case.before_definition("low");
    case.forward.insert(point, copies(point, &[case.value("square")]));
    let report = case.run(&[&[3, 4], &[3, 4], &[3, 4], &[3, 4], &[3, 4]]);
    let found: Vec<&Difference> = report.divergences.iter().map(|d| &d.difference).collect();
    let [Difference::NotProvided { value }, Difference::GoingOn { expected, found }] = found[..] else {
        panic!("{report:#?}")
    };
    assert_eq!(*value, case.value("a"));
    assert_ne!(expected, found);
}

#[test]
fn a_value_that_is_not_provided_is_found_without_a_run() {
    let mut case = Case::new(LOOP);
    let point = case.before_definition("twice");
    let [one, sum] = ["one", "sum"].map(|n| case.value(n));
    let good = late(&case);
    case.forward.insert(point, good.clone());
    assert_eq!(case.run(&[]).divergence_count, 0);
    let mut entry = good;
    entry.assigns.retain(|a| a.value != sum);
    case.forward.insert(point, entry);
    // No run passes the point, and none would compare what is not there.
    let options = OracleOptions { going_on: 0, ..OracleOptions::default() };
    for args in [&[][..], &[&[0][..]][..], &[&[3][..]][..]] {
        let report = case.run_with(args, options);
        assert_eq!(report.divergence_count, 1, "{report:#?}");
        assert_eq!(report.divergences[0].difference, Difference::NotProvided { value: sum });
        assert!(report.divergences[0].input.is_empty());
    }
    let text = case.run(&[]).divergences[0].to_string();
    let target = case.before_definition("more");
    let expected = format!(
        "@f, forward, without a run:\n  from {}  %twice = add.i32 %i, %i\n  to   {}  %more = add.i32 %sum, %twice\n  \
         {sum} is live at the target point and not provided",
        point.inst(),
        target.inst()
    );
    assert_eq!(text, expected);
    // Every value counts; the first of the entry is kept.
    case.forward.insert(point, copies(target, &[one]));
    let report = case.run(&[]);
    assert_eq!((report.divergence_count, report.divergences.len()), (3, 1), "{report:#?}");
}

#[test]
fn a_value_kept_for_the_way_back_has_to_be_provided() {
    let mut case = Case::new(STRAIGHT);
    let [a, b, sum, square] = ["a", "b", "sum", "square"].map(|n| case.value(n));
    let (early, late) = (case.before_definition("square"), case.before_definition("low"));
    // The way back lands where the sum is still to be squared, and keeps it alive for that.
    let back = Entry { kept: vec![sum], ..copies(early, &sorted(vec![a, sum])) };
    case.anchors.clear();
    case.backward.insert(late, back);
    case.forward.insert(early, copies(early, &sorted(vec![a, sum])));
    assert_eq!(case.run(&[]).divergence_count, 0);
    case.forward.insert(late, copies(late, &sorted(vec![a, square])));
    let report = case.run(&[]);
    assert_eq!(report.divergence_count, 1, "{report:#?}");
    assert_eq!(report.divergences[0].difference, Difference::NotProvided { value: sum });
    case.forward.insert(late, copies(late, &sorted(vec![a, sum, square])));
    assert_eq!(case.run(&[]).divergence_count, 0);
    // A use that the entry does not declare as kept counts all the same.
    let hidden = Entry { requires: sorted(vec![a, b, sum]), ..copies(early, &sorted(vec![a, sum])) };
    case.backward.insert(late, hidden);
    let report = case.run(&[]);
    assert!(report.divergences.iter().all(|d| d.difference == Difference::NotProvided { value: b }), "{report:#?}");
    assert_eq!(report.divergence_count, 2, "once for each entry that lands before the use");
}

#[test]
fn what_has_to_be_provided_follows_the_demand() {
    let mut case = Case::new(
        "func @f(%a: i32, %b: i32) -> i32 {
entry:
  %result = mul.i32 %a, %a
  %dead = add.i32 %a, %b
  return %result
}
",
    );
    let point = case.before_definition("dead");
    let [a, b, result] = ["a", "b", "result"].map(|n| case.value(n));
    case.forward.insert(point, copies(point, &[result]));
    assert_eq!(case.run(&[&[2, 5]]).divergence_count, 0, "what feeds dead code alone is not needed");
    let live = OracleOptions { demand: Demand::Live, ..OracleOptions::default() };
    let report = case.run_with(&[&[2, 5]], live);
    assert_eq!(report.divergence_count, 2, "{report:#?}");
    assert_eq!(report.divergences[0].difference, Difference::NotProvided { value: a });
    case.forward.insert(point, copies(point, &sorted(vec![a, b, result])));
    assert_eq!(case.run_with(&[&[2, 5]], live).divergence_count, 0);
}

#[test]
fn entries_that_are_wrong_whatever_the_run_are_found_when_visited() {
    let mut case = Case::new(STRAIGHT);
    let [a, b, sum, square] = ["a", "b", "sum", "square"].map(|n| case.value(n));
    let point = case.before_definition("square");
    let good = copies(point, &sorted(vec![a, b, sum]));
    let step = |opcode, args: &[Operand]| Step {
        opcode,
        ty: Type::I32,
        operand_ty: Type::I32,
        bits: 0,
        args: args.iter().copied().collect(),
    };
    let nowhere = Point::before(Inst::from_u32(1000));
    let unavailable = Entry { requires: vec![square], ..good.clone() };
    let poison = Entry { requires: sorted(vec![a, b]), ..good.clone() };
    let with_square = [good.assigns.clone(), vec![Assign { value: square, from: Operand::Source(a) }]].concat();
    let early = Entry { assigns: with_square, ..good.clone() };
    let unknown = Entry { target: nowhere, ..good.clone() };
    let later = Entry { steps: vec![step(Opcode::Add, &[Operand::Source(a), Operand::Step(0)])], ..good.clone() };
    let load = Entry { steps: vec![step(Opcode::Load, &[Operand::Source(a)])], ..good.clone() };
    let unary = Entry { steps: vec![step(Opcode::Add, &[Operand::Source(a)])], ..good.clone() };
    let float = Entry { steps: vec![step(Opcode::Fneg, &[Operand::Source(a)])], ..good.clone() };
    for (entry, fault) in [
        (unavailable, Fault::RequiredUnavailable { value: square }),
        (poison, Fault::NotRequired { value: sum }),
        (early, Fault::ProvidedUnavailable { value: square }),
        (unknown, Fault::NoSuchPoint { point: nowhere }),
        (later, Fault::NoSuchStep { step: 0 }),
        (load, Fault::MalformedStep { step: 0 }),
        (unary, Fault::MalformedStep { step: 0 }),
        (float, Fault::MalformedStep { step: 0 }),
    ] {
        case.forward.insert(point, entry);
        assert_eq!(case.difference(&[&[3, 4]]), Difference::Entry(fault));
    }
    case.forward.insert(point, good);
    assert_eq!(case.run(&[&[3, 4]]).divergence_count, 0);
}

#[test]
fn compensation_code_that_traps_is_found() {
    let mut case = Case::new(STRAIGHT);
    let [a, b, sum] = ["a", "b", "sum"].map(|n| case.value(n));
    let point = case.before_definition("square");
    let args = [Operand::Source(a), Operand::Source(b)].into();
    let divide = Step { opcode: Opcode::Udiv, ty: Type::I32, operand_ty: Type::I32, bits: 0, args };
    case.forward.insert(point, Entry { steps: vec![divide], ..copies(point, &sorted(vec![a, b, sum])) });
    assert_eq!(case.run(&[&[3, 4]]).divergence_count, 0);
    let kind = TrapKind::DivisionByZero;
    assert_eq!(case.difference(&[&[3, 0]]), Difference::Trap { step: 0, kind });
}

/// Arithmetic gives one NaN, and what moves bits keeps them: there is no other NaN to forgive.
#[test]
fn a_nan_of_other_bits_is_found() {
    let text = "func @f(%a: f64) -> f64 {
entry:
  %q = fdiv.f64 %a, %a
  %r = fabs.f64 %q
  return %r
}
";
    let mut case = Case::new(text);
    let (point, q) = (case.before_definition("r"), case.value("q"));
    let entry = |bits| {
        let args = Default::default();
        let nan = Step { opcode: Opcode::Const, ty: Type::F64, operand_ty: Type::F64, bits, args };
        Entry { steps: vec![nan], assigns: vec![Assign { value: q, from: Operand::Step(0) }], ..copies(point, &[]) }
    };
    let (canonical, other) = (0x7ff8_0000_0000_0000, 0x7ff8_0000_0000_0001);
    case.forward.insert(point, entry(canonical));
    let report = case.run(&[&[0]]);
    assert_eq!((report.divergence_count, report.forward.transitions), (0, 1), "{report:#?}");
    case.forward.insert(point, entry(other));
    assert_eq!(case.difference(&[&[0]]), Difference::Value { value: q, expected: canonical, found: other });
}

#[test]
fn versions_that_differ_are_told_from_wrong_mappings() {
    let branch = "func @f(%a: i32, %b: i32) -> i32 {
entry:
  br_if %a, yes, no
yes:
  return %a
no:
  return %b
}
";
    let swapped = edited(Case::new(branch), |editor| {
        let (entry, args) = (editor.func().entry(), editor.func().arguments().to_vec());
        editor.replace_operand(editor.func().terminator(entry), 0, args[1]);
    });
    assert!(matches!(swapped.difference(&[&[1, 0]]), Difference::Stops { .. }));
    assert_eq!(swapped.run(&[&[1, 1]]).divergence_count, 0);

    let result = edited(Case::new(branch), |editor| {
        let (blocks, args) = (editor.func().blocks().collect::<Vec<_>>(), editor.func().arguments().to_vec());
        editor.replace_operand(editor.func().terminator(blocks[1]), 0, args[1]);
    });
    assert!(matches!(result.difference(&[&[1, 0]]), Difference::Stops { .. }));

    let stored = edited(Case::new(STORE), |editor| {
        let (store, args) = (editor.func().first_inst(editor.func().entry()), editor.func().arguments().to_vec());
        editor.replace_operand(store, 1, args[0]);
    });
    // The return carries the digest of memory, so the effects differ first.
    assert_eq!(stored.difference(&[&[8, 5]]), Difference::LockstepEffects);
}

#[test]
fn a_point_visited_twice_between_anchors_is_found() {
    let mut case = Case::new(LOOP);
    case.anchors.clear();
    let point = case.before_definition("twice");
    case.forward.insert(point, copies(point, &sorted(["one", "i", "sum"].map(|n| case.value(n)).to_vec())));
    assert_eq!(case.run(&[&[1]]).divergence_count, 0);
    assert_eq!(case.difference(&[&[2]]), Difference::Ambiguous);
}

#[test]
fn exhausted_runs_end_quietly_and_are_counted() {
    let mut case = Case::new(LOOP);
    let point = case.before_definition("twice");
    case.forward.insert(point, copies(point, &sorted(["one", "i", "sum"].map(|n| case.value(n)).to_vec())));
    let limits = Limits { fuel: 100, ..Limits::default() };
    let report = case.run_with(&[&[1_000_000], &[2]], OracleOptions { limits, ..OracleOptions::default() });
    assert_eq!((report.runs, report.exhausted, report.divergence_count), (2, 1, 0));
    assert!(report.forward.transitions > 10);
    assert!(report.forward.going_on_exhausted > 0, "{report:?}");
}

#[test]
fn a_trap_ends_both_versions_alike() {
    let mut case = Case::new(
        "func @f(%a: i32, %b: i32) -> i32 {
entry:
  %sum = add.i32 %a, %b
  %q = udiv.i32 %sum, %b
  return %q
}
",
    );
    let point = case.before_definition("q");
    case.forward.insert(point, copies(point, &sorted(["sum", "b"].map(|n| case.value(n)).to_vec())));
    let report = case.run(&[&[3, 0], &[3, 1]]);
    assert_eq!((report.runs, report.trapped, report.divergence_count), (2, 1, 0));
    assert_eq!(report.forward.transitions, 2);
}

/// A division that a jump precedes, hoisted above the jump in the version after.
fn hoisted_trap() -> Case {
    let text = "func @f(%a: i32, %b: i32) -> i32 {
entry:
  %sum = add.i32 %a, %b
  jump next
next:
  %twice = add.i32 %sum, %sum
  %q = udiv.i32 %sum, %b
  return %q
}
";
    let case = edited(Case::new(text), |editor| {
        let blocks: Vec<_> = editor.func().blocks().collect();
        let divide = editor.func().block_insts(blocks[1]).nth(1).expect("the block divides");
        editor.hoist(divide, editor.func().terminator(blocks[0]));
    });
    let divide = case.before_definition("q").inst();
    let anchors = case.anchors.iter().copied().filter(|i| *i != divide).collect();
    Case { anchors, ..case }
}

#[test]
fn a_trap_that_moved_up_ends_both_versions_alike() {
    let mut case = hoisted_trap();
    let point = case.before_definition("sum");
    case.forward.insert(point, copies(point, &sorted(vec![case.value("a"), case.value("b")])));
    let report = case.run(&[&[3, 0], &[3, 1]]);
    assert_eq!((report.trapped, report.divergence_count), (1, 0), "{:?}", report.divergences);
    assert_eq!(report.forward.transitions, 2);
}

#[test]
fn landing_behind_a_trap_that_has_not_happened_is_found() {
    let mut case = hoisted_trap();
    let [b, sum] = ["b", "sum"].map(|n| case.value(n));
    let source = case.before_definition("twice");
    let args = [Operand::Source(sum), Operand::Source(b)].into();
    let divide = Step { opcode: Opcode::Udiv, ty: Type::I32, operand_ty: Type::I32, bits: 0, args };
    let entry = Entry {
        steps: vec![divide],
        assigns: sorted(vec![copy(sum), Assign { value: case.value("q"), from: Operand::Step(0) }]),
        requires: sorted(vec![b, sum]),
        ..copies(source, &[])
    };
    case.forward.insert(source, entry);
    assert_eq!(case.run(&[&[3, 1]]).divergence_count, 0);
    assert_eq!(case.difference(&[&[3, 0]]), Difference::NoPartner);
}

#[test]
fn a_trap_of_one_version_alone_is_told_from_wrong_mappings() {
    let text = "func @f(%a: i32, %b: i32) -> i32 {
entry:
  %zero = const.i32 0
  %q = udiv.i32 %a, %b
  jump next
next:
  return %a
}
";
    let case = edited(Case::new(text), |editor| {
        let insts: Vec<_> = editor.func().all_insts().collect();
        let zero = editor.func().inst(insts[0]).result().expect("a constant");
        editor.replace_operand(insts[1], 1, zero);
    });
    assert!(matches!(case.difference(&[&[3, 1]]), Difference::Stops { .. }));
    assert_eq!(case.run(&[&[3, 0]]).divergence_count, 0);
}

#[test]
fn sampling_compares_the_first_visits_and_some_of_the_rest() {
    let mut case = Case::new(LOOP);
    let point = case.before_definition("twice");
    case.forward.insert(point, copies(point, &sorted(["one", "i", "sum"].map(|n| case.value(n)).to_vec())));
    case.backward = case.forward.clone();
    let sampled = |one_in| OracleOptions {
        policy: Policy::Sampled { first: 8, one_in },
        going_on: 0,
        ..OracleOptions::default()
    };
    let report = case.run_with(&[&[5000]], sampled(u32::MAX));
    assert_eq!((report.forward.transitions, report.backward.transitions), (8, 8));
    let report = case.run_with(&[&[5000]], sampled(50));
    assert!((50..200).contains(&report.forward.transitions), "{report:?}");
    assert_eq!(report.forward.transitions, report.backward.transitions);
    assert_eq!(report, case.run_with(&[&[5000]], sampled(50)), "a seed decides what is sampled");

    // The first visits count over all runs, and a wrong entry among them is found.
    assert_eq!(case.run_with(&[&[5], &[5]], sampled(u32::MAX)).forward.transitions, 8);
    case.forward.insert(point, copies(case.point_before(Opcode::Return), &[case.value("sum")]));
    assert_eq!(case.run_with(&[&[5000]], sampled(u32::MAX)).divergence_count, 8);
}

#[test]
fn the_budget_of_transitions_holds() {
    let mut case = Case::new(LOOP);
    let point = case.before_definition("twice");
    case.forward.insert(point, copies(point, &sorted(["one", "i", "sum"].map(|n| case.value(n)).to_vec())));
    let report = case.run_with(&[&[1000]], OracleOptions { transitions: 100, ..OracleOptions::default() });
    assert_eq!((report.forward.transitions, report.exhausted, report.divergence_count), (100, 0, 0));
}

/// A recursive function with a pair, and one without that calls back into it.
#[test]
fn activations_of_the_same_function_are_told_apart() {
    let mut case = Case::new(
        "func @f(%n: i32) -> i32 {
entry:
  %twice = add.i32 %n, %n
  br_if %n, more, done
more:
  %one = const.i32 1
  %less = sub.i32 %n, %one
  %below = call @through(%less)
  %sum = add.i32 %below, %twice
  return %sum
done:
  return %n
}
func @through(%n: i32) -> i32 {
entry:
  %r = call @f(%n)
  return %r
}
",
    );
    case.forward = identity(&case.before, &case.after);
    case.backward = identity(&case.after, &case.before);
    let report = case.run(&[&[6]]);
    assert_eq!(report.divergence_count, 0, "{}", report.divergences[0]);
    // Seven activations; the last visits 3 points, the others 7.
    assert_eq!(report.forward.transitions, 6 * 7 + 3);
    assert!(report.forward.going_on > 0);
}

#[test]
fn a_start_function_runs_first() {
    let mut case = Case::new(
        "global @g: mut i32 = 1
start @init
func @init() -> () {
entry:
  %seven = const.i32 7
  global_set.i32 @g, %seven
  return
}
func @f() -> i32 {
entry:
  %g = global_get.i32 @g
  %h = add.i32 %g, %g
  return %h
}
",
    );
    let point = case.before_definition("h");
    let g = case.value("g");
    let seven = Step { opcode: Opcode::Const, ty: Type::I32, operand_ty: Type::I32, bits: 7, args: Default::default() };
    let assigns = vec![Assign { value: g, from: Operand::Step(0) }];
    let entry = Entry { steps: vec![seven], assigns, ..copies(point, &[]) };
    case.forward.insert(point, entry);
    let report = case.run(&[&[]]);
    assert_eq!((report.divergence_count, report.forward.transitions), (0, 1), "{:?}", report.divergences);
}

#[test]
fn a_divergence_says_where_and_what() {
    let mut case = Case::new(STRAIGHT);
    let (point, [a, sum]) = (case.before_definition("square"), ["a", "sum"].map(|n| case.value(n)));
    let wrong = vec![copy(a), Assign { value: sum, from: Operand::Source(a) }];
    case.forward.insert(point, Entry { assigns: wrong, ..copies(point, &[a]) });
    let report = case.run(&[&[3, 4]]);
    let text = report.divergences[0].to_string();
    let expected = format!(
        "@f, forward, visit 1:\n  from {0}  %square = mul.i32 %sum, %sum\n  to   {0}  %square = mul.i32 %sum, %sum\n  \
         {sum} is 0x7 in the target version, and 0x3 after the transition\n  on input (0x3, 0x4)",
        point.inst()
    );
    assert_eq!(text, expected);
    let blamed = report.divergences[0].entry.as_ref().expect("an entry is to blame");
    assert_eq!((blamed.direction, blamed.visit), (Direction::Forward, Some(1)));
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let case = edited(Case::new(STRAIGHT), |editor| {
        let first = editor.func().first_inst(editor.func().entry());
        editor.add_value(InstSpec::constant(Type::I32, 1), first);
    });
    let func = case.module.lookup("f").expect("the module has an f");
    let pair = FunctionPair {
        func,
        before: &case.before,
        after: &case.after,
        anchors: &case.anchors,
        forward: &case.forward,
        backward: &case.backward,
    };
    let refused = |pairs: &[FunctionPair<'_>]| Oracle::new(&case.module, pairs, OracleOptions::default()).err();
    let function = || "f".to_owned();
    let direction = Direction::Backward;
    let wrong = FunctionPair { backward: &case.forward, ..pair };
    assert_eq!(refused(&[wrong]), Some(SetupError::OtherVersions { function: function(), direction }));
    let only_after = case.after.first_inst(case.after.entry());
    let anchors = BTreeSet::from([only_after]);
    let wrong = FunctionPair { anchors: &anchors, ..pair };
    assert_eq!(refused(&[wrong]), Some(SetupError::NotAnAnchor { function: function(), inst: only_after }));
    assert_eq!(refused(&[pair, pair]), Some(SetupError::TwoPairs { function: function() }));
    assert_eq!(refused(&[pair]), None);
}

/// How well the oracle sees: a copy from another value of the same type, at a point that is visited.
#[test]
fn most_wrong_copies_in_generated_programs_are_found() {
    let (mut damaged, mut found) = (0u32, 0u32);
    for seed in 0..200 {
        let program = generate(seed, 30, &Weights::default());
        let body = program.module.body(program.main).expect("the main function has a body");
        let (good, bounding) = (identity(body, body), anchors(body, body));
        let mut prng = Prng::new(seed);
        let at = prng.index(good.len());
        let (point, entry) = good.entries().nth(at).expect("every program has a point");
        let Some(wrong) = with_wrong_copy(body, entry, &mut prng) else { continue };
        let mut forward = Mapping::new(body, body);
        let backward = Mapping::new(body, body);
        let run = |forward: &Mapping| {
            let anchors = &bounding;
            let pair =
                FunctionPair { func: program.main, before: body, after: body, anchors, forward, backward: &backward };
            let mut oracle = Oracle::new(&program.module, &[pair], OracleOptions::default()).expect("the pair fits");
            program.arguments.iter().for_each(|arguments| oracle.run(program.main, arguments, &NoHost));
            oracle.report().clone()
        };
        forward.insert(point, entry.clone());
        let sound = run(&forward);
        assert_eq!(sound.divergence_count, 0, "seed {seed}");
        if sound.forward.transitions == 0 {
            continue;
        }
        forward.insert(point, wrong);
        damaged += 1;
        found += u32::from(run(&forward).divergence_count > 0);
    }
    assert!(damaged >= 50, "{damaged} damaged entries were visited");
    assert!(100 * found >= 85 * damaged, "{found} of {damaged} wrong copies found");
}

/// The entry with one value copied from another of its type.
fn with_wrong_copy(function: &Function, entry: &Entry, prng: &mut Prng) -> Option<Entry> {
    let at = prng.index(entry.assigns.len());
    let value = entry.assigns.get(at)?.value;
    let ty = function.value_type(value);
    let same_type = entry.requires.iter().copied().filter(|v| *v != value && function.value_type(*v) == ty);
    let others: Vec<Value> = same_type.collect();
    let from = Operand::Source(*others.get(prng.index(others.len()))?);
    let mut wrong = entry.clone();
    wrong.assigns[at].from = from;
    Some(wrong)
}
