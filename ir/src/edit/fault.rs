//! The reason why an action cannot be performed.

use std::fmt;

/// The reason why an action cannot be performed on a function. The function is unchanged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault(pub(super) String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}
