//! Small pairs, one for each thing a certificate has to explain.

use crate::{Certifier, Heading, Level, VersionPair, synthesize};
use ir::certificate::{By, Certificate, EntryFacts, NO_TERM, TermId, TermKind};
use ir::edit::{Applied, Editor, Fuel, Pass, apply};
use ir::mapping::{Assign, Entry, Mapping, Operand, Step};
use ir::rules::RULES;
use ir::{Block, Edge, Function, Inst, Opcode, Point, Type, Value};
use smallvec::smallvec;

/// A pass made of one closure.
struct Edit<F: Fn(&mut Editor<'_>)>(F);

impl<F: Fn(&mut Editor<'_>)> Pass for Edit<F> {
    fn name(&self) -> &'static str {
        "edit"
    }

    fn run(&self, editor: &mut Editor<'_>) {
        assert!(editor.plan("by_hand"));
        (self.0)(editor);
    }
}

fn function(text: &str) -> Function {
    let module = ir::text::parse_module(text).unwrap_or_else(|e| panic!("{}", e[0]));
    assert!(ir::verifier::verify_module(&module).is_empty());
    let (_, body) = module.defined().last().expect("a function");
    body.clone()
}

fn edited(base: &Function, edit: impl Fn(&mut Editor<'_>)) -> Applied {
    apply(base, &Edit(edit), &mut Fuel::UNLIMITED.clone())
}

fn value(f: &Function, name: &str) -> Value {
    let params = f.blocks().flat_map(|b| f.block_params(b).to_vec());
    let results = f.all_insts().flat_map(|i| f.inst(i).results.to_vec());
    params.chain(results).find(|v| f.value_name(*v) == Some(name)).unwrap_or_else(|| panic!("no %{name}"))
}

fn block(f: &Function, name: &str) -> Block {
    f.blocks().find(|b| f.block_name(*b) == Some(name)).unwrap_or_else(|| panic!("no {name}"))
}

fn inst(f: &Function, name: &str) -> Inst {
    f.defining_inst(value(f, name)).expect("an instruction")
}

fn certified(base: &Function, applied: &Applied) -> Certificate {
    let pair = VersionPair::new(base, applied.function(), applied.log()).expect("the log replays");
    Certifier::new(&pair).into_certificate()
}

/// The certificate of a version and itself.
fn alone(base: &Function) -> Certificate {
    certified(base, &edited(base, |_| ()))
}

fn term(certificate: &Certificate, side: usize, value: Value) -> TermId {
    let values = &certificate.sides[side].values;
    values.binary_search_by_key(&value, |(v, _)| *v).map_or(NO_TERM, |at| values[at].1)
}

fn class(certificate: &Certificate, side: usize, value: Value) -> TermId {
    certificate.terms.get(term(certificate, side, value) as usize).map_or(NO_TERM, |t| t.class)
}

fn constant(certificate: &Certificate, class: TermId) -> Option<u64> {
    match certificate.terms.get(class as usize)?.kind {
        TermKind::Op { opcode: Opcode::Const, imm: ir::Imm::Bits(bits), .. } => Some(bits),
        _ => None,
    }
}

fn rule_of(certificate: &Certificate, term: TermId) -> &'static str {
    match &certificate.terms[term as usize].by {
        By::Rule { rule, .. } => RULES[*rule as usize].name,
        other => panic!("term {term} is where it is by {other:?}"),
    }
}

/// A loop with a value it hands through (%k, in the inner loop %l), one it counts (%i), and two that are equal
/// (%x and %y).
const LOOPS: &str = "
func @f(%a: i32, %n: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump head(%zero, %a, %n, %n)
head(%i: i32, %k: i32, %x: i32, %y: i32):
  %more = slt.i32 %i, %n
  br_if %more, inner(%k), done
inner(%l: i32):
  %sum = add.i32 %x, %l
  %sum2 = add.i32 %y, %l
  %again = slt.i32 %sum, %n
  br_if %again, inner(%l), next
next:
  %j = add.i32 %i, %one
  jump head(%j, %l, %sum, %sum2)
done:
  %r = sub.i32 %x, %y
  %s = add.i32 %r, %k
  return %s
}";

