//! The table of mutants, read from the files `tests/mutants/*.mutants`, one for each area.
//!
//! ```text
//! area Sccp
//! : The pass `sccp`.
//!
//! mutant 1 SccpMeetTakesFirst
//! : Where two constants meet, the first one wins.
//! in passes/src/sccp/mod.rs
//!   (a, b) if a == b => a,
//! + (first @ Fact::Constant(_), Fact::Constant(_)) if mutant("SccpMeetTakesFirst") => first,
//! - _ => Fact::Varying,
//! + _ => Fact::Unknown,
//! ```
//!
//! An edit starts with `in` and the path of a file from the root. Its lines have the form of a
//! diff: a line with a blank in front stays, `-` removes a line, `+` adds a line. The lines that
//! stay or go are the exact text of the source, which must occur once in the file. Blanks, line
//! breaks and comments do not count in the comparison, so neither rustfmt nor a new comment breaks
//! an edit. Leave comments out of the text.
//!
//! `mutant("Name")` in a line that comes is the condition that the mutant is switched on. One edit
//! may serve several mutants, and several edits one mutant. Ids and names are unique over all
//! files; areas are in the order of their first ids. A line with `#` in front is a comment.

use std::fmt;
use std::path::{Path, PathBuf};

/// The part of the code that a mutant breaks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Area {
    /// The name, as [`Mutant::area`] has it.
    pub name: String,
    /// A sentence about it.
    pub summary: String,
}

/// A wrong change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mutant {
    /// The number in tables; unique.
    pub id: u32,
    /// The name; unique.
    pub name: String,
    /// The name of its area.
    pub area: String,
    /// The mistake, in a sentence.
    pub summary: String,
}

/// A line of an edit, without its mark.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Line {
    /// Stands in the source and stays.
    Stays(String),
    /// Stands in the source and goes.
    Goes(String),
    /// Is put there.
    Comes(String),
}

/// A replacement of one text in one file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edit {
    /// The mutant that it stands under.
    pub under: String,
    /// The file of the table, and the line in the file.
    pub at: String,
    /// The path of the source from the root, with `/`.
    pub file: String,
    /// Its lines, in order.
    pub lines: Vec<Line>,
}

impl Edit {
    /// The text that the source must have, in lines.
    pub fn before(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|line| match line {
            Line::Stays(text) | Line::Goes(text) => Some(text.as_str()),
            Line::Comes(_) => None,
        })
    }

    /// The names of the mutants in its conditions.
    pub fn switches(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().flat_map(|line| {
            match line {
                Line::Comes(text) => text.split(SWITCH).skip(1).collect(),
                Line::Stays(_) | Line::Goes(_) => Vec::new(),
            }
            .into_iter()
            .filter_map(|rest: &str| rest.split_once("\")").map(|(name, _)| name))
        })
    }
}

/// How a condition begins.
pub const SWITCH: &str = "mutant(\"";

/// A line of a table that says nothing in the format above.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Malformed {
    /// The file and the line.
    pub at: String,
    /// Why.
    pub why: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.why)
    }
}

/// All areas, mutants and edits.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Table {
    /// In the order of the ids of their first mutants.
    pub areas: Vec<Area>,
    /// In the order of ids.
    pub mutants: Vec<Mutant>,
    /// In the order of files and lines.
    pub edits: Vec<Edit>,
}

impl Table {
    /// The table of this workspace.
    ///
    /// # Errors
    /// A line that is not in the format.
    ///
    /// # Panics
    /// When its files cannot be read.
    pub fn read() -> Result<Table, Malformed> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let entries = std::fs::read_dir(folder).expect("the folder of mutants can be read");
        let mut paths: Vec<PathBuf> =
            entries.map(|e| e.expect("the folder of mutants can be read").path()).collect();
        paths.retain(|path| path.extension().is_some_and(|e| e == "mutants"));
        paths.sort();
        let mut table = Table::default();
        for path in paths {
            let text = std::fs::read_to_string(&path).expect("a table of mutants can be read");
            let name = path.file_name().and_then(|n| n.to_str()).expect("file names are UTF-8");
            table.add(name, &text)?;
        }
        table.sort();
        Ok(table)
    }

    /// Adds the mutants of one file.
    ///
    /// # Errors
    /// A line that is not in the format.
    pub fn add(&mut self, file: &str, text: &str) -> Result<(), Malformed> {
        let mut last = Last::Nothing;
        for (number, line) in text.lines().enumerate() {
            let at = format!("{file}:{}", number + 1);
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            last = self.line(line, &at, last).map_err(|why| Malformed { at, why })?;
        }
        Ok(())
    }

    fn line(&mut self, line: &str, at: &str, last: Last) -> Result<Last, String> {
        let (mark, rest) = line.split_at(line.chars().next().map_or(0, char::len_utf8));
        let text = rest.to_owned();
        match (mark, last) {
            (" ", Last::Edit) => self.edit().push(Line::Stays(text)),
            ("-", Last::Edit) => self.edit().push(Line::Goes(text)),
            ("+", Last::Edit) => self.edit().push(Line::Comes(text)),
            (" " | "-" | "+", _) => return Err("a line of code outside an edit".to_owned()),
            (":", Last::Area) => {
                extend(&mut self.areas.last_mut().expect("an area came").summary, &text);
                return Ok(Last::Area);
            }
            (":", Last::Mutant) => {
                extend(&mut self.mutants.last_mut().expect("a mutant came").summary, &text);
                return Ok(Last::Mutant);
            }
            _ => return self.heading(line, at),
        }
        Ok(Last::Edit)
    }

    fn edit(&mut self) -> &mut Vec<Line> {
        &mut self.edits.last_mut().expect("an edit came").lines
    }

    fn heading(&mut self, line: &str, at: &str) -> Result<Last, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["area", name] => {
                self.areas.push(Area { name: (*name).to_owned(), summary: String::new() });
                Ok(Last::Area)
            }
            ["mutant", id, name] => {
                let id = id.parse().map_err(|_| format!("{id} is no id"))?;
                let area = self.areas.last().ok_or("a mutant before any area")?.name.clone();
                let name = (*name).to_owned();
                self.mutants.push(Mutant { id, name, area, summary: String::new() });
                Ok(Last::Mutant)
            }
            ["in", file] => {
                let under = self.mutants.last().ok_or("an edit before any mutant")?.name.clone();
                let (at, file) = (at.to_owned(), (*file).to_owned());
                self.edits.push(Edit { under, at, file, lines: Vec::new() });
                Ok(Last::Edit)
            }
            _ => Err(format!("neither `area`, `mutant`, `in`, a summary nor code: {line}")),
        }
    }

    fn sort(&mut self) {
        self.mutants.sort_by_key(|m| m.id);
        let first = |area: &Area| self.mutants.iter().position(|m| m.area == area.name);
        self.areas.sort_by_key(first);
    }

    /// The mutant with a name.
    pub fn mutant(&self, name: &str) -> Option<&Mutant> {
        self.mutants.iter().find(|m| m.name == name)
    }
}

/// The kind of the last line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Nothing,
    Area,
    Mutant,
    Edit,
}

fn extend(summary: &mut String, text: &str) {
    if !summary.is_empty() {
        summary.push(' ');
    }
    summary.push_str(text.trim());
}
