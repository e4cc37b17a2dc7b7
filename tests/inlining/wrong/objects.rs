//! Forgeries of copies that lack objects of their originals.

use super::Forgery;
use super::hand::{Hand, block, calls, insts_of, value};
use osier::check;
use osier::driver::NoObserver;
use osier::inlining::{CalleeLandings, InlinePlan, inline};
use osier::ir::{Inst, Opcode, Point, Value};
use osier::passes::{InlinePolicy, Pipeline};
use osier::transition::copy::{ObjectForm, ObjectState};
use std::collections::BTreeMap;

const DECLARATIONS: &str = "\
memory @heap 1
memory @rest 1
import func @new \"env\" \"new\" (i32, i64) -> ref effect(allocates)
import func @find \"env\" \"find\" (i32, i64) -> ref
import func @work \"env\" \"work\" () -> ()
";

/// The start of `@main`, with an object that has one field.
const MADE: &str = "\
  %size = const.i32 24
  %tag = const.i64 0xfffa000000000000
  %p = call @new(%size, %tag)
  %w = ref_bits %p
  %at = wrap.i32 %w
  store.i64 @heap[%at + 8], %a
";

/// What the copy has of [`MADE`].
const KEPT: &str = "\
  %size = const.i32 24
  %tag = const.i64 0xfffa000000000000
";

/// A copy written by hand that lacks objects. A removed instruction of `@main` is a store into the
/// heap, or has a result that the version has no value of this name for. A value of the version
/// whose name begins with `added` is an added one.
struct Lacking(Hand);

impl Lacking {
    /// `names` gives values of `@main` other names in the version.
    fn new(original: &str, version: &str, names: &[(&str, &str)]) -> Lacking {
        let start = "func @main(%a: i64, %b: i64, %n: i32) -> i64 {\nentry:\n";
        let original = format!("{DECLARATIONS}{start}{original}}}\n");
        let mut hand = Hand::new(&original, &format!("{start}{version}}}\n"), &[]);
        let main = hand.body("main").clone();
        let stores = insts_of(&main, Opcode::Store);
        let is_gone = |inst: &Inst| {
            let result = main.inst(*inst).result().and_then(|result| main.value_name(result));
            stores.contains(inst) || result.is_some_and(|name| value(&hand.version, name).is_none())
        };
        let gone: Vec<Inst> = main.all_insts().filter(is_gone).collect();
        hand.claim.objects.removed = gone.into_iter().map(|inst| (0, inst)).collect();
        let is_added = |inst: &Inst| {
            let results = hand.version.inst(*inst).results.iter();
            results.filter_map(|of| hand.version.value_name(*of)).any(|of| of.starts_with("added"))
        };
        let added: Vec<Inst> = hand.version.all_insts().filter(is_added).collect();
        hand.claim.objects.added = added.into_iter().collect();
        for (of, name) in names {
            let name = value(&hand.version, name).expect("the version has it");
            let of = value(&main, of).expect("`@main` has it");
            hand.claim.instances[0].values.insert(of, name);
        }
        Lacking(hand)
    }

    fn value(&self, name: &str) -> Value {
        value(self.0.body("main"), name).expect("`@main` has it")
    }

    /// The object of [`MADE`], with these fields.
    fn object(&self, fields: &[(u64, &str)]) -> ObjectState {
        let forms =
            [("p", ObjectForm::Reference), ("w", ObjectForm::Word), ("at", ObjectForm::Address)];
        let field = |(offset, name): &(u64, &str)| {
            (*offset, value(&self.0.version, name).expect("the version has it"))
        };
        ObjectState {
            site: (0, calls(self.0.body("main"))[0]),
            forms: forms.iter().map(|(name, form)| ((0, self.value(name)), *form)).collect(),
            fields: fields.iter().map(field).collect::<BTreeMap<u64, Value>>(),
            is_lost: false,
        }
    }

    /// The claim with objects at the start of a block.
    fn at(mut self, label: &str, objects: Vec<ObjectState>) -> Lacking {
        let at = block(&self.0.version, label).expect("the version has it");
        self.0.claim.objects.at_start.insert(at, objects);
        self
    }

