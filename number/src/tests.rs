//! The table of terms, with the names of rules as reasons.

mod confluence;
mod limits;

use crate::*;
use ir::rules::RULES;
use ir::{Imm, Opcode, Type};

/// Terms whose reasons are the names of rules.
struct RuleNames;

/// An operation or the number of a leaf, the type, the class and the reason.
type NamedTerm = (Result<ClassOperation, u32>, Option<Type>, TermIndex, &'static str);

impl TermForm for RuleNames {
    type Term = NamedTerm;
    type Leaf = u32;
    type Reason = &'static str;

    fn leaf(id: TermIndex, leaf: u32, ty: Option<Type>) -> NamedTerm {
        (Err(leaf), ty, id, "itself")
    }

    fn operation(
        id: TermIndex,
        operation: ClassOperation,
        ty: Option<Type>,
        reason: Option<(TermIndex, &'static str)>,
    ) -> NamedTerm {
        let (class, reason) = reason.unwrap_or((id, "itself"));
        (Ok(operation), ty, class, reason)
    }

    fn key(term: &NamedTerm) -> TermKey<'_, u32> {
        match &term.0 {
            Ok(operation) => TermKey::Operation(operation.borrowed()),
            Err(leaf) => TermKey::Leaf(leaf),
        }
    }

    fn ty(term: &NamedTerm) -> Option<Type> {
        term.1
    }

    fn class(term: &NamedTerm) -> TermIndex {
        term.2
    }

    fn folding() -> &'static str {
        "folding"
    }

    fn by_sum(_: TermIndex) -> &'static str {
        "sum"
    }

    fn by_rule(rule: u32, _: AppliedRule<TermIndex>, _: TermIndex) -> &'static str {
        RULES[rule as usize].name
    }

    fn tells_bits(_: &&'static str) -> bool {
        true
    }
}

fn binary(table: &mut ClassTable<RuleNames>, opcode: Opcode, args: [TermIndex; 2]) -> TermIndex {
    table.op(opcode, Type::I32, Imm::None, ClassArgs::from_slice(&args))
}

#[test]
fn both_orders_of_a_commutative_operation_are_one_term() {
    let mut table = ClassTable::<RuleNames>::default();
    let [x, y] = [0, 1].map(|leaf| table.named_leaf(leaf, Some(Type::I32)));
    assert_eq!(table.named_leaf(1, Some(Type::I32)), y);
    assert_eq!(binary(&mut table, Opcode::Add, [x, y]), binary(&mut table, Opcode::Add, [y, x]));
    assert_ne!(binary(&mut table, Opcode::Sub, [x, y]), binary(&mut table, Opcode::Sub, [y, x]));
    assert_eq!(binary(&mut table, Opcode::Add, [x, NO_TERM]), NO_TERM);
}

#[test]
fn folding_and_rules_put_terms_into_classes() {
    let mut table = ClassTable::<RuleNames>::default();
    let x = table.leaf(0, Some(Type::I32));
    let [three, four] = [3, 4].map(|bits| table.make_constant(Type::I32, bits));
    let seven = binary(&mut table, Opcode::Add, [three, four]);
    assert_eq!(
        (table.constant(table.class(seven)), table.terms()[seven as usize].3),
        (Some(7), "folding")
    );
    // (x + 3) + 4 is x + 7, whose constant the table has.
    let sum = binary(&mut table, Opcode::Add, [x, three]);
    let nested = binary(&mut table, Opcode::Add, [sum, four]);
    assert_eq!(table.terms()[nested as usize].3, "add-add");
    let constant = table.class(seven);
    let direct = binary(&mut table, Opcode::Add, [x, constant]);
    assert_eq!(table.class(nested), direct);
    assert_eq!(table.members(direct).collect::<Vec<_>>(), [direct, nested]);
}

