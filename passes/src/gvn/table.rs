//! Operations on classes of equal values. The table holds each operation once, in the class that
//! constant folding and the rules give it.

use crate::algebra::{self, Args, Operands, Outcome};
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use ir::dom::DomTree;
use ir::eval::{eval, is_evaluated};
use ir::rules::{Operand, Rule, possible_bits};
use ir::{Block, Imm, Opcode, Type};
use smallvec::SmallVec;
use std::hash::BuildHasher;

/// The number of a term. The number of a class is that of its first term.
pub(super) type Term = u32;

/// No term: the value is not known yet.
pub(super) const NONE: Term = u32::MAX;

/// How deep the results of rules are rewritten again while one term is made: a bound on recursion.
const MAX_REWRITES: u32 = 8;

/// Terms of a class among which a pattern looks for its inner operation: a bound on cost.
const MAX_MEMBERS: usize = 16;

/// The deepest block that defines a leaf of a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Site {
    /// The class has only constants as leaves.
    Anywhere,
    /// This block; the blocks of the other leaves dominate it.
    Below(Block),
    /// None: the leaves are defined in blocks of which neither dominates the other.
    Nowhere,
}

/// An operation on classes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Operation {
    opcode: Opcode,
    ty: Type,
    imm: Imm,
    args: Args<Term>,
}

#[derive(Debug)]
struct Entry {
    /// `None` for a leaf, which is equal to no other term.
    operation: Option<Operation>,
    ty: Type,
    class: Term,
    site: Site,
    /// The next term of the same class.
    next: Term,
    /// Valid for the first term of a class: its last term, and the bits that all terms leave
    /// possible.
    last: Term,
    mask: u64,
}

/// The terms. Each round of numbering fills the table again.
#[derive(Debug)]
pub(super) struct Table {
    entries: Vec<Entry>,
    index: HashTable<Term>,
    hasher: FixedState,
    rules: Vec<Vec<&'static Rule>>,
}

impl Table {
    pub(super) fn new() -> Table {
        let (entries, index) = (Vec::new(), HashTable::new());
        Table { entries, index, hasher: FixedState::default(), rules: algebra::rules_by_opcode() }
    }

