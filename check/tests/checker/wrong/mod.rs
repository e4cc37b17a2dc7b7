//! Forgeries: wrong certificates, mappings and versions, each stopped by one check alone.

pub(crate) mod compose;
pub(crate) mod declared;
mod draft;
mod effects;
pub(crate) mod memory;
mod ranges;
pub(crate) mod unproved;

pub(crate) use draft::{Draft, Wrong, step};

use check::verdict::Check;
use ir::{Imm, Inst, Opcode, Point, Type};
use transition::Side::{After, Before};
use transition::VersionKey;
use transition::certificate::{By, NO_TERM, TermKind};
use transition::mapping::{Mapping, Operand};

const X: &str = "(%x: i32, %y: i32) -> i32";

fn draft(before: &str, after: &str) -> Draft {
    Draft::new(&format!("{X} {{\nentry:\n{before}}}\n"), &format!("{X} {{\nentry:\n{after}}}\n"))
}

/// A draft of two equal versions.
fn same(text: &str) -> Draft {
    draft(text, text)
}

/// All forgeries.
pub(crate) fn all() -> Vec<Wrong> {
    let mut all = Vec::new();
    all.extend(whole());
    all.extend(terms());
    all.extend(reasons());
    all.extend(values());
    all.extend(parameters());
    all.extend(anchors());
    all.extend(ranges::all());
    all.extend(unproved::all());
    all.extend(memory::rules());
    all.extend(memory::merges());
    all.extend(memory::references());
    all.extend(memory::lone_writes());
    all.extend(memory::entries());
    all.extend(effects::all());
    all.extend(declared::all());
    all.extend(points());
    all.extend(lists());
    all.extend(steps());
    all.extend(assigns());
    all
}

fn whole() -> [Wrong; 3] {
    let mut other = same("return %x\n")
        .done(Check::Versions, "a mapping that claims to lead to another version");
    let elsewhere = {
        struct Grow;
        impl ir::edit::Pass for Grow {
            fn name(&self) -> &'static str {
                "grow"
            }
            fn run(&self, ed: &mut ir::edit::Editor<'_>) {
                let at = ed.func().first_inst(ed.func().entry());
                ed.add(ir::InstSpec::constant(Type::I32, 0), at);
            }
        }
        ir::edit::apply(&other.versions.after, &Grow, &mut ir::edit::Fuel::rewrites(1))
            .into_parts()
            .0
    };
    let mut mapping =
        Mapping::between(VersionKey::of(&other.versions.before), VersionKey::of(&elsewhere));
    other.mappings.before.entries().for_each(|(point, entry)| mapping.insert(point, entry.clone()));
    other.mappings.before = mapping;

    let ssa = draft(
        "%a = add.i32 %x, %y\n%b = mul.i32 %a, %x\nreturn %b\n",
        "%b = mul.i32 %a, %x\n%a = add.i32 %x, %y\nreturn %b\n",
    );

    // In more blocks than are searched one by one: only then live values are counted.
    let row: String = (0..70).map(|n| format!("br_if %x, b{n}, two\nb{n}:\n")).collect();
    let mut size = same(&format!(
        "{row}%a = add.i32 %x, %x\nbr_if %a, one, two\none:\nreturn %x\ntwo:\nreturn %y\n"
    ));
    size.options.live_limit = 1;
    for n in 0..70 {
        let points = [Before, After].map(|side| size.at(side, &format!("b{n}"), 0));
        size.entry(Before, points, Vec::new(), &[("x", size.from(Before, "x"))]);
    }
    [
        other,
        ssa.done(Check::Ssa, "a product that is computed before its operand"),
        size.done(Check::Size, "more live values than are looked at, one of them not provided"),
    ]
}

