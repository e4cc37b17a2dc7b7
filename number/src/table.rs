//! The term table: every operation once, in the class that folding and the rules give it.

use crate::features::OperandFeatures;
use crate::matcher::{AppliedRule, RightSide, RuleIndex, apply};
use crate::operands::FirstTerms;
use crate::{NO_TERM, TermIndex};
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashTable};
use ir::eval::{fold, is_evaluated};
use ir::rules::declared::ModuleRules;
use ir::rules::{Operand, possible_bits};
use ir::{Imm, Opcode, Type};
use smallvec::SmallVec;
use std::fmt::Debug;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

/// The largest number of rewrites of the right side of a rule while one term is made. Each rule
/// makes an operation simpler, so few happen. The limit ends the recursion even if the rules do
/// not.
const MAX_REWRITES: u32 = 8;

/// Operands, each a class.
pub type ClassArgs = SmallVec<[TermIndex; 3]>;

/// An operation on classes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClassOperation {
    /// The operation.
    pub opcode: Opcode,
    /// The controlling type.
    pub ty: Type,
    /// The immediate.
    pub imm: Imm,
    /// The operands.
    pub args: ClassArgs,
}

impl ClassOperation {
    /// An operation. The operands of a commutative operation are sorted, so that both orders are
    /// one term.
    pub fn new(opcode: Opcode, ty: Type, imm: Imm, mut args: ClassArgs) -> ClassOperation {
        if opcode.is_commutative() {
            args.sort_unstable();
        }
        ClassOperation { opcode, ty, imm, args }
    }

    /// The operation, borrowed.
    pub fn borrowed(&self) -> OperationRef<'_> {
        OperationRef { opcode: self.opcode, ty: self.ty, imm: self.imm, args: &self.args }
    }
}

/// A borrowed [`ClassOperation`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OperationRef<'t> {
    /// The operation.
    pub opcode: Opcode,
    /// The controlling type.
    pub ty: Type,
    /// The immediate.
    pub imm: Imm,
    /// The operands.
    pub args: &'t [TermIndex],
}

impl Hash for OperationRef<'_> {
    // Packed, since look-ups are most of the work of numbering: the derived form hands the hasher
    // each field, and each operand, on its own.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let OperationRef { opcode, ty, imm, args } = *self;
        state.write_u64((opcode as u64) << 40 | (ty as u64) << 32 | args.len() as u64);
        if imm != Imm::None {
            imm.hash(state);
        }
        for pair in args.chunks(2) {
            let high = pair.get(1).map_or(0, |class| u64::from(*class) << 32);
            state.write_u64(high | u64::from(pair[0]));
        }
    }
}

/// The key by which a table finds a term again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TermKey<'t, L> {
    /// An operation.
    Operation(OperationRef<'t>),
    /// A leaf.
    Leaf(&'t L),
}

impl<L: Hash> Hash for TermKey<'_, L> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            TermKey::Operation(operation) => operation.hash(state),
            TermKey::Leaf(leaf) => leaf.hash(state),
        }
    }
}

/// The form in which a table keeps its terms: classes alone, or with the reasons that a certificate
/// needs.
pub trait TermForm {
    /// A term as the table keeps it.
    type Term: Debug;
    /// The contents that a leaf stands for.
    type Leaf: Eq + Hash;
    /// Why a term belongs to a class that an earlier term began.
    type Reason;

    /// The term of a leaf. It begins the class with its own number, `id`.
    fn leaf(id: TermIndex, leaf: Self::Leaf, ty: Option<Type>) -> Self::Term;
    /// The term of an operation whose result has the type `ty`, or is memory. Without a reason, it
    /// begins the class with its own number, `id`.
    fn operation(
        id: TermIndex,
        operation: ClassOperation,
        ty: Option<Type>,
        reason: Option<(TermIndex, Self::Reason)>,
    ) -> Self::Term;

    /// The operation or leaf of a term.
    fn key(term: &Self::Term) -> TermKey<'_, Self::Leaf>;
    /// The type of a term; `None` for memory.
    fn ty(term: &Self::Term) -> Option<Type>;
    /// The class of a term.
    fn class(term: &Self::Term) -> TermIndex;

