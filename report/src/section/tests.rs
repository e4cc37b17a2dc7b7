//! Tests of `report::section`.

use super::*;

/// A text without the escape sequences.
fn stripped(colored: &str) -> String {
    let (mut plain, mut rest) = (String::new(), colored);
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain += before;
        rest = after.split_once('m').expect("a sequence ends").1;
    }
    plain + rest
}

#[test]
fn labels_and_headings_of_explanations_have_colors() {
    let text = "base to opt\nfrom       head:0 inst3\n           next line\n\n";
    let colored = colored_labels(text, 0);
    assert_eq!(stripped(&colored), text);
    assert!(colored.starts_with(&painted(HEADING, "base to opt")), "{colored:?}");
    assert!(colored.contains(&painted(TERM_STYLE, "from       ")), "{colored:?}");
    assert_eq!(colored.matches('\u{1b}').count(), 4, "{colored:?}");
    let listed = "func @f, base to opt\n  body:0 inst1 -> body:0 inst1\n    set        %a = %b\n";
    assert_eq!(stripped(&colored_labels(listed, 4)), listed);
    assert!(colored_labels(listed, 4).contains(&painted(TERM_STYLE, "set        ")));
}

#[test]
fn colors_change_no_character() {
    let mut table = TextTable::new(20, &[8, 8]);
    table.spans(&[(2, "both")]);
    table.row("points", ["%", "steps"]);
    table.row("  one", ["100.0", "1.0"]);
    table.row("  two", ["12.5", "-"]);
    let sections = [
        Section::Table(table),
        Section::legend(&[("term", "meaning")]),
        Section::Words("words".to_owned(), vec!["one".to_owned()]),
        Section::Note("note".to_owned()),
    ];
    let colored = joined(&sections, true);
    let (green, red) = (AnsiColor::Green.on_default(), AnsiColor::Red.on_default());
    assert!(colored.contains(&painted(green, "   100.0")), "{colored:?}");
    assert!(colored.contains(&painted(red, "    12.5")), "{colored:?}");
    assert_eq!(stripped(&colored), joined(&sections, false));
}
