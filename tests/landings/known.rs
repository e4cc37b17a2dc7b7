//! Calls with constant arguments natively: rows of the callee that assume these arguments, without
//! a test.

use super::support::{compared, native, policy};
use crate::speculation::support::parsed;
use interp::NoHost;
use ir::{Func, Function, Inst, Module, Opcode, Point};
use osier::check::{Checked, KnownCall, KnownCallFault, known_call};
use osier::jit::{
    Action, Config, ContinueError, Engine, FailedPoint, LinkError, Version, VersionSpec, Vm,
};
use osier::osr::VersionTree;
use osier::speculate::{Assumption, Expected, Plan, Speculative, speculate};
use osier::tiers::{
    CONTEXT_PAUSE, CONTEXT_ROWS, CONTEXT_SIZE, CONTEXT_TRIES, Compiled, CompiledKind, ContextUse,
    Observer, TableUse,
};
use passes::parse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use transition::VersionKey;
use transition::mapping::Mapping;

/// `@f` does one of three things by its second argument, which both calls in the loop fix.
const CALLS: &str = "
func @main(%n: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  %two = const.i32 2
  jump head(%zero, %zero)
head(%i: i32, %sum: i32):
  %more = ult.i32 %i, %n
  br_if %more, body, done
body:
  %a = call @f(%i, %one)
  %b = call @f(%sum, %two)
  %c = add.i32 %a, %b
  %next = add.i32 %i, %one
  jump head(%next, %c)
done:
  return %sum
}
func @f(%x: i32, %k: i32) -> i32 {
entry:
  %one = const.i32 1
  %is = eq.i32 %k, %one
  br_if %is, first, other
first:
  %three = const.i32 3
  %m = mul.i32 %x, %three
  return %m
other:
  %two = const.i32 2
  %also = eq.i32 %k, %two
  br_if %also, second, last
second:
  %seven = const.i32 7
  %y = xor.i32 %x, %seven
  return %y
last:
  return %k
}
";

/// The contexts of rows that were made, and the number of rows that have gone.
#[derive(Clone, Default)]
struct ContextWatch(Arc<Mutex<(Vec<Vec<Expected>>, usize)>>);

impl Observer for ContextWatch {
    fn step(&mut self, _step: Option<osier::driver::Step>) {}

    fn begin(&mut self) {}

    fn in_context(&mut self, _func: Func, facts: &[Assumption], _made: &Speculative) {
        let facts = facts.iter().map(|of| of.expected).collect();
        self.0.lock().expect("nobody panics").0.push(facts);
    }

    fn out_of_context(&mut self, _func: Func, _facts: &[Assumption]) {
        self.0.lock().expect("nobody panics").1 += 1;
    }

    fn compiled(&mut self, _made: Compiled) {}
}

/// Runs `@main` in a tiered machine and in the interpreter, which end alike. Returns the contexts
/// of rows, and how many have gone.
fn contexts(module: &Module, contexts: ContextUse) -> (Vec<Vec<Expected>>, usize) {
    let main = module.func_named("main").expect("it has a main");
    let mut vm = native(&Arc::new(module.clone()), Config::default());
    let watch = ContextWatch::default();
    vm.set_tiering(Box::new(policy(watch.clone()).in_contexts(contexts)));
    compared(&mut vm, main, &[&[100], &[7], &[1000]]).expect("it runs");
    watch.0.lock().expect("nobody panics").clone()
}

#[test]
fn calls_with_constants_lead_to_rows_of_their_own() {
    let (made, gone) = contexts(&parsed(CALLS), ContextUse::On);
    assert_eq!((made, gone), (vec![vec![Expected::Is(1)], vec![Expected::Is(2)]], 0));
    assert_eq!(contexts(&parsed(CALLS), ContextUse::Off), (Vec::new(), 0));
}

/// Two contexts share a row if they agree in all facts that fold something. `%x` decides nothing.
#[test]
fn contexts_that_are_nearly_alike_share_a_row() {
    let text = CALLS.replace("call @f(%i, %one)", "call @f(%two, %one)");
    let text = text.replace("call @f(%sum, %two)", "call @f(%one, %one)");
    let (made, _) = contexts(&parsed(&text), ContextUse::On);
    assert_eq!(made, [vec![Expected::Is(1)]]);
}

