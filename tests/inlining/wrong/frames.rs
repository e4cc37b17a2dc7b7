//! Forgeries of the steps across copies. The mappings on both sides are accepted.

use super::Forgery;
use super::copies::{COPY, ONE_CALL, ORIGINALS};
use super::hand::{Hand, block, calls, insts_of, value};
use osier::certify::Certifier;
use osier::check::verdict::Options;
use osier::check::{
    self, Checked, CheckedComposition, Copies, FrameLanding, FrameRefusal, LivePoints,
    accept_armed, relate,
};
use osier::ir::edit::ActionLog;
use osier::ir::{Func, Function, Global, Imm, Module, Opcode, Point, Type, Value};
use osier::osr::{Level, VersionPair, synthesize};
use osier::transition::mapping::{Assign, Entry, Mapping, Operand, Replay, Step};
use osier::transition::{NotAChain, Side};

/// The entries out of a copy.
type Left = CheckedComposition<FrameRefusal>;

/// The accepted mapping from a version to itself, and its live values.
pub(crate) struct Own {
    pub(crate) mapping: Checked<Mapping>,
    pub(crate) live: Checked<LivePoints>,
}

pub(crate) fn own(module: &Module, f: &Function) -> Own {
    own_edited(module, f, |_| {})
}

/// As [`own`], with an edit of the mapping, which the checker accepts.
fn own_edited(module: &Module, f: &Function, edit: impl Fn(&mut Mapping)) -> Own {
    let pair = VersionPair::new(f, f, &ActionLog::empty_for(f)).expect("an empty log");
    let made = synthesize(&pair, Level::Avail);
    let (mut mapping, back) = (made.forward.mapping, made.backward.mapping);
    edit(&mut mapping);
    let common = pair.correspondence();
    let mut certifier = Certifier::new(&common);
    let facts = certifier.facts(Side::Before, &mapping);
    let certificate = certifier.into_certificate();
    let relation = relate(module, common.versions, &certificate, Options::default());
    let accepted = accept_armed(&relation, Side::Before, mapping, facts, &[&back]);
    assert!(accepted.rejected.is_empty(), "{:?}", accepted.rejected);
    let points = f.all_insts().map(Point::before);
    let live = relation.expect("it is proved").live_at(Side::Before, points, &[]);
    Own { mapping: accepted.mapping, live: live.expect("few values are live") }
}

/// The live values of a version when a mapping is armed that reads another value at a point.
fn live_with(module: &Module, f: &Function, point: Point, name: &str) -> Checked<LivePoints> {
    let armed = own(module, f).mapping;
    let more = value(f, name).expect("a value of this name");
    let mut armed: Mapping = Mapping::clone(&armed);
    edit_entry(&mut armed, point, |entry| {
        entry.requires.push(more);
        entry.requires.sort_unstable();
    });
    live_at(module, f, f.all_insts().map(Point::before), &[&armed])
}

fn live_at(
    module: &Module,
    f: &Function,
    points: impl Iterator<Item = Point>,
    armed: &[&Mapping],
) -> Checked<LivePoints> {
    let pair = VersionPair::new(f, f, &ActionLog::empty_for(f)).expect("an empty log");
    let common = pair.correspondence();
    let certificate = Certifier::new(&common).into_certificate();
    let relation = relate(module, common.versions, &certificate, Options::default());
    let live = relation.expect("it is proved").live_at(Side::Before, points, armed);
    live.expect("few values are live")
}

fn edit_entry(mapping: &mut Mapping, point: Point, edit: impl Fn(&mut Entry)) {
    let mut entry = mapping.entry(point).expect("an entry at the point").clone();
    edit(&mut entry);
    mapping.insert(point, entry);
}

/// A copy, the mapping from it to itself, and where frames of `@f` and `@main` land.
struct Scene {
    hand: Hand,
    copies: Checked<Copies>,
    first: Own,
    callee: Own,
    caller: Own,
}

impl Scene {
    fn new() -> Scene {
        let hand = Hand::new(ORIGINALS, COPY, ONE_CALL);
        let copies = hand.copy().expect("it is a copy");
        let first = own(&hand.module, &hand.version);
        let [callee, caller] = ["f", "main"].map(|name| own(&hand.module, hand.body(name)));
        let scene = Scene { hand, copies, first, callee, caller };
        let itself = |caller| [scene.callee_landing(), caller];
        for caller in [scene.caller_landing(), scene.caller_going_on()] {
            let left = scene.left(itself(caller)).expect("it begins at the copy");
            assert!(left.refused.is_empty(), "before the forgery: {:?}", left.refused);
        }
        scene
    }

