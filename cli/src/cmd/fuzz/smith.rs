//! Random WebAssembly modules of `wasm-smith` as cases of the fuzzer. `wasm-smith` is independent
//! of this compiler: imported modules have shapes that our own generator does not produce.

use fuzz::{CampaignOptions, CaseSource, Drawn};
use ir::{Func, Module};
#[cfg(feature = "smith")]
use osier::{Format, load};
use verify::generate::arguments;
use verify::prng::Prng;

/// Whether the command was built with `wasm-smith`: the feature `smith`, which campaigns need and
/// daily work does not.
pub(super) const IS_BUILT: bool = cfg!(feature = "smith");

/// Number of random bytes from which `wasm-smith` builds a module.
#[cfg(feature = "smith")]
const BYTES: usize = 4096;

/// The most loop iterations and calls of a module in one run. The module counts them itself and
/// traps.
#[cfg(feature = "smith")]
const ROUNDS: u32 = 200;

/// The most instructions that a version may execute in a run: enough for 200 iterations.
const FUEL: u64 = 1 << 20;

/// A source of `modules` modules. Case `n` uses the seed of the options plus `n`.
pub(super) struct Smith {
    pub(super) options: CampaignOptions,
    pub(super) modules: u64,
}

impl CaseSource for Smith {
    fn case(&self, number: u64) -> Drawn {
        if number >= self.modules {
            return Drawn::End;
        }
        let seed = self.options.seed.wrapping_add(number);
        let drawn = module(seed).and_then(|module| {
            let entry = entry(&module, seed)?;
            let params = module.signature(entry).params.clone();
            let arguments = arguments(seed, &params, self.options.inputs as usize);
            Some(self.options.case(seed, module, entry, arguments, FUEL))
        });
        drawn.map_or(Drawn::Refused, |case| Drawn::Case(Box::new(case)))
    }
}

#[cfg(not(feature = "smith"))]
fn module(_seed: u64) -> Option<Module> {
    unreachable!("`fuzz` rejects --smith in a build without wasm-smith")
}

/// The module of a seed. `None` if `wasm-smith` runs out of bytes, if the import would exceed a
/// limit, or if a segment does not fit.
///
/// # Panics
/// If the importer rejects the module for another reason: `wasm-smith` makes valid modules of
/// supported features alone, so a campaign must not count such a module as rejected input.
#[cfg(feature = "smith")]
fn module(seed: u64) -> Option<Module> {
    // The tag separates this stream from other uses of the seed. It spells "smith" in ASCII.
    let mut prng = Prng::new(seed).fork(0x73_6d_69_74_68);
    let bytes: Vec<u8> = (0..BYTES / 8).flat_map(|_| prng.next_u64().to_le_bytes()).collect();
    let mut module =
        wasm_smith::Module::new(config(), &mut arbitrary::Unstructured::new(&bytes)).ok()?;
    module.ensure_termination(ROUNDS).ok()?;
    let bytes = module.to_bytes();
    match wasm::import(&bytes, &wasm::ImportLimits::default()) {
        // Segments that do not fit are valid, and fail when the module is instantiated. `load`
        // rejects such a module.
        Ok(_) => load(Format::Wasm, &bytes).ok(),
        Err(error) if error.kind() == wasm::ErrorKind::TooLarge => None,
        Err(error) => panic!("seed {seed}: the importer rejects a valid module: {error}"),
    }
}

/// Enables the features that the importer supports, and disables imports: a case runs without a
/// host.
#[cfg(feature = "smith")]
fn config() -> wasm_smith::Config {
    wasm_smith::Config {
        bulk_memory_enabled: true,
        exceptions_enabled: false,
        gc_enabled: false,
        extended_const_enabled: true,
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
        min_memories: 1,
        min_types: 1,
        min_funcs: 1,
        max_funcs: 4,
        max_instructions: 300,
        max_data_segments: 1,
        max_element_segments: 1,
        max_memory32_bytes: 2 << 16,
        max_table_elements: 16,
        export_everything: true,
        allow_start_export: false,
        ..wasm_smith::Config::default()
    }
}

/// A function with a body, drawn from the seed. `None` if the module defines none.
fn entry(module: &Module, seed: u64) -> Option<Func> {
    let entries: Vec<Func> = module.defined().map(|(func, _)| func).collect();
    let mut prng = Prng::new(seed).fork(1);
    (!entries.is_empty()).then(|| prng.pick(&entries))
}
