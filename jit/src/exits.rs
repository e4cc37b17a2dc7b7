//! Stack maps for described exits: where each value of an OSR point lies when its exit runs.
//!
//! A described exit is a call of [`crate::sys::exit`]. Its operands may lie in any callee-saved
//! register or any word of the frame. Cranelift reports their locations through the operands of
//! exception contexts, from which this module builds the stack map. (Deoptimization by description
//! instead of code: Hölzle, Chambers, Ungar, "Debugging Optimized Code with Dynamic
//! Deoptimization", PLDI 1992.)

use crate::lower::{ExitShape, Lowered, inst_of};
use crate::sys::{ExitFrame, saved_register};
use cranelift_codegen::{CompiledCode, ExceptionContextLoc, FinalizedMachExceptionHandler};
use ir::Type;
use std::collections::BTreeMap;

/// The location of a value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum ValueLocation {
    /// A register: an index into the registers of an [`ExitFrame`].
    Register(u8),
    /// A word of the frame: its offset from the stack pointer, in bytes.
    Stack(u32),
    /// No location: the value is this constant.
    Constant(u64),
}

/// The stack map of one exit.
#[derive(Debug)]
struct ExitMap {
    /// The return address of its call, as an offset into the code.
    returns_to: u32,
    number: u32,
    /// The index of its first word. The words of the next exit follow.
    words: u32,
}

/// A location in four bytes: a register, a word of the frame, or an index into the list of all
/// other locations.
#[derive(Clone, Copy, Debug)]
struct PackedLocation(u32);

/// The first encoding of a frame word. Registers have the encodings below.
const FRAME: u32 = 8;
/// The first encoding of an index into the list.
const LISTED: u32 = 1 << 31;

/// The stack maps of all exits of a piece of code, ordered by return address.
#[derive(Debug, Default)]
pub(crate) struct StackMaps {
    exits: Box<[ExitMap]>,
    words: Box<[PackedLocation]>,
    /// The locations that do not fit a [`PackedLocation`].
    places: Box<[ValueLocation]>,
}

impl StackMaps {
    /// Builds the stack maps of compiled code. Exits that Cranelift found unreachable lack a map.
    /// Linear in the call sites and the values of the exits.
    ///
    /// # Errors
    /// A message if Cranelift's output contradicts the assumptions made here.
    pub(crate) fn of(compiled: &CompiledCode, lowered: &Lowered) -> Result<StackMaps, String> {
        if lowered.exits.is_empty() {
            return Ok(StackMaps::default());
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
                        "the call before {:#x} has a stack map but belongs to no exit",
                        site.ret_addr
                    ));
                }
            }
        }
        found.sort_unstable_by_key(|(returns_to, ..)| *returns_to);
        let mut builder = StackMapBuilder::default();
        for (returns_to, shape, held) in found {
            builder.add(returns_to, shape.number, &locations(shape, held)?);
        }
        Ok(builder.finish())
    }

    /// The number of the OSR point of the exit whose call returns to `returns_to`, and the
    /// locations of its values in order. `None` if the code has no such exit. Logarithmic in the
    /// exits.
    fn exit(&self, returns_to: u32) -> Option<(u32, impl Iterator<Item = ValueLocation>)> {
        let at = self.exits.binary_search_by_key(&returns_to, |exit| exit.returns_to).ok()?;
        let exit = &self.exits[at];
        let end = self.exits.get(at + 1).map_or(self.words.len(), |next| next.words as usize);
        let words = &self.words[exit.words as usize..end];
        Some((exit.number, words.iter().map(|word| word.place(&self.places))))
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
        let (number, locations) = self.exit(returns_to)?;
        for (word, location) in buffer.iter_mut().zip(locations) {
            *word = match location {
                // SAFETY: the caller guarantees that `sys::exit` made the frame and has not popped
                // it, so its registers are initialized and readable.
                ValueLocation::Register(at) => unsafe { (*frame).register(at) },
                // SAFETY: the caller guarantees a live frame of this code. Cranelift reported for
                // this return address that the word lies inside the frame, above the `ExitFrame`.
                ValueLocation::Stack(offset) => unsafe { ExitFrame::stack(frame, offset) },
                ValueLocation::Constant(bits) => bits,
            };
        }
        Some(number)
    }

    /// The size of the stack maps in bytes.
    pub(crate) fn size(&self) -> usize {
        size_of_val(&*self.exits) + size_of_val(&*self.words) + size_of_val(&*self.places)
    }
}

