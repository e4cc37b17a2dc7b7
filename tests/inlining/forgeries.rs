//! Claims about copies that the checker rejects, one for each of its demands.

use super::wrong::hand::Hand;
use super::wrong::{self, Forgery};
use super::{ALL, inlined, parsed};
use ir::edit::{ActionKind, ClaimedLog, InlinedBody};
use ir::{Block, Func, Function, Inst, Module, Value};
use mutants::table::Table;
use osier::check::{self, CopyError};
use osier::osr::copy_claim;
use osier::transition::copy::CopyClaim;
use std::collections::BTreeSet;

const TEXT: &str = "export \"main\" @main
func @twice(%a: i32, %b: i32) -> i32 {
entry:
  br_if %a, some(%a), some(%b)
some(%x: i32):
  %y = add.i32 %x, %b
  return %y
}
func @other(%a: i32, %b: i32) -> i32 {
entry:
  return %a
}
func @main(%n: i32, %m: i32) -> i32 {
entry:
  %u = call @twice(%n, %m)
  %v = call @twice(%m, %u)
  %w = add.i32 %u, %v
  return %w
}";

struct Forged {
    module: Module,
    main: Func,
    version: Function,
    claim: CopyClaim,
}

impl Forged {
    fn new() -> Forged {
        let module = parsed(TEXT);
        let main = module.lookup("main").expect("the text has it");
        let (version, log) = inlined(&module, main, ALL);
        let claim = copy_claim(main, module.body(main).expect("a body"), &log).expect("a claim");
        let forged = Forged { module, main, version, claim };
        assert_eq!(forged.judged(), None, "before the forgery");
        forged
    }

    fn judged(&self) -> Option<CopyError> {
        let original = |func, _| self.module.body(func);
        check::copy(&self.version, self.main, original, self.claim.clone()).err()
    }

    /// The blocks of an instance, ascending.
    fn blocks(&self, id: usize) -> Vec<Block> {
        self.claim.blocks.iter().filter(|(_, (of, _))| *of == id).map(|(b, _)| *b).collect()
    }

    fn text(&self, of: &str, by: &str) -> Option<CopyError> {
        let text = TEXT.replacen(of, by, 1);
        assert_ne!(text, TEXT);
        let module = parsed(&text);
        let original = |func, _| module.body(func);
        check::copy(&self.version, self.main, original, self.claim.clone()).err()
    }
}

#[test]
fn names_are_those_of_the_instance() {
    let mut forged = Forged::new();
    let [first, second] = [1, 2].map(|id| forged.claim.instances[id].values.clone());
    forged.claim.instances[1].values = second.clone();
    assert!(matches!(forged.judged(), Some(CopyError::Leads(_) | CopyError::Params(_))));
    forged.claim.instances[1].values = first;
    let of: Value = *second.keys().next().expect("it has values");
    forged.claim.instances[2].values.remove(&of);
    assert!(forged.judged().is_some());
}

/// A claim may give names to values that no code defines. Frames must not be assigned these values,
/// and an entry must not cost the product of its values and of the names of each.
#[test]
fn names_that_no_code_defines_are_no_names() {
    let mut forged = Forged::new();
    let (of, name) = forged.claim.instances[1].values.first_key_value().expect("it has values");
    let (of, name) = (*of, *name);
    let nowhere = (9_000..9_100).map(|value| (Value::from_u32(value), name));
    forged.claim.instances[1].values.extend(nowhere);
    let original = |func, _| forged.module.body(func);
    let copies = check::copy(&forged.version, forged.main, original, forged.claim.clone());
    let copies = copies.expect("no code reads them");
    assert_eq!(copies.named(name).collect::<Vec<_>>(), [(1, of)]);
}

#[test]
fn instances_stand_for_calls_of_their_function() {
    let mut forged = Forged::new();
    let other = forged.module.func_named("other").expect("the text has it");
    forged.claim.instances[1].func = other;
    assert!(forged.judged().is_some());
    let mut forged = Forged::new();
    forged.claim.instances[1].caller = forged.claim.instances[2].caller;
    assert!(matches!(forged.judged(), Some(CopyError::Leads(_))));
    let mut forged = Forged::new();
    forged.claim.instances[1].caller = Some((1, forged.claim.instances[1].caller.expect("one").1));
    assert_eq!(forged.judged(), Some(CopyError::Instances));
    let mut forged = Forged::new();
    forged.claim.instances[0].func = other;
    assert_eq!(forged.judged(), Some(CopyError::Instances));
    let mut forged = Forged::new();
    forged.claim.instances.clear();
    assert_eq!(forged.judged(), Some(CopyError::Instances));
    // A call that the caller lacks.
    let mut forged = Forged::new();
    forged.claim.instances[1].caller = Some((0, Inst::from_u32(9999)));
    assert_eq!(forged.judged(), Some(CopyError::Instances));
}

#[test]
fn blocks_are_where_edges_lead() {
    let mut forged = Forged::new();
    let rest: Vec<Block> = forged.blocks(0);
    let last = *rest.last().expect("the rest behind the second call");
    let place = forged.claim.blocks[&rest[0]];
    forged.claim.blocks.insert(last, place);
    assert!(matches!(forged.judged(), Some(CopyError::Leads(_))));
    forged.claim.blocks.remove(&last);
    assert!(forged.judged().is_some());
    let mut forged = Forged::new();
    let nowhere = Inst::from_u32(9999);
    let inner = forged.blocks(1);
    forged.claim.blocks.insert(inner[1], (1, nowhere));
    assert!(forged.judged().is_some());
    forged.claim.blocks.insert(inner[1], (99, nowhere));
    assert!(forged.judged().is_some());
    let mut forged = Forged::new();
    forged.claim.blocks.clear();
    assert!(matches!(forged.judged(), Some(CopyError::Unclaimed(_))));
}

