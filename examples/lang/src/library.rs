//! The functions of the language's library, and the functions on fields.

use crate::heap::{CHAR_BYTES, CHARS};
use crate::heap::{Heap, Place, Shapes, Thrown, at};
use crate::value::{self, NIL, Word, as_number, double, int, reference, tag, tag_of};
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The state beside the heap. It is behind locks, since functions that compiled code calls directly
/// get shared references alone.
#[derive(Debug)]
pub struct Runtime {
    shapes: Mutex<Shapes>,
    output: Mutex<Vec<u8>>,
    began: Instant,
}

impl Default for Runtime {
    fn default() -> Runtime {
        let (shapes, output) = Default::default();
        Runtime { shapes, output, began: Instant::now() }
    }
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

    /// A field of an object; `nil` if the object lacks it.
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

    /// Sets a field of an object, and adds a missing field.
    ///
    /// # Errors
    /// If the value is no object, or [`FULL`](crate::heap::FULL).
    pub fn set_field(
        &self,
        heap: &mut Heap<'_>,
        of: Word,
        name: u32,
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
                if let Place::More(offset) = place
                    && Heap::space_for(offset / 8) == offset / 8
                {
                    let more = heap.allocate(u64::from(Heap::space_for(offset / 8 + 1)) * 8)?;
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
            Builtin::Clock => return Ok(double(self.began.elapsed().as_nanos() as f64)),
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
                    return Ok(reference(tag::STRING, CHARS + byte as u32 * CHAR_BYTES));
                }
            }
            Builtin::Slice if is(0, tag::STRING) => {
                if let (Some(from), Some(to)) = (number(1), number(2)) {
                    let to = (to as u32).min(heap.u32(value::address(args[0])));
                    return heap.part(args[0], (from as u32).min(to)..to);
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
    /// `clock()`: the nanoseconds since the start of the machine.
    Clock,
    /// `slice(s, from, to)`: the bytes of a string from one index to before the other.
    Slice,
}

impl Builtin {
    /// All functions, with names and numbers of arguments.
    pub const ALL: [(&'static str, Builtin, Option<usize>); 11] = [
        ("print", Builtin::Print, None),
        ("len", Builtin::Len, Some(1)),
        ("push", Builtin::Push, Some(2)),
        ("pop", Builtin::Pop, Some(1)),
        ("str", Builtin::Str, Some(1)),
        ("sqrt", Builtin::Sqrt, Some(1)),
        ("floor", Builtin::Floor, Some(1)),
        ("byte", Builtin::Byte, Some(2)),
        ("char", Builtin::Char, Some(1)),
        ("clock", Builtin::Clock, Some(0)),
        ("slice", Builtin::Slice, Some(3)),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Builtin::ALL.iter().find(|(_, which, _)| *which == self).map_or("", |(name, ..)| name)
    }
}