fn terms() -> [Wrong; 3] {
    let mut order = draft(
        "%b = slt.i32 %x, %y\n%n = ne.i32 %b, %x\n%e = eqz.i32 %b\nreturn %e\n",
        "%p = const.i32 0\n%q = const.i32 0\n%r = const.i32 0\nreturn %x\n",
    );
    let (x, b, zero) =
        (order.term(Before, "x"), order.term(Before, "b"), order.constant(Type::I32, 0));
    let test = order.op(Opcode::Ne, Type::I32, Imm::None, &[b, zero]);
    let test = order.by_rule("bool-ne-zero", test, &[], b, NO_TERM);
    let not = order.op(Opcode::Eqz, Type::I32, Imm::None, &[b]);
    let itself = order.terms.len() as u32;
    let not = order.by_rule("not-ne-zero", not, &[test], x, itself);
    order.is(Before, "e", not);

    let mut shape = same("%a = add.i32 %x, %y\nreturn %a\n");
    let x = shape.term(Before, "x");
    let kind = TermKind::Op {
        opcode: Opcode::Add,
        ty: Type::I64,
        imm: Imm::None,
        args: [x].into_iter().collect(),
    };
    shape.add(kind, Some(Type::I64), None, By::Itself);

    let mut class = draft("return %x\n", "return %y\n");
    let x = class.term(Before, "x");
    let y = class.add(TermKind::Argument(1), Some(Type::I32), Some(x), By::Itself);
    class.is(After, "y", y);
    [
        order.done(
            Check::TermOrder,
            "a rewritten term that is its own right side, in another class",
        ),
        shape.done(Check::TermShape, "an addition of one operand, of another type"),
        class.done(Check::TermClass, "an argument in the class of another, by itself"),
    ]
}

fn reasons() -> [Wrong; 5] {
    let mut folding = draft(
        "%c = const.i32 5\n%d = const.i32 2\n%s = const.i32 0\nreturn %c\n",
        "%c = const.i32 5\n%d = const.i32 2\n%s = add.i32 %d, %d\nreturn %s\n",
    );
    let (five, two) = (folding.constant(Type::I32, 5), folding.constant(Type::I32, 2));
    let sum = TermKind::Op {
        opcode: Opcode::Add,
        ty: Type::I32,
        imm: Imm::None,
        args: [two, two].into_iter().collect(),
    };
    let sum = folding.add(sum, Some(Type::I32), Some(five), By::Folding);
    folding.is(After, "s", sum);

    let add = |k: i32| format!("%k = const.i32 {k}\n%s = add.i32 %x, %k\nreturn %s\n");
    let mut sums = draft(&add(4), &add(8));
    let (x, eight, four) =
        (sums.term(Before, "x"), sums.constant(Type::I32, 8), sums.term(Before, "s"));
    let args = [x, eight].into_iter().collect();
    let more = TermKind::Op { opcode: Opcode::Add, ty: Type::I32, imm: Imm::None, args };
    let more = sums.add(more, Some(Type::I32), Some(four), By::Sum { result: four });
    sums.is(After, "s", more);

    let mut pattern = draft("%s = const.i32 0\nreturn %s\n", "%s = sub.i32 %x, %y\nreturn %s\n");
    let (x, y, zero) =
        (pattern.term(Before, "x"), pattern.term(Before, "y"), pattern.constant(Type::I32, 0));
    let of = pattern.op(Opcode::Sub, Type::I32, Imm::None, &[x, y]);
    let term = pattern.by_rule("sub-same", of, &[], zero, NO_TERM);
    pattern.is(After, "s", term);

    let mut result = draft(
        "%z = const.i32 0\n%s = const.i32 0\nreturn %y\n",
        "%z = const.i32 0\n%s = add.i32 %x, %z\nreturn %s\n",
    );
    let (x, y, zero) =
        (result.term(Before, "x"), result.term(Before, "y"), result.constant(Type::I32, 0));
    let of = result.op(Opcode::Add, Type::I32, Imm::None, &[x, zero]);
    let term = result.by_rule("add-zero", of, &[], y, NO_TERM);
    result.is(After, "s", term);
    [
        folding.done(Check::Folding, "2 + 2 folded to 5"),
        sums.done(Check::Sum, "x + 8 taken for x + 4"),
        pattern.done(Check::RulePattern, "x - y taken for x - x"),
        unguarded(),
        result.done(Check::RuleResult, "x + 0 rewritten to y"),
    ]
}

