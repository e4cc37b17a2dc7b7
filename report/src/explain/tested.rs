//! Tests the blame of answers: whether the point gains an entry if the pipeline omits the blamed
//! rewrites.

use super::words::Told;
use super::{Question, point};
use crate::blame::History;
use crate::listing::NamedVersion;
use crate::schema::{PassAction, PointAnswer, PointStatus, TestedBlame};
use derive::driver::counterfactual::{Counterfactual, CulpritEffort, Culprits};
use derive::driver::{Derived, Secured};
use ir::{Function, Module};
use passes::Pipeline;
use transition::Side;

/// Searches, for each answer without an entry, a smallest set of rewrites to omit so that the point
/// gains an entry. Blames the rewrites of this set. `answers` must come from [`super::explain`] for
/// the same question. Cost: bounded by the effort.
///
/// # Panics
/// As [`super::explain`], or if the pipeline is not the one of the version.
pub fn test_blame(
    module: &Module,
    base: &Function,
    secured: &Secured,
    pipeline: &Pipeline,
    question: Question<'_>,
    effort: CulpritEffort,
    answers: &mut [PointAnswer],
) {
    let Secured { derived, retried, .. } = secured;
    let versions = [base, &derived.function];
    let named = NamedVersion::pair(module, versions, &derived.log, question.lines);
    let given_up = retried.given_up.iter().map(|given_up| given_up.numbers()).collect();
    let mut counterfactual = Counterfactual::new(module, base, derived, pipeline, given_up);
    for (answer, heading) in answers.iter_mut().zip(question.headings) {
        let version = match heading {
            Side::Before => &named[0],
            Side::After => &named[1],
        };
        let is_lacking = answer.status == PointStatus::None;
        let (true, Some(why), Some(shown)) = (is_lacking, &mut answer.why, &answer.point) else {
            continue;
        };
        let at = point::find(version, &shown.inst).expect("the answer names an instruction");
        let found = counterfactual.culprits((*heading, at), question.level, effort);
        let runs = counterfactual.runs();
        let culprits = match found {
            Culprits::Found { culprits, .. } => culprits,
            Culprits::NotFound(bound) => {
                let bound = Some(bound.name());
                why.tested = Some(TestedBlame { mends: false, also: Vec::new(), runs, bound });
                continue;
            }
        };
        // Mapped alone, this point has an entry. Not a rewrite is to blame but a limit of the whole
        // mapping, which the reason names.
        if culprits.is_empty() {
            continue;
        }
        let mut blamed = culprits.iter().map(|culprit| match &culprit.run {
            None => told(module, base, derived, culprit.action, question),
            Some(run) => told(module, &run.0, &run.1, culprit.action, question),
        });
        why.blame = blamed.next();
        why.tested = Some(TestedBlame { mends: true, also: blamed.collect(), runs, bound: None });
    }
}

/// An action in the words of the run that makes it.
fn told(
    module: &Module,
    base: &Function,
    derived: &Derived,
    action: usize,
    question: Question<'_>,
) -> PassAction {
    let versions = [base, &derived.function];
    let [before, opt] = NamedVersion::pair(module, versions, &derived.log, question.lines);
    let history = History { base, opt: &derived.function, log: &derived.log };
    Told { base: before, opt, history }.done(action)
}
