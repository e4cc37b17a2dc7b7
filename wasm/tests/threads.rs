//! The number of threads does not show in the result of an import.

use crate::damage::{Random, damaged};
use ir::text::print_module;
use wasm::ImportLimits;

const KERNELS: [&[u8]; 3] = [
    include_bytes!("../../tests/corpus/words.wasm"),
    include_bytes!("../../tests/corpus/vm.wasm"),
    include_bytes!("../../tests/corpus/scan.wasm"),
];

/// The module as text, or the error. It is the same on one thread and on three.
fn imported(bytes: &[u8], base_bytes: u64) -> Result<String, String> {
    let on = |threads| {
        let limits = ImportLimits { base_bytes, threads, bytes_per_input_byte: 0 };
        wasm::import(bytes, &limits).map(|module| print_module(&module)).map_err(|e| e.to_string())
    };
    let alone = on(1);
    assert_eq!(on(3), alone);
    alone
}

#[test]
fn several_threads_make_the_same_module() {
    for kernel in KERNELS {
        assert!(imported(kernel, 512 << 20).is_ok());
    }
}

#[test]
fn several_threads_find_the_same_error() {
    let mut random = Random::new(7);
    let (mut accepted, mut rejected) = (0, 0);
    for round in 0..300 {
        let (module, other) = (KERNELS[round % 3], KERNELS[(round + 1) % 3]);
        match imported(&damaged(module, other, &mut random), 512 << 20) {
            Ok(_) => accepted += 1,
            Err(_) => rejected += 1,
        }
    }
    assert!(accepted > 20 && rejected > 100, "{accepted} accepted, {rejected} rejected");
}

#[test]
fn several_threads_have_the_same_limit() {
    // A third of the memory suffices for no thread long before the whole is too small for one.
    let (mut accepted, mut rejected) = (0, 0);
    for kilobytes in (0..3000).step_by(60) {
        match imported(KERNELS[0], kilobytes << 10) {
            Ok(_) => accepted += 1,
            Err(_) => rejected += 1,
        }
    }
    assert!(accepted > 5 && rejected > 5, "{accepted} accepted, {rejected} rejected");
}
