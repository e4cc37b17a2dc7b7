//! Random WebAssembly modules, of a generator that knows nothing of this compiler: what the
//! importer makes of them looks unlike anything else.

use arbitrary::Unstructured;
use fuzz::{Drawn, Options, Source};
use ir::{Func, Module};
use osier::driver::{Format, load};
use verify::generate::arguments;
use verify::prng::Prng;
use wasm_smith::Config;

/// Random bytes that a module is made of.
const BYTES: usize = 4096;

/// Rounds of loops and calls that a module may make in all: it counts them itself.
const ROUNDS: u32 = 200;

/// Instructions a version may execute: more than those rounds take.
const FUEL: u64 = 1 << 20;

/// Modules of `wasm-smith`, a seed each.
pub(super) struct Smith {
    pub(super) options: Options,
    pub(super) modules: u64,
}

impl Source for Smith {
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

/// The module of a seed; nothing when the importer does not take it.
fn module(seed: u64) -> Option<Module> {
    let mut prng = Prng::new(seed).fork(0x73_6d_69_74_68);
    let bytes: Vec<u8> = (0..BYTES / 8).flat_map(|_| prng.next_u64().to_le_bytes()).collect();
    let mut module = wasm_smith::Module::new(config(), &mut Unstructured::new(&bytes)).ok()?;
    module.ensure_termination(ROUNDS).ok()?;
    load(Format::Wasm, &module.to_bytes()).ok()
}

/// What the importer takes, nothing imported.
fn config() -> Config {
    Config {
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
        ..Config::default()
    }
}

/// A function.
fn entry(module: &Module, seed: u64) -> Option<Func> {
    let entries: Vec<Func> = module.defined().map(|(func, _)| func).collect();
    let mut prng = Prng::new(seed).fork(1);
    (!entries.is_empty()).then(|| prng.pick(&entries))
}
