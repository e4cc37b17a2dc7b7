//! The errors of an import, with their locations.

use std::fmt;

/// The kind of an [`ImportError`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorKind {
    /// The input is not a valid WebAssembly module.
    Invalid,
    /// The module uses an unsupported part of WebAssembly, or an unsupported import.
    Unsupported,
    /// The import would exceed the limits.
    TooLarge,
    /// An import of the module is not provided, or has another type.
    Unlinkable,
}

/// A place in the input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Location {
    /// The offset in bytes from the start of the binary module. For text, the offset in the module
    /// that the text encodes to.
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
    /// The common name of the unsupported part of WebAssembly, if the importer itself found it.
    feature: Option<&'static str>,
    /// Whether the limit on the memory of an import is exceeded.
    is_over_budget: bool,
}

impl ImportError {
    fn new(kind: ErrorKind, message: String, location: Location) -> ImportError {
        ImportError { kind, message, location, feature: None, is_over_budget: false }
    }

    /// A part of WebAssembly that is not supported, by its common name.
    pub(crate) fn of_feature(feature: &'static str, offset: u64) -> ImportError {
        let what = format!("this module uses {feature}, which is not supported");
        ImportError::unsupported(what, offset).with_feature(feature)
    }

    /// The error with the common name of the unsupported part.
    pub(crate) fn with_feature(self, feature: &'static str) -> ImportError {
        ImportError { feature: Some(feature), ..self }
    }

    /// The common name of the unsupported part of WebAssembly.
    pub(crate) fn feature(&self) -> Option<&'static str> {
        self.feature
    }

    pub(crate) fn invalid(message: impl Into<String>, location: Location) -> ImportError {
        ImportError::new(ErrorKind::Invalid, message.into(), location)
    }

    pub(crate) fn unsupported(what: impl Into<String>, offset: u64) -> ImportError {
        ImportError::unsupported_at(what, Location::Offset(offset))
    }

    pub(crate) fn unsupported_at(what: impl Into<String>, location: Location) -> ImportError {
        ImportError::new(ErrorKind::Unsupported, what.into(), location)
    }

    pub(crate) fn too_large(what: impl Into<String>, offset: u64) -> ImportError {
        ImportError::new(ErrorKind::TooLarge, what.into(), Location::Offset(offset))
    }

    /// The import needs more memory than its limit.
    pub(crate) fn over_budget(what: impl Into<String>, offset: u64) -> ImportError {
        ImportError { is_over_budget: true, ..ImportError::too_large(what, offset) }
    }

    /// Whether the limit on the memory of an import is exceeded.
    pub(crate) fn is_over_budget(&self) -> bool {
        self.is_over_budget
    }

    pub(crate) fn unlinkable(what: impl Into<String>, offset: u64) -> ImportError {
        ImportError::new(ErrorKind::Unlinkable, what.into(), Location::Offset(offset))
    }

    /// The kind of error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The description of the error, without its location.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The location of the error.
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

/// Phrases by which the validator rejects an unsupported part of WebAssembly, each with the common
/// name of that part. The first phrase that a message contains decides, so a phrase must precede
/// the phrases that it contains. `unsupported_parts_are_rejected_by_name_and_offset` and the tests
/// of the WebAssembly specification check the names.
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
    // The version and the layer of a component. A module has 1 and 0 there.
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
            return ImportError::invalid(message, location);
        }
        let title =
            NOT_ALLOWED.iter().find(|(words, _)| message.contains(words)).map(|(_, title)| *title);
        let message = match title {
            Some(title) => format!("this module uses {title}, which is not supported ({message})"),
            None => message.to_owned(),
        };
        ImportError::unsupported_at(message, location)
    }
}
