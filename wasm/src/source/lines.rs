//! Reads line tables.
//!
//! `.debug_line` is a list of programs, one for each compiled file. A program makes rows, each an
//! address, a file, a line and a column; a row is true up to the address of the next. `gimli` reads
//! headers and instructions. The instructions are executed here: its own machine overflows on the
//! least of all line advances.
//!
//! Linkers leave the rows of functions that they removed, at addresses beyond the code, or at 0,
//! which is before the first function. Such sequences are left out without a note.

use super::sections::{DebugSections, LONGEST, string_at};
use super::{Notes, SourceLine};
use crate::offsets::CodeOffsets;
use gimli::{
    AttributeValue, DebugLine, DebugLineOffset, EndianSlice, FileEntry, LineInstruction,
    LineProgramHeader, LittleEndian,
};
use std::collections::HashMap;
use std::ops::Range;

type Reader<'a> = EndianSlice<'a, LittleEndian>;
type Header<'a> = LineProgramHeader<Reader<'a>>;

const SECTION: &str = ".debug_line";

/// The longest header that is read, in bytes. `gimli` makes a hundred bytes of one, for each file;
/// a program of ten thousand files has half of this.
const LONGEST_HEADER: usize = 512 << 10;

/// Why a sequence is left out that begins in the code.
const BEYOND: &str = "a sequence that leaves the code";

/// The line of a row without a line, and of the end of a sequence.
const NO_LINE: u32 = 0;

/// The rows of all programs.
#[derive(Debug)]
pub(super) struct LineTable {
    /// In the order of addresses. The end of a sequence comes before a row at the same address.
    rows: Vec<LineRow>,
    files: Vec<Box<str>>,
    pub(super) notes: Notes,
}

/// A row, and the end of a sequence, which has no line.
#[derive(Clone, Copy, Debug)]
struct LineRow {
    address: u32,
    /// The number in [`LineTable::files`].
    file: u32,
    line: u32,
    column: u32,
}

impl LineTable {
    pub(super) fn read(sections: &DebugSections, offsets: &CodeOffsets) -> LineTable {
        let code = code_range(offsets);
        let mut builder = Builder {
            sections,
            most_rows: code.end as usize,
            code,
            path_bytes: 4 * sections.len() + LONGEST,
            known: HashMap::new(),
            table: LineTable { rows: Vec::new(), files: Vec::new(), notes: Notes::default() },
        };
        builder.programs();
        let mut table = builder.table;
        table.rows.sort_by_key(|row| (row.address, row.line != NO_LINE));
        table.rows.shrink_to_fit();
        table
    }

    /// The line of the operator at an offset, in a body that starts at `start`.
    pub(super) fn at(&self, offset: u32, start: u32) -> Option<SourceLine<'_>> {
        let behind = self.rows.partition_point(|row| row.address <= offset);
        let row = self.rows.get(behind.checked_sub(1)?)?;
        // A row in front of the body is one of another function, whose end is missing.
        (row.address >= start).then(|| self.line(row))?
    }

    /// The first line named in a body.
    pub(super) fn first_in(&self, body: Range<u32>) -> Option<SourceLine<'_>> {
        let first = self.rows.partition_point(|row| row.address < body.start);
        let rows = self.rows[first..].iter().take_while(|row| row.address < body.end);
        rows.filter_map(|row| self.line(row)).next()
    }

    fn line(&self, row: &LineRow) -> Option<SourceLine<'_>> {
        let file = self.files.get(row.file as usize)?;
        let column = (row.column > 0).then_some(row.column);
        (row.line != NO_LINE).then_some(SourceLine { file, line: row.line, column })
    }
}

/// From the first body to the end of the last.
fn code_range(offsets: &CodeOffsets) -> Range<u32> {
    let bodies = || offsets.funcs().filter_map(|func| offsets.body(func));
    let start = bodies().map(|body| body.start).min().unwrap_or(0);
    start..bodies().map(|body| body.end).max().unwrap_or(0)
}

struct Builder<'a> {
    sections: &'a DebugSections,
    code: Range<u32>,
    /// The rows that fit: each stands at an address of its own, unless the tables overlap.
    most_rows: usize,
    /// The bytes of paths that may still be made. A few bytes may name a long directory.
    path_bytes: usize,
    /// The number of each file.
    known: HashMap<Box<str>, u32>,
    table: LineTable,
}

/// The place of a program in its section.
struct ProgramSpan {
    start: usize,
    /// The start of the next program.
    end: usize,
    version: u64,
    header_length: u64,
}

