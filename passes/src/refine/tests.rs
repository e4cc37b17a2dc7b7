//! Tests of `passes::refine`.

use super::*;
use ir::edit::{Fuel, apply};
use ir::text::parse_module;
use std::fmt::Write as _;

/// A line of blocks that each assume `%x`, or `ne.i32 %x, 0`, and read it twice.
fn line(blocks: usize) -> Function {
    let mut text = "func @f(%x: i32) {\nentry:\n  %zero = const.i32 0\n  jump b0\n".to_owned();
    for n in 0..blocks {
        let assume = match n % 2 {
            0 => format!("%y{n} = assume.i32 %x, 7, 1"),
            _ => format!("%t{n} = ne.i32 %x, %zero\n  %y{n} = assume.i32 %t{n}, 1, 1"),
        };
        let next = n + 1;
        write!(text, "b{n}:\n  {assume}\n  %u{n} = add.i32 %x, %zero\n").expect("a string");
        writeln!(text, "  br_if %x, b{next}, b{next}").expect("a string");
    }
    writeln!(text, "b{blocks}:\n  return\n}}").expect("a string");
    let module = parse_module(&text).unwrap_or_else(|errors| panic!("{errors:?}"));
    module.defined().next().expect("it has a function").1.clone()
}

fn assumptions(f: &Function) -> Vec<Inst> {
    f.all_insts().filter(|inst| f.inst(*inst).opcode == Opcode::Assume).collect()
}

/// The queries of dominance that uses of `%x` need, and the number of its users.
fn questions(blocks: usize) -> (usize, usize) {
    let f = line(blocks);
    let cfg = Cfg::new(&f);
    let dom = DomTree::new(&f, &cfg);
    let x = f.arguments()[0];
    let claims = &claims(&f, &cfg, &assumptions(&f))[&x];
    let all = f.users(x).iter().chain(claims.keys()).copied();
    let users = Preorder::new(&f, &dom).sorted(all);
    let (mut asked, mut found) = (0, BTreeMap::new());
    let mut dominates = |a: Inst, b: Inst| {
        asked += 1;
        dom.inst_dominates(&f, a, b)
    };
    read_nearest(&f, x, claims, &users, &mut dominates, &mut found);
    assert!(found.len() > blocks, "uses read results");
    (asked, users.len())
}

#[test]
fn each_use_costs_two_questions_about_dominance() {
    for blocks in [10, 100, 1000] {
        let (asked, users) = questions(blocks);
        assert!(asked <= 2 * users, "{blocks}: {asked} for {users}");
    }
}

#[test]
fn each_use_reads_the_nearest_assumption() {
    let f = line(4);
    let refine = Refine { added: &assumptions(&f) };
    let (refined, _) = apply(&f, &refine, &mut Fuel::UNLIMITED.clone()).into_parts();
    let named = |value: Value| f.value_name(value).expect("each has a name").to_owned();
    let reads = |opcode: Opcode| -> Vec<String> {
        let all = refined.all_insts().filter(|inst| refined.inst(*inst).opcode == opcode);
        all.map(|inst| named(refined.inst(inst).args[0])).collect()
    };
    assert_eq!(reads(Opcode::Assume), ["x", "t1", "y0", "t3"]);
    assert_eq!(reads(Opcode::Ne), ["y0", "y2"]);
    // A sum reads no result of a test, and a branch reads it.
    assert_eq!(reads(Opcode::Add), ["y0", "y0", "y2", "y2"]);
    assert_eq!(reads(Opcode::BrIf), ["y0", "y1", "y2", "y3"]);
}
