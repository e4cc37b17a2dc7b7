//! Shows names of the input as text.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The characters that `address` of the script leaves as they are.
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

/// The name of a function, so that no two functions look alike: as [`shown`], with escapes also for
/// blanks that show nothing, and for a backslash that could be taken for the start of an escape. A
/// name without characters is `\u{}`.
pub(super) fn shown_name(name: &str) -> String {
    if name.is_empty() {
        return "\\u{}".to_owned();
    }
    let inner = name.trim_matches(' ');
    let before = name.len() - name.trim_start_matches(' ').len();
    let mut out = String::with_capacity(name.len());
    for (at, c) in name.char_indices() {
        let hides = match c {
            ' ' => at < before || at >= before + inner.len(),
            '\\' => name[at..].starts_with("\\u{"),
            c => c.is_whitespace(),
        };
        match hides {
            true => out.push_str(&format!("\\u{{{:x}}}", c as u32)),
            false => out.push_str(&shown(c.encode_utf8(&mut [0; 4]))),
        }
    }
    out
}

/// A text with unbreakable blanks between the digits of its numbers.
pub(super) fn unbroken(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut before = ' ';
    while let Some(c) = rest.next() {
        let inside = before.is_ascii_digit() && rest.peek().is_some_and(char::is_ascii_digit);
        out.push(if c == ' ' && inside { '\u{a0}' } else { c });
        before = c;
    }
    out
}

fn is_shown(c: char) -> bool {
    let steers = matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}');
    !c.is_control() && !steers
}

/// The address of a function on the page, in the report with this place. It has the name as the
/// module gives it.
pub(super) fn address(name: &str, pipeline: usize) -> String {
    let name = utf8_percent_encode(name, &PLAIN);
    match pipeline {
        0 => format!("#f={name}"),
        other => format!("#k={other}&f={name}"),
    }
}

#[cfg(test)]
mod tests;
