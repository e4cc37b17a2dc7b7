//! Certificates: the written justification of a mapping's entries, which a checker verifies by
//! look-up instead of search.
//!
//! A certificate is about two versions of a function. Its *terms* form a table in which each term
//! refers to earlier terms only. The certificate gives every value of each version a term, and
//! every term belongs to a *class*. Two values whose terms share a class are claimed to be equal
//! wherever both are available and control is at corresponding points. The terms of a class are
//! equal for every assignment of contents to the leaves. A *leaf* is a term for contents that the
//! running program binds: an argument, a block parameter, the result of an effect, or the memory.
//!
//! For example, one version computes `%t = add.i32 %x, %zero`, and a pass has replaced `%t` by
//! `%x`. The certificate gives `%x` a leaf and `%t` the term "add of that leaf and the constant 0".
//! The rule `add-zero` puts the second term into the class of the first.
//!
//! It remains to show that the leaves mean the same in both versions. Both versions execute the
//! same *anchors* in the same order. Between two anchors each version follows one path and binds
//! parameters where it enters blocks. The checker proves one claim by induction over the anchors. A
//! leaf that both versions bind holds the same contents in both, wherever the leaf is available in
//! both. This claim is a simulation relation in the form of a value graph. The idea of a witness
//! that a pass hands to a checker is from Namjoshi and Zuck, "Witnessing Program Transformations",
//! SAS 2013.
//!
//! The checker trusts nothing in a certificate. `docs/certificates.md` describes the exported form.

use crate::VersionKey;
use ir::entity::{Block, Inst, Value};
use ir::eval::accepts;
use ir::inst::Imm;
use ir::opcode::{Effects, Opcode, Shape};
use ir::ranges::Interval;
pub use ir::ranges::RangeBy;
use ir::types::Type;
use smallvec::SmallVec;

/// The index of a term in the table.
pub type TermId = u32;

/// The id that stands for "no term".
pub const NO_TERM: TermId = u32::MAX;

/// The kind of a term: the operation or leaf that it stands for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum TermKind {
    /// The argument of the function with this index.
    Argument(u32),
    /// A leaf for block parameters. All parameters of one version with this term belong to one
    /// block; binding that block's parameters binds the leaf.
    Param,
    /// The result of an anchor that has an effect. The number is the result's index.
    Result(Inst, u32),
    /// Memory, globals and sizes at the call of the function.
    MemoryAtEntry,
    /// Memory, globals and sizes at the start of a block. In each version, this term is the memory
    /// of at most one block.
    MemoryParam,
    /// Memory, globals and sizes after an anchor that writes them.
    MemoryAfter(Inst),
    /// An operation without effect, or a write to exactly one place. Its operands are classes. An
    /// operation that reads or writes has the memory before it as an additional last operand. A
    /// write stands for the memory after it.
    Op {
        /// The operation.
        opcode: Opcode,
        /// The controlling type.
        ty: Type,
        /// The immediate.
        imm: Imm,
        /// The operands, each a class.
        args: SmallVec<[TermId; 3]>,
    },
}

/// The reason why a term belongs to its class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum By {
    /// The term is the first of its class; the class has its id.
    Itself,
    /// The term is an operation on constants. The first term of its class is the constant that the
    /// operation computes.
    Folding,
    /// The term adds constants to a class, or subtracts them, as another term of its class does;
    /// the sums are equal modulo 2^32. For example, `(x - 48) + 8` and `x - 40`.
    Sum {
        /// The other term.
        result: TermId,
    },
    /// The term matches the left side of a rule, and its class is the right side.
    Rule {
        /// The index in [`ir::rules::RULES`]; behind its end, the number of a rule of the embedder
        /// ([`ir::rules::declared::ModuleRules::numbered`]).
        rule: u32,
        /// A bit mask over the operations of the pattern, the outermost first, then in pattern
        /// order. A set bit i means that operation i, which is commutative, matched with its
        /// operands swapped.
        swapped: u8,
        /// The terms that match the inner operations of the pattern, in pattern order. Each belongs
        /// to the class of the operand in its place. In a rule of the embedder, the inner terms of
        /// the right side follow, and so do the bits of `swapped` for the right side.
        inner: SmallVec<[TermId; 2]>,
        /// If the right side is an operation: a term of the class that is this operation.
        result: TermId,
    },
    /// The term reads memory just after a write to a disjoint place
    /// ([`ir::place::Place::is_apart_from`]). Its class is the class of the same read of the
    /// memory before the write.
    Apart {
        /// For the address read and the address written: a term of the address's class that adds a
        /// constant. [`NO_TERM`] where the checker can use the class itself.
        via: [TermId; 2],
        /// The same read of the memory before the write.
        result: TermId,
    },
    /// The term reads exactly the place that a write just wrote. Its class is the class of the
    /// operand written ([`ir::place::gives_back`]).
    Stored {
        /// See `via` of [`By::Apart`].
        via: [TermId; 2],
    },
    /// The term is a write that covers earlier writes ([`ir::place::Place::covers`]). Its class
    /// is the class of the same write to a memory that lacks the covered writes and is equal
    /// otherwise.
    Covers {
        /// The same write to that memory.
        result: TermId,
    },
    /// The term is a write that follows a write to a disjoint place
    /// ([`ir::place::Place::is_apart_from`]). Its class is the class of these two writes in the
    /// opposite order.
    Swaps {
        /// See `via` of [`By::Apart`], for this write and the write before it.
        via: [TermId; 2],
        /// The write of this term, applied to the memory before both.
        inner: TermId,
        /// The earlier write, applied to the memory after `inner`.
        result: TermId,
    },
    /// The term reads the memory at the start of a block (a leaf) from an address bound further up.
    /// On every edge into the block, the same read of the incoming memory has the class of this
    /// term.
    Merged {
        /// These reads, one for each memory that an edge brings. They may come later in the table
        /// than this term.
        reads: SmallVec<[TermId; 2]>,
    },
}