    /// Frames of `@f` stay where they are.
    fn callee_landing(&self) -> FrameLanding<'_> {
        FrameLanding { on: None, version: self.hand.body("f"), live: &self.callee.live }
    }

    /// Frames of `@main` stay where they are.
    fn caller_landing(&self) -> FrameLanding<'_> {
        FrameLanding { on: None, version: self.hand.body("main"), live: &self.caller.live }
    }

    /// Frames of `@main` continue by an entry that leads to the same place.
    fn caller_going_on(&self) -> FrameLanding<'_> {
        FrameLanding { on: Some(&self.caller.mapping), ..self.caller_landing() }
    }

    fn left(&self, landings: [FrameLanding<'_>; 2]) -> Result<Left, NotAChain> {
        let main = self.hand.main();
        let of = |func: Func, _| Some(landings[usize::from(func == main)]);
        check::leave_copy(&self.first.mapping, &self.copies, of)
    }

    /// The word on entries whose frames of `@main` land elsewhere.
    fn caller_in(&self, caller: FrameLanding<'_>) -> Option<String> {
        word(self.left([self.callee_landing(), caller]), |left| left.mapping.is_empty())
    }

    /// The word on the entry in a block of the callee.
    fn word_in_callee(&self, landings: [FrameLanding<'_>; 2]) -> Option<String> {
        let f = &self.hand.version;
        let at = Point::before(f.first_inst(block(f, "f_left").expect("the block")));
        let left = self.left(landings).expect("it begins at the copy");
        let refused = left.refused.iter().find(|(point, _)| *point == at);
        refused.map(|(_, refusal)| refusal.to_string())
    }

    /// The call in `@main`.
    fn call(&self) -> Point {
        Point::before(calls(self.hand.body("main"))[0])
    }
}

/// The first refusal, if the frame entries are the forged ones no more.
fn word(left: Result<Left, NotAChain>, is_stopped: impl Fn(&Left) -> bool) -> Option<String> {
    match left {
        Err(error) => Some(error.to_string()),
        Ok(left) => is_stopped(&left).then(|| left.refused[0].1.to_string()),
    }
}

const ANOTHER: &str = "the second mapping leaves from another";
const NO_SECOND: &str = "the second mapping has no entry";
const NO_VERSION: &str = "no version is known";
const AT_CALL: &str = "frame 1: the entry at its call";
const LACKS: &str = "frame 0: the second entry requires";
const WAITING_LACKS: &str = "frame 1: the second entry requires";

type Row = (&'static str, &'static str, &'static str, fn() -> Option<String>);

const ROWS: [Row; 18] = [
    ("LeaveAnyVersion", "a mapping into another version than the copy", ANOTHER, other_copy_left),
    ("LeaveFromAnyOriginal", "a frame that goes on from another version", NO_VERSION, other_source),
    ("LeaveToAnyVersion", "a frame that goes on to another version", NO_VERSION, other_target),
    ("LeaveInAnyVersion", "a frame in another version", NO_VERSION, other_version),
    ("LeaveWithAnyLive", "the live values of another version", NO_VERSION, other_live),
    ("LeaveMixesInstances", "a value of one instance in a frame of another", "right", mixed),
    ("LeaveWithoutValues", "a frame without a value that an armed entry reads", LACKS, lacking),
    (
        "WaitWithoutValues",
        "the same of a waiting frame that goes on",
        WAITING_LACKS,
        lacking_behind_the_call,
    ),
    ("LeaveUnasked", "live values that were not asked for", "frame 0: the live values", unasked),
    ("WaitElsewhere", "a waiting frame whose entry lands before its call", AT_CALL, elsewhere),
    ("WaitInAnotherFamily", "a waiting frame in a version of another family", AT_CALL, of_others),
    ("WaitWithReplays", "a waiting frame whose entry writes", AT_CALL, with_replays),
    ("WaitWithResults", "a waiting frame that has the result of its call", "right", with_results),
    ("ComposeFromSeveral", "an entry that begins a call again", NO_SECOND, begun_again),
    ("EnterAnyOriginal", "a mapping to another version than the original", ANOTHER, other_original),
    ("EnterAnyCopy", "a mapping from another version than the copy", ANOTHER, other_copy_entered),
    ("EnterAnyPlace", "a point with two copies", NO_SECOND, ambiguous),
    ("EnterUnderOldNames", "values under the ids of the original", "right", old_names),
];

pub(super) fn all() -> Vec<Forgery> {
    let of = |(demand, what, refusal, judge): Row| Forgery {
        demand,
        what,
        judge: Box::new(judge),
        refusal,
    };
    ROWS.into_iter().map(of).collect()
}

/// The copy with another constant, under the same ids.
fn other_copy() -> Function {
    Hand::new(ORIGINALS, &COPY.replace("const.i32 7", "const.i32 8"), ONE_CALL).version
}

fn other_copy_left() -> Option<String> {
    let mut scene = Scene::new();
    scene.first = own(&scene.hand.module, &other_copy());
    word(scene.left([scene.callee_landing(), scene.caller_landing()]), |_| false)
}

/// A run has begun the call in `@main`, and an entry of `@main` at the call leads on. What is live
/// before the call is live behind it, so no value is missing.
fn begun_again() -> Option<String> {
    let text = "func @f(%a: i32) -> i32 {\nentry:\n  return %a\n}\n\
                func @main(%n: i32) -> i32 {\nentry:\n  %u = call @f(%n)\n  \
                %w = add.i32 %u, %n\n  return %w\n}\n";
    let copy = "func @main(%n: i32) -> i32 {\nentry:\n  jump f_entry(%n)\n\
                f_entry(%f_a: i32):\n  jump f_behind(%f_a)\n\
                f_behind(%u: i32):\n  %w = add.i32 %u, %n\n  return %w\n}\n";
    let hand = Hand::new(text, copy, ONE_CALL);
    let copies = hand.copy().expect("it is a copy");
    let first = own(&hand.module, &hand.version);
    let left = left_alone(&hand, &copies, &first);
    let main = own(&hand.module, hand.body("main"));
    let composed = check::compose(&left, &main.mapping).expect("a chain");
    let several = left.entries().filter(|(_, entry)| !entry.inner.is_empty());
    let points: Vec<Point> = several.map(|(point, _)| point).collect();
    assert!(!points.is_empty() && !composed.mapping.is_empty());
    let refused = composed.refused.iter().find(|(at, _)| points.contains(at));
    refused.map(|(_, refusal)| refusal.to_string())
}

/// The entries to frames of the originals, which do not continue in other versions.
fn left_alone(hand: &Hand, copies: &Checked<Copies>, first: &Own) -> Checked<Mapping> {
    let owns = ["f", "main"].map(|name| own(&hand.module, hand.body(name)));
    let landing = |func, _| {
        let version = hand.module.body(func)?;
        let own = &owns[usize::from(func == hand.main())];
        Some(FrameLanding { on: None, version, live: &own.live })
    };
    let left = check::leave_copy(&first.mapping, copies, landing);
    left.expect("it begins at the copy").mapping
}

/// The word on frames of `@main` in `@again`, which is alike, over a mapping of one of them.
fn in_again(on: impl Fn(&Scene, &Own) -> Option<Checked<Mapping>>) -> Option<String> {
    let scene = Scene::new();
    let version = scene.hand.body("again");
    let again = own(&scene.hand.module, version);
    let on = on(&scene, &again);
    scene.caller_in(FrameLanding { on: on.as_ref(), version, live: &again.live })
}

fn other_source() -> Option<String> {
    in_again(|_, again| Some(again.mapping.clone()))
}

fn other_target() -> Option<String> {
    in_again(|scene, _| Some(scene.caller.mapping.clone()))
}

fn other_version() -> Option<String> {
    in_again(|_, _| None)
}

fn other_live() -> Option<String> {
    let scene = Scene::new();
    let again = own(&scene.hand.module, scene.hand.body("again"));
    scene.caller_in(FrameLanding { live: &again.live, ..scene.caller_landing() })
}

const CALLS_TWICE: &str = "\
func @f(%a: i32) -> i32 {
entry:
  %s = add.i32 %a, %a
  return %s
}
func @main(%n: i32) -> i32 {
entry:
  %u = call @f(%n)
  %v = call @f(%u)
  %w = add.i32 %u, %v
  return %w
}
";

const COPIED_TWICE: &str = "\
func @main(%n: i32) -> i32 {
entry:
  jump f_entry(%n)
f_entry(%f_a: i32):
  %f_s = add.i32 %f_a, %f_a
  jump f_behind(%f_s)
f_behind(%u: i32):
  jump h_entry(%u)
h_entry(%h_a: i32):
  %h_s = add.i32 %h_a, %h_a
  jump h_behind(%h_s)
h_behind(%v: i32):
  %w = add.i32 %u, %v
  return %w
}
";