    fn judged(&self) -> Option<String> {
        let findings = osier::ir::verifier::verify_function(&self.0.module, &self.0.version);
        assert!(findings.is_empty(), "{}", findings[0]);
        let Hand { module, version, claim } = &self.0;
        let original = |func, _| module.body(func);
        let (main, claim) = (self.0.main(), claim.clone());
        let copy = check::copy_without_objects(version, main, original, claim, Some(module));
        copy.err().map(|error| error.to_string())
    }
}

/// The word on a copy of [`MADE`] with this code behind.
fn behind(original: &str, version: &str, names: &[(&str, &str)]) -> Option<String> {
    lacking(original, version, names).judged()
}

fn lacking(original: &str, version: &str, names: &[(&str, &str)]) -> Lacking {
    Lacking::new(&format!("{MADE}{original}"), &format!("{KEPT}{version}"), names)
}

/// As [`behind`], where the right code is accepted.
fn unlike(right: [&str; 2], wrong: [&str; 2], names: &[(&str, &str)]) -> Option<String> {
    assert_eq!(behind(right[0], right[1], names), None, "before the forgery");
    behind(wrong[0], wrong[1], names)
}

const NOT_REMOVED: &str = "inst";
const NOT_BEFORE: &str = "the objects claimed";
/// The load of the field, and the copy without it.
const LOADED: [&str; 2] = ["  %l = load.i64 @heap[%at + 8]\n  return %l\n", "  return %a\n"];

fn forgery(
    demand: &'static str,
    what: &'static str,
    refusal: &'static str,
    judge: fn() -> Option<String>,
) -> Forgery {
    Forgery { demand, what, judge: Box::new(judge), refusal }
}

pub(super) fn all() -> Vec<Forgery> {
    [calls_and_forms(), accesses(), decisions(), edges(), merges(), entrances()]
        .into_iter()
        .flatten()
        .collect()
}

/// Removed calls of other functions, and code that reads forms.
fn calls_and_forms() -> Vec<Forgery> {
    let name = "ObjectFormNamed";
    vec![
        forgery("ObjectOfAnyCall", "a call of another function", NOT_REMOVED, || {
            let made = MADE.replace("@new", "@find");
            Lacking::new(
                &format!("{made}{}", LOADED[0]),
                &format!("{KEPT}{}", LOADED[1]),
                &[("l", "a")],
            )
            .judged()
        }),
        forgery("ObjectOfAnySize", "a call whose size is no constant", NOT_REMOVED, || {
            let call = "  %tag = const.i64 0xfffa000000000000\n  %p = call @new(%n, %tag)\n";
            let rest = "  return %a\n";
            let kept = "  %tag = const.i64 0xfffa000000000000\n  return %a\n";
            Lacking::new(&format!("{call}{rest}"), kept, &[]).judged()
        }),
        forgery(name, "an operand that is a word, under a name", NOT_REMOVED, || {
            let right = ["  %k = add.i64 %a, %a\n  return %k\n"; 2];
            let wrong = "  %k = add.i64 %w, %a\n  return %k\n";
            assert_eq!(behind(right[0], right[1], &[]), None, "before the forgery");
            behind(wrong, right[1], &[("w", "a")])
        }),
        forgery(name, "a word that returns, under a name", NOT_REMOVED, || {
            behind("  return %w\n", "  return %a\n", &[("w", "a")])
        }),
        forgery(name, "a word that an edge hands on, under a name", NOT_REMOVED, || {
            let end = "more(%x: i64):\n  return %x\n";
            let (of, copy) = (format!("  jump more(%w)\n{end}"), format!("  jump more(%a)\n{end}"));
            behind(&of, &copy, &[("w", "a")])
        }),
        forgery(name, "a word stored into another object, under a name", NOT_REMOVED, || {
            let other = "  %q = call @new(%size, %tag)\n  %v = ref_bits %q\n  %to = wrap.i32 %v\n";
            let right = format!("{other}  store.i64 @heap[%to], %a\n  return %a\n");
            assert_eq!(behind(&right, "  return %a\n", &[]), None, "before the forgery");
            behind(&right.replace("], %a", "], %w"), "  return %a\n", &[("w", "a")])
        }),
        forgery("ObjectAddsAnything", "a sum that no original has", NOT_REMOVED, || {
            let sum = "  %added = add.i64 %a, %b\n  return %a\n";
            behind("  return %a\n", sum, &[])
        }),
        // Two copies of one place would pass for one, and the second for no place to enter at.
        forgery(
            "ObjectAddsOriginals",
            "a sum of the original, said to be new",
            NOT_REMOVED,
            || {
                let sum = |name: &str| format!("  %{name} = add.i64 %a, %b\n  return %{name}\n");
                let (right, wrong) = (sum("s"), sum("added"));
                unlike([&right, &right], [&wrong, &wrong], &[])
            },
        ),
    ]
}

