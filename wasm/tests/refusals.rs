//! Invalid and unsupported input gives a located error, never a panic.

use insta::assert_snapshot;
use osier_wasm::{ErrorKind, ImportError, ImportLimits, Location, import, import_wat};
use std::io::Write;
use std::path::Path;

fn refusal(text: &str) -> ImportError {
    match import_wat(text, &ImportLimits::default()) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error,
    }
}

/// Unsupported parts of WebAssembly. The error names each.
#[test]
fn unsupported_parts_are_rejected_by_name_and_offset() {
    let function = |body: &str| format!("(module (memory 1) (table 1 funcref) (func {body}))");
    let texts = [
        function("(drop (i32x4.add (v128.const i64x2 0 0) (v128.const i64x2 0 0)))"),
        function("(param v128) (drop (i32x4.add (local.get 0) (local.get 0)))"),
        function("(drop (ref.null any))"),
        function("(drop (ref.as_non_null (ref.null func)))"),
        function("(param (ref func))"),
        function("(return_call 0)"),
        function("(drop (i32.atomic.load (i32.const 0)))"),
        function("unreachable (drop (i32.atomic.load (i32.const 0)))"),
        "(module (func $f) (table 1 funcref (ref.func $f)))".to_owned(),
        "(module (table i64 1 funcref))".to_owned(),
        "(module (type (struct)))".to_owned(),
        "(module (memory i64 1))".to_owned(),
        "(module (memory 1 1 shared))".to_owned(),
        "(module (tag))".to_owned(),
        "(module (type $f (func)) (type (cont $f)))".to_owned(),
        "(module (global v128 (v128.const i64x2 0 0)))".to_owned(),
        "(module (import \"env\" \"t\" (tag)))".to_owned(),
    ];
    let mut refusals = String::new();
    for text in texts {
        let error = refusal(&text);
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{text}: {error}");
        let Location::Offset(offset) = error.location() else { panic!("{text}: {error}") };
        assert!(offset > 8, "{text}: {error}");
        refusals += &format!("{text}\n{error}\n\n");
    }
    assert_snapshot!(refusals);
}