/// `x != 0` is `x` if `x` is 0 or 1. Only the forged term itself would claim this of its class.
pub(crate) fn unguarded() -> Wrong {
    let mut draft = draft(
        "%z = const.i32 0\n%s = const.i32 0\nreturn %x\n",
        "%z = const.i32 0\n%s = ne.i32 %x, %z\nreturn %s\n",
    );
    let (x, zero) = (draft.term(Before, "x"), draft.constant(Type::I32, 0));
    let of = draft.op(Opcode::Ne, Type::I32, Imm::None, &[x, zero]);
    let term = draft.by_rule("bool-ne-zero", of, &[], x, NO_TERM);
    draft.is(After, "s", term);
    draft.done(Check::RuleGuard, "a truth test of x taken for x, which is any number")
}

fn values() -> [Wrong; 4] {
    let mut value = draft("%s = const.i32 0\nreturn %x\n", "%s = add.i32 %x, %y\nreturn %s\n");
    let x = value.term(Before, "x");
    value.is(After, "s", x);

    let mut argument = draft("return %x\n", "return %y\n");
    let (x, y) = (argument.term(Before, "x"), argument.term(Before, "y"));
    argument.is(After, "x", y);
    argument.is(After, "y", x);

    let mut memory = draft(
        "%v = global_get.i32 @g\nglobal_set.i32 @g, %x\n%p = const.i32 0\nreturn %v\n",
        "%p = const.i32 0\nglobal_set.i32 @g, %x\n%v = global_get.i32 @g\nreturn %v\n",
    );
    let read = memory.term(Before, "v");
    memory.is(After, "v", read);

    // Memory after a call is one leaf in both versions, whatever the operands are.
    let ask = |what: &str| format!("%r = call @ask(%{what})\nreturn %x\n");
    let mut effect = draft(&ask("x"), &ask("y"));
    let call = effect.at(Before, "entry", 0).inst();
    effect.anchors.retain(|anchor| *anchor != call);
    [
        value.done(Check::ValueTerm, "a sum with the term of its first operand"),
        argument.done(Check::ArgumentTerm, "two arguments with each other's terms"),
        memory.done(Check::MemoryTerm, "a read after a write with the term of one before it"),
        effect.done(Check::EffectAnchor, "a call of other operands that is no anchor"),
    ]
}

fn parameters() -> [Wrong; 3] {
    let mut binder = draft(
        "jump join(%x, %y)\njoin(%p: i32, %q: i32):\nreturn %p\n",
        "jump join(%y, %x)\njoin(%p: i32, %q: i32):\nreturn %p\n",
    );
    let leaf = binder.term(Before, "p");
    binder.is(After, "q", leaf);

    let mut copy = draft(
        "jump join(%x)\njoin(%p: i32):\nreturn %p\n",
        "jump join(%y)\njoin(%p: i32):\nreturn %p\n",
    );
    let x = copy.term(Before, "x");
    copy.is(Before, "p", x);
    copy.is(After, "p", x);

    let leaf = draft(
        "jump join(%x)\njoin(%p: i32):\nreturn %p\n",
        "jump join(%y)\njoin(%p: i32):\nreturn %p\n",
    );
    [
        binder
            .done(Check::LeafBinder, "two parameters that receive different values with one leaf"),
        copy.done(
            Check::CopyEdges,
            "a parameter with the term of another argument than it receives",
        ),
        leaf.done(
            Check::LeafAgrees,
            "a parameter with other contents in each version, and one leaf",
        ),
    ]
}

