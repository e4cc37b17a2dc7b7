//! The values that an entry must provide.

/// The values of the target version that an entry must provide at its landing point.
///
/// Example: a loop adds to `%s`, and no later code reads `%s`. [`Demand::Needed`] omits `%s`;
/// [`Demand::Live`] includes it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Demand {
    /// The values that an effect, a trap, a branch or a result still depends on ([`ir::needed`]).
    /// After a transition, values that feed only dead code have arbitrary contents. The levels
    /// count them as not live.
    #[default]
    Needed,
    /// Every live value, operands of dead code included: a debugger needs these.
    Live,
}