#[test]
fn what_is_handed_around_loops_is_a_copy() {
    let f = function(LOOPS);
    let c = alone(&f);
    let of = |name| class(&c, 0, value(&f, name));
    assert_eq!(c.terms[of("a") as usize].kind, TermKind::Argument(0));
    assert_eq!((of("k"), of("l")), (of("a"), of("a")));
    assert_eq!(c.terms[of("i") as usize].kind, TermKind::Param);
}

#[test]
fn parameters_that_receive_the_same_are_one_leaf() {
    let f = function(LOOPS);
    let c = alone(&f);
    let of = |name| class(&c, 0, value(&f, name));
    assert_eq!(c.terms[of("x") as usize].kind, TermKind::Param);
    assert_eq!((of("y"), of("sum2")), (of("x"), of("sum")));
    // Their difference is 0 then, by a rule, and what is added to it comes through.
    assert_eq!(constant(&c, of("r")), Some(0));
    assert_eq!(rule_of(&c, term(&c, 0, value(&f, "r"))), "sub-same");
    assert_eq!(of("s"), of("a"));
    let ne = function(&LOOPS.replace("%sum2 = add.i32 %y, %l", "%sum2 = sub.i32 %y, %l"));
    let c = alone(&ne);
    assert_ne!(class(&c, 0, value(&ne, "x")), class(&c, 0, value(&ne, "y")));
}

/// %c and %d are 5 around the loop, so the branch on their difference is known and its arm dead.
const FOLDED: &str = "
func @f(%n: i32) -> i32 {
entry:
  %five = const.i32 5
  jump head(%five, %n)
head(%c: i32, %m: i32):
  %two = const.i32 2
  %three = const.i32 3
  %d = add.i32 %two, %three
  %diff = sub.i32 %c, %d
  br_if %diff, dead, live
dead:
  %other = mul.i32 %m, %m
  jump tail(%other, %other)
live:
  jump tail(%c, %m)
tail(%e: i32, %p: i32):
  br_if %p, head(%e, %p), done
done:
  return %e
}";

#[test]
fn known_branches_leave_code_dead() {
    let f = function(FOLDED);
    let head = block(&f, "head");
    let applied = edited(&f, |ed| {
        let branch = ed.func().terminator(head);
        ed.fold_branch(branch, 1);
        ed.remove_unreachable(&[block(ed.func(), "dead")]);
    });
    let c = certified(&f, &applied);
    for name in ["c", "d", "e"] {
        assert_eq!(constant(&c, class(&c, 0, value(&f, name))), Some(5), "%{name}");
        assert_eq!(class(&c, 0, value(&f, name)), class(&c, 1, value(&f, name)), "%{name}");
    }
    // Only without the dead arm does %n reach %p alone: its block is dominated by what binds it either way.
    assert_eq!(class(&c, 0, value(&f, "p")), class(&c, 0, value(&f, "n")));
    assert_eq!(term(&c, 0, value(&f, "other")), NO_TERM);
    assert!(c.sides[0].memory.iter().all(|(b, _)| *b != block(&f, "dead")));
}

/// A value that is bound in an arm behind which nothing else comes, but for a dead edge around it.
const AROUND: &str = "
func @f(%n: i32) -> i32 {
entry:
  %zero = const.i32 0
  br_if %zero, join(%n), arm
arm:
  %one = const.i32 1
  jump head(%n)
head(%x: i32):
  %y = add.i32 %x, %one
  br_if %y, head(%y), out
out:
  jump join(%x)
join(%z: i32):
  return %z
}";

#[test]
fn without_dead_edges_more_dominates() {
    let f = function(AROUND);
    let c = alone(&f);
    assert_eq!(class(&c, 0, value(&f, "z")), class(&c, 0, value(&f, "x")));
}

/// Two ways into a loop without writes, with a load in it.
const READS: &str = "
memory @m 1 1
func @f(%a: i32, %b: i32) -> i32 {
entry:
  %zero = const.i32 0
  br_if %a, left, right
left:
  store.i32 @m[%zero], %a
  jump head(%zero, %a)
right:
  jump head(%a, %b)
head(%i: i32, %p: i32):
  %v = load.i32 @m[%p]
  %j = add.i32 %i, %v
  br_if %j, head(%j, %p), done
done:
  return %j
}";

