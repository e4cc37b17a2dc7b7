//! Converts parallel moves into a sequence of moves.

use std::collections::BTreeMap;

/// A move: the slot written, then the slot read.
pub(super) type SlotMove = (u32, u32);

/// A sequence of moves with the same effect as all of `moves` at once. The slots written must be
/// distinct. `scratch` is a slot that no move names; it breaks cycles. Cost: `n log n`.
pub(super) fn sequentialize(moves: &[SlotMove], scratch: u32) -> Vec<SlotMove> {
    let mut source: BTreeMap<u32, u32> =
        moves.iter().copied().filter(|(to, from)| to != from).collect();
    let mut readers: BTreeMap<u32, u32> = BTreeMap::new();
    for from in source.values() {
        *readers.entry(*from).or_default() += 1;
    }
    let mut sequence = Vec::with_capacity(source.len());
    // A slot that no pending move reads may be written. Writing it can make the slot it reads
    // ready.
    let mut ready: Vec<u32> =
        source.keys().copied().filter(|to| !readers.contains_key(to)).collect();
    while let Some(to) = ready.pop() {
        let from = source.remove(&to).expect("a ready slot is written once");
        sequence.push((to, from));
        let left = readers.get_mut(&from).expect("every source was counted");
        *left -= 1;
        if *left == 0 && source.contains_key(&from) {
            ready.push(from);
        }
    }
    // Each remaining slot is read by exactly one remaining move, so the moves form disjoint cycles.
    while let Some((&first, _)) = source.first_key_value() {
        sequence.push((scratch, first));
        let mut to = first;
        loop {
            let from = source.remove(&to).expect("a cycle closes at its first slot");
            if from == first {
                sequence.push((to, scratch));
                break;
            }
            sequence.push((to, from));
            to = from;
        }
    }
    sequence
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests all sets of moves between five slots, each written at most once, against the
    /// definition.
    #[test]
    fn every_small_parallel_move() {
        const SLOTS: u32 = 5;
        // Digit `SLOTS` at the position of a slot means that no move writes the slot.
        for number in 0..(SLOTS + 1).pow(SLOTS) {
            let digit = |slot: u32| number / (SLOTS + 1).pow(slot) % (SLOTS + 1);
            let moves: Vec<SlotMove> =
                (0..SLOTS).filter(|s| digit(*s) < SLOTS).map(|s| (s, digit(s))).collect();
            let mut frame: Vec<u32> = (0..=SLOTS).collect();
            for (to, from) in sequentialize(&moves, SLOTS) {
                frame[to as usize] = frame[from as usize];
            }
            for slot in 0..SLOTS {
                let expected = if digit(slot) < SLOTS { digit(slot) } else { slot };
                assert_eq!(frame[slot as usize], expected, "slot {slot} after {moves:?}");
            }
        }
    }
}
