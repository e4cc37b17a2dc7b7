//! The glue between libFuzzer and the bodies of the targets in `osier_fuzz::targets`.

use osier_fuzz::targets::TARGETS;

/// Runs the body of a target on an input.
///
/// # Panics
/// If there is no such target, or the body finds a bug.
pub fn run(name: &str, data: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.expect("a target of this name").run)(data);
}
