//! Lines of the source that instructions come from, for explanations, listings and reports.
//!
//! [`Lines`] answers for the functions of a module as they were imported; with the feature
//! `source`, `wasm::SourceMap` does, from the debug info of a module. [`VersionLines`] answers for
//! a version that passes made from an imported function:
//!
//! - An instruction that passes kept or moved keeps its line.
//! - An added instruction has the line of the first instruction whose result it replaced. Example:
//!   the shift that replaces a product has the line of the product.
//! - In inlined code, a copied instruction has the line of its original.
//! - All other instructions, and instructions without debug info, have no line.

use derive::inlining::Inlined;
use ir::edit::{ActionKind, ActionLog};
use ir::{Func, Function, Inst};
use osr::Version;
use std::collections::BTreeMap;
use std::fmt;

/// A line of the source.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Line {
    /// The path of the file as the compiler knew it: relative to the directory of the compilation,
    /// or absolute.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1. `null` if the compiler named only the line.
    pub column: Option<u32>,
}

impl fmt::Display for Line {
    /// Prints `file:line:column`, or `file:line` without a column. Characters that do not print as
    /// themselves are escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.file.chars() {
            match c {
                '\'' | '"' | '\\' => write!(f, "{c}")?,
                c => write!(f, "{}", c.escape_debug())?,
            }
        }
        write!(f, ":{}", self.line)?;
        self.column.map_or(Ok(()), |column| write!(f, ":{column}"))
    }
}

/// What the source says about the functions of a module.
pub trait Lines: fmt::Debug + Sync {
    /// The line that an instruction of the imported function comes from. `None` if it is not known.
    fn line(&self, func: Func, inst: Inst) -> Option<Line>;

    /// The name that the function has in the source. `None` if it is not known.
    fn name(&self, func: Func) -> Option<String>;
}

#[cfg(feature = "source")]
impl Lines for wasm::SourceMap {
    fn line(&self, func: Func, inst: Inst) -> Option<Line> {
        let found = self.of(func, inst)?;
        Some(Line { file: found.file.to_owned(), line: found.line, column: found.column })
    }

    fn name(&self, func: Func) -> Option<String> {
        self.name_of(func).map(str::to_owned)
    }
}

/// The line that an instruction of the imported function comes from. `None` without a source, or if
/// it is not known.
pub fn line_of(lines: Option<&dyn Lines>, func: Func, inst: Inst) -> Option<Line> {
    lines?.line(func, inst)
}

/// The lines of one version of a function.
#[derive(Clone, Debug)]
pub struct VersionLines<'a> {
    lines: &'a dyn Lines,
    func: Func,
    /// For added or copied instructions: the function and the instruction whose line they have.
    home: BTreeMap<Inst, (Func, Inst)>,
}

impl<'a> VersionLines<'a> {
    /// The lines of an imported function.
    pub fn of_base(lines: &'a dyn Lines, func: Func) -> VersionLines<'a> {
        VersionLines { lines, func, home: BTreeMap::new() }
    }

    /// The lines of the version that a log makes from the imported function. Cost: linear in the
    /// log.
    pub fn of_derived(
        lines: &'a dyn Lines,
        func: Func,
        [base, version]: [&Function; 2],
        log: &ActionLog,
    ) -> VersionLines<'a> {
        let mut home = BTreeMap::new();
        for action in log.actions() {
            let ActionKind::ReplaceAll { before, after } = action.kind() else { continue };
            let defined = |f: &Function, value| {
                let value = Some(value).filter(|value| f.has_value(*value));
                value.and_then(|value| f.defining_inst(value))
            };
            if let (Some(replaced), Some(inst)) = (defined(base, *before), defined(version, *after))
                && !base.has_inst(inst)
            {
                home.entry(inst).or_insert((func, replaced));
            }
        }
        VersionLines { lines, func, home }
    }

    /// The lines of a version with inlined code: the copy itself, or a version that passes made
    /// from the copy. Cost: linear in the version.
    pub fn of_inlined(
        lines: &'a dyn Lines,
        func: Func,
        made: &Inlined,
        version: Version,
    ) -> VersionLines<'a> {
        let instances = made.copies.instances();
        let home = made.tree.function(version).all_insts().filter_map(|inst| {
            let (id, original) = made.copies.origin(inst)?;
            Some((inst, (instances[id].func, original)))
        });
        VersionLines { lines, func, home: home.collect() }
    }

    /// The line of an instruction of the version. `None` if it is not known.
    pub fn of(&self, inst: Inst) -> Option<Line> {
        let (func, inst) = *self.home.get(&inst).unwrap_or(&(self.func, inst));
        self.lines.line(func, inst)
    }
}
