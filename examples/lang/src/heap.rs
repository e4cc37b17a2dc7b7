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
//! Nothing is collected: a program that allocates more than [`PAGES`] of 64 KiB ends with the
//! exception `out of memory`. A moving collector needs references that the compiler keeps track of,
//! which the IR does not have yet.

use crate::value::{self, FALSE, NIL, TRUE, Word, as_number, double, int, reference, tag, tag_of};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The pages of the heap: 1 GiB, the default limit of a machine of Osier. The system provides those
/// that are touched.
pub const PAGES: u32 = 16_384;
/// Where the address of the first free byte is.
pub const NEXT: u32 = 8;
/// Where native code leaves the exception that a call throws.
pub const EXCEPTION: u32 = 16;
/// Where the place in the text is at which the last exception was thrown.
pub const THROWN_AT: u32 = 24;
/// The state of the generator by which guards fail at random, in tests.
pub const CHAOS: u32 = 32;
/// Where native code leaves operands of functions that take many.
pub const OPERANDS: u32 = 64;
/// Where the variables of the program's outermost level begin.
pub const GLOBALS: u32 = OPERANDS + 256 * 8;
/// The most of these variables.
pub const MAX_GLOBALS: u32 = 8_000;
/// Where objects begin.
const FIRST: u32 = GLOBALS + MAX_GLOBALS * 8;

/// The offsets within heap objects.
pub mod at {
    /// Of the slots of an object.
    pub const SLOTS: u32 = 8;
    /// Of the address of further slots.
    pub const MORE: u32 = 4;
    /// Of the address of the elements of an array.
    pub const ELEMENTS: u32 = 8;
    /// Of the bytes of a string.
    pub const BYTES: u32 = 8;
    /// Of the cells of a closure.
    pub const CELLS: u32 = 8;
}

/// The result of native code that throws, in place of a value. The exception is at [`EXCEPTION`].
pub const THROWN: Word = (tag::CELL << 48) | 0xffff_ffff;

/// A value that was thrown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thrown(pub Word);

/// The memory during some instructions.
pub struct Heap<'a>(pub &'a mut [u8]);

