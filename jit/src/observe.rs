//! The interface of debuggers and profilers to native code: the existing pieces, and their names.
//!
//! An [`Engine`](crate::Engine) reports to its observers each new piece
//! ([`Engine::observed`](crate::Engine::observed)) and each freed piece. [`crate::perf`] and
//! [`crate::gdb`] have observers for tools.

use ir::{Func, Inst, Point};
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;
use transition::VersionKey;

/// The kinds of pieces of native code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PieceKind {
    /// A version of a function.
    Version(VersionKey),
    /// A continuation from a point.
    Continuation {
        /// The source point.
        at: Point,
        /// The version that the entry leads into. For several frames, the code behind them all.
        target: VersionKey,
    },
    /// A continuation that stops at its landing point ([`Engine::probe`](crate::Engine::probe)).
    Probe {
        /// The source point.
        at: Point,
    },
    /// Code between functions and the library. All functions with a signature share it.
    Stub,
}

/// A piece of native code.
///
/// Its [`Display`](fmt::Display) is a symbol, which distinguishes the pieces of a function:
///
/// | symbol | piece |
/// |---|---|
/// | `sum [version 5d1f09aa]` | a version, by a digest of its key |
/// | `sum@inst5 [continuation 5d1f09aa]` | the continuation of a point, by its target version |
/// | `sum@inst5 [probe]` | a probe |
/// | `stub.lazy.1.1` | a stub, with the numbers of parameters and results |
///
/// A version has the same digest in every run of one build of the program.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// The name of the function, or of the stub.
    pub name: &'a str,
    /// The kind.
    pub kind: PieceKind,
    /// The address of the first instruction.
    pub address: usize,
    /// The machine code.
    pub bytes: &'a [u8],
    /// The instructions that the code comes from, by ascending offset. Code behind the last offset,
    /// and in front of the first one, comes from no instruction, as a prologue does.
    pub parts: &'a [PiecePart],
}

/// A part of a piece of code, which comes from one instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PiecePart {
    /// The offsets of its first byte and of the byte behind it.
    pub bytes: Range<u32>,
    /// The function: for inlined code, the callee.
    pub func: Func,
    /// The instruction, of a version of that function.
    pub inst: Inst,
}

/// A place in the source of the embedder's language.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SourcePlace {
    /// The file, or the function.
    pub file: Arc<str>,
    /// The line, or the program counter.
    pub line: u32,
}

/// Maps the instructions of an embedder's functions to places in its source, so that profilers show
/// its lines or program counters ([`crate::perf`], [`crate::gdb`]). A front end notes the
/// instructions of each base as it builds it; [`ir::FrameStates::by_inst`] gives them from frame
/// states. The versions of a function share the numbers of instructions that passes have left in
/// place.
pub trait CodeSource: Send + Sync {
    /// The place of an instruction. `None` if the instruction has no place, for example because a
    /// pass made it. It then belongs to the place of the preceding code.
    fn place(&self, func: Func, inst: Inst) -> Option<SourcePlace>;
}

impl CodeSource for BTreeMap<(Func, Inst), SourcePlace> {
    fn place(&self, func: Func, inst: Inst) -> Option<SourcePlace> {
        self.get(&(func, inst)).cloned()
    }
}

impl Piece<'_> {
    /// The piece by places in the source: ranges of addresses, ascending, which cover the piece
    /// from the first code with a place on. Neighbours have different places. Linear in the parts.
    pub fn by_source(&self, source: &dyn CodeSource) -> Vec<(Range<usize>, SourcePlace)> {
        let mut ranges: Vec<(Range<usize>, SourcePlace)> = Vec::new();
        for part in self.parts {
            let Some(place) = source.place(part.func, part.inst) else { continue };
            let start = self.address + part.bytes.start as usize;
            match ranges.last_mut() {
                Some((_, last)) if *last == place => continue,
                Some((range, _)) => range.end = start,
                None => {}
            }
            ranges.push((start..self.address + self.bytes.len(), place));
        }
        ranges
    }
}

/// The digest of a version in symbols.
fn digest(key: VersionKey) -> u32 {
    // A hasher of the standard library without a random key.
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish() as u32
}

impl fmt::Display for Piece<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Names come from programs. A line break would end the symbol in a map of `perf`, and a
        // zero byte in other formats.
        for part in self.name.split(char::is_control).enumerate() {
            f.write_str(if part.0 > 0 { "?" } else { "" })?;
            f.write_str(part.1)?;
        }
        match self.kind {
            PieceKind::Version(key) => write!(f, " [version {:08x}]", digest(key)),
            PieceKind::Continuation { at, target } => {
                write!(f, "@{} [continuation {:08x}]", at.inst(), digest(target))
            }
            PieceKind::Probe { at } => write!(f, "@{} [probe]", at.inst()),
            PieceKind::Stub => Ok(()),
        }
    }
}

/// Observes each piece of native code of an engine.
///
/// The engine calls it on the thread that compiles or frees the code, and may hold a lock
/// meanwhile: an observer must not compile.
pub trait CodeObserver: Send + Sync {
    /// Code was made. No thread has executed it yet.
    fn added(&self, piece: &Piece<'_>);

    /// The engine frees the code at this address after this call. Other code may then get the
    /// address.
    fn freed(&self, address: usize) {
        let _ = address;
    }
}

#[cfg(test)]
mod tests {
    use super::{Piece, PieceKind};

    #[test]
    fn symbols_are_one_line() {
        let piece =
            Piece { name: "a\nb\0", kind: PieceKind::Stub, address: 16, bytes: &[], parts: &[] };
        assert_eq!(piece.to_string(), "a?b?");
    }
}
