//! Inputs made to cost time. Each takes quadratic time, which is minutes or hours, if the checker
//! lacks the limit or the table that the test of the input is about.

use check::relate;
use check::verdict::{Check, Options, Verdict};
use ir::text::parse_module;
use ir::{Effects, Global, Imm, Opcode, Point, Type, Value, ValueDef};
use transition::certificate::{By, Certificate, NO_TERM, Term, TermId, TermKind, VersionTerms};
use transition::mapping::Mapping;
use transition::{Pair, Side, VersionKey};

const N: usize = 100_000;

fn times(text: &str, count: usize) -> String {
    vec![text; count].join(", ")
}

/// Relates a function of branches to itself. `one_leaf` gives all parameters one leaf instead of
/// one each; `anchors` makes switches anchors. Returns the number of entries that hold.
fn relates(text: &str, one_leaf: bool, anchors: bool) -> Result<usize, Verdict> {
    let module = parse_module(text).unwrap_or_else(|errors| panic!("{}", errors[0]));
    let (_, f) = module.defined().next().expect("one function");
    let leaf =
        |kind: TermKind, ty, id: usize| Term { kind, ty, class: id as TermId, by: By::Itself };
    let mut terms = vec![leaf(TermKind::MemoryAtEntry, None, 0)];
    let mut side = VersionTerms::default();
    let mut shared = NO_TERM;
    for value in (0..f.value_bound() as u32).map(Value::from_u32) {
        if let Some(inst) = f.defining_inst(value) {
            let data = f.inst(inst);
            let args = data.args.iter().map(|arg| side.values[arg.as_u32() as usize].1).collect();
            let kind = TermKind::Op { opcode: data.opcode, ty: data.ty, imm: data.imm, args };
            // Few operations are different ones.
            let known = terms.iter().position(|term: &Term| term.kind == kind);
            let id = known.unwrap_or(terms.len());
            if known.is_none() {
                terms.push(leaf(kind, Some(Type::I32), id));
            }
            side.values.push((value, id as TermId));
            continue;
        }
        let kind = match f.value_def(value) {
            ValueDef::Param(block, index) if block == f.entry() => TermKind::Argument(index),
            _ => TermKind::Param,
        };
        if kind == TermKind::Param && shared != NO_TERM {
            side.values.push((value, shared));
            continue;
        }
        let id = terms.len();
        shared = if one_leaf && kind == TermKind::Param { id as TermId } else { NO_TERM };
        terms.push(leaf(kind, Some(Type::I32), id));
        side.values.push((value, id as TermId));
    }
    side.memory = f.blocks().map(|b| (b, 0)).collect();
    let is_anchor =
        |opcode: Opcode| opcode != Opcode::Jump && (anchors || opcode != Opcode::Switch);
    let all = f.all_insts().filter(|i| f.inst(*i).opcode.effects().has(Effects::TERMINATOR));
    let anchors = all.filter(|i| is_anchor(f.inst(*i).opcode)).collect();
    let certificate = Certificate {
        versions: [VersionKey::of(f); 2],
        terms,
        sides: [side.clone(), side],
        anchors,
    };
    let relation = relate(&module, Pair::new(f, f), &certificate, Options::default())?;
    let mut mapping = Mapping::new(f, f);
    for inst in f.all_insts() {
        let (assigns, requires, kept) = Default::default();
        let target = Point::before(inst);
        mapping.insert(
            target,
            transition::mapping::Entry {
                target,
                steps: Vec::new(),
                replays: Vec::new(),
                assigns,
                requires,
                kept,
                inner: Box::default(),
            },
        );
    }
    let facts = vec![transition::certificate::EntryFacts::default(); mapping.len()];
    let verdicts = relation.judge(Side::Before, &mapping, &facts, &[]);
    Ok(verdicts.iter().filter(|v| v.holds()).count())
}

fn one_switch() -> String {
    let edges = times("join(%x)", N);
    format!(
        "func @f(%x: i32) {{\nentry:\nswitch %x, [{edges}], default join(%x)\njoin(%p: i32):\nreturn\n}}\n"
    )
}

#[test]
fn a_switch_with_equal_targets_costs_its_edges() {
    assert_eq!(relates(&one_switch(), false, true), Ok(1), "the switch needs %x");
    assert_eq!(relates(&one_switch(), false, false), Ok(1));
}

