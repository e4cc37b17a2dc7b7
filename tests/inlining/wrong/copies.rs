//! Forgeries of copies.

use super::Forgery;
use super::hand::{Hand, Inlined, block, value};
use osier::ir::Inst;
use osier::transition::VersionKey;
use osier::transition::copy::CopyInstance;

/// `@main` calls `@f` once. `@same` is as `@f`, and `@again` as `@main`, but for the name.
pub(crate) const ORIGINALS: &str = "\
global @g: mut i32 = 0
func @f(%a: i32, %b: i32) -> (i32, i32) {
entry:
  %k = const.i32 7
  %s = sub.i32 %a, %k
  %t = add.i32 %a, %b
  br_if %s, left(%a, %b), right(%a, %b)
left(%p: i32, %q: i32):
  return %p, %q
right(%x: i32, %y: i32):
  switch %t, [left(%x, %y)], default stop
stop:
  trap unreachable
}
func @same(%a: i32, %b: i32) -> (i32, i32) {
entry:
  %k = const.i32 7
  %s = sub.i32 %a, %k
  %t = add.i32 %a, %b
  br_if %s, left(%a, %b), right(%a, %b)
left(%p: i32, %q: i32):
  return %p, %q
right(%x: i32, %y: i32):
  switch %t, [left(%x, %y)], default stop
stop:
  trap unreachable
}
func @again(%n: i32, %m: i32) -> i32 {
entry:
  %z = const.i32 1
  global_set.i32 @g, %z
  %e = add.i32 %n, %m
  %u, %v = call @f(%n, %m)
  jump more(%u, %v)
more(%g: i32, %h: i32):
  %d = sub.i32 %g, %h
  return %d
}
func @main(%n: i32, %m: i32) -> i32 {
entry:
  %z = const.i32 1
  global_set.i32 @g, %z
  %e = add.i32 %n, %m
  %u, %v = call @f(%n, %m)
  jump more(%u, %v)
more(%g: i32, %h: i32):
  %d = sub.i32 %g, %h
  return %d
}
";

/// The copy of `@main` with the code of `@f`.
pub(crate) const COPY: &str = "\
func @main(%n: i32, %m: i32) -> i32 {
entry:
  %z = const.i32 1
  global_set.i32 @g, %z
  %e = add.i32 %n, %m
  jump f_entry(%n, %m)
f_entry(%f_a: i32, %f_b: i32):
  %f_k = const.i32 7
  %f_s = sub.i32 %f_a, %f_k
  %f_t = add.i32 %f_a, %f_b
  br_if %f_s, f_left(%f_a, %f_b), f_right(%f_a, %f_b)
f_left(%f_p: i32, %f_q: i32):
  jump f_behind(%f_p, %f_q)
f_right(%f_x: i32, %f_y: i32):
  switch %f_t, [f_left(%f_x, %f_y)], default f_stop
f_stop:
  trap unreachable
f_behind(%u: i32, %v: i32):
  jump more(%u, %v)
more(%g: i32, %h: i32):
  %d = sub.i32 %g, %h
  return %d
}
";

pub(crate) const ONE_CALL: &[Inlined] = &[("f_", "f", 0, 0)];

fn hand(version: &str) -> Hand {
    Hand::new(ORIGINALS, version, ONE_CALL)
}

/// A copy with another text in one place.
fn edited(of: &str, by: &str) -> Hand {
    assert_eq!(hand(COPY).judged(), None, "before the forgery");
    assert_eq!(COPY.matches(of).count(), 1, "{of} occurs once");
    hand(&COPY.replace(of, by))
}

fn forgery(
    demand: &'static str,
    what: &'static str,
    refusal: &'static str,
    judge: fn() -> Option<String>,
) -> Forgery {
    Forgery { demand, what, judge: Box::new(judge), refusal }
}

pub(super) fn all() -> Vec<Forgery> {
    [claims(), edits(), others()].into_iter().flatten().collect()
}

const INSTANCES: &str = "the instances are not";

