//! Rules, and the terms that explain entries.

use super::leaves::LOOPS;
use super::*;

#[test]
fn rules_justify_the_results_of_simplify() {
    let f = function(
        "
func @f(%a: i32, %b: i32) -> i32 {
entry:
  %c3 = const.i32 3
  %c4 = const.i32 4
  %p = add.i32 %a, %c3
  %q = add.i32 %p, %c4
  %c7 = const.i32 7
  %direct = add.i32 %c7, %a
  %less = slt.i32 %a, %b
  %not = eqz.i32 %less
  %sge = sge.i32 %a, %b
  %c1 = const.i32 1
  %masked = and.i32 %c1, %less
  %sum = add.i32 %a, %b
  %back = sub.i32 %sum, %a
  %r0 = add.i32 %q, %direct
  %r1 = add.i32 %not, %sge
  %r2 = add.i32 %masked, %back
  %r3 = add.i32 %r0, %r1
  %r4 = add.i32 %r3, %r2
  return %r4
}",
    );
    let c = alone(&f);
    let of = |name| class(&c, 0, value(&f, name));
    let rule = |name| rule_of(&c, term(&c, 0, value(&f, name)));
    assert_eq!((of("q"), rule("q")), (of("direct"), "add-add"));
    assert_eq!((of("not"), rule("not")), (of("sge"), "not-slt"));
    assert_eq!((of("masked"), rule("masked")), (of("less"), "and-known"));
    assert_eq!((of("back"), rule("back")), (of("b"), "sub-add"));
}

#[test]
fn a_guard_may_choose_the_term() {
    let f = function(
        "
func @f(%a: i32) -> i32 {
entry:
  %zero = const.i32 0
  %ne = ne.i32 %a, %zero
  %not = eqz.i32 %ne
  %back = eqz.i32 %not
  %r = add.i32 %back, %ne
  return %r
}",
    );
    let c = alone(&f);
    let of = |name| class(&c, 0, value(&f, name));
    // %not is equal to eqz %a too. But only %ne, not %a, is known to be 0 or 1, so the guard must
    // choose the term.
    assert_eq!(rule_of(&c, term(&c, 0, value(&f, "not"))), "not-ne-zero");
    assert_eq!(
        (of("back"), rule_of(&c, term(&c, 0, value(&f, "back")))),
        (of("ne"), "not-not-bool")
    );
}

/// Behind the join, only the operation on the joined parameters is needed.
const FAR: &str = "
func @f(%a: i32, %b: i32, %n: i32) -> i32 {
entry:
  jump head(%a, %b)
head(%x: i32, %y: i32):
  %s = mul.i32 %x, %y
  %d = sub.i32 %s, %n
  br_if %d, one, two
one:
  %x1 = add.i32 %x, %y
  jump head(%x1, %x)
two:
  %t = slt.i32 %d, %n
  br_if %t, head(%d, %y), done
done:
  return %s
}";

#[test]
fn behind_a_join_steps_have_far_terms() {
    let f = function(FAR);
    let edges = |f: &Function| {
        let edge = |name| Edge { inst: f.terminator(block(f, name)), index: 0 };
        [edge("one"), edge("two")]
    };
    let applied = edited(&f, |ed| {
        ed.join_edges(&edges(ed.func()));
    });
    let after = applied.function();
    let latch = after.blocks().find(|b| !f.has_block(*b)).expect("the new block");
    let (q, s) = (after.block_params(latch)[0], inst(&f, "s"));
    let r = after.block_params(latch)[1];
    // The entry lands behind the product, and so computes it from the parameters of the joining
    // block.
    let step = Step {
        opcode: Opcode::Mul,
        ty: Type::I32,
        operand_ty: Type::I32,
        bits: 0,
        args: smallvec![Operand::Source(q), Operand::Source(r)],
    };
    let assigns = vec![
        Assign { value: value(&f, "n"), from: Operand::Source(value(&f, "n")) },
        Assign { value: value(&f, "s"), from: Operand::Step(0) },
    ];
    let requires = vec![value(&f, "n"), q, r];
    let target = Point::before(f.next_inst(s).expect("the branch"));
    let mut mapping = Mapping::new(after, &f);
    let point = Point::before(after.terminator(latch));
    mapping.insert(
        point,
        Entry {
            target,
            steps: vec![step],
            replays: Vec::new(),
            assigns,
            requires,
            kept: Vec::new(),
            inner: Box::default(),
        },
    );
    let pair = VersionPair::new(&f, after, applied.log()).expect("the log replays");
    let common = pair.correspondence();
    let mut certifier = Certifier::new(&common);
    let facts = certifier.facts(Side::After, &mapping);
    let c = &certifier.into_certificate();
    let of = |term: TermId| c.terms[term as usize].class;
    assert_eq!(of(facts[0].far[0]), class(c, 0, value(&f, "s")));
    let TermKind::Op { args, .. } = &c.terms[facts[0].here[0] as usize].kind else {
        panic!("an operation")
    };
    assert!(args.contains(&class(c, 1, q)) && args.contains(&class(c, 1, r)));
    // Before the join nothing is bound, so the values have the same classes in both versions.
    assert_eq!(class(c, 0, value(&f, "x")), class(c, 1, value(&f, "x")));
}

