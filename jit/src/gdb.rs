//! Names of native code for `gdb` and `lldb`, through the interface that they share: the process
//! keeps a list of object files in memory, and calls a function at which the debugger stops.
//!
//! Each piece of code has an object file of its own (ELF, some 500 bytes) with one symbol, and
//! perhaps a line table. The interface: "JIT Compilation Interface" in the manual of gdb.

use crate::observe::{CodeObserver, CodeSource, Piece};
use crate::sys::debugger::DebuggerFile;
use gimli::write::{
    Address, AttributeValue, DwarfUnit, EndianVec, LineProgram, LineString, Sections,
};
use gimli::{
    DW_AT_high_pc, DW_AT_low_pc, DW_AT_name, Encoding, Format, LineEncoding, LittleEndian,
};
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

/// Tells a debugger of each piece of code, until the code is freed. A debugger that attaches later
/// finds all code that there is.
///
/// The list is one for the process, behind a lock. With a debugger attached, each piece costs two
/// stops of the process.
#[derive(Default)]
pub struct GdbInterface {
    /// The registrations, by address of the code.
    pieces: Mutex<HashMap<usize, DebuggerFile>>,
    source: Option<Arc<dyn CodeSource>>,
}

impl std::fmt::Debug for GdbInterface {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GdbInterface").field("known", &self.known()).finish_non_exhaustive()
    }
}

impl GdbInterface {
    /// An interface that knows no code yet.
    pub fn new() -> GdbInterface {
        GdbInterface::default()
    }

    /// An interface that also tells the places in the source: a debugger shows them in stacks, and
    /// takes them for breakpoints.
    pub fn by_source(source: Arc<dyn CodeSource>) -> GdbInterface {
        GdbInterface { source: Some(source), ..GdbInterface::default() }
    }