impl Heap<'_> {
    /// Lays out an empty heap.
    pub fn start(&mut self) {
        self.set_u32(NEXT, FIRST);
        for global in 0..MAX_GLOBALS {
            self.set_word(GLOBALS + global * 8, NIL);
        }
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

    /// Allocates zeroed bytes.
    ///
    /// # Errors
    /// `out of memory`.
    #[inline]
    pub fn allocate(&mut self, bytes: u64) -> Result<u32, Thrown> {
        let start = self.u32(NEXT);
        let end = u64::from(start) + bytes.next_multiple_of(8);
        // The last bytes stay free for the message.
        if end > self.0.len() as u64 - 64 {
            return Err(self.out_of_memory());
        }
        self.set_u32(NEXT, end as u32);
        Ok(start)
    }

    #[cold]
    fn out_of_memory(&mut self) -> Thrown {
        let text = b"out of memory";
        let at = self.0.len() as u32 - 64;
        self.set_u32(at, text.len() as u32);
        let start = (at + at::BYTES) as usize;
        self.0[start..start + text.len()].copy_from_slice(text);
        Thrown(reference(tag::STRING, at))
    }

    /// Allocates a string.
    ///
    /// # Errors
    /// `out of memory`.
    pub fn string(&mut self, text: &[u8]) -> Result<Word, Thrown> {
        let at = self.allocate(8 + text.len() as u64)?;
        self.set_u32(at, text.len() as u32);
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
    /// `out of memory`.
    pub fn concat(&mut self, a: Word, b: Word) -> Result<Word, Thrown> {
        let (a, b) = (value::address(a), value::address(b));
        let (of_a, of_b) = (self.u32(a), self.u32(b));
        let made = self.allocate(8 + u64::from(of_a) + u64::from(of_b))?;
        self.set_u32(made, of_a + of_b);
        let mut copy = |from: u32, length: u32, to: u32| {
            let start = (from + at::BYTES) as usize;
            self.0.copy_within(start..start + length as usize, to as usize);
        };
        copy(a, of_a, made + at::BYTES);
        copy(b, of_b, made + at::BYTES + of_a);
        Ok(reference(tag::STRING, made))
    }

    /// Appends an element to an array.
    ///
    /// # Errors
    /// `out of memory`.
    pub fn push(&mut self, array: u32, element: Word) -> Result<(), Thrown> {
        let (length, capacity) = (self.u32(array), self.u32(array + 4));
        if length == capacity {
            let larger = (capacity * 2).max(4);
            let moved = self.allocate(u64::from(larger) * 8)?;
            let from = self.u32(array + at::ELEMENTS) as usize;
            self.0.copy_within(from..from + length as usize * 8, moved as usize);
            self.set_u32(array + 4, larger);
            self.set_u32(array + at::ELEMENTS, moved);
        }
        let elements = self.u32(array + at::ELEMENTS);
        self.set_word(elements + length * 8, element);
        self.set_u32(array, length + 1);
        Ok(())
    }

    /// Allocates an array of elements.
    ///
    /// # Errors
    /// `out of memory`.
    pub fn array(&mut self, elements: &[Word]) -> Result<Word, Thrown> {
        let (array, count) = (self.allocate(16)?, elements.len() as u32);
        let at = self.allocate(u64::from(count) * 8)?;
        self.set_u32(array, count);
        self.set_u32(array + 4, count);
        self.set_u32(array + at::ELEMENTS, at);
        for (index, element) in (0..).zip(elements) {
            self.set_word(at + index * 8, *element);
        }
        Ok(reference(tag::ARRAY, array))
    }

    /// Allocates an object of a shape with `inside` slots, all `nil`.
    ///
    /// # Errors
    /// `out of memory`.
    pub fn object(&mut self, shape: u32, inside: u32) -> Result<Word, Thrown> {
        let at = self.allocate(u64::from(at::SLOTS + inside * 8))?;
        self.set_u32(at, shape);
        for slot in 0..inside {
            self.set_word(at + at::SLOTS + slot * 8, NIL);
        }
        Ok(reference(tag::OBJECT, at))
    }

    /// Allocates a closure of a function with its cells.
    ///
    /// # Errors
    /// `out of memory`.
    pub fn closure(&mut self, number: u32, cells: &[Word]) -> Result<Word, Thrown> {
        let closure = self.allocate(u64::from(at::CELLS) + cells.len() as u64 * 8)?;
        self.set_u32(closure, number);
        self.set_u32(closure + 4, cells.len() as u32);
        for (index, cell) in (0..).zip(cells) {
            self.set_word(closure + at::CELLS + index * 8, *cell);
        }
        Ok(reference(tag::CLOSURE, closure))
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

/// Where a field is in an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// At this offset from its start.
    Inside(u32),
    /// At this offset from its further slots.
    More(u32),
}

/// A shape: which fields an object has, in which slots. Also called a hidden class or map.
#[derive(Clone, Debug)]
struct Shape {
    /// The slots in the object itself. Shapes that follow by further fields have as many.
    inside: u32,
    fields: HashMap<u32, u32>,
    /// By name of one more field: the shape.
    next: HashMap<u32, u32>,
}

/// The shapes of a program. Shape 0 has no field and the slots of `{}`.
#[derive(Debug, Default)]
pub struct Shapes {
    list: Vec<Shape>,
    names: Vec<String>,
    numbers: HashMap<String, u32>,
    /// By the number of slots inside: the shape without fields.
    empty: HashMap<u32, u32>,
}

/// The least slots in an object.
const LEAST_INSIDE: u32 = 4;

impl Shapes {
    /// The number of a name of fields.
    pub fn name(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    /// The name of this number.
    pub fn name_of(&self, number: u32) -> &str {
        &self.names[number as usize]
    }

    /// The shape of an object that is written with these fields.
    pub fn literal(&mut self, names: &[u32]) -> u32 {
        let inside = (names.len() as u32).max(LEAST_INSIDE);
        let known = self.empty.get(&inside).copied();
        let empty = known.unwrap_or_else(|| {
            let (fields, next) = (HashMap::new(), HashMap::new());
            self.list.push(Shape { inside, fields, next });
            self.empty.insert(inside, self.list.len() as u32 - 1);
            self.list.len() as u32 - 1
        });
        names.iter().fold(empty, |shape, name| self.with(shape, *name))
    }

    /// The shape with one more field.
    fn with(&mut self, shape: u32, name: u32) -> u32 {
        let of = &self.list[shape as usize];
        if let Some(next) = of.next.get(&name) {
            return *next;
        }
        let mut made = Shape { next: HashMap::new(), ..of.clone() };
        made.fields.insert(name, made.fields.len() as u32);
        self.list.push(made);
        let number = self.list.len() as u32 - 1;
        self.list[shape as usize].next.insert(name, number);
        number
    }

    /// The slots inside objects of a shape.
    pub fn inside(&self, shape: u32) -> u32 {
        self.list[shape as usize].inside
    }

    /// Where objects of a shape have a field.
    pub fn place(&self, shape: u32, name: u32) -> Option<Place> {
        let of = &self.list[shape as usize];
        let slot = *of.fields.get(&name)?;
        Some(match slot.checked_sub(of.inside) {
            None => Place::Inside(at::SLOTS + slot * 8),
            Some(more) => Place::More(more * 8),
        })
    }
}

/// The state beside the heap. It is behind locks, since functions that compiled code calls directly
/// get shared references alone.
#[derive(Debug, Default)]
pub struct Runtime {
    shapes: Mutex<Shapes>,
    output: Mutex<Vec<u8>>,
}

impl Runtime {
    /// The shapes.
    pub fn shapes(&self) -> MutexGuard<'_, Shapes> {
        self.shapes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The output of the program since the last call.
    pub fn take_output(&self) -> Vec<u8> {
        std::mem::take(&mut *self.output.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn print(&self, text: &str) {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        output.extend_from_slice(text.as_bytes());
        output.push(b'\n');
    }

    /// A field of an object, `nil` if it has none of this name.
    ///
    /// # Errors
    /// If the value is no object.
    pub fn field(&self, heap: &mut Heap<'_>, of: Word, name: u32) -> Result<Word, Thrown> {
        if tag_of(of) != tag::OBJECT {
            let what = format!("a {} has no field {}", value::type_name(of), self.show_name(name));
            return Err(heap.raise(&what));
        }
        let object = value::address(of);
        let place = self.shapes().place(heap.u32(object), name);
        Ok(place.map_or(NIL, |place| heap.word(heap.slot(object, place))))
    }

    fn show_name(&self, name: u32) -> String {
        self.shapes().name_of(name).to_owned()
    }

    /// Sets a field of an object, and adds it if there is none.
    ///
    /// # Errors
    /// If the value is no object, or `out of memory`.
    pub fn set_field(
        &self,
        heap: &mut Heap<'_>,
        (of, name): (Word, u32),
        value: Word,
    ) -> Result<(), Thrown> {
        if tag_of(of) != tag::OBJECT {
            let what = format!("a {} has no field {}", value::type_name(of), self.show_name(name));
            return Err(heap.raise(&what));
        }
        let (object, mut shapes) = (value::address(of), self.shapes());
        let shape = heap.u32(object);
        let place = match shapes.place(shape, name) {
            Some(place) => place,
            None => {
                let with = shapes.with(shape, name);
                let place = shapes.place(with, name).expect("the field was just added");
                // Further slots come four at a time.
                if let Place::More(offset) = place
                    && offset % 32 == 0
                {
                    let more = heap.allocate(u64::from(offset) + 32)?;
                    let from = heap.u32(object + at::MORE) as usize;
                    heap.0.copy_within(from..from + offset as usize, more as usize);
                    heap.set_u32(object + at::MORE, more);
                }
                heap.set_u32(object, with);
                place
            }
        };
        let slot = heap.slot(object, place);
        heap.set_word(slot, value);
        Ok(())
    }

    /// Calls a function of the library.
    ///
    /// # Errors
    /// If an argument is of another type than the function needs.
    pub fn builtin(
        &self,
        heap: &mut Heap<'_>,
        which: Builtin,
        args: &[Word],
    ) -> Result<Word, Thrown> {
        let number = |index: usize| as_number(args[index]);
        let is = |index: usize, tag: u64| tag_of(args[index]) == tag;
        match which {
            Builtin::Print => {
                let shown: Vec<String> = args.iter().map(|arg| heap.show(*arg)).collect();
                self.print(&shown.join(" "));
                return Ok(NIL);
            }
            Builtin::Len if is(0, tag::ARRAY) || is(0, tag::STRING) => {
                return Ok(value::number(heap.u32(value::address(args[0])).into()));
            }
            Builtin::Push if is(0, tag::ARRAY) => {
                heap.push(value::address(args[0]), args[1])?;
                return Ok(NIL);
            }
            Builtin::Pop if is(0, tag::ARRAY) => {
                let array = value::address(args[0]);
                let Some(last) = heap.u32(array).checked_sub(1) else { return Ok(NIL) };
                heap.set_u32(array, last);
                return Ok(heap.word(heap.u32(array + at::ELEMENTS) + last * 8));
            }
            Builtin::Str => {
                let shown = heap.show(args[0]);
                return heap.string(shown.as_bytes());
            }
            Builtin::Sqrt if let Some(n) = number(0) => return Ok(double(n.sqrt())),
            Builtin::Floor if let Some(n) = number(0) => return Ok(value::number(n.floor())),
            Builtin::Byte if is(0, tag::STRING) => {
                if let Some(index) = number(1).filter(|n| *n >= 0.0) {
                    let byte = heap.text(args[0]).get(index as usize);
                    return Ok(byte.map_or(NIL, |byte| int(i32::from(*byte))));
                }
            }
            Builtin::Char => {
                if let Some(byte) = number(0).filter(|n| (0.0..256.0).contains(n)) {
                    return heap.string(&[byte as u8]);
                }
            }
            _ => {}
        }
        let mut types = String::new();
        for arg in args {
            let _ = write!(types, " {}", value::type_name(*arg));
        }
        Err(heap.raise(&format!("{} does not take{types}", which.name())))
    }
}

/// A function of the library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Builtin {
    /// `print(..)`: a line.
    Print,
    /// `len(a)`: of an array or a string.
    Len,
    /// `push(a, x)`
    Push,
    /// `pop(a)`: the last element, `nil` of an empty array.
    Pop,
    /// `str(x)`
    Str,
    /// `sqrt(n)`
    Sqrt,
    /// `floor(n)`
    Floor,
    /// `byte(s, i)`: a byte of a string, `nil` behind its end.
    Byte,
    /// `char(n)`: the string of one byte.
    Char,
}

impl Builtin {
    /// All of them, with names and numbers of arguments.
    pub const ALL: [(&'static str, Builtin, Option<usize>); 9] = [
        ("print", Builtin::Print, None),
        ("len", Builtin::Len, Some(1)),
        ("push", Builtin::Push, Some(2)),
        ("pop", Builtin::Pop, Some(1)),
        ("str", Builtin::Str, Some(1)),
        ("sqrt", Builtin::Sqrt, Some(1)),
        ("floor", Builtin::Floor, Some(1)),
        ("byte", Builtin::Byte, Some(2)),
        ("char", Builtin::Char, Some(1)),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Builtin::ALL.iter().find(|(_, which, _)| *which == self).map_or("", |(name, ..)| name)
    }
}
