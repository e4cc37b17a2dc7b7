//! Wrong compositions: two mappings whose entries must not be composed, each stopped by one check
//! alone.

use super::draft::{Draft, Wrong};
use super::memory::window;
use check::verdict::{Check, Options, Verdict};
use check::{Checked, accept, compose, compose_without, relate};
use transition::Side::{After, Before};
use transition::certificate::EntryFacts;
use transition::mapping::{Mapping, Operand};

/// Two mappings that must not be composed.
pub(crate) struct WrongComposition {
    /// The check that stops them.
    pub(crate) check: Check,
    pub(crate) what: &'static str,
    /// The mapping from p to q, and the mapping from q to r.
    first: Checked<Mapping>,
    second: Checked<Mapping>,
    /// p and r with a certificate, to judge the composition by.
    ends: Wrong,
}

impl WrongComposition {
    /// The composition with all checks, or without one check; `None` if it is refused, or has no
    /// entry.
    pub(crate) fn composed(&self, without: Option<Check>) -> Option<Mapping> {
        let made = match without {
            None => compose(&self.first, &self.second),
            Some(check) => compose_without(&self.first, &self.second, check),
        };
        made.ok().map(|made| made.mapping.into_inner()).filter(|mapping| !mapping.is_empty())
    }

    /// The verdicts on a mapping between the two ends.
    pub(crate) fn judged(&self, mapping: Mapping) -> Vec<Verdict> {
        let Wrong { module, versions, certificate, .. } = &self.ends;
        let relation = relate(module, versions.as_ref(), certificate, Options::default());
        let facts = vec![EntryFacts::default(); mapping.len()];
        relation.expect("the ends correspond").judge(Before, &mapping, &facts, &[])
    }

    /// Whether the check is needed: without it, a wrong composition is made; with it, no
    /// composition is made, or a right one.
    #[allow(dead_code)] // for the trial; the tests look closer
    pub(crate) fn needs_its_check(&self) -> bool {
        let is_wrong = |without| {
            let made = self.composed(without);
            made.is_some_and(|mapping| self.judged(mapping).iter().any(Verdict::is_refuted))
        };
        is_wrong(Some(self.check)) && !is_wrong(None)
    }
}

/// All wrong compositions.
pub(crate) fn all() -> [WrongComposition; 4] {
    [versions(), provides(), replays(), steps()]
}

const HEAD: &str = "(%x: i32, %y: i32) -> i32 {\nentry:\n";

fn text(body: &str) -> String {
    format!("{HEAD}{body}}}\n")
}

/// A pair whose certificate relates `before` to `after`, with no entry yet.
fn pair(before: &str, after: &str) -> Draft {
    Draft::new(&text(before), &text(after))
}

/// The accepted mapping of a pair, which has to keep its entry.
fn accepted(draft: Draft) -> Checked<Mapping> {
    let Wrong { module, versions, certificate, mappings, facts, .. } =
        draft.done(Check::Versions, "nothing");
    let relation = relate(&module, versions.as_ref(), &certificate, Options::default());
    let accepted = accept(&relation, mappings, facts).before;
    assert_eq!(accepted.rejected, vec![]);
    assert!(!accepted.mapping.is_empty());
    accepted.mapping
}

/// An entry before the return of both versions, which copies values under their names.
fn copies(mut draft: Draft, values: &[&str]) -> Draft {
    let index = draft.versions.before.inst_count() - 1;
    let points = [draft.at(Before, "entry", index); 2];
    let operands: Vec<(&str, Operand)> =
        values.iter().map(|name| (*name, draft.from(Before, name))).collect();
    draft.entry(Before, points, Vec::new(), &operands);
    draft
}

fn ends(before: &str, after: &str) -> Wrong {
    pair(before, after).done(Check::Versions, "the two ends")
}

/// The sum of the first version has the id of a product in the source of the second mapping.
fn versions() -> WrongComposition {
    let [sum, twice] = ["%s = add.i32 %x, %y\nreturn %x\n", "%s = mul.i32 %x, %x\nreturn %x\n"];
    WrongComposition {
        check: Check::ComposeVersions,
        what: "a second mapping from another version, with a product for a sum",
        first: accepted(copies(pair(sum, sum), &["x", "s"])),
        second: accepted(copies(pair(twice, twice), &["x", "s"])),
        ends: ends(sum, twice),
    }
}

/// The sum is dead in q, so the first mapping need not provide it. The second mapping keeps it for
/// r.
fn provides() -> WrongComposition {
    let p = "%s = mul.i32 %x, %x\nreturn %x\n";
    let q = "%s = add.i32 %x, %y\nreturn %x\n";
    WrongComposition {
        check: Check::ComposeProvides,
        what: "a required dead sum, where the first version has a product",
        first: accepted(copies(pair(p, q), &["x"])),
        second: accepted(copies(pair(q, q), &["x", "s"])),
        ends: ends(p, q),
    }
}

/// The first entry executes a write of the global that q has executed and p has not.
fn replays() -> WrongComposition {
    let q = "global_set.i32 @g, %x\n%q = const.i32 0\nglobal_set.i32 @g, %y\nreturn %x\n";
    let mut first = window();
    let at = first.at(After, "entry", 0);
    let (term, x) = (first.write(After, at), first.from(Before, "x"));
    first.replay(Before, at, &[x], term);
    let mut second = Draft::of_writes(q, q);
    let points = [second.at(Before, "entry", 1); 2];
    let operands = ["x", "y"].map(|name| (name, second.from(Before, name)));
    second.entry(Before, points, Vec::new(), &operands);
    WrongComposition {
        check: Check::ComposeReplays,
        what: "a store of the first mapping, not executed by the composition",
        first: accepted(first),
        second: accepted(second),
        ends: window().done(Check::Versions, "the two ends"),
    }
}

/// The second entry reads a value that it does not list.
fn steps() -> WrongComposition {
    let p = "%s = mul.i32 %x, %x\nreturn %x\n";
    let q = "%s = add.i32 %x, %y\nreturn %x\n";
    let mut unlisted = copies(pair(q, q), &["x", "s"]);
    unlisted.change_entry(Before, |entry| entry.requires.retain(|v| v.as_u32() == 0));
    let unlisted = unlisted.done(Check::StepOrder, "a sum read and not listed");
    WrongComposition {
        check: Check::ComposeSteps,
        what: "a second mapping that reads a sum and does not list it",
        first: accepted(copies(pair(p, q), &["x"])),
        second: Checked::unproved(unlisted.mappings.before),
        ends: ends(p, q),
    }
}
