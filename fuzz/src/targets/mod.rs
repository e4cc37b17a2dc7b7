//! Bodies of fuzz targets: functions of any bytes that return, or panic at a bug.
//!
//! The crate `fuzz-targets` gives each to libFuzzer, and `tests/targets.rs` runs each on seeds and
//! on mutations of them. A body bounds its work: inputs beyond its limits are left out. Equal bytes
//! do the same in every run, so a failing input is a test.

mod input;
mod made;
mod modules;
mod texts;

use ir::Opcode;

/// A target.
#[derive(Clone, Copy, Debug)]
pub struct FuzzTarget {
    /// The name of the target.
    pub name: &'static str,
    /// The body. It panics at a bug.
    pub run: fn(&[u8]),
    /// Inputs of interest that need no files.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Words that mutations insert.
    pub words: fn() -> Vec<Vec<u8>>,
}

/// All targets, by name.
pub const TARGETS: [FuzzTarget; 9] = [
    FuzzTarget {
        name: "continuations",
        run: made::continuations,
        seeds: made::seeds,
        words: Vec::new,
    },
    FuzzTarget {
        name: "debug_info",
        run: modules::debug_info,
        seeds: modules::debug_info_seeds,
        words: Vec::new,
    },
    FuzzTarget {
        name: "mapping_files",
        run: texts::mapping_files,
        seeds: texts::mapping_file_seeds,
        words: texts::mapping_file_words,
    },
    FuzzTarget {
        name: "module_bytes",
        run: modules::module_bytes,
        seeds: modules::module_seeds,
        words: modules::module_words,
    },
    FuzzTarget {
        name: "oir_text",
        run: modules::oir_text,
        seeds: modules::oir_seeds,
        words: opcodes,
    },
    FuzzTarget {
        name: "past_reports",
        run: texts::past_reports,
        seeds: texts::past_report_seeds,
        words: Vec::new,
    },
    FuzzTarget { name: "pipelines", run: made::pipelines, seeds: made::seeds, words: Vec::new },
    FuzzTarget {
        name: "profiles",
        run: texts::profiles,
        seeds: texts::profile_seeds,
        words: texts::profile_words,
    },
    FuzzTarget {
        name: "wat_text",
        run: modules::wat_text,
        seeds: modules::wat_seeds,
        words: modules::wat_words,
    },
];

impl FuzzTarget {
    /// The words in the form of a dictionary of libFuzzer, a line each.
    pub fn dictionary(&self) -> String {
        let word = |word: Vec<u8>| {
            let escaped: String = word
                .iter()
                .map(|byte| match byte {
                    b'"' | b'\\' => format!("\\{}", char::from(*byte)),
                    b' '..=b'~' => char::from(*byte).to_string(),
                    byte => format!("\\x{byte:02x}"),
                })
                .collect();
            format!("\"{escaped}\"\n")
        };
        (self.words)().into_iter().map(word).collect()
    }
}

/// The names of all operations.
fn opcodes() -> Vec<Vec<u8>> {
    Opcode::ALL.iter().map(|opcode| opcode.name().as_bytes().to_vec()).collect()
}

#[cfg(test)]
mod tests;
