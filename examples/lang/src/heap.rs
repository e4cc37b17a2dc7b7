//! The heap, and the runtime functions on it.
//!
//! Addresses are offsets of 32 bits within one range of bytes (a *cage*), which may be a memory of
//! the IR: loads and stores of compiled code are then ordinary operations that passes optimize.
//!
//! ```text
//! object   shape: u32, address of more slots: u32, slots: [word; as many as the shape has inside]
//! array    length: u32, capacity: u32, address of the elements: u32, 0: u32
//! string   length: u32, 0: u32, bytes
//! closure  number of its function: u32, number of its cells: u32, cells: [word]
//! cell     word
//! ```
//!
//! From the start: numbers of the heap itself ([`header`]), variables of the outermost level,
//! strings that never move, and two halves, of which one is in use ([`collector`]).

use crate::value::{self, FALSE, NIL, TRUE, Word, as_number, reference, tag, tag_of};

pub mod collector;
mod shapes;

pub use shapes::{Place, Shapes};

/// The pages of the heap: 256 MiB. The system provides pages when they are touched.
pub const PAGES: u32 = 4_096;
/// Where native code leaves the exception that a call throws.
pub const EXCEPTION: u32 = 48;
/// Where native code leaves operands of functions that take many.
pub const OPERANDS: u32 = 64;
/// Where the variables of the program's outermost level begin.
pub const GLOBALS: u32 = OPERANDS + 256 * 8;
/// The most of these variables.
pub const MAX_GLOBALS: u32 = 8_000;
/// Where the strings of one byte begin, [`CHAR_BYTES`] for each.
pub const CHARS: u32 = GLOBALS + MAX_GLOBALS * 8;
/// The bytes of a string of one byte.
pub const CHAR_BYTES: u32 = 16;
/// Where the message of an exhausted heap is, and behind it the constants.
const MESSAGE: u32 = CHARS + 256 * CHAR_BYTES;

/// Where the numbers of the heap are, of 32 bits.
pub mod header {
    /// The first free byte.
    pub const NEXT: u32 = 8;
    /// Where the free bytes end.
    pub const LIMIT: u32 = 12;
    /// The half in use.
    pub const SPACE: u32 = 16;
    /// The first half.
    pub const FIRST: u32 = 20;
    /// The bytes of the allocation that found no space.
    pub const WANTED: u32 = 24;
    /// Whether every allocation collects, in tests.
    pub const STRESS: u32 = 28;
    /// The number of variables of the outermost level.
    pub const GLOBALS: u32 = 32;
    /// The place in the text at which the last exception was thrown.
    pub const THROWN_AT: u32 = 36;
    /// The guards of native code until one fails for no reason, in tests.
    pub const CHAOS: u32 = 40;
    /// Where the objects that have survived the last collection end.
    pub const SURVIVED: u32 = 44;
}

/// The offsets within heap objects.
pub mod at {
    /// Of the slots of an object.
    pub const SLOTS: u32 = 8;
    /// Of the number of elements that an array has space for.
    pub const CAPACITY: u32 = 4;
    /// Of the address of further slots.
    pub const MORE: u32 = 4;
    /// Of the address of the elements of an array.
    pub const ELEMENTS: u32 = 8;
    /// Of the first element of a new array, from its start.
    pub const FIRST_ELEMENT: u32 = 16;
    /// Of the bytes of a string.
    pub const BYTES: u32 = 8;
    /// Of the cells of a closure.
    pub const CELLS: u32 = 8;
}

/// The result of native code that throws, in place of a value. The exception is at [`EXCEPTION`].
pub const THROWN: Word = (tag::CELL << 48) | 0xffff_ffff;

/// The end of an allocation without space, in place of a value. The instruction is to be executed
/// once more behind a collection.
pub const FULL: Word = THROWN - 1;

/// A value that was thrown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thrown(pub Word);