/// The list of locations during construction. Most exits of a function hand over the same
/// constants, so equal locations share an entry.
#[derive(Default)]
struct OddLocations {
    places: Vec<ValueLocation>,
    numbers: BTreeMap<ValueLocation, u32>,
}

impl OddLocations {
    fn number(&mut self, place: ValueLocation) -> u32 {
        *self.numbers.entry(place).or_insert_with(|| {
            self.places.push(place);
            self.places.len() as u32 - 1
        })
    }
}

impl PackedLocation {
    fn new(place: ValueLocation, listed: &mut OddLocations) -> PackedLocation {
        PackedLocation(match place {
            ValueLocation::Register(at) => u32::from(at),
            ValueLocation::Stack(offset) if offset % 8 == 0 => FRAME + offset / 8,
            other => LISTED + listed.number(other),
        })
    }

    fn place(self, places: &[ValueLocation]) -> ValueLocation {
        match self.0 {
            at if at < FRAME => ValueLocation::Register(at as u8),
            at if at < LISTED => ValueLocation::Stack(8 * (at - FRAME)),
            at => places[(at - LISTED) as usize],
        }
    }
}

/// Stack maps under construction.
#[derive(Default)]
struct StackMapBuilder {
    exits: Vec<ExitMap>,
    words: Vec<PackedLocation>,
    odd: OddLocations,
}

impl StackMapBuilder {
    /// Adds an exit. Return addresses must ascend.
    fn add(&mut self, returns_to: u32, number: u32, locations: &[ValueLocation]) {
        self.exits.push(ExitMap { returns_to, number, words: self.words.len() as u32 });
        let odd = &mut self.odd;
        self.words.extend(locations.iter().map(|place| PackedLocation::new(*place, odd)));
    }

    fn finish(self) -> StackMaps {
        StackMaps {
            exits: self.exits.into(),
            words: self.words.into(),
            places: self.odd.places.into(),
        }
    }
}

/// The locations of the values of one exit, in order. `held` lists Cranelift's locations for the
/// values that are not constants, in order.
fn locations(
    shape: &ExitShape,
    held: &[FinalizedMachExceptionHandler],
) -> Result<Vec<ValueLocation>, String> {
    let mut held = held.iter();
    let values = shape.values.iter().map(|(ty, constant)| match constant {
        Some(bits) => Ok(ValueLocation::Constant(*bits)),
        None => match held.next() {
            Some(FinalizedMachExceptionHandler::Context(at)) => place(*ty, *at),
            other => Err(format!("expected the location of a value, found {other:?}")),
        },
    });
    values.collect()
}

fn place(ty: Type, at: ExceptionContextLoc) -> Result<ValueLocation, String> {
    match at {
        ExceptionContextLoc::SPOffset(offset) => Ok(ValueLocation::Stack(offset)),
        // No float register is callee-saved here, so the number of a float's register would name
        // the wrong register.
        ExceptionContextLoc::GPR(number) if !ty.is_float() => {
            let kept = saved_register(number).map(ValueLocation::Register);
            kept.ok_or_else(|| {
                format!("a value lies in register {number}, which is not callee-saved")
            })
        }
        ExceptionContextLoc::GPR(number) => {
            Err(format!("a float lies in register {number} across a call"))
        }
    }
}

#[cfg(test)]
mod tests;
