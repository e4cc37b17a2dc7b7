//! Debug info that is cut, lies or repeats itself is left out, with a note.

use super::*;
use crate::damage::Random;
use std::borrow::Cow;
use wasm_encoder::{CustomSection, Section};
use wasmparser::{Parser, Payload};

const SECTIONS: [&str; 7] = [
    ".debug_abbrev",
    ".debug_addr",
    ".debug_info",
    ".debug_line",
    ".debug_line_str",
    ".debug_str",
    ".debug_str_offsets",
];

fn section<'a>(bytes: &'a [u8], name: &str) -> &'a [u8] {
    let payloads = Parser::new(0).parse_all(bytes).map(|payload| payload.expect("a module"));
    let mut found = payloads.filter_map(|payload| match payload {
        Payload::CustomSection(custom) if custom.name() == name => Some(custom.data()),
        _ => None,
    });
    found.next().unwrap_or_default()
}

/// The module with other contents of a section.
fn with(bytes: &[u8], name: &str, data: &[u8]) -> Vec<u8> {
    let mut made = without(bytes, name);
    let custom = CustomSection { name: name.into(), data: Cow::Borrowed(data) };
    made.push(custom.id());
    wasm_encoder::Encode::encode(&custom, &mut made);
    made
}

/// All that a map answers, and its notes.
fn told(bytes: &[u8]) -> (Vec<String>, Vec<String>) {
    let (module, map) = imported(bytes);
    let mut told = Vec::new();
    for (func, body) in module.defined() {
        told.extend(map.name_of(func).map(str::to_owned));
        let lines = body.all_insts().map(|inst| map.of(func, inst)).chain([map.start_of(func)]);
        for line in lines.flatten() {
            assert!(line.line > 0 && line.column != Some(0) && !line.file.is_empty());
            told.push(line.to_string());
        }
    }
    let notes = map.notes().map(|note| {
        assert!([".debug_line", ".debug_info"].contains(&note.section()));
        assert!(!note.cause().is_empty());
        note.to_string()
    });
    let notes: Vec<String> = notes.collect();
    assert!(notes.len() <= 16);
    (told, notes)
}

/// Bytes with a few changes.
fn changed(data: &[u8], random: &mut Random) -> Vec<u8> {
    const EXTREMES: [&[u8]; 7] = [
        &[0],
        &[0xff; 4],
        &[0xff, 0xff, 0xff, 0x7f],
        &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f], // the least line advance
        &[0, 1, 1],                                                    // the end of a sequence
        &[0xff; 12],
        &[0x7f],
    ];
    let mut data = data.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(data.len().max(1)).min(data.len());
        let end = (at + 1 + random.below(8)).min(data.len());
        match random.below(6) {
            0 if at < data.len() => data[at] ^= 1 << random.below(8),
            1 if at < data.len() => data[at] = random.below(256) as u8,
            2 => drop(data.splice(at..end, EXTREMES[random.below(EXTREMES.len())].to_vec())),
            3 => data.truncate(at),
            4 => drop(data.splice(at..at, data[at..end].to_vec())),
            _ => drop(data.drain(at..end)),
        }
    }
    data
}

#[test]
fn damaged_debug_info_is_left_out() {
    let modules = MODULES.map(bytes);
    let mut random = Random::new(23);
    let (mut with_notes, mut with_lines, mut like_before) = (0, 0, 0);
    for round in 0..6_000 {
        let module = &modules[round % 3];
        let name = SECTIONS[random.below(SECTIONS.len())];
        let damaged = with(module, name, &changed(section(module, name), &mut random));
        let found = told(&damaged);
        assert_eq!(found, told(&damaged), "round {round}");
        with_notes += u32::from(!found.1.is_empty());
        with_lines += u32::from(!found.0.is_empty());
        like_before += u32::from(found == told(module));
    }
    let figures = (with_notes, with_lines, like_before);
    assert!(with_notes > 1_000 && with_lines > 3_000 && like_before > 1_000, "{figures:?}");
}

