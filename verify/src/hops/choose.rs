//! The choices of a chain: random, or replayed from an earlier chain.

use super::{FULL_CHAIN, Hop, HopExit};
use crate::prng::Prng;

/// Decides for each hop how many visits pass before it, and which edge the hop takes.
#[derive(Clone, Debug)]
pub(super) enum Choices<'s> {
    Random {
        prng: Prng,
        /// Hops that are left.
        left: u32,
        /// Remaining visits of points with entries, estimated from the first version.
        visits: u64,
        /// Additional visits that pass before the first hop.
        first: u64,
    },
    Script(std::slice::Iter<'s, Hop>),
}

impl<'s> Choices<'s> {
    /// Choices for a random chain of at most `most` hops, in a run that visits points with entries
    /// `visits` times.
    pub(super) fn random(mut prng: Prng, visits: u64, most: u32) -> Choices<'s> {
        // A third of the visits at most, or in a short run all hops would be at its start. The
        // bound never goes below a full chain.
        let most = most.min(FULL_CHAIN.max(u32::try_from(visits / 3).unwrap_or(u32::MAX)));
        let left = prng.between(FULL_CHAIN.min(most), most);
        // Half of the chains may hop from the first visit on. Most others start anywhere that
        // leaves room for a full chain, and one in ten starts anywhere at all.
        let room = match prng.below(10) {
            0..=4 => 0,
            5..=8 => visits.saturating_sub(u64::from(FULL_CHAIN)),
            _ => visits,
        };
        let first = below(&mut prng, room);
        Choices::Random { prng, left, visits: visits - first, first }
    }

    /// The choices of an earlier chain.
    pub(super) fn script(hops: &'s [Hop]) -> Choices<'s> {
        Choices::Script(hops.iter())
    }

    /// The number of visits that pass before the next hop; `None` if no hop is left.
    ///
    /// Hops are spread over the rest of the run, but one in four follows at once, at the landing
    /// point of the previous hop. Only then does an entry read values that the previous entry
    /// provides for it alone.
    pub(super) fn wait(&mut self) -> Option<u64> {
        match self {
            Choices::Random { left: 0, .. } => None,
            Choices::Random { prng, left, visits, first } => {
                // An even share of the remaining visits for each remaining hop.
                let room = 1 + *visits / u64::from(*left);
                let wait = if prng.chance(25) { 0 } else { below(prng, room) };
                *left -= 1;
                *visits = visits.saturating_sub(wait + 1);
                Some(wait + std::mem::take(first))
            }
            Choices::Script(hops) => hops.as_slice().first().map(|hop| hop.wait),
        }
    }

    /// One of the entries at the point; `None` if the edge of an earlier chain has no entry there.
    pub(super) fn exit<'e, 'a>(&mut self, exits: &'e [HopExit<'a>]) -> Option<&'e HopExit<'a>> {
        match self {
            Choices::Random { prng, .. } => exits.get(prng.index(exits.len())),
            Choices::Script(hops) => {
                let edge = hops.next()?.edge;
                exits.iter().find(|e| e.edge == edge)
            }
        }
    }
}

/// A random number below a bound. Bounds beyond 2^32 are cut, which no run reaches.
fn below(prng: &mut Prng, bound: u64) -> u64 {
    u64::from(prng.below(u32::try_from(bound).unwrap_or(u32::MAX)))
}