fn anchors() -> [Wrong; 6] {
    let same_set =
        draft("global_set.i32 @g, %x\nreturn %x\n", "global_set.i32 @h, %x\nreturn %x\n");
    let chain = |a: &str, b: &str, c: &str| {
        format!(
            "global_set.i32 @g, %x\njump {a}\none:\nglobal_set.i32 @g, %y\njump {b}\n\
             two:\nglobal_set.i32 @g, %x\njump {c}\nlast:\nreturn %x\n"
        )
    };
    let next = draft(&chain("one", "two", "last"), &chain("two", "last", "one"));
    let operands = draft("%r = call @ask(%x)\nreturn %r\n", "%r = call @ask(%y)\nreturn %r\n");
    let reported = draft("trap user1, %x\n", "trap user1, %y\n");
    let silent = draft("trap user1, %x\n", "trap user1\n");
    let trap = draft(
        "%p = const.i32 0\nglobal_set.i32 @g, %x\n%d = udiv.i32 %x, %y\nreturn %d\n",
        "%d = udiv.i32 %x, %y\nglobal_set.i32 @g, %x\n%p = const.i32 0\nreturn %d\n",
    );
    [
        same_set.done(Check::AnchorSame, "a write to another global"),
        next.done(Check::AnchorNext, "two writes in the other order"),
        operands.done(Check::AnchorOperands, "a call with another argument"),
        reported.done(Check::AnchorOperands, "a trap with another operand"),
        silent.done(Check::AnchorSame, "a trap without the operand that the other version reports"),
        trap.done(Check::TrapOrder, "a division moved above a write"),
    ]
}

fn points() -> [Wrong; 5] {
    let mut source = same("return %x\n");
    let nowhere = Point::before(Inst::from_u32(7));
    let target = source.at(After, "entry", 0);
    source.entry(Before, [target; 2], Vec::new(), &[("x", source.from(Before, "x"))]);
    let mut source =
        source.done(Check::SourcePoint, "an entry from an instruction that does not exist");
    let entry = source.mappings.before.remove(target).expect("it was added");
    source.mappings.before.insert(nowhere, entry);

    let mut reached =
        same("%c = const.i32 1\nbr_if %c, live, dead\nlive:\nreturn %x\ndead:\nreturn %y\n");
    let points = [reached.at(Before, "dead", 0), reached.at(After, "live", 0)];
    reached.entry(Before, points, Vec::new(), &[("x", reached.from(Before, "y"))]);

    let mut target = same("br_if %x, left, right\nleft:\nreturn %x\nright:\nreturn %y\n");
    let points = [target.at(Before, "left", 0), target.at(After, "right", 0)];
    target.entry(Before, points, Vec::new(), &[("y", target.from(Before, "y"))]);

    let mut passed = same("%d = udiv.i32 %x, %y\nreturn %d\n");
    let points = [passed.at(Before, "entry", 0), passed.at(After, "entry", 1)];
    let term = passed.term(Before, "d");
    let divide =
        step(Opcode::Udiv, Type::I32, &[passed.from(Before, "x"), passed.from(Before, "y")]);
    passed.entry(Before, points, vec![(divide, [term, NO_TERM])], &[("d", Operand::Step(0))]);
    let assumed = behind_an_assumption();
    [
        source,
        reached.done(Check::SourceReached, "an entry from unreachable code"),
        target.done(Check::TargetPoint, "a target point on the arm that the run did not take"),
        passed.done(Check::TrapPassed, "a target point after a division that has not executed"),
        assumed.done(Check::AssumePassed, "a target point behind an assumption never made"),
    ]
}

/// The version after assumes that `%x` is 7, and the entry lands behind the assumption.
fn behind_an_assumption() -> Draft {
    let mut draft =
        draft("%w = add.i32 %x, %x\nreturn %x\n", "%w = assume.i32 %x, 7, 1\nreturn %x\n");
    let points = [draft.at(Before, "entry", 0), draft.at(After, "entry", 1)];
    draft.entry(Before, points, Vec::new(), &[("x", draft.from(Before, "x"))]);
    draft
}

