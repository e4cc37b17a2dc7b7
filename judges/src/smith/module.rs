//! Random modules with their exports.

use super::canonical::canonical;
use arbitrary::Unstructured;
use verify::prng::Prng;
use wasm_smith::Config;
use wasmparser::{ExternalKind, Parser, Payload};

/// The most random bytes from which a module is made.
const BYTES: usize = 4096;

/// The number of loop iterations and calls after which an instance traps. The module itself counts
/// them.
const ROUNDS: u32 = 1000;

/// A random module.
pub(super) struct Sample {
    /// The module.
    pub(super) bytes: Vec<u8>,
    /// The name, kind and index of every export.
    pub(super) exports: Vec<(String, ExternalKind, u32)>,
}

/// The module of a seed; `None` if its random bytes do not give one.
pub(super) fn sample(seed: u64) -> Option<Sample> {
    let mut prng = Prng::new(seed).fork(0x6a_75_64_67_65);
    let length = (BYTES / 8) >> prng.below(3);
    let bytes: Vec<u8> = (0..length).flat_map(|_| prng.next_u64().to_le_bytes()).collect();
    let mut module = wasm_smith::Module::new(config(seed), &mut Unstructured::new(&bytes)).ok()?;
    module.ensure_termination(ROUNDS).ok()?;
    Sample::of(canonical(&module.to_bytes())?)
}

impl Sample {
    /// A module with these bytes; `None` if they are not a module.
    pub(super) fn of(bytes: Vec<u8>) -> Option<Sample> {
        let mut exports = Vec::new();
        for payload in Parser::new(0).parse_all(&bytes) {
            if let Payload::ExportSection(section) = payload.ok()? {
                for export in section {
                    let export = export.ok()?;
                    exports.push((export.name.to_owned(), export.kind, export.index));
                }
            }
        }
        Some(Sample { bytes, exports })
    }
}

/// The features that the importer supports, without imports. In every second module, only the limit
/// on rounds and indirect calls can trap, since modules with other traps mostly trap early. The
/// module itself makes NaNs canonical, since wasmi leaves them as the processor produces them.
fn config(seed: u64) -> Config {
    Config {
        disallow_traps: seed.is_multiple_of(2),
        canonicalize_nans: true,
        bulk_memory_enabled: true,
        exceptions_enabled: false,
        gc_enabled: false,
        extended_const_enabled: false,
        multi_value_enabled: true,
        reference_types_enabled: true,
        relaxed_simd_enabled: false,
        saturating_float_to_int_enabled: true,
        simd_enabled: false,
        tail_call_enabled: false,
        threads_enabled: false,
        wide_arithmetic_enabled: false,
        memory64_enabled: false,
        compact_imports_enabled: false,
        max_imports: 0,
        min_types: 1,
        min_funcs: 1,
        max_funcs: 5,
        max_instructions: 400,
        max_memories: 2,
        min_memories: 1,
        max_tables: 3,
        max_globals: 8,
        max_data_segments: 3,
        max_element_segments: 3,
        max_memory32_bytes: 4 << 16,
        memory_max_size_required: true,
        max_table_elements: 16,
        table_max_size_required: true,
        export_everything: true,
        allow_start_export: true,
        ..Config::default()
    }
}