/// A function has more contexts than rows: rows with few calls go, and the program ends as before.
#[test]
fn a_function_with_many_contexts_lets_rows_go() {
    let calls = (0..12).map(|k| {
        format!(
            "  %k{k} = const.i32 {k}\n  %r{k} = call @f(%i, %k{k})\n  %s{k} = add.i32 {}, %r{k}\n",
            if k == 0 { "%sum".to_owned() } else { format!("%s{}", k - 1) }
        )
    });
    let calls: String = calls.collect();
    let a = CALLS.find("  %a = call").expect("it calls");
    let b = CALLS.find("  %next = add").expect("it goes on");
    let text = format!("{}{calls}{}", &CALLS[..a], &CALLS[b..]);
    let text = text.replace("head(%next, %c)", "head(%next, %s11)");
    let (made, gone) = contexts(&parsed(&text), ContextUse::On);
    assert!(made.len() > CONTEXT_ROWS && gone == made.len() - CONTEXT_ROWS, "{made:?} {gone}");
}

/// Each row of `@f` calls it with the next constant.
#[test]
fn a_function_that_counts_in_its_argument_has_few_rows() {
    let text = CALLS.replace("  return %k\n", "  %k1 = add.i32 %k, %one\n  %forty = const.i32 99\n  %end = ult.i32 %k, %forty\n  br_if %end, again, stop\nagain:\n  %r = call @f(%x, %k1)\n  return %r\nstop:\n  return %k\n");
    let text = text.replace("%two = const.i32 2\n  jump head", "%two = const.i32 3\n  jump head");
    let (made, gone) = contexts(&parsed(&text), ContextUse::On);
    assert!(made.len() > CONTEXT_ROWS && made.len() <= CONTEXT_TRIES, "{made:?} {gone}");
}

/// Each row of `@f0` calls `@f1` with the next constant, and so on. The rest of the chain runs
/// installed versions.
#[test]
fn a_chain_of_contexts_is_followed_so_far_in_one_pause() {
    let length = 2 * CONTEXT_PAUSE;
    let chain = (0..length).map(|k| {
        let next = k + 1;
        format!(
            "func @f{k}(%x: i32, %k: i32) -> i32 {{\nentry:\n  %one = const.i32 1\n  \
             %odd = and.i32 %k, %one\n  br_if %odd, first, other\nfirst:\n  jump last(%x)\n\
             other:\n  %y = mul.i32 %x, %x\n  jump last(%y)\nlast(%z: i32):\n  \
             %next = add.i32 %k, %one\n  %r = call @f{next}(%z, %next)\n  return %r\n}}\n"
        )
    });
    let chain: String = chain.collect();
    let end = format!("func @f{length}(%x: i32, %k: i32) -> i32 {{\nentry:\n  return %x\n}}\n");
    let main = CALLS.split("func @f(").next().expect("it has a main").replace("@f(", "@f0(");
    let main = main.replace("call @f0(%sum, %two)", "call @f0(%sum, %one)");
    let (made, gone) = contexts(&parsed(&format!("{main}{chain}{end}")), ContextUse::On);
    assert_eq!((made.len(), gone), (CONTEXT_PAUSE, 0), "{made:?}");
}

/// A constant that folds three instructions is not worth a row, one that folds four is.
#[test]
fn a_constant_that_folds_little_has_no_row() {
    let main = CALLS.split("func @f(").next().expect("it has a main");
    let rows = |last: &str| {
        let text = format!(
            "{main}func @f(%x: i32, %k: i32) -> i32 {{\nentry:\n  %a = mul.i32 %k, %k\n  \
             %b = xor.i32 %a, %k\n  %c = mul.i32 %b, %k\n  %d = xor.i32 {last}\n  \
             %y = add.i32 %x, %d\n  return %y\n}}\n"
        );
        contexts(&parsed(&text), ContextUse::On).0.len()
    };
    assert_eq!((rows("%c, %x"), rows("%c, %k")), (0, 2));
}

/// The worth of a constant looks at 256 uses (`REACH`). The branch is the next use, and the uses in
/// front of it fold nothing.
#[test]
fn a_constant_that_folds_behind_many_uses_has_no_row() {
    let rows = |uses: usize| {
        let text = |k| format!("  %z{k} = add.i32 %x, %k\n");
        let uses: String = (0..uses).map(text).collect();
        let text = CALLS.replace("  %is = eq.i32 %k, %one\n", &uses);
        let text = text.replace("br_if %is, first", "br_if %k, first");
        let text = text.replace("  %also = eq.i32 %k, %two\n", "");
        let text = text.replace("br_if %also, second", "br_if %x, second");
        contexts(&parsed(&text), ContextUse::On).0.len()
    };
    assert_eq!((rows(254), rows(255)), (2, 0));
}

