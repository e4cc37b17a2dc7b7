//! Names in the text form: bare names, quoted names, and the resolution of clashes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::fmt::Write;

/// Whether a bare name may contain this character.
pub(super) fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$' | '-' | '/')
}

/// Writes a name after its sigil. Quotes a name that cannot be bare.
pub(super) fn write_name(out: &mut dyn Write, name: &str) -> fmt::Result {
    let bare = !name.is_empty() && name.chars().all(is_name_char) && !name.ends_with('-');
    if bare { out.write_str(name) } else { write_text(out, name) }
}

/// A name of the module, to be shown with its sigil as the text form has it: `@f`, or
/// `@"std::io"`. Names come from the input, and a name that stands in a message as it is may
/// control a terminal (`names_with_control_characters_are_quoted`).
#[derive(Clone, Copy, Debug)]
pub struct AtName<'n>(pub &'n str);

impl fmt::Display for AtName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('@')?;
        write_name(f, self.0)
    }
}

/// Writes a block name. A bare block name carries no sigil, so it must not look like a number.
pub(super) fn write_block_name(out: &mut dyn Write, name: &str) -> fmt::Result {
    let number = name.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    if number { write_text(out, name) } else { write_name(out, name) }
}

/// Writes text between quotes. Escapes characters that are not printable, so a name can neither end
/// the line nor control a terminal.
pub(super) fn write_text(out: &mut dyn Write, text: &str) -> fmt::Result {
    out.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\'' => out.write_char(c)?,
            c if c.escape_debug().count() == 1 => out.write_char(c)?,
            c => write!(out, "\\u{{{:x}}}", c as u32)?,
        }
    }
    out.write_char('"')
}

/// Writes bytes between quotes: printable ASCII unchanged, all other bytes as `\hh`.
pub(super) fn write_bytes(out: &mut dyn Write, bytes: &[u8]) -> fmt::Result {
    out.write_char('"')?;
    for byte in bytes {
        match byte {
            b'"' => out.write_str("\\\"")?,
            b'\\' => out.write_str("\\\\")?,
            b' '..=b'~' => out.write_char(*byte as char)?,
            byte => write!(out, "\\{byte:02x}")?,
        }
    }
    out.write_char('"')
}

/// The printed names of the entities whose own name is taken by another entity. Of the entities
/// with one name, the lowest id keeps it. Each other entity gets the first free suffix `.1`, `.2`,
/// ...
///
/// `id_named` returns the entity with this default name, if it exists. Cost: near linear in the
/// number of given names, because no suffix is tried twice for one name.
pub(super) fn resolve_clashes<K: Copy + Ord>(
    given: &BTreeMap<K, Box<str>>,
    id_named: impl Fn(&str) -> Option<K>,
) -> BTreeMap<K, String> {
    let mut taken: HashSet<&str> = HashSet::new();
    let mut clashing: BTreeMap<K, &str> = BTreeMap::new();
    for (key, name) in given {
        if !taken.insert(name) {
            clashing.insert(*key, name);
        }
        // A given name may be the default name of an entity without a name. The given name stays,
        // and the unnamed entity gets a suffix.
        if let Some(unnamed) = id_named(name).filter(|k| !given.contains_key(k)) {
            clashing.insert(unnamed, name);
        }
    }
    let mut suffixes: HashMap<&str, u32> = HashMap::new();
    let mut chosen: HashSet<String> = HashSet::new();
    let mut resolved = BTreeMap::new();
    for (key, name) in clashing {
        let suffix = suffixes.entry(name).or_insert(0);
        let unique = loop {
            *suffix += 1;
            let candidate = format!("{name}.{suffix}");
            if !taken.contains(candidate.as_str()) && !chosen.contains(&candidate) {
                break candidate;
            }
        };
        chosen.insert(unique.clone());
        resolved.insert(key, unique);
    }
    resolved
}
