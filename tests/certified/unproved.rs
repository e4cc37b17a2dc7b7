//! An anchor that is not proved: the entries that the driver keeps, and the words for the dropped
//! entries.

use check::verdict::{Check, Place};
use ir::edit::{ActionLog, Editor, Fuel, Pass, apply};
use ir::{Block, Function, Imm, InstSpec, Module, Opcode, Point, Type};
use osier::driver::{Derived, NoObserver, Proved, ProvedMapping, Vigilance, derive, prove};
use osier::explain::unproved;
use osier::{Format, load};
use osr::Level;
use std::collections::BTreeSet;
use transition::mapping::Mapping;

const TEXT: &str = "import func @ask \"host\" \"ask\" (i32) -> i32
func @f(%x: i32, %y: i32) -> i32 {
entry:
  br_if %x, slow, fast
slow:
  %p = mul.i32 %x, %x
  %q = mul.i32 %y, %y
  %d = sub.i32 %p, %q
  %a = call @ask(%d)
  return %a
fast:
  %b = call @ask(%y)
  %c = add.i32 %b, %y
  return %c
}
";

/// Makes a difference of squares a product. This is right, and no rule of value numbering says so.
struct Factors;

impl Pass for Factors {
    fn name(&self) -> &'static str {
        "factors"
    }

    fn run(&self, editor: &mut Editor<'_>) {
        let f = editor.func();
        let difference = f.all_insts().find(|i| f.inst(*i).opcode == Opcode::Sub);
        let Some(at) = difference.filter(|_| editor.plan("squares")) else { return };
        let (f, mut of) = (editor.func(), Vec::new());
        let entry = f.entry();
        of.extend(f.block_params(entry));
        let op = |editor: &mut Editor<'_>, opcode, args: &[ir::Value]| {
            editor.add_value(InstSpec::new(opcode, Type::I32, Imm::None, args), at)
        };
        let sum = op(editor, Opcode::Add, &of);
        let less = op(editor, Opcode::Sub, &of);
        let product = op(editor, Opcode::Mul, &[sum, less]);
        let result = editor.func().inst(at).result().expect("a difference has a result");
        editor.replace_all(result, product);
    }
}

fn certified(module: &Module) -> (Derived, Proved) {
    let (_, base) = module.defined().next().expect("one function");
    let (function, log): (Function, ActionLog) =
        apply(base, &Factors, &mut Fuel::UNLIMITED.clone()).into_parts();
    let derived = Derived { function, log };
    let certified = prove(module, base, &derived, &[Level::Avail], &mut NoObserver);
    (derived, certified)
}

fn module() -> Module {
    load(Format::Oir, TEXT.as_bytes()).expect("well-formed")
}

/// The names of the blocks with entries.
fn blocks(f: &Function, mapping: &Mapping) -> BTreeSet<String> {
    let block = |point: Point| -> Block { f.inst_block(point.inst()) };
    let names = mapping.entries().filter_map(|(point, _)| f.block_name(block(point)));
    names.map(str::to_owned).collect()
}

#[test]
fn entries_beside_an_unproved_anchor_are_kept_both_ways() {
    let module = module();
    let (_, base) = module.defined().next().expect("one function");
    let (derived, certified) = certified(&module);
    let level = certified.highest();
    let fast = BTreeSet::from(["fast".to_owned()]);
    assert_eq!(blocks(base, &level.before.mapping), fast);
    assert_eq!(blocks(&derived.function, &level.after.mapping), fast);
    for mapping in [&level.before, &level.after] {
        assert_eq!(mapping.mapping.len(), 3);
        assert!(mapping.missing.rejected().count() >= 6, "{:?}", mapping.missing);
        for (_, verdict) in mapping.missing.rejected() {
            let finding = verdict.finding().expect("rejected");
            assert_eq!(finding.check, Check::AnchorOperands);
            assert!(matches!(finding.at, Place::Operand(_, 0)), "{finding:?}");
        }
    }
}