impl Builder<'_> {
    /// Reads the programs one after another, up to one whose length is wrong.
    fn programs(&mut self) {
        let mut start = 0;
        while start < self.sections.line.len() {
            let unit = match ProgramSpan::at(&self.sections.line, start) {
                Ok(unit) => unit,
                Err(cause) => {
                    self.table.notes.add(SECTION, start, cause);
                    return;
                }
            };
            if let Err(cause) = self.program(&unit) {
                self.table.notes.add(SECTION, start, cause);
            }
            if self.table.rows.len() > self.most_rows {
                let cause = "more rows than the code has bytes; the others are left out";
                self.table.notes.add(SECTION, start, cause);
                self.table.rows.truncate(self.most_rows);
                return;
            }
            start = unit.end;
        }
    }

    /// Adds the rows of a program. Rows of complete sequences stay if the program fails later.
    fn program(&mut self, unit: &ProgramSpan) -> Result<(), String> {
        if !(2..=5).contains(&unit.version) {
            return Err(format!("DWARF {}; 2 to 5 are read", unit.version));
        }
        if unit.header_length > LONGEST_HEADER as u64 {
            let length = unit.header_length;
            return Err(format!("a header of {length} bytes; the limit is {LONGEST_HEADER}"));
        }
        let sections = self.sections;
        let section = DebugLine::new(&sections.line[..unit.end], LittleEndian);
        let program = section.program(DebugLineOffset(unit.start), 4, None, None);
        let program = program.map_err(|error| error.to_string())?;
        let header = program.header();
        if header.line_encoding().maximum_operations_per_instruction != 1 {
            return Err("the table is for another kind of machine".to_owned());
        }
        let mut files = HashMap::new();
        let mut sequence = Sequence::new(self.code.clone());
        let mut instructions = header.instructions();
        loop {
            let instruction = instructions.next_instruction(header);
            let Some(instruction) = instruction.map_err(|error| error.to_string())? else { break };
            match sequence.execute(instruction, header) {
                Step::Goes => {}
                Step::Row => {
                    let file = *files.entry(sequence.file).or_insert_with(|| {
                        self.file(header, sequence.file, unit.start).unwrap_or(u32::MAX)
                    });
                    sequence.row(file);
                }
                Step::Ends => {
                    self.keep(&mut sequence, unit.start);
                    if self.table.rows.len() > self.most_rows {
                        return Ok(()); // the caller says so
                    }
                }
            }
        }
        match sequence.rows.is_empty() {
            true => Ok(()),
            false => Err("the last sequence has no end".to_owned()),
        }
    }

    /// Keeps the rows of a sequence that ends, and starts the next.
    fn keep(&mut self, sequence: &mut Sequence, at: usize) {
        let ended = std::mem::replace(sequence, Sequence::new(self.code.clone()));
        if ended.is_elsewhere || ended.rows.is_empty() {
            return;
        }
        let end = u32::try_from(ended.address).ok().filter(|end| *end <= self.code.end);
        match (ended.wrong, end) {
            (None, Some(address)) => {
                self.table.rows.extend(ended.rows);
                self.table.rows.push(LineRow { address, file: u32::MAX, line: NO_LINE, column: 0 });
            }
            (Some(cause), _) => self.table.notes.add(SECTION, at, cause),
            (None, None) => self.table.notes.add(SECTION, at, BEYOND),
        }
    }

    /// The number of a file of a program.
    fn file(&mut self, header: &Header<'_>, number: u64, at: usize) -> Option<u32> {
        let Some(entry) = header.file(number) else {
            let cause = format!("rows of file {number}, which the header does not list");
            self.table.notes.add(SECTION, at, cause);
            return None;
        };
        if self.path_bytes == 0 {
            self.table.notes.add(SECTION, at, "the paths are longer than the debug info");
            return None;
        }
        let path = self.path(header, entry);
        let bytes = path.as_ref().map_or(LONGEST, String::len);
        self.path_bytes = self.path_bytes.saturating_sub(bytes);
        let Some(path) = path else {
            self.table.notes.add(SECTION, at, format!("file {number} has no readable path"));
            return None;
        };
        if let Some(number) = self.known.get(path.as_str()) {
            return Some(*number);
        }
        let (path, number) = (path.into_boxed_str(), self.table.files.len() as u32);
        self.table.files.push(path.clone());
        self.known.insert(path, number);
        Some(number)
    }

    /// The path of a file: its directory, unless that is the directory of the compilation, and its
    /// name.
    fn path(&self, header: &Header<'_>, entry: &FileEntry<Reader<'_>>) -> Option<String> {
        let name = self.text(entry.path_name())?;
        // Directory 0 is the directory of the compilation, in all versions.
        if entry.directory_index() == 0 || name.starts_with('/') {
            return Some(name);
        }
        let directory = self.text(header.directory(entry.directory_index())?)?;
        let path = match directory.trim_end_matches('/') {
            "." => name,
            directory => format!("{directory}/{name}"),
        };
        (path.len() <= LONGEST).then_some(path)
    }

    fn text(&self, value: AttributeValue<Reader<'_>>) -> Option<String> {
        let text = match value {
            AttributeValue::String(text) if text.len() <= LONGEST => text.to_string_lossy(),
            AttributeValue::DebugStrRef(at) => string_at(&self.sections.str, at.0)?,
            AttributeValue::DebugLineStrRef(at) => string_at(&self.sections.line_str, at.0)?,
            _ => return None,
        };
        (!text.is_empty()).then(|| text.into_owned())
    }
}

