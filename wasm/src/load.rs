//! Loads modules: parses or imports bytes, verifies the module, and locates the findings.

use crate::Limits;
#[cfg(feature = "source")]
use crate::SourceMap;
use crate::module::{self, ImportWishes, Imported};
use crate::text;
use crate::unsupported::UnsupportedBody;
use ir::Module;
use ir::text::{SourceLines, parse_module_with_lines};
use ir::verifier::{Entity, Finding, Rule, verify_module};
use std::fmt;

/// The format of an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// The WebAssembly binary format.
    Wasm,
    /// The WebAssembly text format.
    Wat,
    /// The text form of the IR.
    Oir,
}

impl Format {
    /// The format of a file. The extension decides (`wasm`, `wat`, `oir`); with any other
    /// extension, the first bytes decide.
    pub fn of(extension: Option<&str>, bytes: &[u8]) -> Format {
        match extension {
            Some("wasm") => Format::Wasm,
            Some("wat") => Format::Wat,
            Some("oir") => Format::Oir,
            _ if bytes.starts_with(b"\0asm") => Format::Wasm,
            _ if first_statement(bytes).starts_with(b"(") => Format::Wat,
            _ => Format::Oir,
        }
    }
}

/// The text after leading blank lines and line comments. In both text formats such a comment runs
/// from a semicolon to the end of its line.
fn first_statement(text: &[u8]) -> &[u8] {
    let mut rest = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text).trim_ascii_start();
    while rest.starts_with(b";") {
        let end = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
        rest = rest[end..].trim_ascii_start();
    }
    rest
}

/// The reasons why an input is not a module, one message per finding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadError {
    messages: Vec<LoadMessage>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct LoadMessage {
    /// Whether the text begins with a line number and perhaps a column.
    begins_with_line: bool,
    /// The message, of one or more lines.
    text: String,
}

impl LoadError {
    /// The messages for a file of this name: `name:3:5: text`, or `name: text` for a message
    /// without a line.
    pub fn in_file(&self, name: &str) -> String {
        let line = |m: &LoadMessage| {
            format!("{name}:{}{}", if m.begins_with_line { "" } else { " " }, m.text)
        };
        self.messages.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    fn about_bytes(message: impl fmt::Display) -> LoadError {
        LoadError {
            messages: vec![LoadMessage { begins_with_line: false, text: message.to_string() }],
        }
    }

    fn with_lines(messages: impl IntoIterator<Item = impl fmt::Display>) -> LoadError {
        let message =
            |m: &dyn fmt::Display| LoadMessage { begins_with_line: true, text: m.to_string() };
        LoadError { messages: messages.into_iter().map(|m| message(&m)).collect() }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.messages.iter().map(|m| &*m.text).collect::<Vec<_>>().join("\n"))
    }
}

impl std::error::Error for LoadError {}

/// Reads a module and verifies it. Cost: near linear in the bytes.
///
/// # Errors
/// If the bytes are not a module in this format, the module breaks a rule, or a default limit is
/// exceeded.
///
/// # Panics
/// If the importer of WebAssembly makes a module that is not well-formed, which is a bug.
pub fn load(format: Format, bytes: &[u8]) -> Result<Module, LoadError> {
    load_within(format, bytes, &Limits::default())
}

/// Like [`load`], with the given limits. Limits on runs have no effect here.
///
/// # Errors
/// Like [`load`], with the given limits.
///
/// # Panics
/// Like [`load`].
pub fn load_within(format: Format, bytes: &[u8], limits: &Limits) -> Result<Module, LoadError> {
    Ok(load_wanted(format, bytes, limits, ImportWishes::default())?.module)
}

/// Like [`load_within`], and also returns the lines of the source if the module has debug info with
/// lines. The module is the same. Only the binary format has debug info. Cost: as [`load_within`];
/// with debug info, 4 bytes for each instruction and a copy of the debug info, which is not read
/// yet.
///
/// # Errors
/// Like [`load_within`]. Debug info that is wrong is no error: see [`SourceMap::notes`].
///
/// # Panics
/// Like [`load`].
#[cfg(feature = "source")]
pub fn load_with_source(
    format: Format,
    bytes: &[u8],
    limits: &Limits,
) -> Result<(Module, Option<SourceMap>), LoadError> {
    let wanted = ImportWishes { offsets: true, parts: false };
    let parts = load_wanted(format, bytes, limits, wanted)?;
    Ok((parts.module, parts.source))
}

/// The parts of a module that are supported.
#[derive(Debug)]
pub struct SupportedParts {
    /// The module. A function that is left out is declared, and awaits its body
    /// ([`Module::awaits_body`]).
    pub module: Module,
    /// The lines of the source, if they are wanted and the module has debug info with lines.
    #[cfg(feature = "source")]
    pub source: Option<SourceMap>,
    /// The functions that are left out, in the order of the module.
    pub left_out: Vec<UnsupportedBody>,
}

