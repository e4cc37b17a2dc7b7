//! Forgeries of steps across the landing point of a continuation, and of passages.

use super::Forgery;
use super::continuations::{Rest, edited_loop, forgery, nth, right_loop};
use super::hand::{block, parsed, value};
use osier::check::{self, Checked, CheckedEntry, RestOf};
use osier::ir::{Function, Point, Value};
use osier::transition::VersionKey;
use osier::transition::mapping::{Assign, Entry, Mapping, Operand};
use std::collections::BTreeSet;

/// The step from the continuation into the loop out to its target.
struct Leaving {
    rest: Rest,
    /// From the continuation to itself.
    first: Mapping,
    second: Mapping,
    /// The source version of the continuation's entry, as the entry says.
    source: VersionKey,
}

/// The declarations that the loop needs.
const DECLARED: &str = "global @g: mut i32 = 0\n";

/// An entry that copies values to themselves.
fn copies(target: Point, values: impl IntoIterator<Item = Value>) -> Entry {
    let values: BTreeSet<Value> = values.into_iter().collect();
    let copy = |value: &Value| Assign { value: *value, from: Operand::Source(*value) };
    Entry {
        target,
        steps: Vec::new(),
        replays: Vec::new(),
        assigns: values.iter().map(copy).collect(),
        requires: values.into_iter().collect(),
        kept: Vec::new(),
        inner: Box::default(),
    }
}

fn all_values(f: &Function) -> impl Iterator<Item = Value> + '_ {
    let params = f.blocks().flat_map(|block| f.block_params(block));
    params.chain(f.all_insts().flat_map(|inst| &f.inst(inst).results)).copied()
}

impl Leaving {
    /// A run leaves before the first instruction of `rest`, and goes on in the loop.
    fn right() -> Leaving {
        Leaving::of(right_loop())
    }

    fn of(rest: Rest) -> Leaving {
        let (function, target) = (rest.function.clone(), rest.versions[0].clone());
        let at = Point::before(nth(&function, "rest", 0));
        let mut first = Mapping::new(&function, &function);
        first.insert(at, copies(at, all_values(&function)));
        let place = BTreeSet::from([Point::before(nth(&target, "head", 2))]);
        let second = check::stay(&parsed(DECLARED), &target, &place).into_inner();
        let source = VersionKey::of(&rest.source);
        let leaving = Leaving { rest, first, second, source };
        assert_eq!(leaving.judged(), None, "before the forgery");
        leaving
    }

    /// The word of the checker on the composition at all points.
    fn judged(&self) -> Option<String> {
        let Rest { function, source, entry, claim, versions } = &self.rest;
        let target = &versions[0];
        let at = Point::before(source.first_inst(source.entry()));
        let entry = CheckedEntry::unproved(self.source, VersionKey::of(target), at, entry);
        let rest = RestOf { function, source, target, entry, claim };
        let [first, second] = [&self.first, &self.second].map(|m| Checked::unproved(m.clone()));
        match check::leave_continuation(&first, &rest, &second) {
            Ok(made) => made.refused.first().map(|(_, refusal)| refusal.to_string()),
            Err(fault) => Some(fault.to_string()),
        }
    }
}

/// The same entries between other versions.
fn between(mapping: &Mapping, source: VersionKey, target: VersionKey) -> Mapping {
    let mut other = Mapping::between(source, target);
    mapping.entries().for_each(|(point, entry)| other.insert(point, entry.clone()));
    other
}

fn of_other_entry() -> Option<String> {
    let leaving = Leaving::right();
    Leaving { source: VersionKey::of(&leaving.rest.function), ..leaving }.judged()
}

fn leaves_other_rest() -> Option<String> {
    let leaving = Leaving::right();
    let first = between(&leaving.first, leaving.first.source(), leaving.source);
    Leaving { first, ..leaving }.judged()
}

fn leaves_to_other_target() -> Option<String> {
    let leaving = Leaving::right();
    let second = between(&leaving.second, leaving.source, leaving.second.target());
    Leaving { second, ..leaving }.judged()
}

/// The entry provides values of the continuation whose numbers are those of values that the loop
/// needs, and not the values that hold these.
fn leaves_by_own_names() -> Option<String> {
    let leaving = Leaving::right();
    let (at, _) = leaving.first.entries().next().expect("an entry");
    let (_, next) = leaving.second.entries().next().expect("an entry");
    let mut first = leaving.first.clone();
    first.insert(at, copies(at, next.requires.iter().copied()));
    Leaving { first, ..leaving }.judged()
}

/// A run leaves before a last step, which no code behind it reads, and before the replay.
fn leaves_within_compensation() -> Option<String> {
    let set = "  global_set.i32 @g, %a\n";
    let mut rest = edited_loop(set, &format!("  %c2 = add.i32 %b, %b\n{set}"));
    let mut step = rest.entry.steps[1].clone();
    step.args[0] = step.args[1];
    rest.entry.steps.push(step);
    rest.claim.steps.push(2);
    assert_eq!(rest.judged(), None, "before the forgery");
    let leaving = Leaving::of(rest);
    let function = &leaving.rest.function;
    let at = Point::before(nth(function, "entry", 2));
    let mut first = leaving.first.clone();
    first.insert(at, copies(at, all_values(function)));
    Leaving { first, ..leaving }.judged()
}