#[test]
fn a_class_has_the_bits_that_all_its_terms_leave_possible() {
    let mut table = ClassTable::<RuleNames>::default();
    let x = table.leaf(0, Some(Type::I32));
    assert_eq!(table.possible(x), u64::from(u32::MAX));
    let byte = table.make_constant(Type::I32, 0xff);
    let low = binary(&mut table, Opcode::And, [x, byte]);
    assert_eq!(table.possible(low), 0xff);
    // Nothing is left to mask.
    let again = binary(&mut table, Opcode::And, [low, byte]);
    assert_eq!(table.class(again), low);
}

/// `(x >= y) == 1` is the comparison itself, so its class has an `eq`. The negation of the class is
/// `x < y`, as for a value without that `eq`, and not the negation of the `eq`.
#[test]
fn the_first_term_of_a_class_chooses_the_rule() {
    let mut table = ClassTable::<RuleNames>::default();
    let [x, y] = [0, 1].map(|leaf| table.named_leaf(leaf, Some(Type::I32)));
    let one = table.make_constant(Type::I32, 1);
    let compared = binary(&mut table, Opcode::Uge, [x, y]);
    let is_one = binary(&mut table, Opcode::Eq, [compared, one]);
    assert_eq!(table.class(is_one), compared);
    let args = ClassArgs::from_slice(&[compared]);
    let negated = table.op(Opcode::Eqz, Type::I32, Imm::None, args);
    let less = binary(&mut table, Opcode::Ult, [x, y]);
    assert_eq!(table.class(negated), table.class(less));
    let differs = binary(&mut table, Opcode::Ne, [compared, one]);
    assert_eq!(table.class(differs), table.class(less));
}

/// The features of operands let every rule pass that fits the operation.
#[test]
fn no_rule_that_fits_is_left_out_by_features() {
    let mut table = ClassTable::<RuleNames>::default();
    let [x, y] = [0, 1].map(|leaf| table.named_leaf(leaf, Some(Type::I32)));
    let constants = [0, 1, 16, 24, 0xff, 0xffff, u64::from(u32::MAX)];
    let mut classes = vec![x, y];
    classes.extend(constants.map(|bits| table.make_constant(Type::I32, bits)));
    let opcodes: Vec<Opcode> = RULES.iter().map(|rule| rule.opcode).collect();
    let shapes = |classes: &[TermIndex]| -> Vec<ClassArgs> {
        let pairs = classes.iter().flat_map(|a| classes.iter().map(move |b| [*a, *b]));
        let ones = classes.iter().map(|a| ClassArgs::from_slice(&[*a]));
        ones.chain(pairs.map(|pair| ClassArgs::from_slice(&pair))).collect()
    };
    let accepted = |opcode: Opcode, args: &ClassArgs| {
        let types = vec![Type::I32; args.len()];
        ir::eval::accepts(opcode, Type::I32, &types)
    };
    for args in shapes(&classes) {
        for &opcode in opcodes.iter().filter(|op| accepted(**op, &args)) {
            let term = table.op(opcode, Type::I32, Imm::None, args.clone());
            classes.push(table.class(term));
        }
    }
    classes.sort_unstable();
    classes.dedup();
    let (index, mut fitted) = (RuleIndex::default(), 0);
    for args in shapes(&classes[..classes.len().min(200)]) {
        let features = OperandFeatures::of(&table, &args);
        for &opcode in opcodes.iter().filter(|op| accepted(**op, &args)) {
            let left: Vec<usize> = index.fitting(opcode, features).collect();
            let result = opcode.result_type(Type::I32).expect("rules are about values");
            for position in index.of(opcode) {
                let (_, rule) = index.get(position);
                let fits = apply(&table, rule, Type::I32, &args, result).is_some();
                assert!(!fits || left.contains(&position), "{} on {args:?}", rule.name);
                fitted += u32::from(fits);
            }
        }
    }
    assert!(fitted > 100, "{fitted}");
}

