//! Whichever rule `simplify` applies to a value, the table keeps the result in the value's class.
//!
//! The pass sees one operation for a value, and leaves it if other operations use it and a rule
//! would make a new operation. The table sees the operations of a class, the simplest first. So
//! they may apply different rules to one value, which must lead to one class; else certificates
//! call equal values different. Random expressions show the pairs of rules that lead apart. One
//! pair is known: a constant in bits that a shift leaves free, behind a mask and below an extension
//! (one expression of millions).

use super::RuleNames;
use crate::*;
use ir::eval::accepts;
use ir::rules::{Operand, Pat, RULES, Rule, possible_bits};
use ir::{Imm, Opcode, Type};
use smallvec::SmallVec;

/// A value of a random expression.
enum Node {
    Leaf(Type),
    Constant(Type, u64),
    Operation(Opcode, Type, SmallVec<[usize; 3]>),
}

/// Random numbers, by a shift register.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 20) % n as u64) as usize
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

const CONSTANTS: [u64; 24] = [
    0,
    1,
    2,
    3,
    7,
    8,
    15,
    16,
    24,
    31,
    32,
    0x55,
    0x7f,
    0x80,
    0xff,
    0x1c4,
    0x7fff,
    0xff00,
    0xffff,
    0x7fff_0000,
    0xffff_ff00,
    0xffff_ffff,
    0xfff9 << 48,
    u64::MAX,
];

/// Values, operands first, each with its own operation alone, as the pass sees them.
struct Values {
    nodes: Vec<Node>,
    random: Random,
}

impl Values {
    fn push(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn type_of(&self, id: usize) -> Type {
        match &self.nodes[id] {
            Node::Leaf(ty) | Node::Constant(ty, _) => *ty,
            Node::Operation(opcode, ty, _) => opcode.result_type(*ty).expect("a value"),
        }
    }

    fn constant_of(&mut self, ty: Type) -> usize {
        let bits = self.random.of(&CONSTANTS) & ty.mask();
        self.push(Node::Constant(ty, bits))
    }

    /// A value of a type: a leaf, a value made before, an operation on a constant, or the left side
    /// of a rule. The recursion is as deep as `depth`.
    fn value(&mut self, ty: Type, depth: u32) -> usize {
        use Opcode::{Add, And, Or, Shl, Ushr, Xor};
        let choice = self.random.below(if depth == 0 { 5 } else { 16 });
        let instance = match choice {
            0..3 => self.known(ty),
            3 | 4 => Some(self.constant_of(ty)),
            5 | 6 => {
                let args = [self.value(ty, depth - 1), self.constant_of(ty)];
                let opcode = self.random.of(&[And, Or, Xor, Add, Ushr, Shl]);
                Some(self.push(Node::Operation(opcode, ty, args.into_iter().collect())))
            }
            _ => (0..20).find_map(|_| {
                let rule = &RULES[self.random.below(RULES.len())];
                let fits = rule.ty.is_none_or(|t| t == ty);
                let mut bound = [None; 2];
                fits.then(|| self.pattern(rule.opcode, rule.operands, ty, depth - 1, &mut bound))?
            }),
        };
        instance.unwrap_or_else(|| self.push(Node::Leaf(ty)))
    }

    /// A value made before that is no constant.
    fn known(&mut self, ty: Type) -> Option<usize> {
        let is_other = |id: &usize| !matches!(self.nodes[*id], Node::Constant(..));
        let all = (0..self.nodes.len()).filter(|id| is_other(id) && self.type_of(*id) == ty);
        let all: Vec<usize> = all.collect();
        (!all.is_empty() && self.random.below(3) > 0).then(|| self.random.of(&all))
    }

    /// An operation of a type that fits the operands of a pattern. `None` without a fitting
    /// operation.
    fn pattern(
        &mut self,
        opcode: Opcode,
        pats: &'static [Pat],
        ty: Type,
        depth: u32,
        bound: &mut [Option<usize>; 2],
    ) -> Option<usize> {
        if !opcode.allows_type(ty) || opcode.result_type(ty) != Some(ty) {
            return None;
        }
        let other = if ty == Type::I32 { Type::I64 } else { Type::I32 };
        let mut args = SmallVec::<[usize; 3]>::new();
        for (at, pat) in pats.iter().enumerate() {
            let of = match opcode {
                Opcode::Wrap | Opcode::Sextend | Opcode::Uextend => other,
                Opcode::Select if at == 0 => Type::I32,
                _ => ty,
            };
            args.push(match pat {
                Pat::X | Pat::Y => {
                    let slot = usize::from(matches!(pat, Pat::Y));
                    let known = bound[slot].filter(|id| self.type_of(*id) == of);
                    *bound[slot].insert(known.unwrap_or_else(|| self.value(of, depth)))
                }
                Pat::Zero => self.push(Node::Constant(of, 0)),
                Pat::One => self.push(Node::Constant(of, 1)),
                Pat::Ones => self.push(Node::Constant(of, of.mask())),
                Pat::Bits(bits) => self.push(Node::Constant(of, bits & of.mask())),
                Pat::NonZero | Pat::C | Pat::D => self.constant_of(of),
                Pat::Op(opcode, pats) => self.pattern(*opcode, pats, of, depth, bound)?,
            });
        }
        if opcode.is_commutative() && self.random.below(2) == 0 {
            args.reverse();
        }
        let types: Vec<Type> = args.iter().map(|id| self.type_of(*id)).collect();
        accepts(opcode, ty, &types).then(|| self.push(Node::Operation(opcode, ty, args)))
    }

    /// The rules that the pass may apply to a value, in its order. A rule that pays whoever else
    /// uses the operands is the last.
    fn applicable(&self, index: &RuleIndex, id: usize) -> Vec<(&'static Rule, RightSide<usize>)> {
        let Node::Operation(opcode, ty, args) = &self.nodes[id] else { return Vec::new() };
        let mut found = Vec::new();
        for rule in index.of(*opcode).map(|position| index.get(position).1) {
            let Some(applied) = apply(self, rule, *ty, args, self.type_of(id)) else { continue };
            let is_last = pays(rule, &applied.right);
            found.push((rule, applied.right));
            if is_last {
                break;
            }
        }
        found
    }

    /// Whether the pass replaces this value or a value in its computation, whatever else the
    /// function contains.
    fn is_pending(&self, index: &RuleIndex, id: usize) -> bool {
        let Node::Operation(_, _, args) = &self.nodes[id] else { return false };
        self.applicable(index, id).iter().any(|(rule, right)| pays(rule, right))
            || args.iter().any(|arg| self.is_pending(index, *arg))
    }

    /// The expression of a value, for people.
    fn text(&self, id: usize) -> String {
        match &self.nodes[id] {
            Node::Leaf(ty) => format!("v{id}:{ty}"),
            Node::Constant(_, bits) => format!("{bits:#x}"),
            Node::Operation(opcode, _, args) => {
                let args: Vec<String> = args.iter().map(|id| self.text(*id)).collect();
                format!("{}({})", opcode.name(), args.join(","))
            }
        }
    }
}

/// Whether the pass applies a rule whoever else uses the operands.
fn pays(rule: &Rule, right: &RightSide<usize>) -> bool {
    let looks_through = rule.operands.iter().any(|p| matches!(p, Pat::Op(..)));
    !looks_through || matches!(right, RightSide::Operand(_) | RightSide::Constant(_))
}

impl Operands for Values {
    type Id = usize;

