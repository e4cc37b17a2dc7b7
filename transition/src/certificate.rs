//! Certificates: why the entries of a mapping are right, written down so that a checker can follow
//! by look-up.
//!
//! A certificate is about two versions of a function. Its *terms* are a table in which every term
//! names earlier ones only. Each value of each version is given a term; values with terms of one
//! *class* are claimed to be equal wherever both are available and control is at corresponding
//! points. Terms of one class are equal whatever the leaves stand for; a *leaf* stands for what is
//! bound as the program runs: an argument, a block parameter, a result of an effect, the memory.
//!
//! What remains to be shown is that leaves mean the same in both versions. Both execute the same
//! *anchors* in the same order. Between two anchors each version runs along a straight line, and
//! binds parameters where it enters blocks. The claim, which the checker proves by induction over
//! anchors, is that a leaf that both versions bind holds the same contents in both, wherever both
//! have it. This is a simulation relation (Namjoshi and Zuck, "Witnessing Program Transformations",
//! SAS 2013, give the idea of a witness that a pass hands to a checker), in the form of a value
//! graph.
//!
//! Nothing here is trusted. `docs/certificates.md` describes the exported form.

use crate::VersionKey;
use ir::entity::{Block, Inst, Value};
use ir::eval::accepts;
use ir::inst::Imm;
use ir::opcode::{Effects, Opcode, Shape};
use ir::types::Type;
use smallvec::SmallVec;

/// The index of a term.
pub type TermId = u32;

/// No term.
pub const NO_TERM: TermId = u32::MAX;

/// What a term is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum TermKind {
    /// The argument of the function with this index.
    Argument(u32),
    /// A leaf bound by the block parameters that are given this term: in each version, parameters
    /// of one block.
    Param,
    /// The result of an anchor that is an effect, with its index among the results.
    Result(Inst, u32),
    /// Memory, globals and sizes when the function is called.
    MemoryAtEntry,
    /// Memory, globals and sizes where the blocks begin that are given this term: in each version
    /// one block.
    MemoryParam,
    /// Memory, globals and sizes after an anchor that writes them.
    MemoryAfter(Inst),
    /// An operation that has no effect, or that writes one place. Its operands are classes; an
    /// operation that reads or writes has one more, the memory before it. A write stands for the
    /// memory after it.
    Op {
        /// The operation.
        opcode: Opcode,
        /// Its controlling type.
        ty: Type,
        /// Its immediate.
        imm: Imm,
        /// Its operands, each a class.
        args: SmallVec<[TermId; 3]>,
    },
}

/// Why a term belongs to its class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum By {
    /// It is the first of its class: its class is itself.
    Itself,
    /// It is an operation on constants, and the first of its class is the constant it computes.
    Folding,
    /// It is the left side of a rule, and its class is the right side.
    Rule {
        /// The index in [`ir::rules::RULES`].
        rule: u32,
        /// For each operation of the pattern, the outermost first and then in the order of the
        /// pattern: bit i says that operation i, which is commutative, is matched with its operands
        /// swapped.
        swapped: u8,
        /// The terms that the inner operations of the pattern match, in the order of the pattern,
        /// each of the class of the operand it stands for.
        inner: SmallVec<[TermId; 2]>,
        /// Where the right side is an operation: a term of the class that is that operation.
        result: TermId,
    },
    /// It reads a memory that is a write apart from what it reads, and its class is that of the
    /// same read of the memory before ([`ir::place::Place::is_apart_from`]).
    Apart {
        /// Of the address read and the address written: a term of its class that adds a constant;
        /// [`NO_TERM`] where the class itself will do.
        via: [TermId; 2],
        /// The same read of the memory before the write.
        result: TermId,
    },
    /// It reads just what a write wrote, and its class is what was written
    /// ([`ir::place::gives_back`]).
    Stored {
        /// As for [`By::Apart`].
        via: [TermId; 2],
    },
    /// It writes, and its class is that of the same write to a memory that lacks writes which this
    /// one covers ([`ir::place::Place::covers`]), and is the same otherwise.
    Covers {
        /// The same write to that memory.
        result: TermId,
    },
    /// It writes to a memory that is a write apart from it, and its class is that of the two in the
    /// other order ([`ir::place::Place::is_apart_from`]).
    Swaps {
        /// As for [`By::Apart`], of this write and the one before it.
        via: [TermId; 2],
        /// The same write to the memory before both.
        inner: TermId,
        /// The other write to the memory behind that.
        result: TermId,
    },
    /// It reads the memory a block begins with, a leaf, from an address bound further up; and on
    /// every edge into the block the same read gives its class.
    Merged {
        /// Those reads, one for each memory that edges bring. They may come later in the table.
        reads: SmallVec<[TermId; 2]>,
    },
}

