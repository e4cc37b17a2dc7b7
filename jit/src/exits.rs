//! Stack maps for described exits: where each value of an OSR point lies when its exit runs.
//!
//! A described exit is a call of [`crate::sys::exit`]. Its operands may lie in any callee-saved
//! register or any word of the frame. Cranelift reports their locations through the operands of
//! exception contexts, from which this module builds the stack map. (Deoptimization by description
//! instead of code: Hölzle, Chambers, Ungar, "Debugging Optimized Code with Dynamic
//! Deoptimization", PLDI 1992.)

use crate::lower::{Lowered, inst_of};
use crate::sys::{ExitFrame, saved_register};
use cranelift_codegen::{CompiledCode, ExceptionContextLoc, FinalizedMachExceptionHandler};
use ir::Type;
use std::collections::BTreeMap;

/// The values of one exit, before code generation.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// The number of the OSR point.
    pub(crate) number: u32,
    /// The values in order: each type, and the bits if the value is a constant. The exit needs no
    /// code for constants.
    pub(crate) values: Vec<(Type, Option<u64>)>,
}

/// The location of a value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Place {
    /// A register: an index into the registers of an [`ExitFrame`].
    Register(u8),
    /// A word of the frame: its offset from the stack pointer, in bytes.
    Stack(u32),
    /// No location: the value is this constant.
    Constant(u64),
}

/// The stack map of one exit.
#[derive(Debug)]
struct Exit {
    /// The return address of its call, as an offset into the code.
    returns_to: u32,
    number: u32,
    /// The index of its first word. Its words end where those of the next exit begin.
    words: u32,
}

/// A location in four bytes: a register, a word of the frame, or an index into the list of
/// locations that are neither.
#[derive(Clone, Copy, Debug)]
struct Word(u32);

/// The first encoding of a frame word. Registers have the encodings below.
const FRAME: u32 = 8;
/// The first encoding of an index into the list.
const LISTED: u32 = 1 << 31;

/// The stack maps of all exits of a piece of code, ordered by return address.
#[derive(Debug, Default)]
pub(crate) struct Exits {
    exits: Box<[Exit]>,
    words: Box<[Word]>,
    /// The locations that do not fit a [`Word`].
    places: Box<[Place]>,
}

impl Exits {
    /// Builds the stack maps of compiled code. Exits that Cranelift found unreachable have none.
    /// Linear in the call sites and the values of the exits.
    ///
    /// # Errors
    /// A message if Cranelift's output contradicts the assumptions made here.
    pub(crate) fn of(compiled: &CompiledCode, lowered: &Lowered) -> Result<Exits, String> {
        if lowered.exits.is_empty() {
            return Ok(Exits::default());
        }
        let sources = compiled.buffer.get_srclocs_sorted();
        let mut found = Vec::with_capacity(lowered.exits.len());
        for site in compiled.buffer.call_sites() {
            // The source range that contains the last byte of the call.
            let range = sources.get(sources.partition_point(|range| range.end < site.ret_addr));
            match range.and_then(|range| lowered.exits.get(&inst_of(range.loc)?)) {
                Some(shape) => found.push((site.ret_addr, shape, site.exception_handlers)),
                // Cranelift gives a frame offset to `try_call` alone, and the lowering uses
                // `try_call` for exits alone. Any other call needs no stack map.
                None if site.frame_offset.is_none() => {}
                None => {
                    return Err(format!(
                        "a call before {:#x} that hands over what no exit does",
                        site.ret_addr
                    ));
                }
            }
        }
        found.sort_unstable_by_key(|(returns_to, ..)| *returns_to);
        let (mut words, mut listed) = (Vec::new(), Listed::default());
        let mut exits = Vec::with_capacity(found.len());
        for (returns_to, shape, held) in found {
            exits.push(Exit { returns_to, number: shape.number, words: words.len() as u32 });
            describe(shape, held, &mut words, &mut listed)?;
        }
        Ok(Exits { exits: exits.into(), words: words.into(), places: listed.places.into() })
    }

