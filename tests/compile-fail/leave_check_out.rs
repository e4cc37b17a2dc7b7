//! Leaving a check out without the feature of experiments.

use check::verdict::{Check, Options};

fn main() {}

fn weaken() -> Options {
    Options { without: Some(Check::LivePlus), ..Options::default() }
}