#[test]
fn a_cleared_table_makes_its_constants_again() {
    let mut table = ClassTable::<RuleNames>::default();
    let seven = |table: &mut ClassTable<RuleNames>, ty| table.make_constant(ty, 7);
    let first = seven(&mut table, Type::I32);
    assert_eq!(seven(&mut table, Type::I32), first);
    assert_ne!(seven(&mut table, Type::I64), first);
    table.clear();
    table.leaf(0, Some(Type::I32));
    let again = seven(&mut table, Type::I32);
    assert_eq!(table.constant(again), Some(7));
}

/// The order of a function's blocks, by name, and its regions.
fn order(text: &str) -> (Vec<String>, Vec<(usize, usize)>) {
    let module = ir::text::parse_module(text).expect("well-formed");
    let (_, f) = module.defined().next().expect("one function");
    let graph = FlowGraph::new(f);
    let name = |block: &ir::Block| f.block_name(*block).expect("named").to_owned();
    let places = 0..graph.order().len();
    let regions = places.filter_map(|n| Some((n, graph.region_end(n)?)));
    (graph.order().iter().map(name).collect(), regions.collect())
}

/// In reverse postorder, the exits of both loops come before their bodies, so the first region
/// would contain the second loop.
#[test]
fn each_loop_of_a_row_is_a_region() {
    let (order, regions) = order(
        "func @f(%a: i32) {\nentry:\n  jump head\nhead:\n  br_if %a, body, next\nbody:\n  \
         jump head\nnext:\n  br_if %a, work, out\nwork:\n  jump next\nout:\n  return\n}\n",
    );
    assert_eq!(order, ["entry", "head", "body", "next", "work", "out"]);
    assert_eq!(regions, [(1, 3), (3, 5)]);
}

/// The inner loop reaches further than the edge back to the outer loop: from `c` control goes back
/// to `a`, or on to `d` and back to `b`.
#[test]
fn a_region_takes_in_all_of_an_inner_one() {
    let (order, regions) = order(
        "func @f(%a: i32) {\nentry:\n  jump a\na:\n  jump b\nb:\n  jump c\nc:\n  \
         br_if %a, a, d\nd:\n  br_if %a, b, out\nout:\n  return\n}\n",
    );
    assert_eq!(order, ["entry", "a", "b", "c", "d", "out"]);
    assert_eq!(regions, [(1, 5), (2, 5)]);
}

#[test]
fn a_rewound_table_is_as_before() {
    let mut table = ClassTable::<RuleNames>::default();
    let [x, y] = [0, 1].map(|leaf| table.named_leaf(leaf, Some(Type::I32)));
    let three = table.make_constant(Type::I32, 3);
    let sum = binary(&mut table, Opcode::Add, [x, three]);
    let byte = table.make_constant(Type::I32, 0xff);
    let low = binary(&mut table, Opcode::And, [x, byte]);
    let state = |table: &ClassTable<RuleNames>| {
        let lists: Vec<Vec<TermIndex>> = (0..table.terms().len() as TermIndex)
            .map(|term| table.members(table.class(term)).collect())
            .collect();
        let possible = [x, y, sum, low].map(|class| table.possible(class));
        (table.terms().to_vec(), lists, possible)
    };
    let before = state(&table);
    let count = table.terms().len();
    let grow = |table: &mut ClassTable<RuleNames>| {
        let four = table.make_constant(Type::I32, 4);
        let more = binary(table, Opcode::Add, [sum, four]);
        // Both join classes from before: the first sum, and the masked value.
        let back = binary(table, Opcode::Sub, [more, four]);
        let again = binary(table, Opcode::And, [low, byte]);
        let leaf = table.named_leaf(7, Some(Type::I32));
        assert_eq!((table.class(back), table.class(again)), (sum, low));
        [four, more, back, again, leaf]
    };
    let made = grow(&mut table);
    let after = state(&table);
    table.rewind(count);
    assert_eq!(state(&table), before);
    assert_eq!(grow(&mut table), made, "a look-up finds nothing that was forgotten");
    assert_eq!(state(&table), after);
}
