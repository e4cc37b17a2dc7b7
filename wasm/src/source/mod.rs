//! Lines of the source, from the debug info of a module.
//!
//! Compilers write DWARF into custom sections of a module. [`SourceMap`] joins it with the offsets
//! of [`crate::import_with_offsets`]: it names the line that an instruction comes from, and the
//! name that a function has in the source. DWARF 2 to 5 is read, with addresses of 32 bits. It must
//! be in the module itself; files of split DWARF are not read.
//!
//! Nothing is read before the first question. The first request for a line reads all line tables,
//! since they are stored one behind another without an index. The first request for a name reads
//! the entries of functions.
//!
//! Debug info is untrusted, and no program depends on it. Whatever is cut, contradicts itself or
//! exceeds a bound is left out, with a [`SourceNote`]. Memory is in proportion to the sections and
//! to the code: at most one row is kept for each byte of code, and the bytes of paths are bounded.
//! Time is linear in the sections.
//!
//! `gimli` reads headers, forms and instructions. `addr2line` 0.26, which stands above it, would
//! read correct debug info as well: of 18 MB (Ruby 3.4) it reads all rows in 0.08 s and 9,811 names
//! in 0.29 s, and this module in 0.09 s and 0.09 s. It is not used, because it bounds no work:
//!
//! - Each unit reads its table again. 3,000 units that name one table, 84 kB in all, take 17 s and
//!   2.5 GB, and 3 ms here.
//! - Each unit makes the paths of all files first. 10,000 files in a directory with a long name,
//!   100 kB in all, take 520 MB.
//! - 100,000 inlined calls one in another, 200 kB, overflow its stack, which ends the process. This
//!   module reads them in 8 ms.
//!
//! It gives no notes either, and it prefers mangled names to the names in the source.

mod lines;
mod names;
mod sections;

use crate::offsets::CodeOffsets;
use ir::{Func, Inst};
use lines::LineTable;
use names::FunctionNames;
use sections::DebugSections;
use std::fmt;
use std::sync::OnceLock;

/// A line of the source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SourceLine<'a> {
    /// The path of the file as the compiler knew it: relative to the directory of the compilation,
    /// or absolute. Bytes that are not UTF-8 are replaced. It may have any characters.
    pub file: &'a str,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1. `None` if the compiler named only the line.
    pub column: Option<u32>,
}

impl fmt::Display for SourceLine<'_> {
    /// Prints `file:line:column`, or `file:line` without a column. Characters that do not print as
    /// themselves are escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.file.chars() {
            match c {
                '\'' | '"' | '\\' => write!(f, "{c}")?,
                c => write!(f, "{}", c.escape_debug())?,
            }
        }
        write!(f, ":{}", self.line)?;
        self.column.map_or(Ok(()), |column| write!(f, ":{column}"))
    }
}

/// A part of the debug info that was left out, and why.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SourceNote {
    section: &'static str,
    offset: usize,
    cause: String,
}

impl SourceNote {
    /// The name of the section: `.debug_line`.
    pub fn section(&self) -> &'static str {
        self.section
    }

    /// The offset in the section of the part that was left out.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Why it was left out, without its place.
    pub fn cause(&self) -> &str {
        &self.cause
    }
}

impl fmt::Display for SourceNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:#x}: {}", self.section, self.offset, self.cause)
    }
}

/// The notes of reading, at most [`Notes::MOST`].
#[derive(Default, Debug)]
struct Notes(Vec<SourceNote>);

impl Notes {
    /// Each table of a thousand may be broken in the same way, and the first few tell.
    const MOST: usize = 8;

    fn add(&mut self, section: &'static str, offset: usize, cause: impl fmt::Display) {
        if self.0.len() < Notes::MOST {
            self.0.push(SourceNote { section, offset, cause: cause.to_string() });
        }
    }
}

/// Where the instructions of a module come from: lines of the source, and names of functions.
///
/// The map answers for imported functions. Passes keep the ids of instructions that they move, so
/// versions share the lines of moved instructions. An added instruction has no line here.
#[derive(Debug)]
pub struct SourceMap {
    offsets: CodeOffsets,
    sections: DebugSections,
    lines: OnceLock<LineTable>,
    names: OnceLock<FunctionNames>,
}

impl SourceMap {
    /// Whether a binary module has debug info with lines: a section `.debug_line`. Reads only the
    /// headers of sections. `false` for other bytes.
    pub fn has_lines(bytes: &[u8]) -> bool {
        sections::has_lines(bytes)
    }

    /// The source map of a module, from its bytes and the offsets of its import. Copies the
    /// sections with debug info and reads none of them yet.
    pub fn new(bytes: &[u8], offsets: CodeOffsets) -> SourceMap {
        let sections = DebugSections::of(bytes);
        SourceMap { offsets, sections, lines: OnceLock::new(), names: OnceLock::new() }
    }

    /// The line that an instruction comes from. `None` if the compiler named no line, the
    /// instruction comes from no operator, or the module does not define the function. Cost:
    /// logarithmic in the rows of the line tables, after the first call, which reads these.
    pub fn of(&self, func: Func, inst: Inst) -> Option<SourceLine<'_>> {
        let offset = self.offsets.of(func, inst)?;
        self.lines().at(offset, self.offsets.body(func)?.start)
    }

    /// The line at which a function begins: the first line that the compiler named for its code.
    /// `None` if it named no line. Cost: as [`SourceMap::of`].
    pub fn start_of(&self, func: Func) -> Option<SourceLine<'_>> {
        self.lines().first_in(self.offsets.body(func)?)
    }

    /// The name that a function has in the source, without its namespace, type or arguments. `None`
    /// if the debug info names no function whose code begins there. Cost: logarithmic in the
    /// functions, after the first call, which reads the entries of all.
    pub fn name_of(&self, func: Func) -> Option<&str> {
        let start = self.offsets.body(func)?.start;
        self.names.get_or_init(|| FunctionNames::read(&self.sections, &self.offsets)).at(start)
    }

    /// The parts of the debug info that were left out so far, at most eight of each kind. Before
    /// the first request, a map has read nothing and lists no notes.
    pub fn notes(&self) -> impl Iterator<Item = &SourceNote> {
        let lines = self.lines.get().into_iter().flat_map(|lines| &lines.notes.0);
        let names = self.names.get().into_iter().flat_map(|names| &names.notes.0);
        lines.chain(names)
    }

    /// The operators that the instructions come from.
    pub fn offsets(&self) -> &CodeOffsets {
        &self.offsets
    }

    fn lines(&self) -> &LineTable {
        self.lines.get_or_init(|| LineTable::read(&self.sections, &self.offsets))
    }
}
