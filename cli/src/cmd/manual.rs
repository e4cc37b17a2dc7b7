//! `osier completions` and `osier man`: what shells and `man` know about the command, from the
//! definitions of its options.

use super::Cli;
use super::failure::CommandFailure;
use super::output::Output;
use clap::{Command, CommandFactory};
use clap_complete::Shell;

#[derive(Debug, clap::Args)]
#[command(after_help = COMPLETIONS_HELP)]
pub(super) struct CompletionArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

const COMPLETIONS_HELP: &str = "\
Examples:
  osier completions bash > ~/.local/share/bash-completion/completions/osier
  osier completions fish > ~/.config/fish/completions/osier.fish
  osier completions zsh > \"${fpath[1]}/_osier\"";

#[derive(Debug, clap::Args)]
#[command(after_help = MAN_HELP)]
pub(super) struct ManArgs {
    /// The page of this command, instead of that of osier
    command: Option<String>,
}

const MAN_HELP: &str = "\
Examples:
  osier man | man -l -
  osier man run > ~/.local/share/man/man1/osier-run.1";

/// Writes the completions of a shell.
///
/// # Errors
/// If standard output cannot be written.
pub(super) fn completions(args: &CompletionArgs) -> Result<(), CommandFailure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "osier", &mut text);
    write(text)
}

/// Writes a page for `man`.
///
/// # Errors
/// If there is no such command, or standard output cannot be written.
pub(super) fn man(args: &ManArgs) -> Result<(), CommandFailure> {
    let mut osier = Cli::command();
    osier.build();
    // A page of a command has no version of its own.
    let version = format!("osier {}", osier.get_version().unwrap_or_default());
    let (page, title) = match &args.command {
        None => (osier, "osier".to_owned()),
        Some(name) => (named(&osier, name)?, format!("osier-{name}")),
    };
    let mut text = Vec::new();
    let rendered = clap_mangen::Man::new(page).title(title).source(version).render(&mut text);
    rendered.map_err(|error| CommandFailure::writing("the page", &error))?;
    write(text)
}

/// The command of a page.
fn named(osier: &Command, name: &str) -> Result<Command, CommandFailure> {
    let found = osier.find_subcommand(name).cloned();
    found.ok_or_else(|| {
        let names: Vec<&str> = osier.get_subcommands().map(Command::get_name).collect();
        CommandFailure::input(format!("no command {name:?} (commands: {})", names.join(", ")))
    })
}

fn write(text: Vec<u8>) -> Result<(), CommandFailure> {
    let text = String::from_utf8(text).expect("definitions of options are UTF-8");
    Output::Stdout.write(&text)
}
