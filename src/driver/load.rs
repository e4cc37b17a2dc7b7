//! From bytes to a module that is well-formed.

use ir::Module;
use ir::text::{SourceLines, parse_module_with_lines};
use ir::verifier::{Entity, Finding, verify_module};
use std::fmt;

/// How a module is written down.
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
    /// The format of a file: its extension decides (`wasm`, `wat`, `oir`), or else how its contents begin.
    pub fn of(extension: Option<&str>, bytes: &[u8]) -> Format {
        match extension {
            Some("wasm") => Format::Wasm,
            Some("wat") => Format::Wat,
            Some("oir") => Format::Oir,
            _ if bytes.starts_with(b"\0asm") => Format::Wasm,
            // Comments of the text format and its first token; no statement of the IR begins so.
            _ if bytes.trim_ascii_start().starts_with(b"(") => Format::Wat,
            _ => Format::Oir,
        }
    }
}

/// Why bytes are no module: one message for each thing found, each with its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadError {
    messages: Vec<String>,
}

impl LoadError {
    /// The messages; each may have several lines.
    pub fn messages(&self) -> &[String] {
        &self.messages
    }

    fn one(message: impl fmt::Display) -> LoadError {
        LoadError { messages: vec![message.to_string()] }
    }

    fn all<T: fmt::Display>(findings: impl IntoIterator<Item = T>) -> LoadError {
        LoadError { messages: findings.into_iter().map(|f| f.to_string()).collect() }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.messages.join("\n"))
    }
}

impl std::error::Error for LoadError {}

/// Reads a module and verifies it. Cost: near linear in the bytes.
///
/// # Errors
/// When the bytes are not a module in this format, or the module breaks a rule.
pub fn load(format: Format, bytes: &[u8]) -> Result<Module, LoadError> {
    match format {
        Format::Oir => load_text(bytes),
        Format::Wasm | Format::Wat => Err(LoadError::one("WebAssembly cannot be read yet")),
    }
}

fn load_text(bytes: &[u8]) -> Result<Module, LoadError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|e| LoadError::one(format_args!("not UTF-8 at byte {:#x}", e.valid_up_to())))?;
    let (module, lines) = parse_module_with_lines(text).map_err(LoadError::all)?;
    let findings = verify_module(&module);
    match findings.as_slice() {
        [] => Ok(module),
        findings => Err(LoadError::all(findings.iter().map(|f| located(&module, &lines, f)))),
    }
}

/// A finding, its line before it when it is about an instruction.
fn located(module: &Module, lines: &SourceLines, finding: &Finding) -> String {
    let func = finding.function().and_then(|name| module.func_named(name));
    let line = match (func, finding.entity()) {
        (Some(func), Entity::Inst(inst)) => lines.line(func, inst),
        _ => None,
    };
    line.map_or(finding.to_string(), |line| format!("{line}: {finding}"))
}
