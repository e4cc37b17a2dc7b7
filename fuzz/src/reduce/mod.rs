//! Reduces a failing case to a smaller case that still fails.
//!
//! The reducer is greedy and runs to a fixpoint. It removes versions, passes and inputs, then
//! declarations and functions, then code. Code shrinks by changes of one kind at a time
//! ([`rewrite`]), first many at once and then fewer. This is delta debugging (Zeller and
//! Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 2002).
//!
//! The reducer accepts a smaller case if it is well-formed and shows the same finding: of the same
//! oracle, at the same place ([`FuzzFinding::is_like`]). It has no clock, so it counts attempts.

mod declarations;
mod rewrite;

use super::case::Case;
use super::oracle::FuzzFinding;
use ir::Func;
use ir::text::{parse_module, print_module};
use ir::verifier::verify_module;
use rewrite::ReductionStep;

/// The most attempts of a reduction.
pub const ATTEMPTS: u32 = 4000;

/// The number of lists of arguments that the reducer tries with another entry function.
const ENTRY_INPUTS: usize = 24;

/// Reduces a case that shows a finding. `judge` returns the first finding in a case. Cost: up to
/// [`ATTEMPTS`] judgments.
pub fn reduce(
    case: &Case,
    finding: &FuzzFinding,
    judge: &dyn Fn(&Case) -> Option<FuzzFinding>,
) -> Case {
    let mut reducer = Reducer { case: case.clone(), finding, judge, left: ATTEMPTS };
    reducer.normalize();
    // Each kind of step can enable the others, so repeat them until the case stops shrinking.
    loop {
        let before = size(&reducer.case);
        reducer.fewer_assumptions();
        reducer.fewer_steps();
        reducer.fewer_passes();
        reducer.fewer_inputs();
        reducer.other_entry();
        reducer.fewer_declarations();
        reducer.less_code();
        reducer.fewer_arguments();
        reducer.smaller_inputs();
        if reducer.left == 0 || size(&reducer.case) >= before {
            return reducer.case;
        }
    }
}

/// The measure that shrinks, compared lexicographically: passes, steps and assumptions, lists of
/// arguments, bytes of text, and the sum of all arguments.
fn size(case: &Case) -> (usize, usize, usize, u64) {
    let text = print_module(&case.module).len();
    let bits = case.arguments.iter().flatten().fold(0u64, |sum, bits| sum.saturating_add(*bits));
    (
        case.steps.iter().map(Vec::len).sum::<usize>()
            + case.steps.len()
            + case.options.assumptions as usize,
        case.arguments.len(),
        text,
        bits,
    )
}

struct Reducer<'j> {
    case: Case,
    finding: &'j FuzzFinding,
    judge: &'j dyn Fn(&Case) -> Option<FuzzFinding>,
    left: u32,
}

