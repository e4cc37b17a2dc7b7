//! The words behind the options of `osier run`: FILE, and all that belongs to the program.

use crate::cmd::Cli;
use crate::cmd::failure::{CommandFailure, tell};
use clap::CommandFactory;
use std::ffi::OsString;
use std::path::PathBuf;

/// The program, the function to call, and arguments.
#[derive(Debug)]
pub(super) struct ProgramWords {
    pub(super) file: PathBuf,
    /// The function to call and its arguments; `None` for the whole program.
    pub(super) invoke: Option<(String, Vec<String>)>,
    /// The arguments of the program, without its name.
    pub(super) args: Vec<String>,
}

impl ProgramWords {
    /// Splits the words. All behind FILE is the program's, except for a first `--` and a first
    /// `--invoke`.
    ///
    /// # Errors
    /// If `--invoke` occurs twice or lacks its name, or an argument is not Unicode.
    pub(super) fn of(words: &[OsString], invoke: Option<&str>) -> Result<Self, CommandFailure> {
        let (file, rest) = words.split_first().expect("clap requires FILE");
        let text = |word: &OsString| {
            let refused = || format!("{word:?}: arguments of a program are UTF-8");
            word.to_str().map(str::to_owned).ok_or_else(|| CommandFailure::input(refused()))
        };
        let rest = rest.iter().map(text).collect::<Result<Vec<String>, _>>()?;
        let mut words = ProgramWords { file: file.into(), invoke: None, args: Vec::new() };
        let (name, args) = match rest.split_first() {
            Some((first, args)) if first == "--" => (invoke.map(str::to_owned), args),
            Some((first, args)) if first == "--invoke" || first.starts_with("--invoke=") => {
                if invoke.is_some() {
                    return Err(CommandFailure::input("--invoke is given twice"));
                }
                let missing = || CommandFailure::input("--invoke: NAME is missing");
                let (name, args) = match first.strip_prefix("--invoke=") {
                    Some(name) => (name, args),
                    None => args.split_first().map(|(n, args)| (&**n, args)).ok_or_else(missing)?,
                };
                let args = args.strip_prefix(&["--".to_owned()]).unwrap_or(args);
                (Some(name.to_owned()), args)
            }
            _ => {
                note_option(rest.first());
                (invoke.map(str::to_owned), &rest[..])
            }
        };
        match name {
            Some(name) => words.invoke = Some((name, args.to_vec())),
            None => words.args = args.to_vec(),
        }
        Ok(words)
    }
}

/// Notes that the program gets an option of this command, if its first argument is one: a user may
/// have written the option behind FILE by mistake. After `--`, the argument is the program's.
fn note_option(first: Option<&String>) {
    let Some(name) = first.and_then(|first| first.strip_prefix("--")) else { return };
    let name = name.split('=').next().unwrap_or(name);
    // Once built, a command has the options of all commands, too.
    let mut osier = Cli::command();
    osier.build();
    let is_option = |arg: &clap::Arg| arg.get_long() == Some(name);
    if osier.find_subcommand("run").is_some_and(|run| run.get_arguments().any(is_option)) {
        tell(&format!(
            "note: --{name} behind FILE goes to the program; options of osier stand before FILE"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(words: &[&str], invoke: Option<&str>) -> Result<ProgramWords, String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        ProgramWords::of(&words, invoke).map_err(|failure| format!("{failure:?}"))
    }

    #[test]
    fn all_behind_the_file_is_the_programs() {
        for (words, args) in [
            (&["f"][..], &[][..]),
            (&["f", "8", "--", "-x"], &["8", "--", "-x"]),
            (&["f", "-x", "--invoke", "g"], &["-x", "--invoke", "g"]),
            (&["f", "--", "--invoke", "g"], &["--invoke", "g"]),
            (&["f", "--", "--"], &["--"]),
        ] {
            let words = split(words, None).expect("right words");
            assert_eq!((words.file, words.invoke), (PathBuf::from("f"), None));
            assert_eq!(words.args, args);
        }
    }

    #[test]
    fn a_function_is_named_before_or_behind_the_file() {
        for (words, invoke) in [
            (&["f", "--invoke", "g", "-1", "2"][..], None),
            (&["f", "--invoke=g", "-1", "2"], None),
            (&["f", "--invoke", "g", "--", "-1", "2"], None),
            (&["f", "-1", "2"], Some("g")),
            (&["f", "--", "-1", "2"], Some("g")),
        ] {
            let words = split(words, invoke).expect("right words");
            let (name, args) = words.invoke.expect("a function");
            assert_eq!((&*name, &args[..]), ("g", &["-1".to_owned(), "2".to_owned()][..]));
            assert!(words.args.is_empty());
        }
        assert!(split(&["f", "--invoke"], None).is_err_and(|e| e.contains("NAME is missing")));
        assert!(split(&["f", "--invoke", "g"], Some("g")).is_err_and(|e| e.contains("twice")));
    }
}