    /// The number of pieces of code that the debugger knows through this value.
    pub fn known(&self) -> usize {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl CodeObserver for GdbInterface {
    fn added(&self, piece: &Piece<'_>) {
        let lines = self.source.as_ref().map(|source| lines(piece, &**source));
        let registered = DebuggerFile::new(image(piece, lines.unwrap_or_default()));
        let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        pieces.insert(piece.address, registered);
    }

    fn freed(&self, address: usize) {
        let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        pieces.remove(&address);
    }
}

/// The name of a section, and its contents.
type NamedSection = (&'static str, Vec<u8>);

/// The numbers of the sections with the code and with the names of symbols.
const TEXT: u16 = 1;
const STRINGS: u32 = 4;
/// The bytes of the header of the file, of a header of a section, and of a symbol.
const FILE_HEADER: usize = 64;
const SECTION_HEADER: usize = 64;
const SYMBOL: usize = 24;

/// A section header: kind, flags, address, then contents or size, link, info, alignment and size of
/// an entry.
struct ElfSection {
    kind: u32,
    flags: u64,
    address: u64,
    /// The bytes in the file; for code, which is in memory already, its size.
    contents: Result<Vec<u8>, u64>,
    link: u32,
    info: u32,
    align: u64,
    entry: u64,
}

/// The object file of a piece of code: where the code is, its symbol, how to unwind it, and which
/// places in the source it comes from.
pub(crate) fn image(piece: &Piece<'_>, lines: Vec<NamedSection>) -> Vec<u8> {
    let (start, size) = (piece.address as u64, piece.bytes.len() as u64);
    let plain = |kind, contents| ElfSection {
        kind,
        flags: 0,
        address: 0,
        contents,
        link: 0,
        info: 0,
        align: 1,
        entry: 0,
    };
    let strings = [&[0], piece.to_string().as_bytes(), &[0]].concat();
    let mut sections = vec![
        ("", plain(0, Ok(Vec::new()))),
        // SHT_NOBITS, SHF_ALLOC and SHF_EXECINSTR.
        (".text", ElfSection { flags: 2 | 4, address: start, align: 16, ..plain(8, Err(size)) }),
        // SHT_X86_64_UNWIND, SHF_ALLOC.
        (
            ".eh_frame",
            ElfSection { flags: 2, align: 8, ..plain(0x7000_0001, Ok(unwinding(start, size))) },
        ),
        // SHT_SYMTAB. The symbols of this file alone come first: none but the empty one.
        (
            ".symtab",
            ElfSection {
                link: STRINGS,
                info: 1,
                align: 8,
                entry: SYMBOL as u64,
                ..plain(2, Ok(symbols(size)))
            },
        ),
        (".strtab", plain(3, Ok(strings))),
    ];
    // SHT_PROGBITS.
    sections.extend(lines.into_iter().map(|(name, bytes)| (name, plain(1, Ok(bytes)))));
    sections.push((".shstrtab", plain(3, Ok(Vec::new()))));
    let mut names = Vec::new();
    let mut name_of = Vec::new();
    for (name, _) in &sections {
        name_of.push(names.len() as u32);
        names.extend(name.bytes().chain([0]));
    }
    sections.last_mut().expect("it was just pushed").1.contents = Ok(names);
    file(&sections, &name_of)
}

/// The bytes of the file: its header, the headers of the sections, and their contents.
fn file(sections: &[(&str, ElfSection)], name_of: &[u32]) -> Vec<u8> {
    let mut headers = Vec::with_capacity(sections.len() * SECTION_HEADER);
    let mut contents: Vec<u8> = Vec::new();
    let begin = FILE_HEADER + sections.len() * SECTION_HEADER;
    for ((_, section), name) in sections.iter().zip(name_of) {
        contents.resize(contents.len().next_multiple_of(section.align as usize), 0);
        let offset = (begin + contents.len()) as u64;
        let size = match &section.contents {
            Ok(bytes) => {
                contents.extend(bytes);
                bytes.len() as u64
            }
            Err(size) => *size,
        };
        let ElfSection { kind, flags, address, link, info, align, entry, .. } = *section;
        headers.extend([*name, kind].into_iter().flat_map(u32::to_le_bytes));
        headers.extend([flags, address, offset, size].into_iter().flat_map(u64::to_le_bytes));
        headers.extend([link, info].into_iter().flat_map(u32::to_le_bytes));
        headers.extend([align, entry].into_iter().flat_map(u64::to_le_bytes));
    }
    [file_header(sections.len() as u16), headers, contents].concat()
}

/// The line table of a piece (DWARF 4), as sections with names. Empty without places.
fn lines(piece: &Piece<'_>, source: &dyn CodeSource) -> Vec<NamedSection> {
    let ranges = piece.by_source(source);
    let Some((first, place)) = ranges.first() else { return Vec::new() };
    // A zero byte ends a name.
    let name = |file: &str| file.bytes().filter(|byte| *byte != 0).collect::<Vec<u8>>();
    let encoding = Encoding { format: Format::Dwarf32, version: 4, address_size: 8 };
    let string = |bytes| LineString::String(bytes);
    let (directory, file) = (string(b".".to_vec()), string(name(&place.file)));
    let mut program =
        LineProgram::new(encoding, LineEncoding::default(), directory, None, file, None);
    program.begin_sequence(Some(Address::Constant(first.start as u64)));
    for (range, place) in &ranges {
        let file = program.add_file(string(name(&place.file)), program.default_directory(), None);
        let row = program.row();
        row.address_offset = (range.start - first.start) as u64;
        (row.file, row.line) = (file, place.line.into());
        program.generate_row();
    }
    let end = piece.address + piece.bytes.len();
    program.end_sequence((end - first.start) as u64);
    let mut dwarf = DwarfUnit::new(encoding);
    dwarf.unit.line_program = program;
    let unit = dwarf.unit.get_mut(dwarf.unit.root());
    unit.set(DW_AT_name, AttributeValue::String(name(&place.file)));
    unit.set(DW_AT_low_pc, AttributeValue::Address(Address::Constant(piece.address as u64)));
    unit.set(DW_AT_high_pc, AttributeValue::Udata(piece.bytes.len() as u64));
    let mut sections = Sections::new(EndianVec::new(LittleEndian));
    dwarf.write(&mut sections).expect("the unit refers to its own line table alone");
    let mut named = Vec::new();
    let taken = sections.for_each(|id, bytes| {
        if !bytes.slice().is_empty() {
            named.push((id.name(), bytes.slice().to_vec()));
        }
        Ok::<(), Infallible>(())
    });
    let Ok(()) = taken;
    named
}

/// The header of the file: of 64 bits, little-endian, an object file (ET_REL) for x86-64.
fn file_header(sections: u16) -> Vec<u8> {
    let mut header = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0];
    header.resize(16, 0);
    header.extend([1, 62].into_iter().flat_map(u16::to_le_bytes));
    header.extend(1u32.to_le_bytes());
    header.extend([0, 0, FILE_HEADER as u64].into_iter().flat_map(u64::to_le_bytes));
    header.extend(0u32.to_le_bytes());
    let (section, count) = (SECTION_HEADER as u16, sections);
    let halves = [FILE_HEADER as u16, 0, 0, section, count, count - 1];
    header.extend(halves.into_iter().flat_map(u16::to_le_bytes));
    header
}

/// The empty symbol, and that of the code: a global function at the beginning of its section.
fn symbols(size: u64) -> Vec<u8> {
    const GLOBAL_FUNCTION: u8 = (1 << 4) | 2;
    let mut symbols = vec![0; SYMBOL];
    symbols.extend(1u32.to_le_bytes());
    symbols.extend([GLOBAL_FUNCTION, 0]);
    symbols.extend(TEXT.to_le_bytes());
    symbols.extend([0, size].into_iter().flat_map(u64::to_le_bytes));
    symbols
}

/// The description of frames (`.eh_frame`): every function begins with `push rbp; mov rbp, rsp`
/// (`preserve_frame_pointers` in `engine::isa`). The frame of a function is described from its
/// prologue on; the few instructions of an epilogue behind `pop rbp` are not.
fn unwinding(start: u64, size: u64) -> Vec<u8> {
    /// DW_CFA_def_cfa: the frame is at an offset from a register.
    const FRAME_AT: u8 = 0x0c;
    /// DW_CFA_offset: the register is saved at an offset from the frame, in units of -8.
    const SAVED: u8 = 0x80;
    /// DW_CFA_advance_loc: some bytes of code further on.
    const BEHIND: u8 = 0x40;
    const RBP: u8 = 6;
    const RSP: u8 = 7;
    const RETURN: u8 = 16;
    // Version, no augmentation, code in units of 1, data in units of -8.
    let common = [1, 0, 1, 0x78, RETURN, FRAME_AT, RSP, 8, SAVED | RETURN, 1];
    // `push rbp` has one byte, `mov rbp, rsp` has three.
    let own = [BEHIND | 1, FRAME_AT, RSP, 16, SAVED | RBP, 2, BEHIND | 3, FRAME_AT, RBP, 16];
    let mut table = Vec::new();
    entry(&mut table, 0, &common);
    // The distance from this word to the common entry, which begins the table.
    let back = table.len() as u32 + 4;
    let place = [start, size].into_iter().flat_map(u64::to_le_bytes);
    let own: Vec<u8> = place.chain(own).collect();
    entry(&mut table, back, &own);
    // The end of the table.
    table.extend([0; 4]);
    table
}

/// Adds an entry of the table: its length, the word that says which entry it belongs to, its bytes,
/// and DW_CFA_nop up to a multiple of 8.
fn entry(table: &mut Vec<u8>, of: u32, bytes: &[u8]) {
    let length = (4 + 4 + bytes.len()).next_multiple_of(8) - 4;
    let end = table.len() + 4 + length;
    table.extend((length as u32).to_le_bytes());
    table.extend(of.to_le_bytes());
    table.extend(bytes);
    table.resize(end, 0);
}

#[cfg(test)]
mod tests {
    use super::{image, lines};
    use crate::observe::{Piece, PieceKind, PiecePart, SourcePlace};
    use ir::{Func, Inst};
    use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};
    use std::collections::BTreeMap;

    /// The image says to another reader what it should say.
    #[test]
    fn an_image_names_its_code() {
        let bytes = vec![0x90; 100];
        let address = 0x7f00_1234_0040;
        let piece =
            Piece { name: "sum", kind: PieceKind::Stub, address, bytes: &bytes, parts: &[] };
        let image = image(&piece, Vec::new());
        let file = object::File::parse(&*image).expect("an object file");
        assert_eq!(file.architecture(), object::Architecture::X86_64);
        let symbols: Vec<_> = file.symbols().collect();
        assert_eq!(symbols.len(), 1);
        assert_eq!(symbols[0].name(), Ok("sum"));
        assert_eq!((symbols[0].address(), symbols[0].size()), (0, 100));
        assert_eq!(symbols[0].kind(), SymbolKind::Text);
        let section = symbols[0].section_index().expect("it is in a section");
        let text = file.section_by_index(section).expect("there");
        assert_eq!(text.name(), Ok(".text"));
        assert_eq!((text.address(), text.size()), (address as u64, 100));
        assert!(matches!(text.kind(), SectionKind::Text | SectionKind::UninitializedData));
        assert_eq!(text.data(), Ok(&[][..]), "the code is in memory");
        let frames = file.section_by_name(".eh_frame").expect("there");
        assert_eq!(frames.size() % 8, 4, "whole entries, and the end");
        assert!(file.section_by_name(".debug_line").is_none());
    }

    /// Another reader finds the places of the code in the line table.
    #[test]
    fn an_image_tells_the_places_of_its_code() {
        let (bytes, address) = (vec![0x90; 100], 0x7f00_1234_0040);
        let part = |start, end, inst| PiecePart {
            bytes: start..end,
            func: Func::from_u32(0),
            inst: Inst::from_u32(inst),
        };
        let parts = [part(4, 20, 0), part(20, 60, 7), part(60, 70, 1), part(80, 90, 2)];
        let piece =
            Piece { name: "sum", kind: PieceKind::Stub, address, bytes: &bytes, parts: &parts };
        let place = |file: &str, line| SourcePlace { file: file.into(), line };
        // Instruction 7 has no place, and counts to the one before.
        let source: BTreeMap<_, _> = [(0, "a.lang", 3), (1, "a.lang", 5), (2, "b.lang", 5)]
            .into_iter()
            .map(|(inst, file, line)| {
                ((Func::from_u32(0), Inst::from_u32(inst)), place(file, line))
            })
            .collect();
        let image = image(&piece, lines(&piece, &source));
        let file = object::File::parse(&*image).expect("an object file");
        let section = |id: gimli::SectionId| -> Result<_, gimli::Error> {
            let data = file.section_by_name(id.name()).map_or(&[][..], |s| s.data().expect("read"));
            Ok(gimli::EndianSlice::new(data, gimli::LittleEndian))
        };
        let dwarf = gimli::Dwarf::load(section).expect("loaded");
        let header = dwarf.units().next().expect("read").expect("one unit");
        let unit = dwarf.unit(header).expect("read");
        assert_eq!(unit.low_pc, address as u64);
        let program = unit.line_program.clone().expect("it has lines");
        let mut rows = program.rows();
        let mut found = Vec::new();
        while let Some((header, row)) = rows.next_row().expect("read") {
            let file = row.file(header).expect("a file").path_name();
            let name = dwarf.attr_string(&unit, file).expect("a name");
            let line = row.line().map_or(0, |line| line.get());
            let at = row.address() - address as u64;
            found.push((at, name.to_string_lossy().into_owned(), line, row.end_sequence()));
        }
        let row = |at, file: &str, line, is_end| (at, file.to_owned(), line, is_end);
        let expected = [
            row(4, "a.lang", 3, false),
            row(60, "a.lang", 5, false),
            row(80, "b.lang", 5, false),
            row(100, "b.lang", 5, true),
        ];
        assert_eq!(found, expected);
    }
}
