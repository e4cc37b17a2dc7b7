//! The declared effects of imported functions.
//!
//! Example: a program calls `hash: (i64) -> i64` of its embedder. Without a declaration, a call may
//! change every memory, so passes keep each call and forget all loads at it. Declared `pure`, the
//! call is an operation on values like an addition: two calls of equal operands become one, and a
//! call without use goes.
//!
//! A declaration consists of axioms about the function ([`DeclaredEffect`]). Passes and the checker
//! rely on them, and nothing in the program implies them. The embedder answers for them; a machine
//! that tracks memory tests them at every call (`interp::Options::track_memory`).
//!
//! The instruction names the part of the declaration that it uses: `call_pure` may merge and move,
//! and a plain `call` of the same function may not. A version is thus complete without its module.
//! The verifier accepts an instruction only if the declaration allows it (rule `IMM-9`).

use crate::opcode::Opcode;
use std::fmt;

/// The effects of an imported function at most. A smaller effect comes later in the order.
///
/// Axioms of every effect except [`DeclaredEffect::Any`] and [`DeclaredEffect::Allocates`]: a call
/// changes no byte of a memory and no size, global, table or segment of the module. It moves no
/// reference: no collector runs. It calls no function of the module.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub enum DeclaredEffect {
    /// Anything.
    #[default]
    Any,
    /// It makes an object, whatever else it does to the heap: see [`DeclaredEffect::is_allocator`].
    Allocates,
    /// Effects outside of the module alone: the function may print, count, or end the run.
    Outside,
    /// No effect. The result depends on the arguments and on the state of the module: memories,
    /// their sizes, globals, tables and segments. The call returns, and neither traps nor exits.
    Reads,
    /// No effect, and the result depends on the arguments alone. The call returns, and neither
    /// traps nor exits.
    Pure,
}

impl DeclaredEffect {
    /// Every effect.
    pub const ALL: [DeclaredEffect; 5] = [
        DeclaredEffect::Any,
        DeclaredEffect::Allocates,
        DeclaredEffect::Outside,
        DeclaredEffect::Reads,
        DeclaredEffect::Pure,
    ];

    /// The effect with this name in the text form.
    pub fn from_name(name: &str) -> Option<DeclaredEffect> {
        DeclaredEffect::ALL.into_iter().find(|effect| effect.name() == name)
    }

    /// The name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            DeclaredEffect::Any => "any",
            DeclaredEffect::Allocates => "allocates",
            DeclaredEffect::Outside => "outside",
            DeclaredEffect::Reads => "reads",
            DeclaredEffect::Pure => "pure",
        }
    }

    /// Whether an instruction with this opcode may call a function that is declared so. An opcode
    /// that assumes less than the declaration says is allowed.
    pub fn allows(self, opcode: Opcode) -> bool {
        match opcode {
            Opcode::CallPure => self >= DeclaredEffect::Pure,
            Opcode::CallReads => self >= DeclaredEffect::Reads,
            Opcode::CallOutside => self >= DeclaredEffect::Outside,
            _ => true,
        }
    }

    /// Whether the number and the order of calls is observable. If not, calls appear in no trace.
    pub fn is_traced(self) -> bool {
        self < DeclaredEffect::Reads && !self.is_allocator()
    }

    /// Whether calls change no memory and move no reference: every effect but `any` and
    /// `allocates`.
    pub fn is_bounded(self) -> bool {
        self >= DeclaredEffect::Outside
    }

    /// Whether the function makes objects: `@new(BYTES: i32, WORD: i64, ...) -> ref`. It may be
    /// imported or defined.
    ///
    /// Example: `%p = call @new(%bytes, %word)` with the constants 24 and 5 << 48 returns a
    /// reference to 24 bytes. `ref_bits %p` is 5 << 48 plus the address of these bytes in the first
    /// memory. Passes may omit the call if code needs the bytes alone (`passes::RemoveObjects`).
    ///
    /// Axioms about a call with constant arguments:
    ///
    /// 1. It returns the reference. If space is short, it may end the run or return another word
    ///    instead; code without the call runs as if there was space. The call may move objects, as
    ///    a collector does. Otherwise it changes nothing that the program observes.
    /// 2. The upper half of the reference's word is that of `WORD`. The lower half is the address
    ///    of `BYTES` bytes, which no access traps at while the reference is in use.
    /// 3. No access reads or writes the bytes but those whose address comes from the reference. The
    ///    contents are unspecified until then.
    /// 4. The behaviour of the program does not depend on where an object lies, or on objects to
    ///    which nothing refers. No float depends on where an object lies, and no constant of the
    ///    program is the word of an object that moves.
    pub fn is_allocator(self) -> bool {
        self == DeclaredEffect::Allocates
    }

    /// Whether the function has no effects: it neither traps nor exits.
    pub fn is_none(self) -> bool {
        self >= DeclaredEffect::Reads
    }
}

impl fmt::Display for DeclaredEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
