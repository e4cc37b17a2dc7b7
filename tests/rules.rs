//! Rules that an embedder declares, from the table to entries that fire.

#[path = "../examples/trial/p1/declared.rs"]
mod programs;

use fuzz::{CampaignLimits, CampaignOptions, CaseSource, Drawn, campaign};
use interp::{Host, HostError, Limits, Machine, Memories, NoHost, Outcome};
use ir::module::ImportName;
use ir::rules::RULES;
use ir::{Func, Function, Module, Opcode};
use osier::driver::{Derived, Missing, NoObserver, Proved, Vigilance, derive, prove};
use osier::{Format, load};
use osr::{Level, VersionPair};
use programs::{IDENTITIES, accepted, program};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use transition::Pair;
use transition::certificate::By;
use transition::mapping::Entry;
use verify::prng::Prng;
use verify::state_oracle::{FunctionPair, Oracle, OracleOptions};

/// A module with rules.
fn module(text: &str, table: &str) -> Module {
    let mut module = load(Format::Oir, text.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let rules = accepted(table, &module);
    module.use_rules(&rules).expect("the rules are of this module");
    module
}

fn derived(module: &Module, base: &Function, pipeline: &str) -> (Derived, Proved) {
    let pipeline = passes::parse(pipeline).expect("a pipeline");
    let derived = derive(module, base, &pipeline, Vigilance::On, &mut NoObserver);
    let proved = prove(module, base, &derived, &[Level::Avail], &mut NoObserver);
    (derived, proved)
}

/// The reasons of a certificate that are declared rules.
fn cited(proved: &Proved) -> usize {
    let is_declared =
        |by: &By| matches!(by, By::Rule { rule, .. } if *rule as usize >= RULES.len());
    proved.certificate.terms.iter().filter(|term| is_declared(&term.by)).count()
}

/// Random programs with rules, one for each seed.
struct Seeds;

impl CaseSource for Seeds {
    fn case(&self, seed: u64) -> Drawn {
        let module = module(&program(seed), IDENTITIES);
        let main = module.func_named("f").expect("it is defined");
        let mut prng = Prng::new(seed).fork(1);
        let arguments = (0..4)
            .map(|_| (0..2).map(|_| u64::from(prng.next_u64() as u32 >> prng.index(32))).collect())
            .collect();
        Drawn::Case(Box::new(CampaignOptions::default().case(seed, module, main, arguments, 5000)))
    }
}

#[test]
fn declared_rules_change_no_run() {
    let limits = CampaignLimits { cases: 60, failures: 10, ..CampaignLimits::default() };
    let results = campaign(Arc::new(Seeds), 2, &limits, &|_| {});
    if let Some(failure) = results.failures.first() {
        panic!("case {}: {}\n{}", failure.number, failure.findings[0], program(failure.number));
    }
}

/// The floors of the test above: passes rewrite by the rules, and certificates cite them.
#[test]
fn passes_and_certificates_use_declared_rules() {
    let (mut rewrites, mut reasons, mut dropped) = (0, 0, 0);
    for seed in 0..40 {
        let module = module(&program(seed), IDENTITIES);
        let (_, base) = module.defined().next().expect("a function");
        let (derived, proved) = derived(&module, base, ["O1", "O2"][seed as usize % 2]);
        let is_declared = |a: &&ir::edit::Action| a.origin().rule() == "declared";
        rewrites += derived.log.actions().iter().filter(is_declared).count();
        reasons += cited(&proved);
        dropped += proved.checked().all_dropped();
        assert_eq!(proved.checked().refuted, 0, "seed {seed}");
    }
    assert!(rewrites >= 100 && reasons >= 40, "{rewrites} rewrites, {reasons} reasons");
    assert_eq!(dropped, 0, "entries that the checker does not accept");
}

/// A language that boxes its numbers: the loop adds boxed values, and an exit needs a box.
const BOXES: &str = r#"
import func @box "env" "box" (i64) -> i64 effect(pure)
import func @unbox "env" "unbox" (i64) -> i64 effect(pure)
import func @is_int "env" "is_int" (i64) -> i32 effect(pure)
memory @m 1
func @f(%n: i64, %k: i64) -> i64 {
entry:
  %one = const.i64 1
  %zero = const.i64 0
  %where = const.i32 8
  %bk = call_pure.i64 @box(%k)
  jump head(%zero, %zero)
head(%i: i64, %sum: i64):
  %bi = call_pure.i64 @box(%i)
  %whole = call_pure.i32 @is_int(%bi)
  br_if %whole, ints, others
ints:
  %x = call_pure.i64 @unbox(%bi)
  %y = call_pure.i64 @unbox(%bk)
  %s = add.i64 %x, %y
  %bs = call_pure.i64 @box(%s)
  %more = call_pure.i64 @unbox(%bs)
  %next = add.i64 %sum, %more
  store.i64 @m[%where], %next
  %j = add.i64 %i, %one
  %goes = ult.i64 %j, %n
  br_if %goes, head(%j, %next), done
others:
  trap user0
done:
  return %next
}
"#;

const AXIOMS: &str = "
func @box(i64) -> i64
func @unbox(i64) -> i64
func @is_int(i64) -> i32
axiom unbox-box(x: i64): @unbox(@box(x)) => x
axiom box-is-int(x: i64): @is_int(@box(x)) => 1
";

/// The functions of [`BOXES`] and [`AXIOMS`].
fn call(name: &str, x: u64) -> u64 {
    match name {
        "box" => x.rotate_left(8) ^ 0x55,
        "unbox" => (x ^ 0x55).rotate_right(8),
        _ => 1,
    }
}

/// Counts calls by function: `box`, `unbox`, `is_int`.
#[derive(Clone, Default)]
struct Boxes(Arc<[AtomicU64; 3]>);

impl Host for Boxes {
    fn call(
        &mut self,
        import: &ImportName,
        func: Func,
        args: &[u64],
        _: &mut Memories,
        results: &mut [u64],
    ) -> Result<(), HostError> {
        self.0[func.as_u32() as usize].fetch_add(1, Ordering::Relaxed);
        results[0] = call(&import.field, args[0]);
        Ok(())
    }
}

/// The axioms are true of the host, so no run sees which calls a version leaves out. Transitions
/// in both directions reach the states that they claim.
#[test]
fn boxing_and_unboxing_cancel() {
    let module = module(BOXES, AXIOMS);
    let rules = module.defined().next().and_then(|(_, f)| f.rules().cloned()).expect("rules");
    let tested = rules
        .test_axioms(&[], |func, args| Ok::<u64, String>(call(&module.funcs[func].name, args[0])));
    assert_eq!(tested, Ok(Ok(())));
    let (func, base) = module.defined().next().expect("a function");
    let (derived, proved) = derived(&module, base, "O2");
    assert!(cited(&proved) >= 4, "{}", cited(&proved));
    assert_eq!(proved.checked().all_dropped(), 0);
    let run = |function: &Function| {
        let mut module = module.clone();
        module.define(func, function.clone());
        let (host, limits) = (Boxes::default(), Limits::default());
        let mut machine = Machine::new(&module, limits).expect("the module is valid");
        let result = machine.invoke(func, &[10, 7], &mut host.clone(), &mut interp::NoObserver);
        (result, [0, 1, 2].map(|at| host.0[at].load(Ordering::Relaxed)))
    };
    let expected = Outcome::Returned(vec![(0..10).map(|i| i + 7).sum()]);
    assert_eq!(run(base), (expected.clone(), [21, 30, 10]));
    assert_eq!(run(&derived.function), (expected, [0, 0, 0]));
    // Compensation code calls no function: the points that need a box have no entry down.
    let down = &proved.highest().after;
    let is_call = |missing: &Missing| missing.why.name() == "call";
    let without = down.missing.iter().filter(|missing| is_call(missing)).count();
    assert_eq!((down.points, down.missing.len(), without), (11, 6, 6));
    transitions_hold(&module, &derived, &proved, &[10, 7], &Boxes::default());
}

/// Fires every entry in both directions, and compares the states.
fn transitions_hold<H: Host + Clone>(
    module: &Module,
    derived: &Derived,
    proved: &Proved,
    args: &[u64],
    host: &H,
) {
    let (func, base) = module.defined().next().expect("a function");
    let pair = VersionPair::new(base, &derived.function, &derived.log).expect("the log replays");
    let anchors = pair.bounding_anchors().collect();
    let Pair { before, after } = proved.highest();
    let pair = FunctionPair {
        func,
        before: base,
        after: &derived.function,
        anchors: &anchors,
        forward: &before.mapping,
        backward: &after.mapping,
        copies: None,
    };
    let limits = Limits { fuel: 10_000, ..Limits::default() };
    let options = OracleOptions { limits, ..OracleOptions::default() };
    let mut oracle = Oracle::new(module, &[pair], options).expect("the versions fit");
    oracle.run(func, args, host);
    let report = oracle.report();
    assert!(report.divergences.is_empty(), "{}", report.divergences[0]);
    assert!(report.total().transitions > 100, "{:?}", report.total());
}

/// As [`BOXES`], with boxes of operations of the IR: `box` rotates and sets a tag.
const TAGS: &str = "
memory @m 1
func @f(%n: i64, %k: i64) -> i64 {
entry:
  %one = const.i64 1
  %zero = const.i64 0
  %eight = const.i64 8
  %tag = const.i64 85
  %where = const.i32 8
  jump head(%zero, %zero)
head(%i: i64, %sum: i64):
  %r = rotl.i64 %i, %eight
  %bi = xor.i64 %r, %tag
  store.i64 @m[%where], %sum
  store.i64 @m[%where + 16], %i
  %t = xor.i64 %bi, %tag
  %x = rotr.i64 %t, %eight
  %y = add.i64 %x, %k
  %next = add.i64 %sum, %y
  store.i64 @m[%where + 8], %next
  %j = add.i64 %i, %one
  %goes = ult.i64 %j, %n
  br_if %goes, head(%j, %next), done
done:
  return %next
}
";

/// The optimized version makes no box. Entries make the box where the base needs it, so every
/// point has one.
#[test]
fn entries_make_the_boxes_that_the_base_needs() {
    let rule = "rule unrotate(x: i64): rotr.i64(rotl.i64(x, 8), 8) => x";
    let module = module(TAGS, rule);
    let (_, base) = module.defined().next().expect("a function");
    let (derived, proved) = derived(&module, base, "O2");
    let f = &derived.function;
    assert!(f.all_insts().all(|inst| f.inst(inst).opcode != Opcode::Rotl), "{f}");
    let down = &proved.highest().after;
    assert!(down.missing.is_empty(), "{:?}", down.missing);
    let makes_box = |entry: &Entry| entry.steps.iter().any(|step| step.opcode == Opcode::Rotl);
    let boxes = down.mapping.entries().filter(|(_, entry)| makes_box(entry)).count();
    assert!(boxes >= 1, "{boxes} entries make a box");
    transitions_hold(&module, &derived, &proved, &[40, 7], &NoHost);
    // Without the rule, the version computes both rotations.
    let plain = load(Format::Oir, TAGS.as_bytes()).expect("it is valid");
    let (_, base) = plain.defined().next().expect("a function");
    let f = self::derived(&plain, base, "O2").0.function;
    assert!(f.all_insts().any(|inst| f.inst(inst).opcode == Opcode::Rotl), "{f}");
}

/// The mapping of versions with rules fits no versions without them, although the text is equal.
#[test]
fn a_mapping_with_rules_fits_no_version_without() {
    let module = module(BOXES, AXIOMS);
    let plain = load(Format::Oir, BOXES.as_bytes()).expect("it is valid");
    let (_, base) = module.defined().next().expect("a function");
    let (_, bare) = plain.defined().next().expect("a function");
    let (derived, proved) = derived(&module, base, "gvn");
    let key = transition::VersionKey::of;
    assert_ne!(key(base), key(bare));
    let versions = Pair::new(bare, &derived.function);
    let options = check::verdict::Options::default();
    let refused = check::relate(&plain, versions, &proved.certificate, options);
    assert!(refused.is_err());
}