#[test]
fn a_component_is_refused_by_name() {
    let binary = import(b"\0asm\x0d\0\x01\0", &ImportLimits::default()).expect_err("it is refused");
    let commented = refusal(";; one (; of ;)\n  (; these ;) ( component $c)");
    assert_eq!(commented.location(), Location::LineColumn(2, 15));
    for error in [binary, commented, refusal("(component)")] {
        assert!(
            error
                .message()
                .contains("this module uses the component model, which is not supported"),
            "{error}"
        );
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}

#[test]
fn the_offset_is_that_of_the_instruction() {
    let error = refusal(
        "(module (func (param i32) nop nop (drop (i32.extend8_s (i32.atomic.load (i32.const 0))))))",
    );
    // The header has 8 bytes, and the sections have 7, 4 and 14 bytes. In the body, the operator
    // follows the size, the locals, two nops and a constant.
    assert_eq!(
        error.to_string(),
        "unsupported: this module uses threads (i32.atomic.load), which is not supported at offset 0x1c"
    );
}

#[test]
fn errors_of_text_have_line_and_column() {
    let error = refusal("(module\n  (func (ünknown)))");
    assert_eq!(error.location(), Location::LineColumn(2, 10), "{error}");
    assert!(error.to_string().ends_with("at line 2, column 10"), "{error}");
    let error = refusal("(module (func (result i32)))");
    assert_eq!(
        (error.kind(), matches!(error.location(), Location::Offset(_))),
        (ErrorKind::Invalid, true)
    );
}

#[test]
fn deeply_nested_text_does_not_recurse() {
    let text = format!("(module (func {} {}))", "(block ".repeat(100_000), ")".repeat(100_000));
    assert!(import_wat(&text, &ImportLimits::default()).is_ok());
}

#[test]
fn input_that_is_no_module_is_rejected() {
    for bytes in [b"".as_slice(), b"\0", b"\0asm", b"\0asm\x02\0\0\0", b"(module)"] {
        let error = import(bytes, &ImportLimits::default()).expect_err("no module");
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
}

/// A module of a header and sections with these contents.
fn module(sections: &[(u8, &[u8])]) -> Vec<u8> {
    let mut bytes = b"\0asm\x01\0\0\0".to_vec();
    for (id, contents) in sections {
        bytes.push(*id);
        leb(&mut bytes, contents.len() as u32);
        bytes.extend(*contents);
    }
    bytes
}

fn leb(bytes: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Sections that claim 2^20 or 2^32 - 1 items but are empty, and section lengths beyond the end of
/// the input.
#[test]
fn false_counts_and_lengths_are_refused() {
    for count in [b"\x80\x80\x40".as_slice(), b"\xff\xff\xff\xff\x0f"] {
        for id in (1..=12).filter(|id| *id != 8) {
            let error = import(&module(&[(id, count)]), &ImportLimits::default())
                .expect_err("nothing is there");
            assert!(matches!(error.location(), Location::Offset(8..=16)), "section {id}: {error}");
            assert_ne!(error.kind(), ErrorKind::TooLarge, "section {id}: {error}");
        }
        for id in 1..=12 {
            let mut bytes = b"\0asm\x01\0\0\0".to_vec();
            bytes.push(id);
            bytes.extend(count);
            let error = import(&bytes, &ImportLimits::default()).expect_err("nothing is there");
            assert_eq!(error.kind(), ErrorKind::Invalid, "section {id}: {error}");
        }
        // False counts within a body: locals, and targets of a branch.
        let types = (1, b"\x01\x60\0\0".as_slice());
        let declared = (3, b"\x01\0".as_slice());
        for body in
            [[b"\x01", count, b"\x7f\x0b"].concat(), [b"\0\x41\0\x0e", count, b"\0\x0b"].concat()]
        {
            let mut code = vec![1];
            leb(&mut code, body.len() as u32);
            code.extend(body);
            let bytes = module(&[types, declared, (10, &code)]);
            let error = import(&bytes, &ImportLimits::default()).expect_err("the count is wrong");
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        }
    }
}

/// A million nested structures of each kind, complete or truncated.
#[test]
fn a_million_levels_do_not_recurse() {
    for open in [b"\x02\x40".as_slice(), b"\x03\x40", b"\x41\0\x04\x40", b"\0\x02\x40", b"\x02\x7f"]
    {
        for closed in [true, false] {
            let mut body = vec![0];
            body.extend(open.repeat(1_000_000));
            if closed {
                body.extend([0x0b].repeat(1_000_000));
            }
            body.push(0x0b);
            let mut code = vec![1];
            leb(&mut code, body.len() as u32);
            code.extend(body);
            let bytes = module(&[(1, b"\x01\x60\0\0"), (3, b"\x01\0"), (10, &code)]);
            match import(&bytes, &ImportLimits::default()) {
                Ok(module) => assert!(closed && ir::verifier::verify_module(&module).is_empty()),
                Err(error) => assert!(matches!(error.location(), Location::Offset(9..)), "{error}"),
            }
        }
    }
}

fn kernels() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus");
    let files = std::fs::read_dir(folder).expect("the corpus is in the repository");
    let files = files
        .map(|f| f.expect("a readable folder").path())
        .filter(|f| f.extension().is_some_and(|e| e == "wasm"));
    let read = |f: std::path::PathBuf| {
        (f.display().to_string(), std::fs::read(&f).expect("a readable file"))
    };
    let mut kernels: Vec<_> = files.map(read).collect();
    kernels.sort();
    assert!(kernels.len() >= 30, "only {} kernels", kernels.len());
    kernels
}

fn check_located(name: &str, bytes: &[u8]) -> bool {
    match import(bytes, &ImportLimits::default()) {
        Ok(module) => {
            let findings = ir::verifier::verify_module(&module);
            assert!(findings.is_empty(), "{name}: {}", findings[0]);
            true
        }
        Err(error) => {
            let Location::Offset(offset) = error.location() else { panic!("{name}: {error}") };
            assert!(offset <= bytes.len() as u64 && !error.message().is_empty(), "{name}: {error}");
            false
        }
    }
}

#[test]
fn a_module_cut_off_anywhere_is_refused_or_whole() {
    let mut kernels = kernels();
    kernels.sort_by_key(|(_, bytes)| bytes.len());
    for (name, bytes) in &kernels[..2] {
        // A module remains valid without its last sections, which contain only names.
        let whole = (0..bytes.len()).filter(|n| check_located(name, &bytes[..*n])).count();
        assert!(whole < 10, "{name}: {whole} prefixes were accepted");
    }
    for (n, (name, bytes)) in kernels[2..].iter().cycle().take(2_000).enumerate() {
        check_located(name, &bytes[..n.wrapping_mul(2_654_435_761) % bytes.len()]);
    }
}

/// Imports every prefix of every kernel, and 2,000 prefixes of each larger program. This takes
/// about eight minutes in a release build, so it runs only if `OSIER_CUT_EVERYWHERE` names the
/// folder of the programs. The test above samples the same prefixes.
#[test]
fn the_whole_corpus_cut_off_anywhere_is_refused_or_whole() {
    let Some(folder) = std::env::var_os("OSIER_CUT_EVERYWHERE") else {
        writeln!(
            std::io::stderr(),
            "not run: every prefix of the corpus; set OSIER_CUT_EVERYWHERE to where the programs are"
        )
        .expect("standard error is open");
        return;
    };
    let mut modules = kernels();
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let paths = entries.map(|f| f.expect("a readable folder").path());
    let programs = paths.filter(|f| f.extension().is_some_and(|e| e == "wasm"));
    modules.extend(
        programs.map(|f| (f.display().to_string(), std::fs::read(&f).expect("a readable file"))),
    );
    assert!(modules.len() >= 34, "only {} modules", modules.len());
    for (name, bytes) in &modules {
        let every = bytes.len() < 16 * 1024;
        let cuts = if every { bytes.len() } else { 2_000 };
        for n in 0..cuts {
            let at = if every { n } else { n.wrapping_mul(2_654_435_761) % bytes.len() };
            check_located(name, &bytes[..at]);
        }
    }
}

#[test]
fn flipped_bits_make_an_error_or_a_well_formed_module() {
    let kernels = kernels();
    let (mut accepted, mut refused) = (0, 0);
    for (n, (name, bytes)) in kernels.iter().cycle().take(3_000).enumerate() {
        let mut bytes = bytes.clone();
        for flip in 0..1 + n % 3 {
            let bit = (n * 3 + flip).wrapping_mul(2_654_435_761) % (8 * bytes.len());
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        if check_located(name, &bytes) { accepted += 1 } else { refused += 1 }
    }
    assert!(accepted > 300 && refused > 300, "{accepted} accepted, {refused} refused");
}
