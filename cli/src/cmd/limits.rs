//! The options that set [`osier::Limits`], with the defaults of the library.

use osier::Limits;

/// Limits on reading a program.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
pub(super) struct InputLimits {
    /// Bytes of an input file
    #[arg(long, value_name = "N", default_value_t = Limits::default().input_bytes)]
    max_input_bytes: u64,
    /// Instructions of one function
    #[arg(long, value_name = "N", default_value_t = Limits::default().function_instructions)]
    max_function_instructions: u64,
    /// Bytes of memory for importing WebAssembly, in addition to 64 per byte of the file
    #[arg(long, value_name = "N", default_value_t = Limits::default().import.base_bytes)]
    max_import_bytes: u64,
}

impl InputLimits {
    /// The limits as the library takes them. Limits on runs keep their defaults.
    pub(super) fn limits(self) -> Limits {
        let mut limits = Limits {
            input_bytes: self.max_input_bytes,
            function_instructions: self.max_function_instructions,
            ..Limits::default()
        };
        limits.import.base_bytes = self.max_import_bytes;
        limits.import.threads = std::thread::available_parallelism().map_or(1, usize::from);
        limits
    }
}

/// Limits on a run.
#[cfg(feature = "run")]
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
pub(super) struct RunLimits {
    /// Stop after this many instructions [default: never]
    #[arg(long, value_name = "N")]
    fuel: Option<u64>,
    /// Pages of 64 KiB that all memories together may have
    #[arg(long, value_name = "N", default_value_t = Limits::default().run.memory_pages)]
    max_memory_pages: u32,
    /// Entries that all tables together may have
    #[arg(long, value_name = "N", default_value_t = Limits::default().run.table_entries)]
    max_table_entries: u32,
    /// Activations that may exist at once in the interpreter; native code has 512 MiB of stack
    /// instead
    #[arg(long, value_name = "N", default_value_t = Limits::default().run.call_depth)]
    max_call_depth: u32,
    /// Values that the frames of all activations together may hold in the interpreter
    #[arg(long, value_name = "N", default_value_t = Limits::default().run.stack_values)]
    max_stack_values: u64,
}

#[cfg(feature = "run")]
impl RunLimits {
    pub(super) fn limits(self) -> interp::Limits {
        interp::Limits {
            fuel: self.fuel.unwrap_or(u64::MAX),
            memory_pages: self.max_memory_pages,
            table_entries: self.max_table_entries,
            call_depth: self.max_call_depth,
            stack_values: self.max_stack_values,
        }
    }
}