/// The action replaced the difference by a product, two instructions above the call.
#[test]
fn an_unproved_anchor_is_told_with_operands_terms_and_action() {
    let module = module();
    let (_, base) = module.defined().next().expect("one function");
    let (derived, certified) = certified(&module);
    let places = unproved(&module, base, &derived, &certified, 4);
    let [place] = places.as_slice() else { panic!("{places:?}") };
    assert_eq!((place.check, place.base.as_deref()), ("anchor-operands", Some("%d")));
    assert!(place.anchor.contains("call @ask"), "{place:?}");
    let squares = "sub.i32(mul.i32(argument 0, argument 0), mul.i32(argument 1, argument 1))";
    assert_eq!(place.base_term.as_deref(), Some(squares));
    let product = "mul.i32(add.i32(argument 0, argument 1), sub.i32(argument 0, argument 1))";
    assert_eq!(place.opt_term.as_deref(), Some(product));
    let blame = place.blame.as_ref().expect("an action");
    assert_eq!((blame.pass, blame.rule), ("factors", "squares"));
    assert!(blame.words.starts_with("replaced every use of %d"), "{blame:?}");
    assert!(unproved(&module, base, &derived, &certified, 0).is_empty());
}

/// A function in which a number of blocks do nothing but jump on, beside a way of one call.
fn row(jumps: usize) -> String {
    let row: String = (0..jumps).map(|n| format!("b{n}:\n  jump b{}\n", n + 1)).collect();
    format!(
        "import func @ask \"host\" \"ask\" (i32) -> i32\nfunc @f(%x: i32) -> i32 {{\nentry:\n  \
         br_if %x, row, side\nrow:\n  %a = call @ask(%x)\n  jump b0\n{row}b{jumps}:\n  \
         %b = call @ask(%a)\n  return %b\nside:\n  %c = call @ask(%x)\n  return %c\n}}\n"
    )
}

/// One version has a path through all these blocks. The other version lacks these blocks. Up to the
/// limit, every entry holds. Beyond it, the path costs the entries of the runs that take it.
#[test]
fn a_path_through_many_blocks_is_certified_up_to_the_limit() {
    for (jumps, is_short) in [(200, true), (400, false)] {
        let module = load(Format::Oir, row(jumps).as_bytes()).expect("well-formed");
        let (_, base) = module.defined().next().expect("one function");
        let pipeline = passes::parse("cfg_clean").expect("a pass");
        let derived = derive(&module, base, &pipeline, Vigilance::On, &mut NoObserver);
        assert!(derived.function.blocks().count() < 5, "the row is gone");
        let certified = prove(&module, base, &derived, &[Level::Avail], &mut NoObserver);
        let ProvedMapping { mapping, missing, .. } = &certified.levels[0].1.before;
        let held = blocks(base, mapping);
        assert!(held.contains("side"), "{jumps}: {held:?}");
        assert_eq!(
            (missing.rejected().next().is_none(), held.contains("row")),
            (is_short, is_short),
            "{jumps}"
        );
        let checks: Vec<Check> = certified.unproved.iter().map(|u| u.finding.check).collect();
        assert_eq!(checks, if is_short { vec![] } else { vec![Check::AnchorNext] });
    }
}

/// A switch whose 100,000 edges all lead to one block, with one argument: a pass folds it. A look
/// at all edges for each edge took minutes.
#[test]
fn a_switch_with_many_edges_to_one_block_costs_linear_time() {
    let ways = ["join(%five)"; 100_000].join(", ");
    let text = format!(
        "func @f(%a: i32) -> i32 {{\nentry:\n  %five = const.i32 5\n  \
         switch %a, [{ways}], default join(%five)\njoin(%p: i32):\n  return %p\n}}\n"
    );
    let module = load(Format::Oir, text.as_bytes()).expect("well-formed");
    let (_, base) = module.defined().next().expect("one function");
    let pipeline = passes::parse("O1").expect("passes");
    let derived = derive(&module, base, &pipeline, Vigilance::On, &mut NoObserver);
    assert_eq!(derived.function.blocks().count(), 1, "the switch is gone");
    let certified = prove(&module, base, &derived, &[Level::Avail], &mut NoObserver);
    let made = certified.highest();
    for mapping in [&made.before, &made.after] {
        assert!(mapping.missing.is_empty());
    }
}
