//! The levels of reconstruction: which values of the source version compensation code may read.

use std::fmt;

/// How much compensation code may read and rebuild. JIT authors pay for the levels differently, so
/// reports list them apart. Each level includes the abilities of the level before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Level {
    /// Nothing: every value needed is live under its own id, and the compensation code is empty.
    Empty,
    /// Values live at the source point, and pure operations on them.
    Live,
    /// [`Level::Live`], the function's arguments, and block parameters whose incoming values are
    /// all one class.
    LiveE,
    /// [`Level::LiveE`], and live members of a value's class, which `replace_all` actions link.
    Alias,
    /// [`Level::Alias`], and values available but not live: the *kept* values.
    Avail,
}

impl Level {
    /// Every level, each including the level before.
    pub const ALL: [Level; 5] =
        [Level::Empty, Level::Live, Level::LiveE, Level::Alias, Level::Avail];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Empty => "empty",
            Level::Live => "live",
            Level::LiveE => "live_e",
            Level::Alias => "alias",
            Level::Avail => "avail",
        }
    }

    /// The level with this name.
    pub fn from_name(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|l| l.name() == name)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