/// Accesses that are no access of a field.
fn accesses() -> Vec<Forgery> {
    vec![
        forgery("ObjectBeyondItsBytes", "a store that ends behind the bytes", NOT_REMOVED, || {
            let store = |at: u32| format!("  store.i64 @heap[%at + {at}], %b\n  return %a\n");
            let (right, wrong) = (store(16), store(17));
            let copy = "  return %a\n";
            unlike([&right, copy], [&wrong, copy], &[])
        }),
        forgery("ObjectInAnyMemory", "a store into another memory", NOT_REMOVED, || {
            let store = |memory: &str| format!("  store.i64 @{memory}[%at], %b\n  return %a\n");
            let (right, wrong) = (store("heap"), store("rest"));
            let copy = "  return %a\n";
            unlike([&right, copy], [&wrong, copy], &[])
        }),
        forgery("ObjectStoreOverPart", "a store over a part of a field", NOT_REMOVED, || {
            let store = |at: u32| format!("  store.i32 @heap[%at + {at}], %n\n  return %a\n");
            let (right, wrong) = (store(4), store(12));
            let copy = "  return %a\n";
            unlike([&right, copy], [&wrong, copy], &[])
        }),
        forgery(
            "ObjectLoadsAnother",
            "a load under the name of another value",
            NOT_REMOVED,
            || {
                assert_eq!(behind(LOADED[0], LOADED[1], &[("l", "a")]), None, "before the forgery");
                behind(LOADED[0], "  return %b\n", &[("l", "b")])
            },
        ),
        forgery("ObjectLoadsPart", "a load of half a field", NOT_REMOVED, || {
            let half = LOADED[0].replace("i64", "i32").replace("return %l", "return %a");
            behind(&half, LOADED[1], &[("l", "a")])
        }),
        forgery("ObjectFieldMoves", "a field behind a call that may move it", NOT_REMOVED, || {
            let work = |code: &str| format!("  call @work()\n{code}");
            let [of, copy] = LOADED.map(work);
            behind(&of, &copy, &[("l", "a")])
        }),
    ]
}

/// Operations on words that the upper half does not decide.
fn decisions() -> Vec<Forgery> {
    const HIGH: &str =
        "  %by = const.i64 48\n  %high = ushr.i64 %w, %by\n  %r = add.i64 %high, %a\n  return %r\n";
    const IS: &str = "  %k = const.i64 0xfffa000000000040\n  %is = eq.i64 %w, %k\n  return %a\n";
    fn high(by: &str, added: &str) -> Option<String> {
        let copy = format!(
            "  %by = const.i64 {by}\n  %added = const.i64 {added}\n  %r = add.i64 %added, %a\n  \
             return %r\n"
        );
        behind(&HIGH.replace("48", by), &copy, &[("high", "added")])
    }
    vec![
        forgery("ObjectDecidesWrongly", "another tag than the call gives", NOT_REMOVED, || {
            assert_eq!(high("48", "0xfffa"), None, "before the forgery");
            high("48", "0xfffb")
        }),
        forgery("ObjectDecidesWrongly", "a tag in a value of no code", NOT_REMOVED, || {
            let copy = "  %by = const.i64 48\n  %added = const.i64 0xfffa\n  \
                        %r = add.i64 %added, %a\n  return %r\n";
            let mut lacking = lacking(HIGH, copy, &[("high", "added")]);
            assert_eq!(lacking.judged(), None, "before the forgery");
            let high = lacking.value("high");
            lacking.0.claim.instances[0].values.insert(high, Value::from_u32(999_999));
            lacking.judged()
        }),
        forgery("ObjectPlaceDecides", "bits of the address", NOT_REMOVED, || {
            high("16", "0xfffa00000000")
        }),
        forgery("ObjectPlaceEquals", "an address said to be another", NOT_REMOVED, || {
            let copy = |high: &str| {
                let k = format!("  %k = const.i64 0x{high}000000000040\n");
                format!("{k}  %added = const.i32 0\n  return %a\n")
            };
            let (of, names) = (IS.replace("fffa", "fffb"), [("is", "added")]);
            assert_eq!(behind(&of, &copy("fffb"), &names), None, "before the forgery");
            behind(IS, &copy("fffa"), &names)
        }),
        forgery("ObjectDecidesOtherType", "a result of another type", NOT_REMOVED, || {
            let of = IS.replace("eq.i64 %w, %k", "ult.i64 %w, %by");
            let of = of.replace("  %is", "  %by = const.i64 48\n  %is");
            let copy = |ty: &str| {
                let start = "  %k = const.i64 0xfffa000000000040\n  %by = const.i64 48\n";
                format!("{start}  %added = const.{ty} 0\n  return %a\n")
            };
            let names = [("is", "added")];
            assert_eq!(behind(&of, &copy("i32"), &names), None, "before the forgery");
            behind(&of, &copy("i64"), &names)
        }),
        forgery("ObjectWordsAlike", "two objects said to be one", NOT_REMOVED, || {
            let of = "  %q = call @new(%size, %tag)\n  %v = ref_bits %q\n  %is = eq.i64 %w, %v\n";
            let copy = "  %added = const.i32 1\n  return %a\n";
            behind(&format!("{of}  return %a\n"), copy, &[("is", "added")])
        }),
    ]
}

