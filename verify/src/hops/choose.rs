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
    },
    Script(std::slice::Iter<'s, Hop>),
}

impl<'s> Choices<'s> {
    /// A random chain for a run that visits so many points with entries.
    pub(super) fn random(mut prng: Prng, visits: u64, most: u32) -> Choices<'s> {
        let left = prng.between(FULL_CHAIN.min(most), most);
        Choices::Random { prng, left, visits }
    }

    /// The chain another one was.
    pub(super) fn script(hops: &'s [Hop]) -> Choices<'s> {
        Choices::Script(hops.iter())
    }

    /// The visits to let pass before the next hop; `None` when there is none.
    ///
    /// Hops are spread over what is left of the run, and one in four follows at once, on the landing point
    /// of the one before: only then does an entry read what the one before it had to provide for it alone.
    pub(super) fn wait(&mut self) -> Option<u64> {
        match self {
            Choices::Random { left: 0, .. } => None,
            Choices::Random { prng, left, visits } => {
                let room = *visits / u64::from(*left);
                let wait = if prng.chance(25) { 0 } else { u64::from(prng.below(room.min(1 << 31) as u32)) };
                *left -= 1;
                *visits = visits.saturating_sub(wait + 1);
                Some(wait)
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
