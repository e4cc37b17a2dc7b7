//! The suggestions of profiles.

use super::{FUEL, LOOP, machine, parsed, profiled, programs};
use interp::{CallTarget, CallTargets, NoHost, NoObserver, Program, TraceLevel};
use ir::{Module, Shape};
use osier::profile::{FunctionProfile, Profile};
use osier::speculate::{Expected, Observed, SuggestOptions, Suggestion, suggest};
use std::collections::BTreeMap;
use verify::prng::Prng;

/// The suggestions for `@f` at places visited ten times or more, each as "place: value expected,
/// worth".
fn suggested(text: &str, args: &[u64], by_worth: bool) -> Vec<String> {
    let module = parsed(text);
    let func = module.lookup("f").expect("the text has it");
    let base = module.body(func).expect("it has a body");
    let options = SuggestOptions { visits: 10, by_worth, ..SuggestOptions::default() };
    let shown = |suggestion: Suggestion| {
        let Suggestion { assumption, observed, worth, .. } = suggestion;
        let value = base.value_name(assumption.value).expect("the text names every value");
        format!("{observed}: {value} {}, {worth}", assumption.expected)
    };
    suggest(&module, func, &profiled(&module, args), &options).into_iter().map(shown).collect()
}

#[test]
fn sides_never_taken_and_single_targets_are_suggested() {
    let both =
        ["call of one target: index is 0x0, 200", "branch side never taken: over is 0x0, 150"];
    assert_eq!(suggested(LOOP, &[50], true), both);
    // In the order of the text.
    assert_eq!(suggested(LOOP, &[50], false), [both[1], both[0]]);
    // Too few visits; and a loop that takes the side.
    assert_eq!(suggested(LOOP, &[9], true), [""; 0]);
    let taken = ["call of one target: index is 0x0, 2000"];
    assert_eq!(suggested(LOOP, &[500], true), taken);
}

#[test]
fn a_reference_of_the_host_is_not_suggested() {
    let text = "func @f(%x: externref) -> i32 {\nentry:\n  %a = ref_is_null.externref %x\n  \
        %b = ref_is_null.externref %x\n  %c = ref_is_null.externref %x\n  \
        %d = add.i32 %a, %b\n  %e = add.i32 %d, %c\n  return %e\n}\n";
    let module = parsed(text);
    let func = module.lookup("f").expect("the text has it");
    let suggestions = |bits: u64| {
        let arguments = vec![Some(bits)];
        let one = FunctionProfile { calls: 5000, arguments, ..FunctionProfile::default() };
        let profile = Profile { functions: BTreeMap::from([(func, one)]) };
        suggest(&module, func, &profile, &SuggestOptions::default()).len()
    };
    assert_eq!([suggestions(0), suggestions(5)], [1, 0]);
}

#[test]
fn an_index_decides_nothing_where_the_table_may_change() {
    let setter = "func @set(%i: i32) {\nentry:\n  %f = const.funcref @two\n  table_set.funcref @calls, %i, %f\n  return\n}\n";
    let open = LOOP.replace(" fixed", "");
    let written = format!("{open}{setter}");
    assert_eq!(suggested(&written, &[50], true), ["branch side never taken: over is 0x0, 150"]);
    let all =
        ["branch side never taken: over is 0x0, 150", "call of one target: index is 0x0, -50"];
    assert_eq!(suggested(&written, &[50], false), all);
    let exported = format!("{open}export \"t\" table @calls\n");
    assert_eq!(suggested(&exported, &[50], false), all);
}

/// A loop over constant memory, an argument that never changes, and a condition that is no truth
/// value.
const CALLS: &str = r#"
memory @m 1
data @m 0 "\07\00\00\00"
func @main(%n: i32) -> i32 {
entry:
  %one = const.i32 1
  %six = const.i32 6
  jump head(%n)
head(%i: i32):
  %x = call @f(%i, %six)
  %j = sub.i32 %i, %one
  br_if %j, head(%j), done
done:
  return %x
}
func @f(%i: i32, %k: i32) -> i32 {
entry:
  %zero = const.i32 0
  %two = const.i32 2
  %l = load.i32 @m[%zero]
  %a = mul.i32 %l, %two
  %b = add.i32 %a, %two
  %c = add.i32 %b, %l
  %d = mul.i32 %k, %two
  %e = add.i32 %d, %two
  %g = xor.i32 %e, %d
  %h = add.i32 %c, %i
  %r = add.i32 %g, %h
  br_if %i, some, none
some:
  switch %k, [none, none, none, none, none, none, some2], default none
some2:
  return %r
none:
  return %zero
}
"#;

