//! Shows names of the input as text.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What `encodeURIComponent` of the script leaves as it is.
const PLAIN: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A text in which characters that show nothing, or that change the direction of the text around
/// them, stand as escapes. Names come from the input. The templates escape markup.
pub(super) fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match is_shown(c) {
            true => out.push(c),
            false => out.push_str(&format!("\\u{{{:x}}}", c as u32)),
        }
    }
    out
}

fn is_shown(c: char) -> bool {
    let steers = matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    !c.is_control() && !steers
}

/// The address of a function on the page, in the report with this place.
pub(super) fn address(name: &str, pipeline: usize) -> String {
    let name = shown(name);
    let name = utf8_percent_encode(&name, &PLAIN);
    match pipeline {
        0 => format!("#f={name}"),
        other => format!("#k={other}&f={name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_shows_what_it_hides() {
        assert_eq!(shown("a\u{1b}[31m\u{202e}b\u{0}é"), "a\\u{1b}[31m\\u{202e}b\\u{0}é");
    }

    #[test]
    fn an_address_has_no_markup_and_no_separator() {
        assert_eq!(address("<a b=\"&p\">%é", 0), "#f=%3Ca%20b%3D%22%26p%22%3E%25%C3%A9");
    }
}