/// Claims about instances.
fn claims() -> Vec<Forgery> {
    vec![
        forgery("CopyOfAnyVersion", "a callee said to be another version", INSTANCES, || {
            let mut hand = hand(COPY);
            hand.claim.instances[1].version = VersionKey::of(hand.body("same"));
            hand.judged()
        }),
        forgery(
            "CopyOfAnyFunction",
            "a function alike in the place of this one",
            INSTANCES,
            || {
                let mut hand = hand(COPY);
                let again = hand.module.func_named("again").expect("it is declared");
                let version = VersionKey::of(hand.body("again"));
                let first = &mut hand.claim.instances[0];
                (first.func, first.version) = (again, version);
                hand.judged()
            },
        ),
        forgery("CopyCalledByNone", "a second instance that no call leads to", INSTANCES, || {
            with_instance(|one| one.caller = None)
        }),
        forgery("CopyCalledByItself", "an instance that is its own caller", INSTANCES, || {
            with_instance(|one| one.caller = one.caller.map(|(_, call)| (2, call)))
        }),
        forgery("CopyCalledAnywhere", "a call that the caller lacks", INSTANCES, || {
            with_instance(|one| one.caller = Some((0, Inst::from_u32(9999))))
        }),
        forgery("CopyBeginsAnywhere", "a copy from the middle on", "nothing is claimed of", || {
            let begin = "func @main(%g: i32, %h: i32) -> i32 {\nbegin:\n";
            let rest = format!("{begin}  %d = sub.i32 %g, %h\n  return %d\n}}\n");
            let mut hand = Hand::new(ORIGINALS, &rest, &[]);
            let main = hand.body("main");
            let middle = main.first_inst(block(main, "more").expect("the block"));
            hand.claim.blocks.insert(hand.version.entry(), (0, middle));
            hand.judged()
        }),
    ]
}

/// The word on a claim with one instance more, of `@main` and without a block.
fn with_instance(edit: impl Fn(&mut CopyInstance)) -> Option<String> {
    let mut hand = hand(COPY);
    let caller = hand.claim.instances[1].caller;
    let mut more = CopyInstance { caller, ..hand.claim.instances[0].clone() };
    edit(&mut more);
    hand.claim.instances.push(more);
    hand.judged()
}

/// A forgery by another text in one place of the copy: the demand, the mistake, the place, and its
/// text there.
type EditedCopy = (&'static str, &'static str, &'static str, &'static str);

const ARMS: &str = "br_if %f_s, f_left(%f_a, %f_b), f_right(%f_a, %f_b)";

const EDITED: [EditedCopy; 19] = [
    ("CopyOtherOpcode", "a sum for a difference", "sub.i32 %f_a", "add.i32 %f_a"),
    ("CopyOtherImmediate", "an 8 for a 7", "const.i32 7", "const.i32 8"),
    (
        "CopyOtherOperands",
        "a difference the other way round",
        "sub.i32 %f_a, %f_k",
        "sub.i32 %f_k, %f_a",
    ),
    (
        "CopyOtherResults",
        "two values with each other's names",
        "%f_s = sub.i32 %f_a, %f_k\n  %f_t = add",
        "%f_t = sub.i32 %f_a, %f_k\n  %f_s = add",
    ),
    (
        "CopyOtherParams",
        "parameters with each other's names",
        "f_left(%f_p: i32, %f_q: i32)",
        "f_left(%f_q: i32, %f_p: i32)",
    ),
    (
        "CopyOtherParams",
        "the results of a call with each other's names",
        "f_behind(%u: i32, %v: i32)",
        "f_behind(%v: i32, %u: i32)",
    ),
    (
        "CopyOtherEnd",
        "a switch with the arms of a branch",
        ARMS,
        "switch %f_s, [f_left(%f_a, %f_b)], default f_right(%f_a, %f_b)",
    ),
    ("CopyOtherTrap", "a trap of another kind", "trap unreachable", "trap user1"),
    ("CopyOtherCondition", "a branch on another value", "br_if %f_s", "br_if %f_t"),
    (
        "CopyMoreTargets",
        "a switch with a target more",
        "[f_left(%f_x, %f_y)]",
        "[f_left(%f_x, %f_y), f_stop]",
    ),
    (
        "CopyOtherTargets",
        "a branch with its arms the other way round",
        ARMS,
        "br_if %f_s, f_right(%f_a, %f_b), f_left(%f_a, %f_b)",
    ),
    (
        "CopyOtherArguments",
        "arguments of an edge in the other order",
        "f_left(%f_a, %f_b)",
        "f_left(%f_b, %f_a)",
    ),
    (
        "CopyOtherArguments",
        "the same in inlined code that goes on in its caller",
        "jump more(%u, %v)",
        "jump more(%v, %u)",
    ),
    (
        "CopyCallsWithOthers",
        "arguments of the call in the other order",
        "f_entry(%n, %m)",
        "f_entry(%m, %n)",
    ),
    (
        "CopyReturnsOthers",
        "results in the other order",
        "f_behind(%f_p, %f_q)",
        "f_behind(%f_q, %f_p)",
    ),
    (
        "CopyReturnsElsewhere",
        "a return that skips an instruction",
        "jump f_behind(%f_p, %f_q)",
        "jump more(%f_p, %f_q)",
    ),
    (
        "CopyCallsTheMiddle",
        "a call that skips the start of the callee",
        "f_entry(%n, %m)",
        "f_left(%n, %m)",
    ),
    (
        "CopyCallsByAnything",
        "a switch in the place of a call",
        "jump f_entry(%n, %m)",
        "switch %n, [], default f_entry(%n, %m)",
    ),
    ("CopyReturnsOthers", "one result for both", "f_behind(%f_p, %f_q)", "f_behind(%f_p, %f_p)"),
];