fn enters_other_family() -> Option<String> {
    let rest = right_loop();
    let Rest { function, source, entry, claim, versions } = &rest;
    let target = &versions[0];
    let at = Point::before(source.first_inst(source.entry()));
    let keys = [source, target].map(VersionKey::of);
    let entry = CheckedEntry::unproved(keys[0], keys[1], at, entry);
    let rest = RestOf { function, source, target, entry, claim };
    check::enter_continuation(&rest, function).expect("the continuation itself");
    check::enter_continuation(&rest, source).err().map(|fault| fault.to_string())
}

/// The target of passages.
const TARGET: &str = "\
func @target(%x: i32, %y: i32) -> (i32, i32) {
entry:
  %s = sub.i32 %x, %y
  return %s, %y
}
";

/// The passage to it, with `%a` and `%b` as its parameters.
const PASSAGE: &str = "\
func @passage(%a: i32, %b: i32) -> (i32, i32) {
entry:
  osr_exit 0(%a, %b)
}
";

/// The word of the checker on a passage that executes nothing, for an entry that lands before an
/// instruction of the target.
fn passes(text: &str, number: usize) -> Option<String> {
    let [target, passage] = [TARGET, text].map(|text| {
        let module = parsed(text);
        module.defined().next().map(|(_, f)| f.clone()).expect("a function")
    });
    let source = parsed(PASSAGE);
    let (_, source) = source.defined().next().expect("a function");
    let at = |name| Operand::Source(value(source, name).expect("the value"));
    let assign = |name, from| Assign { value: value(&target, name).expect("a value"), from };
    let entry = Entry {
        assigns: vec![assign("x", at("a")), assign("y", at("b"))],
        requires: source.arguments().to_vec(),
        ..copies(Point::before(nth(&target, "entry", number)), [])
    };
    assert!(block(&passage, "entry").is_some(), "it has one block");
    check::passage(&passage, source, &target, &entry).err().map(|fault| fault.to_string())
}

fn right_passage() {
    assert_eq!(passes(PASSAGE, 0), None, "before the forgery");
}

/// One path alone defines `%b`. The value `%dead` is defined and never read.
const ARMS: &str = "\
func @f(%a: i32) -> i32 {
entry:
  %dead = sub.i32 %a, %a
  br_if %a, one, two
one:
  %b = add.i32 %a, %a
  jump two
two:
  %c = add.i32 %a, %a
  return %c
}
";

/// The entry of [`ARMS`] to itself in front of the branch, if a mapping out of the last block
/// requires a value.
fn stays(required: &str) -> Option<Entry> {
    let module = parsed(ARMS);
    let (_, f) = module.defined().next().expect("a function");
    let (out, at) = (Point::before(nth(f, "two", 0)), Point::before(nth(f, "entry", 1)));
    let mut armed = Mapping::new(f, f);
    armed.insert(out, copies(out, value(f, required)));
    let armed = Checked::unproved(armed);
    let points = BTreeSet::from([at]);
    check::stay(&module, f, &points).entry(at).expect("without the mapping");
    check::stay_armed(&module, f, &points, &[&armed]).entry(at).cloned()
}

fn stays_without_definition() -> Option<String> {
    match stays("b") {
        Some(_) => None,
        None => Some("no entry".to_owned()),
    }
}

fn stays_without_armed_value() -> Option<String> {
    let entry = stays("dead").expect("the value is defined");
    (entry.assigns.len() == 2).then(|| "it provides both values".to_owned())
}

fn stays_with_unkept_value() -> Option<String> {
    let entry = stays("dead").expect("the value is defined");
    (entry.kept.len() + 1 == entry.assigns.len()).then(|| "it keeps the dead value".to_owned())
}

pub(super) fn all() -> Vec<Forgery> {
    let others = "the entry or a mapping is of other versions";
    let nowhere = "the second mapping has no entry";
    vec![
        forgery("RestOfOtherEntry", "an entry of another version", others, of_other_entry),
        forgery("LeaveOtherRest", "a mapping to another function", others, leaves_other_rest),
        forgery("LeaveToOtherTarget", "a way on elsewhere", others, leaves_to_other_target),
        forgery(
            "LeaveByOwnNames",
            "values of the same numbers",
            "the second entry requires",
            leaves_by_own_names,
        ),
        forgery(
            "LeaveCompensation",
            "a run amid compensation code",
            nowhere,
            leaves_within_compensation,
        ),
        forgery(
            "EnterOtherFamily",
            "another function",
            "the function is no version of the continuation",
            enters_other_family,
        ),
        forgery("StayUndefined", "a value of one arm", "no entry", stays_without_definition),
        forgery(
            "StayUnarmed",
            "an entry without a dead value",
            "it provides both values",
            stays_without_armed_value,
        ),
        forgery(
            "StayUnkept",
            "a dead value that counts as live",
            "it keeps the dead value",
            stays_with_unkept_value,
        ),
        forgery("PassageElsewhere", "a landing behind the start", "it has another", || {
            right_passage();
            passes(PASSAGE, 1)
        }),
        forgery("PassageOrder", "parameters in another order", "inst0 leads elsewhere", || {
            right_passage();
            passes(&PASSAGE.replace("(%a, %b)\n}", "(%b, %a)\n}"), 0)
        }),
        forgery("PassagePoint", "another point", "inst0 leads elsewhere", || {
            right_passage();
            passes(&PASSAGE.replace("osr_exit 0", "osr_exit 7"), 0)
        }),
        forgery("PassageGoesOn", "a passage that returns", "inst0 leads elsewhere", || {
            right_passage();
            passes(&PASSAGE.replace("osr_exit 0(%a, %b)", "return %a, %b"), 0)
        }),
    ]
}
