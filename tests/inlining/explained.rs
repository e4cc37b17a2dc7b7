//! Explanations of points of versions with inlined code, and of their bases.

use super::parsed;
use ir::{Func, Module, Point};
use osier::driver::NoObserver;
use osier::explain::{Question, explain_inlined, text as explanation_text};
use osier::inlining::{CalleeLandings, InlinePlan, Inlined, inline};
use osier::schema::{ExplainedEntry, Explanation, InlinedPoint, PointAnswer, PointStatus, SCHEMA};
use osier::{Format, load};
use osr::Level;
use std::collections::BTreeMap;
use transition::Side;
use transition::frames::FramePlace;

fn made(module: &Module, func: Func) -> Option<Inlined> {
    let plan = InlinePlan::o3();
    let landings = CalleeLandings::new(module, &plan);
    inline(module, func, &plan, &landings, &mut NoObserver).ok()
}

fn answer(module: &Module, made: &Inlined, asked: &str, side: Side) -> PointAnswer {
    let question = Question { point: asked, headings: &[side], level: Level::Avail, lines: None };
    let answers = explain_inlined(module, made, question);
    answers.unwrap_or_else(|error| panic!("{error}")).remove(0)
}

fn text(answer: PointAnswer) -> String {
    explanation_text(&Explanation {
        schema: SCHEMA,
        path: String::new(),
        function: "f".to_owned(),
        source_name: None,
        pipeline: vec!["O3".to_owned()],
        level: "avail".to_owned(),
        asked: String::new(),
        given_up: None,
        calls: Some(1),
        answers: vec![answer],
    })
}

fn inlined(answer: &PointAnswer) -> &InlinedPoint {
    answer.inlined.as_ref().expect("code is inlined")
}

/// The answers for every reachable point agree with the mappings, in both directions. Returns the
/// reasons of points without an entry, and the numbers of activations.
fn explained(module: &Module) -> (BTreeMap<String, u64>, BTreeMap<usize, u64>) {
    let (mut reasons, mut frames) = (BTreeMap::new(), BTreeMap::new());
    for (func, _) in module.defined() {
        let Some(made) = made(module, func) else { continue };
        for (side, points) in [Side::Before, Side::After].into_iter().zip(&made.points) {
            for point in points {
                let told = answer(module, &made, &point.inst().to_string(), side);
                agrees(&made, side, *point, &told);
                if let (Side::After, Some(entry)) = (side, &told.entry) {
                    *frames.entry(entry.landings.len()).or_default() += 1;
                }
                if let Some(why) = &told.why {
                    let step = inlined(&told).step.unwrap_or("no step");
                    *reasons.entry(format!("{step}: {}", why.reason)).or_default() += 1;
                }
                let text = text(told);
                let widest = text.lines().map(|line| line.chars().count()).max();
                assert!(widest <= Some(80), "{text}");
            }
        }
    }
    (reasons, frames)
}

fn agrees(made: &Inlined, side: Side, point: Point, told: &PointAnswer) {
    let has_entry = match side {
        Side::Before => made.up.entry(point).is_some(),
        Side::After => made.down.entry(point).is_some(),
    };
    assert_eq!(told.status == PointStatus::Entry, has_entry, "{point:?}: {told:?}");
    assert_eq!(told.why.is_none(), has_entry, "{point:?}: {told:?}");
    if side == Side::Before {
        let target = told.entry.as_ref().and_then(ExplainedEntry::target);
        let target = target.map(|landing| landing.at.place.inst.clone());
        assert_eq!(target, made.up.entry(point).map(|entry| entry.target.inst().to_string()));
        assert!(inlined(told).code_of.is_empty());
        return;
    }
    let instance = made.origin(point).map_or(0, |(id, at)| made.copies.stack(id, at).count());
    assert_eq!(inlined(told).code_of.len(), instance, "{told:?}");
    let Some(checked) = made.down.checked_entry(point) else { return };
    let (entry, main) = (checked.entry(), made.copies.instances()[0].func);
    let explained = told.entry.as_ref().expect("it has an entry");
    assert!(explained.target().is_none(), "{told:?}");
    assert_eq!(explained.landings.len(), entry.activations());
    for (told, frame) in explained.landings.iter().zip(checked.landings(main)) {
        assert_eq!(told.at.place.inst, frame.at.inst().to_string());
        assert_eq!(told.at.waits, matches!(frame.at, FramePlace::Within(_)));
        assert_eq!(told.set.len(), frame.assigns.len());
    }
    let price = explained.price();
    assert_eq!(price.operations, entry.steps.len() as u64);
    assert_eq!(price.kept + price.kept_args, entry.kept.len() as u64);
}

