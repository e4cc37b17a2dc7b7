//! Names of native code for `gdb` and `lldb`, through the interface that they share: the process
//! keeps a list of object files in memory, and calls a function at which the debugger stops.
//!
//! Each piece of code has an object file of its own (ELF, some 500 bytes) with one symbol, and
//! perhaps a line table. The interface: "JIT Compilation Interface" in the manual of gdb.

use crate::observe::{CodeObserver, CodeSource, Piece};
use crate::sys::debugger::DebuggerFile;
use gimli::write::{
    Address, AttributeValue, CallFrameInstruction, CommonInformationEntry, DwarfUnit, EndianVec,
    FrameDescriptionEntry, FrameTable, LineProgram, LineString, Sections,
};
use gimli::{
    DW_AT_high_pc, DW_AT_low_pc, DW_AT_name, Encoding, Format, LineEncoding, LittleEndian,
    SectionId, X86_64,
};
use object::write::elf::{FileHeader, SectionHeader, SectionIndex, Sym, Writer};
use object::{Endianness, elf};
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

/// Registers each piece of code with a debugger, until the code is freed. A debugger that attaches
/// later finds all existing code.
///
/// The process has a single list, behind a lock. With a debugger attached, each piece costs two
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
    /// An interface without code.
    pub fn new() -> GdbInterface {
        GdbInterface::default()
    }

    /// An interface that also describes places in the source: a debugger shows them in stacks, and
    /// accepts them for breakpoints.
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
        let registered = DebuggerFile::new(image(piece, self.source.as_deref()));
        let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        pieces.insert(piece.address, registered);
    }

    fn freed(&self, address: usize) {
        let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        pieces.remove(&address);
    }
}

/// The sections that describe the code.
type Described = Sections<EndianVec<LittleEndian>>;

/// The alignment of sections: the size of an address.
const ALIGN: usize = 8;

/// The object file of a piece of code: its address, its symbol, its frame description, and its
/// places in the source.
pub(crate) fn image(piece: &Piece<'_>, source: Option<&dyn CodeSource>) -> Vec<u8> {
    let mut described = Sections::new(EndianVec::new(LittleEndian));
    unwinding(piece, &mut described);
    if let Some(source) = source {
        lines(piece, source, &mut described);
    }
    file(piece.to_string().as_bytes(), sections(piece, &described))
}

/// A section of the file. Writing the file gives the header its name and its place.
struct FileSection<'a> {
    name: &'static str,
    header: SectionHeader,
    contents: &'a [u8],
}

/// The section of the code, which is in memory already, and the sections that describe the code.
fn sections<'a>(piece: &Piece<'_>, described: &'a Described) -> Vec<FileSection<'a>> {
    let header = |sh_type, sh_flags: u32, size: usize| SectionHeader {
        name: None,
        sh_type,
        sh_flags: sh_flags.into(),
        sh_addr: 0,
        sh_offset: 0,
        sh_size: size as u64,
        sh_link: 0,
        sh_info: 0,
        sh_addralign: ALIGN as u64,
        sh_entsize: 0,
    };
    let code = header(elf::SHT_NOBITS, elf::SHF_ALLOC | elf::SHF_EXECINSTR, piece.bytes.len());
    let code = SectionHeader { sh_addr: piece.address as u64, sh_addralign: 16, ..code };
    let mut sections = vec![FileSection { name: ".text", header: code, contents: &[] }];
    let taken = described.for_each(|id, bytes| {
        let (contents, name) = (bytes.slice(), id.name());
        let (sh_type, sh_flags) = match id {
            SectionId::EhFrame => (elf::SHT_X86_64_UNWIND, elf::SHF_ALLOC),
            _ => (elf::SHT_PROGBITS, 0),
        };
        if !contents.is_empty() {
            let header = header(sh_type, sh_flags, contents.len());
            sections.push(FileSection { name, header, contents });
        }
        Ok::<(), Infallible>(())
    });
    let Ok(()) = taken;
    sections
}

/// The file of these sections, with a global function that fills the first of them.
fn file(symbol: &[u8], mut sections: Vec<FileSection<'_>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut file = Writer::new(Endianness::Little, true, &mut bytes);
    // Numbers and names come first, then places, then the bytes in the order of their places.
    for section in &mut sections {
        file.reserve_section_index();
        section.header.name = Some(file.add_section_name(section.name.as_bytes()));
    }
    file.reserve_symtab_section_index();
    file.reserve_strtab_section_index();
    file.reserve_shstrtab_section_index();
    let symbol = Sym {
        name: Some(file.add_string(symbol)),
        section: Some(SectionIndex(1)), // behind the empty one
        st_info: elf::STB_GLOBAL << 4 | elf::STT_FUNC,
        st_other: 0,
        st_shndx: 0,
        st_value: 0,
        st_size: sections[0].header.sh_size,
    };
    file.reserve_symbol_index(symbol.section);
    file.reserve_file_header();
    for section in &mut sections {
        section.header.sh_offset = file.reserve(section.contents.len(), ALIGN) as u64;
    }
    file.reserve_symtab();
    file.reserve_strtab();
    file.reserve_shstrtab();
    file.reserve_section_headers();
    let (e_type, e_machine) = (elf::ET_REL, elf::EM_X86_64);
    let header =
        FileHeader { os_abi: 0, abi_version: 0, e_type, e_machine, e_entry: 0, e_flags: 0 };
    file.write_file_header(&header).expect("there is memory for some hundred bytes");
    for section in &sections {
        file.write_align(ALIGN);
        file.write(section.contents);
    }
    file.write_null_symbol();
    file.write_symbol(&symbol);
    file.write_strtab();
    file.write_shstrtab();
    file.write_null_section_header();
    sections.iter().for_each(|section| file.write_section_header(&section.header));
    file.write_symtab_section_header(1); // the empty symbol is the only local one
    file.write_strtab_section_header();
    file.write_shstrtab_section_header();
    bytes
}

/// Adds the line table of a piece (DWARF 4). Adds nothing without places.
fn lines(piece: &Piece<'_>, source: &dyn CodeSource, sections: &mut Described) {
    let ranges = piece.by_source(source);
    let Some((first, place)) = ranges.first() else { return };
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
    dwarf.write(sections).expect("the unit refers to its own line table alone");
}

/// Adds the description of frames (`.eh_frame`): every function begins with `push rbp; mov rbp,
/// rsp` (`preserve_frame_pointers` in `engine::isa`). The frame of a function is described from its
/// prologue on; the few instructions of an epilogue behind `pop rbp` are not.
fn unwinding(piece: &Piece<'_>, sections: &mut Described) {
    use CallFrameInstruction::{Cfa, CfaOffset, CfaRegister, Offset};
    let encoding = Encoding { format: Format::Dwarf32, version: 1, address_size: 8 };
    let mut common = CommonInformationEntry::new(encoding, 1, -8, X86_64::RA);
    common.add_instruction(Cfa(X86_64::RSP, 8));
    common.add_instruction(Offset(X86_64::RA, -8));
    let start = Address::Constant(piece.address as u64);
    let mut own = FrameDescriptionEntry::new(start, piece.bytes.len() as u32);
    // `push rbp` has one byte, `mov rbp, rsp` has three.
    own.add_instruction(1, CfaOffset(16));
    own.add_instruction(1, Offset(X86_64::RBP, -16));
    own.add_instruction(4, CfaRegister(X86_64::RBP));
    let mut table = FrameTable::default();
    let common = table.add_cie(common);
    table.add_fde(common, own);
    table.write_eh_frame(&mut sections.eh_frame).expect("the offsets are multiples of 8");
}

#[cfg(test)]
mod tests;
