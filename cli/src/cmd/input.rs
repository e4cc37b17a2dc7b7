//! Reads input files and standard input, and loads modules from them.

use super::failure::{CommandFailure, tell};
use ir::Module;
use ir::text::AtName;
use osier::schema::LeftOutFunction;
use osier::source::Lines;
use osier::{ExceededLimit, Format, Limits, LoadError, SupportedParts, UnsupportedBody};
use std::collections::BTreeMap;
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

/// Reads a file that is not a program, or standard input, with the default limit on its size. No
/// option raises this limit.
pub(super) fn read(path: &Path) -> Result<Input, CommandFailure> {
    read_at_most(path, Limits::default().input_bytes, "")
}

/// Reads a file or standard input.
///
/// # Errors
/// If the input cannot be read, is empty, is a directory, or exceeds `most` bytes, with a hint.
fn read_at_most(path: &Path, most: u64, hint: &str) -> Result<Input, CommandFailure> {
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
        return Err(CommandFailure::input(format!("{name} is larger than {most} bytes{hint}")));
    }
    Ok(Input { name, bytes })
}

/// Reads a module that is to run, and verifies it.
///
/// # Errors
/// If the input cannot be read, exceeds a limit, or is not a well-formed module.
#[cfg(feature = "fuzz")]
pub(super) fn load(path: &Path, limits: &Limits) -> Result<Loaded, CommandFailure> {
    let (name, module) = read_module(path, limits, osier::load_within)?;
    Ok(Loaded { name, module, left_out: Vec::new() })
}

/// Reads a module that is to run, with the lines of the source if it has debug info.
///
/// # Errors
/// If the input cannot be read, exceeds a limit, or is not a well-formed module.
#[cfg(feature = "run")]
pub(super) fn load_with_source(path: &Path, limits: &Limits) -> Result<Sourced, CommandFailure> {
    let (name, (module, map)) = read_module(path, limits, osier::load_with_source)?;
    let source = Source { name: name.clone(), map };
    Ok(Sourced { source, loaded: Loaded { name, module, left_out: Vec::new() } })
}

/// Reads a module that is not to run. Functions that use unsupported parts of WebAssembly are left
/// out, and counted on standard error. With `lines`, the source has its lines if the module has
/// debug info.
///
/// # Errors
/// If the input cannot be read, exceeds a limit, or is not a well-formed module.
pub(super) fn load_parts(
    path: &Path,
    limits: &Limits,
    lines: bool,
) -> Result<Sourced, CommandFailure> {
    let (name, parts) = read_module(path, limits, |format, bytes, limits| {
        osier::load_parts(format, bytes, limits, lines)
    })?;
    let SupportedParts { module, source, left_out } = parts;
    if !left_out.is_empty() {
        tell(&format!("{name}: {}", told(&module, &left_out)));
    }
    let source = Source { name: name.clone(), map: source };
    Ok(Sourced { source, loaded: Loaded { name, module, left_out } })
}

/// The count of the functions that are left out, by feature, and the first of them by name.
/// Example: `left out: 3 of 9912 functions: 2 SIMD, 1 GC (@add4 at 0x53, @f at 0x99, ...)`.
fn told(module: &Module, left_out: &[UnsupportedBody]) -> String {
    /// The functions that the line names.
    const NAMED: usize = 3;
    let mut features: BTreeMap<&str, usize> = BTreeMap::new();
    left_out.iter().for_each(|one| *features.entry(one.feature).or_default() += 1);
    let counted: Vec<String> =
        features.iter().map(|(feature, count)| format!("{count} {feature}")).collect();
    let named = |one: &UnsupportedBody| {
        format!("{} at {:#x}", AtName(&module.funcs[one.func].name), one.offset)
    };
    let mut names: Vec<String> = left_out.iter().take(NAMED).map(named).collect();
    if left_out.len() > NAMED {
        names.push("...".to_owned());
    }
    format!(
        "left out: {} of {} functions: {} ({})",
        left_out.len(),
        left_out.len() + module.defined().count(),
        counted.join(", "),
        names.join(", ")
    )
}

/// Reads an input, and makes a module of it.
fn read_module<T>(
    path: &Path,
    limits: &Limits,
    load: impl FnOnce(Format, &[u8], &Limits) -> Result<T, LoadError>,
) -> Result<(String, T), CommandFailure> {
    let hint = raised_by(ExceededLimit::InputBytes);
    let Input { name, bytes } = read_at_most(path, limits.input_bytes, &hint)?;
    let extension = path.extension().and_then(|e| e.to_str());
    let format = Format::of(extension, &bytes);
    // A text that nothing tells from the text form gets the messages of the text form.
    let is_oir = format == Format::Oir && extension != Some("oir");
    let other = is_oir.then(|| other_kind(extension, &bytes)).flatten();
    match (load(format, &bytes, limits), other) {
        (Ok(loaded), _) => Ok((name, loaded)),
        (Err(_), Some(what)) => {
            Err(CommandFailure::input(format!("{name} is not a module: {what}")))
        }
        (Err(error), None) => {
            let hint = error.limit().map(raised_by).unwrap_or_default();
            Err(CommandFailure::Input(error.in_file(&name) + &hint))
        }
    }
}

/// What to do about an input beyond a limit.
fn raised_by(limit: ExceededLimit) -> String {
    let option = match limit {
        ExceededLimit::InputBytes => "--max-input-bytes",
        ExceededLimit::FunctionInstructions => "--max-function-instructions",
        ExceededLimit::ImportBytes => "--max-import-bytes",
    };
    format!(" ({option} raises the limit)")
}

/// What a file is that was read as the text form only because it is neither WebAssembly nor its
/// text. `None` if it may be the text form.
fn other_kind(extension: Option<&str>, bytes: &[u8]) -> Option<&'static str> {
    const SOURCES: [&str; 7] = ["c", "cc", "cpp", "cxx", "rs", "zig", "go"];
    if extension.is_some_and(|extension| SOURCES.contains(&extension)) {
        return Some(
            "compile the source, for example \
             `clang --target=wasm32-wasi -O1 -g -o prog.wasm prog.c`",
        );
    }
    let begins = [
        (&b"\x7fELF"[..], "it begins like an ELF file; compile the source for WebAssembly"),
        (b"MZ", "it begins like a program for Windows; compile the source for WebAssembly"),
        (b"!<arch>", "it begins like an archive; link its members into a module"),
        (b"BC\xc0\xde", "it begins like LLVM bitcode; compile it for WebAssembly"),
        (b"<", "it begins like HTML or XML"),
        (b"{", "it begins like JSON"),
    ];
    let bytes = bytes.trim_ascii_start();
    begins.iter().find(|(start, _)| bytes.starts_with(start)).map(|(_, what)| *what)
}

/// A module and the name of its input.
#[derive(Debug)]
pub(super) struct Loaded {
    /// The path in the form that diagnostics and reports show.
    pub(super) name: String,
    pub(super) module: Module,
    /// The functions that are left out.
    pub(super) left_out: Vec<UnsupportedBody>,
}

impl Loaded {
    /// The functions that are left out, for a document.
    pub(super) fn left_out(&self) -> Vec<LeftOutFunction> {
        let of = |one: &UnsupportedBody| LeftOutFunction {
            name: self.module.funcs[one.func].name.clone(),
            feature: one.feature.to_owned(),
            offset: one.offset,
        };
        self.left_out.iter().map(of).collect()
    }
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