/// One term of the table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Term {
    /// The kind of the term. It refers only to terms with smaller indices.
    pub kind: TermKind,
    /// The type of the contents that the term stands for; `None` for memory.
    pub ty: Option<Type>,
    /// The first term of the class that the term belongs to.
    pub class: TermId,
    /// The reason for the membership.
    pub by: By,
}

/// The claims about one version.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct VersionTerms {
    /// The term of every value in reachable code, in ascending order of values. The term of a
    /// result is the operation that computes it.
    pub values: Vec<(Value, TermId)>,
    /// The term of the memory at the start of every reachable block, in ascending order of blocks.
    pub memory: Vec<(Block, TermId)>,
    /// The term of the memory after instructions that write one place, in ascending order. After a
    /// writing anchor that is not listed, the memory is a leaf of its own
    /// ([`TermKind::MemoryAfter`]).
    pub writes: Vec<(Inst, TermId)>,
    /// Claims about the contents of integers, from which it follows that no run takes an edge. A
    /// claim by [`RangeBy::Operation`] rests on earlier claims about its block.
    pub ranges: Vec<RangeClaim>,
}

/// The claim that a class of integers has contents in an interval whenever control is before the
/// terminator of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RangeClaim {
    /// The block.
    pub block: Block,
    /// A term of the class.
    pub term: TermId,
    /// The contents, as signed integers of the type of the term.
    pub within: Interval,
    /// The reason.
    pub by: RangeBy,
}

/// A certificate for two versions of a function. See the module documentation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Certificate {
    /// The version before the log, then the version after it.
    pub versions: [VersionKey; 2],
    /// The table of terms.
    pub terms: Vec<Term>,
    /// The claims about each version.
    pub sides: [VersionTerms; 2],
    /// The anchors, in ascending order: instructions of both versions that both execute in the same
    /// order. Every effect is an anchor, and so is every terminator that may continue at different
    /// blocks.
    pub anchors: Vec<Inst>,
}

/// The justification of one entry's compensation code: for each step, the term that the step
/// computes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EntryFacts {
    /// The terms, with the leaves bound as at the source point; [`NO_TERM`] for a step without a
    /// term.
    pub here: Box<[TermId]>,
    /// The terms, with the leaves bound as at the next anchor of the source version, after the path
    /// to it has bound its parameters. Empty when the path binds no parameters, because both
    /// readings then coincide.
    pub far: Box<[TermId]>,
    /// For each replayed store, the term of the memory after it.
    pub replays: Box<[TermId]>,
}

/// The justifications of all entries of a mapping, in the order of the entries.
pub type MappingFacts = Vec<EntryFacts>;

/// Whether an operation may have operands of these types. The operation has no effect or writes
/// exactly one place. The type `None` stands for memory, the last operand of a read or write.
pub fn is_well_typed(opcode: Opcode, ty: Type, imm: &Imm, operands: &[Option<Type>]) -> bool {
    if opcode == Opcode::Const {
        return operands.is_empty() && matches!(imm, Imm::Bits(bits) if bits & !ty.mask() == 0);
    }
    if opcode.shape() == Shape::CallValue {
        return is_well_typed_call(opcode, ty, imm, operands);
    }
    if !opcode.effects().has(Effects::READS) && !opcode.effects().has(Effects::WRITES) {
        let types: Option<SmallVec<[Type; 3]>> = operands.iter().copied().collect();
        return *imm == Imm::None && types.is_some_and(|types| accepts(opcode, ty, &types));
    }
    match (opcode.shape(), operands) {
        (Shape::Load(_), [Some(address), None]) => imm.address_type() == Some(*address),
        (Shape::MemorySize, [None]) => matches!(imm, Imm::Memory(_)),
        (Shape::TableGet, [index, None]) => {
            *index == Some(Type::I32) && matches!(imm, Imm::Table(_))
        }
        (Shape::TableSize, [None]) => matches!(imm, Imm::Table(_)),
        (Shape::GlobalGet, [None]) => matches!(imm, Imm::Global(_)),
        (Shape::RefBits, [Some(Type::Ref), None]) | (Shape::RefOf, [Some(Type::I64), None]) => {
            *imm == Imm::None
        }
        (Shape::Store(_), [Some(address), Some(value), None]) => {
            *value == ty && imm.address_type() == Some(*address)
        }
        (Shape::GlobalSet, [Some(value), None]) => *value == ty && matches!(imm, Imm::Global(_)),
        _ => false,
    }
}

/// As [`is_well_typed`], for a call whose result is a term. A term says nothing about the function,
/// so operands of any type are as good as operands of the signature's types. Memory is the last
/// operand of a call that reads memory, and no operand of a pure call.
fn is_well_typed_call(opcode: Opcode, ty: Type, imm: &Imm, operands: &[Option<Type>]) -> bool {
    let values = match operands.split_last() {
        Some((None, values)) if opcode.effects().has(Effects::READS) => values,
        _ if opcode == Opcode::CallPure => operands,
        _ => return false,
    };
    matches!(imm, Imm::Func(_)) && opcode.allows_type(ty) && values.iter().all(Option::is_some)
}
