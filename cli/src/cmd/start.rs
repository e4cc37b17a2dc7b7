//! What somebody sees who does not know the command: the screen of `osier` alone, its version, and
//! the options that a misspelled one resembles.

use super::Cli;
use super::failure::{BAD_USAGE, print};
use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::collections::BTreeSet;
use std::process::ExitCode;

/// The version of the package, and the commit that the build was made of, if it is known.
pub(super) const VERSION: &str = env!("OSIER_VERSION");

const SCREEN: &str = "\
Moves running calls between versions of a function, and proves each move.

  osier report FILE                         points with a move between each function and
                                            its optimized version, and their price
  osier report FILE --format html -o r.html the same as a page, with both versions
  osier explain FILE --func F --point P     one point: where a run goes on, or why not
  osier opt FILE --emit listing             every point of every function
  osier check FILE                          judges the moves one by one
  osier run FILE [ARG]...                   runs a program, natively with --engine jit
  osier fuzz                                judges random programs

FILE is a WebAssembly module (.wasm, .wat) or a module in the text form (.oir). `osier help` lists
the commands, and `osier COMMAND --help` the options of each.";

/// Prints the screen to standard error, and returns the status of bad usage: a script that forgets
/// the command must not succeed.
pub(super) fn screen() -> ExitCode {
    print(&format!("osier {VERSION}\n{SCREEN}"));
    ExitCode::from(BAD_USAGE)
}

/// An error of clap about an unknown option, with the option that it resembles. clap compares
/// letters in order, so it finds none for `--dri`, and suggests to pass that as a value.
pub(super) fn suggesting(mut error: clap::Error) -> clap::Error {
    if error.kind() != ErrorKind::UnknownArgument || error.get(ContextKind::SuggestedArg).is_some()
    {
        return error;
    }
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let Some(wanted) = unknown.strip_prefix("--") else { return error };
    let wanted = wanted.to_owned();
    let mut command = Cli::command();
    command.build();
    // A word that is not Unicode names no subcommand (`a_word_that_is_not_unicode_is_no_panic`).
    let mut words = std::env::args_os().skip(1).filter_map(|word| word.into_string().ok());
    let used = words.find_map(|word| command.find_subcommand(word)).unwrap_or(&command);
    let names = used.get_arguments().filter_map(|arg| arg.get_long()).map(str::to_owned);
    let names: Vec<String> = names.collect();
    // Of short names, those with letters in another order are alike to people alone.
    let letters = |name: &str| -> BTreeSet<char> { name.chars().collect() };
    let turned = names.iter().find(|name| letters(name) == letters(&wanted)).cloned();
    let alike = || osier::explain::alike(names, &wanted).into_iter().next();
    if let Some(name) = turned.or_else(alike) {
        error.insert(ContextKind::SuggestedArg, ContextValue::String(format!("--{name}")));
        error.remove(ContextKind::Suggested);
    }
    error
}