    fn constant(&self, id: usize) -> Option<u64> {
        match self.nodes[id] {
            Node::Constant(_, bits) => Some(bits),
            _ => None,
        }
    }

    fn ty(&self, id: usize) -> Option<Type> {
        Some(self.type_of(id))
    }

    fn possible(&self, id: usize) -> u64 {
        let of = |id: &usize| Operand {
            possible: self.possible(*id),
            constant: Operands::constant(self, *id),
        };
        match &self.nodes[id] {
            Node::Leaf(ty) => ty.mask(),
            Node::Constant(_, bits) => *bits,
            Node::Operation(opcode, ty, args) => {
                let operands: Vec<Operand> = args.iter().map(of).collect();
                possible_bits(*opcode, *ty, self.type_of(id), &operands)
            }
        }
    }

    fn operations(
        &self,
        id: usize,
        opcode: Opcode,
    ) -> impl Iterator<Item = (usize, SmallVec<[usize; 3]>)> {
        let own = match &self.nodes[id] {
            Node::Operation(found, _, args) if *found == opcode => Some((id, args.clone())),
            _ => None,
        };
        own.into_iter()
    }

    fn typed(&self, id: usize) -> Option<(Type, Imm)> {
        match &self.nodes[id] {
            Node::Operation(_, ty, _) => Some((*ty, Imm::None)),
            _ => None,
        }
    }
}

/// The classes of all values in a table.
fn classes(table: &mut ClassTable<RuleNames>, values: &Values) -> Vec<TermIndex> {
    let mut classes: Vec<TermIndex> = Vec::new();
    for (id, node) in values.nodes.iter().enumerate() {
        let term = match node {
            Node::Leaf(ty) => table.named_leaf(id as u32, Some(*ty)),
            Node::Constant(ty, bits) => table.make_constant(*ty, *bits),
            Node::Operation(opcode, ty, args) => {
                let args = args.iter().map(|id| classes[*id]).collect();
                table.op(*opcode, *ty, Imm::None, args)
            }
        };
        classes.push(table.class(term));
    }
    classes
}

/// The class of the right side of a rule.
fn class_of_right(
    table: &mut ClassTable<RuleNames>,
    values: &Values,
    classes: &[TermIndex],
    result: Type,
    right: &RightSide<usize>,
) -> TermIndex {
    let term = match right {
        RightSide::Operand(value) => classes[*value],
        RightSide::Constant(bits) => table.make_constant(result, *bits),
        RightSide::Operation(opcode, args) => {
            let of = args.iter().map(|id| classes[*id]).collect();
            table.op(*opcode, values.type_of(args[0]), Imm::None, of)
        }
        RightSide::WithConstant(opcode, x, bits) => {
            let ty = values.type_of(*x);
            let constant = table.make_constant(ty, *bits);
            let args = ClassArgs::from_slice(&[classes[*x], table.class(constant)]);
            table.op(*opcode, ty, Imm::None, args)
        }
    };
    table.class(term)
}

#[test]
fn a_rule_keeps_the_class() {
    let index = RuleIndex::default();
    let mut values = Values { nodes: Vec::new(), random: Random(0x9e37_79b9_7f4a_7c15) };
    let mut table = ClassTable::<RuleNames>::default();
    let mut applied = 0;
    for _ in 0..60_000 {
        table.clear();
        values.nodes.clear();
        let ty = values.random.of(&[Type::I32, Type::I64]);
        values.value(ty, 3);
        let classes = classes(&mut table, &values);
        for (id, node) in values.nodes.iter().enumerate() {
            let Node::Operation(_, _, args) = node else { continue };
            if args.iter().any(|arg| values.is_pending(&index, *arg)) {
                continue;
            }
            for (rule, right) in values.applicable(&index, id) {
                let result = values.type_of(id);
                let class = class_of_right(&mut table, &values, &classes, result, &right);
                assert_eq!(class, classes[id], "{} on {}", rule.name, values.text(id));
                applied += 1;
            }
        }
    }
    assert!(applied > 30_000, "{applied} rules apply");
}
