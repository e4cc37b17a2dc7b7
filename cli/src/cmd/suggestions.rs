//! The options of `--speculate`, and the profile that the option names.

use super::failure::CommandFailure;
use super::input;
use clap::ValueEnum;
use ir::Module;
use osier::profile::Profile;
use osier::speculate::{MAX_ASSUMPTIONS, Pins, SuggestOptions};
use std::path::Path;

/// The options of `--speculate`.
#[derive(Debug, clap::Args)]
pub(super) struct SuggestionOptions {
    /// Assume at places that the profile visited this often
    #[arg(long, value_name = "N", default_value_t = SuggestOptions::default().visits, requires = "speculate")]
    visits: u64,
    /// Assume every branch side never taken and every indirect call of one target, at their worth
    /// or not, and nothing else
    #[arg(long, requires = "speculate")]
    every: bool,
    /// Values that assumptions keep as operands, for their exits
    #[arg(long, value_enum, default_value_t = PinOption::OnDemand, requires = "speculate")]
    pins: PinOption,
}

/// Values that assumptions keep as operands
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum PinOption {
    /// The values that exits turn out to lack
    OnDemand,
    /// None
    Never,
    /// All that are live in the base
    Live,
}

impl SuggestionOptions {
    /// The choice of values, and its name in the report.
    pub(super) fn pins(&self) -> (Pins, &'static str) {
        match self.pins {
            PinOption::OnDemand => (Pins::OnDemand, "on-demand"),
            PinOption::Never => (Pins::Never, "never"),
            PinOption::Live => (Pins::Live, "live"),
        }
    }

    /// The selection of assumptions to suggest.
    pub(super) fn options(&self) -> SuggestOptions {
        let visits = self.visits;
        match self.every {
            true => SuggestOptions { visits, most: MAX_ASSUMPTIONS, by_worth: false },
            false => SuggestOptions { visits, ..SuggestOptions::default() },
        }
    }
}

/// Reads the profile of a module.
///
/// # Errors
/// If the file cannot be read, or is no profile of the module.
pub(super) fn read_profile(path: &Path, module: &Module) -> Result<Profile, CommandFailure> {
    let text = input::read_text(path)?;
    Profile::read(&text, module)
        .map_err(|error| CommandFailure::input(format!("{}: {error}", path.display())))
}
