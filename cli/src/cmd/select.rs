//! Which functions a command looks at.

use super::failure::{Failure, tell};
use super::input;
use ir::{Func, Function, Module};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The options that select functions.
#[derive(Debug, clap::Args)]
pub(super) struct Selection {
    /// Only this function
    #[arg(long, value_name = "NAME")]
    func: Option<String>,
    /// Only the functions a file names, one a line; names the module lacks are counted and passed
    /// over
    #[arg(long, value_name = "FILE", conflicts_with = "func")]
    only_functions: Option<PathBuf>,
}

impl Selection {
    /// Whether nothing is left out.
    pub(super) fn is_everything(&self) -> bool {
        self.func.is_none() && self.only_functions.is_none()
    }

    /// The selected functions that have a body, in module order.
    pub(super) fn of<'m>(&self, module: &'m Module) -> Result<Vec<(Func, &'m Function)>, Failure> {
        if let Some(name) = &self.func {
            return Ok(vec![named(module, name)?]);
        }
        let Some(path) = &self.only_functions else { return Ok(module.defined().collect()) };
        let names: BTreeSet<String> = input::read_names(path)?.into_iter().collect();
        let selected: Vec<_> =
            module.defined().filter(|(_, body)| names.contains(body.name())).collect();
        if selected.is_empty() {
            return Err(Failure::input(format!(
                "{} names no function of the module",
                path.display()
            )));
        }
        if selected.len() < names.len() {
            let missing = names.len() - selected.len();
            tell(&format!(
                "{missing} of the names in {} are no functions of the module",
                path.display()
            ));
        }
        Ok(selected)
    }
}

/// The function with this name (`@` before it or not), which must have a body.
pub(super) fn named<'m>(module: &'m Module, name: &str) -> Result<(Func, &'m Function), Failure> {
    let name = name.strip_prefix('@').unwrap_or(name);
    let func =
        module.lookup(name).ok_or_else(|| Failure::input(format!("no function {name:?}")))?;
    let body = module
        .body(func)
        .ok_or_else(|| Failure::input(format!("function {name:?} is imported")))?;
    Ok((func, body))
}