/// The exception of a heap that is full of live objects.
pub const OUT_OF_MEMORY: Thrown = Thrown((tag::STRING << 48) | MESSAGE as u64);

/// The memory during some instructions.
pub struct Heap<'a>(pub &'a mut [u8]);

impl Heap<'_> {
    /// Lays out an empty heap. Objects allocated until [`Heap::open`] never move.
    pub fn start(&mut self, globals: u32) {
        self.set_u32(header::NEXT, MESSAGE);
        self.set_u32(header::LIMIT, self.0.len() as u32);
        self.set_u32(header::GLOBALS, globals);
        (0..globals).for_each(|global| self.set_word(GLOBALS + global * 8, NIL));
        self.set_word(EXCEPTION, NIL);
        for byte in 0..256 {
            self.set_u32(CHARS + byte * CHAR_BYTES, 1);
            self.set_u32(CHARS + byte * CHAR_BYTES + at::BYTES, byte);
        }
        let message = self.string(b"out of memory");
        debug_assert_eq!(message, Ok(OUT_OF_MEMORY.0));
    }

    /// The bytes allocated since the last collection, or since the first half began.
    pub fn allocated_since(&self) -> u32 {
        self.u32(header::NEXT) - self.u32(header::SURVIVED)
    }

    /// Begins the first half of the heap behind the objects allocated so far. With `is_stressed`,
    /// every allocation collects.
    pub fn open(&mut self, is_stressed: bool) {
        let first = self.u32(header::NEXT);
        let least = if is_stressed { 0 } else { collector::LEAST };
        self.set_u32(header::FIRST, first);
        self.set_u32(header::SPACE, first);
        self.set_u32(header::SURVIVED, first);
        self.set_u32(header::LIMIT, first + least);
        self.set_u32(header::STRESS, is_stressed.into());
    }

    /// The bytes of one half.
    fn half(&self) -> u32 {
        (self.0.len() as u32 - self.u32(header::FIRST)) / 16 * 8
    }

    /// The number at an address.
    #[inline(always)]
    pub fn u32(&self, at: u32) -> u32 {
        let at = at as usize;
        u32::from_le_bytes(self.0[at..at + 4].try_into().expect("4 bytes"))
    }

    /// Sets the number at an address.
    #[inline(always)]
    pub fn set_u32(&mut self, at: u32, value: u32) {
        let at = at as usize;
        self.0[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// The word at an address.
    #[inline(always)]
    pub fn word(&self, at: u32) -> Word {
        let at = at as usize;
        Word::from_le_bytes(self.0[at..at + 8].try_into().expect("8 bytes"))
    }

    /// Sets the word at an address.
    #[inline(always)]
    pub fn set_word(&mut self, at: u32, word: Word) {
        let at = at as usize;
        self.0[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }

    /// Allocates bytes.
    ///
    /// # Errors
    /// [`FULL`].
    #[inline]
    pub fn allocate(&mut self, bytes: u64) -> Result<u32, Thrown> {
        let (start, bytes) = (self.u32(header::NEXT), bytes.next_multiple_of(8));
        let end = u64::from(start) + bytes;
        if end > self.u32(header::LIMIT).into() {
            self.set_u32(header::WANTED, bytes.min(u64::from(u32::MAX)) as u32);
            return Err(Thrown(FULL));
        }
        self.set_u32(header::NEXT, end as u32);
        Ok(start)
    }

    /// Takes bytes behind the limit, where a collection must not happen. `None` at the end of the
    /// half. The next allocation of more than the rest collects.
    pub fn beyond_limit(&mut self, bytes: u32) -> Option<u32> {
        let (start, end) = (self.u32(header::NEXT), self.u32(header::SPACE) + self.half());
        let next = start.checked_add(bytes).filter(|next| *next <= end)?;
        self.set_u32(header::NEXT, next);
        Some(start)
    }

    /// Whether objects lie behind the limit.
    pub fn is_beyond_limit(&self) -> bool {
        self.u32(header::NEXT) > self.u32(header::LIMIT)
    }

    /// Allocates a string.
    ///
    /// # Errors
    /// [`FULL`].
    pub fn string(&mut self, text: &[u8]) -> Result<Word, Thrown> {
        let at = self.allocate(8 + text.len() as u64)?;
        self.set_u32(at, text.len() as u32);
        self.set_u32(at + 4, 0);
        let start = (at + at::BYTES) as usize;
        self.0[start..start + text.len()].copy_from_slice(text);
        Ok(reference(tag::STRING, at))
    }

    /// An exception with a message.
    pub fn raise(&mut self, message: &str) -> Thrown {
        self.string(message.as_bytes()).map_or_else(|full| full, Thrown)
    }

    /// The bytes of a string.
    pub fn text(&self, word: Word) -> &[u8] {
        let at = value::address(word);
        let start = (at + at::BYTES) as usize;
        &self.0[start..start + self.u32(at) as usize]
    }

    /// A value as `print` shows it.
    pub fn show(&self, word: Word) -> String {
        match (tag_of(word), as_number(word)) {
            (_, Some(number)) => show_number(number),
            (tag::STRING, _) => String::from_utf8_lossy(self.text(word)).into_owned(),
            (tag::ARRAY, _) => format!("array of {}", self.u32(value::address(word))),
            (tag::OBJECT, _) => "object".to_owned(),
            (tag::CLOSURE, _) => "function".to_owned(),
            _ if word == TRUE => "true".to_owned(),
            _ if word == FALSE => "false".to_owned(),
            _ => "nil".to_owned(),
        }
    }

    /// Whether two values are equal: numbers as numbers, strings by their bytes, others by their
    /// addresses.
    pub fn equal(&self, a: Word, b: Word) -> bool {
        if let (Some(a), Some(b)) = (as_number(a), as_number(b)) {
            return a == b;
        }
        a == b
            || tag_of(a) == tag::STRING && tag_of(b) == tag::STRING && self.text(a) == self.text(b)
    }

    /// Joins two strings.
    ///
    /// # Errors
    /// [`FULL`].
    pub fn concat(&mut self, a: Word, b: Word) -> Result<Word, Thrown> {
        let (a, b) = (value::address(a), value::address(b));
        let (of_a, of_b) = (self.u32(a), self.u32(b));
        if of_a == 0 || of_b == 0 {
            return Ok(reference(tag::STRING, if of_a == 0 { b } else { a }));
        }
        let made = self.allocate(8 + u64::from(of_a) + u64::from(of_b))?;
        self.set_u32(made, of_a + of_b);
        self.set_u32(made + 4, 0);
        // All objects are in front of the new object.
        let (old, new) = self.0.split_at_mut((made + at::BYTES) as usize);
        let (first, second) = new.split_at_mut(of_a as usize);
        let text = |at: u32, length: u32| &old[(at + at::BYTES) as usize..][..length as usize];
        first.copy_from_slice(text(a, of_a));
        second[..of_b as usize].copy_from_slice(text(b, of_b));
        Ok(reference(tag::STRING, made))
    }

    /// Allocates a string of bytes within another.
    ///
    /// # Errors
    /// [`FULL`].
    pub fn part(&mut self, of: Word, bytes: std::ops::Range<u32>) -> Result<Word, Thrown> {
        let (length, start) = (bytes.len() as u32, value::address(of) + at::BYTES + bytes.start);
        let made = self.allocate(8 + u64::from(length))?;
        self.set_word(made, length.into());
        let start = start as usize;
        self.0.copy_within(start..start + length as usize, (made + at::BYTES) as usize);
        Ok(reference(tag::STRING, made))
    }

    /// Appends an element to an array.
    ///
    /// # Errors
    /// [`FULL`].
    pub fn push(&mut self, array: u32, element: Word) -> Result<(), Thrown> {
        let (length, capacity) = (self.u32(array), self.u32(array + at::CAPACITY));
        if length == capacity {
            let larger = (capacity * 2).max(4);
            let moved = self.allocate(u64::from(larger) * 8)?;
            let from = self.u32(array + at::ELEMENTS) as usize;
            self.0.copy_within(from..from + length as usize * 8, moved as usize);
            self.set_u32(array + at::CAPACITY, larger);
            self.set_u32(array + at::ELEMENTS, moved);
        }
        let elements = self.u32(array + at::ELEMENTS);
        self.set_word(elements + length * 8, element);
        self.set_u32(array, length + 1);
        Ok(())
    }

    /// The elements that a new array of so many has space for. An empty array is to grow.
    pub(crate) fn capacity(count: u32) -> u32 {
        if count == 0 { 4 } else { count }
    }

    /// Allocates an array of elements.
    ///
    /// # Errors
    /// [`FULL`].
    pub fn array(&mut self, elements: &[Word]) -> Result<Word, Thrown> {
        let count = elements.len() as u32;
        let capacity = Heap::capacity(count);
        let array = self.allocate(u64::from(at::FIRST_ELEMENT + capacity * 8))?;
        self.set_u32(array, count);
        self.set_u32(array + at::CAPACITY, capacity);
        self.set_u32(array + at::ELEMENTS, array + at::FIRST_ELEMENT);
        for (index, element) in (0..).zip(elements) {
            self.set_word(array + at::FIRST_ELEMENT + index * 8, *element);
        }
        Ok(reference(tag::ARRAY, array))
    }

    /// Allocates the cell of a variable.
    ///
    /// # Errors
    /// [`FULL`].
    pub fn cell(&mut self, word: Word) -> Result<Word, Thrown> {
        let cell = self.allocate(8)?;
        self.set_word(cell, word);
        Ok(reference(tag::CELL, cell))
    }

    /// Allocates an object of a shape with `inside` slots, all `nil`.
    ///
    /// # Errors
    /// [`FULL`].
    pub fn object(&mut self, shape: u32, inside: u32) -> Result<Word, Thrown> {
        let at = self.allocate(u64::from(at::SLOTS + inside * 8))?;
        self.set_u32(at, shape);
        self.set_u32(at + at::MORE, 0);
        for slot in 0..inside {
            self.set_word(at + at::SLOTS + slot * 8, NIL);
        }
        Ok(reference(tag::OBJECT, at))
    }

    /// Allocates a closure of a function with its cells.
    ///
    /// # Errors
    /// [`FULL`].
    pub fn closure(&mut self, number: u32, cells: &[Word]) -> Result<Word, Thrown> {
        let closure = self.allocate(u64::from(at::CELLS) + cells.len() as u64 * 8)?;
        self.set_u32(closure, number);
        self.set_u32(closure + 4, cells.len() as u32);
        for (index, cell) in (0..).zip(cells) {
            self.set_word(closure + at::CELLS + index * 8, *cell);
        }
        Ok(reference(tag::CLOSURE, closure))
    }

    /// The slots of a block of further slots, some of them in use: they come four at a time.
    pub(crate) fn space_for(slots: u32) -> u32 {
        slots.next_multiple_of(4)
    }

    /// The address of a slot of an object.
    #[inline(always)]
    pub fn slot(&self, object: u32, place: Place) -> u32 {
        match place {
            Place::Inside(offset) => object + offset,
            Place::More(offset) => self.u32(object + at::MORE) + offset,
        }
    }
}

/// A number as `print` shows it: without a point if it is whole.
pub fn show_number(number: f64) -> String {
    match number {
        n if n.is_nan() => "nan".to_owned(),
        n if n == n.trunc() && n.abs() < 1e15 => format!("{}", n as i64),
        n if n.abs() >= 1e15 || n.abs() < 1e-5 => format!("{n:e}"),
        n => format!("{n}"),
    }
}