/// Claims about objects at the starts of blocks.
fn edges() -> Vec<Forgery> {
    const ONE: [&str; 2] = [
        "  jump more\nmore:\n  %l = load.i64 @heap[%at + 8]\n  return %l\n",
        "  jump more\nmore:\n  return %a\n",
    ];
    fn one(objects: impl Fn(&Lacking) -> Vec<ObjectState>) -> Option<String> {
        let lacking = lacking(ONE[0], ONE[1], &[("l", "a")]);
        let right = lacking.object(&[(8, "a")]);
        let right = lacking.at("more", vec![right]);
        assert_eq!(right.judged(), None, "before the forgery");
        let objects = objects(&right);
        right.at("more", objects).judged()
    }
    vec![
        forgery("ObjectTwiceOfOneCall", "two objects of one call", NOT_BEFORE, || {
            one(|of| vec![of.object(&[(8, "a")]); 2])
        }),
        forgery("ObjectAtEntry", "an object before the first instruction", NOT_BEFORE, || {
            let lacking = lacking("  return %a\n", "  return %a\n", &[]);
            let object = lacking.object(&[]);
            lacking.at("entry", vec![object]).judged()
        }),
        forgery("ObjectOfNowhere", "an object that no path has made", NOT_BEFORE, || {
            one(|of| {
                let mut other = of.object(&[]);
                other.site.1 = of.0.body("main").first_inst(of.0.body("main").entry());
                other.forms.clear();
                vec![of.object(&[(8, "a")]), other]
            })
        }),
        forgery("ObjectFormOfNowhere", "a form that no path has made", NOT_BEFORE, || {
            one(|of| {
                let mut object = of.object(&[(8, "a")]);
                object.forms.insert((0, of.value("size")), ObjectForm::Address);
                vec![object]
            })
        }),
        forgery("ObjectFieldOfNowhere", "a field with another value", NOT_BEFORE, || {
            let lacking = lacking(ONE[0], "  jump more\nmore:\n  return %b\n", &[("l", "b")]);
            let object = lacking.object(&[(8, "b")]);
            lacking.at("more", vec![object]).judged()
        }),
        forgery("ObjectForgetsLosses", "an object without a field it has", NOT_BEFORE, || {
            let code = "  jump more\nmore:\n  return %a\n";
            let lacking = lacking(code, code, &[]);
            let object = lacking.object(&[]);
            lacking.at("more", vec![object]).judged()
        }),
        forgery("ObjectForgetsLosses", "an object whose field a call has lost", NOT_BEFORE, || {
            let code = "  call @work()\n  jump more\nmore:\n  return %a\n";
            let lost = lacking(code, code, &[]);
            let object = ObjectState { is_lost: true, ..lost.object(&[]) };
            let lost = lost.at("more", vec![object]);
            assert_eq!(lost.judged(), None, "before the forgery");
            let object = lost.object(&[]);
            lost.at("more", vec![object]).judged()
        }),
    ]
}

