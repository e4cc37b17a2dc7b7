//! Tests of `jit::gdb`.

use super::image;
use crate::observe::{Piece, PieceKind, PiecePart, SourcePlace};
use ir::{Func, Inst};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};
use std::collections::BTreeMap;

/// Another reader finds the name and the address of the code in the image.
#[test]
fn an_image_names_its_code() {
    let bytes = vec![0x90; 100];
    let address = 0x7f00_1234_0040;
    let piece = Piece { name: "sum", kind: PieceKind::Stub, address, bytes: &bytes, parts: &[] };
    let image = image(&piece, None);
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
    assert_eq!(frames.size() % 8, 0, "whole entries");
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
    let piece = Piece { name: "sum", kind: PieceKind::Stub, address, bytes: &bytes, parts: &parts };
    let place = |file: &str, line| SourcePlace { file: file.into(), line };
    // Instruction 7 has no place, and belongs to the previous place.
    let source: BTreeMap<_, _> = [(0, "a.lang", 3), (1, "a.lang", 5), (2, "b.lang", 5)]
        .into_iter()
        .map(|(inst, file, line)| ((Func::from_u32(0), Inst::from_u32(inst)), place(file, line)))
        .collect();
    let image = image(&piece, Some(&source));
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