/// Makes an entry provide a value that is dead where it lands, under its own id.
fn provide_dead(mapping: &mut Mapping, at: Point, value: Value) {
    edit_entry(mapping, at, |entry| {
        entry.assigns.push(Assign { value, from: Operand::Source(value) });
        entry.assigns.sort_unstable();
        for list in [&mut entry.requires, &mut entry.kept] {
            list.push(value);
            list.sort_unstable();
        }
    });
}

/// An entry in the second copy of `@f` also provides a value of the first.
fn mixed() -> Option<String> {
    let hand = Hand::new(CALLS_TWICE, COPIED_TWICE, &[("f_", "f", 0, 0), ("h_", "f", 0, 1)]);
    let copies = hand.copy().expect("it is a copy");
    let f = &hand.version;
    let at = Point::before(f.terminator(block(f, "h_entry").expect("the second copy")));
    let [first, second] = ["f_s", "h_s"].map(|name| value(f, name).expect("the sum"));
    let into = own_edited(&hand.module, f, |mapping| provide_dead(mapping, at, first));
    let left = left_alone(&hand, &copies, &into);
    let inner = &left.entry(at).expect("an entry").inner[0];
    let is_right = inner.assigns.iter().all(|assign| assign.from == Operand::Source(second));
    is_right.then(|| "right".to_owned())
}