/// Behind the join both %p and %q are computed. On the path from the joining block, %x is bound to
/// %a, so one step may stand for either product.
const CHOICE: &str = "
func @f(%a: i32, %b: i32) -> i32 {
entry:
  %p = mul.i32 %a, %b
  br_if %b, left, right
left:
  jump head(%a)
right:
  jump head(%a)
head(%x: i32):
  %q = mul.i32 %x, %b
  %d = sub.i32 %q, %a
  br_if %d, head(%d), done
done:
  return %p
}";

#[test]
fn the_class_of_the_assigned_value_selects_the_far_term() {
    let f = function(CHOICE);
    let applied = edited(&f, |ed| {
        let edges = ["left", "right"]
            .map(|name| Edge { inst: ed.func().terminator(block(ed.func(), name)), index: 0 });
        ed.join_edges(&edges);
    });
    let after = applied.function();
    let join = after.blocks().find(|b| !f.has_block(*b)).expect("the new block");
    let args = smallvec![Operand::Source(value(&f, "a")), Operand::Source(value(&f, "b"))];
    let product = Step { opcode: Opcode::Mul, ty: Type::I32, operand_ty: Type::I32, bits: 0, args };
    let assign = |name, step| Assign { value: value(&f, name), from: Operand::Step(step) };
    let entry = Entry {
        replays: Vec::new(),
        target: Point::before(inst(&f, "d")),
        steps: vec![product.clone(), product],
        assigns: vec![assign("p", 1), assign("q", 0)],
        requires: vec![value(&f, "a"), value(&f, "b")],
        kept: Vec::new(),
        inner: Box::default(),
    };
    let mut mapping = Mapping::new(after, &f);
    mapping.insert(Point::before(after.terminator(join)), entry);
    let pair = VersionPair::new(&f, after, applied.log()).expect("the log replays");
    let common = pair.correspondence();
    let mut certifier = Certifier::new(&common);
    let facts = certifier.facts(Side::After, &mapping);
    let c = &certifier.into_certificate();
    let far: Vec<TermId> = facts[0].far.iter().map(|term| c.terms[*term as usize].class).collect();
    assert_eq!(far, [class(c, 0, value(&f, "q")), class(c, 0, value(&f, "p"))]);
    assert_ne!(far[0], far[1]);
}

