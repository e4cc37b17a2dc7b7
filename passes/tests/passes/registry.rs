//! Tests of the names of passes and pipelines.

use passes::registry::{DEFAULT, PASSES};
use passes::{Pipeline, parse};

#[test]
fn every_pass_is_found_by_its_name() {
    let mut names: Vec<&str> = PASSES.iter().map(|p| p.name()).collect();
    for name in &names {
        assert_eq!(parse(name).expect("a known pass").names(), [*name]);
    }
    let count = names.len();
    assert!(names.is_sorted());
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn lists_keep_their_order_and_blanks_do_not_count() {
    assert_eq!(parse(" cse, sccp ,cse").expect("known passes").names(), ["cse", "sccp", "cse"]);
    assert_eq!(parse("cse  sccp, O0 adce").expect("known passes").names(), ["cse", "sccp", "adce"]);
    assert_eq!(parse("").expect("the empty pipeline").names(), [""; 0]);
}

#[test]
fn named_pipelines_are_known() {
    assert!(parse("O0").expect("a known pipeline").passes().is_empty());
    for name in ["O1", "O2", "canonical"] {
        assert!(parse(name).expect("a known pipeline").passes().len() > 5);
    }
    assert_eq!(Pipeline::default().names(), parse(DEFAULT).expect("a known pipeline").names());
    let twice = parse("O1,adce").expect("pipelines are names in lists");
    assert_eq!(twice.names().last(), Some(&"adce"));
}

#[test]
fn an_unknown_name_is_named_and_the_known_ones_listed() {
    for (text, name) in [("sccp,nothing", "nothing"), ("sccp,,cse", ""), ("SCCP", "SCCP")] {
        let error = parse(text).expect_err("an unknown pass");
        assert_eq!(error.name(), name);
    }
    let text = parse("nothing").expect_err("an unknown pass").to_string();
    let names: Vec<&str> = PASSES.iter().map(|p| p.name()).collect();
    let expected =
        format!("unknown pass `nothing`; passes: {}; pipelines: O0, O1, O2, ", names.join(", "));
    assert!(text.starts_with(&expected), "{text}");
    assert!(text.ends_with(", canonical"), "{text}");
}
