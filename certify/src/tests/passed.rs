//! Branches that paths run past, because a redirected edge decides them.

use super::{alone, block, certified, class, edited, function, value};
use ir::edit::Applied;
use ir::{Block, Edge, Function};
use osr::{Level, Reason, VersionPair, synthesize};
use transition::mapping::Mapping;

/// Two edges meet before a test. On the edge from the entry, the test is decided.
const DECIDED: &str = "
func @f(%a: i32, %b: i32) -> i32 {
entry:
  %one = const.i32 1
  br_if %a, test(%one), right
right:
  %c = slt.i32 %b, %a
  jump test(%c)
test(%p: i32):
  %low = and.i32 %p, %one
  br_if %low, yes(%a), no
yes(%q: i32):
  return %q
no:
  return %b
}";

/// The edge from the entry to a block.
fn from_entry(f: &Function, to: Block) -> Edge {
    let mut edges = f.predecessors(to).iter();
    *edges.rfind(|e| f.inst_block(e.inst) == f.entry()).expect("an edge from the entry")
}

/// Redirects the edge that decides the test past it.
fn sent_on(base: &Function) -> Applied {
    edited(base, |ed| {
        let test = block(ed.func(), "test");
        let edge = from_entry(ed.func(), test);
        let way = ir::edit::way_past(ed.func(), edge).expect("the constant decides");
        ed.redirect(edge, way);
    })
}

#[test]
fn passed_branches_are_listed() {
    let f = function(DECIDED);
    let applied = sent_on(&f);
    let certificate = certified(&f, &applied);
    assert_eq!(certificate.passed, [f.terminator(block(&f, "test"))]);
    assert!(certificate.anchors.contains(&certificate.passed[0]));
    for name in ["p", "q"] {
        let sides = [0, 1].map(|side| class(&certificate, side, value(&f, name)));
        assert_eq!(sides[0], sides[1], "%{name} is one leaf, though it is a copy in one version");
    }
    assert_eq!(alone(&f).passed, []);
    let pair = VersionPair::new(&f, applied.function(), applied.log()).expect("the log replays");
    assert!(
        pair.common_anchors().all(|i| i != certificate.passed[0])
            && pair.common_anchors().count() >= 3
    );
}

/// The version after may skip the block of the test. So no forward entry starts in it, while every
/// other point has one. Backward, every point of the block has one.
#[test]
fn no_forward_entry_leaves_a_passed_block() {
    let f = function(DECIDED);
    let applied = sent_on(&f);
    let pair = VersionPair::new(&f, applied.function(), applied.log()).expect("the log replays");
    let made = synthesize(&pair, Level::Avail);
    let test = block(&f, "test");
    let leaves = |f: &Function, mapping: &Mapping| {
        mapping.entries().filter(|(point, _)| f.inst_block(point.inst()) == test).count()
    };
    assert_eq!(leaves(&f, &made.forward.mapping), 0);
    assert_eq!(leaves(applied.function(), &made.backward.mapping), f.block_insts(test).count());
    let unmapped = &made.forward.unmapped;
    assert!(
        unmapped
            .iter()
            .all(|u| u.reason == Reason::PassedBy && f.inst_block(u.point.inst()) == test)
    );
    assert_eq!(unmapped.len(), f.block_insts(test).count());
}
