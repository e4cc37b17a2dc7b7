//! The directives of the suite that are known to fail, with reasons.

/// A directive that is known to fail.
#[derive(Debug)]
pub(crate) struct Skip {
    /// The folder and name of the file.
    pub(crate) file: &'static str,
    /// The line it begins on.
    pub(crate) line: usize,
    /// Why it fails.
    pub(crate) reason: &'static str,
}

/// All such directives.
pub(crate) const SKIPPED: &[Skip] = &[
    several("wasm-v2/binary.wast", 145),
    several("wasm-v2/binary.wast", 165),
    several("wasm-v2/binary.wast", 184),
    several("wasm-v2/binary.wast", 203),
    several("wasm-v2/binary.wast", 242),
    several("wasm-v2/binary.wast", 261),
    several("wasm-v2/binary.wast", 279),
    several("wasm-v2/binary.wast", 297),
    several("wasm-v2/imports.wast", 487),
    several("wasm-v2/imports.wast", 491),
    several("wasm-v2/imports.wast", 495),
    several("wasm-v2/memory.wast", 10),
    several("wasm-v2/memory.wast", 11),
    shared("extended-const/global.wast", 391),
    shared("extended-const/global.wast", 421),
];

const fn several(file: &'static str, line: usize) -> Skip {
    Skip {
        file,
        line,
        reason: "it expects several memories to be invalid, which a later version of WebAssembly allows",
    }
}

const fn shared(file: &'static str, line: usize) -> Skip {
    Skip {
        file,
        line,
        reason: "the invalid bit now denotes shared globals, and the importer rejects it as unsupported",
    }
}