impl ProgramSpan {
    /// The program at an offset of the section.
    ///
    /// # Errors
    /// If its length is wrong, so that the next program cannot be found.
    fn at(section: &[u8], start: usize) -> Result<ProgramSpan, String> {
        let field = |at: usize, bytes: usize| -> Result<u64, String> {
            let field = at.checked_add(bytes).and_then(|end| section.get(at..end));
            let field = field.ok_or("the section ends in a header")?;
            Ok(field.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
        };
        let short = field(start, 4)?;
        let (length, mut at, size) = match short {
            0xffff_ffff => (field(start + 4, 8)?, start + 12, 8),
            0xffff_fff0.. => return Err(format!("the reserved length {short:#x}")),
            _ => (short, start + 4, 4),
        };
        let end = usize::try_from(length).ok().and_then(|length| at.checked_add(length));
        let Some(end) = end.filter(|end| *end <= section.len()) else {
            let left = section.len() - at;
            return Err(format!("a table of {length} bytes, where the section has {left} more"));
        };
        // Addresses and segments have their sizes in the header from DWARF 5 on.
        let version = field(at, 2)?;
        at += if version >= 5 { 4 } else { 2 };
        Ok(ProgramSpan { start, end, version, header_length: field(at, size)? })
    }
}

/// The effect of an instruction of a program.
enum Step {
    Goes,
    /// Makes a row.
    Row,
    /// Ends a sequence.
    Ends,
}

/// The registers of the machine, and the rows of the sequence that it is in.
struct Sequence {
    code: Range<u32>,
    address: u64,
    file: u64,
    line: u64,
    column: u64,
    rows: Vec<LineRow>,
    /// Whether the sequence begins outside of the code: it describes a function that a linker
    /// removed.
    is_elsewhere: bool,
    /// Why the sequence is left out although it begins in the code.
    wrong: Option<&'static str>,
}

impl Sequence {
    fn new(code: Range<u32>) -> Sequence {
        let (rows, is_elsewhere, wrong) = (Vec::new(), false, None);
        Sequence { code, address: 0, file: 1, line: 1, column: 0, rows, is_elsewhere, wrong }
    }

    fn execute(&mut self, instruction: LineInstruction<Reader<'_>>, header: &Header<'_>) -> Step {
        let encoding = header.line_encoding();
        let advance = |opcode: u8| {
            let adjusted = opcode - header.opcode_base();
            (u64::from(adjusted / encoding.line_range), adjusted % encoding.line_range)
        };
        match instruction {
            LineInstruction::Special(opcode) => {
                let (addresses, lines) = advance(opcode);
                self.move_on(addresses, header);
                self.move_line(i64::from(encoding.line_base) + i64::from(lines));
                return Step::Row;
            }
            LineInstruction::Copy => return Step::Row,
            LineInstruction::EndSequence => return Step::Ends,
            LineInstruction::AdvancePc(addresses) => self.move_on(addresses, header),
            LineInstruction::ConstAddPc => self.move_on(advance(255).0, header),
            LineInstruction::FixedAddPc(bytes) => {
                self.address = self.address.saturating_add(bytes.into())
            }
            LineInstruction::SetAddress(address) => {
                if !self.rows.is_empty() && address < self.address {
                    self.wrong = Some("a sequence whose addresses decrease");
                }
                self.address = address;
            }
            LineInstruction::AdvanceLine(lines) => self.move_line(lines),
            LineInstruction::SetFile(file) => self.file = file,
            LineInstruction::SetColumn(column) => self.column = column,
            // The rest says more about a row, or nothing that is known.
            _ => {}
        }
        Step::Goes
    }

    fn move_on(&mut self, operations: u64, header: &Header<'_>) {
        let length = u64::from(header.line_encoding().minimum_instruction_length);
        self.address = self.address.saturating_add(operations.saturating_mul(length));
    }

    fn move_line(&mut self, lines: i64) {
        self.line = self.line.saturating_add_signed(lines);
    }

    /// Adds a row. The last of several rows at one address counts.
    fn row(&mut self, file: u32) {
        let is_code = self.address >= self.code.start.into() && self.address < self.code.end.into();
        match self.rows.is_empty() {
            true => self.is_elsewhere |= !is_code,
            false if !is_code => self.wrong = Some(BEYOND),
            false => {}
        }
        if self.is_elsewhere || self.wrong.is_some() {
            return; // no row of it will be kept
        }
        let fits = |number: u64| u32::try_from(number).unwrap_or(0);
        let address = self.address as u32;
        let row = LineRow { address, file, line: fits(self.line), column: fits(self.column) };
        match self.rows.last_mut() {
            Some(last) if last.address == address => *last = row,
            _ => self.rows.push(row),
        }
    }
}