/// Copies with another text in one place.
fn edits() -> Vec<Forgery> {
    let forged = |(demand, what, of, by): EditedCopy| {
        let is_params = demand == "CopyOtherParams";
        let refusal = if is_params { "block" } else { "inst" };
        Forgery { demand, what, judge: Box::new(move || edited(of, by).judged()), refusal }
    };
    EDITED.into_iter().map(forged).collect()
}

/// Copies with other signatures, and copies of functions that are not called.
fn others() -> Vec<Forgery> {
    vec![
        forgery("CopyOtherLengths", "a parameter more", "inst", || {
            let more = COPY.replace("f_right(%f_a, %f_b)", "f_right(%f_a, %f_b, %f_b)");
            let params = "f_right(%f_x: i32, %f_y: i32";
            hand(&more.replace(params, &format!("{params}, %more: i32"))).judged()
        }),
        forgery(
            "CopyOtherTypes",
            "an argument of another type, which nothing reads",
            "block",
            || {
                let text =
                    "func @main(%n: i32) -> i32 {\nentry:\n  %c = const.i32 5\n  return %c\n}\n";
                assert_eq!(Hand::new(text, text, &[]).judged(), None, "before the forgery");
                Hand::new(text, &text.replace("%n: i32", "%n: i64"), &[]).judged()
            },
        ),
        forgery("CopyCallsAnother", "the code of another function, which is alike", "inst", || {
            let mut hand = hand(COPY);
            let same = hand.module.func_named("same").expect("it is declared");
            let version = VersionKey::of(hand.body("same"));
            let callee = &mut hand.claim.instances[1];
            (callee.func, callee.version) = (same, version);
            hand.judged()
        }),
        forgery("CopyForgetsAssumes", "a callee without what it assumes", "inst", || {
            let originals = "\
func @f(%a: i32) -> i32 {
entry:
  %w = assume.i32 %a, 7, 1
  return %w
}
func @main(%n: i32) -> i32 {
entry:
  %u = call @f(%n)
  return %u
}
";
            let copy = "\
func @main(%n: i32) -> i32 {
entry:
  jump f_entry(%n)
f_entry(%f_a: i32):
  jump f_behind(%f_a)
f_behind(%u: i32):
  return %u
}
";
            let mut hand = Hand::new(originals, copy, ONE_CALL);
            let [w, a] = ["w", "a"].map(|name| value(hand.body("f"), name).expect("a value"));
            let values = &mut hand.claim.instances[1].values;
            values.insert(w, values[&a]);
            hand.judged()
        }),
        forgery("CopyCallsForAnother", "a call that returns behind a later one", "inst", || {
            let originals = "\
global @g: mut i32 = 0
func @f(%a: i32) {
entry:
  global_set.i32 @g, %a
  return
}
func @main(%n: i32) {
entry:
  call @f(%n)
  call @f(%n)
  return
}
";
            let copy = "\
func @main(%n: i32) {
entry:
  jump f_entry(%n)
f_entry(%f_a: i32):
  global_set.i32 @g, %f_a
  jump f_behind
f_behind:
  return
}
";
            Hand::new(originals, copy, &[("f_", "f", 0, 1)]).judged()
        }),
    ]
}
