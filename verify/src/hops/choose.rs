//! Where a chain hops: at random, or as another chain did.

use super::{Exit, FULL_CHAIN, Hop};
use crate::prng::Prng;

/// Decides, hop by hop, how many visits to let pass and which edge to take.
#[derive(Clone, Debug)]
pub(super) enum Choices<'s> {
    Random {
        prng: Prng,
        /// Hops left.
        left: u32,
        /// Visits of points with entries that are left, if it goes on as in the first version.
        visits: u64,
        /// Visits to let pass before the first hop, besides.
        first: u64,
    },
    Script(std::slice::Iter<'s, Hop>),
}

impl<'s> Choices<'s> {
    /// A random chain for a run that visits so many points with entries.
    pub(super) fn random(mut prng: Prng, visits: u64, most: u32) -> Choices<'s> {
        // In a short run few hops, or all of them are at its start.
        let most = most.min(FULL_CHAIN.max(u32::try_from(visits / 3).unwrap_or(u32::MAX)));
        let left = prng.between(FULL_CHAIN.min(most), most);
        // Half of the chains begin anywhere, most of them not so late that there is no room for a
        // full one.
        let room = match prng.below(10) {
            0..=4 => 0,
            5..=8 => visits.saturating_sub(u64::from(FULL_CHAIN)),
            _ => visits,
        };
        let first = below(&mut prng, room);
        Choices::Random { prng, left, visits: visits - first, first }
    }

    /// The chain another one was.
    pub(super) fn script(hops: &'s [Hop]) -> Choices<'s> {
        Choices::Script(hops.iter())
    }

    /// The visits to let pass before the next hop; `None` when there is none.
    ///
    /// Hops are spread over what is left of the run, and one in four follows at once, on the
    /// landing point of the one before: only then does an entry read what the one before it had to
    /// provide for it alone.
    pub(super) fn wait(&mut self) -> Option<u64> {
        match self {
            Choices::Random { left: 0, .. } => None,
            Choices::Random { prng, left, visits, first } => {
                let room = 1 + *visits / u64::from(*left);
                let wait = if prng.chance(25) { 0 } else { below(prng, room) };
                *left -= 1;
                *visits = visits.saturating_sub(wait + 1);
                Some(wait + std::mem::take(first))
            }
            Choices::Script(hops) => hops.as_slice().first().map(|hop| hop.wait),
        }
    }

    /// One of the entries at the point, none of which may suit a script.
    pub(super) fn exit<'e, 'a>(&mut self, exits: &'e [Exit<'a>]) -> Option<&'e Exit<'a>> {
        match self {
            Choices::Random { prng, .. } => exits.get(prng.index(exits.len())),
            Choices::Script(hops) => {
                let edge = hops.next()?.edge;
                exits.iter().find(|e| e.edge == edge)
            }
        }
    }
}

/// A number below a bound, of runs of any length.
fn below(prng: &mut Prng, bound: u64) -> u64 {
    u64::from(prng.below(u32::try_from(bound).unwrap_or(u32::MAX)))
}