impl Reducer<'_> {
    /// Replaces the current case by a smaller case if the smaller case still fails. Returns whether
    /// it fails.
    fn take(&mut self, case: Case) -> bool {
        // A module that is not well-formed costs no attempt: the judge never sees it.
        if self.left == 0 || !verify_module(&case.module).is_empty() {
            return false;
        }
        self.left -= 1;
        let fails = (self.judge)(&case).is_some_and(|found| found.is_like(self.finding));
        if fails {
            self.case = case;
        }
        fails
    }

    /// Parses the printed module, which makes ids dense. The test file is read the same way, so the
    /// failure must survive this.
    fn normalize(&mut self) {
        let name = self.case.module.funcs[self.case.entry].name.clone();
        if let Ok(module) = parse_module(&print_module(&self.case.module))
            && let Some(entry) = module.func_named(&name)
        {
            self.take(Case { module, entry, ..self.case.clone() });
        }
    }

    /// Makes fewer assumptions in each function, or no assumptions if the oracle does not need
    /// them.
    fn fewer_assumptions(&mut self) {
        for assumptions in 0..self.case.options.assumptions {
            let mut fewer = self.case.clone();
            fewer.options.assumptions = assumptions;
            if self.take(fewer) {
                return;
            }
        }
    }

    /// Removes versions: drops a step, or joins two steps into one.
    fn fewer_steps(&mut self) {
        let mut at = 0;
        while at + 1 < self.case.steps.len() {
            let mut joined = self.case.clone();
            let next = joined.steps.remove(at + 1);
            joined.steps[at].extend(next);
            let (mut first, mut last) = (self.case.clone(), self.case.clone());
            first.steps.remove(at + 1);
            last.steps.remove(at);
            if !self.take(first) && !self.take(last) && !self.take(joined) {
                at += 1;
            }
        }
    }

    fn fewer_passes(&mut self) {
        for step in 0..self.case.steps.len() {
            self.thin_out(
                |case| case.steps[step].len(),
                |case, from, count| {
                    case.steps[step].drain(from..from + count);
                },
            );
        }
    }

    fn fewer_inputs(&mut self) {
        self.thin_out(
            |case| case.arguments.len(),
            |case, from, count| {
                case.arguments.drain(from..from + count);
            },
        );
    }

    /// Removes parts of a list, first large parts and then parts of half the size.
    fn thin_out(&mut self, len: impl Fn(&Case) -> usize, remove: impl Fn(&mut Case, usize, usize)) {
        let mut count = len(&self.case);
        while count > 0 {
            let mut from = 0;
            while from < len(&self.case) {
                let mut smaller = self.case.clone();
                remove(&mut smaller, from, count.min(len(&self.case) - from));
                // After a success the next part of the list is at `from`.
                if !self.take(smaller) {
                    from += count;
                }
            }
            count /= 2;
        }
    }

    /// Runs another function instead of the entry: most likely the failing one, which the entry
    /// calls.
    fn other_entry(&mut self) {
        let others: Vec<Func> =
            self.case.module.defined().map(|(f, _)| f).filter(|f| *f != self.case.entry).collect();
        for func in others {
            let params = self.case.module.signature(func).params.clone();
            let arguments = verify::generate::arguments(self.case.seed, &params, ENTRY_INPUTS);
            if self.take(Case { entry: func, arguments, ..self.case.clone() }) {
                self.fewer_inputs();
                return;
            }
        }
    }

    /// Removes declarations and whole functions.
    fn fewer_declarations(&mut self) {
        // From the end, so that the numbers of the declarations to come stay valid.
        for number in (0..declarations::count(&self.case.module)).rev() {
            if let Some((module, entry)) =
                declarations::without(&self.case.module, self.case.entry, number)
            {
                self.take(Case { module, entry, ..self.case.clone() });
            }
        }
    }

    fn less_code(&mut self) {
        let funcs: Vec<Func> = self.case.module.defined().map(|(func, _)| func).collect();
        for func in funcs {
            let mut kind = 0;
            while let Some(changes) = self.possible(func).get(kind) {
                self.change(func, kind, changes.len());
                kind += 1;
            }
        }
    }

    fn possible(&self, func: Func) -> Vec<Vec<ReductionStep>> {
        self.case.module.body(func).map(rewrite::possible).unwrap_or_default()
    }

    /// Makes the changes of one kind, `count` at once, then half as many. An accepted change
    /// renumbers ids, so the list of possible changes is computed again after each attempt.
    fn change(&mut self, func: Func, kind: usize, mut count: usize) {
        while count > 0 {
            let mut from = 0;
            loop {
                let possible = self.possible(func);
                let Some(changes) = possible.get(kind).filter(|changes| from < changes.len())
                else {
                    break;
                };
                let chosen = &changes[from..changes.len().min(from + count)];
                if !self.take_changed(func, chosen) {
                    from += count;
                }
                if self.left == 0 {
                    return;
                }
            }
            count /= 2;
        }
    }

    fn take_changed(&mut self, func: Func, changes: &[ReductionStep]) -> bool {
        let body = self.case.module.body(func).expect("only functions with a body are changed");
        let Some(smaller) = rewrite::changed(body, changes) else { return false };
        let mut case = self.case.clone();
        case.module.define(func, smaller);
        self.take(case)
    }

    /// Removes parameters of the entry function together with their arguments.
    fn fewer_arguments(&mut self) {
        let entry = self.case.entry;
        for index in (0..self.case.module.signature(entry).params.len()).rev() {
            let Some(body) = self.case.module.body(entry) else { return };
            let Some(smaller) = rewrite::without_argument(body, index) else { continue };
            let mut case = self.case.clone();
            case.module.funcs[entry].sig = case.module.sig(smaller.signature());
            case.module.define(entry, smaller);
            for args in &mut case.arguments {
                args.remove(index);
            }
            self.take(case);
        }
    }

    /// Replaces arguments by smaller numbers.
    fn smaller_inputs(&mut self) {
        for list in 0..self.case.arguments.len() {
            for index in 0..self.case.arguments[list].len() {
                let bits = self.case.arguments[list][index];
                for smaller in [0, 1, 2, bits >> 32, bits >> 8].into_iter().filter(|b| *b < bits) {
                    let mut case = self.case.clone();
                    case.arguments[list][index] = smaller;
                    if self.take(case) {
                        break;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CampaignOptions, FuzzOracle};

    /// The reducer took any finding of the oracle, and its test showed another bug.
    #[test]
    fn another_finding_of_the_oracle_is_not_taken() {
        let options = CampaignOptions { size: 20, inputs: 3, ..CampaignOptions::default() };
        let case = options.generated(1);
        let finding = |message: &str| FuzzFinding {
            oracle: FuzzOracle::State,
            versions: [0, 1],
            message: message.to_owned(),
        };
        let has_inputs = |of: &Case| of.arguments.len() == case.arguments.len();
        let shown = "%a is 0x1 in the target version, and 0x2 after the transition";
        let judge = |small: &Case| {
            let message = if has_inputs(small) { shown } else { "the effects so far differ" };
            Some(finding(message))
        };
        let small = reduce(&case, &finding(shown), &judge);
        assert!(has_inputs(&small) && size(&small) < size(&case));
        assert!(judge(&small).is_some_and(|found| found.is_like(&finding(shown))));
    }
}
