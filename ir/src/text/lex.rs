//! The tokens of one line.

use super::error::TextFault;
use super::items::SourceName;
use super::names::is_name_char;
use std::borrow::Cow;

/// A token of a line.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Token<'a> {
    /// A keyword, a mnemonic with its suffix, a type, or a block name.
    Word(&'a str),
    /// `%name`.
    Value(Cow<'a, str>),
    /// `@name`.
    Entity(Cow<'a, str>),
    /// A quoted string, with escapes resolved.
    Quoted(Vec<u8>),
    /// A number literal with its sign, not validated yet.
    Number(&'a str),
    /// `->`.
    Arrow,
    /// Any of `( ) [ ] { } , : = +`.
    Punct(char),
    /// The end of the line, or the start of a comment.
    End,
}

impl Token<'_> {
    /// The description of the token in an error message.
    pub(super) fn describe(&self) -> String {
        /// The length at which a token is cut, so that a line of a megabyte does not fill the
        /// screen.
        const SHOWN: usize = 40;
        let cut = |s: &str| {
            let short: String = s.chars().take(SHOWN).flat_map(char::escape_debug).collect();
            if s.chars().nth(SHOWN).is_some() { format!("{short}...") } else { short }
        };
        match self {
            Token::Word(word) => format!("`{}`", cut(word)),
            Token::Value(name) => format!("`%{}`", cut(name)),
            Token::Entity(name) => format!("`@{}`", cut(name)),
            Token::Quoted(_) => "a string".to_owned(),
            Token::Number(number) => format!("`{}`", cut(number)),
            Token::Arrow => "`->`".to_owned(),
            Token::Punct(c) => format!("`{c}`"),
            Token::End => "the end of the line".to_owned(),
        }
    }
}

/// A reader of one line, token by token. Its methods take the token that the grammar requires next,
/// or fail at the token that is there instead.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    line: &'a str,
    /// The byte offset of the line in the text.
    start: usize,
    /// The byte offset of the next token in the line.
    at: usize,
    /// The next token and the offset after it, if a peek has already read it.
    peeked: Option<(Token<'a>, usize)>,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(line: &'a str, start: usize) -> Cursor<'a> {
        Cursor { line, start, at: 0, peeked: None }
    }

    /// The next token, without taking it.
    pub(super) fn peek(&mut self) -> Result<&Token<'a>, TextFault> {
        if self.peeked.is_none() {
            self.skip_space();
            self.peeked = Some(self.scan()?);
        }
        Ok(&self.peeked.as_ref().expect("a token was just read").0)
    }

    /// Takes the next token.
    pub(super) fn next(&mut self) -> Result<Token<'a>, TextFault> {
        self.peek()?;
        let (token, end) = self.peeked.take().expect("a token was just read");
        self.at = end;
        Ok(token)
    }

    /// The byte offset of the next token in the text.
    pub(super) fn offset(&mut self) -> usize {
        if self.peeked.is_none() {
            self.skip_space();
        }
        self.start + self.at
    }

    /// Fails at the next token.
    pub(super) fn expected<T>(&mut self, what: &str) -> Result<T, TextFault> {
        let at = self.offset();
        let found = self.peek()?.describe();
        Err(TextFault::new(at, format!("expected {what}, found {found}")))
    }

    /// Takes this punctuation mark if it is next.
    pub(super) fn eat(&mut self, mark: char) -> Result<bool, TextFault> {
        let found = *self.peek()? == Token::Punct(mark);
        if found {
            self.next()?;
        }
        Ok(found)
    }

    /// Takes this word if it is next.
    pub(super) fn eat_word(&mut self, word: &str) -> Result<bool, TextFault> {
        let found = *self.peek()? == Token::Word(word);
        if found {
            self.next()?;
        }
        Ok(found)
    }

    pub(super) fn punct(&mut self, mark: char) -> Result<(), TextFault> {
        if self.eat(mark)? { Ok(()) } else { self.expected(&format!("`{mark}`")) }
    }

    pub(super) fn end(&mut self) -> Result<(), TextFault> {
        if *self.peek()? == Token::End { Ok(()) } else { self.expected("the end of the line") }
    }

    /// Takes `%name`.
    pub(super) fn value(&mut self) -> Result<SourceName<'a>, TextFault> {
        let at = self.offset();
        if !matches!(self.peek()?, Token::Value(_)) {
            return self.expected("a value (`%name`)");
        }
        match self.next()? {
            Token::Value(text) => Ok(SourceName { text, at }),
            other => unreachable!("peeked a value, took {other:?}"),
        }
    }

    /// Takes `@name`.
    pub(super) fn entity(&mut self, what: &str) -> Result<SourceName<'a>, TextFault> {
        let at = self.offset();
        if !matches!(self.peek()?, Token::Entity(_)) {
            return self.expected(&format!("{what} (`@name`)"));
        }
        match self.next()? {
            Token::Entity(text) => Ok(SourceName { text, at }),
            other => unreachable!("peeked an entity, took {other:?}"),
        }
    }

    /// Takes a block name: a word or a string.
    pub(super) fn block(&mut self) -> Result<SourceName<'a>, TextFault> {
        let at = self.offset();
        if !matches!(self.peek()?, Token::Word(_) | Token::Quoted(_)) {
            return self.expected("a block name");
        }
        match self.next()? {
            Token::Word(word) => Ok(SourceName { text: Cow::Borrowed(word), at }),
            Token::Quoted(bytes) => Ok(SourceName { text: Cow::Owned(utf8(bytes, at)?), at }),
            other => unreachable!("peeked a block name, took {other:?}"),
        }
    }

    /// Takes a quoted string.
    pub(super) fn quoted(&mut self, what: &str) -> Result<Vec<u8>, TextFault> {
        if !matches!(self.peek()?, Token::Quoted(_)) {
            return self.expected(what);
        }
        match self.next()? {
            Token::Quoted(bytes) => Ok(bytes),
            other => unreachable!("peeked a string, took {other:?}"),
        }
    }

    /// Takes a quoted string that must be UTF-8.
    pub(super) fn quoted_text(&mut self, what: &str) -> Result<String, TextFault> {
        let at = self.offset();
        utf8(self.quoted(what)?, at)
    }

    fn rest(&self) -> &'a str {
        &self.line[self.at..]
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t']).len();
    }

    /// The token at the current offset, and the offset in the line after it.
    fn scan(&self) -> Result<(Token<'a>, usize), TextFault> {
        let rest = self.rest();
        let mut chars = rest.chars();
        let Some(first) = chars.next() else {
            return Ok((Token::End, self.at));
        };
        let second = chars.next();
        match first {
            ';' => Ok((Token::End, self.at)),
            '(' | ')' | '[' | ']' | '{' | '}' | ',' | ':' | '=' | '+' => {
                Ok((Token::Punct(first), self.at + 1))
            }
            '-' if second == Some('>') => Ok((Token::Arrow, self.at + 2)),
            '-' if second == Some('i') => {
                let end = self.at + 1 + name_length(&rest[1..]);
                Ok((Token::Word(&self.line[self.at..end]), end))
            }
            '-' | '0'..='9' => {
                let end = self.at + number_length(rest);
                Ok((Token::Number(&self.line[self.at..end]), end))
            }
            '"' => self.scan_quoted(self.at).map(|(bytes, end)| (Token::Quoted(bytes), end)),
            '%' => self.scan_name().map(|(name, end)| (Token::Value(name), end)),
            '@' => self.scan_name().map(|(name, end)| (Token::Entity(name), end)),
            c if is_name_char(c) => {
                let end = self.at + name_length(rest);
                Ok((Token::Word(&self.line[self.at..end]), end))
            }
            c => Err(self.fault(self.at, format!("unexpected character `{}`", c.escape_debug()))),
        }
    }

    /// The name after a sigil, and the offset after it.
    fn scan_name(&self) -> Result<(Cow<'a, str>, usize), TextFault> {
        let from = self.at + 1;
        if self.line[from..].starts_with('"') {
            let (bytes, end) = self.scan_quoted(from)?;
            return Ok((Cow::Owned(utf8(bytes, self.start + from)?), end));
        }
        let length = name_length(&self.line[from..]);
        if length == 0 {
            let sigil = &self.line[self.at..from];
            return Err(self.fault(self.at, format!("expected a name after `{sigil}`")));
        }
        Ok((Cow::Borrowed(&self.line[from..from + length]), from + length))
    }

    /// The bytes of the string whose opening quote is at `from`, and the offset after it.
    fn scan_quoted(&self, from: usize) -> Result<(Vec<u8>, usize), TextFault> {
        let mut bytes = Vec::new();
        let mut at = from + 1;
        loop {
            let rest = &self.line[at..];
            let plain = rest
                .find(['"', '\\'])
                .ok_or_else(|| self.fault(from, "the string does not end on its line"))?;
            bytes.extend_from_slice(&rest.as_bytes()[..plain]);
            at += plain;
            if self.line[at..].starts_with('"') {
                return Ok((bytes, at + 1));
            }
            at = self.scan_escape(at, &mut bytes)?;
        }
    }

    /// Resolves the escape whose backslash is at `at`. Returns the offset after it.
    fn scan_escape(&self, at: usize, bytes: &mut Vec<u8>) -> Result<usize, TextFault> {
        let rest = &self.line[at + 1..];
        let simple = match rest.bytes().next() {
            Some(b'n') => Some(b'\n'),
            Some(b't') => Some(b'\t'),
            Some(b'r') => Some(b'\r'),
            Some(b'"') => Some(b'"'),
            Some(b'\\') => Some(b'\\'),
            _ => None,
        };
        if let Some(byte) = simple {
            bytes.push(byte);
            return Ok(at + 2);
        }
        if let Some(hex) = rest.strip_prefix("u{") {
            let digits = hex.split('}').next().unwrap_or("");
            let code = if digits.len() <= 6 { u32::from_str_radix(digits, 16).ok() } else { None };
            let c = code.and_then(char::from_u32).filter(|_| hex.len() > digits.len());
            let c = c.ok_or_else(|| {
                self.fault(at, "expected `\\u{` hexadecimal digits of a character `}`")
            })?;
            bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            return Ok(at + 1 + "u{}".len() + digits.len());
        }
        let hex = rest.get(..2).filter(|h| h.bytes().all(|b| b.is_ascii_hexdigit()));
        let byte = hex.and_then(|h| u8::from_str_radix(h, 16).ok());
        bytes.push(byte.ok_or_else(|| {
            self.fault(at, "unknown escape; known: \\n \\t \\r \\\" \\\\ \\hh \\u{h}")
        })?);
        Ok(at + 3)
    }

    fn fault(&self, at: usize, message: impl Into<String>) -> TextFault {
        TextFault::new(self.start + at, message)
    }
}

/// The length of the name at the start of a text.
fn name_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let ends = |i: usize| {
        // In `@f->i32`, the name ends before the arrow.
        !is_name_char(bytes[i] as char) || (bytes[i] == b'-' && bytes.get(i + 1) == Some(&b'>'))
    };
    (0..bytes.len()).find(|i| ends(*i)).unwrap_or(bytes.len())
}

/// The length of a number-like prefix of a text: a sign, then letters, digits and points, and a
/// sign after the `e` of an exponent.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let hex = text.trim_start_matches('-').starts_with("0x");
    let belongs = |i: usize| match bytes[i] {
        b'+' | b'-' => i == 0 || (!hex && matches!(bytes[i - 1], b'e' | b'E')),
        b => b.is_ascii_alphanumeric() || b == b'.' || b == b'_',
    };
    (0..bytes.len()).find(|i| !belongs(*i)).unwrap_or(bytes.len())
}

fn utf8(bytes: Vec<u8>, at: usize) -> Result<String, TextFault> {
    String::from_utf8(bytes).map_err(|_| TextFault::new(at, "a name must be UTF-8"))
}
