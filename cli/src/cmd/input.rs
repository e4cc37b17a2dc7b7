//! Reads input files and standard input, and loads modules from them.

use super::failure::{CommandFailure, tell};
use ir::Module;
use osier::source::Lines;
use osier::{Format, Limits};
use std::io::Read;
use std::path::Path;
use wasm::SourceMap;

/// The path that denotes standard input.
const STDIN: &str = "-";

/// The contents of an input.
#[derive(Debug)]
pub(super) struct Input {
    /// The path in the form that diagnostics and reports show.
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

/// Reads a file that is not a program, or standard input, with the default limit on its size.
pub(super) fn read(path: &Path) -> Result<Input, CommandFailure> {
    read_at_most(path, Limits::default().input_bytes)
}

/// Reads a file or standard input.
///
/// # Errors
/// If the input cannot be read, is empty, is a directory, or exceeds `most` bytes.
fn read_at_most(path: &Path, most: u64) -> Result<Input, CommandFailure> {
    let read_all = |from: &mut dyn Read| {
        let mut bytes = Vec::new();
        // One byte beyond the limit shows that the input is too large; the rest need not be read.
        from.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let (name, bytes) = if path == Path::new(STDIN) {
        ("standard input".to_owned(), read_all(&mut std::io::stdin().lock()))
    } else {
        let opened = std::fs::File::open(path).and_then(|file| match file.metadata()?.is_dir() {
            true => Err(std::io::Error::other("it is a directory")),
            false => Ok(file),
        });
        (path.display().to_string(), opened.and_then(|mut file| read_all(&mut file)))
    };
    let bytes = bytes.map_err(|e| CommandFailure::input(format!("cannot read {name}: {e}")))?;
    if bytes.is_empty() {
        return Err(CommandFailure::input(format!("{name} is empty")));
    }
    if bytes.len() as u64 > most {
        return Err(CommandFailure::input(format!(
            "{name} is larger than {most} bytes (--max-input-bytes)"
        )));
    }
    Ok(Input { name, bytes })
}

/// Reads a module and verifies it.
///
/// # Errors
/// If the input cannot be read, exceeds a limit, or is not a well-formed module.
pub(super) fn load(path: &Path, limits: &Limits) -> Result<Loaded, CommandFailure> {
    let input = read_at_most(path, limits.input_bytes)?;
    let extension = path.extension().and_then(|e| e.to_str());
    match osier::load_within(Format::of(extension, &input.bytes), &input.bytes, limits) {
        Ok(module) => Ok(Loaded { name: input.name, module }),
        Err(error) => Err(CommandFailure::Input(error.in_file(&input.name))),
    }
}

/// Like [`load`], with the lines of the source if the module has debug info.
///
/// # Errors
/// As [`load`].
pub(super) fn load_with_source(path: &Path, limits: &Limits) -> Result<Sourced, CommandFailure> {
    let input = read_at_most(path, limits.input_bytes)?;
    let extension = path.extension().and_then(|e| e.to_str());
    let format = Format::of(extension, &input.bytes);
    match osier::load_with_source(format, &input.bytes, limits) {
        Ok((module, source)) => Ok(Sourced {
            source: Source { name: input.name.clone(), map: source },
            loaded: Loaded { name: input.name, module },
        }),
        Err(error) => Err(CommandFailure::Input(error.in_file(&input.name))),
    }
}

/// A module and the name of its input.
#[derive(Debug)]
pub(super) struct Loaded {
    /// The path in the form that diagnostics and reports show.
    pub(super) name: String,
    pub(super) module: Module,
}

/// A module and its source.
#[derive(Debug)]
pub(super) struct Sourced {
    pub(super) loaded: Loaded,
    pub(super) source: Source,
}

/// The source of a module, according to its debug info.
#[derive(Debug)]
pub(super) struct Source {
    /// The path of the module.
    name: String,
    map: Option<SourceMap>,
}

impl Source {
    /// The lines, if the module has any.
    pub(super) fn lines(&self) -> Option<&dyn Lines> {
        self.map.as_ref().map(|map| map as &dyn Lines)
    }

    /// Writes the ignored debug info and the reasons to standard error. Call this after the lines
    /// are read.
    pub(super) fn tell_notes(&self) {
        for note in self.map.iter().flat_map(SourceMap::notes) {
            tell(&format!("{}: debug info left out: {note}", self.name));
        }
    }
}

/// Reads a file that must be UTF-8 text.
pub(super) fn read_text(path: &Path) -> Result<String, CommandFailure> {
    let input = read(path)?;
    String::from_utf8(input.bytes)
        .map_err(|_| CommandFailure::input(format!("{} is not UTF-8", input.name)))
}

/// Reads a list of names, one per line. Blank lines are ignored, as are blanks around a name.
pub(super) fn read_names(path: &Path) -> Result<Vec<String>, CommandFailure> {
    let text = read_text(path)?;
    Ok(text.lines().map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect())
}
