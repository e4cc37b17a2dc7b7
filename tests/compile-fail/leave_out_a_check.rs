//! A checker without one of its checks.
use check::verdict::{Check, Options};

fn forge() -> Options {
    Options::default().without(Check::LivePlus)
}

fn main() {}