/// Puts a preheader on the two edges into the loop, and the load in it.
fn hoist_load(ed: &mut Editor<'_>) {
    let f = ed.func();
    let edges = ["left", "right"].map(|name| Edge { inst: f.terminator(block(f, name)), index: 0 });
    let head = block(f, "head");
    let load = inst(f, "v");
    let new = ed.join_edges(&edges);
    let q = ed.func().block_params(new)[1];
    ed.replace_all(value(ed.func(), "p"), q);
    ed.remove_block_param(head, 1);
    let jump = ed.func().terminator(new);
    ed.hoist(load, jump);
}

#[test]
fn joined_edges_bind_what_the_other_version_binds_behind_them() {
    let f = function(READS);
    let applied = edited(&f, hoist_load);
    let c = certified(&f, &applied);
    let after = applied.function();
    let (v, i, p) = (value(&f, "v"), value(&f, "i"), value(&f, "p"));
    let q = after.inst(inst(&f, "v")).args[0];
    assert_eq!(class(&c, 1, q), class(&c, 0, p));
    // The same load from the same memory.
    assert_eq!((class(&c, 0, v), class(&c, 0, i)), (class(&c, 1, v), class(&c, 1, i)));
    assert_eq!(class(&c, 0, value(&f, "j")), class(&c, 1, value(&f, "j")));
}

/// Two parameters that receive the same around a loop, one of them unused.
const TWINS: &str = "
func @f(%a: i32, %b: i32) -> i32 {
entry:
  br_if %a, left, right
left:
  jump head(%a, %b, %b)
right:
  jump head(%b, %a, %a)
head(%i: i32, %x: i32, %y: i32):
  %j = sub.i32 %i, %y
  br_if %j, head(%j, %x, %y), done
done:
  return %y
}";

#[test]
fn one_leaf_is_found_by_the_names_of_all_that_bind_it() {
    let f = function(TWINS);
    let applied = edited(&f, |ed| {
        let head = block(ed.func(), "head");
        let edges = ["left", "right"].map(|name| Edge { inst: ed.func().terminator(block(ed.func(), name)), index: 0 });
        let new = ed.join_edges(&edges);
        let q = ed.func().block_params(new)[2];
        // %x is the leaf's first name, and the loop keeps neither.
        ed.remove_block_param(head, 1);
        ed.replace_all(value(ed.func(), "y"), q);
        ed.remove_block_param(head, 1);
        ed.remove_block_param(new, 1);
    });
    let after = applied.function();
    let q = after.inst(inst(&f, "j")).args[1];
    assert!(!f.has_value(q));
    let c = certified(&f, &applied);
    assert_eq!(class(&c, 0, value(&f, "x")), class(&c, 0, value(&f, "y")));
    assert_eq!(class(&c, 1, q), class(&c, 0, value(&f, "y")));
}

#[test]
fn what_replaced_a_parameter_binds_its_leaf() {
    let f = function(TWINS);
    let applied = edited(&f, |ed| {
        let head = block(ed.func(), "head");
        let edges = ["left", "right"].map(|name| Edge { inst: ed.func().terminator(block(ed.func(), name)), index: 0 });
        let new = ed.join_edges(&edges);
        // The one that was joined for %x takes the place of the one for %y, while %x stays in the loop.
        let (qx, qy) = (ed.func().block_params(new)[1], ed.func().block_params(new)[2]);
        ed.replace_all(value(ed.func(), "y"), qy);
        ed.remove_block_param(head, 2);
        ed.replace_all(qy, qx);
        ed.remove_block_param(new, 2);
    });
    let after = applied.function();
    let q = after.inst(inst(&f, "j")).args[1];
    let c = certified(&f, &applied);
    assert_eq!(class(&c, 1, q), class(&c, 0, value(&f, "y")));
    // A joined parameter that is handed on to a leaf is found by what it replaced.
    let counted = function(&TWINS.replace("head(%j, %x, %y), done", "head(%j, %j, %y), done"));
    let applied = edited(&counted, |ed| {
        let head = block(ed.func(), "head");
        let edges = ["left", "right"].map(|name| Edge { inst: ed.func().terminator(block(ed.func(), name)), index: 0 });
        let new = ed.join_edges(&edges);
        let (qx, qy) = (ed.func().block_params(new)[1], ed.func().block_params(new)[2]);
        ed.replace_all(value(ed.func(), "y"), qy);
        ed.remove_block_param(head, 2);
        ed.replace_all(qy, qx);
        ed.remove_block_param(new, 2);
    });
    let q = applied.function().inst(inst(&counted, "j")).args[1];
    let c = certified(&counted, &applied);
    assert_eq!(class(&c, 1, q), class(&c, 0, value(&counted, "y")));
    assert_eq!(class(&c, 1, value(&counted, "x")), class(&c, 0, value(&counted, "x")));
}

