//! Tests of `report::table`.

use super::*;

#[test]
fn digits_are_grouped_from_the_right() {
    assert_eq!([0, 999, 1000, 1234567].map(grouped), ["0", "999", "1 000", "1 234 567"]);
}

#[test]
fn a_shortened_table_tells_how_many_rows_it_lacks() {
    let mut table = TextTable::new(6, &[4]);
    table.spans(&[(1, "all")]);
    ["head", "a", "b", "c", "d", "e"].into_iter().for_each(|label| table.row(label, ["1"]));
    table.keep(4);
    assert_eq!(
        table.lines()[5..],
        ["d        1".to_owned(), "  and 1 more: see --verbose".to_owned()]
    );
    table.shorten(2, 1);
    assert_eq!(
        table.lines()[3..],
        ["b        1".to_owned(), "  and 3 more: see --verbose".to_owned()]
    );
    table.shorten(9, 1);
    assert_eq!(
        table.lines()[2..],
        ["a        1".to_owned(), "  and 4 more: see --verbose".to_owned()]
    );
    table.shorten(9, 1);
    assert_eq!(table.lines().len(), 4);
}

/// Rows that a table lacks from the beginning count, too, when it is shortened further.
#[test]
fn a_table_that_is_cut_twice_tells_all_rows_it_lacks() {
    let mut table = TextTable::new(6, &[4]);
    ["head", "a", "b", "c"].into_iter().for_each(|label| table.row(label, ["1"]));
    table.and_more(5, 3);
    assert_eq!(table.lines()[4], "  and 2 more: see --format json");
    table.shorten(1, 1);
    assert_eq!(table.lines()[3..], ["  and 3 more: see --format json".to_owned()]);
}

#[test]
fn a_long_name_loses_its_middle() {
    assert_eq!(shortened("sqlite3VdbeExec", 15), "sqlite3VdbeExec");
    assert_eq!(shortened("sqlite3VdbeExec", 9), "sqli…Exec");
    assert_eq!(shortened("sqlite3VdbeExec", 1), "…");
}

#[test]
fn no_character_of_a_name_reaches_the_terminal_as_a_command() {
    assert_eq!(shortened("a\u{1b}[2Jb\n", 20), "a?[2Jb?");
    assert_eq!(shortened("a\u{202e}b\u{2069}c\u{200f}", 20), "a?b?c?");
}

#[test]
fn wide_characters_count_double() {
    assert_eq!(shortened("漢字漢字漢字", 7), "漢…字");
    assert_eq!(padded("漢", 4), "漢  ");
}

#[test]
fn lines_break_at_blanks() {
    assert_eq!(wrapped("ab ", ["cd", "ef", "ghij"], 8), ["ab cd ef", "   ghij"]);
    assert_eq!(wrapped("ab ", ["cdefghijkl", "m"], 8), ["ab cd…kl", "   m"]);
}
