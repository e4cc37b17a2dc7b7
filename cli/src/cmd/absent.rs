//! Commands that this build leaves out. Their names stay, and the message names the feature that
//! brings a command back.

use super::failure::CommandFailure;
use std::ffi::OsString;

/// Any arguments.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(super) struct Args {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _arguments: Vec<OsString>,
}

/// # Errors
/// Always: this build has no such command.
pub(super) fn absent_from(command: &str, feature: &str) -> Result<(), CommandFailure> {
    let message = format!(
        "this build of osier has no {command}: a build with default features, or with \
         `--features {feature}`, has it"
    );
    Err(CommandFailure::input(message))
}
