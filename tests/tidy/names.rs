//! Names in backticks, and a check that each names something in the repository.

use crate::tree::files;
use std::collections::{BTreeMap, BTreeSet};

/// The names in backticks outside code blocks, each with the line of its first occurrence.
pub(crate) fn backticked(text: &str) -> Vec<(String, usize)> {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    let mut in_block = false;
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            for name in line.split('`').skip(1).step_by(2) {
                found.entry(name.to_owned()).or_insert(number + 1);
            }
        }
    }
    found.into_iter().collect()
}

/// The contents of the repository, by name.
pub(crate) struct Tree {
    files: BTreeMap<String, String>,
    /// By source: the items, methods, variants and fields it defines.
    defined: BTreeMap<String, BTreeSet<String>>,
    /// Every string literal without blanks in any source: names of passes, operations, keys and
    /// variables.
    literals: BTreeSet<String>,
}

impl Tree {
    /// Reads the repository.
    pub(crate) fn read() -> Tree {
        let files: BTreeMap<String, String> = files().into_iter().collect();
        let mut defined = BTreeMap::new();
        let mut literals = BTreeSet::new();
        for (path, text) in files
            .iter()
            .filter(|(path, _)| path.ends_with(".rs") && !path.starts_with("tests/tidy"))
        {
            defined.insert(path.clone(), definitions(text));
            let words =
                text.split('"').filter(|w| !w.is_empty() && !w.contains(char::is_whitespace));
            literals.extend(words.map(str::to_owned));
        }
        Tree { files, defined, literals }
    }

    /// The text of a file.
    pub(crate) fn text(&self, path: &str) -> String {
        self.files.get(path).unwrap_or_else(|| panic!("no {path}")).clone()
    }

    /// Whether a name names something: a file or folder, a crate, a module or item by its path, an
    /// item by its bare name, or a word that is a string in a source. Of a command with blanks,
    /// only the first word counts.
    pub(crate) fn has(&self, name: &str) -> bool {
        let name = name.trim_end_matches("()");
        match name.split_once(' ') {
            Some((first, _)) => first == "cargo" || first == "osier" || self.has(first),
            None if name.contains("::") => self.has_item(name),
            None if name.contains('/') => self.has_path(name),
            // A file extension.
            None if name.starts_with('.') => self.files.keys().any(|path| path.ends_with(name)),
            None => self.has_path(name) || self.has_crate(name) || self.has_word(name),
        }
    }

    fn has_path(&self, name: &str) -> bool {
        let folder = format!("{}/", name.trim_end_matches('/'));
        self.files.contains_key(name) || self.files.keys().any(|path| path.starts_with(&folder))
    }

    /// Whether a path, or a path without its first folders, names a file or a folder.
    pub(crate) fn has_end(&self, name: &str) -> bool {
        let end = format!("/{}", name.trim_end_matches('/'));
        let folder = format!("{end}/");
        let is_below = |path: &String| path.ends_with(&end) || path.contains(&folder);
        self.has_path(name) || self.files.keys().any(is_below)
    }

    /// Whether a source defines a function of this name, tests of the sources themselves included.
    pub(crate) fn has_function(&self, name: &str) -> bool {
        let definition = format!("fn {name}(");
        self.files.iter().any(|(path, text)| path.ends_with(".rs") && text.contains(&definition))
    }

    fn has_crate(&self, name: &str) -> bool {
        let row = |line: &str| line.split([' ', '.']).next() == Some(name) && line.contains('=');
        let package = |text: &str| text.lines().any(|l| l == format!("name = \"{name}\""));
        self.files.iter().any(|(path, text)| {
            path.ends_with("Cargo.toml")
                && (text.lines().any(|line| row(line.trim_start())) || package(text))
        })
    }

    fn has_word(&self, name: &str) -> bool {
        self.literals.contains(name) || self.defined.values().any(|d| d.contains(name))
    }

    /// Whether `crate::module::Item::method` resolves. Modules are files. The remaining parts must
    /// be defined in the file reached, in a file below it (re-exports), or, under an item, anywhere
    /// in the crate.
    fn has_item(&self, name: &str) -> bool {
        let mut parts = name.split("::");
        let mut at = match parts.next() {
            Some("osier") => "src/".to_owned(),
            Some(first) if self.has_path(&format!("{first}/src/lib.rs")) => format!("{first}/src/"),
            // A path that starts at an item or module: some source must define every part.
            Some(first) => {
                return name.split("::").all(|part| self.has_word(part)) && !first.is_empty();
            }
            None => return false,
        };
        let root = at.clone();
        let mut below_item = false;
        for part in parts {
            let module = [format!("{at}{part}.rs"), format!("{at}{part}/mod.rs")];
            if !below_item && module.iter().any(|m| self.files.contains_key(m)) {
                at = format!("{at}{part}/");
                continue;
            }
            let scope = if below_item { &root } else { &at };
            // Without a folder of its own, a module is a file beside the place of that folder.
            let own = format!("{}.rs", at.trim_end_matches('/'));
            let mut scoped =
                self.defined.iter().filter(|(path, _)| path.starts_with(scope) || **path == own);
            if !scoped.any(|(_, defined)| defined.contains(part)) {
                return false;
            }
            below_item = true;
        }
        true
    }
}

/// Every word that a source defines: after a keyword, or as a variant or field at the start of a
/// line.
fn definitions(text: &str) -> BTreeSet<String> {
    let keywords =
        ["fn", "struct", "enum", "trait", "mod", "const", "static", "type", "macro_rules!"];
    let mut found = BTreeSet::new();
    for line in text.lines().map(str::trim_start).filter(|l| !l.starts_with("//")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        for pair in words.windows(2).filter(|pair| keywords.contains(&pair[0])) {
            found.insert(leading_word(pair[1]).to_owned());
        }
        let first = leading_word(line.strip_prefix("pub ").unwrap_or(line));
        let rest = line.strip_prefix("pub ").unwrap_or(line)[first.len()..].trim_start();
        if rest.is_empty() || rest.starts_with([',', '{', '(', ':', '=', '"']) {
            found.insert(first.to_owned());
        }
    }
    found.remove("");
    found
}

fn leading_word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}