    /// Forgets every term.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.index.clear();
    }

    /// The number of terms.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The class of a term; [`NONE`] for [`NONE`].
    pub(super) fn class(&self, term: Term) -> Term {
        self.entries.get(term as usize).map_or(NONE, |e| e.class)
    }

    /// The deepest block that defines a leaf of a class.
    pub(super) fn site(&self, class: Term) -> Site {
        self.entries.get(class as usize).map_or(Site::Nowhere, |e| e.site)
    }

    /// The bits of a constant class; `None` for any other class.
    pub(super) fn known(&self, class: Term) -> Option<u64> {
        match self.entries.get(class as usize)?.operation {
            Some(Operation { opcode: Opcode::Const, imm: Imm::Bits(bits), .. }) => Some(bits),
            _ => None,
        }
    }

    /// A new leaf that a block defines.
    pub(super) fn leaf(&mut self, ty: Type, block: Block) -> Term {
        self.push(None, ty, Site::Below(block), None)
    }

    /// The term of an operation without effect that depends on its operands alone. [`NONE`] if an
    /// operand is.
    pub(super) fn operation(
        &mut self,
        dom: &DomTree,
        opcode: Opcode,
        ty: Type,
        imm: Imm,
        args: Args<Term>,
    ) -> Term {
        self.rewritten(dom, Operation { opcode, ty, imm, args }, MAX_REWRITES)
    }

    fn constant(&mut self, dom: &DomTree, ty: Type, bits: u64) -> Term {
        self.operation(dom, Opcode::Const, ty, Imm::Bits(bits & ty.mask()), Args::new())
    }

    fn rewritten(&mut self, dom: &DomTree, mut operation: Operation, rewrites: u32) -> Term {
        let result = operation.opcode.result_type(operation.ty);
        let Some(result) = result.filter(|_| !operation.args.contains(&NONE)) else { return NONE };
        if operation.opcode.is_commutative() {
            operation.args.sort_unstable();
        }
        let hash = self.hasher.hash_one(&operation);
        if let Some(term) = self.find(hash, &operation) {
            return term;
        }
        let class = match self.folded(dom, &operation, result) {
            None if rewrites > 0 => self.simplified(dom, &operation, result, rewrites - 1),
            folded => folded,
        };
        // A rule may have made this very operation on the way.
        if let Some(term) = self.find(hash, &operation) {
            return term;
        }
        let sites = operation.args.iter().map(|a| self.site(*a));
        let site = sites.fold(Site::Anywhere, |a, b| deeper(dom, a, b));
        let term = self.push(Some(operation), result, site, class);
        let Table { entries, index, hasher, .. } = self;
        // Leaves have no operation and are never in the index, so their hash does not matter.
        index.insert_unique(hash, term, |t| {
            entries[*t as usize].operation.as_ref().map_or(0, |o| hasher.hash_one(o))
        });
        term
    }

    fn find(&self, hash: u64, operation: &Operation) -> Option<Term> {
        self.index
            .find(hash, |t| self.entries[*t as usize].operation.as_ref() == Some(operation))
            .copied()
    }

    fn push(
        &mut self,
        operation: Option<Operation>,
        ty: Type,
        site: Site,
        class: Option<Term>,
    ) -> Term {
        let term = self.entries.len() as Term;
        let possible = operation.as_ref().map_or(ty.mask(), |o| self.possible_of(o, ty));
        let entry = Entry {
            operation,
            ty,
            class: class.unwrap_or(term),
            site,
            next: NONE,
            last: term,
            mask: possible,
        };
        self.entries.push(entry);
        if let Some(class) = class {
            let head = &mut self.entries[class as usize];
            head.mask &= possible;
            let last = std::mem::replace(&mut head.last, term);
            self.entries[last as usize].next = term;
        }
        term
    }

    fn possible_of(&self, operation: &Operation, result: Type) -> u64 {
        if let Imm::Bits(bits) = operation.imm {
            return bits;
        }
        let of = |a: &Term| Operand { possible: self.possible(*a), constant: self.known(*a) };
        let operands: SmallVec<[Operand; 3]> = operation.args.iter().map(of).collect();
        possible_bits(operation.opcode, operation.ty, result, &operands)
    }

    /// The constant that an operation on constants computes; `None` if it traps.
    fn folded(&mut self, dom: &DomTree, operation: &Operation, result: Type) -> Option<Term> {
        if !is_evaluated(operation.opcode) {
            return None;
        }
        let bits: SmallVec<[u64; 3]> =
            operation.args.iter().map(|a| self.known(*a)).collect::<Option<_>>()?;
        let source = self.ty(*operation.args.first()?);
        let bits = eval(operation.opcode, operation.ty, source, &bits).ok()?;
        Some(self.constant(dom, result, bits))
    }

    /// The class that the first fitting rule gives an operation.
    fn simplified(
        &mut self,
        dom: &DomTree,
        operation: &Operation,
        result: Type,
        rewrites: u32,
    ) -> Option<Term> {
        for n in 0..self.rules[operation.opcode as usize].len() {
            let rule = self.rules[operation.opcode as usize][n];
            let (ty, imm) = (operation.ty, Imm::None);
            let made = match algebra::apply(self, rule, ty, &operation.args, result) {
                None => continue,
                Some(Outcome::Operand(class)) => return Some(class),
                Some(Outcome::Constant(bits)) => return Some(self.constant(dom, result, bits)),
                Some(Outcome::Operation(opcode, args)) => {
                    Operation { opcode, ty: self.ty(args[0]), imm, args }
                }
                Some(Outcome::WithConstant(opcode, x, bits)) => {
                    let constant = self.constant(dom, self.ty(x), bits);
                    Operation {
                        opcode,
                        ty: self.ty(x),
                        imm,
                        args: Args::from_slice(&[x, constant]),
                    }
                }
            };
            // A rule may give back the same operation. Accepting that would recurse, so the next
            // rule is tried.
            let mut turned = made.clone();
            turned.args.reverse();
            if made == *operation || (made.opcode.is_commutative() && turned == *operation) {
                continue;
            }
            return Some(self.rewritten(dom, made, rewrites)).map(|term| self.class(term));
        }
        None
    }
}

impl Operands for Table {
    type Id = Term;

    fn constant(&self, class: Term) -> Option<u64> {
        self.known(class)
    }

    fn ty(&self, class: Term) -> Type {
        self.entries[class as usize].ty
    }

    fn possible(&self, class: Term) -> u64 {
        self.entries[class as usize].mask
    }

    fn operations(&self, class: Term, opcode: Opcode) -> impl Iterator<Item = Args<Term>> {
        let first = Some(class).filter(|c| self.known(*c).is_none());
        let next = |t: &Term| Some(self.entries[*t as usize].next).filter(|n| *n != NONE);
        let members = std::iter::successors(first, next).take(MAX_MEMBERS);
        let operations = members.filter_map(|t| self.entries[t as usize].operation.as_ref());
        operations.filter(move |o| o.opcode == opcode).map(|o| o.args.clone())
    }
}

fn deeper(dom: &DomTree, a: Site, b: Site) -> Site {
    match (a, b) {
        (Site::Anywhere, other) | (other, Site::Anywhere) => other,
        (Site::Below(x), Site::Below(y)) if dom.dominates(x, y) => b,
        (Site::Below(x), Site::Below(y)) if dom.dominates(y, x) => a,
        _ => Site::Nowhere,
    }
}
