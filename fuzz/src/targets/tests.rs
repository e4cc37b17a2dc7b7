//! Seeds reach the code behind the checks of their form. A seed that its target rejects would leave
//! most of the target untried, unseen.

use super::{TARGETS, modules, texts};
use osier::{Format, load};

fn strings(seeds: Vec<Vec<u8>>) -> Vec<String> {
    seeds.into_iter().map(|seed| String::from_utf8(seed).expect("a text")).collect()
}

#[test]
fn seeds_are_right_inputs() {
    let program = texts::program().module;
    let profiles = strings(texts::profile_seeds());
    for profile in &profiles {
        let profile = osier::profile::Profile::read(profile, &program).expect("a profile");
        assert!(!profile.functions.is_empty());
    }
    for report in strings(texts::past_report_seeds()) {
        let reports = osier::report::read_past(&report).expect("a report");
        assert!(!reports[0].functions.is_empty());
    }
    let mut held = 0;
    for file in strings(texts::mapping_file_seeds()) {
        let file = osier::exchange::read(&file).expect("a file of mappings");
        held += texts::entries_that_hold(&file, &program);
    }
    assert!(held >= 100, "{held} entries hold");
    for (format, seeds) in [
        (Format::Wat, modules::wat_seeds()),
        (Format::Oir, modules::oir_seeds()),
        (Format::Wasm, modules::module_seeds()),
    ] {
        seeds.iter().for_each(|seed| drop(load(format, seed).expect("a module")));
    }
}

#[test]
fn the_seed_of_debug_info_has_a_line() {
    for seed in modules::debug_info_seeds() {
        let (module, source) = modules::with_debug_info(&seed);
        let (func, body) = module.defined().next().expect("a function");
        let line = body.all_insts().find_map(|inst| source.of(func, inst));
        assert!(line.is_some(), "{:?}", source.notes().collect::<Vec<_>>());
    }
}

#[test]
fn a_dictionary_has_quoted_words() {
    for target in TARGETS {
        for line in target.dictionary().lines() {
            assert!(line.len() > 2 && line.starts_with('"') && line.ends_with('"'), "{line}");
            assert!(line.is_ascii(), "{line}");
        }
    }
}