/// Text that computes `%{to}` from `%x` by so many pairs of a product and a remainder.
fn filler(to: &str, pairs: usize) -> String {
    let pair = |k: usize| {
        let from = if k == 0 { "x".to_owned() } else { format!("{to}{}", k - 1) };
        format!("  %{to}m{k} = mul.i32 %{from}, %x\n  %{to}{k} = srem.i32 %{to}m{k}, %d\n")
    };
    let pairs = (0..pairs).map(pair);
    format!("  %d = or.i32 %x, %one\n{}", pairs.collect::<String>())
}

/// The branch is one of few instructions that the constant removes from hundreds.
#[test]
fn a_row_that_is_nearly_as_long_as_the_version_is_not_kept() {
    let rows = |pairs: usize| {
        let long = format!("  %is = eq.i32 %k, %one\n{}", filler("z", pairs));
        let text = CALLS.replace("  %is = eq.i32 %k, %one\n", &long);
        let text = text.replace("mul.i32 %x, %three", &format!("mul.i32 %z{}, %three", pairs - 1));
        contexts(&parsed(&text), ContextUse::On).0.len()
    };
    assert_eq!((rows(1), rows(200)), (2, 0));
}

/// Each row has one of two long arms of the callee. Rows go for their bytes, before there are too
/// many of them.
#[test]
fn a_function_with_large_rows_lets_some_go() {
    let (pairs, count) = (245, CONTEXT_ROWS);
    let calls = (0..count).map(|k| {
        let sum = if k == 0 { "%sum".to_owned() } else { format!("%s{}", k - 1) };
        format!(
            "  %k{k} = const.i32 {k}\n  %r{k} = call @f(%i, %k{k})\n  \
             %s{k} = add.i32 {sum}, %r{k}\n"
        )
    });
    let calls: String = calls.collect();
    let a = CALLS.find("  %a = call").expect("it calls");
    let b = CALLS.find("  %next = add").expect("it counts");
    let f = CALLS.find("func @f(").expect("it has the callee");
    let main = format!("{}{calls}{}", &CALLS[..a], &CALLS[b..f]);
    let main = main.replace("head(%next, %c)", &format!("head(%next, %s{})", count - 1));
    let (first, other) = (filler("y", pairs), filler("z", pairs).replace("%d", "%e"));
    let last = pairs - 1;
    let text = format!(
        "{main}func @f(%x: i32, %k: i32) -> i32 {{\nentry:\n  %one = const.i32 1\n  \
         %is = eq.i32 %k, %one\n  br_if %is, first, other\nfirst:\n{first}  return %y{last}\n\
         other:\n{other}  return %z{last}\n}}\n"
    );
    let (made, gone) = contexts(&parsed(&text), ContextUse::On);
    assert!(made.len() == count && gone > 0 && gone < count, "{made:?} {gone}");
}

#[test]
fn a_long_function_has_no_context_rows() {
    let filler: String = (0..CONTEXT_SIZE).map(|k| format!("  %z{k} = add.i32 %x, %k\n")).collect();
    let text = CALLS.replace("last:\n", &format!("last:\n{filler}"));
    assert_eq!(contexts(&parsed(&text), ContextUse::On), (Vec::new(), 0));
}

/// The versions of rows, and the places where assumptions have failed.
#[derive(Clone, Default)]
struct FailureWatch(Arc<Mutex<RowFailures>>);

#[derive(Clone, Default)]
struct RowFailures {
    rows: BTreeSet<VersionKey>,
    /// The assumptions of context rows, facts of contexts included.
    assumed: BTreeMap<(VersionKey, Inst), Assumption>,
    /// The rows that have gone.
    gone: usize,
    refused: usize,
    failed: BTreeSet<(VersionKey, Inst)>,
}

impl Observer for FailureWatch {
    fn step(&mut self, _step: Option<osier::driver::Step>) {}

    fn begin(&mut self) {}

    fn in_context(&mut self, _func: Func, _facts: &[Assumption], made: &Speculative) {
        let key = made.forward.target();
        let exits = made.exits.iter().filter_map(|exit| Some(((key, exit.inst), exit.assumption?)));
        self.0.lock().expect("nobody panics").assumed.extend(exits);
    }

    fn out_of_context(&mut self, _func: Func, _facts: &[Assumption]) {
        self.0.lock().expect("nobody panics").gone += 1;
    }

    fn without_link(&mut self, _func: Func, _call: Inst, _fault: KnownCallFault) {
        self.0.lock().expect("nobody panics").refused += 1;
    }

    fn failed(&mut self, at: FailedPoint<'_>) {
        let inst = at.version.points()[at.number].at.inst();
        self.0.lock().expect("nobody panics").failed.insert((at.version.key(), inst));
    }

