//! Leaves, copies, and the effects of dead edges on them.

use super::*;

/// Two nested loops. %k is handed through (in the inner loop as %l), %i counts, and %x and %y are
/// equal.
pub(super) const LOOPS: &str = "
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
fn values_handed_around_loops_are_copies() {
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
    // Their difference is 0, by a rule, so %s has the class of %k.
    assert_eq!(constant(&c, of("r")), Some(0));
    assert_eq!(rule_of(&c, term(&c, 0, value(&f, "r"))), "sub-same");
    assert_eq!(of("s"), of("a"));
    let ne = function(&LOOPS.replace("%sum2 = add.i32 %y, %l", "%sum2 = sub.i32 %y, %l"));
    let c = alone(&ne);
    assert_ne!(class(&c, 0, value(&ne, "x")), class(&c, 0, value(&ne, "y")));
}

/// Two parameters that receive the same values around a loop. %x is unused.
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
fn a_leaf_is_found_by_the_names_of_all_its_parameters() {
    let f = function(TWINS);
    let applied = edited(&f, |ed| {
        let head = block(ed.func(), "head");
        let edges = ["left", "right"]
            .map(|name| Edge { inst: ed.func().terminator(block(ed.func(), name)), index: 0 });
        let new = ed.join_edges(&edges);
        let q = ed.func().block_params(new)[2];
        // %x is the first name of the leaf. The version after has neither name in the loop, and
        // finds the leaf by the parameter that is left.
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

/// The parameter joined for %x takes the place of the parameter joined for %y, while %x stays in
/// the loop.
fn take_over(ed: &mut Editor<'_>) {
    let head = block(ed.func(), "head");
    let edges = ["left", "right"]
        .map(|name| Edge { inst: ed.func().terminator(block(ed.func(), name)), index: 0 });
    let new = ed.join_edges(&edges);
    let (qx, qy) = (ed.func().block_params(new)[1], ed.func().block_params(new)[2]);
    ed.replace_all(value(ed.func(), "y"), qy);
    ed.remove_block_param(head, 2);
    ed.replace_all(qy, qx);
    ed.remove_block_param(new, 2);
}

#[test]
fn the_replacement_of_a_parameter_binds_its_leaf() {
    let f = function(TWINS);
    let applied = edited(&f, take_over);
    let after = applied.function();
    let q = after.inst(inst(&f, "j")).args[1];
    let c = certified(&f, &applied);
    assert_eq!(class(&c, 1, q), class(&c, 0, value(&f, "y")));
    // Here %x counts, and so is a leaf of its own. The joined parameter that is handed on to it is
    // found by the parameter it replaced.
    let counted = function(&TWINS.replace("head(%j, %x, %y), done", "head(%j, %j, %y), done"));
    let applied = edited(&counted, take_over);
    let q = applied.function().inst(inst(&counted, "j")).args[1];
    let c = certified(&counted, &applied);
    assert_eq!(class(&c, 1, q), class(&c, 0, value(&counted, "y")));
    assert_eq!(class(&c, 1, value(&counted, "x")), class(&c, 0, value(&counted, "x")));
}

/// %c and %d are both 5 around the loop, so the branch on their difference is decided and its arm
/// dead.
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
    // Without the dead arm, %n alone reaches %p. With it, the block of %n would dominate all the
    // same, but %other would reach %p too.
    assert_eq!(class(&c, 0, value(&f, "p")), class(&c, 0, value(&f, "n")));
    assert_eq!(term(&c, 0, value(&f, "other")), NO_TERM);
    assert!(c.sides[0].memory.iter().all(|(b, _)| *b != block(&f, "dead")));
}

/// %x is bound behind an arm. Only a dead edge leads around the arm to the join.
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

#[test]
fn nonsense_gets_no_terms_and_no_panic() {
    let f = function(LOOPS);
    let applied = edited(&f, |_| ());
    let pair = VersionPair::new(&f, applied.function(), applied.log()).expect("the log replays");
    let common = pair.correspondence();
    let mut certifier = Certifier::new(&common);
    let step = |opcode, ty, operand_ty, args: &[Operand]| Step {
        opcode,
        ty,
        operand_ty,
        bits: 7,
        args: args.into(),
    };
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
        inner: Box::default(),
    };
    let mut mapping = Mapping::new(&f, applied.function());
    mapping.insert(Point::before(inst(&f, "r")), entry.clone());
    mapping.insert(Point::before(Inst::from_u32(77_777)), entry.clone());
    let none =
        EntryFacts { here: vec![NO_TERM; entry.steps.len()].into(), ..EntryFacts::default() };
    assert_eq!(certifier.facts(Side::Before, &mapping), vec![none.clone(), none.clone()]);
    let other = function(FOLDED);
    let mut foreign = Mapping::new(&other, &other);
    foreign.insert(Point::before(inst(&f, "r")), entry);
    assert_eq!(certifier.facts(Side::Before, &foreign), vec![none]);
}

/// A loop that hands each of its parameters on to the next, as these targets say.
fn chain(count: usize, inner: bool) -> String {
    let list = |item: &dyn Fn(usize) -> String| (0..count).map(item).collect::<Vec<_>>().join(", ");
    let handed =
        |of: &str| list(&|k| if k == 0 { "%n".to_owned() } else { format!("%{of}{}", k - 1) });
    let (to, tail) = match inner {
        false => (format!("head({})", handed("p")), String::new()),
        // A block that joins edges hands them around again, so that each arrives as a copy.
        true => (
            format!("inner({})", list(&|k| format!("%p{k}"))),
            format!(
                "inner({}):\n  br_if %n, inner({}), back\nback:\n  jump head({})\n",
                list(&|k| format!("%q{k}: i32")),
                list(&|k| format!("%q{k}")),
                handed("q")
            ),
        ),
    };
    format!(
        "func @f(%n: i32) -> i32 {{\nentry:\n  %zero = const.i32 0\n  jump head({})\nhead({}):\n  \
         br_if %n, {to}, done\n{tail}done:\n  return %p{}\n}}\n",
        list(&|_| "%zero".to_owned()),
        list(&|k| format!("%p{k}: i32")),
        count - 1,
    )
}

/// Certifies a chain. Each of its parameters ends in a leaf of its own, shared by both versions.
fn certified_chain(count: usize, inner: bool) {
    let f = function(&chain(count, inner));
    let c = alone(&f);
    for k in 0..count {
        let own = class(&c, 0, value(&f, &format!("p{k}")));
        assert_eq!(c.terms[own as usize].kind, TermKind::Param);
        assert_eq!(own, class(&c, 1, value(&f, &format!("p{k}"))));
    }
}

#[test]
fn long_chains_end_in_leaves_of_their_own() {
    // Each parameter of the loop hands the next parameter on, so each turn could find one more
    // parameter that is not a copy. One turn finds them all.
    certified_chain(200, false);
}

/// Through an inner loop, each turn finds one more. Past the limit, the header of the outer loop
/// gives up its assumptions, and the inner loop keeps its own: its parameters are still copies.
#[test]
fn a_long_chain_through_an_inner_block_gives_up_one_block() {
    let count = 2 * number::MAX_TURNS;
    certified_chain(count, true);
    let f = function(&chain(count, true));
    let c = alone(&f);
    for k in 0..count {
        let [p, q] = ["p", "q"].map(|of| class(&c, 0, value(&f, &format!("{of}{k}"))));
        assert_eq!(p, q);
    }
}

/// Loops in one another. Each counts, and hands a value on unchanged.
fn nest(depth: usize) -> Function {
    let mut text =
        "func @f(%n: i32) -> i32 {\nentry:\n  %zero = const.i32 0\n  %one = const.i32 1\n  \
                    %three = const.i32 3\n  jump h0(%zero, %n)\n"
            .to_owned();
    for k in 0..depth {
        let next =
            if k + 1 < depth { format!("h{}(%zero, %q{k})", k + 1) } else { format!("l{k}") };
        text += &format!("h{k}(%i{k}: i32, %q{k}: i32):\n  jump {next}\n");
    }
    for k in (0..depth).rev() {
        let next = if k > 0 { format!("l{}", k - 1) } else { "done".to_owned() };
        text += &format!(
            "l{k}:\n  %j{k} = add.i32 %i{k}, %one\n  %c{k} = slt.i32 %j{k}, %three\n  \
             br_if %c{k}, h{k}(%j{k}, %q{k}), {next}\n"
        );
    }
    function(&(text + "done:\n  return %q0\n}\n"))
}

/// The outermost loops of a deep nest would number all that is inside once more each. Beyond the
/// limit, they give up their assumptions, and the loops inside keep their own.
#[test]
fn a_deep_nest_gives_up_its_outer_loops() {
    let is_copy = |f: &Function, c: &Certificate, k: usize, of: Value| {
        class(c, 0, value(f, &format!("q{k}"))) == class(c, 0, of)
    };
    let depth = number::MAX_AGAIN;
    let f = nest(depth);
    let c = alone(&f);
    let argument = value(&f, "n");
    assert!((0..depth).all(|k| is_copy(&f, &c, k, argument)), "a nest within the limit keeps all");
    let depth = 8 * number::MAX_AGAIN;
    let f = nest(depth);
    let c = alone(&f);
    let kept = |k: &usize| is_copy(&f, &c, *k, value(&f, &format!("q{}", k - 1)));
    let lost = (1..depth).take_while(|k| !kept(k)).count();
    assert!(lost > 0 && lost < depth - number::MAX_AGAIN, "{lost} of {depth} loops gave up");
    assert!((lost + 1..depth).all(|k| kept(&k)), "the loops inside keep their copies");
}

/// One version lacks a block, so its walk reaches the limit one loop earlier.
#[test]
fn a_deep_nest_gives_up_the_same_loops_in_both_versions() {
    for depth in 8 * number::MAX_AGAIN..8 * number::MAX_AGAIN + 6 {
        let f = nest(depth);
        let c = certified(
            &f,
            &edited(&f, |editor| editor.merge_blocks(block(&f, &format!("h{}", depth - 1)))),
        );
        for k in 0..depth {
            let i = value(&f, &format!("i{k}"));
            let q = value(&f, &format!("q{k}"));
            assert_eq!(class(&c, 0, i), class(&c, 1, i), "%i{k} of {depth}");
            assert_eq!(class(&c, 0, q), class(&c, 1, q), "%q{k} of {depth}");
        }
    }
}

#[test]
fn deep_nests_take_near_linear_work() {
    let numbered = |depth: usize| of_itself(&nest(depth), |certifier| certifier.numbered());
    let (one, two) = (numbered(8 * number::MAX_AGAIN), numbered(16 * number::MAX_AGAIN));
    // Each version has a block for each loop.
    assert!(one > 16 * number::MAX_AGAIN && 10 * two <= 23 * one, "{one} to {two} blocks");
}

/// What the certifier of a version with itself tells.
fn of_itself<T>(f: &Function, tell: impl FnOnce(&Certifier<'_>) -> T) -> T {
    let applied = edited(f, |_| ());
    let pair = VersionPair::new(f, applied.function(), applied.log()).expect("the log replays");
    tell(&Certifier::new(&pair.correspondence()))
}

/// Loops in a row, each counted in memory and in a parameter.
fn rows(count: usize) -> Function {
    let mut text =
        "memory @m 1\nfunc @f(%a: i32, %n: i32) -> i32 {\nentry:\n  %zero = const.i32 0\n  \
        %one = const.i32 1\n  %three = const.i32 3\n  jump l0\n"
            .to_owned();
    for k in 0..count {
        text += &format!(
            "l{k}:\n  store.i32 @m[%a], %zero\n  jump h{k}(%zero)\nh{k}(%i{k}: i32):\n  \
             %x{k} = load.i32 @m[%a]\n  %c{k} = slt.i32 %x{k}, %three\n  br_if %c{k}, b{k}, m{k}\n\
             m{k}:\n  %d{k} = slt.i32 %i{k}, %three\n  br_if %d{k}, b{k}, l{}\n\
             b{k}:\n  %y{k} = add.i32 %x{k}, %one\n  store.i32 @m[%a], %y{k}\n  \
             %j{k} = add.i32 %i{k}, %one\n  jump h{k}(%j{k})\n",
            k + 1
        );
    }
    function(&(text + &format!("l{count}:\n  %r = load.i32 @m[%a]\n  return %r\n}}\n")))
}

#[test]
fn loops_in_a_row_take_no_rounds_of_their_own() {
    let effort = |count: usize| of_itself(&rows(count), |certifier| certifier.effort().0);
    let one = effort(1);
    assert!(one <= 3, "{one}");
    assert_eq!(effort(100), one);
}

/// The round that finds the edge dead would be spent on it.
#[test]
fn an_edge_that_a_common_assumption_excludes_takes_no_round() {
    let base = function(
        "func @f(%x: i32, %p: i32) -> i32 {
entry:
  %y = assume.i32 %x, 0, 1
  br_if %y, c, d
c:
  jump e(%p)
d:
  jump e(%x)
e(%r: i32):
  return %r
}",
    );
    let same = edited(&base, |_| ());
    let pair = VersionPair::new(&base, same.function(), same.log()).expect("the log replays");
    let common = pair.correspondence();
    let certifier = Certifier::new(&common);
    assert_eq!(certifier.effort().0, 1);
    let certificate = certifier.into_certificate();
    let [r, x] = ["r", "x"].map(|name| class(&certificate, 1, value(&base, name)));
    assert_eq!(r, x);
}
