//! Forgeries of entries that list what the entry before them lists, and are wrong in that, or in
//! where they land.

use super::Forgery;
use super::hand::parsed;
use osier::certify::Certifier;
use osier::check::relate;
use osier::check::verdict::{Options, Verdict};
use osier::ir::edit::ActionLog;
use osier::ir::{Inst, Opcode, Point, Value};
use osier::osr::VersionPair;
use osier::transition::certificate::EntryFacts;
use osier::transition::frames::{Frame, FramePlace};
use osier::transition::mapping::{Assign, Entry, EntryStore, Mapping, Operand};
use osier::transition::{Pair, Side, VersionKey};

/// An entry that copies values to themselves. It has a source point and a landing point, by number
/// of the instruction. The lists of values, by number, are the copied, the required and the kept
/// values.
type Copies<'a> = ([usize; 2], [&'a [u32]; 3]);

/// The word of the checker on the last of some entries from the last function of a module to
/// itself. Whether entries are packed makes no difference.
fn word(text: &str, entries: &[Copies<'_>]) -> Option<String> {
    failed(edited_verdict(text, entries, |_| {}))
}

/// The name of the check that failed.
fn failed(verdict: Verdict) -> Option<String> {
    verdict.finding().map(|finding| finding.check.name().to_owned())
}

/// The verdict on the last entry, with an edit of it.
fn edited_verdict(text: &str, entries: &[Copies<'_>], edit: impl Fn(&mut Entry)) -> Verdict {
    let module = parsed(text);
    let (_, f) = module.defined().last().expect("a function");
    let insts: Vec<Inst> = f.blocks().flat_map(|block| f.block_insts(block)).collect();
    let log = ActionLog::empty_for(f);
    let pair = VersionPair::new(f, f, &log).expect("the log is empty");
    let common = pair.correspondence();
    let mut certificate = Certifier::new(&common).into_certificate();
    // A certificate may name fewer anchors. Paths then lead over jumps.
    certificate.anchors.retain(|anchor| f.inst(*anchor).opcode != Opcode::Jump);
    let relation = relate(&module, Pair::new(f, f), &certificate, Options::default());
    let relation = relation.expect("a version is like itself");
    let facts = vec![EntryFacts::default(); entries.len()];
    let said = [Mapping::new(f, f), Mapping::new(f, f).packing(EntryStore::default())];
    let [whole, packed] = said.map(|mut mapping| {
        for (index, ([from, to], lists)) in entries.iter().enumerate() {
            let mut entry = entry(insts[*to], *lists);
            if index + 1 == entries.len() {
                edit(&mut entry);
            }
            mapping.insert(Point::before(insts[*from]), entry);
        }
        let verdicts = relation.judge(Side::Before, &mapping, &facts, &[]);
        let first = verdicts[..entries.len() - 1].iter().find(|verdict| !verdict.holds());
        assert!(first.is_none(), "the others are right: {first:?}");
        *verdicts.last().expect("an entry for each")
    });
    assert_eq!(whole, packed);
    whole
}

fn entry(target: Inst, [copies, requires, kept]: [&[u32]; 3]) -> Entry {
    let values = |ids: &[u32]| ids.iter().copied().map(Value::from_u32).collect::<Vec<Value>>();
    let copy = |value: Value| Assign { value, from: Operand::Source(value) };
    Entry {
        target: Point::before(target),
        steps: Vec::new(),
        replays: Vec::new(),
        assigns: values(copies).into_iter().map(copy).collect(),
        requires: values(requires),
        kept: values(kept),
        inner: Box::default(),
    }
}

/// The path from the second point leads over the jump, which passes `%n` for `%i`.
const LOOP: &str = "\
func @ask(%q: i32) -> i32 {
entry:
  return %q
}
func @main(%x: i32) -> i32 {
entry:
  jump head(%x)
head(%i: i32):
  %a = call @ask(%i)
  %n = add.i32 %i, %a
  jump head(%n)
}
";

/// The second entry copies `%s`, and does not list it.
const LINE: &str = "\
func @main(%x: i32, %y: i32) -> i32 {
entry:
  %s = add.i32 %x, %y
  %t = mul.i32 %s, %y
  return %t
}
";

/// Makes an entry at the call of [`LOOP`] land in `@ask` too, with the argument.
fn begin_callee(entry: &mut Entry) {
    let module = parsed(LOOP);
    let (func, body) = module.defined().next().expect("the callee");
    let at = FramePlace::Before(Point::before(body.first_inst(body.entry())));
    let argument = Operand::Source(Value::from_u32(1));
    let assigns = vec![Assign { value: body.arguments()[0], from: argument }];
    entry.inner = [Frame { func, version: VersionKey::of(body), at, assigns }].into();
}

/// The verdict on an entry that lands in a call and in the callee.
pub(crate) fn within_call() -> Verdict {
    let at_call = ([1, 1], [&[1][..], &[1], &[]]);
    assert_eq!(word(LOOP, &[at_call]), None, "before the forgery");
    edited_verdict(LOOP, &[at_call], begin_callee)
}

pub(super) fn all() -> Vec<Forgery> {
    vec![
        Forgery {
            demand: "CarriedOverBoundPath",
            what: "a value that the path binds, copied as the entry before copies it",
            judge: Box::new(|| {
                word(LOOP, &[([1, 1], [&[1], &[1], &[]]), ([2, 1], [&[1], &[1], &[]])])
            }),
            refusal: "assign-value",
        },
        Forgery {
            demand: "CarriedWithoutRequired",
            what: "a value that the entry before lists, and this one does not",
            judge: Box::new(|| {
                let first = ([1, 1], [&[1, 2][..], &[1, 2], &[]]);
                word(LINE, &[first, ([2, 1], [&[1, 2], &[1], &[1]])])
            }),
            refusal: "step-order",
        },
        Forgery {
            demand: "LandWithinCall",
            what: "an activation that waits for a callee begun before",
            judge: Box::new(|| failed(within_call())),
            refusal: "target-point",
        },
    ]
}
