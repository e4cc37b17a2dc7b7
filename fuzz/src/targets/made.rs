//! Targets that choose a generated program and passes: pipelines under every oracle, and
//! continuations.

use super::input::InputBytes;
use crate::{CampaignOptions, Case, judge};
use check::CheckedEntry;
use ir::verifier::verify_function;
use ir::{Function, Module};
use osier::driver::{NoObserver, Vigilance, derive};
use osr::{Level, VersionPair, synthesize};
use passes::Pipeline;
use passes::registry::{PASSES, StaticPass};
use resume::continuation;
use transition::VersionKey;
use transition::mapping::Mapping;

/// The largest size of a generated program, in instructions of its main function.
const SIZE: u8 = 60;
/// The most passes.
const PASSES_AT_MOST: usize = 12;
/// The most versions, but for the first.
const STEPS: usize = 3;

/// The case that the bytes choose: a program by two bytes for its seed and one for its size, and
/// then passes, a byte each. A byte of 0xc0 and above begins the next version.
fn chosen(data: &[u8]) -> Case {
    let mut choices = InputBytes::new(data);
    let seed = choices.word().into();
    let size = u32::from(10 + choices.byte() % SIZE);
    let options = CampaignOptions { size, inputs: 3, ..CampaignOptions::default() };
    let mut steps: Vec<Vec<StaticPass>> = vec![Vec::new()];
    for _ in 0..PASSES_AT_MOST {
        if choices.is_empty() {
            break;
        }
        let byte = choices.byte();
        if byte >= 0xc0 && steps.len() < STEPS {
            steps.push(Vec::new());
        }
        let pass = PASSES[usize::from(byte) % PASSES.len()];
        steps.last_mut().expect("it has one").push(pass);
    }
    Case { steps, level: Level::Avail, ..options.generated(seed) }
}

/// A program and its versions under every oracle.
pub(super) fn pipelines(data: &[u8]) {
    let case = chosen(data);
    if let Some(finding) = judge(&case).findings.first() {
        panic!(
            "{finding}\npasses: {}\n{}",
            case.steps_text(),
            ir::text::print_module(&case.module)
        );
    }
}

/// The continuation of each entry is well-formed.
pub(super) fn continuations(data: &[u8]) {
    let case = chosen(data);
    let module = &case.module;
    for (_, base) in module.defined() {
        let pipeline = Pipeline::of(case.steps.concat());
        let derived = derive(module, base, &pipeline, Vigilance::Off, &mut NoObserver);
        let optimized = &derived.function;
        let pair = VersionPair::new(base, optimized, &derived.log).expect("the log leads there");
        let made = synthesize(&pair.in_module(module), Level::Avail);
        continue_all(module, [base, optimized], &made.forward.mapping);
        continue_all(module, [optimized, base], &made.backward.mapping);
    }
}

/// Makes the continuation of each entry of a mapping.
fn continue_all(module: &Module, [from, to]: [&Function; 2], mapping: &Mapping) {
    let keys = [from, to].map(VersionKey::of);
    for (point, entry) in mapping.entries() {
        let entry = CheckedEntry::unproved(keys[0], keys[1], point, entry);
        let made = continuation("continuation", from, &[to], entry)
            .unwrap_or_else(|error| panic!("{point:?}: {error}"));
        let findings = verify_function(module, &made.function);
        assert!(findings.is_empty(), "{point:?}: {}", findings[0]);
    }
}

/// Some programs and passes.
pub(super) fn seeds() -> Vec<Vec<u8>> {
    (0..12u8)
        .map(|seed| [&[seed, 0, 40], &[seed; 3][..], &[0xc0 + seed, 5, 2, 8]].concat())
        .collect()
}