/// Something armed in `@f` reads a value that is dead there.
fn lacking() -> Option<String> {
    let scene = Scene::new();
    let f = scene.hand.body("f");
    let at = Point::before(f.first_inst(block(f, "left").expect("the block")));
    let live = live_with(&scene.hand.module, f, at, "t");
    let callee = FrameLanding { live: &live, ..scene.callee_landing() };
    scene.word_in_callee([callee, scene.caller_landing()])
}

/// Something armed in `@main` reads a value that is dead behind the call.
fn lacking_behind_the_call() -> Option<String> {
    let scene = Scene::new();
    let main = scene.hand.body("main");
    let behind = main.next_inst(scene.call().inst()).map(Point::before);
    let live = live_with(&scene.hand.module, main, behind.expect("a jump"), "e");
    let caller = FrameLanding { live: &live, ..scene.caller_going_on() };
    scene.word_in_callee([scene.callee_landing(), caller])
}

fn unasked() -> Option<String> {
    let scene = Scene::new();
    let main = scene.hand.body("main");
    let live = live_at(&scene.hand.module, main, std::iter::empty(), &[]);
    scene.caller_in(FrameLanding { live: &live, ..scene.caller_landing() })
}

fn elsewhere() -> Option<String> {
    let scene = Scene::new();
    let main = scene.hand.body("main");
    let sum = value(main, "e").and_then(|e| main.defining_inst(e)).expect("a sum");
    let on = own_edited(&scene.hand.module, main, |mapping| {
        edit_entry(mapping, scene.call(), |entry| entry.target = Point::before(sum));
    });
    let caller = FrameLanding { on: Some(&on.mapping), ..scene.caller_landing() };
    scene.word_in_callee([scene.callee_landing(), caller])
}

/// The frame of `@main` waits in a version whose instructions have numbers of another family.
fn of_others() -> Option<String> {
    let scene = Scene::new();
    let version = scene.hand.body("main").fork();
    let other = own(&scene.hand.module, &version);
    let landing = FrameLanding { on: Some(&other.mapping), version: &version, live: &other.live };
    scene.word_in_callee([scene.callee_landing(), landing])
}

/// The entry at the call executes the store that has just executed, once more. The store changes
/// nothing before the call, so the entry is right there. Our certifier finds no proof; another may.
fn with_replays() -> Option<String> {
    let scene = Scene::new();
    let store = insts_of(scene.hand.body("main"), Opcode::GlobalSet)[0];
    let (opcode, ty) = (Opcode::Const, Type::I32);
    let one = Step { opcode, ty, operand_ty: ty, bits: 1, args: Default::default() };
    let mut again: Mapping = Mapping::clone(&scene.caller.mapping);
    edit_entry(&mut again, scene.call(), |entry| {
        entry.steps = vec![one.clone()];
        entry.replays = vec![Replay {
            inst: store,
            opcode: Opcode::GlobalSet,
            ty,
            imm: Imm::Global(Global::from_u32(0)),
            args: [Operand::Step(0)].into_iter().collect(),
        }];
    });
    let again = Checked::unproved(again);
    let caller = FrameLanding { on: Some(&again), ..scene.caller_landing() };
    scene.word_in_callee([scene.callee_landing(), caller])
}