#[test]
fn assigned_values_have_the_class_of_the_target() {
    let f = function(
        &LOOPS
            .replace("%more = slt.i32 %i, %n", "%inv = mul.i32 %a, %n\n  %more = slt.i32 %i, %inv"),
    );
    let applied = edited(&f, |ed| {
        let entry = ed.func().entry();
        ed.hoist(inst(ed.func(), "inv"), ed.func().terminator(entry));
    });
    let pair = VersionPair::new(&f, applied.function(), applied.log()).expect("the log replays");
    let synthesis = synthesize(&pair, Level::Avail);
    let common = pair.correspondence();
    let mut certifier = Certifier::new(&common);
    let mut computed = 0;
    let mappings =
        [(Side::Before, &synthesis.forward.mapping), (Side::After, &synthesis.backward.mapping)];
    let facts = mappings.map(|(heading, mapping)| certifier.facts(heading, mapping));
    let c = &certifier.into_certificate();
    for ((heading, mapping), facts) in mappings.into_iter().zip(facts) {
        assert_eq!(facts.len(), mapping.len());
        for ((_, entry), facts) in mapping.entries().zip(&facts) {
            assert_eq!((entry.steps.len(), facts.far.len()), (facts.here.len(), 0));
            for assign in &entry.assigns {
                let found = match assign.from {
                    Operand::Source(v) => class(c, heading as usize, v),
                    Operand::Step(index) => c.terms[facts.here[index as usize] as usize].class,
                };
                computed += usize::from(assign.from == Operand::Step(0));
                assert_eq!(found, class(c, 1 - heading as usize, assign.value));
            }
        }
    }
    assert!(computed > 0);
}

/// Whether a step of two operands has a far term for the product of the parameters of a loop with
/// these numbers. The path binds five parameters to either operand.
fn finds_product(first: usize, second: usize) -> bool {
    let list = |item: &dyn Fn(usize) -> String| (1..=5).map(item).collect::<Vec<_>>().join(", ");
    let entered = list(&|_| "%a".to_owned()) + ", " + &list(&|_| "%b".to_owned());
    let steps: String = ["x", "y"]
        .iter()
        .flat_map(|of| (1..=5).map(move |k| format!("  %{of}n{k} = add.i32 %{of}{k}, %k{k}\n")))
        .collect();
    let constants: String = (1..=5).map(|k| format!("  %k{k} = const.i32 {k}\n")).collect();
    let f = function(&format!(
        "func @f(%a: i32, %b: i32) -> i32 {{\nentry:\n{constants}  br_if %b, left, right\n\
         left:\n  jump head({entered})\nright:\n  jump head({entered})\nhead({}, {}):\n  \
         %q = mul.i32 %x{first}, %y{second}\n{steps}  br_if %q, head({}, {}), done\ndone:\n  \
         return %q\n}}",
        list(&|k| format!("%x{k}: i32")),
        list(&|k| format!("%y{k}: i32")),
        list(&|k| format!("%xn{k}")),
        list(&|k| format!("%yn{k}")),
    ));
    let applied = edited(&f, |ed| {
        let edges = ["left", "right"]
            .map(|name| Edge { inst: ed.func().terminator(block(ed.func(), name)), index: 0 });
        ed.join_edges(&edges);
    });
    let after = applied.function();
    let join = after.blocks().find(|b| !f.has_block(*b)).expect("the new block");
    let args = smallvec![Operand::Source(value(&f, "a")), Operand::Source(value(&f, "b"))];
    let step = Step { opcode: Opcode::Mul, ty: Type::I32, operand_ty: Type::I32, bits: 0, args };
    let entry = Entry {
        replays: Vec::new(),
        target: Point::before(f.next_inst(inst(&f, "q")).expect("the next step")),
        steps: vec![step],
        assigns: vec![Assign { value: value(&f, "q"), from: Operand::Step(0) }],
        requires: vec![value(&f, "a"), value(&f, "b")],
        kept: Vec::new(),
        inner: Box::default(),
    };
    let mut mapping = Mapping::new(after, &f);
    mapping.insert(Point::before(after.terminator(join)), entry);
    let pair = VersionPair::new(&f, after, applied.log()).expect("the log replays");
    let common = pair.correspondence();
    let mut certifier = Certifier::new(&common);
    let facts = certifier.facts(Side::After, &mapping);
    let c = &certifier.into_certificate();
    // Beyond the limit the step still has a term, so the entry alone is lost.
    assert_ne!(facts[0].far[0], NO_TERM);
    c.terms[facts[0].far[0] as usize].class == class(c, 0, value(&f, "q"))
}

#[test]
fn so_many_far_operands_of_a_step_are_combined() {
    // An operand may stand for itself or for one of five leaves. Combination 31 is that of the
    // first leaf and the last one.
    assert!(finds_product(1, 5));
    assert!(!finds_product(2, 5));
    assert!(finds_product(2, 4));
}
