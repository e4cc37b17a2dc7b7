//! The comparison of calls in native code.
#![cfg(feature = "native")]

use osier_judges::{CallArguments, native};

#[test]
fn each_kind_of_call_has_one_result_in_both_engines_at_every_place() {
    let arguments = CallArguments { rounds: 8, calls: 2000, only: String::new() };
    let mut out = Vec::new();
    assert_eq!(native::calls::run(&arguments, &mut out), Ok(true));
    let table = String::from_utf8(out).expect("the table is text");
    assert_eq!(table.lines().count(), 17, "{table}");
    let none = CallArguments { only: "no such kind".to_owned(), ..arguments };
    assert!(native::calls::run(&none, &mut Vec::new()).is_err());
}