/// The second copy of a loop's call is entered with the result of the call before. An entry there
/// provides it, and it names the result of the call in progress.
fn with_results() -> Option<String> {
    let text = "func @f(%a: i32) -> i32 {\nentry:\n  return %a\n}\n\
                func @main(%n: i32) -> i32 {\nentry:\n  jump head\n\
                head:\n  %u = call @f(%n)\n  br_if %u, head, done\n\
                done:\n  return %u\n}\n";
    let copy = "func @main(%n: i32) -> i32 {\nentry:\n  jump head\n\
                head:\n  jump f_entry(%n)\n\
                f_entry(%f_a: i32):\n  jump f_behind(%f_a)\n\
                f_behind(%u: i32):\n  br_if %u, again, done\n\
                again:\n  jump h_entry(%n)\n\
                h_entry(%h_a: i32):\n  jump f_behind(%h_a)\n\
                done:\n  return %u\n}\n";
    let mut hand = Hand::new(text, copy, &[("f_", "f", 0, 0), ("h_", "f", 0, 0)]);
    let [again, entry] = ["again", "h_entry"].map(|name| block(&hand.version, name));
    let call = calls(hand.body("main"))[0];
    hand.claim.blocks.insert(again.expect("the second copy of the head"), (0, call));
    let copies = hand.copy().expect("it is a copy");
    let f = &hand.version;
    let at = Point::before(f.terminator(entry.expect("the second copy of the callee")));
    let before = value(f, "u").expect("the result of the call before");
    let result = value(hand.body("main"), "u").expect("the result");
    let first = own_edited(&hand.module, f, |mapping| provide_dead(mapping, at, before));
    let left = left_alone(&hand, &copies, &first);
    let entry = left.entry(at).expect("an entry");
    entry.assigns.iter().all(|assign| assign.value != result).then(|| "right".to_owned())
}

fn other_original() -> Option<String> {
    let scene = Scene::new();
    let again = own(&scene.hand.module, scene.hand.body("again"));
    let entered = check::enter_copy(&again.mapping, &scene.copies, &scene.first.mapping);
    entered.err().map(|error| error.to_string())
}

fn other_copy_entered() -> Option<String> {
    let scene = Scene::new();
    let other = own(&scene.hand.module, &other_copy());
    let entered = check::enter_copy(&scene.caller.mapping, &scene.copies, &other.mapping);
    entered.err().map(|error| error.to_string())
}

const JOINS: &str = "\
func @main(%n: i32, %m: i32) -> i32 {
entry:
  br_if %n, one, two
one:
  jump last
two:
  jump last
last:
  return %m
}
";

/// A block of the original has two copies, each behind another arm.
fn ambiguous() -> Option<String> {
    let copy = JOINS.replace("two:\n  jump last", "two:\n  jump second");
    let copy = copy.replace("  return %m\n", "  return %m\nsecond:\n  return %m\n");
    let mut hand = Hand::new(JOINS, &copy, &[]);
    let main = hand.body("main");
    let last = main.first_inst(block(main, "last").expect("the block"));
    let second = block(&hand.version, "second").expect("its second copy");
    hand.claim.blocks.insert(second, (0, last));
    let copies = hand.copy().expect("it is a copy");
    let [to, from] = [hand.body("main"), &hand.version].map(|f| own(&hand.module, f).mapping);
    let entered = check::enter_copy(&to, &copies, &from).expect("a chain");
    let refused = entered.refused.iter().find(|(at, _)| *at == Point::before(last));
    refused.map(|(_, refusal)| refusal.to_string())
}

/// The copy has two parameters under each other's ids.
fn old_names() -> Option<String> {
    let [a, b] =
        ["a(%p: i32):\n  jump b(%m)\n", "b(%q: i32):\n  %d = sub.i32 %p, %q\n  return %d\n"];
    let text = |first: &str, second: &str| {
        let begin = "func @main(%n: i32, %m: i32) -> i32 {\nentry:\n  jump a(%n)\n";
        format!("{begin}{first}{second}}}\n")
    };
    let hand = Hand::new(&text(a, b), &text(b, a), &[]);
    let main = hand.body("main");
    let [p, name] = [main, &hand.version].map(|f| value(f, "p").expect("a parameter"));
    assert_ne!(p, name, "the copy has another id for it");
    let copies = hand.copy().expect("it is a copy");
    let [to, from] = [main, &hand.version].map(|f| own(&hand.module, f).mapping);
    let at = Point::before(main.first_inst(block(main, "b").expect("the block")));
    let entered = check::enter_copy(&to, &copies, &from).expect("a chain");
    let entry = entered.mapping.entry(at).expect("it is entered");
    let assign = entry.assigns.iter().find(|assign| assign.value == name);
    let is_right = assign.is_some_and(|assign| assign.from == Operand::Source(p));
    is_right.then(|| "right".to_owned())
}
