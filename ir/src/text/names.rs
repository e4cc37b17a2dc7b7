//! Names: which may stand bare, how others are quoted, and what a clash is resolved to.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::fmt::Write;

/// Whether a bare name may have this character.
pub(super) fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$' | '-' | '/')
}

/// Writes a name after its sigil, quoted when it cannot stand bare.
pub(super) fn write_name(out: &mut dyn Write, name: &str) -> fmt::Result {
    let bare = !name.is_empty() && name.chars().all(is_name_char) && !name.ends_with('-');
    if bare { out.write_str(name) } else { write_text(out, name) }
}

/// Writes a block name, which has no sigil and so must not look like a number.
pub(super) fn write_block_name(out: &mut dyn Write, name: &str) -> fmt::Result {
    let number = name.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    if number { write_text(out, name) } else { write_name(out, name) }
}

/// Writes text between quotes. What is not printable is escaped, so that a name can neither break a
/// line nor drive a terminal.
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

/// Writes bytes between quotes: printable ASCII as it is, the others as `\hh`.
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

/// The names that must be printed otherwise than as given, or as the id says, because another
/// entity has that name: the lowest id keeps it, the others get the first free `.1`, `.2`, ...
/// after it.
///
/// `id_named` is the entity, if it exists, whose default name a text is. Cost: near linear in the
/// number of given names: a suffix is never tried twice for one name.
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
