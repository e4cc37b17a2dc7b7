//! Selects the functions that a command processes.

use super::failure::{CommandFailure, tell};
use super::input;
use ir::{Func, Function, Module};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The options that select functions.
#[derive(Debug, clap::Args)]
pub(super) struct Selection {
    /// Only this function; may stand several times
    #[arg(long, value_name = "NAME")]
    func: Vec<String>,
    /// Only the functions that a file names, one per line; counts and ignores names that the module
    /// lacks
    #[arg(long, value_name = "FILE", conflicts_with = "func")]
    only_functions: Option<PathBuf>,
}

impl Selection {
    /// Whether all functions are selected.
    pub(super) fn is_everything(&self) -> bool {
        self.func.is_empty() && self.only_functions.is_none()
    }

    /// The selected functions that have a body, in module order.
    ///
    /// # Errors
    /// If the module lacks a function that `--func` names, or imports it. Also if the file of
    /// `--only-functions` cannot be read or names no function of the module.
    pub(super) fn of<'m>(
        &self,
        module: &'m Module,
    ) -> Result<Vec<(Func, &'m Function)>, CommandFailure> {
        if !self.func.is_empty() {
            let named = self.func.iter().map(|name| named(module, name));
            let mut selected = named.collect::<Result<Vec<_>, _>>()?;
            selected.sort_by_key(|(func, _)| *func);
            selected.dedup_by_key(|(func, _)| *func);
            return Ok(selected);
        }
        let Some(path) = &self.only_functions else { return Ok(module.defined().collect()) };
        let names: BTreeSet<String> = input::read_names(path)?.into_iter().collect();
        let selected: Vec<_> =
            module.defined().filter(|(_, body)| names.contains(body.name())).collect();
        if selected.is_empty() {
            let mut what = format!("{} names no function of the module", path.display());
            if !names.is_empty() {
                what += &format!(": {}", some(&names, names.len()));
            }
            return Err(CommandFailure::input(what));
        }
        if selected.len() < names.len() {
            let found: BTreeSet<&str> = selected.iter().map(|(_, body)| body.name()).collect();
            let missing = names.iter().filter(|name| !found.contains(name.as_str()));
            tell(&format!(
                "the module lacks {} of the functions that {} names: {}",
                names.len() - found.len(),
                path.display(),
                some(missing, names.len() - found.len()),
            ));
        }
        Ok(selected)
    }
}

/// The first three of `count` names, each up to its sixtieth character.
fn some<'n>(names: impl IntoIterator<Item = &'n String>, count: usize) -> String {
    let quoted = |name: &String| format!("{:?}", name.chars().take(60).collect::<String>());
    let mut shown: Vec<String> = names.into_iter().take(3).map(quoted).collect();
    if count > shown.len() {
        shown.push(format!("and {} more", count - shown.len()));
    }
    shown.join(", ")
}

/// The function with this name, which may start with `@`, or else the function exported under this
/// name. Reports print the name of the function.
///
/// # Errors
/// If the module lacks the function or imports it.
pub(super) fn named<'m>(
    module: &'m Module,
    name: &str,
) -> Result<(Func, &'m Function), CommandFailure> {
    let name = name.strip_prefix('@').unwrap_or(name);
    let func = module
        .func_named(name)
        .or_else(|| module.lookup(name))
        .ok_or_else(|| CommandFailure::input(unknown(module, name)))?;
    let body = module.body(func).ok_or_else(|| {
        let why = match module.awaits_body(func) {
            true => "is left out, or its body comes later",
            false => "is imported",
        };
        CommandFailure::input(format!("function {name:?} {why}"))
    })?;
    Ok((func, body))
}

/// The message for a function that the module lacks: names like it, or else some of its functions.
fn unknown(module: &Module, name: &str) -> String {
    let names: Vec<String> = module.defined().map(|(_, body)| body.name().to_owned()).collect();
    let alike = osier::explain::alike(names.clone(), name);
    match (alike.is_empty(), names.is_empty()) {
        (false, _) => format!("no function {name:?}; did you mean {}?", some(&alike, alike.len())),
        (_, true) => format!("no function {name:?}: the module defines none"),
        _ => format!("no function {name:?}; the module has {}", some(&names, names.len())),
    }
}
