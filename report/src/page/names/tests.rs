//! Tests of `report::page::names`.

use super::*;

#[test]
fn a_name_shows_what_it_hides() {
    assert_eq!(shown("a\u{1b}[31m\u{202e}b\u{0}é"), "a\\u{1b}[31m\\u{202e}b\\u{0}é");
}

#[test]
fn no_two_names_look_alike() {
    let names = [
        "",
        " ",
        "  ",
        "a",
        "a ",
        " a",
        "a b",
        "\u{a0}",
        "\u{3000}",
        "a\nb",
        "a\tb",
        "\u{0}",
        "\u{1}",
        "\\u{1}",
        "\\u{5c}u{1}",
        "\\u{}",
        "\\",
        "\\\\",
        "a\u{202e}b",
        "a\\u{202e}b",
    ];
    let mut seen: Vec<String> = names.iter().map(|name| shown_name(name)).collect();
    assert!(seen.iter().all(|name| !name.trim().is_empty() && name.trim() == name));
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), names.len(), "{seen:?}");
    assert_eq!(shown_name("main"), "main");
    assert_eq!(shown_name("std::vec<int, a\\b>"), "std::vec<int, a\\b>");
}

#[test]
fn an_address_has_the_name_of_the_module() {
    assert_eq!(address("a\u{0}\u{202e}", 1), "#k=1&f=a%00%E2%80%AE");
}

#[test]
fn an_address_has_no_markup_and_no_separator() {
    assert_eq!(address("<a b=\"&p\">%é", 0), "#f=%3Ca%20b%3D%22%26p%22%3E%25%C3%A9");
}