/// A line table of DWARF 4 with this header behind its lengths, and this program.
fn table(files: &[u8], program: &[u8]) -> Vec<u8> {
    // Instructions of one byte, statements by default, line base and range, standard opcodes.
    let mut header = vec![1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1];
    header.extend_from_slice(files);
    let mut table = (6 + header.len() as u32 + program.len() as u32).to_le_bytes().to_vec();
    table.extend([4, 0]);
    table.extend((header.len() as u32).to_le_bytes());
    table.extend(header);
    table.extend_from_slice(program);
    table
}

/// No directory, the file `a.c`.
const FILES: &[u8] = b"\0a.c\0\0\0\0\0";

/// Sets the address, advances the line by this number in binary form, and makes a row.
fn row(address: u32, line: &[u8]) -> Vec<u8> {
    let mut program = vec![0, 5, 2];
    program.extend(address.to_le_bytes());
    program.push(3);
    program.extend_from_slice(line);
    program.push(1);
    program
}

const END: &[u8] = &[0, 1, 1];

/// The notes on a module whose line tables are these, and the lines of `fill` at its start.
fn notes_on(line: &[u8]) -> String {
    let module = with(&bytes("spans.dwarf4"), ".debug_line", line);
    let (told, notes) = told(&module);
    let lines = told.iter().filter(|text| text.contains(':')).count();
    format!("{lines} lines; {}", notes.join("; "))
}

#[test]
fn line_tables_that_lie_are_named() {
    let start = 5; // in the first body
    let least = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f];
    let good = [row(start, &[6]), row(start + 8, &[1]), END.to_vec()].concat();
    let cases: [(&str, Vec<u8>); 15] = [
        ("good", table(FILES, &good)),
        ("cut in the length", vec![9, 0]),
        ("longer than the section", [&[0xff, 0xff, 0, 0], &table(FILES, &good)[4..]].concat()),
        ("a reserved length", vec![0xf0, 0xff, 0xff, 0xff, 1, 1, 1, 1]),
        ("good, then cut", [table(FILES, &good), vec![1, 0, 0, 0, 1]].concat()),
        (
            "an unknown version",
            [&table(FILES, &good)[..4], &[9], &table(FILES, &good)[5..]].concat(),
        ),
        ("no end", table(FILES, &row(start, &[6]))),
        ("back", table(FILES, &[row(start + 8, &[6]), row(start, &[1]), END.to_vec()].concat())),
        ("out", table(FILES, &[row(start, &[6]), row(9_000, &[1]), END.to_vec()].concat())),
        ("elsewhere", table(FILES, &[row(0, &[6]), row(u32::MAX, &[1]), END.to_vec()].concat())),
        ("the least line", table(FILES, &[row(start, &least), END.to_vec()].concat())),
        ("no file", table(b"\0\0", &good)),
        ("a file with no name", table(b"\0\0a.c", &good)),
        ("a header of 2 MiB", table(&vec![b'a'; 2 << 20], &good)),
        ("a long path", table(&[b"\0", &[b'a'; 5_000][..], b"\0\0\0\0\0"].concat(), &good)),
    ];
    let notes = cases.map(|(name, line)| format!("{name}: {}", notes_on(&line)));
    insta::assert_snapshot!(notes.join("\n"));
}

/// More rows than the few bytes of code.
#[test]
fn rows_beyond_the_bytes_of_code_are_left_out() {
    let sequence = [row(5, &[1]), row(6, &[1]), row(7, &[1]), END.to_vec()].concat();
    let program = sequence.repeat(10_000);
    let told = notes_on(&table(FILES, &program));
    assert!(told.contains("more rows than the code has bytes"), "{told}");
}

/// Two thousand files in one long directory would have paths of eight megabytes.
#[test]
fn the_bytes_of_paths_are_bounded() {
    let (mut files, mut program) = (vec![b'd'; 4_000], Vec::new());
    files.extend([0, 0]);
    for number in 1..2_000u32 {
        files.extend(format!("{number}\0\u{1}\0\0").bytes());
        // The file by a number of two bytes.
        program.extend([4, (number & 0x7f) as u8 | 0x80, (number >> 7) as u8]);
        program.extend(row(5 + number / 40, &[1]));
    }
    files.push(0);
    program.extend(END);
    let told = notes_on(&table(&files, &program));
    assert!(told.contains("the paths are longer than the debug info"), "{told}");
}