#[test]
fn a_loop_that_writes_has_a_memory_of_its_own() {
    let text = READS.replace("%j = add.i32 %i, %v\n", "%j = add.i32 %i, %v\n  store.i32 @m[%j], %v\n");
    let f = function(&text);
    let applied = edited(&f, |ed| {
        let edges = ["left", "right"].map(|name| Edge { inst: ed.func().terminator(block(ed.func(), name)), index: 0 });
        ed.join_edges(&edges);
    });
    let c = certified(&f, &applied);
    let memory = |side: usize, b| c.sides[side].memory.iter().find(|(m, _)| *m == b).expect("a live block").1;
    let (head, new) = (block(&f, "head"), applied.function().blocks().last().expect("a block"));
    let new = applied.function().blocks().find(|b| !f.has_block(*b)).unwrap_or(new);
    assert_eq!(memory(0, head), memory(1, head));
    assert_ne!(memory(1, new), memory(1, head));
}

#[test]
fn equal_arms_are_equal_whatever_way_they_are_computed() {
    let f = function(
        "
func @f(%a: i32, %b: i32, %c: i32) -> i32 {
entry:
  br_if %c, left, right
left:
  %s = add.i32 %a, %b
  jump join(%s)
right:
  %t = add.i32 %b, %a
  jump join(%t)
join(%x: i32):
  return %x
}",
    );
    let c = alone(&f);
    let of = |name| class(&c, 0, value(&f, name));
    assert_eq!((of("x"), of("t")), (of("s"), of("s")));
}

#[test]
fn rules_give_what_simplify_makes() {
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
    // %not is the same as eqz %a, but only %ne, not %a, is known to be 0 or 1.
    assert_eq!(rule_of(&c, term(&c, 0, value(&f, "not"))), "not-ne-zero");
    assert_eq!((of("back"), rule_of(&c, term(&c, 0, value(&f, "back")))), (of("ne"), "not-not-bool"));
}

/// Nothing but the operation on the joined parameter is needed behind the join.
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
    // Lands behind the product, and so computes it from what the joining block was handed.
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
    mapping
        .insert(point, Entry { target, steps: vec![step], replays: Vec::new(), assigns, requires, kept: Vec::new() });
    let pair = VersionPair::new(&f, after, applied.log()).expect("the log replays");
    let mut certifier = Certifier::new(&pair);
    let facts = certifier.facts(Heading::Backward, &mapping);
    let c = certifier.certificate();
    let of = |term: TermId| c.terms[term as usize].class;
    assert_eq!(of(facts[0].far[0]), class(c, 0, value(&f, "s")));
    let TermKind::Op { args, .. } = &c.terms[facts[0].here[0] as usize].kind else { panic!("an operation") };
    assert!(args.contains(&class(c, 1, q)) && args.contains(&class(c, 1, r)));
    // Before the join nothing is bound: what there is, is as it is.
    assert_eq!(class(c, 0, value(&f, "x")), class(c, 1, value(&f, "x")));
}

