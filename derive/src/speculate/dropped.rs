//! Why a speculation drops assumptions.

use super::{MAX_ASSUMPTIONS, MAX_PINS, PIN_TURNS};
use crate::driver::Why;
use std::fmt;

/// Why an assumption was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dropped {
    /// No proved entry leads back from the assumption.
    NoExit(Why),
    /// No proved entry leads back from the assumption, which keeps [`MAX_PINS`] values already.
    TooManyPins(Why),
    /// No proved entry leads back from the assumption, and [`PIN_TURNS`] turns have pinned values.
    NoPinTurnLeft(Why),
    /// The place is unreachable.
    NeverReached,
    /// In inlined code, the value is a constant with other bits.
    NeverHolds,
    /// In each turn, dropping some assumptions took the exits of others.
    NoTurnLeft,
    /// [`MAX_ASSUMPTIONS`] other assumptions precede this one in the plan.
    TooMany,
    /// The next turn would exceed [`super::Plan::work`].
    NoWorkLeft,
}

impl Dropped {
    /// The name of the reason in reports.
    pub const fn name(&self) -> &'static str {
        match self {
            Dropped::NoExit(why) => why.name(),
            Dropped::TooManyPins(_) => "too_many_pins",
            Dropped::NoPinTurnLeft(_) => "no_pin_turn_left",
            Dropped::NeverReached => "never_reached",
            Dropped::NeverHolds => "never_holds",
            Dropped::NoTurnLeft => "no_turn_left",
            Dropped::TooMany => "too_many",
            Dropped::NoWorkLeft => "no_work_left",
        }
    }

    /// Why the assumption has no exit. `None` if it was dropped for another reason.
    pub const fn no_exit(&self) -> Option<&Why> {
        match self {
            Dropped::NoExit(why) | Dropped::TooManyPins(why) | Dropped::NoPinTurnLeft(why) => {
                Some(why)
            }
            _ => None,
        }
    }
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(why) = self.no_exit() {
            write!(f, "no entry leads back from it: {why}")?;
        }
        match self {
            Dropped::NoExit(_) => Ok(()),
            Dropped::TooManyPins(_) => write!(f, "; it keeps {MAX_PINS} values, and no more"),
            Dropped::NoPinTurnLeft(_) => {
                write!(f, "; {PIN_TURNS} turns pinned values, and there are no more")
            }
            Dropped::NeverReached => f.write_str("no run reaches it"),
            Dropped::NeverHolds => f.write_str("the value is a constant with other bits there"),
            Dropped::NoTurnLeft => {
                f.write_str("assumptions still lost their exits after the last turn")
            }
            Dropped::TooMany => {
                write!(f, "one version makes {MAX_ASSUMPTIONS} assumptions, and no more")
            }
            Dropped::NoWorkLeft => {
                f.write_str("the next turn would exceed the work that the plan grants")
            }
        }
    }
}
