//! Exits that are described: where native code has what it hands over when it leaves through an OSR
//! point.
//!
//! Such an exit is a call of [`crate::sys::exit`]. Its operands may be anywhere, and Cranelift
//! tells where they are, in the form it has for the contexts of exceptions: a register that calls
//! keep, or a word of the frame. (Deoptimization by description instead of code: Hölzle, Chambers,
//! Ungar, "Debugging Optimized Code with Dynamic Deoptimization", PLDI 1992.)

use crate::lower::{Lowered, inst_of};
use crate::sys::{ExitFrame, saved_register};
use cranelift_codegen::{CompiledCode, ExceptionContextLoc, FinalizedMachExceptionHandler};
use ir::Type;
use std::collections::BTreeMap;

/// What an exit hands over, before the code is made.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// Its OSR point.
    pub(crate) number: u32,
    /// The values, with the bits of those that are constants: no code makes them.
    pub(crate) values: Vec<(Type, Option<u64>)>,
}

/// Where a value is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Place {
    /// A register of an [`ExitFrame`].
    Register(u8),
    /// So many bytes into the frame.
    Stack(u32),
    /// Nowhere: it is known.
    Constant(u64),
}

/// One exit.
#[derive(Debug)]
struct Exit {
    /// The address behind its call, in the code.
    returns_to: u32,
    number: u32,
    /// The first of its words; the last is where those of the next begin.
    words: u32,
}

/// A place in four bytes: a register, a word of the frame, or the number of a place that is
/// neither.
#[derive(Clone, Copy, Debug)]
struct Word(u32);

/// The first that stands for a word of the frame.
const FRAME: u32 = 8;
/// The first that stands for a place of the list.
const LISTED: u32 = 1 << 31;

/// The exits of a piece of code, by address.
#[derive(Debug, Default)]
pub(crate) struct Exits {
    exits: Box<[Exit]>,
    words: Box<[Word]>,
    /// Places that do not fit a word.
    places: Box<[Place]>,
}

impl Exits {
    /// Those of compiled code; exits that cannot be reached have none. Cost: linear.
    ///
    /// # Errors
    /// What is not as Cranelift says it is.
    pub(crate) fn of(compiled: &CompiledCode, lowered: &Lowered) -> Result<Exits, String> {
        if lowered.exits.is_empty() {
            return Ok(Exits::default());
        }
        let sources = compiled.buffer.get_srclocs_sorted();
        let mut found = Vec::with_capacity(lowered.exits.len());
        for site in compiled.buffer.call_sites() {
            // The range with the last byte of the call.
            let range = sources.get(sources.partition_point(|range| range.end < site.ret_addr));
            match range.and_then(|range| lowered.exits.get(&inst_of(range.loc)?)) {
                Some(shape) => found.push((site.ret_addr, shape, site.exception_handlers)),
                // Those of exits alone have it.
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

    /// Puts what the exit hands over into the buffer that returns to an offset, and beside narrow
    /// values what happens to be there; its OSR point. `None` when there is no such exit.
    ///
    /// # Safety
    /// The frame was made by [`crate::sys::exit`] for the code these are the exits of, and is still
    /// there.
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
                // SAFETY: the caller's contract.
                Place::Register(at) => unsafe { (*frame).register(at) },
                // SAFETY: as above; Cranelift told that the frame has the word.
                Place::Stack(offset) => unsafe { ExitFrame::stack(frame, offset) },
                Place::Constant(bits) => bits,
            };
            *word = held;
        }
        Some(exit.number)
    }

    /// Bytes that describe them.
    pub(crate) fn size(&self) -> usize {
        size_of_val(&*self.exits) + size_of_val(&*self.words) + size_of_val(&*self.places)
    }
}

/// The list of those places, while it is made: most exits of a function hand over the same
/// constants.
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
        // No call keeps a register for floats: the number would be that of another.
        ExceptionContextLoc::GPR(number) if !ty.is_float() => {
            let kept = saved_register(number).map(Place::Register);
            kept.ok_or_else(|| format!("a value in register {number}, which calls do not keep"))
        }
        ExceptionContextLoc::GPR(number) => {
            Err(format!("a float in register {number} over a call"))
        }
    }
}