    fn compiled(&mut self, made: Compiled) {
        if made.kind == CompiledKind::Row {
            self.0.lock().expect("nobody panics").rows.insert(made.version);
        }
    }
}

/// Both calls pass 1 at first, and 0 at last; the embedder assumes 1, for the reason that contexts
/// give. A row tests it.
fn failures_in_rows() -> RowFailures {
    let text = CALLS.replace(
        "  jump head(%zero, %zero)\n",
        "  %many = const.i32 500\n  %h = ult.i32 %n, %many\n  jump head(%zero, %zero)\n",
    );
    let text = text.replace("@f(%i, %one)", "@f(%h, %one)").replace("@f(%sum,", "@f(%h,");
    let module = parsed(&text);
    let [main, f] = ["main", "f"].map(|name| module.func_named(name).expect("it has both"));
    let base = module.body(f).expect("it has a body");
    let at = Point::before(base.first_inst(base.entry()));
    let (value, expected) = (base.arguments()[0], Expected::Is(1));
    let assume = [(f, vec![Assumption { at, value, expected, reason: 0xc0 }])];
    let mut vm = native(&Arc::new(module.clone()), Config::default());
    let watch = FailureWatch::default();
    let policy = policy(watch.clone()).speculating(BTreeMap::from(assume));
    vm.set_tiering(Box::new(policy.entering(TableUse::Nowhere)));
    compared(&mut vm, main, &[&[100], &[7], &[1000]]).expect("it runs");
    watch.0.lock().expect("nobody panics").clone()
}

/// It has the bits of a fact, but is about another argument. A call without this proof
/// enters the row, and the assumption fails there.
#[test]
fn an_assumption_of_the_embedder_is_no_fact_of_a_context() {
    let RowFailures { rows, failed, refused, .. } = failures_in_rows();
    assert_eq!((rows.len(), refused), (2, 0));
    assert!(rows.iter().all(|row| failed.iter().any(|(key, _)| key == row)), "{failed:?}");
}

/// The observer knows the assumption of each failure in a row, and that the row goes in the end.
#[test]
fn failures_in_context_rows_have_names() {
    let RowFailures { rows, failed, assumed, gone, .. } = failures_in_rows();
    let in_rows: Vec<_> = failed.iter().filter(|(key, _)| rows.contains(key)).collect();
    assert_eq!((in_rows.len(), gone), (2, 2));
    assert!(in_rows.iter().all(|at| assumed.get(*at).is_some_and(|of| of.reason == 0xc0)));
}

/// A caller, a row without its test, and the proof that the first call may enter it.
struct Linked {
    vm: Vm,
    caller: Arc<Version>,
    row: Arc<Version>,
    calls: [Inst; 2],
    tests: BTreeSet<Inst>,
    engine: Engine,
    module: Arc<Module>,
    /// The base of the callee, and the entries from it to the row.
    base: Function,
    forward: Checked<Mapping>,
}

impl Linked {
    fn new() -> Linked {
        let module = Arc::new(parsed(CALLS));
        let [main, f] = ["main", "f"].map(|name| module.func_named(name).expect("it has both"));
        let bodies = [main, f].map(|func| module.body(func).expect("it has a body").clone());
        let mut vm = native(&module, Config::default());
        let engine = vm.engine().clone();
        let base = &bodies[1];
        let at = Point::before(base.first_inst(base.entry()));
        let (value, expected) = (base.arguments()[1], Expected::Is(1));
        let assume = [Assumption { at, value, expected, reason: 0 }];
        let mut tree = VersionTree::new(base.clone());
        let pipeline = parse("O2").expect("a pipeline");
        let plan = Plan::new(&assume, &pipeline);
        let made = speculate(&module, &mut tree, VersionTree::BASE, &plan).expect("it assumes");
        let optimized = tree.function(made.optimized);
        let back = made.backward[&VersionTree::BASE].clone();
        let tests: BTreeSet<Inst> = made.exits.iter().map(|exit| exit.inst).collect();
        let spec = VersionSpec::leaving(optimized, |_| Some(&*back)).expect("it has an exit");
        let row = engine.version(&module, f, optimized, spec.untested(tests.clone()));
        let row = row.expect("it compiles");
        let is_call = |inst: &Inst| bodies[0].inst(*inst).opcode == Opcode::Call;
        let calls: Vec<Inst> = bodies[0].all_insts().filter(is_call).collect();
        let spec = VersionSpec::default().dispatching(calls.iter().copied().collect());
        let caller = engine.version(&module, main, &bodies[0], spec).expect("it compiles");
        vm.install(&caller, Vec::new()).expect("it fits");
        let (calls, [_, base]) = ([calls[0], calls[1]], bodies);
        Linked { vm, caller, row, calls, tests, engine, module, base, forward: made.forward }
    }

