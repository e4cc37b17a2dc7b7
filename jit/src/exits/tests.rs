//! Tests of `jit::exits`.

use super::{StackMapBuilder, StackMaps, ValueLocation};
use crate::sys::ExitFrame;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

/// The words of the frame above the registers.
const WORDS: usize = 16;

/// The stack at a described exit.
#[repr(C)]
struct ModelStack {
    frame: ExitFrame,
    words: [u64; WORDS],
}

fn location() -> impl Strategy<Value = ValueLocation> {
    prop_oneof![
        (0..6u8).prop_map(ValueLocation::Register),
        (0..8 * (WORDS as u32 - 1) + 1).prop_map(ValueLocation::Stack),
        any::<u64>().prop_map(ValueLocation::Constant),
        Just(ValueLocation::Constant(7)),
    ]
}

/// The contents of a location, byte by byte.
fn contents(at: ValueLocation, registers: &[u64; 6], bytes: &[u8]) -> u64 {
    match at {
        ValueLocation::Register(at) => registers[usize::from(at)],
        ValueLocation::Stack(offset) => {
            let word = &bytes[offset as usize..offset as usize + 8];
            u64::from_le_bytes(word.try_into().expect("eight bytes"))
        }
        ValueLocation::Constant(bits) => bits,
    }
}

/// Reads an exit of the model. All locations must lie in its registers and words.
fn read(maps: &StackMaps, returns_to: u32, stack: &ModelStack, buffer: &mut [u64]) -> Option<u32> {
    let frame = std::ptr::from_ref(stack).cast::<ExitFrame>();
    // SAFETY: `stack` has the layout of a stack at an exit, and `location` makes only locations
    // in its registers and words. The pointer may read all of `stack`.
    unsafe { maps.read(returns_to, frame, buffer) }
}

proptest! {
    /// Reading gives the contents of the exit's locations for each return address of an exit,
    /// and fails for all other addresses.
    #[test]
    fn stack_maps_read_what_they_describe(
        exits in btree_map(0..64u32, (any::<u32>(), vec(location(), 0..12)), 0..8),
        registers: [u64; 6],
        words: [u64; WORDS],
    ) {
        let mut builder = StackMapBuilder::default();
        for (returns_to, (number, locations)) in &exits {
            builder.add(*returns_to, *number, locations);
        }
        let maps = builder.finish();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let stack = ModelStack { frame: ExitFrame::of_test(registers), words };
        for returns_to in 0..64 {
            let mut buffer = [u64::MAX; 12];
            let number = read(&maps, returns_to, &stack, &mut buffer);
            let expected = exits.get(&returns_to);
            prop_assert_eq!(number, expected.map(|(number, _)| *number));
            let locations = expected.map_or(&[][..], |(_, locations)| locations);
            for (word, at) in buffer.iter().zip(locations) {
                prop_assert_eq!(*word, contents(*at, &registers, &bytes));
            }
            prop_assert!(buffer[locations.len()..].iter().all(|word| *word == u64::MAX));
        }
    }
}