/// Claims about objects where paths meet.
fn merges() -> Vec<Forgery> {
    vec![
        forgery("ObjectFieldOfNowhere", "a field that one edge lacks", NOT_BEFORE, || {
            let of = "  br_if %n, left, right\nleft:\n  store.i64 @heap[%at], %b\n  jump more\n\
                      right:\n  jump more\nmore:\n  %l = load.i64 @heap[%at]\n  return %l\n";
            let copy = "  br_if %n, left, right\nleft:\n  jump more\nright:\n  jump more\n\
                        more:\n  return %b\n";
            let mut lacking = lacking(of, copy, &[("l", "b")]);
            for block in ["left", "right"] {
                let object = lacking.object(&[(8, "a")]);
                lacking = lacking.at(block, vec![object]);
            }
            let object = ObjectState { is_lost: true, ..lacking.object(&[(0, "b"), (8, "a")]) };
            lacking.at("more", vec![object]).judged()
        }),
        forgery("ObjectFieldOfLastRound", "a field of the round before", NOT_BEFORE, || {
            let code = |access: &str, end: &str| {
                format!(
                    "  jump head(%a)\nhead(%i: i64):\n{access}  %j = add.i64 %i, %b\n  \
                     br_if %n, head(%j), end\nend:\n  return {end}\n"
                )
            };
            let load = "  %l = load.i64 @heap[%at + 8]\n";
            let lacking = lacking(&code(load, "%l"), &code("", "%i"), &[("l", "i")]);
            let object = lacking.object(&[(8, "i")]);
            lacking.at("head", vec![object]).judged()
        }),
    ]
}

/// Entries into code that lacks objects.
fn entrances() -> Vec<Forgery> {
    let judge = no_run_enters_with_a_field_that_has_moved;
    vec![forgery("ObjectFieldsStay", "an entry with a field that has moved", "no entry", judge)]
}

/// A run of the base that enters behind the second call has executed it, and the call may have
/// moved what the word of `%b` refers to. `%l` has changed then, and `%f` has not. The version has
/// `%f` alone.
fn no_run_enters_with_a_field_that_has_moved() -> Option<String> {
    let enters = |field: &str, back: &str| {
        let text = format!(
            "{DECLARATIONS}
             import func @word \"env\" \"word\" () -> i64
             import func @show \"env\" \"show\" (i64) -> () effect(outside)
             func @main(%a: i64, %x: f64) -> i64 {{
             entry:
               %f = {field}
               %size = const.i32 24
               %tag = const.i64 0xfffa000000000000
               %b = call @new(%size, %tag)
               %bw = ref_bits %b
               %bat = wrap.i32 %bw
               store.i64 @heap[%bat + 8], %f
               %p = call @new(%size, %tag)
               %w = ref_bits %p
               %at = wrap.i32 %w
               store.i64 @heap[%at + 8], %a
               %l = load.i64 @heap[%bat + 8]
               call @show(%a)
               %r = {back}
               call @show(%r)
               %q = {back}
               return %q
             }}\n"
        );
        let module = osier::ir::text::parse_module(&text).expect("the text is a module");
        let main = module.func_named("main").expect("it has it");
        let nothing = || Pipeline::of(Vec::new());
        let none = InlinePolicy { size: 0, single_size: 0, hot_size: 0, ..InlinePolicy::default() };
        let plan = InlinePlan::new(nothing(), none, nothing()).removing_objects();
        let landings = CalleeLandings::new(&module, &plan);
        let made = inline(&module, main, &plan, &landings, &mut NoObserver).expect("objects go");
        assert_eq!(made.removed_objects, 2);
        let f = module.body(main).expect("a body");
        let behind = f.defining_inst(value(f, "r").expect("it has it")).expect("an operation");
        made.up.has_entry(Point::before(behind))
    };
    assert!(enters("bitcast.i64 %x", "add.i64 %l, %a"), "a move changes no float");
    assert!(enters("call @word()", "add.i64 %a, %a"), "nothing behind reads the field");
    (!enters("call @word()", "add.i64 %l, %a")).then(|| "no entry".to_owned())
}