/// The entries of a unit of DWARF 4 with 32-bit addresses, whose abbreviations begin at 0.
fn unit(entries: &[u8]) -> Vec<u8> {
    let mut unit = (7 + entries.len() as u32).to_le_bytes().to_vec();
    unit.extend([4, 0, 0, 0, 0, 0, 4]);
    unit.extend_from_slice(entries);
    unit
}

/// The notes on a module with these entries and abbreviations, and the names of its functions.
fn names_of(info: &[u8], abbrev: &[u8]) -> String {
    let module = with(&bytes("spans.dwarf4"), ".debug_abbrev", abbrev);
    let (module, map) = imported(&with(&module, ".debug_info", info));
    let names: Vec<&str> = module.defined().filter_map(|(func, _)| map.name_of(func)).collect();
    let notes: Vec<String> = map.notes().map(ToString::to_string).collect();
    format!("{names:?}; {}", notes.join("; "))
}

#[test]
fn entries_that_lie_are_named() {
    // 1: a unit with children. 2: a function with an address and a name. 3: one with an address and
    // a reference instead.
    let abbrev = [
        &[1, 0x11, 1, 0, 0][..],
        &[2, 0x2e, 0, 0x11, 1, 0x03, 0x08, 0, 0],
        &[3, 0x2e, 0, 0x11, 1, 0x47, 0x13, 0, 0, 0],
    ]
    .concat();
    let good = unit(b"\x01\x02\x02\0\0\0fine\0\0");
    // The entry at 12 of the unit refers to itself.
    let cyclic = unit(b"\x01\x03\x02\0\0\0\x0c\0\0\0\0");
    let astray = unit(b"\x01\x03\x02\0\0\0\xff\xff\0\0\0");
    let elsewhere = unit(b"\x01\x02\x03\0\0\0fine\0\0");
    let cases: [(&str, String); 8] = [
        ("good", names_of(&good, &abbrev)),
        ("cyclic", names_of(&cyclic, &abbrev)),
        ("astray", names_of(&astray, &abbrev)),
        ("another start", names_of(&elsewhere, &abbrev)),
        ("cut", names_of(&good[..good.len() - 1], &abbrev)),
        ("good, then cut", names_of(&[&good[..], &[200, 0, 0, 0, 4]].concat(), &abbrev)),
        ("no abbreviations", names_of(&good, &[])),
        ("cut abbreviations", names_of(&good, &abbrev[..12])),
    ];
    insta::assert_snapshot!(cases.map(|(name, told)| format!("{name}: {told}")).join("\n"));
}

/// Attributes without bytes, and units that share no table but its bytes, are counted.
#[test]
fn work_that_no_byte_stands_for_is_bounded() {
    let flags = [0x3f, 0x19].repeat(1_000);
    let many = [&[1, 0x2e, 0][..], &flags, &[0, 0, 0]].concat();
    let told = names_of(&unit(&[1; 1_000]), &many);
    assert!(told.contains("more attributes than entries of this size have"), "{told}");
    // Each unit has its table one byte further on.
    let table = [&[1, 0x2e, 0][..], &[0x3f, 0x0c].repeat(1_000), &[0, 0, 0]].concat();
    let units = (0..200u8).flat_map(|n| {
        let mut unit = unit(&[0]);
        unit[6] = n;
        unit
    });
    let told = names_of(&units.collect::<Vec<u8>>(), &table);
    assert!(told.contains("its abbreviations overlap those of others"), "{told}");
    assert!(told.contains("the units from here on are left out"), "{told}");
}

#[test]
fn paths_are_printed_on_one_line() {
    let files = "\0it's\u{202e}\n\"\\.c\0\0\0\0\0";
    let program = [row(5, &[6]), END.to_vec()].concat();
    let module = with(&bytes("spans.dwarf4"), ".debug_line", &table(files.as_bytes(), &program));
    let (told, _) = told(&module);
    let expected = r#"it's\u{202e}\n"\.c:7"#;
    assert_eq!(told.iter().find(|text| text.contains(':')).map(String::as_str), Some(expected));
}
