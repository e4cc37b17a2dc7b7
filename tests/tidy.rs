//! Properties of the sources themselves: sizes, headers, forbidden words, existing paths.
//!
//! Where it matters, the tests read sources as tokens, so that a word in a comment or a string is
//! no finding. Every check also fails if it had nothing to check.

#[path = "tidy/code.rs"]
mod code;
#[path = "tidy/functions.rs"]
mod functions;
#[path = "tidy/licenses.rs"]
mod licenses;
#[path = "tidy/names.rs"]
mod names;
#[path = "tidy/packages.rs"]
mod packages;
#[path = "tidy/pages.rs"]
mod pages;
#[path = "tidy/parameters.rs"]
mod parameters;
#[path = "tidy/proof.rs"]
mod proof;
#[path = "tidy/prose.rs"]
mod prose;
#[path = "tidy/shared.rs"]
mod shared;
#[path = "tidy/sizes.rs"]
mod sizes;
mod star;
#[path = "tidy/tree.rs"]
mod tree;
#[path = "tidy/types.rs"]
mod types;
#[path = "tidy/unsafe_blocks.rs"]
mod unsafe_blocks;
#[path = "tidy/words.rs"]
mod words;
#[path = "tidy/workflows.rs"]
mod workflows;

/// Fails with all findings at once, and if nothing was checked.
fn report(checked: usize, findings: Vec<String>) {
    assert!(checked > 0, "nothing was checked");
    assert!(findings.is_empty(), "{} of {checked}:\n{}", findings.len(), findings.join("\n"));
}