#[test]
fn many_paths_to_a_switch_cost_its_edges_once() {
    let blocks: Vec<String> = (0..N).map(|i| format!("b{i}")).collect();
    let mut text =
        "func @f(%x: i32) {\nentry:\nbr_if %x, first, first\nfirst:\njump many\nmany:\n".to_owned();
    text.push_str(&format!("switch %x, [{}], default through\n", blocks.join(", ")));
    blocks.iter().for_each(|b| text.push_str(&format!("{b}:\njump through\n")));
    text.push_str(&format!(
        "through:\nswitch %x, [{}], default last\nlast:\nreturn\n}}\n",
        times("last", N)
    ));
    // Both switches are anchors, and every edge of the first leads to the second.
    assert_eq!(relates(&text, false, true), Ok(1));
}

/// A return with one result for each path that leads to it.
#[test]
fn operands_of_an_anchor_with_many_paths_are_compared_once() {
    let text = format!(
        "func @f(%x: i32) -> ({}) {{\nentry:\nswitch %x, [{}], default last\nlast:\n\
         return {}\n}}\n",
        times("i32", N),
        times("last", N),
        times("%x", N)
    );
    assert_eq!(relates(&text, false, true), Ok(0), "both entries need %x");
}

#[test]
fn parameters_of_one_leaf_cost_their_number() {
    let params: Vec<String> = (0..N).map(|i| format!("%p{i}: i32")).collect();
    let args = times("%x", N);
    let text = format!(
        "func @f(%x: i32) {{\nentry:\njump join({args})\njoin({}):\nreturn\n}}\n",
        params.join(", ")
    );
    assert_eq!(relates(&text, true, true), Ok(2));
    assert_eq!(relates(&text, false, true), Ok(2));
}

#[test]
fn bindings_of_all_paths_together_are_limited() {
    let params: Vec<String> = (0..N).map(|i| format!("%p{i}: i32")).collect();
    let text = format!(
        "func @f(%x: i32) {{\nentry:\nswitch %x, [{}], default on\non:\njump join({})\njoin({}):\nreturn\n}}\n",
        times("on", N),
        times("%x", N),
        params.join(", ")
    );
    let verdict = relates(&text, false, true).expect_err("too much");
    assert_eq!(verdict.finding().map(|f| f.check), Some(Check::Size));
}

/// Divisions that are no anchors, each with an anchor behind it.
fn divisions(count: usize) -> String {
    let mut text = "func @f(%x: i32) {\nentry:\nswitch %x, [b0], default b0\n".to_owned();
    for at in 0..count {
        let next = at + 1;
        text.push_str(&format!("b{at}:\n%q{at} = sdiv.i32 %x, %x\n"));
        text.push_str(&format!("switch %x, [b{next}], default b{next}\n"));
    }
    text + &format!("b{count}:\nreturn\n}}\n")
}

#[test]
fn lone_traps_at_all_anchors_together_are_limited() {
    // The last point needs no value.
    assert_eq!(relates(&divisions(1000), false, true), Ok(1));
    let verdict = relates(&divisions(1 << 14), false, true).expect_err("too much");
    assert_eq!(verdict.finding().map(|f| f.check), Some(Check::Size));
}

#[test]
fn reads_merged_on_many_edges_cost_the_edges_once() {
    let text = format!(
        "global @g: mut i32 = 0\n{}",
        one_switch().replace("join(%x)", "join").replace("(%p: i32)", "")
    );
    let module = parse_module(&text).unwrap_or_else(|errors| panic!("{}", errors[0]));
    let (_, f) = module.defined().next().expect("one function");
    let mut terms = Vec::new();
    let mut add = |kind, ty, class, by| terms.push(Term { kind, ty, class, by });
    let read = |memory: TermId| TermKind::Op {
        opcode: Opcode::GlobalGet,
        ty: Type::I32,
        imm: Imm::Global(Global::from_u32(0)),
        args: [memory].into_iter().collect(),
    };
    add(TermKind::MemoryAtEntry, None, 0, By::Itself);
    add(TermKind::Argument(0), Some(Type::I32), 1, By::Itself);
    add(TermKind::MemoryParam, None, 2, By::Itself);
    add(read(0), Some(Type::I32), 3, By::Itself);
    let merged = By::Merged { reads: [3].into_iter().collect() };
    (0..N).for_each(|_| add(read(2), Some(Type::I32), 3, merged.clone()));
    let values = vec![(f.block_params(f.entry())[0], 1)];
    let side =
        VersionTerms { values, memory: f.blocks().zip([0, 2]).collect(), ..Default::default() };
    let anchors = f.all_insts().collect();
    let certificate = Certificate {
        versions: [VersionKey::of(f); 2],
        terms,
        sides: [side.clone(), side],
        anchors,
    };
    assert!(relate(&module, Pair::new(f, f), &certificate, Options::default()).is_ok());
}