    /// The reason that an operation on constants computes the constant of the class.
    fn folding() -> Self::Reason;
    /// The reason that an operation adds the same constant to the same class as the term `result`.
    fn by_sum(result: TermIndex) -> Self::Reason;
    /// The reason that the rule with this number in [`ir::rules::RULES`] applies. `result` is the
    /// term of the right side, if that is an operation, and [`NO_TERM`] otherwise.
    fn by_rule(rule: u32, applied: AppliedRule<TermIndex>, result: TermIndex) -> Self::Reason;
    /// Whether the mask of the bits that the operation may set holds for its whole class.
    fn tells_bits(reason: &Self::Reason) -> bool;
}

/// The list of the terms of a class, and the bits possible in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassLink {
    /// The next term of the class.
    pub(crate) next: TermIndex,
    /// For the first term of a class: its last term, and the bits that may be set, by all terms of
    /// the class. For another term: both values from before this term was added
    /// ([`ClassTable::rewind`]).
    pub(crate) last: TermIndex,
    pub(crate) possible: u64,
    /// The term as a class plus a constant.
    pub(crate) sum: ClassSum,
}

/// A class of type `i32` or `i64` plus a constant, modulo 2^32 or 2^64; [`NO_TERM`] plus a constant
/// for a constant.
pub type ClassSum = (TermIndex, u64);

/// The terms, with an index to find them again.
pub struct ClassTable<F: TermForm> {
    pub(crate) terms: Vec<F::Term>,
    pub(crate) links: Vec<ClassLink>,
    pub(crate) index: HashTable<TermIndex>,
    /// By sum: the first term that is this sum. Terms that are no sums are not listed.
    pub(crate) sums: HashMap<ClassSum, TermIndex, FixedState>,
    hasher: FixedState,
    rules: RuleIndex,
    /// The rules of the embedder, which come after all others.
    pub(crate) declared: Option<Arc<ModuleRules>>,
    /// Constants looked up last, by [`constant_slot`]: many instructions of a function define the
    /// same constants.
    pub(crate) recent: [Option<(Type, u64, TermIndex)>; RECENT],
}

/// Constants that a table finds without a look-up.
const RECENT: usize = 64;

/// The place of a constant among the constants looked up last.
fn constant_slot(bits: u64) -> usize {
    (bits ^ (bits >> 6)) as usize % RECENT
}

impl<F: TermForm> Default for ClassTable<F> {
    fn default() -> ClassTable<F> {
        ClassTable {
            terms: Vec::new(),
            links: Vec::new(),
            index: HashTable::new(),
            sums: HashMap::default(),
            hasher: FixedState::default(),
            rules: RuleIndex::default(),
            declared: None,
            recent: [None; RECENT],
        }
    }
}

impl<F: TermForm> Debug for ClassTable<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&self.terms).finish()
    }
}

impl<F: TermForm> ClassTable<F> {
    /// A table that also applies the declared rules of a function, if it has any.
    pub fn with_rules(declared: Option<&Arc<ModuleRules>>) -> ClassTable<F> {
        ClassTable { declared: declared.cloned(), ..ClassTable::default() }
    }

    /// Forgets every term.
    pub fn clear(&mut self) {
        self.terms.clear();
        self.links.clear();
        self.index.clear();
        self.sums.clear();
        self.recent = [None; RECENT];
    }

    /// The terms, by number.
    pub fn terms(&self) -> &[F::Term] {
        &self.terms
    }

    /// A term, to change its reason.
    pub fn term_mut(&mut self, term: TermIndex) -> Option<&mut F::Term> {
        self.terms.get_mut(term as usize)
    }

    /// The terms, by value.
    pub fn into_terms(self) -> Vec<F::Term> {
        self.terms
    }

    /// The class of a term; [`NO_TERM`] if there is no such term.
    pub fn class(&self, term: TermIndex) -> TermIndex {
        self.terms.get(term as usize).map_or(NO_TERM, F::class)
    }

    /// The type of a term, unless it is a memory.
    pub fn ty(&self, term: TermIndex) -> Option<Type> {
        self.terms.get(term as usize).and_then(F::ty)
    }