/// Behind the join both %p and %q are computed; %x was bound to %a on the way from the joining block.
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
fn what_is_wanted_decides_between_far_terms() {
    let f = function(CHOICE);
    let applied = edited(&f, |ed| {
        let edges = ["left", "right"].map(|name| Edge { inst: ed.func().terminator(block(ed.func(), name)), index: 0 });
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
    };
    let mut mapping = Mapping::new(after, &f);
    mapping.insert(Point::before(after.terminator(join)), entry);
    let pair = VersionPair::new(&f, after, applied.log()).expect("the log replays");
    let mut certifier = Certifier::new(&pair);
    let facts = certifier.facts(Heading::Backward, &mapping);
    let c = certifier.certificate();
    let far: Vec<TermId> = facts[0].far.iter().map(|term| c.terms[*term as usize].class).collect();
    assert_eq!(far, [class(c, 0, value(&f, "q")), class(c, 0, value(&f, "p"))]);
    assert_ne!(far[0], far[1]);
}

#[test]
fn what_is_assigned_is_of_the_class_wanted() {
    let f = function(&LOOPS.replace("%more = slt.i32 %i, %n", "%inv = mul.i32 %a, %n\n  %more = slt.i32 %i, %inv"));
    let applied = edited(&f, |ed| {
        let entry = ed.func().entry();
        ed.hoist(inst(ed.func(), "inv"), ed.func().terminator(entry));
    });
    let pair = VersionPair::new(&f, applied.function(), applied.log()).expect("the log replays");
    let synthesis = synthesize(&pair, Level::Avail);
    let mut certifier = Certifier::new(&pair);
    let mut computed = 0;
    for (heading, mapping) in
        [(Heading::Forward, &synthesis.forward.mapping), (Heading::Backward, &synthesis.backward.mapping)]
    {
        let facts = certifier.facts(heading, mapping);
        let c = certifier.certificate();
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

#[test]
fn nonsense_gets_no_terms_and_no_panic() {
    let f = function(LOOPS);
    let applied = edited(&f, |_| ());
    let pair = VersionPair::new(&f, applied.function(), applied.log()).expect("the log replays");
    let mut certifier = Certifier::new(&pair);
    let step = |opcode, ty, operand_ty, args: &[Operand]| Step { opcode, ty, operand_ty, bits: 7, args: args.into() };
    let (a, unknown) = (Operand::Source(value(&f, "a")), Operand::Source(Value::from_u32(77_777)));
    let steps = vec![
        step(Opcode::Add, Type::I32, Type::I32, &[a, unknown]),
        step(Opcode::Add, Type::I32, Type::I32, &[a, Operand::Step(9)]),
        step(Opcode::Add, Type::I64, Type::I64, &[a, a]),
        step(Opcode::Add, Type::I32, Type::I32, &[a]),
        step(Opcode::Load, Type::I32, Type::I32, &[a]),
        step(Opcode::Call, Type::I32, Type::I32, &[]),
        step(Opcode::Const, Type::I32, Type::I32, &[a]),
    ];
    let entry = Entry {
        replays: Vec::new(),
        target: Point::before(inst(&f, "r")),
        steps,
        assigns: Vec::new(),
        requires: Vec::new(),
        kept: Vec::new(),
    };
    let mut mapping = Mapping::new(&f, applied.function());
    mapping.insert(Point::before(inst(&f, "r")), entry.clone());
    mapping.insert(Point::before(Inst::from_u32(77_777)), entry.clone());
    let none = EntryFacts { here: vec![NO_TERM; entry.steps.len()].into(), ..EntryFacts::default() };
    assert_eq!(certifier.facts(Heading::Forward, &mapping), vec![none.clone(), none.clone()]);
    let other = function(FOLDED);
    let mut foreign = Mapping::new(&other, &other);
    foreign.insert(Point::before(inst(&f, "r")), entry);
    assert_eq!(certifier.facts(Heading::Forward, &foreign), vec![none]);
}

#[test]
fn long_chains_end_in_leaves_of_their_own() {
    // Each parameter of the loop hands the next one on: every round would find one more to be no copy.
    let count = 200;
    let list = |item: &dyn Fn(usize) -> String| (0..count).map(item).collect::<Vec<_>>().join(", ");
    let text = format!(
        "func @f(%n: i32) -> i32 {{\nentry:\n  %zero = const.i32 0\n  jump head({})\nhead({}):\n  \
         br_if %n, head({}), done\ndone:\n  return %p{}\n}}\n",
        list(&|_| "%zero".to_owned()),
        list(&|k| format!("%p{k}: i32")),
        list(&|k| if k == 0 { "%n".to_owned() } else { format!("%p{}", k - 1) }),
        count - 1,
    );
    let f = function(&text);
    let applied = edited(&f, |_| ());
    let pair = VersionPair::new(&f, applied.function(), applied.log()).expect("the log replays");
    let certifier = Certifier::new(&pair);
    let c = certifier.certificate();
    for k in 0..count {
        let own = class(c, 0, value(&f, &format!("p{k}")));
        assert_eq!(c.terms[own as usize].kind, TermKind::Param);
        assert_eq!(own, class(c, 1, value(&f, &format!("p{k}"))));
    }
}
