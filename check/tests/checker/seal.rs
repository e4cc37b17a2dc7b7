//! The seal, attacked: entries that must not get it, and the limits of its claim.

use crate::wrong::Draft;
use check::verdict::{Check, Options, Verdict};
use check::{accept, accept_armed, compose, relate};
use ir::edit::{Editor, Fuel, Pass, apply_without_log};
use ir::text::parse_module;
use ir::{Function, InstSpec, Opcode, Type};
use transition::Side::{After, Before};
use transition::VersionKey;
use transition::certificate::{EntryFacts, MappingFacts};
use transition::mapping::{Mapping, Operand};

fn first_function(text: &str) -> Function {
    let module = parse_module(text).unwrap_or_else(|errors| panic!("{}\n{text}", errors[0]));
    module.defined().next().expect("a function").1.clone()
}

/// Adds a constant.
struct Grow(u64);

impl Pass for Grow {
    fn name(&self) -> &'static str {
        "grow"
    }

    fn run(&self, editor: &mut Editor<'_>) {
        let at = editor.func().first_inst(editor.func().entry());
        assert!(editor.plan("grow"));
        editor.add(InstSpec::constant(Type::I32, self.0), at);
    }
}

/// An entry fires where the keys of its versions agree. Without a log, versions of equally many
/// edits once had one key.
#[test]
fn versions_without_a_log_are_told_apart() {
    let base = first_function("func @f() {\nentry:\nreturn\n}\n");
    let [one, two] =
        [1, 2].map(|bits| apply_without_log(&base, &Grow(bits), &mut Fuel::rewrites(1)));
    assert_ne!(VersionKey::of(&one), VersionKey::of(&two));
    assert_ne!(VersionKey::of(&one), VersionKey::of(&base));
    // Another family of the same text draws the same ids.
    let twin = first_function("func @f() {\nentry:\nreturn\n}\n");
    let other = apply_without_log(&twin, &Grow(2), &mut Fuel::rewrites(1));
    assert_ne!(VersionKey::of(&one), VersionKey::of(&other));
}

/// `sextend.i64 %r` extends another number of bits in each module, under the same text.
#[test]
fn versions_are_told_apart_by_what_they_call() {
    let [narrow, wide] = ["i16", "i32"].map(|ty| {
        first_function(&format!(
            "func @f() -> i64 {{\nentry:\n%r = call @g()\n%w = sextend.i64 %r\nreturn %w\n}}\n\
             func @g() -> {ty} {{\nentry:\n%c = const.{ty} 0\nreturn %c\n}}\n"
        ))
    });
    assert_ne!(VersionKey::of(&narrow), VersionKey::of(&wide));
}

/// Two equal versions with a dead sum. The entry to the version after provides `%x` alone; the
/// entry back keeps the sum if `keeps`.
fn dead_sum(keeps: bool) -> Draft {
    let text = "(%x: i32, %y: i32) -> i32 {\nentry:\n%s = add.i32 %x, %y\nreturn %x\n}\n";
    let mut draft = Draft::new(text, text);
    let point = draft.at(Before, "entry", 1);
    let copies = |draft: &Draft, side, names: &[&'static str]| -> Vec<(&'static str, Operand)> {
        names.iter().map(|name| (*name, draft.from(side, name))).collect()
    };
    let (there, kept) = (copies(&draft, Before, &["x"]), ["x", "s"]);
    let back = copies(&draft, After, if keeps { &kept } else { &kept[..1] });
    draft.entry(Before, [point; 2], Vec::new(), &there);
    draft.entry(After, [point; 2], Vec::new(), &back);
    draft
}

/// The seal of an entry speaks of the mappings it was accepted with. The forward entry lacks
/// the sum that the backward entry keeps: it is right where the backward entry is not armed.
#[test]
fn an_entry_provides_what_armed_mappings_require() {
    let wrong = dead_sum(true).done(Check::LivePlus, "a kept sum that is not provided");
    let versions = wrong.versions.as_ref();
    let relation = relate(&wrong.module, versions, &wrong.certificate, Options::default());
    let (mappings, facts) = (&wrong.mappings, &wrong.facts);
    let both = accept(&relation, mappings.clone(), facts.clone());
    let failed: Vec<_> =
        both.before.rejected.iter().filter_map(|(_, v)| v.finding()).map(|f| f.check).collect();
    assert_eq!((failed, both.after.mapping.len()), (vec![Check::LivePlus], 1));
    let mut lengths = Vec::new();
    for armed in [&[][..], &[&mappings.after][..]] {
        let (mapping, facts) = (mappings.before.clone(), facts.before.clone());
        lengths.push(accept_armed(&relation, Before, mapping, facts, armed).mapping.len());
    }
    assert_eq!(lengths, [1, 0], "with nothing armed, and with the mapping back");
}

/// Composition needs the values that the second entry requires. The mappings that were armed when
/// the first was accepted do not matter.
#[test]
fn mappings_accepted_apart_compose_where_the_first_provides_enough() {
    for keeps in [false, true] {
        let wrong = dead_sum(keeps).done(Check::LivePlus, "two directions");
        let versions = wrong.versions.as_ref();
        let relation = relate(&wrong.module, versions, &wrong.certificate, Options::default());
        let alone = |side| {
            let (mapping, facts) = (wrong.mappings[side].clone(), wrong.facts[side].clone());
            accept_armed(&relation, side, mapping, facts, &[]).mapping
        };
        let made = compose(&alone(Before), &alone(After)).expect("a chain");
        assert_eq!((made.mapping.len(), made.refused.len()), if keeps { (0, 1) } else { (1, 0) });
    }
}

/// Mappings of several levels share entries, and the checker passes a shared entry once. It looks
/// again where the facts are others, or where another entry stands at the point.
#[test]
fn a_shared_entry_is_judged_again_with_other_facts() {
    let wrong = crate::wrong::all()
        .into_iter()
        .find(|w| w.check == Check::StepTerm)
        .expect("there is one for each check");
    let (products, facts) = (&wrong.mappings.before, &wrong.facts.before);
    let relation =
        relate(&wrong.module, wrong.versions.as_ref(), &wrong.certificate, Options::default())
            .unwrap_or_else(|verdict| panic!("{verdict}"));
    let holds = |mapping: &Mapping, facts: &MappingFacts| {
        relation.judge(Before, mapping, facts, &[])[0] == Verdict::Holds
    };
    // The facts name a sum, and the entry computes a product.
    let (point, product) = products.entries().next().expect("one entry");
    let mut sum = product.clone();
    sum.steps[0].opcode = Opcode::Add;
    let mut sums = products.clone();
    sums.insert(point, sum);
    assert!(holds(&sums, facts), "the sum");
    let others = vec![EntryFacts { here: vec![0].into(), ..facts[0].clone() }];
    assert!(!holds(&sums, &others), "the facts of another term");
    assert!(holds(&sums, facts), "the facts of the sum again");
    assert!(!holds(products, facts), "another entry at the point");
}
