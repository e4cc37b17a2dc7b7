//! What an entry has to provide.

/// Which values of the target version an entry has to provide at its landing point.
///
/// Example: where `%s` is summed up in a loop and never read again, [`Demand::Needed`] leaves `%s`
/// out and [`Demand::Live`] asks for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Demand {
    /// The values that an effect, a trap, a branch or a result still depends on ([`ir::needed`]).
    /// Values that feed dead code alone hold anything afterwards, and the levels count them as not
    /// live.
    #[default]
    Needed,
    /// Every live value, operands of dead code included: a debugger needs these.
    Live,
}