    fn proof(&self, call: usize, tests: &BTreeSet<Inst>) -> Option<KnownCall> {
        known_call(self.caller.function(), self.calls[call], self.row.function(), tests).ok()
    }

    fn sum(&mut self) -> u64 {
        let main = self.caller.func();
        let outcome = self.vm.invoke(main, &[10], &mut NoHost).expect("it runs");
        outcome.returned().expect("it returns")[0]
    }
}

#[test]
fn a_row_without_tests_is_entered_by_proved_calls_alone() {
    let mut linked = Linked::new();
    let before = linked.sum();
    let (caller, row) = (Arc::clone(&linked.caller), Arc::clone(&linked.row));
    let proof = linked.proof(0, &linked.tests).expect("the argument is 1");
    linked.vm.adopt(&row, vec![Action::Ask; row.points().len()]).expect("it fits");
    assert_eq!(linked.vm.install(&row, Vec::new()), Err(LinkError::NotCallable));
    linked.vm.link_call(&caller, &proof, &row).expect("the proof is right");
    assert_eq!(linked.sum(), before);
    assert_eq!(caller.call_counts(), [20, 20]);
    // The other call passes 2, and the checker refuses it. A proof of nothing is not enough.
    assert_eq!(linked.proof(1, &linked.tests), None);
    let nothing = linked.proof(1, &BTreeSet::new()).expect("nothing is claimed");
    let call = linked.calls[1];
    assert_eq!(linked.vm.link_call(&caller, &nothing, &row), Err(LinkError::OtherCall(call)));
    assert_eq!(linked.sum(), before, "the call leads where it led before");
    linked.vm.release(&row);
    assert_eq!(linked.sum(), before, "calls lead to the usual code again");
}

#[test]
fn calls_without_a_cell_are_refused() {
    let mut linked = Linked::new();
    let (caller, row) = (Arc::clone(&linked.caller), Arc::clone(&linked.row));
    linked.vm.adopt(&row, vec![Action::Ask; row.points().len()]).expect("it fits");
    let other = caller.function().first_inst(caller.function().entry());
    assert_eq!(linked.vm.unlink_call(&caller, other), Err(LinkError::NoSuchCall(other)));
    let call = linked.calls[0];
    assert_eq!(linked.vm.unlink_call(&caller, call), Ok(()));
    assert_eq!(linked.vm.unlink_call(&row, call), Err(LinkError::NoSuchCall(call)));
}

/// An entry up to the start of a row says nothing of what the row assumes there.
#[test]
fn a_row_without_tests_is_entered_by_no_continuation() {
    let linked = Linked::new();
    let start = Point::before(linked.base.first_inst(linked.base.entry()));
    let entry = linked.forward.checked_entry(start).expect("the start has an entry");
    let made = linked.engine.continuation(&linked.base, entry, &linked.row);
    assert!(matches!(made, Err(ContinueError::NotBuilt { .. })), "{made:?}");
}

/// Passages lead to such code, and prove nothing of what it assumes.
#[test]
fn code_behind_a_landing_tests_what_it_assumes() {
    let Linked { engine, module, row, tests, .. } = Linked::new();
    let spec = VersionSpec::default().untested(tests).behind_landing();
    let made = engine.version(&module, row.func(), row.function(), spec);
    let what = made.expect_err("it is refused").to_string();
    assert!(what.contains("tests its assumptions"), "{what}");
}

/// A proof is about one call of one version, and about one version of the callee.
#[test]
fn a_proof_of_another_call_links_nothing() {
    let mut linked = Linked::new();
    let (caller, row) = (Arc::clone(&linked.caller), Arc::clone(&linked.row));
    linked.vm.adopt(&row, vec![Action::Ask; row.points().len()]).expect("it fits");
    let call = linked.calls[0];
    let refused = Err(LinkError::OtherCall(call));
    // Another version of the callee.
    let base = known_call(caller.function(), call, &linked.base, &BTreeSet::new());
    assert_eq!(linked.vm.link_call(&caller, &base.expect("nothing is claimed"), &row), refused);
    // Another version of the caller, in which the call passes 1, too.
    let other = parsed(&CALLS.replace("%two = const.i32 2\n  jump", "%two = const.i32 5\n  jump"));
    let main = other.func_named("main").expect("it has a main");
    let other = other.body(main).expect("it has a body");
    let proof = known_call(other, call, row.function(), &linked.tests).expect("the argument is 1");
    assert_eq!(linked.vm.link_call(&caller, &proof, &row), refused);
}