    /// The operation of a term, if it is not a leaf.
    pub fn operation(&self, term: TermIndex) -> Option<OperationRef<'_>> {
        match F::key(self.terms.get(term as usize)?) {
            TermKey::Operation(operation) => Some(operation),
            TermKey::Leaf(_) => None,
        }
    }

    /// The bits of a class that is a constant.
    pub fn constant(&self, class: TermIndex) -> Option<u64> {
        match self.operation(class)? {
            OperationRef { opcode: Opcode::Const, imm: Imm::Bits(bits), .. } => Some(bits),
            _ => None,
        }
    }

    /// The bits that may be set in a class.
    pub fn possible(&self, class: TermIndex) -> u64 {
        self.links.get(class as usize).map_or(u64::MAX, |link| link.possible)
    }

    /// A term as a class plus a constant: its own class plus zero, unless it has type `i32` or
    /// `i64` and its operation adds or subtracts a constant. The class that it adds to counts as
    /// the sum that its first term is, so chains are resolved. Meaningful for addresses. Cost:
    /// constant.
    pub fn sum(&self, term: TermIndex) -> ClassSum {
        self.links.get(term as usize).map_or((term, 0), |link| link.sum)
    }

    /// The terms of a class, from the first term on.
    pub fn members(&self, class: TermIndex) -> impl Iterator<Item = TermIndex> + '_ {
        let next = |id: &TermIndex| {
            self.links.get(*id as usize).map(|link| link.next).filter(|id| *id != NO_TERM)
        };
        std::iter::successors(Some(class).filter(|id| *id != NO_TERM), next)
    }

    /// A new leaf.
    pub fn leaf(&mut self, leaf: F::Leaf, ty: Option<Type>) -> TermIndex {
        let id = self.terms.len() as TermIndex;
        self.push(F::leaf(id, leaf, ty), ty.map_or(u64::MAX, Type::mask))
    }

    /// This leaf. Makes it if it is missing.
    pub fn named_leaf(&mut self, leaf: F::Leaf, ty: Option<Type>) -> TermIndex {
        let hash = self.hasher.hash_one(TermKey::Leaf(&leaf));
        self.find(hash, TermKey::Leaf(&leaf)).unwrap_or_else(|| {
            let id = self.leaf(leaf, ty);
            self.enter(hash, id);
            id
        })
    }

    /// The constant with these bits.
    pub fn make_constant(&mut self, ty: Type, bits: u64) -> TermIndex {
        self.op(Opcode::Const, ty, Imm::Bits(bits & ty.mask()), ClassArgs::new())
    }

    /// The term of an operation, if the table has it.
    pub fn find_op(
        &self,
        opcode: Opcode,
        ty: Type,
        imm: Imm,
        args: ClassArgs,
    ) -> Option<TermIndex> {
        let operation = ClassOperation::new(opcode, ty, imm, args);
        self.find(self.hash_of(&operation), TermKey::Operation(operation.borrowed()))
    }

    /// The term of an operation. Makes it if it is missing, in the class that folding or a rule
    /// gives it. Types must agree. [`NO_TERM`] if an operand is [`NO_TERM`], or if the operation
    /// has no result.
    pub fn op(&mut self, opcode: Opcode, ty: Type, imm: Imm, args: ClassArgs) -> TermIndex {
        let Imm::Bits(bits) = imm else {
            return self.rewritten(ClassOperation::new(opcode, ty, imm, args), MAX_REWRITES);
        };
        let slot = constant_slot(bits);
        match self.recent[slot] {
            Some((known, of, term)) if (known, of, opcode) == (ty, bits, Opcode::Const) => term,
            _ => {
                let operation = ClassOperation::new(opcode, ty, imm, args);
                let term = self.rewritten(operation, MAX_REWRITES);
                if opcode == Opcode::Const && term != NO_TERM {
                    self.recent[slot] = Some((ty, bits, term));
                }
                term
            }
        }
    }

    /// The term of an operation. If the table lacks it, makes it in the class that `reason` gives.
    /// [`NO_TERM`] if an operand is [`NO_TERM`].
    pub fn op_because(
        &mut self,
        opcode: Opcode,
        ty: Type,
        imm: Imm,
        args: ClassArgs,
        reason: Option<(TermIndex, F::Reason)>,
    ) -> TermIndex {
        if args.contains(&NO_TERM) {
            return NO_TERM;
        }
        let operation = ClassOperation::new(opcode, ty, imm, args);
        let hash = self.hash_of(&operation);
        self.find(hash, TermKey::Operation(operation.borrowed())).unwrap_or_else(|| {
            let id = self.another(operation, reason);
            self.enter(hash, id);
            id
        })
    }

    /// A new term of an operation that the table may already have in a different class. Lookups do
    /// not find it.
    pub fn another(
        &mut self,
        operation: ClassOperation,
        reason: Option<(TermIndex, F::Reason)>,
    ) -> TermIndex {
        let ty = operation.opcode.result_type(operation.ty);
        let is_told = reason.as_ref().is_none_or(|(_, reason)| F::tells_bits(reason));
        let possible = if is_told { self.possible_in(&operation, ty) } else { u64::MAX };
        let id = self.terms.len() as TermIndex;
        self.push(F::operation(id, operation, ty, reason), possible)
    }

    fn hash_of(&self, operation: &ClassOperation) -> u64 {
        self.hash_of_key(TermKey::Operation(operation.borrowed()))
    }

    pub(crate) fn hash_of_key(&self, key: TermKey<'_, F::Leaf>) -> u64 {
        self.hasher.hash_one(key)
    }

    fn find(&self, hash: u64, key: TermKey<'_, F::Leaf>) -> Option<TermIndex> {
        self.index.find(hash, |id| F::key(&self.terms[*id as usize]) == key).copied()
    }

    fn enter(&mut self, hash: u64, id: TermIndex) {
        let ClassTable { terms, index, hasher, .. } = self;
        index.insert_unique(hash, id, |id| hasher.hash_one(F::key(&terms[*id as usize])));
    }

    fn push(&mut self, term: F::Term, possible: u64) -> TermIndex {
        let (id, class) = (self.terms.len() as TermIndex, F::class(&term));
        let sum = self.sum_of(F::key(&term)).unwrap_or((id, 0));
        if sum != (id, 0) {
            self.sums.entry(sum).or_insert(id);
        }
        self.terms.push(term);
        self.links.push(ClassLink { next: NO_TERM, last: id, possible, sum });
        if class != id {
            let first = &mut self.links[class as usize];
            // The bits possible in a class are the bits possible in all of its terms, since the
            // terms are equal.
            let before = (first.last, first.possible);
            (first.last, first.possible) = (id, before.1 & possible);
            self.links[before.0 as usize].next = id;
            let own = &mut self.links[id as usize];
            (own.last, own.possible) = before;
        }
        id
    }

    /// The sum that a term is, if its operation adds or subtracts a constant, or is one.
    fn sum_of(&self, term: TermKey<'_, F::Leaf>) -> Option<ClassSum> {
        let TermKey::Operation(operation) = term else { return None };
        let ty = operation.ty;
        if !matches!(ty, Type::I32 | Type::I64) {
            return None;
        }
        let plus = |base: TermIndex, constant: TermIndex, negate: bool| {
            let constant = self.constant(constant)?;
            let (base, offset) = self.sum(base);
            let constant = if negate { constant.wrapping_neg() } else { constant };
            Some((base, offset.wrapping_add(constant) & ty.mask()))
        };
        match operation {
            OperationRef { opcode: Opcode::Const, imm: Imm::Bits(bits), .. } => {
                Some((NO_TERM, bits))
            }
            OperationRef { opcode: Opcode::Add, args: &[a, b], .. } => {
                plus(a, b, false).or_else(|| plus(b, a, false))
            }
            OperationRef { opcode: Opcode::Sub, args: &[a, b], .. } => plus(a, b, true),
            _ => None,
        }
    }

    fn possible_in(&self, operation: &ClassOperation, result: Option<Type>) -> u64 {
        let ClassOperation { opcode, ty, imm, args } = operation;
        match (opcode, imm, result) {
            (Opcode::Const, Imm::Bits(bits), _) => *bits,
            (_, _, Some(result)) => {
                let of = |a: &TermIndex| Operand {
                    possible: self.possible(*a),
                    constant: self.constant(*a),
                };
                let operands: SmallVec<[Operand; 3]> = args.iter().map(of).collect();
                possible_bits(*opcode, *ty, result, &operands)
            }
            (_, _, None) => u64::MAX,
        }
    }

    pub(crate) fn rewritten(&mut self, operation: ClassOperation, rewrites: u32) -> TermIndex {
        let result = operation.opcode.result_type(operation.ty);
        let Some(result) = result.filter(|_| !operation.args.contains(&NO_TERM)) else {
            return NO_TERM;
        };
        let hash = self.hash_of(&operation);
        if let Some(id) = self.find(hash, TermKey::Operation(operation.borrowed())) {
            return id;
        }
        // Folding first: a class with a constant is the constant, whichever rule would apply too.
        // Sums come before rules, which bring one sum to different forms.
        let equal = self.equal_sum(&operation);
        let reason = match self.folded(&operation, result) {
            Some(class) => Some((class, F::folding())),
            None if equal.is_some() => equal.map(|term| (self.class(term), F::by_sum(term))),
            None if rewrites > 0 => self
                .simplified(&operation, result, rewrites - 1)
                .or_else(|| self.by_declared(&operation, rewrites - 1)),
            None => None,
        };
        // A rule may have made this very operation on the way.
        if let Some(id) = self.find(hash, TermKey::Operation(operation.borrowed())) {
            return id;
        }
        let id = self.another(operation, reason);
        self.enter(hash, id);
        id
    }

    /// A term that is the same sum as an operation. Sums have many spellings, and rules bring them
    /// to several forms: `(x - 48) + 8` becomes `x + -40`, and `(x - 48) - -8` becomes `x - 40`.
    fn equal_sum(&self, operation: &ClassOperation) -> Option<TermIndex> {
        let sum = self.sum_of(TermKey::Operation(operation.borrowed()))?;
        match sum {
            (NO_TERM, _) => None, // folding has found the constant
            (base, 0) => Some(base),
            sum => self.sums.get(&sum).copied(),
        }
    }

    /// The constant that an operation on constants computes; `None` if [`fold`] computes none.
    fn folded(&mut self, operation: &ClassOperation, result: Type) -> Option<TermIndex> {
        let ClassOperation { opcode, ty, args, .. } = operation;
        if !is_evaluated(*opcode) {
            return None;
        }
        let bits: SmallVec<[u64; 3]> =
            args.iter().map(|a| self.constant(*a)).collect::<Option<_>>()?;
        let source = self.ty(*args.first()?)?;
        let bits = fold(*opcode, *ty, source, &bits)?;
        Some(self.make_constant(result, bits))
    }

    /// The class that the first fitting rule gives an operation, and the reason.
    fn simplified(
        &mut self,
        operation: &ClassOperation,
        result: Type,
        rewrites: u32,
    ) -> Option<(TermIndex, F::Reason)> {
        // First as the pass `simplify` sees the operands, by the first term of each class. Another
        // term of a class may fit an earlier rule that leads elsewhere
        // (`the_first_term_of_a_class_chooses_the_rule`).
        let is_alone = |class: &TermIndex| self.members(*class).nth(1).is_none();
        let all_first = operation.args.iter().all(is_alone);
        let features = OperandFeatures::of(self, &operation.args);
        let rules: SmallVec<[usize; 16]> = self.rules.fitting(operation.opcode, features).collect();
        let tries = [true, false].into_iter().filter(|first| !first || !all_first);
        for (by_first, position) in tries.flat_map(|by| rules.iter().map(move |at| (by, *at))) {
            let (number, rule) = self.rules.get(position);
            let (ty, args) = (operation.ty, &operation.args);
            let applied = match by_first {
                true => apply(&FirstTerms(self), rule, ty, args, result),
                false => apply(self, rule, ty, args, result),
            };
            let Some(applied) = applied else { continue };
            let made = match &applied.right {
                RightSide::Operand(class) => {
                    return Some((*class, F::by_rule(number, applied, NO_TERM)));
                }
                RightSide::Constant(bits) => {
                    let class = self.make_constant(result, *bits);
                    return Some((class, F::by_rule(number, applied, NO_TERM)));
                }
                RightSide::Operation(opcode, args) => {
                    ClassOperation::new(*opcode, self.ty(args[0])?, Imm::None, args.clone())
                }
                RightSide::WithConstant(opcode, x, bits) => {
                    let ty = self.ty(*x)?;
                    let args = ClassArgs::from_slice(&[*x, self.make_constant(ty, *bits)]);
                    ClassOperation::new(*opcode, ty, Imm::None, args)
                }
            };
            // A rule whose right side is the same operation would make the term its own reason, and
            // the look-up would not end. The table then tries the next rule.
            if made == *operation {
                continue;
            }
            let term = self.rewritten(made, rewrites);
            if term != NO_TERM {
                return Some((self.class(term), F::by_rule(number, applied, term)));
            }
        }
        None
    }
}
