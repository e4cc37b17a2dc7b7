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
    /// What it imports is not provided, or of another type.
    Unlinkable,
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
        ImportError::unsupported_at(what, Location::Offset(offset))
    }

    pub(crate) fn unsupported_at(what: impl Into<String>, location: Location) -> ImportError {
        ImportError { kind: ErrorKind::Unsupported, message: what.into(), location }
    }

    pub(crate) fn too_large(what: impl Into<String>, offset: u64) -> ImportError {
        ImportError {
            kind: ErrorKind::TooLarge,
            message: what.into(),
            location: Location::Offset(offset),
        }
    }

    pub(crate) fn unlinkable(what: impl Into<String>, offset: u64) -> ImportError {
        ImportError {
            kind: ErrorKind::Unlinkable,
            message: what.into(),
            location: Location::Offset(offset),
        }
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
            ErrorKind::Unlinkable => "cannot be linked",
        };
        write!(f, "{kind}: {} at ", self.message)?;
        match self.location {
            Location::Offset(offset) => write!(f, "offset {offset:#x}"),
            Location::LineColumn(line, column) => write!(f, "line {line}, column {column}"),
        }
    }
}

impl std::error::Error for ImportError {}

/// Words by which the validator says that a part of WebAssembly is not allowed, and what people
/// call that part. The first that occur decide
/// (`what_is_not_supported_is_refused_by_name_and_offset`, and the tests of the specification).
const NOT_ALLOWED: &[(&str, &str)] = &[
    ("relaxed SIMD support is not enabled", "relaxed SIMD"),
    ("SIMD support is not enabled", "SIMD"),
    ("shared-everything-threads", "shared-everything threads"),
    ("threads must be enabled", "threads"),
    ("threads support is not enabled", "threads"),
    ("memory64 must be enabled", "memory64"),
    ("custom page sizes", "custom page sizes"),
    ("exception handling", "exceptions"),
    ("exceptions", "exceptions"),
    ("tail calls support is not enabled", "tail calls"),
    ("stack switching", "stack switching"),
    ("custom descriptors", "custom descriptors"),
    ("function-references", "function references"),
    ("function references", "function references"),
    ("wide arithmetic", "wide arithmetic"),
    // The version and the layer of a component, where a module has 1 and 0.
    ("0xd and 0x1", "the component model"),
    ("gc", "GC"),
];

impl From<wasmparser::Error> for ImportError {
    fn from(error: wasmparser::Error) -> ImportError {
        let words = [
            "not enabled",
            "must be enabled",
            "proposal",
            "not supported",
            "required for",
            "is disallowed",
            "is disabled",
        ];
        let location = Location::Offset(error.offset());
        let message = error.message();
        if !words.iter().any(|w| message.contains(w)) {
            return ImportError { kind: ErrorKind::Invalid, message: message.to_owned(), location };
        }
        let title =
            NOT_ALLOWED.iter().find(|(words, _)| message.contains(words)).map(|(_, title)| *title);
        let message = match title {
            Some(title) => format!("this module uses {title}, which is not supported ({message})"),
            None => message.to_owned(),
        };
        ImportError { kind: ErrorKind::Unsupported, message, location }
    }
}
