//! The roots of native code: the words of frames that hold references a collector may move.
//!
//! The lowering declares each value of type `ref`. Cranelift spills each declared value that is
//! live across a call to a word of the frame, reloads it for later uses, and reports the words of
//! each call by its return address. A collector runs below a call alone, so no reference is in a
//! register meanwhile: callees save registers of their caller, but the caller reads none of them as
//! a reference.
//!
//! A word that `ref_bits` has read from a reference is a separate value. A collection does not
//! change it (`a_word_read_before_a_collection_stays`).

use cranelift_codegen::CompiledCode;

/// The roots of one call.
#[derive(Debug)]
struct CallRoots {
    /// The return address of the call, as an offset into the code.
    returns_to: u32,
    /// The index of its first word. The words of the next call follow.
    words: u32,
}

/// The roots of all calls of a piece of code, ordered by return address.
#[derive(Debug, Default)]
pub(crate) struct RootMaps {
    calls: Box<[CallRoots]>,
    /// The distances of the words below the frame pointer, in bytes.
    words: Box<[u32]>,
}

impl RootMaps {
    /// The roots that Cranelift reports. Linear in them.
    ///
    /// # Errors
    /// A message if Cranelift's output contradicts the assumptions made here.
    pub(crate) fn of(compiled: &CompiledCode) -> Result<RootMaps, String> {
        let (mut calls, mut words) = (Vec::new(), Vec::new());
        for (returns_to, span, map) in compiled.buffer.user_stack_maps() {
            calls.push(CallRoots { returns_to: *returns_to, words: words.len() as u32 });
            for (ty, offset) in map.entries() {
                // The span is the distance from the stack pointer to the frame pointer.
                let below = span.checked_sub(offset).filter(|below| *below >= ty.bytes());
                words.push(below.filter(|_| ty.bytes() == 8).ok_or_else(|| {
                    format!("the call before {returns_to:#x} has a root of type {ty} at {offset}")
                })?);
            }
        }
        if !calls.is_sorted_by_key(|call| call.returns_to) {
            return Err("the stack maps are not in the order of their calls".to_owned());
        }
        Ok(RootMaps { calls: calls.into(), words: words.into() })
    }

    /// The words that are roots during the call that returns to an offset of the code: their
    /// distances below the frame pointer, in bytes. Logarithmic in the calls.
    pub(crate) fn of_call(&self, returns_to: u32) -> &[u32] {
        let Ok(at) = self.calls.binary_search_by_key(&returns_to, |call| call.returns_to) else {
            return &[];
        };
        let end = self.calls.get(at + 1).map_or(self.words.len(), |next| next.words as usize);
        &self.words[self.calls[at].words as usize..end]
    }
}