#[test]
fn constant_arguments_and_loads_are_suggested_by_what_they_fold() {
    let module = parsed(CALLS);
    let main = module.lookup("main").expect("the text has it");
    let func = module.lookup("f").expect("the text has it");
    let base = module.body(func).expect("it has a body");
    let mut machine = machine(&Program::new(&module), FUEL, TraceLevel::Off);
    machine.invoke(main, &[100], &mut NoHost, &mut NoObserver);
    let profile = Profile::collect(&module, &machine);
    let options = SuggestOptions { visits: 10, ..SuggestOptions::default() };
    let found = suggest(&module, func, &profile, &options);
    let named = |s: &Suggestion| {
        (
            base.value_name(s.assumption.value).expect("named"),
            s.assumption.expected,
            s.observed,
            s.worth,
        )
    };
    let (is, argument) = (Expected::Is, Observed::Argument);
    assert_eq!(
        found.iter().map(named).collect::<Vec<_>>(),
        [
            // `d`, `e`, `g` and the `switch`, less the test.
            ("k", is(6), argument, 200),
            // `a`, `b` and `c`, less the test.
            ("l", is(7), Observed::Load, 100),
        ]
    );
    // The branches join no visited code, so each saves less than its test costs.
    let options = SuggestOptions { by_worth: false, ..options };
    let found = suggest(&module, func, &profile, &options);
    let never = Observed::NeverTaken { side: 1 };
    assert_eq!(
        found.iter().map(named).collect::<Vec<_>>(),
        [("i", Expected::IsNot(0), never, -100), ("k", is(6), Observed::OneSide { side: 6 }, -100),]
    );
    let most = SuggestOptions { most: 1, ..options };
    assert_eq!(suggest(&module, func, &profile, &most), found[..1]);
}

/// A profile that lies makes suggestions that `speculate` accepts.
#[test]
fn suggestions_of_any_profile_are_assumptions_that_fit() {
    let mut made = 0;
    for (seed, module, _, _) in programs().take(60) {
        let mut prng = Prng::new(seed);
        let mut profile = Profile::default();
        for (func, base) in module.defined() {
            profile.functions.insert(func, lie(&module, base, &mut prng));
        }
        let profile = Profile::read(&profile.write(&module), &module).expect("it fits");
        for (func, base) in module.defined() {
            for by_worth in [false, true] {
                let options = SuggestOptions { visits: 1, by_worth, most: 40 };
                let found = suggest(&module, func, &profile, &options);
                let assume: Vec<_> = found.iter().map(|suggestion| suggestion.assumption).collect();
                let pipeline = passes::parse("sccp").expect("a pass");
                let plan = osier::speculate::Plan::new(&assume, &pipeline);
                let mut tree = osier::osr::VersionTree::new(base.clone());
                let root = osier::osr::VersionTree::BASE;
                let result = osier::speculate::speculate(&module, &mut tree, root, &plan);
                result.unwrap_or_else(|error| panic!("program {seed}: {error}"));
                made += assume.len();
            }
        }
    }
    assert!(made > 500, "{made} assumptions");
}

/// A profile with figures out of the blue.
fn lie(module: &Module, base: &ir::Function, prng: &mut Prng) -> FunctionProfile {
    let params = base.arguments();
    let mut bits = |ty: ir::Type| prng.next_u64() & ty.mask();
    let mut profile = FunctionProfile {
        calls: u64::MAX,
        arguments: params.iter().map(|arg| Some(bits(base.value_type(*arg)))).collect(),
        ..FunctionProfile::default()
    };
    for inst in base.all_insts() {
        let data = base.inst(inst);
        match data.opcode.shape() {
            Shape::BrIf | Shape::Switch => {
                let mut sides = vec![0; data.targets.len()];
                sides[bits(ir::Type::I32) as usize % data.targets.len()] = u64::MAX;
                profile.branches.insert(inst, sides);
            }
            Shape::CallIndirect => {
                let func = module.funcs.keys().next().expect("it has a function");
                let target = CallTarget { index: bits(ir::Type::I32), func, calls: 1 };
                let targets = CallTargets { targets: vec![target], others: 0 };
                profile.targets.insert(inst, targets);
            }
            Shape::Load(_) | Shape::GlobalGet => {
                let ty = base.value_type(data.result().expect("it has a result"));
                profile.values.insert(inst, bits(ty));
            }
            _ => {}
        }
    }
    profile
}