/// One term of the table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Term {
    /// What it is. Names only terms with smaller indices.
    pub kind: TermKind,
    /// The type of what it stands for; `None` for memory.
    pub ty: Option<Type>,
    /// The first term of its class.
    pub class: TermId,
    /// Why it belongs there.
    pub by: By,
}

/// What is claimed about one version.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct VersionTerms {
    /// The term of every value in reachable code, ascending. That of a result is the operation that
    /// computes it.
    pub values: Vec<(Value, TermId)>,
    /// The term of the memory at the start of every reachable block, ascending.
    pub memory: Vec<(Block, TermId)>,
    /// The term of the memory after instructions that write one place, ascending; of an anchor
    /// without one, the memory after is a leaf of its own ([`TermKind::MemoryAfter`]).
    pub writes: Vec<(Inst, TermId)>,
}

/// A certificate for two versions of a function. See the module documentation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Certificate {
    /// The version before the log, and the one after.
    pub versions: [VersionKey; 2],
    /// The table.
    pub terms: Vec<Term>,
    /// What is claimed about each version.
    pub sides: [VersionTerms; 2],
    /// The anchors, ascending: instructions of both versions that they execute in the same order,
    /// among them every effect and every terminator that may continue at different blocks.
    pub anchors: Vec<Inst>,
    /// Branches and switches, ascending, that a version has on ways on which the other passes them
    /// by: a line goes on past one where constants that it has bound decide it. Others listed
    /// change nothing.
    pub passed: Vec<Inst>,
}

/// The facts behind the compensation code of one entry: for each step, the term that it computes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EntryFacts {
    /// In terms of what the leaves stand for at the source point; [`NO_TERM`] where there is none.
    pub here: Box<[TermId]>,
    /// In terms of what the leaves stand for where the source version meets the next anchor, past
    /// the parameters it binds on the way there. Empty when it binds none, and the two are the
    /// same.
    pub far: Box<[TermId]>,
    /// For each store executed, the term of the memory after it.
    pub replays: Box<[TermId]>,
}

/// The facts behind the entries of a mapping, in the order of its entries.
pub type MappingFacts = Vec<EntryFacts>;

/// Whether an operation without effect, or one that writes one place, may have operands of these
/// types; `None` is memory, the last operand of a read or write.
pub fn is_well_typed(opcode: Opcode, ty: Type, imm: &Imm, operands: &[Option<Type>]) -> bool {
    if opcode == Opcode::Const {
        return operands.is_empty() && matches!(imm, Imm::Bits(bits) if bits & !ty.mask() == 0);
    }
    if !opcode.effects().has(Effects::READS) && !opcode.effects().has(Effects::WRITES) {
        let types: Option<SmallVec<[Type; 3]>> = operands.iter().copied().collect();
        return *imm == Imm::None && types.is_some_and(|types| accepts(opcode, ty, &types));
    }
    match (opcode.shape(), operands) {
        (Shape::Load(_), [address, None]) => {
            *address == Some(Type::I32) && matches!(imm, Imm::Address(..))
        }
        (Shape::MemorySize, [None]) => matches!(imm, Imm::Memory(_)),
        (Shape::TableGet, [index, None]) => {
            *index == Some(Type::I32) && matches!(imm, Imm::Table(_))
        }
        (Shape::TableSize, [None]) => matches!(imm, Imm::Table(_)),
        (Shape::GlobalGet, [None]) => matches!(imm, Imm::Global(_)),
        (Shape::Store(_), [Some(Type::I32), Some(value), None]) => {
            *value == ty && matches!(imm, Imm::Address(..))
        }
        (Shape::GlobalSet, [Some(value), None]) => *value == ty && matches!(imm, Imm::Global(_)),
        _ => false,
    }
}
