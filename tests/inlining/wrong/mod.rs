//! Forgeries: wrong claims about copies, wrong copies, steps across copies and across landing
//! points of continuations that do not follow, and entries that differ in little from right
//! entries. Each meets one demand of the checker alone.
//!
//! The seeded bugs of `tests/mutants/copy_demands.mutants` leave out one demand each. The trial
//! demands that the forgery of this name gets through then, and no test here can.

mod continuations;
pub(crate) mod copies;
pub(crate) mod frames;
pub(crate) mod hand;
mod known;
mod landings;
pub(crate) mod neighbors;
mod objects;
mod records;

/// A forgery.
pub(crate) struct Forgery {
    /// The name of the demand: the seeded bug that leaves it out.
    pub(crate) demand: &'static str,
    pub(crate) what: &'static str,
    /// The checker's word: `None` if it accepts the forgery.
    pub(crate) judge: Box<dyn Fn() -> Option<String>>,
    /// How that word begins.
    pub(crate) refusal: &'static str,
}

/// All forgeries.
pub(crate) fn all() -> Vec<Forgery> {
    let of_steps = [continuations::all(), landings::all(), known::all(), records::all()];
    let of_copies = [copies::all(), frames::all(), objects::all()];
    of_copies.into_iter().chain(of_steps).flatten().chain(neighbors::all()).collect()
}
