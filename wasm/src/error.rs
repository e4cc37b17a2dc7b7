//! Why a module could not be imported, and where.

use std::fmt;

/// What kind of refusal an [`ImportError`] is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorKind {
    /// Not a WebAssembly module.
    Invalid,
    /// A part of WebAssembly, or an import, that is not supported.
    Unsupported,
    /// Importing it would exceed the limits.
    TooLarge,
}

/// Where in the input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Location {
    /// Bytes from the start of the binary module; of text, of the binary it encodes to.
    Offset(u64),
    /// Line and column of text, both from 1; the column counts characters.
    LineColumn(usize, usize),
}

/// Why a module could not be imported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImportError {
    kind: ErrorKind,
    message: String,
    location: Location,
}

impl ImportError {
    pub(crate) fn invalid(message: impl Into<String>, location: Location) -> ImportError {
        ImportError { kind: ErrorKind::Invalid, message: message.into(), location }
    }

    pub(crate) fn unsupported(what: impl Into<String>, offset: u64) -> ImportError {
        ImportError { kind: ErrorKind::Unsupported, message: what.into(), location: Location::Offset(offset) }
    }

    pub(crate) fn too_large(what: impl Into<String>, offset: u64) -> ImportError {
        ImportError { kind: ErrorKind::TooLarge, message: what.into(), location: Location::Offset(offset) }
    }

    /// The kind of refusal.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What is wrong, without the place.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Where.
    pub fn location(&self) -> Location {
        self.location
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ErrorKind::Invalid => "invalid module",
            ErrorKind::Unsupported => "unsupported",
            ErrorKind::TooLarge => "too large",
        };
        write!(f, "{kind}: {} at ", self.message)?;
        match self.location {
            Location::Offset(offset) => write!(f, "offset {offset:#x}"),
            Location::LineColumn(line, column) => write!(f, "line {line}, column {column}"),
        }
    }
}

impl std::error::Error for ImportError {}

impl From<wasmparser::Error> for ImportError {
    /// The validator words it in one of these ways when it knows a part of WebAssembly and was told not
    /// to allow it (`what_is_not_supported_is_refused_by_name_and_offset`).
    fn from(error: wasmparser::Error) -> ImportError {
        let words = ["not enabled", "must be enabled", "proposal", "not supported"];
        let kind = match words.iter().any(|w| error.message().contains(w)) {
            true => ErrorKind::Unsupported,
            false => ErrorKind::Invalid,
        };
        ImportError { kind, message: error.message().to_owned(), location: Location::Offset(error.offset()) }
    }
}
