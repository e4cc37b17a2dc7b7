//! Parts of WebAssembly that compilers use: by default, and with every flag that Osier supports.

use crate::programs::{expect, file, process, run};
use interp::{Limits, Machine, NoHost, NoObserver, Outcome};
use std::collections::BTreeSet;
use std::fs;
use wasm::ImportLimits;
use wasmparser::{Parser, Payload};

/// The features that a module names in its section `target_features`.
fn features(name: &str) -> BTreeSet<String> {
    let bytes = fs::read(file(&format!("{name}.wasm"))).expect("a program");
    for payload in Parser::new(0).parse_all(&bytes) {
        let Payload::CustomSection(section) = payload.expect("a module") else { continue };
        if section.name() != "target_features" {
            continue;
        }
        let mut reader = wasmparser::BinaryReader::new(section.data(), 0);
        let count = reader.read_var_u32().expect("a number");
        let feature = |_| {
            assert_eq!(reader.read_u8().expect("a prefix"), b'+', "used");
            reader.read_string().expect("a name").to_owned()
        };
        return (0..count).map(feature).collect();
    }
    panic!("{name} has no section target_features");
}

fn names(list: &[&str]) -> BTreeSet<String> {
    list.iter().map(|name| (*name).to_owned()).collect()
}

/// Runs the program and returns its output.
fn printed(name: &str) -> String {
    let (outcome, printed) = run(name, process(&[]), b"");
    assert_eq!(outcome, Outcome::Returned(Vec::new()), "{name}");
    printed
}

/// The features that clang 19 uses without flags; `docs/programs.md` lists them.
#[test]
fn code_with_the_default_features_of_clang_is_imported() {
    let default = ["multivalue", "mutable-globals", "reference-types", "sign-ext"];
    assert_eq!(features("features"), names(&default));
    expect("features", process(&[]), b"", Outcome::Returned(Vec::new()));
}

/// The features of newer compilers, and the features that they enable by a flag.
#[test]
fn code_with_all_supported_features_is_imported() {
    let all = features("features.all");
    let newer = ["bulk-memory", "nontrapping-fptoint", "extended-const", "multimemory"];
    assert!(names(&newer).is_subset(&all), "{all:?}");
    assert_eq!(printed("features.all"), printed("features"));
}

/// The results of `rust.rs`, computed by the test.
fn results(x: f64) -> [u64; 10] {
    let (b, d) = (x as u64, (x * 3.0) as u16);
    let wide = (i128::from(i64::MAX) << 9) - i128::from(b as i64);
    let length = usize::from(d);
    let mut bytes = [1u8; 3000];
    bytes[..length].fill(7);
    bytes.copy_within(length / 4..length + 500, 900);
    let sum = bytes.iter().zip(0..).map(|(byte, at)| u64::from(*byte) * at).sum();
    let c = b as i64;
    let calls = [c.abs(), c >> 3, i64::from(c as i8) - i64::from(c as i16)].map(|v| v as u64);
    let [first, second, third] = calls;
    let (low, high) = (wide as u64, (wide >> 64) as u64);
    let (word, byte) = (x as i32 as u32, x as i8 as u8);
    [word.into(), b, byte.into(), d.into(), low, high, sum, first, second, third]
}

/// The features that rustc 1.95 uses without flags.
#[test]
fn code_with_the_default_features_of_rustc_is_imported() {
    let default = [
        "bulk-memory",
        "bulk-memory-opt",
        "call-indirect-overlong",
        "multivalue",
        "mutable-globals",
        "nontrapping-fptoint",
        "reference-types",
        "sign-ext",
    ];
    assert_eq!(features("rust"), names(&default));
    let bytes = fs::read(file("rust.wasm")).expect("a program");
    let module = wasm::import(&bytes, &ImportLimits::default()).expect("a supported module");
    let mut machine = Machine::new(&module, Limits::default()).expect("instantiable");
    let func = module.lookup("result").expect("exported");
    for x in [0.0, -1.5, 300.7, 600.7, f64::NAN, -1e300] {
        for (number, expected) in (0..).zip(results(x)) {
            let outcome =
                machine.invoke(func, &[number, x.to_bits()], &mut NoHost, &mut NoObserver);
            assert_eq!(outcome, Outcome::Returned(vec![expected]), "{number} of {x}");
        }
    }
}
