//! The errors of compilation: of versions, and of transitions between them.

use ir::Point;
use std::fmt;

/// The reason why a version could not be compiled. A failed compilation leaves no code behind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CompileError {
    /// No memory for code is left, or the limit of the engine is reached.
    OutOfMemory,
    /// The function has more values at one place than the buffer or a call can hold.
    TooManyValues {
        /// The name of the function.
        function: String,
        /// The number of words needed.
        needed: usize,
        /// The number of words available.
        limit: usize,
    },
    /// The verifier rejects the function, or its signature is not that of the function it is to be
    /// a version of.
    Invalid {
        /// The name of the function.
        function: String,
        /// The finding.
        what: String,
    },
    /// Cranelift rejects the function, or the system rejects its code.
    Codegen {
        /// The name of the function.
        function: String,
        /// The message of Cranelift or of the system.
        what: String,
    },
    /// The function cannot have an OSR point of the list.
    Point {
        /// The name of the function.
        function: String,
        /// The reason.
        what: String,
    },
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompileError::OutOfMemory => f.write_str("no memory for code is left"),
            CompileError::TooManyValues { function, needed, limit } => {
                write!(
                    f,
                    "@{function} passes {needed} values at once, and native code passes at most {limit}"
                )
            }
            CompileError::Invalid { function, what } => {
                write!(f, "@{function} is no such version: {what}")
            }
            CompileError::Codegen { function, what } => {
                write!(f, "@{function} cannot be compiled: {what}")
            }
            CompileError::Point { function, what } => {
                write!(f, "an OSR point cannot be put into @{function}: {what}")
            }
        }
    }
}

impl std::error::Error for CompileError {}

/// The reason why a transition could not be compiled. A failed compilation leaves no code behind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ContinueError {
    /// The mapping or continuation has another source version than the version that runs. It may be
    /// stale.
    OtherSource {
        /// The name of the function.
        function: String,
    },
    /// The mapping has another target version than the version given.
    OtherTarget {
        /// The name of the function.
        function: String,
    },
    /// Another engine compiled the target version.
    OtherEngine {
        /// The name of the function.
        function: String,
    },
    /// The mapping has no entry at the point.
    NoEntry {
        /// The name of the function.
        function: String,
        /// The point.
        at: Point,
    },
    /// The entry does not fit the versions, or its compensation code cannot run.
    NotBuilt {
        /// The name of the function.
        function: String,
        /// The reason.
        what: String,
    },
    /// The compiler rejects the function of the continuation.
    Compile(CompileError),
}

impl fmt::Display for ContinueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ContinueError::OtherSource { function } => {
                write!(
                    f,
                    "the transition is one from another version of @{function} than the one that runs"
                )
            }
            ContinueError::OtherTarget { function } => {
                write!(f, "the mapping leads to another version of @{function} than the one given")
            }
            ContinueError::OtherEngine { function } => {
                write!(f, "the version of @{function} to go on in was compiled by another engine")
            }
            ContinueError::NoEntry { function, at } => {
                write!(f, "there is no entry before {} of @{function}", at.inst())
            }
            ContinueError::NotBuilt { function, what } => {
                write!(f, "a transition of @{function} cannot be made: {what}")
            }
            ContinueError::Compile(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for ContinueError {}