fn lists() -> [Wrong; 3] {
    let sum = "%s = add.i32 %x, %y\nreturn %s\n";
    let mut requires = same(sum);
    let points = [requires.at(Before, "entry", 0), requires.at(After, "entry", 1)];
    requires.entry(Before, points, Vec::new(), &[("s", requires.from(Before, "s"))]);

    let mut kept = same(sum);
    let point = kept.at(Before, "entry", 1);
    kept.entry(
        Before,
        [point; 2],
        Vec::new(),
        &[("x", kept.from(Before, "x")), ("s", kept.from(Before, "s"))],
    );
    kept.change_entry(Before, |entry| entry.kept.clear());

    let mut order = same(sum);
    order.entry(Before, [point; 2], Vec::new(), &[("s", order.from(Before, "s"))]);
    order.change_entry(Before, |entry| entry.requires.clear());
    [
        requires.done(Check::Requires, "a sum read before it is computed"),
        kept.done(Check::Kept, "a dead argument read and not kept"),
        order.done(Check::StepOrder, "a value read and not listed"),
    ]
}

fn steps() -> [Wrong; 3] {
    let wide = "(%x: i32) -> i64 {\nentry:\n%w = sextend.i64 %x\nreturn %w\n}\n";
    let mut shape = Draft::new(wide, wide);
    let points = [shape.at(Before, "entry", 0), shape.at(After, "entry", 1)];
    let term = shape.term(Before, "w");
    let mut extend = step(Opcode::Sextend, Type::I64, &[shape.from(Before, "x")]);
    extend.operand_ty = Type::I8;
    shape.entry(Before, points, vec![(extend, [term, NO_TERM])], &[("w", Operand::Step(0))]);

    let sum = "%s = add.i32 %x, %y\nreturn %s\n";
    let mut fact = same(sum);
    let points = [fact.at(Before, "entry", 0), fact.at(After, "entry", 1)];
    let term = fact.term(Before, "s");
    let product = step(Opcode::Mul, Type::I32, &[fact.from(Before, "x"), fact.from(Before, "y")]);
    fact.entry(Before, points, vec![(product, [term, NO_TERM])], &[("s", Operand::Step(0))]);

    let mut trap = same(sum);
    let (x, y) = (trap.term(Before, "x"), trap.term(Before, "y"));
    let term = trap.op(Opcode::Udiv, Type::I32, Imm::None, &[x, y]);
    let divide = step(Opcode::Udiv, Type::I32, &[trap.from(Before, "x"), trap.from(Before, "y")]);
    trap.entry(
        Before,
        [points[1]; 2],
        vec![(divide, [term, NO_TERM])],
        &[("s", trap.from(Before, "s"))],
    );
    [
        shape.done(Check::StepShape, "an extension from another type than that of its operand"),
        fact.done(Check::StepTerm, "a product said to be a sum"),
        trap.done(Check::StepTrap, "a division that neither version has executed"),
    ]
}

fn assigns() -> [Wrong; 3] {
    let sum = "%s = add.i32 %x, %y\nreturn %s\n";
    let mut shape = same(sum);
    let points = [shape.at(Before, "entry", 1), shape.at(After, "entry", 0)];
    let copies = ["x", "y", "s"].map(|name| (name, shape.from(Before, name)));
    shape.entry(Before, points, Vec::new(), &copies);

    let mut value = same("return %x\n");
    let point = value.at(Before, "entry", 0);
    value.entry(Before, [point; 2], Vec::new(), &[("x", value.from(Before, "y"))]);

    let mut live = same("return %x\n");
    live.entry(Before, [point; 2], Vec::new(), &[]);
    [
        shape.done(Check::AssignShape, "a sum provided before the target version has it"),
        value.done(Check::AssignValue, "one argument for the other"),
        live.done(Check::LivePlus, "a result not provided"),
    ]
}
