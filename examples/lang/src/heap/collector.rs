//! A copying collector: it moves all that the roots lead to from one half of the heap to the other
//! half (C. J. Cheney, *A nonrecursive list compacting algorithm*, 1970).
//!
//! An allocation that finds no space ends its instruction with [`FULL`](crate::heap::FULL). The
//! interpreter, or the function that native code calls, then collects and executes the instruction
//! once more. So an instruction allocates at most once, and before it changes anything.

use super::{EXCEPTION, GLOBALS, Heap, OPERANDS, Shapes, at, header};
use crate::value::{Word, address, reference, tag, tag_of};
use std::ops::Range;

/// The bytes from one collection to the next, at least: both halves then fit into a large cache.
pub(super) const LEAST: u32 = 8 << 20;
/// The bytes at the end of a half for objects that native code makes where it leaves: nothing may
/// move there.
const RESERVE: u32 = 64 << 10;
/// In the first half of an object: it has moved to the address in the second half.
const MOVED: u32 = u32::MAX;

/// A collection in progress.
pub struct Collection<'a, 'b> {
    heap: &'a mut Heap<'b>,
    shapes: &'a Shapes,
    from: Range<u32>,
    /// The first free byte of the half that objects move to.
    next: u32,
    /// Words of moved objects that may still lead to objects that have not moved.
    grey: Vec<Range<u32>>,
}

impl<'a, 'b> Collection<'a, 'b> {
    /// Begins a collection: moves all that globals, the exception and the first `operands` operands
    /// lead to.
    pub fn begin(heap: &'a mut Heap<'b>, shapes: &'a Shapes, operands: u32) -> Collection<'a, 'b> {
        let (space, first) = (heap.u32(header::SPACE), heap.u32(header::FIRST));
        let next = if space == first { first + heap.half() } else { first };
        let globals = GLOBALS..GLOBALS + heap.u32(header::GLOBALS) * 8;
        let roots = [globals, EXCEPTION..EXCEPTION + 8, OPERANDS..OPERANDS + operands * 8];
        let from = space..heap.u32(header::NEXT);
        heap.set_u32(header::SPACE, next);
        let mut made = Collection { heap, shapes, from, next, grey: roots.into() };
        made.scan();
        made
    }

    /// The word of a value from now on. Moves the object that it refers to.
    pub fn forward(&mut self, word: Word) -> Word {
        let (of, old) = (tag_of(word), address(word));
        let is_reference = matches!(of, tag::OBJECT..=tag::CLOSURE | tag::CELL);
        if !is_reference || !self.from.contains(&old) {
            return word;
        }
        let new = match of {
            tag::CELL if tag_of(self.heap.word(old)) == tag::CELL => address(self.heap.word(old)),
            tag::CELL => {
                let new = self.copy(old, 8, 0);
                self.heap.set_word(old, reference(tag::CELL, new));
                new
            }
            _ if self.heap.u32(old) == MOVED => self.heap.u32(old + 4),
            _ => {
                let new = self.object(of, old);
                self.heap.set_u32(old, MOVED);
                self.heap.set_u32(old + 4, new);
                new
            }
        };
        reference(of, new)
    }

    /// Moves an object with its header, and the block behind it that it alone refers to.
    fn object(&mut self, of: u64, old: u32) -> u32 {
        let first = self.heap.u32(old);
        match of {
            tag::STRING => {
                let bytes = at::BYTES + first;
                let new = self.copy(old, bytes, bytes);
                self.next = self.next.next_multiple_of(8);
                new
            }
            tag::CLOSURE => self.copy(old, at::CELLS + self.heap.u32(old + 4) * 8, at::CELLS),
            tag::ARRAY => {
                let elements = self.heap.u32(old + at::ELEMENTS);
                let capacity = self.heap.u32(old + at::CAPACITY);
                let new = self.copy(old, at::FIRST_ELEMENT, at::FIRST_ELEMENT);
                let moved = self.copy(elements, first * 8, 0);
                self.next = moved + capacity * 8;
                self.heap.set_u32(new + at::ELEMENTS, moved);
                new
            }
            _ => {
                let more = self.heap.u32(old + at::MORE);
                let (inside, outside) = self.shapes.slots(first);
                let new = self.copy(old, at::SLOTS + inside * 8, at::SLOTS);
                if outside > 0 {
                    let moved = self.copy(more, outside * 8, 0);
                    self.next = moved + Heap::space_for(outside) * 8;
                    self.heap.set_u32(new + at::MORE, moved);
                }
                new
            }
        }
    }

    /// Copies bytes; all bytes behind the first `header` are words. Returns where to.
    fn copy(&mut self, old: u32, bytes: u32, header: u32) -> u32 {
        let new = self.next;
        self.heap.0.copy_within(old as usize..(old + bytes) as usize, new as usize);
        self.next += bytes;
        if header < bytes {
            self.grey.push(new + header..new + bytes);
        }
        new
    }

    /// Moves all that is left to move.
    fn scan(&mut self) {
        while let Some(words) = self.grey.pop() {
            for at in words.step_by(8) {
                let word = self.forward(self.heap.word(at));
                self.heap.set_word(at, word);
            }
        }
    }

    /// Ends the collection, and sets the place where the next collection begins. Returns whether
    /// there is space now for the allocation.
    pub fn end(mut self) -> bool {
        self.scan();
        let Collection { heap, next, .. } = self;
        let wanted = heap.u32(header::WANTED);
        let start = heap.u32(header::SPACE);
        let (live, end) = (next - start, start + heap.half());
        heap.set_u32(header::NEXT, next);
        heap.set_u32(header::SURVIVED, next);
        let needed = u64::from(next) + u64::from(wanted);
        let limit = match heap.u32(header::STRESS) {
            0 => needed.max(u64::from(next) + u64::from(live.max(LEAST))),
            _ => needed,
        };
        let end = end - RESERVE;
        heap.set_u32(header::LIMIT, limit.min(end.into()) as u32);
        needed <= u64::from(end)
    }
}