/// An inlined call that may end the run, a store that the passes behind the inlining remove, and a
/// load that they hoist.
const TEXT: &str = "memory @mem 1
func @main(%n: i32, %d: i32) -> i32 {
start:
  store.i32 @mem[%n], %d
  %x = load.i32 @mem[%d]
  br_if %x, bad, good
bad:
  call @stop()
  store.i32 @mem[%d], %n
  jump good
good:
  %y = call @set(%n, %d)
  %z = add.i32 %y, %x
  return %z
}
func @set(%at: i32, %d: i32) -> i32 {
entry:
  %square = mul.i32 %d, %d
  store.i32 @mem[%at], %square
  %q = udiv.i32 %square, %d
  return %q
}
func @stop() {
entry:
  trap unreachable
}
";

#[test]
fn explanations_of_inlined_code_agree_with_the_mappings() {
    let (reasons, _) = explained(&parsed(TEXT));
    assert!(reasons.contains_key("cleaned to copy: no_second_entry"), "{reasons:?}");
    let (reasons, _) = explained(&parsed(include_str!("../../docs/examples/filled.oir")));
    assert_eq!(reasons, BTreeMap::from([("copy to opt: memory_ahead".to_owned(), 1)]));
    let kernels = ["calls", "sort", "scan", "vm"];
    let (mut reasons, mut frames) = (BTreeMap::new(), BTreeMap::new());
    for kernel in kernels {
        let path = format!("{}/tests/corpus/{kernel}.wasm", env!("CARGO_MANIFEST_DIR"));
        let Ok(bytes) = std::fs::read(&path) else { panic!("{path}") };
        let module = load(Format::Wasm, &bytes).expect("a kernel");
        let (why, counts) = explained(&module);
        for (reason, count) in why {
            *reasons.entry(reason).or_insert(0) += count;
        }
        for (many, count) in counts {
            *frames.entry(many).or_insert(0) += count;
        }
    }
    // The optimized version may continue with a load of inlined code. No activation of the base has
    // its value. All other points of the kernels have an entry.
    assert!(reasons.keys().all(|reason| reason == "copy to opt: load"), "{reasons:?}");
    assert!(frames.contains_key(&1) && frames.contains_key(&2), "{frames:?}");
}

/// The call of `@stop` does not return. The entry at the points behind it is lost where its code is
/// inlined, and that is the action to blame.
#[test]
fn a_point_behind_a_call_that_does_not_return_blames_the_inlining() {
    let module = parsed(TEXT);
    let (func, base) = module.defined().next().expect("a function");
    let made = made(&module, func).expect("calls are inlined");
    let bad = base.blocks().nth(1).expect("three blocks");
    let store = base.block_insts(bad).nth(1).expect("a store");
    let told = answer(&module, &made, &store.to_string(), Side::Before);
    let why = told.why.as_ref().expect("no entry");
    assert!(why.text.contains("an inlined call before it does not return"), "{}", why.text);
    let blame = why.blame.as_ref().expect("an action");
    assert_eq!(blame.pass, "inline");
    assert!(blame.words.contains("the code of @stop"), "{}", blame.words);
    assert_eq!(inlined(&told).step, Some("cleaned to copy"));
}

/// A point of inlined code tells the path of calls, innermost first, also for a question about the
/// base.
#[test]
fn a_point_of_inlined_code_tells_its_calls() {
    let module = parsed(TEXT);
    let (func, _) = module.defined().next().expect("a function");
    let made = made(&module, func).expect("calls are inlined");
    let is_inlined = |point: &&Point| made.origin(**point).is_some_and(|(id, _)| id != 0);
    let point = made.points[1].iter().find(is_inlined).expect("inlined code");
    for side in [Side::Before, Side::After] {
        let told = answer(&module, &made, &point.inst().to_string(), side);
        let path: Vec<(&str, bool)> =
            inlined(&told).code_of.iter().map(|one| (one.function.as_str(), one.waits)).collect();
        assert!(matches!(path[..], [("set" | "stop", false), ("main", true)]), "{path:?}");
        let is_absent = told.status == PointStatus::Absent;
        assert_eq!(is_absent, side == Side::Before);
        let blame = told.why.and_then(|why| why.blame);
        assert!(!is_absent || blame.is_some_and(|blame| blame.pass == "inline"));
    }
}
