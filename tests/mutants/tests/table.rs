//! The table of mutants fits the sources. A change of production code that touches a text of the
//! table fails here, in a second, and not when the trial runs.

use osier_mutants::apply::{Sources, apply, sources};
use osier_mutants::copy::root;
use osier_mutants::table::{Malformed, Table};

/// The number of areas at least: passes, the log, composition, mappings, native code.
const AREAS_LEAST: usize = 15;

#[test]
fn every_text_occurs_once_and_its_replacement_is_rust() {
    let table = Table::read().unwrap_or_else(|malformed| panic!("{malformed}"));
    assert!(table.areas.len() >= AREAS_LEAST, "{} areas", table.areas.len());
    let mutated = apply(&table, &sources(&table, root()))
        .unwrap_or_else(|found| panic!("{} findings:\n{}", found.len(), found.join("\n")));
    for (file, text) in mutated {
        syn::parse_file(&text)
            .unwrap_or_else(|e| panic!("{file}, mutated, line {}: {e}", e.span().start().line));
    }
}

/// A source that the tables of the tests below change.
const SOURCE: &str = "\
fn one() {
    first(1); // a comment
    // another
    second(
        2,
    );
    last();
}

fn two() {
    first(1);
    last();
}
";

/// A table with one area of six mutants and the given edits.
fn table(edits: &str) -> Table {
    let mut text = "area Test\n: A test.\n".to_owned();
    for id in 1..=6 {
        text.push_str(&format!("mutant {id} M{id}\n: Is wrong.\n"));
    }
    text.push_str(edits);
    let asked: Vec<String> = (1..=6).map(|id| format!("mutant(\"M{id}\");")).collect();
    text.push_str(&format!("in b.rs\n- here();\n+ {}\n", asked.join(" ")));
    let mut table = Table::default();
    table.add("test.mutants", &text).expect("a table");
    table
}

fn applied(edits: &str) -> Result<String, Vec<String>> {
    let files = [("a.rs", SOURCE), ("b.rs", "here();")];
    let files: Sources = files.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
    apply(&table(edits), &files).map(|mut changed| changed.remove("a.rs").unwrap_or_default())
}

/// The findings about a table with an error, as one text.
fn findings(edits: &str) -> String {
    applied(edits).expect_err("the table does not fit").join("\n")
}

#[test]
fn a_text_is_found_despite_other_blanks_and_comments() {
    let text =
        applied("in a.rs\n  first(1);\n- second(2,\n- );\n+ if mutant(\"M1\") {}\n").expect("fits");
    let (before, rest) = text.split_once("::mutants::switch::is_on(1)").expect("the switch");
    assert!(before.contains("first(1); // a comment"), "{text}");
    assert!(!rest.contains("second"), "{text}");
    assert!(rest.contains("last();"), "{text}");
}

#[test]
fn two_edits_may_share_a_line_that_stays() {
    let text =
        applied("in a.rs\n+ before();\n  second(2,);\nin a.rs\n  second(2,);\n+ behind();\n");
    let words: String = text.expect("fits").split_whitespace().collect();
    assert!(words.contains("before();second(2,);behind();last();"), "{words}");
}

#[test]
fn a_missing_text_is_reported_with_the_most_similar_lines() {
    let found = findings("in a.rs\n- second(3,\n- );\n- last();\n+ third();\n");
    assert!(found.contains("test.mutants:15: M6: a.rs does not have this text"), "{found}");
    assert!(
        found.contains("the most alike is a.rs:5:\n            2,\n        );\n        last();\n"),
        "{found}"
    );
}

#[test]
fn a_text_that_occurs_twice_is_reported_with_both_lines() {
    let found = findings("in a.rs\n- first(1);\n+ third();\n");
    assert!(found.contains("2 times, in lines 2, 11"), "{found}");
    assert!(findings("in a.rs\n- st();\n+ third();\n").contains("does not have"), "part of a word");
}

#[test]
fn edits_of_one_place_are_reported() {
    let found =
        findings("in a.rs\n- second(2,);\n+ x();\nin a.rs\n- second(2,);\n- last();\n+ y();\n");
    assert!(found.contains("change the same place, a.rs:4"), "{found}");
}

#[test]
fn contradictions_of_a_table_are_reported() {
    let mut twice = table("");
    let text =
        "area Test\n: A test.\nmutant 6 M6\n: Is wrong.\nmutant 7 M7\nin b.rs\n+ mutant(\"M8\");\n";
    twice.add("more.mutants", text).expect("a table");
    let found = apply(&twice, &Sources::new()).expect_err("contradictions").join("\n");
    for finding in [
        "id 6 stands twice",
        "mutant M6 stands twice",
        "area Test stands twice",
        "no edit asks for mutant(\"M7\")",
        "an edit asks for mutant(\"M8\"), which no table has",
        "M7 has no summary",
        "there is no file b.rs",
    ] {
        assert!(found.contains(finding), "{finding}: {found}");
    }
}

#[test]
fn a_line_outside_the_format_is_reported() {
    let error =
        |text: &str| Table::default().add("t.mutants", text).expect_err("not in the format");
    let Malformed { at, why } = error("area A\n\n- code();\n");
    assert_eq!((at.as_str(), why.as_str()), ("t.mutants:3", "a line of code outside an edit"));
    assert!(error("mutant 1 A\n").why.contains("before any area"));
    assert!(error("area A\nin a.rs\n").why.contains("before any mutant"));
    assert!(error("area A\nmutant x A\n").why.contains("x is no id"));
    assert!(error("areas A\n").why.contains("neither"));
}