    /// Copies the values of the exit whose call returns to `returns_to` into the buffer, and
    /// returns the number of its OSR point. The upper bits of a narrow value's word are
    /// unspecified. Returns `None` if the code has no such exit.
    ///
    /// # Safety
    /// [`crate::sys::exit`] made `frame` for a call from the code that these stack maps describe,
    /// and the frame has not been popped.
    pub(crate) unsafe fn read(
        &self,
        returns_to: u32,
        frame: *const ExitFrame,
        buffer: &mut [u64],
    ) -> Option<u32> {
        let at = self.exits.binary_search_by_key(&returns_to, |exit| exit.returns_to).ok()?;
        let exit = &self.exits[at];
        let end = self.exits.get(at + 1).map_or(self.words.len(), |next| next.words as usize);
        for (word, described) in buffer.iter_mut().zip(&self.words[exit.words as usize..end]) {
            let held = match described.place(&self.places) {
                // SAFETY: the caller guarantees that `sys::exit` made the frame and has not popped
                // it, so its registers are initialized and readable.
                Place::Register(at) => unsafe { (*frame).register(at) },
                // SAFETY: the caller guarantees a live frame of this code. Cranelift reported for
                // this return address that the word lies inside the frame, above the `ExitFrame`.
                Place::Stack(offset) => unsafe { ExitFrame::stack(frame, offset) },
                Place::Constant(bits) => bits,
            };
            *word = held;
        }
        Some(exit.number)
    }

    /// The size of the stack maps in bytes.
    pub(crate) fn size(&self) -> usize {
        size_of_val(&*self.exits) + size_of_val(&*self.words) + size_of_val(&*self.places)
    }
}

/// The list of locations during construction. Most exits of a function hand over the same
/// constants, so equal locations share an entry.
#[derive(Default)]
struct Listed {
    places: Vec<Place>,
    numbers: BTreeMap<Place, u32>,
}

impl Listed {
    fn number(&mut self, place: Place) -> u32 {
        *self.numbers.entry(place).or_insert_with(|| {
            self.places.push(place);
            self.places.len() as u32 - 1
        })
    }
}

impl Word {
    fn new(place: Place, listed: &mut Listed) -> Word {
        Word(match place {
            Place::Register(at) => u32::from(at),
            Place::Stack(offset) if offset % 8 == 0 => FRAME + offset / 8,
            other => LISTED + listed.number(other),
        })
    }

    fn place(self, places: &[Place]) -> Place {
        match self.0 {
            at if at < FRAME => Place::Register(at as u8),
            at if at < LISTED => Place::Stack(8 * (at - FRAME)),
            at => places[(at - LISTED) as usize],
        }
    }
}

/// Appends the words of one exit to `words`. `held` lists Cranelift's locations for the values that
/// are not constants, in order.
fn describe(
    shape: &Shape,
    held: &[FinalizedMachExceptionHandler],
    words: &mut Vec<Word>,
    listed: &mut Listed,
) -> Result<(), String> {
    let mut held = held.iter();
    for (ty, constant) in &shape.values {
        let place = match constant {
            Some(bits) => Place::Constant(*bits),
            None => match held.next() {
                Some(FinalizedMachExceptionHandler::Context(at)) => place(*ty, *at)?,
                other => return Err(format!("{other:?} where the place of a value was expected")),
            },
        };
        words.push(Word::new(place, listed));
    }
    Ok(())
}

fn place(ty: Type, at: ExceptionContextLoc) -> Result<Place, String> {
    match at {
        ExceptionContextLoc::SPOffset(offset) => Ok(Place::Stack(offset)),
        // No float register is callee-saved here, so the number of a float's register would name
        // the wrong register.
        ExceptionContextLoc::GPR(number) if !ty.is_float() => {
            let kept = saved_register(number).map(Place::Register);
            kept.ok_or_else(|| format!("a value in register {number}, which calls do not keep"))
        }
        ExceptionContextLoc::GPR(number) => {
            Err(format!("a float in register {number} over a call"))
        }
    }
}