/// Like [`load_within`], for a module that is optimized and not run: functions that use SIMD,
/// threads, exceptions, tail calls or another part of WebAssembly that is not supported are left
/// out, in place of an error. With `lines`, the parts have the lines of the source.
///
/// Code that is kept is optimized as code of one thread. A program with threads allows that, since
/// an access that is not atomic promises other threads nothing, and atomic accesses are left out.
///
/// # Errors
/// Like [`load_within`].
///
/// # Panics
/// Like [`load`].
pub fn load_parts(
    format: Format,
    bytes: &[u8],
    limits: &Limits,
    lines: bool,
) -> Result<SupportedParts, LoadError> {
    load_wanted(format, bytes, limits, ImportWishes { offsets: lines, parts: true })
}

fn load_wanted(
    format: Format,
    bytes: &[u8],
    limits: &Limits,
    wanted: ImportWishes,
) -> Result<SupportedParts, LoadError> {
    check_length(bytes, limits)?;
    if format == Format::Oir {
        return Ok(SupportedParts {
            module: within(load_text(bytes)?, limits)?,
            #[cfg(feature = "source")]
            source: None,
            left_out: Vec::new(),
        });
    }
    // Only the binary format has debug info.
    let offsets = wanted.offsets && format == Format::Wasm && has_lines(bytes);
    let wanted = ImportWishes { offsets, ..wanted };
    let imported = match format {
        Format::Wat => text::import(utf8(bytes)?, &limits.import, wanted),
        _ => module::import(bytes, &limits.import, None, wanted),
    };
    let Imported { module, offsets, left_out } = imported.map_err(LoadError::about_bytes)?;
    let module = within(verified(module)?, limits)?;
    #[cfg(not(feature = "source"))]
    drop(offsets);
    Ok(SupportedParts {
        module,
        #[cfg(feature = "source")]
        source: offsets.map(|offsets| SourceMap::new(bytes, offsets)),
        left_out,
    })
}

#[cfg(feature = "source")]
fn has_lines(bytes: &[u8]) -> bool {
    SourceMap::has_lines(bytes)
}

#[cfg(not(feature = "source"))]
fn has_lines(_: &[u8]) -> bool {
    false
}

fn check_length(bytes: &[u8], limits: &Limits) -> Result<(), LoadError> {
    if bytes.len() as u64 > limits.input_bytes {
        let what =
            format!("the input has {} bytes; the limit is {}", bytes.len(), limits.input_bytes);
        return Err(LoadError::about_bytes(what));
    }
    Ok(())
}

/// The module, unless one of its functions is too long.
fn within(module: Module, limits: &Limits) -> Result<Module, LoadError> {
    let too_long =
        module.defined().find(|(_, body)| body.inst_count() as u64 > limits.function_instructions);
    match too_long {
        None => Ok(module),
        Some((_, body)) => {
            let (name, count, most) =
                (body.name().escape_debug(), body.inst_count(), limits.function_instructions);
            Err(LoadError::about_bytes(format!(
                "@{name} has {count} instructions; the limit is {most}"
            )))
        }
    }
}

fn verified(module: Module) -> Result<Module, LoadError> {
    match verify_module(&module).first() {
        None => Ok(module),
        // A valid WebAssembly module whose instantiation always traps. The verifier rejects it, and
        // that is no bug of the importer (`segments_outside_their_memory_are_refused`).
        Some(finding) if matches!(finding.rule(), Rule::ModData2 | Rule::ModElem2) => {
            Err(LoadError::about_bytes(format!("the module cannot be instantiated: {finding}")))
        }
        Some(finding) => panic!("bug in the importer of WebAssembly: {finding}"),
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, LoadError> {
    std::str::from_utf8(bytes).map_err(|e| {
        let line = 1 + bytes[..e.valid_up_to()].iter().filter(|b| **b == b'\n').count();
        LoadError::with_lines([format!("{line}: not UTF-8")])
    })
}

fn load_text(bytes: &[u8]) -> Result<Module, LoadError> {
    let (module, lines) = parse_module_with_lines(utf8(bytes)?).map_err(LoadError::with_lines)?;
    let findings = verify_module(&module);
    match findings.as_slice() {
        [] => Ok(module),
        findings => Err(LoadError {
            messages: findings.iter().map(|f| located(&module, &lines, f)).collect(),
        }),
    }
}

/// The message for a finding. It begins with a line if the finding is about an instruction.
fn located(module: &Module, lines: &SourceLines, finding: &Finding) -> LoadMessage {
    let func = finding.function().and_then(|name| module.func_named(name));
    let line = match (func, finding.entity()) {
        (Some(func), Entity::Inst(inst)) => lines.line(func, inst),
        _ => None,
    };
    match line {
        Some(line) => LoadMessage { begins_with_line: true, text: format!("{line}: {finding}") },
        None => LoadMessage { begins_with_line: false, text: finding.to_string() },
    }
}

#[cfg(test)]
mod tests;