/// The trial (`p1 --bug CopyDemands`) shows that each gets through if its demand is left out.
#[test]
fn each_demand_stops_its_forgery() {
    let mut seen = BTreeSet::new();
    for Forgery { demand, what, judge, refusal } in wrong::all() {
        let said = judge();
        let stops = said.as_deref().is_some_and(|said| said.starts_with(refusal));
        assert!(stops, "{demand}: {what}: {said:?}, and not {refusal:?}");
        seen.insert(demand);
    }
    let table = Table::read().expect("the table of seeded bugs");
    let bugs = table.mutants.iter().filter(|bug| bug.area == "CopyDemands");
    let bugs: BTreeSet<&str> = bugs.map(|bug| bug.name.as_str()).collect();
    assert_eq!(seen, bugs, "a seeded bug leaves out each demand");
}

/// A relation of two versions says nothing of the activations of other functions.
#[test]
fn an_entry_with_inner_activations_is_not_refuted() {
    let verdict = wrong::neighbors::within_call();
    assert!(verdict.finding().is_some() && !verdict.is_refuted(), "{verdict:?}");
}

/// Not the claim is forged, but the originals are others.
#[test]
fn code_is_that_of_the_original() {
    let forged = Forged::new();
    let cases = [
        ("%y = add.i32 %x, %b", "%y = sub.i32 %x, %b"),
        ("%y = add.i32 %x, %b", "%y = add.i32 %b, %x"),
        ("some(%a), some(%b)", "some(%b), some(%a)"),
        ("return %y", "return %x"),
        ("call @twice(%m, %u)", "call @twice(%u, %m)"),
        ("call @twice(%m, %u)", "call @other(%m, %u)"),
        ("return %w", "return %v"),
        ("%w = add.i32 %u, %v", "%w = add.i32 %u, %v\n  %z = add.i32 %u, %v"),
    ];
    for (of, by) in cases {
        assert!(forged.text(of, by).is_some(), "{of} became {by}");
    }
}

/// A callee that assumes is copied with its assumptions, or not at all.
#[test]
fn a_copy_keeps_assumptions() {
    let main = "func @main(%n: i32) -> i32 {\nentry:\n";
    let text = format!(
        "func @f(%a: i32) -> i32 {{\nentry:\n  %w = assume.i32 %a, 7, 1\n  return %a\n}}\n\
         {main}  %u = call @f(%n)\n  return %u\n}}\n"
    );
    let judged = |assumption: &str| {
        let begin = format!("{main}  jump f_entry(%n)\nf_entry(%f_a: i32):\n{assumption}");
        let copy = format!("{begin}  jump f_behind(%f_a)\nf_behind(%u: i32):\n  return %u\n}}\n");
        Hand::new(&text, &copy, &[("f_", "f", 0, 0)]).judged()
    };
    assert_eq!(judged("  %f_w = assume.i32 %f_a, 7, 1\n"), None);
    for other in ["", "  %f_w = assume.i32 %f_a, 8, 1\n", "  %f_w = const.i32 1\n"] {
        assert!(judged(other).is_some(), "{other:?} in the place of the assumption");
    }
}

/// Replay leads to the version by this log alone: each part of an action counts.
#[test]
fn an_edited_inlining_is_noticed() {
    let module = parsed(TEXT);
    let main = module.lookup("main").expect("the text has it");
    let base = module.body(main).expect("a body");
    let (version, log) = inlined(&module, main, ALL);
    let other = module.func_named("other").and_then(|func| module.body(func)).expect("a body");
    let (_, of_other) = inlined(&parsed(&TEXT.replace("@twice(%n", "@other(%n")), main, ALL);
    let claim = ClaimedLog::from(&log);
    assert_eq!(claim.check(base, &version), Ok(()));
    let edits: [fn(&mut ActionKind, &ActionKind); 8] = [
        |one, two| with(one, two, |call, _, other, _| *call = other),
        |one, two| with(one, two, |_, body, _, _| body.blocks.swap(0, 1)),
        |one, two| with(one, two, |_, body, _, _| body.blocks.truncate(1)),
        |one, two| with(one, two, |_, body, _, _| body.values[0].1 = body.values[1].1),
        |one, two| with(one, two, |_, body, _, _| body.insts[0].1 = body.jump),
        |one, two| with(one, two, |_, body, _, other| body.rest = other.rest),
        |one, two| with(one, two, |call, body, _, _| body.jump = *call),
        |one, two| with(one, two, |_, body, _, other| body.callee = other.callee.clone()),
    ];
    for (number, edit) in edits.into_iter().enumerate() {
        let mut damaged = claim.clone();
        let second = match number {
            7 => of_other.actions()[0].kind().clone(),
            _ => damaged.actions[1].1.clone(),
        };
        edit(&mut damaged.actions[0].1, &second);
        assert!(damaged.check(base, &version).is_err(), "edit {number}");
    }
    assert_eq!(other.inst_count(), 1, "the other callee is a smaller one");
}

/// Edits one inlining, with the call and the body of another at hand.
fn with(
    one: &mut ActionKind,
    two: &ActionKind,
    edit: impl FnOnce(&mut Inst, &mut InlinedBody, Inst, &InlinedBody),
) {
    let (ActionKind::Inline { call, body }, ActionKind::Inline { call: of, body: other }) =
        (one, two)
    else {
        panic!("the log inlines alone");
    };
    edit(call, body, *of, other);
}
